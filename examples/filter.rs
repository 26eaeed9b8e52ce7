//! Reads the rows that meet a condition, and first explains what that takes:
//! `cargo run --example filter -- "id < 300"`.

use marquetry::{Predicate, Reader, col};

fn main() -> marquetry::Result<()> {
    let predicate = match std::env::args().nth(1) {
        Some(text) => Predicate::parse(&text)?,
        None => col("id").between(200, 260),
    };
    let reader =
        Reader::open("testdata/trips.parquet")?.project(["id", "vendor"])?.filter(predicate);
    // Which row groups and pages are left, and what pruned the others; the column chunks are not
    // touched.
    println!("{}", reader.explain()?);
    println!("{} rows meet it", reader.count()?);
    let mut batches = reader.limit(1_000).batches()?;
    while let Some(batch) = batches.next_batch()? {
        println!("a batch of {} rows of {}", batch.num_rows(), batch.schema());
    }
    Ok(())
}
