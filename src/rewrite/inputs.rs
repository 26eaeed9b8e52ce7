//! [`Inputs`]: the files that become one, and what one footer can say for all of them.
//!
//! Spec: `parquet.thrift`, FileMetaData. Traps: a footer states one column order for each leaf, and
//! bounds of another file were written in another order; readers work around the faults of a writer
//! by its name in `created_by`, and a footer has one name.

use std::ops::Range;

use crate::crypt::Signature;
use crate::error::{Error, Result};
use crate::format::{ColumnOrder, FileMetaData, KeyValue, SchemaElement};
use crate::read::Footer;
use crate::reader::Reader;
use crate::schema::{Leaf, Projection, Schema};

/// A file that is copied from.
pub(super) struct Input<'a> {
    pub(super) reader: &'a Reader,
    /// The row groups that are copied, in this order.
    pub(super) row_groups: Vec<usize>,
    /// By leaf of the new file, the leaf of this one.
    pub(super) leaves: Vec<usize>,
    /// By leaf of the new file, whether bounds have the order that the new footer states.
    pub(super) is_ordered: Vec<bool>,
}

impl Input<'_> {
    pub(super) fn footer(&self) -> &Footer {
        self.reader.metadata().footer()
    }
}

/// The files, and the footer of the new one.
pub(super) struct Inputs<'a> {
    pub(super) files: Vec<Input<'a>>,
    /// Without row groups.
    pub(super) footer: FileMetaData,
    pub(super) leaves: Vec<Leaf>,
    /// Facts of the inputs that the new file does not state, in sentences.
    pub(super) notes: Vec<String>,
}

impl<'a> Inputs<'a> {
    /// Looks at all files before anything is written.
    ///
    /// # Errors
    /// `Usage` if there is no file, the columns differ, or a reader selects single rows;
    /// `Unsupported` if pages are read with a workaround that another name in `created_by` would
    /// switch off; `Crypto` if a signature was not verified.
    pub(super) fn new(readers: &'a [Reader], is_by_name: bool) -> Result<Self> {
        let Some(first) = readers.first() else {
            return Err(Error::usage("no file was given: there is nothing to copy"));
        };
        let mut footer = first.metadata().index().to_file_meta_data().map_err(|e| first.name(e))?;
        footer.row_groups.clear();
        footer.num_rows = 0;
        let columns = Columns::new(&footer.schema);
        let kept = kept_leaves(first)?;
        let schema = kept_elements(&footer.schema, &kept);
        let mut files = Vec::with_capacity(readers.len());
        for reader in readers {
            let leaves = columns.leaves_in(reader, is_by_name).map_err(|e| reader.name(e))?;
            let row_groups = row_groups(reader).map_err(|e| reader.name(e))?;
            let leaves = leaves.into_iter().zip(&kept).filter(|(_, kept)| **kept);
            let leaves = leaves.map(|(leaf, _)| leaf).collect();
            files.push(Input { reader, row_groups, leaves, is_ordered: Vec::new() });
        }
        footer.schema = schema;
        let parsed = Schema::parse(footer.schema.clone(), &first.read_options().limits)?;
        let leaves =
            (0..parsed.leaves_len()).map(|i| parsed.leaf(i)).collect::<Result<Vec<Leaf>>>()?;
        let mut inputs = Self { files, footer, leaves, notes: Vec::new() };
        inputs.join_orders();
        inputs.join_key_values();
        inputs.join_writers()?;
        Ok(inputs)
    }

