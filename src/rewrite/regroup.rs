//! [`regroup`] reads all rows and writes them into other row groups, perhaps sorted.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::SchemaRef;

use super::column_encoder::{encoding_options, natural, not_written, old_codec};
use super::decoding::decoding;
use super::inputs::{Input, Inputs};
use super::output::Spliced;
use super::settings::RewriteSettings;
use super::sort::{MergedRows, RowInput, RowSorter, SORTED_ROWS, Spill, like};
use super::union::ColumnSource;
use crate::error::{Error, Result};
use crate::format::{CompressionCodec, KeyValue};
use crate::io::Sink;
use crate::limits::Budget;
use crate::memory;
use crate::reader::Reader;
use crate::schema::{Leaf, MatchBy, Projection, Schema};
use crate::write::sorting::{SortColumn, SortOrder};
use crate::write::{CheckedSortOrder, WriteOptions};
use crate::writer::{RowGroupEncoder, Writer};

/// Writes the rows of all files.
///
/// # Errors
/// As reading and writing have them; `Limit(Memory)` if the rows that are sorted take more.
pub(super) fn regroup(
    inputs: &Inputs<'_>,
    settings: &RewriteSettings,
    sink: impl Sink,
    budget: &Budget,
) -> Result<Spliced> {
    let all = 0..inputs.files.len();
    // First, so that a column that is not there is told as such.
    let order = sort_order(inputs, &settings.sort_by)?;
    let Prepared { readers, schema, encoder } = prepare(inputs, settings, all, budget)?;
    let mut writer = Writer::over(sink, encoder);
    match order {
        Some(order) if settings.merges => {
            for batch in merge(Arc::new(order), &readers, schema)? {
                writer.write(&batch?)?;
            }
        }
        Some(order) => {
            let (order, spill) = (Arc::new(order), spill(inputs, settings));
            match settings.sorts_row_groups {
                false => write_sorted(&order, &readers, &mut writer, &spill, budget)?,
                true => {
                    for reader in row_groups(inputs, &readers)? {
                        write_sorted(&order, &[reader], &mut writer, &spill, budget)?;
                        writer.flush()?;
                    }
                }
            }
        }
        None => {
            for batch in readers.iter().map(Reader::batches) {
                for batch in batch? {
                    writer.write(&like(batch?, &schema)?)?;
                }
            }
        }
    }
    let report = writer.finish()?;
    Ok(Spliced {
        rows: report.rows,
        row_groups: report.row_groups(),
        pages: 0,
        bytes: report.bytes,
    })
}

/// The reader of the rows of a file, as the new one has them.
fn rows(inputs: &Inputs<'_>, file: &Input<'_>) -> Result<Reader> {
    let mut reader = decoding(file.reader);
    let is_same = file.columns.iter().all(|source| matches!(source, ColumnSource::Same(_)));
    let leaves: Vec<usize> = memory::collected(file.leaves.iter().filter_map(|leaf| *leaf))?;
    let wanted = natural(&inputs.footer.schema)?;
    if is_same && leaves.is_sorted() && !wanted.has_intervals {
        let mut options = reader.read_options().clone();
        options.projection = Projection::leaves(leaves);
        reader = reader.options(options);
    } else {
        reader = reader.target(wanted.schema, MatchBy::Name).map_err(|e| file.reader.name(e))?;
    }
    let old = file.reader.read_options();
    let mut options = reader.read_options().clone();
    options.row_groups.clone_from(&old.row_groups);
    (options.offset, options.limit) = (old.offset, old.limit);
    Ok(reader.options(options))
}

/// How the file is written: codecs that are not asked for are those of the first row group.
fn options(
    inputs: &Inputs<'_>,
    settings: &RewriteSettings,
    budget: &Budget,
) -> Result<WriteOptions> {
    let mut codecs: Vec<Option<CompressionCodec>> = memory::filled(None, inputs.leaves.len())?;
    for file in inputs.files.iter().rev() {
        let Some(part) = file.row_groups.first() else { continue };
        for (leaf, codec) in codecs.iter_mut().enumerate() {
            *codec = old_codec(file, part, leaf)?.or(*codec);
        }
    }
    let codec = |leaf: &Leaf| codecs.get(leaf.index).copied().flatten();
    let options = encoding_options(inputs, &inputs.leaves, codec, &settings.options)?;
    let memory = options.memory.min((budget.cap() / 2).max(1));
    let by = settings.sort_by.iter().chain(&settings.merged_by).cloned();
    let options = options.with_memory(memory).with_sort_order(by);
    Ok(match &settings.encryption {
        Some(encryption) => options.with_encryption(encryption.clone()),
        None => options,
    })
}

/// The order of the rows, if they are sorted.
fn sort_order(inputs: &Inputs<'_>, by: &[SortColumn]) -> Result<Option<CheckedSortOrder>> {
    let mut tops = memory::vec_for(inputs.leaves.len())?;
    // A column without leaves is none of the rows.
    let columns = inputs.columns.iter().filter(|column| !column.leaves.is_empty());
    for (top, column) in columns.enumerate() {
        memory::extend(&mut tops, column.leaves.clone().map(|_| top))?;
    }
    let order = SortOrder { columns: by.to_vec(), is_checked: true };
    CheckedSortOrder::new(&order, inputs.leaves.iter().zip(tops.iter().copied()))
}

