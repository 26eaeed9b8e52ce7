//! Writing: batches from anywhere into a file, a file object, or a folder of files.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_schema::{DataType, FieldRef, Schema, SchemaRef};
use bytes::Bytes;
use marquetry::geo::{BoxSides, CoveringColumns, GeoOptions};
use marquetry::io::{PathSink, Sink, TempFolder};
use marquetry::schema::unite;
use marquetry::variant::{VariantInference, VariantShape, VariantShredding};
use marquetry::write::encoding_named;
use marquetry::{
    BloomOptions, ChunkingOptions, ColumnOptions, Compression, Error, Export, PageVersion, Profile,
    Result, SortColumn, StatisticsLevel, TargetReader, WriteOptions, WriteReport, Writer,
};
use marquetry_cli::urls::{UrlOptions, UrlSink, create_url};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyString};

use crate::error::{OrRaise, usage};
use crate::gil::{Detached, Kept, call};
use crate::job::{self, Cancel};
use crate::keys::{encryption, given, object, only_known};
use crate::source::is_url;
use crate::table::{
    Imported, PySchema, has_same_fields, have_same_names, import_schema, import_stream, names,
};

/// Where a file goes.
enum Output {
    Path(PathSink),
    Url(UrlSink),
    Object(Kept<Py<PyAny>>),
}

/// An output that fails once the work is cancelled, so that no file stays.
pub(crate) struct CancellableSink {
    output: Output,
    cancel: Cancel,
}

impl CancellableSink {
    /// A path, or an object with `write`.
    pub(crate) fn new(of: &Bound<'_, PyAny>, cancel: &Cancel) -> PyResult<Self> {
        let py = of.py();
        if !of.is_instance_of::<PyString>() {
            let output = Output::Object(Kept::new(of.clone().unbind()));
            return Ok(Self { output, cancel: cancel.clone() });
        }
        let path = of.extract::<std::path::PathBuf>()?;
        let output = match path.to_str().filter(|path| is_url(path)) {
            Some(url) => {
                job::refuse_child().or_raise(py)?;
                let options = UrlOptions::default();
                let url = url.to_owned();
                Output::Url(job::run(py, cancel, move || create_url(&url, &options))?)
            }
            None => Output::Path(PathSink::create(path).or_raise(py)?),
        };
        Ok(Self { output, cancel: cancel.clone() })
    }
}

impl Sink for CancellableSink {
    fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.cancel.check()?;
        match &mut self.output {
            Output::Path(sink) => sink.write(bytes),
            Output::Url(sink) => sink.write(bytes),
            Output::Object(object) => {
                call("writing to the file object", |py| write_all(object.get().bind(py), &bytes))
            }
        }
    }

    fn finish(&mut self) -> Result<()> {
        self.cancel.check()?;
        match &mut self.output {
            Output::Path(sink) => sink.finish(),
            Output::Url(sink) => sink.finish(),
            Output::Object(object) => {
                let flush = |py: Python<'_>| -> PyResult<()> {
                    let object = object.get().bind(py);
                    if object.hasattr("flush")? {
                        object.call_method0("flush")?;
                    }
                    Ok(())
                };
                call("flushing the file object", flush)
            }
        }
    }
}

/// A raw file may take fewer bytes than it is given.
fn write_all(object: &Bound<'_, PyAny>, bytes: &[u8]) -> PyResult<()> {
    let mut left = bytes;
    while !left.is_empty() {
        let taken = object.call_method1("write", (PyBytes::new(object.py(), left),))?;
        match taken.extract::<usize>() {
            Ok(0) => return Err(pyo3::exceptions::PyOSError::new_err("no bytes were written")),
            Ok(n) => left = left.get(n..).unwrap_or_default(),
            // Most objects say nothing, and take all.
            Err(_) => break,
        }
    }
    Ok(())
}

