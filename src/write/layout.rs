//! [`FileLayout`]: the settings of all files of one schema, resolved before their first row.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, FieldRef, SchemaRef};

use super::column::has_keys;
use super::context::EncoderContext;
use super::geo_key::GeoKey;
use super::options::WriteOptions;
use super::row_group::{RowGroupLayout, RowSizes};
use super::sorting::CheckedSortOrder;
use crate::crypt::LeafProtection;
use crate::error::{Error, Result};
use crate::format::{FILE_VERSION, FileMetaData, KeyValue, RowGroup, SortingColumn};
use crate::geo::GeoOptions;
use crate::limits::Growth;
use crate::memory;
use crate::schema::{
    ArrowOptions, FromArrowOptions, HINT_KEY, Kind, Leaf, Physical, Projection, Schema, Shape,
    binary_of_size_0, change_hint_metadata, check_nesting, element_of, from_arrow, is_empty_group,
    schema_like, to_arrow,
};
use crate::stats::order::ValueOrder;
use crate::variant::{VariantArray, VariantPlaces, VariantShape, VariantShredding};

/// The schema of a file, and how its columns are written. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct FileLayout {
    pub(crate) row_groups: Arc<RowGroupLayout>,
    schema: Arc<Schema>,
    key_values: Vec<KeyValue>,
    pub(crate) options: WriteOptions,
    /// The shapes that the VARIANT columns in each column are shredded into.
    variants: Vec<ShapedPlaces>,
    /// The columns with a VARIANT whose shape is not known before the first rows.
    inferences: Vec<(usize, VariantPlaces<(String, VariantShredding)>)>,
}

/// VARIANT columns in a column: their paths and shapes.
type ShapedPlaces = VariantPlaces<(String, VariantShape)>;

impl FileLayout {
    /// The layout of files for batches of `schema`.
    ///
    /// # Errors
    /// `Unsupported` if the schema has a type that Parquet has no place for, `Usage` if an option
    /// does not fit it.
    pub(crate) fn new(schema: SchemaRef, options: WriteOptions) -> Result<Self> {
        check_nesting(&schema)?;
        let shredding = options.shredding_of(&schema)?;
        let variants = shredding.iter().map(|places| {
            places.map(&mut |(path, shredding)| {
                Ok(match shredding {
                    VariantShredding::Shape(shape) => Some((path.clone(), shape.clone())),
                    _ => None,
                })
            })
        });
        let variants = memory::try_collected(variants)?;
        let mut layout = Self::shredded(schema, variants, options)?;
        let is_inferred =
            |(_, of): &&(String, VariantShredding)| matches!(of, VariantShredding::Infer(_));
        layout.inferences = shredding
            .into_iter()
            .enumerate()
            .filter(|(_, places)| places.all().iter().any(is_inferred))
            .collect();
        Ok(layout)
    }

    /// The layout for batches whose VARIANT columns become columns of these shapes.
    fn shredded(
        schema: SchemaRef,
        variants: Vec<ShapedPlaces>,
        options: WriteOptions,
    ) -> Result<Self> {
        let mapping =
            FromArrowOptions::new().with_hint(options.hint).with_full_range(options.full_range);
        let shredded = |(_, shape): &(String, VariantShape), field: &FieldRef| {
            let data_type = shape.data_type_like(field.data_type());
            Arc::new(field.as_ref().clone().with_data_type(data_type))
        };
        let fields = schema.fields().iter().zip(&variants);
        let fields = fields.map(|(field, places)| places.field(field, &shredded));
        let stored = schema_like(&schema, fields)?;
        let written = from_arrow(&stored, &mapping)?;
        let mut layout =
            Self::with_schema(stored.into(), written.schema, written.key_values, options)?;
        layout.variants = memory::cloned(&variants)?;
        let row_groups = Arc::get_mut(&mut layout.row_groups).expect("it is not shared yet");
        let changed = schema.fields().iter().zip(&variants).map(|(field, places)| {
            let known = places.all();
            VariantPlaces::find(field, None, &mut |path, field, _| {
                let shape = known.iter().find(|(other, _)| other == path).map(|(_, shape)| shape);
                // A column that has this shape already stays unchanged.
                let is_other = |shape: &&VariantShape| {
                    shape.data_type_like(field.data_type()) != *field.data_type()
                };
                Ok(shape.filter(is_other).cloned())
            })
        });
        row_groups.variants = memory::try_collected(changed)?;
        row_groups.arrow = schema;
        check_shredded(row_groups)?;
        Ok(layout)
    }

