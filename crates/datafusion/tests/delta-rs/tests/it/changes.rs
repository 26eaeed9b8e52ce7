//! DELETE, UPDATE, MERGE and compaction by delta-rs in a session with the rule.

use std::path::Path;
use std::sync::Arc;

use datafusion::logical_expr::{col, lit};
use deltalake_core::DeltaTable;

use crate::{Rule, Session, tables};

/// What changes a table.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Change {
    Delete,
    Update,
    Merge { is_streaming: bool },
    Compact,
}

impl Change {
    pub(crate) async fn run(self, session: &Session, table: DeltaTable) -> DeltaTable {
        let state = Arc::new(session.ctx.state());
        match self {
            Self::Delete => {
                let builder = table.delete().with_session_state(state);
                let found = col("id").between(lit(1500), lit(2600)).and(col("note").is_null());
                builder.with_predicate(found).await.expect("a deletion").0
            }
            Self::Update => {
                let builder = table.update().with_session_state(state);
                let found = col("part").eq(lit("south")).and(col("amount").gt(lit(300.0)));
                let builder = builder.with_predicate(found).with_update("note", lit("more"));
                builder.with_update("added", col("added") + lit(10)).await.expect("an update").0
            }
            Self::Merge { is_streaming } => merge(session, table, is_streaming).await,
            Self::Compact => {
                table.optimize().with_session_state(state).await.expect("a compaction").0
            }
        }
    }
}

/// Updates, deletes and inserts by rows of a second table.
async fn merge(session: &Session, table: DeltaTable, is_streaming: bool) -> DeltaTable {
    let source = "select value * 3 as id, case when value % 2 = 0 then 'north' end as part, \
                  'merged ' || value as note, date '2026-07-01' as day \
                  from generate_series(1200, 2300)";
    let source = session.ctx.sql(source).await.expect("rows");
    let on = col("target.id").eq(col("source.id"));
    let builder = table
        .merge(source, on)
        .with_session_state(Arc::new(session.ctx.state()))
        .with_source_alias("source")
        .with_target_alias("target")
        .with_streaming(is_streaming)
        .when_matched_delete(|delete| delete.predicate(col("target.note").is_null()))
        .expect("a clause")
        .when_matched_update(|update| update.update("note", col("source.note")))
        .expect("a clause")
        .when_not_matched_insert(|insert| {
            let insert = insert.set("id", col("source.id")).set("part", col("source.part"));
            insert.set("note", col("source.note")).set("day", col("source.day"))
        })
        .expect("a clause");
    builder.await.expect("a merge").0
}

/// The rows of a table, as the stock source reads them.
pub(crate) async fn all_rows(folder: &Path) -> Vec<String> {
    let session = Session::new(Rule::No);
    session.register("t", &tables::open(folder).await).await;
    session.rows("select * from t").await
}

#[tokio::test]
async fn changes_leave_the_same_table() {
    let changes = [
        Change::Delete,
        Change::Update,
        Change::Merge { is_streaming: false },
        Change::Merge { is_streaming: true },
        Change::Compact,
    ];
    let first = tempfile::tempdir().expect("a folder");
    tables::write(first.path()).await;
    let before = all_rows(first.path()).await;
    for change in changes {
        let mut found = Vec::new();
        for rule in [Rule::No, Rule::First, Rule::Last] {
            let folder = tempfile::tempdir().expect("a folder");
            tables::copy(first.path(), folder.path());
            let session = Session::new(rule);
            let table = change.run(&session, tables::open(folder.path()).await).await;
            let scans = session.scans.take();
            match rule {
                Rule::No => assert!(scans.ours == 0 && scans.stock > 0, "{change:?}: {scans:?}"),
                _ => assert!(scans.ours > 0 && scans.stock == 0, "{change:?}: {scans:?}"),
            }
            session.register("t", &table).await;
            let rows = session.rows("select * from t").await;
            assert!(rows == all_rows(folder.path()).await, "{change:?}, {rule:?}");
            assert_eq!(rows == before, matches!(change, Change::Compact), "{change:?}, {rule:?}");
            // Rows that go are left out of new files: delta-rs writes no deletion vectors.
            let log = tables::log(folder.path());
            assert!(log.values().all(|text| !text.contains("deletionVector\":{")), "{change:?}");
            found.push(rows);
        }
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{change:?}");
    }
}

#[tokio::test]
async fn a_row_that_two_rows_match_is_refused() {
    // Found by the ordinals of the rows of the target in their files.
    for rule in [Rule::No, Rule::First] {
        let folder = tempfile::tempdir().expect("a folder");
        let table = tables::write(folder.path()).await;
        let session = Session::new(rule);
        let source = "select value / 2 as id, 'twice' as note from generate_series(3000, 3001)";
        let source = session.ctx.sql(source).await.expect("rows");
        let builder = table
            .merge(source, col("target.id").eq(col("source.id")))
            .with_session_state(Arc::new(session.ctx.state()))
            .with_source_alias("source")
            .with_target_alias("target")
            .when_matched_update(|update| update.update("note", col("source.note")))
            .expect("a clause");
        let error = builder.await.map(drop).expect_err("two rows match one").to_string();
        assert!(error.contains("match"), "{error}");
        let scans = session.scans.take();
        assert_eq!(scans.ours > 0, rule == Rule::First, "{scans:?}");
    }
}
