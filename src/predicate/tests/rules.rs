//! Tests the rules by which metadata are trusted, one by one.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int32Array};
use arrow_schema::{DataType, Field, Schema as ArrowSchema};

use super::super::bound::BloomProbe;
use super::super::expression::*;
use super::super::facts::{ColumnFacts, PageFacts, dictionary_is_complete};
use super::super::*;
use crate::error::ErrorKind;
use crate::format::{
    BoundaryOrder, ColumnIndex, ColumnMetaData, ColumnOrder, ConvertedType, DecimalType, Encoding,
    FieldRepetitionType, IntType, LogicalType, OffsetIndex, PageEncodingStats, PageLocation,
    PageType, SchemaElement, SizeStatistics, Statistics, Type,
};
use crate::limits::Limits;
use crate::schema::{ArrowOptions, MatchBy, Schema};
use crate::stats::bloom::{Blocks, Bloom};
use crate::variant::VariantArray;
use PruneResult::{Always, Cannot, Might};

const TYPE: Option<&ColumnOrder> = Some(&ColumnOrder::TypeOrder);
const TOTAL: Option<&ColumnOrder> = Some(&ColumnOrder::Ieee754TotalOrder);
const INT96: Option<&ColumnOrder> = Some(&ColumnOrder::Int96TimestampOrder);

/// A schema with one leaf `x`, REQUIRED.
fn leaf(r#type: Type, logical: Option<LogicalType>, length: Option<i32>) -> Schema {
    let root =
        SchemaElement { name: "root".into(), num_children: Some(1), ..SchemaElement::default() };
    let x = SchemaElement {
        name: "x".into(),
        r#type: Some(r#type),
        logical_type: logical,
        type_length: length,
        repetition_type: Some(FieldRepetitionType::Required),
        ..SchemaElement::default()
    };
    Schema::parse(vec![root, x], &Limits::default()).unwrap()
}

fn optional(schema: &Schema) -> Schema {
    let mut elements = schema.elements().collect::<Vec<_>>();
    elements[1].repetition_type = Some(FieldRepetitionType::Optional);
    Schema::parse(elements, &Limits::default()).unwrap()
}

fn bind(text: &str, schema: &Schema) -> Bound {
    let options = ArrowOptions::default();
    Predicate::parse(text).unwrap().bind(schema, &[], &options).unwrap_or_else(|e| panic!("{e}"))
}

fn chunk(statistics: Statistics, entries: i64) -> ColumnMetaData {
    ColumnMetaData {
        num_values: entries,
        statistics: Some(statistics),
        ..ColumnMetaData::default()
    }
}

fn bounded(min: impl AsRef<[u8]>, max: impl AsRef<[u8]>) -> Statistics {
    Statistics {
        min_value: Some(min.as_ref().to_vec()),
        max_value: Some(max.as_ref().to_vec()),
        ..Statistics::default()
    }
}

/// The result of pruning ten rows with these statistics.
fn pruned(
    text: &str,
    schema: &Schema,
    order: Option<&ColumnOrder>,
    statistics: &Statistics,
) -> PruneResult {
    let leaf = schema.leaf(0).unwrap();
    let facts = ColumnFacts::of_chunk(&leaf, order, &chunk(statistics.clone(), 10), 10);
    bind(text, schema).prune_row_group(10, |_| Some(&facts))
}

#[test]
fn bounds_answer_comparisons() {
    let schema = leaf(Type::Int32, None, None);
    let statistics = bounded(10i32.to_le_bytes(), 20i32.to_le_bytes());
    for (text, expected) in [
        ("x = 9", Cannot),
        ("x = 10", Might),
        ("x < 10", Cannot),
        ("x <= 10", Might),
        ("x < 21", Always),
        ("x >= 10", Always),
        ("x > 20", Cannot),
        ("x <> 21", Always),
        ("not x = 21", Always),
        ("x in (1, 2, 30)", Cannot),
        ("x not in (1, 2)", Always),
        ("x between 0 and 30", Always),
        ("x between 21 and 30", Cannot),
        ("x = null", Cannot),
        ("not x = null", Cannot),
        ("x is null", Cannot),
        ("x is not null", Always),
        ("x < 5 or x > 25", Cannot),
        ("x > 5 and x < 15", Might),
        ("true or x = 15", Always),
    ] {
        assert_eq!(pruned(text, &schema, TYPE, &statistics), expected, "{text}");
    }
    // Without an order there are no bounds, nor with one that is unknown or is not for the type.
    for order in [None, TOTAL, INT96, Some(&ColumnOrder::default())] {
        assert_eq!(pruned("x = 9", &schema, order, &statistics), Might, "{order:?}");
    }
    // Bounds that exclude each other, or have another length.
    for wrong in
        [bounded(20i32.to_le_bytes(), 10i32.to_le_bytes()), bounded([1], 20i32.to_le_bytes())]
    {
        assert_eq!(pruned("x = 100", &schema, TYPE, &wrong), Might);
    }
}

