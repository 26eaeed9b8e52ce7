//! CPU seconds of our handler beside the kernel's, in turns.
//!
//! `cargo test --profile quick -- --ignored --nocapture timing`

use std::sync::Arc;
use std::time::Duration;

use arrow_array::{
    ArrayRef, Date32Array, Decimal128Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    StringArray, TimestampMicrosecondArray,
};
use delta_kernel::engine::arrow_conversion::TryFromArrow;
use delta_kernel::schema::StructType;
use delta_kernel::{Engine, FileMeta, Snapshot};

use crate::support::*;

fn cpu() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).expect("after the start");
    Duration::new(seconds, u32::try_from(time.tv_nsec).expect("less than a second"))
}

/// Median ratio of the CPU of the first to that of the second, over rounds in turns.
fn ratio(name: &str, mut ours: impl FnMut() -> usize, mut theirs: impl FnMut() -> usize) {
    let timed = |work: &mut dyn FnMut() -> usize| {
        let (wall, start) = (std::time::Instant::now(), cpu());
        let rows = work();
        ((cpu() - start).as_secs_f64(), wall.elapsed().as_secs_f64(), rows)
    };
    // The first round is not counted.
    let mut rounds = Vec::new();
    for round in 0..8 {
        let mine = timed(&mut ours);
        let other = timed(&mut theirs);
        assert_eq!(mine.2, other.2, "rows");
        if round > 0 {
            rounds.push((mine, other));
        }
    }
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        (values[values.len() / 2], values[0], values[values.len() - 1])
    };
    let cpu = median(rounds.iter().map(|(mine, other)| other.0 / mine.0).collect());
    let wall = median(rounds.iter().map(|(mine, other)| other.1 / mine.1).collect());
    let mine = median(rounds.iter().map(|(mine, _)| mine.0).collect()).0;
    println!(
        "{name}: {:.2} x in CPU (from {:.2} to {:.2}), {:.2} x in time; ours {:.1} ms of CPU, {} rows",
        cpu.0,
        cpu.1,
        cpu.2,
        wall.0,
        mine * 1_000.0,
        rounds[0].0.2
    );
}

fn data(rows: i64) -> RecordBatch {
    let range = || 0..rows;
    let text = StringArray::from_iter_values(range().map(|row| format!("name {}", row % 5_000)));
    let unique = StringArray::from_iter_values(range().map(|row| format!("{:016x}", row * 7_919)));
    let decimal = Decimal128Array::from_iter_values(range().map(|row| i128::from(row) * 31));
    let micros = TimestampMicrosecondArray::from_iter_values(range().map(|row| row * 1_000_003));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from_iter_values(range()))),
        (
            "k",
            Arc::new(Int32Array::from_iter(
                range().map(|row| (row % 9 > 0).then_some((row % 1_000) as i32)),
            )),
        ),
        ("f", Arc::new(Float64Array::from_iter_values(range().map(|row| row as f64 * 0.25)))),
        ("text", Arc::new(text)),
        ("unique", Arc::new(unique)),
        ("day", Arc::new(Date32Array::from_iter_values(range().map(|row| (row % 3_000) as i32)))),
        ("ts", Arc::new(micros.with_timezone("UTC"))),
        ("d", Arc::new(decimal.with_precision_and_scale(18, 2).expect("a decimal"))),
    ];
    RecordBatch::try_from_iter(columns).expect("a batch")
}

fn rows_of(engine: &Arc<dyn Engine>, files: &[FileMeta], wanted: &Arc<StructType>) -> usize {
    let handler = engine.parquet_handler();
    let batches = handler.read_parquet_files(files, Arc::clone(wanted), None).expect("a read");
    batches.map(|data| data.expect("a batch").len()).sum()
}

