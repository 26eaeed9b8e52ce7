//! Tests many files, parts of files, folders, nested columns, and schemas that changed.

use std::sync::Arc;

use datafusion::arrow::array::*;
use datafusion::arrow::buffer::*;
use datafusion::arrow::datatypes::*;
use datafusion::prelude::SessionContext;
use marquetry_datafusion::{MarquetryFormat, MarquetryTable};

use crate::{Pair, query};

fn write(path: &std::path::Path, batch: RecordBatch, row_group: usize) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    engines::write(path, [Ok::<_, std::convert::Infallible>(batch)].into_iter(), row_group);
}

fn numbers(from: i64, rows: i64) -> RecordBatch {
    let ids = Int64Array::from_iter_values(from..from + rows);
    let names =
        StringArray::from_iter_values((from..from + rows).map(|i| format!("name {}", i % 97)));
    let halves = Float64Array::from_iter_values((from..from + rows).map(|i| i as f64 / 2.0));
    RecordBatch::try_from_iter([
        ("id", Arc::new(ids) as ArrayRef),
        ("name", Arc::new(names)),
        ("half", Arc::new(halves)),
    ])
    .unwrap()
}

#[tokio::test]
async fn each_row_comes_once_however_files_are_split() {
    let folder = tempfile::tempdir().unwrap();
    for i in 0..3 {
        let rows = 5000 + 1000 * i;
        write(&folder.path().join(format!("t/{i}.parquet")), numbers(i * 10_000, rows), 700);
    }
    for partitions in [1, 2, 3, 7, 16, 61] {
        let pair = Pair::new(partitions);
        pair.table("t", &folder.path().join("t")).await;
        assert_eq!(pair.same("select id, name from t").await, 18_000);
        pair.same("select count(*), sum(id), min(name), max(half) from t").await;
        pair.same("select count(*), sum(id) from t where id % 7 = 3 and half > 2000").await;
        assert_eq!(pair.same("select count(*) from (select 1 from t limit 12345)").await, 1);
        for limit in [0, 1, 699, 5001, 17_999, 20_000] {
            let sql = format!("select id from t limit {limit}");
            assert_eq!(engines::rows(&query(&pair.ours, &sql).await).len(), limit.min(18_000));
            let sql = format!("select id from t where half >= 100 limit {limit}");
            assert_eq!(engines::rows(&query(&pair.ours, &sql).await).len(), limit.min(17_800));
        }
        pair.same_order("select id from t order by id desc limit 10 offset 3").await;
    }
}

fn nested() -> RecordBatch {
    let n = 1000;
    let a = Int32Array::from_iter((0..n).map(|i| (i % 5 > 0).then_some(i)));
    let b = StringArray::from_iter((0..n).map(|i| (i % 7 > 0).then(|| format!("b{}", i % 13))));
    let deep = StructArray::from(vec![
        (Arc::new(Field::new("x", DataType::Int32, true)), Arc::new(a.clone()) as ArrayRef),
        (Arc::new(Field::new("y", DataType::Utf8, true)), Arc::new(b.clone()) as ArrayRef),
    ]);
    let fields: Fields = vec![
        Field::new("a", DataType::Int32, true),
        Field::new("b", DataType::Utf8, true),
        Field::new("deep", deep.data_type().clone(), true),
    ]
    .into();
    let nulls = NullBuffer::from_iter((0..n).map(|i| i % 11 > 0));
    let s = StructArray::new(fields, vec![Arc::new(a), Arc::new(b), Arc::new(deep)], Some(nulls));
    let mut list = ListBuilder::new(Int64Builder::new());
    let mut tags = ListBuilder::new(StringBuilder::new());
    for i in 0..n {
        for j in 0..i % 4 {
            list.values().append_option((j % 3 > 0).then_some(i64::from(i * j)));
            tags.values().append_value(format!("t{j}"));
        }
        list.append(i % 9 > 0);
        tags.append(true);
    }
    let id = Int32Array::from_iter_values(0..n);
    RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(id) as ArrayRef, false),
        ("s", Arc::new(s), true),
        ("l", Arc::new(list.finish()), true),
        ("tags", Arc::new(tags.finish()), true),
    ])
    .unwrap()
}