#[test]
fn a_cut_bound_proves_no_equality() {
    let schema = leaf(Type::ByteArray, Some(LogicalType::String), None);
    let mut statistics = bounded("abc", "abc");
    assert_eq!(pruned("x = 'abc'", &schema, TYPE, &statistics), Always);
    assert_eq!(pruned("x in ('abc', 'b')", &schema, TYPE, &statistics), Always);
    statistics.is_max_value_exact = Some(false);
    assert_eq!(pruned("x = 'abc'", &schema, TYPE, &statistics), Might);
    assert_eq!(pruned("x <> 'abc'", &schema, TYPE, &statistics), Might);
    assert_eq!(pruned("x in ('abc', 'b')", &schema, TYPE, &statistics), Might);
    assert_eq!(pruned("x = 'abd'", &schema, TYPE, &statistics), Cannot);
    let statistics = bounded("prefix-a", "prefix-c");
    for (text, expected) in [
        ("starts_with(x, 'prefix-')", Always),
        ("starts_with(x, 'prefix-b')", Might),
        ("starts_with(x, 'prefix-d')", Cannot),
        ("starts_with(x, 'a')", Cannot),
        ("x like 'prefix%'", Always),
        ("x like 'prefix_b'", Might),
        ("x like 'q%b'", Cannot),
        ("x not like 'q%b'", Always),
        ("x like '%'", Always),
    ] {
        assert_eq!(pruned(text, &schema, TYPE, &statistics), expected, "{text}");
    }
}

#[test]
fn floats_have_nans_and_two_zeros() {
    let schema = leaf(Type::Double, None, None);
    let of = |min: f64, max: f64, nans: Option<i64>| Statistics {
        nan_count: nans,
        ..bounded(min.to_le_bytes(), max.to_le_bytes())
    };
    for order in [TYPE, TOTAL] {
        for (text, nans, expected) in [
            ("x > 5", Some(0), Cannot),
            // NaN is greater than all.
            ("x > 5", None, Might),
            ("x > 5", Some(3), Might),
            ("x <= 2", Some(0), Always),
            ("x <= 2", None, Might),
            ("x < 1", None, Cannot),
            ("x = double 'nan'", Some(0), Cannot),
            ("x = double 'nan'", None, Might),
            ("x <> double 'nan'", Some(0), Always),
            ("x <= double 'nan'", None, Always),
            ("x = double 'nan'", Some(10), Always),
            ("x = 1", Some(10), Cannot),
            ("x in (5, double 'nan')", Some(0), Cannot),
            ("x in (5, double 'nan')", None, Might),
        ] {
            assert_eq!(
                pruned(text, &schema, order, &of(1.0, 2.0, nans)),
                expected,
                "{text} {nans:?}"
            );
        }
    }
    // A bound of +0 does not exclude -0, and the other way round.
    for zero in [0.0, -0.0] {
        assert_eq!(pruned("x = 0", &schema, TYPE, &of(zero, 1.0, Some(0))), Might);
        assert_eq!(pruned("x = 0", &schema, TYPE, &of(-1.0, zero, Some(0))), Might);
        assert_eq!(pruned("x = 0", &schema, TYPE, &of(zero, -zero, Some(0))), Always);
        assert_eq!(pruned("x < 0", &schema, TYPE, &of(zero, 1.0, Some(0))), Cannot);
    }
    // A bound that is NaN is none; the other stays.
    assert_eq!(pruned("x < 1", &schema, TYPE, &of(1.0, f64::NAN, Some(0))), Cannot);
    assert_eq!(pruned("x > 9", &schema, TYPE, &of(1.0, f64::NAN, Some(0))), Might);
    assert_eq!(pruned("x = 3", &schema, TYPE, &of(f64::NAN, f64::NAN, None)), Might);
}

