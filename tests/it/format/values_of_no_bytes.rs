//! Tests values of no bytes, FIXED_LEN_BYTE_ARRAY(0): only counts tell their number, so that code
//! which counts bytes loses them.

use std::sync::Arc;

use marquetry::arrow_array::{Array, RecordBatch};
use marquetry::arrow_schema::{DataType, Field, Schema};
use marquetry::format::*;
use marquetry::schema::MatchBy;
use marquetry::{ErrorKind, Reader, col};

use crate::support::encode::rle;
use crate::support::{
    Chunk, dictionary, file, group, ints, leaf, levels_v1, page, read_with, required, rows, v1,
    v1_header,
};

/// Rows of each file.
const ROWS: usize = 10;

fn zero(name: &str, repetition: FieldRepetitionType) -> SchemaElement {
    let mut element = leaf(name, Type::FixedLenByteArray, repetition);
    element.type_length = Some(0);
    element
}

/// A page of indices of this width.
fn indices(of: &[u32], width: u8) -> Vec<u8> {
    [&[width][..], &rle(of, width.into())].concat()
}

/// The number of the row beside it, to filter by.
fn numbers() -> (SchemaElement, Chunk) {
    let values: Vec<i32> = (0..ROWS as i32).collect();
    let chunk = Chunk::new(Type::Int32, ROWS, &[v1(ROWS, Encoding::Plain, &ints(&values))]);
    (required("n", Type::Int32), chunk)
}

fn with_numbers(schema: Vec<SchemaElement>, zeros: Chunk) -> Vec<u8> {
    let (element, chunk) = numbers();
    file([vec![element], schema].concat(), ROWS as i64, vec![chunk, zeros])
}

/// The same column in every form; which rows are null; the type in Arrow.
fn files() -> Vec<(&'static str, Vec<u8>)> {
    use FieldRepetitionType::*;
    let new = |pages: &[Vec<u8>]| Chunk::new(Type::FixedLenByteArray, ROWS, pages);
    let halves = |body: &[u8], encoding| vec![v1(5, encoding, body), v1(5, encoding, body)];
    let nulls = levels_v1(&[1, 0, 1, 1, 0], 1);
    let of_page = indices(&[0, 1, 2, 0, 1], 2);
    let of_nulls = [&nulls[..], &indices(&[2, 1, 0], 2)].concat();
    let mixed = vec![v1(5, Encoding::RleDictionary, &of_page), v1(5, Encoding::Plain, &[])];
    let mixed_nulls =
        vec![v1(5, Encoding::RleDictionary, &of_nulls), v1(5, Encoding::Plain, &nulls)];
    let flat = |repetition| vec![zero("v", repetition)];
    vec![
        ("plain", with_numbers(flat(Required), new(&halves(&[], Encoding::Plain)))),
        ("nullable", with_numbers(flat(Optional), new(&halves(&nulls, Encoding::Plain)))),
        (
            "dictionary",
            with_numbers(
                flat(Required),
                new(&halves(&of_page, Encoding::RleDictionary)).with_dictionary(dictionary(3, &[])),
            ),
        ),
        (
            "some pages",
            with_numbers(flat(Required), new(&mixed).with_dictionary(dictionary(3, &[]))),
        ),
        (
            "some nullable pages",
            with_numbers(flat(Optional), new(&mixed_nulls).with_dictionary(dictionary(3, &[]))),
        ),
    ]
}

/// Lists of 0 to 2 values: rows of 2, 0, 1 and 1 values, and again.
fn lists() -> Vec<u8> {
    let slots = 15;
    let rep = levels_v1(&[0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0], 1);
    // The last row of each four has a null.
    let def: Vec<u32> = [3, 3, 1, 3, 2, 3, 3, 1, 3, 2, 3, 3, 1, 3, 2].to_vec();
    let body = [rep, levels_v1(&def, 3)].concat();
    let chunk = Chunk::new(Type::FixedLenByteArray, slots, &[v1(slots, Encoding::Plain, &body)]);
    let mut list = group("v", FieldRepetitionType::Optional, 1);
    list.converted_type = Some(ConvertedType::List);
    let schema = vec![
        list,
        group("list", FieldRepetitionType::Repeated, 1),
        zero("element", FieldRepetitionType::Optional),
    ];
    file(schema, 12, vec![chunk])
}

