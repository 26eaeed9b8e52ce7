//! The files of a read, opened when they are first needed, and what is read of them.

use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use arrow_array::RecordBatch;
use arrow_schema::{Schema, SchemaRef};
use marquetry::crypt::Decryption;
use marquetry::engine::rows;
use marquetry::read::{OnDamage, VariantOutput, VirtualColumn};
use marquetry::schema::{Dictionaries, MatchBy, unite};
use marquetry::{Dataset, Error, Limits, Predicate, Reader, Result};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::chain::{Chain, Prepared};
use crate::error::usage;
use crate::gil::Detached;
use crate::hive::{Completion, Partitions};
use crate::job::{self, Cancel};
use crate::keys::{decryption, given, object, only_known};
use crate::source::{Given, url_options};
use crate::table::{PySchema, Table, import_schema};

/// The files of a read.
#[pyclass(frozen, module = "marq._marq")]
pub(crate) struct Files {
    shared: Arc<Shared>,
    /// Forgotten after a signal ended a read of them.
    opened: Detached<Mutex<Option<Arc<Opened>>>>,
}

struct Shared {
    given: Vec<(Given, Option<Arc<str>>)>,
    partitions: Option<Partitions>,
    keys: Option<Decryption>,
    limits: Limits,
}

/// Files that are open, or will be when they are needed.
pub(crate) struct Opened {
    shared: Arc<Shared>,
    readers: Vec<OnceLock<Reader>>,
    pub(crate) cancel: Cancel,
}

/// The names and types of partition columns, and their values in each file.
type GivenPartitions = (Vec<(String, String)>, Vec<Vec<Option<String>>>);

/// With more files than this, none stays open, because a process may have 1,024 by default.
const MAX_OPEN: usize = 100;

impl Opened {
    fn reader(&self, at: usize) -> Result<&Reader> {
        let slot = &self.readers[at];
        if let Some(reader) = slot.get() {
            return Ok(reader);
        }
        let (given, name) = &self.shared.given[at];
        let named = |e: Error| match name {
            Some(name) => e.at_file(name.clone()),
            None => e,
        };
        let open = || -> Result<Reader> {
            let source = given.open(&self.cancel, self.readers.len() > MAX_OPEN)?;
            let limits = self.shared.limits.clone();
            match &self.shared.keys {
                Some(keys) => Reader::with_keys(source, limits, keys),
                None => Reader::with_limits(source, limits),
            }
        };
        let reader = open().map_err(named)?;
        let reader = match name {
            Some(name) => reader.file_name(name.clone()),
            None => reader,
        };
        Ok(slot.get_or_init(|| reader))
    }

    /// All files, as they are.
    pub(crate) fn readers(&self) -> Result<Vec<Reader>> {
        (0..self.readers.len()).map(|at| self.reader(at).cloned()).collect()
    }

    /// The files that the filter may find rows in, with everything that `spec` says, and the schema
    /// of the batches.
    pub(crate) fn prepare(&self, spec: &ReadSpec) -> Result<(SchemaRef, Vec<Prepared>)> {
        let filters = self.filters(spec)?;
        if self.readers.is_empty() {
            return Err(Error::usage("there is no file to read"));
        }
        let mut wanted: Vec<usize> = (0..self.readers.len())
            .filter(|at| !matches!(&filters[*at], Some(filter) if *filter == Predicate::FALSE))
            .collect();
        if wanted.is_empty() {
            wanted.push(0);
        }
        let target = self.target(spec)?;
        let mut prepared = Vec::with_capacity(wanted.len());
        for at in wanted {
            let reader = spec.apply(self.reader(at)?.clone(), target.as_ref())?;
            prepared.push(self.complete(reader, at, filters[at].as_ref(), spec)?);
        }
        let files = prepared.iter().map(|file| file.reader.clone());
        let schema = Dataset::new(files).schema()?;
        let schema = match prepared.first().and_then(|file| file.completion.as_ref()) {
            Some(completion) => completion.schema(&schema),
            None => schema,
        };
        Ok((schema, prepared))
    }