#[test]
fn orders_are_those_of_the_types() {
    let int =
        |bits, signed| Some(LogicalType::Integer(IntType { bit_width: bits, is_signed: signed }));
    let unsigned = leaf(Type::Int32, int(32, false), None);
    let statistics = bounded(1u32.to_le_bytes(), u32::MAX.to_le_bytes());
    assert_eq!(pruned("x = 4000000000", &unsigned, TYPE, &statistics), Might);
    assert_eq!(pruned("x = 0", &unsigned, TYPE, &statistics), Cannot);
    // Outside of its range an INTEGER(8) is read as something else.
    let narrow = leaf(Type::Int32, int(8, true), None);
    let wide = bounded(300i32.to_le_bytes(), 300i32.to_le_bytes());
    assert_eq!(pruned("x = 44", &narrow, TYPE, &wide), Might);
    // Decimals in bytes, of unequal lengths.
    let decimal = Some(LogicalType::Decimal(DecimalType { precision: 6, scale: 2 }));
    let bytes = leaf(Type::ByteArray, decimal.clone(), None);
    let statistics = bounded([0xFF], [0x01, 0x00]);
    assert_eq!(pruned("x > 2.56", &bytes, TYPE, &statistics), Cannot);
    assert_eq!(pruned("x >= -0.01", &bytes, TYPE, &statistics), Always);
    let fixed = leaf(Type::FixedLenByteArray, decimal, Some(3));
    assert_eq!(pruned("x > 2.56", &fixed, TYPE, &statistics), Might, "of the wrong length");
    // INT96: only in the order of time.
    let int96 = leaf(Type::Int96, None, None);
    let day = |day: i32| [&0u64.to_le_bytes()[..], &day.to_le_bytes()].concat();
    let statistics = bounded(day(2_440_588), day(2_440_589));
    let late = "x > timestamp '1970-01-03 00:00:00'";
    assert_eq!(pruned(late, &int96, TYPE, &statistics), Might);
    assert_eq!(pruned(late, &int96, INT96, &statistics), Cannot);
    // A day has no nanoseconds below 0, nor more than its own.
    for nanos in [-1, 86_400_000_000_000, i64::MIN] {
        let day = |day: i32| [&nanos.to_le_bytes()[..], &day.to_le_bytes()].concat();
        let statistics = bounded(day(2_440_588), day(2_440_589));
        for text in [late, "x < timestamp '1970-01-01 00:00:00'"] {
            assert_eq!(pruned(text, &int96, INT96, &statistics), Might, "{text}, {nanos}");
        }
    }
    // Of an annotation that is unknown, the order is too.
    let odd = leaf(Type::Int32, Some(LogicalType::Uuid), None);
    let statistics = bounded(1i32.to_le_bytes(), 2i32.to_le_bytes());
    assert_eq!(pruned("x = 5", &odd, TYPE, &statistics), Might);
    // Without an order there is nothing.
    let mut elements = leaf(Type::FixedLenByteArray, None, Some(12)).elements().collect::<Vec<_>>();
    elements[1].converted_type = Some(ConvertedType::Interval);
    let interval = Schema::parse(elements, &Limits::default()).unwrap();
    assert_eq!(pruned("x is null", &interval, TYPE, &bounded([0; 12], [0; 12])), Cannot);
}

#[test]
fn bounds_within_the_annotated_range_count() {
    for (bit_width, is_signed, min, max) in
        [(8, true, -128, 127), (8, false, 0, 255), (16, true, -32_768, 32_767)]
    {
        let int = LogicalType::Integer(IntType { bit_width, is_signed });
        let schema = leaf(Type::Int32, Some(int), None);
        let of = |min: i32, max: i32| bounded(min.to_le_bytes(), max.to_le_bytes());
        if min < 0 {
            assert_eq!(pruned("x >= -1", &schema, TYPE, &of(min, -2)), Cannot, "{bit_width}");
        }
        assert_eq!(pruned("x > 5", &schema, TYPE, &of(1, 5)), Cannot, "{bit_width}");
        assert_eq!(pruned("x <= 5", &schema, TYPE, &of(1, 5)), Always, "{bit_width}");
        assert_eq!(pruned("x > 5", &schema, TYPE, &of(6, max)), Always, "{bit_width}");
    }
}

