//! `convert`: rows of any form to any form.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use indicatif::{ProgressBar, ProgressStyle};

use crate::args::{Convert, Format, Global, Target, When, not_there_yet};
use crate::failure::{Failure, Result};
use crate::output::{self, Sink};
use crate::parquet_out::ParquetOut;
use crate::printer::Printer;
use crate::printer::csv::CsvForm;
use crate::source::{self, Source};

/// Converts the files, one after the other, into one output.
pub(crate) fn run(command: &Convert, global: &Global) -> Result<()> {
    if command.variant.is_some() {
        return Err(not_there_yet("--variant"));
    }
    let target = target(command, global)?;
    let read = Arc::new(AtomicU64::new(0));
    let sources = source::open(command, global, &read)?;
    let Some(first) = sources.first() else {
        return Err(Failure::Usage("no file to convert".to_owned()));
    };
    let schema = first.schema.clone();
    let progress = Bar::new(&sources, global, read);
    match target {
        Target::Parquet => parquet(command, global, schema, sources, &progress),
        Target::Arrow => ipc_file(Sink::open(global)?, &schema, sources, &progress),
        Target::Arrows => ipc_stream(Sink::open(global)?, &schema, sources, &progress),
        Target::Csv => {
            let csv = csv_form(command, global)?;
            let printer = Printer::new(Sink::open(global)?, Format::Csv, global).with_csv(csv);
            let printer = printer.with_renamed_duplicates(command.files.rename_duplicates);
            text(printer, &schema, sources, &progress)
        }
        Target::Jsonl => {
            let printer = Printer::new(Sink::open(global)?, Format::Jsonl, global);
            let printer = printer.with_renamed_duplicates(command.files.rename_duplicates);
            text(printer, &schema, sources, &progress)
        }
    }
}

/// The form: as --to says, else by the ending of the output.
fn target(command: &Convert, global: &Global) -> Result<Target> {
    if let Some(target) = command.to {
        return Ok(target);
    }
    let Some(path) = global.output.as_deref().filter(|path| *path != Path::new("-")) else {
        return Err(Failure::Usage("say the form with --to, or a file with -o".to_owned()));
    };
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("arrow" | "ipc" | "feather") => Ok(Target::Arrow),
        Some("arrows") => Ok(Target::Arrows),
        Some("csv" | "tsv") => Ok(Target::Csv),
        Some("jsonl" | "ndjson") => Ok(Target::Jsonl),
        Some("parquet") => Ok(Target::Parquet),
        _ => Err(Failure::Usage(format!(
            "{}: no form by that ending; say it with --to",
            path.display()
        ))),
    }
}

/// Calls `write` with every batch of every file.
fn for_each_batch(
    sources: Vec<Source>,
    progress: &Bar,
    mut write: impl FnMut(RecordBatch) -> Result<()>,
) -> Result<()> {
    for source in sources {
        for batch in source.batches() {
            let batch = batch?;
            progress.gave(batch.num_rows());
            write(batch)?;
        }
    }
    progress.done();
    Ok(())
}

fn parquet(
    command: &Convert,
    global: &Global,
    schema: SchemaRef,
    sources: Vec<Source>,
    progress: &Bar,
) -> Result<()> {
    let mut out = ParquetOut::create(schema, &command.write, global)?;
    for_each_batch(sources, progress, |batch| Ok(out.write(&batch)?))?;
    let report = out.finish()?;
    if global.verbose > 0 && !global.quiet {
        let columns = report.row_groups.iter().flat_map(|row_group| &row_group.columns);
        let plain: u64 = columns.map(|column| column.uncompressed_bytes).sum();
        #[expect(clippy::cast_precision_loss, reason = "shown with two digits behind the point")]
        let ratio = plain as f64 / report.bytes.max(1) as f64;
        eprintln!(
            "{} rows, {} row groups, {}, ratio {ratio:.2}",
            output::count(report.rows, global),
            report.row_groups.len(),
            output::bytes(report.bytes, global),
        );
    }
    Ok(())
}

/// An IPC file cannot replace a dictionary, so dictionaries are spelled out; a stream keeps them.
fn ipc_file(mut out: Sink, schema: &SchemaRef, sources: Vec<Source>, progress: &Bar) -> Result<()> {
    let schema = without_dictionaries(schema);
    let mut writer = FileWriter::try_new(&mut out, &schema)?;
    for_each_batch(sources, progress, |batch| {
        let columns = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
            if column.data_type() == field.data_type() {
                Ok(column.clone())
            } else {
                cast(column, field.data_type())
            }
        });
        let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
        let columns = columns.collect::<Result<Vec<_>, _>>()?;
        let batch = RecordBatch::try_new_with_options(schema.clone(), columns, &options)?;
        Ok(writer.write(&batch)?)
    })?;
    writer.finish()?;
    drop(writer);
    out.close()
}