    /// The partition columns, in the types of the target.
    fn partitions(&self, spec: &ReadSpec) -> Option<Partitions> {
        let partitions = self.shared.partitions.as_ref()?;
        Some(match &spec.target {
            Some(Target::Schema(target)) => partitions.in_types_of(target),
            _ => partitions.clone(),
        })
    }

    /// The filter of each file: its partition values are known.
    fn filters(&self, spec: &ReadSpec) -> Result<Vec<Option<Predicate>>> {
        let Some(text) = &spec.filter else { return Ok(vec![None; self.readers.len()]) };
        let filter = Predicate::parse(text)?;
        let partitions = self.partitions(spec);
        let of = |at: usize| match &partitions {
            Some(partitions) => filter.with_known(&partitions.row(at)?).map(Some),
            None => Ok(Some(filter.clone())),
        };
        (0..self.readers.len()).map(of).collect()
    }

    /// The schema that all files are read into, if one is wanted.
    fn target(&self, spec: &ReadSpec) -> Result<Option<SchemaRef>> {
        let target = match &spec.target {
            None => return Ok(None),
            Some(Target::Schema(schema)) => schema.clone(),
            Some(Target::Union) => {
                let mut all: Option<SchemaRef> = None;
                for reader in self.readers()? {
                    let schema = reader.views(spec.views).schema()?;
                    all = Some(match all {
                        Some(before) => unite([&before, &schema])?,
                        None => schema,
                    });
                }
                match all {
                    Some(schema) => schema,
                    None => return Ok(None),
                }
            }
        };
        let Some(partitions) = &self.shared.partitions else { return Ok(Some(target)) };
        let of_files = target.fields().iter().filter(|field| !partitions.has(field.name()));
        let of_files: Vec<_> = of_files.cloned().collect();
        Ok(Some(Arc::new(Schema::new_with_metadata(of_files, target.metadata().clone()))))
    }

    /// Narrows the file to the rows and columns that are wanted, and says how its batches are
    /// completed.
    fn complete(
        &self,
        reader: Reader,
        at: usize,
        filter: Option<&Predicate>,
        spec: &ReadSpec,
    ) -> Result<Prepared> {
        let reader = match filter {
            Some(filter) => reader.filter(filter.clone()),
            None => reader,
        };
        let Some(partitions) = self.partitions(spec) else {
            let reader = match &spec.columns {
                Some(columns) => reader.project(columns)?,
                None => reader,
            };
            return Ok(Prepared { reader: spec.add_virtual(reader), completion: None });
        };
        let of_file: Vec<String> = match &spec.columns {
            Some(names) => names.iter().filter(|name| !partitions.has(name)).cloned().collect(),
            None => {
                let schema = reader.schema()?;
                let names = schema.fields().iter().map(|field| field.name());
                names.filter(|name| !partitions.has(name)).map(|name| quoted(name)).collect()
            }
        };
        let reader = spec.add_virtual(reader.project(&of_file)?);
        let wanted = spec.columns.as_deref();
        let completion = Completion::new(&reader.schema()?, &partitions, at, wanted)?;
        Ok(Prepared { reader, completion: Some(completion) })
    }

    /// The batches that `spec` says, in the order of the files.
    pub(crate) fn chain(&self, spec: &ReadSpec) -> Result<Chain> {
        let Selected { schema, files, offset, limit } = self.selected(spec)?;
        Ok(Chain::new(schema, files, offset, limit, self.cancel.clone()))
    }

