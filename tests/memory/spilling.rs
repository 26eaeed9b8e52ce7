//! Tests that a writer of very many columns stays within its memory, although a row group has more
//! rows than that holds: they go to a temporary file.

use std::sync::Arc;
use std::time::Instant;

use marquetry::arrow_array::types::Int32Type;
use marquetry::arrow_array::{
    ArrayRef, DictionaryArray, Int32Array, Int64Array, RecordBatch, RunArray, StringArray,
};
use marquetry::arrow_schema::{DataType, Field, Schema, SchemaRef};
use marquetry::format::Encoding;
use marquetry::io::{PathSink, TempFolder, WriteSink};
use marquetry::{Compression, Reader, RowGroupEncoder, WriteOptions, Writer};

use crate::alone;
use crate::support::heap;

/// A table of numbers, which is made batch by batch.
struct Wide {
    columns: usize,
    rows: usize,
    batch_rows: usize,
}

impl Wide {
    fn schema(&self) -> SchemaRef {
        let field = |i: usize| Field::new(format!("c{i}"), DataType::Int64, false);
        Arc::new(Schema::new((0..self.columns).map(field).collect::<Vec<_>>()))
    }

    /// Numbers that rise, that stay the same for long, that are few, and that are many.
    fn value(row: usize, column: usize) -> i64 {
        let at = (row + column) as i64;
        match column % 8 {
            0 => at,
            1 => 1_600_000_000_000 + at * 1_000,
            2 => at / 1_000,
            3 => at % 12,
            4 => (at * at) % 7,
            5 => at / 50_000 + column as i64,
            6 => at % 100,
            _ => (row as i64).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64) >> 56,
        }
    }

    fn batch(&self, schema: &SchemaRef, first: usize) -> RecordBatch {
        let rows = first..self.rows.min(first + self.batch_rows);
        let column = |column: usize| -> ArrayRef {
            let values = rows.clone().map(|row| Self::value(row, column));
            Arc::new(Int64Array::from_iter_values(values))
        };
        let columns = (0..self.columns).map(column).collect();
        RecordBatch::try_new(schema.clone(), columns).expect("a batch")
    }

    /// Writes the table, says what that took, and returns the peak of the heap.
    fn write(&self, options: WriteOptions, threads: usize, path: &std::path::Path) -> usize {
        let (start, before) = (Instant::now(), heap::start());
        let schema = self.schema();
        let encoder = RowGroupEncoder::new(schema.clone(), options).expect("a schema");
        let encoder = encoder.with_threads(threads).expect("threads");
        let mut writer = Writer::over(PathSink::create(path).expect("a file"), encoder);
        for first in (0..self.rows).step_by(self.batch_rows) {
            writer.write(&self.batch(&schema, first)).expect("rows");
        }
        let rows_at = heap::peak() - before;
        let report = writer.finish().expect("a file");
        let peak = heap::peak() - before;
        println!(
            "{} columns, {} rows, {threads} threads: {} row groups, {} bytes, {:.1} s, \
             peak {rows_at} before the end, {peak} with it",
            self.columns,
            report.rows,
            report.row_groups(),
            report.bytes,
            start.elapsed().as_secs_f64(),
        );
        peak
    }

    /// Reads some columns back.
    fn check(&self, path: &std::path::Path) {
        for column in [0, 1, self.columns / 2, self.columns - 1] {
            let reader = Reader::open(path).expect("a file");
            let reader = reader.project([format!("c{column}")]).expect("a column");
            let mut row = 0;
            for batch in reader.batches().expect("rows") {
                let batch = batch.expect("a batch");
                let found = batch.column(0).as_any().downcast_ref::<Int64Array>().expect("numbers");
                for value in found.values() {
                    assert_eq!(*value, Self::value(row, column), "row {row} of c{column}");
                    row += 1;
                }
            }
            assert_eq!(row, self.rows);
        }
    }
}

fn options(memory: usize, folder: &std::path::Path) -> WriteOptions {
    WriteOptions::new()
        .with_memory(memory as u64)
        .with_row_group_bytes(u64::MAX / 4)
        .with_spill(TempFolder::new(folder))
}

#[test]
fn a_row_group_of_1600_columns_has_more_rows_than_the_memory_of_its_writer() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("wide.parquet");
    let (wide, memory) = (Wide { columns: 1_600, rows: 20_000, batch_rows: 500 }, 64 << 20);
    for threads in [1, 2] {
        let peak = wide.write(options(memory, folder.path()), threads, &path);
        assert!(peak <= memory, "{threads} threads: {peak} bytes, beyond {memory}");
        let row_groups = Reader::open(&path).expect("a file").metadata().row_groups();
        assert_eq!(row_groups, 1, "256 MB of rows");
        wide.check(&path);
    }
}

