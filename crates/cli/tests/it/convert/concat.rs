//! Tests of `marq concat` and `marq append`: files joined without decoding them.

use serde_json::json;

use crate::support::folder::{Folder, error};

const KEY: &str = "00112233445566778899aabbccddeeff";

fn trips() -> Folder {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    folder
}

fn count(folder: &Folder, args: &[&str]) -> String {
    let output = folder.run(&[&["count"], args].concat());
    assert!(output.status.success(), "{}", error(&output));
    String::from_utf8(output.stdout).expect("a number").trim().to_owned()
}

#[test]
fn files_are_joined_into_one_or_their_plan_is_shown() {
    let folder = trips();
    let args = ["concat", "trips.parquet", "trips.parquet", "-o", "all.parquet"];
    let plan = folder.run(&[&args[..], &["--dry-run", "-f", "json"]].concat());
    assert!(!folder.path("all.parquet").exists(), "a plan writes nothing");
    let plan: serde_json::Value = serde_json::from_slice(&plan.stdout).expect("JSON");
    assert_eq!(plan["schema"], json!("marq/1/concat"));
    assert_eq!((&plan["rows"], &plan["copied_by_page"]["bytes"]), (&json!(2000), &json!(0)));
    let output = folder.run(&args);
    assert!(output.status.success(), "{}", error(&output));
    assert_eq!(count(&folder, &["all.parquet"]), "2000");
    let columns = folder.run(&["concat", "trips.parquet", "-c", "id,fare", "-o", "two.parquet"]);
    assert!(columns.status.success(), "{}", error(&columns));
    let head = folder.run(&["head", "two.parquet", "-n", "1", "-f", "csv"]);
    assert!(head.stdout.starts_with(b"id,fare\n"), "{}", String::from_utf8_lossy(&head.stdout));
}

#[test]
fn a_file_becomes_longer_and_stays_as_it_was_where_that_fails() {
    let folder = trips();
    folder.copy("nested.parquet");
    let before = std::fs::read(folder.path("trips.parquet")).expect("a file");
    let refused = folder.run(&["append", "trips.parquet", "nested.parquet"]);
    assert_eq!(refused.status.code(), Some(2), "{}", error(&refused));
    assert_eq!(std::fs::read(folder.path("trips.parquet")).expect("a file"), before);
    for _ in 0..2 {
        let output = folder.run(&["append", "trips.parquet", "trips.parquet"]);
        assert!(output.status.success(), "{}", error(&output));
    }
    assert_eq!(count(&folder, &["trips.parquet"]), "4000");
    let missing = folder.run(&["append", "none.parquet", "trips.parquet"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(!folder.path("none.parquet").exists());
}

#[test]
fn the_output_is_no_input_and_must_be_said() {
    let folder = trips();
    let same = folder.run(&["concat", "trips.parquet", "-o", "trips.parquet"]);
    assert_eq!(same.status.code(), Some(2), "{}", error(&same));
    let none = folder.run(&["concat", "trips.parquet"]);
    assert_eq!(none.status.code(), Some(2));
    assert!(error(&none).contains("-o"), "{}", error(&none));
    let pair = folder.run(&["concat", "trips.parquet", "-o", "a.parquet", "--set-kv", "key"]);
    assert!(error(&pair).contains("KEY=VALUE"), "{}", error(&pair));
}

#[test]
fn what_was_encrypted_is_not_left_in_plain_text_unnoticed() {
    let folder = trips();
    let run = |args: &[&str]| folder.run(args);
    let sealed =
        run(&["concat", "trips.parquet", "-o", "sealed.parquet", "--encrypt-footer-key", KEY]);
    assert!(sealed.status.success(), "{}", error(&sealed));
    let keys = ["--footer-key", KEY, "--allow-plain"];
    let opened =
        run(&[&["concat", "sealed.parquet", "trips.parquet", "-o", "all.parquet"], &keys[..]]
            .concat());
    assert!(opened.status.success(), "{}", error(&opened));
    assert!(error(&opened).contains("encrypted"), "{}", error(&opened));
    assert_eq!(count(&folder, &["all.parquet"]), "2000");
    let refused = run(&[&["append", "sealed.parquet", "trips.parquet"], &keys[..]].concat());
    assert_eq!(refused.status.code(), Some(2), "{}", error(&refused));
    let again = ["--encrypt-footer-key", KEY];
    let longer = run(&[&["append", "sealed.parquet", "trips.parquet"], &keys[..], &again].concat());
    assert!(longer.status.success(), "{}", error(&longer));
    assert_eq!(count(&folder, &[&["sealed.parquet"], &keys[..]].concat()), "2000");
}

#[test]
fn what_a_file_holds_stays_where_it_is_when_it_becomes_longer() {
    let folder = trips();
    let before = std::fs::read(folder.path("trips.parquet")).expect("a file");
    let plan = folder.run(&["append", "trips.parquet", "trips.parquet", "--dry-run", "-f", "json"]);
    let plan: serde_json::Value = serde_json::from_slice(&plan.stdout).expect("JSON");
    let kept = plan["kept_bytes"].as_u64().and_then(|n| usize::try_from(n).ok()).expect("bytes");
    assert!(kept > before.len() / 2, "{kept} of {}", before.len());
    let output = folder.run(&["append", "trips.parquet", "trips.parquet"]);
    assert!(output.status.success(), "{}", error(&output));
    let after = std::fs::read(folder.path("trips.parquet")).expect("a file");
    assert_eq!(after[..kept], before[..kept]);
    let check = folder.run(&["check", "trips.parquet", "--level", "truth"]);
    assert!(check.status.success(), "{}", String::from_utf8_lossy(&check.stdout));
    assert_eq!(count(&folder, &["trips.parquet"]), "2000");
}

/// Kills the process at many points of its life, until it is done before that.
#[cfg(unix)]
#[test]
fn a_killed_process_leaves_the_old_file_or_the_new_one() {
    let folder = trips();
    for _ in 0..4 {
        folder.run(&["append", "trips.parquet", "trips.parquet"]);
    }
    let old = std::fs::read(folder.path("trips.parquet")).expect("a file");
    let seed = 7;
    println!("seed {seed}");
    let (mut killed, mut finished) = (0, 0);
    for point in 0..kills() {
        std::fs::write(folder.path("all.parquet"), &old).expect("a file");
        let mut child = folder.command(&["append", "all.parquet", "trips.parquet"]);
        let mut child = child.spawn().expect("marq");
        std::thread::sleep(std::time::Duration::from_micros(200 * (point % 200)));
        child.kill().expect("a signal");
        let status = child.wait().expect("an end");
        let rows = count(&folder, &["all.parquet"]);
        match rows.as_str() {
            "16000" => {
                killed += 1;
                let now = std::fs::read(folder.path("all.parquet")).expect("a file");
                assert!(now == old, "the old file is as it was");
            }
            "32000" => finished += 1,
            rows => panic!("{rows} rows after {status}"),
        }
    }
    println!("{killed} old, {finished} new");
    assert!(killed > 0, "no process was killed before its end");
    // What killed processes left is removed by the next one.
    folder.run(&["append", "all.parquet", "trips.parquet"]);
    let left = std::fs::read_dir(folder.path(".")).expect("a folder").count();
    assert_eq!(left, 2, "temporary files are left over");
}

/// How often a process is killed: MARQUETRY_KILLS times.
#[cfg(unix)]
fn kills() -> u64 {
    std::env::var("MARQUETRY_KILLS").map_or(60, |kills| kills.parse().expect("a number"))
}