#[tokio::test]
async fn nested_columns_and_their_fields_are_read_and_filtered() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nested.parquet");
    write(&path, nested(), 130);
    let pair = Pair::new(3);
    pair.table("t", &path).await;
    for sql in [
        "select * from t",
        "select s from t",
        "select s['a'] from t",
        "select s['deep']['y'], id from t",
        "select s['b'], s['deep']['x'] + 1, l from t",
        "select s['b'], s from t where s['a'] > 500",
        "select id from t where s['deep']['y'] = 'b4'",
        "select id, s['b'] from t where s['b'] like 'b1%' and s['a'] is not null",
        "select id from t where s is null",
        "select id from t where s['a'] is null",
        "select id, l from t where array_length(l) = 2",
        "select tags, l[1] from t where id between 100 and 400",
        "select count(*) from t where l is not null",
    ] {
        pair.same(sql).await;
    }
}

/// Maps at the top and in a struct; some of their keys are names of fields in the file. A map that
/// is null has no entries, because DataFusion looks values up in it, too.
fn maps() -> RecordBatch {
    let n = 600;
    let map = |step: i64| {
        let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
        for i in 0..n {
            let is_valid = i % 9 > 0 && i % 11 > 0;
            for (at, key) in (0..).zip(["a", "key", "value", "m"]) {
                if is_valid && (i + step) % (at + 2) > 0 {
                    map.keys().append_value(key);
                    map.values().append_option((i % 5 > 0).then_some(i * step + at));
                }
            }
            map.append(is_valid).unwrap();
        }
        Arc::new(map.finish()) as ArrayRef
    };
    let (m, inner) = (map(1), map(7));
    let fields: Fields = vec![
        Field::new("n", DataType::Int64, true),
        Field::new("m", inner.data_type().clone(), true),
    ]
    .into();
    let numbers = Int64Array::from_iter((0..n).map(|i| (i % 11 > 0).then_some(i)));
    let nulls = numbers.nulls().cloned();
    let s = StructArray::new(fields, vec![Arc::new(numbers), inner], nulls);
    let id = Int64Array::from_iter_values(0..n);
    RecordBatch::try_from_iter_with_nullable([
        ("id", Arc::new(id) as ArrayRef, false),
        ("m", m, true),
        ("s", Arc::new(s), true),
    ])
    .unwrap()
}

#[tokio::test]
async fn values_of_maps_are_found_by_their_keys() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("maps.parquet");
    write(&path, maps(), 130);
    let pair = Pair::new(3);
    // DataFusion 55.2 reads no column of a file for a map in a struct.
    pair.stock.register_batch("t", maps()).unwrap();
    engines::register(&pair.ours, "t", &path).await.unwrap();
    for sql in [
        "select m['a'] from t",
        "select m['key'], m['value'], id from t",
        "select m['none'], m from t",
        "select s['m']['a'] from t",
        "select s['m']['m'] + 1, s['m']['key'], s['n'] from t",
        "select s['m']['value'], m['value'] from t where m['a'] > 100",
        "select id from t where s['m']['a'] = 728",
        "select s['n'] from t where s['m']['key'] is null",
    ] {
        assert!(pair.same(sql).await > 0, "{sql}");
    }
}

#[tokio::test]
async fn only_the_leaves_that_a_query_looks_at_are_fetched() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nested.parquet");
    write(&path, nested(), 1000);
    let pair = Pair::new(1);
    pair.table("t", &path).await;
    let mut scanned = Vec::new();
    for sql in ["select s['a'] from t", "select s from t", "select * from t"] {
        let plan = crate::plan(&pair.ours, sql).await;
        datafusion::physical_plan::collect(plan.clone(), pair.ours.task_ctx()).await.unwrap();
        scanned.push(crate::metric(&plan, "bytes_scanned"));
    }
    assert!(
        scanned[0] > 0 && scanned[0] * 2 < scanned[1] && scanned[1] < scanned[2],
        "{scanned:?}"
    );
}

