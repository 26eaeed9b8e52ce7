//! `convert` writes rows of any supported format in any other.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::{RecordBatch, RecordBatchOptions};
use arrow_cast::cast;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};
use marquetry::geo::{CoveringColumns, GeoOptions};
use marquetry::io::TempFolder;
use marquetry::rewrite::RowSorter;
use marquetry::{Error, Export, ExportedFile, WriteOptions};

use crate::args::{Convert, FolderFlags, Format, Global, TargetForm};
use crate::checks;
use crate::crypt;
use crate::damage::Losses;
use crate::escape::escape;
use crate::failure::{Failure, Result, after_printing};
use crate::folder_out::FolderOut;
use crate::geo_out;
use crate::output::Sink;
use crate::packed::{self, Packing};
use crate::parquet_out::{self, ParquetOut};
use crate::pieces::{max_row_bytes, pieces};
use crate::printer::Printer;
use crate::printer::csv::CsvForm;
use crate::progress::{Bar, Extent, Read};
use crate::sorting;
use crate::source::{self, Source};
use crate::variants::VariantCheck;

/// Converts the files, one after the other, into one output.
pub(crate) fn run(command: &Convert, global: &Global) -> Result<()> {
    let in_place = if command.in_place { Some(in_place(command, global)?) } else { None };
    let global = in_place.as_ref().unwrap_or(global);
    let target = target(command, global)?;
    let mut read = Read::default();
    check_folder(command, target, global)?;
    let losses = Arc::new(Mutex::new(Losses::default()));
    let sources = source::open(command, target, global, &mut read, &losses)?;
    let Some(first) = sources.first() else {
        return Err(Failure::Usage("no file to convert".to_owned()));
    };
    let is_encrypted = sources.iter().any(|source| source.is_encrypted);
    if target == TargetForm::Parquet && is_encrypted && command.encrypt.given().is_none() {
        crypt::footer::note_plain(global);
    }
    let schema = match command.write.geo.is_none() && command.geo_covering.is_none() {
        true => geo_out::with_mended_key(&first.schema, &sources, global),
        false => first.schema.clone(),
    };
    // Rows can be sorted by boxes.
    let coverings = geo_out::coverings(command.geo_covering, &schema)?;
    let schema = coverings.as_ref().map_or(schema, |of| of.schema().clone());
    let mut progress = Bar::new(work(&sources), global, read);
    let sorter = sorting::sorter(&command.sorting, &command.folder.partition_by, &schema, global)?;
    let is_text = matches!(target, TargetForm::Csv | TargetForm::Json | TargetForm::Jsonl);
    // As text they are read.
    let variants = (!is_text && !global.quiet).then(|| VariantCheck::new(&schema));
    let rows = ConvertedRows { sources, sorter, variants, coverings };
    let written = write(command, global, target, &schema, rows, &mut progress);
    after_printing(written, losses.lock().unwrap_or_else(PoisonError::into_inner).end())
}

/// Writes the rows in the format that is wanted.
fn write(
    command: &Convert,
    global: &Global,
    target: TargetForm,
    schema: &SchemaRef,
    rows: ConvertedRows,
    progress: &mut Bar,
) -> Result<()> {
    match target {
        TargetForm::Parquet if command.folder.given().is_some() => {
            folder(command, global, schema.clone(), rows, progress)
        }
        TargetForm::Parquet => parquet(command, global, schema.clone(), rows, progress),
        TargetForm::Arrow => ipc_file(schema, rows, progress, global),
        TargetForm::Arrows => ipc_stream(schema, rows, progress, global),
        TargetForm::Csv => {
            let csv = csv_form(command, global)?;
            let printer = Printer::new(Sink::open(global)?, Format::Csv, global).with_csv(csv);
            let printer = printer.with_forms(command.values);
            let printer = printer.with_renamed_duplicates(command.files.rename_duplicates);
            text(printer, schema, rows, progress, global)
        }
        TargetForm::Json | TargetForm::Jsonl => {
            let is_array = target == TargetForm::Json;
            let format = if is_array { Format::Json } else { Format::Jsonl };
            let printer = Printer::new(Sink::open(global)?, format, global);
            let printer = printer.with_forms(command.values);
            let printer = printer.with_renamed_duplicates(command.files.rename_duplicates);
            text(printer, schema, rows, progress, global)
        }
    }
}

