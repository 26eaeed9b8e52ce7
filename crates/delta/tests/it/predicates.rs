//! Predicates prune, and never lose a row for which they are true.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, Decimal128Array, Float32Array, Float64Array,
    Int64Array, RecordBatch, StringArray, StructArray, TimestampMicrosecondArray,
    TimestampNanosecondArray,
};
use arrow_schema::{DataType as A, Field, Fields};
use delta_kernel::expressions::{
    BinaryPredicateOp, ColumnName, DecimalData, Expression, Predicate, Scalar, column_expr,
    column_name,
};
use delta_kernel::schema::{DataType, DecimalType, MetadataColumnSpec, StructField, StructType};
use marquetry::WriteOptions;

use crate::support::*;

const ROWS: i64 = 1_000;

/// Ten row groups of hundred rows; each value is null once in a while.
fn file() -> (tempfile::TempDir, std::path::PathBuf) {
    let every = |n: i64| move |row: i64| (row % n != 3).then_some(row);
    let id = Int64Array::from_iter_values(0..ROWS);
    let number = Int64Array::from_iter((0..ROWS).map(every(7)));
    let text = (0..ROWS).map(|row| every(11)(row).map(|row| format!("k{row:04}")));
    let text = StringArray::from_iter(text);
    let float = (0..ROWS).map(|row| match row % 100 {
        5 => Some(f64::NAN),
        6 => None,
        7 => Some(-0.0),
        8 => Some(-f64::NAN),
        _ => Some(row as f64),
    });
    let day = Date32Array::from_iter((0..ROWS).map(|row| every(5)(row).map(|row| row as i32)));
    let micros = TimestampMicrosecondArray::from_iter((0..ROWS).map(every(13)));
    let nanos = TimestampNanosecondArray::from_iter_values((0..ROWS).map(|row| row * 1_000 + 1));
    let decimal = Decimal128Array::from_iter((0..ROWS).map(|row| every(9)(row).map(i128::from)));
    let decimal = decimal.with_precision_and_scale(10, 2).expect("a decimal");
    let even = BooleanArray::from_iter((0..ROWS).map(|row| every(17)(row).map(|row| row % 2 == 0)));
    let inner = Fields::from(vec![Field::new("x", A::Int64, true)]);
    let s = StructArray::new(inner, vec![Arc::new(number.clone())], None);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(id)),
        ("number", Arc::new(number)),
        ("text", Arc::new(text)),
        ("float", Arc::new(Float64Array::from_iter(float.clone()))),
        ("single", Arc::new(Float32Array::from_iter(float.map(|v| v.map(|v| v as f32))))),
        ("day", Arc::new(day)),
        ("ts", Arc::new(micros.with_timezone("UTC"))),
        ("nanos", Arc::new(nanos.with_timezone("UTC"))),
        ("decimal", Arc::new(decimal)),
        ("even", Arc::new(even)),
        ("s", Arc::new(s)),
    ];
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("part.parquet");
    let options = WriteOptions::default().with_hint(false).with_row_group_rows(100);
    write_with(&path, &[batch], options);
    (folder, path)
}

fn wanted() -> Arc<StructType> {
    schema([
        StructField::nullable("id", DataType::LONG),
        StructField::nullable("number", DataType::LONG),
        StructField::nullable("text", DataType::STRING),
        StructField::nullable("float", DataType::DOUBLE),
        StructField::nullable("single", DataType::FLOAT),
        StructField::nullable("day", DataType::DATE),
        StructField::nullable("ts", DataType::TIMESTAMP),
        StructField::nullable("nanos", DataType::TIMESTAMP),
        StructField::nullable("decimal", DataType::decimal(10, 2).expect("a decimal")),
        StructField::nullable("even", DataType::BOOLEAN),
        StructField::nullable(
            "s",
            StructType::try_new([StructField::nullable("x", DataType::LONG)]).expect("a struct"),
        ),
        StructField::nullable("absent", DataType::LONG),
        StructField::create_metadata_column("row", MetadataColumnSpec::RowIndex),
    ])
}

/// The ids of the rows that are returned, of ten row groups.
fn ids(path: &std::path::Path, predicate: Predicate) -> Vec<i64> {
    let batches = read_batches(&handler(), &[meta_of(path)], &wanted(), Some(Arc::new(predicate)));
    let batches = batches.expect("read");
    let ids = |batch: &RecordBatch| {
        let ids = batch.column(0).as_primitive::<Int64Type>().values().to_vec();
        let rows = batch.columns().last().expect("a column").as_primitive::<Int64Type>();
        assert_eq!(ids, rows.values().to_vec(), "the numbers of the rows");
        ids
    };
    batches.iter().flat_map(ids).collect()
}

fn rows(passes: impl Fn(i64) -> bool) -> Vec<i64> {
    (0..ROWS).filter(|row| passes(*row)).collect()
}