/// The types that the column may be asked for as.
fn types() -> Vec<DataType> {
    let zero = DataType::FixedSizeBinary(0);
    let ends = Arc::new(Field::new("run_ends", DataType::Int32, false));
    let values = Arc::new(Field::new("values", zero.clone(), true));
    vec![
        zero.clone(),
        DataType::Dictionary(Box::new(DataType::Int8), Box::new(zero.clone())),
        DataType::Dictionary(Box::new(DataType::UInt32), Box::new(zero)),
        DataType::RunEndEncoded(ends, values),
    ]
}

fn reader_as(bytes: &[u8], data_type: &DataType) -> Reader {
    let reader = Reader::new(bytes::Bytes::copy_from_slice(bytes)).expect("a file").threads(1);
    let fields =
        vec![Field::new("n", DataType::Int32, false), Field::new("v", data_type.clone(), true)];
    reader.target(Arc::new(Schema::new(fields)), MatchBy::Name).expect("reachable")
}

/// The null rows among those of a batch, which is valid through and through.
fn nulls(batch: &RecordBatch) -> Vec<usize> {
    let column = batch.column(1);
    column.to_data().validate_full().expect("a valid array");
    let nulls = column.logical_nulls();
    assert_eq!(column.len(), batch.num_rows());
    (0..column.len()).filter(|i| nulls.as_ref().is_some_and(|nulls| nulls.is_null(*i))).collect()
}

#[test]
fn none_is_lost_whatever_it_is_read_as() {
    for (name, bytes) in files() {
        let expected: &[usize] = if name.contains("nullable") { &[1, 4, 6, 9] } else { &[] };
        for data_type in types() {
            let place = format!("{name} as {data_type}");
            let reader = || reader_as(&bytes, &data_type);
            let batches = read_with(reader()).unwrap_or_else(|e| panic!("{place}: {e}"));
            assert_eq!(batches.len(), 1, "{place}");
            assert_eq!(batches[0].num_rows(), ROWS, "{place}");
            assert_eq!(nulls(&batches[0]), expected, "{place}");
            // Batches of three rows.
            let batches =
                read_with(reader().batch_rows(3)).unwrap_or_else(|e| panic!("{place}: {e}"));
            let mut first = 0;
            let mut found = Vec::new();
            for batch in &batches {
                found.extend(nulls(batch).into_iter().map(|row| first + row));
                first += batch.num_rows();
            }
            assert_eq!((first, &found[..]), (ROWS, expected), "{place}");
            // Rows that pass, in one stretch and apart.
            for (predicate, wanted) in [
                (col("n").gt_eq(3), vec![3, 4, 5, 6, 7, 8, 9]),
                (col("n").is_in([0, 1, 4, 5, 9]), vec![0, 1, 4, 5, 9]),
                (col("n").lt(0), vec![]),
            ] {
                let batches = read_with(reader().filter(predicate))
                    .unwrap_or_else(|e| panic!("{place}: {e}"));
                let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
                assert_eq!(rows, wanted.len(), "{place}");
                let found: Vec<usize> = batches.iter().flat_map(nulls).collect();
                let is_null = |i: &usize| expected.contains(&wanted[*i]);
                assert_eq!(found, (0..rows).filter(is_null).collect::<Vec<_>>(), "{place}");
            }
            // Rows by their numbers, and those that are left of an offset.
            let taken = reader().take(&[9, 0, 4, 4]).unwrap_or_else(|e| panic!("{place}: {e}"));
            let wanted = [9, 0, 4, 4];
            let is_null = |i: &usize| expected.contains(&wanted[*i]);
            assert_eq!(taken.num_rows(), 4, "{place}");
            assert_eq!(nulls(&taken), (0..4).filter(is_null).collect::<Vec<_>>(), "{place}");
            let skipped = read_with(reader().offset(6)).unwrap_or_else(|e| panic!("{place}: {e}"));
            assert_eq!(skipped.iter().map(RecordBatch::num_rows).sum::<usize>(), 4, "{place}");
        }
    }
}

