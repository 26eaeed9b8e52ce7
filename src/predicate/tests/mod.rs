//! Tests the rules of the module docs, one by one; `random` then compares everything with a naive
//! twin.

pub(super) mod random;
mod rules;
mod tables;
mod twin;

use std::sync::Arc;

use arrow_array::builder::StringViewBuilder;
use arrow_array::types::{Int32Type, Int64Type};
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Float64Array, Int32Array, Int64Array,
    IntervalYearMonthArray, ListArray, RecordBatch, RunArray, StringArray, StructArray,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, Fields, Schema as ArrowSchema};

use super::evaluation::Evaluation;
use super::expression::*;
use super::learn::AdaptiveStats;
use super::literal::Literal;
use crate::error::ErrorKind;
use crate::limits::Budget;

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, array)| (name, array, true)),
    )
    .unwrap()
}

/// Evaluates the text form.
fn rows(text: &str, batch: &RecordBatch) -> Vec<usize> {
    let bound = Predicate::parse(text).unwrap().bind_to(&batch.schema()).unwrap();
    let kept = bound.evaluate(batch).unwrap();
    assert_eq!(kept.null_count(), 0);
    (0..kept.len()).filter(|&i| kept.value(i)).collect()
}

#[test]
fn what_is_compared_with_null_is_neither_true_nor_false() {
    let batch = batch(vec![
        ("a", Arc::new(Int32Array::from(vec![Some(1), None, Some(3)]))),
        ("b", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None]))),
    ]);
    for (text, expected) in [
        ("a = 1", &[0][..]),
        ("not a = 1", &[2]),
        ("a <> 1", &[2]),
        ("a is null", &[1]),
        ("a is not null", &[0, 2]),
        ("a = null", &[]),
        ("not a = null", &[]),
        ("a in (1, null)", &[0]),
        ("a not in (1, null)", &[]),
        ("a not in (1)", &[2]),
        ("a in ()", &[]),
        ("a not in ()", &[0, 2]),
        ("b", &[0]),
        ("not b", &[1]),
        ("a = 1 or b", &[0]),
        ("a > 0 or b", &[0, 2]),
        ("not (a > 0 and b)", &[1]),
        ("true", &[0, 1, 2]),
        ("null", &[]),
        ("not null", &[]),
        ("a between 1 and 2", &[0]),
        ("2 < a", &[2]),
        ("null or a = 1", &[0]),
    ] {
        assert_eq!(rows(text, &batch), expected, "{text}");
    }
    // A column of nothing but nulls.
    let nothing = arrow_array::new_null_array(&DataType::Null, 2);
    let nothing = self::batch(vec![("n", nothing)]);
    assert_eq!(rows("n is null", &nothing), [0, 1]);
    assert_eq!(rows("n = 3", &nothing), [0; 0]);
}

#[test]
fn every_nan_is_one_and_the_greatest_and_the_zeros_are_one() {
    let values = vec![0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, -1.0];
    let narrow: Vec<f32> = vec![0.0, -0.0, f32::NAN, -f32::NAN, f32::INFINITY, -1.0];
    let half: Vec<half::f16> = narrow.iter().map(|v| half::f16::from_f32(*v)).collect();
    let batch = batch(vec![
        ("x", Arc::new(Float64Array::from(values))),
        ("y", Arc::new(arrow_array::Float32Array::from(narrow))),
        ("z", Arc::new(arrow_array::Float16Array::from(half))),
    ]);
    for (test, expected) in [
        ("= 0", &[0, 1][..]),
        ("< 0", &[5]),
        ("<= 0", &[0, 1, 5]),
        ("> 0", &[2, 3, 4]),
        (">= 0", &[0, 1, 2, 3, 4]),
        ("<> 0", &[2, 3, 4, 5]),
        ("= double 'nan'", &[2, 3]),
        ("<> double 'nan'", &[0, 1, 4, 5]),
        ("< double 'nan'", &[0, 1, 4, 5]),
        ("<= double 'nan'", &[0, 1, 2, 3, 4, 5]),
        ("> double 'nan'", &[]),
        (">= double 'nan'", &[2, 3]),
        ("> double 'inf'", &[2, 3]),
        ("in (0, double 'nan')", &[0, 1, 2, 3]),
        ("not in (0, 1, 2, 3, 4, 5, 6)", &[2, 3, 4, 5]),
    ] {
        for column in ["x", "y", "z"] {
            assert_eq!(rows(&format!("{column} {test}"), &batch), expected, "{column} {test}");
        }
    }
}