#[test]
fn comparisons_are_those_of_the_kernel() {
    let (_folder, path) = file();
    let number = || column_expr!("number");
    let known = |row: i64, n: i64| row % n != 3;
    let decimal = |bits: i128| {
        let decimal = DecimalType::try_new(10, 2).expect("a decimal");
        Scalar::Decimal(DecimalData::try_new(bits, decimal).expect("a decimal"))
    };
    let distinct =
        |value: Expression| Predicate::binary(BinaryPredicateOp::Distinct, number(), value);
    let cases: Vec<(Predicate, Vec<i64>)> = vec![
        (Predicate::lt(number(), Scalar::from(55i64)), rows(|r| known(r, 7) && r < 55)),
        (Predicate::gt(number(), Scalar::from(955i64)), rows(|r| known(r, 7) && r > 955)),
        (Predicate::le(number(), Scalar::from(55i64)), rows(|r| known(r, 7) && r <= 55)),
        (Predicate::ge(number(), Scalar::from(955i64)), rows(|r| known(r, 7) && r >= 955)),
        (Predicate::eq(number(), Scalar::from(42i64)), vec![42]),
        (Predicate::eq(Scalar::from(42i64), number()), vec![42]),
        (Predicate::lt(Scalar::from(955i64), number()), rows(|r| known(r, 7) && r > 955)),
        (Predicate::ne(number(), Scalar::from(42i64)), rows(|r| known(r, 7) && r != 42)),
        (Predicate::eq(number(), Scalar::from(42i32)), vec![42]),
        (distinct(Scalar::from(42i64).into()), rows(|r| r != 42)),
        (Predicate::not(distinct(Scalar::from(42i64).into())), vec![42]),
        (Predicate::is_null(number()), rows(|r| !known(r, 7))),
        (Predicate::is_not_null(number()), rows(|r| known(r, 7))),
        (Predicate::is_null(column_expr!("s.x")), rows(|r| !known(r, 7))),
        (Predicate::lt(column_expr!("s.x"), Scalar::from(55i64)), rows(|r| known(r, 7) && r < 55)),
        (
            Predicate::lt(column_expr!("text"), Scalar::from("k0012")),
            rows(|r| known(r, 11) && r < 12),
        ),
        (Predicate::gt(column_expr!("day"), Scalar::Date(990)), rows(|r| known(r, 5) && r > 990)),
        (
            Predicate::gt(column_expr!("ts"), Scalar::Timestamp(990)),
            rows(|r| known(r, 13) && r > 990),
        ),
        (Predicate::lt(column_expr!("decimal"), decimal(12)), rows(|r| known(r, 9) && r < 12)),
        (Predicate::from_expr(column_expr!("even")), rows(|r| known(r, 17) && r % 2 == 0)),
        (
            Predicate::not(Predicate::from_expr(column_expr!("even"))),
            rows(|r| known(r, 17) && r % 2 != 0),
        ),
        // All that may pass: a NaN may have any sign, and each zero is taken for the other.
        (
            Predicate::gt(column_expr!("float"), Scalar::from(998.0)),
            rows(|r| r == 999 || r % 100 == 5 || r % 100 == 8),
        ),
        (Predicate::eq(column_expr!("float"), Scalar::from(0.0)), rows(|r| r == 0 || r % 100 == 7)),
        (
            Predicate::and(
                Predicate::ge(number(), Scalar::from(100i64)),
                Predicate::lt(column_expr!("id"), Scalar::from(110i64)),
            ),
            rows(|r| known(r, 7) && (100..110).contains(&r)),
        ),
        (
            Predicate::not(Predicate::or(
                Predicate::lt(column_expr!("id"), Scalar::from(990i64)),
                Predicate::is_null(number()),
            )),
            rows(|r| known(r, 7) && r >= 990),
        ),
    ];
    for (predicate, expected) in cases {
        assert_eq!(ids(&path, predicate.clone()), expected, "{predicate}");
    }
}

/// Parts that cannot be translated are true of all rows, and those beside them still prune.
#[test]
fn what_is_unknown_keeps_all_rows() {
    let (_folder, path) = file();
    let few = || Predicate::lt(column_expr!("id"), Scalar::from(10i64));
    let all = rows(|_| true);
    let unknown: Vec<Predicate> = vec![
        Predicate::unknown("of an engine"),
        // Read as null, and yet not known.
        Predicate::eq(column_expr!("absent"), Scalar::from(1i64)),
        Predicate::is_not_null(column_expr!("absent")),
        Predicate::eq(column_expr!("nowhere"), Scalar::from(1i64)),
        Predicate::eq(column_expr!("row"), Scalar::from(1i64)),
        Predicate::eq(column_expr!("id"), Scalar::from("1")),
        Predicate::eq(column_expr!("id"), Scalar::from(1.0)),
        Predicate::eq(column_expr!("id"), column_expr!("number")),
        Predicate::eq(column_expr!("id") + Expression::literal(1i64), Scalar::from(1i64)),
        Predicate::is_null(column_expr!("s")),
        // Digits of it are dropped after it was read.
        Predicate::eq(column_expr!("nanos"), Scalar::Timestamp(5)),
        Predicate::eq(column_expr!("ts"), Scalar::TimestampNtz(5)),
    ];
    for predicate in unknown {
        let text = predicate.to_string();
        assert_eq!(ids(&path, predicate.clone()), all, "{text}");
        assert_eq!(ids(&path, Predicate::not(predicate.clone())), all, "not {text}");
        let either = Predicate::or(predicate.clone(), few());
        assert_eq!(ids(&path, either), all, "{text} or few");
        let both = Predicate::and(predicate.clone(), few());
        assert_eq!(ids(&path, both), rows(|row| row < 10), "{text} and few");
        // Not (p and not few) is (not p) or few.
        let neither = Predicate::not(Predicate::and(predicate, Predicate::not(few())));
        assert_eq!(ids(&path, neither), all, "not ({text} and not few)");
    }
}

