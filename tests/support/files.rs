//! Builds files byte by byte, and prints batches.

use bytes::Bytes;
use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::types::*;
use marquetry::arrow_array::{Array, ArrayRef, RecordBatch};
use marquetry::arrow_schema::{DataType, TimeUnit};
use marquetry::format::*;
use marquetry::{ErrorKind, Reader, Result};
use serde_json::{Value, json};

use super::encode::{bit_width, rle};

/// A struct of the format with these fields; the others are those of a base, or their defaults.
/// Outside the library there are no literals of such structs, because they may get more fields.
macro_rules! filled {
    (@field $name:ident) => { $name };
    (@field $name:ident $value:expr) => { $value };
    ($($Name:ident)::+ { $($field:ident $(: $value:expr)?),* $(, ..$base:expr)? $(,)? }) => {
        filled!(@base ($($Name)::+) ($($base)?) $($field $(: $value)?),*)
    };
    (@base ($Name:path) () $($field:ident $(: $value:expr)?),*) => {
        filled!(@base ($Name) (Default::default()) $($field $(: $value)?),*)
    };
    (@base ($Name:path) ($base:expr) $($field:ident $(: $value:expr)?),*) => {{
        let mut filled: $Name = $base;
        $(filled.$field = filled!(@field $field $($value)?);)*
        filled
    }};
}
#[allow(unused_imports, reason = "not every binary makes such structs")]
pub(crate) use filled;

/// A column chunk to be laid out: its pages, and what its metadata say.
#[derive(Clone)]
pub struct Chunk {
    /// Pages, headers and bodies.
    pub bytes: Vec<u8>,
    pub meta: ColumnMetaData,
    /// Bytes of the dictionary page in front, 0 if there is none.
    pub dictionary_len: usize,
    /// Whether `dictionary_page_offset` is written.
    pub says_dictionary: bool,
}

/// A leaf of the schema.
pub fn leaf(name: &str, r#type: Type, repetition: FieldRepetitionType) -> SchemaElement {
    filled!(SchemaElement {
        r#type: Some(r#type),
        repetition_type: Some(repetition),
        name: name.into()
    })
}

/// A group of the schema.
pub fn group(name: &str, repetition: FieldRepetitionType, children: i32) -> SchemaElement {
    filled!(SchemaElement {
        repetition_type: Some(repetition),
        name: name.into(),
        num_children: Some(children)
    })
}

