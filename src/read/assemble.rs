//! Dremel assembly builds nested Arrow arrays from decoded leaves and their levels, once for each
//! node.
//!
//! Spec: README.md, "Nested Encoding"; LogicalTypes.md, "Nested Types". It is the inverse of
//! `write::shred`. Trap: all leaves below a list or a struct must agree on where it is null and how
//! long it is. The first leaf decides, and the levels of the others are compared with its levels.

use std::sync::Arc;

use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, GenericListViewArray, MapArray,
    OffsetSizeTrait, StructArray,
};
use arrow_buffer::{ArrowNativeType, NullBuffer, OffsetBuffer};
use arrow_data::transform::MutableArrayData;
use arrow_schema::{ArrowError, DataType, Field, FieldRef};

use super::column::LeafBatch;
use crate::error::{Error, Result, Spec};
use crate::levels::{OfLeaf, agree, list_slots, validity};
use crate::limits::{Budget, Reservation};
use crate::memory;
use crate::rows;
use crate::schema::{Kind, Shape, is_empty_group};
use crate::simd::planes::LevelBitPlanes;

/// The memory that a leaf has reserved.
pub(super) struct LeafMemory {
    pub(super) arrays: Reservation,
    pub(super) dictionary: Option<Arc<Reservation>>,
}

/// The decoded leaves of a window, handed out in order.
pub(super) struct Leaves {
    leaves: Vec<LeafBatch>,
    next: usize,
    /// Memory of values that the file does not have: of null lists, and of missing columns.
    padding: Reservation,
}

impl Leaves {
    /// The leaves, in the order in which the shapes reach them.
    pub(super) fn new(leaves: Vec<LeafBatch>, budget: &Budget) -> Self {
        Self { leaves, next: 0, padding: budget.reservation("values that the file does not have") }
    }

    /// Takes the memory of all leaves; their arrays stay.
    pub(super) fn take_memory(&mut self) -> impl Iterator<Item = LeafMemory> + '_ {
        self.leaves.iter_mut().map(|leaf| {
            let arrays = leaf.memory.split_off();
            LeafMemory { arrays, dictionary: leaf.dictionary_memory.take() }
        })
    }

    /// Gives the memory of values that the file does not have back, for the caller to count whole
    /// arrays.
    pub(super) fn release_padding(&mut self) {
        drop(self.padding.split_off());
    }

    /// Leaves handed out so far.
    pub(super) fn position(&self) -> usize {
        self.next
    }

    /// Bytes of the arrays of the leaves handed out since the one at `first`.
    pub(super) fn bytes_since(&self, first: usize) -> usize {
        self.leaves[first..self.next].iter().map(|leaf| leaf.array.get_buffer_memory_size()).sum()
    }

    /// The array of the next leaf.
    fn take(&mut self) -> Result<ArrayRef> {
        let leaf = self.leaves.get_mut(self.next).ok_or_else(short)?;
        self.next += 1;
        Ok(leaf.array.clone())
    }

    /// The levels of a leaf: of the first below a node.
    fn levels(&self, leaf: usize) -> Result<(&LevelBitPlanes, &LevelBitPlanes)> {
        let leaf = self.leaves.get(leaf).ok_or_else(short)?;
        Ok((&leaf.def, &leaf.rep))
    }

    /// Checks that two leaves below a struct agree on it.
    fn agree(&self, a: usize, b: usize, group: &Shape) -> Result<()> {
        let node = group.levels;
        if node.present == 0 && node.rep == 0 {
            // A required struct outside lists: there is nothing to disagree about.
            return Ok(());
        }
        let of = |leaf: usize| -> Result<OfLeaf<'_>> {
            let LeafBatch { def, rep, max_rep, .. } = self.leaves.get(leaf).ok_or_else(short)?;
            Ok(OfLeaf { def, rep, max_rep: *max_rep })
        };
        if agree(of(a)?, of(b)?, node) {
            return Ok(());
        }
        Err(contradiction(&group.field))
    }
}

/// The leaves below a struct do not agree on it.
#[cold]
pub(crate) fn contradiction(group: &Field) -> Error {
    Error::malformed(
        Spec::Levels,
        format_args!(
            "the columns below {:?} contradict each other: the levels of one do not have it, or \
             the lists around it, where those of another do",
            group.name()
        ),
    )
}

#[cold]
fn short() -> Error {
    Error::internal("fewer leaves were supplied than the shape has")
}