fn ipc_stream(
    mut out: Sink,
    schema: &SchemaRef,
    sources: Vec<Source>,
    progress: &Bar,
) -> Result<()> {
    let mut writer = StreamWriter::try_new(&mut out, schema)?;
    for_each_batch(sources, progress, |batch| Ok(writer.write(&batch)?))?;
    writer.finish()?;
    drop(writer);
    out.close()
}

fn text(
    mut printer: Printer,
    schema: &SchemaRef,
    sources: Vec<Source>,
    progress: &Bar,
) -> Result<()> {
    printer.schema(schema)?;
    for_each_batch(sources, progress, |batch| printer.rows(&batch))?;
    printer.close()
}

fn csv_form(command: &Convert, global: &Global) -> Result<CsvForm> {
    let tsv = global.output.as_deref().and_then(Path::extension).is_some_and(|e| e == "tsv");
    let delimiter = command.delimiter.map_or(if tsv { '\t' } else { ',' }, char::from);
    let mut nulls = command.null.clone();
    if nulls.is_empty() {
        nulls.push(String::new());
    }
    if let Some(null) = nulls.first().filter(|null| null.contains([delimiter, '"', '\n', '\r'])) {
        let text = format!("--null {null:?}: null is written without quotes, and this needs them");
        return Err(Failure::Usage(text));
    }
    Ok(CsvForm { delimiter, header: !command.no_header, nulls })
}

fn without_dictionaries(schema: &SchemaRef) -> SchemaRef {
    let fields: Fields = schema.fields().iter().map(plain_field).collect();
    Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()))
}

fn plain_field(field: &FieldRef) -> FieldRef {
    let data_type = plain(field.data_type());
    if data_type == *field.data_type() {
        return field.clone();
    }
    Arc::new(
        Field::new(field.name(), data_type, field.is_nullable())
            .with_metadata(field.metadata().clone()),
    )
}

fn plain(data_type: &DataType) -> DataType {
    match data_type {
        DataType::Dictionary(_, value) => plain(value),
        DataType::List(item) => DataType::List(plain_field(item)),
        DataType::LargeList(item) => DataType::LargeList(plain_field(item)),
        DataType::ListView(item) => DataType::ListView(plain_field(item)),
        DataType::LargeListView(item) => DataType::LargeListView(plain_field(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(plain_field(item), *size),
        DataType::Map(entries, sorted) => DataType::Map(plain_field(entries), *sorted),
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(plain_field).collect()),
        other => other.clone(),
    }
}

/// A progress bar on standard error, for whoever waits.
struct Bar {
    bar: Option<ProgressBar>,
    /// Bytes read so far, where the files do not say their rows.
    read: Option<Arc<AtomicU64>>,
}

/// Rows from which on a bar is worth its lines.
const BAR_FROM: u64 = 1_000_000;
/// The same for bytes.
const BAR_FROM_BYTES: u64 = 64 << 20;

impl Bar {
    fn new(sources: &[Source], global: &Global, read: Arc<AtomicU64>) -> Self {
        let rows: Option<u64> = sources.iter().map(|source| source.rows).sum();
        let bytes = sources.iter().map(|source| source.bytes);
        let bytes: Option<u64> = if rows.is_some() { None } else { bytes.sum() };
        let long = match (rows, bytes) {
            (Some(rows), _) => rows >= BAR_FROM,
            (None, Some(bytes)) => bytes >= BAR_FROM_BYTES,
            // A pipe has no end in sight.
            (None, None) => true,
        };
        let wanted = match global.progress {
            When::Always => true,
            When::Never => false,
            When::Auto => {
                !global.quiet && long && std::io::IsTerminal::is_terminal(&std::io::stderr())
            }
        };
        let bar = wanted.then(|| {
            let (bar, template) = match (rows, bytes) {
                (Some(rows), _) => {
                    (ProgressBar::new(rows), "{bar:40} {human_pos} of {human_len} rows, {eta} left")
                }
                (None, Some(bytes)) => (
                    ProgressBar::new(bytes),
                    "{bar:40} {binary_bytes} of {binary_total_bytes}, {eta} left",
                ),
                (None, None) => {
                    (ProgressBar::new_spinner(), "{spinner} {binary_bytes}, {binary_bytes_per_sec}")
                }
            };
            match ProgressStyle::with_template(template) {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        });
        Self { bar, read: rows.is_none().then_some(read) }
    }

    fn gave(&self, rows: usize) {
        match (&self.bar, &self.read) {
            (Some(bar), Some(read)) => bar.set_position(read.load(Ordering::Relaxed)),
            (Some(bar), None) => bar.inc(rows as u64),
            (None, _) => {}
        }
    }

    fn done(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