/// Binds to a file that is read as other columns.
fn bind_as(predicate: &Predicate, schema: &Schema, columns: Vec<Field>) -> Bound {
    let target = Arc::new(ArrowSchema::new(columns));
    let options = ArrowOptions::default().with_target(target, MatchBy::Name);
    predicate.bind(schema, &[], &options).unwrap()
}

#[test]
fn integers_that_are_read_as_floats_have_no_nan() {
    let schema = leaf(Type::Int32, None, None);
    let statistics = bounded(10i32.to_le_bytes(), 20i32.to_le_bytes());
    let facts = ColumnFacts::of_chunk(&schema.leaf(0).unwrap(), TYPE, &chunk(statistics, 10), 10);
    let x = || vec![Field::new("x", DataType::Float64, false)];
    for (text, expected) in
        [("x < 20.5", Always), ("x > 20", Cannot), ("x > 10", Might), ("x = double 'nan'", Cannot)]
    {
        let bound = bind_as(&Predicate::parse(text).unwrap(), &schema, x());
        assert_eq!(bound.prune_row_group(10, |_| Some(&facts)), expected, "{text}");
    }
}

#[test]
fn parts_of_a_variant_that_the_file_lacks_are_null() {
    let schema = leaf(Type::Int32, None, None);
    let columns = || vec![VariantArray::field("v", true)];
    let part = || col("v").variant_get("$.a".parse().unwrap(), DataType::Int64);
    for (predicate, expected) in [
        (part().eq(1), Cannot),
        (part().is_null(), Always),
        (not(part().is_null()), Cannot),
        (col("v").is_null(), Always),
    ] {
        let bound = bind_as(&predicate, &schema, columns());
        assert_eq!(bound.prune_row_group(10, |_| None), expected, "{predicate}");
    }
}

#[test]
fn deprecated_bounds_count_for_signed_orders_only() {
    let old = |min: Vec<u8>, max: Vec<u8>| Statistics {
        min: Some(min),
        max: Some(max),
        ..Statistics::default()
    };
    let numbers = || old(10i32.to_le_bytes().to_vec(), 20i32.to_le_bytes().to_vec());
    let int = leaf(Type::Int32, None, None);
    assert_eq!(pruned("x = 9", &int, None, &numbers()), Cannot);
    assert_eq!(pruned("x = 9", &int, TYPE, &numbers()), Cannot);
    let unsigned = Some(LogicalType::Integer(IntType { bit_width: 32, is_signed: false }));
    assert_eq!(pruned("x = 9", &leaf(Type::Int32, unsigned, None), TYPE, &numbers()), Might);
    let text = leaf(Type::ByteArray, Some(LogicalType::String), None);
    assert_eq!(pruned("x = 'z'", &text, TYPE, &old(b"a".to_vec(), b"b".to_vec())), Might);
    let decimal = Some(LogicalType::Decimal(DecimalType { precision: 4, scale: 0 }));
    assert_eq!(
        pruned("x = 9", &leaf(Type::Int32, decimal.clone(), None), None, &numbers()),
        Cannot
    );
    let fixed = leaf(Type::FixedLenByteArray, decimal, Some(2));
    assert_eq!(pruned("x = 9", &fixed, TYPE, &old(vec![0, 1], vec![0, 2])), Might);
}

#[test]
fn counts_answer_for_nulls() {
    let schema = optional(&leaf(Type::Int32, None, None));
    let of = |nulls: Option<i64>| Statistics {
        null_count: nulls,
        ..bounded(1i32.to_le_bytes(), 2i32.to_le_bytes())
    };
    for (text, nulls, expected) in [
        ("x is null", Some(0), Cannot),
        ("x is null", Some(10), Always),
        ("x is null", Some(3), Might),
        // Absent is not 0, and what cannot be is not trusted.
        ("x is null", None, Might),
        ("x is null", Some(11), Might),
        ("x is null", Some(-1), Might),
        ("x > 0", Some(0), Always),
        ("x > 0", Some(1), Might),
        ("x > 0", None, Might),
        ("x > 5", None, Cannot),
        ("not x > 5", Some(1), Might),
        ("x = 1", Some(10), Cannot),
        ("x > 0 or x is null", None, Might),
    ] {
        assert_eq!(pruned(text, &schema, TYPE, &of(nulls)), expected, "{text} {nulls:?}");
    }
    let leaf = schema.leaf(0).unwrap();
    let with = |histogram: Vec<i64>, nulls: Option<i64>| {
        let mut meta = chunk(Statistics { null_count: nulls, ..Statistics::default() }, 10);
        meta.size_statistics = Some(SizeStatistics {
            definition_level_histogram: Some(histogram),
            ..SizeStatistics::default()
        });
        let facts = ColumnFacts::of_chunk(&leaf, TYPE, &meta, 10);
        bind("x is null", &schema).prune_row_group(10, |_| Some(&facts))
    };
    assert_eq!(with(vec![10, 0], None), Always);
    assert_eq!(with(vec![0, 10], None), Cannot);
    assert_eq!(with(vec![0, 10], Some(1)), Might, "a contradiction");
    assert_eq!(with(vec![0, 9], None), Might, "not as many as there are rows");
    assert_eq!(with(vec![], None), Might, "an empty list is none");
}

