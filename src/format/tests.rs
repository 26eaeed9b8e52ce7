//! Tests every struct of the format against an independent codec, and against a second statement of
//! the specification.

use std::collections::HashMap;

use bytes::Bytes;
use fastrand::Rng;

use super::*;
use crate::error::{Error, ErrorKind, LimitKind, Result, Spec};
use crate::thrift::oracle::{self, ProtocolValue};
use crate::thrift::{Read, ThriftReader, Write, wire};

/// The metadata structs, as the specification lists them: id, name, type, need (R or O). `closed`
/// are those that cannot keep unknown fields by themselves.
const STRUCTS: &str = "
FileMetaData: 1 version i32 R; 2 schema list<SchemaElement> R; 3 num_rows i64 R; 4 row_groups list<RowGroup> R;
    5 key_value_metadata list<KeyValue> O; 6 created_by string O; 7 column_orders list<ColumnOrder> O;
    8 encryption_algorithm EncryptionAlgorithm O; 9 footer_signing_key_metadata binary O
SchemaElement: 1 type Type O; 2 type_length i32 O; 3 repetition_type FieldRepetitionType O; 4 name string R;
    5 num_children i32 O; 6 converted_type ConvertedType O; 7 scale i32 O; 8 precision i32 O; 9 field_id i32 O;
    10 logical_type LogicalType O
RowGroup: 1 columns list<ColumnChunk> R; 2 total_byte_size i64 R; 3 num_rows i64 R; 4 sorting_columns list<SortingColumn> O;
    5 file_offset i64 O; 6 total_compressed_size i64 O; 7 ordinal i16 O
SortingColumn: 1 column_idx i32 R; 2 descending bool R; 3 nulls_first bool R
ColumnChunk: 1 file_path string O; 2 file_offset i64 R; 3 meta_data ColumnMetaData O; 4 offset_index_offset i64 O;
    5 offset_index_length i32 O; 6 column_index_offset i64 O; 7 column_index_length i32 O;
    8 crypto_metadata ColumnCryptoMetaData O; 9 encrypted_column_metadata binary O
ColumnMetaData: 1 type Type R; 2 encodings list<Encoding> R; 3 path_in_schema list<string> R; 4 codec CompressionCodec R;
    5 num_values i64 R; 6 total_uncompressed_size i64 R; 7 total_compressed_size i64 R; 8 key_value_metadata list<KeyValue> O;
    9 data_page_offset i64 R; 10 index_page_offset i64 O; 11 dictionary_page_offset i64 O; 12 statistics Statistics O;
    13 encoding_stats list<PageEncodingStats> O; 14 bloom_filter_offset i64 O; 15 bloom_filter_length i32 O;
    16 size_statistics SizeStatistics O; 17 geospatial_statistics GeospatialStatistics O
closed PageEncodingStats: 1 page_type PageType R; 2 encoding Encoding R; 3 count i32 R
KeyValue: 1 key string R; 2 value string O
Statistics: 1 max binary O; 2 min binary O; 3 null_count i64 O; 4 distinct_count i64 O; 5 max_value binary O;
    6 min_value binary O; 7 is_max_value_exact bool O; 8 is_min_value_exact bool O; 9 nan_count i64 O
SizeStatistics: 1 unencoded_byte_array_data_bytes i64 O; 2 repetition_level_histogram list<i64> O;
    3 definition_level_histogram list<i64> O
GeospatialStatistics: 1 bbox BoundingBox O; 2 geospatial_types list<i32> O
BoundingBox: 1 xmin double R; 2 xmax double R; 3 ymin double R; 4 ymax double R; 5 zmin double O; 6 zmax double O;
    7 mmin double O; 8 mmax double O
PageHeader: 1 type PageType R; 2 uncompressed_page_size i32 R; 3 compressed_page_size i32 R; 4 crc i32 O;
    5 data_page_header DataPageHeader O; 6 index_page_header IndexPageHeader O;
    7 dictionary_page_header DictionaryPageHeader O; 8 data_page_header_v2 DataPageHeaderV2 O
DataPageHeader: 1 num_values i32 R; 2 encoding Encoding R; 3 definition_level_encoding Encoding R;
    4 repetition_level_encoding Encoding R; 5 statistics Statistics O
IndexPageHeader:
DictionaryPageHeader: 1 num_values i32 R; 2 encoding Encoding R; 3 is_sorted bool O
DataPageHeaderV2: 1 num_values i32 R; 2 num_nulls i32 R; 3 num_rows i32 R; 4 encoding Encoding R;
    5 definition_levels_byte_length i32 R; 6 repetition_levels_byte_length i32 R; 7 is_compressed bool O;
    8 statistics Statistics O
closed PageLocation: 1 offset i64 R; 2 compressed_page_size i32 R; 3 first_row_index i64 R
OffsetIndex: 1 page_locations list<PageLocation> R; 2 unencoded_byte_array_data_bytes list<i64> O
ColumnIndex: 1 null_pages list<bool> R; 2 min_values list<binary> R; 3 max_values list<binary> R;
    4 boundary_order BoundaryOrder R; 5 null_counts list<i64> O; 6 repetition_level_histograms list<i64> O;
    7 definition_level_histograms list<i64> O; 8 nan_counts list<i64> O
BloomFilterHeader: 1 num_bytes i32 R; 2 algorithm BloomFilterAlgorithm R; 3 hash BloomFilterHash R;
    4 compression BloomFilterCompression R