/// Whether a folder can be written, if that is asked for.
fn check_folder(command: &Convert, target: TargetForm, global: &Global) -> Result<()> {
    let Some(flag) = command.folder.given() else { return Ok(()) };
    let wrong = |text: &str| Err(Failure::Usage(format!("{flag}: {text}")));
    if target != TargetForm::Parquet {
        return wrong("this is for Parquet as an output");
    }
    if command.write.side_footer.is_some() {
        return wrong("files of a folder have no side footers; leave out --side-footer");
    }
    match &global.output {
        _ if command.in_place => wrong("a folder is written, which is no file to be replaced"),
        Some(output) if output != Path::new("-") => Ok(()),
        _ => wrong("say a folder with -o"),
    }
}

/// The flags of `--in-place`: the output is the input.
fn in_place(command: &Convert, global: &Global) -> Result<Global> {
    let files = crate::input::paths(&command.files.files)?;
    let wrong = |text: &str| Err(Failure::Usage(format!("--in-place: {text}")));
    let file = match files.as_slice() {
        [file] if file != "-" => Path::new(file),
        [_] => return wrong("standard input cannot be replaced"),
        files => return wrong(&format!("one file can be replaced, and {} are given", files.len())),
    };
    if !file.exists() {
        let missing = std::io::Error::from(std::io::ErrorKind::NotFound);
        let name = file.display().to_string();
        return Err(Error::io("the file cannot be opened", missing).at_file(name).into());
    }
    if global.has_keys() && command.encrypt.given().is_none() {
        return wrong(
            "the file would be left in plain text; encrypt it with --encrypt-footer-key, or write \
             to another file with -o",
        );
    }
    match &global.output {
        Some(output) if !checks::is_same_file(file, output) => {
            wrong("the output is another file; leave out -o, or --in-place")
        }
        _ => Ok(Global { output: Some(file.to_owned()), ..global.clone() }),
    }
}

fn work(sources: &[Source]) -> Extent {
    if let Some(rows) = sum(sources.iter().map(|source| source.rows)) {
        return Extent::Rows(rows);
    }
    match sum(sources.iter().map(|source| source.bytes)) {
        Some(bytes) => Extent::Bytes(bytes),
        None => Extent::Unknown,
    }
}

/// The sum of numbers, if all are known, and there is a number for it.
fn sum(mut numbers: impl Iterator<Item = Option<u64>>) -> Option<u64> {
    numbers.try_fold(0u64, |sum, n| sum.checked_add(n?))
}

/// The format: that of --to, else by the extension of the output.
fn target(command: &Convert, global: &Global) -> Result<TargetForm> {
    let path = global.output.as_deref().filter(|path| *path != Path::new("-"));
    let (packing, _) = Packing::of_name(path.and_then(Path::to_str).unwrap_or_default());
    if let (Some(TargetForm::Arrow), Some(_), Some(path)) = (command.to, packing, path) {
        return Err(Failure::Usage(format!(
            "{}: a reader seeks in a file of this form, which is not compressed as a whole; --to \
             arrows writes a stream, which may be",
            path.display()
        )));
    }
    if let Some(target) = command.to {
        return Ok(target);
    }
    let Some(path) = path else {
        return Err(Failure::Usage("say the form with --to, or a file with -o".to_owned()));
    };
    if command.folder.given().is_some() {
        return Ok(TargetForm::Parquet);
    }
    match (packed::ending(path).as_deref(), packing) {
        (Some("csv" | "tsv"), _) => Ok(TargetForm::Csv),
        (Some("json"), _) => Ok(TargetForm::Json),
        (Some("jsonl" | "ndjson"), _) => Ok(TargetForm::Jsonl),
        (Some("arrow" | "ipc" | "feather"), None) => Ok(TargetForm::Arrow),
        (Some("arrows"), None) => Ok(TargetForm::Arrows),
        (Some("parquet" | "parq"), None) => Ok(TargetForm::Parquet),
        (Some("parquet" | "parq"), Some(_)) => Err(Failure::Usage(format!(
            "{}: Parquet is compressed inside: --compression says how",
            path.display()
        ))),
        _ => Err(Failure::Usage(format!(
            "{}: no form has that ending; there are .parquet, .arrow, .arrows, .csv, .tsv, .json \
             and .jsonl (JSON lines), text also as .gz and .zst, or say the form with --to",
            path.display()
        ))),
    }
}

