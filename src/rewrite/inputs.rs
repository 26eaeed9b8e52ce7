//! [`Inputs`]: the files that become one, and what one footer can say for all of them.
//!
//! Spec: `parquet.thrift`, FileMetaData. Traps: a footer states one column order for each leaf, and
//! bounds of another file were written in another order; readers work around the faults of a writer
//! by its name in `created_by`, and a footer has one name.

use std::ops::Range;
use std::sync::Arc;

use arrow_schema::Schema as ArrowSchema;

use super::columns::{Columns, alone, kept_elements};
use super::field_ids::{self, without_ids};
use super::geo_key;
use super::plan::ChunkReason;
use super::settings::{LeafWishes, RewriteSettings};
use super::union::{ColumnSource, United, union};
use crate::crypt::Signature;
use crate::error::{Error, Result};
use crate::format::{ColumnOrder, FILE_VERSION, FileMetaData, KeyValue, SchemaElement};
use crate::geo::GeoMetadata;
use crate::memory;
use crate::read::Footer;
use crate::reader::Reader;
use crate::schema::{
    ArrowOptions, FromArrowOptions, HINT_KEY, Leaf, Node, Projection, Schema, change_hint_metadata,
    from_arrow, key_and_value, schema_like, to_arrow,
};
use crate::stats::order::ValueOrder;
use crate::write::column_options::LeafSettings;

/// A file that is copied from.
pub(super) struct Input<'a> {
    pub(super) reader: &'a Reader,
    /// The row groups that are copied, in this order.
    pub(super) row_groups: Vec<RowGroupPart>,
    /// By leaf of the new file, the leaf of this one, if its chunks are the same.
    pub(super) leaves: Vec<Option<usize>>,
    /// By column of the new file, where this one has it.
    pub(super) columns: Vec<ColumnSource>,
    /// By leaf of the new file, whether bounds have the order that the new footer states.
    pub(super) is_ordered: Vec<bool>,
    /// Whether all chunks are encoded, because readers know faults of its writer by its name.
    pub(super) is_faulty: bool,
    /// The inputs, this one among them, whose rows are merged.
    pub(super) merged_with: Option<Range<usize>>,
}

/// A row group that is copied, or some of its rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RowGroupPart {
    /// Its number in the file.
    pub(super) ordinal: usize,
    /// The rows, if they are not all.
    pub(super) cut: Option<Range<u64>>,
    /// Number of rows.
    pub(super) rows: u64,
}

impl Input<'_> {
    pub(super) fn footer(&self) -> &Footer {
        self.reader.metadata().footer()
    }
}

/// A column of the new file: a child of the root.
pub(super) struct NewColumn {
    /// Its place among the columns of all files.
    source: usize,
    /// Its leaves.
    pub(super) leaves: Range<usize>,
    /// A schema with this column alone.
    pub(super) schema: Vec<SchemaElement>,
    /// Of the leaves that the column has in the files, which are kept.
    pub(super) kept: Vec<bool>,
}

/// The files, and the footer of the new one.
pub(super) struct Inputs<'a> {
    pub(super) files: Vec<Input<'a>>,
    /// Without row groups.
    pub(super) footer: FileMetaData,
    pub(super) leaves: Vec<Leaf>,
    pub(super) columns: Vec<NewColumn>,
    /// By leaf, what is asked for.
    pub(super) wishes: Vec<LeafWishes>,
    /// By leaf, how it is written where it is encoded.
    pub(super) settings: Vec<LeafSettings>,
    /// By leaf, whether its bounds have a place in the new file where it is encoded.
    pub(super) has_bounds: Vec<bool>,
    /// The reason to encode everything, if row groups are made anew.
    pub(super) remake: Option<ChunkReason>,
    /// Facts of the inputs that the new file does not state, in sentences.
    pub(super) notes: Vec<String>,
}