/// The options of a writer, from a dictionary that `marq._write` makes.
pub(crate) fn write_options(of: &Bound<'_, PyDict>) -> PyResult<WriteOptions> {
    let py = of.py();
    let mut out = WriteOptions::new();
    if let Some(name) = given::<String>(of, "profile")? {
        out = out.with_profile(profile(py, &name)?);
    }
    if let Some(codec) = given::<String>(of, "codec")? {
        out = out.with_compression(codec.parse::<Compression>().or_raise(py)?);
    }
    if let Some(dictionary) = given(of, "dictionary")? {
        out = out.with_dictionary(dictionary);
    }
    if let Some(level) = given::<String>(of, "statistics")? {
        out = out.with_statistics(statistics(py, &level)?);
    }
    if let Some(names) = given::<Vec<String>>(of, "readers")? {
        let readers = names.iter().map(|name| name.parse::<TargetReader>().or_raise(py));
        out = out.with_readers(readers.collect::<PyResult<Vec<_>>>()?);
    }
    for (pattern, fpp) in given::<Vec<(String, Option<f64>)>>(of, "bloom")?.unwrap_or_default() {
        out = out.with_column(pattern, |column| column.with_bloom(bloom(fpp)));
    }
    for (pattern, settings) in
        given::<Vec<(String, Bound<'_, PyDict>)>>(of, "columns")?.unwrap_or_default()
    {
        let mut failed = None;
        out = out.with_column(pattern, |column| {
            column_options(column, &settings).unwrap_or_else(|e| {
                failed = Some(e);
                ColumnOptions::default()
            })
        });
        if let Some(e) = failed {
            return Err(e);
        }
    }
    if let Some(columns) = given::<Vec<(String, bool, bool)>>(of, "sort")? {
        let columns = columns.into_iter().map(sort_column);
        out = match given(of, "sort_unchecked")?.unwrap_or(false) {
            true => out.with_unchecked_sort_order(columns),
            false => out.with_sort_order(columns),
        };
    }
    for (key, value) in given::<Vec<(String, String)>>(of, "metadata")?.unwrap_or_default() {
        out = out.with_key_value(key, value);
    }
    if let Some(keys) = object(of, "encryption")? {
        out = out.with_encryption(encryption(keys.cast::<PyDict>()?)?);
    }
    for (pattern, shape) in given::<Vec<(String, String)>>(of, "shredding")?.unwrap_or_default() {
        let shredding = match shape.as_str() {
            "infer" => VariantShredding::Infer(VariantInference::new()),
            "stored" => VariantShredding::Stored,
            text => VariantShredding::Shape(VariantShape::parse(text).or_raise(py)?),
        };
        out = out.with_shredding(pattern, shredding);
    }
    if let Some(column) = given::<String>(of, "geo")? {
        let geo = GeoOptions::new();
        out = out.with_geo(match column.is_empty() {
            true => geo,
            false => geo.with_primary_column(column),
        });
    }
    if let Some(folder) = given::<std::path::PathBuf>(of, "spill")? {
        out = out.with_spill(TempFolder::new(folder));
    }
    sizes(out, of)
}

/// The rows of a file: the schema of what is given, and boxes of geometries, if they are asked for.
#[derive(Clone)]
struct FileRows {
    input: SchemaRef,
    coverings: Option<Arc<CoveringColumns>>,
}

impl FileRows {
    fn new(input: SchemaRef, options: &Bound<'_, PyDict>) -> PyResult<Self> {
        let py = options.py();
        let sides = match given::<String>(options, "geo_covering")?.as_deref() {
            None => return Ok(Self { input, coverings: None }),
            Some("float32") => BoxSides::Float32,
            Some("float64") => BoxSides::Float64,
            Some(other) => {
                let known = "float32 and float64";
                return Err(usage(py, format_args!("geo_covering={other:?}: there are {known}")));
            }
        };
        let coverings = CoveringColumns::new(&input, sides).or_raise(py)?;
        Ok(Self { input, coverings: Some(Arc::new(coverings)) })
    }

    /// The schema of the file.
    fn schema(&self) -> &SchemaRef {
        self.coverings.as_ref().map_or(&self.input, |of| of.schema())
    }

    /// A batch as the file has it.
    fn fit(&self, batch: RecordBatch) -> Result<RecordBatch> {
        let batch = fit(batch, &self.input)?;
        match &self.coverings {
            Some(coverings) => coverings.add_to(&batch),
            None => Ok(batch),
        }
    }
}

fn sizes(mut out: WriteOptions, of: &Bound<'_, PyDict>) -> PyResult<WriteOptions> {
    let py = of.py();
    if let Some(rows) = given(of, "row_group_rows")? {
        out = out.with_row_group_rows(rows);
    }
    if let Some(bytes) = given(of, "row_group_bytes")? {
        out = out.with_row_group_bytes(bytes);
    }
    if let Some(rows) = given(of, "page_rows")? {
        out = out.with_page_rows(rows);
    }
    if let Some(bytes) = given(of, "page_bytes")? {
        out = out.with_page_bytes(bytes);
    }
    if let Some(bytes) = given(of, "dictionary_bytes")? {
        out = out.with_dictionary_bytes(bytes);
    }
    if let Some(bytes) = given(of, "memory")? {
        out = out.with_memory(bytes);
    }
    if let Some(checksums) = given(of, "checksums")? {
        out = out.with_checksums(checksums);
    }
    if let Some(hint) = given(of, "arrow_schema")? {
        out = out.with_hint(hint);
    }
    if let Some(by) = given::<String>(of, "created_by")? {
        out = out.with_created_by(by);
    }
    match given::<u8>(of, "page_version")? {
        None => {}
        Some(1) => out = out.with_page_version(PageVersion::V1),
        Some(2) => out = out.with_page_version(PageVersion::V2),
        Some(other) => return Err(usage(py, format_args!("page_version={other}: 1 or 2"))),
    }
    if let Some((min, max)) = given(of, "content_defined_chunking")? {
        out = out.with_content_defined_chunking(ChunkingOptions::new(min, max));
    }
    Ok(out)
}

fn profile(py: Python<'_>, name: &str) -> PyResult<Profile> {
    Ok(match name {
        "balanced" => Profile::Balanced,
        "small" => Profile::Small,
        "fast_read" => Profile::FastRead,
        "points" => Profile::Points,
        "compatible" => Profile::Compatible,
        other => {
            let known = "balanced, small, fast_read, points and compatible";
            return Err(usage(py, format_args!("profile={other:?}: there are {known}")));
        }
    })
}

fn statistics(py: Python<'_>, name: &str) -> PyResult<StatisticsLevel> {
    Ok(match name {
        "none" => StatisticsLevel::None,
        "chunk" => StatisticsLevel::Chunk,
        "page" => StatisticsLevel::Page,
        other => {
            return Err(usage(
                py,
                format_args!("statistics={other:?}: there are none, chunk and page"),
            ));
        }
    })
}

fn bloom(fpp: Option<f64>) -> BloomOptions {
    fpp.map_or_else(BloomOptions::default, |fpp| BloomOptions::default().with_fpp(fpp))
}

pub(crate) fn sort_column((path, descending, nulls_first): (String, bool, bool)) -> SortColumn {
    let column =
        if descending { SortColumn::descending(path) } else { SortColumn::ascending(path) };
    if nulls_first { column.nulls_first() } else { column }
}

fn column_options(mut out: ColumnOptions, of: &Bound<'_, PyDict>) -> PyResult<ColumnOptions> {
    let py = of.py();
    const KNOWN: [&str; 8] = [
        "codec",
        "dictionary",
        "encoding",
        "bloom",
        "statistics",
        "page_rows",
        "page_bytes",
        "total_order",
    ];
    only_known(of, "a column", &KNOWN)?;
    if let Some(codec) = given::<String>(of, "codec")? {
        out = out.with_compression(codec.parse::<Compression>().or_raise(py)?);
    }
    if let Some(dictionary) = given(of, "dictionary")? {
        out = out.with_dictionary(dictionary);
    }
    if let Some(name) = given::<String>(of, "encoding")? {
        out = out.with_encoding(encoding_named(&name).or_raise(py)?);
    }
    match object(of, "bloom")? {
        None => {}
        Some(flag) if flag.is_instance_of::<pyo3::types::PyBool>() => {
            let wanted: bool = flag.extract()?;
            out = if wanted { out.with_bloom(bloom(None)) } else { out };
        }
        Some(fpp) => out = out.with_bloom(bloom(Some(fpp.extract()?))),
    }
    if let Some(level) = given::<String>(of, "statistics")? {
        out = out.with_statistics(statistics(py, &level)?);
    }
    if let Some(rows) = given(of, "page_rows")? {
        out = out.with_page_rows(rows);
    }
    if let Some(bytes) = given(of, "page_bytes")? {
        out = out.with_page_bytes(bytes);
    }
    if let Some(total) = given(of, "total_order")? {
        out = out.with_total_order(total);
    }
    Ok(out)
}

/// A batch in the schema of the file: by name, or by position where all names are the same, in
/// wider types where they lose nothing.
fn fit(batch: RecordBatch, schema: &SchemaRef) -> Result<RecordBatch> {
    if batch.schema_ref().fields() == schema.fields() {
        return Ok(batch);
    }
    let found = batch.schema();
    let mut columns = Vec::with_capacity(schema.fields().len());
    for (field, at) in schema.fields().iter().zip(places(&found, schema)?) {
        let column = batch.column(at);
        if column.data_type() == field.data_type() {
            columns.push(column.clone());
            continue;
        }
        if !holds(field.data_type(), column.data_type()) {
            return Err(Error::usage(format_args!(
                "column {:?} is {} in the file, and {} in the batch",
                field.name(),
                field.data_type(),
                column.data_type()
            )));
        }
        let options = arrow_cast::CastOptions { safe: false, ..Default::default() };
        columns.push(arrow_cast::cast_with_options(column, field.data_type(), &options)?);
    }
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    Ok(RecordBatch::try_new_with_options(schema.clone(), columns, &options)?)
}

/// For each column of the file, its place in the batch.
fn places(found: &Schema, schema: &Schema) -> Result<Vec<usize>> {
    if have_same_names(found.fields(), schema.fields()) {
        return Ok((0..found.fields().len()).collect());
    }
    let (in_batch, in_file) = (by_name(found)?, by_name(schema)?);
    if let Some(more) = found.fields().iter().find(|field| !in_file.contains_key(field.name())) {
        return Err(Error::usage(format_args!(
            "the batch has a column {:?}, and the file has not: it has {}",
            more.name(),
            names(schema)
        )));
    }
    let place = |field: &FieldRef| {
        in_batch.get(field.name()).copied().ok_or_else(|| {
            Error::usage(format_args!(
                "the file has a column {:?}, and the batch has not: it has {}",
                field.name(),
                names(found)
            ))
        })
    };
    schema.fields().iter().map(place).collect()
}

fn by_name(schema: &Schema) -> Result<HashMap<&String, usize>> {
    let mut places = HashMap::with_capacity(schema.fields().len());
    for (at, field) in schema.fields().iter().enumerate() {
        if places.insert(field.name(), at).is_some() {
            return Err(Error::usage(format_args!(
                "several columns are named {:?}: they cannot be matched by name, so a batch must \
                 have all columns of the file in their order",
                field.name()
            )));
        }
    }
    Ok(places)
}

/// Whether a type holds all values of another, in whatever layout.
fn holds(wide: &DataType, narrow: &DataType) -> bool {
    if let DataType::Null = narrow {
        return true;
    }
    if !has_same_fields(wide, narrow) {
        return false;
    }
    let schema = |of: &DataType| -> SchemaRef {
        Arc::new(Schema::new(vec![arrow_schema::Field::new("c", of.clone(), true)]))
    };
    let plain = |of: &DataType| match of {
        DataType::LargeUtf8 | DataType::Utf8View => DataType::Utf8,
        DataType::LargeBinary | DataType::BinaryView => DataType::Binary,
        DataType::LargeList(item) | DataType::ListView(item) | DataType::LargeListView(item) => {
            DataType::List(item.clone())
        }
        DataType::Dictionary(_, values) => (**values).clone(),
        other => other.clone(),
    };
    let (wide, narrow) = (plain(&plain(wide)), plain(&plain(narrow)));
    wide == narrow
        || unite([&schema(&wide), &schema(&narrow)])
            .is_ok_and(|both| both.field(0).data_type() == &wide)
        || wide.equals_datatype(&narrow)
        || both_lists(&wide, &narrow)
}

fn both_lists(wide: &DataType, narrow: &DataType) -> bool {
    match (wide, narrow) {
        (DataType::List(wide), DataType::List(narrow)) => {
            holds(wide.data_type(), narrow.data_type())
        }
        _ => false,
    }
}

/// A writer of one file.
#[pyclass(frozen, name = "Writer", module = "marq._marq")]
pub(crate) struct PyWriter {
    writer: Detached<Arc<Mutex<Option<Writer<CancellableSink>>>>>,
    rows: FileRows,
    cancel: Cancel,
    pid: u32,
}

impl PyWriter {
    fn lock_and<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Option<Writer<CancellableSink>>) -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        if self.pid != std::process::id() {
            return Err(usage(py, "a writer cannot go on in a process that was forked"));
        }
        let writer = Arc::clone(&self.writer);
        job::run(py, &self.cancel, move || {
            work(&mut writer.lock().unwrap_or_else(PoisonError::into_inner))
        })
    }
}

