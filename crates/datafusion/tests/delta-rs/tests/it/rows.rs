//! Rows of tables, with the rule and without.

use datafusion::prelude::SessionConfig;
use deltalake_core::kernel::{DataType, StructField};
use deltalake_core::{DeltaTable, TableProperty};
use fastrand::Rng;

use crate::{Rule, Scans, Session, tables};

const QUERIES: [&str; 30] = [
    "select * from t",
    "select id, added from t",
    "select place, tags from t",
    "select place['x'], place['name'] from t where place['x'] > 1500",
    "select count(*) from t",
    "select count(*), count(part), count(amount), count(added), min(id), max(day) from t",
    "select id, note from t where id between 1990 and 2010",
    "select id from t where part = 'south' and amount > 100",
    "select id from t where part is null and note = 'note 7'",
    "select count(*) from t where part in ('north', 'east')",
    "select id, added from t where added = 2",
    "select count(*) from t where added is null",
    "select id from t where note is null and day = date '2026-01-20'",
    "select id from t where array_length(tags) = 3 and id % 100 = 1",
    "select part, count(*), sum(id), min(note), max(added) from t group by part",
    "select day, avg(id), max(amount) from t where part <> 'north' group by day",
    "select t.id, u.amount from t join t u on t.id = u.id + 1 where u.note = 'note 42'",
    "select distinct part from t",
    "select id, day from t order by amount desc nulls last, id limit 20",
    "select count(*) from t where id > 5990 or place is null",
    "select id, place['z'] from t where place['z'] = 5",
    "select id, place['z'] from t where place['z'] is null and id % 50 = 0",
    "select id, price, at, raw from t where price between 7000 and 7100",
    "select id from t where at >= timestamp '1970-01-01T01:30:00Z' and is_even",
    "select id, counts['k'] from t where counts['k'] > 5900",
    "select raw, count(*), max(at), sum(price) from t group by raw",
    "select id from t where at = timestamp '1970-01-01T01:23:20.015Z'",
    "select count(*) from (select id, part from t limit 2500)",
    "select t.id, v.n from t join (values (3, 'three'), (4001, 'more')) as v (k, n) on t.id = v.k",
    "select id from t where note in ('note 1', 'note 2', 'note 3') and not is_even",
];

#[tokio::test]
async fn rows_are_those_of_the_stock_source() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = tables::write(folder.path()).await;
    let stock = Session::new(Rule::No);
    stock.register("t", &table).await;
    let sessions = [
        Session::new(Rule::First),
        Session::new(Rule::Last),
        Session::with_config(Rule::First, SessionConfig::new()),
        Session::with_config(Rule::First, SessionConfig::new().with_batch_size(70)),
    ];
    for session in &sessions {
        session.register("t", &table).await;
    }
    for sql in QUERIES {
        let expected = stock.rows(sql).await;
        assert!(!expected.is_empty(), "{sql}");
        let scans = stock.scans.take();
        for (at, session) in sessions.iter().enumerate() {
            let found = session.rows(sql).await;
            assert!(found == expected, "{sql}, session {at}:\n{}", session.plan(sql).await);
            assert!(!found.is_empty(), "{sql}");
            let of_session = session.scans.take();
            let all_ours = Scans { ours: scans.stock, stock: 0 };
            assert_eq!(of_session, all_ours, "{sql}, session {at}:\n{}", session.plan(sql).await);
        }
    }
}

#[tokio::test]
async fn filters_reach_our_scan() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = tables::write(folder.path()).await;
    let session = Session::new(Rule::First);
    session.register("t", &table).await;
    let plan = session.plan("select id from t where id between 1990 and 2010").await;
    assert!(plan.contains("file_type=marquetry") && plan.contains("predicate="), "{plan}");
    // The bounds that a join learns.
    let sql = "select t.id from t join t u on t.id = u.id where u.note = 'note 42' and u.id < 500";
    let plan = session.plan(sql).await;
    assert!(plan.contains("DynamicFilter") && plan.contains("dynamic_rg_pruning"), "{plan}");
    assert_eq!(session.rows(sql).await.len(), 5);
}

