//! [`RowGroupEncoder`] encodes row groups of one schema, for one file or for many.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};
use crate::format::KeyValue;
use crate::geo::GeoOptions;
use crate::io::{EncodeThreads, InFlight};
use crate::schema::Schema;
use crate::variant::VariantShape;
use crate::write::{EncodedRowGroup, EncoderContext, FileLayout, PendingRowGroup, WriteOptions};

/// Encodes row groups of one schema: on any thread, for one file or for many. Cheap to clone.
///
/// ```
/// use marquetry::{Reader, Result, RowGroupEncoder, WriteOptions, Writer};
/// use marquetry::io::WriteSink;
///
/// # fn main() -> Result<()> {
/// let batches = Reader::open("testdata/trips.parquet")?.batches()?;
/// let encoder = RowGroupEncoder::new(batches.schema(), WriteOptions::new())?.with_threads(2)?;
/// let mut writer = Writer::over(WriteSink(Vec::new()), encoder.clone());
/// let batches = batches.collect::<std::result::Result<Vec<_>, _>>()?;
/// writer.append(encoder.encode(&batches)?)?;
/// assert_eq!(writer.finish()?.row_groups(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RowGroupEncoder {
    pub(super) file: FileLayout,
    pub(super) threads: EncodeThreads,
}

impl fmt::Debug for RowGroupEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RowGroupEncoder")
            .field("options", &self.file.options)
            .finish_non_exhaustive()
    }
}

impl RowGroupEncoder {
    /// Makes an encoder of batches of `schema`.
    ///
    /// # Errors
    /// `Unsupported` if the schema has a type that Parquet does not have, `Usage` if an option does
    /// not fit it.
    pub fn new(schema: SchemaRef, options: WriteOptions) -> Result<Self> {
        FileLayout::new(schema, options).map(Self::with_layout)
    }

    /// Makes an encoder of batches of `arrow` into files of the Parquet schema `schema`.
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
        FileLayout::with_schema(arrow, schema, key_values, options).map(Self::with_layout)
    }

    fn with_layout(file: FileLayout) -> Self {
        Self { file, threads: EncodeThreads::default() }
    }

    /// Returns the encoder with a shape for each VARIANT column whose shape is
    /// [inferred](crate::variant::VariantShredding::Infer) from these batches. A
    /// [`Writer`](crate::Writer) infers it from the rows of its first row group.
    ///
    /// # Errors
    /// `Usage` if a batch has another schema, `Malformed(Variant)` if a value is none.
    pub fn infer(&self, sample: &[RecordBatch]) -> Result<Self> {
        let mut encoder = self.clone();
        encoder.file.infer(sample)?;
        Ok(encoder)
    }

    /// The shapes that the VARIANT columns are shredded into, by the names of the columns.
    pub fn shapes(&self) -> Vec<(String, VariantShape)> {
        self.file.shapes()
    }

    /// States the key `geo`, as by [`WriteOptions::with_geo`].
    ///
    /// # Errors
    /// `Usage` if there is no geometry column, or one that is named is none; `Unsupported` if the
    /// key cannot state a coordinate system or edges.
    pub(crate) fn with_geo(mut self, geo: GeoOptions) -> Result<Self> {
        self.file.state_geo(geo)?;
        Ok(self)
    }

    /// Shares buffers with other encoders.
    #[must_use]
    pub(crate) fn with_context(mut self, context: &Arc<EncoderContext>) -> Self {
        self.file.share_context(context);
        self
    }

    /// Whether a VARIANT column of a file gets a shape that its first rows tell.
    pub(crate) fn infers_shapes(&self) -> bool {
        self.file.infers_shapes()
    }

    /// Encodes on this many threads; with 1, on the calling thread, else on other threads. Default:
    /// all cores.
    ///
    /// # Errors
    /// `Io` if the threads cannot be started.
    pub fn with_threads(mut self, threads: usize) -> Result<Self> {
        self.threads = EncodeThreads::new(threads)?;
        Ok(self)
    }

    /// Encodes on the caller's pool.
    #[cfg(feature = "parallel")]
    #[must_use]
    pub fn with_pool(mut self, pool: Arc<rayon::ThreadPool>) -> Self {
        self.threads = EncodeThreads::Pool(crate::io::Pool::Own(pool));
        self
    }

    /// Encodes batches as one row group.
    ///
    /// # Errors
    /// `Usage` if a batch has another schema, or a value does not fit.
    pub fn encode(&self, batches: &[RecordBatch]) -> Result<EncodedRowGroup> {
        let mut pending = PendingRowGroup::default();
        for batch in batches {
            self.file.check(batch)?;
            pending.push(batch.clone(), &self.file.row_groups.sizes)?;
        }
        let mut in_flight = InFlight::new(self.threads.clone());
        in_flight.begin(&self.file.row_groups, Box::new(pending), None)?;
        match in_flight.next()? {
            Some(row_group) => Ok(row_group),
            None => Err(Error::internal("a row group that was begun is given back")),
        }
    }
}
