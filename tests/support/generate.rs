//! Generates random tables for the tests of writing: nested schemas, arrays of every type with
//! everything that Arrow allows in them, and options.

use std::collections::HashMap;
use std::sync::Arc;

use marquetry::arrow_array::builder::FixedSizeBinaryBuilder;
use marquetry::arrow_array::types::*;
use marquetry::arrow_array::*;
use marquetry::arrow_schema::*;
use marquetry::format::{Encoding, Type};
use marquetry::io::WriteSink;
use marquetry::schema::{FromArrowOptions, from_arrow};
use marquetry::write::is_legal;
use marquetry::{
    ChunkingOptions, Compression, PageVersion, Profile, RowGroupEncoder, StatisticsLevel,
    WriteOptions, Writer,
};

use arrow_buffer::{
    IntervalDayTime, IntervalMonthDayNano, NullBuffer, OffsetBuffer, ScalarBuffer, i256,
};
use fastrand::Rng;
use half::f16;

/// A table, and the file that was made of it.
pub struct Case {
    /// For the messages of assertions.
    pub name: String,
    pub schema: SchemaRef,
    pub batches: Vec<RecordBatch>,
    pub options: WriteOptions,
    /// The additions of the options to the metadata.
    pub key_values: &'static [(&'static str, &'static str)],
    pub file: bytes::Bytes,
    pub wishes: Wishes,
}

/// The settings of the options.
#[derive(Default)]
pub struct Wishes {
    /// Whether all leaves have bounds of pages.
    pub page_statistics: bool,
    /// The leaves that have a bloom filter.
    pub blooms: Vec<usize>,
}

/// Checks the default number of cases, or MARQUETRY_CASES, and returns how many; all of them are
/// checked before a failure is reported.
pub fn every_case(default: u64, check: impl Fn(u64) + std::panic::RefUnwindSafe) -> usize {
    let asked = std::env::var("MARQUETRY_CASES").ok().and_then(|n| n.parse().ok());
    let n = asked.unwrap_or(default);
    let fails = |seed: &u64| std::panic::catch_unwind(|| check(*seed)).is_err();
    let failed: Vec<u64> = (0..n).filter(fails).collect();
    assert!(failed.is_empty(), "{} of {n} cases fail, of the seeds {failed:?}", failed.len());
    usize::try_from(n).expect("few cases")
}

/// The case of a seed.
pub fn case(seed: u64) -> Case {
    let mut rng = seeded(seed);
    let schema = schema(&mut rng);
    let batches = (0..rng.usize(0..5)).map(|_| batch(&mut rng, &schema)).collect();
    let options = options(&mut rng, &schema);
    written(&format!("seed {seed}"), &mut rng, (schema, batches), options)
}

/// The case of several seeds: one of the schema, one of the options, and one of each batch, so that
/// each can be changed alone.
pub fn case_of(of_schema: u64, of_options: u64, of_batches: &[u64]) -> Case {
    let schema = schema(&mut seeded(of_schema));
    let batches = of_batches.iter().map(|seed| batch(&mut seeded(*seed), &schema)).collect();
    let mut rng = seeded(of_options);
    let options = options(&mut rng, &schema);
    let name = format!("seeds {of_schema}, {of_options}, {of_batches:?}");
    written(&name, &mut rng, (schema, batches), options)
}

fn seeded(seed: u64) -> Rng {
    Rng::with_seed(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ seed)
}

fn written(
    name: &str,
    rng: &mut Rng,
    (schema, batches): (SchemaRef, Vec<RecordBatch>),
    (options, threads, wishes): (WriteOptions, usize, Wishes),
) -> Case {
    let name = format!("{name}, {} batches, {schema:?}, {options:?}", batches.len());
    let encoder = RowGroupEncoder::new(schema.clone(), options.clone())
        .and_then(|encoder| encoder.with_threads(threads));
    let encoder = encoder.unwrap_or_else(|e| panic!("{e}: {name}"));
    let mut writer = Writer::over(WriteSink(Vec::new()), encoder);
    for batch in &batches {
        writer.write(batch).unwrap_or_else(|e| panic!("{e}: {name}"));
        if rng.u8(..) < 20 {
            writer.flush().unwrap_or_else(|e| panic!("{e}: {name}"));
        }
    }
    let (_, file) = writer.into_inner().unwrap_or_else(|e| panic!("{e}: {name}"));
    let key_values = &[("case", "random")];
    Case { name, schema, batches, options, key_values, file: file.into(), wishes }
}