    /// The files that `spec` says, or what a part has of them.
    fn selected(&self, spec: &ReadSpec) -> Result<Selected> {
        let (schema, files) = self.prepare(spec)?;
        let (offset, limit) = (spec.offset, spec.limit);
        let Some(part) = &spec.part else {
            return Ok(Selected { schema, files, offset, limit });
        };
        // The part has the rows that it was made with, whatever else is read of them now.
        let parts = self.parts(&part.whole, part.of)?;
        let (filters, target) = (self.filters(spec)?, self.target(spec)?);
        let mut files = Vec::new();
        for divided in parts.get(part.at).map(Dataset::readers).unwrap_or_default() {
            let Some(at) = self.place_of(divided) else { continue };
            if matches!(&filters[at], Some(filter) if *filter == Predicate::FALSE) {
                continue;
            }
            let options = self.reader(at)?.read_options().clone();
            let mut spec = spec.clone();
            if spec.memory == part.whole.memory {
                spec.memory = Some(divided.read_options().limits.memory_bytes);
            }
            if spec.threads == part.whole.threads {
                spec.threads = None;
            }
            if part.of > 1 {
                spec.row_groups = None;
            }
            let reader = spec.apply(divided.clone().options(options), target.as_ref())?;
            files.push(self.complete(reader, at, filters[at].as_ref(), &spec)?);
        }
        // What is not divided keeps its own offset and limit.
        let whole = &part.whole;
        let (before, most) = if part.of == 1 { (whole.offset, whole.limit) } else { (0, None) };
        let left = most.map(|most| most.saturating_sub(offset));
        let limit = limit.into_iter().chain(left).min();
        Ok(Selected { schema, files, offset: before.saturating_add(offset), limit })
    }

    /// The whole read, divided into at most `n` parts.
    fn parts(&self, spec: &ReadSpec, n: usize) -> Result<Vec<Dataset>> {
        let files = self.prepare(spec)?.1;
        let mut dataset = Dataset::new(files.into_iter().map(|file| file.reader));
        dataset = dataset.offset(spec.offset);
        if let Some(limit) = spec.limit {
            dataset = dataset.limit(limit);
        }
        dataset.parts(n)
    }

    /// The place of a reader's file among all.
    fn place_of(&self, reader: &Reader) -> Option<usize> {
        self.readers.iter().position(|slot| {
            slot.get().is_some_and(|opened| Arc::ptr_eq(opened.source(), reader.source()))
        })
    }
}

/// The files of a read, or of a part of one, and what of their rows is left out.
struct Selected {
    schema: SchemaRef,
    files: Vec<Prepared>,
    offset: u64,
    limit: Option<u64>,
}

/// A name as the text form of a path, so that a dot in it is no step.
fn quoted(name: &str) -> String {
    name.to_owned()
}

/// The schema that files are read into.
#[derive(Clone)]
pub(crate) enum Target {
    Schema(SchemaRef),
    Union,
}

/// A part of a read that was divided into at most `of` parts.
pub(crate) struct Part {
    at: usize,
    of: usize,
    /// The options of the read that was divided.
    whole: ReadSpec,
}

/// The options of a read.
#[derive(Clone, Default)]
pub(crate) struct ReadSpec {
    pub(crate) columns: Option<Vec<String>>,
    pub(crate) filter: Option<String>,
    pub(crate) limit: Option<u64>,
    pub(crate) offset: u64,
    pub(crate) part: Option<Arc<Part>>,
    target: Option<Target>,
    by_field_id: bool,
    batch_rows: Option<usize>,
    batch_bytes: Option<usize>,
    memory: Option<u64>,
    threads: Option<usize>,
    row_groups: Option<Vec<usize>>,
    row_number: Option<String>,
    row_group_column: Option<String>,
    file_name: Option<String>,
    views: bool,
    dictionaries: Option<Vec<String>>,
    all_dictionaries: bool,
    binary_as_text: bool,
    verify_checksums: bool,
    variants: VariantOutput,
    on_damage: OnDamage,
}