#[test]
fn histograms_tell_null_lists_from_empty_ones() {
    let element = |name: &str, repetition, children, r#type| SchemaElement {
        name: name.into(),
        num_children: children,
        r#type,
        repetition_type: Some(repetition),
        ..SchemaElement::default()
    };
    use FieldRepetitionType::{Optional, Repeated};
    let mut list = element("l", Optional, Some(1), None);
    list.logical_type = Some(LogicalType::List);
    let schema = Schema::parse(
        vec![
            SchemaElement {
                name: "root".into(),
                num_children: Some(1),
                ..SchemaElement::default()
            },
            list,
            element("list", Repeated, Some(1), None),
            element("element", Optional, None, Some(Type::Int32)),
        ],
        &Limits::default(),
    )
    .unwrap();
    let leaf = schema.leaf(0).unwrap();
    // Levels: 0 null, 1 empty, 2 a null element, 3 an element.
    let pruned = |text: &str, histogram: [i64; 4]| {
        let mut meta =
            chunk(bounded(1i32.to_le_bytes(), 2i32.to_le_bytes()), histogram.iter().sum());
        meta.size_statistics = Some(SizeStatistics {
            definition_level_histogram: Some(histogram.to_vec()),
            ..SizeStatistics::default()
        });
        let facts = ColumnFacts::of_chunk(&leaf, TYPE, &meta, 4);
        bind(text, &schema).prune_row_group(4, |_| Some(&facts))
    };
    for (text, histogram, expected) in [
        ("l is null", [4, 0, 0, 0], Always),
        ("l is null", [0, 1, 1, 9], Cannot),
        ("l is empty", [0, 4, 0, 0], Always),
        ("l is empty", [2, 0, 0, 9], Cannot),
        ("l is empty", [2, 2, 0, 0], Might),
        ("any(l) > 0", [0, 0, 0, 9], Always),
        ("any(l) > 0", [0, 1, 0, 9], Might),
        ("any(l) > 5", [1, 1, 1, 9], Cannot),
        ("all(l) > 0", [0, 1, 0, 9], Always),
        ("all(l) > 0", [1, 1, 0, 9], Might),
        ("all(l) > 5", [0, 4, 0, 0], Always),
        ("all(l) > 5", [0, 0, 0, 9], Cannot),
        ("all(l) > 5", [0, 1, 0, 9], Might),
        ("any(l.list.element) is null", [1, 1, 0, 9], Cannot),
        ("not any(l) > 5", [0, 1, 0, 9], Always),
    ] {
        assert_eq!(pruned(text, histogram), expected, "{text} {histogram:?}");
    }
    // Without histogram, a count of no nulls does not say that there are no empty lists.
    let meta = chunk(
        Statistics { null_count: Some(0), ..bounded(1i32.to_le_bytes(), 2i32.to_le_bytes()) },
        9,
    );
    let facts = ColumnFacts::of_chunk(&leaf, TYPE, &meta, 4);
    assert_eq!(bind("any(l) > 0", &schema).prune_row_group(4, |_| Some(&facts)), Might);
    assert_eq!(bind("any(l) > 5", &schema).prune_row_group(4, |_| Some(&facts)), Cannot);
}

