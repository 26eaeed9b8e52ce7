//! Tests every Arrow type at its extremes: written values come back unchanged, by the hint, or are
//! refused before a wrong value is in the file. The table is that of `schema::from_arrow`.

use std::sync::Arc;

use arrow_buffer::*;
use arrow_select::concat::concat_batches;
use marquetry::arrow_array::types::*;
use marquetry::arrow_array::*;
use marquetry::arrow_schema::*;
use marquetry::io::WriteSink;
use marquetry::schema::{FromArrowOptions, MatchBy, from_arrow, unite};
use marquetry::{
    ErrorKind, Predicate, Reader, Result, RowGroupEncoder, RowSelection, WriteOptions, Writer, col,
};

use crate::support::read_with;

fn written(batch: &RecordBatch, options: WriteOptions) -> Result<bytes::Bytes> {
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options)?;
    writer.write(batch)?;
    Ok(writer.into_inner()?.1.into())
}

fn batch_of(array: ArrayRef) -> RecordBatch {
    let nullable = array.is_nullable() || array.len().is_multiple_of(2);
    let field = Field::new("a", array.data_type().clone(), nullable);
    RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).expect("a batch")
}

fn all_of(reader: Reader) -> RecordBatch {
    let schema = reader.schema().expect("a schema");
    concat_batches(&schema, &read_with(reader).expect("rows")).expect("one batch")
}

fn open(file: &bytes::Bytes) -> Reader {
    Reader::new(file.clone()).expect("a file")
}

/// Reports the difference of a case.
fn differs(case: &str, found: &ArrayRef, expected: &ArrayRef) {
    found.to_data().validate_full().unwrap_or_else(|e| panic!("{case}: {e}"));
    assert_eq!(found.data_type(), expected.data_type(), "{case}");
    // Dictionaries and runs come back with other keys.
    let plain = |array: &ArrayRef| match array.data_type() {
        DataType::Dictionary(_, of) => arrow_cast::cast(array, of).expect("values"),
        DataType::RunEndEncoded(_, of) => arrow_cast::cast(array, of.data_type()).expect("values"),
        _ => array.clone(),
    };
    assert_eq!(plain(found).to_data(), plain(expected).to_data(), "{case}");
}

fn no_bytes(nulls: Option<Vec<bool>>, n: usize) -> ArrayRef {
    let none = Buffer::from_vec(Vec::<u8>::new());
    let nulls = nulls.map(NullBuffer::from);
    Arc::new(FixedSizeBinaryArray::try_new_with_len(0, none, nulls, n).expect("an array"))
}

fn empty_structs(valid: Vec<bool>) -> ArrayRef {
    let n = valid.len();
    let nulls = Some(NullBuffer::from(valid)).filter(|nulls| nulls.null_count() > 0);
    Arc::new(StructArray::new_empty_fields(n, nulls))
}

fn decimals<T: DecimalType>(values: Vec<Option<T::Native>>, precision: u8, scale: i8) -> ArrayRef {
    let array = PrimitiveArray::<T>::from_iter(values);
    Arc::new(array.with_precision_and_scale(precision, scale).expect("a decimal"))
}

/// Leaves that the format has no column for.
fn stood_for() -> Vec<(&'static str, ArrayRef)> {
    let most = i256::from_i128(10).wrapping_pow(76) / i256::from_i128(10) - i256::ONE;
    let wide = 10i128.pow(38) - 1;
    vec![
        ("decimal32", decimals::<Decimal32Type>(vec![Some(-999), None, Some(0), Some(999)], 3, -6)),
        (
            "decimal32 in 64 bits",
            decimals::<Decimal32Type>(vec![Some(999_999_999), Some(-1)], 9, -9),
        ),
        ("decimal64", decimals::<Decimal64Type>(vec![Some(-12), Some(99), None], 2, -16)),
        ("decimal64 in bytes", decimals::<Decimal64Type>(vec![Some(10i64.pow(18) - 1)], 18, -9)),
        ("decimal128", decimals::<Decimal128Type>(vec![Some(wide), Some(-wide), None], 38, -38)),
        ("decimal128 in 32 bits", decimals::<Decimal128Type>(vec![Some(5), Some(-9)], 1, -1)),
        ("decimal256", decimals::<Decimal256Type>(vec![Some(most), Some(-most), None], 75, -1)),
        ("no bytes", no_bytes(None, 3)),
        ("no bytes, nulls", no_bytes(Some(vec![true, false, true, false]), 4)),
        ("nothing but nulls of no bytes", no_bytes(Some(vec![false; 5]), 5)),
    ]
}

