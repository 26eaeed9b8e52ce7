//! Tests columns of a table that are in no file: the number of a row.

use std::sync::Arc;

use datafusion::arrow::array::*;
use datafusion::arrow::datatypes::{DataType, Field, FieldRef, Schema, SchemaRef};
use datafusion::common::ScalarValue;
use datafusion::config::TableParquetOptions;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileScanConfigBuilder, FileSource, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::{TableSchema, TableSchemaBuilder};
use datafusion::error::Result;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::Operator;
use datafusion::physical_expr::expressions::{BinaryExpr, col, lit};
use datafusion::physical_plan::{ExecutionPlan, collect};
use datafusion::prelude::SessionContext;
use marquetry_datafusion::{MarquetryPhysicalCodec, MarquetrySource};

fn virtual_column(name: &str, extension: &str) -> FieldRef {
    let metadata = [("ARROW:extension:name".to_owned(), extension.to_owned())];
    Arc::new(Field::new(name, DataType::Int64, false).with_metadata(metadata.into()))
}

/// Three row groups; the file also has a column with the name of the table's row numbers.
fn file(folder: &std::path::Path) -> (PartitionedFile, SchemaRef) {
    let id = Int64Array::from_iter_values((0..3000).map(|i| i * 7));
    let place = StringArray::from_iter_values((0..3000).map(|i| format!("p{i}")));
    let columns = [("id", Arc::new(id) as ArrayRef), ("place", Arc::new(place))];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let path = folder.join("t.parquet");
    engines::write(&path, [Ok::<_, std::convert::Infallible>(batch)].into_iter(), 1000);
    let mut file = PartitionedFile::from_path(path.display().to_string()).unwrap();
    file.partition_values = vec![ScalarValue::from("NL")];
    (file, Arc::new(Schema::new(vec![Field::new("id", DataType::Int64, false)])))
}

fn table(schema: &SchemaRef, column: FieldRef) -> TableSchema {
    TableSchemaBuilder::new(schema.clone())
        .with_table_partition_cols(vec![Arc::new(Field::new("land", DataType::Utf8, false))])
        .with_virtual_columns(vec![column])
        .build()
}

fn scan(source: Arc<dyn FileSource>, file: &PartitionedFile) -> Arc<dyn ExecutionPlan> {
    let url = ObjectStoreUrl::local_filesystem();
    DataSourceExec::from_data_source(
        FileScanConfigBuilder::new(url, source).with_file(file.clone()).build(),
    )
}

async fn rows(plan: Arc<dyn ExecutionPlan>) -> Result<(Vec<String>, SchemaRef)> {
    let schema = plan.schema();
    let batches = collect(plan, SessionContext::new().task_ctx()).await?;
    assert!(batches.iter().all(|batch| batch.schema() == schema));
    Ok((engines::rows(&batches), schema))
}

#[tokio::test]
async fn row_numbers_as_a_column_of_a_table_are_those_of_the_stock_source() {
    let folder = tempfile::tempdir().unwrap();
    let (file, schema) = file(folder.path());
    let table = table(&schema, virtual_column("place", "parquet.virtual.row_number"));
    let stock = ParquetSource::new(table.clone())
        .with_table_parquet_options(TableParquetOptions::default());
    let (expected, of_stock) = rows(scan(Arc::new(stock), &file)).await.unwrap();
    let ours = MarquetrySource::new(table.clone());
    let (found, of_ours) = rows(scan(Arc::new(ours.clone()), &file)).await.unwrap();
    assert_eq!(of_ours, of_stock);
    assert_eq!(found, expected);
    assert_eq!(found[2999], "20993|NL|2999");
    // The numbers of the rows that a filter leaves, and of one of three row groups.
    let id = col("id", &schema).unwrap();
    let filter = Arc::new(BinaryExpr::new(id, Operator::GtEq, lit(2990i64 * 7)));
    let filtered = ours.clone().with_filter(filter);
    let (found, _) = rows(scan(Arc::new(filtered), &file)).await.unwrap();
    assert_eq!(found, expected[2990..]);
    // In an expression, without the column of the file.
    let number = col("place", table.table_schema()).unwrap();
    let twice = Arc::new(BinaryExpr::new(number.clone(), Operator::Plus, number.clone()));
    let projection = datafusion::physical_expr::projection::ProjectionExprs::from(vec![
        datafusion::physical_expr::projection::ProjectionExpr::new(twice, "twice".to_owned()),
    ]);
    let projected = ours.try_pushdown_projection(&projection).unwrap().unwrap();
    let (found, _) = rows(scan(projected, &file)).await.unwrap();
    assert_eq!(found.len(), 3000);
    assert_eq!(found[1234], "2468");
    // A filter by it is not taken, and one that was put there by hand is refused.
    let by_number = Arc::new(BinaryExpr::new(number, Operator::Lt, lit(5i64)));
    let config = datafusion::config::ConfigOptions::new();
    let pushed = ours.try_pushdown_filters(vec![by_number.clone()], &config).unwrap();
    assert!(pushed.updated_node.is_none());
    let error = rows(scan(Arc::new(ours.clone().with_filter(by_number)), &file)).await.unwrap_err();
    assert!(error.to_string().contains("virtual column"), "{error}");
    // No message has a place for it.
    let error = datafusion_proto::bytes::physical_plan_to_bytes_with_extension_codec(
        scan(Arc::new(ours), &file),
        &MarquetryPhysicalCodec,
    );
    assert!(error.unwrap_err().to_string().contains("virtual columns"));
}

#[tokio::test]
async fn virtual_columns_of_other_kinds_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let (file, schema) = file(folder.path());
    for extension in ["parquet.virtual.row_group_index", "geoarrow.wkb"] {
        let table = table(&schema, virtual_column("number", extension));
        let error = rows(scan(Arc::new(MarquetrySource::new(table)), &file)).await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("number") && text.contains(extension), "{text}");
    }
}