/// The rows of all files.
struct ConvertedRows {
    sources: Vec<Source>,
    /// Sorts them, if that is asked for.
    sorter: Option<RowSorter>,
    /// Looks at their VARIANT values, which are stored as they come.
    variants: Option<VariantCheck>,
    /// Adds the boxes of geometries, if that is asked for.
    coverings: Option<CoveringColumns>,
}

/// Says that invalid VARIANT values are passed on: what reads them decides.
fn note(file: &str, invalid: &[String]) {
    for value in invalid {
        let text = format!("{file}: {value}; invalid VARIANT values are passed on as they are");
        eprintln!("marq: note: {}", escape(&text));
    }
}

/// Calls `write` with every batch of every file, or with those of all rows in their order.
fn for_each_batch(
    rows: ConvertedRows,
    progress: &mut Bar,
    mut write: impl FnMut(RecordBatch) -> Result<()>,
) -> Result<()> {
    let ConvertedRows { sources, mut sorter, mut variants, coverings } = rows;
    for source in sources {
        let name = source.name.clone();
        for batch in source.batches() {
            let batch = batch?;
            let rows = batch.num_rows();
            if let Some(variants) = &mut variants {
                note(&name, &variants.check(&batch).map_err(|failure| failure.at_file(&name))?);
            }
            let batch = match &coverings {
                Some(coverings) => coverings.add_to(&batch).map_err(|e| e.at_file(&*name))?,
                None => batch,
            };
            match &mut sorter {
                Some(sorter) => sorter.push(&batch)?,
                None => write(batch)?,
            }
            progress.gave(rows);
        }
    }
    progress.finishing();
    let Some(sorter) = sorter else { return Ok(()) };
    for batch in sorter.finish()? {
        write(batch?)?;
    }
    Ok(())
}

/// Writes a folder of files.
fn folder(
    command: &Convert,
    global: &Global,
    schema: SchemaRef,
    rows: ConvertedRows,
    progress: &mut Bar,
) -> Result<()> {
    let FolderFlags { partition_by, file_size } = &command.folder;
    let target = global.output.clone().unwrap_or_default();
    let options = options_for(command, &schema, global)?;
    let order = sorting::of_files(&command.sorting, partition_by)?;
    let out = FolderOut::create(&target)?;
    let mut export = Export::to(out.path(), schema)?
        .options(options.with_sort_order(order))
        .partition_by(partition_by.iter().cloned());
    if let Some(bytes) = file_size {
        export = export.file_bytes(*bytes);
    }
    if let Some(bytes) = global.mem {
        export = export.memory(bytes);
    }
    let files = exported(export, rows, progress)?;
    out.finish()?;
    let bytes = files.iter().map(|file| file.report.bytes).sum();
    let plural = if files.len() == 1 { "" } else { "s" };
    progress.done(bytes, &format!("{} file{plural}, ", files.len()), global);
    Ok(())
}

/// The options for Parquet.
fn options_for(command: &Convert, schema: &SchemaRef, global: &Global) -> Result<WriteOptions> {
    let options = parquet_out::options_for(schema, &command.write, &command.encrypt, global)?;
    let options = match command.geo_covering {
        Some(_) if command.write.geo.is_none() => options.with_geo(GeoOptions::new()),
        _ => options,
    };
    Ok(match &command.spill {
        Some(folder) => options.with_spill(TempFolder::new(folder)),
        None => options,
    })
}

/// Writes the rows on another thread.
fn exported(export: Export, rows: ConvertedRows, progress: &mut Bar) -> Result<Vec<ExportedFile>> {
    let (send, receive) = std::sync::mpsc::sync_channel::<Result<RecordBatch, Error>>(1);
    std::thread::scope(|scope| {
        let writer = scope.spawn(move || export.run([receive.into_iter()]));
        // Whether the writer has ended, and tells why.
        let mut is_closed = false;
        let given = for_each_batch(rows, progress, |batch| {
            send.send(Ok(batch)).map_err(|_| {
                is_closed = true;
                Failure::Usage("the rows are not written".to_owned())
            })
        });
        if given.is_err() {
            let _ = send.send(Err(Error::usage("not all rows could be read")));
        }
        drop(send);
        let files = writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match given {
            Err(failure) if !is_closed => Err(failure),
            _ => Ok(files?),
        }
    })
}

