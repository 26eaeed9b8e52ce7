//! Tests flags by the names that users know from other tools, the help, and messages that say what
//! to do.

use std::process::Command;

use crate::support::folder::{Folder, error, marq};

/// A folder with trips.parquet, and a key; the screen has 80 columns.
fn folder() -> Folder {
    let folder = Folder::new().with_variable("COLUMNS", "80");
    folder.copy("trips.parquet");
    for key in ["key.hex", "new.hex"] {
        folder.put(key, "00112233445566778899aabbccddeeff");
    }
    folder
}

#[test]
fn limits_are_said_as_people_know_them() {
    let folder = folder();
    let ids = |args: &[&str]| {
        folder
            .text(&[args, &["trips.parquet", "-c", "id", "-f", "csv"]].concat())
            .lines()
            .skip(1)
            .map(|id| id.parse().expect("a number"))
            .collect::<Vec<u64>>()
    };
    for (args, expected) in [
        (&["head", "-3"][..], vec![0, 1, 2]),
        (&["head", "--limit", "2"], vec![0, 1]),
        (&["head", "--skip", "998"], vec![998, 999]),
        (&["head", "--skip", "5", "-n", "1"], vec![5]),
        (&["cat", "--skip", "997"], vec![997, 998, 999]),
        (&["cat", "--skip", "1", "--limit", "2", "--where", "id > 500"], vec![502, 503]),
        (&["tail", "-1"], vec![999]),
        (&["head", "--skip", "2000"], vec![]),
        (&["head", "-2", "trips.parquet", "--skip", "999"], vec![999, 0]),
    ] {
        assert_eq!(ids(args), expected, "{args:?}");
    }
    assert_eq!(ids(&["sample", "-4"]).len(), 4);
    folder.refused(2, &["tail", "--skip", "1", "trips.parquet"]);
    folder.text(&["convert", "trips.parquet", "-o", "out.parquet", "--compression", "snappy"]);
}

