//! Tables that delta-rs writes.

use std::collections::HashMap;
use std::path::Path;

use datafusion::arrow::array::RecordBatch;
use datafusion::prelude::SessionContext;
use deltalake_core::operations::write::SchemaMode;
use deltalake_core::parquet::file::properties::WriterProperties;
use deltalake_core::{DeltaTable, DeltaTableBuilder};
use url::Url;

/// Rows of a file; nulls in each column that can have some.
fn rows(first: i64, with_added: bool) -> String {
    let added = if with_added { ", cast(value % 4 as int) as added" } else { "" };
    let nested = if with_added { ", 'z', cast(value % 9 as int)" } else { "" };
    let last = first + 1999;
    format!(
        "select value as id, \
         case value % 4 when 0 then 'north' when 1 then 'south' when 2 then 'east' end as part, \
         date '2026-01-01' + cast(value / 100 as int) as day, \
         case when value % 7 <> 0 then value / 3.0 end as amount, \
         case when value % 5 <> 0 then 'note ' || (value % 100) end as note, \
         case when value % 3 <> 0 then make_array(value, null, value + 1) end as tags, \
         case when value % 11 <> 0 \
         then named_struct('x', value * 0.5, 'name', concat('p', value){nested}) end as place, \
         case when value % 17 <> 0 then cast(value * 7 as decimal(12, 2)) end as price, \
         case when value % 19 <> 0 \
         then arrow_cast(value * 1000003, 'Timestamp(Microsecond, Some(\"UTC\"))') end as at, \
         case when value % 13 <> 0 then map(['k', 'l'], [value, null]) end as counts, \
         case when value % 23 <> 0 then arrow_cast(concat('b', value % 10), 'Binary') end as raw, \
         case when value % 29 <> 0 then value % 2 = 0 end as is_even{added} \
         from generate_series({first}, {last})"
    )
}

pub(crate) async fn batches(sql: &str) -> Vec<RecordBatch> {
    SessionContext::new().sql(sql).await.expect(sql).collect().await.expect(sql)
}

pub(crate) fn url_of(folder: &Path) -> Url {
    Url::from_directory_path(folder).expect("an absolute path")
}

pub(crate) async fn open(folder: &Path) -> DeltaTable {
    let builder = DeltaTableBuilder::from_url(url_of(folder)).expect("a table");
    builder.load().await.expect("a table")
}

/// A table in four partitions, one of them null, with small row groups: two appended parts, and a
/// third one that adds a column
/// and a field of a struct.
pub(crate) async fn write(folder: &Path) -> DeltaTable {
    let mut table = DeltaTable::try_from_url(url_of(folder)).await.expect("a folder");
    for (first, with_added) in [(0, false), (2000, false), (4000, true)] {
        table = append(table, first, with_added).await;
    }
    table
}

/// Appends 2,000 rows.
pub(crate) async fn append(table: DeltaTable, first: i64, with_added: bool) -> DeltaTable {
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(100)).build();
    let batches = batches(&rows(first, with_added)).await;
    let mut builder = table.write(batches).with_writer_properties(properties);
    if first == 0 {
        builder = builder.with_partition_columns(["part"]);
    }
    if with_added {
        builder = builder.with_schema_mode(SchemaMode::Merge);
    }
    builder.await.expect("rows")
}

/// A copy of a table.
pub(crate) fn copy(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        let to = to.join(entry.file_name());
        if entry.file_type().expect("a type").is_dir() {
            std::fs::create_dir_all(&to).expect("a folder");
            copy(&entry.path(), &to);
        } else {
            std::fs::copy(entry.path(), &to).expect("a copy");
        }
    }
}

/// The text of the log, by version.
pub(crate) fn log(folder: &Path) -> HashMap<u64, String> {
    let entries = std::fs::read_dir(folder.join("_delta_log")).expect("a log");
    let versions = entries.filter_map(|entry| {
        let path = entry.expect("an entry").path();
        let version = path.file_name()?.to_str()?.strip_suffix(".json")?.parse().ok()?;
        Some((version, std::fs::read_to_string(&path).expect("a version")))
    });
    versions.collect()
}