#[test]
fn strings_match_patterns() {
    let names = ["Anna", "anna", "A%na", "", "Äpfel", "A\\b"];
    let batch = batch(vec![
        ("s", Arc::new(StringArray::from(names.to_vec()))),
        ("v", Arc::new(arrow_array::StringViewArray::from(names.to_vec()))),
    ]);
    for (test, expected) in [
        ("like 'A%'", &[0, 2, 5][..]),
        ("like '_nna'", &[0, 1]),
        ("like 'A\\%na'", &[2]),
        ("like 'A!%%' escape '!'", &[2]),
        ("like 'A\\b' escape ''", &[5]),
        ("like 'A\\\\_'", &[5]),
        ("like '%'", &[0, 1, 2, 3, 4, 5]),
        ("like ''", &[3]),
        ("like '_pfel'", &[4]),
        ("not like '%a'", &[3, 4, 5]),
        ("like '%n_a%'", &[0, 1]),
        ("like '%nn%'", &[0, 1]),
    ] {
        for column in ["s", "v"] {
            assert_eq!(rows(&format!("{column} {test}"), &batch), expected, "{test}");
        }
    }
    assert_eq!(rows("starts_with(s, 'A')", &batch), [0, 2, 5]);
    assert_eq!(rows("not starts_with(v, 'A')", &batch), [1, 3, 4]);
}

