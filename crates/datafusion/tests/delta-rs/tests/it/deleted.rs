//! Tables with deletion vectors, which other writers than delta-rs make.

use std::path::Path;

use deltalake_core::DeltaTable;
use deltalake_core::kernel::TableFeatures;

use crate::changes::{Change, all_rows};
use crate::{Rule, Scans, Session, tables};

/// Deletes rows of the first file by a deletion vector in the log.
async fn delete(folder: &Path, table: DeltaTable, rows: &[u16]) -> DeltaTable {
    let feature = table.add_feature().with_feature(TableFeatures::DeletionVectors);
    let table = feature.with_allow_protocol_versions_increase(true).await.expect("a feature");
    let version = table.version().expect("a version");
    let log = tables::log(folder);
    let add = log[&0].lines().chain(log[&1].lines()).find(|line| line.starts_with("{\"add\":"));
    let add = add.expect("a file").strip_prefix("{\"add\":").expect("a file");
    let add = add.strip_suffix("}}").expect("an action");
    let path = add.split("\"path\":\"").nth(1).expect("a path").split('"').next().expect("a path");
    let (text, bytes) = vector(rows);
    let vector = format!(
        "\"deletionVector\":{{\"storageType\":\"i\",\"pathOrInlineDv\":\"{text}\",\
         \"sizeInBytes\":{bytes},\"cardinality\":{}}}",
        rows.len()
    );
    let remove = format!(
        "{{\"remove\":{{\"path\":\"{path}\",\"deletionTimestamp\":0,\"dataChange\":true}}}}"
    );
    let text = format!("{remove}\n{{\"add\":{add},{vector}}}}}\n");
    let path = folder.join(format!("_delta_log/{:020}.json", version + 1));
    std::fs::write(path, text).expect("a version");
    tables::open(folder).await
}

/// A vector in the portable form, in Z85: an even number of rows, so that its length is a multiple
/// of 4.
fn vector(rows: &[u16]) -> (String, usize) {
    let count = u16::try_from(rows.len() - 1).expect("few rows");
    let mut bytes = Vec::new();
    // The magic number, one bitmap, its upper half; no runs, one container, its key and its
    // cardinality less one, and where it begins.
    for word in [1_681_511_377u32, 1, 0, 0, 12_346, 1] {
        bytes.extend(word.to_le_bytes());
    }
    bytes.extend([0, 0]);
    bytes.extend(count.to_le_bytes());
    bytes.extend(16u32.to_le_bytes());
    bytes.extend(rows.iter().flat_map(|row| row.to_le_bytes()));
    let digits =
        b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#";
    let mut text = String::new();
    for word in bytes.chunks_exact(4) {
        let word = u32::from_be_bytes(word.try_into().expect("4 bytes"));
        let powers = [85u32.pow(4), 85u32.pow(3), 85 * 85, 85, 1];
        text.extend(powers.map(|power| char::from(digits[(word / power % 85) as usize])));
    }
    (text, bytes.len())
}

#[tokio::test]
async fn a_scan_with_deletion_vectors_stays_the_stock_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let table = tables::write(folder.path()).await;
    let before = Session::new(Rule::No);
    before.register("t", &table).await;
    let before = before.rows("select * from t").await;
    let table = delete(folder.path(), table, &[0, 3, 4, 250]).await;
    let stock = Session::new(Rule::No);
    stock.register("t", &table).await;
    assert_eq!(stock.rows("select * from t").await.len(), before.len() - 4);
    // One of the files with vectors, and one of the others.
    let both = Scans { ours: 0, stock: 2 };
    assert_eq!(stock.scans.take(), both, "{}", stock.plan("select * from t").await);
    for rule in [Rule::First, Rule::Last] {
        let session = Session::new(rule);
        session.register("t", &table).await;
        for sql in [
            "select * from t",
            "select count(amount) from t",
            "select id from t where amount > 300",
            "select part, count(*), max(added) from t group by part",
        ] {
            let (found, scans) = (session.rows(sql).await, session.scans.take());
            assert!(found == stock.rows(sql).await, "{sql}, {rule:?}");
            assert_eq!(scans, both, "{sql}, {rule:?}");
        }
        // The other tables of a query are still read by us.
        let other = tempfile::tempdir().expect("a folder");
        session.register("u", &tables::write(other.path()).await).await;
        let sql = "select count(*) from t join u on t.id = u.id";
        assert_eq!(session.rows(sql).await, [format!("{}", before.len() - 4)], "{rule:?}");
        assert_eq!(session.scans.take(), Scans { ours: 1, stock: 2 }, "{rule:?}");
    }
}

#[tokio::test]
async fn changes_of_a_table_with_deletion_vectors_are_the_same() {
    let first = tempfile::tempdir().expect("a folder");
    let table = tables::write(first.path()).await;
    delete(first.path(), table, &[0, 3, 4, 250]).await;
    let before = all_rows(first.path()).await;
    for change in [Change::Delete, Change::Update, Change::Merge { is_streaming: false }] {
        let mut found = Vec::new();
        for rule in [Rule::No, Rule::First, Rule::Last] {
            let folder = tempfile::tempdir().expect("a folder");
            tables::copy(first.path(), folder.path());
            let session = Session::new(rule);
            change.run(&session, tables::open(folder.path()).await).await;
            found.push(all_rows(folder.path()).await);
        }
        assert!(found.windows(2).all(|pair| pair[0] == pair[1]), "{change:?}");
        assert!(found[0] != before, "{change:?}");
    }
}
