//! Rows of tables, with the rule and without.

use datafusion::prelude::SessionConfig;
use fastrand::Rng;

use crate::{Rule, Scans, Session, tables};

const QUERIES: [&str; 20] = [
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
            session.scans.take();
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
