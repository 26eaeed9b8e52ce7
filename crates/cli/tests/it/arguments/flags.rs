//! Tests signals, flags that go together, folders as columns, and the texts of errors.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array, StringArray};
use arrow_schema::DataType;
use marquetry::{Reader, Writer};
use serde_json::Value;

use crate::support::folder::{Folder, error};
use crate::support::testdata;

impl Folder {
    /// A file with a column `n`, and others.
    fn table(&self, name: &str, n: &[i64], others: &[(&str, &str)]) {
        let mut columns: Vec<(&str, ArrayRef)> =
            vec![("n", Arc::new(Int64Array::from(n.to_vec())))];
        for (name, value) in others {
            columns.push((name, Arc::new(StringArray::from(vec![*value; n.len()]))));
        }
        self.columns(name, columns);
    }

    fn lines(&self, args: &[&str]) -> Vec<Value> {
        self.text(args).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }
}

fn trips() -> String {
    testdata("trips.parquet").to_string_lossy().into_owned()
}

#[cfg(unix)]
mod signals {
    use super::*;

    /// A run that waits for more of its input, with its temporary file there.
    fn begun(folder: &Folder, args: &[&str]) -> std::process::Child {
        let mut command = folder.command(args);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("marq runs");
        let lines = "{\"a\":1}\n".repeat(40_000);
        let input = child.stdin.as_mut().expect("a pipe");
        std::io::Write::write_all(input, lines.as_bytes()).expect("written");
        let begun = Instant::now();
        while !folder.names("").iter().any(|name| name.ends_with(".tmp")) {
            assert!(begun.elapsed() < Duration::from_secs(60), "no temporary file appears");
            std::thread::sleep(Duration::from_millis(5));
        }
        child
    }

    fn send(signal: &str, child: &std::process::Child) {
        let pid = child.id().to_string();
        let sent = Command::new("kill").args([signal, &pid]).status().expect("kill runs");
        assert!(sent.success());
    }

    /// Whether this process, and so its children, ignores a signal: SIGINT in the background of a
    /// script, SIGHUP under nohup.
    fn is_ignored(signal: u32) -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
        u64::from_str_radix(mask.trim(), 16).unwrap_or(0) >> (signal - 1) & 1 != 0
    }

    #[test]
    fn a_signal_leaves_no_file_and_says_so_in_the_exit_code() {
        for (signal, code) in [("-INT", 130), ("-TERM", 143), ("-HUP", 129)] {
            // The code is 128 and the number of the signal.
            if is_ignored(code - 128) {
                continue;
            }
            for out in ["a.parquet", "a.arrow", "a.csv"] {
                let folder = Folder::new();
                folder.put(out, "before");
                let args = ["convert", "-", "--from", "jsonl", "--infer-rows", "10", "-o", out];
                let mut child = begun(&folder, &args);
                send(signal, &child);
                // `wait` closes the input otherwise, and a program that has all of it may end
                // before the signal.
                let _input = child.stdin.take();
                let status = child.wait().expect("an end");
                assert_eq!(status.code(), Some(code.cast_signed()), "{signal}, {out}");
                assert_eq!(folder.names(""), [out], "{signal}");
                let kept = std::fs::read_to_string(folder.path(out)).expect("the old file");
                assert_eq!(kept, "before", "{signal}");
            }
        }
    }

    #[test]
    fn what_a_killed_run_left_is_cleared_by_the_next_one_to_the_same_file_alone() {
        let folder = Folder::new();
        let args = |out| ["convert", "-", "--from", "jsonl", "--infer-rows", "10", "-o", out];
        let mut killed = begun(&folder, &args("a.parquet"));
        send("-KILL", &killed);
        killed.wait().expect("an end");
        assert_eq!(folder.names("").len(), 1);
        // Another target leaves it, and a file that looks like it and is not.
        folder.put(".a.parquet.tmp", "mine");
        folder.put(".a.parquet.1-x.tmp", "mine");
        folder.text(&["convert", &trips(), "-o", "b.parquet"]);
        assert_eq!(folder.names("").len(), 4);
        folder.text(&["convert", &trips(), "-o", "a.parquet"]);
        let names = [".a.parquet.1-x.tmp", ".a.parquet.tmp", "a.parquet", "b.parquet"];
        assert_eq!(folder.names(""), names);
        // A run that lives keeps its file, and ends well.
        let mut alive = begun(&folder, &args("a.csv"));
        folder.text(&["convert", &trips(), "-o", "a.csv"]);
        assert_eq!(folder.names("").iter().filter(|name| name.contains("a.csv")).count(), 2);
        drop(alive.stdin.take());
        assert!(alive.wait().expect("an end").success());
        let lines = std::fs::read_to_string(folder.path("a.csv")).expect("text").lines().count();
        assert_eq!(lines, 40_001);
        assert_eq!(folder.names("").iter().filter(|name| name.contains("a.csv")).count(), 1);
    }
}