fn schema(rng: &mut Rng) -> SchemaRef {
    let fields: Vec<Field> = (0..rng.usize(1..6)).map(|i| field(rng, i, 5)).collect();
    let mut metadata = HashMap::new();
    if rng.bool() {
        metadata.insert("made for".to_owned(), "a test".to_owned());
        metadata.insert("empty".to_owned(), String::new());
    }
    Arc::new(Schema::new_with_metadata(fields, metadata))
}

fn field(rng: &mut Rng, i: usize, depth: usize) -> Field {
    let depth = rng.usize(0..=depth);
    let data_type = data_type(rng, depth);
    let name = match rng.u8(0..8) {
        0 => format!("é.{i}"),
        1 => format!("Sp ace{i}"),
        _ => format!("c{i}"),
    };
    named(rng, &name, data_type)
}

fn named(rng: &mut Rng, name: &str, data_type: DataType) -> Field {
    let nullable = match &data_type {
        DataType::Null => true,
        DataType::RunEndEncoded(_, values) => values.is_nullable(),
        _ => rng.u8(0..3) > 0,
    };
    let field = Field::new(name, data_type, nullable);
    if rng.u8(0..8) == 0 {
        return field.with_metadata(HashMap::from([("unit".to_owned(), "µ".to_owned())]));
    }
    field
}

fn data_type(rng: &mut Rng, depth: usize) -> DataType {
    if depth == 0 {
        return match rng.u8(0..8) {
            0 => dictionary_type(rng),
            1 => run_type(rng),
            _ => leaf_type(rng),
        };
    }
    let item = |rng: &mut Rng| {
        let of = data_type(rng, depth - 1);
        let name = ["item", "element", "x"][rng.usize(0..3)];
        Arc::new(named(rng, name, of))
    };
    match rng.u8(0..9) {
        0 => DataType::List(item(rng)),
        1 => DataType::LargeList(item(rng)),
        2 => DataType::ListView(item(rng)),
        3 => DataType::LargeListView(item(rng)),
        4 => DataType::FixedSizeList(item(rng), rng.i32(1..4)),
        5 => {
            let key = match rng.u8(0..4) {
                0 => DataType::Int32,
                1 => DataType::LargeUtf8,
                2 => DataType::FixedSizeBinary(3),
                _ => DataType::Utf8,
            };
            let value = data_type(rng, depth - 1);
            let entries = vec![Field::new("keys", key, false), named(rng, "values", value)];
            DataType::Map(
                Arc::new(Field::new("entries", DataType::Struct(entries.into()), false)),
                false,
            )
        }
        _ => {
            let n = if rng.u8(0..12) == 0 { 0 } else { rng.usize(1..4) };
            DataType::Struct((0..n).map(|i| field(rng, i, depth - 1)).collect())
        }
    }
}

fn unit(rng: &mut Rng) -> TimeUnit {
    [TimeUnit::Second, TimeUnit::Millisecond, TimeUnit::Microsecond, TimeUnit::Nanosecond]
        [rng.usize(0..4)]
}

