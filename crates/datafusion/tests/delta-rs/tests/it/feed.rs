//! The change data feed of a table.

use std::sync::Arc;

use datafusion::logical_expr::{col, lit};
use deltalake_core::delta_datafusion::DeltaCdfTableProvider;
use deltalake_core::{DeltaTable, TableProperty};

use crate::{Rule, Session, tables};

#[tokio::test]
async fn changes_of_rows_are_those_of_the_stock_source() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = tables::write(folder.path()).await;
    let property = TableProperty::EnableChangeDataFeed.as_ref().to_owned();
    let properties = [(property, "true".to_owned())].into();
    let table = table.set_tbl_properties().with_properties(properties).await.expect("a property");
    let deleted = table.delete().with_predicate(col("id").between(lit(1500), lit(1600)));
    let (table, _) = deleted.await.expect("a deletion");
    let updated = table.update().with_predicate(col("part").eq(lit("south")));
    let (table, _) = updated.with_update("note", lit("changed")).await.expect("an update");
    let table = tables::append(table, 6000, true).await;
    let (table, _) =
        table.delete().with_predicate(col("part").eq(lit("east"))).await.expect("a deletion");
    let feed = |table: &DeltaTable| {
        let feed = table.clone().scan_cdf().with_starting_version(3);
        Arc::new(DeltaCdfTableProvider::try_new(feed).expect("a feed"))
    };
    let sessions = [Rule::No, Rule::First, Rule::Last].map(Session::new);
    for session in &sessions {
        session.ctx.register_table("feed", feed(&table)).expect("a name");
    }
    for sql in [
        "select * from feed",
        "select id, _change_type, _commit_version from feed where id < 1700 and id > 1490",
        "select _change_type, part, count(*), sum(id) from feed group by _change_type, part",
        "select id, note from feed where part = 'south' and _change_type = 'update_postimage'",
        "select id from feed where _commit_version > 3 and part is null",
        "select count(*) from feed where note = 'changed' and added = 3",
        "select count(*) from feed where _change_type = 'delete' and day > date '2026-01-15'",
    ] {
        let expected = sessions[0].rows(sql).await;
        let scans = sessions[0].scans.take();
        assert!(!expected.is_empty() && scans.stock > 0, "{sql}: {scans:?}");
        for session in &sessions[1..] {
            let found = session.rows(sql).await;
            assert!(found == expected, "{sql}:\n{}", session.plan(sql).await);
            let of_session = session.scans.take();
            assert!(of_session.ours > 0, "{sql}: {of_session:?}");
        }
    }
}