#[test]
#[ignore = "a measurement beside the handler of the kernel, of an optimised build"]
fn timing_of_data_files() {
    let (ours, default) = (our_engine(), default_engine());
    let folder = tempfile::tempdir().expect("a folder");
    let batch = data(2_000_000);
    let wanted = StructType::try_from_arrow(batch.schema().as_ref()).expect("a schema");
    let wanted = Arc::new(wanted);
    for (name, engine) in [("ours", &ours), ("the kernel's", &default)] {
        let path = folder.path().join(format!("{name}.parquet"));
        let written =
            engine.parquet_handler().write_parquet_file(url_of(&path), as_data([batch.clone()]));
        println!("{name} writes {} bytes", written.expect("written"));
        let files = [meta_of(&path)];
        let read = |engine| rows_of(engine, &files, &wanted);
        ratio(&format!("2 M rows of a file that {name} wrote"), || read(&ours), || read(&default));
    }
    let write = |engine: &Arc<dyn Engine>| {
        let path = folder.path().join("written.parquet");
        let rows = as_data([batch.clone()]);
        engine.parquet_handler().write_parquet_file(url_of(&path), rows).expect("written");
        batch.num_rows()
    };
    ratio("writing them", || write(&ours), || write(&default));
}

/// Of the tables in `MARQUETRY_DELTA_TABLES`, those that are named here.
#[test]
#[ignore = "MARQUETRY_DELTA_TABLES names a folder of tables, which are not part of the repository"]
fn timing_of_checkpoints() {
    let folder = std::env::var("MARQUETRY_DELTA_TABLES").expect("a folder of tables");
    let (ours, default) = (our_engine(), default_engine());
    let names = ["300k-add-files-100-col-partitioned", "v2-parquet-sidecars-struct-stats-only"];
    for name in names {
        let table = std::path::Path::new(&folder).join(name);
        if !table.is_dir() {
            println!("{name}: there is no such table");
            continue;
        }
        let inner = table.join("delta");
        let root = if inner.is_dir() { inner } else { table };
        let url = url::Url::from_directory_path(&root).expect("a path");
        let files = |engine: &Arc<dyn Engine>| {
            let snapshot = Snapshot::builder_for(url.as_str()).build(engine.as_ref());
            let scan = snapshot.expect("a snapshot").scan_builder().build().expect("a scan");
            let metadata = scan.scan_metadata(engine.as_ref()).expect("metadata");
            metadata
                .map(|part| {
                    let files = part.expect("a part").visit_scan_files(0, |n, _| *n += 1);
                    files.expect("files")
                })
                .sum::<usize>()
        };
        ratio(&format!("the files of {name}"), || files(&ours), || files(&default));
        let checkpoints: Vec<_> = std::fs::read_dir(root.join("_delta_log"))
            .expect("a log")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "parquet"))
            .map(|path| meta_of(&path))
            .collect();
        let Some(first) = checkpoints.first() else { continue };
        let footer = default.parquet_handler().read_parquet_footer(first).expect("a footer");
        let read = |engine| rows_of(engine, &checkpoints, &footer.schema);
        ratio(
            &format!("all columns of the checkpoint of {name}"),
            || read(&ours),
            || read(&default),
        );
    }
}

/// A checkpoint of each engine, of the first table that is named above.
#[test]
#[ignore = "MARQUETRY_DELTA_TABLES names a folder of tables, which are not part of the repository"]
fn timing_of_large_checkpoints() {
    let folder = std::env::var("MARQUETRY_DELTA_TABLES").expect("a folder of tables");
    let log = std::path::Path::new(&folder).join("300k-add-files-100-col-partitioned/_delta_log");
    let (ours, default) = (our_engine(), default_engine());
    for (name, writer) in [("ours", our_engine()), ("the kernel's", writing_engine())] {
        let copy = tempfile::tempdir().expect("a folder");
        let to = copy.path().join("_delta_log");
        std::fs::create_dir(&to).expect("a folder");
        for entry in std::fs::read_dir(&log).expect("a log") {
            let entry = entry.expect("an entry");
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("copied");
        }
        let url = url::Url::from_directory_path(copy.path()).expect("a path");
        let snapshot = Snapshot::builder_for(url).build(writer.as_ref()).expect("a snapshot");
        snapshot.checkpoint(writer.as_ref(), None).expect("a checkpoint");
        let files: Vec<_> = std::fs::read_dir(&to)
            .expect("a log")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "parquet"))
            .map(|path| meta_of(&path))
            .collect();
        println!("{name} writes {} bytes", files.iter().map(|file| file.size).sum::<u64>());
        let footer = default.parquet_handler().read_parquet_footer(&files[0]).expect("a footer");
        let read = |engine| rows_of(engine, &files, &footer.schema);
        ratio(&format!("a checkpoint that {name} wrote"), || read(&ours), || read(&default));
    }
}
