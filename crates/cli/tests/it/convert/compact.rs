//! Tests of `marq compact`: the small files of a folder become few, and no reader sees a row twice
//! or not at all.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use marquetry::{Reader, SortColumn, WriteOptions, Writer};
use serde_json::json;

use crate::support::folder::{Folder, error};

/// A file of the numbers from one to another, which says that they are sorted.
fn put_numbers(folder: &Folder, name: &str, numbers: std::ops::Range<i64>) {
    folder.put(name, "");
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(numbers));
    let batch = RecordBatch::try_from_iter([("id", numbers)]).expect("a batch");
    let options =
        WriteOptions::new().with_row_group_rows(50).with_sort_order([SortColumn::ascending("id")]);
    let mut writer =
        Writer::create_with(folder.path(name), batch.schema(), options).expect("a writer");
    writer.write(&batch).expect("rows");
    writer.finish().expect("a file");
}

fn files(folder: &Folder, within: &str) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder.path(within))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    names
}

fn ids(path: PathBuf) -> Vec<i64> {
    let batches = Reader::open(path).expect("a file").batches().expect("batches");
    let ids = batches.flat_map(|batch| {
        let batch = batch.expect("rows");
        batch.column(0).as_any().downcast_ref::<Int64Array>().expect("numbers").values().to_vec()
    });
    ids.collect()
}

fn sorting(path: PathBuf) -> bool {
    let metadata = Reader::open(path).expect("a file").metadata().index().to_file_meta_data();
    metadata.expect("a footer").row_groups.iter().all(|of| of.sorting_columns.is_some())
}

#[test]
fn files_are_joined_in_their_folders_up_to_a_size() {
    let folder = Folder::new();
    for year in [2024, 2025] {
        for part in 0..4 {
            folder.copy("trips.parquet");
            let to = folder.path(format!("data/year={year}/{part}.parquet"));
            std::fs::create_dir_all(to.parent().expect("a folder")).expect("a folder");
            std::fs::rename(folder.path("trips.parquet"), to).expect("a file");
        }
    }
    folder.put("data/year=2024/README.md", "about it");
    folder.put("data/_started", "");
    let size = std::fs::metadata(folder.path("data/year=2024/0.parquet")).expect("a file").len();
    let plan = folder.json(&["compact", "data", "--dry-run", "-f", "json"]);
    assert_eq!(plan["schema"], json!("marq/1/compact"));
    assert_eq!((&plan["files_joined"], &plan["files_made"]), (&json!(8), &json!(2)));
    assert_eq!(folder.text(&["count", "data"]), "8000\n");
    let half = (size * 5 / 2).to_string();
    folder.text(&["compact", "data", "--file-size", &half]);
    assert_eq!(files(&folder, "data"), ["_started", "year=2024", "year=2025"]);
    assert_eq!(files(&folder, "data/year=2024").len(), 3, "two files, and what is none");
    assert_eq!(folder.text(&["count", "data"]), "8000\n");
    folder.text(&["compact", "data"]);
    assert_eq!(files(&folder, "data/year=2025").len(), 1);
    assert_eq!(folder.text(&["count", "data"]), "8000\n");
    folder.text(&["check", "data", "--level", "truth"]);
    assert_eq!(files(&folder, "."), ["data"], "nothing is left beside the folder");
    assert_eq!(
        std::fs::read(folder.path("data/year=2024/README.md")).expect("a file"),
        b"about it"
    );
    // Nothing is left to do.
    let before = files(&folder, "data/year=2025");
    folder.text(&["compact", "data"]);
    assert_eq!(files(&folder, "data/year=2025"), before);
}

