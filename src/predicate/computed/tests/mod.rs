//! Tests the values of expressions, case by case, and then at random against a twin that sees one
//! value at a time.

mod twin;

use std::sync::Arc;

use arrow_array::types::Int32Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BooleanArray, Date32Array, Decimal128Array, DictionaryArray,
    Float32Array, Float64Array, Int8Array, Int32Array, Int64Array, RecordBatch, RunArray,
    StringArray, StructArray, Time64MicrosecondArray, TimestampMicrosecondArray,
    TimestampNanosecondArray, TimestampSecondArray, UInt64Array,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field};

use crate::Predicate;
use crate::error::{ErrorKind, Result};
use crate::{col, lit};

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    let columns = columns.into_iter().map(|(name, array)| (name, array, true));
    RecordBatch::try_from_iter_with_nullable(columns).unwrap()
}

fn try_rows(text: &str, batch: &RecordBatch) -> Result<Vec<usize>> {
    let kept = Predicate::parse(text)?.bind_to(&batch.schema())?.evaluate(batch)?;
    assert_eq!(kept.null_count(), 0);
    Ok(kept.values().set_indices().collect())
}

fn rows(text: &str, batch: &RecordBatch) -> Vec<usize> {
    try_rows(text, batch).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn table() -> RecordBatch {
    let decimals = Decimal128Array::from(vec![Some(1050), Some(-205), None, Some(0)]);
    let texts = vec![Some("Anna"), Some("Äpfel ẞ"), None, Some("")];
    let keys = Int32Array::from(vec![Some(1), Some(0), None, Some(1)]);
    let entries = Arc::new(StringArray::from(vec!["Bo", "anna"]));
    let ends = Int32Array::from(vec![2, 3, 4]);
    let values = Int64Array::from(vec![Some(5), None, Some(-5)]);
    let inner: ArrayRef = Arc::new(Int32Array::from(vec![1, 2, 3, 4]));
    let field = Arc::new(Field::new("x", DataType::Int32, true));
    let valid = NullBuffer::from(vec![true, false, true, true]);
    let group = StructArray::new(vec![field].into(), vec![inner], Some(valid));
    let day = 86_400i64;
    batch(vec![
        ("a", Arc::new(Int32Array::from(vec![Some(1), Some(-7), None, Some(i32::MAX)]))),
        ("b", Arc::new(Int32Array::from(vec![Some(2), Some(-7), Some(3), None]))),
        ("i", Arc::new(Int64Array::from(vec![Some(0), Some(i64::MAX), None, Some(i64::MIN)]))),
        ("t", Arc::new(Int8Array::from(vec![Some(127), Some(-128), None, Some(0)]))),
        ("u", Arc::new(UInt64Array::from(vec![Some(u64::MAX), Some(0), None, Some(7)]))),
        ("d", Arc::new(decimals.with_precision_and_scale(9, 2).unwrap())),
        ("f", Arc::new(Float64Array::from(vec![Some(0.0), Some(f64::NAN), None, Some(-0.0)]))),
        ("g", Arc::new(Float32Array::from(vec![Some(0.1), Some(-f32::NAN), None, Some(2.5)]))),
        ("s", Arc::new(StringArray::from(texts))),
        ("k", Arc::new(DictionaryArray::<Int32Type>::new(keys, entries))),
        ("r", Arc::new(RunArray::<Int32Type>::try_new(&ends, &values).unwrap())),
        ("n", Arc::new(StringArray::from(vec![Some("12"), Some("-7"), None, Some("5")]))),
        ("bin", Arc::new(BinaryArray::from(vec![Some(&b"Anna"[..]), None, None, Some(b"")]))),
        ("yes", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true)]))),
        ("st", Arc::new(group)),
        ("day", Arc::new(Date32Array::from(vec![Some(0), Some(-1), None, Some(i32::MAX)]))),
        (
            "at",
            Arc::new(TimestampMicrosecondArray::from(vec![
                Some(0),
                Some(-1),
                None,
                Some(5_000_000),
            ])),
        ),
        (
            "secs",
            Arc::new(TimestampSecondArray::from(vec![Some(0), Some(-day), None, Some(i64::MAX)])),
        ),
        (
            "utc",
            Arc::new(
                TimestampNanosecondArray::from(vec![Some(0), Some(1), None, Some(-1)])
                    .with_timezone("UTC"),
            ),
        ),
        ("clock", Arc::new(Time64MicrosecondArray::from(vec![Some(0), Some(1), None, Some(2)]))),
    ])
}

