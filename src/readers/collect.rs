//! [`FileFeatures`]: the features of a file, found in its metadata.
//!
//! Trap: `encodings` of a column chunk names the encodings of its levels, too; the counts of pages
//! (`encoding_stats`) do not, but not all writers state them.

use std::collections::HashSet;

use arrow_schema::DataType;

use super::feature::{EncodedAs, Feature};
use super::groups::features_of_group;
use crate::error::Result;
use crate::format::{
    ColumnChunkRef, ColumnMetaDataRef, ColumnOrders, ConvertedType, Encoding, LogicalType,
    PageType, SchemaElement, TimeUnit, Type,
};
use crate::read::chunk_range;
use crate::read::metadata::Metadata;
use crate::schema::{ArrowOptions, Leaf, Mapping, Node, Physical, Projection, refusals, to_arrow};

/// The features of a file.
pub(super) struct FileFeatures {
    /// Those of the whole file.
    pub(super) features: Vec<Feature>,
    /// The path of each leaf, and the features of it and of the groups around it.
    pub(super) columns: Vec<(String, Vec<Feature>)>,
}

impl FileFeatures {
    /// # Errors
    /// `Malformed` if the metadata of a column chunk are broken.
    pub(super) fn new(metadata: &Metadata) -> Result<Self> {
        let schema = metadata.schema();
        let hints = Hints::new(metadata);
        let mut columns = Vec::with_capacity(schema.leaves_len());
        let mut names = ReaderNames::default();
        for index in 0..schema.leaves_len() {
            let node = schema.leaf_node(index)?;
            let mut features = Vec::new();
            if let Some(name) = names.duplicate(node) {
                features.push(name);
            }
            of_node(node, &mut features);
            let hint = hints.hinted(index);
            match schema.leaf(index) {
                Ok(leaf) => {
                    of_leaf(&leaf, &mut features);
                    let is_dictionary = matches!(hint, Some(DataType::Dictionary(..)));
                    of_chunks(metadata, &leaf, is_dictionary, &mut features)?;
                }
                Err(e) => features.push(Feature::NotOurs(e.message().to_owned())),
            }
            features.extend(hints.refusal(index).cloned().map(Feature::NotOurs));
            features.extend(hint.cloned().map(Feature::Hint));
            columns.push((node.path().dotted(), features));
        }
        Ok(Self { features: of_file(metadata), columns })
    }
}

/// The features of no column in particular.
fn of_file(metadata: &Metadata) -> Vec<Feature> {
    let (schema, head) = (metadata.schema(), metadata.index().head());
    let mut features = Vec::new();
    if metadata.is_encrypted() {
        features.push(Feature::EncryptedFooter);
    }
    let leaves = schema.leaves_len();
    if leaves == 0 {
        features.push(Feature::NoColumns);
    }
    if head.column_orders.as_ref().is_some_and(|orders| ColumnOrders::len(orders) != leaves) {
        features.push(Feature::ColumnOrders);
    }
    let is_empty =
        |element: &SchemaElement| element.r#type.is_none() && element.num_children == Some(0);
    if schema.elements().skip(1).any(|element| is_empty(&element)) {
        features.push(Feature::EmptyGroup);
    }
    if schema.elements().skip(1).any(|element| element.repetition_type.is_none()) {
        features.push(Feature::NoRepetition);
    }
    features
}

