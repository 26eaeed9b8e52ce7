//! Tests which files `marq` finds by folders and globs, and the columns that folder names add.

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, new_empty_array};
use arrow_schema::{DataType, Field};

use crate::support::folder::{Folder, error};

impl Folder {
    /// A Parquet file with a column `n`.
    fn numbers(&self, name: &str, n: &[i64]) {
        self.columns(name, vec![("n", Arc::new(Int64Array::from(n.to_vec())))]);
    }

    fn count(&self, files: &[&str]) -> u64 {
        self.text(&[&["count"], files].concat()).trim().parse().expect("a number")
    }
}

#[test]
fn a_folder_is_the_same_however_it_is_written() {
    let folder = Folder::new();
    folder.numbers("d/a.parquet", &[1]);
    folder.numbers("d/e/b.PARQUET", &[2, 3]);
    folder.numbers("d/e/c.parq", &[4]);
    for name in ["./", ".", "d", "d/", "./d/", "d/.", "d/e/..", "d//", "*", "**", "./d/**", "d/*"] {
        assert_eq!(folder.count(&[name]), 4, "{name}");
    }
    assert_eq!(folder.count(&["d/*.parquet"]), 1);
    assert_eq!(folder.count(&["d//*.parquet"]), 1);
    assert_eq!(folder.count(&["*//*.parquet"]), 1);
    assert_eq!(folder.count(&["./*/./*.parquet"]), 1);
    assert_eq!(folder.count(&["**/*.parq"]), 1);
    let whole = folder.path("d").to_string_lossy().into_owned();
    assert_eq!(folder.count(&[&whole]), 4);
    assert_eq!(folder.count(&[&format!("{whole}/*/*")]), 3);
}

#[test]
fn folders_that_are_called_parquet_are_folders() {
    let folder = Folder::new();
    folder.numbers("d/x.parquet/part-0.snappy.parquet", &[1]);
    folder.numbers("d/x.parquet/part-1.snappy.parquet", &[2]);
    folder.put("d/x.parquet/_SUCCESS", "");
    folder.put("d/x.parquet/.part-0.snappy.parquet.crc", "crc");
    folder.numbers("d/y.parquet", &[3]);
    for (name, rows) in [("d", 3), ("d/x.parquet", 2), ("d/*.parquet", 3), ("*/x.parquet", 2)] {
        assert_eq!(folder.count(&[name]), rows, "{name}");
    }
    assert_eq!(folder.text(&["head", "d/x.parquet", "-f", "csv"]), "n\n1\n2\n");
}

#[test]
fn hidden_names_are_passed_over_unless_they_are_spelled_out() {
    let folder = Folder::new();
    folder.numbers("d/a.parquet", &[1]);
    for hidden in ["_delta_log/0.checkpoint", "_temporary/0/x", ".spark/y", "_z", ".z", "e/_w/v"] {
        folder.numbers(&format!("d/{hidden}.parquet"), &[7, 8]);
    }
    for name in ["d", "d/**/*.parquet", "d/*.parquet", "d/*", "**"] {
        assert_eq!(folder.count(&[name]), 1, "{name}");
    }
    for (name, rows) in [
        ("d/_delta_log", 2),
        ("d/_delta_log/*.parquet", 2),
        ("d/_*/*.parquet", 2),
        ("*/_delta_log/*", 2),
        ("d/_z.parquet", 2),
        ("d/.z.parquet", 2),
        ("d/**/_w/*", 2),
    ] {
        assert_eq!(folder.count(&[name]), rows, "{name}");
    }
    // A partition whose key begins so is none of them, as in Spark.
    folder.numbers("d/_year=2024/b.parquet", &[2]);
    assert_eq!(folder.text(&["cat", "d", "-f", "csv"]), "n,_year\n2,2024\n1,\n");
    let text = folder.refused(2, &["count", "d/e"]);
    assert!(text.contains("begin with _ or ."), "{text}");
}

#[test]
fn a_file_that_is_named_is_read_whatever_its_name() {
    let folder = Folder::new();
    folder.numbers("d/_hidden", &[1]);
    folder.numbers("d/data.bin", &[2]);
    assert_eq!(folder.count(&["d/_hidden", "d/data.bin"]), 2);
    assert_eq!(folder.count(&["d/data.bin", "d/data.bin"]), 2, "as often as it is named");
    folder.refused(2, &["count", "d"]);
}

#[cfg(unix)]
mod unix {
    use std::io::Write;
    use std::os::unix::fs::symlink;

    use super::*;