#[test]
fn columns_are_compared_with_each_other() {
    let table = table();
    for (text, expected) in [
        ("a = b", &[1][..]),
        ("a <> b", &[0]),
        ("not a = b", &[0]),
        ("a < b", &[0]),
        ("a < i", &[1]),
        ("u > i", &[0, 3]),
        ("u = i", &[]),
        ("t > d", &[0]),
        ("d = f", &[3]),
        ("f = i", &[0]),
        ("f > i", &[1, 3]),
        ("g > f", &[0, 3]),
        ("g = f", &[1]),
        ("f >= g", &[1]),
        ("f = -f", &[0, 1, 3]),
        ("s = k", &[]),
        ("lower(s) = lower(k)", &[0]),
        ("s > k", &[1]),
        ("r > a", &[0, 1]),
        ("st.x = a", &[0]),
        ("bin = bin", &[0, 3]),
        ("yes = yes", &[0, 1, 3]),
        ("at = day", &[0]),
        ("at > day", &[1]),
        ("secs <= at", &[0, 1]),
        ("secs > day", &[3]),
        ("clock = clock", &[0, 1, 3]),
        ("a between b and a + 1", &[1]),
        ("a = null", &[]),
        ("null + a > b", &[]),
        ("(null + a) is null", &[0, 1, 2, 3]),
    ] {
        assert_eq!(rows(text, &table), expected, "{text}");
        let sliced: Vec<usize> =
            expected.iter().filter(|row| **row >= 1).map(|row| row - 1).collect();
        assert_eq!(rows(text, &table.slice(1, 3)), sliced, "{text}, sliced");
    }
}

#[test]
fn arithmetic_and_functions() {
    let table = table();
    for (text, expected) in [
        ("a + 1 = 2", &[0][..]),
        ("a + 1 > 2147483647", &[3]),
        ("t + t = 254", &[0]),
        ("a * b = 49", &[1]),
        ("a - b", &[]),
        ("a / b = 0.5", &[0]),
        ("a / 0 > 1e300", &[0, 3]),
        ("(a - a) / 0 = double 'nan'", &[0, 1, 3]),
        ("a % 2 = 1", &[0, 3]),
        ("a % -2 = -1", &[1]),
        ("-a = 7", &[1]),
        ("u + 1 = 18446744073709551616", &[0]),
        ("u - 8 = -1", &[3]),
        ("d * 2 = 21", &[0]),
        ("d * 1.1 = 11.55", &[0]),
        ("d + 0.005 = 10.505", &[0]),
        ("d / 2 = 5.25", &[0]),
        ("d + 1 < 0", &[1]),
        ("abs(d) > 2", &[0, 1]),
        ("abs(a) = 7", &[1]),
        ("abs(t) = 128", &[1]),
        ("abs(f) = 0", &[0, 3]),
        ("f + 1 = 1", &[0, 3]),
        ("f + 1 > 1", &[1]),
        ("g * 2 = 5", &[3]),
        ("lower(s) = 'anna'", &[0]),
        ("lower(s) = 'äpfel ß'", &[1]),
        ("upper(s) = 'ÄPFEL ẞ'", &[1]),
        ("upper(k) in ('BO', 'x')", &[1]),
        ("lower(s) like '%a'", &[0]),
        ("starts_with(upper(s), 'AN')", &[0]),
        ("s ilike 'aNN%'", &[0]),
        ("s ilike 'äPFEL_ß'", &[1]),
        ("s not ilike 'a%'", &[1, 3]),
        ("k ilike 'ANNA'", &[0, 3]),
        ("length(s) = 7", &[1]),
        ("length(s) + length(k) = 8", &[0]),
        ("length(bin) = 4", &[0]),
        ("length(s) is null", &[2]),
        ("length(s) is not null", &[0, 1, 3]),
        ("a + b is null", &[2, 3]),
        ("a + b in (3, 4)", &[0]),
        ("a + b not in (3, null)", &[]),
        ("1 = 1", &[0, 1, 2, 3]),
        ("1 + 1 = 3 or a = 1", &[0]),
        ("lower('X') = 'x' and a = 1", &[0]),
        ("a = 8 / 8", &[0]),
        ("a > 10 / 4", &[3]),
        ("s = upper('a') or a = 3 - 2", &[0]),
    ] {
        match text {
            "a - b" => assert!(Predicate::parse(text).is_err()),
            _ => assert_eq!(rows(text, &table), expected, "{text}"),
        }
    }
}

