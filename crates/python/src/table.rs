//! Rows in memory, and their way to other libraries: the capsules of the Arrow C interfaces.

use std::collections::HashSet;
use std::ffi::{CStr, c_int, c_void};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::ffi::{FFI_ArrowArray, from_ffi, to_ffi};
use arrow_array::{
    Array, ArrayRef, RecordBatch, RecordBatchIterator, RecordBatchOptions, RecordBatchReader,
    StructArray,
};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, FieldRef, Fields, Schema, SchemaRef};
use marquetry::engine::rows;
use marquetry::ffi::{self, FFI_ArrowArrayStream, ImportedBatches};
use marquetry::{Error, Result};
use pyo3::exceptions::{PyBufferError, PyIndexError, PyKeyError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyList, PyTuple};

use crate::error::{OrRaise, usage};
use crate::values;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// The capsule of a schema.
pub(crate) fn schema_capsule<'py>(
    py: Python<'py>,
    schema: &Schema,
) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = FFI_ArrowSchema::try_from(schema).or_raise(py)?;
    PyCapsule::new_with_value(py, schema, SCHEMA)
}

/// The capsule of a stream, in the schema that the consumer asked for.
pub(crate) fn stream_capsule<'py>(
    py: Python<'py>,
    batches: impl RecordBatchReader + Send + 'static,
    requested: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyCapsule>> {
    let requested = requested.filter(|schema| !schema.is_none());
    let found = batches.schema();
    let schema = requested.map(|capsule| wanted_schema(capsule, &found)).transpose()?;
    let stream = match schema.filter(|schema| *schema != found) {
        Some(schema) => ffi::export(Cast { schema, batches }),
        None => ffi::export(batches),
    };
    PyCapsule::new_with_value(py, stream.or_raise(py)?, STREAM)
}

/// Two capsules: of the schema and of the array.
fn array_capsules<'py>(
    py: Python<'py>,
    array: &dyn Array,
    schema: FFI_ArrowSchema,
) -> PyResult<Bound<'py, PyTuple>> {
    let (array, _) = to_ffi(&array.to_data()).or_raise(py)?;
    let schema = PyCapsule::new_with_value(py, schema, SCHEMA)?;
    let array = PyCapsule::new_with_value(py, array, ARRAY)?;
    PyTuple::new(py, [schema, array])
}

/// Batches in another schema.
struct Cast<R> {
    schema: SchemaRef,
    batches: R,
}

impl<R: RecordBatchReader> Iterator for Cast<R> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        let batch = self.batches.next()?;
        Some(batch.and_then(|batch| cast_batch(&batch, &self.schema)))
    }
}

impl<R: RecordBatchReader> RecordBatchReader for Cast<R> {
    fn schema(&self) -> SchemaRef {
        self.schema.clone()
    }
}

/// The schema that a consumer asks for, of columns that have the schema `found`: other types for
/// the same columns.
fn wanted_schema(capsule: &Bound<'_, PyAny>, found: &Schema) -> PyResult<SchemaRef> {
    let wanted = schema_of_capsule(capsule)?;
    let (fields, of_found) = (wanted.fields(), found.fields());
    if !have_same_names(fields, of_found) || !same_fields(fields, of_found) {
        return Err(usage(
            capsule.py(),
            format_args!(
                "the schema that is asked for has the columns {}, and there are {}: it may change \
                 their types, and not which they are",
                names(&wanted),
                names(found)
            ),
        ));
    }
    Ok(wanted)
}

/// The names of the columns, for a message.
pub(crate) fn names(schema: &Schema) -> String {
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    names.join(", ")
}

/// Whether both have the same names in the same order.
pub(crate) fn have_same_names(a: &Fields, b: &Fields) -> bool {
    a.iter().map(|field| field.name()).eq(b.iter().map(|field| field.name()))
}

/// Whether structs have fields of the same names, at any depth: where names differ, Arrow casts
/// field by field in their order. The names of items and entries say nothing.
pub(crate) fn has_same_fields(a: &DataType, b: &DataType) -> bool {
    match (a, b) {
        (DataType::Struct(a), DataType::Struct(b)) => same_fields(a, b),
        (DataType::Map(a, _), DataType::Map(b, _)) => match (a.data_type(), b.data_type()) {
            (DataType::Struct(a), DataType::Struct(b)) => {
                let mut entries = a.iter().zip(b);
                entries.all(|(a, b)| has_same_fields(a.data_type(), b.data_type()))
            }
            _ => true,
        },
        (DataType::Dictionary(_, a), b) | (b, DataType::Dictionary(_, a)) => has_same_fields(a, b),
        (DataType::RunEndEncoded(_, a), b) | (b, DataType::RunEndEncoded(_, a)) => {
            has_same_fields(a.data_type(), b)
        }
        _ => match (item_of(a), item_of(b)) {
            (Some(a), Some(b)) => has_same_fields(a, b),
            _ => true,
        },
    }
}

