//! Changes an entry of the metadata in a hint, and nothing else of it.
//!
//! Used by the writer and by rewrites. Arrow C++, and so pyarrow, takes the metadata of a schema
//! from the hint alone: a key that changes in a file must change there, too.
//! Trap: the flatbuffer comes from a file. References are followed as far as there are bytes, and
//! they point forwards: a new value stands at the end.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::hint::{CONTINUATION, Hint, KEY, follow, slot, word};
use crate::error::Result;
use crate::format::KeyValue;
use crate::memory;

/// Sets the value of `key` in the hint among the key-values of a file, or leaves the entry out; a
/// hint without the key, or one that cannot be read, stays as it is.
///
/// # Errors
/// `Limit(Memory)` if the system has no memory for it.
pub(crate) fn change_hint_metadata(
    key_values: &mut [KeyValue],
    key: &str,
    value: Option<&str>,
) -> Result<()> {
    let Some(hint) = Hint::find(key_values)? else { return Ok(()) };
    let Some(flatbuffer) = hint.flatbuffer() else { return Ok(()) };
    // The value has a length before it, and all is filled up to whole words.
    let mut bytes = memory::vec_for(flatbuffer.len() + value.map_or(0, str::len) + 32)?;
    bytes.extend_from_slice(flatbuffer);
    let Some(len) = change(&mut bytes, key, value) else { return Ok(()) };
    bytes.extend_from_slice(&CONTINUATION.to_le_bytes());
    bytes.extend_from_slice(&len.to_le_bytes());
    bytes.rotate_right(8);
    let mut text = String::new();
    text.try_reserve_exact(base64::encoded_len(bytes.len(), true).unwrap_or(usize::MAX))?;
    STANDARD.encode_string(bytes, &mut text);
    if let Some(pair) = key_values.iter_mut().find(|pair| pair.key == KEY) {
        pair.value = Some(text);
    }
    Ok(())
}

/// Changes a flatbuffer, and returns its length. There must be room for the value.
fn change(bytes: &mut Vec<u8>, key: &str, value: Option<&str>) -> Option<u32> {
    let message = follow(bytes, 0)?;
    let schema = follow(bytes, slot(bytes, message, 2)?)?;
    let vector = follow(bytes, slot(bytes, schema, 2)?)?;
    let len = word(bytes, vector)?;
    let mut reference = vector;
    let found = (0..len).find_map(|_| {
        reference = reference.saturating_add(4);
        // A reference without an entry ends the search.
        let entry = follow(bytes, reference);
        let Some(entry) = entry else { return Some(None) };
        let name = follow(bytes, slot(bytes, entry, 0)?)?;
        let name_len = usize::try_from(word(bytes, name)?).ok()?;
        let name = bytes.get(name.checked_add(4)?..)?.get(..name_len)?;
        (name == key.as_bytes()).then_some(Some((reference, entry)))
    });
    let (reference, entry) = found??;
    match value {
        Some(value) => {
            let at = slot(bytes, entry, 1)?;
            bytes.resize(bytes.len().next_multiple_of(4), 0);
            let end = bytes.len();
            put(bytes, at, u32::try_from(end.checked_sub(at)?).ok()?)?;
            bytes.extend(u32::try_from(value.len()).ok()?.to_le_bytes());
            bytes.extend(value.as_bytes());
            bytes.push(0);
        }
        None => {
            // The last entry takes its place.
            let last = usize::try_from(len).ok()?.checked_mul(4)?.checked_add(vector)?;
            let to = follow(bytes, last)?;
            put(bytes, reference, u32::try_from(to.checked_sub(reference)?).ok()?)?;
            put(bytes, vector, len - 1)?;
        }
    }
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    u32::try_from(bytes.len()).ok()
}

fn put(bytes: &mut [u8], at: usize, value: u32) -> Option<()> {
    bytes.get_mut(at..)?.first_chunk_mut::<4>().map(|to| *to = value.to_le_bytes())
}