#[tokio::test]
async fn folders_become_columns() {
    let folder = tempfile::tempdir().unwrap();
    for (year, kind, from) in [(2024, "a", 0), (2024, "b", 100), (2025, "a", 200), (2025, "b", 300)]
    {
        let path = folder.path().join(format!("t/year={year}/kind={kind}/f.parquet"));
        write(&path, numbers(from, 100), 40);
    }
    let pair = Pair::new(2);
    let sql = format!(
        "CREATE EXTERNAL TABLE t (id bigint, name varchar, half double, year int, kind varchar) \
         STORED AS PARQUET PARTITIONED BY (year, kind) LOCATION '{}/t/'",
        folder.path().display()
    );
    pair.run(&sql).await;
    for sql in [
        "select * from t",
        "select kind, year, count(*), sum(id) from t group by kind, year",
        "select id, year from t where year = 2025 and kind = 'a' and id % 2 = 0",
        "select id, kind from t where kind = 'b' or id < 10",
        "select kind || name, id + year from t where half > 70",
        "select year from t where kind > 'a' limit 500",
    ] {
        assert!(pair.same(sql).await > 0, "{sql}");
    }
    let state = pair.ours.state();
    let table = MarquetryTable::open_partitioned(
        &state,
        [format!("{}/t/", folder.path().display())],
        [("year".to_owned(), DataType::Int32), ("kind".to_owned(), DataType::Utf8)],
        MarquetryFormat::new(),
    );
    pair.ours.register_table("u", Arc::new(table.await.unwrap())).unwrap();
    let found = query(&pair.ours, "select count(*) from u where year = 2024 and kind = 'b'").await;
    assert_eq!(engines::rows(&found), ["100"]);
}

#[tokio::test]
async fn files_of_changed_schemas_are_one_table() {
    let folder = tempfile::tempdir().unwrap();
    let old = RecordBatch::try_from_iter([
        ("id", Arc::new(Int32Array::from_iter_values(0..300)) as ArrayRef),
        ("gone", Arc::new(StringArray::from_iter_values((0..300).map(|i| format!("g{i}"))))),
        ("price", Arc::new(Float32Array::from_iter_values((0..300).map(|i| i as f32)))),
    ]);
    let new = RecordBatch::try_from_iter([
        ("price", Arc::new(Float64Array::from_iter_values((0..300).map(f64::from))) as ArrayRef),
        ("id", Arc::new(Int64Array::from_iter_values(1000..1300))),
        ("added", Arc::new(StringArray::from_iter_values((0..300).map(|i| format!("a{}", i % 5))))),
    ]);
    write(&folder.path().join("t/1.parquet"), old.unwrap(), 70);
    write(&folder.path().join("t/2.parquet"), new.unwrap(), 70);
    let pair = Pair::new(2);
    let sql = format!(
        "CREATE EXTERNAL TABLE t (id bigint, added varchar, price double, gone varchar) \
         STORED AS PARQUET LOCATION '{}/t/'",
        folder.path().display()
    );
    pair.run(&sql).await;
    for sql in [
        "select * from t",
        "select id, added from t where added is null",
        "select id, gone from t where added = 'a3' or gone = 'g7'",
        "select id from t where id > 250 and price < 280.5",
        "select count(*), count(added), sum(id), max(price) from t",
        "select id from t where added <> 'a3'",
    ] {
        assert!(pair.same(sql).await > 0, "{sql}");
    }
}

