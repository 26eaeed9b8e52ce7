//! The Arrow C Stream interface: batches to and from other Arrow implementations in this process,
//! without copies.
//!
//! A reader becomes a C stream with [`export`], and a C stream becomes batches for a
//! [`Writer`](crate::Writer) with [`import`]. So they go to pyarrow, DuckDB, polars or nanoarrow,
//! and to crates that are built with another version of Arrow: `examples/ffi_pyarrow` and
//! `examples/other_arrow.rs` show both ways.
//!
//! ```
//! use marquetry::{Reader, Writer, ffi};
//!
//! # fn main() -> marquetry::Result<()> {
//! let stream = ffi::export(Reader::open("testdata/trips.parquet")?.batches()?)?;
//! // … as it came through C …
//! let batches = ffi::import(stream)?;
//! let mut writer = Writer::to(Vec::new(), batches.schema())?;
//! for batch in batches {
//!     writer.write(&batch?)?;
//! }
//! assert_eq!(writer.finish()?.rows, 1_000);
//! # Ok(())
//! # }
//! ```
//!
//! C code passes the struct by address. [`FFI_ArrowArrayStream::from_raw`] takes it over from
//! there, and [`std::ptr::write`] puts it there: both are `unsafe`, because the caller must
//! guarantee the address and its contents.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchOptions, RecordBatchReader};
use arrow_data::ArrayData;
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};

use crate::error::{Error, ErrorKind, LimitKind, Result};
use crate::trusted::{CStream, without_struct_offsets};

pub use arrow_array::ffi_stream::FFI_ArrowArrayStream;

/// Exports batches as a C stream: those of [`Batches`](crate::Batches), of a part from
/// [`Reader::streams`](crate::Reader::streams), or of any other [`RecordBatchReader`].
///
/// Batches are read when the consumer asks for them, on its thread. An error becomes its text and
/// one of the interface's numbers: `EIO` for [`ErrorKind::Io`], `ENOSYS` for
/// [`ErrorKind::Unsupported`] and [`ErrorKind::FeatureDisabled`], `ENOMEM` for a limit of memory,
/// and `EINVAL` for all others. After an error there are no more batches.
///
/// # Errors
/// `Unsupported` if a name or a time zone holds a null byte, which C cannot have in a text, or if a
/// type has no C form.
pub fn export(batches: impl RecordBatchReader + Send + 'static) -> Result<FFI_ArrowArrayStream> {
    let schema = batches.schema();
    check_texts(&schema)?;
    arrow_schema::ffi::FFI_ArrowSchema::try_from(&*schema).map_err(|e| no_form(&e))?;
    let exported = Exported { schema, batches: Some(Box::new(batches)) };
    Ok(FFI_ArrowArrayStream::new(Box::new(exported)))
}

/// Imports the batches of a C stream, which is released when they are dropped.
///
/// Only the lengths and nulls of an array are checked: a stream must come from a producer that is
/// trusted like a library of this process. [`ImportedBatches::validated`] checks values too. A
/// buffer is an address, and the interface does not state its length, so no consumer can find out
/// that it is shorter than the length of an array requires, or that its memory was reused. Data
/// from elsewhere should be sent as a file or as Arrow IPC.
///
/// # Errors
/// `Arrow` if the stream was released before, or its schema is none.
pub fn import(stream: FFI_ArrowArrayStream) -> Result<ImportedBatches> {
    let (schema, stream) = guarded(|| {
        let mut stream = CStream::new(stream)?;
        Ok((stream.schema()?, stream))
    })?;
    Ok(ImportedBatches { schema, stream: Some(stream), validated: false })
}

/// The array of data that came through the C Data Interface, by
/// [`from_ffi`](arrow_array::ffi::from_ffi). [`make_array`](arrow_array::make_array) of arrow 59
/// panics where a struct was cut by an offset and holds structs, as pyarrow cuts them.
///
/// # Errors
/// `Arrow` if a child of a struct is shorter than the struct.
pub fn make_array(data: ArrayData) -> Result<ArrayRef> {
    guarded(|| Ok(arrow_array::make_array(without_struct_offsets(data)?)))
}

/// The batches of a C stream. After an error there are no more.
pub struct ImportedBatches {
    schema: SchemaRef,
    /// Gone after an error, and after the last batch.
    stream: Option<CStream>,
    validated: bool,
}

