//! Few bytes that take much memory or time: these are counted, and a note says what was not
//! checked.

use bytes::Bytes;
use marquetry::check::{CheckLevel, Checker};
use marquetry::format::*;
use marquetry::{Limits, Threads};

use super::model::line;
use crate::metadata::kept::Watched;
use crate::support::{Chunk, dictionary, file, leaf, page, v1};

/// The findings of a check within this memory, from a source that is not in memory.
fn found(file: Vec<u8>, level: CheckLevel, memory: u64) -> Vec<String> {
    let mut limits = Limits::default();
    limits.memory_bytes = memory;
    let mut found = Vec::new();
    let checker = Checker::new(Watched::new(&Bytes::from(file))).level(level).limits(limits);
    let checker = checker.threads(Threads::Exactly(1));
    checker.run(|finding| found.push(line(&finding))).unwrap();
    found
}

fn column(r#type: Type) -> SchemaElement {
    leaf("v", r#type, FieldRepetitionType::Required)
}

/// A file of one value, the first of a dictionary of values of no bytes.
fn empty_values(entries: i32) -> Vec<u8> {
    let mut header = PageHeader::default();
    header.r#type = PageType::DictionaryPage;
    let mut inner = DictionaryPageHeader::default();
    (inner.num_values, inner.is_sorted) = (entries, Some(true));
    header.dictionary_page_header = Some(inner);
    let mut column = column(Type::FixedLenByteArray);
    column.type_length = Some(0);
    let data = v1(1, Encoding::RleDictionary, &[1, 2, 0]);
    let chunk = Chunk::new(Type::FixedLenByteArray, 1, &[data]);
    file(vec![column], 1, vec![chunk.with_dictionary(page(header, &[]))])
}

#[test]
fn a_dictionary_of_values_without_bytes_is_not_looked_at_beyond_the_limit() {
    let found = found(empty_values(i32::MAX), CheckLevel::Values, 64 << 30);
    assert!(found.contains(&"not-checked g0 v dictionary".to_owned()), "{found:?}");
}

#[test]
fn whether_entries_repeat_is_said_or_that_it_is_not_known() {
    let found = |memory| {
        let mut found = found(empty_values(1_000_000), CheckLevel::Truth, memory);
        found.retain(|line| line.contains("dictionary"));
        found
    };
    assert_eq!(found(1 << 30), ["dictionary-value-repeats g0 v dictionary"]);
    assert_eq!(found(20 << 20), ["not-checked g0 v dictionary"]);
}

#[test]
fn a_distinct_count_that_is_not_compared_is_told() {
    let values: Vec<u8> = (0..200_000i64).flat_map(i64::to_le_bytes).collect();
    let mut chunk = Chunk::new(Type::Int64, 200_000, &[v1(200_000, Encoding::Plain, &values)]);
    let mut statistics = Statistics::default();
    statistics.distinct_count = Some(100_000);
    chunk.meta.statistics = Some(statistics);
    let file = file(vec![column(Type::Int64)], 200_000, vec![chunk]);
    let found = |memory| {
        let mut found = found(file.clone(), CheckLevel::Truth, memory);
        found.retain(|line| line.contains("distinct") || line.contains("not-checked"));
        found
    };
    assert_eq!(found(1 << 30), ["chunk-distinct-count-wrong g0 v"]);
    assert_eq!(found(4 << 20), ["not-checked g0 v"]);
}

#[test]
fn the_bytes_of_a_dictionary_count_while_later_pages_are_checked() {
    let text = |len: u32| [&len.to_le_bytes()[..], &vec![b'x'; len as usize]].concat();
    let (entry, value) = (6 << 20, 20 << 20);
    let data = [v1(1, Encoding::RleDictionary, &[1, 2, 0]), v1(1, Encoding::Plain, &text(value))];
    let chunk = Chunk::new(Type::ByteArray, 2, &data);
    let chunk = chunk.with_dictionary(dictionary(1, &text(entry)));
    let file = file(vec![column(Type::ByteArray)], 2, vec![chunk]);
    let is_checked = |memory: u64| {
        let found = found(file.clone(), CheckLevel::Values, memory << 20);
        !found.iter().any(|line| line.starts_with("not-checked"))
    };
    // The entry and the value are held at the same time.
    assert!(is_checked(28));
    assert!(!is_checked(24));
}
