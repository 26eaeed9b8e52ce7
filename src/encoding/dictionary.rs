//! RLE_DICTIONARY (and PLAIN_DICTIONARY, its deprecated name): stores indices into the dictionary
//! page.
//!
//! Spec: Encodings.md, "Dictionary Encoding". Used by `read::column`.
//!
//! ```text
//! | bit width, 1 byte | hybrid runs of indices, without a length |
//! ```
//!
//! Trap: a page of nulls may hold just the bit width, or nothing; and the bit width may be 0 if all
//! indices are 0.

use bytes::{Buf, Bytes};

use super::rle::{BitWidth, Hybrid, Run};
use crate::error::{Error, Result, Spec};
use crate::memory;
use crate::simd::bitmap::Bitmap;
use crate::simd::compact::compact;
use crate::simd::gather::gather;
use crate::simd::native::PlainOldData;

const SPEC: Spec = Spec::Encodings("RLE_DICTIONARY");

/// Decodes the indices of a page.
#[derive(Debug)]
pub(crate) struct Indices {
    hybrid: Hybrid,
    scratch: Vec<u32>,
}

/// Indices unpacked at a time: they stay in the first-level cache until they are looked up.
const BLOCK: usize = 1024;

impl Indices {
    /// A decoder of at most `n` indices.
    ///
    /// # Errors
    /// `Malformed` if the width is over 32.
    pub(crate) fn new(mut bytes: Bytes, n: usize) -> Result<Self> {
        if bytes.is_empty() {
            let hybrid = Hybrid::new(bytes, BitWidth::for_max(1), 0)?;
            return Ok(Self { hybrid, scratch: Vec::new() });
        }
        let width = bytes.get_u8();
        let width = BitWidth::new(width)
            .map_err(|_| Error::mismatch(SPEC, "bit width of the indices", "at most 32", width))?;
        Ok(Self { hybrid: Hybrid::new(bytes, width, n)?, scratch: Vec::new() })
    }

    /// Appends the next `n` indices, whatever they are.
    ///
    /// # Errors
    /// `Malformed` if there are fewer.
    pub(crate) fn read(&mut self, n: usize, out: &mut Vec<u32>) -> Result<()> {
        self.hybrid.read(n, out)
    }

    /// Skips the next `n` indices.
    ///
    /// # Errors
    /// `Malformed` if there are fewer.
    pub(crate) fn skip(&mut self, n: usize) -> Result<()> {
        self.hybrid.skip(n)
    }

    /// Appends the entries of the next `n` indices, run by run, so that no index is stored twice.
    ///
    /// # Errors
    /// `Malformed` if there are fewer, or one is beyond the dictionary; `out` is as it was then.
    pub(crate) fn gather<T: PlainOldData>(
        &mut self,
        n: usize,
        dictionary: &[T],
        out: &mut Vec<T>,
    ) -> Result<()> {
        let before = out.len();
        memory::room_for_vectors(out, n)?;
        let result = self.gather_runs(n, dictionary, out);
        if result.is_err() {
            out.truncate(before);
        }
        result
    }

    /// As [`Indices::gather`], for those of the next `n` indices whose bits of `selection` are set;
    /// the others are not looked up.
    ///
    /// # Errors
    /// As [`Indices::gather`].
    pub(crate) fn gather_selected<T: Copy>(
        &mut self,
        n: usize,
        selection: &Bitmap,
        dictionary: &[T],
        out: &mut Vec<T>,
    ) -> Result<()> {
        let before = out.len();
        let mut selected = std::mem::take(&mut self.scratch);
        selected.clear();
        let result = self
            .read_selected(n, selection, &mut selected)
            .and_then(|()| look_up(&selected, dictionary, out));
        self.scratch = selected;
        if result.is_err() {
            out.truncate(before);
        }
        result
    }

    /// Appends those of the next `n` indices whose bits of `selection` are set, whatever they are.
    ///
    /// # Errors
    /// `Malformed` if there are fewer than `n`.
    pub(crate) fn read_selected(
        &mut self,
        n: usize,
        selection: &Bitmap,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let mut at = 0;
        while at < n {
            match self.hybrid.next_run((n - at).min(BLOCK))? {
                Run::Rle { value, n } => {
                    let selected = selection.count_ones(at..at + n);
                    memory::room(out, selected)?;
                    out.resize(out.len() + selected, value);
                    at += n;
                }
                Run::Packed(packed) => {
                    let start = out.len();
                    memory::room(out, packed.len() + 8)?;
                    packed.unpack(out);
                    compact(out, start, selection, at);
                    at += packed.len();
                }
            }
        }
        Ok(())
    }