#[test]
fn a_writer_or_an_export_that_is_dropped_leaves_nothing() {
    let folder = Folder::new();
    let batch = crate::support::numbered::rows(0, 1000);
    let mut writer = Writer::create(folder.path("a.parquet"), batch.schema()).expect("a writer");
    writer.write(&batch).expect("written");
    assert_eq!(folder.names("").len(), 1);
    drop(writer);
    let bad = vec![Ok(batch.clone()), Err(marquetry::Error::usage("the stream broke"))];
    let export = marquetry::Export::to(folder.path("out"), batch.schema()).expect("an export");
    assert!(export.file_bytes(1).run([bad.into_iter()]).is_err());
    assert_eq!(folder.names(""), ["out"]);
    assert!(folder.names("out").is_empty());
}

#[test]
fn an_output_that_is_an_input_is_refused() {
    let folder = Folder::new();
    folder.table("a.parquet", &[1, 2, 3], &[]);
    let before = std::fs::read(folder.path("a.parquet")).expect("bytes");
    std::fs::hard_link(folder.path("a.parquet"), folder.path("hard.parquet")).expect("a link");
    #[cfg(unix)]
    std::os::unix::fs::symlink("a.parquet", folder.path("soft.parquet")).expect("a link");
    #[cfg(unix)]
    let outs = ["a.parquet", "./a.parquet", "hard.parquet", "soft.parquet"];
    #[cfg(not(unix))]
    let outs = ["a.parquet", "./a.parquet"];
    for out in outs {
        let text = folder.refused(2, &["convert", "a.parquet", "-o", out]);
        assert!(text.contains("--in-place"), "{text}");
        for command in ["info", "schema", "head", "cat", "sample", "count", "pages", "stats"] {
            let text = folder.refused(2, &[command, "a.parquet", "-f", "json", "-o", out]);
            assert!(text.contains("the output is the input"), "{text}");
        }
    }
    assert_eq!(std::fs::read(folder.path("a.parquet")).expect("bytes"), before);
    for flags in [&["a.parquet", "-o", "b.parquet"][..], &["a.parquet", "a.parquet"], &["-"]] {
        folder.refused(2, &[&["convert", "--in-place"], flags].concat());
    }
    folder.refused(1, &["convert", "--in-place", "absent.parquet"]);
    folder.text(&["convert", "a.parquet", "--codec", "gzip", "--in-place"]);
    assert_ne!(std::fs::read(folder.path("a.parquet")).expect("bytes"), before);
    assert_eq!(folder.text(&["count", "a.parquet"]), "3\n");
}

#[test]
fn an_output_among_the_files_of_a_folder_or_glob_is_refused() {
    let folder = Folder::new();
    folder.put("in/a.csv", "n\n1\n");
    folder.text(&["convert", "in/a.csv", "-o", "in/a.parquet"]);
    for (args, out) in [
        (&["concat", "in"][..], "in/all.parquet"),
        (&["convert", "in"], "in/rows.parquet"),
        (&["convert", "in/*.csv"], "in/all.csv"),
        (&["cat", "in/*.parquet", "-f", "json"], "in/some.parquet"),
    ] {
        // A new file is no input.
        folder.text(&[args, &["-o", out]].concat());
        let before = folder.content_of(out);
        let said = folder.refused(2, &[args, &["-o", out]].concat());
        assert!(said.contains(&format!("the output is the input {out}")), "{said}");
        assert_eq!(folder.content_of(out), before);
        std::fs::remove_file(folder.path(out)).expect("removed");
    }
    folder.text(&["convert", "in", "-o", "beside.parquet"]);
    folder.text(&["convert", "in", "-o", "beside.parquet"]);
}

