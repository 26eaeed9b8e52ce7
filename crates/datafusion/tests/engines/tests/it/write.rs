//! Tests that both engines read back what `COPY` and `INSERT` write, and that options have effect.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::*;
use datafusion::arrow::datatypes::{DataType, Field, Int32Type, IntervalMonthDayNano};
use datafusion::datasource::listing::{
    ListingOptions, ListingTable, ListingTableConfig, ListingTableUrl,
};
use datafusion::execution::memory_pool::GreedyMemoryPool;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};
use datafusion::prelude::{SessionConfig, SessionContext, ident};
use futures::StreamExt;
use marquetry_datafusion::{MarquetryFormat, MarquetryFormatFactory};
use object_store::ObjectStore;

use crate::store::CountingStore;
use crate::{Pair, query};

fn source(rows: i64) -> RecordBatch {
    let id = Int64Array::from_iter_values(0..rows);
    let name =
        StringArray::from_iter((0..rows).map(|i| (i % 5 > 0).then(|| format!("n{}", i % 101))));
    let kind = StringArray::from_iter_values((0..rows).map(|i| ["a", "b", "c"][i as usize % 3]));
    let price = Float64Array::from_iter_values((0..rows).map(|i| i as f64 / 8.0));
    let mut list = ListBuilder::new(Int32Builder::new());
    for i in 0..rows {
        (0..i % 3).for_each(|j| list.values().append_value((i * j) as i32));
        list.append(i % 7 > 0);
    }
    RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(id) as ArrayRef, false),
        ("name", Arc::new(name), true),
        ("kind", Arc::new(kind), false),
        ("price", Arc::new(price), false),
        ("list", Arc::new(list.finish()), true),
    ])
    .unwrap()
}

fn pair(rows: i64) -> Pair {
    let pair = Pair::new(2);
    for session in [&pair.stock, &pair.ours] {
        session.register_batch("source", source(rows)).unwrap();
    }
    pair
}

fn metadata(path: &Path) -> ParquetMetaData {
    let file = std::fs::File::open(path).unwrap();
    ParquetMetaDataReader::new().parse_and_finish(&file).unwrap()
}

fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let mut out = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { out.extend(files(&path)) } else { out.push(path) }
    }
    out
}