    /// Finds a shape in these batches for each VARIANT column that is to have one inferred.
    ///
    /// # Errors
    /// `Usage` if a batch has another schema, `Malformed(Variant)` if a value is none.
    pub(crate) fn infer(&mut self, sample: &[RecordBatch]) -> Result<()> {
        if self.inferences.is_empty() {
            return Ok(());
        }
        let mut variants = self.variants.clone();
        sample.iter().try_for_each(|batch| self.check(batch))?;
        for (column, places) in &self.inferences {
            // The values of each place, of all batches.
            let mut found: Vec<(String, Vec<VariantArray>)> = Vec::new();
            for batch in sample {
                places.convert(batch.column(*column), None, &mut |(path, _), array, nulls| {
                    let variant = VariantArray::within(array, nulls, Growth::UNLIMITED)?;
                    match found.iter_mut().find(|(other, _)| other == path) {
                        Some((_, all)) => all.push(variant),
                        None => found.push((path.clone(), vec![variant])),
                    }
                    Ok(array.clone())
                })?;
            }
            let shapes = places.map(&mut |(path, shredding)| {
                let of_path = found.iter().find(|(other, _)| other == path);
                let values = of_path.map(|(_, all)| all.as_slice()).unwrap_or_default();
                Ok(match shredding {
                    VariantShredding::Infer(inference) => {
                        Some((path.clone(), inference.infer(values)?))
                    }
                    VariantShredding::Shape(shape) => Some((path.clone(), shape.clone())),
                    VariantShredding::Stored => None,
                })
            })?;
            if let Some(places) = variants.get_mut(*column) {
                *places = shapes;
            }
        }
        let (schema, options) = (self.row_groups.arrow.clone(), self.options.clone());
        *self = Self::shredded(schema, variants, options)?;
        Ok(())
    }

    /// Keeps the shapes that are known: no other is inferred.
    pub(crate) fn end_inference(&mut self) {
        self.inferences.clear();
    }

    /// The shapes that the VARIANT columns are shredded into, by their paths.
    pub(crate) fn shapes(&self) -> Vec<(String, VariantShape)> {
        let all = self.variants.iter().flat_map(VariantPlaces::all);
        all.filter(|(_, shape)| !shape.is_any()).cloned().collect()
    }