/// Types that are kept in full range only.
fn full_range() -> Vec<(&'static str, ArrayRef)> {
    let (day, nano) = (IntervalDayTime::new, IntervalMonthDayNano::new);
    vec![
        (
            "date64",
            Arc::new(Date64Array::from(vec![Some(i64::MIN), None, Some(1), Some(i64::MAX)])),
        ),
        (
            "months",
            Arc::new(IntervalYearMonthArray::from(vec![Some(i32::MIN), None, Some(i32::MAX)])),
        ),
        (
            "days",
            Arc::new(IntervalDayTimeArray::from(vec![
                IntervalDayTime::MIN,
                IntervalDayTime::MAX,
                day(-1, 1),
                day(1, -1),
            ])),
        ),
        (
            "nanoseconds",
            Arc::new(IntervalMonthDayNanoArray::from(vec![
                Some(IntervalMonthDayNano::MIN),
                Some(IntervalMonthDayNano::MAX),
                None,
                Some(nano(-1, 1, -1)),
                Some(nano(1, -1, 1)),
            ])),
        ),
    ]
}

/// Leaves of all other types, at their edges.
fn edges() -> Vec<(&'static str, ArrayRef)> {
    let (low, high) = (i64::MIN, i64::MAX);
    let zoned = |array: TimestampNanosecondArray| array.with_timezone("+01:00");
    vec![
        ("null", Arc::new(NullArray::new(3))),
        ("time32(ms)", Arc::new(Time32MillisecondArray::from(vec![i32::MIN, 0, i32::MAX]))),
        ("time64(us)", Arc::new(Time64MicrosecondArray::from(vec![low, 0, high]))),
        ("time64(ns)", Arc::new(Time64NanosecondArray::from(vec![low, 0, high]))),
        ("time32(s)", Arc::new(Time32SecondArray::from(vec![0, 86_399, 2_147_483]))),
        ("timestamp(s)", Arc::new(TimestampSecondArray::from(vec![low / 1000, 0, high / 1000]))),
        ("timestamp(ms)", Arc::new(TimestampMillisecondArray::from(vec![low, 0, high]))),
        ("timestamp(ns)", Arc::new(zoned(TimestampNanosecondArray::from(vec![low, 0, high])))),
        ("duration(s)", Arc::new(DurationSecondArray::from(vec![low, 0, high]))),
        ("duration(ns)", Arc::new(DurationNanosecondArray::from(vec![low, 0, high]))),
        ("date32", Arc::new(Date32Array::from(vec![i32::MIN, 0, i32::MAX]))),
        ("date64", Arc::new(Date64Array::from(vec![-86_400_000, 0, 86_400_000 * 0x7FFF_FFFF]))),
        ("decimal", decimals::<Decimal32Type>(vec![Some(-999_999_999), Some(1)], 9, 9)),
        (
            "views",
            Arc::new(StringViewArray::from(vec![Some(""), None, Some("more than 12 bytes")])),
        ),
        ("bytes", Arc::new(BinaryViewArray::from(vec![Some(&b""[..]), None, Some(b"\xFF")]))),
        ("halves", Arc::new(Float16Array::from(vec![half::f16::NEG_ZERO, half::f16::INFINITY]))),
    ]
}

fn item(array: &ArrayRef) -> FieldRef {
    Arc::new(Field::new_list_field(array.data_type().clone(), true))
}

