//! [`RowGroupEncoder`]: what batches of one schema are encoded by, and what it settles of their
//! columns.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, Field, Schema as ArrowSchema, SchemaRef};

use crate::crypt::LeafProtection;
use crate::error::{Error, Result};
use crate::format::{KeyValue, SortingColumn};
use crate::io::{EncodeThreads, InFlight};
use crate::schema::{
    ArrowOptions, FromArrowOptions, HINT_KEY, Kind, Leaf, Physical, Projection, Schema, Shape,
    binary_of_size_0, from_arrow, is_empty_group, to_arrow,
};
use crate::variant::{VariantArray, VariantInference, VariantShape, VariantShredding};
use crate::write::{
    CheckedSortOrder, EncodedRowGroup, EncoderContext, LeafSettings, PendingRowGroup,
    RowGroupLayout, WriteOptions,
};

/// Encodes row groups of one schema: on any thread, for one file or for many. Cheap to clone.
#[derive(Clone)]
pub struct RowGroupEncoder {
    pub(super) layout: Arc<RowGroupLayout>,
    pub(super) schema: Arc<Schema>,
    pub(super) key_values: Vec<KeyValue>,
    pub(super) options: WriteOptions,
    pub(super) threads: EncodeThreads,
    /// For each column, the shape that a VARIANT is shredded into.
    pub(super) variants: Vec<Option<VariantShape>>,
    /// The columns whose shape is not known before the first rows.
    pub(super) inferences: Vec<(usize, VariantInference)>,
}

impl fmt::Debug for RowGroupEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowGroupEncoder").field("options", &self.options).finish_non_exhaustive()
    }
}

impl RowGroupEncoder {
    /// An encoder of batches of `schema`.
    ///
    /// # Errors
    /// `Unsupported` if the schema has a type that Parquet has no place for, `Usage` if an option
    /// does not fit it.
    pub fn new(schema: SchemaRef, options: WriteOptions) -> Result<Self> {
        let shredding = options.shredding_of(&schema)?;
        let variants = shredding.iter().map(|shredding| match shredding {
            VariantShredding::Shape(shape) => Some(shape.clone()),
            _ => None,
        });
        let mut encoder = Self::shredded(schema, variants.collect(), options)?;
        encoder.inferences = shredding
            .into_iter()
            .enumerate()
            .filter_map(|(column, shredding)| match shredding {
                VariantShredding::Infer(inference) => Some((column, inference)),
                _ => None,
            })
            .collect();
        Ok(encoder)
    }

    /// An encoder of batches whose VARIANT columns become columns of these shapes.
    fn shredded(
        schema: SchemaRef,
        variants: Vec<Option<VariantShape>>,
        options: WriteOptions,
    ) -> Result<Self> {
        let mapping =
            FromArrowOptions::new().with_hint(options.hint).with_full_range(options.full_range);
        let fields = schema.fields().iter().zip(&variants).map(|(field, variant)| match variant {
            Some(shape) => {
                let data_type = shape.data_type_like(field.data_type());
                Arc::new(field.as_ref().clone().with_data_type(data_type))
            }
            None => field.clone(),
        });
        let stored =
            ArrowSchema::new_with_metadata(fields.collect::<Vec<_>>(), schema.metadata().clone());
        let written = from_arrow(&stored, &mapping)?;
        let mut encoder =
            Self::with_schema(stored.into(), written.schema, written.key_values, options)?;
        encoder.variants.clone_from(&variants);
        let layout = Arc::get_mut(&mut encoder.layout).expect("it is not shared yet");
        layout.variants = schema
            .fields()
            .iter()
            .zip(layout.arrow.fields())
            .zip(variants)
            // What has this shape already stays as it is.
            .map(|((batch, file), shape)| shape.filter(|_| batch.data_type() != file.data_type()))
            .collect();
        layout.arrow = schema;
        check_shredded(layout)?;
        Ok(encoder)
    }

