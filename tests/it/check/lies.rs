//! Each lie is planted alone, in a file that is true, and must be found at its place, with nothing
//! beside it.

use std::collections::BTreeSet;
use std::sync::{Arc, LazyLock};

use marquetry::arrow_array::builder::{ListBuilder, StringBuilder};
use marquetry::arrow_array::*;
use marquetry::arrow_schema::{DataType, Field, Schema};
use marquetry::check::{CheckLevel, Finding, FindingKind, Severity};
use marquetry::format::*;
use marquetry::{
    BloomOptions, ColumnOptions, Compression, PageVersion, SortColumn, StatisticsLevel,
    WriteOptions,
};

use super::model::{Model, findings, footer, line, written};
use crate::support::{Chunk, file, ints, leaf, levels_v1, levels_v2, v1, v2};
use CheckLevel::{Footer, Pages, Truth};

/// The columns of the table, by the indices of their leaves.
const ID: usize = 0;
const NAME: usize = 1;
const PRICE: usize = 2;
const AMOUNT: usize = 3;
const TAGS: usize = 4;
const FLAG: usize = 5;
const SMALL: usize = 6;
const TIME: usize = 7;
const DOC: usize = 8;
const GEOM: usize = 9;
const LABEL: usize = 10;
const RATIO: usize = 11;
const NONE: usize = 12;

/// Something false, and what is found of it.
struct Lie {
    /// The code of the finding and its place: row group, column and page.
    found: &'static str,
    level: CheckLevel,
    plant: Plant,
}

enum Plant {
    /// Into the parts, before sizes and offsets are made to fit.
    Parts(fn(&mut Model)),
    /// Into the footer, after that.
    Meta(fn(&mut FileMetaData)),
    /// Into the bytes.
    Bytes(fn(&mut Vec<u8>)),
    /// Into the parts of the file whose pages are of version 2.
    PartsV2(fn(&mut Model)),
}

const fn parts(level: CheckLevel, found: &'static str, plant: fn(&mut Model)) -> Lie {
    Lie { found, level, plant: Plant::Parts(plant) }
}

const fn meta(level: CheckLevel, found: &'static str, plant: fn(&mut FileMetaData)) -> Lie {
    Lie { found, level, plant: Plant::Meta(plant) }
}

const fn bytes(level: CheckLevel, found: &'static str, plant: fn(&mut Vec<u8>)) -> Lie {
    Lie { found, level, plant: Plant::Bytes(plant) }
}

const fn parts_v2(level: CheckLevel, found: &'static str, plant: fn(&mut Model)) -> Lie {
    Lie { found, level, plant: Plant::PartsV2(plant) }
}