AesGcmV1: 1 aad_prefix binary O; 2 aad_file_unique binary O; 3 supply_aad_prefix bool O
AesGcmCtrV1: 1 aad_prefix binary O; 2 aad_file_unique binary O; 3 supply_aad_prefix bool O
FileCryptoMetaData: 1 encryption_algorithm EncryptionAlgorithm R; 2 key_metadata binary O
EncryptionWithColumnKey: 1 path_in_schema list<string> R; 2 key_metadata binary O
closed DecimalType: 1 scale i32 R; 2 precision i32 R
closed TimeType: 1 is_adjusted_to_utc bool R; 2 unit TimeUnit R
closed TimestampType: 1 is_adjusted_to_utc bool R; 2 unit TimeUnit R
closed IntType: 1 bit_width i8 R; 2 is_signed bool R
VariantType: 1 specification_version i8 O
GeometryType: 1 crs string O
GeographyType: 1 crs string O; 2 algorithm EdgeInterpolationAlgorithm O
";

/// The unions: id, name of the member, and its struct unless it is empty.
const UNIONS: &str = "
LogicalType: 1 String; 2 Map; 3 List; 4 Enum; 5 Decimal DecimalType; 6 Date; 7 Time TimeType; 8 Timestamp TimestampType;
    10 Integer IntType; 11 Unknown; 12 Json; 13 Bson; 14 Uuid; 15 Float16; 16 Variant VariantType; 17 Geometry GeometryType;
    18 Geography GeographyType; 19 File
TimeUnit: 1 Millis; 2 Micros; 3 Nanos
ColumnOrder: 1 TypeOrder; 2 Ieee754TotalOrder; 3 Int96TimestampOrder
BloomFilterAlgorithm: 1 Block
BloomFilterHash: 1 XxHash
BloomFilterCompression: 1 Uncompressed
EncryptionAlgorithm: 1 AesGcmV1 AesGcmV1; 2 AesGcmCtrV1 AesGcmCtrV1
ColumnCryptoMetaData: 1 EncryptionWithFooterKey; 2 EncryptionWithColumnKey EncryptionWithColumnKey
";

/// The enums: names and numbers.
const ENUMS: &str = "
Type: BOOLEAN 0; INT32 1; INT64 2; INT96 3; FLOAT 4; DOUBLE 5; BYTE_ARRAY 6; FIXED_LEN_BYTE_ARRAY 7
FieldRepetitionType: REQUIRED 0; OPTIONAL 1; REPEATED 2
ConvertedType: UTF8 0; MAP 1; MAP_KEY_VALUE 2; LIST 3; ENUM 4; DECIMAL 5; DATE 6; TIME_MILLIS 7; TIME_MICROS 8;
    TIMESTAMP_MILLIS 9; TIMESTAMP_MICROS 10; UINT_8 11; UINT_16 12; UINT_32 13; UINT_64 14; INT_8 15; INT_16 16; INT_32 17;
    INT_64 18; JSON 19; BSON 20; INTERVAL 21
Encoding: PLAIN 0; PLAIN_DICTIONARY 2; RLE 3; BIT_PACKED 4; DELTA_BINARY_PACKED 5; DELTA_LENGTH_BYTE_ARRAY 6;
    DELTA_BYTE_ARRAY 7; RLE_DICTIONARY 8; BYTE_STREAM_SPLIT 9; ALP 10
CompressionCodec: UNCOMPRESSED 0; SNAPPY 1; GZIP 2; LZO 3; BROTLI 4; LZ4 5; ZSTD 6; LZ4_RAW 7
PageType: DATA_PAGE 0; INDEX_PAGE 1; DICTIONARY_PAGE 2; DATA_PAGE_V2 3
BoundaryOrder: UNORDERED 0; ASCENDING 1; DESCENDING 2
EdgeInterpolationAlgorithm: SPHERICAL 0; VINCENTY 1; THOMAS 2; ANDOYER 3; KARNEY 4
";

struct FieldSpec {
    id: i16,
    name: &'static str,
    ty: &'static str,
    required: bool,
}

struct StructSpec {
    name: &'static str,
    closed: bool,
    fields: Vec<FieldSpec>,
}

/// Id and name of a member of a union, and its struct unless it is empty.
type MemberSpec = (i16, &'static str, Option<&'static str>);

/// The three tables above, by name.
struct Spelled {
    structs: HashMap<&'static str, StructSpec>,
    unions: HashMap<&'static str, Vec<MemberSpec>>,
    enums: HashMap<&'static str, Vec<(&'static str, i32)>>,
}

impl Spelled {
    fn new() -> Self {
        let structs = entries(STRUCTS).map(|(name, fields)| {
            let (closed, name) = match name.strip_prefix("closed ") {
                Some(name) => (true, name),
                None => (false, name),
            };
            let fields = fields.map(|words| match words[..] {
                [id, name, ty, need] => {
                    FieldSpec { id: id.parse().unwrap(), name, ty, required: need == "R" }
                }
                _ => panic!("{words:?}"),
            });
            (name, StructSpec { name, closed, fields: fields.collect() })
        });
        let unions = entries(UNIONS).map(|(name, members)| {
            let members =
                members.map(|words| (words[0].parse().unwrap(), words[1], words.get(2).copied()));
            (name, members.collect())
        });
        let enums = entries(ENUMS).map(|(name, variants)| {
            (name, variants.map(|words| (words[0], words[1].parse().unwrap())).collect())
        });
        Self { structs: structs.collect(), unions: unions.collect(), enums: enums.collect() }
    }

