//! Reads the rows of files of any form as record batches.

use std::collections::HashMap;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, ListArray, RecordBatch, RecordBatchOptions, StructArray};
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, FieldRef, SchemaRef};
use marquetry::engine::rows;
use marquetry::read::VariantOutput;
use marquetry::schema::{MatchBy, unite};
use marquetry::variant::VariantArray;
use marquetry::{Error, Predicate, Reader};

use crate::args::{BinaryForm, Convert, DamageFlag, FilesOfRows, Global, SourceForm, TargetForm};
use crate::content::{Content, invalid};
use crate::damage::Losses;
use crate::failure::{Failure, Result};
use crate::hive::{Completed, Partitions};
use crate::pieces::Batches;
use crate::progress::Read;
use crate::variants::{LinesAsVariant, Part};
use crate::{crypt, input, ipc, text};

/// A file whose rows can be read.
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) schema: SchemaRef,
    /// Rows, if the file states them.
    pub(crate) rows: Option<u64>,
    /// Bytes to read, if they are known.
    pub(crate) bytes: Option<u64>,
    /// Whether something in the file is encrypted.
    pub(crate) is_encrypted: bool,
    batches: Batches,
}

impl Source {
    /// The rows.
    pub(crate) fn batches(self) -> Batches {
        self.batches
    }
}

/// Opens all files of a command, which must have one schema. `read` counts the bytes that are read;
/// what is lost of them goes to `losses`.
pub(crate) fn open(
    command: &Convert,
    target: TargetForm,
    global: &Global,
    read: &mut Read,
    losses: &Arc<Mutex<Losses>>,
) -> Result<Vec<Source>> {
    let inputs = input::unpruned(&command.files.files, global)?;
    let mut files = Vec::new();
    for input in inputs {
        files.push(Content::open(input, command.from, global)?);
    }
    let forms: Vec<SourceForm> = files.iter().map(|file| file.form).collect();
    if let Some((flag, purpose)) = without_effect(command, target, global, &forms) {
        return Err(Failure::Usage(format!("{flag} is for {purpose}")));
    }
    let variants = LinesAsVariant::new(command, forms.contains(&SourceForm::Jsonl), target)?;
    let variants = variants.as_ref();
    let csv = text::csv_schema(of_form(&mut files, SourceForm::Csv), command, global)?;
    let json = text::json_schema(of_form(&mut files, SourceForm::Jsonl), command, variants)?;
    let counted = read.streamed.clone();
    let mut readers = readers(&mut files, global)?;
    if command.values.binary == Some(BinaryForm::Text) {
        readers.iter_mut().for_each(|it| *it = it.take().map(|it| it.binary_as_utf8(true)));
    }
    let by_name = command.files.by_name && readers.len() > 1;
    if by_name {
        unite_readers(&mut readers, &files)?;
    }
    if target == TargetForm::Parquet && !global.shared_bytes {
        check_shared_bytes(&readers, &files)?;
    }
    let mut sources: Vec<Source> = Vec::new();
    for (file, reader) in files.into_iter().zip(readers) {
        let source = match (file.form, &csv, &json) {
            (SourceForm::Csv, Some(columns), _) => {
                let place = Placed::new(&file);
                let rows = text::csv(file, &counted, columns, command)?;
                narrow(place, &columns.schema, rows, &command.files, global)?
            }
            (SourceForm::Jsonl, _, Some(columns)) => {
                let place = Placed::new(&file);
                let rows = text::json(file, &counted, columns, command, variants)?;
                narrow(place, &columns.schema, rows, &command.files, global)?
            }
            (SourceForm::Arrow | SourceForm::Arrows, ..) => {
                arrow(file, &command.files, global, &counted)?
            }
            _ => parquet(file, reader, &command.files, global, read, losses)?,
        };
        if let Some(first) = sources.first().filter(|_| !by_name) {
            check_same_columns(first, &source)?;
        }
        sources.push(source);
    }
    if by_name { united(sources) } else { Ok(sources) }
}

fn check_same_columns(first: &Source, other: &Source) -> Result<()> {
    if first.schema.fields() == other.schema.fields() {
        return Ok(());
    }
    let error = Error::usage(
        "the file has another schema than the first one; --by-name unites them, or convert it on \
         its own",
    );
    Err(error.at_file(other.name.as_str()).into())
}