#[test]
fn each_lie_is_found_at_its_place_and_nothing_else_is() {
    let all = [FILE, SCHEMA, CHUNKS, STATISTICS, PAGES, INDEXES, VALUES, TRUTH];
    let (mut wrong, mut kinds, mut count) = (Vec::new(), BTreeSet::new(), 0);
    for lie in all.into_iter().flatten() {
        count += 1;
        let found = findings(planted(&lie.plant), lie.level);
        kinds.extend(found.iter().map(|finding| finding.kind));
        let lines: Vec<String> = found.iter().map(line).collect();
        if lines != [lie.found] {
            let messages: Vec<&str> = found.iter().map(|finding| &*finding.message).collect();
            wrong.push(format!("{}: found {lines:?} {messages:?}", lie.found));
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(kinds.len() >= 80, "{} kinds", kinds.len());
}

#[test]
fn a_true_file_has_no_finding_and_its_parts_make_it_again() {
    for version in [PageVersion::V1, PageVersion::V2] {
        let file = base(version);
        assert_eq!(lines(&findings(file.clone(), Truth)), [""; 0]);
        let again = Model::new(&file).write(|_| {});
        assert_eq!(lines(&findings(again, Truth)), [""; 0]);
    }
}

#[test]
fn kinds_have_codes_of_their_own() {
    let codes: BTreeSet<&str> = FindingKind::ALL.iter().map(|kind| kind.code()).collect();
    assert_eq!(codes.len(), FindingKind::ALL.len());
    for kind in FindingKind::ALL {
        let is_kebab = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(kind.code().chars().all(is_kebab) && kind.text().ends_with('.'), "{kind}");
    }
}

fn lines(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|finding| format!("{} {}", line(finding), finding.message)).collect()
}

fn planted(plant: &Plant) -> Vec<u8> {
    static V1: LazyLock<Vec<u8>> = LazyLock::new(|| base(PageVersion::V1));
    static V2: LazyLock<Vec<u8>> = LazyLock::new(|| base(PageVersion::V2));
    match plant {
        Plant::Parts(change) => {
            let mut model = Model::new(&V1);
            change(&mut model);
            model.write(|_| {})
        }
        Plant::PartsV2(change) => {
            let mut model = Model::new(&V2);
            change(&mut model);
            model.write(|_| {})
        }
        Plant::Meta(change) => Model::new(&V1).write(change),
        Plant::Bytes(change) => {
            let mut file = V1.clone();
            change(&mut file);
            file
        }
    }
}

/// Two row groups of 40 rows, whose columns have two pages each.
fn base(version: PageVersion) -> Vec<u8> {
    let plain = |column: ColumnOptions| column.with_encoding(Encoding::Plain);
    let bare = move |column| plain(column).with_statistics(StatisticsLevel::None);
    let mut options = WriteOptions::default()
        .with_compression(Compression::Uncompressed)
        .with_page_version(version)
        .with_page_rows(20)
        .with_row_group_rows(40)
        .with_hint(false)
        .with_sort_order([SortColumn::ascending("id")])
        .with_column("id", move |column| plain(column).with_bloom(BloomOptions::default()))
        .with_column("name", |column| column.with_dictionary(true))
        .with_column("price", plain)
        .with_column("geom", plain);
    for name in ["amount", "small", "time", "doc", "label", "ratio"] {
        options = options.with_column(name, bare);
    }
    written(&table(), options)
}

fn table() -> RecordBatch {
    let rows = 0..80i64;
    let mut tags = ListBuilder::new(StringBuilder::new());
    for row in rows.clone() {
        tags.append_value((0..row % 3 + 2).map(|i| Some(format!("tag {i}"))));
    }
    let texts = |of: fn(i64) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values((0..80).map(of)))
    };
    let point =
        |x: f64, y: f64| [&[1, 1, 0, 0, 0][..], &x.to_le_bytes(), &y.to_le_bytes()].concat();
    let amounts = Decimal128Array::from_iter_values(rows.clone().map(|row| i128::from(row) * 100));
    let columns: Vec<(&str, bool, ArrayRef)> = vec![
        ("id", false, Arc::new(Int64Array::from_iter_values(rows.clone().map(|row| row * 10)))),
        (
            "name",
            true,
            Arc::new(StringArray::from_iter(
                rows.clone().map(|row| (row % 7 != 0).then(|| format!("name {}", row % 5))),
            )),
        ),
        (
            "price",
            false,
            Arc::new(Float64Array::from_iter_values(
                rows.clone().map(|row| if row % 9 == 0 { f64::NAN } else { row as f64 + 0.5 }),
            )),
        ),
        ("amount", false, Arc::new(amounts.with_precision_and_scale(9, 2).unwrap())),
        ("tags", true, Arc::new(tags.finish())),
        (
            "flag",
            true,
            Arc::new(BooleanArray::from_iter(
                rows.clone().map(|row| (row % 4 != 0).then_some(row % 3 == 0)),
            )),
        ),
        ("small", false, Arc::new(Int8Array::from_iter_values((0..80).map(|row| row as i8 - 40)))),
        ("time", false, Arc::new(Time32MillisecondArray::from_iter_values(0..80))),
        ("doc", false, texts(|row| format!("{{\"row\":{}}}", row + 100))),
        (
            "geom",
            false,
            Arc::new(BinaryArray::from_iter_values(
                rows.clone().map(|row| point(row as f64, -row as f64)),
            )),
        ),
        ("label", false, texts(|row| format!("label {row:03}"))),
        (
            "ratio",
            false,
            Arc::new(Float64Array::from_iter_values(rows.map(|row| row as f64 / 3.0))),
        ),
        ("none", true, Arc::new(Int32Array::from(vec![None; 80]))),
    ];
    let extension = |name: &str| match name {
        "doc" => Some(("arrow.json", "")),
        "geom" => Some(("geoarrow.wkb", "{}")),
        _ => None,
    };
    let field = |(name, nullable, array): &(&str, bool, ArrayRef)| {
        let field = Field::new(*name, array.data_type().clone(), *nullable);
        match extension(name) {
            None => field,
            Some((of, metadata)) => field.with_metadata(
                [("ARROW:extension:name", of), ("ARROW:extension:metadata", metadata)]
                    .map(|(key, value)| (key.to_owned(), value.to_owned()))
                    .into(),
            ),
        }
    };
    let mut fields: Vec<Field> = columns.iter().map(field).collect();
    let mut arrays: Vec<ArrayRef> = columns.into_iter().map(|(.., array)| array).collect();
    let inner: Vec<Arc<Field>> =
        ["x", "y"].map(|name| Arc::new(Field::new(name, DataType::Int32, false))).into();
    let x: ArrayRef = Arc::new(Int32Array::from_iter_values(0..80));
    arrays.push(Arc::new(StructArray::new(inner.clone().into(), vec![x.clone(), x], None)));
    fields.push(Field::new("pair", DataType::Struct(inner.into()), false));
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

fn chunk(meta: &mut FileMetaData, group: usize, leaf: usize) -> &mut ColumnChunk {
    &mut meta.row_groups[group].columns[leaf]
}

fn column(meta: &mut FileMetaData, group: usize, leaf: usize) -> &mut ColumnMetaData {
    chunk(meta, group, leaf).meta_data.as_mut().unwrap()
}

fn statistics(meta: &mut FileMetaData, group: usize, leaf: usize) -> &mut Statistics {
    column(meta, group, leaf).statistics.get_or_insert_default()
}

fn sizes(meta: &mut FileMetaData, group: usize, leaf: usize) -> &mut SizeStatistics {
    column(meta, group, leaf).size_statistics.get_or_insert_default()
}

/// The element of the schema with this name.
fn element<'a>(meta: &'a mut FileMetaData, name: &str) -> &'a mut SchemaElement {
    meta.schema.iter_mut().find(|element| element.name == name).unwrap()
}

fn long(value: i64) -> Option<Vec<u8>> {
    Some(value.to_le_bytes().to_vec())
}

/// Statistics in the header of the data page of this number; the dictionary page is not counted.
fn page_statistics(header: &mut PageHeader) -> &mut Statistics {
    header.data_page_header.as_mut().unwrap().statistics.get_or_insert_default()
}