/// Readers of one row group each.
fn row_groups(inputs: &Inputs<'_>, readers: &[Reader]) -> Result<Vec<Reader>> {
    let mut out = Vec::new();
    for (file, reader) in inputs.files.iter().zip(readers) {
        for part in &file.row_groups {
            let mut options = reader.read_options().clone();
            options.row_groups = Some(vec![part.ordinal]);
            let rows = part.cut.as_ref();
            options.offset = rows.map_or(0, |rows| rows.start);
            options.limit = rows.map(|rows| rows.end - rows.start);
            memory::push(&mut out, reader.clone().options(options))?;
        }
    }
    Ok(out)
}

/// Sorts all rows, and writes them.
fn write_sorted<S: Sink>(
    order: &Arc<CheckedSortOrder>,
    readers: &[Reader],
    writer: &mut Writer<S>,
    spill: &Spill,
    budget: &Budget,
) -> Result<()> {
    let memory = match spill {
        Spill::Never => budget.cap(),
        // The reader, and later the writer, have the other half.
        _ => budget.cap() / 2,
    };
    let schema = writer.schema().clone();
    let sorter = RowSorter::with_order(schema.clone(), order.clone());
    let mut sorter = sorter.memory(memory).spill_to(spill.clone());
    for reader in readers {
        for batch in reader.batches()? {
            sorter.push(&like(batch?, &schema)?)?;
        }
    }
    for batch in sorter.finish()? {
        writer.write(&batch?)?;
    }
    Ok(())
}

/// Where rows are written that are sorted and do not fit into memory: not those of encrypted files,
/// unless the user has said where.
fn spill(inputs: &Inputs<'_>, settings: &RewriteSettings) -> Spill {
    let is_encrypted = |file: &Input<'_>| {
        let metadata = file.reader.metadata();
        metadata.is_encrypted() || metadata.index().head().encryption_algorithm.is_some()
    };
    match &settings.temp_folder {
        Some(folder) => Spill::Folder(folder.clone()),
        None if settings.encryption.is_some() || inputs.files.iter().any(is_encrypted) => {
            Spill::Never
        }
        None => Spill::TemporaryFolder,
    }
}

/// Merges the rows of readers whose rows are sorted.
fn merge(
    order: Arc<CheckedSortOrder>,
    readers: &[Reader],
    schema: SchemaRef,
) -> Result<MergedRows> {
    let mut inputs: Vec<RowInput> = memory::vec_for(readers.len())?;
    for reader in readers {
        let batches = reader.clone().batch_rows(SORTED_ROWS).batches()?;
        inputs.push(Box::new(batches.map(|batch| batch.map_err(Into::into))));
    }
    Ok(MergedRows::new(order, schema, inputs, SORTED_ROWS))
}

/// The rows of some files, merged, and how they are encoded.
pub(super) struct Merge {
    pub(super) encoder: RowGroupEncoder,
    pub(super) order: Arc<CheckedSortOrder>,
    pub(super) rows: MergedRows,
}

/// Merges the rows of these files, whose rows are sorted.
///
/// # Errors
/// As [`regroup`].
pub(super) fn merged_rows(
    inputs: &Inputs<'_>,
    settings: &RewriteSettings,
    files: Range<usize>,
    budget: &Budget,
) -> Result<Merge> {
    let Prepared { readers, schema, encoder } = prepare(inputs, settings, files, budget)?;
    let Some(order) = sort_order(inputs, &settings.merged_by)? else {
        return Err(Error::internal("rows are merged by a column"));
    };
    let order = Arc::new(order);
    let rows = merge(order.clone(), &readers, schema)?;
    Ok(Merge { encoder, order, rows })
}

/// The readers of some files, and the encoder of their rows.
struct Prepared {
    readers: Vec<Reader>,
    schema: SchemaRef,
    encoder: RowGroupEncoder,
}

fn prepare(
    inputs: &Inputs<'_>,
    settings: &RewriteSettings,
    files: Range<usize>,
    budget: &Budget,
) -> Result<Prepared> {
    let merges = settings.merges || !settings.merged.is_empty();
    let files = inputs.files.get(files).unwrap_or_default();
    let mut readers = memory::vec_for(files.len())?;
    for file in files {
        // Each holds pages and arrays, and the writer as much.
        let share = match merges {
            true => budget.cap() / 2 / files.len().max(1) as u64,
            false => budget.cap() / 2,
        };
        readers.push(rows(inputs, file)?.memory(share));
    }
    let Some(first) = readers.first() else {
        return Err(Error::usage("no file was given: there is nothing to copy"));
    };
    let schema = first.schema()?;
    let options = options(inputs, settings, budget)?;
    let parsed = Schema::parse(memory::cloned(&inputs.footer.schema)?, &Default::default())?;
    let key_values = inputs.footer.key_value_metadata.as_deref().unwrap_or_default();
    let key_values = KeyValue::copied_all(key_values)?;
    let encoder = RowGroupEncoder::with_schema(schema.clone(), parsed, key_values, options);
    let encoder = encoder.map_err(not_written)?;
    let encoder = match &settings.options.geo {
        Some(geo) => encoder.with_geo(geo.clone())?,
        None => encoder,
    };
    Ok(Prepared { readers, schema, encoder })
}