impl<'a> Inputs<'a> {
    /// Looks at all files before anything is written.
    ///
    /// # Errors
    /// `Usage` if there is no file, the columns differ, a setting fits no column, or a reader
    /// selects single rows; `Unsupported` if pages are read with a workaround that another name in
    /// `created_by` would switch off; `Crypto` if a signature was not verified.
    pub(super) fn new(readers: &'a [Reader], settings: &RewriteSettings) -> Result<Self> {
        let Some(first) = readers.first() else {
            return Err(Error::usage("no file was given: there is nothing to copy"));
        };
        let mut footer = first.metadata().index().to_file_meta_data().map_err(|e| first.name(e))?;
        footer.row_groups.clear();
        footer.num_rows = 0;
        let united = match settings.is_by_name {
            true => union(readers)?,
            false => as_first(readers, &footer.schema)?,
        };
        let kept = kept_leaves(first, &united.elements)?;
        let (schema, columns) = new_columns(&united.elements, &kept, settings)?;
        let is_as_first = schema == footer.schema;
        footer.schema = schema;
        let schema = memory::cloned(&footer.schema)?;
        let parsed = Schema::parse(schema, &first.read_options().limits)?;
        let leaves = parsed.leaves()?;
        let wishes = settings.of_leaves(&leaves)?;
        let mut files = memory::vec_for(readers.len())?;
        for (reader, sources) in readers.iter().zip(united.sources) {
            let row_groups = row_groups(reader).map_err(|e| reader.name(e))?;
            let mut file = input(reader, row_groups, &sources, &columns)?;
            let at = files.len();
            file.merged_with = settings.merged.iter().find(|range| range.contains(&at)).cloned();
            files.push(file);
        }
        let remake = match (settings.sort_by.is_empty(), settings.regroups) {
            (false, _) => Some(ChunkReason::Sorted),
            (true, true) => Some(ChunkReason::RowGroups),
            (true, false) => None,
        };
        let changes_ids = !settings.field_ids.is_empty();
        let states_geo_key = settings.options.geo.is_some()
            || settings.key_values.iter().any(|(key, _)| key == GeoMetadata::KEY);
        let settings = settings.options.resolve(&parsed)?;
        let (has_bounds, notes) = (memory::filled(true, leaves.len())?, Vec::new());
        let mut inputs =
            Self { files, footer, leaves, columns, wishes, settings, has_bounds, remake, notes };
        inputs.join_key_values()?;
        if !is_as_first {
            inputs.change_hint(changes_ids);
        }
        // In the hint, too.
        if !states_geo_key && let Some(key_values) = &mut inputs.footer.key_value_metadata {
            let of_files: Vec<_> = inputs.files.iter().map(|of| of.footer().key_values()).collect();
            inputs.notes.extend(geo_key::mend(key_values, &parsed, &of_files)?);
        }
        inputs.join_writers()?;
        inputs.join_orders()?;
        Ok(inputs)
    }

    /// Why a column of a row group is decoded and encoded; `None` if its chunks are copied.
    pub(super) fn encoding_reason(
        &self,
        file: &Input<'_>,
        part: &RowGroupPart,
        column: usize,
    ) -> Option<ChunkReason> {
        if self.remake.is_some() {
            return self.remake;
        }
        if file.merged_with.is_some() {
            return Some(ChunkReason::Sorted);
        }
        let wishes = self.columns.get(column).and_then(|of| self.wishes.get(of.leaves.clone()));
        match file.columns.get(column) {
            Some(ColumnSource::Missing) => Some(ChunkReason::Missing),
            Some(ColumnSource::Converted) => Some(ChunkReason::Type),
            _ if part.cut.is_some() => Some(ChunkReason::Cut),
            _ if wishes.into_iter().flatten().any(|leaf| leaf.is_encoded) => {
                Some(ChunkReason::Settings)
            }
            _ => file.is_faulty.then_some(ChunkReason::Writer),
        }
    }

    /// Whether a chunk of a column is copied from a file.
    fn copies(&self, file: &Input<'_>, column: usize) -> bool {
        let is_copied = |part| self.encoding_reason(file, part, column).is_none();
        file.row_groups.iter().any(is_copied)
    }

    /// Whether a chunk of any column is encoded.
    fn encodes(&self) -> bool {
        self.files.iter().any(|file| self.encodes_from(file))
    }