/// `MARQUETRY_WIDE_ROWS`, `MARQUETRY_WIDE_SPILL=0` and `MARQUETRY_WIDE_FOLDER` change it.
#[test]
#[ignore = "80 GB of rows: some minutes, and 20 GB of disk"]
fn ten_thousand_columns_of_a_million_rows_are_written_within_256_mib() {
    let _alone = alone();
    let of = |name: &str| std::env::var(name).ok();
    let folder = tempfile::tempdir_in(
        of("MARQUETRY_WIDE_FOLDER").unwrap_or_else(|| std::env::temp_dir().display().to_string()),
    );
    let folder = folder.expect("a folder");
    let path = folder.path().join("wide.parquet");
    let rows = of("MARQUETRY_WIDE_ROWS").and_then(|rows| rows.parse().ok()).unwrap_or(1_000_000);
    let wide = Wide { columns: 10_000, rows, batch_rows: 500 };
    let memory = 256 << 20;
    let spills = of("MARQUETRY_WIDE_SPILL").as_deref() != Some("0");
    let options = match spills {
        true => options(memory, folder.path()),
        false => WriteOptions::new().with_memory(memory as u64),
    };
    let peak = wide.write(options, 2, &path);
    wide.check(&path);
    if let Some(kept) = of("MARQUETRY_WIDE_KEPT") {
        std::fs::rename(&path, kept).expect("the same file system");
    }
    assert!(!spills || peak <= memory, "{peak} bytes, beyond {memory}");
}

/// Rows that share 50 texts of 20 KB, as a dictionary or in runs. One by one they take 120 MB.
fn rows_of_long_texts(in_runs: bool) -> RecordBatch {
    let texts = (0..50).map(|i| format!("{i:05}").repeat(4_000));
    let texts = StringArray::from_iter_values(texts);
    let column: ArrayRef = match in_runs {
        true => {
            let ends = Int32Array::from_iter_values((1..=50).map(|run| run * 120));
            Arc::new(RunArray::<Int32Type>::try_new(&ends, &texts).expect("runs"))
        }
        false => {
            let keys = Int32Array::from_iter_values((0..6_000).map(|i| i % 50));
            Arc::new(DictionaryArray::new(keys, Arc::new(texts)))
        }
    };
    RecordBatch::try_from_iter([("text", column)]).expect("a batch")
}

/// Writes the batch; returns the peak of the heap and the row groups.
fn peak_of(batch: &RecordBatch, options: WriteOptions) -> (usize, usize) {
    let before = heap::start();
    let mut writer =
        Writer::new(WriteSink(std::io::sink()), batch.schema(), options).expect("a writer");
    writer.write(batch).expect("rows");
    let report = writer.finish().expect("a file");
    assert_eq!(report.rows, 6_000);
    let peak = heap::peak() - before;
    println!("{} MiB, {} row groups, {} bytes", peak >> 20, report.row_groups(), report.bytes);
    (peak, report.row_groups())
}

#[test]
fn long_values_that_rows_share_spill_as_keys() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    for in_runs in [false, true] {
        let batch = rows_of_long_texts(in_runs);
        let (peak, row_groups) = peak_of(&batch, options(4 << 20, folder.path()));
        assert!(peak <= 16 << 20, "{peak} bytes, in runs: {in_runs}");
        assert_eq!(row_groups, 1, "in runs: {in_runs}");
    }
}

#[test]
fn long_values_that_rows_share_are_counted_where_there_is_no_dictionary() {
    let _alone = alone();
    let folder = tempfile::tempdir().expect("a folder");
    let plain = |options: WriteOptions| {
        let options = options.with_compression(Compression::Uncompressed);
        options.with_column("text", |text| text.with_encoding(Encoding::Plain))
    };
    for in_runs in [false, true] {
        let batch = rows_of_long_texts(in_runs);
        let memory = WriteOptions::new().with_memory(16 << 20);
        for options in [plain(memory), plain(options(16 << 20, folder.path()))] {
            let (peak, row_groups) = peak_of(&batch, options);
            assert!(peak <= 32 << 20, "{peak} bytes, in runs: {in_runs}");
            assert!(row_groups >= 20, "{row_groups} row groups, in runs: {in_runs}");
        }
        let small = plain(WriteOptions::new().with_row_group_bytes(2 << 20));
        let (_, row_groups) = peak_of(&batch, small);
        assert!(row_groups >= 25, "{row_groups} row groups, in runs: {in_runs}");
    }
}