    /// The layout for batches of `arrow` in files of the Parquet schema `schema`.
    ///
    /// # Errors
    /// `Usage` if the values of a column cannot be stored in its place, or the two have other
    /// columns; `Unsupported` for a FIXED_LEN_BYTE_ARRAY of no bytes, which other readers refuse.
    pub(crate) fn with_schema(
        arrow: SchemaRef,
        schema: Schema,
        key_values: Vec<KeyValue>,
        options: WriteOptions,
    ) -> Result<Self> {
        let natural = ArrowOptions::new().with_hint(false);
        let mapping = to_arrow(&schema, &[], &Projection::all(), &natural)?;
        let leaves = schema.leaves()?;
        if mapping.shapes.len() != arrow.fields().len() {
            return Err(Error::usage(format_args!(
                "the batches have {} columns, the Parquet schema {}",
                arrow.fields().len(),
                mapping.shapes.len()
            )));
        }
        for (field, shape) in arrow.fields().iter().zip(&mapping.shapes) {
            fits_by_name(field, shape, &leaves)?;
        }
        let is_empty = |leaf: &&Leaf| leaf.physical == Physical::FixedLenByteArray(0);
        if let Some(leaf) = leaves.iter().find(is_empty) {
            return Err(binary_of_size_0().at_column(leaf.path.dotted()));
        }
        let mut settings = options.resolve(&schema)?;
        if key_values.iter().any(|pair| pair.key == HINT_KEY) {
            for (field, shape) in arrow.fields().iter().zip(&mapping.shapes) {
                for_each_leaf(field, shape, &mut |leaf, data_type| {
                    if let Some(settings) = settings.get_mut(leaf) {
                        settings.arrow_dictionary = holds_dictionary(data_type);
                    }
                });
            }
        }
        let expanded = arrow.fields().iter().zip(&mapping.shapes).map(|(field, shape)| {
            let mut is_expanded = false;
            for_each_leaf(field, shape, &mut |leaf, data_type| {
                let is_plain = settings.get(leaf).is_some_and(|of| !of.may_have_dictionary());
                is_expanded |= is_plain && has_keys(data_type);
            });
            is_expanded
        });
        let sizes = RowSizes::new(memory::collected(expanded)?);
        let context = Arc::new(EncoderContext::of_memory(options.memory));
        let mut tops = memory::vec_for(leaves.len())?;
        for (top, shape) in mapping.shapes.iter().enumerate() {
            shape.for_each_leaf(&mut |_, _| tops.push(top));
        }
        let sorting =
            CheckedSortOrder::new(&options.sort_order, leaves.iter().zip(tops.iter().copied()))?;
        let encryption = options.encryption.as_ref();
        let protections =
            encryption.map(|encryption| encryption.protections(&leaves)).transpose()?;
        for (settings, protection) in settings.iter_mut().zip(protections.iter().flatten()) {
            // An encrypted page gets its checksum when it is encrypted.
            settings.checksums &= protection.is_plain();
        }
        let shapes = mapping.shapes;
        let layout = RowGroupLayout {
            arrow,
            variants: Vec::new(),
            shapes,
            leaves,
            settings,
            sorting,
            context,
            protections,
            sizes,
        };
        let (row_groups, schema) = (Arc::new(layout), Arc::new(schema));
        let (variants, inferences) = (Vec::new(), Vec::new());
        let layout = Self { row_groups, schema, key_values, options, variants, inferences };
        layout.check_geo()?;
        Ok(layout)
    }

    /// Checks before the first row that the key `geo` can be stated.
    fn check_geo(&self) -> Result<()> {
        match self.options.geo {
            Some(_) => self.metadata(0, Vec::new()).map(drop),
            None => Ok(()),
        }
    }

    /// States the key `geo`.
    ///
    /// # Errors
    /// As [`WriteOptions::with_geo`] has them.
    pub(crate) fn state_geo(&mut self, geo: GeoOptions) -> Result<()> {
        self.options.geo = Some(geo);
        self.check_geo()
    }

    /// Whether a shape is inferred from the first rows of each file.
    pub(crate) fn infers_shapes(&self) -> bool {
        !self.inferences.is_empty()
    }

    /// Shares buffers with other layouts; before any row group is encoded.
    pub(crate) fn share_context(&mut self, context: &Arc<EncoderContext>) {
        if let Some(layout) = Arc::get_mut(&mut self.row_groups) {
            layout.context = context.clone();
        }
    }

    /// The footer of a file with these row groups, before anything of it is protected.
    ///
    /// # Errors
    /// `Usage` if there are more rows than the format allows.
    pub(super) fn metadata(&self, rows: u64, row_groups: Vec<RowGroup>) -> Result<FileMetaData> {
        let mut key_values = KeyValue::copied_all(&self.key_values)?;
        for pair in &self.options.key_values {
            key_values.retain(|old| old.key != pair.key);
            change_hint_metadata(&mut key_values, &pair.key, pair.value.as_deref())?;
            memory::push(&mut key_values, pair.copied()?)?;
        }
        let leaves = self.row_groups.leaves.iter().zip(&self.row_groups.settings);
        let orders = leaves.map(|(leaf, settings)| {
            ValueOrder::for_leaf(leaf, settings.total_order).column_order()
        });
        let mut metadata = FileMetaData {
            version: FILE_VERSION,
            schema: memory::collected(self.schema.elements())?,
            num_rows: i64::try_from(rows).map_err(|_| Error::usage("more than 2^63 rows"))?,
            row_groups,
            key_value_metadata: (!key_values.is_empty()).then_some(key_values),
            created_by: Some(self.options.created_by.clone()),
            column_orders: Some(memory::collected(orders)?),
            ..FileMetaData::default()
        };
        if let Some(geo) = &self.options.geo {
            let protections = self.row_groups.protections.as_deref().unwrap_or_default();
            let is_hidden = |leaf: usize| protections.get(leaf).is_some_and(|of| !of.is_plain());
            let (schema, is_hidden) = (&*self.schema, &is_hidden);
            GeoKey { options: geo, schema, is_hidden, is_of_same_rows: false }
                .state(&mut metadata)?;
        }
        Ok(metadata)
    }