fn leaf_type(rng: &mut Rng) -> DataType {
    use DataType as D;
    let digits = |rng: &mut Rng, max: u8| {
        let precision = rng.u8(1..=max);
        let scale = match rng.u8(0..6) {
            // The format has none that is negative.
            0 => -rng.i8(0..=(76 - precision).min(max).cast_signed()),
            _ => rng.i8(0..=precision.cast_signed()),
        };
        (precision, scale)
    };
    match rng.u8(0..36) {
        0 => D::Boolean,
        1 => D::Int8,
        2 => D::Int16,
        3 => D::Int32,
        4 => D::Int64,
        5 => D::UInt8,
        6 => D::UInt16,
        7 => D::UInt32,
        8 => D::UInt64,
        9 => D::Float16,
        10 | 32 => D::Float32,
        11 | 33 => D::Float64,
        12 | 34 => D::Utf8,
        13 => D::LargeUtf8,
        14 => D::Utf8View,
        15 => D::Binary,
        16 => D::LargeBinary,
        17 => D::BinaryView,
        18 => D::FixedSizeBinary(rng.i32(1..20)),
        19 => {
            let (p, s) = digits(rng, 9);
            D::Decimal32(p, s)
        }
        20 => {
            let (p, s) = digits(rng, 18);
            D::Decimal64(p, s)
        }
        21 | 35 => {
            let (p, s) = digits(rng, 38);
            D::Decimal128(p, s)
        }
        22 => {
            let (p, s) = digits(rng, 76);
            D::Decimal256(p, s)
        }
        23 => D::Date32,
        24 => D::Date64,
        25 => D::Time32([TimeUnit::Second, TimeUnit::Millisecond][rng.usize(0..2)]),
        26 => D::Time64([TimeUnit::Microsecond, TimeUnit::Nanosecond][rng.usize(0..2)]),
        27 => D::Timestamp(unit(rng), None),
        28 => {
            let zone = ["UTC", "+00:00", "Europe/Berlin", "-07:30"][rng.usize(0..4)];
            D::Timestamp(unit(rng), Some(zone.into()))
        }
        29 => D::Duration(unit(rng)),
        30 => D::Interval(
            [IntervalUnit::YearMonth, IntervalUnit::DayTime, IntervalUnit::MonthDayNano]
                [rng.usize(0..3)],
        ),
        _ => D::Null,
    }
}

/// Types that dictionaries and runs may have.
fn keyed_type(rng: &mut Rng) -> DataType {
    loop {
        let data_type = leaf_type(rng);
        if data_type != DataType::Null {
            return data_type;
        }
    }
}

fn dictionary_type(rng: &mut Rng) -> DataType {
    use DataType as D;
    // Keys of 8 bits: `round_trip::narrow_dictionaries_come_back_from_plain_pages`.
    let keys = [D::Int16, D::Int32, D::Int64, D::UInt16, D::UInt32, D::UInt64];
    let value = if rng.bool() { D::Utf8 } else { keyed_type(rng) };
    D::Dictionary(Box::new(keys[rng.usize(0..keys.len())].clone()), Box::new(value))
}

fn run_type(rng: &mut Rng) -> DataType {
    let ends = [DataType::Int16, DataType::Int32, DataType::Int64][rng.usize(0..3)].clone();
    let ends = Field::new("run_ends", ends, false);
    let values = Field::new("values", keyed_type(rng), rng.bool());
    DataType::RunEndEncoded(Arc::new(ends), Arc::new(values))
}

fn batch(rng: &mut Rng, schema: &SchemaRef) -> RecordBatch {
    let rows = match rng.u8(0..8) {
        0 => 0,
        1 => 1,
        2 => rng.usize(100..600),
        _ => rng.usize(1..60),
    };
    let columns = schema.fields().iter().map(|f| array(rng, f, rows, None)).collect();
    let options = RecordBatchOptions::new().with_row_count(Some(rows));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options).expect("columns that fit")
}

/// An array of a field, perhaps a slice of a longer one. Where `hidden` is null, even a required
/// field may be null.
pub fn array(rng: &mut Rng, field: &Field, rows: usize, hidden: Option<&NullBuffer>) -> ArrayRef {
    if rng.u8(0..3) == 0 && hidden.is_none() {
        let (before, after) = (rng.usize(0..70), rng.usize(0..9));
        return whole(rng, field, before + rows + after, None).slice(before, rows);
    }
    whole(rng, field, rows, hidden)
}

fn nulls(
    rng: &mut Rng,
    field: &Field,
    n: usize,
    hidden: Option<&NullBuffer>,
) -> Option<NullBuffer> {
    if !field.is_nullable() {
        let hidden = hidden.filter(|_| rng.bool())?;
        return Some((0..n).map(|i| hidden.is_valid(i) || rng.bool()).collect());
    }
    let share = match rng.u8(0..6) {
        0 => return None,
        1 => 0.0,
        2 => 1.0,
        3 => 0.02,
        4 => 0.95,
        _ => 0.4,
    };
    Some((0..n).map(|_| rng.f64() >= share).collect())
}

/// How values lie: the writer treats some orders apart.
#[derive(Clone, Copy)]
enum Lie {
    Random,
    Few,
    Rising,
    Falling,
    One,
}