fn closed() -> Error {
    Error::usage("the writer is closed")
}

#[pymethods]
impl PyWriter {
    #[new]
    fn new(
        output: &Bound<'_, PyAny>,
        schema: &Bound<'_, PyAny>,
        options: &Bound<'_, PyDict>,
    ) -> PyResult<Self> {
        let py = output.py();
        let rows = FileRows::new(import_schema(schema)?, options)?;
        let options = write_options(options)?;
        let cancel = Cancel::default();
        let sink = CancellableSink::new(output, &cancel)?;
        let writer = Writer::new(sink, rows.schema().clone(), options).or_raise(py)?;
        let writer = Detached::new(Arc::new(Mutex::new(Some(writer))));
        Ok(Self { writer, rows, cancel, pid: std::process::id() })
    }

    /// Writes all batches of anything with `__arrow_c_stream__` or `__arrow_c_array__`; `progress`
    /// is called with the number of rows after each.
    #[pyo3(signature = (data, progress = None))]
    fn write(
        &self,
        py: Python<'_>,
        data: &Bound<'_, PyAny>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let mut stream = import_stream(data)?;
        let mut rows = 0;
        loop {
            // On this thread: a producer of Python may need it.
            let (back, next) = py.detach(move || {
                let next = stream.next_batch();
                (stream, next)
            });
            stream = back;
            // An exception of the producer is what a signal raised in it, too.
            py.check_signals()?;
            let Some(batch) = next.or_raise(py)? else { return Ok(rows) };
            let len = batch.num_rows() as u64;
            let in_file = self.rows.clone();
            self.lock_and(py, move |writer| {
                let writer = writer.as_mut().ok_or_else(closed)?;
                writer.write(&in_file.fit(batch)?)
            })?;
            rows += len;
            if let Some(progress) = progress {
                progress.call1((len,))?;
            }
        }
    }