#[test]
fn sorted_files_are_joined_by_their_keys_or_no_longer_said_to_be_sorted() {
    let folder = Folder::new();
    put_numbers(&folder, "apart/a.parquet", 200..300);
    put_numbers(&folder, "apart/b.parquet", 0..100);
    put_numbers(&folder, "apart/c.parquet", 100..200);
    folder.text(&["compact", "apart"]);
    let name = folder.path("apart").join(&files(&folder, "apart")[0]);
    assert_eq!(ids(name.clone()), (0..300).collect::<Vec<_>>());
    assert!(sorting(name));
    put_numbers(&folder, "overlap/a.parquet", 0..100);
    put_numbers(&folder, "overlap/b.parquet", 70..90);
    let output = folder.run(&["compact", "overlap"]);
    assert!(output.status.success() && error(&output).contains("overlap"), "{}", error(&output));
    let name = folder.path("overlap").join(&files(&folder, "overlap")[0]);
    assert_eq!(ids(name.clone()).len(), 120);
    assert!(!sorting(name));
    put_numbers(&folder, "merged/a.parquet", 0..300);
    put_numbers(&folder, "merged/b.parquet", 70..90);
    put_numbers(&folder, "merged/c.parquet", 250..400);
    folder.text(&["compact", "merged", "--merge"]);
    let name = folder.path("merged").join(&files(&folder, "merged")[0]);
    let mut wanted: Vec<i64> = (0..300).chain(70..90).chain(250..400).collect();
    wanted.sort_unstable();
    assert_eq!(ids(name.clone()), wanted);
    assert!(sorting(name));
}

#[test]
fn folders_of_tables_and_other_schemas_are_not_joined() {
    let folder = Folder::new();
    put_numbers(&folder, "data/a.parquet", 0..10);
    folder.copy("nested.parquet");
    std::fs::rename(folder.path("nested.parquet"), folder.path("data/b.parquet")).expect("a file");
    folder.text(&["compact", "data"]);
    assert_eq!(files(&folder, "data"), ["a.parquet", "b.parquet"]);
    folder.put("data/_delta_log/0.json", "{}");
    let refused = folder.run(&["compact", "data"]);
    assert_eq!(refused.status.code(), Some(2), "{}", error(&refused));
    assert!(error(&refused).contains("_delta_log"), "{}", error(&refused));
}

/// Kills the process at many points of its life.
#[cfg(unix)]
#[test]
fn a_killed_process_neither_loses_rows_nor_doubles_them() {
    let kills: u64 =
        std::env::var("MARQUETRY_KILLS").map_or(40, |kills| kills.parse().expect("a number"));
    let (mut before, mut after) = (0, 0);
    for point in 0..kills {
        let folder = Folder::new();
        for part in 0..12 {
            put_numbers(
                &folder,
                &format!("data/p=1/{part:02}.parquet"),
                part * 100..part * 100 + 100,
            );
        }
        let mut child = folder.command(&["compact", "data"]).spawn().expect("marq");
        std::thread::sleep(std::time::Duration::from_micros(400 * (point % 150)));
        child.kill().expect("a signal");
        child.wait().expect("an end");
        assert_eq!(folder.text(&["count", "data"]), "1200\n", "point {point}");
        match files(&folder, "data/p=1").len() {
            1 => after += 1,
            _ => before += 1,
        }
        // The next run does it, or says what was left.
        let again = folder.run(&["compact", "data"]);
        let said = error(&again);
        assert!(again.status.success() || said.contains("the old folder"), "{said}");
        assert_eq!(folder.text(&["count", "data"]), "1200\n", "point {point}");
    }
    println!("{before} before, {after} after");
    assert!(before > 0);
}

/// A reader that lists the folder again and again finds all rows, or an error.
#[test]
#[cfg(target_os = "linux")]
fn readers_see_the_old_files_or_the_new_one() {
    use std::sync::atomic::{AtomicBool, Ordering};
    let folder = Folder::new();
    let done = AtomicBool::new(false);
    let rows = || -> Option<u64> {
        let paths = std::fs::read_dir(folder.path("data")).ok()?;
        let mut rows = 0;
        for path in paths {
            let path = path.ok()?.path();
            if path.extension().is_some_and(|ending| ending == "parquet") {
                rows += Reader::open(path).ok()?.rows().ok()?;
            }
        }
        Some(rows)
    };
    for part in 0..10 {
        put_numbers(&folder, &format!("data/{part}.parquet"), part * 10..part * 10 + 10);
    }
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let mut seen = 0;
            while !done.load(Ordering::Relaxed) {
                if let Some(rows) = rows() {
                    assert_eq!(rows, 100);
                    seen += 1;
                }
            }
            seen
        });
        let size = std::fs::metadata(folder.path("data/0.parquet")).expect("a file").len();
        for size in [size * 5 / 2, size * 4, size * 100] {
            folder.text(&["compact", "data", "--file-size", &size.to_string()]);
        }
        done.store(true, Ordering::Relaxed);
        assert!(watch.join().expect("all rows, always") > 0);
    });
}