fn ints(n: usize) -> ArrayRef {
    Arc::new(Int32Array::from_iter_values(0..n as i32))
}

/// Nested arrays of these values, which are at least one.
fn nested(values: &ArrayRef) -> Vec<(&'static str, ArrayRef)> {
    let n = values.len() as i32;
    let item = item(values);
    let valid = || Some(NullBuffer::from(vec![true, false, true, true]));
    let ends = vec![0, 0, 0, n - 1, n];
    let offsets = OffsetBuffer::new(ends.into());
    let lists = ListArray::new(item.clone(), offsets.clone(), values.clone(), valid());
    let (starts, sizes) = (vec![n - 1, 0, 0, 0], vec![1, 0, n, 0]);
    let views =
        ListViewArray::new(item.clone(), starts.into(), sizes.into(), values.clone(), valid());
    let in_struct = StructArray::new(
        vec![Field::new("x", values.data_type().clone(), true)].into(),
        vec![values.clone()],
        Some((0..values.len()).map(|i| i % 2 == 0).collect()),
    );
    let fields = Fields::from(vec![
        Field::new("k", DataType::Int32, false),
        Field::new("v", values.data_type().clone(), true),
    ]);
    let entries = StructArray::new(fields, vec![ints(values.len()), values.clone()], None);
    let of_entries = Arc::new(Field::new("e", entries.data_type().clone(), false));
    let map = MapArray::new(of_entries, offsets, entries, valid(), false);
    let fixed = FixedSizeListArray::new(item.clone(), n, values.clone(), None);
    let of_none = values.slice(0, 0);
    let nulls = Some(NullBuffer::from(vec![true, false]));
    let no_items = FixedSizeListArray::try_new_with_length(item, 0, of_none, nulls, 2);
    vec![
        ("list", Arc::new(lists)),
        ("list view", Arc::new(views)),
        ("struct", Arc::new(in_struct)),
        ("map", Arc::new(map)),
        ("fixed-size list", Arc::new(fixed)),
        ("fixed-size list of 0", Arc::new(no_items.expect("an array"))),
    ]
}

/// Dictionaries and runs of these values.
fn keyed(values: &ArrayRef) -> Vec<(&'static str, ArrayRef)> {
    let n = values.len();
    let keys = UInt8Array::from_iter((0..n + 2).map(|i| (i != n).then_some((i % n) as u8)));
    let ends = Int32Array::from_iter_values((0..n).map(|i| 2 * i as i32 + 1));
    vec![
        ("dictionary", Arc::new(DictionaryArray::new(keys, values.clone()))),
        ("runs", Arc::new(RunArray::try_new(&ends, values).expect("runs"))),
    ]
}

/// Checks that an array comes back, whole and in part.
fn comes_back(case: &str, array: &ArrayRef, options: &WriteOptions) {
    let batch = batch_of(array.clone());
    let file = written(&batch, options.clone()).unwrap_or_else(|e| panic!("{case}: {e}"));
    let back = all_of(open(&file));
    assert_eq!(back.schema().field(0), batch.schema().field(0), "{case}");
    differs(case, back.column(0), array);
    // The target has the types of the hint.
    let target = unite([&batch.schema(), &batch.schema()]).expect("a schema");
    let by_target = open(&file).target(target, MatchBy::Name).expect("reachable");
    differs(case, all_of(by_target).column(0), array);
    // A row at a time, and the last ones.
    let by_row = all_of(open(&file).batch_rows(1).threads(1));
    differs(case, by_row.column(0), array);
    let n = array.len();
    let last = std::iter::once(n as u64 / 2..n as u64);
    let last = RowSelection::from_ranges(n as u64, last).expect("rows");
    let found = all_of(open(&file).select(last).expect("rows"));
    differs(case, found.column(0), &array.slice(n / 2, n - n / 2));
    let nulls = array.logical_nulls().map_or(0, |nulls| nulls.null_count());
    let count = |predicate: Predicate| open(&file).filter(predicate).count().expect("a count");
    assert_eq!(count(col("a").is_null()), nulls as u64, "{case}");
    assert_eq!(count(col("a").is_not_null()), (n - nulls) as u64, "{case}");
}