#[tokio::test]
async fn strings_and_bytes_are_read_as_the_table_has_them() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let text = ["a", "bc", "", "déf", "a long string that no view holds inline"];
    let batch = RecordBatch::try_from_iter([
        ("bytes", Arc::new(BinaryArray::from_iter_values(text)) as ArrayRef),
        ("text", Arc::new(StringArray::from_iter_values(text))),
        ("large", Arc::new(LargeStringArray::from_iter_values(text))),
    ]);
    write(&path, batch.unwrap(), 2);
    let declared = [
        "(bytes varchar, text varchar, large varchar)",
        "(text varchar, bytes bytea, large varchar)",
    ];
    for (i, columns) in declared.iter().enumerate() {
        let pair = Pair::new(1);
        let sql = format!(
            "CREATE EXTERNAL TABLE t{i} {columns} STORED AS PARQUET LOCATION '{}'",
            path.display()
        );
        pair.run(&sql).await;
        pair.same(&format!(
            "select bytes, text, large from t{i} where text > 'a' and large <> 'bc'"
        ))
        .await;
    }
    for setting in ["binary_as_string = true", "schema_force_view_types = false"] {
        let pair = Pair::new(1);
        pair.run(&format!("set datafusion.execution.parquet.{setting}")).await;
        pair.table("t", &path).await;
        pair.same("select arrow_typeof(bytes), arrow_typeof(text), arrow_typeof(large) from t")
            .await;
        pair.same("select * from t where text like 'd%' or large = ''").await;
    }
}

#[tokio::test]
async fn one_file_is_a_table_in_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("any.name");
    write(&path, numbers(0, 100), 50);
    let ctx = SessionContext::new();
    let table = MarquetryTable::open(&ctx.state(), [path.to_str().unwrap()]).await.unwrap();
    ctx.register_table("t", Arc::new(table)).unwrap();
    let found = query(&ctx, "select sum(id) from t where name = 'name 7'").await;
    assert_eq!(engines::rows(&found), ["7"]);
}

#[tokio::test]
async fn files_of_ours_have_the_types_that_the_other_source_sees() {
    let folder = tempfile::tempdir().unwrap();
    let n = 100;
    let mut list = ListBuilder::new(Int32Builder::new());
    let mut map = MapBuilder::new(None, StringBuilder::new(), Int64Builder::new());
    for i in 0..n {
        (0..i % 3).for_each(|j| list.values().append_value(i * j));
        list.append(i % 7 > 0);
        map.keys().append_value(format!("k{i}"));
        map.values().append_value(i64::from(i));
        map.append(true).unwrap();
    }
    let seconds = || (0..n).map(|i| i64::from(i) * 1000);
    let at = TimestampSecondArray::from_iter_values(seconds());
    let utc = TimestampSecondArray::from_iter_values(seconds()).with_timezone("UTC");
    let zoned = TimestampSecondArray::from_iter_values(seconds()).with_timezone("Europe/Berlin");
    let clock = Time32SecondArray::from_iter_values(0..n);
    let data = RecordBatch::try_from_iter([
        ("id", Arc::new(Int32Array::from_iter_values(0..n)) as ArrayRef),
        ("list", Arc::new(list.finish())),
        ("map", Arc::new(map.finish())),
        ("at", Arc::new(at)),
        ("utc", Arc::new(utc)),
        ("zoned", Arc::new(zoned)),
        ("clock", Arc::new(clock)),
    ]);
    let pair = Pair::new(1);
    pair.ours.register_batch("data", data.unwrap()).unwrap();
    let path = folder.path().join("t.parquet");
    query(&pair.ours, &format!("COPY data TO '{}'", path.display())).await;
    pair.table("t", &path).await;
    for column in ["list", "map", "at", "utc", "zoned", "clock"] {
        pair.same(&format!("select distinct arrow_typeof({column}) from t")).await;
        assert_eq!(pair.same(&format!("select id, {column} from t")).await, 100);
    }
    for (column, literal) in [
        ("at", "timestamp '1970-01-01T01:00:00'"),
        ("utc", "timestamp '1970-01-01T01:00:00Z'"),
        ("clock", "'00:00:33'"),
    ] {
        let sql = format!("select id, {column} from t where {column} > {literal}");
        assert!(pair.same(&sql).await > 10, "{sql}");
        pair.same(&format!("select min({column}), max({column}) from t")).await;
        pair.same_order(&format!("select {column} from t order by {column} desc limit 3")).await;
    }
    // A table that was declared with other names of items loses none.
    let sql = format!(
        "CREATE EXTERNAL TABLE declared (id int, list int[]) STORED AS PARQUET LOCATION '{}'",
        path.display()
    );
    pair.run(&sql).await;
    pair.same("select distinct arrow_typeof(list) from declared").await;
    assert_eq!(pair.same("select * from declared").await, 100);
}