    /// Bytes of the footer of a file without row groups, about.
    pub(super) fn footer_bytes(&self) -> usize {
        let pairs = self.key_values.iter().chain(&self.options.key_values);
        let pairs = pairs.map(|pair| pair.key.len() + pair.value.as_ref().map_or(0, String::len));
        let leaves = &self.row_groups.leaves;
        let names = leaves.iter().flat_map(|leaf| leaf.path.names()).map(|name| name.len());
        leaves.len() * LEAF_BYTES + names.sum::<usize>() + pairs.sum::<usize>() + FOOTER_BYTES
    }

    /// Checks that a batch has the schema.
    pub(crate) fn check(&self, batch: &RecordBatch) -> Result<()> {
        let (ours, theirs) = (&self.row_groups.arrow, batch.schema_ref());
        if Arc::ptr_eq(ours, theirs) {
            return Ok(());
        }
        if ours.fields().len() != theirs.fields().len() {
            return Err(Error::usage(format_args!(
                "the batch has {} columns, the file {}",
                theirs.fields().len(),
                ours.fields().len()
            )));
        }
        for (ours, theirs) in ours.fields().iter().zip(theirs.fields()) {
            if ours.name() != theirs.name() || !same_type(ours.data_type(), theirs.data_type()) {
                return Err(Error::usage(format_args!(
                    "the batch has a column \"{}\" of {}, where the file has \"{}\" of {}",
                    theirs.name(),
                    theirs.data_type(),
                    ours.name(),
                    ours.data_type()
                ))
                .at_column(ours.name().as_str()));
            }
        }
        Ok(())
    }
}

/// Checks that shredding does not invalidate settings of single leaves.
///
/// # Errors
/// `Usage` if values would move from a leaf with a key into one without, or if rows are stated to
/// be sorted by a leaf of a column that is shredded.
fn check_shredded(layout: &RowGroupLayout) -> Result<()> {
    for (shape, places) in layout.shapes.iter().zip(&layout.variants) {
        places.for_each_shape(shape, &mut |_, shape| check_shredded_node(layout, shape))?;
    }
    Ok(())
}

fn check_shredded_node(layout: &RowGroupLayout, shape: &Shape) -> Result<()> {
    let mut leaves = Vec::new();
    shape.for_each_leaf(&mut |leaf, _| leaves.push(leaf));
    let name = shape.field.name();
    let protections = layout.protections.as_deref().unwrap_or_default();
    let is_plain: Vec<bool> = leaves
        .iter()
        .filter_map(|leaf| protections.get(*leaf).map(LeafProtection::is_plain))
        .collect();
    if is_plain.contains(&true) && is_plain.contains(&false) {
        return Err(Error::usage(format_args!(
            "column \"{name}\" is shredded, so that its values stand in leaves that have no \
             key, and others of it have one: give the key to \"{name}\" as a whole"
        )));
    }
    let sorted = layout.sorting.as_ref().map(CheckedSortOrder::columns).unwrap_or_default();
    let in_column = |column: &SortingColumn| {
        usize::try_from(column.column_idx).is_ok_and(|leaf| leaves.contains(&leaf))
    };
    if sorted.iter().any(in_column) {
        return Err(Error::usage(format_args!(
            "rows cannot be sorted by a leaf of \"{name}\": it is shredded while it is written"
        )));
    }
    Ok(())
}

/// Whether two types have the same arrays: names, metadata and nullability of inner fields are
/// ignored, because the arrays themselves show their nulls.
fn same_type(a: &DataType, b: &DataType) -> bool {
    let same = |a: &Field, b: &Field| same_type(a.data_type(), b.data_type());
    match (a, b) {
        (DataType::Struct(a), DataType::Struct(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.name() == b.name() && same(a, b))
        }
        (DataType::List(a), DataType::List(b))
        | (DataType::LargeList(a), DataType::LargeList(b))
        | (DataType::ListView(a), DataType::ListView(b))
        | (DataType::LargeListView(a), DataType::LargeListView(b)) => same(a, b),
        (DataType::FixedSizeList(a, n), DataType::FixedSizeList(b, m)) => n == m && same(a, b),
        (DataType::Map(a, _), DataType::Map(b, _)) => match (a.data_type(), b.data_type()) {
            // The names of key and value are fixed.
            (DataType::Struct(a), DataType::Struct(b)) => {
                a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
            }
            _ => false,
        },
        (DataType::RunEndEncoded(a, x), DataType::RunEndEncoded(b, y)) => same(a, b) && same(x, y),
        (a, b) => a == b,
    }
}

