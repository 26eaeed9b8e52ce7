//! Helpers of the tests, the bench and the examples: the two engines, and tables to query.

use std::fs::File;
use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion::error::Result;
use datafusion::execution::SessionStateBuilder;
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::properties::WriterProperties;
use datafusion::prelude::{SessionConfig, SessionContext};

/// A session that reads Parquet as DataFusion does.
pub fn stock(config: SessionConfig) -> SessionContext {
    let state = SessionStateBuilder::new_with_default_features().with_config(config);
    SessionContext::new_with_state(state.build())
}

/// A session that reads and writes Parquet through marquetry.
pub fn ours(config: SessionConfig) -> SessionContext {
    let session = stock(config);
    marquetry_datafusion::install!(&session).expect("a session takes formats");
    session
}

/// Makes a table of the file or folder at `path` known to a session.
pub async fn register(session: &SessionContext, name: &str, path: &Path) -> Result<()> {
    let folder = if path.is_dir() { "/" } else { "" };
    let path = format!("{}{folder}", path.display());
    let sql = format!("CREATE EXTERNAL TABLE {name} STORED AS PARQUET LOCATION '{path}'");
    session.sql(&sql).await?.collect().await?;
    Ok(())
}

/// The rows of a query, as text, in the order of the answer.
pub fn rows(batches: &[RecordBatch]) -> Vec<String> {
    let options = FormatOptions::default().with_null("∅");
    let mut out = Vec::new();
    for batch in batches {
        let columns = batch.columns().iter();
        let columns: Vec<_> = columns
            .map(|column| ArrayFormatter::try_new(column, &options).expect("a printable column"))
            .collect();
        for row in 0..batch.num_rows() {
            let cells = columns.iter().map(|column| column.value(row).to_string());
            out.push(cells.collect::<Vec<_>>().join("|"));
        }
    }
    out
}

/// The queries of TPC-H, and their names.
pub fn tpch_queries() -> Vec<(String, String)> {
    queries(include_str!("../queries/tpch.sql"))
}

/// Queries in the manner of ClickBench, over a table `hits`, and their names.
pub fn hits_queries() -> Vec<(String, String)> {
    queries(include_str!("../queries/hits.sql"))
}

/// Queries that each follow a comment with their name.
fn queries(text: &str) -> Vec<(String, String)> {
    let parts = text.split("-- ").skip(1);
    let named = parts.filter_map(|part| part.split_once('\n'));
    named.map(|(name, sql)| (name.trim().to_owned(), sql.trim().to_owned())).collect()
}

/// The tables of TPC-H.
pub const TPCH_TABLES: [&str; 8] =
    ["nation", "region", "part", "supplier", "partsupp", "customer", "orders", "lineitem"];

/// Writes the tables of TPC-H to a folder, one file each, with the writer of the `parquet` crate.
/// Files that are there stay.
pub fn write_tpch(folder: &Path, scale: f64) {
    use tpchgen::generators as g;
    use tpchgen_arrow as a;
    std::fs::create_dir_all(folder).expect("a folder for the tables");
    macro_rules! table {
        ($name:literal, $generator:ident, $arrow:ident) => {
            let path = folder.join(concat!($name, ".parquet"));
            if !path.exists() {
                let batches = a::$arrow::new(g::$generator::new(scale, 1, 1));
                write(&path, batches.with_batch_size(8192), TPCH_ROW_GROUP)
            }
        };
    }
    table!("nation", NationGenerator, NationArrow);
    table!("region", RegionGenerator, RegionArrow);
    table!("part", PartGenerator, PartArrow);
    table!("supplier", SupplierGenerator, SupplierArrow);
    table!("partsupp", PartSuppGenerator, PartSuppArrow);
    table!("customer", CustomerGenerator, CustomerArrow);
    table!("orders", OrderGenerator, OrderArrow);
    table!("lineitem", LineItemGenerator, LineItemArrow);
}

/// Rows of a row group of the tables of TPC-H.
const TPCH_ROW_GROUP: usize = 1 << 20;

/// Writes batches with the writer of the `parquet` crate, with SNAPPY and otherwise its defaults.
pub fn write<E: std::fmt::Debug>(
    path: &Path,
    batches: impl Iterator<Item = std::result::Result<RecordBatch, E>>,
    row_group: usize,
) {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(row_group))
        .build();
    write_with(path, batches, properties);
}

/// Writes batches with the writer of the `parquet` crate.
pub fn write_with<E: std::fmt::Debug>(
    path: &Path,
    batches: impl Iterator<Item = std::result::Result<RecordBatch, E>>,
    properties: WriterProperties,
) {
    let mut batches = batches.peekable();
    let schema = match batches.peek() {
        Some(Ok(batch)) => batch.schema(),
        _ => panic!("a table has a first batch"),
    };
    let part = path.with_extension("part");
    let file = File::create(&part).expect("a new file");
    let mut writer = ArrowWriter::try_new(file, schema, Some(properties)).expect("a writer");
    for batch in batches {
        writer.write(&batch.expect("a batch")).expect("a written batch");
    }
    writer.close().expect("a footer");
    std::fs::rename(&part, path).expect("a finished file");
}
