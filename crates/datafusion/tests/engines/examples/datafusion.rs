//! Shows DataFusion with marquetry: tables, queries, `COPY`.
//!
//! `cargo run --example datafusion -- FILE.parquet`, in `crates/datafusion/tests/engines`.

use std::sync::Arc;

use datafusion::error::Result;
use datafusion::prelude::SessionContext;
use marquetry_datafusion::MarquetryTable;

#[tokio::main]
async fn main() -> Result<()> {
    let given = std::env::args().nth(1);
    let path = given.unwrap_or_else(|| "../../../../testdata/trips.parquet".to_owned());
    let ctx = SessionContext::new();
    // CREATE EXTERNAL TABLE and COPY go through marquetry from here on.
    marquetry_datafusion::install!(&ctx)?;
    let create = format!("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION '{path}'");
    ctx.sql(&create).await?;
    ctx.sql("SELECT count(*) FROM t").await?.show().await?;
    // The same without SQL.
    let table = MarquetryTable::open(&ctx.state(), [&path]).await?;
    ctx.register_table("u", Arc::new(table))?;
    ctx.table("u").await?.limit(0, Some(5))?.show().await?;
    let out = std::env::temp_dir().join("marquetry-copy.parquet");
    let copy = format!("COPY (SELECT * FROM u) TO '{}' STORED AS PARQUET", out.display());
    ctx.sql(&copy).await?.show().await
}