#[test]
fn bloom_filters_and_dictionaries_know_what_is_not_there() {
    let schema = leaf(Type::Double, None, None);
    let mut bloom = Bloom::new(100, 0.0001).unwrap();
    bloom.insert(&(-0.0f64).to_le_bytes());
    bloom.insert(&2.5f64.to_le_bytes());
    let facts = ColumnFacts {
        bloom: Some(Blocks::from(bloom)),
        nulls: Some(0),
        ..ColumnFacts::unknown(10)
    };
    let pruned = |text: &str, schema: &Schema, facts: &ColumnFacts| {
        bind(text, schema).prune_row_group(10, |_| Some(facts))
    };
    for (text, expected) in [
        ("x = 0", Might),
        ("x = 2.5", Might),
        ("x = 3", Cannot),
        ("x <> 3", Always),
        ("x in (3, 4)", Cannot),
        ("x in (3, 2.5)", Might),
        ("x not in (3, 4)", Always),
        ("x > 3", Might),
        ("x = double 'nan'", Might),
    ] {
        assert_eq!(pruned(text, &schema, &facts), expected, "{text}");
    }
    assert_eq!(bind("x = 0", &schema).bloom_probes()[0].hashes.len(), 2, "both zeros");
    assert!(bind("x > 0 or x = double 'nan'", &schema).bloom_probes().is_empty());
    // A decimal in a BYTE_ARRAY has many forms; in an INT32 one.
    let decimal = Some(LogicalType::Decimal(DecimalType { precision: 6, scale: 2 }));
    let bytes = leaf(Type::ByteArray, decimal.clone(), None);
    assert!(bind("x = 1", &bytes).bloom_probes().is_empty());
    let word = leaf(Type::Int32, decimal, None);
    let hashes = vec![crate::stats::bloom::hash(&100i32.to_le_bytes())];
    assert_eq!(bind("x = 1", &word).bloom_probes(), [BloomProbe { leaf: 0, hashes }]);

    let schema = leaf(Type::Int32, None, None);
    let entries: ArrayRef = Arc::new(Int32Array::from(vec![2, 4, 6]));
    let facts =
        ColumnFacts { dictionary: Some(entries), nulls: Some(0), ..ColumnFacts::unknown(10) };
    for (text, expected) in [
        ("x = 3", Cannot),
        ("x = 4", Might),
        ("x in (2, 4, 6)", Always),
        ("x < 7", Always),
        ("x in (3, null)", Cannot),
    ] {
        assert_eq!(pruned(text, &schema, &facts), expected, "{text}");
    }
    let stats = |pages: &[(PageType, Encoding)]| ColumnMetaData {
        encoding_stats: Some(
            pages
                .iter()
                .map(|(page_type, encoding)| PageEncodingStats {
                    page_type: *page_type,
                    encoding: *encoding,
                    count: 1,
                })
                .collect(),
        ),
        ..ColumnMetaData::default()
    };
    let dictionary = (PageType::DictionaryPage, Encoding::Plain);
    let data = (PageType::DataPage, Encoding::RleDictionary);
    assert!(dictionary_is_complete(&stats(&[dictionary, data])));
    assert!(!dictionary_is_complete(&stats(&[
        dictionary,
        data,
        (PageType::DataPageV2, Encoding::Plain)
    ])));
    assert!(!dictionary_is_complete(&stats(&[dictionary])));
    assert!(!dictionary_is_complete(&ColumnMetaData::default()));
}

/// Indexes of three pages of rows 0..4, 4..6 and 6..10; the second has only nulls.
fn indexes() -> (OffsetIndex, ColumnIndex) {
    let location = |i: i64, row| PageLocation {
        offset: 100 * (i + 1),
        compressed_page_size: 50,
        first_row_index: row,
    };
    let word = |v: i32| v.to_le_bytes().to_vec();
    let offsets = OffsetIndex {
        page_locations: vec![location(0, 0), location(1, 4), location(2, 6)],
        ..OffsetIndex::default()
    };
    let columns = ColumnIndex {
        null_pages: vec![false, true, false],
        min_values: vec![word(1), vec![], word(5)],
        max_values: vec![word(3), vec![], word(9)],
        boundary_order: BoundaryOrder::Ascending,
        null_counts: Some(vec![0, 2, 1]),
        ..ColumnIndex::default()
    };
    (offsets, columns)
}

