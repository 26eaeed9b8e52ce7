//! Tests all queries of TPC-H on small tables, and queries on the file of the bench, if it is
//! named.

use engines::{TPCH_TABLES, hits_queries, tpch_queries, write_tpch};

use crate::Pair;

#[tokio::test]
async fn all_queries_of_tpch_give_the_same_rows() {
    let folder = tempfile::tempdir().unwrap();
    write_tpch(folder.path(), 0.02);
    for partitions in [1, 2] {
        let pair = Pair::new(partitions);
        for table in TPCH_TABLES {
            pair.table(table, &folder.path().join(format!("{table}.parquet"))).await;
        }
        let queries = tpch_queries();
        assert_eq!(queries.len(), 22);
        for (name, sql) in queries {
            println!("{name}");
            pair.same_order(&sql).await;
        }
    }
}

/// `ENGINES_HITS` names the file.
#[tokio::test]
#[ignore = "ENGINES_HITS names a file of the hits table, which is not part of the repository"]
async fn queries_on_hits_give_the_same_rows() {
    let path = std::env::var("ENGINES_HITS").expect("ENGINES_HITS names the file");
    let pair = Pair::new(2);
    pair.table("hits", path.as_ref()).await;
    for (name, sql) in hits_queries() {
        println!("{name}");
        pair.same_order(&sql).await;
    }
}