/// Numbers between two bounds, both included.
fn numbers(rng: &mut Rng, n: usize, least: i128, greatest: i128) -> Vec<i128> {
    let lie =
        [Lie::Random, Lie::Random, Lie::Few, Lie::Rising, Lie::Falling, Lie::One][rng.usize(0..6)];
    let (low, high) = match rng.u8(0..3) {
        0 => (least.max(-20), greatest.min(100)),
        1 => (greatest - (greatest - least).min(50), greatest),
        _ => (least, greatest),
    };
    let one = |rng: &mut Rng| match rng.u8(0..20) {
        0 => low,
        1 => high,
        _ => low + rng.i128(0..=high - low),
    };
    let mut values: Vec<i128> = match lie {
        Lie::Few => {
            let few: Vec<i128> = (0..rng.usize(1..6)).map(|_| one(rng)).collect();
            (0..n).map(|_| few[rng.usize(0..few.len())]).collect()
        }
        Lie::One => {
            let the = one(rng);
            vec![the; n]
        }
        _ => (0..n).map(|_| one(rng)).collect(),
    };
    match lie {
        Lie::Rising => values.sort_unstable(),
        Lie::Falling => values.sort_unstable_by(|a, b| b.cmp(a)),
        _ => {}
    }
    values
}

fn floats(rng: &mut Rng, n: usize) -> Vec<f64> {
    let kind = rng.u8(0..6);
    let special = [f64::NAN, -f64::NAN, 0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, 1.5, -2.25];
    (0..n)
        .map(|i| match kind {
            0 => special[rng.usize(0..special.len())],
            1 => f64::NAN,
            2 => [0.0, -0.0][rng.usize(0..2)],
            3 => f64::from(rng.i32(-5000..5000)) / 100.0,
            4 => i as f64,
            _ => f64::from_bits(rng.u64(..)),
        })
        .collect()
}

fn texts(rng: &mut Rng, n: usize) -> Vec<String> {
    let kind = rng.u8(0..6);
    let text = |rng: &mut Rng, len: usize| -> String {
        (0..len)
            .map(|_| match rng.u8(0..12) {
                0 => 'é',
                1 => '\u{10FFFF}',
                2 => '\u{D7FF}',
                3 => '\0',
                _ => char::from(rng.u8(b'a'..b'f')),
            })
            .collect()
    };
    let few: Vec<String> = (0..4).map(|i| text(rng, i * 7)).collect();
    let mut all: Vec<String> = (0..n)
        .map(|i| match kind {
            0 => String::new(),
            1 => few[rng.usize(0..few.len())].clone(),
            2 => format!("https://example.com/{:06}", i),
            3 => {
                let len = rng.usize(0..130);
                text(rng, len)
            }
            4 => "\u{10FFFF}".repeat(rng.usize(15..20)),
            _ => {
                let len = rng.usize(0..12);
                text(rng, len)
            }
        })
        .collect();
    if rng.u8(0..4) == 0 {
        all.sort();
    }
    all
}

fn blobs(rng: &mut Rng, n: usize) -> Vec<Vec<u8>> {
    let kind = rng.u8(0..4);
    (0..n)
        .map(|_| match kind {
            0 => vec![0xFF; rng.usize(60..70)],
            1 => vec![rng.u8(..); rng.usize(0..3)],
            _ => {
                let len = rng.usize(0..90);
                (0..len).map(|_| rng.u8(..)).collect()
            }
        })
        .collect()
}

fn power(precision: u8) -> i256 {
    (0..precision).fold(i256::ONE, |p, _| p * i256::from_i128(10))
}

fn decimal(rng: &mut Rng, precision: u8) -> i256 {
    let max = power(precision) - i256::ONE;
    match rng.u8(0..6) {
        0 => max,
        1 => -max,
        2 => i256::from_i128(rng.i128(-9..10)),
        _ => {
            let mut bytes = [0; 32];
            rng.fill(&mut bytes);
            let value = i256::from_le_bytes(bytes);
            value % (max + i256::ONE)
        }
    }
}

const DAY_MS: i128 = 86_400_000;