/// The features of a leaf that its element and the groups around it have.
fn of_node(node: Node<'_>, out: &mut Vec<Feature>) {
    let element = node.element();
    let (logical, converted) = (&element.logical_type, element.converted_type);
    // Also where they do not belong: a reader may not know their numbers.
    out.extend(match logical {
        Some(LogicalType::Unrecognized(..)) => Some(Feature::UnknownLogicalType),
        Some(LogicalType::Geometry(_)) => Some(Feature::Geometry),
        Some(LogicalType::Geography(_)) => Some(Feature::Geography),
        Some(LogicalType::Variant(_)) => {
            Some(Feature::Variant { in_order: false, shredded: false })
        }
        Some(LogicalType::File) => Some(Feature::FileReference),
        _ => None,
    });
    if matches!(logical, Some(LogicalType::File)) {
        out.push(Feature::FileOnLeaf);
    }
    match converted {
        Some(ConvertedType::Interval) if logical.is_some() => {
            out.push(Feature::IntervalWithLogical);
        }
        Some(ConvertedType::Unknown(n)) => out.push(Feature::UnknownConvertedType(n)),
        Some(ConvertedType::Bson) => out.push(Feature::BsonConverted),
        _ => {}
    }
    if element.precision.is_some() != element.scale.is_some() {
        out.push(Feature::HalfDecimal);
    }
    out.extend(match (logical, converted) {
        (Some(LogicalType::String), None) => Some(Feature::OnlyLogical("STRING")),
        (Some(LogicalType::Enum), None) => Some(Feature::OnlyLogical("ENUM")),
        (Some(LogicalType::Json), None) => Some(Feature::OnlyLogical("JSON")),
        _ => None,
    });
    let mut depth = 1;
    let mut around = node.parent();
    while let Some(group) = around {
        features_of_group(group, out);
        around = group.parent();
        depth += 1;
    }
    out.push(Feature::Depth(depth));
}

/// The features of the type of a leaf.
fn of_leaf(leaf: &Leaf, out: &mut Vec<Feature>) {
    if leaf.physical == Physical::Int96 {
        out.push(Feature::Int96);
    }
    if leaf.converted == Some(ConvertedType::Interval) {
        out.push(Feature::Interval);
    }
    let Some(logical) = &leaf.logical else { return };
    out.extend(match logical {
        LogicalType::Decimal(decimal) => Some(Feature::Decimal(decimal.precision)),
        LogicalType::Unknown => Some(Feature::AllNull),
        LogicalType::Time(time) => {
            Some(Feature::Time { unit: time.unit.clone(), is_utc: time.is_adjusted_to_utc })
        }
        LogicalType::Timestamp(time) if time.unit == TimeUnit::Nanos => {
            Some(Feature::TimestampNanos)
        }
        LogicalType::Float16 => Some(Feature::Float16),
        LogicalType::Uuid => Some(Feature::Uuid),
        _ => None,
    });
}

/// The features of the column chunks of a leaf, each once.
fn of_chunks(
    metadata: &Metadata,
    leaf: &Leaf,
    hinted_dictionary: bool,
    out: &mut Vec<Feature>,
) -> Result<()> {
    let mut known = HashSet::new();
    let mut add = |feature: Feature| {
        if known.insert(feature.key_in_chunks()) {
            out.push(feature);
        }
    };
    let footer = metadata.footer();
    for row_group in 0..footer.row_groups() {
        let chunk: ColumnChunkRef<'_> = footer.column_chunk_ref(row_group, leaf.index)?;
        if chunk.is_encrypted() {
            add(Feature::EncryptedColumn);
        }
        if chunk.file_path.is_some_and(|path| !path.is_empty()) {
            add(Feature::ElsewhereFile);
        }
        let Some(meta) = &chunk.meta_data else { continue };
        if is_short(metadata, row_group, leaf.index, &chunk) {
            add(Feature::ShortChunk);
        }
        if meta.path_in_schema.iter().next().is_none() {
            add(Feature::NoPathInSchema);
        }
        if meta.num_values != 0 {
            add(Feature::Codec(meta.codec));
        }
        of_encodings(meta, leaf, hinted_dictionary, &mut add);
        let is_delta = meta.encodings.iter().any(|of| of == Encoding::DeltaBinaryPacked);
        let is_of_duckdb = metadata.created_by().is_some_and(|name| name.starts_with("DuckDB"));
        let is_wide = is_delta && is_of_duckdb && leaf.physical == Physical::Int32;
        if is_wide && !differences_fit(meta) {
            add(Feature::WideDeltas);
        }
    }
    Ok(())
}

/// Whether the bounds of an INT32 chunk show that differences of neighbours, less the least of
/// them, take no more than 32 bits.
fn differences_fit(meta: &ColumnMetaDataRef<'_>) -> bool {
    let Some(of) = &meta.statistics else { return false };
    let bound = |bytes: Option<&[u8]>| Some(i32::from_le_bytes(bytes?.try_into().ok()?));
    let bounds = bound(of.min_value).zip(bound(of.max_value));
    // Those of unsigned values beyond 2^31 are in another order: the difference is negative.
    let width = bounds.and_then(|(min, max)| max.checked_sub(min));
    width.is_some_and(|width| width >= 0)
}