#[test]
fn pages_answer_for_their_rows() {
    let schema = optional(&leaf(Type::Int32, None, None));
    let (offsets, columns) = indexes();
    let leaf = schema.leaf(0).unwrap();
    let pages = PageFacts::of_indexes(&leaf, TYPE, &offsets, &columns, 10).unwrap();
    let ranges = |text: &str| bind(text, &schema).prune_pages(10, |_| None, |_| Some(&pages));
    assert_eq!(ranges("x <= 3"), [(0..4, Always), (4..10, Cannot)]);
    assert_eq!(ranges("x >= 5"), [(0..6, Cannot), (6..10, Might)]);
    assert_eq!(ranges("x is null"), [(0..4, Cannot), (4..6, Always), (6..10, Might)]);
    assert_eq!(ranges("x = 2 or x = 7"), [(0..4, Might), (4..6, Cannot), (6..10, Might)]);
    assert_eq!(ranges("x = 20"), [(0..10, Cannot)]);
    assert_eq!(ranges("true"), [(0..10, Always)]);
    assert_eq!(bind("true", &schema).prune_pages(0, |_| None, |_| None), []);
    // Pages of other rows say nothing.
    let other = bind("x = 20", &schema).prune_pages(11, |_| None, |_| Some(&pages));
    assert_eq!(other, [(0..11, Might)]);
}

/// `x` and `y`, OPTIONAL.
fn two_leaves() -> Schema {
    let mut elements = optional(&leaf(Type::Int32, None, None)).elements().collect::<Vec<_>>();
    elements[0].num_children = Some(2);
    elements.push(SchemaElement { name: "y".into(), ..elements[1].clone() });
    Schema::parse(elements, &Limits::default()).unwrap()
}

#[test]
fn each_leaf_has_one_probe_with_all_hashes() {
    let hash = |value: i32| crate::stats::bloom::hash(&value.to_le_bytes());
    let sorted = |mut hashes: Vec<u64>| {
        hashes.sort_unstable();
        hashes
    };
    let bound = bind("x = 1 and y in (2, 3) or x = 4 and x = 1", &two_leaves());
    let mut probes = bound.bloom_probes();
    probes.sort_by_key(|probe| probe.leaf);
    let expected = [
        BloomProbe { leaf: 0, hashes: sorted(vec![hash(1), hash(4)]) },
        BloomProbe { leaf: 1, hashes: sorted(vec![hash(2), hash(3)]) },
    ];
    assert_eq!(probes, expected);
}

#[test]
fn functions_look_at_the_leaves_of_their_columns() {
    let schema = two_leaves();
    let x = || Predicate::parse("x < 1").unwrap();
    let function = || Predicate::function(["y"], |batch| Ok(vec![true; batch.num_rows()].into()));
    for predicate in
        [function(), not(function()), x().and(function()), x().or(not(function().and(x())))]
    {
        let bound = predicate.bind(&schema, &[], &ArrowOptions::default()).unwrap();
        assert_eq!(bound.function_leaves(), [1]);
    }
    assert!(bind("x < 1 or y < 2", &schema).function_leaves().is_empty());
}

#[test]
fn pages_of_different_columns_meet_where_they_end() {
    let schema = two_leaves();
    let (mut offsets, mut columns) = indexes();
    let of = |leaf, offsets: &OffsetIndex, columns: &ColumnIndex| {
        PageFacts::of_indexes(&schema.leaf(leaf).unwrap(), TYPE, offsets, columns, 10).unwrap()
    };
    let x = of(0, &offsets, &columns);
    offsets.page_locations[1].first_row_index = 2;
    offsets.page_locations[2].first_row_index = 3;
    columns.null_counts = Some(vec![0, 1, 0]);
    let y = of(1, &offsets, &columns);
    let pages = [x, y];
    let ranges = |text: &str| bind(text, &schema).prune_pages(10, |_| None, |leaf| pages.get(leaf));
    assert_eq!(ranges("x <= 3 and y <= 3"), [(0..2, Always), (2..10, Cannot)]);
    assert_eq!(ranges("x <= 3 or y <= 3"), [(0..4, Always), (4..10, Cannot)]);
    assert_eq!(ranges("x <= 3 or y >= 5"), [(0..10, Always)]);
    assert_eq!(ranges("x >= 5 and y >= 5"), [(0..6, Cannot), (6..10, Might)]);
}

