//! Tests statistics as Arrow arrays: they are true of the rows, and null where the file states
//! none.

use crate::support::filled;
use std::cmp::Ordering;

use arrow_buffer::i256;
use bytes::Bytes;
use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::types::*;
use marquetry::arrow_array::*;
use marquetry::arrow_schema::{DataType, Schema, TimeUnit as Unit};
use marquetry::format::{self, *};
use marquetry::{ColumnStatistics, Reader, WriteOptions, Writer};

use crate::support::cells::{Cell, cells, columns, is_float, plain_type};
use crate::support::generate::{case, every_case};
use crate::support::{file_with, ints, read_with, required, testdata, v1};

/// A float as its number.
fn number(data_type: &DataType, bits: i128) -> f64 {
    match data_type {
        DataType::Float16 => half::f16::from_bits(bits as u16).to_f64(),
        DataType::Float32 => f32::from_bits(bits as u32).into(),
        _ => f64::from_bits(bits as u64),
    }
}

/// How two values of a type compare; `None` if one is NaN or the type has no order.
fn order(data_type: &DataType, a: &Cell, b: &Cell) -> Option<Ordering> {
    match (a, b) {
        (Cell::Word(a), Cell::Word(b)) if is_float(data_type) => {
            number(data_type, *a).partial_cmp(&number(data_type, *b))
        }
        (Cell::Word(a), Cell::Word(b)) => Some(a.cmp(b)),
        (Cell::Bytes(a), Cell::Bytes(b)) if data_type.is_decimal() => {
            let wide = |bytes: &[u8]| i256::from_be_bytes(bytes.try_into().expect("32 bytes"));
            Some(wide(a).cmp(&wide(b)))
        }
        (Cell::Bytes(a), Cell::Bytes(b)) => Some(a.cmp(b)),
        _ => None,
    }
}

/// Compares statistics with the rows that they describe. Returns the number of bounds.
fn check(found: &ColumnStatistics, all: &[Cell], name: &str) -> usize {
    let data_type = found.min.data_type();
    let (least, greatest) = (cells(&found.min), cells(&found.max));
    let (mut start, mut bounds) = (0, 0);
    for row in 0..found.len() {
        let end = start + usize::try_from(found.row_count.value(row)).expect("few rows");
        let rows = &all[start..end];
        start = end;
        if found.null_count.is_valid(row) {
            let nulls = rows.iter().filter(|cell| **cell == Cell::Null).count() as u64;
            assert_eq!(found.null_count.value(row), nulls, "nulls of {name}");
        }
        let is_nan = |cell: &&Cell| order(data_type, cell, cell).is_none();
        let values = || rows.iter().filter(|cell| **cell != Cell::Null);
        if found.nan_count.is_valid(row) {
            let nans = values().filter(is_nan).count() as u64;
            assert_eq!(found.nan_count.value(row), nans, "NaNs of {name}");
        }
        for (bound, exact, wrong) in [
            (&least[row], &found.min_exact, Ordering::Less),
            (&greatest[row], &found.max_exact, Ordering::Greater),
        ] {
            if *bound == Cell::Null {
                assert!(exact.is_null(row), "{name}: no bound, and exact");
                continue;
            }
            bounds += 1;
            let mut is_met = false;
            for value in values().filter(|value| !is_nan(value)) {
                let order = order(data_type, value, bound).expect("a bound with an order");
                assert_ne!(order, wrong, "{name}: {value:?} and the bound {bound:?}");
                is_met |= order.is_eq();
            }
            if exact.is_valid(row) && exact.value(row) {
                assert!(is_met, "{name}: no value is {bound:?}");
            }
        }
    }
    assert_eq!(start, all.len(), "{name}: all rows");
    bounds
}

#[test]
fn bounds_of_row_groups_and_pages_are_true_of_their_rows() {
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    let (chunks, pages) = (AtomicUsize::new(0), AtomicUsize::new(0));
    every_case(600, |seed| {
        let case = case(seed);
        let reader = Reader::new(case.file.clone()).expect("a file").threads(1);
        let all = columns(&case.schema, &read_with(reader.clone()).expect("rows"));
        for (field, all) in case.schema.fields().iter().zip(&all) {
            if plain_type(field.data_type()).is_nested() {
                continue;
            }
            let found = reader.column_statistics(field.name()).expect("statistics");
            let name = format!("{field}: {}", case.name);
            assert_eq!(found.min.data_type(), plain_type(field.data_type()), "{name}");
            chunks.fetch_add(check(&found, all, &name), Relaxed);
            let found = reader.page_statistics(field.name()).expect("page indexes");
            pages.fetch_add(check(&found, all, &name), Relaxed);
            assert_eq!(found.to_batch().expect("a table").num_rows(), found.len());
        }
    });
    assert!(chunks.into_inner() > 500 && pages.into_inner() > 500, "bounds were looked at");
}