impl ReadSpec {
    /// The items of a dictionary that `marq._scan` makes.
    pub(crate) fn new(of: &Bound<'_, PyDict>) -> PyResult<Self> {
        let py = of.py();
        let target = match object(of, "target")? {
            None => None,
            Some(text) if text.extract::<String>().is_ok_and(|text| text == "union") => {
                Some(Target::Union)
            }
            Some(schema) => Some(Target::Schema(import_schema(&schema)?)),
        };
        let variants = match given::<String>(of, "variants")?.as_deref() {
            None | Some("stored") => VariantOutput::Stored,
            Some("unshredded") => VariantOutput::Unshredded,
            Some("json") => VariantOutput::Json,
            Some(other) => {
                let known = "stored, unshredded and json";
                return Err(usage(py, format_args!("variants={other:?}: there are {known}")));
            }
        };
        let on_damage = match given::<String>(of, "on_damage")?.as_deref() {
            None | Some("fail") => OnDamage::Fail,
            Some("skip") => OnDamage::SkipRowGroup,
            Some("null_pages") => OnDamage::NullPages,
            Some(other) => {
                let known = "fail, skip and null_pages";
                return Err(usage(py, format_args!("on_damage={other:?}: there are {known}")));
            }
        };
        let part = match given::<(usize, usize, Bound<'_, PyDict>)>(of, "part")? {
            Some((at, of, whole)) => Some(Arc::new(Part { at, of, whole: Self::new(&whole)? })),
            None => None,
        };
        let dictionaries = object(of, "dictionaries")?;
        let all = dictionaries.as_ref().is_some_and(|all| all.extract().unwrap_or(false));
        let named = dictionaries.filter(|names| !names.is_instance_of::<pyo3::types::PyBool>());
        Ok(Self {
            columns: given(of, "columns")?,
            filter: given(of, "where")?,
            limit: given(of, "limit")?,
            offset: given(of, "offset")?.unwrap_or(0),
            part,
            target,
            by_field_id: given(of, "by_field_id")?.unwrap_or(false),
            batch_rows: given(of, "rows")?,
            batch_bytes: given(of, "batch_bytes")?,
            memory: given(of, "memory")?,
            threads: given(of, "threads")?,
            row_groups: given(of, "row_groups")?,
            row_number: given(of, "row_number")?,
            row_group_column: given(of, "row_group")?,
            file_name: given(of, "file_name")?,
            views: given(of, "views")?.unwrap_or(false),
            dictionaries: named.map(|names| names.extract()).transpose()?,
            all_dictionaries: all,
            binary_as_text: given(of, "binary_as_text")?.unwrap_or(false),
            verify_checksums: given(of, "verify_checksums")?.unwrap_or(false),
            variants,
            on_damage,
        })
    }

    /// Everything but columns, filter, and what counts over all files.
    fn apply(&self, reader: Reader, target: Option<&SchemaRef>) -> Result<Reader> {
        let mut reader = reader
            .views(self.views)
            .binary_as_utf8(self.binary_as_text)
            .verify_checksums(self.verify_checksums)
            .variants(self.variants.clone())
            .on_damage(self.on_damage);
        if self.all_dictionaries {
            reader = reader.dictionaries(Dictionaries::Strings);
        } else if let Some(names) = &self.dictionaries {
            reader = reader.dictionaries(Dictionaries::Named(names.clone()));
        }
        if let Some(rows) = self.batch_rows {
            reader = reader.batch_rows(rows);
        }
        if let Some(bytes) = self.batch_bytes {
            reader = reader.batch_bytes(bytes);
        }
        if let Some(bytes) = self.memory {
            reader = reader.memory(bytes);
        }
        if let Some(threads) = self.threads {
            reader = reader.threads(threads);
        }
        if let Some(target) = target {
            let by = if self.by_field_id { MatchBy::FieldId } else { MatchBy::Name };
            reader = reader.target(target.clone(), by)?;
        }
        if let Some(row_groups) = &self.row_groups {
            reader = reader.row_groups(row_groups.iter().copied())?;
        }
        Ok(reader)
    }

    fn add_virtual(&self, mut reader: Reader) -> Reader {
        if let Some(name) = &self.row_number {
            let name = name.as_str().into();
            reader = reader.virtual_column(VirtualColumn::RowNumber { name });
        }
        if let Some(name) = &self.row_group_column {
            reader = reader.virtual_column(VirtualColumn::RowGroup { name: name.as_str().into() });
        }
        if let Some(name) = &self.file_name {
            reader = reader.virtual_column(VirtualColumn::FileName { name: name.as_str().into() });
        }
        reader
    }
}

impl Files {
    pub(crate) fn opened(&self) -> Arc<Opened> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(opened) = opened.as_ref().filter(|opened| !opened.cancel.is_set()) {
            return opened.clone();
        }
        let readers = self.shared.given.iter().map(|_| OnceLock::new()).collect();
        let new = Opened { shared: self.shared.clone(), readers, cancel: Cancel::default() };
        opened.insert(Arc::new(new)).clone()
    }

    /// Runs work on the opened files, without the GIL.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&Opened) -> Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let opened = self.opened();
        let cancel = opened.cancel.clone();
        job::run(py, &cancel, move || work(&opened))
    }
}