    fn fifo(path: &Path) {
        let made = Command::new("mkfifo").arg(path).status().expect("mkfifo runs");
        assert!(made.success());
    }

    /// Runs at most so long as no run needs.
    fn ends(folder: &Folder, args: &[&str]) -> Output {
        let mut command = folder.command(args);
        let mut child =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("marq runs");
        let begun = Instant::now();
        while child.try_wait().expect("a child").is_none() {
            if begun.elapsed() > Duration::from_secs(20) {
                child.kill().expect("killed");
                panic!("{args:?} does not end");
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        child.wait_with_output().expect("an end")
    }

    #[test]
    fn links_neither_loop_nor_repeat() {
        let folder = Folder::new();
        folder.numbers("d/a=2/x.parquet", &[1]);
        folder.numbers("other/y.parquet", &[2]);
        symlink(".", folder.path("d/loop")).expect("a link");
        symlink("../d", folder.path("d/up")).expect("a link");
        symlink("nowhere", folder.path("d/broken.parquet")).expect("a link");
        for name in ["d", "d/**/*.parquet", "**/*.parquet", "d/*"] {
            let rows = if name.starts_with('d') { 1 } else { 2 };
            let output = ends(&folder, &["count", name]);
            assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), rows.to_string(), "{name}");
        }
        // A file has the partition that it lies in, not that of a link.
        std::fs::create_dir(folder.path("d/a=1")).expect("a folder");
        symlink("../a=2", folder.path("d/a=1/link")).expect("a link");
        symlink("../a=2/x.parquet", folder.path("d/a=1/x.parquet")).expect("a link");
        assert_eq!(folder.text(&["cat", "d", "-f", "csv"]), "n,a\n1,2\n");
        // Files elsewhere are read through the link.
        symlink("../other", folder.path("d/a=3")).expect("a link");
        symlink("../other/y.parquet", folder.path("d/y.parquet")).expect("a link");
        assert_eq!(folder.count(&["d"]), 2);
        assert_eq!(folder.count(&["d", "other", "d/**"]), 2, "each file once");
        // Hard links are files of their own.
        std::fs::hard_link(folder.path("other/y.parquet"), folder.path("other/z.parquet"))
            .expect("a link");
        assert_eq!(folder.count(&["other"]), 2);
    }

    #[test]
    fn pipes_and_devices_in_folders_are_passed_over() {
        let folder = Folder::new();
        folder.numbers("d/a.parquet", &[1]);
        fifo(&folder.path("d/x.parquet"));
        symlink("x.parquet", folder.path("d/y.parquet")).expect("a link");
        symlink("/dev/zero", folder.path("d/z.parquet")).expect("a link");
        for args in
            [&["count", "d"][..], &["cat", "d/*", "-c", "n"], &["info", "d"], &["stats", "."]]
        {
            assert!(ends(&folder, args).status.success(), "{args:?}");
        }
    }

    #[test]
    fn a_pipe_that_is_named_is_read_as_standard_input() {
        let folder = Folder::new();
        folder.numbers("a.parquet", &[1, 2, 3]);
        fifo(&folder.path("pipe"));
        let feed = |args: &[&str]| {
            let (from, to) = (folder.path("a.parquet"), folder.path("pipe"));
            let writer = std::thread::spawn(move || {
                let bytes = std::fs::read(from).expect("a file");
                // The reader may have ended.
                let _ = std::fs::OpenOptions::new()
                    .write(true)
                    .open(to)
                    .and_then(|mut pipe| pipe.write_all(&bytes));
            });
            let output = ends(&folder, args);
            writer.join().expect("written");
            output
        };
        for (args, expected) in [
            (&["count", "pipe"][..], "3\n"),
            (&["cat", "pipe", "-f", "csv"], "n\n1\n2\n3\n"),
            (&["tail", "-n", "1", "pipe", "-f", "csv"], "n\n3\n"),
            (&["sample", "-n", "3", "pipe", "-f", "csv"], "n\n1\n2\n3\n"),
            (&["convert", "pipe", "--to", "csv"], "n\n1\n2\n3\n"),
        ] {
            let output = feed(args);
            assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{args:?}");
        }
        for args in [&["count", "--mem", "100B", "pipe"][..], &["cat", "--mem", "100B", "pipe"]] {
            let output = feed(args);
            assert_eq!(output.status.code(), Some(3), "{}", error(&output));
            assert!(error(&output).contains("--mem"), "{}", error(&output));
        }
        let output = ends(&folder, &["count", "--mem", "1MiB", "/dev/zero"]);
        assert_eq!(output.status.code(), Some(3), "{}", error(&output));
    }