#[test]
fn none_is_lost_within_lists() {
    let bytes = lists();
    let reader = || Reader::new(bytes::Bytes::copy_from_slice(&bytes)).expect("a file").threads(1);
    let all = rows(&read_with(reader()).expect("rows"));
    assert_eq!(all.len(), 12);
    let text = serde_json::to_string(&all[..4]).expect("text");
    assert_eq!(text, r#"[[["0x","0x"]],[[]],[["0x"]],[[null]]]"#);
    let apart = rows(&read_with(reader().batch_rows(5)).expect("rows"));
    assert_eq!(apart, all);
    let taken = reader().take(&[11, 0, 4, 4, 2]).expect("rows");
    taken.column(0).to_data().validate_full().expect("a valid array");
    let expected: Vec<_> = [11, 0, 4, 4, 2].map(|row| all[row].clone()).to_vec();
    assert_eq!(rows(&[taken]), expected);
}

#[test]
fn an_index_beyond_a_dictionary_of_no_bytes_is_malformed() {
    let body = indices(&[0, 1, 3, 0, 1], 2);
    let chunk = Chunk::new(Type::FixedLenByteArray, 5, &[v1(5, Encoding::RleDictionary, &body)])
        .with_dictionary(dictionary(3, &[]));
    let bytes = file(vec![zero("v", FieldRepetitionType::Required)], 5, vec![chunk]);
    let reader = Reader::new(bytes::Bytes::from(bytes)).expect("a file").threads(1);
    let error = read_with(reader).expect_err("an index of nothing");
    assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{error}");
}

#[test]
fn a_dictionary_of_two_thousand_million_entries_of_no_bytes_is_read_or_refused() {
    let entries = i32::MAX;
    let body = indices(&[0, u32::MAX >> 1, 7], 31);
    let pages = [page(v1_header(3, Encoding::RleDictionary, body.len(), body.len()), &body)];
    let chunk =
        Chunk::new(Type::FixedLenByteArray, 3, &pages).with_dictionary(dictionary(entries, &[]));
    let bytes = file(vec![zero("v", FieldRepetitionType::Required)], 3, vec![chunk]);
    for data_type in types() {
        let fields = vec![Field::new("v", data_type.clone(), true)];
        let read = Reader::new(bytes::Bytes::copy_from_slice(&bytes))
            .expect("a file")
            .threads(1)
            .memory(64 << 20)
            .target(Arc::new(Schema::new(fields)), MatchBy::Name)
            .map(read_with)
            .expect("reachable");
        match read {
            // No index is the last one's: the entries are one fewer.
            Err(e) => assert!(
                matches!(e.kind(), ErrorKind::Limit(_) | ErrorKind::Malformed(_)),
                "{data_type}: {e}"
            ),
            Ok(batches) => assert_eq!(batches[0].num_rows(), 3, "{data_type}"),
        }
    }
}

/// The mutants of the structure of files found that values between nulls were lost.
#[test]
fn values_without_assembly_are_as_many_as_their_levels_say() {
    let mut seen = 0;
    for (name, bytes) in files() {
        let reader = Reader::new(bytes::Bytes::from(bytes)).expect(name).batch_rows(7);
        let max_def = reader.metadata().schema().leaf(1).expect(name).max_def;
        for entries in reader.leaf_entries(0, 1).expect(name) {
            let entries = entries.expect(name);
            let values = match max_def {
                0 => entries.rows,
                max => entries.definition_levels.iter().filter(|level| **level == max).count(),
            };
            assert_eq!(entries.values.len(), values, "{name}");
            seen += values;
        }
    }
    assert!(seen > 40, "{seen}");
}
