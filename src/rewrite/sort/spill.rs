//! [`SpilledRun`]: sorted rows in a temporary file, as an Arrow IPC stream.

use std::fs::File;
use std::io::{BufReader, BufWriter, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, FixedSizeListArray, GenericListArray, MapArray,
    OffsetSizeTrait, RecordBatch, StringViewArray, StructArray,
};
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, SchemaRef};

use crate::error::{Error, Result};
use crate::io::TemporaryFile;

/// A run that is being written.
pub(super) struct RunWriter {
    file: TemporaryFile,
    writer: StreamWriter<BufWriter<File>>,
}

/// A run that is written.
pub(super) struct SpilledRun {
    file: TemporaryFile,
    bytes: u64,
}

/// The rows of a run.
pub(super) struct RunRows {
    file: TemporaryFile,
    reader: StreamReader<BufReader<File>>,
}

impl RunWriter {
    /// # Errors
    /// `Io` if there is no file to be created in the folder.
    pub(super) fn create(folder: &Path, schema: &SchemaRef) -> Result<Self> {
        let file = TemporaryFile::create(folder, "sort", WHAT)?;
        let clone = file.file.try_clone().map_err(|e| file.failed(e))?;
        let out = BufWriter::with_capacity(BUFFER_BYTES, clone);
        let writer = StreamWriter::try_new(out, schema).map_err(|e| failed_arrow(&file, e))?;
        Ok(Self { file, writer })
    }

    /// Appends rows, which come after those so far.
    pub(super) fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let columns = batch.columns().iter().map(compacted).collect::<Result<Vec<_>>>()?;
        let batch = RecordBatch::try_new(batch.schema(), columns)?;
        self.writer.write(&batch).map_err(|e| failed_arrow(&self.file, e))
    }

    pub(super) fn finish(self) -> Result<SpilledRun> {
        let Self { mut file, writer } = self;
        let end = |mut writer: StreamWriter<BufWriter<File>>| -> Result<(), ArrowError> {
            writer.finish()?;
            Ok(writer.into_inner()?.flush()?)
        };
        end(writer).map_err(|e| failed_arrow(&file, e))?;
        let bytes = file.file.seek(SeekFrom::End(0)).map_err(|e| file.failed(e))?;
        Ok(SpilledRun { file, bytes })
    }
}

impl SpilledRun {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Reads the rows.
    pub(super) fn read(self) -> Result<RunRows> {
        let mut file = self.file;
        let clone = file
            .file
            .seek(SeekFrom::Start(0))
            .and_then(|_| file.file.try_clone())
            .map_err(|e| file.failed(e))?;
        let reader = BufReader::with_capacity(BUFFER_BYTES, clone);
        let reader = StreamReader::try_new(reader, None).map_err(|e| failed_arrow(&file, e))?;
        Ok(RunRows { file, reader })
    }
}

impl Iterator for RunRows {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        Some(self.reader.next()?.map_err(|e| failed_arrow(&self.file, e)))
    }
}

fn failed_arrow(file: &TemporaryFile, e: ArrowError) -> Error {
    match e {
        ArrowError::IoError(_, e) => file.failed(e),
        e => e.into(),
    }
}

/// An array whose views refer to no bytes but their own: a batch that is written would have all
/// bytes of all batches that its rows are from.
fn compacted(array: &ArrayRef) -> Result<ArrayRef> {
    Ok(match array.data_type() {
        DataType::Utf8View => Arc::new(StringViewArray::gc(array.as_string_view())),
        DataType::BinaryView => Arc::new(BinaryViewArray::gc(array.as_binary_view())),
        DataType::Struct(fields) if has_views(array.data_type()) => {
            let of = array.as_struct();
            let columns = of.columns().iter().map(compacted).collect::<Result<Vec<_>>>()?;
            Arc::new(StructArray::try_new(fields.clone(), columns, of.nulls().cloned())?)
        }
        DataType::List(_) if has_views(array.data_type()) => list::<i32>(array)?,
        DataType::LargeList(_) if has_views(array.data_type()) => list::<i64>(array)?,
        DataType::FixedSizeList(field, size) if has_views(array.data_type()) => {
            let of = array.as_fixed_size_list();
            let (values, nulls) = (compacted(of.values())?, of.nulls().cloned());
            Arc::new(FixedSizeListArray::try_new(field.clone(), *size, values, nulls)?)
        }
        DataType::Map(field, is_sorted) if has_views(array.data_type()) => {
            let of = array.as_map();
            let entries: ArrayRef = Arc::new(of.entries().clone());
            let entries = compacted(&entries)?.as_struct().clone();
            let (offsets, nulls) = (of.offsets().clone(), of.nulls().cloned());
            Arc::new(MapArray::try_new(field.clone(), offsets, entries, nulls, *is_sorted)?)
        }
        _ => array.clone(),
    })
}

fn list<O: OffsetSizeTrait>(array: &ArrayRef) -> Result<ArrayRef> {
    let of = array.as_list::<O>();
    let (DataType::List(field) | DataType::LargeList(field)) = of.data_type() else {
        return Ok(array.clone());
    };
    let (values, nulls) = (compacted(of.values())?, of.nulls().cloned());
    let offsets = of.offsets().clone();
    Ok(Arc::new(GenericListArray::<O>::try_new(field.clone(), offsets, values, nulls)?))
}

/// Whether a type has views somewhere.
fn has_views(data_type: &DataType) -> bool {
    match data_type {
        DataType::Utf8View | DataType::BinaryView => true,
        DataType::Struct(fields) => fields.iter().any(|field| has_views(field.data_type())),
        DataType::List(field)
        | DataType::LargeList(field)
        | DataType::FixedSizeList(field, _)
        | DataType::Map(field, _) => has_views(field.data_type()),
        _ => false,
    }
}

const WHAT: &str = "a temporary file of rows that are sorted";

const BUFFER_BYTES: usize = 256 << 10;
