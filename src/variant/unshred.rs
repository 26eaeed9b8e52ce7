//! Unshredding: reconstructs the values of a shredded column.
//!
//! Spec: VariantShredding.md, "Reconstructing a Shredded Variant". Both columns null is a missing
//! value, which only a field of an object may be; elsewhere it is read as null. Where both are set,
//! they are the two parts of one object.
//!
//! Trap: a field that is shredded must not be in `value` as well: readers differ in which of the
//! two they use, so that it is refused.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, StructArray};
use arrow_buffer::{Buffer, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields};

use super::array::VariantArray;
use super::columns::{ShreddedNode, TypedKind, TypedValue};
use super::encode;
use super::malformed::malformed;
use super::members::ObjectField;
use super::metadata::VariantMetadata;
use super::value::Variant;
use crate::error::{Error, LimitKind, Result, quoted};
use crate::limits::Growth;
use crate::memory;

/// Reconstructs the values of a shredded column, row by row.
#[derive(Debug)]
pub(super) struct Unshredder<'a> {
    column: &'a VariantArray,
    /// The whole values, or the part of each that is reconstructed.
    root: &'a ShreddedNode,
    /// Counts what is appended.
    growth: &'a Growth,
    metadata_bytes: &'a [u8],
    metadata: Option<VariantMetadata<'a>>,
    /// For each field of each shredded object, in the order in which the tree is walked, the id of
    /// its name.
    ids: Vec<NameId>,
    epoch: u32,
    /// For each name of a shredded field, its places in `ids`; made when it is first needed.
    ids_of_name: Option<HashMap<&'a str, Vec<usize>>>,
    /// The metadata whose names were all looked up.
    table_epoch: u32,
    /// Fields and elements of the open objects and lists, outermost first.
    fields: Vec<(u32, u32)>,
    offsets: Vec<u32>,
}

/// The id of a name in the metadata that it was looked up in.
#[derive(Debug, Clone, Copy, Default)]
struct NameId {
    id: u32,
    epoch: u32,
}

/// Number of names up to which comparing one by one is faster than a hash table.
const FEW_NAMES: usize = 16;

/// A node, and the index of its first field in [`Unshredder::ids`].
#[derive(Clone, Copy)]
struct NumberedNode<'a> {
    node: &'a ShreddedNode,
    first_id: usize,
}

impl<'a> Unshredder<'a> {
    pub(super) fn new(column: &'a VariantArray, growth: &'a Growth) -> Self {
        Self::of_part(column, &column.root, growth)
    }

    /// Reconstructs the part of each value that `root`, a node of the column, has.
    pub(super) fn of_part(
        column: &'a VariantArray,
        root: &'a ShreddedNode,
        growth: &'a Growth,
    ) -> Self {
        Self {
            column,
            root,
            growth,
            metadata_bytes: &[],
            metadata: None,
            ids: vec![NameId::default(); root.names],
            epoch: 0,
            ids_of_name: None,
            table_epoch: 0,
            fields: Vec::new(),
            offsets: Vec::new(),
        }
    }

    /// Appends the value of a row; nothing if the row is null.
    pub(super) fn append(&mut self, row: usize, out: &mut Vec<u8>) -> Result<()> {
        if self.column.is_null(row) {
            return Ok(());
        }
        if !self.append_part(row, row, out)? {
            self.null(out)?;
        }
        Ok(())
    }

    /// Appends the value null.
    fn null(&self, out: &mut Vec<u8>) -> Result<()> {
        self.append_bytes(&[0], out)
    }

    fn append_bytes(&self, bytes: &[u8], out: &mut Vec<u8>) -> Result<()> {
        self.growth.room(out, bytes.len())?;
        out.extend_from_slice(bytes);
        Ok(())
    }

    /// Appends the part of the value of a row, which the arrays of the part have at `place`; false
    /// if it is missing.
    pub(super) fn append_part(
        &mut self,
        row: usize,
        place: usize,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        self.enter(row)?;
        self.node(NumberedNode { node: self.root, first_id: 0 }, place, out)
    }

