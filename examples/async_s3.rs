//! Writes an object of an object store, and streams some of its rows back: `cargo run --features
//! object_store --example async_s3`.
//!
//! The store is in memory here. With the feature `aws` of the crate `object_store`,
//! `AmazonS3Builder::from_env().with_bucket_name("…").build()` gives one that is far away; nothing
//! else changes.

use std::sync::Arc;

use futures_util::TryStreamExt;
use marquetry::{AsyncWriter, Reader, col};
use object_store::{ObjectStore, memory::InMemory};

#[tokio::main]
async fn main() -> marquetry::Result<()> {
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());

    // Encoded by the threads of a pool, uploaded in parts side by side; the object is there when it
    // is whole.
    let batches = Reader::open("testdata/trips.parquet")?.batches()?;
    let mut writer = AsyncWriter::to_store(store.clone(), "taxi/trips.parquet", batches.schema())?;
    for batch in batches {
        writer.write(&batch?).await?;
    }
    let report = writer.finish().await?;
    println!("{} rows in {} bytes", report.rows, report.bytes);

    // One request for the footer, then the pages that may hold such rows, joined and side by side.
    let reader = Reader::open_store(store, "taxi/trips.parquet").await?.project(["id", "fare"])?;
    let mut batches = reader.filter(col("id").between(200, 260)).stream()?;
    while let Some(batch) = batches.try_next().await? {
        println!("a batch of {} rows of {}", batch.num_rows(), batch.schema());
    }
    Ok(())
}