#[pymethods]
impl Files {
    /// `sources` are paths, bytes, or objects with `size`, `read_range` and `is_local`;
    /// `partitions` are the names and types of partition columns, and the values of each file.
    #[new]
    #[pyo3(signature = (sources, names, partitions = None, keys = None, limits = None, urls = None))]
    fn new(
        sources: Vec<Bound<'_, PyAny>>,
        names: Vec<Option<String>>,
        partitions: Option<GivenPartitions>,
        keys: Option<&Bound<'_, PyDict>>,
        limits: Option<&Bound<'_, PyDict>>,
        urls: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let urls = url_options(urls)?;
        let given_sources =
            sources.iter().map(|of| Given::new(of, &urls)).collect::<PyResult<Vec<_>>>()?;
        let names = names.into_iter().map(|name| name.map(Arc::from));
        let keys = keys.map(decryption).transpose()?;
        let mut bounds = Limits::default();
        if let Some(of) = limits {
            let known =
                ["footer_bytes", "page_bytes", "memory_bytes", "nesting", "rows_without_columns"];
            only_known(of, "limits", &known)?;
            if let Some(bytes) = given(of, "footer_bytes")? {
                bounds.footer_bytes = bytes;
            }
            if let Some(bytes) = given(of, "page_bytes")? {
                bounds.page_bytes = bytes;
            }
            if let Some(bytes) = given(of, "memory_bytes")? {
                bounds.memory_bytes = bytes;
            }
            if let Some(levels) = given(of, "nesting")? {
                bounds.nesting = levels;
            }
            if let Some(rows) = given(of, "rows_without_columns")? {
                bounds.rows_without_columns = rows;
            }
        }
        let shared = Shared {
            given: given_sources.into_iter().zip(names).collect(),
            partitions: partitions.map(|(fields, values)| Partitions::new(&fields, values)),
            keys,
            limits: bounds,
        };
        Ok(Self { shared: Arc::new(shared), opened: Detached::new(Mutex::new(None)) })
    }

    fn __len__(&self) -> usize {
        self.shared.given.len()
    }

    /// The schema of the batches.
    fn schema(&self, py: Python<'_>, spec: &Bound<'_, PyDict>) -> PyResult<PySchema> {
        let spec = ReadSpec::new(spec)?;
        let schema = self.run(py, move |files| Ok(files.prepare(&spec)?.0))?;
        Ok(PySchema { schema })
    }

    /// All rows, in memory.
    fn read(&self, py: Python<'_>, spec: &Bound<'_, PyDict>) -> PyResult<Table> {
        let spec = ReadSpec::new(spec)?;
        let read = move |files: &Opened| {
            let mut chain = files.chain(&spec)?;
            let mut batches = Vec::new();
            while let Some(batch) = chain.next_batch()? {
                batches.push(batch);
            }
            Ok((chain.schema(), batches))
        };
        let (schema, batches) = self.run(py, read)?;
        Ok(Table::new(schema, batches))
    }

    /// Number of rows that pass the filter.
    fn count(&self, py: Python<'_>, spec: &Bound<'_, PyDict>) -> PyResult<u64> {
        let spec = ReadSpec::new(spec)?;
        self.run(py, move |opened| {
            let Selected { files, offset, limit, .. } = opened.selected(&spec)?;
            let wanted = limit.map(|limit| limit.saturating_add(offset));
            let mut rows = 0u64;
            for file in files {
                opened.cancel.check()?;
                let reader = match wanted {
                    Some(wanted) => file.reader.limit(wanted.saturating_sub(rows)),
                    None => file.reader,
                };
                rows = rows.saturating_add(reader.count()?);
            }
            Ok(rows.saturating_sub(offset).min(limit.unwrap_or(u64::MAX)))
        })
    }

