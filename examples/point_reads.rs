//! Reads rows by their numbers, again and again: `cargo run --example point_reads -- 700 3 3`.
//!
//! Only the pages that hold a row are fetched. Where they are is read once for each column, and
//! known for the reads that follow.

use marquetry::Reader;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rows = std::env::args().skip(1).map(|row| row.parse()).collect::<Result<Vec<u64>, _>>()?;
    let rows = if rows.is_empty() { vec![700, 3, 3] } else { rows };
    let reader = Reader::open("testdata/trips.parquet")?.project(["id", "vendor"])?;
    // In the order that was asked for, and as often.
    let batch = reader.take(&rows)?;
    println!("{batch:?}");
    println!("{} bytes fetched", reader.progress().bytes_fetched());
    let next = reader.take(&[rows[0].saturating_sub(1)])?;
    println!("the row before the first: {next:?}");
    println!("{} bytes fetched in all", reader.progress().bytes_fetched());
    Ok(())
}
