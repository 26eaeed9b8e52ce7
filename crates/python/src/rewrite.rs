//! Whole files: rewritten, joined, divided, filled, saved, encrypted and decrypted.

use std::path::{Path, PathBuf};

use marquetry::rewrite::{
    Compact, Fill, FillPart, Rewrite, Rewritten, Salvage, SplitBy, recrypt as recrypt_file,
};
use marquetry::{BloomOptions, Compression, Error, Reader, Result};
use marquetry_cli::urls::UrlOptions;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString};

use crate::error::{OrRaise, usage};
use crate::files::Files;
use crate::job::{self, Cancel};
use crate::keys::{encryption, given, object};
use crate::look::only;
use crate::source::Given;
use crate::write::{CancellableSink, sort_column, write_options};

/// The settings of a rewrite, from a dictionary that `marq._rewrite` makes.
fn rewrite(readers: Vec<Reader>, of: &Bound<'_, PyDict>) -> PyResult<Rewrite> {
    let py = of.py();
    let mut out = Rewrite::new(readers);
    if let Some(by_name) = given(of, "by_name")? {
        out = out.by_name(by_name);
    }
    for (pattern, codec) in given::<Vec<(String, String)>>(of, "codec")?.unwrap_or_default() {
        out = out.codec(pattern, codec.parse::<Compression>().or_raise(py)?);
    }
    for pattern in given::<Vec<String>>(of, "encode")?.unwrap_or_default() {
        out = out.encode(pattern);
    }
    if let Some(options) = object(of, "options")? {
        out = out.options(write_options(options.cast::<PyDict>()?)?);
    }
    if let Some(regroup) = given(of, "regroup")? {
        out = out.regroup(regroup);
    }
    if let Some(columns) = given::<Vec<(String, bool, bool)>>(of, "sort_by")? {
        out = out.sort_by(columns.into_iter().map(sort_column));
    }
    if let Some(columns) = given::<Vec<(String, bool, bool)>>(of, "merge_by")? {
        out = out.merge_by(columns.into_iter().map(sort_column));
    }
    if let Some(forget) = given(of, "forget_order")? {
        out = out.forget_order(forget);
    }
    if let Some(verify) = given(of, "verify_checksums")? {
        out = out.verify_checksums(verify);
    }
    for (key, value) in given::<Vec<(String, Option<String>)>>(of, "metadata")?.unwrap_or_default()
    {
        out = match value {
            Some(value) => out.set_key_value(key, value),
            None => out.drop_key_value(key),
        };
    }
    if let Some(keys) = object(of, "encryption")? {
        out = out.encryption(encryption(keys.cast::<PyDict>()?)?);
    }
    Ok(out)
}

fn rewritten<'py>(py: Python<'py>, done: &Rewritten) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("rows", done.rows)?;
    out.set_item("row_groups", done.row_groups)?;
    out.set_item("bytes", done.bytes)?;
    Ok(out)
}