impl fmt::Debug for ImportedBatches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImportedBatches").field("schema", &self.schema).finish_non_exhaustive()
    }
}

impl ImportedBatches {
    /// The schema of the batches.
    pub fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }

    /// Whether each value is checked before a batch is returned: UTF-8, offsets, keys. The length
    /// of a buffer cannot be checked.
    #[must_use]
    pub fn validated(mut self, validated: bool) -> Self {
        self.validated = validated;
        self
    }

    /// The next batch, with an error of this crate; `None` after the last.
    ///
    /// # Errors
    /// `Arrow` with the producer's text, or if a batch contradicts the schema.
    pub fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        let Some(stream) = &mut self.stream else { return Ok(None) };
        let rows = guarded(|| stream.next(DataType::Struct(self.schema.fields().clone())));
        let next = rows.and_then(|rows| rows.map(|rows| self.batch_of(rows)).transpose());
        if !matches!(next, Ok(Some(_))) {
            self.stream = None;
        }
        next
    }

    fn batch_of(&self, rows: ArrayData) -> Result<RecordBatch> {
        let rows = make_array(rows)?;
        let options = RecordBatchOptions::new().with_row_count(Some(rows.len()));
        let columns = rows.as_struct().columns().to_vec();
        let batch = RecordBatch::try_new_with_options(self.schema(), columns, &options)?;
        if self.validated {
            for column in batch.columns() {
                column.to_data().validate_full()?;
            }
        }
        Ok(batch)
    }
}

impl Iterator for ImportedBatches {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.next_batch().map_err(ArrowError::from).transpose()
    }
}

impl RecordBatchReader for ImportedBatches {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// The batches, as Arrow's export wants them. Neither a panic nor a null byte may reach it, because
/// C calls it, where both would end the process.
struct Exported {
    schema: SchemaRef,
    /// Gone at the end, and after an error.
    batches: Option<Box<dyn RecordBatchReader + Send>>,
}

impl Iterator for Exported {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batches = self.batches.as_mut()?;
        let next = catch_unwind(AssertUnwindSafe(|| batches.next()));
        let next = next.unwrap_or_else(|panic| Some(Err(ArrowError::from(panicked(&*panic)))));
        if !matches!(next, Some(Ok(_))) {
            self.batches = None;
        }
        next.map(|batch| batch.map_err(|e| to_arrow_error(&Error::from(e))))
    }
}

impl RecordBatchReader for Exported {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// The error of Arrow that becomes the number for the kind, and the text.
fn to_arrow_error(error: &Error) -> ArrowError {
    let text = error.to_string().replace('\0', "\u{fffd}");
    match error.kind() {
        ErrorKind::Io => ArrowError::IoError(text.clone(), std::io::Error::other(text)),
        ErrorKind::Unsupported(_) | ErrorKind::FeatureDisabled(_) => {
            ArrowError::NotYetImplemented(text)
        }
        ErrorKind::Limit(LimitKind::Memory) => ArrowError::MemoryError(text),
        _ => ArrowError::CDataInterface(text),
    }
}

/// Calls what may panic where a producer breaks the rules of the interface.
fn guarded<T>(call: impl FnOnce() -> Result<T, ArrowError>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(done) => Ok(done?),
        Err(panic) => Err(panicked(&*panic)),
    }
}

#[cold]
fn panicked(panic: &(dyn std::any::Any + Send)) -> Error {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    let text = text.unwrap_or_else(|| "no reason given".to_owned());
    Error::from(ArrowError::CDataInterface(format!("the stream panicked: {text}")))
}

#[cold]
fn no_form(error: &ArrowError) -> Error {
    Error::unsupported("the C Data Interface", format_args!("the schema cannot be given: {error}"))
}

fn check_texts(schema: &Schema) -> Result<()> {
    for field in schema.flattened_fields() {
        let zone = match field.data_type() {
            DataType::Timestamp(_, Some(zone)) => zone,
            _ => "",
        };
        if field.name().contains('\0') || zone.contains('\0') {
            return Err(Error::unsupported(
                "null bytes in C texts",
                format_args!("column {:?} has a null byte in its name or time zone", field.name()),
            ));
        }
    }
    Ok(())
}