    /// The metadata of the row set by [`enter`](Self::enter).
    pub(super) fn metadata(&self) -> Result<VariantMetadata<'a>> {
        self.metadata.ok_or_else(|| malformed("a VARIANT without metadata"))
    }

    /// Sets the row whose metadata names are looked up in.
    pub(super) fn enter(&mut self, row: usize) -> Result<()> {
        let bytes = self.column.metadata_of(row)?;
        // Most rows of a column have the names of the row before.
        if self.metadata.is_none() || self.metadata_bytes != bytes {
            self.metadata = Some(VariantMetadata::new(bytes)?);
            self.metadata_bytes = bytes;
            self.epoch = self.epoch.wrapping_add(1);
        }
        Ok(())
    }

    /// The id of the name of a shredded field in the metadata of the row.
    fn id(&mut self, slot: usize, name: &str) -> Result<u32> {
        let NameId { id, epoch } = self.ids[slot];
        if epoch == self.epoch {
            return Ok(id);
        }
        let metadata = self.metadata()?;
        if !metadata.is_ascending() && metadata.len() > FEW_NAMES {
            return self.id_by_table(slot, name);
        }
        let id = metadata.find(name).and_then(|id| u32::try_from(id).ok());
        let id = id.map_or_else(|| nameless_id(name, metadata), Ok)?;
        self.ids[slot] = NameId { id, epoch: self.epoch };
        Ok(id)
    }

    /// Like [`id`](Self::id), for unsorted metadata with many names: all of them are looked up
    /// once.
    fn id_by_table(&mut self, slot: usize, name: &str) -> Result<u32> {
        if self.table_epoch != self.epoch {
            self.table_epoch = self.epoch;
            let metadata = self.metadata()?;
            let root = self.root;
            let slots = self.ids_of_name.get_or_insert_with(|| {
                let mut slots = HashMap::new();
                let mut next = 0;
                for_each_name(root, &mut next, &mut |name, slot| {
                    slots.entry(name).or_insert_with(Vec::new).push(slot);
                });
                slots
            });
            for id in 0..metadata.len() {
                let of_name = metadata.name(id).and_then(|name| slots.get(name));
                let id = u32::try_from(id).map_err(|_| malformed("too many names"))?;
                for slot in of_name.into_iter().flatten() {
                    self.ids[*slot] = NameId { id, epoch: self.epoch };
                }
            }
        }
        let NameId { id, epoch } = self.ids[slot];
        if epoch == self.epoch {
            return Ok(id);
        }
        let id = nameless_id(name, self.metadata()?)?;
        self.ids[slot] = NameId { id, epoch: self.epoch };
        Ok(id)
    }

    fn node(&mut self, place: NumberedNode<'a>, row: usize, out: &mut Vec<u8>) -> Result<bool> {
        let value = place.node.value.as_ref().and_then(|column| column.get(row));
        let typed = place.node.typed.as_ref().filter(|typed| typed.is_valid(row));
        match (value, typed) {
            (None, None) => Ok(false),
            (Some(value), None) => {
                let (_, len) = Variant::read(self.metadata()?, value, 0)?;
                check_whole(value, len)?;
                self.append_bytes(value, out)?;
                Ok(true)
            }
            (None, Some(typed)) => {
                self.typed(typed, None, place, row, out)?;
                Ok(true)
            }
            (Some(value), Some(typed)) => {
                if !matches!(typed.kind, TypedKind::Object(_)) {
                    return Err(malformed(
                        "both `value` and `typed_value` are set, and the value is no object",
                    ));
                }
                self.typed(typed, Some(value), place, row, out)?;
                Ok(true)
            }
        }
    }

    fn typed(
        &mut self,
        typed: &'a TypedValue,
        rest: Option<&'a [u8]>,
        place: NumberedNode<'a>,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        match &typed.kind {
            TypedKind::Scalar(scalars) => {
                let scalar = scalars.value(row);
                self.growth.room(out, encode::max_bytes(&scalar))?;
                encode::scalar(out, &scalar)?;
                Ok(())
            }
            TypedKind::List(ranges, element) => {
                let start = out.len();
                let first = self.offsets.len();
                for at in ranges.elements(row) {
                    let offset = encode::offset(out, start)?;
                    self.growth.room(&mut self.offsets, 1)?;
                    self.offsets.push(offset);
                    let place = NumberedNode { node: element, first_id: place.first_id };
                    if !self.node(place, at, out)? {
                        self.null(out)?;
                    }
                }
                self.growth.room(out, encode::max_header(self.offsets.len() - first))?;
                encode::list(out, start, &self.offsets[first..])?;
                self.offsets.truncate(first);
                Ok(())
            }
            TypedKind::Object(members) => self.object(members, rest, place.first_id, row, out),
        }
    }

    /// The shredded fields of an object and those in `value`, in the order of their names.
    fn object(
        &mut self,
        members: &'a [(String, ShreddedNode)],
        rest: Option<&'a [u8]>,
        first_id: usize,
        row: usize,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        let start = out.len();
        let first = self.fields.len();
        let mut others = match rest {
            None => None,
            Some(bytes) => match Variant::read(self.metadata()?, bytes, 0)? {
                (Variant::Object(object), len) if len == bytes.len() => Some(object.parts()),
                _ => {
                    return Err(malformed(
                        "`value` beside the fields of a shredded object must be an object",
                    ));
                }
            },
        };
        let mut other = others.as_mut().and_then(Iterator::next).transpose()?;
        let mut below = first_id + members.len();
        for (i, (name, node)) in members.iter().enumerate() {
            while let Some(part) = other.filter(|part| part.name < name.as_str()) {
                self.field(part, start, out)?;
                other = others.as_mut().and_then(Iterator::next).transpose()?;
            }
            if other.is_some_and(|part| part.name == name.as_str()) {
                return Err(malformed(format_args!(
                    "the field {} is shredded, and is in `value` as well",
                    quoted(name)
                )));
            }
            let offset = encode::offset(out, start)?;
            if self.node(NumberedNode { node, first_id: below }, row, out)? {
                let id = self.id(first_id + i, name)?;
                self.growth.room(&mut self.fields, 1)?;
                self.fields.push((id, offset));
                if is_made_up(name) {
                    self.nameless_first(first)?;
                }
            }
            below += node.names;
        }
        while let Some(part) = other {
            self.field(part, start, out)?;
            other = others.as_mut().and_then(Iterator::next).transpose()?;
        }
        self.growth.room(out, encode::max_header(self.fields.len() - first))?;
        encode::object(out, start, &self.fields[first..])?;
        self.fields.truncate(first);
        Ok(())
    }

    /// Appends a field that has no column to the object that begins at `start`.
    fn field(&mut self, part: ObjectField<'_>, start: usize, out: &mut Vec<u8>) -> Result<()> {
        self.growth.room(&mut self.fields, 1)?;
        self.fields.push((part.id, encode::offset(out, start)?));
        self.append_bytes(part.bytes, out)
    }

    /// Moves the last field before the others of its object, which begin at `first`, if its name is
    /// empty.
    fn nameless_first(&mut self, first: usize) -> Result<()> {
        let metadata = self.metadata()?;
        let is_nameless = |field: &(u32, u32)| metadata.name(field.0 as usize) == Some("");
        let Some((last, others)) = self.fields.split_last().filter(|(last, _)| is_nameless(last))
        else {
            return Ok(());
        };
        if others.get(first).is_some_and(is_nameless) {
            return Err(malformed("two fields of an object have the empty name"));
        }
        let field = *last;
        self.fields.pop();
        self.fields.insert(first, field);
        Ok(())
    }
}