/// Refuses files whose column chunks share bytes, because a copy may be far larger.
fn check_shared_bytes(readers: &[Option<Reader>], files: &[Content]) -> Result<()> {
    for (reader, file) in readers.iter().zip(files) {
        let Some(reader) = reader else { continue };
        let checked = reader.metadata().check_shared_bytes();
        checked.map_err(|error| error.at_file(file.name.as_str()))?;
    }
    Ok(())
}

/// Has all Parquet files read into the columns of all of them.
fn unite_readers(readers: &mut [Option<Reader>], files: &[Content]) -> Result<()> {
    let mut target: Option<SchemaRef> = None;
    for (reader, file) in readers.iter().zip(files) {
        let Some(reader) = reader else { continue };
        let schema = reader.schema()?;
        let before = target.unwrap_or_else(|| schema.clone());
        target = Some(unite([&before, &schema]).map_err(|e| e.at_file(file.name.as_str()))?);
    }
    let Some(target) = target else { return Ok(()) };
    for reader in readers.iter_mut() {
        let of_target = |reader: Reader| reader.target(target.clone(), MatchBy::Name);
        *reader = reader.take().map(of_target).transpose()?;
    }
    Ok(())
}

/// Gives the rows of each file the columns of all of them.
fn united(sources: Vec<Source>) -> Result<Vec<Source>> {
    let mut schema: Option<SchemaRef> = None;
    for source in &sources {
        let before = schema.unwrap_or_else(|| source.schema.clone());
        let both = unite([&before, &source.schema]);
        schema = Some(both.map_err(|e| e.at_file(source.name.as_str()))?);
    }
    let Some(schema) = schema else { return Ok(sources) };
    let completed = |source: Source| {
        if source.schema.fields() == schema.fields() {
            return source;
        }
        let (name, all) = (source.name, schema.clone());
        let batches = source.batches.map({
            let name = name.clone();
            move |batch| completed(&batch?, &all).map_err(|e| invalid(&name, e))
        });
        Source { name, schema: schema.clone(), batches: Box::new(batches), ..source }
    };
    Ok(sources.into_iter().map(completed).collect())
}

/// Maximum bytes of the nulls of a column that a file does not have, for a batch.
const MAX_NULL_BYTES: usize = 1 << 30;

/// Completes a batch with the columns of `schema`: widened to its types, and nulls where the batch
/// has none.
fn completed(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let column = |field: &FieldRef| {
        widened(batch.column_by_name(field.name()), field.data_type(), batch.num_rows())
    };
    let columns = schema.fields().iter().map(column).collect::<Result<Vec<_>, _>>()?;
    let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
    RecordBatch::try_new_with_options(schema.clone(), columns, &options)
}

/// A column as one of this type, whose structs may have more members; nulls if there is none.
fn widened(column: Option<&ArrayRef>, to: &DataType, rows: usize) -> Result<ArrayRef, ArrowError> {
    let Some(column) = column.filter(|column| column.data_type() != &DataType::Null) else {
        return Ok(rows::nulls(to, rows, MAX_NULL_BYTES)?);
    };
    match (column.data_type(), to) {
        (from, to) if from == to => Ok(column.clone()),
        (DataType::Struct(_), DataType::Struct(fields)) => {
            let group = column.as_struct();
            let member = |field: &FieldRef| {
                widened(group.column_by_name(field.name()), field.data_type(), rows)
            };
            let members = fields.iter().map(member).collect::<Result<Vec<_>, _>>()?;
            let nulls = group.nulls().cloned();
            Ok(Arc::new(StructArray::try_new_with_length(fields.clone(), members, nulls, rows)?))
        }
        (DataType::List(_), DataType::List(item)) => {
            let list = column.as_list::<i32>();
            let values = widened(Some(list.values()), item.data_type(), list.values().len())?;
            let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
            Ok(Arc::new(ListArray::try_new(item.clone(), offsets, values, nulls)?))
        }
        _ => {
            let options = CastOptions { safe: false, ..CastOptions::default() };
            cast_with_options(column, to, &options)
        }
    }
}

fn of_form(files: &mut [Content], form: SourceForm) -> Vec<&mut Content> {
    files.iter_mut().filter(|file| file.form == form).collect()
}

