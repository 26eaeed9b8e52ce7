//! Tests flags by the names that users know from other tools, the help, and messages that say what
//! to do.

use std::path::Path;
use std::process::{Command, Output};

use crate::support::testdata;

/// The tool, started in a folder, on a screen of 80 columns.
fn marq(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_marq"));
    command.current_dir(folder).env("COLUMNS", "80").args(args).output().expect("marq runs")
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// A folder with trips.parquet, and a key.
fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::copy(testdata("trips.parquet"), folder.path().join("trips.parquet")).expect("copied");
    for key in ["key.hex", "new.hex"] {
        std::fs::write(folder.path().join(key), "00112233445566778899aabbccddeeff").expect("a key");
    }
    folder
}

#[test]
fn limits_are_said_as_people_know_them() {
    let folder = folder();
    let ids = |args: &[&str]| {
        let output =
            marq(folder.path(), &[args, &["trips.parquet", "-c", "id", "-f", "csv"]].concat());
        stdout(&output)
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
    let refused = marq(folder.path(), &["tail", "--skip", "1", "trips.parquet"]);
    assert_eq!(refused.status.code(), Some(2));
    stdout(&marq(
        folder.path(),
        &["convert", "trips.parquet", "-o", "out.parquet", "--compression", "snappy"],
    ));
}

#[test]
fn a_quoted_name_may_have_a_comma() {
    let folder = folder();
    std::fs::write(folder.path().join("t.csv"), "\"a,b\",\"say \"\"x\"\"\",c\n1,2,3\n")
        .expect("written");
    stdout(&marq(folder.path(), &["convert", "t.csv", "-o", "t.parquet"]));
    for (columns, expected) in [
        (r#""a,b""#, r#"{"a,b":1}"#),
        (r#"c,"a,b""#, r#"{"c":3,"a,b":1}"#),
        (r#""say ""x""""#, r#"{"say \"x\"":2}"#),
        (r#"!"a,b",!c"#, r#"{"say \"x\"":2}"#),
        ("c", r#"{"c":3}"#),
    ] {
        let output = marq(folder.path(), &["cat", "t.parquet", "-c", columns]);
        assert_eq!(stdout(&output).trim(), expected, "{columns}");
    }
}

#[test]
fn the_tool_alone_fits_one_screen() {
    let folder = folder();
    let output = marq(folder.path(), &[]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8_lossy(&output.stderr);
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
        let help = stdout(&marq(folder.path(), &[command, &["--help"]].concat()));
        let lists = |flag: &str| {
            help.split([' ', ',', '\n']).any(|word| word.trim_end_matches('.') == flag)
        };
        assert!(heeded.iter().all(|flag| lists(flag)), "{help}");
        assert!(!other.iter().any(|flag| lists(flag)), "{help}");
    }
    let refused = marq(folder.path(), &["info", "--where", "id = 1", "trips.parquet"]);
    assert_eq!(refused.status.code(), Some(2));
}

#[test]
#[cfg(unix)]
fn the_examples_of_each_help_run() {
    let folder = folder();
    let bin = Path::new(env!("CARGO_BIN_EXE_marq")).parent().expect("a folder").to_owned();
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
        let help = stdout(&marq(folder.path(), &[command, &["--help"]].concat()));
        let (_, examples) = help.split_once("Examples:\n").expect("examples");
        let script = examples.replace("\\\n", " ");
        for line in script.lines().map(str::trim).filter(|line| line.starts_with("marq ")) {
            let mut shell = Command::new("sh");
            shell.current_dir(folder.path()).env("PATH", &path).args(["-c", line]);
            let output = shell.output().expect("a shell");
            assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
            run += 1;
        }
    }
    assert!(run > 25, "{run} examples");
}

#[test]
fn other_forms_are_called_by_their_names() {
    let folder = folder();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes);
    write("t.csv", b"a,b\n1,2\n").expect("written");
    write("t.dat", b"{\"a\": 1}\n{\"a\": 2}\n").expect("written");
    write("empty.parquet", b"").expect("written");
    write("t.arrow", b"ARROW1\0\0 and more").expect("written");
    let whole = std::fs::read(testdata("trips.parquet")).expect("a file");
    write("cut.parquet", &whole[..whole.len() / 2]).expect("written");
    for (file, said) in [
        ("t.csv", "is CSV, not Parquet: marq convert reads it"),
        ("t.dat", "is JSON"),
        ("t.arrow", "is an Arrow IPC file"),
        ("empty.parquet", "is empty"),
        ("cut.parquet", "was cut off"),
    ] {
        let output = marq(folder.path(), &["head", file]);
        let text = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(3), "{file}: {text}");
        assert!(text.contains(said), "{file}: {text}");
    }
    let output = marq(folder.path(), &["convert", "trips.parquet", "-o", "t.xlsx"]);
    let text = String::from_utf8_lossy(&output.stderr);
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
        let text = stdout(&marq(folder.path(), &[args, &["trips.parquet"]].concat()));
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }
    let stats = stdout(&marq(folder.path(), &["stats", "-f", "table", "trips.parquet"]));
    for path in ["lement.name", "element.lat", "element.lon"] {
        assert!(stats.contains(path), "{stats}");
    }
    let explain = stdout(&marq(
        folder.path(),
        &["explain", "-f", "table", "--where", "id > 300", "trips.parquet"],
    ));
    assert!(explain.contains("pruned by statistics") && explain.contains("rows left"), "{explain}");
}

#[test]
fn messages_name_flags_where_the_library_names_itself() {
    let folder = folder();
    stdout(&marq(
        folder.path(),
        &[
            "crypt",
            "encrypt",
            "trips.parquet",
            "-o",
            "secret.parquet",
            "--encrypt-footer-key",
            "@key.hex",
        ],
    ));
    for args in [
        &["head", "secret.parquet"][..],
        &["head", "trips.parquet", "--footer-key", "@key.hex"],
        &["head", "trips.parquet", "--mem", "1KiB"],
        &["head", "trips.parquet", "--limit-footer", "100"],
    ] {
        let output = marq(folder.path(), args);
        let text = String::from_utf8_lossy(&output.stderr);
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
    let sql = stdout(&marq(folder.path(), &["schema", "trips.parquet", "--as", "sql:clickhouse"]));
    assert!(sql.contains("Array(Tuple(`name` Nullable(String)"), "{sql}");
    assert!(sql.contains("Map(String, Nullable(String))"), "{sql}");
    std::fs::write(folder.path().join("v.jsonl"), "{\"v\": {\"a\": 1}}\n").expect("written");
    stdout(&marq(folder.path(), &["convert", "v.jsonl", "-o", "v.parquet", "--variant", "v"]));
    for (dialect, name) in
        [("duckdb", "VARIANT"), ("spark", "VARIANT"), ("bigquery", "JSON"), ("postgres", "jsonb")]
    {
        let form = format!("sql:{dialect}");
        let sql = stdout(&marq(folder.path(), &["schema", "v.parquet", "--as", &form]));
        assert!(sql.contains(name) && !sql.contains("STRUCT"), "{sql}");
    }
}

#[test]
fn the_mark_of_a_filter_stands_below_the_fault() {
    let folder = folder();
    for (filter, place) in
        [("fare => 3", "> 3"), ("vendor = '日本' nand fare > 1", "nand"), ("fare >\n= 2", "= 2")]
    {
        let output = marq(folder.path(), &["count", "trips.parquet", "--where", filter]);
        assert_eq!(output.status.code(), Some(2), "{filter}");
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        let lines: Vec<&str> = message.lines().collect();
        let [.., line, mark] = &lines[..] else { panic!("no mark: {message}") };
        let before = line.split(place).next().expect("a part");
        // Each of the two characters takes two columns.
        let width = before.chars().count() + 2 * usize::from(filter.contains('日'));
        assert_eq!(mark.chars().count(), width + 1, "{message}");
        assert!(mark.ends_with('^') && mark.trim() == "^", "{message}");
    }
    // Line breaks of names stay escaped.
    let output = marq(folder.path(), &["head", "a\nb.parquet"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("a\\nb.parquet"));
}