/// Whether DuckDB 2.0.0 may have made up the name, for a field whose name is empty.
fn is_made_up(name: &str) -> bool {
    name.strip_prefix("element").is_some_and(|n| n.parse::<u32>().is_ok())
}

/// The id of the empty name, for a field whose own name is not in the metadata because the writer
/// made one up: DuckDB 2.0.0 writes `element2` for the second field of an object if its name is
/// empty.
#[cold]
fn nameless_id(name: &str, metadata: VariantMetadata<'_>) -> Result<u32> {
    let id = metadata.find("").filter(|_| is_made_up(name));
    id.and_then(|id| u32::try_from(id).ok()).ok_or_else(|| {
        let name = quoted(name);
        malformed(format_args!("the name {name} of a shredded field is not in the metadata"))
    })
}

/// Calls `visit` with the names of the fields of shredded objects, numbered as
/// [`Unshredder::object`] does.
fn for_each_name<'a>(
    node: &'a ShreddedNode,
    first: &mut usize,
    visit: &mut impl FnMut(&'a str, usize),
) {
    match node.typed.as_ref().map(|typed| &typed.kind) {
        None | Some(TypedKind::Scalar(_)) => {}
        Some(TypedKind::List(_, element)) => for_each_name(element, first, visit),
        Some(TypedKind::Object(fields)) => {
            for (i, (name, _)) in fields.iter().enumerate() {
                visit(name, *first + i);
            }
            *first += fields.len();
            for (_, node) in fields {
                for_each_name(node, first, visit);
            }
        }
    }
}