#[test]
fn an_index_that_contradicts_is_refused_with_a_reason() {
    let schema = optional(&leaf(Type::Int32, None, None));
    let leaf = schema.leaf(0).unwrap();
    type Break = fn(&mut OffsetIndex, &mut ColumnIndex);
    let breaks: &[(&str, Break)] = &[
        ("a list is shorter", |_, columns| _ = columns.max_values.pop()),
        ("counts of nulls are fewer", |_, columns| columns.null_counts = Some(vec![0])),
        ("rows do not rise", |offsets, _| offsets.page_locations[2].first_row_index = 4),
        ("rows do not begin at 0", |offsets, _| offsets.page_locations[0].first_row_index = 1),
        ("rows beyond the row group", |offsets, _| offsets.page_locations[2].first_row_index = 10),
        ("pages overlap", |offsets, _| offsets.page_locations[1].offset = 120),
        ("a page of nulls with bounds", |_, columns| columns.min_values[1] = vec![0; 4]),
        ("a page of nulls with values", |_, columns| columns.null_counts = Some(vec![0, 1, 1])),
        ("a page of values without any", |_, columns| columns.null_counts = Some(vec![4, 2, 1])),
        ("more nulls than rows", |_, columns| columns.null_counts = Some(vec![5, 2, 1])),
        ("a negative count", |_, columns| columns.null_counts = Some(vec![-1, 2, 1])),
        ("bounds that exclude each other", |_, columns| {
            columns.max_values[0] = 0i32.to_le_bytes().to_vec()
        }),
        ("histograms of other pages", |_, columns| {
            columns.definition_level_histograms = Some(vec![0, 4, 2, 0])
        }),
        ("histograms of other counts", |_, columns| {
            columns.definition_level_histograms = Some(vec![0, 4, 2, 0, 2, 2]);
        }),
        ("a negative histogram", |_, columns| {
            columns.definition_level_histograms = Some(vec![-1, 5, 2, 0, 1, 3]);
        }),
    ];
    for (what, break_it) in breaks {
        let (mut offsets, mut columns) = indexes();
        break_it(&mut offsets, &mut columns);
        let refused = PageFacts::of_indexes(&leaf, TYPE, &offsets, &columns, 10);
        let kind = refused.map(|_| ()).map_err(|e| e.kind());
        assert_eq!(kind, Err(ErrorKind::Malformed(crate::Spec::PageIndex)), "{what}");
    }
    let (offsets, mut columns) = indexes();
    columns.definition_level_histograms = Some(vec![0, 4, 2, 0, 1, 3]);
    PageFacts::of_indexes(&leaf, TYPE, &offsets, &columns, 10).unwrap();
}

#[test]
fn pages_contradict_the_chunk_by_nulls_and_by_bounds_that_are_never_cut() {
    let (offsets, columns) = indexes();
    let check = |schema: &Schema, columns: &ColumnIndex, statistics: Statistics| {
        let leaf = schema.leaf(0).unwrap();
        let pages = PageFacts::of_indexes(&leaf, TYPE, &offsets, columns, 10).unwrap();
        let facts = ColumnFacts::of_chunk(&leaf, TYPE, &chunk(statistics, 10), 10);
        pages.check_against(&leaf, &facts).map_err(|error| error.kind())
    };
    let wrong = Err(ErrorKind::Malformed(crate::Spec::PageIndex));
    let ints = optional(&leaf(Type::Int32, None, None));
    let of = |min: i32, max: i32, nulls| Statistics {
        null_count: Some(nulls),
        ..bounded(min.to_le_bytes(), max.to_le_bytes())
    };
    assert_eq!(check(&ints, &columns, of(1, 9, 3)), Ok(()));
    assert_eq!(check(&ints, &columns, of(1, 9, 2)), wrong);
    assert_eq!(check(&ints, &columns, of(0, 9, 3)), wrong);
    assert_eq!(check(&ints, &columns, of(1, 10, 3)), wrong);
    // Strings of pages may be cut where those of the chunk are not.
    let texts = optional(&leaf(Type::ByteArray, Some(LogicalType::String), None));
    let cut = ColumnIndex {
        min_values: vec![b"a".to_vec(), vec![], b"b".to_vec()],
        max_values: vec![b"b".to_vec(), vec![], b"d".to_vec()],
        ..columns
    };
    let statistics = Statistics {
        null_count: Some(3),
        is_min_value_exact: Some(true),
        is_max_value_exact: Some(true),
        ..bounded("abc", "cba")
    };
    assert_eq!(check(&texts, &cut, statistics), Ok(()));
}
