//! [`PartSizes`] decides how long the parts of a multipart upload are.
//!
//! The size of the object is not known in advance, and stores take at most [`MAX_PARTS`] parts, so
//! later parts are longer than the first ones.

use crate::error::{Error, LimitKind, Result};

/// Maximum parts of an object, because S3 and Google Cloud Storage take no more.
pub(super) const MAX_PARTS: usize = 10_000;

/// Minimum bytes of a part, because S3 takes no smaller ones but the last.
pub(super) const MIN_PART_BYTES: usize = 5 << 20;

/// Maximum bytes of a part, because S3 takes no larger ones.
const MAX_PART_BYTES: u64 = 5 << 30;

/// Parts before they begin to grow, because some stores, such as Cloudflare R2, want all parts but
/// the last of one length: objects of 32 GB, with parts of 8 MiB.
const EQUAL_PARTS: usize = 4000;

/// Number of parts after which their length doubles, because then an object of 5 TiB has fewer than
/// [`MAX_PARTS`] parts.
const PARTS_OF_A_LENGTH: usize = 600;

/// How long parts are, by how many went before.
#[derive(Debug, Clone, Copy)]
pub(super) struct PartSizes {
    /// Bytes of the first ones.
    first: usize,
    /// Maximum bytes, because there is no memory for more.
    max: usize,
}

impl PartSizes {
    /// Parts that begin with `first` bytes, and grow up to `max`.
    pub(super) fn growing(first: usize, max: usize) -> Self {
        let first = first.max(MIN_PART_BYTES);
        Self { first, max: max.max(first) }
    }

    /// Parts of one length.
    pub(super) fn equal(bytes: usize) -> Self {
        Self::growing(bytes, 0)
    }

    /// Bytes of the part after `sent` others.
    pub(super) fn after(&self, sent: usize) -> usize {
        self.wanted_after(sent).min(self.max)
    }

    /// The same, if there is memory for it.
    pub(super) fn wanted_after(&self, sent: usize) -> usize {
        let Some(grown) = sent.checked_sub(EQUAL_PARTS) else { return self.first };
        let doubled = (self.first as u64) << (1 + grown / PARTS_OF_A_LENGTH).min(16);
        usize::try_from(doubled.min(MAX_PART_BYTES)).unwrap_or(usize::MAX).max(self.first)
    }

    /// Lets parts be as long as that.
    pub(super) fn allow(&mut self, bytes: usize) {
        self.max = self.max.max(bytes);
    }

    /// Checks that the store takes another part after `sent` others, which have `bytes` in all.
    ///
    /// # Errors
    /// `Limit(Parts)` if it does not.
    pub(super) fn check(&self, sent: usize, bytes: u64) -> Result<()> {
        if sent < MAX_PARTS {
            return Ok(());
        }
        Err(Error::limit(
            LimitKind::Parts,
            format_args!(
                "the object has {sent} parts and {bytes} bytes, and stores take no more than \
                 {MAX_PARTS} parts, of {} bytes here: write several files, give the writer more \
                 memory, or set longer parts with StoreSink::with_part_bytes",
                self.after(sent)
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    /// The bytes of all parts that a store takes.
    fn all(sizes: PartSizes) -> Vec<u64> {
        (0..MAX_PARTS).map(|sent| sizes.after(sent) as u64).collect()
    }

    #[test]
    fn an_object_of_5_tib_has_no_more_parts_than_a_store_takes() {
        for first in [MIN_PART_BYTES, 8 << 20] {
            let parts = all(PartSizes::growing(first, usize::MAX));
            assert!(parts[..EQUAL_PARTS].iter().all(|bytes| *bytes == first as u64));
            assert!(parts.is_sorted());
            assert!(parts.iter().all(|bytes| *bytes <= 5 << 30), "a part that S3 refuses");
            let sum: u64 = parts.iter().sum();
            println!("parts from {first} bytes: {sum} bytes in all");
            assert!(sum >= 5 << 40, "{sum} bytes");
        }
    }

    #[test]
    fn parts_grow_as_far_as_there_is_memory() {
        for max in [0, 12 << 20, 36 << 20] {
            let sizes = PartSizes::growing(8 << 20, max);
            let max = max.max(8 << 20);
            let parts = all(sizes);
            assert!(parts.is_sorted());
            assert_eq!(parts.last(), Some(&(max as u64)));
            assert_eq!(sizes.wanted_after(4000), 16 << 20);
        }
        let equal = all(PartSizes::equal(1));
        assert!(equal.iter().all(|bytes| *bytes == MIN_PART_BYTES as u64));
    }

    #[test]
    fn a_part_too_many_is_an_error_that_says_what_to_do() {
        let sizes = PartSizes::equal(MIN_PART_BYTES);
        assert!(sizes.check(MAX_PARTS - 1, 0).is_ok());
        let error = sizes.check(MAX_PARTS, 52_428_800_000).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Parts));
        assert!(error.to_string().contains("52428800000 bytes"), "{error}");
        assert!(error.to_string().contains("with_part_bytes"), "{error}");
    }
}
