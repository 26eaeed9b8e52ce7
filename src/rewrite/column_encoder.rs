//! [`ColumnEncoders`] decode a column of a row group, and encode it for the new file.
//!
//! They are the reader of rows and the encoder of row groups, for one column at a time. The Parquet
//! type is that of the new file: a type that the encoder cannot write into it, such as INT96, is an
//! error, and never becomes another type.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, FieldRef, SchemaRef};

use super::decoding::decoding;
use super::inputs::{Input, Inputs, NewColumn, RowGroupPart};
use super::union::ColumnSource;
use crate::compress::Compression;
use crate::error::{Error, ErrorKind, Result, Spec};
use crate::format::{CompressionCodec, SchemaElement};
use crate::limits::{Budget, Reservation};
use crate::memory;
use crate::reader::Reader;
use crate::schema::{
    ArrowOptions, Leaf, MatchBy, Projection, Schema, arrow_fields, schema_like, to_arrow,
};
use crate::write::column_options::{BloomOptions, ColumnOptions};
use crate::write::row_group::batch_bytes;
use crate::write::{EncodedChunk, EncoderContext, WriteOptions};
use crate::writer::RowGroupEncoder;

/// Encodes columns of row groups.
pub(super) struct ColumnEncoders<'a> {
    inputs: &'a Inputs<'a>,
    options: &'a WriteOptions,
    budget: Budget,
    /// The buffers of all encoders: one encodes at a time.
    context: Arc<EncoderContext>,
    /// By column, and the codec that its chunk had.
    encoders: Vec<((usize, Option<CompressionCodec>), RowGroupEncoder)>,
}

impl<'a> ColumnEncoders<'a> {
    pub(super) fn new(inputs: &'a Inputs<'a>, options: &'a WriteOptions, budget: &Budget) -> Self {
        let context = Arc::new(EncoderContext::of_memory(options.memory.min(budget.cap())));
        Self { inputs, options, budget: budget.clone(), context, encoders: Vec::new() }
    }

    /// The chunks of a column, and the memory that they hold.
    ///
    /// # Errors
    /// As reading and writing have them; `Unsupported` if values cannot be written as the type of
    /// the column.
    pub(super) fn encode(
        &mut self,
        file: &Input<'_>,
        part: &RowGroupPart,
        column: usize,
    ) -> Result<(Vec<EncodedChunk>, Reservation)> {
        let inputs = self.inputs;
        let new = inputs.columns.get(column);
        let new = new.ok_or_else(|| Error::internal("there is no such column"))?;
        let (batches, schema, memory) = self.rows(file, part, column, new)?;
        let codec = old_codec(file, part, new.leaves.start)?;
        let known = self.encoders.iter().find(|(of, _)| *of == (column, codec));
        let encoder = match known {
            Some((_, encoder)) => encoder.clone(),
            None => {
                let encoder = encoder(inputs, new, codec, schema, self.options)?;
                let encoder = encoder.with_context(&self.context);
                memory::push(&mut self.encoders, ((column, codec), encoder.clone()))?;
                encoder
            }
        };
        let row_group = encoder.encode(&batches)?;
        let (expected, found) = (part.rows, row_group.rows() as u64);
        if expected != found {
            return Err(Error::mismatch(Spec::Metadata("RowGroup"), "rows", expected, found));
        }
        Ok((row_group.chunks, memory))
    }

    /// The values of a column, and their schema; the memory is that of the values and of what they
    /// become.
    fn rows(
        &self,
        file: &Input<'_>,
        part: &RowGroupPart,
        column: usize,
        new: &NewColumn,
    ) -> Result<(Vec<RecordBatch>, SchemaRef, Reservation)> {
        let mut memory = self.budget.reservation("a column that is encoded");
        // The read holds pages and arrays of its own meanwhile.
        let half = self.budget.cap().saturating_sub(self.budget.used()) / 2;
        let half = usize::try_from(half).unwrap_or(usize::MAX);
        let reading = self.budget.take_for("reading a column", half)?;
        let reader = reader(file, part, column, new)?.memory(half as u64);
        let schema = reader.schema()?;
        let mut batches = Vec::new();
        for batch in reader.batches()? {
            let batch = batch?;
            let bytes = usize::try_from(batch_bytes(&batch)).unwrap_or(usize::MAX);
            memory.grow(bytes.saturating_mul(2))?;
            memory::push(&mut batches, batch)?;
        }
        drop(reading);
        Ok((batches, schema, memory))
    }
}

/// The reader of one column of a part of a row group.
fn reader(file: &Input<'_>, part: &RowGroupPart, column: usize, new: &NewColumn) -> Result<Reader> {
    let mut reader = decoding(file.reader);
    let wanted = natural(&new.schema)?;
    match file.columns.get(column) {
        Some(ColumnSource::Same(_)) if !wanted.has_intervals => {
            let leaves = file.leaves.get(new.leaves.clone()).unwrap_or_default();
            let mut options = reader.read_options().clone();
            options.projection = Projection::leaves(leaves.iter().filter_map(|leaf| *leaf));
            reader = reader.options(options);
        }
        _ => reader = reader.target(wanted.schema, MatchBy::Name)?,
    }
    reader = reader.row_groups([part.ordinal])?;
    Ok(match &part.cut {
        Some(rows) => reader.offset(rows.start).limit(rows.end - rows.start),
        None => reader,
    })
}