const FILE: &[Lie] = &[
    bytes(Footer, "magic-wrong", |file| file[0] = b'X'),
    bytes(Footer, "magic-wrong", |file| file.truncate(file.len() - 9)),
    bytes(Footer, "magic-wrong", |file| file.truncate(7)),
    bytes(Footer, "footer-unreadable", |file| {
        let at = file.len() - 8;
        file[at..at + 4].fill(0xFF);
    }),
    bytes(Footer, "footer-unreadable", |file| {
        let at = file.len() - 8 - 200;
        file[at..at + 200].fill(0xFF);
    }),
    bytes(Footer, "footer-bytes-left", |file| {
        let at = file.len() - 8;
        let len = u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
        file.truncate(at);
        file.extend([0; 3]);
        file.extend((len + 3).to_le_bytes());
        file.extend(b"PAR1");
    }),
    meta(Truth, "version-unknown", |meta| meta.version = 7),
    meta(Truth, "file-rows-wrong", |meta| meta.num_rows += 1),
    meta(Truth, "writer-unnamed", |meta| meta.created_by = None),
    meta(Truth, "key-repeats", |meta| {
        let mut pair = KeyValue::default();
        pair.key = "twice".to_owned();
        meta.key_value_metadata = Some(vec![pair.clone(), pair]);
    }),
    meta(Truth, "bytes-claimed-twice g0 name", |meta| {
        let id = chunk(meta, 0, ID);
        let end = id.column_index_offset.unwrap() + i64::from(id.column_index_length.unwrap());
        let next = id.offset_index_offset.unwrap();
        assert_eq!(end, next);
        id.offset_index_length = id.offset_index_length.map(|len| len + 5);
    }),
    meta(Truth, "row-group-ordinal-wrong g1", |meta| meta.row_groups[1].ordinal = Some(7)),
    meta(Truth, "row-group-size-wrong g0", |meta| meta.row_groups[0].total_byte_size += 1),
    meta(Truth, "row-group-compressed-size-wrong g0", |meta| {
        meta.row_groups[0].total_compressed_size = Some(1);
    }),
    meta(Truth, "row-group-offset-wrong g1", |meta| meta.row_groups[1].file_offset = Some(5)),
    meta(Truth, "row-group-columns-miscounted g1", |meta| {
        let group = &mut meta.row_groups[1];
        let last = group.columns.pop().unwrap().meta_data.unwrap();
        group.total_byte_size -= last.total_uncompressed_size;
        group.total_compressed_size =
            group.total_compressed_size.map(|size| size - last.total_compressed_size);
    }),
    meta(Truth, "sorting-column-invalid g0", |meta| {
        let columns = meta.row_groups[0].sorting_columns.as_mut().unwrap();
        columns.push(columns[0].clone());
    }),
    meta(Truth, "sorting-column-invalid g1", |meta| {
        meta.row_groups[1].sorting_columns = Some(vec![SortingColumn::new(99)]);
    }),
    meta(Truth, "row-group-rows-negative g1", |meta| {
        // An empty row group more.
        let mut group = meta.row_groups[1].clone();
        (group.num_rows, group.total_byte_size) = (-1, 0);
        (group.total_compressed_size, group.file_offset) = (Some(0), None);
        group.columns.clear();
        group.sorting_columns = None;
        group.ordinal = Some(1);
        meta.row_groups[1] = group;
        meta.num_rows = 40;
        meta.schema.truncate(1);
        meta.schema[0].num_children = Some(0);
        meta.column_orders = None;
        let first = &mut meta.row_groups[0];
        first.columns.clear();
        first.sorting_columns = None;
        (first.total_byte_size, first.total_compressed_size) = (0, Some(0));
    }),
];

const SCHEMA: &[Lie] = &[
    meta(Truth, "leaf-type-invalid small", |meta| {
        element(meta, "small").r#type = Some(Type::from(99));
    }),
    meta(Truth, "logical-type-misplaced small", |meta| {
        element(meta, "small").logical_type = Some(LogicalType::Uuid);
    }),
    meta(Truth, "logical-type-misplaced pair", |meta| {
        element(meta, "pair").logical_type = Some(LogicalType::String);
    }),
    meta(Truth, "converted-type-differs label", |meta| {
        element(meta, "label").converted_type = Some(ConvertedType::Enum);
    }),
    meta(Truth, "decimal-fields-differ amount", |meta| element(meta, "amount").scale = Some(1)),
    meta(Truth, "sibling-names-repeat", |meta| {
        element(meta, "small").name = "label".to_owned();
        for group in 0..2 {
            column(meta, group, SMALL).path_in_schema = vec!["label".to_owned()];
        }
    }),
    meta(Truth, "list-shape-wrong pair", |meta| {
        element(meta, "pair").logical_type = Some(LogicalType::List);
    }),
    meta(Truth, "map-shape-wrong pair", |meta| {
        element(meta, "pair").logical_type = Some(LogicalType::Map);
    }),
    meta(Footer, "variant-shape-wrong pair", |meta| {
        element(meta, "pair").logical_type = Some(LogicalType::Variant(VariantType::default()));
    }),
    meta(Footer, "file-shape-wrong pair", |meta| {
        element(meta, "pair").logical_type = Some(LogicalType::File);
    }),
    meta(Truth, "column-orders-miscounted", |meta| {
        meta.column_orders.as_mut().unwrap().pop();
    }),
    meta(Truth, "column-orders-missing", |meta| meta.column_orders = None),
    meta(Truth, "column-order-misplaced id", |meta| {
        meta.column_orders.as_mut().unwrap()[ID] = ColumnOrder::Ieee754TotalOrder;
    }),
    meta(Truth, "arrow-schema-unreadable", |meta| hint(meta, "no Base64")),
    meta(Truth, "arrow-schema-differs", |meta| {
        // The hint of a table of one column.
        let other =
            RecordBatch::try_from_iter([("id", Arc::new(Int64Array::from(vec![1])) as ArrayRef)]);
        let file = footer(&written(&other.unwrap(), WriteOptions::default()));
        let pairs = file.key_value_metadata.unwrap();
        hint(meta, pairs[0].value.as_deref().unwrap());
    }),
];