#[test]
fn values_without_an_order_are_the_same_or_not() {
    let months = IntervalYearMonthArray::from(vec![Some(1), Some(2), None, Some(2)]);
    let batch = batch(vec![("months", Arc::new(months))]);
    let two: ArrayRef = Arc::new(IntervalYearMonthArray::from(vec![2]));
    let (months, two) = (col("months"), Literal::from(&two));
    let found = |predicate: Predicate| {
        let kept = predicate.bind_to(&batch.schema()).unwrap().evaluate(&batch).unwrap();
        kept.values().set_indices().collect::<Vec<_>>()
    };
    assert_eq!(found(months.clone().eq(two.clone())), [1, 3]);
    assert_eq!(found(months.clone().not_eq(two.clone())), [0]);
    let error = months.lt(two).bind_to(&batch.schema()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
}

#[test]
fn elements_of_lists_and_fields_of_structs() {
    // [1, 2], [], null, [null], [1, null], [5]
    let values = Int32Array::from(vec![Some(1), Some(2), None, Some(1), None, Some(5)]);
    let offsets = OffsetBuffer::new(vec![0, 2, 2, 2, 3, 5, 6].into());
    let valid = NullBuffer::from(vec![true, true, false, true, true, true]);
    let item = Arc::new(Field::new("item", DataType::Int32, true));
    let list = ListArray::new(item, offsets, Arc::new(values), Some(valid));
    let inner = Fields::from(vec![Field::new("x", DataType::Int32, true)]);
    let x: ArrayRef =
        Arc::new(Int32Array::from(vec![Some(7), Some(7), None, Some(8), Some(7), Some(7)]));
    let valid = NullBuffer::from(vec![true, false, true, true, true, true]);
    let group = StructArray::new(inner, vec![x], Some(valid));
    let batch = batch(vec![("l", Arc::new(list)), ("g", Arc::new(group))]);
    for (text, expected) in [
        ("any(l) = 1", &[0, 4][..]),
        ("not any(l) = 1", &[1, 5]),
        ("all(l) = 1", &[1]),
        ("not all(l) = 1", &[0, 5]),
        ("all(l) > 0", &[0, 1, 5]),
        ("any(l) is null", &[3, 4]),
        ("all(l) is not null", &[0, 1, 5]),
        ("l is null", &[2]),
        ("l is empty", &[1]),
        ("l is not empty", &[0, 3, 4, 5]),
        ("any(l) in (2, 5)", &[0, 5]),
        ("any(l) not in (2, 5)", &[0, 4]),
        ("not any(l) in (2, 5)", &[1]),
        ("any(l) between 2 and 4", &[0]),
        ("all(l) not between 2 and 4", &[1, 5]),
        ("any(l) is not null", &[0, 4, 5]),
        ("g.x = 7", &[0, 4, 5]),
        ("g.x is null", &[1, 2]),
        ("g is null", &[1]),
        ("not g.x = 8", &[0, 4, 5]),
    ] {
        assert_eq!(rows(text, &batch), expected, "{text}");
        let sliced: Vec<usize> =
            expected.iter().filter(|row| **row >= 2).map(|row| row - 2).collect();
        assert_eq!(rows(text, &batch.slice(2, 4)), sliced, "{text}, sliced");
    }
    let of_null_struct = Predicate::function(["g.x"], |batch| {
        let x = batch.column_by_name("g.x").unwrap();
        Ok(BooleanArray::from_iter((0..x.len()).map(|i| Some(x.is_null(i)))))
    });
    let bound = of_null_struct.bind_to(&batch.schema()).unwrap();
    assert_eq!(bound.evaluate(&batch).unwrap().true_count(), 2, "null with the struct around it");
    let wrong = Predicate::function(["l"], |_| Ok(BooleanArray::from(vec![true])));
    let wrong = wrong.bind_to(&batch.schema()).unwrap().evaluate(&batch);
    assert_eq!(wrong.unwrap_err().kind(), ErrorKind::Usage);
}

#[test]
fn dictionaries_and_runs_are_looked_through() {
    let keys = vec![Some(0), Some(1), None, Some(2), Some(0)];
    let entries = Arc::new(StringArray::from(vec![Some("a"), Some("b"), None]));
    let dictionary = DictionaryArray::<Int32Type>::new(keys.into(), entries);
    let ends = Int32Array::from(vec![2, 3, 5]);
    let runs =
        RunArray::<Int32Type>::try_new(&ends, &Int64Array::from(vec![Some(1), None, Some(3)]));
    let batch = batch(vec![("d", Arc::new(dictionary)), ("r", Arc::new(runs.unwrap()))]);
    for (text, expected) in [
        ("d = 'a'", &[0, 4][..]),
        ("d <> 'a'", &[1]),
        ("d is null", &[2, 3]),
        ("d like '%b%'", &[1]),
        ("r >= 1", &[0, 1, 3, 4]),
        ("not r = 1", &[3, 4]),
        ("r is null", &[2]),
    ] {
        assert_eq!(rows(text, &batch), expected, "{text}");
        let sliced: Vec<usize> =
            expected.iter().filter(|row| **row >= 1).map(|row| row - 1).collect();
        assert_eq!(rows(text, &batch.slice(1, 4)), sliced, "{text}, sliced");
    }
    // More entries than rows: only those of the rows are tested.
    let values: StringArray = (0..100).map(|i| Some(i.to_string())).collect();
    let keys: arrow_array::PrimitiveArray<Int64Type> = vec![Some(99), None].into();
    let large = DictionaryArray::<Int64Type>::new(keys, Arc::new(values));
    let empty = DictionaryArray::<Int32Type>::new(
        vec![None, None].into(),
        Arc::new(StringArray::from(Vec::<&str>::new())),
    );
    let batch = self::batch(vec![("l", Arc::new(large)), ("e", Arc::new(empty))]);
    assert_eq!(rows("l = '99'", &batch), [0]);
    assert_eq!(rows("e = '99' or e is null", &batch), [0, 1]);
}

#[test]
fn the_text_form_says_where_it_is_wrong() {
    for (text, place) in [
        ("", 1),
        ("amount >", 9),
        ("amount > 10 and", 16),
        ("amount ? 10", 8),
        ("amount > + ", 12),
        ("a + 1", 6),
        ("(a > 1) + 1", 9),
        ("a = b = c", 7),
        ("foo(a) = 1", 1),
        ("1 < lower(a", 12),
        ("cast(a as thing) = 1", 11),
        ("cast(a as decimal(99)) = 1", 11),
        ("cast(a, int) = 1", 7),
        ("a in (b)", 7),
        ("intersects(a + 1, 0, 0, 1, 1)", 12),
        ("(a = 1", 7),
        ("a = 1)", 6),
        ("name like 10", 11),
        ("a in (1 2)", 9),
        ("a is 3", 6),
        ("a not 3", 7),
        ("5", 2),
        ("'open", 1),
        ("a = x'0g'", 5),
        ("d = date '2024-13-01'", 10),
        ("a between 1 or 2", 13),
        ("any(a = 1", 7),
        ("and = 1", 1),
        ("é = 1 ü", 7),
        ("a like 'x' escape 'yz'", 19),
        ("a foo 1", 3),
    ] {
        let error = Predicate::parse(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        let said = format!("character {place} ");
        assert!(error.message().starts_with(&said), "{text}: {}", error.message());
    }
    let deep = format!("{}a{}", "(".repeat(100_000), ")".repeat(100_000));
    assert_eq!(Predicate::parse(&deep).unwrap_err().kind(), ErrorKind::Usage);
    for deep in ["not ", "- ", "lower(", "cast(", "a + (", "a and (", "a = (", "not (- abs("] {
        let error = Predicate::parse(&deep.repeat(100_000)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{deep}");
    }
    // What stands side by side is not nested.
    let long = vec!["a + 1"; 10_000].join(" + ") + " > 3 and " + &vec!["b"; 10_000].join(" and ");
    assert_eq!(Predicate::parse(&long).unwrap().to_string().len(), long.len() + 7 * 10_000);
}

#[test]
fn the_text_form_has_many_spellings() {
    for (text, expected) in [
        ("AMOUNT > 10 AND Country IN ('NL','BE')", "AMOUNT > 10 and Country in ('NL', 'BE')"),
        ("10 <= a", "a >= 10"),
        ("a == 1 or b != .5", "a = 1 or b <> 0.5"),
        ("not (a = 1 or b = 2) and c", "not (a = 1 or b = 2) and c = true"),
        ("a.\"b c\".d is not null", "\"a.b c.d\" is not null"),
        ("\"and\" = 'it''s'", "\"and\" = 'it''s'"),
        ("a between -1 and +2", "a between -1 and 2"),
        ("t > timestamp '2024-01-01T00:00:00+01:00'", "t > timestamp '2023-12-31 23:00:00Z'"),
        ("date = date '2024-01-31' and any = 1", "date = date '2024-01-31' and any = 1"),
        ("b = X'0AFF' or t = time '01:02'", "b = x'0aff' or t = time '01:02:00'"),
        ("((a = 1))", "a = 1"),
        ("a = 1 and (b = 2 and c = 3)", "a = 1 and b = 2 and c = 3"),
        ("a = 1 and (b = 2 or c = 3)", "a = 1 and (b = 2 or c = 3)"),
        ("a\n=\t1", "a = 1"),
        ("a>-1and b=+2", "a > -1 and b = 2"),
        ("a-1>b -1", "a - 1 > b - 1"),
        ("(a + 1) * 2 - (b - c) > - d", "(a + 1) * 2 - (b - c) > -d"),
        ("a - b - c = -(a + b)", "a - b - c = -(a + b)"),
        ("a * (b * c) / d % 2 <> 0", "a * (b * c) / d % 2 <> 0"),
        ("((a)) = (b)", "a = b"),
        ("(a > 1 and (b)) or (lower(c)) = 'x'", "a > 1 and b = true or lower(c) = 'x'"),
        ("5 < a + 1", "a + 1 > 5"),
        ("UPPER(a) not like 'X%' and a ILIKE 'x'", "upper(a) not like 'X%' and a ilike 'x'"),
        ("CAST(a AS Integer) in (1, -2)", "cast(a as int32) in (1, -2)"),
        (
            "cast(a as numeric(9,2)) = cast(b as varchar(5))",
            "cast(a as decimal(9, 2)) = cast(b as string)",
        ),
        (
            "cast(a as timestamp) < cast(b as timestamptz)",
            "cast(a as timestamp) < cast(b as timestamptz)",
        ),
        ("cast(a as double precision) is not null", "cast(a as double) is not null"),
        ("abs(a) between 1 and 2", "abs(a) between 1 and 2"),
        ("a between b and c + 1", "a >= b and a <= c + 1"),
        ("length = length(lower) and cast = abs", "length = length(lower) and cast = abs"),
        ("starts_with(lower(a), 'x')", "starts_with(lower(a), 'x')"),
        ("variant_get(v, '$.a', 'int64') + 1 = b", "variant_get(v, '$.a', 'int64') + 1 = b"),
    ] {
        let parsed = Predicate::parse(text).unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(parsed.to_string(), expected);
        assert_eq!(expected.parse::<Predicate>().unwrap(), parsed);
    }
    let shared: fn(Predicate) -> Box<dyn Send + Sync> = |predicate| Box::new(predicate);
    shared(Predicate::TRUE);
}

#[test]
fn what_does_not_fit_is_named_when_the_predicate_is_bound() {
    let fields = Fields::from(vec![Field::new("x", DataType::Int32, true)]);
    let item = Arc::new(Field::new("item", DataType::Int32, true));
    let schema = ArrowSchema::new(vec![
        Field::new("amount", DataType::Int8, true),
        Field::new("name", DataType::Utf8, true),
        Field::new("g", DataType::Struct(fields), true),
        Field::new("l", DataType::List(item), true),
        Field::new("twice", DataType::Int8, true),
        Field::new("twice", DataType::Int8, true),
    ]);
    for (text, named) in [
        ("amont = 1", "\"amount\""),
        ("amount in (1, 2, 'x')", "'x'"),
        ("amount = '128'", "column amount is int8, and '128' is no such value"),
        ("amount = true", "column amount is int8, which cannot be compared with true"),
        (
            "name = 1",
            "name is string, which cannot be compared with 1; a text stands in quotes: '1'",
        ),
        ("name is empty", "name"),
        ("amount like 'a'", "amount"),
        ("starts_with(amount, 'a')", "amount"),
        ("name like 'a\\'", "name"),
        ("g = 1", "column g"),
        ("l = 1", "column l"),
        ("any(amount) = 1", "amount"),
        ("l.item = 1", "any(l.item)"),
        ("twice = 1", "twice"),
        ("g.y = 1", "g.y"),
    ] {
        let error = Predicate::parse(text).unwrap().bind_to(&schema).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{text}");
        assert!(error.message().contains(named), "{text}: {error}");
    }
    // Those of Rust are of the column's type.
    for (predicate, named) in [
        (col("amount").eq(128), "128"),
        (col("amount").gt(1000), "1000"),
        (col("amount").eq(0.5), "0.5"),
        (col("amount").eq("5"), "'5'"),
    ] {
        let error = predicate.bind_to(&schema).unwrap_err();
        assert!(error.message().contains(named), "{predicate}: {error}");
    }
    let bound = (col("amount").gt(1).and(col("name").eq("a")).and(any("l").eq(1)))
        .bind_to(&schema)
        .unwrap();
    assert_eq!(bound.paths(), ["amount", "name", "l"]);
    let parts: Vec<_> = bound.conjuncts().iter().map(|part| part.paths()[0].to_owned()).collect();
    assert_eq!(parts, ["amount", "name", "l"]);
    // A batch of other types is told from one of those that were bound.
    let other = batch(vec![("amount", Arc::new(Int32Array::from(vec![1])))]);
    let bound = col("amount").gt(1).bind_to(&schema).unwrap();
    assert_eq!(bound.evaluate(&other).unwrap_err().kind(), ErrorKind::Usage);
    let bound = col("name").eq("").bind_to(&schema).unwrap();
    assert_eq!(bound.evaluate(&other).unwrap_err().kind(), ErrorKind::Usage);
}

/// Decimals of two digits after the point.
fn fares(unscaled: Vec<Option<i128>>) -> ArrayRef {
    let fares = arrow_array::Decimal128Array::from(unscaled);
    Arc::new(fares.with_precision_and_scale(9, 2).unwrap())
}

#[test]
fn the_text_form_compares_by_value() {
    let batch = batch(vec![
        ("n", Arc::new(arrow_array::Int8Array::from(vec![Some(5), None, Some(-128), Some(127)]))),
        ("u", Arc::new(arrow_array::UInt64Array::from(vec![Some(0), None, Some(u64::MAX), None]))),
        ("fare", fares(vec![Some(1024), Some(1025), None, Some(-1025)])),
        ("f", Arc::new(arrow_array::Float32Array::from(vec![f32::MAX, f32::INFINITY, 0.1, -1.0]))),
        ("b", Arc::new(BooleanArray::from(vec![Some(true), Some(false), None, Some(true)]))),
        ("s", Arc::new(StringArray::from(vec!["5", "300", "", "x"]))),
    ]);
    for (text, expected) in [
        ("n > 300", &[][..]),
        ("n < 300", &[0, 2, 3]),
        ("n <> 300", &[0, 2, 3]),
        ("not n = 300", &[0, 2, 3]),
        ("not n < 300", &[]),
        ("n >= -128.5", &[0, 2, 3]),
        ("n > 4.5", &[0, 3]),
        ("n <= 5.5 and n >= 4.5", &[0]),
        ("n between 4.5 and 300", &[0, 3]),
        ("n not between 4.5 and 300", &[2]),
        ("n in (5, 300, 4.5)", &[0]),
        ("n not in (5, 300)", &[2, 3]),
        ("n not in (300)", &[0, 2, 3]),
        ("n = '5'", &[0]),
        ("n < '6'", &[0, 2]),
        ("n = 5.0", &[0]),
        ("n < double 'nan'", &[0, 2, 3]),
        ("n < 1e300", &[0, 2, 3]),
        ("u >= -1", &[0, 2]),
        ("u < 1e30", &[0, 2]),
        ("u > -0.5 and u < 0.5", &[0]),
        ("fare >= 10.245", &[1]),
        ("fare > 10.245", &[1]),
        ("fare < 10.245", &[0, 3]),
        ("fare <= -10.245", &[3]),
        ("fare = 10.245", &[]),
        ("fare <> 10.245", &[0, 1, 3]),
        ("fare = '10.24'", &[0]),
        ("fare < 1e9", &[0, 1, 3]),
        ("f > 1e300", &[1]),
        ("f < 1e300", &[0, 2, 3]),
        ("f = 0.1", &[2]),
        ("f = '0.1'", &[2]),
        ("b = 'TRUE'", &[0, 3]),
        ("s = '5'", &[0]),
    ] {
        assert_eq!(rows(text, &batch), expected, "{text}");
    }
}

#[test]
fn a_bare_number_is_no_time_in_the_text_form() {
    let utc = DataType::Timestamp(arrow_schema::TimeUnit::Millisecond, Some("UTC".into()));
    let local = DataType::Timestamp(arrow_schema::TimeUnit::Millisecond, None);
    let schema = ArrowSchema::new(vec![
        Field::new("t", local.clone(), true),
        Field::new("z", utc, true),
        Field::new("d", DataType::Date32, true),
        Field::new("c", DataType::Time64(arrow_schema::TimeUnit::Microsecond), true),
        Field::new("any", DataType::List(Arc::new(Field::new("item", local, true))), true),
    ]);
    for (text, named) in [
        ("t > 5", "timestamp '2024-01-02 03:04:05'"),
        ("5.5 < t", "timestamp '2024-01-02 03:04:05'"),
        ("t in (5)", "timestamp '2024-01-02 03:04:05'"),
        ("any(\"any\") between 1 and 2", "timestamp '2024-01-02 03:04:05'"),
        ("z > 1704164645000", "timestamp '2024-01-02 03:04:05Z'"),
        ("d > 19000", "date '2024-01-31'"),
        ("c > 5", "time '12:30:00'"),
        ("d = '2024-02-30'", "date '2024-01-31'"),
        ("t = 'yesterday'", "timestamp '2024-01-02 03:04:05'"),
        ("t > timestamp '2024-01-02 03:04:05Z'", "no zone"),
    ] {
        let error = Predicate::parse(text).unwrap().bind_to(&schema).unwrap_err();
        assert!(error.message().contains(named), "{text}: {error}");
    }
    // In Rust it counts the unit of the column.
    assert!(col("t").gt(5).bind_to(&schema).is_ok());
    assert!(Predicate::parse("t > '2024-01-02 03:04:05.000001'").unwrap().bind_to(&schema).is_ok());
    assert!(
        Predicate::parse("d < timestamp '2024-01-02 03:04:05'").unwrap().bind_to(&schema).is_ok()
    );
}

/// A literal of any kind.
fn random_literal(rng: &mut fastrand::Rng) -> Literal {
    match rng.u8(0..12) {
        0 => Literal::NULL,
        1 => rng.bool().into(),
        2 => rng.i64(..).into(),
        3 => (rng.i32(-1000..1000)).into(),
        4 => f64::from_bits(rng.u64(..)).into(),
        5 => f32::from_bits(rng.u32(..)).into(),
        6 => Literal::decimal(i128::from(rng.i64(..)) * i128::from(rng.u32(..)), rng.u8(0..40)),
        7 => (0..rng.usize(0..5))
            .map(|_| *rng.choice(&['a', '\'', '"', '%', 'é', '\n']).unwrap())
            .collect::<String>()
            .into(),
        8 => (0..rng.usize(0..4)).map(|_| rng.u8(..)).collect::<Vec<u8>>().into(),
        9 => Literal::date(rng.i32(..)),
        10 => Literal::time(rng.u64(..)),
        _ if rng.bool() => Literal::timestamp_utc(rng.i64(..)),
        _ => Literal::timestamp_local(rng.i64(..)),
    }
}

fn random_predicate(rng: &mut fastrand::Rng, depth: u8) -> Predicate {
    if depth > 0 && rng.u8(..) < 150 {
        let parts: Vec<_> =
            (0..rng.usize(0..4)).map(|_| random_predicate(rng, depth - 1)).collect();
        return match rng.u8(0..3) {
            0 => not(random_predicate(rng, depth - 1)),
            1 => Predicate::all_of(parts),
            _ => Predicate::any_of(parts),
        };
    }
    let names = [
        "a",
        "a.b",
        "select",
        "NULL",
        "x y",
        "é",
        "",
        ".",
        "\"",
        "any",
        "date",
        "_1",
        "1a",
        "a.",
        "starts_with",
    ];
    let path = *rng.choice(&names).unwrap();
    let column = match rng.u8(0..6) {
        0 => any(path),
        1 => all(path),
        _ => col(path),
    };
    match rng.u8(0..12) {
        0 => column.is_null(),
        1 => column.is_empty(),
        2 => column.is_in((0..rng.usize(0..4)).map(|_| random_literal(rng)).collect::<Vec<_>>()),
        3 => column.like_escaped(
            "a_'%\\b",
            *rng.choice(&[None, Some('\\'), Some('\''), Some('é')]).unwrap(),
        ),
        4 => column.starts_with("it's"),
        5 => column.starts_with(&[1u8, 255]),
        6 => column.between(random_literal(rng), random_literal(rng)),
        7 => Predicate::new(Term::Constant(*rng.choice(&[None, Some(true), Some(false)]).unwrap())),
        8 => column.eq(true),
        _ => {
            let ops = [Op::Eq, Op::NotEq, Op::Lt, Op::LtEq, Op::Gt, Op::GtEq];
            column.compare(*rng.choice(&ops).unwrap(), random_literal(rng))
        }
    }
}

#[test]
fn what_is_shown_is_read_back_the_same() {
    for seed in 0..super::tests::random::cases(3_000) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let predicate = random_predicate(&mut rng, 4);
        let text = predicate.to_string();
        let parsed = Predicate::parse(&text).unwrap_or_else(|e| panic!("seed {seed}: {text}\n{e}"));
        // A NaN is not equal to itself.
        assert_eq!(parsed.to_string(), text, "seed {seed}");
        if !text.contains("nan") {
            assert_eq!(parsed, predicate, "seed {seed}: {text}");
        }
    }
}

#[test]
fn no_text_makes_the_parser_panic() {
    let words = [
        "a",
        "'",
        "\"",
        "(",
        ")",
        "and",
        "or",
        "not",
        "in",
        "is",
        "null",
        "like",
        "=",
        "<",
        ".",
        ",",
        "1",
        "e",
        "-",
        "x'",
        "date",
        "é",
        " ",
        "any",
        "between",
        "\u{1F600}",
    ];
    for seed in 0..super::tests::random::cases(3_000) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let text: String = (0..rng.usize(0..12)).map(|_| *rng.choice(&words).unwrap()).collect();
        if let Ok(predicate) = Predicate::parse(&text) {
            assert_eq!(
                Predicate::parse(&predicate.to_string()).unwrap().to_string(),
                predicate.to_string(),
                "{text}"
            );
        }
    }
}

#[test]
fn a_fault_far_behind_in_a_text_is_marked() {
    let text = format!("{}§", " ".repeat(70_000));
    let error = Predicate::parse(&text).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.message().ends_with(&format!("\n  {}^", " ".repeat(70_000))));
}