    fn encodes_from(&self, file: &Input<'_>) -> bool {
        let encodes = |part| {
            let reason = |column| self.encoding_reason(file, part, column);
            (0..self.columns.len()).any(|column| reason(column).is_some())
        };
        file.row_groups.iter().any(encodes)
    }

    /// Checks that the chunks of files that are decoded share no bytes, unless that is allowed;
    /// those that are copied are checked then.
    ///
    /// # Errors
    /// `Malformed` if they do.
    pub(super) fn check_shared_bytes(&self) -> Result<()> {
        for file in &self.files {
            if !file.reader.read_options().shared_bytes && self.encodes_from(file) {
                let checked = file.reader.metadata().check_shared_bytes();
                checked.map_err(|e| file.reader.name(e))?;
            }
        }
        Ok(())
    }

    /// States the order of each leaf, and finds the files whose bounds have another.
    fn join_orders(&mut self) -> Result<()> {
        let copied = (0..self.columns.len()).map(|column| {
            memory::collected(self.files.iter().map(|file| self.copies(file, column)))
        });
        let copied: Vec<Vec<bool>> = memory::try_collected(copied)?;
        let encodes = self.encodes();
        let has_orders = encodes || self.files.iter().any(|file| stated_order(file, 0).is_some());
        let is_one = self.files.len() == 1;
        let mut orders = memory::vec_for(self.leaves.len())?;
        let copied = self.columns.iter().zip(&copied);
        let copied = copied.flat_map(|(of, copied)| of.leaves.clone().map(move |_| copied));
        for ((at, leaf), copied) in self.leaves.iter().enumerate().zip(copied) {
            let known = |order: &ColumnOrder| is_one || is_known(order);
            let stated = |file: &Input<'_>| {
                let leaf = file.leaves.get(at).copied().flatten()?;
                stated_order(file, leaf).filter(|order| known(order)).cloned()
            };
            let of_copied = || self.files.iter().zip(copied).filter(|(_, copied)| **copied);
            let total_order = self.settings.get(at).is_some_and(|of| of.total_order);
            let order = match of_copied().next() {
                Some(_) => of_copied().find_map(|(file, _)| stated(file)),
                // Nothing has an order yet; that of the files leaves their bounds as tight.
                None => {
                    let mut stated = self.files.iter().filter_map(&stated).filter(is_known);
                    let old = stated.next().filter(|_| !total_order);
                    old.or_else(|| Some(ValueOrder::for_leaf(leaf, total_order).column_order()))
                }
            };
            // Bounds without an order must not get one.
            let can_keep = order.is_some() || !has_orders;
            let is_same = |file| can_keep && stated(file) == order;
            let same: Vec<bool> = memory::collected(self.files.iter().map(is_same))?;
            let differs = same.iter().zip(copied).any(|(same, copied)| *copied && !same);
            for (file, same) in self.files.iter_mut().zip(same) {
                memory::push(&mut file.is_ordered, same)?;
            }
            if differs {
                self.notes.push(format!(
                    "column {}: the files order its values differently; bounds in another order \
                     than that of the new footer are left out",
                    leaf.path.dotted()
                ));
            }
            let order = order.unwrap_or(ColumnOrder::TypeOrder);
            if let Some(settings) = self.settings.get_mut(at) {
                settings.total_order = order == ColumnOrder::Ieee754TotalOrder;
                let ours = ValueOrder::for_leaf(leaf, settings.total_order).column_order();
                self.has_bounds.get_mut(at).into_iter().for_each(|has| *has = ours == order);
            }
            memory::push(&mut orders, order)?;
        }
        self.footer.column_orders = has_orders.then_some(orders);
        Ok(())
    }

    /// Adds the keys of the other files to those of the first.
    fn join_key_values(&mut self) -> Result<()> {
        let mut all = self.footer.key_value_metadata.take().unwrap_or_default();
        let own = all.len();
        let mut differing: Vec<String> = Vec::new();
        let first = self.files.first().map(Input::footer);
        for file in self.files.iter().skip(1) {
            for pair in file.footer().key_values() {
                match all.iter().find(|known| known.key == pair.key) {
                    Some(known) if known.value != pair.value => {
                        let explains = |of| geo_key::explains(known, of, file.footer());
                        if !differing.contains(&pair.key) && !first.is_some_and(explains) {
                            differing.push(pair.key.clone());
                        }
                    }
                    Some(_) => {}
                    None => memory::push(&mut all, pair.copied()?)?,
                }
            }
        }
        let from = if own > 0 { "the first file" } else { "the first file that has it" };
        for key in differing {
            self.notes.push(format!(
                "key {key:?}: the files have different values; that of {from} is kept"
            ));
        }
        self.footer.key_value_metadata = (!all.is_empty()).then_some(all);
        Ok(())
    }

    /// Describes the columns of the new file under `ARROW:schema`, if a file did: there are others
    /// than in the first file, and readers take them by their places.
    fn change_hint(&mut self, changes_ids: bool) {
        let Some(all) = &mut self.footer.key_value_metadata else { return };
        let before = all.len();
        all.retain(|pair| pair.key != HINT_KEY);
        if all.len() == before {
            return;
        }
        match arrow_hint(&self.files, &self.columns, changes_ids) {
            Ok(hint) => all.extend(hint),
            Err(e) => self.notes.push(format!("ARROW:schema is left out: {e}")),
        }
    }

    /// States who wrote the pages, if that is one.
    fn join_writers(&mut self) -> Result<()> {
        self.footer.version = FILE_VERSION;
        let writer = |file: &Input<'a>| file.footer().created_by().map(str::to_owned);
        let first = self.files.first().and_then(writer);
        let changes_pages = self.wishes.iter().any(|leaf| leaf.codec.is_some()) || self.encodes();
        if changes_pages {
            // What is made anew has not the faults that readers know.
            for file in &mut self.files {
                file.is_faulty = file.footer().quirks().bind_pages();
            }
        }
        if !self.encodes() && self.files.iter().all(|file| writer(file) == first) {
            return Ok(());
        }
        for file in &self.files {
            if file.footer().quirks().bind_pages() && !file.is_faulty {
                let writer = file.footer().created_by().unwrap_or_default();
                return Err(file.reader.name(Error::unsupported(
                    "pages of several writers, of which one has faults that readers know by its name",
                    format_args!(
                        "{writer:?} wrote this file: encode it again first (marq convert FILE -o \
                         NEW.parquet)"
                    ),
                )));
            }
        }
        let ours = concat!("marquetry version ", env!("CARGO_PKG_VERSION"));
        if first.as_deref() != Some(ours) {
            self.notes.push(format!("several writers: created_by becomes \"{ours}\""));
        }
        self.footer.created_by = Some(ours.to_owned());
        Ok(())
    }
}