impl VariantArray {
    /// The metadata as `Binary`.
    pub(super) fn plain_metadata(&self, growth: &Growth) -> Result<ArrayRef> {
        let array = self.metadata_array()?;
        if *array.data_type() == DataType::Binary {
            return Ok(array.clone());
        }
        let (mut bytes, mut ends) = (Vec::new(), first_end(self.len)?);
        for row in 0..self.len {
            let of_row = self.metadata.as_ref().and_then(|(column, _)| column.get(row));
            let of_row = of_row.unwrap_or_default();
            growth.room(&mut bytes, of_row.len())?;
            bytes.extend_from_slice(of_row);
            ends.push(end_of(&bytes)?);
        }
        Ok(Arc::new(binary(bytes, ends)))
    }

    /// Reconstructs the values: a struct of `metadata` and `value`, with the same nulls. The
    /// metadata are not copied.
    ///
    /// # Errors
    /// `Malformed(Variant)` if values or their parts contradict each other or are cut short.
    pub fn unshred(&self) -> Result<StructArray> {
        self.unshred_within(Growth::UNLIMITED)
    }

    /// As [`unshred`](Self::unshred); `growth` counts the values.
    pub(crate) fn unshred_within(&self, growth: &Growth) -> Result<StructArray> {
        let mut unshredder = Unshredder::new(self, growth);
        let (mut bytes, mut ends) = (Vec::new(), first_end(self.len)?);
        for row in 0..self.len {
            unshredder.append(row, &mut bytes)?;
            ends.push(end_of(&bytes)?);
        }
        let values = binary(bytes, ends);
        let metadata = self.metadata_array()?;
        let fields: Fields = vec![
            Field::new("metadata", metadata.data_type().clone(), false),
            Field::new("value", DataType::Binary, false),
        ]
        .into();
        let columns: Vec<ArrayRef> = vec![metadata.clone(), Arc::new(values)];
        Ok(StructArray::try_new(fields, columns, self.nulls.clone())?)
    }
}

/// Checks that a value takes all bytes that its column has for it.
pub(super) fn check_whole(bytes: &[u8], len: usize) -> Result<()> {
    if len == bytes.len() {
        return Ok(());
    }
    Err(malformed(format_args!("a value takes {len} bytes, and its column has {}", bytes.len())))
}

/// Room for the ends of `rows` rows, and where the first one begins.
pub(super) fn first_end(rows: usize) -> Result<Vec<i32>> {
    let mut ends = memory::vec_for(rows.saturating_add(1))?;
    ends.push(0);
    Ok(ends)
}

/// The end of the bytes written so far, as an offset.
pub(super) fn end_of(bytes: &[u8]) -> Result<i32> {
    i32::try_from(bytes.len()).map_err(|_| too_large())
}

#[cold]
fn too_large() -> Error {
    Error::limit(
        LimitKind::ArrayLength,
        "the values of a VARIANT column take more than 2 GiB in one batch: ask for fewer rows at a \
         time",
    )
}

/// Byte strings without nulls, by their bytes and offsets.
pub(super) fn binary(bytes: Vec<u8>, ends: Vec<i32>) -> BinaryArray {
    let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
    BinaryArray::new(offsets, Buffer::from_vec(bytes), None)
}