#[test]
fn long_strings_that_rows_share_are_not_copied_for_all_of_them() {
    let len = 1 << 20;
    let mut views = StringViewBuilder::new();
    let block = views.append_block(vec![b'1'; len as usize].into());
    let short = |row: usize| row == 3 || row == 600;
    for row in 0..1030 {
        match short(row) {
            true => views.append_value("X"),
            false => views.try_append_view(block, 0, len).unwrap(),
        }
    }
    let views = batch(vec![("s", Arc::new(views.finish()))]);
    // Together they take more than 1 GiB, which no array of strings may be.
    assert_eq!(rows("lower(s) = 'x'", &views), [3, 600]);
    let bound = Predicate::parse("cast(s as bigint) > 3").unwrap().bind_to(&views.schema());
    assert_eq!(bound.unwrap().evaluate(&views).unwrap_err().kind(), ErrorKind::Usage);
    // Nothing is copied for these.
    let adaptive = AdaptiveStats::default();
    let budget = Budget::new(100_000);
    for (text, count) in [("length(s) = 1", 2), ("length(s) > 1", 1028), ("s = 'X'", 2)] {
        let bound = Predicate::parse(text).unwrap().bind_to(&views.schema()).unwrap();
        let evaluation = Evaluation::new(&adaptive, Some(&budget));
        let found = bound.evaluate_adaptively(&views, evaluation).unwrap();
        assert_eq!(found.true_count(), count, "{text}");
    }
    // More entries than rows: the rows are tested one by one, unless that is more to look at.
    let short = (0..10_000).map(|i| i.to_string());
    let entries =
        StringArray::from_iter_values(std::iter::once("1".repeat(len as usize)).chain(short));
    let keys = Int32Array::from_iter_values((0..3000).map(|row| if row == 5 { 8 } else { 0 }));
    let coded = DictionaryArray::<Int32Type>::new(keys, Arc::new(entries));
    let coded = batch(vec![("s", Arc::new(coded))]);
    assert_eq!(rows("s = '7'", &coded), [5]);
    // There is no memory for all entries in small letters, but for that of a few rows.
    let bound = Predicate::parse("s ilike '7'").unwrap().bind_to(&coded.schema()).unwrap();
    let few = coded.slice(5, 1);
    for _ in 0..20_000 {
        let evaluation = Evaluation::new(&adaptive, Some(&budget));
        assert_eq!(bound.evaluate_adaptively(&few, evaluation).unwrap().true_count(), 1);
    }
}