#[test]
fn flags_that_would_do_nothing_are_usage_errors_that_say_what_they_are_for() {
    let folder = Folder::new();
    folder.table("a.parquet", &[1, 2], &[]);
    folder.put("a.csv", "n\n1\n");
    folder.put("a.jsonl", "{\"n\":1}\n");
    let csv = ["convert", "a.parquet", "-o", "x.csv"];
    for (flags, works) in [
        (&["--codec", "zstd"][..], "Parquet as an output"),
        (&["--profile", "small"], "Parquet as an output"),
        (&["--encoding", "n=PLAIN"], "Parquet as an output"),
        (&["--dictionary", "on"], "Parquet as an output"),
        (&["--page-version", "2"], "Parquet as an output"),
        (&["--row-group-rows", "5"], "Parquet as an output"),
        (&["--row-group-bytes", "5"], "Parquet as an output"),
        (&["--bloom", "n"], "Parquet as an output"),
        (&["--infer-rows", "5"], "CSV and JSON lines"),
        (&["--schema", "n: int64"], "CSV and JSON lines"),
        (&["-f", "table"], "--to"),
    ] {
        let text = folder.refused(2, &[&csv[..], flags].concat());
        assert!(text.contains(flags[0].trim_start_matches("-f")) && text.contains(works), "{text}");
    }
    let arrow = ["convert", "a.jsonl", "-o", "x.arrow"];
    for flags in [
        &["--no-header"][..],
        &["--delimiter", ";"],
        &["--null", "NA"],
        &["--int96", "us"],
        &["--limit-footer", "1MiB"],
        &["-j", "2"],
        &["--row-group", "0"],
    ] {
        folder.refused(2, &[&arrow[..], flags].concat());
    }
    for (command, flags) in [
        ("info", &["-j", "2"][..]),
        ("info", &["--int96", "us"]),
        ("info", &["--where", "n = 1"]),
        ("info", &["--progress", "always"]),
        ("info", &["-v"]),
        ("info", &["--no-hive"]),
        ("schema", &["--raw"]),
        ("schema", &["-j", "2"]),
        ("head", &["--raw"]),
        ("pages", &["--where", "n = 1"]),
        ("stats", &["-j", "2"]),
        ("explain", &["-j", "2"]),
        ("count", &["--progress", "never"]),
        ("cat", &["-q", "-v"]),
    ] {
        folder.refused(2, &[&[command, "a.parquet"], flags].concat());
    }
    for command in ["head", "pages", "stats", "explain"] {
        for columns in ["!zz", "zz", "zz*", "!zz*"] {
            let text = folder.refused(2, &[command, "a.parquet", "-c", columns]);
            assert!(text.contains("zz"), "{text}");
        }
    }
    assert_eq!(folder.names(""), ["a.csv", "a.jsonl", "a.parquet"]);
}

#[test]
fn one_meaning_of_columns_in_all_commands() {
    let folder = Folder::new();
    let trips = trips();
    let columns = |args: &[&str], list: &str| -> Vec<String> {
        let text = folder.text(&[args, &["-f", "json", &trips]].concat());
        let json: Value = serde_json::from_str(&text).expect("JSON");
        let mut names: Vec<String> = json[list]
            .as_array()
            .expect("a list")
            .iter()
            .map(|line| line["column"].as_str().expect("a column").to_owned())
            .collect();
        names.dedup();
        names
    };
    for (command, list) in [("pages", "chunks"), ("stats", "stats")] {
        let of = |wanted: &str| columns(&[command, "-c", wanted], list);
        let sorted = |wanted: &str| {
            let mut names = of(wanted);
            names.sort();
            names.dedup();
            names
        };
        assert_eq!(sorted("fare,id"), ["fare", "id"], "{command}");
        assert_eq!(sorted("p*"), ["passengers", "payment", "pickup"], "{command}");
        assert!(!sorted("!id").contains(&"id".to_owned()), "{command}");
        assert!(sorted("!id").contains(&"fare".to_owned()), "{command}");
        assert!(sorted("tags").iter().all(|name| name.starts_with("tags.")), "{command}");
        assert!(!sorted("!tags").iter().any(|name| name.starts_with("tags")), "{command}");
    }
}