    /// States the order of each leaf, and finds the files whose bounds have another.
    fn join_orders(&mut self) {
        let has_orders = self.files.iter().any(|file| stated_order(file, 0).is_some());
        let is_one = self.files.len() == 1;
        let mut orders = Vec::with_capacity(self.leaves.len());
        for (at, leaf) in self.leaves.iter().enumerate() {
            let leaf_in = |file: &Input<'_>| file.leaves.get(at).copied().unwrap_or(usize::MAX);
            let known = |order: &ColumnOrder| is_one || is_known(order);
            let stated = |file: &Input<'_>| {
                stated_order(file, leaf_in(file)).filter(|order| known(order)).cloned()
            };
            let order = self.files.iter().find_map(stated);
            let mut differs = false;
            // Bounds without an order must not get one.
            let can_keep = order.is_some() || !has_orders;
            let is_same = |file| can_keep && stated(file) == order;
            let same: Vec<bool> = self.files.iter().map(is_same).collect();
            for (file, same) in self.files.iter_mut().zip(same) {
                file.is_ordered.push(same);
                differs |= !same;
            }
            if differs {
                self.notes.push(format!(
                    "column {}: the files order its values differently; bounds in another order \
                     than that of the new footer are left out",
                    leaf.path.dotted()
                ));
            }
            orders.push(order.unwrap_or(ColumnOrder::TypeOrder));
        }
        self.footer.column_orders = has_orders.then_some(orders);
    }

    /// Adds the keys of the other files to those of the first.
    fn join_key_values(&mut self) {
        let mut all = self.footer.key_value_metadata.take().unwrap_or_default();
        let own = all.len();
        let mut differing: Vec<String> = Vec::new();
        for file in self.files.iter().skip(1) {
            for pair in file.footer().key_values() {
                match all.iter().find(|known| known.key == pair.key) {
                    Some(known) if known.value != pair.value => {
                        if !differing.contains(&pair.key) {
                            differing.push(pair.key.clone());
                        }
                    }
                    Some(_) => {}
                    None => all.push(pair.clone()),
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
    }

    /// States who wrote the pages, if that is one.
    fn join_writers(&mut self) -> Result<()> {
        self.footer.version =
            self.files.iter().map(|file| file.footer().index().head().version).max().unwrap_or(2);
        let writer = |file: &Input<'a>| file.footer().created_by().map(str::to_owned);
        let first = self.files.first().and_then(writer);
        if self.files.iter().all(|file| writer(file) == first) {
            return Ok(());
        }
        for file in &self.files {
            if file.footer().quirks().is_any() {
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
        self.notes.push(format!("several writers: created_by becomes \"{ours}\""));
        self.footer.created_by = Some(ours.to_owned());
        Ok(())
    }
}

/// The order that a file states for one of its leaves.
fn stated_order<'a>(file: &'a Input<'_>, leaf: usize) -> Option<&'a ColumnOrder> {
    file.footer().column_order(leaf)
}

fn is_known(order: &ColumnOrder) -> bool {
    !matches!(order, ColumnOrder::Unrecognized(_))
}

/// Changes the key-values of a footer: a key without a value goes.
pub(super) fn change_key_values(footer: &mut FileMetaData, changes: &[(String, Option<String>)]) {
    let mut all = footer.key_value_metadata.take().unwrap_or_default();
    for (key, value) in changes {
        all.retain(|pair| pair.key != *key);
        if let Some(value) = value {
            all.push(KeyValue::new(key.clone(), value.clone()));
        }
    }
    footer.key_value_metadata = (!all.is_empty()).then_some(all);
}

/// The row groups that a reader selects.
fn row_groups(reader: &Reader) -> Result<Vec<usize>> {
    let options = reader.read_options();
    if options.filter.is_some()
        || options.selection.is_some()
        || options.offset > 0
        || options.limit.is_some()
    {
        return Err(Error::usage(
            "row groups are copied whole: a filter, a selection of rows, an offset or a limit \
             needs them to be read and written anew",
        ));
    }
    if reader.metadata().footer().signature() == Signature::Unverified {
        return Err(Error::crypto(
            "the signature of the footer was not verified, and a changed footer would \
             be taken for right: give the key of the footer (marq: --footer-key)",
        ));
    }
    let all = || (0..reader.metadata().row_groups()).collect();
    Ok(options.row_groups.clone().unwrap_or_else(all))
}

/// By leaf of the file, whether its projection has it.
fn kept_leaves(reader: &Reader) -> Result<Vec<bool>> {
    let schema = reader.metadata().schema();
    let names = match &reader.read_options().projection {
        Projection::All => return Ok(vec![true; schema.leaves_len()]),
        Projection::Names(names) => names,
        _ => {
            return Err(
                reader.name(Error::usage("columns of a copy are chosen by name (Reader::project)"))
            );
        }
    };
    let mut kept = vec![false; schema.leaves_len()];
    for name in names {
        let leaves = schema.node_named(name).map_err(|e| reader.name(e))?.leaves();
        if let Some(kept) = kept.get_mut(leaves) {
            kept.fill(true);
        }
    }
    Ok(kept)
}

/// The elements of a schema with these leaves only, and with the groups around them.
fn kept_elements(elements: &[SchemaElement], kept: &[bool]) -> Vec<SchemaElement> {
    let mut out = Vec::with_capacity(elements.len());
    // Of the elements after this one, those whose parent comes before it: whether each is kept.
    let mut later: Vec<bool> = Vec::new();
    let mut leaves = kept.iter().rev();
    for (index, element) in elements.iter().enumerate().rev() {
        if element.r#type.is_some() {
            let is_kept = leaves.next().copied().unwrap_or(false);
            later.push(is_kept);
            if is_kept {
                out.push(element.clone());
            }
            continue;
        }
        let children = usize::try_from(element.num_children.unwrap_or(0)).unwrap_or(0);
        let children = later.split_off(later.len().saturating_sub(children));
        let kept = children.iter().filter(|kept| **kept).count();
        // A group without children stays as it is; the root always stays.
        let is_kept = kept > 0 || children.is_empty() || index == 0;
        if is_kept {
            let num_children = i32::try_from(kept).ok().or(element.num_children);
            out.push(SchemaElement { num_children, ..element.clone() });
        }
        later.push(is_kept);
    }
    out.reverse();
    out
}

/// The columns of the first file, which the others must have.
struct Columns<'a> {
    elements: &'a [SchemaElement],
    list: Vec<TopLevelColumn>,
}

/// A column: its elements, and its leaves.
struct TopLevelColumn {
    elements: Range<usize>,
    leaves: Range<usize>,
}

impl<'a> Columns<'a> {
    fn new(elements: &'a [SchemaElement]) -> Self {
        Self { elements, list: top_level_columns(elements) }
    }

    /// For each leaf of the first file, the same leaf of another one.
    fn leaves_in(&self, reader: &Reader, is_by_name: bool) -> Result<Vec<usize>> {
        let elements: Vec<SchemaElement> = reader.metadata().schema().elements().collect();
        let other = Columns::new(&elements);
        let mut leaves = Vec::new();
        for (at, column) in self.list.iter().enumerate() {
            let mine = self.elements.get(column.elements.clone()).unwrap_or_default();
            let name = mine.first().map_or("", |element| element.name.as_str());
            let found = match is_by_name {
                true => other.named(name)?,
                false => other.list.get(at),
            };
            let theirs = found.and_then(|found| other.elements.get(found.elements.clone()));
            let (Some(found), Some(theirs)) = (found, theirs) else {
                return Err(Error::usage(format_args!(
                    "it has no column {name:?}, which the first file has"
                )));
            };
            if let Some(what) = difference(mine, theirs) {
                let help = match is_by_name {
                    false if other.named(name)?.is_some() => " (marq: --by-name)",
                    _ => "",
                };
                return Err(Error::usage(format_args!(
                    "its schema is not that of the first file: {what}{help}"
                )));
            }
            leaves.extend(found.leaves.clone());
        }
        if other.list.len() != self.list.len() {
            let known = |name: &str| matches!(self.named(name), Ok(Some(_)));
            let names = other.list.iter().filter_map(|column| other.name(column));
            let extra = names.filter(|name| !known(name)).collect::<Vec<_>>().join(", ");
            return Err(Error::usage(format_args!(
                "it has columns that the first file has not: {extra}"
            )));
        }
        Ok(leaves)
    }

    fn name(&self, column: &TopLevelColumn) -> Option<&'a str> {
        self.elements.get(column.elements.start).map(|element| element.name.as_str())
    }

    /// The column of a name.
    ///
    /// # Errors
    /// `Usage` if there are several.
    fn named(&self, name: &str) -> Result<Option<&TopLevelColumn>> {
        let mut found = self.list.iter().filter(|column| self.name(column) == Some(name));
        let first = found.next();
        match found.next() {
            None => Ok(first),
            Some(_) => Err(Error::usage(format_args!("several columns are called {name:?}"))),
        }
    }
}

/// The children of the root.
fn top_level_columns(elements: &[SchemaElement]) -> Vec<TopLevelColumn> {
    let mut out: Vec<TopLevelColumn> = Vec::new();
    let mut leaf = 0;
    // Elements of the current column that are still to come.
    let mut left = 0usize;
    for (at, element) in elements.iter().enumerate().skip(1) {
        if left == 0 {
            out.push(TopLevelColumn { elements: at..at, leaves: leaf..leaf });
            left = 1;
        }
        let children = usize::try_from(element.num_children.unwrap_or(0)).unwrap_or(0);
        left = left.saturating_sub(1).saturating_add(children);
        leaf += usize::from(element.r#type.is_some());
        if let Some(column) = out.last_mut() {
            (column.elements.end, column.leaves.end) = (at + 1, leaf);
        }
    }
    out
}

/// The first element in which two columns differ.
fn difference(mine: &[SchemaElement], theirs: &[SchemaElement]) -> Option<String> {
    let show = |element: Option<&SchemaElement>| match element {
        Some(element) => format!("{element:?}"),
        None => "nothing".to_owned(),
    };
    (0..mine.len().max(theirs.len())).find_map(|at| {
        let (mine, theirs) = (mine.get(at), theirs.get(at));
        (mine != theirs).then(|| format!("{} there, {} here", show(mine), show(theirs)))
    })
}
