//! Tests statistics and orders of files in the cases that are not simple: types that differ, row
//! groups that overlap, counts that are estimates.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::*;
use datafusion::arrow::datatypes::*;
use datafusion::parquet::data_type::Int64Type as ParquetInt64;
use datafusion::parquet::file::metadata::SortingColumn;
use datafusion::parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};
use datafusion::parquet::file::writer::SerializedFileWriter;
use datafusion::parquet::schema::parser::parse_message_type;
use datafusion::prelude::{ParquetReadOptions, SessionConfig};
use marquetry_datafusion::MarquetryTable;

use crate::{Pair, plan, query, text};

fn write(path: &Path, columns: Vec<(&str, ArrayRef)>, properties: WriterPropertiesBuilder) {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    engines::write_with(
        path,
        [Ok::<_, std::convert::Infallible>(batch)].into_iter(),
        properties.build(),
    );
}

fn row_groups(rows: usize) -> WriterPropertiesBuilder {
    WriterProperties::builder().set_max_row_group_row_count(Some(rows))
}

/// Claims that the first `keys` columns are the order of each row group.
fn sorted(rows: usize, keys: i32) -> WriterPropertiesBuilder {
    let key = |column_idx| SortingColumn { column_idx, descending: false, nulls_first: false };
    row_groups(rows).set_sorting_columns(Some((0..keys).map(key).collect()))
}

async fn declare(pair: &Pair, name: &str, columns: &str, path: &Path) {
    let sql = format!(
        "CREATE EXTERNAL TABLE {name} {columns} STORED AS PARQUET LOCATION '{}'",
        path.display()
    );
    pair.run(&sql).await;
}

async fn answer(pair: &Pair, sql: &str) -> Vec<String> {
    engines::rows(&query(&pair.ours, sql).await)
}

#[tokio::test]
async fn bounds_of_a_type_with_another_order_answer_nothing_and_prune_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let decimals = Decimal128Array::from_iter_values((9..=100).map(|i| i * 10))
        .with_precision_and_scale(10, 1)
        .unwrap();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i", Arc::new(Int64Array::from_iter_values(9..=100))),
        ("f", Arc::new(Float64Array::from_iter_values((9..=100).map(|i| f64::from(i) + 0.5)))),
        ("d", Arc::new(decimals)),
        ("t", Arc::new(StringArray::from_iter_values((9..=100).map(|i| i.to_string())))),
    ];
    write(&path, columns, row_groups(1000));
    let pair = Pair::new(1);
    declare(&pair, "t", "(i varchar, f varchar, d varchar, t bigint)", &path).await;
    for (sql, expected) in [
        ("select min(i), max(i) from t", "10|99"),
        ("select min(f), max(f) from t", "10.5|99.5"),
        ("select min(d), max(d) from t", "10.0|99.0"),
        ("select min(t), max(t) from t", "9|100"),
        ("select count(*) from t where i = '50'", "1"),
        ("select count(*) from t where f = '50.5'", "1"),
        ("select count(*) from t where d = '50.0'", "1"),
        ("select count(*) from t where t = 50", "1"),
    ] {
        assert_eq!(answer(&pair, sql).await, [expected], "{sql}");
    }
    // Floats cut to integers: a NaN is not below the bound.
    let path = folder.path().join("f.parquet");
    let floats = Float64Array::from_iter_values((0..100).map(f64::from));
    write(&path, vec![("f", Arc::new(floats))], row_groups(1000));
    declare(&pair, "f", "(f bigint)", &path).await;
    assert_eq!(answer(&pair, "select min(f), max(f) from f where f > 3").await, ["4|99"]);
}