#[test]
fn the_ending_of_the_output_says_its_format() {
    let folder = Folder::new();
    folder.table("a.parquet", &[1, 2], &[("t", "x")]);
    let written = |args: &[&str], out: &str| -> String {
        folder.text(&[args, &["a.parquet", "-o", out]].concat());
        std::fs::read_to_string(folder.path(out)).expect("text")
    };
    assert_eq!(written(&["cat"], "x.csv").lines().next(), Some("n,t"));
    assert_eq!(written(&["cat"], "x.jsonl").lines().count(), 2);
    assert!(written(&["cat"], "x.json").starts_with('['));
    assert!(written(&["cat"], "x.md").starts_with("| n"));
    assert!(written(&["head"], "x.CSV").starts_with("n,t"));
    assert!(written(&["info"], "y.json").contains("marq/1/info"));
    assert!(written(&["cat", "-f", "jsonl"], "z.csv").starts_with('{'), "-f wins");
    assert!(written(&["cat"], "no_ending").starts_with('{'), "as in a pipe");
    let text = folder.refused(2, &["cat", "a.parquet", "-o", "q.parquet"]);
    assert!(text.contains("convert"), "{text}");
    assert!(!folder.path("q.parquet").exists());
}

#[test]
fn count_is_a_number_where_no_form_is_asked_for() {
    let folder = Folder::new();
    folder.table("a.parquet", &[1, 2, 3], &[]);
    assert_eq!(folder.text(&["count", "a.parquet"]), "3\n");
    assert_eq!(folder.text(&["count", "a.parquet", "a.parquet"]), "6\n");
    assert_eq!(folder.text(&["count", "a.parquet", "--where", "n > 1"]), "2\n");
    assert!(folder.text(&["count", "a.parquet", "-f", "json"]).contains("marq/1/count"));
}

#[test]
fn a_condition_may_begin_with_a_minus() {
    let folder = Folder::new();
    folder.table("a.parquet", &[-5, 0, 5], &[]);
    assert_eq!(folder.text(&["count", "a.parquet", "--where", "-1 < n"]), "2\n");
    assert_eq!(folder.text(&["count", "--where", "-5 = n", "a.parquet"]), "1\n");
}

#[test]
fn a_quoted_name_in_a_schema_may_hold_quotes() {
    let folder = Folder::new();
    folder.put("a.csv", "\"a\"\"b\",\"c:d, e\"\n1,2\n");
    let schema = r#""a""b": int16, "c:d, e": utf8 not null"#;
    folder.text(&["convert", "a.csv", "--schema", schema, "-o", "a.parquet"]);
    assert_eq!(folder.type_of("a.parquet", "a\"b"), DataType::Int16);
    assert_eq!(folder.type_of("a.parquet", "c:d, e"), DataType::Utf8);
    for schema in [r#""a: int16"#, r#""a"" : int16"#] {
        folder.refused(2, &["convert", "a.csv", "--schema", schema, "-o", "x.parquet"]);
    }
}