pub fn required(name: &str, r#type: Type) -> SchemaElement {
    leaf(name, r#type, FieldRepetitionType::Required)
}

pub fn optional(name: &str, r#type: Type) -> SchemaElement {
    leaf(name, r#type, FieldRepetitionType::Optional)
}

/// A page: header and body.
pub fn page(header: PageHeader, body: &[u8]) -> Vec<u8> {
    [&header.to_thrift()[..], body].concat()
}

fn size(n: usize) -> i32 {
    i32::try_from(n).expect("a small page")
}

/// A V1 data page of `body` (levels and values), stored as it is.
pub fn v1(num_values: usize, encoding: Encoding, body: &[u8]) -> Vec<u8> {
    page(v1_header(num_values, encoding, body.len(), body.len()), body)
}

pub fn v1_header(num_values: usize, encoding: Encoding, raw: usize, stored: usize) -> PageHeader {
    filled!(PageHeader {
        r#type: PageType::DataPage,
        uncompressed_page_size: size(raw),
        compressed_page_size: size(stored),
        data_page_header: Some(filled!(DataPageHeader {
            num_values: size(num_values),
            encoding,
            definition_level_encoding: Encoding::Rle,
            repetition_level_encoding: Encoding::Rle
        }))
    })
}

/// A V2 data page of levels and values, stored as they are.
pub fn v2(
    slots: usize,
    nulls: usize,
    rows: usize,
    encoding: Encoding,
    rep: &[u8],
    def: &[u8],
    values: &[u8],
) -> Vec<u8> {
    let body = [rep, def, values].concat();
    let header = filled!(PageHeader {
        r#type: PageType::DataPageV2,
        uncompressed_page_size: size(body.len()),
        compressed_page_size: size(body.len()),
        data_page_header_v2: Some(filled!(DataPageHeaderV2 {
            num_values: size(slots),
            num_nulls: size(nulls),
            num_rows: size(rows),
            encoding,
            definition_levels_byte_length: size(def.len()),
            repetition_levels_byte_length: size(rep.len()),
            is_compressed: Some(false)
        }))
    });
    page(header, &body)
}

/// A dictionary page of PLAIN values.
pub fn dictionary(num_values: i32, values: &[u8]) -> Vec<u8> {
    let header = filled!(PageHeader {
        r#type: PageType::DictionaryPage,
        uncompressed_page_size: size(values.len()),
        compressed_page_size: size(values.len()),
        dictionary_page_header: Some(filled!(DictionaryPageHeader {
            num_values,
            encoding: Encoding::Plain
        }))
    });
    page(header, values)
}

/// Levels of a V1 page: the hybrid after its length.
pub fn levels_v1(levels: &[u32], max: u32) -> Vec<u8> {
    let stream = levels_v2(levels, max);
    [&u32::try_from(stream.len()).expect("short").to_le_bytes()[..], &stream].concat()
}

/// Levels of a V2 page.
pub fn levels_v2(levels: &[u32], max: u32) -> Vec<u8> {
    rle(levels, bit_width(max))
}

pub fn ints(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

pub fn texts(values: &[&str]) -> Vec<u8> {
    let prefixed = |v: &&str| {
        [&u32::try_from(v.len()).expect("short").to_le_bytes()[..], v.as_bytes()].concat()
    };
    values.iter().flat_map(prefixed).collect()
}

impl Chunk {
    /// A chunk of these pages, with `slots` level entries.
    pub fn new(r#type: Type, slots: usize, pages: &[Vec<u8>]) -> Self {
        let bytes = pages.concat();
        let meta = filled!(ColumnMetaData {
            r#type,
            encodings: vec![Encoding::Plain, Encoding::Rle],
            path_in_schema: vec!["v".into()],
            num_values: i64::try_from(slots).expect("few"),
            total_uncompressed_size: i64::try_from(bytes.len()).expect("few"),
            total_compressed_size: i64::try_from(bytes.len()).expect("few")
        });
        Self { bytes, meta, dictionary_len: 0, says_dictionary: true }
    }

    /// The same with a dictionary page in front.
    pub fn with_dictionary(mut self, page: Vec<u8>) -> Self {
        self.dictionary_len = page.len();
        self.bytes = [page, self.bytes].concat();
        let len = i64::try_from(self.bytes.len()).expect("few");
        (self.meta.total_compressed_size, self.meta.total_uncompressed_size) = (len, len);
        self
    }

    pub fn codec(mut self, codec: CompressionCodec) -> Self {
        self.meta.codec = codec;
        self
    }
}

/// A file of one row group.
pub fn file(schema: Vec<SchemaElement>, rows: i64, chunks: Vec<Chunk>) -> Vec<u8> {
    file_with(schema, vec![(rows, chunks)], |_| {})
}

/// A file whose metadata are changed before they are written. The root is added.
pub fn file_with(
    schema: Vec<SchemaElement>,
    groups: Vec<(i64, Vec<Chunk>)>,
    change: impl FnOnce(&mut FileMetaData),
) -> Vec<u8> {
    let mut out = b"PAR1".to_vec();
    let mut row_groups = Vec::new();
    for (rows, chunks) in groups {
        let mut columns = Vec::new();
        for mut chunk in chunks {
            let start = i64::try_from(out.len()).expect("few");
            let dictionary_len = i64::try_from(chunk.dictionary_len).expect("few");
            chunk.meta.data_page_offset =
                start + if chunk.says_dictionary { dictionary_len } else { 0 };
            if chunk.dictionary_len > 0 && chunk.says_dictionary {
                chunk.meta.dictionary_page_offset = Some(start);
            }
            out.extend_from_slice(&chunk.bytes);
            columns.push(filled!(ColumnChunk { meta_data: Some(chunk.meta) }));
        }
        row_groups.push(filled!(RowGroup { columns, num_rows: rows }));
    }
    let top = top_level(&schema);
    let mut elements =
        vec![filled!(SchemaElement { name: "schema".into(), num_children: Some(top) })];
    elements.extend(schema);
    let num_rows = row_groups.iter().map(|group| group.num_rows).sum();
    let mut meta = filled!(FileMetaData { version: 1, schema: elements, num_rows, row_groups });
    change(&mut meta);
    close(out, &meta.to_thrift())
}

/// Adds footer, length and magic number.
pub fn close(mut out: Vec<u8>, footer: &[u8]) -> Vec<u8> {
    out.extend_from_slice(footer);
    out.extend(u32::try_from(footer.len()).expect("short").to_le_bytes());
    out.extend(b"PAR1");
    out
}

/// How many of the elements, depth-first, are children of the root.
fn top_level(schema: &[SchemaElement]) -> i32 {
    fn end(schema: &[SchemaElement], at: usize) -> usize {
        let children = schema.get(at).and_then(|element| element.num_children).unwrap_or(0);
        (0..children).fold(at + 1, |at, _| end(schema, at))
    }
    let (mut at, mut top) = (0, 0);
    while at < schema.len() {
        at = end(schema, at);
        top += 1;
    }
    top
}

/// Reads all rows on one thread.
pub fn read(file: impl Into<Bytes>) -> Result<Vec<RecordBatch>> {
    read_with(Reader::new(file.into())?.threads(1))
}

pub fn read_with(reader: Reader) -> Result<Vec<RecordBatch>> {
    let mut batches = reader.batches()?;
    let mut out = Vec::new();
    while let Some(batch) = batches.next_batch()? {
        for column in batch.columns() {
            column.to_data().validate_full()?;
        }
        out.push(batch);
    }
    Ok(out)
}

/// The kind of the error that reading ends with.
pub fn kind(file: impl Into<Bytes>) -> ErrorKind {
    read(file).expect_err("a file that must be refused").kind()
}

pub fn is_malformed(file: impl Into<Bytes>) -> bool {
    matches!(kind(file), ErrorKind::Malformed(_))
}

/// The rows of all batches, printed.
pub fn rows(batches: &[RecordBatch]) -> Vec<Value> {
    let mut out = Vec::new();
    for batch in batches {
        for i in 0..batch.num_rows() {
            out.push(Value::Array(batch.columns().iter().map(|column| value(column, i)).collect()));
        }
    }
    out
}

/// The values of the first column.
pub fn column(batches: &[RecordBatch]) -> Vec<Value> {
    rows(batches).into_iter().map(|row| row[0].clone()).collect()
}

/// A value: dictionaries and runs decoded, times as nanoseconds, dates as days, bytes as hex.
pub fn value(array: &dyn Array, i: usize) -> Value {
    if array.is_null(i) {
        return Value::Null;
    }
    macro_rules! int {
        ($type:ty, $factor:expr) => {{
            let value = i128::from(array.as_primitive::<$type>().value(i)) * i128::from($factor);
            i64::try_from(value).map(Value::from).unwrap_or_else(|_| json!(value.to_string()))
        }};
    }
    let nanos = |unit: &TimeUnit| match unit {
        TimeUnit::Second => 1_000_000_000i64,
        TimeUnit::Millisecond => 1_000_000,
        TimeUnit::Microsecond => 1_000,
        TimeUnit::Nanosecond => 1,
    };
    let list = |items: ArrayRef| Value::Array((0..items.len()).map(|i| value(&items, i)).collect());
    match array.data_type() {
        DataType::Null => Value::Null,
        DataType::Boolean => json!(array.as_boolean().value(i)),
        DataType::Int8 => int!(Int8Type, 1),
        DataType::Int16 => int!(Int16Type, 1),
        DataType::Int32 => int!(Int32Type, 1),
        DataType::Int64 => int!(Int64Type, 1),
        DataType::UInt8 => int!(UInt8Type, 1),
        DataType::UInt16 => int!(UInt16Type, 1),
        DataType::UInt32 => int!(UInt32Type, 1),
        DataType::UInt64 => json!(array.as_primitive::<UInt64Type>().value(i)),
        DataType::Float16 => float(array.as_primitive::<Float16Type>().value(i).to_f64()),
        DataType::Float32 => float(f64::from(array.as_primitive::<Float32Type>().value(i))),
        DataType::Float64 => float(array.as_primitive::<Float64Type>().value(i)),
        DataType::Decimal32(..) => json!(array.as_primitive::<Decimal32Type>().value_as_string(i)),
        DataType::Decimal64(..) => json!(array.as_primitive::<Decimal64Type>().value_as_string(i)),
        DataType::Decimal128(..) => {
            json!(array.as_primitive::<Decimal128Type>().value_as_string(i))
        }
        DataType::Decimal256(..) => {
            json!(array.as_primitive::<Decimal256Type>().value_as_string(i))
        }
        DataType::Date32 => int!(Date32Type, 1),
        DataType::Date64 => {
            json!(array.as_primitive::<Date64Type>().value(i).div_euclid(86_400_000))
        }
        DataType::Time32(TimeUnit::Second) => int!(Time32SecondType, 1_000_000_000),
        DataType::Time32(_) => int!(Time32MillisecondType, 1_000_000),
        DataType::Time64(TimeUnit::Microsecond) => int!(Time64MicrosecondType, 1_000),
        DataType::Time64(_) => int!(Time64NanosecondType, 1),
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => int!(TimestampSecondType, nanos(unit)),
            TimeUnit::Millisecond => int!(TimestampMillisecondType, nanos(unit)),
            TimeUnit::Microsecond => int!(TimestampMicrosecondType, nanos(unit)),
            TimeUnit::Nanosecond => int!(TimestampNanosecondType, nanos(unit)),
        },
        DataType::Duration(unit) => match unit {
            TimeUnit::Second => int!(DurationSecondType, nanos(unit)),
            TimeUnit::Millisecond => int!(DurationMillisecondType, nanos(unit)),
            TimeUnit::Microsecond => int!(DurationMicrosecondType, nanos(unit)),
            TimeUnit::Nanosecond => int!(DurationNanosecondType, nanos(unit)),
        },
        DataType::Interval(_) => {
            let value = array.as_primitive::<IntervalMonthDayNanoType>().value(i);
            json!([value.months, value.days, value.nanoseconds])
        }
        DataType::Utf8 => json!(array.as_string::<i32>().value(i)),
        DataType::LargeUtf8 => json!(array.as_string::<i64>().value(i)),
        DataType::Utf8View => json!(array.as_string_view().value(i)),
        DataType::Binary => hex(array.as_binary::<i32>().value(i)),
        DataType::LargeBinary => hex(array.as_binary::<i64>().value(i)),
        DataType::BinaryView => hex(array.as_binary_view().value(i)),
        DataType::FixedSizeBinary(_) => hex(array.as_fixed_size_binary().value(i)),
        DataType::List(_) => list(array.as_list::<i32>().value(i)),
        DataType::LargeList(_) => list(array.as_list::<i64>().value(i)),
        DataType::ListView(_) => list(array.as_list_view::<i32>().value(i)),
        DataType::LargeListView(_) => list(array.as_list_view::<i64>().value(i)),
        DataType::FixedSizeList(..) => list(array.as_fixed_size_list().value(i)),
        DataType::Map(..) => {
            let entries = array.as_map().value(i);
            let (keys, values) = (entries.column(0), entries.column(1));
            Value::Array(
                (0..entries.len()).map(|i| json!([value(keys, i), value(values, i)])).collect(),
            )
        }
        DataType::Struct(fields) => {
            let columns = array.as_struct().columns();
            let pairs =
                fields.iter().zip(columns).map(|(f, column)| (f.name().clone(), value(column, i)));
            Value::Object(pairs.collect())
        }
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            value(dictionary.values(), dictionary.normalized_keys()[i])
        }
        DataType::RunEndEncoded(ends, _) => {
            let (at, values) = match ends.data_type() {
                DataType::Int16 => {
                    let runs = array.as_run::<Int16Type>();
                    (runs.get_physical_index(i), runs.values().clone())
                }
                DataType::Int32 => {
                    let runs = array.as_run::<Int32Type>();
                    (runs.get_physical_index(i), runs.values().clone())
                }
                _ => {
                    let runs = array.as_run::<Int64Type>();
                    (runs.get_physical_index(i), runs.values().clone())
                }
            };
            value(&values, at)
        }
        other => panic!("no form for {other}"),
    }
}

fn float(value: f64) -> Value {
    match value {
        v if v.is_nan() => json!("NaN"),
        v if v.is_infinite() => json!(if v > 0.0 { "Infinity" } else { "-Infinity" }),
        v => json!(v),
    }
}

pub fn hex(bytes: &[u8]) -> Value {
    json!(bytes.iter().fold("0x".to_owned(), |text, byte| format!("{text}{byte:02x}")))
}

/// The path of a file of `testdata/`.
pub fn testdata(name: &str) -> std::path::PathBuf {
    // The folder of the workspace, whose crates share it.
    let mut folders = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let root = folders.find(|folder| folder.join("testdata").is_dir());
    root.expect("the repository").join("testdata").join(name)
}

/// The file with another offset index for its only column, and perhaps another column index.
pub fn with_index(
    file: &bytes::Bytes,
    columns: Option<&ColumnIndex>,
    pages: Vec<PageLocation>,
) -> bytes::Bytes {
    let reader = Reader::new(file.clone()).expect("a file");
    let mut meta = reader.metadata().index().to_file_meta_data().expect("metadata");
    let footer_len =
        u32::from_le_bytes(file[file.len() - 8..file.len() - 4].try_into().expect("four bytes"));
    let mut out = file[..file.len() - 8 - footer_len as usize].to_vec();
    let chunk = &mut meta.row_groups[0].columns[0];
    if let Some(columns) = columns {
        let start = out.len();
        out.extend(columns.to_thrift());
        chunk.column_index_offset = Some(start as i64);
        chunk.column_index_length = Some((out.len() - start) as i32);
    }
    let start = out.len();
    out.extend(filled!(OffsetIndex { page_locations: pages }).to_thrift());
    chunk.offset_index_offset = Some(start as i64);
    chunk.offset_index_length = Some((out.len() - start) as i32);
    close(out, &meta.to_thrift()).into()
}

/// `trips.parquet` with its first row group stated 200 times.
pub fn shared_row_groups() -> Vec<u8> {
    let path = testdata("trips.parquet");
    let reader = Reader::open(&path).expect("a file");
    let mut meta = reader.metadata().index().to_file_meta_data().expect("metadata");
    let first = meta.row_groups[0].clone();
    meta.num_rows = first.num_rows * 200;
    meta.row_groups = vec![first; 200];
    let mut file = std::fs::read(&path).expect("bytes");
    let footer = u32::from_le_bytes(file[file.len() - 8..file.len() - 4].try_into().expect("four"));
    file.truncate(file.len() - 8 - footer as usize);
    close(file, &meta.to_thrift())
}
