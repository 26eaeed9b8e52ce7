//! Tests expressions that can fail for some rows, which other parts of the filter reject.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::types::Int32Type;
use datafusion::arrow::array::*;
use datafusion::prelude::SessionConfig;

use crate::{Pair, query};

const ROWS: i32 = 30_000;

/// Every tenth row is one of those that `kind = 'good'` leaves: no expression fails for it.
fn table() -> RecordBatch {
    let good = |i: i32| i % 10 == 3;
    let rows = || 0..ROWS;
    let zero = rows().map(|i| if good(i) { 1 + i % 7 } else { i % 3 });
    let least = rows().map(|i| if good(i) { -(i % 5) } else { i32::MIN + i % 2 });
    let text = rows().map(|i| if good(i) { (i % 9).to_string() } else { format!("x{i}") });
    let lists = rows().map(|i| Some(vec![Some(1); if good(i) { 2 } else { (i % 2) as usize }]));
    RecordBatch::try_from_iter([
        ("id", Arc::new(Int32Array::from_iter_values(rows())) as ArrayRef),
        (
            "kind",
            Arc::new(StringArray::from_iter_values(
                rows().map(|i| if good(i) { "good" } else { "bad" }),
            )),
        ),
        ("zero", Arc::new(Int32Array::from_iter_values(zero))),
        ("least", Arc::new(Int32Array::from_iter_values(least))),
        ("text", Arc::new(StringArray::from_iter_values(text))),
        ("list", Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists))),
    ])
    .unwrap()
}

fn write(path: &Path, row_group: usize) {
    engines::write(path, [Ok::<_, std::convert::Infallible>(table())].into_iter(), row_group);
}

/// Filters with a part that fails for some rows which another part rejects, and how many rows pass.
fn filters() -> Vec<(&'static str, usize)> {
    let of_good = |test: fn(i32) -> bool| (0..ROWS).filter(|i| i % 10 == 3 && test(*i)).count();
    vec![
        ("kind = 'good' and 100 / zero > 30", of_good(|i| 100 / (1 + i % 7) > 30)),
        ("100 / zero > 30 and kind = 'good'", of_good(|i| 100 / (1 + i % 7) > 30)),
        // A conjunct that rejects all rows at once would otherwise come first.
        ("kind like '%oo%' and 100 / zero > 1000", 0),
        ("kind like '%oo%' and abs(least) > 2", of_good(|i| i % 5 > 2)),
        (
            "kind = 'good' and cast(text as int) < 4 and 7 % zero = 1",
            of_good(|i| i % 9 < 4 && 7 % (1 + i % 7) == 1),
        ),
        ("id % 10 = 3 and kind = 'good' and cast(text as int) = 4", of_good(|i| i % 9 == 4)),
        ("kind = 'good' and 4 / array_length(list) = 2", of_good(|_| true)),
        (
            "kind = 'good' and 4 / array_length(list) = 2 and 100 / zero > 30",
            of_good(|i| 100 / (1 + i % 7) > 30),
        ),
        (
            "id < 100 and (zero = 0 or 100 / zero > 60)",
            (0..100)
                .filter(|i| {
                    let zero = if i % 10 == 3 { 1 + i % 7 } else { i % 3 };
                    zero == 0 || 100 / zero > 60
                })
                .count(),
        ),
    ]
}

#[tokio::test]
async fn what_can_fail_is_evaluated_last_and_only_for_rows_that_are_left() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    for (row_group, partitions, batch_rows) in [(30_000, 1, 8192), (30_000, 2, 500), (1000, 3, 100)]
    {
        write(&path, row_group);
        let config = SessionConfig::new().with_target_partitions(partitions);
        let config = config.with_repartition_file_min_size(1).with_batch_size(batch_rows);
        let ctx = engines::ours(config);
        engines::register(&ctx, "t", &path).await.unwrap();
        for (filter, expected) in filters() {
            for columns in ["id", "*", "zero, text"] {
                let sql = format!("select {columns} from t where {filter}");
                let found = query(&ctx, &sql).await;
                let found: usize = found.iter().map(RecordBatch::num_rows).sum();
                assert_eq!(found, expected, "{sql}");
            }
        }
    }
}

#[tokio::test]
async fn what_fails_for_a_row_that_passes_all_else_fails() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write(&path, 1000);
    let (ctx, stock) = (engines::ours(SessionConfig::new()), engines::stock(SessionConfig::new()));
    engines::register(&ctx, "t", &path).await.unwrap();
    engines::register(&stock, "t", &path).await.unwrap();
    for (filter, message) in [
        ("kind = 'bad' and 100 / zero > 3", "Divide by zero"),
        ("kind = 'bad' and cast(text as int) = 4", "Cast error"),
    ] {
        let sql = format!("select id from t where {filter}");
        let error = ctx.sql(&sql).await.unwrap().collect().await.unwrap_err().to_string();
        assert!(error.contains(message), "{sql}: {error}");
        // DataFusion's message, without a word of refused data.
        let stock = stock.sql(&sql).await.unwrap().collect().await.unwrap_err().to_string();
        let kind = |error: &str| error.split(':').next().unwrap().to_owned();
        assert_eq!(kind(&error), kind(&stock), "{error}");
        assert!(!error.contains("refused"), "{error}");
    }
}

#[tokio::test]
async fn partition_values_for_which_an_expression_fails_are_left_out_first() {
    let folder = tempfile::tempdir().unwrap();
    for part in [0, 4] {
        let folder = folder.path().join(format!("t/p={part}"));
        std::fs::create_dir_all(&folder).unwrap();
        write(&folder.join("a.parquet"), 30_000);
    }
    let pair = Pair::new(1);
    let sql = format!(
        "CREATE EXTERNAL TABLE t (id int, p int) STORED AS PARQUET PARTITIONED BY (p) \
         LOCATION '{}/t/'",
        folder.path().display()
    );
    pair.run(&sql).await;
    assert_eq!(pair.same("select id, p from t where p <> 0 and 100 / p = 25").await, 30_000);
}

#[tokio::test]
async fn a_column_with_one_value_for_which_an_expression_fails_is_asked_last() {
    let folder = tempfile::tempdir().unwrap();
    let file = |kind: &str, zero: i32| {
        let batch = RecordBatch::try_from_iter([
            ("kind", Arc::new(StringArray::from_iter_values(vec![kind; 100])) as ArrayRef),
            ("zero", Arc::new(Int32Array::from_iter_values(vec![zero; 100]))),
        ]);
        let path = folder.path().join(format!("t/{zero}.parquet"));
        engines::write(&path, [batch].into_iter(), 100);
    };
    std::fs::create_dir_all(folder.path().join("t")).unwrap();
    file("bad", 0);
    file("good", 2);
    // With statistics of the files, the column is a literal in each of them.
    for statistics in [true, false] {
        let config = SessionConfig::new().with_collect_statistics(statistics);
        let ctx = engines::ours(config);
        engines::register(&ctx, "t", &folder.path().join("t")).await.unwrap();
        for filter in
            ["kind like '%oo%' and 100 / zero > 30", "100 / zero > 30 and kind like '%oo%'"]
        {
            let sql = format!("select kind, 100 / zero from t where {filter}");
            let found = query(&ctx, &sql).await;
            assert_eq!(engines::rows(&found), vec!["good|50"; 100], "{sql}");
        }
    }
}
