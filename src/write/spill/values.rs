//! The values of a leaf as bytes: those that are there, one after the other, without nulls.
//!
//! ```text
//! fixed width    values, u64 | bytes, by BYTE_STREAM_SPLIT
//! keyed          for each array: its keys, as UInt32 | the entries that they refer to
//! any other      for each array: values, u64 | buffers, u8 | of each: length, u64 | bytes
//! ```
//!
//! Trap: rows share the entries of dictionary and run-end arrays. One by one these might take far
//! more memory than there is, so keys stay keys.

use std::ops::Range;
use std::slice;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::UInt32Type;
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, DictionaryArray, StringViewArray, UInt32Array, make_array,
};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_data::transform::MutableArrayData;
use arrow_schema::DataType;

use crate::bytes::Cursor;
use crate::encoding::split;
use crate::error::{Error, Result, Spec};
use crate::free_lists::FreeLists;
use crate::memory;
use crate::rows::value_bytes;
use crate::simd::transpose::transpose_any;
use crate::write::column::{WantedSlots, has_keys, innermost_keys, values_of};
use crate::write::shred::ArrayPart;

/// Appends the values of parts as bytes, and returns the type that they come back in; `None` if
/// there is no part.
///
/// # Errors
/// `Unsupported` if the arrays are of types that have no values.
pub(super) fn store(
    parts: &[ArrayPart],
    free_lists: &FreeLists,
    out: &mut Vec<u8>,
) -> Result<Option<DataType>> {
    let Some(data_type) = parts.first().map(|part| part.array.data_type()) else {
        return Ok(None);
    };
    if !has_keys(data_type) {
        store_plain(parts, data_type, free_lists, out)?;
        return Ok(Some(data_type.clone()));
    }
    let mut stored = None;
    for part in parts {
        stored = Some(store_keyed(part, free_lists, out)?);
    }
    Ok(stored)
}

/// Bytes of the values of parts if each slot has its own: slots share those of keyed arrays.
pub(super) fn expanded_bytes(parts: &[ArrayPart]) -> u64 {
    let keyed = parts.iter().filter(|part| has_keys(part.array.data_type()));
    let slots = keyed.flat_map(|part| part.slots.iter().map(|slots| (&part.array, slots)));
    let bytes = slots.map(|(array, slots)| value_bytes(&array.slice(slots.start, slots.len())));
    bytes.fold(0, u64::saturating_add)
}

/// The keys of the values of a dictionary or run-end array, and those of its entries that they
/// refer to.
fn store_keyed(part: &ArrayPart, free_lists: &FreeLists, out: &mut Vec<u8>) -> Result<DataType> {
    let (entries, of_slots) = innermost_keys(part.array.as_ref(), free_lists)?;
    let mut keys = memory::vec_for(values_of(part))?;
    WantedSlots::new(part).for_each_run(|run| {
        keys.extend_from_slice(of_slots.get(run).expect(IN_ARRAY));
    });
    free_lists.put_back(of_slots);
    // The place of each entry among those that are used.
    let mut places = memory::filled(UNUSED, entries.len())?;
    for key in &keys {
        *places.get_mut(*key as usize).ok_or_else(no_entry)? = 0;
    }
    let (mut next, mut slots): (_, Vec<Range<usize>>) = (0, Vec::new());
    for (slot, place) in places.iter_mut().enumerate().filter(|(_, place)| **place != UNUSED) {
        (*place, next) = (next, next + 1);
        match slots.last_mut() {
            Some(range) if range.end == slot => range.end += 1,
            _ => memory::push(&mut slots, slot..slot + 1)?,
        }
    }
    for key in &mut keys {
        *key = *places.get(*key as usize).ok_or_else(no_entry)?;
    }
    let keys: ArrayRef = Arc::new(UInt32Array::from(keys));
    if let Some(keys) = part_of(keys) {
        store_plain(slice::from_ref(&keys), &DataType::UInt32, free_lists, out)?;
        let entries = ArrayPart { array: entries.slice(0, entries.len()), nulls: None, slots };
        store_plain(slice::from_ref(&entries), entries.array.data_type(), free_lists, out)?;
    }
    Ok(keyed_by_32_bits(entries.data_type()))
}

fn keyed_by_32_bits(entries: &DataType) -> DataType {
    DataType::Dictionary(Box::new(DataType::UInt32), Box::new(entries.clone()))
}

/// The place of an entry that no value refers to.
const UNUSED: u32 = u32::MAX;

fn store_plain(
    parts: &[ArrayPart],
    data_type: &DataType,
    free_lists: &FreeLists,
    out: &mut Vec<u8>,
) -> Result<()> {
    match width(data_type) {
        Some(width) => store_fixed(parts, width, free_lists, out),
        None => parts.iter().try_for_each(|part| store_any(part, out)),
    }
}

/// The first bytes of all values, then the second ones, and so on: a codec finds more in them.
fn store_fixed(
    parts: &[ArrayPart],
    width: usize,
    free_lists: &FreeLists,
    out: &mut Vec<u8>,
) -> Result<()> {
    let arrays: Vec<ArrayData> = parts.iter().map(|part| part.array.to_data()).collect();
    // Bytes in the arrays.
    let mut runs: Vec<&[u8]> = Vec::new();
    for (part, data) in parts.iter().zip(&arrays) {
        let bytes = data.buffers().first().map_or(&[][..], Buffer::as_slice);
        WantedSlots::new(part).for_each_run(|run| {
            let of = |slot: usize| (data.offset() + slot) * width;
            runs.push(bytes.get(of(run.start)..of(run.end)).expect(IN_ARRAY));
        });
    }
    let len: usize = runs.iter().map(|run| run.len()).sum();
    out.extend(((len / width) as u64).to_le_bytes());
    if let [values] = runs.as_slice() {
        split::encode_into(values, width, out);
        return Ok(());
    }
    let mut values = free_lists.take(len)?;
    runs.iter().for_each(|run| values.extend_from_slice(run));
    split::encode_into(&values, width, out);
    free_lists.put_back(values);
    Ok(())
}

