//! The data of all benches: Parquet files in memory, written by the `parquet` crate, one column or
//! one table each.

use std::sync::Arc;

use arrow_array_60 as arrow;
use arrow_array_60::{ArrayRef, RecordBatch};
use arrow_buffer_60::{NullBuffer, OffsetBuffer};
use arrow_schema_60::{DataType, Field, Fields, Schema};
use bytes::Bytes;
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::file::properties::{WriterProperties, WriterPropertiesBuilder};

/// A file to read.
pub struct Case {
    pub name: String,
    pub file: Bytes,
    pub rows: usize,
    /// Read strings as views.
    pub views: bool,
}

pub const ROWS: usize = 1 << 20;

/// Writes one batch with these properties.
pub fn write(batch: &RecordBatch, properties: WriterPropertiesBuilder) -> Bytes {
    let mut out = Vec::new();
    let mut writer =
        ArrowWriter::try_new(&mut out, batch.schema(), Some(properties.build())).expect("a writer");
    writer.write(batch).expect("a batch that can be written");
    writer.close().expect("a file");
    out.into()
}

fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).expect("columns of one length")
}

fn plain() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_dictionary_enabled(false).set_encoding(Encoding::PLAIN)
}

fn with(encoding: Encoding) -> WriterPropertiesBuilder {
    WriterProperties::builder().set_dictionary_enabled(false).set_encoding(encoding)
}

fn dictionary() -> WriterPropertiesBuilder {
    WriterProperties::builder().set_dictionary_page_size_limit(64 << 20)
}

