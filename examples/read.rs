//! Reads a file batch by batch: `cargo run --example read -- FILE`.

use marquetry::Reader;

fn main() -> marquetry::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "testdata/trips.parquet".to_owned());
    let reader = Reader::open(path)?;
    println!("{} rows in {} row groups", reader.rows()?, reader.metadata().row_groups());
    for (i, batch) in reader.batches()?.enumerate() {
        let batch = batch?;
        println!("batch {i}: {} rows, {} columns", batch.num_rows(), batch.num_columns());
    }
    Ok(())
}