/// Checks that a field has the name of a shape, and that its arrays can be stored in its leaves.
fn fits_by_name(field: &Field, shape: &Shape, leaves: &[Leaf]) -> Result<()> {
    let (ours, theirs) = (field.name(), shape.field.name());
    if ours != theirs {
        return Err(Error::usage(format_args!(
            "the batches have \"{ours}\" where the Parquet schema has \"{theirs}\": bring them \
             into one order, or rename one"
        )));
    }
    fits(field, shape, leaves)
}

/// Checks that arrays of a field can be stored in the leaves of a shape. The names of elements and
/// of keys and values of maps may be any.
fn fits(field: &Field, shape: &Shape, leaves: &[Leaf]) -> Result<()> {
    let wrong = || {
        Error::usage(format_args!(
            "\"{}\" of {} cannot be stored in \"{}\" of the Parquet schema, which reads as {}",
            field.name(),
            field.data_type(),
            shape.field.name(),
            shape.field.data_type()
        ))
    };
    match (&shape.kind, field.data_type()) {
        (Kind::Leaf { leaf }, data_type) => {
            let leaf = leaves.get(*leaf).ok_or_else(wrong)?;
            match crate::schema::convert::write_conversion(data_type, leaf) {
                Some(_) => Ok(()),
                None => Err(wrong()),
            }
        }
        (Kind::Struct(children), DataType::Struct(fields))
            if fields.is_empty() && is_empty_group(children) =>
        {
            Ok(())
        }
        (Kind::Struct(children), DataType::Struct(fields)) if children.len() == fields.len() => {
            let mut pairs = fields.iter().zip(children);
            pairs.try_for_each(|(field, child)| fits_by_name(field, child, leaves))
        }
        (
            Kind::List { item, .. },
            DataType::List(of)
            | DataType::LargeList(of)
            | DataType::ListView(of)
            | DataType::LargeListView(of)
            | DataType::FixedSizeList(of, _),
        ) => fits(of, item, leaves),
        (Kind::Map { entries, .. }, DataType::Map(of, _)) => {
            match (&entries.kind, of.data_type()) {
                (Kind::Struct(children), DataType::Struct(fields))
                    if children.len() == fields.len() =>
                {
                    let mut pairs = fields.iter().zip(children);
                    pairs.try_for_each(|(field, child)| fits(field, child, leaves))
                }
                _ => Err(wrong()),
            }
        }
        _ => Err(wrong()),
    }
}

/// Visits the leaves of a field, and the types of their arrays.
fn for_each_leaf(field: &Field, shape: &Shape, visit: &mut dyn FnMut(usize, &DataType)) {
    match (&shape.kind, field.data_type()) {
        (Kind::Leaf { leaf }, data_type) => visit(*leaf, data_type),
        (Kind::Struct(children), DataType::Struct(fields)) => {
            let pairs = fields.iter().zip(children);
            pairs.for_each(|(field, child)| for_each_leaf(field, child, visit));
        }
        (Kind::List { item: child, .. } | Kind::Map { entries: child, .. }, of) => {
            if let Some(of) = element_of(of) {
                for_each_leaf(of, child, visit);
            }
        }
        _ => {}
    }
}

/// Whether an array has a dictionary: readers that go by `ARROW:schema` decode fewer encodings to
/// those.
fn holds_dictionary(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(..) => true,
        DataType::RunEndEncoded(_, values) => holds_dictionary(values.data_type()),
        _ => false,
    }
}

/// More than the schema and the column orders of a footer take for a leaf besides its path, and
/// more than all other fields take.
const LEAF_BYTES: usize = 64;
const FOOTER_BYTES: usize = 256;