    /// A random value of the type `ty`, and how Rust prints ours.
    fn random(&self, ty: &str, rng: &mut Rng) -> (ProtocolValue, String) {
        if let Some(element) = ty.strip_prefix("list<") {
            let element = element.trim_end_matches('>');
            let n = if rng.u8(..8) == 0 { rng.usize(13..18) } else { rng.usize(..4) };
            let (trees, texts): (Vec<_>, Vec<_>) =
                (0..n).map(|_| self.random(element, rng)).unzip();
            let list = ProtocolValue::List(self.wire_type(element), trees);
            return (list, format!("[{}]", texts.join(", ")));
        }
        if let Some(spec) = self.structs.get(ty) {
            return self.random_struct(spec, rng);
        }
        if let Some(members) = self.unions.get(ty) {
            let (id, name, payload) = *rng.choice(members).unwrap();
            let (tree, text) = match payload {
                Some(payload) => {
                    let (tree, text) = self.random(payload, rng);
                    (tree, format!("{name}({text})"))
                }
                None => (ProtocolValue::Struct(Vec::new()), name.to_owned()),
            };
            return (ProtocolValue::Struct(vec![(id, tree)]), text);
        }
        if let Some(variants) = self.enums.get(ty) {
            if rng.u8(..10) == 0 {
                let number = rng.i32(22..);
                return (ProtocolValue::I32(number), format!("Unknown({number})"));
            }
            let (name, number) = *rng.choice(variants).unwrap();
            return (ProtocolValue::I32(number), camel(name));
        }
        match ty {
            "bool" => print(rng.bool(), ProtocolValue::Bool),
            "i8" => print(rng.i8(..), ProtocolValue::I8),
            "i16" => print(random_i64(rng) as i16, ProtocolValue::I16),
            "i32" => print(random_i64(rng) as i32, ProtocolValue::I32),
            "i64" => print(random_i64(rng), ProtocolValue::I64),
            "double" => {
                let value = if rng.bool() {
                    rng.f64()
                } else {
                    *rng.choice(&[-0.0, f64::MAX, f64::INFINITY]).unwrap()
                };
                print(value, |value| ProtocolValue::Double(value.to_bits()))
            }
            "string" => {
                let n = if rng.u8(..20) == 0 { 200 } else { rng.usize(..12) };
                let text: String = (0..n)
                    .map(|_| *rng.choice(&['a', '.', '\0', 'é', '日', '🦀']).unwrap())
                    .collect();
                print(text, |text| ProtocolValue::Binary(text.into_bytes()))
            }
            "binary" => {
                let n = if rng.u8(..20) == 0 { 200 } else { rng.usize(..12) };
                print(
                    std::iter::repeat_with(|| rng.u8(..)).take(n).collect(),
                    ProtocolValue::Binary,
                )
            }
            _ => panic!("{ty}"),
        }
    }

    fn random_struct(&self, spec: &StructSpec, rng: &mut Rng) -> (ProtocolValue, String) {
        let (mut fields, mut texts) = (Vec::new(), Vec::new());
        for FieldSpec { id, name, ty, required } in &spec.fields {
            let text = if *required || rng.bool() {
                let (tree, text) = self.random(ty, rng);
                // Written only where columns state their paths.
                let is_left_out = *name == "path_in_schema"
                    && spec.name == "ColumnMetaData"
                    && matches!(&tree, ProtocolValue::List(_, items) if items.is_empty());
                if !is_left_out {
                    fields.push((*id, tree));
                }
                if *required { text } else { format!("Some({text})") }
            } else {
                "None".to_owned()
            };
            texts.push(format!("{name}: {text}"));
        }
        if !spec.closed {
            texts.push("unknown: []".to_owned());
        }
        (ProtocolValue::Struct(fields), format!("{} {{ {} }}", spec.name, texts.join(", ")))
    }

    fn wire_type(&self, ty: &str) -> thrift::protocol::TType {
        use thrift::protocol::TType;
        match ty {
            _ if self.enums.contains_key(ty) => TType::I32,
            "bool" => TType::Bool,
            "i32" => TType::I32,
            "i64" => TType::I64,
            "string" | "binary" => TType::String,
            _ => TType::Struct,
        }
    }
}

/// Splits a table into its entries, an entry into words. Lines that begin with a space go on with
/// the line before.
fn entries(
    table: &'static str,
) -> impl Iterator<Item = (&'static str, impl Iterator<Item = Vec<&'static str>>)> {
    let table = table.trim();
    let starts =
        table.match_indices('\n').map(|(i, _)| i).filter(|&i| !table[i + 1..].starts_with(' '));
    let ends = starts.clone().chain([table.len()]);
    [0].into_iter().chain(starts).zip(ends).map(move |(start, end)| {
        let (name, items) = table[start..end].trim().split_once(':').unwrap();
        let items = items.split(';').map(|item| item.split_whitespace().collect::<Vec<_>>());
        (name, items.filter(|words| !words.is_empty()))
    })
}

/// `DELTA_BYTE_ARRAY` → `DeltaByteArray`, `UINT_8` → `Uint8`.
fn camel(name: &str) -> String {
    let word = |word: &str| word[..1].to_owned() + &word[1..].to_lowercase();
    name.split('_').map(word).collect()
}

fn print<T: std::fmt::Debug>(
    value: T,
    tree: impl Fn(T) -> ProtocolValue,
) -> (ProtocolValue, String) {
    let text = format!("{value:?}");
    (tree(value), text)
}

/// Numbers of every length, the ends of every width.
fn random_i64(rng: &mut Rng) -> i64 {
    match rng.u8(..4) {
        0 => i64::from(rng.i8(..)),
        1 => *rng
            .choice(&[0, -1, i64::MIN, i64::MAX, i64::from(i32::MIN), i64::from(i32::MAX)])
            .unwrap(),
        _ => rng.i64(..) >> rng.u32(..64),
    }
}

/// What ours makes of some bytes: how Rust prints it, what it writes, and how many bytes it took.
struct Ours {
    text: String,
    written: Vec<u8>,
    read_len: usize,
}

fn ours<T: Write + std::fmt::Debug>(bytes: &[u8]) -> Result<Ours> {
    let mut reader = ThriftReader::new(bytes);
    let value = T::read(&mut reader)?;
    let mut written = Vec::new();
    value.write(&mut written).unwrap();
    Ok(Ours { text: format!("{value:?}"), written, read_len: reader.position() })
}