#[tokio::test]
async fn what_copy_writes_both_engines_read() {
    let folder = tempfile::tempdir().unwrap();
    let pair = pair(10_000);
    let path = folder.path().join("copy.parquet");
    let copied = query(&pair.ours, &format!("COPY source TO '{}'", path.display())).await;
    assert_eq!(engines::rows(&copied), ["10000"]);
    assert!(metadata(&path).file_metadata().created_by().unwrap().starts_with("marquetry"));
    pair.table("t", &path).await;
    assert_eq!(pair.same("select * from t").await, 10_000);
    let mut expected = engines::rows(&query(&pair.stock, "select * from source").await);
    let mut found = engines::rows(&query(&pair.ours, "select * from t").await);
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn partitions_are_written_into_folders() {
    let folder = tempfile::tempdir().unwrap();
    let pair = pair(3000);
    let sql = format!(
        "COPY source TO '{}/p/' STORED AS PARQUET PARTITIONED BY (kind)",
        folder.path().display()
    );
    query(&pair.ours, &sql).await;
    let mut folders: Vec<_> = files(folder.path())
        .iter()
        .map(|f| f.parent().unwrap().file_name().unwrap().to_owned())
        .collect();
    folders.sort();
    folders.dedup();
    assert_eq!(folders, ["kind=a", "kind=b", "kind=c"]);
    let sql = format!(
        "CREATE EXTERNAL TABLE t (id bigint, name varchar, price double, kind varchar) \
         STORED AS PARQUET PARTITIONED BY (kind) LOCATION '{}/p/'",
        folder.path().display()
    );
    pair.run(&sql).await;
    assert_eq!(pair.same("select id, name, price, kind from t").await, 3000);
    assert_eq!(pair.same("select id from t where kind = 'b'").await, 1000);
}

#[tokio::test]
async fn insert_appends_files() {
    let folder = tempfile::tempdir().unwrap();
    let pair = pair(500);
    let sql = format!(
        "CREATE EXTERNAL TABLE t (id bigint, name varchar) STORED AS PARQUET LOCATION '{}/t/'",
        folder.path().display()
    );
    query(&pair.ours, &sql).await;
    for _ in 0..2 {
        query(&pair.ours, "insert into t select id, name from source").await;
    }
    let found = query(&pair.ours, "select count(*), sum(id) from t").await;
    assert_eq!(engines::rows(&found), [format!("1000|{}", 499 * 500)]);
    let overwrite = pair.ours.sql("insert overwrite t select id, name from source").await.unwrap();
    let error = overwrite.collect().await.unwrap_err();
    assert!(error.to_string().contains("INSERT OVERWRITE"), "{error}");
}

#[tokio::test]
async fn a_file_claims_as_much_of_the_order_of_its_table_as_it_can_state() {
    let folder = tempfile::tempdir().unwrap();
    let ctx = engines::ours(SessionConfig::new().with_target_partitions(1));
    let field = Arc::new(Field::new("f", DataType::Int64, true));
    let ints = || Arc::new(Int64Array::from(vec![2, 1])) as ArrayRef;
    let intervals = vec![IntervalMonthDayNano::new(2, 0, 0), IntervalMonthDayNano::new(1, 0, 0)];
    let floats = Arc::new(Float64Array::from(vec![2.5, 1.5]));
    let floats = DictionaryArray::<Int32Type>::new(Int32Array::from(vec![0, 1]), floats);
    let batch = RecordBatch::try_from_iter_with_nullable([
        ("a", ints(), true),
        ("i", Arc::new(IntervalMonthDayNanoArray::from(intervals)), true),
        ("n", Arc::new(NullArray::new(2)), true),
        ("s.f", ints(), true),
        ("s", Arc::new(StructArray::from(vec![(field, ints())])), true),
        ("d", Arc::new(floats), true),
    ])
    .unwrap();
    ctx.register_batch("source", batch.clone()).unwrap();
    for order in ["s.f", "i", "n", "d"].into_iter().flat_map(|key| [["a", key], [key, "a"]]) {
        let name = order.join(" ");
        let folder = folder.path().join(&name);
        std::fs::create_dir(&folder).unwrap();
        let keys = order.map(|name| ident(name).sort(true, false)).to_vec();
        let options = ListingOptions::new(Arc::new(MarquetryFormat::new()))
            .with_file_extension(".parquet")
            .with_file_sort_order(vec![keys]);
        let url = ListingTableUrl::parse(format!("{}/", folder.display())).unwrap();
        let config =
            ListingTableConfig::new(url).with_listing_options(options).with_schema(batch.schema());
        let table = ListingTable::try_new(config).unwrap();
        ctx.register_table(format!("\"{name}\""), Arc::new(table)).unwrap();
        query(&ctx, &format!("insert into \"{name}\" select * from source")).await;
        let written = metadata(&files(&folder)[0]);
        let claims = written.row_group(0).sorting_columns();
        let claims: Vec<_> = claims.into_iter().flatten().map(|key| key.column_idx).collect();
        match order {
            ["a", _] => assert_eq!(claims, [0], "{name}"),
            // The library may see by itself that a column is in order.
            _ => assert!(claims.len() < 2, "{name}: {claims:?}"),
        }
    }
}

#[tokio::test]
async fn options_of_datafusion_decide_how_files_are_written() {
    let folder = tempfile::tempdir().unwrap();
    let pair = pair(5000);
    let path = folder.path().join("o.parquet");
    let sql = format!(
        "COPY (select id, name, price from source) TO '{}' STORED AS PARQUET OPTIONS ( \
         'format.compression' 'gzip(4)', 'format.compression::name' 'lz4_raw', \
         'format.max_row_group_size' '2000', 'format.bloom_filter_enabled::id' 'true', \
         'format.dictionary_enabled::price' 'false', 'format.encoding::price' 'byte_stream_split', \
         'format.statistics_enabled' 'chunk', 'format.metadata::who' 'me', \
         'format.created_by' 'somebody')",
        path.display()
    );
    query(&pair.ours, &sql).await;
    let found = metadata(&path);
    assert_eq!(found.num_row_groups(), 3);
    let columns = found.row_group(0).columns();
    assert!(matches!(columns[0].compression(), Compression::GZIP(_)), "{:?}", columns[0]);
    assert_eq!(columns[1].compression(), Compression::LZ4_RAW);
    assert!(
        columns[0].bloom_filter_offset().is_some() && columns[1].bloom_filter_offset().is_none()
    );
    assert!(columns[0].column_index_offset().is_none(), "statistics of chunks only");
    assert!(
        format!("{:?}", columns[2].encodings().collect::<Vec<_>>()).contains("BYTE_STREAM_SPLIT")
    );
    assert_eq!(found.file_metadata().created_by(), Some("somebody"));
    let pairs = found.file_metadata().key_value_metadata().unwrap();
    assert!(pairs.iter().any(|pair| pair.key == "who" && pair.value.as_deref() == Some("me")));
    pair.table("t", &path).await;
    assert_eq!(pair.same("select * from t where id > 4000").await, 999);
}

#[tokio::test]
async fn an_option_without_counterpart_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let pair = pair(10);
    for (option, value) in [
        ("compression", "lz4"),
        ("compression::name", "zstd"),
        ("statistics_enabled", "some"),
        ("encoding::id", "bit_packed"),
        ("column_index_truncate_length", "7"),
        ("crypto.file_encryption.footer_key_as_hex", "30313233343536373839303132333435"),
    ] {
        let other = if option == "column_index_truncate_length" {
            ", 'format.statistics_truncate_length' '9'"
        } else {
            ""
        };
        let sql = format!(
            "COPY source TO '{}/x.parquet' STORED AS PARQUET OPTIONS ('format.{option}' '{value}'{other})",
            folder.path().display()
        );
        let error = match pair.ours.sql(&sql).await {
            Ok(frame) => frame.collect().await.expect_err(option),
            Err(e) => e,
        };
        let name = option.split_once('.').map_or(option, |(first, _)| first);
        assert!(error.to_string().contains(name), "{option}: {error}");
    }
    assert!(files(folder.path()).is_empty());
}