/// A flag that has no effect on these formats, and what it is for.
fn without_effect(
    command: &Convert,
    target: TargetForm,
    global: &Global,
    forms: &[SourceForm],
) -> Option<(&'static str, &'static str)> {
    let reads = |form| forms.contains(&form);
    let parquet_in = reads(SourceForm::Parquet);
    let text_in = reads(SourceForm::Csv) || reads(SourceForm::Jsonl);
    let csv = target == TargetForm::Csv || reads(SourceForm::Csv);
    let text = &command.text;
    let spill = command.spill.as_ref().map(|_| "--spill");
    let covering = command.geo_covering.map(|_| "--geo-covering");
    let given = command.write.given().or(spill).or(covering);
    if let Some(flag) = given.filter(|_| target != TargetForm::Parquet) {
        return Some((flag, "Parquet as an output"));
    }
    if let Some(flag) = command.encrypt.given().filter(|_| target != TargetForm::Parquet) {
        return Some((flag, "Parquet as an output"));
    }
    let json_out = matches!(target, TargetForm::Json | TargetForm::Jsonl);
    let text_out = json_out || target == TargetForm::Csv;
    let values = &command.values;
    let is_text = values.binary == Some(BinaryForm::Text);
    let flags = [
        (text.schema.is_some(), text_in, "--schema", "CSV and JSON lines as inputs"),
        (text.infer_rows.is_some(), text_in, "--infer-rows", "CSV and JSON lines as inputs"),
        (text.no_header, csv, "--no-header", "CSV"),
        (text.delimiter.is_some(), csv, "--delimiter", "CSV"),
        (!text.null.is_empty(), csv, "--null", "CSV"),
        (values.decimals.is_some(), json_out, "--decimals", "JSON as an output"),
        (values.maps.is_some(), text_out, "--maps", "CSV and JSON as outputs"),
        (
            values.binary.is_some(),
            text_out || text_in || (is_text && parquet_in),
            "--binary",
            "CSV and JSON; text also for Parquet as an input, whose bytes become strings",
        ),
        (global.int96.is_some(), parquet_in, "--int96", "Parquet as an input"),
        (global.on_damage != DamageFlag::Fail, parquet_in, "--on-damage", "Parquet as an input"),
        (global.limit_footer.is_some(), parquet_in, "--limit-footer", "Parquet as an input"),
        (
            global.mem.is_some(),
            parquet_in || text_in || target == TargetForm::Parquet,
            "--mem",
            "Parquet, read or written, and CSV and JSON as inputs",
        ),
        (
            global.threads.is_some(),
            parquet_in || target == TargetForm::Parquet,
            "--threads",
            "Parquet, read or written",
        ),
    ];
    flags
        .into_iter()
        .find_map(|(given, works, flag, purpose)| (given && !works).then_some((flag, purpose)))
}

/// The readers of those files that are Parquet. If they are shredded differently, or are mixed with
/// files of other formats, they reconstruct their VARIANT columns, so that these have one type.
fn readers(files: &mut [Content], global: &Global) -> Result<Vec<Option<Reader>>> {
    let mut readers = Vec::with_capacity(files.len());
    let is_mixed = files.iter().any(|file| file.form != SourceForm::Parquet);
    for file in files {
        let is_parquet = file.form == SourceForm::Parquet;
        readers.push(is_parquet.then(|| file.reader(global)).transpose()?);
    }
    if readers.len() < 2 {
        return Ok(readers);
    }
    let mut types: HashMap<String, DataType> = HashMap::new();
    let mut differ = is_mixed;
    for reader in readers.iter().flatten() {
        let schema = reader.schema()?;
        for field in schema.fields().iter().filter(|field| VariantArray::is_variant(field)) {
            let first = types.entry(field.name().clone());
            differ |= first.or_insert_with(|| field.data_type().clone()) != field.data_type();
        }
    }
    if !differ {
        return Ok(readers);
    }
    let unshredded = |reader: Reader| reader.variants(VariantOutput::Unshredded);
    Ok(readers.into_iter().map(|reader| reader.map(unshredded)).collect())
}