/// Whether a chunk is longer than its metadata say.
fn is_short(
    metadata: &Metadata,
    row_group: usize,
    leaf: usize,
    chunk: &ColumnChunkRef<'_>,
) -> bool {
    let Some(meta) = &chunk.meta_data else { return false };
    let (footer, file_len) = (metadata.footer(), metadata.file_len());
    let Ok(range) = chunk_range(footer, file_len, row_group, leaf, chunk) else { return false };
    let len = range.end - range.start;
    u64::try_from(meta.total_compressed_size).is_ok_and(|stated| stated < len)
}

fn of_encodings(
    meta: &ColumnMetaDataRef<'_>,
    leaf: &Leaf,
    hinted_dictionary: bool,
    add: &mut impl FnMut(Feature),
) {
    let listed: Vec<Encoding> = meta.encodings.iter().collect();
    let has = |encoding| listed.contains(&encoding);
    let levels = leaf.max_def > 0 || leaf.max_rep > 0;
    if levels && has(Encoding::BitPacked) && !has(Encoding::Rle) {
        add(Feature::BitPackedLevels);
    }
    let stats: Vec<_> = meta.encoding_stats.iter().flat_map(|stats| stats.iter()).collect();
    let of_pages = stats.iter().filter(|of| {
        matches!(of.page_type, PageType::DataPage | PageType::DataPageV2) && of.count != 0
    });
    let of_pages: Vec<Encoding> = of_pages.map(|of| of.encoding).collect();
    let of_levels = |encoding: &Encoding| match encoding {
        Encoding::BitPacked => true,
        Encoding::Rle => leaf.physical != Physical::Boolean,
        _ => false,
    };
    let values = match of_pages.is_empty() {
        true => listed.iter().filter(|encoding| !of_levels(encoding)).copied().collect(),
        false => of_pages,
    };
    for encoding in listed.iter().copied().chain(stats.iter().map(|of| of.encoding)) {
        if matches!(encoding, Encoding::Alp | Encoding::Pfor | Encoding::Unknown(_)) {
            add(Feature::NewEncoding(encoding));
        }
    }
    for encoding in values {
        let encoding = match encoding {
            Encoding::PlainDictionary => Encoding::RleDictionary,
            other => other,
        };
        let (physical, logical): (Type, _) = (leaf.physical.format_type(), leaf.logical.clone());
        add(Feature::Encoding(EncodedAs { encoding, physical, logical, hinted_dictionary }));
    }
}

/// The names of top-level columns so far.
#[derive(Default)]
struct ReaderNames {
    exact: HashSet<String>,
    small: HashSet<String>,
    last: Option<usize>,
    found: Option<Feature>,
}

impl ReaderNames {
    /// Whether a column before that of this leaf has its name.
    fn duplicate(&mut self, leaf: Node<'_>) -> Option<Feature> {
        let mut top = leaf;
        while let Some(parent) = top.parent().filter(|parent| parent.parent().is_some()) {
            top = parent;
        }
        let first = top.leaves().start;
        if self.last != Some(first) {
            self.last = Some(first);
            let name = top.name().to_owned();
            let is_new_small = self.small.insert(name.to_lowercase());
            self.found = match (self.exact.insert(name), is_new_small) {
                (false, _) => Some(Feature::DuplicateName),
                (true, false) => Some(Feature::DuplicateButForCase),
                _ => None,
            };
        }
        self.found.clone()
    }
}

/// The Arrow types that the file hints at, where Parquet has none such.
struct Hints {
    /// Of each leaf, the type with the hints if it differs from that without.
    types: Vec<Option<DataType>>,
    /// Of each leaf, why this library does not read it; empty if it reads all.
    refusals: Vec<Option<String>>,
}