/// The same for the fields of two structs, which may have another order.
fn same_fields(a: &Fields, b: &Fields) -> bool {
    let by_place = have_same_names(a, b);
    let is_same = |(at, a): (usize, &FieldRef)| {
        let b = match by_place {
            true => b.get(at),
            false => b.find(a.name()).map(|(_, b)| b),
        };
        b.is_some_and(|b| has_same_fields(a.data_type(), b.data_type()))
    };
    let is_unique = || a.iter().map(|field| field.name()).collect::<HashSet<_>>().len() == a.len();
    a.len() == b.len() && (by_place || is_unique()) && a.iter().enumerate().all(is_same)
}

/// The type of the items of a list.
fn item_of(list: &DataType) -> Option<&DataType> {
    match list {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => Some(item.data_type()),
        _ => None,
    }
}

/// The batch in a schema of the same columns. A value that the new type does not hold is an error.
fn cast_batch(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let options = CastOptions { safe: false, ..CastOptions::default() };
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| match column.data_type() == field.data_type() {
        true => Ok(column.clone()),
        false => cast_with_options(column, field.data_type(), &options),
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
}

fn schema_of_capsule(capsule: &Bound<'_, PyAny>) -> PyResult<SchemaRef> {
    Ok(Arc::new(Schema::try_from(schema_in(capsule)?).or_raise(capsule.py())?))
}

/// The schema in a capsule, unless it was moved out of it.
fn schema_in<'a>(capsule: &'a Bound<'_, PyAny>) -> PyResult<&'a FFI_ArrowSchema> {
    let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(SCHEMA))?;
    // SAFETY: a capsule of this name holds an `ArrowSchema` (the Arrow PyCapsule interface), which
    // lives as long as the capsule, and `capsule` keeps that alive.
    let schema = unsafe { pointer.cast::<FFI_ArrowSchema>().as_ref() };
    match schema.release {
        Some(_) => Ok(schema),
        None => Err(was_used(capsule.py(), "schema")),
    }
}

/// The array of `__arrow_c_array__`, moved out of its capsule.
fn array_in(pair: &Bound<'_, PyTuple>) -> PyResult<ArrayRef> {
    let py = pair.py();
    let schema = pair.get_item(0)?;
    let schema = schema_in(&schema)?;
    let array = pair.get_item(1)?;
    let pointer = array.cast::<PyCapsule>()?.pointer_checked(Some(ARRAY))?;
    // SAFETY: a capsule of this name holds an `ArrowArray`; `from_raw` moves it out, and leaves a
    // released one.
    let array = unsafe { FFI_ArrowArray::from_raw(pointer.cast().as_ptr()) };
    if array.is_released() {
        return Err(was_used(py, "array"));
    }
    // SAFETY: neither was released, and the producer states that the array has the type of the
    // schema.
    let data = unsafe { from_ffi(array, schema) }.or_raise(py)?;
    ffi::make_array(data).or_raise(py)
}

/// The pointers of what was moved out of a capsule, or released, lead nowhere.
#[cold]
fn was_used(py: Python<'_>, what: &str) -> PyErr {
    usage(
        py,
        format_args!("the {what} in this capsule was used before: ask its producer for another"),
    )
}

/// The schema of anything that has one.
pub(crate) fn import_schema(of: &Bound<'_, PyAny>) -> PyResult<SchemaRef> {
    let py = of.py();
    if let Ok(schema) = of.cast::<PySchema>() {
        return Ok(schema.get().schema.clone());
    }
    if of.hasattr("__arrow_c_schema__")? {
        return schema_of_capsule(&of.call_method0("__arrow_c_schema__")?);
    }
    if of.hasattr("__arrow_c_stream__")? {
        return Ok(import_stream(of)?.schema());
    }
    Err(usage(py, format_args!("{} has no Arrow schema", type_name(of))))
}