    /// Ends the row group.
    fn flush(&self, py: Python<'_>) -> PyResult<()> {
        self.lock_and(py, |writer| writer.as_mut().ok_or_else(closed)?.flush())
    }

    /// Adds key-value metadata.
    fn add_metadata(&self, py: Python<'_>, key: String, value: String) -> PyResult<()> {
        self.lock_and(py, |writer| {
            writer.as_mut().ok_or_else(closed)?.add_key_value(key, value);
            Ok(())
        })
    }

    /// Bytes that were written so far.
    fn bytes_written(&self, py: Python<'_>) -> PyResult<u64> {
        self.lock_and(py, |writer| Ok(writer.as_ref().ok_or_else(closed)?.bytes_written()))
    }

    /// Writes the footer, and puts the file in its place.
    fn finish(&self, py: Python<'_>) -> PyResult<PyWriteReport> {
        let report = self.lock_and(py, |writer| writer.take().ok_or_else(closed)?.finish())?;
        Ok(PyWriteReport { report })
    }

    /// Gives the file up: nothing of it stays.
    fn abort(&self, py: Python<'_>) {
        self.cancel.set();
        let writer = Arc::clone(&self.writer);
        if self.pid == std::process::id() {
            py.detach(move || drop(writer.lock().unwrap_or_else(PoisonError::into_inner).take()));
        }
    }