#[test]
fn integers_beyond_64_bits_with_a_sign_keep_their_digits() {
    let folder = Folder::new();
    folder.put(
        "a.jsonl",
        "{\"u\":18446744073709551615,\"d\":-1,\"b\":123456789012345678901234567890,\"f\":1e300,\"s\":{\"u\":[9223372036854775808]},\"i\":1}\n\
         {\"u\":1,\"d\":9223372036854775808,\"b\":-5,\"f\":100000000000000000000,\"s\":{\"u\":[]},\"i\":9223372036854775807}\n",
    );
    folder.text(&["convert", "a.jsonl", "-o", "a.parquet"]);
    assert_eq!(folder.type_of("a.parquet", "u"), DataType::UInt64);
    assert_eq!(folder.type_of("a.parquet", "d"), DataType::Decimal128(38, 0));
    assert_eq!(folder.type_of("a.parquet", "b"), DataType::Decimal128(38, 0));
    assert_eq!(folder.type_of("a.parquet", "f"), DataType::Float64);
    assert_eq!(folder.type_of("a.parquet", "i"), DataType::Int64);
    let DataType::Struct(fields) = folder.type_of("a.parquet", "s") else { panic!("a struct") };
    let DataType::List(item) = fields[0].data_type() else { panic!("a list") };
    assert_eq!(*item.data_type(), DataType::UInt64);
    let text = folder.text(&["cat", "a.parquet", "-f", "csv", "-c", "u,d,b"]);
    let rows =
        ["18446744073709551615,-1,123456789012345678901234567890", "1,9223372036854775808,-5"];
    assert_eq!(text.lines().skip(1).collect::<Vec<_>>(), rows);
    assert!(folder.text(&["cat", "a.parquet", "-c", "s"]).contains("9223372036854775808"));

    // A value that no type holds is reported with its line; so is one after the lines that types
    // are inferred from.
    let long = "9".repeat(77);
    for (name, second, flags, code) in [
        ("long.jsonl", long.as_str(), &[][..], 3),
        ("mixed.jsonl", "1.5e0", &[], 3),
        ("late.jsonl", "18446744073709551616", &["--infer-rows", "1"], 3),
        ("fraction.jsonl", "2.5", &["--infer-rows", "1"], 3),
    ] {
        folder.put(
            name,
            format!("{{\"a\":{{\"b\":[18446744073709551615]}}}}\n{{\"a\":{{\"b\":[{second}]}}}}\n"),
        );
        let text = folder.refused(code, &[&["convert", name, "-o", "x.parquet"], flags].concat());
        assert!(text.contains("line 1") || text.contains("line 2"), "{text}");
        assert!(!folder.path("x.parquet").exists());
    }
    // Decimals without a fraction are not rounded.
    folder.put("d.jsonl", "{\"a\":18446744073709551616}\n{\"a\":2.5}\n");
    let text = folder.refused(3, &["convert", "d.jsonl", "--infer-rows", "1", "-o", "x.parquet"]);
    assert!(text.contains("line 2") && text.contains("2.5"), "{text}");
    // A type that is given is not inferred.
    folder.text(&[
        "convert",
        "long.jsonl",
        "--schema",
        "a: struct<b: list<utf8>>",
        "-o",
        "y.parquet",
    ]);
}

#[test]
fn folders_named_key_value_are_columns() {
    let folder = Folder::new();
    folder.table("d/year=2023/land=NL/a.parquet", &[1, 2], &[]);
    folder.table("d/year=2024/land=a%20b%2Fc/a.parquet", &[3], &[]);
    folder.table("d/year=2024/land=__HIVE_DEFAULT_PARTITION__/b.parquet", &[4], &[]);
    let rows = folder.text(&["cat", "d", "-f", "csv"]);
    assert_eq!(rows, "n,year,land\n1,2023,NL\n2,2023,NL\n4,2024,\n3,2024,a b/c\n");
    assert_eq!(folder.text(&["cat", "d", "--no-hive", "-f", "csv"]), "n\n1\n2\n4\n3\n");
    assert_eq!(folder.text(&["cat", "d/*/*/*.parquet", "-f", "csv"]), rows);
    let file = "d/year=2023/land=NL/a.parquet";
    assert_eq!(folder.text(&["cat", file, "-f", "csv"]), "n\n1\n2\n", "a file is what it is");
    assert_eq!(
        folder.text(&["cat", "d", "-c", "land,n", "-f", "csv", "-n", "1"]),
        "land,n\nNL,1\n"
    );
    assert_eq!(
        folder.text(&["cat", "d", "-c", "!n", "-f", "csv", "-n", "1"]),
        "year,land\n2023,NL\n"
    );
    // Filters on them leave whole files out, also together with other columns.
    for (filter, rows) in [
        ("year = 2024", "4\n3\n"),
        ("year > 2023 and n = 3", "3\n"),
        ("land = 'NL' or n = 4", "1\n2\n4\n"),
        ("land is null", "4\n"),
        ("year = 1999", ""),
    ] {
        let found = folder.text(&["cat", "d", "-c", "n", "-f", "csv", "--where", filter]);
        assert_eq!(found, format!("n\n{rows}"), "{filter}");
        let count = folder.text(&["count", "d", "--where", filter]);
        assert_eq!(count.trim(), rows.lines().count().to_string(), "{filter}");
        folder.text(&["convert", "d", "-c", "n", "--where", filter, "-o", "x.csv"]);
        let found = std::fs::read_to_string(folder.path("x.csv")).expect("text");
        assert_eq!(found, format!("n\n{rows}"), "{filter}");
    }
    // A file that is left out is not opened.
    folder.put("d/year=2022/land=NL/broken.parquet", "no Parquet");
    assert_eq!(folder.text(&["count", "d", "--where", "year = 2024"]), "2\n");
    folder.text(&["convert", "d", "--where", "year = 2024", "-o", "x.parquet"]);
    assert_eq!(folder.type_of("x.parquet", "year"), DataType::Int64);
    assert_eq!(folder.type_of("x.parquet", "land"), DataType::Utf8);
    assert_eq!(
        folder.text(&["cat", "x.parquet", "-f", "csv"]),
        "n,year,land\n4,2024,\n3,2024,a b/c\n"
    );
}

