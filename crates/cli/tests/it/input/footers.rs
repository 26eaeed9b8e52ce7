//! Tests that every command takes files whose footers have no `path_in_schema`, which arrow-rs
//! writes on request.

use crate::support::folder::Folder;

/// `with.parquet` and `without.parquet`, which differ in the footer alone.
fn files() -> Folder {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    let shape = ["--row-group-rows", "250", "--bloom", "payment"];
    let convert = ["convert", "trips.parquet", "-o"];
    folder.text(&[&convert[..], &["with.parquet"], &shape].concat());
    let omit = ["without.parquet", "--omit-path-in-schema"];
    folder.text(&[&convert[..], &omit, &shape].concat());
    let len = |name| folder.content_of(name).len();
    assert!(len("without.parquet") + 400 < len("with.parquet"), "the paths are there");
    folder
}

#[test]
fn rows_schemas_and_statistics_are_those_of_the_file_with_paths() {
    let folder = files();
    let commands: [&[&str]; 17] = [
        &["schema", "FILE"],
        &["schema", "FILE", "-f", "json"],
        &["head", "FILE", "-f", "csv"],
        &["tail", "FILE", "-f", "jsonl"],
        &["cat", "FILE", "-f", "csv"],
        &["cat", "FILE", "-f", "csv", "-c", "stops,fare"],
        &["cat", "FILE", "-f", "csv", "--where", "fare > 20 and payment = 'card'"],
        &["sample", "FILE", "-f", "csv", "--seed", "5"],
        &["count", "FILE"],
        &["count", "FILE", "--where", "id > 600"],
        &["stats", "FILE", "-f", "json"],
        &["pages", "FILE", "-c", "fare", "-f", "json"],
        &["dict", "FILE", "payment", "-f", "json"],
        &["bloom", "FILE", "payment", "card", "cash", "gold", "-f", "json"],
        &["convert", "FILE", "-o", "-", "--to", "arrows"],
        &["convert", "FILE", "-o", "-", "--to", "csv", "--rows", "200:300"],
        &["explain", "FILE", "--where", "id > 600", "-f", "json"],
    ];
    for command in commands {
        let of = |file: &str| {
            let words: Vec<_> =
                command.iter().map(|word| if *word == "FILE" { file } else { word }).collect();
            let output = folder.run(&words);
            assert!(output.status.success(), "{words:?}: {output:?}");
            String::from_utf8_lossy(&output.stdout).replace(file, "FILE")
        };
        assert_eq!(of("without.parquet"), of("with.parquet"), "{command:?}");
    }
}

#[test]
fn what_commands_write_of_them_is_true_and_has_their_rows() {
    let folder = files();
    let file = "without.parquet";
    let written: [(&str, &[&str]); 10] = [
        ("a.parquet", &["convert", file, "-o", "a.parquet", "--codec", "zstd:3"]),
        ("b.parquet", &["convert", file, "-o", "b.parquet", "--omit-path-in-schema"]),
        ("c.parquet", &["rewrite", file, "-o", "c.parquet", "-c", "id,fare"]),
        ("d.parquet", &["concat", file, "with.parquet", "-o", "d.parquet"]),
        ("e.parquet", &["salvage", file, "-o", "e.parquet"]),
        ("f.parquet", &["fill", file, "-o", "f.parquet", "--what", "all"]),
        ("g.parquet", &["optimize", file, "-o", "g.parquet", "-q"]),
        ("without.parquet", &["append", file, "with.parquet"]),
        ("parts", &["split", file, "-o", "parts", "--rows", "300"]),
        ("parts", &["compact", "parts"]),
    ];
    for (out, command) in written {
        folder.text(command);
        let checked = folder.run(&["check", "--level", "truth", out]);
        assert!(checked.status.success(), "{command:?}: {checked:?}");
    }
    let count = |file: &str| folder.text(&["count", file]).trim().to_owned();
    for whole in ["a.parquet", "b.parquet", "c.parquet", "e.parquet", "f.parquet", "g.parquet"] {
        assert_eq!(count(whole), "1000", "{whole}");
    }
    for (twice, rows) in [("d.parquet", "2000"), (file, "2000"), ("parts", "2000")] {
        assert_eq!(count(twice), rows, "{twice}");
    }
    for whole in ["a.parquet", "b.parquet", "e.parquet", "f.parquet", "g.parquet"] {
        folder.text(&["diff", "trips.parquet", whole, "--what", "data"]);
    }
}

#[test]
fn pictures_bytes_and_times_of_them_are_shown() {
    let folder = files();
    let file = "without.parquet";
    let commands: [&[&str]; 10] = [
        &["info", file],
        &["size", file],
        &["map", file],
        &["map", file, "-o", "map.svg"],
        &["report", file, "-o", "report.html"],
        &["hexdump", file],
        &["bench", file, "--rounds", "1", "-q"],
        &["crypt", "audit", file],
        &["doctor", file],
        &["readers", file],
    ];
    for command in commands {
        folder.text(command);
    }
}