    #[test]
    fn key_material_and_keys_are_small_files() {
        let folder = Folder::new();
        folder.numbers("a.parquet", &[1]);
        let key = "m=@key";
        folder.put("key", "00112233445566778899aabbccddeeff");
        for make in [fifo as fn(&Path), |path| symlink("/dev/zero", path).expect("a link")] {
            let path = folder.path("_KEY_MATERIAL_FOR_a.parquet.json");
            make(&path);
            let args = ["count", "a.parquet", "--key", key, "--allow-plain"];
            let output = ends(&folder, &args);
            assert_eq!(output.status.code(), Some(2), "{}", error(&output));
            assert!(error(&output).contains("regular file"), "{}", error(&output));
            std::fs::remove_file(path).expect("removed");
        }
        for flag in [&["--key-file", "/dev/zero"][..], &["--footer-key", "@/dev/zero"]] {
            let output = ends(&folder, &[&["count", "a.parquet"], flag].concat());
            assert_eq!(output.status.code(), Some(1), "{}", error(&output));
            assert!(error(&output).contains("more than"), "{}", error(&output));
        }
    }
}

#[test]
fn partition_values_are_numbers_where_these_tell_them_apart() {
    let folder = Folder::new();
    folder.numbers("d/k=1/a.parquet", &[1]);
    folder.numbers("d/k=02/a.parquet", &[2]);
    let rows = |flags: &[&str]| folder.text(&[&["cat", "d", "-f", "jsonl"], flags].concat());
    let texts = "{\"n\":2,\"k\":\"02\"}\n{\"n\":1,\"k\":\"1\"}\n";
    assert_eq!(rows(&[]), texts);
    assert_eq!(rows(&["--hive-types", "text"]), texts);
    assert_eq!(folder.text(&["count", "d", "--where", "k = '02'"]).trim(), "1");
    // Numbers of one length are as many as their texts.
    std::fs::rename(folder.path("d/k=1"), folder.path("d/k=01")).expect("renamed");
    assert_eq!(rows(&[]), "{\"n\":1,\"k\":1}\n{\"n\":2,\"k\":2}\n");
    let texts = "{\"n\":1,\"k\":\"01\"}\n{\"n\":2,\"k\":\"02\"}\n";
    assert_eq!(rows(&["--hive-types", "text"]), texts);
    assert_eq!(folder.text(&["count", "d", "--where", "k = 2"]).trim(), "1");
}

