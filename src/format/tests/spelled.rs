//! The structs, unions and enums as the specification spells them, and random values of each.

use std::collections::HashMap;

use fastrand::Rng;

use crate::thrift::oracle::ProtocolValue;

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
    DELTA_BYTE_ARRAY 7; RLE_DICTIONARY 8; BYTE_STREAM_SPLIT 9; ALP 10; PFOR 11
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

pub(super) struct StructSpec {
    name: &'static str,
    pub(super) closed: bool,
    fields: Vec<FieldSpec>,
}

/// Id and name of a member of a union, and its struct unless it is empty.
type MemberSpec = (i16, &'static str, Option<&'static str>);

/// The three tables above, by name.
pub(super) struct Spelled {
    pub(super) structs: HashMap<&'static str, StructSpec>,
    pub(super) unions: HashMap<&'static str, Vec<MemberSpec>>,
    pub(super) enums: HashMap<&'static str, Vec<(&'static str, i32)>>,
}

impl Spelled {
    pub(super) fn new() -> Self {
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
    pub(super) fn random(&self, ty: &str, rng: &mut Rng) -> (ProtocolValue, String) {
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