/// One column of every type, encoding and null density that readers differ in.
pub fn columns() -> Vec<Case> {
    let mut rng = fastrand::Rng::with_seed(1);
    let mut cases = Vec::new();
    let mut add = |name: &str, array: ArrayRef, properties: WriterPropertiesBuilder| {
        let rows = array.len();
        let file = write(&table(vec![("v", array)]), properties);
        cases.push(Case { name: name.to_owned(), file, rows, views: false });
    };
    let mut ints = |max: i64| -> Vec<i64> { (0..ROWS).map(|_| rng.i64(0..max)).collect() };
    let wide = ints(i64::MAX);
    let few = ints(1000);
    let many = ints(100_000);
    let sorted: Vec<i64> = (0..ROWS as i64).map(|i| i * 3 + few[i as usize] % 3).collect();
    let mut rng = fastrand::Rng::with_seed(2);
    let mut valid =
        |percent: u32| -> Vec<bool> { (0..ROWS).map(|_| rng.u32(0..100) >= percent).collect() };
    let (v10, v50) = (valid(10), valid(50));
    fn opt<T: Copy>(values: &[T], valid: &[bool]) -> Vec<Option<T>> {
        values.iter().zip(valid).map(|(v, ok)| ok.then_some(*v)).collect()
    }
    let i32s = |v: &[i64]| v.iter().map(|v| *v as i32).collect::<Vec<_>>();

    add("i32 plain", Arc::new(arrow::Int32Array::from(i32s(&wide))), plain());
    add("i64 plain", Arc::new(arrow::Int64Array::from(wide.clone())), plain());
    add("i64 plain 10% null", Arc::new(arrow::Int64Array::from(opt(&wide, &v10))), plain());
    add("i64 plain 50% null", Arc::new(arrow::Int64Array::from(opt(&wide, &v50))), plain());
    add("i32 plain 10% null", Arc::new(arrow::Int32Array::from(opt(&i32s(&wide), &v10))), plain());
    add(
        "i8 plain",
        Arc::new(arrow::Int8Array::from(few.iter().map(|v| *v as i8).collect::<Vec<_>>())),
        plain(),
    );
    add("i32 dictionary", Arc::new(arrow::Int32Array::from(i32s(&few))), dictionary());
    add("i64 dictionary", Arc::new(arrow::Int64Array::from(few.clone())), dictionary());
    add("i64 dictionary, large", Arc::new(arrow::Int64Array::from(many.clone())), dictionary());
    add(
        "i64 dictionary 10% null",
        Arc::new(arrow::Int64Array::from(opt(&few, &v10))),
        dictionary(),
    );
    add(
        "i64 dictionary, runs",
        Arc::new(arrow::Int64Array::from((0..ROWS as i64).map(|i| i / 500).collect::<Vec<_>>())),
        dictionary(),
    );
    add(
        "i32 delta",
        Arc::new(arrow::Int32Array::from(i32s(&sorted))),
        with(Encoding::DELTA_BINARY_PACKED),
    );
    add(
        "i64 delta",
        Arc::new(arrow::Int64Array::from(sorted.clone())),
        with(Encoding::DELTA_BINARY_PACKED),
    );
    add(
        "i64 delta 10% null",
        Arc::new(arrow::Int64Array::from(opt(&sorted, &v10))),
        with(Encoding::DELTA_BINARY_PACKED),
    );
    add(
        "i64 delta, wide",
        Arc::new(arrow::Int64Array::from(wide.clone())),
        with(Encoding::DELTA_BINARY_PACKED),
    );
    let f64s: Vec<f64> = few.iter().map(|v| *v as f64 * 0.25).collect();
    let f32s: Vec<f32> = f64s.iter().map(|v| *v as f32).collect();
    add("f64 plain", Arc::new(arrow::Float64Array::from(f64s.clone())), plain());
    add("f32 split", Arc::new(arrow::Float32Array::from(f32s)), with(Encoding::BYTE_STREAM_SPLIT));
    add(
        "f64 split",
        Arc::new(arrow::Float64Array::from(f64s.clone())),
        with(Encoding::BYTE_STREAM_SPLIT),
    );
    add("f64 dictionary", Arc::new(arrow::Float64Array::from(f64s)), dictionary());
    let bools: Vec<bool> = few.iter().map(|v| v % 3 == 0).collect();
    add("bool plain", Arc::new(arrow::BooleanArray::from(bools.clone())), plain());
    add("bool plain 10% null", Arc::new(arrow::BooleanArray::from(opt(&bools, &v10))), plain());
    add("bool rle", Arc::new(arrow::BooleanArray::from(bools)), with(Encoding::RLE));
    let timestamps = arrow::TimestampMicrosecondArray::from(wide.clone());
    add("timestamp plain", Arc::new(timestamps), plain());
    let decimal = |v: &[i64], p: u8| -> ArrayRef {
        let array =
            arrow::Decimal128Array::from(v.iter().map(|v| i128::from(*v)).collect::<Vec<_>>());
        Arc::new(array.with_precision_and_scale(p, 2).expect("digits that fit"))
    };
    add("decimal(9,2) plain", decimal(&few, 9), plain());
    add("decimal(15,2) plain", decimal(&many, 15), plain());
    add("decimal(38,2) plain", decimal(&many, 38), plain());
    add("decimal(38,2) dictionary", decimal(&few, 38), dictionary());
    let some = opt(&many, &v10).into_iter().map(|v| v.map(i128::from));
    let some = arrow::Decimal128Array::from_iter(some).with_precision_and_scale(38, 2);
    add("decimal(38,2) plain 10% null", Arc::new(some.expect("digits that fit")), plain());
    let fixed = arrow::FixedSizeBinaryArray::try_from_iter(
        many.iter().map(|v| i128::from(*v).to_be_bytes()),
    )
    .expect("one width");
    add("fixed(16) plain", Arc::new(fixed), plain());

    let texts = |v: &[i64], long: bool| -> Vec<String> {
        v.iter()
            .map(|v| {
                if long {
                    format!("https://example.org/some/path/{v}/and/more/of/it")
                } else {
                    format!("key{v}")
                }
            })
            .collect()
    };
    for (kind, long) in [("short", false), ("long", true)] {
        let (few, many) = (texts(&few, long), texts(&many, long));
        let utf8 = |v: &[String]| -> ArrayRef { Arc::new(arrow::StringArray::from_iter_values(v)) };
        add(&format!("string {kind} plain"), utf8(&many), plain());
        add(&format!("string {kind} dictionary"), utf8(&few), dictionary());
        add(&format!("string {kind} dictionary, large"), utf8(&many), dictionary());
        let nulls: Vec<Option<&str>> =
            few.iter().zip(&v10).map(|(v, ok)| ok.then_some(v.as_str())).collect();
        add(
            &format!("string {kind} dictionary 10% null"),
            Arc::new(arrow::StringArray::from(nulls)),
            dictionary(),
        );
        let nulls: Vec<Option<&str>> =
            many.iter().zip(&v10).map(|(v, ok)| ok.then_some(v.as_str())).collect();
        add(
            &format!("string {kind} plain 10% null"),
            Arc::new(arrow::StringArray::from(nulls)),
            plain(),
        );
        add(
            &format!("string {kind} delta length"),
            utf8(&many),
            with(Encoding::DELTA_LENGTH_BYTE_ARRAY),
        );
        let mut ordered = many.clone();
        ordered.sort_unstable();
        add(
            &format!("string {kind} delta bytes"),
            utf8(&ordered),
            with(Encoding::DELTA_BYTE_ARRAY),
        );
    }
    let views: Vec<Case> = cases
        .iter()
        .filter(|case| case.name.starts_with("string"))
        .map(|case| Case {
            name: case.name.replace("string", "view"),
            file: case.file.clone(),
            rows: case.rows,
            views: true,
        })
        .collect();
    cases.extend(views);
    cases
}