/// Makes the array of a shape with `len` slots, taking its leaves from `leaves`.
///
/// # Errors
/// `Malformed(Levels)` if leaves disagree on the number of elements, or hold nulls where the schema
/// forbids them.
pub(super) fn assemble(shape: &Shape, leaves: &mut Leaves, len: usize) -> Result<ArrayRef> {
    let array = match &shape.kind {
        Kind::Missing => {
            let data_type = shape.field.data_type();
            // A file states the size of its lists, also for other files that are read with it.
            leaves.padding.grow(memory::bytes_of_nulls(data_type, len))?;
            rows::null_array(data_type, len)?
        }
        Kind::Leaf { .. } => leaves.take()?,
        Kind::Struct(children) => assemble_struct(shape, children, leaves, len)?,
        Kind::List { item, element, rep } | Kind::Map { entries: item, element, rep } => {
            let node = ListNode { shape, item, element: *element, rep: *rep };
            match shape.field.data_type() {
                DataType::List(field) => node.list::<i32>(field, leaves, len)?,
                DataType::LargeList(field) => node.list::<i64>(field, leaves, len)?,
                DataType::ListView(field) => node.list_view::<i32>(field, leaves, len)?,
                DataType::LargeListView(field) => node.list_view::<i64>(field, leaves, len)?,
                DataType::FixedSizeList(field, size) => {
                    node.fixed_size(field, *size, leaves, len)?
                }
                DataType::Map(field, sorted) => node.map(field, *sorted, leaves, len)?,
                other => {
                    return Err(Error::internal(format_args!(
                        "a list cannot be assembled as {other}"
                    )));
                }
            }
        }
    };
    if array.len() == len {
        return Ok(array);
    }
    Err(Error::mismatch(
        Spec::Levels,
        &format!("elements of {:?}, of which its siblings have others", shape.field.name()),
        len,
        array.len(),
    ))
}

fn assemble_struct(
    shape: &Shape,
    children: &[Shape],
    leaves: &mut Leaves,
    len: usize,
) -> Result<ArrayRef> {
    let first = leaves.next;
    let mut arrays = Vec::with_capacity(children.len());
    for child in children {
        let of_child = leaves.next;
        arrays.push(assemble(child, leaves, len)?);
        if of_child > first && leaves.next > of_child {
            leaves.agree(first, of_child, shape)?;
        }
    }
    // A struct of only missing fields has no leaf that could show where it is null. A required one
    // is null where a struct around it is, as its children are.
    let nulls = if shape.levels.may_be_null() && leaves.next > first {
        let (def, rep) = leaves.levels(first)?;
        same_len(validity(def, rep, shape.levels), len)?.into_nulls()
    } else {
        None
    };
    let DataType::Struct(fields) = shape.field.data_type() else {
        return Err(Error::internal("a group can only be assembled as a Struct"));
    };
    if fields.is_empty() && is_empty_group(children) {
        check_empty(&arrays)?;
        arrays.clear();
    }
    array_of(StructArray::try_new_with_length(fields.clone(), arrays, nulls, len))
}

/// Checks that the stand-in for a struct without fields has no values.
fn check_empty(arrays: &[ArrayRef]) -> Result<()> {
    match arrays.iter().all(|array| array.null_count() == array.len()) {
        true => Ok(()),
        false => Err(Error::malformed(
            Spec::Metadata("ARROW:schema"),
            "what stands for a struct without fields has values; Reader::target reads them",
        )),
    }
}

fn same_len(found: crate::levels::Validity, len: usize) -> Result<crate::levels::Validity> {
    if found.len() == len {
        return Ok(found);
    }
    Err(Error::mismatch(Spec::Levels, "slots of the group", len, found.len()))
}

/// Boxes the array that a constructor of Arrow made, which checks that children have one length,
/// and no nulls where none are allowed.
fn array_of<A: Array + 'static>(made: Result<A, ArrowError>) -> Result<ArrayRef> {
    match made {
        Ok(array) => Ok(Arc::new(array)),
        Err(error) => Err(Error::malformed(
            Spec::Levels,
            format_args!("the columns of a group contradict each other: {error}"),
        )),
    }
}

/// A list or map on the way to its array.
struct ListNode<'a> {
    shape: &'a Shape,
    item: &'a Shape,
    element: u16,
    rep: u16,
}