#[test]
fn every_type_comes_back_at_its_edges() {
    for (name, array) in edges().into_iter().chain(stood_for()) {
        comes_back(name, &array, &WriteOptions::new());
        for (form, array) in nested(&array) {
            comes_back(&format!("{name} in a {form}"), &array, &WriteOptions::new());
        }
        if *array.data_type() == DataType::Null
            || *array.data_type() == DataType::FixedSizeBinary(0)
        {
            continue;
        }
        for (form, array) in keyed(&array) {
            comes_back(&format!("{name} in {form}"), &array, &WriteOptions::new());
        }
    }
}

#[test]
fn keys_into_values_of_no_bytes_come_back() {
    for values in [no_bytes(None, 2), no_bytes(Some(vec![false, true]), 2)] {
        for (form, array) in keyed(&values) {
            let batch = batch_of(array.clone());
            let file = written(&batch, WriteOptions::new()).expect("a file");
            // Arrow's concat derives the number of such values from their bytes.
            let back = read_with(open(&file)).expect("rows");
            let [back] = &back[..] else { panic!("one batch") };
            assert_eq!(back.schema().field(0), batch.schema().field(0), "{form}");
            let nulls = |array: &ArrayRef| -> Vec<bool> {
                let nulls = array.logical_nulls();
                (0..array.len()).map(|i| nulls.as_ref().is_some_and(|of| of.is_null(i))).collect()
            };
            assert_eq!(nulls(back.column(0)), nulls(&array), "{form}");
        }
    }
}

#[test]
fn the_full_range_keeps_times_of_day_signs_and_nanoseconds() {
    let options = WriteOptions::new().with_full_range(true);
    for (name, array) in full_range() {
        let refused = written(&batch_of(array.clone()), WriteOptions::new());
        let refused = refused.expect_err("no place");
        assert_eq!(refused.kind(), ErrorKind::Usage, "{name}");
        assert_eq!(refused.at().column.as_deref(), Some("a"), "{name}");
        comes_back(name, &array, &options);
        for (form, array) in nested(&array).into_iter().chain(keyed(&array)) {
            comes_back(&format!("{name} in {form}"), &array, &options);
        }
    }
    // Types that need no wider range are unchanged.
    for (name, array) in edges().into_iter().chain(stood_for()) {
        comes_back(name, &array, &options);
    }
}

#[test]
fn a_struct_without_fields_is_null_or_there() {
    for valid in [vec![true; 3], vec![false; 4], vec![true, false, true], vec![false]] {
        let array = empty_structs(valid.clone());
        comes_back(&format!("{valid:?}"), &array, &WriteOptions::new());
        for (form, array) in nested(&array) {
            comes_back(&format!("{valid:?} in a {form}"), &array, &WriteOptions::new());
            for (outer, array) in nested(&array) {
                let case = format!("{valid:?} in a {form} in a {outer}");
                comes_back(&case, &array, &WriteOptions::new());
            }
        }
    }
    // Beside other fields, and by its name alone.
    let fields = Fields::from(vec![
        Field::new("x", DataType::Int32, true),
        Field::new("e", DataType::Struct(Fields::empty()), true),
    ]);
    let both =
        StructArray::new(fields, vec![ints(3), empty_structs(vec![true, false, true])], None);
    let batch = batch_of(Arc::new(both));
    let file = written(&batch, WriteOptions::new()).expect("a file");
    let part = all_of(open(&file).project(["a.e"]).expect("a column"));
    let part = part.column(0).as_any().downcast_ref::<StructArray>().expect("a struct");
    differs("a.e", part.column(0), &empty_structs(vec![true, false, true]));
}