#[test]
fn partition_columns_are_dates_where_all_are_and_win_over_the_columns_of_a_file() {
    let folder = Folder::new();
    folder.table("e/day=2024-01-31/t=1/a.parquet", &[1], &[("day", "other"), ("u", "v")]);
    folder.table("e/day=2024-02-01/t=x/a.parquet", &[2], &[("day", "other"), ("u", "v")]);
    let rows = folder.text(&["cat", "e", "-f", "csv"]);
    assert_eq!(rows, "n,u,day,t\n1,v,2024-01-31,1\n2,v,2024-02-01,x\n");
    assert_eq!(folder.text(&["count", "e", "--where", "day > date '2024-01-31'"]), "1\n");
    folder.text(&["convert", "e", "-o", "e.parquet"]);
    assert_eq!(folder.type_of("e.parquet", "day"), DataType::Date32);
    assert_eq!(folder.type_of("e.parquet", "t"), DataType::Utf8);
    let rows = folder.text(&["cat", "e", "--no-hive", "-c", "day", "-f", "csv", "-n", "1"]);
    assert_eq!(rows, "day\nother\n");
}

#[test]
fn a_number_of_rows_counts_over_all_files() {
    let folder = Folder::new();
    folder.table("a.parquet", &[1, 2, 3], &[]);
    folder.table("b.parquet", &[4, 5], &[]);
    folder.table("c.parquet", &[6], &[]);
    let n = |args: &[&str]| -> Vec<i64> {
        let files = ["a.parquet", "b.parquet", "c.parquet"];
        let lines = folder.lines(&[args, &files].concat());
        lines.iter().map(|line| line["n"].as_i64().expect("a number")).collect()
    };
    assert_eq!(n(&["head", "-n", "4"]), [1, 2, 3, 4]);
    assert_eq!(n(&["head", "-n", "0"]), [0i64; 0]);
    assert_eq!(n(&["head"]), [1, 2, 3, 4, 5, 6]);
    assert_eq!(n(&["cat", "-n", "5"]), [1, 2, 3, 4, 5]);
    assert_eq!(n(&["tail", "-n", "4"]), [3, 4, 5, 6]);
    assert_eq!(n(&["tail", "-n", "2", "--where", "n <> 5"]), [4, 6]);
    assert_eq!(n(&["head", "-n", "2", "--where", "n > 2"]), [3, 4]);
    let sample = n(&["sample", "-n", "4", "--seed", "3"]);
    assert!(sample.len() == 4 && sample.is_sorted(), "{sample:?}");
    assert_eq!(n(&["sample", "-n", "9"]), [1, 2, 3, 4, 5, 6]);
    let some = n(&["sample", "-n", "2", "--where", "n > 3"]);
    assert!(some.len() == 2 && some.iter().all(|n| *n > 3), "{some:?}");
}

#[test]
fn words_that_are_neither_commands_nor_files_say_what_there_is() {
    let folder = Folder::new();
    folder.table("heda", &[1], &[]);
    let text = folder.refused(2, &["hed", "x.parquet"]);
    assert!(
        text.contains("did you mean help or hexdump or head?") && text.contains("convert"),
        "{text}"
    );
    assert_eq!(folder.run(&["heda"]).status.code(), Some(0), "a file is one, whatever its name");
    assert_eq!(folder.run(&["--raw", "heda"]).status.code(), Some(0), "also after a flag");
    folder.refused(1, &["absent.parquet"]);
    for path in ["hdfs://host/a.parquet", "ftp://host/a.parquet"] {
        for args in [&["head", path][..], &[path], &["convert", "heda", "--to", "csv", "-o", path]]
        {
            let text = folder.refused(2, args);
            assert!(text.contains(path) && text.contains("s3://"), "{text}");
        }
    }
    std::fs::create_dir(folder.path("empty")).expect("a folder");
    let text = folder.refused(2, &["cat", "empty"]);
    assert!(text.contains("no .parquet file"), "{text}");
}