/// The Arrow types of the columns, as the first file that has a column alike describes it.
fn arrow_hint(
    files: &[Input<'_>],
    columns: &[NewColumn],
    changes_ids: bool,
) -> Result<Option<KeyValue>> {
    let mut fields = memory::vec_for(columns.len())?;
    for (at, column) in columns.iter().enumerate() {
        let is_same =
            |file: &&Input<'_>| matches!(file.columns.get(at), Some(ColumnSource::Same(_)));
        let field = match files.iter().find(is_same) {
            Some(file) => {
                let leaves = file.leaves.get(column.leaves.clone()).unwrap_or_default();
                let leaves = leaves.iter().filter_map(|leaf| *leaf);
                let mapping = to_arrow(
                    file.reader.metadata().schema(),
                    file.reader.metadata().key_values(),
                    &Projection::leaves(leaves),
                    &ArrowOptions::new(),
                )?;
                mapping.schema.fields().first().cloned()
            }
            None => {
                let schema = Schema::parse(memory::cloned(&column.schema)?, &Default::default())?;
                let natural = ArrowOptions::new().with_hint(false);
                let mapping = to_arrow(&schema, &[], &Projection::all(), &natural)?;
                mapping.schema.fields().first().cloned()
            }
        };
        // A group without leaves has no field. The ids are those of the schema.
        memory::extend(
            &mut fields,
            field.map(|field| if changes_ids { without_ids(&field) } else { field }),
        )?;
    }
    // The metadata are those of the first file.
    let like = match files.first() {
        Some(file) => {
            let mapping = to_arrow(
                file.reader.metadata().schema(),
                file.reader.metadata().key_values(),
                &Projection::leaves([]),
                &ArrowOptions::new(),
            )?;
            mapping.schema
        }
        None => Arc::new(ArrowSchema::empty()),
    };
    let schema = schema_like(&like, fields)?;
    let written = from_arrow(&schema, &FromArrowOptions::new())?;
    Ok(written.key_values.into_iter().find(|pair| pair.key == HINT_KEY))
}

/// The order that a file states for one of its leaves.
fn stated_order<'a>(file: &'a Input<'_>, leaf: usize) -> Option<&'a ColumnOrder> {
    file.footer().column_order(leaf)
}

fn is_known(order: &ColumnOrder) -> bool {
    !matches!(order, ColumnOrder::Unrecognized(_))
}

/// Changes the key-values of a footer: a key without a value goes.
pub(super) fn change_key_values(
    footer: &mut FileMetaData,
    changes: &[(String, Option<String>)],
) -> Result<()> {
    let mut all = footer.key_value_metadata.take().unwrap_or_default();
    for (key, value) in changes {
        all.retain(|pair| pair.key != *key);
        change_hint_metadata(&mut all, key, value.as_deref())?;
        if let Some(value) = value {
            all.push(KeyValue::new(key.clone(), value.clone()));
        }
    }
    footer.key_value_metadata = (!all.is_empty()).then_some(all);
    Ok(())
}

/// The row groups that a reader selects, and the parts of them that its offset and limit leave.
fn row_groups(reader: &Reader) -> Result<Vec<RowGroupPart>> {
    let options = reader.read_options();
    let selects = options.selection.is_some() || options.not_deleted.is_some();
    if options.filter.is_some() || selects {
        return Err(Error::usage(
            "row groups are copied: a filter or a selection of rows needs them to be read and \
             written anew",
        ));
    }
    if reader.metadata().footer().signature() == Signature::Unverified {
        return Err(Error::crypto(
            "the signature of the footer was not verified, and a changed footer would \
             be taken for right: give the key of the footer (marq: --footer-key)",
        ));
    }
    let ordinals: Vec<usize> = match &options.row_groups {
        Some(ordinals) => memory::copied(ordinals)?,
        None => memory::collected(0..reader.metadata().row_groups())?,
    };
    let first = options.offset;
    let end = options.limit.map_or(u64::MAX, |limit| first.saturating_add(limit));
    let is_whole = first == 0 && options.limit.is_none();
    let (mut parts, mut start) = (memory::vec_for(ordinals.len())?, 0u64);
    for ordinal in ordinals {
        let rows = reader.metadata().footer().row_group_rows(ordinal)?;
        let after = start.saturating_add(rows);
        let chosen = first.max(start)..end.min(after);
        if is_whole || chosen == (start..after) {
            parts.push(RowGroupPart { ordinal, cut: None, rows });
        } else if chosen.start < chosen.end {
            let cut = chosen.start - start..chosen.end - start;
            parts.push(RowGroupPart { ordinal, rows: cut.end - cut.start, cut: Some(cut) });
        }
        start = after;
    }
    // An empty row group that lies beside the rows is not one of them.
    parts.retain(|part| is_whole || part.rows > 0);
    Ok(parts)
}

/// The schema of the first file, which the others must have.
fn as_first(readers: &[Reader], elements: &[SchemaElement]) -> Result<United> {
    let columns = Columns::new(elements)?;
    let mut sources = memory::vec_for(readers.len())?;
    for reader in readers {
        let same = columns.same_in(reader).map_err(|e| reader.name(e))?;
        sources.push(memory::collected(same.into_iter().map(ColumnSource::Same))?);
    }
    Ok(United { elements: memory::cloned(elements)?, sources })
}

/// The columns that have kept leaves, and the schema with these alone.
fn new_columns(
    elements: &[SchemaElement],
    kept: &[bool],
    settings: &RewriteSettings,
) -> Result<(Vec<SchemaElement>, Vec<NewColumn>)> {
    let mut schema = kept_elements(elements, kept)?;
    field_ids::change(&mut schema, &settings.field_ids)?;
    let before = Columns::new(elements)?;
    let before = before.list.iter().map(|column| kept.get(column.leaves.clone()));
    let mut before = before.enumerate().filter_map(|(source, kept)| {
        // A column goes if it had leaves, and all of them went.
        let kept = kept.unwrap_or_default();
        (kept.is_empty() || kept.contains(&true)).then_some((source, kept))
    });
    let after = Columns::new(&schema)?;
    let mut columns = memory::vec_for(after.list.len())?;
    let root = schema.first().cloned().unwrap_or_default();
    for column in &after.list {
        let (source, kept) =
            before.next().ok_or_else(|| Error::internal("a kept column was there before"))?;
        let leaves = column.leaves.clone();
        columns.push(NewColumn {
            source,
            leaves,
            schema: alone(&root, after.elements_of(column))?,
            kept: memory::copied(kept)?,
        });
    }
    drop(before);
    Ok((schema, columns))
}

/// A file, with the columns that are kept.
fn input<'a>(
    reader: &'a Reader,
    row_groups: Vec<RowGroupPart>,
    sources: &[ColumnSource],
    columns: &[NewColumn],
) -> Result<Input<'a>> {
    let mut leaves = Vec::new();
    let mut of_columns = memory::vec_for(columns.len())?;
    for column in columns {
        let source = sources.get(column.source).unwrap_or(&ColumnSource::Missing);
        let kept = (0usize..).zip(&column.kept).filter(|(_, kept)| **kept);
        match source {
            ColumnSource::Same(of) => {
                memory::extend(&mut leaves, kept.map(|(at, _)| Some(of.leaves.start + at)))?
            }
            _ => memory::extend(&mut leaves, kept.map(|_| None))?,
        }
        of_columns.push(source.clone());
    }
    let (columns, is_ordered, is_faulty, merged_with) = (of_columns, Vec::new(), false, None);
    Ok(Input { reader, row_groups, leaves, columns, is_ordered, is_faulty, merged_with })
}