    /// The names and types of the columns.
    #[getter]
    fn schema(&self) -> PySchema {
        PySchema { schema: self.rows.schema().clone() }
    }
}

/// A `marq.WriteReport`, whose row groups are described when they are asked for.
#[pyclass(frozen, name = "WriteReport", module = "marq._marq")]
pub(crate) struct PyWriteReport {
    report: WriteReport,
}

#[pymethods]
impl PyWriteReport {
    #[getter]
    fn rows(&self) -> u64 {
        self.report.rows
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.report.bytes
    }

    /// The shapes that VARIANT columns were shredded into.
    #[getter]
    fn shapes(&self) -> Vec<(String, String)> {
        let shapes = self.report.shapes.iter();
        shapes.map(|(name, shape)| (name.clone(), shape.to_string())).collect()
    }

    /// Number of row groups.
    #[getter]
    fn row_groups(&self) -> usize {
        self.report.row_groups()
    }

    /// The items of a `marq.RowGroupReport`.
    fn row_group<'py>(&self, py: Python<'py>, row_group: usize) -> PyResult<Bound<'py, PyDict>> {
        let group = self.report.row_group(row_group).or_raise(py)?;
        let of = PyDict::new(py);
        of.set_item("rows", group.rows)?;
        of.set_item("offset", group.offset)?;
        of.set_item("bytes", group.bytes)?;
        let columns = PyList::empty(py);
        for column in &group.columns {
            let one = PyDict::new(py);
            one.set_item("path", &column.path)?;
            one.set_item("field_id", column.field_id)?;
            one.set_item("values", column.values)?;
            one.set_item("nulls", column.nulls)?;
            one.set_item("nans", column.nans)?;
            one.set_item("distinct", column.distinct)?;
            one.set_item("min", column.min.as_ref().map(|bytes| PyBytes::new(py, bytes)))?;
            one.set_item("max", column.max.as_ref().map(|bytes| PyBytes::new(py, bytes)))?;
            one.set_item("codec", column.codec.to_string())?;
            let encodings: Vec<String> = column.encodings.iter().map(ToString::to_string).collect();
            one.set_item("encodings", encodings)?;
            one.set_item("offset", column.offset)?;
            one.set_item("bytes", column.bytes)?;
            one.set_item("uncompressed_bytes", column.uncompressed_bytes)?;
            one.set_item("pages", column.pages)?;
            columns.append(one)?;
        }
        of.set_item("columns", columns)?;
        Ok(of)
    }
}

