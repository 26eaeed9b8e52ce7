//! Tests that filters of every type return the rows that DataFusion returns for the same rows in
//! memory.

use std::path::Path;
use std::sync::Arc;

use datafusion::arrow::array::*;
use datafusion::parquet::file::properties::WriterProperties;
use fastrand::Rng;

use crate::Pair;

const ROWS: usize = 4000;

/// A column of every type that filters can test, an eighth of it null.
fn batch(rng: &mut Rng) -> RecordBatch {
    fn some<T>(rng: &mut Rng, mut make: impl FnMut(&mut Rng, usize) -> T) -> Vec<Option<T>> {
        let value = |i| if rng.u8(0..8) == 0 { None } else { Some(make(rng, i)) };
        (0..ROWS).map(value).collect()
    }
    let text = |rng: &mut Rng| format!("{}%{}", rng.u32(0..40), rng.alphabetic());
    let floats: [f64; 9] =
        [0.0, -0.0, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1.5, -1.5, 100.25];
    let decimal = |scale: i8, values: Vec<Option<i128>>| {
        Decimal128Array::from(values).with_precision_and_scale(20, scale).expect("a decimal type")
    };
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("sorted", Arc::new(Int64Array::from_iter(some(rng, |_, i| i as i64)))),
        ("i8", Arc::new(Int8Array::from_iter(some(rng, |r, _| r.i8(..))))),
        ("i32", Arc::new(Int32Array::from_iter(some(rng, |r, _| r.i32(-50..50))))),
        ("u64", Arc::new(UInt64Array::from_iter(some(rng, |r, _| r.u64(..) >> r.u8(0..60))))),
        ("f64", Arc::new(Float64Array::from_iter(some(rng, |r, _| floats[r.usize(0..9)])))),
        ("f32", Arc::new(Float32Array::from_iter(some(rng, |r, _| floats[r.usize(0..9)] as f32)))),
        ("flag", Arc::new(BooleanArray::from_iter(some(rng, |r, _| r.bool())))),
        ("text", Arc::new(StringArray::from_iter(some(rng, |r, _| text(r))))),
        ("large", Arc::new(LargeStringArray::from_iter(some(rng, |r, _| text(r))))),
        ("bytes", Arc::new(BinaryArray::from_iter(some(rng, |r, _| vec![r.u8(0..9); 2])))),
        ("day", Arc::new(Date32Array::from_iter(some(rng, |r, _| r.i32(10_000..10_100))))),
        (
            "at",
            Arc::new(TimestampMicrosecondArray::from_iter(some(rng, |r, _| {
                r.i64(0..1000) * 3_600_000_000
            }))),
        ),
        (
            "utc",
            Arc::new(
                TimestampNanosecondArray::from_iter(some(rng, |r, _| {
                    r.i64(0..1000) * 3_600_000_000_000
                }))
                .with_timezone("+00:00"),
            ),
        ),
        (
            "clock",
            Arc::new(Time64MicrosecondArray::from_iter(some(rng, |r, _| {
                r.i64(0..86_400) * 1_000_000
            }))),
        ),
        ("price", Arc::new(decimal(2, some(rng, |r, _| i128::from(r.i32(-9999..9999)))))),
    ];
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true)))
        .expect("columns of one length")
}

fn literal(rng: &mut Rng, column: &str) -> String {
    match column {
        "sorted" => rng.i32(-10..4100).to_string(),
        "i8" | "i32" => rng.i32(-60..60).to_string(),
        "u64" => rng.u32(..).to_string(),
        "f64" | "f32" => {
            let values = ["0.0", "-0.0", "1.5", "-1.5", "100.25", "'NaN'", "'inf'", "'-inf'", "7"];
            let value = values[rng.usize(0..values.len())];
            if value.starts_with('\'') { format!("cast({value} as double)") } else { value.into() }
        }
        "text" | "large" => format!("'{}%{}'", rng.u32(0..40), rng.alphabetic()),
        "bytes" => format!("X'{0:02x}{0:02x}'", rng.u8(0..9)),
        "day" => format!("date '1997-0{}-1{}'", rng.u8(5..9), rng.u8(0..9)),
        "at" => format!("timestamp '1970-01-{:02} 0{}:00:00'", rng.u8(1..28), rng.u8(0..9)),
        "utc" => format!("timestamp '1970-01-{:02}T0{}:00:00Z'", rng.u8(1..28), rng.u8(0..9)),
        "clock" => {
            format!("arrow_cast('1{}:0{}:00', 'Time64(Microsecond)')", rng.u8(0..9), rng.u8(0..9))
        }
        "price" => format!("{}.{:02}", rng.i32(-99..99), rng.u8(0..99)),
        _ => "true".into(),
    }
}