fn parquet(
    command: &Convert,
    global: &Global,
    schema: SchemaRef,
    rows: ConvertedRows,
    progress: &mut Bar,
) -> Result<()> {
    let options = options_for(command, &schema, global)?;
    let options = options.with_sort_order(sorting::columns(&command.sorting)?);
    let mut out = ParquetOut::create(schema, options, &command.write, global)?;
    for_each_batch(rows, progress, |batch| Ok(out.write(&batch)?))?;
    let report = out.finish()?;
    let groups = report.row_groups();
    let mut plain = 0;
    for i in 0..groups {
        let columns = report.row_group(i)?.columns;
        plain += columns.iter().map(|column| column.uncompressed_bytes).sum::<u64>();
    }
    #[expect(clippy::cast_precision_loss, reason = "shown with two digits after the point")]
    let ratio = plain as f64 / report.bytes.max(1) as f64;
    let plural = if groups == 1 { "" } else { "s" };
    let more = format!("{groups} row group{plural}, ratio {ratio:.2}, ");
    progress.done(report.bytes, &more, global);
    Ok(())
}

/// An IPC file cannot replace a dictionary, so dictionaries are expanded; a stream keeps them.
fn ipc_file(
    schema: &SchemaRef,
    rows: ConvertedRows,
    progress: &mut Bar,
    global: &Global,
) -> Result<()> {
    let mut out = Sink::open(global)?;
    let schema = without_dictionaries(schema);
    let mut writer = FileWriter::try_new(&mut out, &schema)?;
    for_each_batch(rows, progress, |batch| {
        let of_schema = |batch: &RecordBatch| {
            let columns = batch.columns().iter().zip(schema.fields());
            let columns = columns.map(|(column, field)| match field.data_type() {
                to if column.data_type() == to => Ok(column.clone()),
                to => cast(column, to),
            });
            let options = RecordBatchOptions::new().with_row_count(Some(batch.num_rows()));
            let columns = columns.collect::<Result<Vec<_>, _>>()?;
            RecordBatch::try_new_with_options(schema.clone(), columns, &options)
        };
        let pairs = batch.columns().iter().zip(schema.fields());
        if pairs.into_iter().all(|(column, field)| column.data_type() == field.data_type()) {
            return Ok(writer.write(&of_schema(&batch)?)?);
        }
        for piece in pieces(&batch, 0, max_row_bytes(global))? {
            writer.write(&of_schema(&piece?)?)?;
        }
        Ok(())
    })?;
    writer.finish()?;
    drop(writer);
    progress.done(out.close()?, "", global);
    Ok(())
}

fn ipc_stream(
    schema: &SchemaRef,
    rows: ConvertedRows,
    progress: &mut Bar,
    global: &Global,
) -> Result<()> {
    let mut out = Sink::open(global)?;
    let mut writer = StreamWriter::try_new(&mut out, schema)?;
    for_each_batch(rows, progress, |batch| Ok(writer.write(&batch)?))?;
    writer.finish()?;
    drop(writer);
    progress.done(out.close()?, "", global);
    Ok(())
}

fn text(
    mut printer: Printer,
    schema: &SchemaRef,
    rows: ConvertedRows,
    progress: &mut Bar,
    global: &Global,
) -> Result<()> {
    printer.schema(schema)?;
    for_each_batch(rows, progress, |batch| printer.rows(&batch))?;
    progress.done(printer.close()?, "", global);
    Ok(())
}

fn csv_form(command: &Convert, global: &Global) -> Result<CsvForm> {
    let tsv = global.output.as_deref().and_then(packed::ending).is_some_and(|e| e == "tsv");
    let delimiter = command.text.delimiter.map_or(if tsv { '\t' } else { ',' }, char::from);
    let mut nulls = command.text.null.clone();
    if nulls.is_empty() {
        nulls.push(String::new());
    }
    if let Some(null) = nulls.first().filter(|null| null.contains([delimiter, '"', '\n', '\r'])) {
        let text = format!("--null {null:?}: null is written without quotes, and this needs them");
        return Err(Failure::Usage(text));
    }
    Ok(CsvForm::new(delimiter, !command.text.no_header, nulls))
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