/// Offsets, validity and elements of a list.
struct ListArrays<O: OffsetSizeTrait> {
    offsets: OffsetBuffer<O>,
    nulls: Option<NullBuffer>,
    items: ArrayRef,
}

impl ListNode<'_> {
    fn arrays<O: OffsetSizeTrait>(&self, leaves: &mut Leaves, len: usize) -> Result<ListArrays<O>> {
        let (def, rep) = leaves.levels(leaves.next)?;
        let lists = list_slots::<O>(def, rep, self.shape.levels, self.element, self.rep, len)?;
        if lists.offsets.len() != len + 1 {
            return Err(Error::mismatch(Spec::Levels, "lists", len, lists.offsets.len() - 1));
        }
        let elements = lists.offsets[..].last().expect("one more than there are lists").as_usize();
        // A required one is null where a struct around it is.
        let nulls = lists.validity.into_nulls().filter(|_| self.shape.levels.may_be_null());
        let items = assemble(self.item, leaves, elements)?;
        Ok(ListArrays { offsets: lists.offsets, nulls, items })
    }

    fn list<O: OffsetSizeTrait>(
        &self,
        field: &FieldRef,
        leaves: &mut Leaves,
        len: usize,
    ) -> Result<ArrayRef> {
        let ListArrays { offsets, nulls, items } = self.arrays::<O>(leaves, len)?;
        array_of(GenericListArray::try_new(field.clone(), offsets, items, nulls))
    }

    fn list_view<O: OffsetSizeTrait>(
        &self,
        field: &FieldRef,
        leaves: &mut Leaves,
        len: usize,
    ) -> Result<ArrayRef> {
        let ListArrays { offsets, nulls, items } = self.arrays::<O>(leaves, len)?;
        let sizes: Vec<O> = offsets.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let starts = offsets.into_inner().slice(0, len);
        array_of(GenericListViewArray::try_new(field.clone(), starts, sizes.into(), items, nulls))
    }

    fn map(
        &self,
        field: &FieldRef,
        sorted: bool,
        leaves: &mut Leaves,
        len: usize,
    ) -> Result<ArrayRef> {
        let ListArrays { offsets, nulls, items } = self.arrays::<i32>(leaves, len)?;
        let entries = items
            .as_any()
            .downcast_ref::<StructArray>()
            .ok_or_else(|| Error::internal("the entries of a map must be a Struct"))?;
        array_of(MapArray::try_new(field.clone(), offsets, entries.clone(), nulls, sorted))
    }

    /// Lists of one size, by a hint or by the caller: null lists have no elements in the file, but
    /// `size` in Arrow.
    fn fixed_size(
        &self,
        field: &FieldRef,
        size: i32,
        leaves: &mut Leaves,
        len: usize,
    ) -> Result<ArrayRef> {
        let ListArrays { offsets, nulls, items } = self.arrays::<i64>(leaves, len)?;
        let wanted = usize::try_from(size)
            .map_err(|_| Error::usage(format_args!("lists cannot have a fixed size of {size}")))?;
        let is_null = |i| nulls.as_ref().is_some_and(|nulls| nulls.is_null(i));
        for (i, list) in offsets.windows(2).enumerate() {
            let found = (list[1] - list[0]).as_usize();
            if found != wanted && !(found == 0 && is_null(i)) {
                return Err(Error::mismatch(
                    Spec::LogicalTypes("LIST"),
                    "elements of a list that should be of fixed size",
                    wanted,
                    found,
                ));
            }
        }
        let slots = len.saturating_mul(wanted);
        let items = if items.len() == slots {
            items
        } else {
            let data_type = items.data_type();
            let beforehand = memory::slots_beforehand(data_type, slots);
            // What is not allocated beforehand grows by doubling.
            let times = if beforehand == slots { 1 } else { 2 };
            let bytes = memory::bytes_of_nulls(data_type, slots).saturating_mul(times);
            leaves.padding.grow(bytes)?;
            let data = items.to_data();
            let mut padded = MutableArrayData::new(vec![&data], true, beforehand);
            for list in offsets.windows(2) {
                let (start, end) = (list[0].as_usize(), list[1].as_usize());
                if start == end {
                    padded.try_extend_nulls(wanted)?
                } else {
                    padded.try_extend(0, start, end)?
                }
            }
            arrow_array::make_array(padded.freeze())
        };
        // Elements that may not be null are null below lists that are: Arrow allows that.
        array_of(FixedSizeListArray::try_new_with_length(field.clone(), size, items, nulls, len))
    }
}
