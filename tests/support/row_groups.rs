//! Columns, flat and nested, whose values tell their rows, and files of row groups of them.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use marquetry::arrow_array::builder::{Int32Builder, ListBuilder};
use marquetry::arrow_array::{ArrayRef, Date32Array, Int64Array, RecordBatch, StringArray};
use marquetry::io::WriteSink;
use marquetry::{WriteOptions, Writer};

/// Numbers, none of them null.
pub fn ids(rows: Range<usize>) -> ArrayRef {
    Arc::new(Int64Array::from_iter_values(rows.map(|i| i as i64 * 3)))
}

/// Texts and nulls.
pub fn names(rows: Range<usize>) -> ArrayRef {
    let names = rows.map(|i| (i % 7 > 0).then(|| format!("name {}", i * i)));
    Arc::new(names.collect::<StringArray>())
}

/// Lists of up to three numbers; null ones, empty ones, and such with null elements.
pub fn lists(rows: Range<usize>) -> ArrayRef {
    let mut lists = ListBuilder::new(Int32Builder::new());
    for i in rows {
        (0..i % 4).for_each(|j| lists.values().append_option((j < 2).then_some((i * j) as i32)));
        lists.append(i % 5 > 0);
    }
    Arc::new(lists.finish())
}

/// Dates and nulls.
pub fn days(rows: Range<usize>) -> ArrayRef {
    Arc::new(Date32Array::from_iter(rows.map(|i| (i % 3 > 0).then_some(i as i32))))
}

/// A file of these rows, in row groups of small pages.
pub fn file(rows: &RecordBatch, group_rows: usize, options: WriteOptions) -> Bytes {
    let options = options.with_page_rows(50).with_row_group_rows(group_rows as u64);
    let mut out = Vec::new();
    let mut writer = Writer::new(WriteSink(&mut out), rows.schema(), options).expect("a writer");
    writer.write(rows).expect("rows");
    writer.finish().expect("a file");
    out.into()
}