#[tokio::test]
async fn bounds_of_types_with_the_same_order_still_answer() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let decimals = Decimal128Array::from_iter_values(9..=100).with_precision_and_scale(10, 1);
    let at = TimestampMillisecondArray::from_iter_values((9..=100).map(|i| i * 1500 - 60_000));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("i", Arc::new(Int32Array::from_iter_values(9..=100))),
        ("d", Arc::new(decimals.unwrap())),
        ("at", Arc::new(at)),
        ("t", Arc::new(BinaryArray::from_iter_values((9..=100).map(|i| i.to_string())))),
    ];
    write(&path, columns, row_groups(1000));
    let pair = Pair::new(1);
    declare(&pair, "t", "(i bigint, d decimal(12, 3), at timestamp, t varchar)", &path).await;
    let sql = "select min(i), max(i), min(d), max(d), min(at), max(at) from t";
    let expected = ["9|100|0.900|10.000|1969-12-31T23:59:13.500|1970-01-01T00:01:30".to_owned()];
    assert_eq!(answer(&pair, sql).await, expected);
    let plan = text(&plan(&pair.ours, "select min(i), max(d), max(at), count(*) from t").await);
    assert!(!plan.contains("DataSourceExec"), "{plan}");
    assert_eq!(answer(&pair, "select min(t), max(t) from t").await, ["10|99"]);
}

#[tokio::test]
async fn columns_of_dictionaries_have_bounds_and_filters() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let values = (0..1000).map(|i| (i % 9 > 0).then(|| format!("v{:03}", i * 7 % 311)));
    let names: DictionaryArray<Int32Type> = values.map(|v| v.map(|v| v.leak() as &str)).collect();
    let ids = Int64Array::from_iter_values(0..1000);
    write(&path, vec![("id", Arc::new(ids)), ("name", Arc::new(names))], row_groups(170));
    let pair = Pair::new(2);
    pair.table("t", &path).await;
    for sql in [
        "select min(name), max(name), count(name) from t",
        "select * from t where name = 'v007'",
        "select id from t where name > 'v290' and id % 3 = 0",
        "select id from t where name in ('v001', 'v309') or name is null",
        "select name, count(*) from t where name like 'v00%' group by name",
    ] {
        assert!(pair.same(sql).await > 0, "{sql}");
    }
}

#[tokio::test]
async fn an_order_is_not_claimed_of_values_that_are_read_as_another_type() {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::new(1);
    let path = folder.path().join("i.parquet");
    write(&path, vec![("x", Arc::new(Int64Array::from_iter_values(1..=100)))], sorted(1000, 1));
    declare(&pair, "i", "(x varchar)", &path).await;
    let mut expected: Vec<String> = (1..=100).map(|i| i.to_string()).collect();
    expected.sort();
    assert_eq!(answer(&pair, "select x from i order by x nulls last").await, expected);
    // Cut to seconds, all times are the same, and the ids are not in order.
    let path = folder.path().join("ts.parquet");
    let at = TimestampMillisecondArray::from_iter_values(0..100);
    let id = Int64Array::from_iter_values((0..100).rev());
    write(&path, vec![("at", Arc::new(at)), ("id", Arc::new(id))], sorted(1000, 2));
    declare(&pair, "ts", "(at timestamp(0), id bigint)", &path).await;
    let found = answer(&pair, "select id from ts order by at nulls last, id nulls last").await;
    assert_eq!(found, (0..100).map(|i| i.to_string()).collect::<Vec<_>>());
    // Data that other writers call sorted may mix the zeros, and may have NaNs anywhere.
    let path = folder.path().join("f.parquet");
    let floats = Float64Array::from(vec![-1.0, 0.0, -0.0, 1.0, -f64::NAN]);
    write(&path, vec![("f", Arc::new(floats))], sorted(1000, 1));
    declare(&pair, "f", "(f double)", &path).await;
    let found = answer(&pair, "select f from f order by f nulls last").await;
    assert_eq!(found[1..], ["-1.0", "-0.0", "0.0", "1.0"]);
}