    fn gather_runs<T: PlainOldData>(
        &mut self,
        n: usize,
        dictionary: &[T],
        out: &mut Vec<T>,
    ) -> Result<()> {
        let mut left = n;
        while left > 0 {
            match self.hybrid.next_run(left.min(BLOCK))? {
                Run::Rle { value, n } => {
                    let entry = dictionary
                        .get(value as usize)
                        .ok_or_else(|| out_of_range(value, dictionary.len()))?;
                    out.resize(out.len() + n, *entry);
                    left -= n;
                }
                Run::Packed(packed) => {
                    left -= packed.len();
                    if !packed.gather(dictionary, &mut self.scratch, out) {
                        self.scratch.clear();
                        packed.unpack(&mut self.scratch);
                        let highest = self.scratch.iter().copied().max();
                        let highest = highest.expect("a run has values");
                        return Err(out_of_range(highest, dictionary.len()));
                    }
                }
            }
        }
        Ok(())
    }
}

/// Appends the entry of each index.
///
/// # Errors
/// `Malformed` if one is beyond the entries; nothing is appended then.
pub(crate) fn look_up<T: Copy>(indices: &[u32], entries: &[T], out: &mut Vec<T>) -> Result<()> {
    memory::room_for_vectors(out, indices.len())?;
    if gather(indices, entries, out) {
        return Ok(());
    }
    let highest = indices.iter().copied().max().expect("of none, none is beyond the entries");
    Err(out_of_range(highest, entries.len()))
}

/// The error for an index without an entry.
#[cold]
pub(crate) fn out_of_range(index: u32, entries: usize) -> Error {
    Error::mismatch(
        SPEC,
        "index",
        format_args!("less than the {entries} entries of the dictionary"),
        index,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::rle;
    use crate::error::ErrorKind;

    fn page(indices: &[u32], width: u8) -> Bytes {
        let mut bytes = vec![width];
        bytes.extend(rle::encode(indices, BitWidth::new(width).unwrap()));
        bytes.into()
    }

    #[test]
    fn looks_up_what_the_naive_twin_looks_up() {
        let seed = 13;
        let mut rng = fastrand::Rng::with_seed(seed);
        for width in 0..=12u8 {
            let dictionary: Vec<u64> = (0..1u64 << width).map(|i| i * 1_000_003).collect();
            let mut indices = Vec::new();
            for _ in 0..40 {
                let index = rng.u32(0..1 << width);
                let n = rng.usize(1..200);
                let same = rng.bool();
                indices.extend((0..n).map(|_| if same { index } else { rng.u32(0..1 << width) }));
            }
            let mut decoder = Indices::new(page(&indices, width), indices.len()).unwrap();
            let skip = rng.usize(0..indices.len());
            decoder.skip(skip).unwrap();
            let mut out = Vec::new();
            decoder.gather(indices.len() - skip, &dictionary, &mut out).unwrap();
            let expected: Vec<u64> =
                indices[skip..].iter().map(|&i| dictionary[i as usize]).collect();
            assert_eq!(out, expected, "width {width} seed {seed}");
        }
    }

    #[test]
    fn the_selection_of_a_filter_is_gathered() {
        let seed = 14;
        let mut rng = fastrand::Rng::with_seed(seed);
        for width in 0..=12u8 {
            let dictionary: Vec<u64> = (0..1u64 << width).map(|i| i * 1_000_003).collect();
            let mut indices = Vec::new();
            let mut selection = Bitmap::default();
            for _ in 0..40 {
                let (index, n) = (rng.u32(0..1 << width), rng.usize(1..200));
                let (same, often) = (rng.bool(), rng.u8(0..=4));
                indices.extend((0..n).map(|_| if same { index } else { rng.u32(0..1 << width) }));
                (0..n).for_each(|_| selection.append_run(rng.u8(0..4) < often, 1));
            }
            let mut decoder = Indices::new(page(&indices, width), indices.len()).unwrap();
            let mut out = Vec::new();
            decoder.gather_selected(indices.len(), &selection, &dictionary, &mut out).unwrap();
            let selected = (0..indices.len()).filter(|i| selection.get(*i));
            let expected: Vec<u64> = selected.map(|i| dictionary[indices[i] as usize]).collect();
            assert_eq!(out, expected, "width {width} seed {seed}");
        }
    }

    #[test]
    fn index_beyond_the_dictionary_is_malformed() {
        for indices in [&[0, 1, 2, 3][..], &[3; 20]] {
            let mut out = vec![1u8];
            let mut decoder = Indices::new(page(indices, 2), indices.len()).unwrap();
            let error = decoder.gather(indices.len(), &[7u8, 8, 9], &mut out).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed(SPEC));
            assert_eq!(out, [1]);
        }
    }

    #[test]
    fn page_of_nulls_may_be_empty_and_a_width_over_32_is_malformed() {
        Indices::new(Bytes::new(), 0).unwrap().skip(0).unwrap();
        Indices::new(Bytes::from_static(&[5]), 0).unwrap().skip(0).unwrap();
        assert!(Indices::new(Bytes::new(), 3).unwrap().skip(1).is_err());
        let error = Indices::new(Bytes::from_static(&[33, 0]), 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed(SPEC));
    }
}
