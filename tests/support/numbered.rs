//! Makes files whose rows are numbered, and lists the contents of folders.

use std::path::Path;
use std::sync::Arc;
use std::{fs, io};

use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::types::Int64Type;
use marquetry::arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use marquetry::{Reader, Result, Writer};

/// Rows from a number on: the number, and a text that depends on it.
pub fn rows(from: i64, rows: i64) -> RecordBatch {
    let numbers = Int64Array::from_iter_values(from..from + rows);
    let texts = StringArray::from_iter((from..from + rows).map(|n| {
        let text = n.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as i64);
        (n % 7 != 0).then(|| format!("{text:x}"))
    }));
    let columns: [(&str, ArrayRef); 2] = [("n", Arc::new(numbers)), ("t", Arc::new(texts))];
    RecordBatch::try_from_iter(columns).unwrap()
}

/// The numbers of a file, all of whose rows must be as [`rows`] makes them.
pub fn numbers(reader: &Reader) -> Result<Vec<i64>> {
    let mut out = Vec::new();
    let mut batches = reader.batches()?;
    while let Some(batch) = batches.next_batch()? {
        let found = batch.column(0).as_primitive::<Int64Type>().values();
        let expected = rows(found[0], found.len() as i64);
        assert_eq!(batch.column(1), expected.column(1), "rows from {}", found[0]);
        out.extend_from_slice(found);
    }
    Ok(out)
}

/// Writes a file of these rows.
pub fn write_file(path: &Path, from: i64, count: i64) -> Result<()> {
    let mut writer = Writer::create(path, rows(0, 1).schema())?;
    writer.write(&rows(from, count))?;
    writer.finish().map(drop)
}

/// Names in a folder.
pub fn names(folder: &Path) -> Vec<String> {
    let name =
        |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().to_string_lossy().into_owned();
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
    names.sort();
    names
}