#[test]
fn casts() {
    let table = table();
    for (text, expected) in [
        ("cast(n as int32) = 12", &[0][..]),
        ("cast(n as int) > a", &[0]),
        ("cast(n as decimal(9, 2)) = -7", &[1]),
        ("cast(n as double) = 5", &[3]),
        ("cast(a as string) = '-7'", &[1]),
        ("cast(d as string) = '10.50'", &[0]),
        ("cast(d as int) = 11", &[0]),
        ("cast(d as int) = -2", &[1]),
        ("cast(d as decimal(9, 1)) = -2.1", &[1]),
        ("cast(g as string) = '2.5'", &[3]),
        ("cast(f as string) in ('nan', '-0.0')", &[1, 3]),
        ("cast(yes as int) = 1", &[0, 3]),
        ("cast(a as boolean) = true", &[0, 1, 3]),
        ("cast(2.5 as int) = 3 and a = 1", &[0]),
        ("cast(a / 2 as int) = 0", &[0]),
        ("cast(a / 2 as int) = -4", &[1]),
        ("cast(at as date) = date '1969-12-31'", &[1]),
        ("cast(at as string) = '1970-01-01 00:00:05'", &[3]),
        ("cast(at as string) = '1969-12-31 23:59:59.999999'", &[1]),
        ("cast(utc as string) = '1970-01-01 00:00:00+00'", &[0]),
        ("cast(at as time) = '00:00:05'", &[3]),
        ("cast(clock as string) = '00:00:00.000001'", &[1]),
        ("cast('2024-01-02 03:04:05' as timestamp) > at", &[0, 1, 3]),
        ("cast('1970-01-01' as date) = day", &[0]),
        ("cast('1969-12-31' as date) = day", &[1]),
        ("cast(at as timestamptz) = utc", &[0]),
        ("cast(at as timestamp_s) = at", &[0, 3]),
        ("cast(s as string) = s", &[0, 1, 3]),
        ("cast(null as int) is null and a = 1", &[0]),
    ] {
        assert_eq!(rows(text, &table), expected, "{text}");
    }
}

#[test]
fn floats_become_texts_as_in_sql() {
    let texts = ["0.1", "1e+16", "1e-05", "-2.5e-07", "1000000000000000.0", "2.5e+100", "0.0001"];
    let floats = [0.1, 1e16, 1e-5, -2.5e-7, 1e15, 2.5e100, 1e-4];
    let batch = batch(vec![("f", Arc::new(Float64Array::from_iter_values(floats)))]);
    for (row, text) in texts.iter().enumerate() {
        assert_eq!(rows(&format!("cast(f as string) = '{text}'"), &batch), [row], "{text}");
    }
}

#[test]
fn products_of_decimals_have_the_digits_of_both() {
    let large = Decimal128Array::from(vec![10i128.pow(30), -(10i128.pow(37))]);
    let large: ArrayRef = Arc::new(large.with_precision_and_scale(38, 0).unwrap());
    let batch = batch(vec![("x", large)]);
    assert_eq!(rows("x * x > 0", &batch), [0, 1]);
    assert_eq!(rows("x * x = 1e60", &batch), [0]);
}

#[test]
fn what_fails_is_named() {
    let table = table();
    for (text, named) in [
        ("i + 1 > 0", "i + 1 > 0: overflow: 9223372036854775807 + 1"),
        ("i * 2 > a", "i * 2 > a: overflow"),
        ("-i > 0", "-i > 0: overflow"),
        ("abs(i) > 0", "abs(i) > 0: "),
        ("a % 0 = 1", "a % 0 = 1: division by zero"),
        ("cast(s as int32) = 1", "cast(s as int32) = 1: 'Anna' is no int32"),
        ("cast(a as int8) = 1", "2147483647 is no int8"),
        ("cast(f as int64) = 1", "NaN is no int64"),
        ("cast(s as date) = day", "'Anna' is no date"),
        ("cast(d as decimal(3, 2)) = 1", "10.50 is no decimal(3, 2)"),
        ("cast(day as timestamp_ns) = at", "is no timestamp_ns"),
        ("cast('x' as int) = a", "'x' is no int32"),
        // Not supported.
        ("a + s > 1", "not supported: int32 + string"),
        ("at + 1 > at", "not supported: timestamp + int64"),
        ("a = s", "not supported: int32 compared with string; cast one of them"),
        ("at = utc", "not supported: timestamp compared with timestamptz"),
        ("lower(a) = 'x'", "not supported: lower of int32"),
        ("length(a) = 1", "not supported: length of int32"),
        ("abs(s) = 1", "not supported: abs of string"),
        ("cast(at as int) = 1", "not supported: cast of timestamp as int32"),
        ("st = st", "not supported: a struct"),
        ("lower(s) = 5", "a text stands in quotes"),
        ("a + 1 = 'x'", "column a + 1 is int64"),
        ("cast(at as date) = 5", "date '2024-01-31'"),
        ("a ilike 'x'", "ilike is for strings"),
        ("a = \"missing\"", "missing"),
    ] {
        let error = try_rows(text, &table).expect_err(text);
        assert_eq!(error.kind(), ErrorKind::Usage, "{text}");
        assert!(error.message().contains(named), "{text}: {error}");
    }
}

