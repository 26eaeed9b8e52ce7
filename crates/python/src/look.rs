//! The statements of a file about itself, as tables.

use std::sync::Arc;

use arrow_array::builder::{ListBuilder, StringBuilder};
use arrow_array::{
    ArrayRef, BooleanArray, Int64Array, RecordBatch, StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{Field, Schema};
use marquetry::check::{CheckLevel, Checker, Severity};
use marquetry::crypt::Decryption;
use marquetry::readers::{Verdict, readers_of};
use marquetry::{Error, Metadata, Reader, Result};
use marquetry_cli::urls::UrlOptions;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};

use crate::error::usage;
use crate::files::{Files, Opened};
use crate::job::{self, Cancel};
use crate::keys::decryption;
use crate::source::Given;
use crate::table::Table;

/// The one file of a look.
pub(crate) fn only(files: &Opened) -> Result<Reader> {
    let mut readers = files.readers()?;
    match (readers.pop(), readers.is_empty()) {
        (Some(reader), true) => Ok(reader),
        (None, _) => Err(Error::usage("there is no file")),
        _ => Err(Error::usage("this looks at one file at a time")),
    }
}

/// One row for each column chunk.
fn columns(metadata: &Metadata) -> Result<RecordBatch> {
    #[derive(Default)]
    struct Rows {
        row_group: Vec<u32>,
        column: Vec<u32>,
        path: Vec<String>,
        physical: Vec<String>,
        codec: Vec<Option<String>>,
        values: Vec<Option<i64>>,
        compressed: Vec<Option<i64>>,
        uncompressed: Vec<Option<i64>>,
        nulls: Vec<Option<i64>>,
        dictionary: Vec<Option<i64>>,
        data: Vec<Option<i64>>,
        offset_index: Vec<bool>,
        column_index: Vec<bool>,
        bloom: Vec<bool>,
        encrypted: Vec<bool>,
    }
    let mut rows = Rows::default();
    let mut encodings = ListBuilder::new(StringBuilder::new());
    let schema = metadata.schema();
    let leaves = (0..schema.leaves_len()).map(|leaf| schema.leaf(leaf));
    let leaves = leaves.collect::<Result<Vec<_>>>()?;
    for group in 0..metadata.row_groups() {
        for (at, leaf) in leaves.iter().enumerate() {
            // The metadata of an encrypted column whose key is missing are null.
            let readable = metadata.is_readable(group, at)?;
            let chunk = metadata.column_chunk(group, at)?;
            let of = chunk.meta_data.as_ref().filter(|_| readable);
            rows.row_group.push(u32::try_from(group).unwrap_or(u32::MAX));
            rows.column.push(u32::try_from(at).unwrap_or(u32::MAX));
            rows.path.push(leaf.path.to_string());
            rows.physical.push(leaf.type_text());
            rows.codec.push(of.map(|of| of.codec.to_string()));
            rows.values.push(of.map(|of| of.num_values));
            rows.compressed.push(of.map(|of| of.total_compressed_size));
            rows.uncompressed.push(of.map(|of| of.total_uncompressed_size));
            let statistics = of.and_then(|of| of.statistics.as_ref());
            rows.nulls.push(statistics.and_then(|s| s.null_count));
            rows.dictionary.push(of.and_then(|of| of.dictionary_page_offset));
            rows.data.push(of.map(|of| of.data_page_offset));
            rows.offset_index.push(chunk.offset_index_offset.is_some());
            rows.column_index.push(chunk.column_index_offset.is_some());
            rows.bloom.push(of.is_some_and(|of| of.bloom_filter_offset.is_some()));
            rows.encrypted.push(chunk.crypto_metadata.is_some());
            match of {
                Some(of) => {
                    for encoding in &of.encodings {
                        encodings.values().append_value(encoding.to_string());
                    }
                    encodings.append(true);
                }
                None => encodings.append(false),
            }
        }
    }
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("row_group", Arc::new(UInt32Array::from(rows.row_group))),
        ("column", Arc::new(UInt32Array::from(rows.column))),
        ("path", Arc::new(StringArray::from(rows.path))),
        ("type", Arc::new(StringArray::from(rows.physical))),
        ("codec", Arc::new(StringArray::from(rows.codec))),
        ("encodings", Arc::new(encodings.finish())),
        ("values", Arc::new(Int64Array::from(rows.values))),
        ("nulls", Arc::new(Int64Array::from(rows.nulls))),
        ("compressed_bytes", Arc::new(Int64Array::from(rows.compressed))),
        ("uncompressed_bytes", Arc::new(Int64Array::from(rows.uncompressed))),
        ("dictionary_offset", Arc::new(Int64Array::from(rows.dictionary))),
        ("data_offset", Arc::new(Int64Array::from(rows.data))),
        ("has_offset_index", Arc::new(BooleanArray::from(rows.offset_index))),
        ("has_column_index", Arc::new(BooleanArray::from(rows.column_index))),
        ("has_bloom_filter", Arc::new(BooleanArray::from(rows.bloom))),
        ("is_encrypted", Arc::new(BooleanArray::from(rows.encrypted))),
    ];
    let fields: Vec<Field> = columns
        .iter()
        .map(|(name, array)| Field::new(*name, array.data_type().clone(), true))
        .collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    Ok(RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays)?)
}