#[test]
fn statistics_of_files_of_other_writers_are_true() {
    let mut bounds = 0;
    for name in ["plain_types_v1", "plain_types_v2", "nested", "trips", "hints"] {
        let path = testdata(&format!("{name}.parquet"));
        let reader = Reader::open(path).expect(name).threads(1);
        let schema = reader.schema().expect("a schema");
        let all = columns(&schema, &read_with(reader.clone()).expect("rows"));
        for (field, all) in schema.fields().iter().zip(&all) {
            if field.data_type().is_nested() {
                continue;
            }
            let name = format!("{name}: {field}");
            let found = reader.column_statistics(field.name()).expect("statistics");
            bounds += check(&found, all, &name);
            let found = reader.page_statistics(field.name()).expect("statistics");
            bounds += check(&found, all, &name);
        }
    }
    assert!(bounds > 50, "{bounds} bounds");
}

/// A column of three values 0, with these statistics in the footer.
fn said(
    element: SchemaElement,
    statistics: Statistics,
    order: Option<ColumnOrder>,
) -> ColumnStatistics {
    let width = match element.r#type.expect("a leaf") {
        Type::Boolean | Type::Int32 | Type::Float | Type::ByteArray => 4,
        Type::Int96 => 12,
        Type::FixedLenByteArray => element.type_length.expect("a length") as usize,
        _ => 8,
    };
    let values = vec![0; 3 * width];
    let physical = element.r#type.expect("a leaf");
    let mut chunk = crate::support::Chunk::new(physical, 3, &[v1(3, Encoding::Plain, &values)]);
    chunk.meta.statistics = Some(statistics);
    let file = file_with(vec![element], vec![(3, vec![chunk])], |meta| {
        meta.column_orders = order.map(|order| vec![order]);
    });
    Reader::new(Bytes::from(file)).expect("a file").column_statistics("v").expect("statistics")
}

fn min_max(min: &[u8], max: &[u8]) -> Statistics {
    filled!(Statistics { min_value: Some(min.to_vec()), max_value: Some(max.to_vec()) })
}

fn with_logical(physical: Type, logical: LogicalType) -> SchemaElement {
    filled!(SchemaElement { logical_type: Some(logical), ..required("v", physical) })
}

#[test]
fn decimals_of_every_physical_form_have_bounds() {
    let decimal = |physical: Type, len: Option<i32>| {
        filled!(SchemaElement {
            type_length: len,
            ..with_logical(
                physical,
                LogicalType::Decimal(filled!(format::DecimalType { scale: 2, precision: 9 })),
            )
        })
    };
    let be = |n: i64, len: usize| n.to_be_bytes()[8 - len..].to_vec();
    let (low, high) = (-12_345i32, 67_890i32);
    for (element, min, max) in [
        (decimal(Type::Int32, None), low.to_le_bytes().to_vec(), high.to_le_bytes().to_vec()),
        (
            decimal(Type::Int64, None),
            i64::from(low).to_le_bytes().to_vec(),
            i64::from(high).to_le_bytes().to_vec(),
        ),
        (decimal(Type::ByteArray, None), be(low.into(), 3), be(high.into(), 4)),
        (decimal(Type::FixedLenByteArray, Some(5)), be(low.into(), 5), be(high.into(), 5)),
    ] {
        let found = said(element.clone(), min_max(&min, &max), Some(ColumnOrder::TypeOrder));
        assert_eq!(*found.min.data_type(), DataType::Decimal128(9, 2));
        assert_eq!(found.min.as_primitive::<Decimal128Type>().value(0), low.into());
        assert_eq!(found.max.as_primitive::<Decimal128Type>().value(0), high.into());
        assert!(found.min_exact.value(0) && found.max_exact.value(0));
        // Ten digits are no value of nine.
        let wide = match element.r#type {
            Some(Type::Int32) => continue,
            Some(Type::Int64) => 9_999_999_999i64.to_le_bytes().to_vec(),
            _ => be(9_999_999_999, 5),
        };
        let found = said(element, min_max(&min, &wide), Some(ColumnOrder::TypeOrder));
        assert!(found.min.is_valid(0) && found.max.is_null(0) && found.max_exact.is_null(0));
    }
}