#[test]
fn a_quoted_name_may_have_a_comma() {
    let folder = folder();
    folder.put("t.csv", "\"a,b\",\"say \"\"x\"\"\",c\n1,2,3\n");
    folder.text(&["convert", "t.csv", "-o", "t.parquet"]);
    for (columns, expected) in [
        (r#""a,b""#, r#"{"a,b":1}"#),
        (r#"c,"a,b""#, r#"{"c":3,"a,b":1}"#),
        (r#""say ""x""""#, r#"{"say \"x\"":2}"#),
        (r#"!"a,b",!c"#, r#"{"say \"x\"":2}"#),
        ("c", r#"{"c":3}"#),
    ] {
        let text = folder.text(&["cat", "t.parquet", "-c", columns]);
        assert_eq!(text.trim(), expected, "{columns}");
    }
}

#[test]
fn the_tool_alone_fits_one_screen() {
    let folder = folder();
    let text = folder.refused(2, &[]);
    assert!(text.lines().count() < 24, "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 88), "{text}");
}

#[test]
fn help_lists_the_flags_that_a_command_heeds() {
    let folder = folder();
    for (command, heeded, other) in [
        (&["info"][..], &["--kv", "--raw", "--mem"][..], &["--where", "--threads", "--int96"][..]),
        (&["schema"], &["--as", "--int96"], &["--where", "--raw", "--progress"]),
        (&["head"], &["--where", "--threads", "--skip"], &["--raw"]),
        (&["crypt", "decrypt"], &["--verbose"], &["--where", "--wide"]),
    ] {
        let help = folder.text(&[command, &["--help"]].concat());
        let lists = |flag: &str| {
            help.split([' ', ',', '\n']).any(|word| word.trim_end_matches('.') == flag)
        };
        assert!(heeded.iter().all(|flag| lists(flag)), "{help}");
        assert!(!other.iter().any(|flag| lists(flag)), "{help}");
    }
    folder.refused(2, &["info", "--where", "id = 1", "trips.parquet"]);
}

#[test]
#[cfg(unix)]
fn the_examples_of_each_help_run() {
    let folder = folder();
    let bin = std::path::Path::new(marq(&[]).get_program()).parent().expect("a folder").to_owned();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut run = 0;
    for command in [
        &["info"][..],
        &["schema"],
        &["head"],
        &["tail"],
        &["cat"],
        &["sample"],
        &["count"],
        &["explain"],
        &["pages"],
        &["stats"],
        &["convert"],
        &["crypt", "audit"],
        &["crypt", "encrypt"],
        &["crypt", "decrypt"],
        &["crypt", "rekey"],
    ] {
        let help = folder.text(&[command, &["--help"]].concat());
        let (_, examples) = help.split_once("Examples:\n").expect("examples");
        let script = examples.replace("\\\n", " ");
        for line in script.lines().map(str::trim).filter(|line| line.starts_with("marq ")) {
            let mut shell = Command::new("sh");
            shell.current_dir(folder.path("")).env("PATH", &path).args(["-c", line]);
            let output = shell.output().expect("a shell");
            assert!(output.status.success(), "{line}: {}", error(&output));
            run += 1;
        }
    }
    assert!(run > 25, "{run} examples");
}

#[test]
fn other_forms_are_called_by_their_names() {
    let folder = folder();
    folder.put("t.csv", b"a,b\n1,2\n");
    folder.put("t.dat", b"{\"a\": 1}\n{\"a\": 2}\n");
    folder.put("empty.parquet", b"");
    folder.put("t.arrow", b"ARROW1\0\0 and more");
    let whole = std::fs::read(folder.path("trips.parquet")).expect("a file");
    folder.put("cut.parquet", &whole[..whole.len() / 2]);
    for (file, said) in [
        ("t.csv", "is CSV, not Parquet: marq convert reads it"),
        ("t.dat", "is JSON"),
        ("t.arrow", "is an Arrow IPC file"),
        ("empty.parquet", "is empty"),
        ("cut.parquet", "was cut off"),
    ] {
        let text = folder.refused(3, &["head", file]);
        assert!(text.contains(said), "{file}: {text}");
    }
    let output = folder.run(&["convert", "trips.parquet", "-o", "t.xlsx"]);
    let text = error(&output);
    assert!(text.contains(".jsonl") && text.contains(".csv"), "{text}");
}

#[test]
fn reports_keep_what_matters_at_80_columns() {
    let folder = folder();
    for args in [
        &["stats", "-f", "table"][..],
        &["stats", "-f", "table", "--by", "chunk"],
        &["stats", "-f", "table", "--by", "page"],
        &["explain", "-f", "table", "--where", "id > 300"],
        &["pages", "-f", "table", "-c", "id"],
        &["info", "-f", "table"],
    ] {
        let text = folder.text(&[args, &["trips.parquet"]].concat());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
    let stats = folder.text(&["stats", "-f", "table", "trips.parquet"]);
    for path in ["lement.name", "element.lat", "element.lon"] {
        assert!(stats.contains(path), "{stats}");
    }
    let explain = folder.text(&["explain", "-f", "table", "--where", "id > 300", "trips.parquet"]);
    assert!(explain.contains("pruned by statistics") && explain.contains("rows left"), "{explain}");
}

#[test]
fn messages_name_flags_where_the_library_names_itself() {
    let folder = folder();
    folder.text(&[
        "crypt",
        "encrypt",
        "trips.parquet",
        "-o",
        "secret.parquet",
        "--encrypt-footer-key",
        "@key.hex",
    ]);
    for args in [
        &["head", "secret.parquet"][..],
        &["head", "trips.parquet", "--footer-key", "@key.hex"],
        &["head", "trips.parquet", "--mem", "1KiB"],
        &["head", "trips.parquet", "--limit-footer", "100"],
    ] {
        let output = folder.run(args);
        let text = error(&output);
        assert!(!output.status.success(), "{args:?}");
        assert!(
            !text.contains("::") && !text.contains("Decryption") && text.contains("--"),
            "{text}"
        );
    }
}

#[test]
fn a_create_table_says_which_elements_may_be_null() {
    let folder = folder();
    let sql = folder.text(&["schema", "trips.parquet", "--as", "sql:clickhouse"]);
    assert!(sql.contains("Array(Tuple(`name` Nullable(String)"), "{sql}");
    assert!(sql.contains("Map(String, Nullable(String))"), "{sql}");
    folder.put("v.jsonl", "{\"v\": {\"a\": 1}}\n");
    folder.text(&["convert", "v.jsonl", "-o", "v.parquet", "--variant", "v"]);
    for (dialect, name) in
        [("duckdb", "VARIANT"), ("spark", "VARIANT"), ("bigquery", "JSON"), ("postgres", "jsonb")]
    {
        let form = format!("sql:{dialect}");
        let sql = folder.text(&["schema", "v.parquet", "--as", &form]);
        assert!(sql.contains(name) && !sql.contains("STRUCT"), "{sql}");
    }
}

#[test]
fn the_mark_of_a_filter_stands_below_the_fault() {
    let folder = folder();
    for (filter, place) in
        [("fare => 3", "> 3"), ("vendor = '日本' nand fare > 1", "nand"), ("fare >\n= 2", "= 2")]
    {
        let output = folder.run(&["count", "trips.parquet", "--where", filter]);
        assert_eq!(output.status.code(), Some(2), "{filter}");
        let message = error(&output);
        let lines: Vec<&str> = message.lines().collect();
        let [.., line, mark] = &lines[..] else { panic!("no mark: {message}") };
        let before = line.split(place).next().expect("a part");
        // Each of the two characters takes two columns.
        let width = before.chars().count() + 2 * usize::from(filter.contains('日'));
        assert_eq!(mark.chars().count(), width + 1, "{message}");
        assert!(mark.ends_with('^') && mark.trim() == "^", "{message}");
    }
    // Line breaks of names stay escaped.
    let output = folder.run(&["head", "a\nb.parquet"]);
    assert!(error(&output).contains("a\\nb.parquet"));
}