/// One row for each row group.
fn row_groups(metadata: &Metadata) -> Result<RecordBatch> {
    let (mut rows, mut bytes, mut sizes) = (Vec::new(), Vec::new(), Vec::new());
    for group in 0..metadata.row_groups() {
        rows.push(metadata.row_group_rows(group)?);
        let (mut compressed, mut uncompressed) = (0i64, 0i64);
        for leaf in 0..metadata.schema().leaves_len() {
            if metadata.is_readable(group, leaf)?
                && let Some(of) = metadata.column_chunk(group, leaf)?.meta_data
            {
                compressed = compressed.saturating_add(of.total_compressed_size);
                uncompressed = uncompressed.saturating_add(of.total_uncompressed_size);
            }
        }
        bytes.push(compressed);
        sizes.push(uncompressed);
    }
    let numbers = (0..rows.len()).map(|n| n as u64).collect::<Vec<_>>();
    Ok(RecordBatch::try_from_iter([
        ("row_group", Arc::new(UInt64Array::from(numbers)) as ArrayRef),
        ("rows", Arc::new(UInt64Array::from(rows)) as ArrayRef),
        ("compressed_bytes", Arc::new(Int64Array::from(bytes)) as ArrayRef),
        ("uncompressed_bytes", Arc::new(Int64Array::from(sizes)) as ArrayRef),
    ])?)
}

