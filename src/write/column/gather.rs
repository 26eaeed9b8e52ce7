//! Gathers all values of a leaf from the arrays of the batches. Values of dictionary and run-end
//! arrays stay keys.

use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, RunArray};
use arrow_buffer::ArrowNativeType;
use arrow_schema::DataType;

use super::arrays::{WantedSlots, values_of};
use super::convert::append;
use super::values::LeafValues;
use crate::error::{Error, Result};
use crate::free_lists::FreeLists;
use crate::memory;
use crate::schema::Leaf;
use crate::write::shred::ArrayPart;

/// The values of a leaf as they were handed in.
pub(super) enum GatheredValues<'a> {
    /// One by one.
    Plain(LeafValues<'a>),
    /// As keys into values, from dictionary and run-end arrays; several keys may mean one value.
    Keyed { entries: LeafValues<'a>, keys: Vec<u32> },
}

/// Gathers the values of a leaf from its parts, converted to its physical type.
///
/// # Errors
/// `Usage` if a value does not fit the leaf, `Unsupported` if the array's type has no way there.
pub(super) fn gather<'a>(
    parts: &'a [ArrayPart],
    leaf: &Leaf,
    free_lists: &FreeLists,
) -> Result<GatheredValues<'a>> {
    if !is_keyed(parts) {
        let slots: usize = parts.iter().flat_map(|part| &part.slots).map(Range::len).sum();
        let mut values = LeafValues::with_capacity(leaf.physical, slots, free_lists)?;
        for part in parts {
            let nulls = part.nulls.as_ref();
            append(part.array.as_ref(), nulls, &part.slots, leaf, &mut values)?;
        }
        return Ok(GatheredValues::Plain(values));
    }
    let mut values = LeafValues::new(leaf.physical);
    let mut keys = free_lists.take(parts.iter().map(values_of).sum())?;
    for part in parts {
        let base = values.len();
        let (entries, of_slots) = innermost_keys(part.array.as_ref(), free_lists)?;
        // Null entries are not appended, so entries after them get smaller keys.
        let nulls = entries.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let all = [Range { start: 0, end: entries.len() }];
        append(entries, nulls.as_ref(), &all, leaf, &mut values)?;
        let ranks = |nulls: arrow_buffer::NullBuffer| {
            let mut next = 0u32;
            memory::collected(nulls.iter().map(|valid| {
                let rank = next;
                next += u32::from(valid);
                rank
            }))
        };
        let rank = nulls.map(ranks).transpose()?;
        let base = u32::try_from(base).map_err(|_| too_many())?;
        let key = |of: &u32| match &rank {
            None => base + of,
            Some(rank) => base + rank[*of as usize],
        };
        WantedSlots::new(part).for_each_run(|run| keys.extend(of_slots[run].iter().map(key)));
        free_lists.put_back(of_slots);
    }
    Ok(GatheredValues::Keyed { entries: values, keys })
}

/// Whether some of the values are keys into others.
pub(super) fn is_keyed(parts: &[ArrayPart]) -> bool {
    parts.iter().any(|part| has_keys(part.array.data_type()))
}

/// Whether a type has keys into other values.
pub(in crate::write) fn has_keys(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Dictionary(..) | DataType::RunEndEncoded(..))
}

/// The entries of a dictionary or run-end array, and which of them each slot has, through
/// dictionaries and runs whose entries are keys themselves.
pub(in crate::write) fn innermost_keys<'p>(
    array: &'p dyn Array,
    free_lists: &FreeLists,
) -> Result<(&'p dyn Array, Vec<u32>)> {
    let (mut entries, mut of_slots) = keys_of(array, free_lists)?;
    while has_keys(entries.data_type()) {
        let (inner, keys) = keys_of(entries, free_lists)?;
        // The key of a null slot means nothing, and may be beyond entries that are none.
        let key = |of: &u32| keys.get(*of as usize).copied().unwrap_or_default();
        of_slots.iter_mut().for_each(|of| *of = key(of));
        free_lists.put_back(keys);
        entries = inner;
    }
    Ok((entries, of_slots))
}

/// The entries of a dictionary or run-end array, and which of them each slot has. A null slot has
/// any.
fn keys_of<'p>(array: &'p dyn Array, free_lists: &FreeLists) -> Result<(&'p dyn Array, Vec<u32>)> {
    match array.data_type() {
        DataType::Dictionary(of, _) => {
            let dictionary = array.as_any_dictionary();
            let (keys, values) = (dictionary.keys(), dictionary.values().as_ref());
            let keys = match **of {
                DataType::Int8 => dictionary_keys::<Int8Type>(keys, values, free_lists),
                DataType::Int16 => dictionary_keys::<Int16Type>(keys, values, free_lists),
                DataType::Int32 => dictionary_keys::<Int32Type>(keys, values, free_lists),
                DataType::Int64 => dictionary_keys::<Int64Type>(keys, values, free_lists),
                DataType::UInt8 => dictionary_keys::<UInt8Type>(keys, values, free_lists),
                DataType::UInt16 => dictionary_keys::<UInt16Type>(keys, values, free_lists),
                DataType::UInt32 => dictionary_keys::<UInt32Type>(keys, values, free_lists),
                _ => dictionary_keys::<UInt64Type>(keys, values, free_lists),
            };
            Ok((values, keys?))
        }
        DataType::RunEndEncoded(ends, _) => match ends.data_type() {
            DataType::Int16 => runs(array.as_any().downcast_ref::<RunArray<Int16Type>>()),
            DataType::Int32 => runs(array.as_any().downcast_ref::<RunArray<Int32Type>>()),
            _ => runs(array.as_any().downcast_ref::<RunArray<Int64Type>>()),
        },
        _ => {
            // A plain array among keyed ones: every slot is an entry of its own.
            let n = u32::try_from(array.len()).map_err(|_| too_many())?;
            Ok((array, memory::collected(0..n)?))
        }
    }
}

/// The keys of a dictionary array. Those of nulls may be anything, so keys are capped to the last
/// entry.
fn dictionary_keys<K: ArrowPrimitiveType>(
    keys: &dyn Array,
    values: &dyn Array,
    free_lists: &FreeLists,
) -> Result<Vec<u32>> {
    let Some(keys) = keys.as_primitive_opt::<K>() else {
        return Err(Error::internal("a dictionary array of other keys than it says"));
    };
    let last = u32::try_from(values.len().saturating_sub(1)).map_err(|_| too_many())? as usize;
    #[expect(clippy::cast_possible_truncation, reason = "not above the last one, of 32 bits")]
    let key = |key: &K::Native| key.as_usize().min(last) as u32;
    let mut out = free_lists.take(keys.len())?;
    out.extend(keys.values().iter().map(key));
    Ok(out)
}

fn runs<R: arrow_array::types::RunEndIndexType>(
    array: Option<&RunArray<R>>,
) -> Result<(&dyn Array, Vec<u32>)> {
    let Some(array) = array else {
        return Err(Error::internal("a run-end array of another type than it says"));
    };
    let ends = array.run_ends();
    let (offset, len) = (ends.offset(), ends.len());
    let mut of_slots = memory::vec_for(len)?;
    for (run, end) in ends.values().iter().enumerate() {
        let end = end.as_usize().saturating_sub(offset).min(len);
        let run = u32::try_from(run).map_err(|_| too_many())?;
        if end > of_slots.len() {
            of_slots.resize(end, run);
        }
    }
    Ok((array.values().as_ref(), of_slots))
}

#[cold]
fn too_many() -> Error {
    Error::usage("more than 2^32 values in one row group; write smaller ones")
}