/// Lists and structs.
pub fn nested() -> Vec<Case> {
    let mut rng = fastrand::Rng::with_seed(3);
    let rows = ROWS / 4;
    let mut cases = Vec::new();
    let mut add = |name: &str, array: ArrayRef| {
        let rows = array.len();
        let file = write(&table(vec![("v", array)]), plain());
        cases.push(Case { name: name.to_owned(), file, rows, views: false });
    };
    let item = |nullable| Arc::new(Field::new("element", DataType::Int64, nullable));
    let mut lengths = |max: usize| -> Vec<usize> { (0..rows).map(|_| rng.usize(0..max)).collect() };
    let short = lengths(8);
    let offsets = OffsetBuffer::<i32>::from_lengths(short.iter().copied());
    let elements = offsets[offsets.len() - 1] as usize;
    let values: ArrayRef =
        Arc::new(arrow::Int64Array::from_iter_values((0..elements as i64).map(|i| i * 7 % 1000)));
    add(
        "list of i64",
        Arc::new(arrow::ListArray::new(item(false), offsets.clone(), values.clone(), None)),
    );
    let mut rng = fastrand::Rng::with_seed(4);
    let nulls: NullBuffer = (0..rows).map(|_| rng.u32(0..100) >= 10).collect::<Vec<_>>().into();
    let some: ArrayRef = Arc::new(arrow::Int64Array::from_iter(
        (0..elements as i64).map(|i| (i % 10 != 0).then_some(i % 1000)),
    ));
    add(
        "list of i64, nulls at each level",
        Arc::new(arrow::ListArray::new(item(true), offsets.clone(), some, Some(nulls.clone()))),
    );
    let fixed = OffsetBuffer::<i32>::from_lengths(std::iter::repeat_n(4, rows));
    let values4: ArrayRef = Arc::new(arrow::Int64Array::from_iter_values(0..4 * rows as i64));
    add("list of 4 i64", Arc::new(arrow::ListArray::new(item(false), fixed, values4, None)));
    let fields = Fields::from(vec![
        Field::new("a", DataType::Int64, false),
        Field::new("b", DataType::Int64, false),
        Field::new("c", DataType::Int64, false),
    ]);
    let parts = arrow::StructArray::new(
        fields.clone(),
        vec![values.clone(), values.clone(), values.clone()],
        None,
    );
    let item3 = Arc::new(Field::new("element", DataType::Struct(fields), false));
    add(
        "list of struct of 3 i64",
        Arc::new(arrow::ListArray::new(item3, offsets, Arc::new(parts), None)),
    );
    let leaf: ArrayRef =
        Arc::new(arrow::Int64Array::from_iter((0..rows as i64).map(|i| (i % 7 != 0).then_some(i))));
    let fields = Fields::from(vec![Field::new("a", DataType::Int64, true)]);
    add(
        "struct of nullable i64, nulls",
        Arc::new(arrow::StructArray::new(fields, vec![leaf], Some(nulls))),
    );
    cases
}

