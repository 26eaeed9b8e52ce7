//! Parquet to an Arrow IPC stream in memory, and back to the same batches: `cargo run --example ipc_round_trip`.

use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use marquetry::Reader;
use marquetry::arrow_array::RecordBatch;

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
    println!(
        "{} batches went through {} bytes of Arrow IPC and came back the same",
        back.len(),
        stream.len()
    );
    Ok(())
}