fn whole(rng: &mut Rng, field: &Field, n: usize, hidden: Option<&NullBuffer>) -> ArrayRef {
    use DataType as D;
    let present = nulls(rng, field, n, hidden);
    macro_rules! ints {
        ($type:ty, $least:expr, $greatest:expr) => {{
            type Native = <$type as ArrowPrimitiveType>::Native;
            let values = numbers(rng, n, i128::from($least), i128::from($greatest));
            let values: ScalarBuffer<Native> = values.into_iter().map(|v| v as Native).collect();
            let array = PrimitiveArray::<$type>::new(values, present);
            Arc::new(array.with_data_type(field.data_type().clone()))
        }};
    }
    macro_rules! full {
        ($type:ty) => {{
            ints!(
                $type,
                <$type as ArrowPrimitiveType>::Native::MIN,
                <$type as ArrowPrimitiveType>::Native::MAX
            )
        }};
    }
    macro_rules! decimals {
        ($type:ty, $precision:expr, $convert:expr) => {{
            let values: Vec<i256> = (0..n).map(|_| decimal(rng, *$precision)).collect();
            let values: ScalarBuffer<_> = values.into_iter().map($convert).collect();
            let array = PrimitiveArray::<$type>::new(values, present);
            Arc::new(array.with_data_type(field.data_type().clone()))
        }};
    }
    let valid = |i: usize| present.as_ref().is_none_or(|nulls| nulls.is_valid(i));
    match field.data_type() {
        D::Null => Arc::new(NullArray::new(n)),
        D::Boolean => {
            let share = [0.0, 1.0, 0.5, 0.99][rng.usize(0..4)];
            let values = (0..n).map(|_| rng.f64() < share).collect();
            Arc::new(BooleanArray::new(values, present))
        }
        D::Int8 => full!(Int8Type),
        D::Int16 => full!(Int16Type),
        D::Int32 => full!(Int32Type),
        D::Int64 => full!(Int64Type),
        D::UInt8 => full!(UInt8Type),
        D::UInt16 => full!(UInt16Type),
        D::UInt32 => full!(UInt32Type),
        D::UInt64 => full!(UInt64Type),
        D::Float16 => {
            let values = floats(rng, n).into_iter().map(f16::from_f64).collect();
            Arc::new(Float16Array::new(values, present))
        }
        D::Float32 => {
            let values = floats(rng, n).into_iter().map(|v| v as f32).collect();
            Arc::new(Float32Array::new(values, present))
        }
        D::Float64 => Arc::new(Float64Array::new(floats(rng, n).into(), present)),
        D::Utf8 => {
            let texts = texts(rng, n);
            let plain = StringArray::from_iter_values(&texts);
            let (offsets, values, _) = plain.into_parts();
            Arc::new(StringArray::new(offsets, values, present))
        }
        D::LargeUtf8 => {
            let texts = texts(rng, n);
            Arc::new(
                texts
                    .iter()
                    .enumerate()
                    .map(|(i, t)| valid(i).then_some(t))
                    .collect::<LargeStringArray>(),
            )
        }
        D::Utf8View => {
            let texts = texts(rng, n);
            Arc::new(
                texts
                    .iter()
                    .enumerate()
                    .map(|(i, t)| valid(i).then_some(t))
                    .collect::<StringViewArray>(),
            )
        }
        D::Binary => {
            let blobs = blobs(rng, n);
            Arc::new(
                blobs
                    .iter()
                    .enumerate()
                    .map(|(i, t)| valid(i).then_some(t))
                    .collect::<BinaryArray>(),
            )
        }
        D::LargeBinary => {
            let plain = LargeBinaryArray::from_iter_values(blobs(rng, n));
            let (offsets, values, _) = plain.into_parts();
            Arc::new(LargeBinaryArray::new(offsets, values, present))
        }
        D::BinaryView => {
            let blobs = blobs(rng, n);
            Arc::new(
                blobs
                    .iter()
                    .enumerate()
                    .map(|(i, t)| valid(i).then_some(t))
                    .collect::<BinaryViewArray>(),
            )
        }
        D::FixedSizeBinary(width) => {
            let few = rng.bool();
            let mut builder = FixedSizeBinaryBuilder::new(*width);
            for i in 0..n {
                let byte = rng.u8(..);
                let value: Vec<u8> =
                    (0..*width).map(|_| if few { byte % 3 } else { rng.u8(..) }).collect();
                match valid(i) {
                    true => builder.append_value(value).expect("of the width"),
                    false => builder.append_null(),
                }
            }
            Arc::new(builder.finish())
        }
        D::Decimal32(p, _) => decimals!(Decimal32Type, p, |v| v.as_i128() as i32),
        D::Decimal64(p, _) => decimals!(Decimal64Type, p, |v| v.as_i128() as i64),
        D::Decimal128(p, _) => decimals!(Decimal128Type, p, |v| v.as_i128()),
        D::Decimal256(p, _) => decimals!(Decimal256Type, p, |v| v),
        D::Date32 => full!(Date32Type),
        D::Date64 => {
            let days = numbers(rng, n, i128::from(i32::MIN), i128::from(i32::MAX));
            let values: ScalarBuffer<i64> = days.iter().map(|d| (d * DAY_MS) as i64).collect();
            Arc::new(Date64Array::new(values, present))
        }
        D::Time32(TimeUnit::Second) => ints!(Time32SecondType, 0, 86_399),
        D::Time32(_) => {
            let values = numbers(rng, n, 0, DAY_MS - 1);
            let values = values.into_iter().map(|v| v as i32).collect();
            Arc::new(Time32MillisecondArray::new(values, present))
        }
        D::Time64(TimeUnit::Microsecond) => ints!(Time64MicrosecondType, 0, 86_399_999_999i64),
        D::Time64(_) => ints!(Time64NanosecondType, 0, 86_399_999_999_999i64),
        D::Timestamp(TimeUnit::Second, _) => {
            ints!(TimestampSecondType, -(1i64 << 50), 1i64 << 50)
        }
        D::Timestamp(TimeUnit::Millisecond, _) => full!(TimestampMillisecondType),
        D::Timestamp(TimeUnit::Microsecond, _) => full!(TimestampMicrosecondType),
        D::Timestamp(TimeUnit::Nanosecond, _) => full!(TimestampNanosecondType),
        D::Duration(TimeUnit::Second) => full!(DurationSecondType),
        D::Duration(TimeUnit::Millisecond) => full!(DurationMillisecondType),
        D::Duration(TimeUnit::Microsecond) => full!(DurationMicrosecondType),
        D::Duration(TimeUnit::Nanosecond) => full!(DurationNanosecondType),
        D::Interval(IntervalUnit::YearMonth) => ints!(IntervalYearMonthType, 0, i32::MAX),
        D::Interval(IntervalUnit::DayTime) => {
            let values: Vec<_> =
                (0..n).map(|_| IntervalDayTime::new(rng.i32(0..9), rng.i32(0..))).collect();
            Arc::new(IntervalDayTimeArray::new(values.into(), present))
        }
        D::Interval(IntervalUnit::MonthDayNano) => {
            let values: Vec<_> = (0..n)
                .map(|_| {
                    let millis = i64::from(rng.u32(..));
                    IntervalMonthDayNano::new(rng.i32(0..), rng.i32(0..9), millis * 1_000_000)
                })
                .collect();
            Arc::new(IntervalMonthDayNanoArray::new(values.into(), present))
        }
        D::List(item) => {
            let (offsets, m) = offsets(rng, n);
            let values = whole(rng, item, m, None);
            let offsets = OffsetBuffer::new(offsets.iter().map(|v| *v as i32).collect());
            Arc::new(ListArray::new(item.clone(), offsets, values, present))
        }
        D::LargeList(item) => {
            let (offsets, m) = offsets(rng, n);
            let values = array(rng, item, m, None);
            let offsets = OffsetBuffer::new(offsets.iter().map(|v| *v as i64).collect());
            Arc::new(LargeListArray::new(item.clone(), offsets, values, present))
        }
        D::ListView(item) => {
            let (starts, sizes, m) = views(rng, n);
            let values = array(rng, item, m, None);
            let starts = starts.iter().map(|v| *v as i32).collect();
            let sizes = sizes.iter().map(|v| *v as i32).collect();
            Arc::new(ListViewArray::new(item.clone(), starts, sizes, values, present))
        }
        D::LargeListView(item) => {
            let (starts, sizes, m) = views(rng, n);
            let values = array(rng, item, m, None);
            let starts = starts.iter().map(|v| *v as i64).collect();
            let sizes = sizes.iter().map(|v| *v as i64).collect();
            Arc::new(LargeListViewArray::new(item.clone(), starts, sizes, values, present))
        }
        D::FixedSizeList(item, width) => {
            let values = array(rng, item, n * (*width as usize), None);
            Arc::new(FixedSizeListArray::new(item.clone(), *width, values, present))
        }
        D::Map(entries, sorted) => {
            let (offsets, m) = offsets(rng, n);
            let D::Struct(fields) = entries.data_type() else { unreachable!("a map") };
            let columns = fields.iter().map(|f| array(rng, f, m, None)).collect();
            let inner = StructArray::new(fields.clone(), columns, None);
            let offsets = OffsetBuffer::new(offsets.iter().map(|v| *v as i32).collect());
            Arc::new(MapArray::new(entries.clone(), offsets, inner, present, *sorted))
        }
        D::Struct(fields) => {
            let columns = fields.iter().map(|f| array(rng, f, n, present.as_ref())).collect();
            let array = StructArray::try_new_with_length(fields.clone(), columns, present, n);
            Arc::new(array.expect("columns that fit"))
        }
        D::Dictionary(key, value) => {
            let nullable = field.is_nullable() && rng.bool();
            let none = n == 0 || present.as_ref().is_some_and(|nulls| nulls.null_count() == n);
            let m = if none && rng.bool() { 0 } else { rng.usize(1..12) };
            let values = array(rng, &Field::new("values", (**value).clone(), nullable), m, None);
            let at: Vec<usize> = (0..n).map(|_| rng.usize(0..m.max(1))).collect();
            macro_rules! keys {
                ($type:ty) => {{
                    type Native = <$type as ArrowPrimitiveType>::Native;
                    let keys: ScalarBuffer<Native> = at.iter().map(|&k| k as Native).collect();
                    let keys = PrimitiveArray::<$type>::new(keys, present);
                    Arc::new(DictionaryArray::new(keys, values)) as ArrayRef
                }};
            }
            match **key {
                D::Int8 => keys!(Int8Type),
                D::Int16 => keys!(Int16Type),
                D::Int32 => keys!(Int32Type),
                D::Int64 => keys!(Int64Type),
                D::UInt8 => keys!(UInt8Type),
                D::UInt16 => keys!(UInt16Type),
                D::UInt32 => keys!(UInt32Type),
                _ => keys!(UInt64Type),
            }
        }
        D::RunEndEncoded(ends, of) => {
            let mut at = Vec::new();
            while at.last().copied().unwrap_or(0) < n {
                let next = at.last().copied().unwrap_or(0) + rng.usize(1..9);
                at.push(next.min(n));
            }
            let values = array(rng, of, at.len(), None);
            macro_rules! runs {
                ($type:ty) => {{
                    type Native = <$type as ArrowPrimitiveType>::Native;
                    let ends: ScalarBuffer<Native> = at.iter().map(|&k| k as Native).collect();
                    let ends = PrimitiveArray::<$type>::new(ends, None);
                    let runs = RunArray::<$type>::try_new(&ends, &values).expect("runs");
                    // The names and the nullability of the children are those of the schema.
                    let data = arrow_data::ArrayDataBuilder::from(runs.into_data())
                        .data_type(field.data_type().clone())
                        .build()
                        .expect("the same type but for names");
                    Arc::new(RunArray::<$type>::from(data)) as ArrayRef
                }};
            }
            match ends.data_type() {
                D::Int16 => runs!(Int16Type),
                D::Int32 => runs!(Int32Type),
                _ => runs!(Int64Type),
            }
        }
        other => unreachable!("{other} is not generated"),
    }
}