fn type_name(of: &Bound<'_, PyAny>) -> String {
    of.get_type().name().map_or_else(|_| "the object".to_owned(), |name| name.to_string())
}

/// The batches of anything with `__arrow_c_stream__` or `__arrow_c_array__`.
pub(crate) fn import_stream(of: &Bound<'_, PyAny>) -> PyResult<Imported> {
    let py = of.py();
    if of.hasattr("__arrow_c_stream__")? {
        let capsule = of.call_method0("__arrow_c_stream__")?;
        let pointer = capsule.cast::<PyCapsule>()?.pointer_checked(Some(STREAM))?;
        // SAFETY: a capsule of this name holds an `ArrowArrayStream` (the Arrow PyCapsule
        // interface); `from_raw` moves it out, and leaves a released one.
        let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.cast().as_ptr()) };
        return Ok(Imported::Stream(ffi::import(stream).or_raise(py)?));
    }
    if of.hasattr("__arrow_c_array__")? {
        let pair = of.call_method0("__arrow_c_array__")?;
        let pair = pair.cast::<PyTuple>()?;
        let array = array_in(pair)?;
        let Some(rows) = array.as_struct_opt() else {
            return Err(usage(
                py,
                "an array of structs is wanted, or a table: this array is a column",
            ));
        };
        let metadata = schema_of_capsule(&pair.get_item(0)?).map(|of| of.metadata().clone());
        if rows.null_count() > 0 {
            return Err(usage(py, "a row is null: only values in columns can be"));
        }
        let len = rows.len();
        let (fields, columns, _) = rows.clone().into_parts();
        let schema = Arc::new(Schema::new_with_metadata(fields, metadata.unwrap_or_default()));
        let options = RecordBatchOptions::new().with_row_count(Some(len));
        let batch = RecordBatch::try_new_with_options(schema, columns, &options).or_raise(py)?;
        return Ok(Imported::Batch(batch.schema(), Some(batch)));
    }
    Err(usage(
        py,
        format_args!(
            "{} has neither __arrow_c_stream__ nor __arrow_c_array__: give a table or frame of \
             pyarrow, polars, pandas, DuckDB or nanoarrow, or batches of one",
            type_name(of)
        ),
    ))
}

/// Batches from elsewhere.
pub(crate) enum Imported {
    Stream(ImportedBatches),
    Batch(SchemaRef, Option<RecordBatch>),
}

impl Imported {
    pub(crate) fn schema(&self) -> SchemaRef {
        match self {
            Self::Stream(batches) => batches.schema(),
            Self::Batch(schema, _) => schema.clone(),
        }
    }

    pub(crate) fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        match self {
            Self::Stream(batches) => batches.next_batch(),
            Self::Batch(_, batch) => Ok(batch.take()),
        }
    }
}

/// One array from elsewhere.
pub(crate) fn import_array(of: &Bound<'_, PyAny>) -> PyResult<ArrayRef> {
    let py = of.py();
    if let Ok(column) = of.cast::<Column>() {
        return Ok(column.get().array.clone());
    }
    if of.hasattr("__arrow_c_array__")? {
        let pair = of.call_method0("__arrow_c_array__")?;
        let pair = pair.cast::<PyTuple>()?;
        return array_in(pair);
    }
    Err(usage(py, format_args!("{} is no Arrow array", type_name(of))))
}

/// The names and types of columns, with `__arrow_c_schema__`.
#[pyclass(frozen, name = "Schema", module = "marq")]
pub(crate) struct PySchema {
    pub(crate) schema: SchemaRef,
}

#[pymethods]
impl PySchema {
    #[new]
    fn new(of: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self { schema: import_schema(of)? })
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    /// Names of the columns.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Arrow types of the columns, as text.
    #[getter]
    fn types(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.data_type().to_string()).collect()
    }

    /// Whether each column may hold nulls.
    #[getter]
    fn nullable(&self) -> Vec<bool> {
        self.schema.fields().iter().map(|field| field.is_nullable()).collect()
    }

    /// Metadata of the schema.
    #[getter]
    fn metadata(&self) -> std::collections::HashMap<String, String> {
        self.schema.metadata().clone()
    }

    fn __len__(&self) -> usize {
        self.schema.fields().len()
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().schema == self.schema)
    }

    fn __repr__(&self) -> String {
        let mut out = String::from("marq.Schema(");
        for field in self.schema.fields() {
            let null = if field.is_nullable() { "" } else { " not null" };
            out.push_str(&format!("\n  {}: {}{null}", field.name(), field.data_type()));
        }
        out.push_str("\n)");
        out
    }
}

