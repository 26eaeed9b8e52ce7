//! Tests of `marq rewrite` and `marq split`: what changes is encoded, the rest is copied.

use serde_json::{Value, json};

use crate::support::folder::{Folder, error};

const KEY: &str = "00112233445566778899aabbccddeeff";

fn trips() -> Folder {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    folder
}

fn done(folder: &Folder, args: &[&str]) -> Vec<u8> {
    let output = folder.run(args);
    assert!(output.status.success(), "{args:?}: {}", error(&output));
    output.stdout
}

fn json_of(folder: &Folder, args: &[&str]) -> Value {
    serde_json::from_slice(&done(folder, &[args, &["-f", "json"]].concat())).expect("JSON")
}

/// The rows as text.
fn rows(folder: &Folder, file: &str) -> String {
    String::from_utf8(done(folder, &["cat", file, "-f", "jsonl"])).expect("UTF-8")
}

fn is_true(folder: &Folder, file: &str) {
    done(folder, &["check", file, "--level", "truth"]);
}

#[test]
fn only_what_the_flags_change_is_encoded() {
    let folder = trips();
    for (flags, method, reason) in [
        (&["--codec", "zstd:9"][..], "compressed again", "another codec or level"),
        (&["--bloom", "id"], "encoded again", "another encoding, other pages"),
        (&["--encoding", "fare=BYTE_STREAM_SPLIT"], "encoded again", "another encoding"),
        (&["--page-rows", "100"], "encoded again", "another encoding, other pages"),
        (&["--row-group-rows", "300"], "encoded again", "row groups are made anew"),
        (&["--sort", "fare:desc,id"], "encoded again", "rows are sorted"),
        (&["-c", "id,fare"], "copied as it is", "nothing of it changes"),
    ] {
        let args = [&["rewrite", "trips.parquet", "-o", "new.parquet"], flags].concat();
        let plan = json_of(&folder, &[&args[..], &["--dry-run"]].concat());
        assert_eq!(plan["schema"], json!("marq/1/rewrite"));
        let reasons = plan["reasons"].as_array().expect("reasons");
        let has = reasons.iter().any(|of| {
            of["method"] == json!(method)
                && of["reason"].as_str().is_some_and(|text| text.starts_with(reason))
        });
        assert!(has, "{flags:?}: {reasons:?}");
        done(&folder, &args);
        is_true(&folder, "new.parquet");
        if !["--sort", "-c"].contains(&flags[0]) {
            assert_eq!(rows(&folder, "new.parquet"), rows(&folder, "trips.parquet"), "{flags:?}");
        }
    }
}

#[test]
fn a_file_is_replaced_by_the_new_one_and_keeps_its_permissions() {
    let folder = trips();
    let before = rows(&folder, "trips.parquet");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::Permissions::from_mode(0o640);
        std::fs::set_permissions(folder.path("trips.parquet"), mode).unwrap();
    }
    let args = ["rewrite", "trips.parquet", "--in-place", "--codec", "none", "--set-kv", "a=b"];
    done(&folder, &args);
    assert_eq!(rows(&folder, "trips.parquet"), before);
    assert_eq!(done(&folder, &["info", "trips.parquet", "--kv", "a"]), b"b\n");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(folder.path("trips.parquet")).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o640);
    }
    let same = folder.run(&["rewrite", "trips.parquet", "-o", "trips.parquet"]);
    assert_eq!(same.status.code(), Some(2));
    assert!(error(&same).contains("--in-place"), "{}", error(&same));
    let bytes = std::fs::read(folder.path("trips.parquet")).unwrap();
    let refused = folder.run(&["rewrite", "trips.parquet", "--in-place", "--encoding", "id=NONE"]);
    assert!(!refused.status.success());
    assert_eq!(std::fs::read(folder.path("trips.parquet")).unwrap(), bytes);
    assert_eq!(std::fs::read_dir(folder.path(".")).unwrap().count(), 1, "nothing is left over");
}

