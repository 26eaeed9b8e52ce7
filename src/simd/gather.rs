//! Looks indices up in a table: the dictionary step.

/// Appends `table[i]` for every index; false, and nothing appended, if one is out of range.
///
/// The bounds are checked once, by the highest index, so that the loop has no branch.
#[must_use]
pub fn gather<T: Copy>(indices: &[u32], table: &[T], out: &mut Vec<T>) -> bool {
    let highest = indices.iter().copied().max().unwrap_or(0);
    if indices.is_empty() {
        return true;
    }
    if highest as usize >= table.len() {
        return false;
    }
    out.reserve(indices.len());
    let spare = out.spare_capacity_mut();
    for (slot, &index) in spare.iter_mut().zip(indices) {
        // SAFETY: `index <= highest < table.len()`.
        slot.write(unsafe { *table.get_unchecked(index as usize) });
    }
    // SAFETY: `reserve` made room for `indices.len()` values, and the loop has written that many behind the length.
    unsafe { out.set_len(out.len() + indices.len()) };
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_up_or_appends_nothing() {
        let mut out = vec![1u64];
        assert!(gather(&[2, 0, 1], &[10, 20, 30], &mut out));
        assert_eq!(out, [1, 30, 10, 20]);
        assert!(!gather(&[0, 3], &[10, 20, 30], &mut out));
        assert_eq!(out.len(), 4);
        assert!(gather(&[], &[], &mut out));
        assert!(!gather(&[0], &[], &mut out));
    }
}