#[tokio::test]
async fn an_order_of_row_groups_is_one_of_the_file_if_they_do_not_overlap() {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::new(1);
    let table = |name: &str, x: Vec<Option<i64>>, y: Vec<i64>| {
        let path = folder.path().join(format!("{name}.parquet"));
        let (x, y): (ArrayRef, ArrayRef) =
            (Arc::new(Int64Array::from(x)), Arc::new(Int64Array::from(y)));
        write(&path, vec![("x", x), ("y", y)], sorted(50, 2));
        path
    };
    let some = |values: Vec<i64>| values.into_iter().map(Some).collect::<Vec<_>>();
    let apart = table("apart", some((0..150).collect()), (0..150).collect());
    pair.table("apart", &apart).await;
    let sql = "select x from apart order by x nulls last, y nulls last";
    let plan_of_apart = text(&plan(&pair.ours, sql).await);
    assert!(!plan_of_apart.contains("SortExec"), "{plan_of_apart}");
    // Each sorted, and the second begins in the midst of the first.
    let overlap = table("overlap", some((0..50).chain(25..75).collect()), (0..100).collect());
    pair.table("overlap", &overlap).await;
    let mut expected: Vec<i64> = (0..50).chain(25..75).collect();
    expected.sort();
    let expected: Vec<String> = expected.iter().map(ToString::to_string).collect();
    // DataFusion's own source takes the order of each row group for one of the file.
    assert_eq!(answer(&pair, "select x from overlap order by x nulls last").await, expected);
    // The first key is in order over both; what follows it is not, where they share a value.
    let shared: Vec<i64> = (0..50).map(|i| i.min(40)).chain((0..50).map(|i| i + 40)).collect();
    let y = (0..50).chain(0..50);
    let mut expected: Vec<(i64, i64)> = shared.iter().copied().zip(y).collect();
    expected.sort();
    let expected: Vec<String> = expected.iter().map(|(x, y)| format!("{x}|{y}")).collect();
    let shared = table("shared", some(shared), (0..50).chain(0..50).collect());
    pair.table("shared", &shared).await;
    let found = text(&plan(&pair.ours, "select x from shared order by x nulls last").await);
    assert!(!found.contains("SortExec"), "{found}");
    let sql = "select x, y from shared order by x nulls last, y nulls last";
    assert_eq!(answer(&pair, sql).await, expected);
    // Nulls at the end of a row group that is not the last.
    let nulls: Vec<Option<i64>> =
        (0..100).map(|i| if (45..50).contains(&i) { None } else { Some(i) }).collect();
    let nulls = table("nulls", nulls, (0..100).collect());
    pair.table("nulls", &nulls).await;
    let mut expected: Vec<String> = (0..45).chain(50..100).map(|i| format!("{i}|{i}")).collect();
    expected.extend((45..50).map(|i| format!("∅|{i}")));
    let sql = "select x, y from nulls order by x nulls last, y nulls last";
    assert_eq!(answer(&pair, sql).await, expected);
}

#[tokio::test]
async fn an_order_of_files_is_one_of_the_scan_if_no_nulls_lie_between_them() {
    let folder = tempfile::tempdir().unwrap();
    let pair = Pair::new(1);
    type Rows = Vec<(Option<i64>, Option<i64>)>;
    let table = |name: &str, nulls_first: bool, keys: i32, files: &[Rows]| {
        let folder = folder.path().join(name);
        std::fs::create_dir(&folder).unwrap();
        for (rows, file) in files.iter().zip(["a.parquet", "b.parquet"]) {
            let (x, y): (Vec<_>, Vec<_>) = rows.iter().copied().unzip();
            let (x, y) = (Int64Array::from(x), Int64Array::from(y));
            let key = |column_idx| SortingColumn { column_idx, descending: false, nulls_first };
            let keys = (0..keys).map(key).collect();
            let properties = row_groups(100).set_sorting_columns(Some(keys));
            let columns: Vec<(&str, ArrayRef)> = vec![("x", Arc::new(x)), ("y", Arc::new(y))];
            write(&folder.join(file), columns, properties);
        }
        folder
    };
    let some = |x, y| (Some(x), Some(y));
    let first = vec![some(1, 1), some(2, 2)];
    let last = vec![some(5, 1), some(6, 2)];
    let with_null = vec![some(1, 1), some(2, 2), (None, Some(3))];
    let (by_x, by_both) = ("x nulls last", "x nulls last, y nulls last");
    for (name, nulls_first, keys, files, by, expected, is_sorted) in [
        ("whole", false, 2, vec![first.clone(), last.clone()], by_both, "1 2 5 6", true),
        ("one", false, 2, vec![with_null.clone()], by_both, "1 2 ∅", true),
        ("between", false, 1, vec![with_null, last.clone()], by_x, "1 2 5 6 ∅", false),
        (
            "first",
            true,
            1,
            vec![first.clone(), vec![(None, Some(0)), some(5, 1)]],
            "x nulls first",
            "∅ 1 2 5",
            false,
        ),
        // Only the second key has nulls: the first one is still an order.
        ("second", false, 2, vec![vec![some(1, 1), (Some(2), None)], last], by_x, "1 2 5 6", true),
    ] {
        pair.table(name, &table(name, nulls_first, keys, &files)).await;
        let sql = format!("select x from {name} order by {by}");
        assert_eq!(answer(&pair, &sql).await.join(" "), expected, "{name}");
        let plan = text(&plan(&pair.ours, &sql).await);
        assert_eq!(!plan.contains("SortExec"), is_sorted, "{name}: {plan}");
    }
    // The first keys of the files touch, and the first file ends with a null in the second one.
    let files = [vec![some(1, 1), (Some(2), None)], vec![some(2, 5), some(3, 6)]];
    pair.table("touching", &table("touching", false, 2, &files)).await;
    let sql = "select x, y from touching order by x nulls last, y nulls last";
    assert_eq!(answer(&pair, sql).await, ["1|1", "2|5", "2|∅", "3|6"]);
}

