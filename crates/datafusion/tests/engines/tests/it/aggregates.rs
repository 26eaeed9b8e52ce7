//! Tests bounds that DataFusion learns for one aggregate while other aggregates need more rows.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::types::Int32Type;
use datafusion::arrow::array::*;
use datafusion::execution::SessionStateBuilder;
use datafusion::physical_optimizer::optimizer::PhysicalOptimizer;
use datafusion::physical_plan::collect;
use datafusion::prelude::{ParquetReadOptions, SessionConfig, SessionContext};
use marquetry_datafusion::{MarquetryTable, ReplaceParquet};

use crate::{metric, plan, query, text};

const ROWS: i64 = 20_000;

/// The greatest `a` comes first, and the least values of the others come last.
fn write(path: &Path) {
    let falling = || (0..ROWS).rev();
    let words: Vec<String> = falling().map(|i| format!("d{:02}", i / 1000)).collect();
    let dictionary: DictionaryArray<Int32Type> = words.iter().map(String::as_str).collect();
    let small = falling().map(|i| i32::try_from(i).unwrap());
    let batch = RecordBatch::try_from_iter([
        ("a", Arc::new(Int64Array::from_iter_values(falling())) as ArrayRef),
        ("b", Arc::new(Int64Array::from_iter_values(falling()))),
        ("c", Arc::new(Int32Array::from_iter_values(small))),
        ("d", Arc::new(dictionary)),
        ("up", Arc::new(Int64Array::from_iter_values(0..ROWS))),
        ("late", Arc::new(Int64Array::from_iter(falling().map(|i| (i < 10).then_some(i))))),
    ]);
    engines::write(path, [batch].into_iter(), 1000);
}

/// Queries with an aggregate of a bare column, and another that is not bare or has no bound yet;
/// and their results.
const QUERIES: [(&str, &str); 8] = [
    ("select max(a), min(b + 1) from t", "19999|1"),
    ("select max(a), min(cast(c as bigint)) from t", "19999|0"),
    ("select max(a), min(d) from t", "19999|d00"),
    ("select max(a), min(arrow_cast(d, 'Utf8')) from t", "19999|d00"),
    ("select max(a), min(late) from t", "19999|0"),
    ("select max(a), min(b) filter (where b < 10) from t", "19999|0"),
    ("select min(up), min(b + 1), max(a) from t", "0|1|19999"),
    ("select max(a2), min(b2 + 1) from (select a * 2 as a2, b * 2 as b2 from t)", "39998|1"),
];

/// Small batches, so that something is learned before a row group ends.
fn config(partitions: usize) -> SessionConfig {
    SessionConfig::new()
        .with_target_partitions(partitions)
        .with_repartition_file_min_size(1)
        .with_batch_size(100)
        .with_collect_statistics(false)
}

async fn holds(session: &SessionContext, how: &str) {
    for (sql, expected) in QUERIES {
        let found = engines::rows(&query(session, sql).await);
        let plan = text(&plan(session, sql).await);
        assert!(plan.contains("file_type=marquetry"), "{how}: {plan}");
        assert_eq!(found, [expected], "{how}: {sql}\n{plan}");
    }
}

#[tokio::test]
async fn a_bound_of_one_aggregate_loses_no_rows_of_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write(&path);
    let name = path.to_str().unwrap();
    for partitions in [1, 2] {
        let installed = engines::ours(config(partitions));
        engines::register(&installed, "t", &path).await.unwrap();
        holds(&installed, "installed").await;
        let on = "set datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown = true";
        query(&installed, on).await;
        holds(&installed, "installed, and the option turned on again").await;
        let table = SessionContext::new_with_config(config(partitions));
        let opened = MarquetryTable::open(&table.state(), [name]).await.unwrap();
        table.register_table("t", Arc::new(opened)).unwrap();
        holds(&table, "a table").await;
        for in_front in [true, false] {
            let mut rules = PhysicalOptimizer::new().rules;
            let at = if in_front { 0 } else { rules.len() };
            rules.insert(at, Arc::new(ReplaceParquet::new()));
            let state = SessionStateBuilder::new_with_default_features();
            let state = state.with_config(config(partitions)).with_physical_optimizer_rules(rules);
            let swapped = SessionContext::new_with_state(state.build());
            swapped.register_parquet("t", name, ParquetReadOptions::default()).await.unwrap();
            holds(&swapped, "swapped").await;
        }
    }
}

#[tokio::test]
async fn the_first_rows_of_an_order_are_found_early_whatever_aggregates_may_learn() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write(&path);
    let session = SessionContext::new_with_config(config(1));
    let opened = MarquetryTable::open(&session.state(), [path.to_str().unwrap()]).await.unwrap();
    session.register_table("t", Arc::new(opened)).unwrap();
    for (order, expected) in [("a", "0"), ("a desc", "19999"), ("a desc nulls last", "19999")] {
        let sql = format!("select a from t order by {order} limit 1");
        let plan = plan(&session, &sql).await;
        let found = collect(Arc::clone(&plan), session.task_ctx()).await.unwrap();
        assert_eq!(engines::rows(&found), [expected], "{sql}");
        let pruned = metric(&plan, "row_groups_pruned_dynamic_filter");
        assert!(pruned > 15, "{sql}: {pruned}\n{}", text(&plan));
    }
}