#[tokio::test]
async fn a_value_that_is_none_of_its_option_is_an_error_of_the_configuration() {
    use datafusion::error::DataFusionError;
    use std::time::Duration;
    let folder = tempfile::tempdir().unwrap();
    let pair = pair(10);
    for (option, value) in [
        ("compression", "gzip(10)"),
        ("compression", "gzip(11)"),
        ("compression", "brotli(12)"),
        ("compression", "zstd(23)"),
        ("compression::id", "zstd(0)"),
        ("max_row_group_size", "0"),
        ("write_batch_size", "0"),
        ("data_pagesize_limit", "0"),
        ("data_page_row_count_limit", "0"),
        ("column_index_truncate_length", "0"),
        ("statistics_truncate_length", "0"),
        ("encoding::name", "byte_stream_split"),
        ("encoding::absent", "plain"),
    ] {
        let sql = format!(
            "COPY source TO '{}/x.parquet' STORED AS PARQUET OPTIONS ('format.{option}' '{value}')",
            folder.path().display()
        );
        let copied = async { pair.ours.sql(&sql).await?.collect().await };
        let copied = tokio::time::timeout(Duration::from_secs(20), copied).await.expect(option);
        let error = copied.expect_err(&sql);
        let is_configuration = matches!(error.find_root(), DataFusionError::Configuration(_));
        assert!(is_configuration, "{sql}: {error}");
        assert!(!error.to_string().contains("External error"), "{sql}: {error}");
    }
    assert!(files(folder.path()).is_empty());
    // Values in their ranges are written.
    for value in ["gzip(9)", "gzip(0)", "brotli(11)", "zstd(22)", "zstd(1)"] {
        let path = folder.path().join("y.parquet");
        let sql = format!(
            "COPY source TO '{}' STORED AS PARQUET OPTIONS ('format.compression' '{value}')",
            path.display()
        );
        query(&pair.ours, &sql).await;
        assert_eq!(metadata(&path).file_metadata().num_rows(), 10, "{value}");
    }
}

#[tokio::test]
async fn rows_that_wait_are_reserved_from_the_pool() {
    let folder = tempfile::tempdir().unwrap();
    let pool = Arc::new(GreedyMemoryPool::new(24 << 20));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool).build_arc().unwrap();
    let config = SessionConfig::new().with_target_partitions(1);
    let ctx = SessionContext::new_with_config_rt(config, runtime);
    marquetry_datafusion::install!(&ctx, MarquetryFormatFactory::new()).unwrap();
    // 40 MB of rows: more than the pool, so row groups end early.
    let path = folder.path().join("large.parquet");
    let sql = format!(
        "COPY (select value, value * 7 as b, value + 1 as c, value % 3 as d, value % 5 as e \
         from generate_series(1, 1000000)) TO '{}'",
        path.display()
    );
    query(&ctx, &sql).await;
    let found = metadata(&path);
    assert_eq!(found.file_metadata().num_rows(), 1_000_000);
    assert!(found.num_row_groups() > 1, "{} row groups", found.num_row_groups());
}