#[test]
fn groups_are_compared_with_nothing() {
    let none = arrow_array::new_null_array(&DataType::Null, 4);
    let st = Arc::clone(table().column_by_name("st").unwrap());
    let table = batch(vec![("st", st), ("none", none)]);
    for (text, named) in [
        ("st = none", "not supported: a struct"),
        ("none = st", "not supported: null compared with a struct"),
        ("st = st", "not supported: a struct compared with a struct"),
    ] {
        let error = try_rows(text, &table).expect_err(text);
        assert_eq!(error.kind(), ErrorKind::Usage, "{text}");
        assert!(error.message().contains(named), "{text}: {error}");
    }
    assert_eq!(rows("none = none", &table), [0; 0]);
}

#[test]
fn a_row_that_others_leave_out_makes_nothing_fail() {
    let table = table();
    for (text, expected) in [
        ("i + 1 > 0 and i < 5 and a = 1", &[0][..]),
        ("a = 1 and i + 1 > 0", &[0]),
        ("(i + 1 > 0 or b = 3) and a = 1", &[0]),
        ("a <> 1 and i > 0 or i is null or b is null or i + 1 = 1", &[0, 1, 2, 3]),
        ("not (i + 1 <= 0 or a <> 1)", &[0]),
        ("cast(n as int8) = 12 and cast(s as int8) = 1 and s = ''", &[]),
        ("a = 5 and cast(s as int8) = 1", &[]),
    ] {
        assert_eq!(try_rows(text, &table).unwrap_or_else(|e| panic!("{text}: {e}")), expected);
    }
}

#[test]
fn rust_has_the_same() {
    let table = table();
    let found = |predicate: Predicate| {
        let kept = predicate.bind_to(&table.schema()).unwrap().evaluate(&table).unwrap();
        kept.values().set_indices().collect::<Vec<_>>()
    };
    assert_eq!(found(col("a").eq(col("b"))), [1]);
    assert_eq!(found((col("a") + col("b")).gt(2)), [0]);
    assert_eq!(found((-col("a") * 2).eq(14)), [1]);
    assert_eq!(found((lit(1) - col("a")).eq(0)), [0]);
    assert_eq!(found(col("s").lower().is_in(["anna"])), [0]);
    assert_eq!(found(col("s").upper().like("AN%")), [0]);
    assert_eq!(found(col("s").ilike("an%").and(col("s").length().between(4, 5))), [0]);
    assert_eq!(found(col("n").cast(DataType::Int32).lt(col("a").abs())), [1, 3]);
    assert_eq!(found((col("a") / 2).gt_eq(0.5).and((col("a") % 2).not_eq(0))), [0, 3]);
    assert_eq!(found((col("t") + 0).lt(300)), [0, 1, 3], "by value");
    assert!(col("t").lt(300).bind_to(&table.schema()).is_err(), "strict");
}

#[test]
fn known_columns_are_put_in() {
    let year: ArrayRef = Arc::new(Int64Array::from(vec![2024]));
    let none: ArrayRef = Arc::new(StringArray::from(vec![None::<&str>]));
    let values = batch(vec![("year", year), ("none", none)]);
    for (text, left) in [
        ("year + 1 = 2025", "true"),
        ("year = born", "born = 2024"),
        ("year - born > 18", "2024 - born > 18"),
        ("lower(none) = name", "false"),
        ("lower(none) is null and a = 1", "a = 1"),
        ("none = name", "false"),
    ] {
        let found = Predicate::parse(text).unwrap().with_known(&values).unwrap();
        match text {
            "lower(none) = name" => assert_eq!(found.to_string(), "lower(null) = name"),
            "none = name" => assert_eq!(found.to_string(), "name = null"),
            _ => assert_eq!(found, Predicate::parse(left).unwrap(), "{text}"),
        }
    }
}
