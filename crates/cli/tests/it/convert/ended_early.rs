//! Tests folders of files whose writing is ended early, by a signal, a kill or a full disk: there
//! are all files, or none.

use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::{ArrayRef, Int64Array};

use crate::support::folder::{Folder, error, limited};

/// A file of as many rows, with a column `key` of as many values.
fn with_keys(rows: i64, keys: i64) -> Folder {
    let folder = Folder::new();
    let keys: ArrayRef = Arc::new(Int64Array::from_iter_values((0..rows).map(|row| row % keys)));
    // Texts that no encoding makes small.
    let text = (0..rows).map(|row| Some(format!("{:x}", row.wrapping_mul(0x1E37_79B9_7F4A_7C15))));
    let text: ArrayRef = Arc::new(arrow_array::StringArray::from_iter(text));
    folder.columns("in.parquet", vec![("key", keys), ("text", text)]);
    folder
}

const CONVERT: &[&str] = &["convert", "in.parquet", "-o", "out", "--partition-by", "key"];
const BY: &[&str] = &["split", "in.parquet", "-o", "out", "--by", "key"];
const PARTS: &[&str] = &["split", "in.parquet", "-o", "out", "--files", "120"];

/// Files below a folder, those in folders within it among them.
fn files(folder: &std::path::Path) -> usize {
    let Ok(entries) = std::fs::read_dir(folder) else { return 0 };
    let of = |path: std::path::PathBuf| if path.is_dir() { files(&path) } else { 1 };
    entries.flatten().map(|entry| of(entry.path())).sum()
}

fn started(folder: &Folder, args: &[&str]) -> Child {
    let mut command = folder.command(args);
    command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("marq runs")
}

/// A run that has written the first of its files; `None` if it was at its end by then.
fn begun(folder: &Folder, args: &[&str]) -> Option<Child> {
    let mut child = started(folder, args);
    let begun = Instant::now();
    while files(&folder.path("")) < 4 {
        assert!(begun.elapsed() < Duration::from_secs(60), "no file appears");
        if child.try_wait().expect("a state").is_some() {
            return None;
        }
        std::thread::yield_now();
    }
    Some(child)
}

/// Whether this process, and so its children, ignores a signal.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or("0");
    u64::from_str_radix(mask.trim(), 16).unwrap_or(0) >> (signal - 1) & 1 != 0
}

#[test]
fn a_signal_leaves_no_file() {
    let folder = with_keys(2_400, 400);
    for args in [CONVERT, BY, PARTS] {
        for (signal, number) in [("-INT", 2), ("-TERM", 15)] {
            if is_ignored(number) {
                continue;
            }
            let ended = (0..20).any(|_| {
                let Some(child) = begun(&folder, args) else {
                    std::fs::remove_dir_all(folder.path("out")).expect("a folder");
                    return false;
                };
                let id = child.id().to_string();
                let sent = Command::new("kill").args([signal, &id]).status().expect("kill runs");
                let output = child.wait_with_output().expect("an end");
                let code = output.status.code();
                assert!(
                    [Some(0), Some(128 + number)].contains(&code),
                    "{args:?}, {signal}: {code:?}"
                );
                let left = files(&folder.path("out"));
                // The signal may come when all is done.
                let is_whole = left > 0 && folder.text(&["count", "out"]).trim() == "2400";
                assert!(left == 0 || is_whole, "{args:?}, {signal}: {left} files");
                assert_eq!(files(&folder.path("")), 1 + left, "{args:?}, {signal}");
                let _ = std::fs::remove_dir_all(folder.path("out"));
                sent.success() && left == 0
            });
            assert!(ended, "{args:?}, {signal}: each run was at its end before the signal");
        }
    }
}

/// Kills the process at many points of its life.
#[test]
fn a_kill_leaves_whole_files_or_none() {
    let kills: u32 =
        std::env::var("MARQUETRY_KILLS").map_or(12, |kills| kills.parse().expect("a number"));
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let folder = with_keys(600, 100);
    for args in [CONVERT, BY] {
        let begun = Instant::now();
        folder.text(args);
        let slowest = begun.elapsed();
        let whole = files(&folder.path("out"));
        let (mut killed, mut left) = (0, 0);
        for _ in 0..kills {
            std::fs::remove_dir_all(folder.path("out")).unwrap_or_default();
            let mut child = started(&folder, args);
            std::thread::sleep(slowest.mul_f64(rng.f64() * 1.05));
            child.kill().expect("a signal");
            killed += u32::from(!child.wait().expect("an end").success());
            left += u32::from(folder.names("").iter().any(|name| name.contains(".marq-")));
            if folder.path("out").exists() {
                assert_eq!(files(&folder.path("out")), whole, "{args:?}");
                assert_eq!(folder.text(&["count", "out"]).trim(), "600", "{args:?}");
            }
        }
        println!("{args:?}: {kills} kills, {killed} in time, {left} with files that are left");
        // What killed processes have left is removed by the next one.
        std::fs::remove_dir_all(folder.path("out")).unwrap_or_default();
        folder.text(args);
        assert_eq!(folder.names(""), ["in.parquet", "out"], "{args:?}");
        std::fs::remove_dir_all(folder.path("out")).expect("a folder");
    }
}

/// Parts by number are files of their own: of those that are there, each is whole.
#[test]
fn a_kill_leaves_no_half_part() {
    let folder = with_keys(1_200, 10);
    let mut killed = 0;
    for _ in 0..8 {
        let Some(mut child) = begun(&folder, PARTS) else {
            std::fs::remove_dir_all(folder.path("out")).expect("a folder");
            continue;
        };
        child.kill().expect("a signal");
        killed += u32::from(!child.wait().expect("an end").success());
        for name in folder.names("out").iter().filter(|name| name.ends_with(".parquet")) {
            let reader = marquetry::Reader::open(folder.path("out").join(name));
            assert_eq!(reader.and_then(|reader| reader.rows()).expect("a part"), 10, "{name}");
        }
        std::fs::remove_dir_all(folder.path("out")).expect("a folder");
    }
    assert!(killed > 0, "each run was at its end before the kill");
}

#[test]
fn a_full_disk_leaves_no_file() {
    let folder = with_keys(60_000, 3);
    for args in [CONVERT, BY, &["split", "in.parquet", "-o", "out", "--rows", "20000"]] {
        folder.text(args);
        std::fs::remove_dir_all(folder.path("out")).expect("a folder");
        // Blocks of 512 bytes, in some shells of 1024.
        for blocks in [0, 1, 8] {
            let script = format!("trap '' XFSZ; ulimit -f {blocks}");
            let output = limited(&script, &folder.command(args)).output().expect("marq runs");
            let told = error(&output);
            assert_eq!(output.status.code(), Some(1), "{args:?}, {blocks}: {told}");
            assert!(told.contains("too large"), "{args:?}, {blocks}: {told}");
            assert_eq!(files(&folder.path("")), 1, "{args:?}, {blocks}");
        }
    }
}