    /// The same encoder with a shape for each VARIANT column that is to have one
    /// [inferred](VariantShredding::Infer), found in these batches. A [`Writer`](crate::Writer)
    /// does it with the rows of its first row group.
    ///
    /// # Errors
    /// `Usage` if a batch has another schema, `Malformed(Variant)` if a value is none.
    pub fn infer(&self, sample: &[RecordBatch]) -> Result<Self> {
        if self.inferences.is_empty() {
            return Ok(self.clone());
        }
        let mut variants = self.variants.clone();
        for (column, inference) in &self.inferences {
            let mut columns = Vec::with_capacity(sample.len());
            for batch in sample {
                self.check(batch)?;
                columns.push(VariantArray::try_from(batch.column(*column))?);
            }
            let shape = inference.infer(&columns)?;
            variants[*column] = Some(shape);
        }
        let (schema, options) = (self.layout.arrow.clone(), self.options.clone());
        let threads = self.threads.clone();
        Ok(Self { threads, ..Self::shredded(schema, variants, options)? })
    }

    /// The shapes that the VARIANT columns are shredded into, by the names of the columns.
    pub fn shapes(&self) -> Vec<(String, VariantShape)> {
        let fields = self.layout.arrow.fields().iter().zip(&self.variants);
        fields
            .filter_map(|(field, shape)| Some((field.name().clone(), shape.clone()?)))
            .filter(|(_, shape)| !shape.is_any())
            .collect()
    }

    /// An encoder of batches of `arrow` into files of the Parquet schema `schema`.
    ///
    /// # Errors
    /// `Usage` if the values of a column cannot be stored in its place, or the two have other
    /// columns; `Unsupported` for a FIXED_LEN_BYTE_ARRAY of no bytes, which other readers refuse.
    pub fn with_schema(
        arrow: SchemaRef,
        schema: Schema,
        key_values: Vec<KeyValue>,
        options: WriteOptions,
    ) -> Result<Self> {
        let natural = ArrowOptions::new().with_hint(false);
        let mapping = to_arrow(&schema, &[], &Projection::all(), &natural)?;
        let leaves =
            (0..schema.leaves_len()).map(|i| schema.leaf(i)).collect::<Result<Vec<_>>>()?;
        if mapping.shapes.len() != arrow.fields().len() {
            return Err(Error::usage(format_args!(
                "the batches have {} columns, the Parquet schema {}",
                arrow.fields().len(),
                mapping.shapes.len()
            )));
        }
        for (field, shape) in arrow.fields().iter().zip(&mapping.shapes) {
            fits(field, shape, &leaves)?;
        }
        let is_empty = |leaf: &&Leaf| leaf.physical == Physical::FixedLenByteArray(0);
        if let Some(leaf) = leaves.iter().find(is_empty) {
            return Err(binary_of_size_0().at_column(leaf.path.dotted()));
        }
        let mut settings = options.resolve(&schema)?;
        if key_values.iter().any(|pair| pair.key == HINT_KEY) {
            for (field, shape) in arrow.fields().iter().zip(&mapping.shapes) {
                mark_dictionaries(field, shape, &mut settings);
            }
        }
        let context = EncoderContext::new(options.memory / SPARE_SHARE);
        let mut tops = Vec::with_capacity(leaves.len());
        for (top, shape) in mapping.shapes.iter().enumerate() {
            shape.for_each_leaf(&mut |_, _| tops.push(top));
        }
        let beside_tops: Vec<_> = leaves.iter().cloned().zip(tops).collect();
        let sorting = CheckedSortOrder::new(&options.sort_order, &beside_tops)?;
        let encryption = options.encryption.as_ref();
        let protections = encryption.map(|of| of.protections(&leaves)).transpose()?;
        for (settings, protection) in settings.iter_mut().zip(protections.iter().flatten()) {
            // Of encrypted pages, the checksum is made when they are.
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
        };
        let (layout, schema) = (Arc::new(layout), Arc::new(schema));
        let (variants, inferences) = (Vec::new(), Vec::new());
        let threads = EncodeThreads::default();
        Ok(Self { layout, schema, key_values, options, threads, variants, inferences })
    }

    /// Encodes on this many threads: 1 is the calling one alone, more are others than that. All
    /// cores by default.
    ///
    /// # Errors
    /// `Io` if the threads cannot be started.
    pub fn with_threads(mut self, threads: usize) -> Result<Self> {
        self.threads = EncodeThreads::new(threads)?;
        Ok(self)
    }