#[test]
fn orders_decide_which_bounds_count() {
    let unsigned = with_logical(
        Type::Int32,
        LogicalType::Integer(filled!(IntType { bit_width: 32, is_signed: false })),
    );
    let (low, high) = (1u32.to_le_bytes(), 4_000_000_000u32.to_le_bytes());
    let by_type = || Some(ColumnOrder::TypeOrder);
    let found = said(unsigned.clone(), min_max(&low, &high), by_type());
    assert_eq!(found.max.as_primitive::<UInt32Type>().value(0), 4_000_000_000);
    // Without the list of orders, and in the deprecated fields, it is not known how they were
    // compared.
    let found = said(unsigned.clone(), min_max(&low, &high), None);
    assert!(found.min.is_null(0) && found.max.is_null(0));
    let old = filled!(Statistics { min: Some(low.to_vec()), max: Some(high.to_vec()) });
    assert!(said(unsigned, old.clone(), by_type()).max.is_null(0));
    // The deprecated fields count for signed numbers.
    let found = said(required("v", Type::Int32), old.clone(), None);
    assert!(found.min.is_null(0) && found.max.is_null(0), "as signed numbers they contradict");
    let old = filled!(Statistics { max: Some(ints(&[7])), ..old });
    let found = said(required("v", Type::Int32), old, None);
    assert_eq!(found.min.as_primitive::<Int32Type>().value(0), 1);
    assert_eq!(found.max.as_primitive::<Int32Type>().value(0), 7);

    // INT96: only in the order made for it.
    let day = |days: u32| [&0u64.to_le_bytes()[..], &(2_440_588 + days).to_le_bytes()].concat();
    let int96 = required("v", Type::Int96);
    let found = said(int96.clone(), min_max(&day(0), &day(2)), Some(ColumnOrder::TypeOrder));
    assert!(found.min.is_null(0) && found.max.is_null(0));
    let found = said(int96, min_max(&day(0), &day(2)), Some(ColumnOrder::Int96TimestampOrder));
    assert_eq!(*found.max.data_type(), DataType::Timestamp(Unit::Nanosecond, None));
    let nanos = found.max.as_primitive::<TimestampNanosecondType>().value(0);
    assert_eq!(nanos, 2 * 86_400_000_000_000);

    // Intervals have no order.
    let interval = filled!(SchemaElement {
        type_length: Some(12),
        converted_type: Some(ConvertedType::Interval),
        ..required("v", Type::FixedLenByteArray)
    });
    assert!(said(interval, min_max(&[0; 12], &[9; 12]), by_type()).min.is_null(0));
}

#[test]
fn bounds_that_are_nan_are_none_and_zeros_are_both() {
    let double = || required("v", Type::Double);
    let bytes = |v: f64| v.to_le_bytes();
    let by_type = || Some(ColumnOrder::TypeOrder);
    let found = said(double(), min_max(&bytes(f64::NAN), &bytes(1.0)), by_type());
    assert!(found.min.is_null(0) && found.min_exact.is_null(0));
    assert_eq!(found.max.as_primitive::<Float64Type>().value(0), 1.0);
    let bits = |found: &ColumnStatistics| {
        let of = |array: &ArrayRef| array.as_primitive::<Float64Type>().value(0).to_bits();
        (of(&found.min), of(&found.max))
    };
    let both = (f64::to_bits(-0.0), f64::to_bits(0.0));
    for (min, max) in [(0.0, -0.0), (0.0, 0.0), (-0.0, -0.0)] {
        let found = said(double(), min_max(&bytes(min), &bytes(max)), by_type());
        assert_eq!(bits(&found), both, "{min} {max}");
    }
    // In the total order they are two.
    let total = Some(ColumnOrder::Ieee754TotalOrder);
    let found = said(double(), min_max(&bytes(0.0), &bytes(0.0)), total);
    assert_eq!(bits(&found), (0, 0));
}

