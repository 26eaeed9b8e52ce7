//! Tests full disks and killed processes: the file at the path is the old one or the new one,
//! whole.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use marquetry::{Reader, WriteOptions, Writer};

use crate::support::folder::{error, limited, marq};
use crate::support::numbered::{names, numbers, rows, write_file};

fn convert(from: &Path, to: &Path) -> Command {
    let mut command = marq(&["convert", "-o"]);
    command.arg(to).arg(from).stderr(Stdio::piped());
    command
}

/// A file that takes a while to convert.
fn source(path: &Path, from: i64, count: i64) {
    let options = WriteOptions::new().with_compression(marquetry::Compression::Uncompressed);
    let mut writer = Writer::create_with(path, rows(0, 1).schema(), options).unwrap();
    writer.write(&rows(from, count)).unwrap();
    writer.finish().unwrap();
}

#[test]
fn a_full_disk_leaves_the_old_file_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from.parquet");
    source(&from, 0, 40_000);
    let place = folder.path().join("place");
    fs::create_dir(&place).unwrap();
    let to = place.join("to.parquet");
    assert!(convert(&from, &to).output().unwrap().status.success());
    let whole = fs::metadata(&to).unwrap().len();
    fs::remove_file(&to).unwrap();
    // Blocks of 512 bytes, in some shells of 1024.
    let last = whole / 1024 - 1;
    for there in [false, true] {
        if there {
            write_file(&to, 0, 10).unwrap();
        }
        let old = fs::read(&to).ok();
        for blocks in [0, 1, 2, last / 2, last - 1, last] {
            let script = format!("trap '' XFSZ; ulimit -f {blocks}");
            let output = limited(&script, &convert(&from, &to)).output().unwrap();
            let told = error(&output);
            assert!(output.status.code().is_some_and(|code| code != 0), "{blocks}: {told}");
            assert!(told.contains("too large"), "{blocks}: {told}");
            assert_eq!(fs::read(&to).ok(), old, "{blocks}");
            let expected: &[&str] = if there { &["to.parquet"] } else { &[] };
            assert_eq!(names(&place), expected, "{blocks}");
        }
    }
    assert!(convert(&from, &to).output().unwrap().status.success());
    assert_eq!(Reader::open(&to).unwrap().rows().unwrap(), 40_000);
}

#[test]
fn a_process_that_is_killed_leaves_the_old_file_or_the_new() {
    let kills: usize =
        std::env::var("MARQUETRY_KILLS").map_or(20, |kills| kills.parse().expect("a number"));
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = fastrand::Rng::with_seed(seed);
    let folder = tempfile::tempdir().unwrap();
    let sources = [(0, 60_000), (1_000_000, 50_000)].map(|(from, count)| {
        let path = folder.path().join(format!("{from}.parquet"));
        source(&path, from, count);
        (path, from, count)
    });
    let place = folder.path().join("place");
    fs::create_dir(&place).unwrap();
    let to = place.join("to.parquet");
    let mut slowest = Duration::ZERO;
    for (path, ..) in &sources {
        let begun = Instant::now();
        assert!(convert(path, &to).output().unwrap().status.success());
        slowest = slowest.max(begun.elapsed());
    }
    // Which of the two is there.
    let mut now = 1;
    let (mut killed, mut replaced) = (0, 0);
    for kill in 0..kills {
        let (path, ..) = &sources[1 - now];
        let mut child = convert(path, &to).spawn().unwrap();
        std::thread::sleep(slowest.mul_f64(rng.f64() * 1.1));
        child.kill().unwrap();
        killed += usize::from(!child.wait().unwrap().success());
        let found = numbers(&Reader::open(&to).unwrap().threads(1)).unwrap();
        let which = sources
            .iter()
            .position(|&(_, from, count)| found == (from..from + count).collect::<Vec<_>>());
        let which = which.unwrap_or_else(|| panic!("kill {kill}: {} rows of neither", found.len()));
        replaced += usize::from(which != now);
        now = which;
    }
    println!("{kills} kills: {killed} in time, {replaced} new files");
    for (path, from, count) in &sources {
        assert!(convert(path, &to).output().unwrap().status.success());
        let found = numbers(&Reader::open(&to).unwrap()).unwrap();
        assert_eq!(found, (*from..from + count).collect::<Vec<_>>());
    }
    assert_eq!(names(&place), ["to.parquet"], "the next write clears what was left");
}