    /// Encodes on a pool of the caller's.
    #[cfg(feature = "parallel")]
    #[must_use]
    pub fn with_pool(mut self, pool: Arc<rayon::ThreadPool>) -> Self {
        self.threads = EncodeThreads::pool(pool);
        self
    }

    /// Encodes batches as one row group.
    ///
    /// # Errors
    /// `Usage` if a batch has another schema, or a value does not fit.
    pub fn encode(&self, batches: &[RecordBatch]) -> Result<EncodedRowGroup> {
        let mut pending = PendingRowGroup::default();
        for batch in batches {
            self.check(batch)?;
            pending.push(batch.clone());
        }
        let mut in_flight = InFlight::new(self.threads.clone());
        in_flight.begin(&self.layout, pending, None);
        match in_flight.next()? {
            Some((_, row_group)) => Ok(row_group),
            None => Err(Error::usage("a row group that was begun is given back")),
        }
    }

    /// Checks that a batch has the schema.
    pub(super) fn check(&self, batch: &RecordBatch) -> Result<()> {
        let (ours, theirs) = (&self.layout.arrow, batch.schema_ref());
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

/// Checks that shredding leaves settings of single leaves true.
///
/// # Errors
/// `Usage` if values would move from a leaf with a key into one without, or rows are said to be
/// sorted by a leaf of a column that is shredded.
fn check_shredded(layout: &RowGroupLayout) -> Result<()> {
    let mut first = 0;
    for (shape, variant) in layout.shapes.iter().zip(&layout.variants) {
        let mut end = first;
        shape.for_each_leaf(&mut |_, _| end += 1);
        let leaves = first..end;
        first = end;
        if variant.is_none() {
            continue;
        }
        let name = shape.field.name();
        if let Some(protections) = layout.protections.as_ref().and_then(|of| of.get(leaves.clone()))
            && protections.iter().any(LeafProtection::is_plain)
            && !protections.iter().all(LeafProtection::is_plain)
        {
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
    }
    Ok(())
}

/// Whether two types have the same arrays: names, metadata and nullability of what is inside aside,
/// as the arrays themselves tell of nulls.
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

/// Checks that arrays of a field can be stored in the leaves of a shape.
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
            fields.iter().zip(children).try_for_each(|(field, child)| fits(field, child, leaves))
        }
        (
            Kind::List { item, .. },
            DataType::List(of)
            | DataType::LargeList(of)
            | DataType::ListView(of)
            | DataType::LargeListView(of)
            | DataType::FixedSizeList(of, _),
        ) => fits(of, item, leaves),
        (Kind::Map { entries, .. }, DataType::Map(of, _)) => fits(of, entries, leaves),
        _ => Err(wrong()),
    }
}

/// Notes which leaves are dictionaries of Arrow: readers that go by `ARROW:schema` decode fewer
/// encodings to those.
fn mark_dictionaries(field: &Field, shape: &Shape, settings: &mut [LeafSettings]) {
    match (&shape.kind, field.data_type()) {
        (Kind::Leaf { leaf }, data_type) => {
            if let Some(settings) = settings.get_mut(*leaf) {
                settings.arrow_dictionary = holds_dictionary(data_type);
            }
        }
        (Kind::Struct(children), DataType::Struct(fields)) => {
            let pairs = fields.iter().zip(children);
            pairs.for_each(|(field, child)| mark_dictionaries(field, child, settings));
        }
        (
            Kind::List { item: child, .. } | Kind::Map { entries: child, .. },
            DataType::List(of)
            | DataType::LargeList(of)
            | DataType::ListView(of)
            | DataType::LargeListView(of)
            | DataType::FixedSizeList(of, _)
            | DataType::Map(of, _),
        ) => mark_dictionaries(of, child, settings),
        _ => {}
    }
}

fn holds_dictionary(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(..) => true,
        DataType::RunEndEncoded(_, values) => holds_dictionary(values.data_type()),
        _ => false,
    }
}

/// The part of the memory that is kept to be used again: less than the shares leave over.
const SPARE_SHARE: u64 = 16;