#[test]
fn cut_bounds_are_not_exact_and_stay_values() {
    let text = || with_logical(Type::ByteArray, LogicalType::String);
    let by_type = || Some(ColumnOrder::TypeOrder);
    // The file does not say whether they are cut.
    let found = said(text(), min_max(b"ab", b"cd"), by_type());
    assert_eq!(found.min.as_string::<i32>().value(0), "ab");
    assert!(found.min_exact.is_null(0) && found.max_exact.is_null(0));
    for (flag, expected) in [(true, true), (false, false)] {
        let exact = filled!(Statistics {
            is_min_value_exact: Some(flag),
            is_max_value_exact: Some(!flag),
            ..min_max(b"ab", b"cd")
        });
        let found = said(text(), exact, by_type());
        assert_eq!((found.min_exact.value(0), found.max_exact.value(0)), (expected, !expected));
    }
    // Truncated within a character: the rest of a lower bound is still one, that of an upper bound
    // is not.
    let found =
        said(text(), min_max("aé".as_bytes().split_last().unwrap().1, &[b'b', 0xC3]), by_type());
    assert_eq!(found.min.as_string::<i32>().value(0), "a");
    assert!(!found.min_exact.value(0) && found.max.is_null(0));
    // Byte strings of one length: missing bytes are zeros.
    let fixed =
        filled!(SchemaElement { type_length: Some(4), ..required("v", Type::FixedLenByteArray) });
    let found = said(fixed.clone(), min_max(&[1, 2], &[1, 3]), by_type());
    assert_eq!(found.min.as_fixed_size_binary().value(0), [1, 2, 0, 0]);
    assert_eq!(found.max.as_fixed_size_binary().value(0), [1, 3, 0, 0]);
    assert!(!found.min_exact.value(0) && !found.max_exact.value(0));
    assert!(said(fixed, min_max(&[1; 5], &[2; 4]), by_type()).min.is_null(0));
}

#[test]
fn bounds_of_endless_values_are_refused_and_not_allocated() {
    let element = filled!(SchemaElement {
        type_length: Some(i32::MAX),
        ..required("v", Type::FixedLenByteArray)
    });
    let chunk = || {
        let mut chunk = crate::support::Chunk::new(Type::FixedLenByteArray, 0, &[]);
        chunk.meta.statistics = Some(min_max(&[1], &[2]));
        chunk
    };
    let groups = (0..1_000).map(|_| (0, vec![chunk()])).collect();
    let file = file_with(vec![element], groups, |meta| {
        meta.column_orders = Some(vec![ColumnOrder::TypeOrder]);
    });
    let reader = Reader::new(Bytes::from(file)).expect("a footer");
    let error = reader.column_statistics("v").expect_err("2 TB of bounds");
    assert!(matches!(error.kind(), marquetry::ErrorKind::Limit(_)), "{error}");
}

#[test]
fn what_is_no_value_of_the_type_is_no_bound_and_what_is_missing_is_null() {
    let by_type = || Some(ColumnOrder::TypeOrder);
    let int = || required("v", Type::Int32);
    assert!(said(int(), min_max(&[1, 2, 3], &[1; 4]), by_type()).min.is_null(0));
    let found = said(int(), min_max(&ints(&[5]), &ints(&[4])), by_type());
    assert!(found.min.is_null(0) && found.max.is_null(0), "a lower bound above the upper one");
    let found = said(int(), Statistics::default(), by_type());
    assert!(found.min.is_null(0) && found.max.is_null(0) && found.nan_count.is_null(0));
    assert_eq!((found.row_count.value(0), found.null_count.value(0)), (3, 0));
    // A page index that the file does not have: the chunk counts as one page.
    let array: ArrayRef = std::sync::Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]));
    let batch = RecordBatch::try_from_iter([("v", array)]).expect("a batch");
    let mut options = WriteOptions::new();
    options = options.with_statistics(marquetry::StatisticsLevel::Chunk);
    let sink = marquetry::io::WriteSink(Vec::new());
    let mut writer = Writer::new(sink, batch.schema(), options).expect("a writer");
    writer.write(&batch).expect("rows");
    let reader = Reader::new(Bytes::from(writer.into_inner().expect("a file").1)).expect("a file");
    let pages = reader.page_statistics("v").expect("statistics");
    assert_eq!((pages.len(), pages.null_count.value(0)), (1, 1));
    assert_eq!(pages.max.as_primitive::<Int32Type>().value(0), 3);
    let schema = Schema::new(pages.to_batch().expect("a table").schema().fields().clone());
    assert_eq!(schema.fields().len(), 8);
}