/// Rows in memory.
#[pyclass(frozen, module = "marq", subclass)]
pub(crate) struct Table {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
    pub(crate) rows: usize,
}

impl Table {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        let rows = batches.iter().map(RecordBatch::num_rows).sum();
        Self { schema, batches, rows }
    }

    pub(crate) fn from_batch(batch: RecordBatch) -> Self {
        Self::new(batch.schema(), vec![batch])
    }

    fn one_column(&self, at: usize) -> Result<ArrayRef> {
        let parts = self.batches.iter().map(|batch| batch.project(&[at]));
        let parts = parts.collect::<Result<Vec<_>, _>>()?;
        let schema = Arc::new(self.schema.project(&[at])?);
        Ok(rows::concat(&schema, &parts)?.column(0).clone())
    }

    /// The batch and the row in it of a row.
    fn find(&self, row: usize) -> Option<(&RecordBatch, usize)> {
        let mut row = row;
        for batch in &self.batches {
            if row < batch.num_rows() {
                return Some((batch, row));
            }
            row -= batch.num_rows();
        }
        None
    }
}

#[pymethods]
impl Table {
    /// A table of all rows of anything with `__arrow_c_stream__` or `__arrow_c_array__`.
    #[new]
    fn py_new(of: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = of.py();
        let mut stream = import_stream(of)?;
        let schema = stream.schema();
        let batches = py.detach(move || {
            let mut batches = Vec::new();
            while let Some(batch) = stream.next_batch()? {
                batches.push(batch);
            }
            Ok::<_, Error>(batches)
        });
        Ok(Self::new(schema, batches.or_raise(py)?))
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let batches = self.batches.clone().into_iter().map(Ok);
        let batches = RecordBatchIterator::new(batches, self.schema.clone());
        stream_capsule(py, batches, requested_schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, &self.schema)
    }