#[pymethods]
impl Files {
    /// The readers of a rewrite, narrowed to some columns or row groups.
    #[pyo3(name = "rewrite")]
    fn py_rewrite<'py>(
        &self,
        py: Python<'py>,
        output: &Bound<'py, PyAny>,
        settings: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let rewrite = self.plan_rewrite(py, settings)?;
        let opened = self.opened();
        let sink = CancellableSink::new(output, &opened.cancel)?;
        let done = job::run(py, &opened.cancel, move || rewrite.run(sink))?;
        rewritten(py, &done)
    }

    /// Plans a rewrite, and describes it in words and numbers.
    fn rewrite_plan<'py>(
        &self,
        py: Python<'py>,
        settings: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let rewrite = self.plan_rewrite(py, settings)?;
        let plan = job::run(py, &self.opened().cancel, move || rewrite.plan())?;
        let out = PyDict::new(py);
        out.set_item("rows", plan.rows)?;
        out.set_item("columns", plan.columns.clone())?;
        out.set_item("notes", plan.notes.clone())?;
        out.set_item("regroups", plan.regroups)?;
        let methods = plan.by_reason();
        let methods = methods.iter().map(|(method, reason, chunks)| {
            (format!("{method:?}").to_lowercase(), reason.to_string(), chunks.chunks, chunks.bytes)
        });
        out.set_item("chunks", methods.collect::<Vec<_>>())?;
        Ok(out)
    }

    /// Divides the rows into several files; returns a dictionary for each.
    fn split<'py>(
        &self,
        py: Python<'py>,
        pattern: String,
        by: &str,
        amount: u64,
        settings: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyList>> {
        let by = match by {
            "rows" => SplitBy::Rows(amount),
            "bytes" => SplitBy::Bytes(amount),
            "files" => SplitBy::Files(amount),
            other => return Err(usage(py, format_args!("split by {other:?}"))),
        };
        let rewrite = self.plan_rewrite(py, settings)?;
        let opened = self.opened();
        let parts = job::run(py, &opened.cancel, move || rewrite.split(by))?;
        let out = PyList::empty(py);
        for (n, part) in parts.into_iter().enumerate() {
            let path = pattern.replace("{n}", &n.to_string());
            let sink = CancellableSink::new(PyString::new(py, &path).as_any(), &opened.cancel)?;
            let done = job::run(py, &opened.cancel, move || part.run(sink))?;
            let one = rewritten(py, &done)?;
            one.set_item("path", path)?;
            out.append(one)?;
        }
        Ok(out)
    }

    /// Adds what the writer of a file left out.
    fn fill<'py>(
        &self,
        py: Python<'py>,
        output: &Bound<'py, PyAny>,
        parts: Option<Vec<String>>,
        bloom: Vec<(String, Option<f64>)>,
        sorted: Vec<(String, bool, bool)>,
        decode: bool,
    ) -> PyResult<Bound<'py, PyDict>> {
        let reader = self.run(py, only)?;
        let mut fill = Fill::new(reader).decode_values(decode);
        if let Some(names) = parts {
            let part = |name: &String| {
                let known = FillPart::ALL.iter().copied().find(|part| part.name() == name);
                known.ok_or_else(|| {
                    let known: Vec<&str> = FillPart::ALL.iter().map(|part| part.name()).collect();
                    usage(py, format_args!("part {name:?}: there are {}", known.join(", ")))
                })
            };
            fill = fill.only(names.iter().map(part).collect::<PyResult<Vec<_>>>()?);
        }
        for (column, fpp) in bloom {
            let options = BloomOptions::default();
            fill = fill.bloom(column, fpp.map_or(options, |fpp| options.with_fpp(fpp)));
        }
        if !sorted.is_empty() {
            fill = fill.sorted(sorted.into_iter().map(sort_column));
        }
        let opened = self.opened();
        let sink = CancellableSink::new(output, &opened.cancel)?;
        let done = job::run(py, &opened.cancel, move || fill.run(sink))?;
        let out = PyDict::new(py);
        out.set_item("rows", done.rows)?;
        out.set_item("row_groups", done.row_groups)?;
        out.set_item("bytes", done.bytes)?;
        out.set_item("notes", done.notes.clone())?;
        let parts = done.parts.iter().map(|part| (part.part.name(), part.count, part.bytes));
        out.set_item("parts", parts.collect::<Vec<_>>())?;
        Ok(out)
    }

    /// Changes how a file is protected; without `keys` the new file is in plain text.
    #[pyo3(signature = (output, keys = None))]
    fn recrypt<'py>(
        &self,
        py: Python<'py>,
        output: &Bound<'py, PyAny>,
        keys: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let reader = self.run(py, only)?;
        let keys = keys.map(encryption).transpose()?;
        let opened = self.opened();
        let sink = CancellableSink::new(output, &opened.cancel)?;
        let done =
            job::run(py, &opened.cancel, move || recrypt_file(&reader, sink, keys.as_ref()))?;
        let out = PyDict::new(py);
        out.set_item("rows", done.rows)?;
        out.set_item("row_groups", done.row_groups)?;
        out.set_item("bytes", done.bytes)?;
        Ok(out)
    }
}