fn parquet(
    mut file: Content,
    reader: Option<Reader>,
    rows: &FilesOfRows,
    global: &Global,
    read: &mut Read,
    losses: &Arc<Mutex<Losses>>,
) -> Result<Source> {
    let (name, input) = (file.name.clone(), file.input.clone());
    let reader = match reader {
        Some(reader) => reader,
        None => file.reader(global)?,
    };
    let is_encrypted = crypt::footer::is_encrypted(&reader);
    let opened = input::narrow(reader, &input, rows, global)?;
    let schema = opened.schema()?;
    // With a filter, the number of rows is known only at the end.
    let filtered = opened.reader.read_options().filter.is_some();
    let count = if filtered { None } else { Some(opened.reader.rows()?) };
    read.fetched.push(opened.reader.progress().clone());
    let (path, losses, global) = (name.clone(), losses.clone(), global.clone());
    let (mut batches, reader) = (None, opened.reader.clone());
    // Begun in its turn, so that files that wait hold nothing but their footers.
    let batches = std::iter::from_fn(move || {
        let next = match &mut batches {
            Some(batches) => marquetry::Batches::next_batch(batches),
            none => match reader.batches() {
                Ok(begun) => none.insert(begun).next_batch(),
                Err(error) => Err(error),
            },
        };
        if let (Ok(None), Some(batches)) = (&next, &batches) {
            let mut losses = losses.lock().unwrap_or_else(PoisonError::into_inner);
            losses.add(&path, batches, &global);
        }
        next.map_err(Failure::from).transpose()
    });
    let batches = Box::new(batches.flat_map(move |batch| in_pieces(batch, |b| opened.complete(b))));
    Ok(Source { name, schema, rows: count, bytes: None, is_encrypted, batches })
}

/// The batches that `divide` makes of one, or the error.
fn in_pieces(
    batch: Result<RecordBatch>,
    divide: impl FnOnce(RecordBatch) -> Result<Batches>,
) -> Batches {
    batch.and_then(divide).unwrap_or_else(|error| Box::new(std::iter::once(Err(error))))
}

/// The batches of an Arrow IPC file or stream.
fn arrow(
    file: Content,
    rows: &FilesOfRows,
    global: &Global,
    read: &Arc<AtomicU64>,
) -> Result<Source> {
    let place = Placed::new(&file);
    let (schema, batches) = ipc::open(file, global, read)?;
    narrow(place, &schema, batches, rows, global)
}

/// The facts about a file besides its rows.
struct Placed {
    name: String,
    partitions: Option<Partitions>,
    /// Bytes to read, if they are known.
    bytes: Option<u64>,
}

impl Placed {
    fn new(file: &Content) -> Self {
        let (name, partitions) = (file.name.clone(), file.input.partitions.clone());
        Self { name, partitions, bytes: file.len }
    }
}

/// Selects columns and rows by the flags, and adds the columns of the folders.
fn narrow(
    Placed { name, partitions, bytes }: Placed,
    schema: &SchemaRef,
    mut batches: Batches,
    rows: &FilesOfRows,
    global: &Global,
) -> Result<Source> {
    let mut schema = schema.clone();
    if !rows.row_group.is_empty() {
        return Err(Failure::Usage(format!("{name}: --row-group is for Parquet")));
    }
    if let Some((from, to)) = rows.rows {
        let mut at = 0u64;
        batches = Box::new(batches.map_while(move |batch| match batch {
            Ok(_) if at >= to => None,
            Ok(batch) => {
                let len = batch.num_rows() as u64;
                let (first, last) = (from.clamp(at, at + len) - at, to.clamp(at, at + len) - at);
                at += len;
                #[expect(clippy::cast_possible_truncation, reason = "rows of a batch")]
                Some(Ok(batch.slice(first as usize, (last - first) as usize)))
            }
            error => Some(error),
        }));
    }
    // Only of the rows that are wanted.
    if let Some(partitions) = partitions {
        let completed = Completed::of_schema(&schema, &partitions)?;
        schema = completed.schema.clone();
        batches = Box::new(batches.map(move |batch| completed.complete(&batch?)));
    }
    if let Some(filter) = &global.filter {
        let bound = Predicate::parse(filter)?.bind_to(&schema).map_err(|e| e.at_file(&*name))?;
        batches = Box::new(batches.map(move |batch| {
            let batch = batch?;
            Ok(rows::filter(&batch, &bound.evaluate(&batch)?)?)
        }));
    }
    if !rows.columns.names().is_empty() {
        let all: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let mut indices = Vec::new();
        for column in input::columns(&all, &rows.columns.names())? {
            match all.iter().position(|name| *name == column) {
                Some(i) => indices.push(i),
                None => return Err(Failure::Usage(format!("{name}: no column {column}"))),
            }
        }
        schema = Arc::new(schema.project(&indices)?);
        batches = Box::new(batches.map(move |batch| Ok(batch?.project(&indices)?)));
    }
    if let Some(part) = Part::new(rows.variant_path.as_deref(), &schema, global)? {
        schema = part.schema(&schema);
        let divide = move |batch| in_pieces(batch, |batch| part.extract(&batch));
        batches = Box::new(batches.flat_map(divide));
    }
    Ok(Source { name, schema, rows: None, bytes, is_encrypted: false, batches })
}