/// By leaf of the schema of all files, whether the projection of the first has it.
fn kept_leaves(reader: &Reader, elements: &[SchemaElement]) -> Result<Vec<bool>> {
    let limits = &reader.read_options().limits;
    let schema = Schema::parse(memory::cloned(elements)?, limits).map_err(|e| reader.name(e))?;
    let names = match &reader.read_options().projection {
        Projection::All => return memory::filled(true, schema.leaves_len()),
        Projection::Names(names) => names,
        _ => {
            return Err(
                reader.name(Error::usage("columns of a copy are chosen by name (Reader::project)"))
            );
        }
    };
    let mut kept = memory::filled(false, schema.leaves_len())?;
    for name in names {
        let leaves = schema.node_named(name).map_err(|e| reader.name(e))?.leaves();
        if let Some(kept) = kept.get_mut(leaves) {
            kept.fill(true);
        }
    }
    schema.fields().for_each(|field| keep_maps(field, &mut kept));
    Ok(kept)
}

/// Keeps the keys of each map that has a kept leaf, and its values if none of them was chosen: a
/// read of the same projection has both.
fn keep_maps(node: Node<'_>, kept: &mut [bool]) {
    let is_kept = |kept: &[bool], node: Node<'_>| {
        kept.get(node.leaves()).is_some_and(|kept| kept.contains(&true))
    };
    if node.is_leaf() || !is_kept(kept, node) {
        return;
    }
    if let Some((key, value)) = key_and_value(node) {
        let value = (!is_kept(kept, value)).then_some(value);
        for part in [Some(key), value].into_iter().flatten() {
            if let Some(kept) = kept.get_mut(part.leaves()) {
                kept.fill(true);
            }
        }
    }
    node.children().for_each(|child| keep_maps(child, kept));
}