/// The Arrow schema of Parquet columns, by their types alone.
pub(super) struct NaturalSchema {
    pub(super) schema: SchemaRef,
    /// Whether it differs from that of a reader: INTERVALs are bytes, because those of Arrow do not
    /// hold all of their values.
    pub(super) has_intervals: bool,
}

/// The schema of these elements.
pub(super) fn natural(elements: &[SchemaElement]) -> Result<NaturalSchema> {
    let schema = Schema::parse(memory::cloned(elements)?, &Default::default())?;
    let options = ArrowOptions::new().with_hint(false);
    let natural = to_arrow(&schema, &[], &Projection::all(), &options)?.schema;
    let schema = schema_like(&natural, natural.fields().iter().map(with_bytes))?;
    let has_intervals = schema.fields() != natural.fields();
    Ok(NaturalSchema { schema: schema.into(), has_intervals })
}

/// A field with bytes in the place of intervals.
fn with_bytes(field: &FieldRef) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Interval(_) => DataType::FixedSizeBinary(INTERVAL_BYTES),
        DataType::Struct(fields) => DataType::Struct(arrow_fields(fields.iter().map(with_bytes))),
        DataType::List(item) => DataType::List(with_bytes(item)),
        DataType::Map(entries, sorted) => DataType::Map(with_bytes(entries), *sorted),
        _ => return field.clone(),
    };
    Arc::new(field.as_ref().clone().with_data_type(data_type))
}

/// Bytes of an INTERVAL.
const INTERVAL_BYTES: i32 = 12;

/// The codec of the chunk of a leaf of the new file, if the file has it.
pub(super) fn old_codec(
    file: &Input<'_>,
    part: &RowGroupPart,
    leaf: usize,
) -> Result<Option<CompressionCodec>> {
    let leaf = file.leaves.get(leaf).copied().flatten();
    let Some(leaf) = leaf else { return Ok(None) };
    let chunk = file.footer().column_chunk_ref(part.ordinal, leaf)?;
    Ok(chunk.meta_data.map(|meta| meta.codec))
}

/// The encoder of a column whose chunk had this codec.
fn encoder(
    inputs: &Inputs<'_>,
    new: &NewColumn,
    codec: Option<CompressionCodec>,
    arrow: SchemaRef,
    options: &WriteOptions,
) -> Result<RowGroupEncoder> {
    let leaves = inputs.leaves.get(new.leaves.clone()).unwrap_or_default();
    let options = encoding_options(inputs, leaves, |_| codec, options)?;
    let schema = Schema::parse(memory::cloned(&new.schema)?, &Default::default())?;
    RowGroupEncoder::with_schema(arrow, schema, Vec::new(), options).map_err(not_written)
}

/// The error of an encoder whose Arrow types follow from the Parquet types: that one of these is
/// not written is no fault of the user.
pub(super) fn not_written(error: Error) -> Error {
    match error.kind() {
        ErrorKind::Usage => Error::unsupported("encoding a column of this type", error),
        _ => error,
    }
}

/// The options of some leaves: a codec that is not asked for is that which the chunk had, and where
/// a chunk of the leaf had a bloom filter, the new ones have one, too.
pub(super) fn encoding_options(
    inputs: &Inputs<'_>,
    leaves: &[Leaf],
    old_codec: impl Fn(&Leaf) -> Option<CompressionCodec>,
    options: &WriteOptions,
) -> Result<WriteOptions> {
    let mut part = options.for_part(leaves)?;
    for (at, leaf) in leaves.iter().enumerate() {
        let wanted = inputs.wishes.get(leaf.index).and_then(|wishes| wishes.codec);
        let Some(settings) = inputs.settings.get(leaf.index) else { continue };
        let old = || old_codec(leaf).filter(|_| !settings.codec_is_fixed).and_then(written_codec);
        let mut column = ColumnOptions::default().with_total_order(settings.total_order);
        if let Some(codec) = wanted.or_else(old) {
            column = column.with_compression(codec);
        }
        if settings.bloom.is_none() && had_bloom(inputs, leaf.index)? {
            column = column.with_bloom(BloomOptions::default());
        }
        memory::push(&mut part.leaves, (at, column))?;
    }
    Ok(part)
}

/// Whether a chunk of a leaf of the new file had a bloom filter in its old one.
fn had_bloom(inputs: &Inputs<'_>, leaf: usize) -> Result<bool> {
    for file in &inputs.files {
        let Some(leaf) = file.leaves.get(leaf).copied().flatten() else { continue };
        for part in &file.row_groups {
            let chunk = file.footer().column_chunk_ref(part.ordinal, leaf)?;
            if chunk.meta_data.is_some_and(|meta| meta.bloom_filter_offset.is_some()) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// The codec to write with; `None` for those that are not written by default.
fn written_codec(codec: CompressionCodec) -> Option<Compression> {
    Some(match codec {
        CompressionCodec::Uncompressed => Compression::Uncompressed,
        CompressionCodec::Snappy => Compression::Snappy,
        CompressionCodec::Gzip => Compression::Gzip(6),
        CompressionCodec::Brotli => Compression::Brotli(4),
        CompressionCodec::Zstd => Compression::Zstd(3),
        CompressionCodec::Lz4Raw | CompressionCodec::Lz4 => Compression::Lz4Raw,
        CompressionCodec::Lzo | CompressionCodec::Unknown(_) => return None,
    })
    .filter(|codec| codec.is_built())
}