type ReadOurs = fn(&[u8]) -> Result<Ours>;

macro_rules! by_name {
    ($($Name:ident)*) => { &[$((stringify!($Name), ours::<$Name> as ReadOurs)),*] };
}

const STRUCTS_OF_OURS: &[(&str, ReadOurs)] = by_name! {
    FileMetaData SchemaElement RowGroup SortingColumn ColumnChunk ColumnMetaData PageEncodingStats KeyValue Statistics
    SizeStatistics GeospatialStatistics BoundingBox PageHeader DataPageHeader IndexPageHeader DictionaryPageHeader
    DataPageHeaderV2 PageLocation OffsetIndex ColumnIndex BloomFilterHeader AesGcmV1 AesGcmCtrV1 FileCryptoMetaData
    EncryptionWithColumnKey DecimalType TimeType TimestampType IntType VariantType GeometryType GeographyType
    LogicalType TimeUnit ColumnOrder BloomFilterAlgorithm BloomFilterHash BloomFilterCompression EncryptionAlgorithm
    ColumnCryptoMetaData
};

/// Random values of every struct and union of the specification, with a seed each.
fn for_random_values(
    rounds: u64,
    mut test: impl FnMut(&Spelled, &'static str, ReadOurs, ProtocolValue, String, &mut Rng),
) {
    let spelled = Spelled::new();
    assert_eq!(spelled.structs.len() + spelled.unions.len(), STRUCTS_OF_OURS.len());
    for &(name, read) in STRUCTS_OF_OURS {
        for seed in 0..rounds {
            let mut rng = Rng::with_seed(seed);
            let (tree, text) = spelled.random(name, &mut rng);
            let noted = Noted(name, seed);
            test(&spelled, name, read, tree, text, &mut rng);
            std::mem::forget(noted);
        }
    }
}

/// Prints which random value failed.
struct Noted(&'static str, u64);

impl Drop for Noted {
    fn drop(&mut self) {
        eprintln!("failed: {} with seed {}", self.0, self.1);
    }
}

#[test]
fn page_header_of_parquet_go() {
    let bytes = [
        0x15, 0x06, 0x15, 0x5a, 0x15, 0x5a, 0x15, 0xab, 0xa3, 0x84, 0xb4, 0x03, 0x4c, 0x15, 0x0a,
        0x15, 0x00, 0x15, 0x0a, 0x15, 0x00, 0x15, 0x00, 0x15, 0x00, 0x12, 0x00, 0x00,
    ];
    let mut reader = ThriftReader::new(&bytes);
    let header = PageHeader::read(&mut reader).unwrap();
    assert_eq!(reader.position(), bytes.len());
    let v2 = DataPageHeaderV2 {
        num_values: 5,
        num_nulls: 0,
        num_rows: 5,
        encoding: Encoding::Plain,
        definition_levels_byte_length: 0,
        repetition_levels_byte_length: 0,
        is_compressed: Some(false),
        ..Default::default()
    };
    assert_eq!(
        header,
        PageHeader {
            r#type: PageType::DataPageV2,
            uncompressed_page_size: 45,
            compressed_page_size: 45,
            crc: Some(0xE4BF_772A_u32.cast_signed()),
            data_page_header_v2: Some(v2),
            ..Default::default()
        }
    );
    let mut written = Vec::new();
    header.write(&mut written).unwrap();
    assert_eq!(written, bytes);
}

#[test]
fn both_codecs_and_the_specification_agree_on_every_struct() {
    for_random_values(150, |_, _, read, tree, text, _| {
        let bytes = oracle::write(&tree);
        let ours = read(&bytes).unwrap();
        assert_eq!(ours.text, text, "read from the oracle");
        assert_eq!(ours.read_len, bytes.len());
        assert_eq!(oracle::read(&ours.written), tree, "written for the oracle");
        // The oracle writes the long form from a step of 15 on already.
        assert!(ours.written.len() <= bytes.len());
    });
}

#[test]
fn unknown_fields_of_every_type_survive() {
    for_random_values(60, |spelled, name, read, mut tree, text, rng| {
        // Unions and closed structs leave it to the struct around them.
        if spelled.structs.get(name).is_none_or(|spec| spec.closed) {
            return;
        }
        oracle::add_unknown_fields(&mut tree, rng);
        let ours = read(&oracle::write(&tree)).unwrap();
        let mut back = oracle::read(&ours.written);
        oracle::sort_fields(&mut tree);
        oracle::sort_fields(&mut back);
        assert_eq!(back, tree);
        if !ours.text.contains("UnknownField") {
            assert_eq!(
                ours.text, text,
                "a struct that keeps nothing reads as if there were nothing"
            );
        }
    });
}

#[test]
fn fields_may_come_in_any_order() {
    for_random_values(30, |_, _, read, mut tree, text, rng| {
        oracle::shuffle_fields(&mut tree, rng);
        let ours = read(&oracle::write(&tree)).unwrap();
        assert_eq!(ours.text, text);
    });
}

type ReadText = fn(&[u8]) -> std::result::Result<(String, usize), crate::ErrorKind>;

/// What a struct says, without its name and what only owned ones keep; and how many bytes it took.
macro_rules! pairs {
    ($($Owned:ident $Ref:ident),*) => { &[$((stringify!($Owned), said!($Owned), said!($Ref))),*] };
}
macro_rules! said {
    ($Name:ident) => {
        |bytes| {
            let mut reader = ThriftReader::new(bytes);
            let text = $Name::read(&mut reader).map(|value| format!("{value:?}"));
            let text = text.map_err(|e| e.kind())?;
            Ok((without_unknown(&text.replace("Ref {", " {")), reader.position()))
        }
    };
}
#[test]
fn borrowed_structs_say_what_the_owned_ones_say() {
    const PAIRS: &[(&str, ReadText, ReadText)] = pairs! {
        ColumnChunk ColumnChunkRef, ColumnMetaData ColumnMetaDataRef, Statistics StatisticsRef, SizeStatistics SizeStatisticsRef,
        OffsetIndex OffsetIndexRef, ColumnIndex ColumnIndexRef
    };
    let spelled = Spelled::new();
    for &(name, owned, borrowed) in PAIRS {
        for seed in 0..400 {
            let mut rng = Rng::with_seed(seed);
            let noted = Noted(name, seed);
            let (mut tree, _) = spelled.random(name, &mut rng);
            match rng.u8(..4) {
                0 => oracle::add_unknown_fields(&mut tree, &mut rng),
                1 => oracle::shuffle_fields(&mut tree, &mut rng),
                _ => {}
            }
            let mut bytes = oracle::write(&tree);
            assert!(owned(&bytes).is_ok());
            // Sound first, then broken: what one refuses the other refuses.
            for _ in 0..20 {
                assert_eq!(borrowed(&bytes), owned(&bytes));
                let at = rng.usize(..bytes.len());
                bytes[at] ^= 1 << rng.u8(..8);
            }
            std::mem::forget(noted);
        }
    }
}

fn without_unknown(mut text: &str) -> String {
    let mut out = String::new();
    while let Some((before, rest)) = text.split_once(", unknown: [") {
        out.push_str(before);
        let mut depth = 1;
        let end = rest.bytes().position(|byte| {
            depth += i32::from(byte == b'[') - i32::from(byte == b']');
            depth == 0
        });
        text = &rest[end.unwrap() + 1..];
    }
    out + text
}

#[test]
fn enums_are_spelled_as_in_the_specification() {
    fn check<T>(spelled: &Spelled, ty: &str, all: &[T])
    where
        T: Copy + From<i32> + Into<i32> + std::fmt::Display + std::fmt::Debug + PartialEq,
    {
        let ours: Vec<_> = all.iter().map(|v| (v.to_string(), (*v).into())).collect();
        let theirs = spelled.enums[ty].iter().map(|&(name, number)| (name.to_owned(), number));
        assert_eq!(ours, theirs.collect::<Vec<_>>());
        for number in -2..30 {
            let known = all.iter().find(|v| (**v).into() == number);
            assert_eq!(Into::<i32>::into(T::from(number)), number);
            assert_eq!(known.is_none(), T::from(number).to_string().contains("unknown"));
        }
    }
    let spelled = Spelled::new();
    check(&spelled, "Type", Type::ALL);
    check(&spelled, "FieldRepetitionType", FieldRepetitionType::ALL);
    check(&spelled, "ConvertedType", ConvertedType::ALL);
    check(&spelled, "Encoding", Encoding::ALL);
    check(&spelled, "CompressionCodec", CompressionCodec::ALL);
    check(&spelled, "PageType", PageType::ALL);
    check(&spelled, "BoundaryOrder", BoundaryOrder::ALL);
    check(&spelled, "EdgeInterpolationAlgorithm", EdgeInterpolationAlgorithm::ALL);
}

#[test]
fn footer_index_agrees_with_the_whole_footer() {
    let spelled = Spelled::new();
    for seed in 0..200 {
        let mut rng = Rng::with_seed(seed);
        let (mut tree, _) = spelled.random("FileMetaData", &mut rng);
        if rng.bool() {
            oracle::add_unknown_fields(&mut tree, &mut rng);
        }
        let mut bytes = oracle::write(&tree);
        let len = bytes.len();
        bytes.extend([0x55; 28]);
        let whole = FileMetaData::read(&mut ThriftReader::new(&bytes)).unwrap();
        let mut index = FooterIndex::parse(Bytes::from(bytes)).unwrap();
        assert_eq!(index.byte_len(), len, "seed {seed}");
        assert_eq!(index.head().schema.len(), whole.schema.len());
        let elements = index.take_schema();
        assert_eq!(elements.len(), whole.schema.len());
        for (i, element) in (0u32..).zip(&whole.schema) {
            assert_is_same(&elements, i, element);
        }
        assert_eq!(index.to_file_meta_data().unwrap(), whole);
        let head = index.head();
        assert_eq!(head.version, whole.version);
        assert_eq!(head.num_rows, whole.num_rows);
        assert_eq!(head.key_value_metadata, whole.key_value_metadata);
        assert_eq!(head.created_by, whole.created_by);
        let orders = head.column_orders.as_ref().map(|orders| orders.iter().cloned().collect());
        assert_eq!(orders, whole.column_orders, "seed {seed}");
        assert_eq!(head.encryption_algorithm, whole.encryption_algorithm);
        assert_eq!(head.footer_signing_key_metadata, whole.footer_signing_key_metadata);
        assert_eq!(head.row_groups.len(), whole.row_groups.len());
        for (i, (ours, theirs)) in head.row_groups.iter().zip(&whole.row_groups).enumerate() {
            assert_eq!(ours.total_byte_size, theirs.total_byte_size);
            assert_eq!(ours.num_rows, theirs.num_rows);
            assert_eq!(ours.sorting_columns, theirs.sorting_columns);
            assert_eq!(ours.file_offset, theirs.file_offset);
            assert_eq!(ours.total_compressed_size, theirs.total_compressed_size);
            assert_eq!(ours.ordinal, theirs.ordinal);
            assert_eq!(ours.columns.len(), theirs.columns.len());
            for (j, chunk) in theirs.columns.iter().enumerate() {
                assert_eq!(&index.column_chunk(i, j).unwrap(), chunk, "seed {seed}");
            }
            let error = index.column_chunk(i, theirs.columns.len()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
        }
        assert_eq!(
            index.column_chunk(head.row_groups.len(), 0).unwrap_err().kind(),
            ErrorKind::Usage
        );
    }
}

/// Reads a list of elements in both forms: the same, or the same error.
fn assert_read_alike(bytes: &[u8], what: &str) {
    let (mut one, mut other) = (ThriftReader::new(bytes), ThriftReader::new(bytes));
    match (Vec::<SchemaElement>::read(&mut one), ElementHeads::read(&mut other)) {
        (Ok(owned), Ok(heads)) => {
            assert_eq!(one.position(), other.position(), "{what}");
            let elements = SchemaElements::new(Bytes::copy_from_slice(bytes), heads);
            assert_eq!(elements.len(), owned.len(), "{what}");
            for (i, element) in (0u32..).zip(&owned) {
                assert_is_same(&elements, i, element);
            }
        }
        (Err(owned), Err(heads)) => assert_eq!(owned.to_string(), heads.to_string(), "{what}"),
        (owned, heads) => panic!("{what}: {owned:?} is not {heads:?}"),
    }
}

#[test]
fn elements_in_place_are_those_that_are_owned() {
    let spelled = Spelled::new();
    let names = ["", "a", "b", "feature_00001", "feature_00002", "\u{e9}", "\u{20ac}"];
    let long = ["n".repeat(127), "n".repeat(128), "n".repeat(300)];
    for seed in 0..300 {
        let mut rng = Rng::with_seed(seed);
        let kinds: [SchemaElement; 3] = std::array::from_fn(|_| {
            let (mut tree, _) = spelled.random("SchemaElement", &mut rng);
            if rng.bool() {
                oracle::add_unknown_fields(&mut tree, &mut rng);
            }
            SchemaElement::read(&mut ThriftReader::new(&oracle::write(&tree))).unwrap()
        });
        // Many differ from the one before in their name alone.
        let (mut elements, mut kind) = (Vec::new(), 0);
        for _ in 0..rng.usize(..40) {
            kind = if rng.u8(..4) == 0 { rng.usize(..3) } else { kind };
            let name = match rng.u8(..8) {
                0 => rng.choice(&long).unwrap().clone(),
                _ => (*rng.choice(&names).unwrap()).to_owned(),
            };
            elements.push(SchemaElement { name, ..kinds[kind].clone() });
        }
        let mut whole = Vec::new();
        elements.write(&mut whole).unwrap();
        assert_read_alike(&whole, &format!("seed {seed}"));
        for round in 0..30 {
            let mut bytes = whole.clone();
            for _ in 0..rng.usize(1..4) {
                mutate(&mut bytes, &mut rng);
            }
            assert_read_alike(&bytes, &format!("seed {seed}, round {round}"));
        }
    }
}

#[test]
fn names_of_odd_lengths_are_read_alike() {
    // Elements of a name with this many bytes, its length as given. A byte 0 could be a stop.
    let list = |elements: &[(&[u8], usize)], byte: u8| {
        let mut bytes = vec![(elements.len() as u8) << 4 | wire::STRUCT];
        for (len, n) in elements {
            bytes.push(0x48);
            bytes.extend_from_slice(len);
            bytes.extend(vec![byte; *n]);
            bytes.push(wire::STOP);
        }
        bytes
    };
    let lens: [(&[u8], usize); 8] = [
        (&[0], 0),
        (&[1], 1),
        (&[0x7F], 127),
        // In more bytes than they need.
        (&[0x80, 0], 0),
        (&[0x81, 0], 1),
        (&[0x80, 0x80, 0], 0),
        (&[0x80, 1], 128),
        (&[0x81, 1], 129),
    ];
    for a in lens {
        for b in lens {
            for byte in [b'n', 0] {
                let bytes = list(&[a, b], byte);
                assert!(ElementHeads::read(&mut ThriftReader::new(&bytes)).is_ok(), "{a:?} {b:?}");
                assert_read_alike(&bytes, &format!("{a:?} {b:?}"));
            }
        }
    }
}

#[test]
fn elements_of_odd_shapes_are_read_alike() {
    // What stands before and after the length and the bytes of a name.
    let shapes: [(&[u8], &[u8]); 9] = [
        // The name twice, the first always the same; the last always the same.
        (&[0x48, 1, b'x', 0x08, 8], &[0]),
        (&[0x48], &[0x08, 8, 1, b'x', 0]),
        // The long form of the header.
        (&[0x08, 8], &[0]),
        // After the fields 5 and 9; and before field 3.
        (&[0x55, 2, 0x45, 4, 0x08, 8], &[0]),
        (&[0x48], &[0x05, 6, 2, 0]),
        // After a struct that is not known, which has a field 4 too, and before another.
        (&[0x0C, 60, 0x48, 1, b'y', 0, 0x08, 8], &[0]),
        (&[0x48], &[0x0C, 60, 0x48, 1, b'y', 0, 0]),
        // Beside a name of another type.
        (&[0x45, 2, 0x08, 8], &[0]),
        (&[0x48], &[0x05, 8, 2, 0]),
    ];
    let names: [&[u8]; 5] = [b"a", b"bb", b"", b"\xFF", b"\x00\x00"];
    for (before, after) in shapes {
        for first in names {
            for second in names {
                let mut bytes = vec![3 << 4 | wire::STRUCT];
                for name in [first, second, b"z"] {
                    bytes.extend_from_slice(before);
                    bytes.push(u8::try_from(name.len()).unwrap());
                    bytes.extend_from_slice(name);
                    bytes.extend_from_slice(after);
                }
                let place = format!("{before:x?} {first:x?} {second:x?} {after:x?}");
                assert_read_alike(&bytes, &place);
                for cut in 1..bytes.len() {
                    assert_read_alike(&bytes[..cut], &format!("{place}, {cut} bytes"));
                }
            }
        }
    }
}

#[test]
fn a_long_element_is_decoded_once() {
    // A BOOLEAN named "a" with a member of its logical type, and a field, that are not known and
    // hold a million fields each: the annotation, then the field 17.
    let fields = |header: &[u8]| [header, &vec![0x11; 1 << 20], &[0]].concat();
    let mut bytes = vec![1 << 4 | wire::STRUCT, 0x15, 0, 0x38, 1, b'a', 0x6C];
    bytes.extend(fields(&[0x0C, 120]));
    bytes.push(0);
    bytes.extend(fields(&[0x7C]));
    bytes.push(0);
    assert_read_alike(&bytes, "a long element");
    let heads = ElementHeads::read(&mut ThriftReader::new(&bytes)).unwrap();
    let elements = SchemaElements::new(bytes.into(), heads);
    assert_eq!(elements.get_owned(0).logical_type.unwrap().to_string(), "unknown (60)");
    let steps = crate::steps::taken_by(|| {
        for _ in 0..100 {
            assert_eq!(elements.get(0).logical_type.unwrap().to_string(), "unknown (60)");
        }
    });
    assert!(steps < 100_000, "{steps} fields and elements looked at");
}

#[test]
fn a_name_that_is_not_utf_8_is_malformed_wherever_it_is() {
    for names in [[b'a', b'a', 0xFF], [b'a', 0xFF, b'a'], [0xFF, b'a', b'a']] {
        let mut bytes = vec![3 << 4 | wire::STRUCT];
        for name in names {
            bytes.extend([0x48, 1, name, wire::STOP]);
        }
        assert_read_alike(&bytes, "names");
        let error = ElementHeads::read(&mut ThriftReader::new(&bytes)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed(Spec::Metadata("SchemaElement")));
        assert!(error.message().contains("SchemaElement.name"), "{error}");
    }
}

/// Compares all that is known of an element with the owned one.
fn assert_is_same(elements: &SchemaElements, i: u32, whole: &SchemaElement) {
    assert_eq!(&elements.get_owned(i), whole);
    let borrowed = elements.get(i);
    assert_eq!(borrowed.r#type, whole.r#type);
    assert_eq!(borrowed.type_length, whole.type_length);
    assert_eq!(borrowed.repetition_type, whole.repetition_type);
    assert_eq!(borrowed.name, whole.name);
    assert_eq!(borrowed.num_children, whole.num_children);
    assert_eq!(borrowed.converted_type, whole.converted_type);
    assert_eq!(borrowed.scale, whole.scale);
    assert_eq!(borrowed.precision, whole.precision);
    assert_eq!(borrowed.field_id, whole.field_id);
    match (&borrowed.logical_type, &whole.logical_type) {
        // Of a long element the numbers alone are known.
        (Some(found @ LogicalType::Unrecognized(_)), Some(of @ LogicalType::Unrecognized(_))) => {
            assert_eq!(found.to_string(), of.to_string());
        }
        (found, of) => assert_eq!(found, of),
    }
    let head = elements.head(i);
    assert_eq!(elements.name(i), whole.name);
    assert_eq!(head.name_len(), whole.name.len());
    assert_eq!(head.num_children(), whole.num_children);
    assert_eq!(head.has_field_id(), whole.field_id.is_some());
    assert_eq!(head.is_annotated(), whole.logical_type.is_some() || whole.converted_type.is_some());
    // Numbers that are not known need not be the same.
    let is_known = |text: String| !text.starts_with("unknown");
    let text = |text: Option<String>| text.filter(|text| is_known(text.clone()));
    assert_eq!(head.r#type().is_some(), whole.r#type.is_some());
    assert_eq!(
        text(head.r#type().map(|t| t.to_string())),
        text(whole.r#type.map(|t| t.to_string()))
    );
    assert_eq!(head.repetition_type().is_some(), whole.repetition_type.is_some());
    assert_eq!(
        text(head.repetition_type().map(|t| t.to_string())),
        text(whole.repetition_type.map(|t| t.to_string()))
    );
    assert_eq!(head.converted_type().is_some(), whole.converted_type.is_some());
    assert_eq!(
        text(head.converted_type().map(|t| t.to_string())),
        text(whole.converted_type.map(|t| t.to_string()))
    );
}

/// The kinds that bad bytes may lead to.
fn is_expected(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Malformed(Spec::Metadata(_)) | ErrorKind::Limit(LimitKind::Nesting)
    )
}

#[test]
fn every_prefix_is_malformed() {
    for_random_values(3, |_, _, read, tree, _, _| {
        let bytes = oracle::write(&tree);
        let step = bytes.len() / 500 + 1;
        for end in (0..bytes.len()).step_by(step) {
            let error = read(&bytes[..end]).err().unwrap();
            assert!(matches!(error.kind(), ErrorKind::Malformed(Spec::Metadata(_))), "{error}");
        }
    });
}

#[test]
fn mutated_bytes_are_read_or_malformed() {
    for_random_values(40, |_, _, read, tree, _, rng| {
        let whole = oracle::write(&tree);
        for _ in 0..8 {
            let mut bytes = whole.clone();
            for _ in 0..rng.usize(1..6) {
                mutate(&mut bytes, rng);
            }
            match read(&bytes) {
                // What was read can be written and read again, to the same.
                Ok(first) => {
                    let second = read(&first.written).unwrap();
                    assert_eq!(second.written, first.written);
                }
                Err(error) => assert!(is_expected(&error), "{error}"),
            }
        }
    });
}

#[test]
fn a_megabyte_of_mutations_is_read_or_malformed() {
    let spelled = Spelled::new();
    let mut rng = Rng::with_seed(1);
    let mut row_groups = Vec::new();
    let mut size = 0;
    while size < 1 << 20 {
        let (tree, _) = spelled.random("RowGroup", &mut rng);
        size += oracle::write(&tree).len();
        row_groups.push(tree);
    }
    let footer = ProtocolValue::Struct(vec![
        (1, ProtocolValue::I32(1)),
        (2, ProtocolValue::List(thrift::protocol::TType::Struct, Vec::new())),
        (3, ProtocolValue::I64(0)),
        (4, ProtocolValue::List(thrift::protocol::TType::Struct, row_groups)),
    ]);
    let whole = oracle::write(&footer);
    FileMetaData::read(&mut ThriftReader::new(&whole)).unwrap();
    for round in 0..100 {
        let mut bytes = whole.clone();
        for _ in 0..=round / 10 {
            mutate(&mut bytes, &mut rng);
        }
        let read = FileMetaData::read(&mut ThriftReader::new(&bytes));
        let index = FooterIndex::parse(Bytes::from(bytes));
        if let Ok(read) = &read {
            assert_eq!(index.as_ref().unwrap().head().row_groups.len(), read.row_groups.len());
        }
        for error in [read.err(), index.err()].into_iter().flatten() {
            assert!(is_expected(&error), "round {round}: {error}");
        }
    }
    let noise: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(1 << 20).collect();
    for start in (0..noise.len()).step_by(97) {
        if let Err(error) = FileMetaData::read(&mut ThriftReader::new(&noise[start..])) {
            assert!(is_expected(&error), "{error}");
        }
    }
}

fn mutate(bytes: &mut Vec<u8>, rng: &mut Rng) {
    if bytes.is_empty() {
        return;
    }
    let at = rng.usize(..bytes.len());
    match rng.u8(..6) {
        0 => bytes[at] = rng.u8(..),
        1 => bytes[at] ^= 1 << rng.u8(..8),
        2 => bytes[at] = *rng.choice(&[0, 0x7F, 0x80, 0xFF, 0xFC, 0x1C]).unwrap(),
        3 => bytes.truncate(at),
        4 => drop(bytes.remove(at)),
        _ => {
            let more = [0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F];
            let n = rng.usize(1..=more.len());
            bytes.splice(at..at, more.into_iter().take(n));
        }
    }
}

#[test]
fn footer_that_claims_a_gigantic_list_is_malformed_at_once() {
    // Field 4 claims 2^32 - 1 row groups, then a megabyte of stops follows.
    let mut bytes =
        vec![0x15, 0x02, 0x19, 0x0C, 0x16, 0x00, 0x19, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F];
    bytes.resize(1 << 20, 0);
    let error = FileMetaData::read(&mut ThriftReader::new(&bytes)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed(Spec::Metadata("FileMetaData")));
    let error = FooterIndex::parse(Bytes::from(bytes)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed(Spec::Metadata("FileMetaData")));
    assert!(error.message().contains("row_groups"), "{error}");
}

#[test]
fn constructors_state_what_their_names_say() {
    let decimal = DecimalType::new(9, 2);
    assert_eq!((decimal.precision, decimal.scale), (9, 2));
    let times = [TimeType::utc(TimeUnit::Micros), TimeType::local(TimeUnit::Micros)];
    assert_eq!(times.clone().map(|time| time.is_adjusted_to_utc), [true, false]);
    let stamps = [TimestampType::utc(TimeUnit::Nanos), TimestampType::local(TimeUnit::Nanos)];
    assert_eq!(stamps.clone().map(|stamp| stamp.is_adjusted_to_utc), [true, false]);
    let ints = [IntType::signed(8), IntType::unsigned(16)];
    assert_eq!(ints.map(|int| (int.bit_width, int.is_signed)), [(8, true), (16, false)]);
    assert_eq!(GeometryType::new("EPSG:28992").crs.as_deref(), Some("EPSG:28992"));
    let vincenty = EdgeInterpolationAlgorithm::Vincenty;
    let geography = GeographyType::new("OGC:CRS84").with_algorithm(vincenty);
    assert_eq!(geography.crs.as_deref(), Some("OGC:CRS84"));
    assert_eq!(geography.algorithm, Some(vincenty));
    let sorting = SortingColumn::new(3).with_descending(true).with_nulls_first(true);
    assert_eq!((sorting.column_idx, sorting.descending, sorting.nulls_first), (3, true, true));
    let page = PageLocation::new(4, 100, 7);
    assert_eq!((page.offset, page.compressed_page_size, page.first_row_index), (4, 100, 7));
    // And each is read as it is written.
    let types = [
        LogicalType::Decimal(decimal),
        LogicalType::Time(times[1].clone()),
        LogicalType::Timestamp(stamps[0].clone()),
        LogicalType::Integer(ints[1]),
        LogicalType::Geography(geography),
    ];
    for of in types {
        assert_eq!(LogicalType::from_thrift(&of.to_thrift()).unwrap().0, of);
    }
}

#[test]
fn copies_of_a_footer_are_equal_and_have_what_is_not_known() {
    let pair = KeyValue::new("key", "value");
    let chunk = ColumnChunk { file_offset: 7, ..ColumnChunk::default() };
    let mut group = RowGroup { columns: vec![chunk; 3], num_rows: 5, ..RowGroup::default() };
    group.sorting_columns = Some(vec![SortingColumn::new(1)]);
    group.unknown.push(crate::thrift::Field { id: 30, ty: wire::TRUE }, &[]).unwrap();
    let footer = FileMetaData {
        version: 2,
        schema: vec![SchemaElement { name: "schema".into(), ..SchemaElement::default() }],
        num_rows: 5,
        row_groups: vec![group],
        key_value_metadata: Some(vec![pair]),
        created_by: Some("a writer".into()),
        column_orders: Some(vec![ColumnOrder::TypeOrder]),
        footer_signing_key_metadata: Some(vec![1, 2]),
        ..FileMetaData::default()
    };
    assert_eq!(footer.copied().unwrap(), footer);
    assert_eq!(footer.copied().unwrap().to_thrift(), footer.to_thrift());
}