/// Offsets of `n` lists, and how many elements there must be.
fn offsets(rng: &mut Rng, n: usize) -> (Vec<usize>, usize) {
    let max = rng.usize(1..5);
    let mut offsets = vec![rng.usize(0..4)];
    for _ in 0..n {
        let last = offsets[offsets.len() - 1];
        offsets.push(last + if rng.u8(0..3) == 0 { 0 } else { rng.usize(0..max) });
    }
    let end = offsets[n] + rng.usize(0..4);
    (offsets, end)
}

/// Begins and sizes of `n` list views, and how many elements there must be.
fn views(rng: &mut Rng, n: usize) -> (Vec<usize>, Vec<usize>, usize) {
    let m = n + 2;
    let starts: Vec<usize> = (0..n).map(|_| rng.usize(0..=m)).collect();
    let sizes = starts.iter().map(|&start| rng.usize(0..=(m - start).min(3))).collect();
    (starts, sizes, m)
}

fn compression(rng: &mut Rng) -> Compression {
    match rng.u8(0..7) {
        0 => Compression::Uncompressed,
        1 => Compression::Snappy,
        2 => Compression::Gzip(rng.i32(1..7)),
        3 => Compression::Brotli(rng.i32(0..4)),
        4 => Compression::Lz4Raw,
        5 if cfg!(feature = "lzo") => Compression::Lzo,
        _ => Compression::Zstd(rng.i32(1..4)),
    }
}