#[test]
fn an_encrypted_file_is_not_replaced_by_one_in_plain_text() {
    let folder = trips();
    done(&folder, &["rewrite", "trips.parquet", "--in-place", "--encrypt-footer-key", KEY]);
    let keys = ["--footer-key", KEY];
    let refused = folder.run(&[&["rewrite", "trips.parquet", "--in-place"], &keys[..]].concat());
    assert_eq!(refused.status.code(), Some(2), "{}", error(&refused));
    let again = ["rewrite", "trips.parquet", "--in-place", "--codec", "snappy"];
    done(&folder, &[&again[..], &keys, &["--encrypt-footer-key", KEY]].concat());
    assert_eq!(done(&folder, &[&["count", "trips.parquet"], &keys[..]].concat()), b"1000\n");
}

#[test]
fn row_groups_are_picked_and_dropped() {
    let folder = trips();
    let row_groups = |flags: &[&str]| {
        let args = [&["rewrite", "trips.parquet", "-o", "new.parquet", "--dry-run"], flags];
        json_of(&folder, &args.concat())["row_groups"].clone()
    };
    let all = row_groups(&[]).as_u64().expect("a number");
    assert!(all > 2, "{all}");
    assert_eq!(row_groups(&["--row-groups", "0,1-2"]), json!(3));
    assert_eq!(row_groups(&["--drop-row-groups", "0"]), json!(all - 1));
    let wrong =
        folder.run(&["rewrite", "trips.parquet", "-o", "new.parquet", "--row-groups", "99"]);
    assert_eq!(wrong.status.code(), Some(2));
    assert!(error(&wrong).contains("--row-groups 99"), "{}", error(&wrong));
    let shape = ["rewrite", "trips.parquet", "-o", "new.parquet", "--shred", "none"];
    assert_eq!(folder.run(&shape).status.code(), Some(2));
}

#[test]
fn a_file_becomes_parts_of_its_rows() {
    for (flags, parts) in [
        (&["--rows", "300"][..], Some(4)),
        (&["--files", "2"], Some(2)),
        (&["--files", "7"], Some(7)),
        (&["--bytes", "20KiB"], None),
        (&["--bytes", "3KiB"], None),
    ] {
        let folder = trips();
        let args = [&["split", "trips.parquet", "-o", "parts"], flags].concat();
        let plan = json_of(&folder, &[&args[..], &["--dry-run"]].concat());
        assert!(!folder.path("parts").exists(), "a plan writes nothing");
        done(&folder, &args);
        let mut names: Vec<_> = std::fs::read_dir(folder.path("parts")).unwrap().collect();
        names.sort_by_key(|name| name.as_ref().unwrap().path());
        let planned = plan["files"].as_array().expect("files");
        assert_eq!(names.len(), planned.len(), "{flags:?}");
        assert!(parts.is_none_or(|parts| parts == names.len()), "{flags:?}: {}", names.len());
        let mut all = String::new();
        for (name, planned) in names.iter().zip(planned) {
            let name = name.as_ref().unwrap().file_name().into_string().unwrap();
            let path = format!("parts/{name}");
            is_true(&folder, &path);
            let part = rows(&folder, &path);
            assert_eq!(planned["rows"], json!(part.lines().count()), "{flags:?}");
            all += &part;
        }
        assert_eq!(all, rows(&folder, "trips.parquet"), "{flags:?}");
        let again = folder.run(&args);
        assert_eq!(again.status.code(), Some(2), "no file is replaced");
    }
}

#[test]
fn a_file_becomes_a_folder_for_each_value() {
    let folder = trips();
    done(&folder, &["split", "trips.parquet", "-o", "by", "--by", "payment"]);
    assert_eq!(done(&folder, &["count", "by"]), b"1000\n");
    let again = folder.run(&["split", "trips.parquet", "-o", "by", "--by", "payment"]);
    assert_eq!(again.status.code(), Some(2), "no folder is added to");
    let both =
        folder.run(&["split", "trips.parquet", "-o", "by", "--by", "payment", "--rows", "3"]);
    assert_eq!(both.status.code(), Some(2));
    let none = folder.run(&["split", "trips.parquet", "-o", "by"]);
    assert_eq!(none.status.code(), Some(2));
}