#[pymethods]
impl Files {
    /// The items of a `marq.Metadata`.
    fn metadata<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (reader, columns, row_groups) = self.run(py, |files| {
            let reader = only(files)?;
            let metadata = reader.metadata();
            let tables = (columns(metadata)?, row_groups(metadata)?);
            Ok((reader, tables.0, tables.1))
        })?;
        let metadata = reader.metadata();
        let out = PyDict::new(py);
        out.set_item("rows", crate::error::OrRaise::or_raise(metadata.rows(), py)?)?;
        out.set_item("file_bytes", metadata.file_len())?;
        out.set_item("created_by", metadata.created_by())?;
        out.set_item("is_encrypted", metadata.is_encrypted())?;
        let values = metadata.key_values().iter();
        let values = values.map(|kv| (kv.key.clone(), kv.value.clone()));
        out.set_item("key_values", values.collect::<Vec<_>>())?;
        out.set_item("parquet_schema", metadata.schema().to_string())?;
        out.set_item("columns", Py::new(py, Table::from_batch(columns))?)?;
        out.set_item("row_groups", Py::new(py, Table::from_batch(row_groups))?)?;
        Ok(out)
    }

    /// The footer as it is in the file.
    fn footer_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.run(py, |files| Ok(only(files)?.metadata().to_bytes()))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// The statistics of a column: a row for each row group, or for each page.
    fn statistics(&self, py: Python<'_>, column: String, pages: bool) -> PyResult<Table> {
        let batch = self.run(py, move |files| {
            let reader = only(files)?;
            let found = match pages {
                true => reader.page_statistics(&column)?,
                false => reader.column_statistics(&column)?,
            };
            found.to_batch()
        })?;
        Ok(Table::from_batch(batch))
    }

    /// How other readers read the file: name, version, the refusal, and columns that are refused.
    #[expect(clippy::type_complexity, reason = "a tuple that Python unpacks at once")]
    fn readers(
        &self,
        py: Python<'_>,
    ) -> PyResult<
        Vec<(String, String, Option<String>, Option<String>, Vec<(String, String, String)>)>,
    > {
        self.run(py, |files| {
            let reader = only(files)?;
            let verdict = |verdict: &Verdict| match verdict {
                Verdict::Reads => ("reads".to_owned(), String::new()),
                Verdict::ReadsAs(what) => ("reads_as".to_owned(), what.to_string()),
                Verdict::ReadsIf(what) => ("reads_if".to_owned(), what.to_string()),
                Verdict::Refuses(why) => ("refuses".to_owned(), why.to_string()),
                _ => ("unknown".to_owned(), String::new()),
            };
            let report = |of: &marquetry::readers::ReaderReport| {
                let columns = of.columns.iter().map(|column| {
                    let (kind, text) = verdict(&column.verdict);
                    (column.path.clone(), kind, text)
                });
                (
                    of.reader.name().to_owned(),
                    of.reader.version().to_owned(),
                    of.since.clone(),
                    of.refuses_file.as_ref().map(|why| why.reason.to_string()),
                    columns.collect(),
                )
            };
            Ok(readers_of(reader.metadata())?.iter().map(report).collect())
        })
    }
}

/// Checks a file, and returns counts and findings.
#[pyfunction]
#[pyo3(signature = (source, level, keys = None, threads = None))]
pub(crate) fn check<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    level: &str,
    keys: Option<&Bound<'py, PyDict>>,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyDict>> {
    let Some(level) = CheckLevel::ALL.iter().copied().find(|known| known.name() == level) else {
        let known: Vec<&str> = CheckLevel::ALL.iter().map(|known| known.name()).collect();
        return Err(usage(py, format_args!("level={level:?}: there are {}", known.join(", "))));
    };
    let keys: Option<Decryption> = keys.map(decryption).transpose()?;
    let (given, cancel) = (Given::new(source, &UrlOptions::default())?, Cancel::default());
    let stop = cancel.clone();
    let (report, findings) = job::run(py, &cancel, move || {
        let mut checker = Checker::new(given.open(&stop, false)?).level(level);
        if let Some(keys) = keys {
            checker = checker.keys(keys);
        }
        if let Some(threads) = threads {
            checker = checker.threads(marquetry::Threads::Exactly(threads));
        }
        let mut findings = Vec::new();
        let report = checker.run(|finding| findings.push(finding))?;
        // What was cut short would be reported as unreadable.
        stop.check()?;
        Ok((report, findings))
    })?;
    let out = PyDict::new(py);
    out.set_item("rows", report.rows)?;
    out.set_item("row_groups", report.row_groups)?;
    out.set_item("chunks", report.chunks)?;
    out.set_item("bytes_read", report.bytes_read)?;
    out.set_item("left_out", report.left_out)?;
    for severity in Severity::ALL {
        out.set_item(format!("{}s", severity.name()), report.count(*severity))?;
    }
    let list = PyList::empty(py);
    for finding in &findings {
        let one = PyDict::new(py);
        one.set_item("code", finding.kind.code())?;
        one.set_item("severity", finding.severity().name())?;
        one.set_item("message", &finding.message)?;
        one.set_item("stated", finding.stated.as_deref())?;
        one.set_item("found", finding.found.as_deref())?;
        one.set_item("row_group", finding.at.row_group)?;
        one.set_item("column", finding.at.column.as_deref())?;
        one.set_item("page", finding.at.page)?;
        one.set_item("offset", finding.at.offset)?;
        one.set_item("text", finding.to_string())?;
        list.append(one)?;
    }
    out.set_item("findings", list)?;
    Ok(out)
}
