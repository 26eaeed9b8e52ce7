//! Exports a file and generated rows in parallel, into files of some 200 kB: `cargo run --example parallel_export -- FOLDER`.

use std::sync::Arc;

use marquetry::arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch};
use marquetry::arrow_schema::ArrowError;
use marquetry::{Export, Reader, WriteOptions};

type Stream = Box<dyn Iterator<Item = Result<RecordBatch, ArrowError>> + Send>;

/// Rows with the columns `id` and `fare`.
fn generated(from: i64, rows: i64) -> Result<RecordBatch, ArrowError> {
    let ids = Int64Array::from_iter_values(from..from + rows);
    let fares = (from..from + rows).map(|id| (id * 7919 % 10_007) as f64 / 100.0);
    let fares: ArrayRef = Arc::new(Float64Array::from_iter_values(fares));
    RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(ids) as ArrayRef, false),
        ("fare", fares, true),
    ])
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let scratch = std::env::temp_dir().join(format!("marquetry-export-{}", std::process::id()));
    let folder = std::env::args_os().nth(1).map_or(scratch, Into::into);

    // Whatever comes, the batches have the columns of the export.
    let schema = generated(0, 0)?.schema();
    let trips = Reader::open("testdata/trips.parquet")?
        .project(["id", "fare"])?
        .target(schema.clone(), marquetry::schema::MatchBy::Name)?;
    let mut streams: Vec<Stream> = vec![Box::new(trips.batches()?)];
    for stream in 1..4 {
        let begin = stream * 1_000_000;
        streams.push(Box::new((0..20).map(move |i| generated(begin + i * 10_000, 10_000))));
    }

    let export = Export::to(&folder, schema)?
        .options(WriteOptions::new().with_row_group_rows(50_000))
        .file_bytes(200_000)
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
