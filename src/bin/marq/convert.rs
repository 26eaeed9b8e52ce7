//! `convert`: Parquet to Arrow IPC, CSV and JSON lines.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use indicatif::{ProgressBar, ProgressStyle};
use marquetry::{Error, Reader};

use crate::args::{Convert, Format, Global, Target, When, not_there_yet};
use crate::failure::{Failure, Result};
use crate::input;
use crate::output::Sink;
use crate::parquet_out::ParquetOut;
use crate::rows::Printer;

/// Converts the files, one after the other, into one output.
pub(crate) fn run(command: &Convert, global: &Global) -> Result<()> {
    if command.variant.is_some() {
        return Err(not_there_yet("--variant"));
    }
    let target = target(command, global)?;
    if target == Target::Parquet
        && let [file] = &command.files.files[..]
        && file.ends_with(".arrow")
    {
        let input = std::fs::File::open(file).map_err(|e| Error::io("opening", e))?;
        let reader = arrow_ipc::reader::FileReader::try_new(std::io::BufReader::new(input), None)?;
        let mut out = ParquetOut::create(reader.schema(), &command.write, global)?;
        for batch in reader {
            out.write(&batch?)?;
        }
        out.finish()?;
        return Ok(());
    }
    let mut readers = Vec::new();
    for path in input::paths(&command.files.files)? {
        readers.push((path.clone(), input::open_rows(&path, &command.files, global)?));
    }
    let Some((_, first)) = readers.first() else {
        return Err(Failure::Usage("no file to convert".to_owned()));
    };
    let schema = first.schema()?;
    for (path, reader) in &readers {
        if reader.schema()?.fields() != schema.fields() {
            let error = Error::usage(
                "the file has another schema than the first one; convert it on its own",
            );
            return Err(error.at_file(path.as_str()).into());
        }
    }
    let progress = Bar::new(&readers, global)?;
    if target == Target::Parquet {
        let mut out = ParquetOut::create(schema, &command.write, global)?;
        for_each_batch(&readers, &progress, |batch| Ok(out.write(&batch)?))?;
        out.finish()?;
        return Ok(());
    }
    let out = Sink::open(global)?;
    match target {
        Target::Arrow => ipc_file(out, &schema, &readers, &progress),
        Target::Arrows => ipc_stream(out, &schema, &readers, &progress),
        Target::Csv => text(out, Format::Csv, &readers, &progress),
        Target::Jsonl => text(out, Format::Jsonl, &readers, &progress),
        Target::Parquet => unreachable!(),
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
        Some("csv") => Ok(Target::Csv),
        Some("jsonl" | "ndjson") => Ok(Target::Jsonl),
        Some("parquet") => Ok(Target::Parquet),
        _ => Err(Failure::Usage(format!(
            "{}: no form by that ending; say it with --to",
            path.display()
        ))),
    }
}

type Readers = [(String, Reader)];

/// Calls `write` with every batch of every file.
fn for_each_batch(
    readers: &Readers,
    progress: &Bar,
    mut write: impl FnMut(RecordBatch) -> Result<()>,
) -> Result<()> {
    for (_, reader) in readers {
        let mut batches = reader.batches()?;
        while let Some(batch) = batches.next_batch()? {
            progress.gave(batch.num_rows());
            write(batch)?;
        }
    }
    progress.done();
    Ok(())
}

/// An IPC file cannot replace a dictionary, so dictionaries are spelled out; a stream keeps them.
fn ipc_file(mut out: Sink, schema: &SchemaRef, readers: &Readers, progress: &Bar) -> Result<()> {
    let schema = without_dictionaries(schema);
    let mut writer = FileWriter::try_new(&mut out, &schema)?;
    for_each_batch(readers, progress, |batch| {
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

fn ipc_stream(mut out: Sink, schema: &SchemaRef, readers: &Readers, progress: &Bar) -> Result<()> {
    let mut writer = StreamWriter::try_new(&mut out, schema)?;
    for_each_batch(readers, progress, |batch| Ok(writer.write(&batch)?))?;
    writer.finish()?;
    drop(writer);
    out.close()
}

fn text(out: Sink, format: Format, readers: &Readers, progress: &Bar) -> Result<()> {
    let mut printer = Printer::new(out, format);
    for_each_batch(readers, progress, |batch| printer.rows(&batch))?;
    printer.close()
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
struct Bar(Option<ProgressBar>);

/// Rows from which on a bar is worth its lines.
const BAR_FROM: u64 = 1_000_000;

impl Bar {
    fn new(readers: &Readers, global: &Global) -> Result<Self> {
        let mut rows = 0;
        for (_, reader) in readers {
            rows += reader.rows()?;
        }
        let wanted = match global.progress {
            When::Always => true,
            When::Never => false,
            When::Auto => {
                !global.quiet
                    && rows >= BAR_FROM
                    && std::io::IsTerminal::is_terminal(&std::io::stderr())
            }
        };
        Ok(Self(wanted.then(|| {
            let bar = ProgressBar::new(rows);
            let style = ProgressStyle::with_template(
                "{bar:40} {human_pos} of {human_len} rows, {eta} left",
            );
            match style {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            }
        })))
    }

    fn gave(&self, rows: usize) {
        if let Some(bar) = &self.0 {
            bar.inc(rows as u64);
        }
    }

    fn done(&self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}