#[test]
fn rows_without_columns_are_counted() {
    let options = RecordBatchOptions::new().with_row_count(Some(5));
    let none = RecordBatch::try_new_with_options(Arc::new(Schema::empty()), Vec::new(), &options);
    let file = written(&none.expect("a batch"), WriteOptions::new()).expect("a file");
    assert_eq!(open(&file).rows().expect("a count"), 5);
    let rows = read_with(open(&file)).expect("rows");
    assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 5);
}

#[test]
fn keys_within_keys_come_back_as_the_outermost() {
    let texts: ArrayRef = Arc::new(StringArray::from(vec![Some("a"), None, Some("b")]));
    let values = |array: &ArrayRef| arrow_cast::cast(array, &DataType::Utf8).expect("texts");
    for (inner, of_inner) in keyed(&texts) {
        for (outer, array) in keyed(&of_inner) {
            let file = written(&batch_of(array.clone()), WriteOptions::new()).expect("a file");
            let back = all_of(open(&file));
            let expected = match array.data_type() {
                DataType::Dictionary(key, _) => {
                    DataType::Dictionary(key.clone(), Box::new(DataType::Utf8))
                }
                DataType::RunEndEncoded(ends, values) => {
                    let values = values.as_ref().clone().with_data_type(DataType::Utf8);
                    DataType::RunEndEncoded(ends.clone(), Arc::new(values))
                }
                other => panic!("{other}"),
            };
            assert_eq!(*back.column(0).data_type(), expected, "{inner} in {outer}");
            // Arrow casts one level at a time.
            let one = match array.data_type() {
                DataType::Dictionary(_, of) => arrow_cast::cast(&array, of),
                _ => {
                    let runs = array.as_any().downcast_ref::<RunArray<Int32Type>>().expect("runs");
                    let at = (0..runs.len()).map(|i| runs.get_physical_index(i) as u32);
                    let at = UInt32Array::from_iter_values(at);
                    arrow_select::take::take(runs.values(), &at, None)
                }
            };
            differs(
                &format!("{inner} in {outer}"),
                &values(back.column(0)),
                &values(&one.expect("keys")),
            );
        }
    }
    // A null key into a dictionary of nothing.
    let none: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(
        Int8Array::from(Vec::<i8>::new()),
        Arc::new(StringArray::from(Vec::<&str>::new())),
    ));
    let outer: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(vec![None, None].into(), none));
    let file = written(&batch_of(outer), WriteOptions::new()).expect("a file");
    assert_eq!(all_of(open(&file)).column(0).logical_null_count(), 2);
}

#[test]
fn without_the_hint_the_stand_ins_are_plain_columns() {
    let plain = |array: ArrayRef, options: WriteOptions| {
        let file = written(&batch_of(array), options.with_hint(false)).expect("a file");
        all_of(open(&file)).column(0).clone()
    };
    let decimal = decimals::<Decimal32Type>(vec![Some(-999), None, Some(7)], 3, -2);
    let expected = decimals::<Decimal128Type>(vec![Some(-99_900), None, Some(700)], 5, 0);
    differs("decimal", &plain(decimal, WriteOptions::new()), &expected);
    let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![Some(&b""[..]), None]));
    let found = plain(no_bytes(Some(vec![true, false]), 2), WriteOptions::new());
    differs("no bytes", &found, &bytes);
    let flags: ArrayRef = Arc::new(BooleanArray::new_null(2));
    let fields = Fields::from(vec![Field::new("_empty", DataType::Boolean, true)]);
    let nulls = Some(NullBuffer::from(vec![true, false]));
    let group: ArrayRef = Arc::new(StructArray::new(fields, vec![flags], nulls));
    differs("struct", &plain(empty_structs(vec![true, false]), WriteOptions::new()), &group);
    let full = || WriteOptions::new().with_full_range(true);
    let stamps: ArrayRef = Arc::new(TimestampMillisecondArray::from(vec![-1, 1]));
    differs("date64", &plain(Arc::new(Date64Array::from(vec![-1, 1])), full()), &stamps);
    let interval = IntervalDayTimeArray::from(vec![IntervalDayTime::new(-1, 2)]);
    let sixteen = [0i32.to_le_bytes(), (-1i32).to_le_bytes()].concat();
    let sixteen = [&sixteen[..], &2_000_000i64.to_le_bytes()].concat();
    let sixteen = FixedSizeBinaryArray::try_from_iter([sixteen].into_iter()).expect("one width");
    differs("interval", &plain(Arc::new(interval), full()), &(Arc::new(sixteen) as ArrayRef));
}

