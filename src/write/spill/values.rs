//! The values of a leaf as bytes: those that are there, one after the other, with neither nulls nor
//! keys.
//!
//! ```text
//! fixed width    values, u64 | bytes, by BYTE_STREAM_SPLIT
//! any other      for each array: values, u64 | buffers, u8 | of each: length, u64 | bytes
//! ```

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, BinaryViewArray, StringViewArray, UInt32Array, make_array};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;
use arrow_data::transform::MutableArrayData;
use arrow_schema::DataType;
use arrow_select::take::take;

use crate::bytes::Cursor;
use crate::encoding::split;
use crate::error::{Error, Result, Spec};
use crate::free_lists::FreeLists;
use crate::simd::transpose::transpose_any;
use crate::write::column::{WantedSlots, has_keys, innermost_keys};
use crate::write::shred::ArrayPart;

/// Appends the values of parts as bytes, and returns their type; `None` if there is no part.
///
/// # Errors
/// `Unsupported` if the arrays are of types that have no values.
pub(super) fn store(
    parts: &[ArrayPart],
    free_lists: &FreeLists,
    out: &mut Vec<u8>,
) -> Result<Option<DataType>> {
    let plain = parts.iter().map(|part| without_keys(part, free_lists));
    let plain: Vec<Option<ArrayPart>> = plain.collect::<Result<_>>()?;
    let parts: Vec<&ArrayPart> =
        plain.iter().zip(parts).map(|(plain, part)| plain.as_ref().unwrap_or(part)).collect();
    let Some(data_type) = parts.first().map(|part| part.array.data_type().clone()) else {
        return Ok(None);
    };
    match width(&data_type) {
        Some(width) => store_fixed(&parts, width, free_lists, out)?,
        None => parts.iter().try_for_each(|part| store_any(part, out))?,
    }
    Ok(Some(data_type))
}

/// The values of a dictionary or run-end array, one by one; `None` for any other array.
fn without_keys(part: &ArrayPart, free_lists: &FreeLists) -> Result<Option<ArrayPart>> {
    if !has_keys(part.array.data_type()) {
        return Ok(None);
    }
    let (entries, of_slots) = innermost_keys(part.array.as_ref(), free_lists)?;
    let mut keys = Vec::new();
    WantedSlots::new(part).for_each_run(|run| {
        keys.extend_from_slice(of_slots.get(run).expect(IN_ARRAY));
    });
    free_lists.put_back(of_slots);
    let array = take(entries, &UInt32Array::from(keys), None)?;
    let slots = std::iter::once(0..array.len()).collect();
    Ok(Some(ArrayPart { array, nulls: None, slots }))
}

/// The first bytes of all values, then the second ones, and so on: a codec finds more in them.
fn store_fixed(
    parts: &[&ArrayPart],
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
        out.extend_from_slice(buffer.as_slice());
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
        let n = length(from)?;
        if let Some(width) = width(&self.data_type) {
            let bytes = from.take(n.checked_mul(width).ok_or_else(broken)?)?;
            transpose_any(bytes, width, n, 0, n, &mut self.fixed);
            return Ok(());
        }
        let mut builder = ArrayData::builder(self.data_type.clone()).len(n);
        for _ in 0..from.u8()? {
            let len = length(from)?;
            builder = builder.add_buffer(Buffer::from(from.take(len)?));
        }
        self.parts.extend(part_of(make_array(builder.build()?)));
        Ok(())
    }

    /// The values as parts of a leaf.
    pub(super) fn finish(self) -> Result<Vec<ArrayPart>> {
        let mut parts = self.parts;
        if let Some(width) = width(&self.data_type).filter(|_| !self.fixed.is_empty()) {
            let n = self.fixed.len() / width;
            let buffer = Buffer::from_vec(self.fixed);
            let data = ArrayData::builder(self.data_type).len(n).add_buffer(buffer);
            parts.extend(part_of(make_array(data.align_buffers(true).build()?)));
        }
        Ok(parts)
    }
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
fn broken() -> Error {
    Error::malformed(Spec::Levels, "a temporary file is not as it was written")
}

const IN_ARRAY: &str = "slots lie within their array";
