//! Footers and the other structs of the format: parsed without a panic, and what is written of them
//! is parsed as the same.

use std::fmt::Debug;

use bytes::Bytes;
use marquetry::Metadata;
use marquetry::format::{
    BloomFilterHeader, ColumnIndex, ColumnMetaData, FileCryptoMetaData, FileMetaData, OffsetIndex,
    PageHeader, Thrift,
};
use marquetry::read::Footer;

use super::reading::{limits, open, within_memory};
use crate::input::{Input, Output};

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let kind = input.u8();
    let bytes = input.rest();
    within_memory(bytes.len(), || match kind % 10 {
        0 | 1 => footer(bytes),
        2 => metadata(bytes),
        3 => file(bytes),
        4 => parsed::<PageHeader>(bytes),
        5 => parsed::<ColumnIndex>(bytes),
        6 => parsed::<OffsetIndex>(bytes),
        7 => parsed::<BloomFilterHeader>(bytes),
        8 => parsed::<ColumnMetaData>(bytes),
        _ => parsed::<FileCryptoMetaData>(bytes),
    });
}

/// A struct by itself.
fn parsed<T: Thrift + Debug>(bytes: &[u8]) {
    let Ok((parsed, len)) = T::from_thrift(bytes) else { return };
    assert!(len <= bytes.len(), "{len} of {} bytes", bytes.len());
    let written = parsed.to_thrift();
    let (again, len) = T::from_thrift(&written).expect("what was written");
    assert_eq!(len, written.len());
    assert_same(&again, &parsed);
}

/// The same fields. Those that are kept, because they are unknown or more than their type holds,
/// may come in another order; and of a known field that occurs twice, the last one is written.
fn assert_same<T: Thrift + Debug>(again: &T, parsed: &T) {
    assert_eq!(again.to_thrift(), parsed.to_thrift());
    // NaN differs from itself; the text form does not.
    let (a, b) = (format!("{again:?}"), format!("{parsed:?}"));
    let ((a, of_a), (b, of_b)) = (without_kept(&a), without_kept(&b));
    assert_eq!(a, b);
    assert!(of_a.iter().all(|field| of_b.contains(field)), "{of_a:?}\n{of_b:?}");
    // Surely unknown: none of these is lost.
    let unknown = |of: &[&str]| of.iter().filter(|field| id(field) > MAX_KNOWN_ID).count();
    assert_eq!(unknown(&of_a), unknown(&of_b), "{of_a:?}\n{of_b:?}");
}

/// No struct of the format has a field with a greater id.
const MAX_KNOWN_ID: i16 = 100;

/// The text without the kept fields, and these.
fn without_kept(text: &str) -> (String, Vec<&str>) {
    let (mut out, mut kept) = (String::new(), Vec::new());
    for mut part in text.split("unknown: [") {
        while let Some(rest) = part.strip_prefix("UnknownField { id: ") {
            let (field, rest) = rest.split_once("] }").expect("the end of a payload");
            kept.push(field);
            part = rest.strip_prefix(", ").unwrap_or(rest);
        }
        out.push_str(part);
    }
    (out, kept)
}

fn id(field: &str) -> i16 {
    field.split_once(',').and_then(|(id, _)| id.parse().ok()).expect("an id")
}

fn footer(bytes: &[u8]) {
    parsed::<FileMetaData>(bytes);
    let Ok(footer) = Footer::parse(Bytes::copy_from_slice(bytes), &limits()) else { return };
    look_at(&footer);
}

fn look_at(footer: &Footer) {
    _ = footer.schema().to_string();
    _ = footer.rows();
    _ = footer.created_by();
    for row_group in 0..footer.row_groups().min(16) {
        for leaf in 0..footer.schema().leaves_len().min(64) {
            _ = footer.column_chunk(row_group, leaf);
            _ = footer.is_readable(row_group, leaf);
        }
    }
    // All at once, and chunk by chunk, they say the same.
    if let Ok(all) = footer.index().to_file_meta_data() {
        let written = all.to_thrift();
        let again = Footer::parse(written.into(), &limits());
        if let Ok(again) = again {
            let again = again.index().to_file_meta_data().expect("what was written");
            assert_same(&again, &all);
        }
    }
}

/// Metadata that were kept.
fn metadata(bytes: &[u8]) {
    let Ok(metadata) = Metadata::from_bytes(&Bytes::copy_from_slice(bytes), &limits()) else {
        return;
    };
    look_at(metadata.footer());
    let kept = Bytes::from(metadata.to_bytes());
    let again = Metadata::from_bytes(&kept, &limits()).expect("what was kept");
    assert_eq!(again.to_bytes(), kept);
}

/// A file, but not its data.
fn file(bytes: &[u8]) {
    let Ok(mut reader) = open(bytes.to_vec()) else { return };
    _ = reader.schema();
    _ = reader.explain();
    _ = reader.load_page_indexes();
    for leaf in 0..reader.metadata().schema().leaves_len().min(64) {
        for row_group in 0..reader.metadata().row_groups().min(16) {
            _ = reader.page_index(row_group, leaf);
            _ = reader.bloom_filter(row_group, leaf);
        }
    }
    let kept = Bytes::from(reader.metadata().to_bytes());
    _ = Metadata::from_bytes(&kept, &limits());
}

pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    let mut add = |kind, bytes: &[u8]| seeds.push(Output::default().u8(kind).rest(bytes).bytes());
    // A value of the key-value metadata that occurs twice and is not UTF-8; and the first alone.
    add(0, b"\x15\x02\x19\x1c\x48\x01s\0\x16\0\x19\x0c\x19\x1c\x18\x01k\x18\x01\xff\x08\x04\x01\xfe\0\0");
    add(
        0,
        b"\x15\x02\x19\x1c\x48\x01s\0\x16\0\x19\x0c\x19\x1c\x18\x01k\x18\x01\xff\x08\x04\x01v\0\0",
    );
    for file in crate::seeds::files() {
        let reader = open(file.clone()).expect("a file");
        let all = reader.metadata().index().to_file_meta_data().expect("metadata");
        add(0, &all.to_thrift());
        add(2, &reader.metadata().to_bytes());
        add(3, &file);
        for chunk in all.row_groups.iter().flat_map(|group| &group.columns).take(4) {
            let at = |offset: Option<i64>| usize::try_from(offset.unwrap_or(0)).expect("an offset");
            if let Some(meta) = &chunk.meta_data {
                add(8, &meta.to_thrift());
                let page = at(Some(meta.data_page_offset));
                add(4, &file[page..file.len().min(page + 200)]);
                let bloom = at(meta.bloom_filter_offset);
                add(7, &file[bloom..file.len().min(bloom + 100)]);
            }
            let column = at(chunk.column_index_offset);
            add(5, &file[column..file.len().min(column + 300)]);
            let offsets = at(chunk.offset_index_offset);
            add(6, &file[offsets..file.len().min(offsets + 300)]);
        }
    }
    seeds
}