/// Shapes at the edges: embeddings, deep lists, long strings, sparse columns, tiny and huge pages.
pub fn shapes() -> Vec<Case> {
    let mut rng = fastrand::Rng::with_seed(6);
    let mut cases = Vec::new();
    let mut add = |name: &str, array: ArrayRef, properties: WriterPropertiesBuilder| {
        let rows = array.len();
        let file = write(&table(vec![("v", array)]), properties);
        cases.push(Case { name: name.to_owned(), file, rows, views: false });
    };

    // The same numbers as rows of 768, and one after the other.
    let (rows, n) = (ROWS / 128, 768);
    let floats: ArrayRef =
        Arc::new(arrow::Float32Array::from_iter_values((0..rows * n).map(|_| rng.f32() - 0.5)));
    let item = Arc::new(Field::new("element", DataType::Float32, false));
    let fixed =
        arrow::FixedSizeListArray::new(item.clone(), n as i32, floats.clone(), None::<NullBuffer>);
    let lengths = OffsetBuffer::<i32>::from_lengths(std::iter::repeat_n(n, rows));
    let list = arrow::ListArray::new(item, lengths, floats.clone(), None);
    add("embedding: flat f32", floats, plain());
    add("embedding: fixed list of 768 f32", Arc::new(fixed.clone()), plain());
    add(
        "embedding: fixed list of 768 f32, split",
        Arc::new(fixed),
        with(Encoding::BYTE_STREAM_SPLIT),
    );
    add("embedding: list of 768 f32", Arc::new(list), plain());

    // Three levels, with and without nulls at each of them.
    for (name, percent) in
        [("list of list of list of i64", 0), ("list of list of list of i64, 5% null", 5)]
    {
        let mut null = |rows: usize| -> Option<NullBuffer> {
            (percent > 0)
                .then(|| (0..rows).map(|_| rng.u32(0..100) >= percent).collect::<Vec<_>>().into())
        };
        let mut lengths = fastrand::Rng::with_seed(7);
        let mut level =
            |rows: usize| OffsetBuffer::<i32>::from_lengths((0..rows).map(|_| lengths.usize(0..4)));
        let outer = level(ROWS / 8);
        let middle = level(outer[ROWS / 8] as usize);
        let inner = level(middle[middle.len() - 1] as usize);
        let elements = inner[inner.len() - 1] as usize;
        let ints = (0..elements as i64).collect::<Vec<_>>();
        let mut array: ArrayRef = Arc::new(arrow::Int64Array::new(ints.into(), null(elements)));
        for offsets in [inner, middle, outer] {
            let item = Arc::new(Field::new("element", array.data_type().clone(), percent > 0));
            let nulls = null(offsets.len() - 1);
            array = Arc::new(arrow::ListArray::new(item, offsets, array, nulls));
        }
        add(name, array, plain());
    }

    for (name, len, rows) in
        [("strings of 1 KiB", 1 << 10, ROWS / 32), ("strings of 64 KiB", 64 << 10, ROWS / 2048)]
    {
        let texts = (0..rows).map(|_| (0..len).map(|_| rng.alphanumeric()).collect::<String>());
        add(name, Arc::new(arrow::StringArray::from_iter_values(texts)), plain());
    }

    let mut sparse = || -> Vec<Option<i64>> {
        (0..ROWS).map(|_| (rng.u32(0..100) == 0).then(|| rng.i64(0..1000))).collect()
    };
    let text = |v: &Option<i64>| v.map(|v| format!("key{v}"));
    let (ints, texts) = (sparse(), sparse());
    add("i64 plain 99% null", Arc::new(arrow::Int64Array::from(ints.clone())), plain());
    add("i64 dictionary 99% null", Arc::new(arrow::Int64Array::from(ints)), dictionary());
    let texts: ArrayRef = Arc::new(texts.iter().map(text).collect::<arrow::StringArray>());
    add("string plain 99% null", texts.clone(), plain());
    add("string dictionary 99% null", texts, dictionary());

    let ints: Vec<i64> = (0..ROWS).map(|_| rng.i64(0..1000)).collect();
    let texts: ArrayRef =
        Arc::new(arrow::StringArray::from_iter_values(ints.iter().map(|v| format!("key{v}"))));
    let nulls: ArrayRef =
        Arc::new(ints.iter().map(|v| (v % 10 != 0).then_some(*v)).collect::<arrow::Int64Array>());
    let ints: ArrayRef = Arc::new(arrow::Int64Array::from(ints));
    for (name, bytes, batch) in [("pages of 1 KiB", 1 << 10, 64), ("pages of 8 MiB", 8 << 20, 8192)]
    {
        let sized = |properties: WriterPropertiesBuilder| {
            properties
                .set_data_page_size_limit(bytes)
                .set_data_page_row_count_limit(usize::MAX)
                .set_write_batch_size(batch)
        };
        add(&format!("i64 plain, {name}"), ints.clone(), sized(plain()));
        add(&format!("i64 plain 10% null, {name}"), nulls.clone(), sized(plain()));
        add(&format!("i64 dictionary, {name}"), ints.clone(), sized(dictionary()));
        add(&format!("string plain, {name}"), texts.clone(), sized(plain()));
        add(&format!("string dictionary, {name}"), texts.clone(), sized(dictionary()));
    }
    cases
}