impl Files {
    fn plan_rewrite(&self, py: Python<'_>, settings: &Bound<'_, PyDict>) -> PyResult<Rewrite> {
        let columns = given::<Vec<String>>(settings, "columns")?;
        let row_groups = given::<Vec<usize>>(settings, "row_groups")?;
        let readers = self.run(py, move |files| {
            let narrow = |reader: Reader| -> Result<Reader> {
                let reader = match &columns {
                    Some(columns) => reader.project(columns)?,
                    None => reader,
                };
                match &row_groups {
                    Some(row_groups) => reader.row_groups(row_groups.iter().copied()),
                    None => Ok(reader),
                }
            };
            let readers = files.readers()?;
            if readers.is_empty() {
                return Err(Error::usage("there is no file"));
            }
            readers.into_iter().map(narrow).collect()
        })?;
        rewrite(readers, settings)
    }
}

/// Recovers what is whole of a damaged file, and writes it, if there is an output.
#[pyfunction]
#[pyo3(signature = (source, output = None, schema_of = None, row_group_rows = None))]
pub(crate) fn salvage<'py>(
    py: Python<'py>,
    source: &Bound<'py, PyAny>,
    output: Option<&Bound<'py, PyAny>>,
    schema_of: Option<&Files>,
    row_group_rows: Option<u64>,
) -> PyResult<Bound<'py, PyDict>> {
    let (given, cancel) = (Given::new(source, &UrlOptions::default())?, Cancel::default());
    let stop = cancel.clone();
    let model = schema_of.map(|files| files.run(py, only)).transpose()?;
    let found = job::run(py, &cancel, move || {
        let mut salvage = Salvage::new(given.open(&stop, false)?);
        if let Some(reader) = model {
            salvage = salvage.schema_of(&reader)?;
        }
        if let Some(rows) = row_group_rows {
            salvage = salvage.row_group_rows(rows);
        }
        let found = salvage.find()?;
        stop.check()?;
        Ok(found)
    })?;
    let account = found.account().clone();
    let out = PyDict::new(py);
    out.set_item("is_complete", account.is_complete())?;
    out.set_item("rows_recovered", account.rows_recovered())?;
    out.set_item("rows_lost", account.rows_lost())?;
    out.set_item("bytes_recovered", account.bytes_recovered())?;
    out.set_item("bytes_lost", account.bytes_lost())?;
    out.set_item("notes", account.notes.clone())?;
    let lost = account.lost.iter().map(|part| {
        (part.bytes.start, part.bytes.end, part.row_group, part.rows, part.reason.clone())
    });
    out.set_item("lost", lost.collect::<Vec<_>>())?;
    let recovered = account
        .recovered
        .iter()
        .map(|part| (part.bytes.start, part.bytes.end, part.rows, part.found_by.name()));
    out.set_item("recovered", recovered.collect::<Vec<_>>())?;
    if let Some(output) = output {
        let sink = CancellableSink::new(output, &cancel)?;
        let written = job::run(py, &cancel, move || found.write(sink))?;
        out.set_item("bytes_written", written.bytes)?;
    }
    Ok(out)
}

/// Joins the small files of a folder.
#[pyfunction]
pub(crate) fn compact(
    py: Python<'_>,
    folder: PathBuf,
    file_bytes: Option<u64>,
    merge: bool,
    dry_run: bool,
) -> PyResult<(usize, usize, u64)> {
    let cancel = Cancel::default();
    let stop = cancel.clone();
    let open = move |path: &Path| {
        stop.check()?;
        Reader::open(path)
    };
    let mut compact = Compact::new(folder).merge(merge).open_with(open);
    if let Some(bytes) = file_bytes {
        compact = compact.file_bytes(bytes);
    }
    job::run(py, &cancel, move || {
        if dry_run {
            let plan = compact.plan()?;
            let joined = plan.joins.iter().map(|join| join.inputs.len()).sum();
            let bytes = plan.joins.iter().map(|join| join.bytes).sum();
            return Ok((joined, plan.joins.len(), bytes));
        }
        let done = compact.run()?;
        Ok((done.files_joined, done.files_made, done.bytes))
    })
}

/// Appends the rows of files to a file, in place.
#[pymethods]
impl Files {
    fn append_to<'py>(
        &self,
        py: Python<'py>,
        path: PathBuf,
        settings: &Bound<'py, PyDict>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let rewrite = self.plan_rewrite(py, settings)?;
        let done = job::run(py, &self.opened().cancel, move || rewrite.append_to(path))?;
        rewritten(py, &done)
    }
}
