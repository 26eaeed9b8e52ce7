//! Converts Parquet to an Arrow IPC stream in memory, and the stream to Parquet again:
//! `cargo run --example ipc_round_trip`. Types, dictionaries, metadata and nullability stay the
//! same all the way.

use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use marquetry::arrow_array::RecordBatch;
use marquetry::{Reader, Writer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let reader = Reader::open("testdata/trips.parquet")?;
    let batches: Vec<RecordBatch> = reader.batches()?.collect::<Result<_, _>>()?;

    let mut stream = Vec::new();
    let schema = reader.schema()?;
    let mut writer = StreamWriter::try_new(&mut stream, &schema)?;
    for batch in &batches {
        writer.write(batch)?;
    }
    writer.finish()?;
    drop(writer);

    let back: Vec<RecordBatch> =
        StreamReader::try_new(stream.as_slice(), None)?.collect::<Result<_, _>>()?;
    assert_eq!(back, batches);

    let mut writer = Writer::to(Vec::new(), schema.clone())?;
    for batch in &back {
        writer.write(batch)?;
    }
    let (report, file) = writer.into_inner()?;
    let again = Reader::new(bytes::Bytes::from(file))?;
    assert_eq!(again.schema()?, schema);
    let rows: usize =
        again.batches()?.map(|batch| batch.map(|b| b.num_rows())).sum::<Result<_, _>>()?;
    assert_eq!(rows as u64, report.rows);
    println!(
        "{} batches went through {} bytes of Arrow IPC and came back the same",
        back.len(),
        stream.len()
    );
    Ok(())
}