#[test]
fn what_nothing_holds_is_refused_before_it_is_written() {
    use DataType as D;
    let union = UnionFields::from_fields(vec![Field::new("x", D::Int32, true)]);
    let one = D::Struct(vec![Field::new("x", D::Int32, true)].into());
    for data_type in [
        D::Union(union, UnionMode::Sparse),
        D::Decimal256(76, -1),
        D::Decimal128(38, -39),
        D::Dictionary(Box::new(D::Int8), Box::new(one)),
    ] {
        let schema = Arc::new(Schema::new(vec![Field::new("a", data_type.clone(), true)]));
        let error = Writer::to(Vec::new(), schema).expect_err("no place");
        assert!(matches!(error.kind(), ErrorKind::Unsupported(_)), "{data_type}: {error}");
        assert_eq!(error.at().column.as_deref(), Some("a"));
    }
    let seconds: Vec<ArrayRef> = vec![
        Arc::new(TimestampSecondArray::from(vec![i64::MAX / 1000 + 1])),
        Arc::new(Time32SecondArray::from(vec![i32::MAX / 1000 + 1])),
        // More digits than the type has.
        Arc::new(Decimal128Array::from(vec![1000]).with_data_type(D::Decimal128(3, -2))),
    ];
    for array in seconds {
        let error = written(&batch_of(array.clone()), WriteOptions::new()).expect_err("no place");
        assert_eq!(error.kind(), ErrorKind::Usage, "{array:?}");
        assert_eq!(error.at().column.as_deref(), Some("a"));
    }
}

/// A row group of one column in a file whose column has the type `stored`.
fn stored_as(array: ArrayRef, stored: DataType) -> Result<bytes::Bytes> {
    let stored = Schema::new(vec![Field::new("a", stored, true)]);
    let of_file = from_arrow(&stored, &FromArrowOptions::new()).expect("a schema");
    let batch = batch_of(array);
    let options = WriteOptions::new();
    let encoder =
        RowGroupEncoder::with_schema(batch.schema(), of_file.schema, of_file.key_values, options)?;
    let mut writer = Writer::over(WriteSink(Vec::new()), encoder);
    writer.write(&batch)?;
    Ok(writer.into_inner()?.1.into())
}

#[test]
fn integers_fit_the_integer_of_their_leaf_or_are_refused() {
    use DataType as D;
    let cases: Vec<(ArrayRef, DataType, bool)> = vec![
        (Arc::new(Int32Array::from(vec![127, -128])), D::Int8, true),
        (Arc::new(Int32Array::from(vec![128])), D::Int8, false),
        (Arc::new(Int32Array::from(vec![-129])), D::Int8, false),
        (Arc::new(Int32Array::from(vec![255, 0])), D::UInt8, true),
        (Arc::new(Int32Array::from(vec![256])), D::UInt8, false),
        (Arc::new(Int64Array::from(vec![-1])), D::UInt16, false),
        (Arc::new(Int64Array::from(vec![i64::from(u32::MAX), 0])), D::UInt32, true),
        (Arc::new(Int64Array::from(vec![i64::from(u32::MAX) + 1])), D::UInt32, false),
        (Arc::new(Int64Array::from(vec![i64::from(i32::MIN)])), D::Int32, true),
        (Arc::new(Int64Array::from(vec![i64::from(i32::MAX) + 1])), D::Int32, false),
        (Arc::new(Int64Array::from(vec![i64::MAX, 0])), D::UInt64, true),
        (Arc::new(Int64Array::from(vec![-1])), D::UInt64, false),
        (Arc::new(UInt64Array::from(vec![3_000_000_000])), D::UInt32, true),
        (Arc::new(UInt64Array::from(vec![u64::MAX])), D::UInt32, false),
        (Arc::new(UInt64Array::from(vec![u64::MAX])), D::Int64, false),
    ];
    for (array, stored, fits) in cases {
        let what = format!("{array:?} as {stored}");
        let file = stored_as(array.clone(), stored.clone());
        if !fits {
            let error = file.expect_err(&what);
            assert_eq!(error.kind(), ErrorKind::Usage, "{what}");
            assert_eq!(error.at().column.as_deref(), Some("a"), "{what}");
            continue;
        }
        let reader = Reader::new(file.expect(&what)).expect(&what);
        let batch = reader.batches().expect(&what).next().expect(&what).expect(&what);
        let expected = arrow_cast::cast(&array, &stored).expect(&what);
        assert_eq!(batch.column(0).as_ref(), expected.as_ref(), "{what}");
    }
}