/// Batches of an iterator of Python, each item a table or a batch.
struct PyItems {
    items: Kept<Py<PyAny>>,
    current: Option<Imported>,
    rows: FileRows,
    cancel: Cancel,
}

impl Iterator for PyItems {
    type Item = Result<RecordBatch>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Err(e) = self.cancel.check() {
                return Some(Err(e));
            }
            if let Some(current) = &mut self.current {
                match current.next_batch() {
                    Ok(Some(batch)) => return Some(self.rows.fit(batch)),
                    Ok(None) => self.current = None,
                    Err(e) => return Some(Err(e)),
                }
            }
            let next = call("the iterator of batches", |py| -> PyResult<Option<Imported>> {
                let mut items = self.items.get().bind(py).try_iter()?;
                items.next().map(|item| import_stream(&item?)).transpose()
            });
            match next {
                Ok(Some(next)) => self.current = Some(next),
                Ok(None) => return None,
                Err(e) => return Some(Err(e)),
            }
        }
    }
}

/// Writes the items of iterators into the files of a folder, partitioned by the values of columns.
#[pyfunction]
#[pyo3(signature = (streams, folder, schema, partition_by, options, settings))]
pub(crate) fn export<'py>(
    py: Python<'py>,
    streams: Vec<Bound<'py, PyAny>>,
    folder: std::path::PathBuf,
    schema: &Bound<'py, PyAny>,
    partition_by: Vec<String>,
    options: &Bound<'py, PyDict>,
    settings: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyList>> {
    let rows = FileRows::new(import_schema(schema)?, options)?;
    let options = write_options(options)?;
    let cancel = Cancel::default();
    let streams: Vec<PyItems> = streams
        .into_iter()
        .map(|items| PyItems {
            items: Kept::new(items.unbind()),
            current: None,
            rows: rows.clone(),
            cancel: cancel.clone(),
        })
        .collect();
    let mut export = Export::to(folder, rows.schema().clone()).or_raise(py)?.options(options);
    if !partition_by.is_empty() {
        export = export.partition_by(partition_by);
    }
    if let Some(bytes) = given(settings, "file_bytes")? {
        export = export.file_bytes(bytes);
    }
    if let Some(bytes) = given(settings, "memory")? {
        export = export.memory(bytes);
    }
    if let Some(files) = given(settings, "open_files")? {
        export = export.open_files(files);
    }
    if let Some(partitions) = given(settings, "max_partitions")? {
        export = export.max_partitions(partitions);
    }
    if let Some(threads) = given(settings, "threads")? {
        export = export.threads(threads);
    }
    if let Some(summary) = given(settings, "summary")? {
        export = export.summary(summary);
    }
    if let Some(pattern) = given::<String>(settings, "file_name")? {
        export = export.file_name(move |n| pattern.replace("{n}", &n.to_string()));
    }
    let files = job::run(py, &cancel, move || export.run(streams))?;
    let out = PyList::empty(py);
    for file in files {
        let one = PyDict::new(py);
        one.set_item("path", file.path.to_string_lossy())?;
        one.set_item("partition", file.partition)?;
        one.set_item("stream", file.stream)?;
        one.set_item("report", PyWriteReport { report: file.report })?;
        out.append(one)?;
    }
    Ok(out)
}
