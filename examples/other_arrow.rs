//! Hands batches to a crate that is built with another version of Arrow, here 60, and takes them
//! back, through the C Stream interface: nothing is copied. `cargo run --features ffi --example
//! other_arrow`.

use arrow_array_60::RecordBatchReader as _;
use arrow_array_60::ffi_stream::{FFI_ArrowArrayStream as Stream60, RecordBatchStreamReader};
use marquetry::ffi::{self, FFI_ArrowArrayStream as OurStream};
use marquetry::{Reader, Result, Writer};

/// Our stream as one of Arrow 60.
fn to_60(stream: OurStream) -> Stream60 {
    let mut stream = std::mem::ManuallyDrop::new(stream);
    // SAFETY: both are the `struct ArrowArrayStream` of the specification, laid out as C does, and
    // not shared: the original is not dropped.
    unsafe { Stream60::from_raw((&raw mut *stream).cast()) }
}

/// A stream of Arrow 60 as ours.
fn from_60(stream: Stream60) -> OurStream {
    let mut stream = std::mem::ManuallyDrop::new(stream);
    // SAFETY: as above.
    unsafe { OurStream::from_raw((&raw mut *stream).cast()) }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let reader = Reader::open("testdata/trips.parquet")?.project(["id", "vendor", "fare"])?;
    let batches_60 = RecordBatchStreamReader::try_new(to_60(ffi::export(reader.batches()?)?))?;
    println!("{} columns for Arrow 60", batches_60.schema().fields().len());
    let batches: Vec<arrow_array_60::RecordBatch> = batches_60.collect::<Result<_, _>>()?;
    println!("{} rows", batches.iter().map(|batch| batch.num_rows()).sum::<usize>());

    let schema = batches[0].schema();
    let batches_60 = arrow_array_60::RecordBatchIterator::new(batches.into_iter().map(Ok), schema);
    let batches = ffi::import(from_60(Stream60::new(Box::new(batches_60))))?;
    let mut writer = Writer::to(Vec::new(), batches.schema())?;
    for batch in batches {
        writer.write(&batch?)?;
    }
    println!("{} rows written", writer.finish()?.rows);
    Ok(())
}