#[test]
fn columns_of_another_order_than_those_of_the_schema_are_refused() {
    use DataType as D;
    let fields = |names: [&str; 2]| {
        Fields::from(names.map(|name| Field::new(name, D::Int32, true)).to_vec())
    };
    let group = |names| Field::new("group", D::Struct(fields(names)), true);
    let table = |names| Schema::new(vec![group(names)]);
    for (batches, file) in [
        (Schema::new(fields(["b", "a"])), Schema::new(fields(["a", "b"]))),
        (table(["b", "a"]), table(["a", "b"])),
        (table(["a", "c"]), table(["a", "b"])),
    ] {
        let of_file = from_arrow(&file, &FromArrowOptions::new()).expect("a schema");
        let with = |schema: Schema| {
            let of_file = of_file.schema.clone();
            RowGroupEncoder::with_schema(schema.into(), of_file, Vec::new(), WriteOptions::new())
        };
        let error = with(batches).expect_err("other columns");
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        with(file).expect("its own columns");
    }
    // The names of elements, keys and values may be any.
    let list = |item| Field::new("l", D::List(Field::new(item, D::Int32, true).into()), true);
    let map = |[key, value]: [&str; 2]| {
        let entries = vec![Field::new(key, D::Int32, false), Field::new(value, D::Int32, true)];
        let entries = Field::new("entries", D::Struct(entries.into()), false);
        Field::new("m", D::Map(entries.into(), false), true)
    };
    let file = Schema::new(vec![list("element"), map(["key", "value"])]);
    let of_file = from_arrow(&file, &FromArrowOptions::new()).expect("a schema");
    let batches = Schema::new(vec![list("item"), map(["keys", "values"])]);
    RowGroupEncoder::with_schema(batches.into(), of_file.schema, Vec::new(), WriteOptions::new())
        .expect("one place for each");
}

/// A file of `stored` whose hint states the type `said`.
fn lying(stored: ArrayRef, said: DataType) -> bytes::Bytes {
    let said = Schema::new(vec![Field::new("a", said, true)]);
    let options = FromArrowOptions::new().with_full_range(true);
    let of_file = from_arrow(&said, &options).expect("a schema");
    let field = Field::new("a", stored.data_type().clone(), true);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![stored]);
    let batch = batch.expect("a batch");
    let encoder = RowGroupEncoder::with_schema(
        batch.schema(),
        of_file.schema,
        of_file.key_values,
        WriteOptions::new(),
    );
    let mut writer = Writer::over(WriteSink(Vec::new()), encoder.expect("a place"));
    writer.write(&batch).expect("values that fit");
    writer.into_inner().expect("a file").1.into()
}