#[test]
fn limits_name_the_flag_that_raises_them() {
    let folder = Folder::new();
    let trips = trips();
    for (flag, args) in [
        ("--mem", ["cat", "--mem", "100", trips.as_str()]),
        ("--limit-footer", ["count", "--limit-footer", "10", trips.as_str()]),
    ] {
        let text = folder.refused(3, &args);
        assert!(!text.contains("Limits::") && text.contains(&format!("{flag} SIZE")), "{text}");
    }
}

#[test]
fn json_errors_carry_cause_and_section() {
    let folder = Folder::new();
    folder.put("a.parquet", "no Parquet, and long enough for one");
    let json = |args: &[&str], code| -> Value {
        serde_json::from_str(&folder.refused(code, args)).expect("one JSON line")
    };
    let error = json(&["cat", "-f", "json", "absent.parquet"], 1);
    assert!(error["cause"].as_str().is_some_and(|cause| cause.contains("os error 2")), "{error}");
    let error = json(&["cat", "-f", "json", "a.parquet"], 3);
    let section = error["section"].as_str().expect("a section");
    assert_eq!(section, "Parquet format, README.md, File format");
    let text = folder.refused(3, &["cat", "a.parquet"]);
    assert!(text.contains("(Parquet format, README.md, File format)"), "{text}");
}

#[test]
fn messages_are_coloured_on_request_alone() {
    let folder = Folder::new();
    let red = |args: &[&str]| folder.refused(1, args).contains('\u{1b}');
    assert!(!red(&["cat", "absent.parquet"]), "no terminal");
    assert!(red(&["cat", "--color", "always", "absent.parquet"]));
    assert!(!red(&["cat", "--color", "always", "--no-color", "absent.parquet"]));
    let help = |flag: &str| folder.text(&["--help", flag]).contains('\u{1b}');
    assert!(help("--color=always") && !help("--no-color"));
}

#[test]
fn the_help_lists_what_exists_in_one_order() {
    let folder = Folder::new();
    let commands = folder.text(&["--help"]);
    for command in ["info", "head", "cat", "convert", "stats", "pages", "explain"] {
        let help = folder.text(&[command, "--help"]);
        assert!(!help.contains("not there yet"), "{command}");
        let takes_rows = ["head", "cat", "convert", "explain"].contains(&command);
        assert_eq!(help.contains("--variant-path"), takes_rows, "{command}");
        assert_eq!(help.contains("--shred"), command == "convert", "{command}");
        let parts = ["Arguments:", "Options:", "Output:", "Reading:", "Encryption:"];
        let places = parts.map(|part| help.find(part));
        assert!(places.iter().all(Option::is_some) && places.is_sorted(), "{command}: {places:?}");
        assert!(commands.contains(command));
    }
    let lines = ["convert", "--to", "jsonl", &trips()];
    assert_eq!(folder.text(&[&lines[..], &["--variant", "json"]].concat()), folder.text(&lines));
    for flags in [
        &["cat", "--footer-key", "00"][..],
        &["cat", "--column-key", "a=00"],
        &["convert", "--to", "parquet", "--encrypt-footer-key", "00"],
        &["convert", "--to", "parquet", "--encrypt-column-key", "a=00"],
        &["convert", "--to", "parquet", "--algorithm", "gcm", "--plaintext-footer"],
    ] {
        let text = folder.refused(2, &[flags, &[&trips()]].concat());
        assert!(text.contains("--"), "{text}");
    }
}