/// A table like TPC-H's lineitem, in 4 row groups.
pub fn lineitem() -> Vec<Case> {
    let mut rng = fastrand::Rng::with_seed(5);
    let n = ROWS;
    let decimal = |max: i64, rng: &mut fastrand::Rng| -> ArrayRef {
        let values: Vec<i128> = (0..n).map(|_| i128::from(rng.i64(0..max))).collect();
        Arc::new(
            arrow::Decimal128Array::from(values)
                .with_precision_and_scale(15, 2)
                .expect("digits that fit"),
        )
    };
    let text = |of: &[&str], rng: &mut fastrand::Rng| -> ArrayRef {
        Arc::new(arrow::StringArray::from_iter_values((0..n).map(|_| of[rng.usize(0..of.len())])))
    };
    let date = |rng: &mut fastrand::Rng| -> ArrayRef {
        Arc::new(arrow::Date32Array::from_iter_values((0..n).map(|_| rng.i32(8_000..10_500))))
    };
    let int = |max: i64, rng: &mut fastrand::Rng| -> ArrayRef {
        Arc::new(arrow::Int64Array::from_iter_values((0..n).map(|_| rng.i64(0..max))))
    };
    let words = [
        "carefully",
        "final",
        "deposits",
        "sleep",
        "quickly",
        "among",
        "the",
        "ironic",
        "pinto",
        "beans",
    ];
    let comments = (0..n)
        .map(|_| {
            (0..rng.usize(2..6)).map(|_| words[rng.usize(0..10)]).collect::<Vec<_>>().join(" ")
        })
        .collect::<Vec<_>>();
    let batch = table(vec![
        ("l_orderkey", Arc::new(arrow::Int64Array::from_iter_values((0..n as i64).map(|i| i / 4)))),
        ("l_partkey", int(200_000, &mut rng)),
        ("l_suppkey", int(10_000, &mut rng)),
        (
            "l_linenumber",
            Arc::new(arrow::Int32Array::from_iter_values((0..n as i32).map(|i| i % 7))),
        ),
        ("l_quantity", decimal(5_000, &mut rng)),
        ("l_extendedprice", decimal(10_000_000, &mut rng)),
        ("l_discount", decimal(11, &mut rng)),
        ("l_tax", decimal(9, &mut rng)),
        ("l_returnflag", text(&["A", "N", "R"], &mut rng)),
        ("l_linestatus", text(&["O", "F"], &mut rng)),
        ("l_shipdate", date(&mut rng)),
        ("l_commitdate", date(&mut rng)),
        ("l_receiptdate", date(&mut rng)),
        (
            "l_shipinstruct",
            text(&["DELIVER IN PERSON", "COLLECT COD", "NONE", "TAKE BACK RETURN"], &mut rng),
        ),
        ("l_shipmode", text(&["AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"], &mut rng)),
        ("l_comment", Arc::new(arrow::StringArray::from_iter_values(comments))),
    ]);
    let zstd = Compression::ZSTD(ZstdLevel::try_new(1).expect("a level"));
    [("uncompressed", Compression::UNCOMPRESSED), ("snappy", Compression::SNAPPY), ("zstd", zstd)]
        .into_iter()
        .map(|(name, codec)| {
            let properties = WriterProperties::builder()
                .set_compression(codec)
                .set_max_row_group_row_count(Some(n / 4));
            Case {
                name: format!("lineitem {name}"),
                file: write(&batch, properties),
                rows: n,
                views: false,
            }
        })
        .collect()
}

/// 10,000 columns, 4 row groups of few rows.
pub fn wide() -> Case {
    let columns = 10_000;
    let fields: Vec<Field> =
        (0..columns).map(|i| Field::new(format!("column_{i}"), DataType::Int64, true)).collect();
    let array: ArrayRef = Arc::new(arrow::Int64Array::from_iter_values(0..40));
    let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), vec![array; columns])
        .expect("one length");
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(10));
    Case { name: "wide".into(), file: write(&batch, properties), rows: 40, views: false }
}