#[test]
fn files_that_lie_of_stand_ins_are_errors_and_readable_as_what_they_are() {
    use IntervalUnit::{DayTime, YearMonth};
    let interval = |months: i32, days: i32, nanos: i64| -> ArrayRef {
        let parts = [months.to_le_bytes(), days.to_le_bytes()].concat();
        let parts = [&parts[..], &nanos.to_le_bytes()].concat();
        Arc::new(FixedSizeBinaryArray::try_from_iter([parts].into_iter()).expect("one width"))
    };
    let fields = Fields::from(vec![Field::new("_empty", DataType::Boolean, true)]);
    let flag: ArrayRef = Arc::new(BooleanArray::from(vec![None, Some(false)]));
    let decimal = |values, precision| decimals::<Decimal128Type>(values, precision, 0);
    let cases: Vec<(ArrayRef, DataType)> = vec![
        (decimal(vec![Some(700), Some(701)], 5), DataType::Decimal32(3, -2)),
        (decimal(vec![Some(-1)], 18), DataType::Decimal64(2, -16)),
        (decimal(vec![Some(10)], 30), DataType::Decimal128(25, -5)),
        (decimal(vec![Some(10i128.pow(20) + 1)], 38), DataType::Decimal256(37, -1)),
        (Arc::new(BinaryArray::from(vec![&b""[..], b"x"])), DataType::FixedSizeBinary(0)),
        (Arc::new(StructArray::new(fields, vec![flag], None)), DataType::Struct(Fields::empty())),
        (interval(0, 1, 0), DataType::Interval(YearMonth)),
        (interval(1, 0, 1), DataType::Interval(YearMonth)),
        (interval(1, 1, 0), DataType::Interval(DayTime)),
        (interval(0, 1, 1), DataType::Interval(DayTime)),
        (interval(0, 1, i64::MAX / 1_000_000 * 1_000_000), DataType::Interval(DayTime)),
    ];
    for (stored, said) in cases {
        let file = lying(stored.clone(), said.clone());
        assert_eq!(*open(&file).schema().expect("a schema").field(0).data_type(), said);
        let error = read_with(open(&file)).expect_err("a lie");
        let is_told = matches!(error.kind(), ErrorKind::Unsupported(_) | ErrorKind::Malformed(_));
        assert!(is_told, "{said}: {error}");
        let target = Schema::new(vec![Field::new("a", stored.data_type().clone(), true)]);
        let plain = open(&file).target(Arc::new(target), MatchBy::Name).expect("reachable");
        differs(&said.to_string(), all_of(plain).column(0), &stored);
    }
}

#[test]
fn decimals_of_negative_scale_are_filtered_as_numbers() {
    let seed = 17;
    let mut rng = fastrand::Rng::with_seed(seed);
    for (precision, scale) in [(3, -2), (9, -9), (12, -20)] {
        let max = 10i128.pow(precision);
        let values: Vec<i128> =
            (0..900).map(|i| (i / 300) * (max / 4) + rng.i128(0..max / 5)).collect();
        let array = decimals::<Decimal128Type>(
            values.iter().copied().map(Some).collect(),
            precision as u8,
            scale,
        );
        let options = WriteOptions::new().with_row_group_rows(300);
        let options = options.with_column("a", |a| a.with_bloom(Default::default()));
        let file = written(&batch_of(array), options).expect("a file");
        let zeros = "0".repeat(usize::from(scale.unsigned_abs()));
        for _ in 0..20 {
            let value = values[rng.usize(0..values.len())];
            for (op, holds) in [
                ("=", values.iter().filter(|v| **v == value).count()),
                ("<", values.iter().filter(|v| **v < value).count()),
                (">=", values.iter().filter(|v| **v >= value).count()),
            ] {
                let text = format!("a {op} {value}{zeros}");
                let predicate = Predicate::parse(&text).expect("a predicate");
                let found = open(&file).filter(predicate).count().expect("a count");
                assert_eq!(found, holds as u64, "seed {seed}: {text}");
            }
        }
        let between = Predicate::parse(&format!("a = {}1", &zeros[1..])).expect("a predicate");
        assert_eq!(open(&file).filter(between).count().expect("a count"), 0);
    }
}