impl Hints {
    fn new(metadata: &Metadata) -> Self {
        let schema = metadata.schema();
        let (all, options) = (Projection::all(), ArrowOptions::default());
        let read = |hints: &[_]| to_arrow(schema, hints, &all, &options);
        let (with, without) = (read(metadata.key_values()), read(&[]));
        let mut types = vec![None; schema.leaves_len()];
        let (Ok(with), Ok(without)) = (with, without) else {
            let refusals = refusals(schema).into_iter();
            let refusals = refusals.map(|of| of.map(|error| error.message().to_owned())).collect();
            return Self { types, refusals };
        };
        let (with, without) = (leaf_types(&with), leaf_types(&without));
        for ((leaf, hinted), (other, plain)) in with.into_iter().zip(without) {
            if let Some(found) = types.get_mut(leaf).filter(|_| leaf == other && hinted != plain) {
                *found = Some(hinted);
            }
        }
        Self { types, refusals: Vec::new() }
    }

    fn hinted(&self, leaf: usize) -> Option<&DataType> {
        self.types.get(leaf).and_then(Option::as_ref)
    }

    /// Why this library does not read a column.
    fn refusal(&self, leaf: usize) -> Option<&String> {
        self.refusals.get(leaf).and_then(Option::as_ref)
    }
}

/// The leaves of a mapping with their Arrow types.
fn leaf_types(mapping: &Mapping) -> Vec<(usize, DataType)> {
    let mut types = Vec::new();
    for shape in &mapping.shapes {
        shape.for_each_leaf(&mut |leaf, shape| {
            types.push((leaf, shape.field.data_type().clone()));
        });
    }
    types
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::Reader;
    use crate::format::*;
    use crate::schema::HINT_KEY;
    use crate::steps;

    /// A file of columns of this type, with these encodings in each of two row groups.
    fn file(columns: usize, r#type: Type, encodings: &[Encoding], hint: String) -> Bytes {
        let element = |name: String| SchemaElement {
            r#type: Some(r#type),
            repetition_type: Some(FieldRepetitionType::Required),
            name,
            ..Default::default()
        };
        let num_children = i32::try_from(columns).ok();
        let mut schema = vec![SchemaElement { num_children, ..Default::default() }];
        schema.extend((0..columns).map(|i| element(format!("c{i}"))));
        let meta = ColumnMetaData {
            r#type,
            encodings: encodings.to_vec(),
            data_page_offset: 4,
            ..Default::default()
        };
        let chunk = ColumnChunk { meta_data: Some(meta), ..Default::default() };
        let row_group = RowGroup { columns: vec![chunk; columns], ..Default::default() };
        let hint = KeyValue { key: HINT_KEY.to_owned(), value: Some(hint), ..Default::default() };
        let footer = FileMetaData {
            version: 1,
            schema,
            row_groups: vec![row_group; 2],
            key_value_metadata: Some(vec![hint]),
            ..Default::default()
        };
        let footer = footer.to_thrift();
        let len = u32::try_from(footer.len()).unwrap().to_le_bytes();
        [b"PAR1", &footer[..], &len, b"PAR1"].concat().into()
    }

    fn features(file: Bytes) -> FileFeatures {
        FileFeatures::new(Reader::new(file).unwrap().metadata()).unwrap()
    }

    #[test]
    fn each_encoding_of_a_column_is_a_feature_once() {
        let encodings: Vec<Encoding> = (100..20_100).map(Encoding::from).collect();
        let found = features(file(1, Type::Int32, &encodings, String::new()));
        let [(_, of_column)] = &found.columns[..] else { panic!("one column") };
        let mut new = Vec::new();
        for feature in of_column {
            if let Feature::NewEncoding(encoding) = feature {
                new.push(*encoding);
            }
        }
        assert_eq!(new, encodings);
    }

    #[test]
    fn the_hint_is_not_read_again_for_each_refused_column() {
        let steps = |columns| {
            let file = file(columns, Type::from(99), &[], "A".repeat(50_000));
            let mut refused = 0;
            let steps = steps::taken_by(|| {
                let is_refused = |feature: &Feature| matches!(feature, Feature::NotOurs(_));
                let found = features(file).columns;
                refused = found.iter().filter(|(_, of)| of.iter().any(is_refused)).count();
            });
            assert_eq!(refused, columns);
            steps
        };
        let (few, many) = (steps(10), steps(500));
        assert!(few > 50_000 && many < 2 * few, "{few} steps, then {many}");
    }
}