#[tokio::test]
async fn the_file_of_a_row_and_columns_of_other_names_are_the_same() {
    let folder = tempfile::tempdir().expect("a folder");
    let mapped = DeltaTable::try_from_url(tables::url_of(folder.path())).await.expect("a folder");
    let fields = [
        ("id", DataType::LONG, false),
        ("part", DataType::STRING, true),
        ("note", DataType::STRING, true),
    ];
    let create = mapped
        .create()
        .with_columns(fields.map(|(name, of, is_null)| StructField::new(name, of, is_null)))
        .with_partition_columns(["part"])
        .with_configuration_property(TableProperty::ColumnMappingMode, Some("name"));
    let rows = "select value as id, case value % 2 when 0 then 'north' end as part, \
                case when value % 3 <> 0 then 'note ' || (value % 50) end as note \
                from generate_series(1, 3000)";
    let mapped = create.await.expect("a table").write(tables::batches(rows).await).await;
    let mapped = mapped.expect("rows");
    let log = tables::log(folder.path());
    assert!(log.values().any(|text| text.contains("columnMapping.physicalName")));
    let other = tempfile::tempdir().expect("a folder");
    let table = tables::write(other.path()).await;
    let sessions = [Rule::No, Rule::First, Rule::Last].map(Session::new);
    for session in &sessions {
        session.register("m", &mapped).await;
        table.update_datafusion_session(&session.ctx.state()).expect("a store");
        let provider = table.table_provider().with_file_column("file").await.expect("a provider");
        session.ctx.register_table("t", provider).expect("a name");
    }
    for sql in [
        "select * from m",
        "select id from m where note = 'note 7'",
        "select part, min(note), max(id) from m where id > 2000 group by part",
        "select m.id from m join t on m.id = t.id + 1 where t.note = 'note 42'",
        "select id, file from t where id % 100 = 0",
        "select file, count(*), max(id) from t where amount is not null group by file",
    ] {
        let expected = sessions[0].rows(sql).await;
        let scans = Scans { ours: sessions[0].scans.take().stock, stock: 0 };
        assert!(!expected.is_empty() && scans.ours > 0, "{sql}");
        for session in &sessions[1..] {
            assert!(session.rows(sql).await == expected, "{sql}:\n{}", session.plan(sql).await);
            assert_eq!(session.scans.take(), scans, "{sql}");
        }
    }
}

#[tokio::test]
async fn random_filters_find_the_same_rows() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = tables::write(folder.path()).await;
    let (stock, ours) = (Session::new(Rule::No), Session::new(Rule::First));
    stock.register("t", &table).await;
    ours.register("t", &table).await;
    let cases = std::env::var("MARQUETRY_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(60);
    let seed = 59_551;
    let mut rng = Rng::with_seed(seed);
    let mut found = 0;
    for case in 0..cases {
        let sql = format!("select id, note, added from t where {}", filter(&mut rng, 2));
        let expected = stock.rows(&sql).await;
        found += expected.len();
        assert!(ours.rows(&sql).await == expected, "seed {seed}, case {case}: {sql}");
    }
    assert!(found > cases, "{found} rows");
    assert_eq!(ours.scans.take().stock, 0);
}

fn filter(rng: &mut Rng, depth: u32) -> String {
    if depth > 0 && rng.u8(0..3) > 0 {
        let (left, right) = (filter(rng, depth - 1), filter(rng, depth - 1));
        return match rng.u8(0..3) {
            0 => format!("({left} and {right})"),
            1 => format!("({left} or {right})"),
            _ => format!("not ({left})"),
        };
    }
    let order = ["<", "<=", "=", "<>", ">=", ">"][rng.usize(..6)];
    match rng.u8(0..9) {
        0 => format!("id {order} {}", rng.i64(-10..6010)),
        1 => format!("amount {order} {}", rng.i64(0..2000)),
        2 => format!("note {order} 'note {}'", rng.u8(0..100)),
        3 => format!("part {order} '{}'", ["north", "south", "east", "west"][rng.usize(..4)]),
        4 => format!("added {order} {}", rng.u8(0..4)),
        5 => format!("day {order} date '2026-01-01' + {}", rng.u8(0..60)),
        6 => format!("place['x'] {order} {}", rng.i64(0..3000)),
        7 => {
            let column = ["part", "added", "amount", "note", "tags", "place"][rng.usize(..6)];
            format!("{column} is {}null", if rng.bool() { "not " } else { "" })
        }
        _ => format!("id % {} = 0", rng.u8(2..60)),
    }
}