/// The rows for which the kernel's evaluator finds predicates true.
struct KernelRows {
    _folder: tempfile::TempDir,
    path: std::path::PathBuf,
    engine: Arc<dyn delta_kernel::Engine>,
    all: RecordBatch,
}

impl KernelRows {
    fn new() -> Self {
        let (_folder, path) = file();
        let engine = default_engine();
        let all = read(engine.parquet_handler().as_ref(), &path, &wanted()).expect("read");
        Self { _folder, path, engine, all }
    }

    /// The number of rows that are returned. All are among them for which the predicate is true.
    fn rows(&self, predicate: &Predicate) -> usize {
        let evaluator = self
            .engine
            .evaluation_handler()
            .new_predicate_evaluator(wanted(), Arc::new(predicate.clone()))
            .expect("an evaluator");
        let data = delta_kernel::engine::arrow_data::ArrowEngineData::new(self.all.clone());
        let passes = batch_of(evaluator.evaluate(&data).expect("evaluated"));
        let passes = passes.column(0).as_boolean();
        let found = ids(&self.path, predicate.clone());
        let lost = rows(|row| {
            let at = usize::try_from(row).expect("small");
            passes.is_valid(at) && passes.value(at) && found.binary_search(&row).is_err()
        });
        assert!(lost.is_empty(), "{predicate} loses {lost:?}");
        found.len()
    }
}

/// The kernel has two zeros, and NaNs at both ends.
#[test]
fn comparisons_of_floats_lose_no_row() {
    use BinaryPredicateOp::{Distinct, Equal, GreaterThan, LessThan};
    let kernel = KernelRows::new();
    let values = [0.0, -0.0, 1.0, -1.0, 998.0, f64::INFINITY, f64::NEG_INFINITY];
    for value in values.into_iter().chain([f64::NAN, -f64::NAN]) {
        let columns: [(ColumnName, Scalar); 2] = [
            (column_name!("float"), value.into()),
            (column_name!("single"), (value as f32).into()),
        ];
        for (column, scalar) in columns {
            for op in [LessThan, GreaterThan, Equal, Distinct] {
                let test = Predicate::binary(op, Expression::from(column.clone()), scalar.clone());
                kernel.rows(&test);
                kernel.rows(&Predicate::not(test));
            }
        }
    }
    let below = Predicate::lt(column_expr!("float"), Scalar::from(1.0));
    assert!(kernel.rows(&below) < 50, "they still leave out rows");
}

/// The kernel's evaluator decides, over random predicates.
#[test]
fn random_predicates_lose_no_row() {
    let kernel = KernelRows::new();
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(20_261_126);
    println!("SEED={seed}");
    let mut random = fastrand::Rng::with_seed(seed);
    let mut pruned = 0;
    for _ in 0..400 {
        let predicate = random_predicate(&mut random, 3);
        pruned += usize::from(kernel.rows(&predicate) < kernel.all.num_rows());
    }
    assert!(pruned > 100, "only {pruned} predicates pruned anything");
}

fn random_predicate(random: &mut fastrand::Rng, depth: usize) -> Predicate {
    if depth > 0 && random.bool() {
        let parts: Vec<_> =
            (0..random.usize(2..4)).map(|_| random_predicate(random, depth - 1)).collect();
        let joined = match random.bool() {
            true => Predicate::and_from(parts),
            false => Predicate::or_from(parts),
        };
        return if random.bool() { Predicate::not(joined) } else { joined };
    }
    let value = random.i64(-5..1_005);
    let (name, scalar): (ColumnName, Scalar) = match random.u8(0..8) {
        0 => (column_name!("id"), value.into()),
        1 => (column_name!("number"), value.into()),
        2 => (column_name!("text"), format!("k{value:04}").into()),
        3 => (column_name!("day"), Scalar::Date(i32::try_from(value).expect("small"))),
        4 => (column_name!("ts"), Scalar::Timestamp(value)),
        5 => (column_name!("s.x"), value.into()),
        6 => (column_name!("float"), if value < 0 { -0.0 } else { value as f64 }.into()),
        _ => (column_name!("nanos"), Scalar::Timestamp(value)),
    };
    let column = Expression::from(name);
    let test = match random.u8(0..6) {
        0 => Predicate::is_null(column),
        1 => Predicate::eq(column, scalar),
        2 => Predicate::gt(scalar, column),
        3 => Predicate::binary(BinaryPredicateOp::Distinct, column, scalar),
        4 => Predicate::gt(column, scalar),
        _ => Predicate::lt(column, scalar),
    };
    if random.bool() { Predicate::not(test) } else { test }
}