fn condition(rng: &mut Rng, depth: usize) -> String {
    if depth > 0 && rng.u8(0..3) > 0 {
        let (a, b) = (condition(rng, depth - 1), condition(rng, depth - 1));
        return match rng.u8(0..5) {
            0 | 1 => format!("({a} and {b})"),
            2 | 3 => format!("({a} or {b})"),
            _ => format!("not ({a})"),
        };
    }
    const COLUMNS: [&str; 15] = [
        "sorted", "i8", "i32", "u64", "f64", "f32", "flag", "text", "large", "bytes", "day", "at",
        "utc", "clock", "price",
    ];
    let column = COLUMNS[rng.usize(0..COLUMNS.len())];
    let (a, b) = (literal(rng, column), literal(rng, column));
    let op = ["=", "<>", "<", "<=", ">", ">="][rng.usize(0..6)];
    match rng.u8(0..12) {
        0 => format!("{column} is null"),
        1 => format!("{column} is not null"),
        2 => format!("{column} in ({a}, {b}, {})", literal(rng, column)),
        3 => format!("{column} not in ({a}, {b})"),
        4 => format!("{column} in ({a}, null)"),
        5 => format!("{column} between {a} and {b}"),
        6 if column == "text" || column == "large" => {
            format!("{column} like '{}\\%%'", rng.u8(0..40))
        }
        7 if column == "text" || column == "large" => {
            format!("{column} not like '1_%{}'", rng.alphabetic())
        }
        8 if column == "text" || column == "large" => format!("upper({column}) {op} upper({a})"),
        9 if column == "i32" => format!("i32 + i8 {op} {a}"),
        10 if column == "i32" => format!("cast(i32 as bigint) {op} {a}"),
        11 => format!("{a} {op} {column}"),
        _ => format!("{column} {op} {a}"),
    }
}

fn write(path: &Path, batch: &RecordBatch, properties: WriterProperties) {
    engines::write_with(
        path,
        [Ok::<_, std::convert::Infallible>(batch.clone())].into_iter(),
        properties,
    );
}

#[tokio::test]
async fn random_filters_of_every_type_give_the_same_rows() {
    let seed = 17;
    let mut rng = Rng::with_seed(seed);
    let folder = tempfile::tempdir().unwrap();
    let data = batch(&mut rng);
    let small_pages = WriterProperties::builder()
        .set_max_row_group_row_count(Some(900))
        .set_data_page_row_count_limit(100)
        .set_write_batch_size(50);
    let plain = small_pages.clone().set_dictionary_enabled(false).build();
    let blooms = small_pages.set_bloom_filter_enabled(true).build();
    write(&folder.path().join("plain.parquet"), &data, plain);
    write(&folder.path().join("blooms.parquet"), &data, blooms);
    let pair = Pair::new(2);
    pair.table("plain", &folder.path().join("plain.parquet")).await;
    pair.table("blooms", &folder.path().join("blooms.parquet")).await;
    // The rows in memory: by bounds that leave NaN out, DataFusion's own source, and its statistics
    // of files, lose rows that pass.
    for table in ["plain", "blooms"] {
        pair.stock.deregister_table(table).unwrap();
        pair.stock.register_batch(table, data.clone()).unwrap();
    }
    let mut some = 0;
    for i in 0..400 {
        let table = ["plain", "blooms"][i % 2];
        let condition = condition(&mut rng, 2);
        let sql =
            format!("select sorted, i32, f64, text, price, flag from {table} where {condition}");
        println!("seed {seed}, {i}: {sql}");
        let n = pair.same(&sql).await;
        some += usize::from(n > 0 && n < ROWS);
    }
    assert!(some > 200, "only {some} filters chose some of the rows");
}

#[tokio::test]
async fn filters_leave_no_filter_node_above_the_scan() {
    let mut rng = Rng::with_seed(3);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    write(&path, &batch(&mut rng), WriterProperties::new());
    let pair = Pair::new(1);
    pair.table("t", &path).await;
    let plan =
        crate::plan(&pair.ours, "select i8 from t where i32 = 7 and upper(text) > 'A'").await;
    let text = crate::text(&plan);
    assert!(!text.contains("FilterExec"), "{text}");
    assert!(text.contains("file_type=marquetry"), "{text}");
    assert!(text.contains("filters=rows"), "{text}");
}