#[test]
fn files_of_different_columns_are_united_by_name_or_refused() {
    let folder = Folder::new();
    folder.numbers("d/k=1/a.parquet", &[1, 2]);
    let ids: ArrayRef = Arc::new(arrow_array::Int32Array::from(vec![3]));
    let names: ArrayRef = Arc::new(arrow_array::StringArray::from(vec!["x"]));
    folder.columns("d/k=2/b.parquet", vec![("name", names.clone()), ("n", ids)]);
    folder.put("t.csv", "extra,n\n9,4\n");
    let united = "n,name,k\n1,,1\n2,,1\n3,x,2\n";
    assert_eq!(folder.text(&["cat", "d", "-f", "csv", "--by-name"]), united);
    assert_eq!(folder.text(&["tail", "-1", "d", "-f", "csv", "--by-name"]), "n,name,k\n3,x,2\n");
    let some = &["head", "d", "-f", "csv", "--by-name", "-c", "k,name", "--where", "name is null"];
    assert_eq!(folder.text(some), "k,name\n1,\n1,\n");
    folder.text(&["convert", "d", "t.csv", "--by-name", "--no-hive", "-o", "all.parquet"]);
    let all = "n,name,extra\n1,,\n2,,\n3,x,\n4,,9\n";
    assert_eq!(folder.text(&["cat", "all.parquet", "-f", "csv"]), all);
    // One header does not fit both; JSON objects name their members.
    let refused = folder.run(&["cat", "d", "-f", "csv", "-o", "out.csv"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(error(&refused).contains("b.parquet") && error(&refused).contains("--by-name"));
    assert!(!folder.path("out.csv").exists());
    assert_eq!(folder.text(&["cat", "d", "-f", "jsonl"]).lines().count(), 3);
    let refused = folder.run(&["convert", "d", "-o", "out.csv"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(error(&refused).contains("--by-name"), "{}", error(&refused));
    // No type holds numbers and texts.
    folder.columns("d/k=3/c.parquet", vec![("n", names)]);
    let refused = folder.run(&["cat", "d", "--by-name"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(error(&refused).contains("column n: "), "{}", error(&refused));
}

#[test]
fn structs_with_other_members_are_united_whatever_the_form_of_their_files() {
    let folder = Folder::new();
    folder.put("1.jsonl", "{\"s\":{\"a\":1,\"b\":2},\"l\":[{\"x\":1}]}\n{\"s\":null,\"l\":null}\n");
    folder.put("2.jsonl", "{\"l\":[{\"y\":\"t\"},null],\"s\":{\"c\":3,\"a\":4}}\n");
    let united = concat!(
        "{\"s\":{\"a\":1,\"b\":2,\"c\":null},\"l\":[{\"x\":1,\"y\":null}]}\n",
        "{\"s\":null,\"l\":null}\n",
        "{\"s\":{\"a\":4,\"b\":null,\"c\":3},\"l\":[{\"x\":null,\"y\":\"t\"},null]}\n",
    );
    for form in ["parquet", "arrow", "arrows"] {
        let files = ["1", "2"].map(|name| {
            let file = format!("{name}.{form}");
            folder.text(&["convert", &format!("{name}.jsonl"), "-o", &file]);
            file
        });
        let args = ["convert", "--by-name", &files[0], &files[1], "--to", "jsonl"];
        assert_eq!(folder.text(&args), united, "{form}");
    }
}

#[test]
fn lists_of_two_thousand_million_values_that_one_file_states_are_refused_for_the_others() {
    let folder = Folder::new();
    let item = Arc::new(Field::new_list_field(DataType::Int32, true));
    let lists = new_empty_array(&DataType::FixedSizeList(item, i32::MAX));
    folder.columns("a.parquet", vec![("n", Arc::new(Int64Array::from_value(0, 0))), ("l", lists)]);
    folder.numbers("b.parquet", &[1, 2]);
    folder.put("c.csv", "n\n3\n");
    for other in ["b.parquet", "c.csv"] {
        let args = ["convert", "--by-name", "a.parquet", other, "-o", "all.parquet"];
        let refused = folder.run(&args);
        assert_eq!(refused.status.code(), Some(3), "{}", error(&refused));
        assert!(error(&refused).starts_with(&format!("marq: {other}: ")), "{}", error(&refused));
        folder.text(&[&args[..], &["-c", "n"]].concat());
        assert!(folder.text(&["count", "all.parquet"]).trim().parse::<u64>().expect("rows") > 0);
    }
}

#[test]
fn the_table_of_a_schema_that_files_share_is_shown_once_with_its_partition_columns() {
    let folder = Folder::new();
    for file in ["h/k=1/a.parquet", "h/k=2/b.parquet"] {
        folder.numbers(file, &[1]);
    }
    let table = folder.text(&["schema", "h", "-f", "table"]);
    assert_eq!(table.matches("repetition").count(), 1, "{table}");
    assert!(table.contains("h/k=1/a.parquet and 1 more"), "{table}");
    let partition = table.lines().find(|line| line.contains("│ k ")).expect("a partition column");
    assert!(partition.contains("Int64") && partition.contains("partition"), "{table}");
    let csv = folder.text(&["schema", "h", "-f", "csv"]);
    assert_eq!(csv.lines().count(), 1 + 2 * 2, "{csv}");
}

#[test]
fn the_schema_of_a_folder_has_a_partition_column_once() {
    let folder = Folder::new();
    let ones: ArrayRef = Arc::new(Int64Array::from(vec![1]));
    let columns = || vec![("n", ones.clone()), ("year", ones.clone())];
    folder.columns("part/year=2020/a.parquet", columns());
    folder.columns("part/year=2021/a.parquet", columns());
    let arrow = folder.text(&["schema", "part", "--as", "arrow"]);
    assert_eq!(arrow, "n: Int64\nyear: Int64\n");
    let sql = folder.text(&["schema", "part", "--as", "sql:duckdb"]);
    assert_eq!(sql.matches("\"year\"").count(), 1, "{sql}");
    let csv = folder.text(&["schema", "part", "-f", "csv"]);
    // Of each of the two files, once.
    assert_eq!(csv.matches(",year,").count(), 2, "{csv}");
    assert_eq!(csv.matches("partition").count(), 2, "{csv}");
    let json = folder.json(&["schema", "part", "--as", "json"]);
    let names = |key: &str| -> Vec<String> {
        let fields = json[key].as_array().expect("fields").iter();
        fields.map(|field| field["name"].as_str().expect("a name").to_owned()).collect()
    };
    assert_eq!((names("arrow"), names("partitions")), (vec!["n".into()], vec!["year".into()]));
}