#[tokio::test]
async fn a_table_does_not_take_over_what_datafusion_found_of_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("overlap.parquet");
    let x = Int64Array::from_iter_values((0..50).chain(25..75));
    write(&path, vec![("x", Arc::new(x))], sorted(50, 1));
    let path = path.display().to_string();
    let ctx = engines::stock(SessionConfig::new().with_target_partitions(1));
    let cache = ctx.runtime_env().cache_manager.get_file_statistic_cache().unwrap();
    let stock = ctx.read_parquet(&path, ParquetReadOptions::default()).await.unwrap();
    stock.collect().await.unwrap();
    let known = cache.len();
    assert!(known > 0, "DataFusion keeps what it found");
    let table = MarquetryTable::open(&ctx.state(), [&path]).await.unwrap();
    ctx.register_table("t", Arc::new(table)).unwrap();
    let found = engines::rows(&query(&ctx, "select x from t order by x nulls last").await);
    let mut expected: Vec<i64> = (0..50).chain(25..75).collect();
    expected.sort();
    assert_eq!(found, expected.iter().map(ToString::to_string).collect::<Vec<_>>());
    assert_eq!(cache.len(), known);
}

#[tokio::test]
async fn a_count_of_distinct_values_is_an_estimate() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let schema = Arc::new(parse_message_type("message t { required int64 x; }").unwrap());
    let file = std::fs::File::create(&path).unwrap();
    let mut writer = SerializedFileWriter::new(file, schema, Default::default()).unwrap();
    let mut group = writer.next_row_group().unwrap();
    let mut column = group.next_column().unwrap().unwrap();
    column
        .typed::<ParquetInt64>()
        .write_batch_with_statistics(&[1, 2, 3, 3], None, None, Some(&1), Some(&3), Some(77))
        .unwrap();
    column.close().unwrap();
    group.close().unwrap();
    writer.close().unwrap();
    let pair = Pair::new(1);
    pair.table("t", &path).await;
    assert_eq!(answer(&pair, "select count(distinct x), count(*) from t").await, ["3|4"]);
}

#[tokio::test]
async fn a_field_of_a_struct_is_not_the_column_whose_name_has_a_dot() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let of_struct: ArrayRef = Arc::new(Int64Array::from_iter_values((0..100).map(|i| i + 1000)));
    let field = Arc::new(Field::new("f", DataType::Int64, false));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("s", Arc::new(StructArray::from(vec![(field, of_struct)]))),
        ("s.f", Arc::new(Int64Array::from_iter_values(0..100))),
    ];
    write(&path, columns, row_groups(30));
    let pair = Pair::new(1);
    pair.table("t", &path).await;
    assert_eq!(pair.same("select * from t where s['f'] = 1050").await, 1);
    assert_eq!(pair.same("select * from t where \"s.f\" = 50").await, 1);
}
