//! Whole tables: logs written by hand, data files and checkpoints by either engine.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StringArray, StructArray};
use arrow_schema::{DataType as A, Field, Fields};
use delta_kernel::expressions::{Predicate, Scalar, column_expr};
use delta_kernel::{Engine, Snapshot};
use serde_json::{Value, json};

use crate::support::*;

/// A table with renamed columns (found by id), a partition column and a column that the older files
/// do not have, as two commits.
fn table(folder: &Path) {
    let log = folder.join("_delta_log");
    std::fs::create_dir_all(&log).expect("a folder");
    let field = |name: &str, data_type: Value, id: i32| {
        json!({
            "name": name, "type": data_type, "nullable": true,
            "metadata": {
                "delta.columnMapping.id": id,
                "delta.columnMapping.physicalName": format!("col-{id}"),
            },
        })
    };
    let point = json!({
        "type": "struct",
        "fields": [field("x", json!("long"), 5), field("y", json!("string"), 6)],
    });
    let schema = json!({
        "type": "struct",
        "fields": [
            field("id", json!("long"), 1),
            field("part", json!("string"), 2),
            field("point", point, 3),
            field("late", json!("string"), 4),
        ],
    });
    let mut commits = [
        vec![
            json!({"protocol": {
                "minReaderVersion": 3, "minWriterVersion": 7,
                "readerFeatures": ["columnMapping"], "writerFeatures": ["columnMapping"],
            }}),
            json!({"metaData": {
                "id": "6a1e1a3a-0000-4000-8000-000000000000",
                "format": {"provider": "parquet", "options": {}},
                "schemaString": schema.to_string(),
                "partitionColumns": ["part"],
                "configuration": {
                    "delta.columnMapping.mode": "id", "delta.columnMapping.maxColumnId": "6",
                },
                "createdTime": 0,
            }}),
        ],
        Vec::new(),
    ];
    for file in 0..6 {
        let commit = usize::from(file >= 3);
        let name = format!("part-{file}.parquet");
        let first = i64::from(file) * 100;
        write(&folder.join(&name), &rows(first..first + 100, commit == 1));
        let size = std::fs::metadata(folder.join(&name)).expect("a file").len();
        let stats = json!({
            "numRecords": 100, "minValues": {"col-1": first}, "maxValues": {"col-1": first + 99},
            "nullCount": {"col-1": 0},
        });
        commits[commit].push(json!({"add": {
            "path": name, "partitionValues": {"col-2": format!("p{}", file % 2)}, "size": size,
            "modificationTime": 0, "dataChange": true, "stats": stats.to_string(),
        }}));
    }
    commits[1].push(json!({"remove": {
        "path": "part-1.parquet", "dataChange": true, "deletionTimestamp": i64::MAX / 2,
    }}));
    for (version, actions) in commits.iter().enumerate() {
        let lines: Vec<_> = actions.iter().map(Value::to_string).collect();
        let path = log.join(format!("{version:020}.json"));
        std::fs::write(path, lines.join("\n")).expect("written");
    }
}

/// The names are not those of the table: ids decide.
fn rows(ids: std::ops::Range<i64>, with_late: bool) -> RecordBatch {
    let count = usize::try_from(ids.end - ids.start).expect("few");
    let inner = Fields::from(vec![
        arrow_id(Field::new("old_y", A::Utf8, true), 6),
        // Narrower than the table's.
        arrow_id(Field::new("old_x", A::Int32, true), 5),
    ]);
    let x =
        Int32Array::from_iter(ids.clone().map(|id| i32::try_from(id).ok().filter(|id| id % 3 > 0)));
    let y = StringArray::from_iter_values(ids.clone().map(|id| format!("y{id}")));
    let point = StructArray::new(inner.clone(), vec![Arc::new(y), Arc::new(x)], None);
    let mut fields = vec![
        arrow_id(Field::new("old_point", A::Struct(inner), true), 3),
        arrow_id(Field::new("old_id", A::Int64, true), 1),
    ];
    let mut columns: Vec<ArrayRef> =
        vec![Arc::new(point), Arc::new(Int64Array::from_iter_values(ids))];
    if with_late {
        fields.push(arrow_id(Field::new("old_late", A::Utf8, true), 4));
        columns.push(Arc::new(StringArray::from(vec!["late"; count])));
    }
    RecordBatch::try_new(arrow_schema(fields), columns).expect("a batch")
}

fn scan(engine: &Arc<dyn Engine>, folder: &Path, predicate: Option<Predicate>) -> Vec<String> {
    let url = url::Url::from_directory_path(folder).expect("a path");
    let snapshot = Snapshot::builder_for(url).build(engine.as_ref()).expect("a snapshot");
    let scan = snapshot.scan_builder().with_predicate(predicate.map(Arc::new)).build();
    let scan = scan.expect("a scan");
    let batches = scan.execute(Arc::clone(engine)).expect("a read");
    let mut found: Vec<_> =
        batches.flat_map(|data| lines(&batch_of(data.expect("a batch")))).collect();
    found.sort();
    found
}

#[test]
fn tables_and_checkpoints_of_either_engine_are_those_of_the_other() {
    let mut expected: Vec<_> = [0, 2, 3, 4, 5]
        .into_iter()
        .flat_map(|file| {
            (file * 100..file * 100 + 100).map(move |id: i64| {
                let x = if id % 3 > 0 { id.to_string() } else { "∅".to_owned() };
                let late = if file >= 3 { "late" } else { "∅" };
                format!("{id} | p{} | {{x: {x}, y: y{id}}} | {late}", file % 2)
            })
        })
        .collect();
    expected.sort();
    for writer in [our_engine(), writing_engine()] {
        let folder = tempfile::tempdir().expect("a folder");
        table(folder.path());
        let few = || Some(Predicate::gt(column_expr!("id"), Scalar::from(450i64)));
        for engine in [our_engine(), default_engine()] {
            assert_eq!(scan(&engine, folder.path(), None), expected);
        }
        let url = url::Url::from_directory_path(folder.path()).expect("a path");
        let snapshot = Snapshot::builder_for(url).build(writer.as_ref()).expect("a snapshot");
        snapshot.checkpoint(writer.as_ref(), None).expect("a checkpoint");
        // Now only the checkpoint knows the first commit.
        std::fs::remove_file(folder.path().join("_delta_log/00000000000000000000.json"))
            .expect("removed");
        for engine in [our_engine(), default_engine()] {
            assert_eq!(scan(&engine, folder.path(), None), expected);
            let found = scan(&engine, folder.path(), few());
            assert!(found.len() < expected.len() && found.len() >= 149, "{}", found.len());
            assert_eq!(found, scan(&default_engine(), folder.path(), few()));
        }
    }
}