/// Every size of a file that is too small for the new one.
#[cfg(unix)]
#[test]
fn a_full_disk_leaves_the_old_files() {
    use crate::support::folder::limited;
    let folder = trips();
    folder.put("data/a.parquet", std::fs::read(folder.path("trips.parquet")).unwrap());
    folder.put("data/b.parquet", std::fs::read(folder.path("trips.parquet")).unwrap());
    let old = std::fs::read(folder.path("trips.parquet")).unwrap();
    let blocks = old.len() / 512;
    for args in [
        &["rewrite", "trips.parquet", "-o", "new.parquet"][..],
        &["rewrite", "trips.parquet", "-o", "new.parquet", "--page-rows", "50"],
        &["rewrite", "trips.parquet", "--in-place", "--codec", "none"],
        &["append", "trips.parquet", "data/a.parquet"],
        &["compact", "data"],
    ] {
        for blocks in [0, 1, blocks / 2] {
            let script = format!("trap '' XFSZ; ulimit -f {blocks}");
            let output = limited(&script, &folder.command(args)).output().unwrap();
            assert!(!output.status.success(), "{args:?}, {blocks} blocks");
            assert_eq!(std::fs::read(folder.path("trips.parquet")).unwrap(), old, "{args:?}");
            assert!(!folder.path("new.parquet").exists(), "{args:?}");
            assert_eq!(std::fs::read_dir(folder.path("data")).unwrap().count(), 2, "{args:?}");
            assert_eq!(std::fs::read_dir(folder.path(".")).unwrap().count(), 2, "{args:?}");
        }
    }
}

#[test]
fn rewrite_fills_in_and_follows_recipes() {
    let folder = trips();
    let before = rows(&folder, "trips.parquet");
    let plain = ["convert", "trips.parquet", "-o", "plain.parquet"];
    done(&folder, &plain);
    done(&folder, &["rewrite", "plain.parquet", "-o", "filled.parquet", "--fill"]);
    std::fs::write(folder.path("new.toml"), "codec = \"gzip\"\n").unwrap();
    done(&folder, &["rewrite", "plain.parquet", "--in-place", "--recipe", "new.toml"]);
    for file in ["filled.parquet", "plain.parquet"] {
        is_true(&folder, file);
        assert_eq!(rows(&folder, file), before, "{file}");
    }
    let pages = json_of(&folder, &["pages", "plain.parquet", "--column", "fare"]).to_string();
    assert!(pages.contains("GZIP"), "{pages}");
    let both = ["rewrite", "plain.parquet", "-o", "x.parquet", "--fill", "--codec", "none"];
    let refused = folder.run(&both);
    assert_eq!(refused.status.code(), Some(2), "{}", error(&refused));
}

#[test]
fn field_ids_are_set_numbered_and_dropped() {
    let folder = trips();
    let ids = |file: &str| -> Vec<Option<i32>> {
        let reader = marquetry::Reader::open(folder.path(file)).expect("a file");
        let elements = reader.metadata().schema().elements().skip(1);
        elements.map(|element| element.field_id).collect()
    };
    let before = rows(&folder, "trips.parquet");
    let args = ["rewrite", "trips.parquet", "-o", "n.parquet", "--field-ids", "auto"];
    done(&folder, &[&args[..], &["--field-id", "id=100"]].concat());
    assert_eq!(ids("n.parquet")[0], Some(100));
    assert_eq!(ids("n.parquet")[1], Some(2));
    assert_eq!(rows(&folder, "n.parquet"), before);
    is_true(&folder, "n.parquet");
    let args = ["rewrite", "n.parquet", "-o", "o.parquet", "--field-id", "id=none"];
    done(&folder, &args);
    assert_eq!(ids("o.parquet")[..2], [None, Some(2)]);
    let args = ["rewrite", "n.parquet", "--in-place", "--field-ids", "none"];
    done(&folder, &args);
    assert!(ids("n.parquet").iter().all(Option::is_none));
    for wrong in [&["--field-id", "id"][..], &["--field-id", "id=x"], &["--field-id", "no=1"]] {
        folder.refused(2, &[&["rewrite", "n.parquet", "-o", "x.parquet"], wrong].concat());
    }
}