    /// Number of rows before any filter, by the metadata.
    fn rows(&self, py: Python<'_>, spec: &Bound<'_, PyDict>) -> PyResult<u64> {
        let spec = ReadSpec::new(spec)?;
        self.run(py, move |opened| {
            let Selected { files, offset, limit, .. } = opened.selected(&spec)?;
            let rows = files.iter().map(|file| file.reader.rows()).sum::<Result<u64>>()?;
            Ok(rows.saturating_sub(offset).min(limit.unwrap_or(u64::MAX)))
        })
    }

    /// Explains a read of each file: the text, and the numbers of each row group.
    #[expect(clippy::type_complexity, reason = "a tuple that Python unpacks at once")]
    fn explain(
        &self,
        py: Python<'_>,
        spec: &Bound<'_, PyDict>,
    ) -> PyResult<
        Vec<(Option<String>, String, u64, u64, u64, Vec<(usize, u64, u64, String, u64, u64, u64)>)>,
    > {
        let spec = ReadSpec::new(spec)?;
        self.run(py, move |files| {
            let mut out = Vec::new();
            for file in files.selected(&spec)?.files {
                let name = files.name_of(&file.reader);
                let found = file.reader.explain()?;
                let groups = found.row_groups.iter().map(|group| {
                    (
                        group.row_group,
                        group.rows,
                        group.rows_left,
                        group.outcome.to_string(),
                        group.pages,
                        group.pages_pruned,
                        group.fetch_bytes,
                    )
                });
                let groups = groups.collect();
                let numbers = (found.rows_left(), found.bytes(), found.requests());
                out.push((name, found.to_string(), numbers.0, numbers.1, numbers.2, groups));
            }
            Ok(out)
        })
    }

    /// How many parts a read divided into at most `n` has.
    fn parts(&self, py: Python<'_>, spec: &Bound<'_, PyDict>, n: usize) -> PyResult<usize> {
        let spec = ReadSpec::new(spec)?;
        self.run(py, move |files| Ok(files.parts(&spec, n)?.len()))
    }

    /// The rows with these numbers, counted over all files, in this order.
    fn take(&self, py: Python<'_>, spec: &Bound<'_, PyDict>, rows: Vec<u64>) -> PyResult<Table> {
        let spec = ReadSpec::new(spec)?;
        let batch = self.run(py, move |files| files.take(&spec, &rows))?;
        Ok(Table::from_batch(batch))
    }

    /// The length of each file, by which a worker knows that it has the same ones.
    fn lengths(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        self.run(py, |files| Ok(files.readers()?.iter().map(Reader::file_len).collect()))
    }
}

impl Opened {
    pub(crate) fn name_of(&self, reader: &Reader) -> Option<String> {
        let name = self.place_of(reader).and_then(|at| self.shared.given[at].1.as_deref());
        name.map(str::to_owned)
    }

    /// The rows with these numbers, counted over all files, in this order.
    fn take(&self, spec: &ReadSpec, rows: &[u64]) -> Result<RecordBatch> {
        // Numbers are those of the files, whatever the filter leaves.
        let all = ReadSpec { filter: None, limit: None, offset: 0, part: None, ..spec.clone() };
        let (schema, files) = self.prepare(&all)?;
        let mut starts = Vec::with_capacity(files.len());
        let mut total = 0u64;
        for file in &files {
            starts.push(total);
            total = total.saturating_add(file.reader.file_rows()?);
        }
        if let Some(row) = rows.iter().find(|row| **row >= total) {
            return Err(Error::usage(format_args!(
                "row {row} was asked for, and there are {total}, numbered from 0"
            )));
        }
        let mut of_file: Vec<Vec<u64>> = vec![Vec::new(); files.len()];
        let mut places = Vec::with_capacity(rows.len());
        for row in rows {
            let file = starts.partition_point(|start| start <= row) - 1;
            places.push((file, of_file[file].len()));
            of_file[file].push(row - starts[file]);
        }
        let mut taken = Vec::with_capacity(files.len());
        for (file, wanted) in files.iter().zip(&of_file) {
            if wanted.is_empty() {
                taken.push(RecordBatch::new_empty(schema.clone()));
                continue;
            }
            taken.push(file.complete(&file.reader.take(wanted)?, &schema)?);
        }
        if let [one] = taken.as_slice() {
            return Ok(one.clone());
        }
        rows::interleave(&schema, &taken, &places)
    }
}