    /// The rows as a table of DataFusion's Python, by the package `marq-datafusion`.
    #[pyo3(signature = (session = None))]
    fn __datafusion_table_provider__<'py>(
        slf: &Bound<'py, Self>,
        session: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("marq._datafusion")?.call_method1("of_rows", (slf, session))
    }

    /// The rows as one array of structs.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let batch = match self.batches.as_slice() {
            [one] => one.clone(),
            all => rows::concat(&self.schema, all).or_raise(py)?,
        };
        let batch = match requested_schema.filter(|schema| !schema.is_none()) {
            Some(schema) => {
                let schema = wanted_schema(schema, &self.schema)?;
                cast_batch(&batch, &schema).or_raise(py)?
            }
            None => batch,
        };
        let schema = FFI_ArrowSchema::try_from(&*batch.schema()).or_raise(py)?;
        array_capsules(py, &StructArray::from(batch), schema)
    }

    /// Number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.rows
    }

    /// Number of columns.
    #[getter]
    fn num_columns(&self) -> usize {
        self.schema.fields().len()
    }

    /// Bytes of memory that the columns take.
    #[getter]
    fn nbytes(&self) -> usize {
        self.batches.iter().map(RecordBatch::get_array_memory_size).sum()
    }

    /// Names of the columns.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    /// The names and types of the columns.
    #[getter]
    fn schema(&self) -> PySchema {
        PySchema { schema: self.schema.clone() }
    }

    fn __len__(&self) -> usize {
        self.rows
    }

    /// The parts that the table is made of, each a table of one batch.
    fn batches(&self) -> Vec<Self> {
        self.batches.iter().map(|batch| Self::from_batch(batch.clone())).collect()
    }

    /// One column, by name or position.
    fn column(&self, of: &Bound<'_, PyAny>) -> PyResult<Column> {
        let py = of.py();
        let at = if let Ok(name) = of.extract::<String>() {
            let found = self.schema.index_of(&name);
            found.map_err(|_| PyKeyError::new_err(name))?
        } else {
            let at: isize = of.extract()?;
            let len = self.schema.fields().len();
            let from_end = usize::try_from(at).ok().or_else(|| len.checked_sub(at.unsigned_abs()));
            let found = from_end.filter(|at| *at < len);
            found.ok_or_else(|| PyIndexError::new_err("there is no such column"))?
        };
        let array = self.one_column(at).or_raise(py)?;
        Ok(Column { array, name: self.schema.field(at).name().clone() })
    }

    fn __getitem__(&self, of: &Bound<'_, PyAny>) -> PyResult<Column> {
        self.column(of)
    }

    /// Some rows: `length` of them, from `offset` on. Nothing is copied.
    #[pyo3(signature = (offset = 0, length = None))]
    fn slice(&self, offset: usize, length: Option<usize>) -> Self {
        let (mut skip, mut left) = (offset, length.unwrap_or(usize::MAX));
        let mut out = Vec::new();
        for batch in &self.batches {
            let from = skip.min(batch.num_rows());
            let rows = left.min(batch.num_rows() - from);
            (skip, left) = (skip - from, left - rows);
            if rows > 0 {
                out.push(batch.slice(from, rows));
            }
        }
        Self::new(self.schema.clone(), out)
    }

    /// The rows as dictionaries.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let names = self.column_names();
        let out = PyList::empty(py);
        for batch in &self.batches {
            let columns = batch.columns().iter().map(|column| values::list(py, column));
            let columns = columns.collect::<PyResult<Vec<_>>>()?;
            for row in 0..batch.num_rows() {
                let of_row = PyDict::new(py);
                for (name, column) in names.iter().zip(&columns) {
                    of_row.set_item(name, column.get_item(row)?)?;
                }
                out.append(of_row)?;
            }
        }
        Ok(out)
    }

    /// The columns as lists, by their names.
    fn to_pydict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for (at, name) in self.column_names().iter().enumerate() {
            out.set_item(name, values::list(py, &self.one_column(at).or_raise(py)?)?)?;
        }
        Ok(out)
    }

    /// A `pyarrow.Table` of the same memory.
    fn to_pyarrow<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("pyarrow")?.call_method1("table", (slf,))
    }

    /// A `polars.DataFrame` of the same memory.
    fn to_polars<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("polars")?.call_method1("DataFrame", (slf,))
    }

    /// A `pandas.DataFrame`; pandas needs pyarrow for it.
    fn to_pandas<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::to_pyarrow(slf)?.call_method0("to_pandas")
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("marq._html")?.call_method1("table", (slf,))
    }

    /// The texts of the first rows, for a notebook.
    fn _texts(&self, py: Python<'_>, rows: usize) -> PyResult<Vec<Vec<String>>> {
        let options = arrow_cast::display::FormatOptions::default().with_null("null");
        let mut out = Vec::new();
        for row in 0..rows.min(self.rows) {
            let Some((batch, row)) = self.find(row) else { break };
            let text = |column: &ArrayRef| {
                arrow_cast::display::ArrayFormatter::try_new(column, &options)
                    .and_then(|f| f.value(row).try_to_string())
            };
            out.push(batch.columns().iter().map(text).collect::<Result<_, _>>().or_raise(py)?);
        }
        Ok(out)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> PyResult<bool> {
        let py = other.py();
        let Ok(other) = other.cast::<Self>() else { return Ok(false) };
        let other = other.get();
        if self.rows != other.rows || self.schema.fields() != other.schema.fields() {
            return Ok(false);
        }
        for at in 0..self.schema.fields().len() {
            if self.one_column(at).or_raise(py)? != other.one_column(at).or_raise(py)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn __repr__(&self) -> String {
        format!("<marq.Table of {} rows and {} columns>", self.rows, self.schema.fields().len())
    }
}

/// Makes a table of batches that are tables themselves.
#[pyfunction]
pub(crate) fn concat_tables(schema: &PySchema, tables: Vec<PyRef<'_, Table>>) -> Table {
    let batches = tables.iter().flat_map(|table| table.batches.iter().cloned()).collect();
    Table::new(schema.schema.clone(), batches)
}

/// One column in memory: `__arrow_c_array__`, and the buffer protocol for numbers without nulls.
#[pyclass(frozen, module = "marq")]
pub(crate) struct Column {
    pub(crate) array: ArrayRef,
    name: String,
}

impl Column {
    pub(crate) fn new(array: ArrayRef, name: &str) -> Self {
        Self { array, name: name.to_owned() }
    }
}

#[pymethods]
impl Column {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        // Which type the array has is ours to say.
        let _ = requested_schema;
        let schema = FFI_ArrowSchema::try_from(self.array.data_type()).or_raise(py)?;
        array_capsules(py, &*self.array, schema)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.array.data_type()).or_raise(py)?;
        PyCapsule::new_with_value(py, schema, SCHEMA)
    }

    /// Name of the column.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// Arrow type of the column, as text.
    #[getter]
    fn r#type(&self) -> String {
        self.array.data_type().to_string()
    }

    /// Number of nulls.
    #[getter]
    fn null_count(&self) -> usize {
        self.array.null_count()
    }

    fn __len__(&self) -> usize {
        self.array.len()
    }

    fn __getitem__<'py>(&self, py: Python<'py>, row: isize) -> PyResult<Bound<'py, PyAny>> {
        let len = self.array.len();
        let at = usize::try_from(row).ok().or_else(|| len.checked_sub(row.unsigned_abs()));
        let at = at.filter(|at| *at < len);
        let at = at.ok_or_else(|| PyIndexError::new_err("there is no such row"))?;
        values::list(py, &self.array.slice(at, 1))?.get_item(0)
    }

    /// The values as objects of Python.
    fn to_pylist<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        values::list(py, &self.array)
    }

    fn __repr__(&self) -> String {
        format!(
            "<marq.Column {:?}: {} values of {}>",
            self.name,
            self.array.len(),
            self.array.data_type()
        )
    }

    /// # Safety
    /// `view` is what the interpreter passes.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut pyo3::ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let array = &slf.get().array;
        let Some((format, width)) = buffer_format(array.data_type()) else {
            return Err(PyBufferError::new_err(format!(
                "a column of {} has no buffer: use to_pylist, or any Arrow library",
                array.data_type()
            )));
        };
        if array.null_count() > 0 {
            return Err(PyBufferError::new_err("a column with nulls has no buffer"));
        }
        if flags & pyo3::ffi::PyBUF_WRITABLE == pyo3::ffi::PyBUF_WRITABLE {
            return Err(PyBufferError::new_err("the values of a column cannot be changed"));
        }
        let data = array.to_data();
        let start = data.buffers()[0].as_ptr().wrapping_add(data.offset() * width);
        let len = data.len() as isize;
        // The lengths that the pointers of the view lead to.
        let shape = Box::into_raw(Box::new([len, width as isize]));
        // SAFETY: the interpreter passes a view to fill. `start` points to `len * width` bytes,
        // which live as long as the column that `obj` holds. `shape` is freed in
        // `__releasebuffer__`, which is called once for each view.
        unsafe {
            (*view).buf = start.cast_mut().cast::<c_void>();
            (*view).obj = slf.clone().into_any().into_ptr();
            (*view).len = len * width as isize;
            (*view).readonly = 1;
            (*view).itemsize = width as isize;
            (*view).format = match flags & pyo3::ffi::PyBUF_FORMAT == pyo3::ffi::PyBUF_FORMAT {
                true => format.as_ptr().cast_mut(),
                false => std::ptr::null_mut(),
            };
            (*view).ndim = 1;
            (*view).shape = shape.cast::<isize>();
            (*view).strides = shape.cast::<isize>().add(1);
            (*view).suboffsets = std::ptr::null_mut();
            (*view).internal = shape.cast::<c_void>();
        }
        Ok(())
    }

    /// # Safety
    /// `view` was filled by `__getbuffer__`.
    unsafe fn __releasebuffer__(&self, view: *mut pyo3::ffi::Py_buffer) {
        // SAFETY: `internal` is the box of `__getbuffer__`, and each view is released once.
        unsafe { drop(Box::from_raw((*view).internal.cast::<[isize; 2]>())) };
    }
}

/// The format of a buffer in the notation of `struct`, and the bytes of a value.
fn buffer_format(data_type: &DataType) -> Option<(&'static CStr, usize)> {
    Some(match data_type {
        DataType::Int8 => (c"b", 1),
        DataType::UInt8 => (c"B", 1),
        DataType::Int16 => (c"h", 2),
        DataType::UInt16 => (c"H", 2),
        DataType::Float16 => (c"e", 2),
        DataType::Int32 | DataType::Date32 | DataType::Time32(_) => (c"i", 4),
        DataType::UInt32 => (c"I", 4),
        DataType::Float32 => (c"f", 4),
        DataType::Int64
        | DataType::Date64
        | DataType::Time64(_)
        | DataType::Timestamp(..)
        | DataType::Duration(_) => (c"q", 8),
        DataType::UInt64 => (c"Q", 8),
        DataType::Float64 => (c"d", 8),
        _ => return None,
    })
}
