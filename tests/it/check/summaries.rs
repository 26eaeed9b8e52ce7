//! A summary is compared with its files.

use std::path::Path;
use std::sync::Arc;

use marquetry::arrow_array::{Int64Array, RecordBatch};
use marquetry::check::{CheckLevel, Checker};
use marquetry::format::*;

use super::model::{footer, line, written};

/// A folder with two files and their summary, which `change` changes.
fn folder(change: impl FnOnce(&mut FileMetaData, &Path)) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let mut all: Option<FileMetaData> = None;
    for (i, name) in ["a.parquet", "b.parquet"].into_iter().enumerate() {
        let rows = Int64Array::from_iter_values(0..10 + i as i64);
        let batch = RecordBatch::try_from_iter([("row", Arc::new(rows) as _)]).unwrap();
        let file = written(&batch, Default::default());
        std::fs::write(folder.path().join(name), &file).unwrap();
        let mut meta = footer(&file);
        for chunk in meta.row_groups.iter_mut().flat_map(|group| &mut group.columns) {
            chunk.file_path = Some(name.to_owned());
        }
        match &mut all {
            None => all = Some(meta),
            Some(all) => {
                all.num_rows += meta.num_rows;
                all.row_groups.extend(meta.row_groups);
            }
        }
    }
    let mut meta = all.unwrap();
    change(&mut meta, folder.path());
    let mut summary = b"PAR1".to_vec();
    let bytes = meta.to_thrift();
    summary.extend(&bytes);
    summary.extend(u32::try_from(bytes.len()).unwrap().to_le_bytes());
    summary.extend(b"PAR1");
    let mut found = Vec::new();
    let checker = Checker::new(bytes::Bytes::from(summary)).level(CheckLevel::Truth);
    checker.files_below(folder.path()).run(|finding| found.push(line(&finding))).unwrap();
    found
}

#[test]
fn a_summary_that_is_true_has_no_finding() {
    assert_eq!(folder(|_, _| {}), [""; 0]);
}

#[test]
fn a_summary_of_other_files_is_found() {
    assert_eq!(
        folder(|meta, _| {
            let meta = meta.row_groups[1].columns[0].meta_data.as_mut().unwrap();
            meta.statistics = None;
        }),
        ["summary-row-groups-differ g1 row"]
    );
    assert_eq!(
        folder(|meta, _| {
            meta.num_rows -= meta.row_groups.pop().unwrap().num_rows;
        }),
        [""; 0],
        "a file that is not named is none of the summary's"
    );
    assert_eq!(
        folder(|_, folder| std::fs::remove_file(folder.join("b.parquet")).unwrap()),
        ["summary-file-unreadable"]
    );
    assert_eq!(
        folder(|meta, _| {
            for path in ["../x.parquet", "/etc/hosts"] {
                meta.row_groups[1].columns[0].file_path = Some(path.to_owned());
            }
        }),
        ["summary-file-unreadable"]
    );
    assert_eq!(
        folder(|meta, _| meta.schema[1].field_id = Some(7)),
        ["summary-schema-differs", "summary-schema-differs"]
    );
}