#[test]
fn a_summary_is_said_with_verbose_and_progress_never_reaches_standard_output() {
    let folder = Folder::new();
    folder.table("a.parquet", &[1, 2, 3], &[]);
    for (args, begin) in [
        (&["convert", "a.parquet", "-o", "b.parquet"][..], "3 rows, 1 row group, ratio "),
        (&["convert", "a.parquet", "-o", "b.csv"], "3 rows, 8 B, "),
        (&["convert", "a.parquet", "-o", "b.arrow", "--rows", "0:1"], "1 row, "),
        (&["cat", "a.parquet", "-o", "c.csv"], "3 rows, 8 B, "),
    ] {
        assert_eq!(error(&folder.run(args)), "", "{args:?}: no terminal, no word");
        let said = error(&folder.run(&[args, &["-v"]].concat()));
        let name =
            args.iter().find(|arg| Path::new(arg).extension().is_some() && **arg != "a.parquet");
        assert!(said.starts_with(begin), "{args:?}: {said}");
        assert!(
            said.trim_end().ends_with(&format!(" s to {}", name.expect("an output"))),
            "{said}"
        );
    }
    let output = folder.run(&["cat", "a.parquet", "--progress", "always", "-f", "csv"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "n\n1\n2\n3\n");
}

#[test]
fn an_encrypted_column_beside_a_readable_footer_says_encrypted_on_every_way_in() {
    use marquetry::format::{ColumnCryptoMetaData, Encoding, Type};
    use marquetry::{ErrorKind, col};

    use crate::support::{Chunk, file_with, ints, required, v1};

    let page = |values: &[i32]| v1(values.len(), Encoding::Plain, &ints(values));
    let plain = Chunk::new(Type::Int32, 3, &[page(&[1, 2, 3])]);
    let mut secret = Chunk::new(Type::Int32, 3, &[page(&[4, 5, 6])]);
    // An encrypted module looks like this without its key.
    secret.bytes.iter_mut().for_each(|byte| *byte = byte.wrapping_mul(167) ^ 0x5a);
    let schema = vec![required("a", Type::Int32), required("b", Type::Int32)];
    let bytes = file_with(schema, vec![(3, vec![plain, secret])], |meta| {
        let chunk = &mut meta.row_groups[0].columns[1];
        chunk.crypto_metadata = Some(ColumnCryptoMetaData::EncryptionWithFooterKey);
        (chunk.offset_index_offset, chunk.offset_index_length) = (Some(30), Some(12));
        (chunk.column_index_offset, chunk.column_index_length) = (Some(10), Some(12));
    });
    let folder = Folder::new();
    std::fs::write(folder.path("a.parquet"), &bytes).expect("a file");

    let reader = Reader::open(folder.path("a.parquet")).expect("a footer");
    let read = |reader: &Reader| -> Result<usize, marquetry::Error> {
        let mut rows = 0;
        let mut batches = reader.batches()?;
        while let Some(batch) = batches.next_batch()? {
            rows += batch.num_rows();
        }
        Ok(rows)
    };
    let of = |names: &[&str]| reader.clone().project(names).expect("columns");
    assert_eq!(read(&of(&["a"])).expect("rows"), 3);
    let refused = [
        read(&reader).map(drop),
        read(&of(&["b"])).map(drop),
        read(&of(&["a"]).filter(col("b").gt(5))).map(drop),
        of(&["b"]).take(&[1]).map(drop),
        reader.page_index(0, 1).map(drop),
    ];
    for (i, done) in refused.into_iter().enumerate() {
        let error = done.expect_err("encrypted");
        assert_eq!(error.kind(), ErrorKind::Crypto, "{i}: {error}");
        assert!(error.to_string().contains("encrypted"), "{i}: {error}");
    }
    let mut loading = reader.clone();
    loading.load_page_indexes().expect("those that can be read");

    for args in [
        &["cat", "a.parquet"][..],
        &["head", "a.parquet", "-c", "b"],
        &["count", "a.parquet", "--where", "b > 5"],
        &["convert", "a.parquet", "-o", "x.csv"],
        &["pages", "a.parquet"],
        &["pages", "a.parquet", "-c", "b"],
        &["stats", "a.parquet", "--by", "page"],
    ] {
        let text = folder.refused(6, args);
        assert!(text.contains("column b: ") && text.contains("encrypted"), "{args:?}: {text}");
    }
    for args in [
        &["cat", "a.parquet", "-c", "!b"][..],
        &["count", "a.parquet"],
        &["info", "a.parquet"],
        &["schema", "a.parquet"],
        &["pages", "a.parquet", "-c", "a"],
        &["stats", "a.parquet"],
    ] {
        folder.text(args);
    }
}

#[test]
fn rows_beyond_the_file_are_said_to_be_so() {
    let reader = Reader::open(testdata("trips.parquet")).expect("Parquet");
    let error = reader.take(&[3, 1000]).expect_err("there are 1000 rows");
    assert_eq!(error.kind(), marquetry::ErrorKind::Usage);
    let text = error.to_string();
    assert!(text.contains("row 1000") && text.contains("0 to 999"), "{text}");
}