fn level(rng: &mut Rng) -> StatisticsLevel {
    match rng.u8(0..8) {
        0 => StatisticsLevel::None,
        1 => StatisticsLevel::Chunk,
        _ => StatisticsLevel::Page,
    }
}

fn options(rng: &mut Rng, schema: &SchemaRef) -> (WriteOptions, usize, Wishes) {
    let profile = [Profile::Balanced, Profile::Small, Profile::FastRead, Profile::Compatible];
    let of_all = level(rng);
    let mut wishes =
        Wishes { page_statistics: of_all == StatisticsLevel::Page, ..Wishes::default() };
    let mut options = WriteOptions::new()
        .with_profile(profile[rng.usize(0..4)])
        .with_dictionary(rng.u8(0..4) > 0)
        .with_statistics(of_all)
        .with_total_order(rng.bool())
        .with_checksums(rng.u8(0..5) > 0)
        .with_key_value("case", "random");
    if rng.bool() {
        options = options.with_compression(compression(rng));
    }
    if rng.bool() {
        options = options.with_page_version([PageVersion::V1, PageVersion::V2][rng.usize(0..2)]);
    }
    if rng.u8(0..4) > 0 {
        let max = [4, 40, 1000][rng.usize(0..3)];
        options = options.with_page_rows(rng.usize(1..=max));
    }
    if rng.u8(0..8) == 0 {
        let min_bytes = rng.usize(1..200);
        let max_bytes = min_bytes + rng.usize(1..400);
        options = options.with_content_defined_chunking(ChunkingOptions::new(min_bytes, max_bytes));
    }
    if rng.u8(0..4) == 0 {
        options = options.with_page_bytes(rng.usize(1..2000));
    }
    if rng.u8(0..4) == 0 {
        options = options.with_dictionary_bytes(rng.usize(0..300));
    }
    if rng.bool() {
        options = options.with_row_group_rows(rng.u64(20..400));
    }
    if rng.bool() {
        options = options.with_bound_bytes(rng.usize(1..20));
    }
    let file = from_arrow(schema, &FromArrowOptions::new()).expect("a schema that can be written");
    let encodings = [
        Encoding::Plain,
        Encoding::RleDictionary,
        Encoding::Rle,
        Encoding::DeltaBinaryPacked,
        Encoding::DeltaLengthByteArray,
        Encoding::DeltaByteArray,
        Encoding::ByteStreamSplit,
        Encoding::Alp,
        Encoding::Pfor,
    ];
    for i in 0..file.schema.leaves_len() {
        let leaf = file.schema.leaf(i).expect("a leaf");
        let physical = leaf.physical.format_type();
        if rng.u8(0..3) > 0 {
            continue;
        }
        let legal: Vec<Encoding> = encodings
            .into_iter()
            .filter(|e| match e {
                Encoding::RleDictionary => physical != Type::Boolean,
                e => is_legal(*e, physical),
            })
            .collect();
        options = options.with_column(leaf.path.dotted(), |mut column| {
            if rng.bool() {
                column = column.with_encoding(legal[rng.usize(0..legal.len())]);
            }
            if rng.u8(0..4) == 0 {
                column = column.with_compression(compression(rng));
            }
            if rng.bool() {
                wishes.blooms.push(i);
                column = column.with_bloom(Default::default());
            }
            if rng.u8(0..4) == 0 {
                let level = level(rng);
                wishes.page_statistics &= level == StatisticsLevel::Page;
                column = column.with_statistics(level);
            }
            if rng.u8(0..4) == 0 {
                column = column.with_total_order(rng.bool());
            }
            if rng.u8(0..4) == 0 {
                column = column.with_page_rows(rng.usize(1..50));
            }
            column
        });
    }
    (options, rng.usize(1..=2), wishes)
}