#[tokio::test]
async fn parts_on_their_way_to_a_store_are_reserved_from_the_pool() {
    use datafusion::execution::memory_pool::MemoryPool;
    use std::sync::atomic::Ordering;
    for (pool_bytes, max_parts) in [(1usize << 30, 8), (64 << 20, 1)] {
        let pool: Arc<dyn MemoryPool> = Arc::new(GreedyMemoryPool::new(pool_bytes));
        let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool.clone()).build_arc().unwrap();
        let config = SessionConfig::new().with_target_partitions(1);
        let ctx = SessionContext::new_with_config_rt(config, runtime);
        marquetry_datafusion::install!(&ctx, MarquetryFormatFactory::new()).unwrap();
        let store = crate::store::CountingStore::with(&ctx, &[]).await;
        *store.uploads.pool.lock().unwrap() = Some(pool.clone());
        // 64 MB that do not compress.
        let rows = "select random() as a, random() as b, random() as c, random() as d \
                    from generate_series(1, 2000000)";
        let options = "OPTIONS ('format.compression' 'uncompressed', \
                       'format.dictionary_enabled' 'false')";
        query(&ctx, &format!("COPY ({rows}) TO 'count://files/a.parquet' {options}")).await;
        let parts = store.uploads.parts.load(Ordering::Relaxed);
        let most = store.uploads.max_bytes.load(Ordering::Relaxed);
        let least_left = store.uploads.least_left.lock().unwrap().unwrap();
        println!(
            "{parts} parts, at most {most} bytes on their way, {least_left} bytes reserved beside"
        );
        assert!(parts >= 7, "{parts} parts");
        assert!(most <= max_parts * (8 << 20), "{most} bytes on their way");
        assert!(least_left >= 0, "{least_left}: less reserved than on its way");
        assert_eq!(pool.reserved(), 0);
    }
}

#[tokio::test]
async fn memory_that_batches_share_is_reserved_once() {
    let folder = tempfile::tempdir().unwrap();
    let pool = Arc::new(GreedyMemoryPool::new(24 << 20));
    let runtime = RuntimeEnvBuilder::new().with_memory_pool(pool.clone()).build_arc().unwrap();
    let config = SessionConfig::new().with_target_partitions(1);
    let ctx = SessionContext::new_with_config_rt(config, runtime);
    marquetry_datafusion::install!(&ctx, MarquetryFormatFactory::new()).unwrap();
    // Batches of 8192 rows are slices of these 8 MB.
    let id: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1_000_000));
    ctx.register_batch("wide", RecordBatch::try_from_iter([("id", id)]).unwrap()).unwrap();
    let path = folder.path().join("x.parquet");
    query(&ctx, &format!("COPY wide TO '{}'", path.display())).await;
    assert_eq!(metadata(&path).num_row_groups(), 1);
    use datafusion::execution::memory_pool::MemoryPool;
    assert_eq!(pool.reserved(), 0);
}

#[tokio::test]
async fn nothing_is_left_if_one_of_several_files_is_refused() {
    let pair = pair(3000);
    let store = CountingStore::with(&pair.ours, &[]).await;
    let sql = "COPY source TO 'count://files/p/' STORED AS PARQUET PARTITIONED BY (kind)";
    for refused in ["kind=a", "kind=b", "kind=c"] {
        *store.refused.lock().unwrap() = Some(refused.to_owned());
        let error = pair.ours.sql(sql).await.unwrap().collect().await.unwrap_err();
        assert!(error.to_string().contains(refused), "{error}");
        let left: Vec<_> = store.list(None).collect().await;
        assert!(left.is_empty(), "{refused}: {left:?}");
    }
    *store.refused.lock().unwrap() = None;
    query(&pair.ours, sql).await;
    assert_eq!(store.list(None).count().await, 3);
}

#[tokio::test]
async fn nothing_is_left_of_a_query_that_fails() {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::new(2);
    let rows = "select value, value % 3 as part, 10 / (value - 90000) as x \
                from generate_series(1, 100000)";
    for to in ["one.parquet'", "many/' STORED AS PARQUET PARTITIONED BY (part)"] {
        let sql = format!("COPY ({rows}) TO '{}/{to}", folder.path().display());
        let error = pair.ours.sql(&sql).await.unwrap().collect().await.unwrap_err();
        assert!(error.to_string().to_lowercase().contains("divide by zero"), "{error}");
        assert_eq!(files(folder.path()), Vec::<std::path::PathBuf>::new(), "{sql}");
    }
}
