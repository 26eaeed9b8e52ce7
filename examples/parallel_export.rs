//! Exports a file and generated rows in parallel, into files of some 50 kB: `cargo run --example
//! parallel_export -- FOLDER`.

use std::sync::Arc;

use marquetry::arrow_array::{Decimal128Array, Int64Array, RecordBatch};
use marquetry::arrow_schema::{ArrowError, SchemaRef};
use marquetry::{Export, Reader, WriteOptions};

type Stream = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// Rows with the columns `id` and `fare`.
fn generated(schema: &SchemaRef, from: i64, rows: i64) -> Result<RecordBatch, ArrowError> {
    let ids = Int64Array::from_iter_values(from..from + rows);
    let cents = (from..from + rows).map(|id| i128::from(id * id * 7919 % 10_007));
    let fares = Decimal128Array::from_iter_values(cents).with_precision_and_scale(9, 2)?;
    RecordBatch::try_new(schema.clone(), vec![Arc::new(ids), Arc::new(fares)])
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scratch = std::env::temp_dir().join(format!("marquetry-export-{}", std::process::id()));
    let folder = std::env::args_os().nth(1).map_or(scratch, Into::into);

    let trips = Reader::open("testdata/trips.parquet")?.project(["id", "fare"])?;
    let schema = trips.schema()?;
    let mut streams: Vec<Stream> = vec![Box::new(trips.batches()?)];
    for stream in 1..4 {
        let begin = stream * 1_000_000;
        let schema = schema.clone();
        let batch = move |i: i64| generated(&schema, begin + i * 10_000, 10_000);
        streams.push(Box::new((0..20).map(batch)));
    }

    let export = Export::to(&folder, schema)?
        .options(WriteOptions::new().with_row_group_rows(50_000))
        .file_bytes(50_000)
        .threads(2)
        .memory(64 << 20);
    let progress = export.progress();
    for file in export.run(streams)? {
        let (rows, bytes) = (file.report.rows, file.report.bytes);
        println!("{}: {rows} rows of stream {}, {bytes} bytes", file.path.display(), file.stream);
    }
    println!("{} rows in {} files", progress.rows(), progress.files());
    Ok(())
}