fn hint(meta: &mut FileMetaData, value: &str) {
    let mut pair = KeyValue::default();
    (pair.key, pair.value) = ("ARROW:schema".to_owned(), Some(value.to_owned()));
    meta.key_value_metadata = Some(vec![pair]);
}

const CHUNKS: &[Lie] = &[
    meta(Truth, "chunk-metadata-missing g1 label", |meta| chunk(meta, 1, LABEL).meta_data = None),
    meta(Truth, "not-checked g1 label", |meta| {
        let chunk = chunk(meta, 1, LABEL);
        (chunk.meta_data, chunk.encrypted_column_metadata) = (None, Some(vec![0; 28]));
    }),
    meta(Truth, "chunk-type-differs g0 id", |meta| column(meta, 0, ID).r#type = Type::Int32),
    meta(Truth, "chunk-path-differs g0 tags.list.element", |meta| {
        column(meta, 0, TAGS).path_in_schema[1] = "array".to_owned();
    }),
    meta(Footer, "chunk-codec-unknown g0 id", |meta| {
        column(meta, 0, ID).codec = CompressionCodec::from(77);
    }),
    meta(Footer, "chunk-size-negative g0 id", |meta| {
        let before = std::mem::replace(&mut column(meta, 0, ID).total_compressed_size, -1);
        let group = &mut meta.row_groups[0];
        group.total_compressed_size = group.total_compressed_size.map(|size| size - before - 1);
    }),
    meta(Truth, "chunk-outside-file g0 id", |meta| {
        column(meta, 0, ID).total_compressed_size += 1 << 30;
        let group = &mut meta.row_groups[0];
        group.total_compressed_size = group.total_compressed_size.map(|size| size + (1 << 30));
    }),
    meta(Footer, "chunk-values-too-few g1 id", |meta| column(meta, 1, ID).num_values = 39),
    meta(Footer, "dictionary-offset-misplaced g0 name", |meta| {
        // The chunk begins with its data pages then.
        let name = column(meta, 0, NAME);
        let first = name.dictionary_page_offset.replace(name.data_page_offset + 5).unwrap();
        let cut = name.data_page_offset - first;
        name.total_compressed_size -= cut;
        let group = &mut meta.row_groups[0];
        group.total_compressed_size = group.total_compressed_size.map(|size| size - cut);
    }),
    meta(Truth, "offset-index-outside-file g0 id", |meta| {
        chunk(meta, 0, ID).offset_index_offset = Some(1 << 40);
    }),
    meta(Truth, "column-index-outside-file g0 id", |meta| {
        chunk(meta, 0, ID).column_index_length = None;
    }),
    meta(Truth, "column-index-alone g0 id", |meta| {
        let id = chunk(meta, 0, ID);
        (id.offset_index_offset, id.offset_index_length) = (None, None);
    }),
    meta(Truth, "bloom-filter-outside-file g0 id", |meta| {
        column(meta, 0, ID).bloom_filter_offset = Some(1 << 40);
    }),
    meta(Truth, "bloom-filter-length-missing g0 id", |meta| {
        column(meta, 0, ID).bloom_filter_length = None;
    }),
    meta(Truth, "dictionary-offset-missing g0 name", |meta| {
        let name = column(meta, 0, NAME);
        name.data_page_offset = name.dictionary_page_offset.take().unwrap();
    }),
    meta(Truth, "data-page-offset-wrong g0 name", |meta| {
        column(meta, 0, NAME).data_page_offset += 1;
    }),
    meta(Truth, "chunk-values-wrong g0 tags.list.element", |meta| {
        let tags = column(meta, 0, TAGS);
        (tags.num_values, tags.size_statistics) = (tags.num_values + 1, None);
    }),
    meta(Truth, "chunk-uncompressed-size-wrong g0 id", |meta| {
        column(meta, 0, ID).total_uncompressed_size += 1;
        meta.row_groups[0].total_byte_size += 1;
    }),
    meta(Truth, "chunk-bytes-left g1 pair.y", |meta| {
        // The last chunk takes bytes of what comes after it.
        let last = meta.row_groups[1].columns.last_mut().unwrap();
        last.meta_data.as_mut().unwrap().total_compressed_size += 3;
        let group = &mut meta.row_groups[1];
        group.total_compressed_size = group.total_compressed_size.map(|size| size + 3);
        // Which is an index that is given up.
        let id = chunk(meta, 0, ID);
        (id.column_index_offset, id.column_index_length) = (None, None);
    }),
    meta(Truth, "encoding-unlisted g0 label", |meta| {
        column(meta, 0, LABEL).encodings = vec![Encoding::Rle];
    }),
    meta(Truth, "encoding-unused g0 label", |meta| {
        column(meta, 0, LABEL).encodings.push(Encoding::DeltaByteArray);
    }),
    meta(Truth, "encoding-stats-wrong g0 label", |meta| {
        column(meta, 0, LABEL).encoding_stats.as_mut().unwrap()[0].count += 1;
    }),
    meta(Footer, "encoding-stats-negative g0 label", |meta| {
        column(meta, 0, LABEL).encoding_stats.as_mut().unwrap()[0].count = -1;
    }),
];

const STATISTICS: &[Lie] = &[
    meta(Footer, "null-count-impossible g0 id", |meta| {
        statistics(meta, 0, ID).null_count = Some(1000);
    }),
    meta(Footer, "distinct-count-impossible g0 name", |meta| {
        statistics(meta, 0, NAME).distinct_count = Some(-2);
    }),
    meta(Truth, "nan-count-impossible g0 id", |meta| statistics(meta, 0, ID).nan_count = Some(1)),
    meta(Truth, "bound-length-wrong g0 id", |meta| {
        statistics(meta, 0, ID).min_value = Some(vec![0; 3]);
    }),
    meta(Footer, "bounds-reversed g0 id", |meta| {
        let id = statistics(meta, 0, ID);
        std::mem::swap(&mut id.min_value, &mut id.max_value);
    }),
    meta(Truth, "histogram-miscounted g0 name", |meta| {
        sizes(meta, 0, NAME).definition_level_histogram.as_mut().unwrap().pop();
    }),
    meta(Truth, "unencoded-bytes-misplaced g0 id", |meta| {
        sizes(meta, 0, ID).unencoded_byte_array_data_bytes = Some(5);
    }),
    meta(Truth, "geometry-statistics-invalid g0 geom", |meta| {
        let geom = column(meta, 0, GEOM).geospatial_statistics.as_mut().unwrap();
        geom.geospatial_types.as_mut().unwrap().push(99);
    }),
    meta(Truth, "geometry-statistics-invalid g0 geom", |meta| {
        let geom = column(meta, 0, GEOM).geospatial_statistics.as_mut().unwrap();
        geom.bbox.as_mut().unwrap().zmin = Some(1.0);
    }),
    meta(Truth, "bound-nan g0 price", |meta| {
        statistics(meta, 0, PRICE).min_value = Some(f64::NAN.to_le_bytes().to_vec());
    }),
    meta(Truth, "bound-not-text g0 name", |meta| {
        let name = statistics(meta, 0, NAME);
        (name.max_value, name.is_max_value_exact) = (Some(vec![0xFF]), Some(false));
    }),
    meta(Truth, "bounds-without-order g0 geom", |meta| {
        let geom = statistics(meta, 0, GEOM);
        (geom.min_value, geom.max_value) = (Some(vec![0]), Some(vec![0xFF]));
    }),
    meta(Truth, "legacy-bounds-alone g0 id", |meta| {
        let id = statistics(meta, 0, ID);
        (id.min, id.max) = (id.min_value.take(), id.max_value.take());
    }),
    meta(Truth, "bound-one-sided g0 id", |meta| statistics(meta, 0, ID).min_value = None),
    meta(Truth, "bounds-of-nothing g0 none", |meta| {
        let none = statistics(meta, 0, NONE);
        (none.min_value, none.max_value) = (Some(vec![0; 4]), Some(vec![0; 4]));
    }),
];

const PAGES: &[Lie] = &[
    bytes(Truth, "page-header-unreadable g1 label p1", |file| {
        let mut meta = footer(file);
        let start = chunk(&mut meta, 1, LABEL).meta_data.as_ref().unwrap().data_page_offset;
        let start = start as usize;
        let (header, len) = PageHeader::from_thrift(&file[start..]).unwrap();
        let at = start + len + header.compressed_page_size as usize;
        file[at..at + 8].fill(0xFF);
    }),
    parts(Truth, "page-header-incomplete g0 label p0", |model| {
        model.chunks[0][LABEL].pages[0].lie = Some(|header| header.data_page_header = None);
    }),
    parts(Truth, "page-outside-chunk g0 label p1", |model| {
        model.chunks[0][LABEL].pages[1].lie = Some(|header| header.compressed_page_size += 1000);
    }),
    parts(Pages, "dictionary-page-misplaced g0 name dictionary", |model| {
        model.chunks[0][NAME].pages.swap(0, 1);
    }),
    parts(Truth, "page-checksum-wrong g1 price p1", |model| {
        model.chunks[1][PRICE].pages[1].lie = Some(|header| header.crc = Some(5));
    }),
    parts(Truth, "page-checksum-wrong g1 name dictionary", |model| {
        model.chunks[1][NAME].pages[0].lie = Some(|header| header.crc = Some(5));
    }),
    parts(Truth, "page-body-unreadable g0 label p0", |model| {
        model.chunks[0][LABEL].pages[0].lie = Some(|header| header.uncompressed_page_size += 1);
    }),
    parts(Truth, "page-levels-unreadable g0 flag p1", |model| {
        let body = &mut model.chunks[0][FLAG].pages[1].body;
        // One level, in place of all.
        let len = u32::from_le_bytes(body[..4].try_into().unwrap()) as usize;
        body.splice(..4 + len, [2, 0, 0, 0, 2, 1]);
    }),
    parts_v2(Truth, "page-rows-wrong g0 id p0", |model| {
        model.chunks[0][ID].pages[0].lie =
            Some(|header| header.data_page_header_v2.as_mut().unwrap().num_rows += 1);
    }),
    parts_v2(Truth, "page-nulls-wrong g0 name p1", |model| {
        model.chunks[0][NAME].pages[2].lie =
            Some(|header| header.data_page_header_v2.as_mut().unwrap().num_nulls += 1);
    }),
    parts(Truth, "chunk-rows-wrong g0 tags.list.element", |model| {
        let tags = &mut model.chunks[0][TAGS];
        let page = tags.pages.pop().unwrap().header.data_page_header.unwrap();
        (tags.columns, tags.offsets) = (None, None);
        let tags = column(&mut model.meta, 0, TAGS);
        tags.num_values -= i64::from(page.num_values);
        (tags.statistics, tags.size_statistics, tags.encoding_stats) = (None, None, None);
    }),
    parts(Truth, "encoding-misplaced g0 label p0", |model| {
        model.chunks[0][LABEL].pages[0].lie = Some(|header| {
            header.data_page_header.as_mut().unwrap().encoding = Encoding::DeltaBinaryPacked;
        });
        let label = column(&mut model.meta, 0, LABEL);
        label.encodings.push(Encoding::DeltaBinaryPacked);
        label.encoding_stats = None;
    }),
    parts(Truth, "dictionary-missing g0 name p0", |model| {
        model.chunks[0][NAME].pages.remove(0);
        column(&mut model.meta, 0, NAME).encoding_stats = None;
    }),
    parts(Truth, "page-statistics-redundant g0 id", |model| {
        model.chunks[0][ID].pages[0].lie =
            Some(|header| page_statistics(header).null_count = Some(0));
    }),
    parts(Truth, "page-bytes-left g0 label p1", |model| {
        model.chunks[0][LABEL].pages[1].body.extend([0; 3]);
    }),
];

const INDEXES: &[Lie] = &[
    bytes(Truth, "offset-index-unreadable g0 id", |file| {
        let at = chunk(&mut footer(file), 0, ID).offset_index_offset.unwrap() as usize;
        file[at..at + 8].fill(0xFF);
    }),
    parts(Truth, "offset-index-miscounted g0 label", |model| {
        let offsets = model.chunks[0][LABEL].offsets.as_mut().unwrap();
        offsets.page_locations.pop();
    }),
    parts(Truth, "offset-index-offset-wrong g0 label p1", |model| {
        model.chunks[0][LABEL].offsets_lie = Some(|offsets| offsets.page_locations[1].offset += 1);
    }),
    parts(Truth, "offset-index-size-wrong g0 label p0", |model| {
        model.chunks[0][LABEL].offsets_lie =
            Some(|offsets| offsets.page_locations[0].compressed_page_size -= 1);
    }),
    parts(Truth, "offset-index-row-wrong g0 tags.list.element p1", |model| {
        model.chunks[0][TAGS].offsets_lie =
            Some(|offsets| offsets.page_locations[1].first_row_index += 1);
    }),
    parts(Truth, "offset-index-bytes-wrong g0 name p1", |model| {
        let offsets = model.chunks[0][NAME].offsets.as_mut().unwrap();
        offsets.unencoded_byte_array_data_bytes.as_mut().unwrap()[1] += 1;
    }),
    bytes(Truth, "column-index-unreadable g1 id", |file| {
        let at = chunk(&mut footer(file), 1, ID).column_index_offset.unwrap() as usize;
        file[at..at + 8].fill(0xFF);
    }),
    parts(Truth, "column-index-miscounted g0 id", |model| {
        let columns = model.chunks[0][ID].columns.as_mut().unwrap();
        columns.null_counts.as_mut().unwrap().pop();
    }),
    parts(Truth, "column-index-bound-length-wrong g0 id p1", |model| {
        model.chunks[0][ID].columns.as_mut().unwrap().min_values[1] = vec![1; 3];
    }),
    parts(Pages, "column-index-bounds-reversed g0 id p0", |model| {
        let columns = model.chunks[0][ID].columns.as_mut().unwrap();
        columns.boundary_order = BoundaryOrder::Unordered;
        columns.min_values[0] = long(1 << 20).unwrap();
    }),
    parts(Truth, "boundary-order-wrong g1 id p1", |model| {
        let columns = model.chunks[1][ID].columns.as_mut().unwrap();
        columns.boundary_order = BoundaryOrder::Descending;
    }),
    parts(Truth, "bloom-filter-unreadable g0 id", |model| {
        model.chunks[0][ID].bloom.as_mut().unwrap().0.num_bytes = 33;
    }),
    meta(Truth, "bloom-filter-length-wrong g0 id", |meta| {
        let id = column(meta, 0, ID);
        id.bloom_filter_length = id.bloom_filter_length.map(|len| len - 1);
    }),
];

const VALUES: &[Lie] = &[
    parts(Truth, "values-unreadable g0 label p1", |model| {
        model.chunks[0][LABEL].pages[1].body[..4].fill(0x7F);
    }),
    parts(Truth, "dictionary-index-invalid g1 name p0", |model| {
        let body = &mut model.chunks[1][NAME].pages[1].body;
        let len = u32::from_le_bytes(body[..4].try_into().unwrap()) as usize;
        // Indices of 8 bits: a run of 40 times 200.
        body.splice(4 + len.., [8, 80, 200]);
    }),
    parts(Truth, "text-not-utf8 g0 label p0", |model| {
        model.chunks[0][LABEL].pages[0].body[6] = 0xFF;
    }),
    parts(Truth, "json-invalid g1 doc p1", |model| {
        model.chunks[1][DOC].pages[1].body[4] = b'[';
    }),
    parts(Truth, "decimal-too-large g0 amount p1", |model| {
        model.chunks[0][AMOUNT].pages[1].body[..4].copy_from_slice(&i32::MIN.to_le_bytes());
    }),
    parts(Truth, "integer-too-wide g0 small p0", |model| {
        model.chunks[0][SMALL].pages[0].body[..4].copy_from_slice(&300i32.to_le_bytes());
    }),
    parts(Truth, "time-outside-day g0 time p0", |model| {
        model.chunks[0][TIME].pages[0].body[..4].copy_from_slice(&86_400_000i32.to_le_bytes());
    }),
    parts(Truth, "geometry-invalid g0 geom p0", |model| {
        // Neither byte order.
        let at = 4;
        model.chunks[0][GEOM].pages.iter_mut().take(1).for_each(|page| page.body[at] = 9);
    }),
    parts(Truth, "dictionary-unsorted g0 name dictionary", |model| {
        model.chunks[0][NAME].pages[0].lie = Some(|header| {
            header.dictionary_page_header.as_mut().unwrap().is_sorted = Some(true);
        });
    }),
];

const TRUTH: &[Lie] = &[
    meta(Truth, "chunk-min-too-large g1 id", |meta| {
        let id = statistics(meta, 1, ID);
        (id.min_value, id.is_min_value_exact) = (long(401), None);
    }),
    meta(Truth, "chunk-max-too-small g1 id", |meta| {
        let id = statistics(meta, 1, ID);
        (id.max_value, id.is_max_value_exact) = (long(789), None);
    }),
    meta(Truth, "chunk-min-not-exact g0 id", |meta| statistics(meta, 0, ID).min_value = long(-1)),
    meta(Truth, "chunk-max-not-exact g0 id", |meta| statistics(meta, 0, ID).max_value = long(391)),
    meta(Truth, "chunk-null-count-wrong g0 flag", |meta| {
        statistics(meta, 0, FLAG).null_count = Some(3);
    }),
    meta(Truth, "chunk-nan-count-wrong g1 price", |meta| {
        statistics(meta, 1, PRICE).nan_count = Some(0);
    }),
    meta(Truth, "chunk-distinct-count-wrong g0 name", |meta| {
        statistics(meta, 0, NAME).distinct_count = Some(6);
    }),
    meta(Truth, "chunk-legacy-min-too-large g0 id", |meta| statistics(meta, 0, ID).min = long(1)),
    meta(Truth, "chunk-legacy-max-too-small g0 id", |meta| statistics(meta, 0, ID).max = long(1)),
    meta(Truth, "chunk-bytes-wrong g0 label", |meta| {
        sizes(meta, 0, LABEL).unencoded_byte_array_data_bytes = Some(1);
    }),
    meta(Truth, "chunk-definition-histogram-wrong g0 name", |meta| {
        let counts = sizes(meta, 0, NAME).definition_level_histogram.as_mut().unwrap();
        (counts[0], counts[1]) = (counts[0] + 1, counts[1] - 1);
    }),
    meta(Truth, "chunk-repetition-histogram-wrong g0 tags.list.element", |meta| {
        let counts = sizes(meta, 0, TAGS).repetition_level_histogram.as_mut().unwrap();
        (counts[0], counts[1]) = (counts[0] + 1, counts[1] - 1);
    }),
    meta(Truth, "chunk-box-too-small g1 geom", |meta| {
        let geom = column(meta, 1, GEOM).geospatial_statistics.as_mut().unwrap();
        geom.bbox.as_mut().unwrap().ymin += 1.0;
    }),
    // A box around the antimeridian, without what lies between its sides.
    meta(Truth, "chunk-box-too-small g1 geom", |meta| {
        let geom = column(meta, 1, GEOM).geospatial_statistics.as_mut().unwrap();
        let bbox = geom.bbox.as_mut().unwrap();
        (bbox.xmin, bbox.xmax) = (bbox.xmax, bbox.xmin);
    }),
    meta(Truth, "chunk-geometry-type-missing g1 geom", |meta| {
        let geom = column(meta, 1, GEOM).geospatial_statistics.as_mut().unwrap();
        geom.geospatial_types = Some(vec![2]);
    }),
    parts(Truth, "page-min-too-large g0 label p0", |model| {
        model.chunks[0][LABEL].pages[0].lie = Some(|header| {
            let label = page_statistics(header);
            label.min_value = Some(b"label 001".to_vec());
            label.max_value = Some(b"z".to_vec());
        });
    }),
    parts(Truth, "page-max-too-small g0 label p1", |model| {
        model.chunks[0][LABEL].pages[1].lie = Some(|header| {
            let label = page_statistics(header);
            label.min_value = Some(b"a".to_vec());
            label.max_value = Some(b"label 03".to_vec());
        });
    }),
    parts(Truth, "page-min-not-exact g0 label p0", |model| {
        model.chunks[0][LABEL].pages[0].lie = Some(|header| {
            let label = page_statistics(header);
            label.min_value = Some(b"a".to_vec());
            label.max_value = Some(b"z".to_vec());
            label.is_min_value_exact = Some(true);
        });
    }),
    parts(Truth, "page-max-not-exact g0 label p0", |model| {
        model.chunks[0][LABEL].pages[0].lie = Some(|header| {
            let label = page_statistics(header);
            label.min_value = Some(b"a".to_vec());
            label.max_value = Some(b"z".to_vec());
            label.is_max_value_exact = Some(true);
        });
    }),
    parts(Truth, "page-null-count-wrong g0 label p0", |model| {
        model.chunks[0][LABEL].pages[0].lie =
            Some(|header| page_statistics(header).null_count = Some(1));
    }),
    parts(Truth, "page-nan-count-wrong g0 ratio p1", |model| {
        model.chunks[0][RATIO].pages[1].lie =
            Some(|header| page_statistics(header).nan_count = Some(1));
    }),
    parts(Truth, "page-distinct-count-wrong g0 label p0", |model| {
        model.chunks[0][LABEL].pages[0].lie =
            Some(|header| page_statistics(header).distinct_count = Some(19));
    }),
    parts(Truth, "page-legacy-min-too-large g0 small p0", |model| {
        model.chunks[0][SMALL].pages[0].lie = Some(|header| {
            let small = page_statistics(header);
            (small.min_value, small.max_value) = (Some(vec![0x80; 4]), Some(vec![0x7F; 4]));
            small.min = Some(vec![0; 4]);
        });
    }),
    parts(Truth, "page-legacy-max-too-small g0 small p1", |model| {
        model.chunks[0][SMALL].pages[1].lie = Some(|header| {
            let small = page_statistics(header);
            (small.min_value, small.max_value) = (Some(vec![0x80; 4]), Some(vec![0x7F; 4]));
            small.max = Some(vec![0x80; 4]);
        });
    }),
    parts(Truth, "column-index-null-page-wrong g0 id p0", |model| {
        let columns = model.chunks[0][ID].columns.as_mut().unwrap();
        columns.null_pages[0] = true;
        columns.min_values[0].clear();
        columns.max_values[0].clear();
    }),
    parts(Truth, "column-index-min-too-large g0 id p1", |model| {
        model.chunks[0][ID].columns.as_mut().unwrap().min_values[1] = long(201).unwrap();
    }),
    parts(Truth, "column-index-max-too-small g0 id p0", |model| {
        model.chunks[0][ID].columns.as_mut().unwrap().max_values[0] = long(189).unwrap();
    }),
    parts(Truth, "column-index-null-count-wrong g0 name p1", |model| {
        let columns = model.chunks[0][NAME].columns.as_mut().unwrap();
        columns.null_counts.as_mut().unwrap()[1] += 1;
    }),
    parts(Truth, "column-index-nan-count-wrong g0 price p0", |model| {
        let columns = model.chunks[0][PRICE].columns.as_mut().unwrap();
        columns.nan_counts.as_mut().unwrap()[0] += 1;
    }),
    parts(Truth, "column-index-definition-histogram-wrong g0 name p1", |model| {
        let columns = model.chunks[0][NAME].columns.as_mut().unwrap();
        columns.definition_level_histograms.as_mut().unwrap()[3] += 1;
    }),
    parts(Truth, "column-index-repetition-histogram-wrong g0 tags.list.element p0", |model| {
        let columns = model.chunks[0][TAGS].columns.as_mut().unwrap();
        columns.repetition_level_histograms.as_mut().unwrap()[1] += 1;
    }),
    parts(Truth, "bloom-filter-of-boolean g0 flag", |model| {
        model.chunks[0][FLAG].bloom = model.chunks[0][ID].bloom.clone();
    }),
    parts(Truth, "bloom-filter-misses-value g1 id p0", |model| {
        model.chunks[1][ID].bloom.as_mut().unwrap().1.fill(0);
    }),
    meta(Truth, "rows-unsorted g1", |meta| {
        meta.row_groups[1].sorting_columns.as_mut().unwrap()[0].descending = true;
    }),
    meta(Truth, "rows-unsorted g0", |meta| {
        let columns = vec![SortingColumn::new(NAME as i32), SortingColumn::new(ID as i32)];
        meta.row_groups[0].sorting_columns = Some(columns);
    }),
];

#[test]
fn levels_that_are_no_lists_are_found() {
    let schema = || vec![leaf("v", Type::Int32, FieldRepetitionType::Repeated)];
    let v1_of = |rep: &[u32], def: &[u32]| {
        let values = vec![7; def.iter().filter(|level| **level == 1).count()];
        let body = [levels_v1(rep, 1), levels_v1(def, 1), ints(&values)].concat();
        v1(rep.len(), Encoding::Plain, &body)
    };
    let v2_of = |rep: &[u32], rows: usize| {
        let (rep_bytes, def) = (levels_v2(rep, 1), levels_v2(&vec![1; rep.len()], 1));
        v2(rep.len(), 0, rows, Encoding::Plain, &rep_bytes, &def, &ints(&vec![7; rep.len()]))
    };
    for (found, slots, rows, pages) in [
        ("chunk-starts-in-row g0 v p0", 2, 1, vec![v1_of(&[1, 0], &[1, 1])]),
        ("levels-inconsistent g0 v p0", 2, 1, vec![v1_of(&[0, 1], &[0, 1])]),
        ("levels-inconsistent g0 v p1", 2, 1, vec![v1_of(&[0], &[0]), v1_of(&[1], &[1])]),
        ("page-starts-in-row g0 v p1", 3, 2, vec![v2_of(&[0], 1), v2_of(&[1, 0], 1)]),
    ] {
        let chunks = vec![Chunk::new(Type::Int32, slots, &pages)];
        let lines: Vec<String> = findings(file(schema(), rows, chunks), Truth)
            .iter()
            .filter(|finding| finding.severity() == Severity::Error)
            .map(line)
            .collect();
        assert_eq!(lines, [found]);
    }
}