/// Part by part, because the offsets of one array might not reach over the bytes of all.
fn store_any(part: &ArrayPart, out: &mut Vec<u8>) -> Result<()> {
    let all = part.array.to_data();
    let mut kept = MutableArrayData::new(vec![&all], false, 0);
    let mut done = Ok(());
    WantedSlots::new(part).for_each_run(|run| {
        if done.is_ok() {
            done = kept.try_extend(0, run.start, run.end);
        }
    });
    done?;
    let (data, data_type) = (kept.freeze(), part.array.data_type());
    let data = match data_type {
        // Views refer to all bytes of the arrays that they are from.
        DataType::Utf8View => StringViewArray::gc(make_array(data).as_string_view()).to_data(),
        DataType::BinaryView => BinaryViewArray::gc(make_array(data).as_binary_view()).to_data(),
        _ => data,
    };
    let buffers = data.buffers();
    let (Ok(count), true, 0) =
        (u8::try_from(buffers.len()), data.child_data().is_empty(), data.offset())
    else {
        return Err(Error::unsupported("temporary files for values of a type", data_type));
    };
    out.extend((data.len() as u64).to_le_bytes());
    out.push(count);
    for buffer in buffers {
        out.extend((buffer.len() as u64).to_le_bytes());
        memory::append(out, buffer.as_slice())?;
    }
    Ok(())
}

/// Values that come back from bytes.
pub(super) struct ReadValues {
    data_type: DataType,
    /// Values of a fixed width.
    fixed: Vec<u8>,
    parts: Vec<ArrayPart>,
}

impl ReadValues {
    pub(super) fn new(data_type: DataType) -> Self {
        Self { data_type, fixed: Vec::new(), parts: Vec::new() }
    }

    /// Appends values that were stored.
    ///
    /// # Errors
    /// `Malformed` or `Arrow` if the bytes are no values of this type.
    pub(super) fn push(&mut self, from: &mut Cursor<'_>) -> Result<()> {
        if let DataType::Dictionary(_, of_entries) = &self.data_type {
            let (keys, entries) = (array(&DataType::UInt32, from)?, array(of_entries, from)?);
            let keys = keys.as_primitive_opt::<UInt32Type>().ok_or_else(broken)?;
            let keyed = DictionaryArray::try_new(keys.clone(), entries)?;
            self.parts.extend(part_of(Arc::new(keyed)));
            return Ok(());
        }
        match width(&self.data_type) {
            Some(width) => append_fixed(width, from, &mut self.fixed),
            None => {
                self.parts.extend(part_of(array(&self.data_type, from)?));
                Ok(())
            }
        }
    }

    /// The values as parts of a leaf.
    pub(super) fn finish(self) -> Result<Vec<ArrayPart>> {
        let mut parts = self.parts;
        if let Some(width) = width(&self.data_type).filter(|_| !self.fixed.is_empty()) {
            parts.extend(part_of(fixed_array(&self.data_type, width, self.fixed)?));
        }
        Ok(parts)
    }
}

/// The next array.
fn array(data_type: &DataType, from: &mut Cursor<'_>) -> Result<ArrayRef> {
    if let Some(width) = width(data_type) {
        let mut values = Vec::new();
        append_fixed(width, from, &mut values)?;
        return fixed_array(data_type, width, values);
    }
    let mut builder = ArrayData::builder(data_type.clone()).len(length(from)?);
    for _ in 0..from.u8()? {
        let len = length(from)?;
        builder = builder.add_buffer(Buffer::from(from.take(len)?));
    }
    Ok(make_array(builder.build()?))
}

fn append_fixed(width: usize, from: &mut Cursor<'_>, out: &mut Vec<u8>) -> Result<()> {
    let n = length(from)?;
    let bytes = from.take(n.checked_mul(width).ok_or_else(broken)?)?;
    transpose_any(bytes, width, n, 0, n, out);
    Ok(())
}

fn fixed_array(data_type: &DataType, width: usize, values: Vec<u8>) -> Result<ArrayRef> {
    let data = ArrayData::builder(data_type.clone()).len(values.len() / width);
    let data = data.add_buffer(Buffer::from_vec(values)).align_buffers(true);
    Ok(make_array(data.build()?))
}

fn part_of(array: ArrayRef) -> Option<ArrayPart> {
    let slots = std::iter::once(0..array.len()).collect();
    (!array.is_empty()).then_some(ArrayPart { array, nulls: None, slots })
}

/// Bytes of each value of a type, if all have as many and they are whole.
fn width(data_type: &DataType) -> Option<usize> {
    match data_type {
        DataType::FixedSizeBinary(width) => usize::try_from(*width).ok().filter(|width| *width > 0),
        other => other.primitive_width(),
    }
}

fn length(from: &mut Cursor<'_>) -> Result<usize> {
    usize::try_from(from.u64()?).map_err(|_| broken())
}

#[cold]
fn no_entry() -> Error {
    Error::internal("a value whose key has no entry")
}

#[cold]
fn broken() -> Error {
    Error::malformed(Spec::Levels, "a temporary file is not as it was written")
}

const IN_ARRAY: &str = "slots lie within their array";
