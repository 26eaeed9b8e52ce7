//! Builds and probes split block bloom filters.
//!
//! Spec: BloomFilter.md. A block is 256 bits, eight words; a value sets one bit of each word of one
//! block.

use std::ops::Range;

use twox_hash::XxHash64;

use crate::bytes::Cursor;
use crate::error::{Error, Result, Spec};
use crate::format::{
    BloomFilterAlgorithm, BloomFilterCompression, BloomFilterHash, BloomFilterHeader,
};
use crate::memory;
use crate::thrift::{Read, ThriftReader, Write};

/// The constants that spread a hash over the words of its block.
const SALT: [u32; 8] = [
    0x47b6_137b,
    0x4497_4d91,
    0x8824_ad5b,
    0xa2b7_289d,
    0x7054_95c7,
    0x2df1_424b,
    0x9efc_4947,
    0x5c6b_fb31,
];

/// Bytes of a block.
const BLOCK: usize = 32;

/// The most blocks of a filter that is made: 128 MiB, as other writers have it.
const MAX_BLOCKS: usize = 1 << 22;

/// The hash of a value as PLAIN has it, without a length.
pub(crate) fn hash(value: &[u8]) -> u64 {
    XxHash64::oneshot(0, value)
}

/// A bloom filter, which shows that a value is certainly absent, or may be present.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bloom {
    blocks: Vec<[u32; 8]>,
}

impl Bloom {
    /// An empty filter for `distinct` values that takes about the share `fpp` of absent ones for
    /// present. The number of blocks is a power of two, so that it can be folded.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub(crate) fn new(distinct: u64, fpp: f64) -> Result<Self> {
        let blocks = blocks_for(distinct, fpp).next_power_of_two().min(MAX_BLOCKS);
        Ok(Self { blocks: memory::filled([0; 8], blocks)? })
    }

    /// Bytes of the bits.
    pub(crate) fn len(&self) -> usize {
        self.blocks.len() * BLOCK
    }

    /// Adds a value, as PLAIN has it without a length.
    #[cfg(test)]
    pub(crate) fn insert(&mut self, value: &[u8]) {
        self.insert_hash(hash(value));
    }

    /// Adds a value by its hash.
    pub(crate) fn insert_hash(&mut self, hash: u64) {
        let at = self.block_of(hash);
        if let Some(block) = self.blocks.get_mut(at) {
            for (word, mask) in block.iter_mut().zip(mask(hash)) {
                *word |= mask;
            }
        }
    }

    /// Whether a value may be there.
    #[cfg(test)]
    pub(crate) fn might_contain(&self, value: &[u8]) -> bool {
        self.might_contain_hash(hash(value))
    }

    /// Like [`Bloom::might_contain`], by the hash.
    #[cfg(test)]
    pub(crate) fn might_contain_hash(&self, hash: u64) -> bool {
        let block = self.blocks.get(self.block_of(hash));
        block.is_some_and(|block| is_set(block, hash))
    }

    /// Halves the filter while it is larger than `distinct` values need.
    #[must_use]
    pub(crate) fn folded(mut self, distinct: u64, fpp: f64) -> Self {
        let needed = blocks_for(distinct, fpp);
        while self.blocks.len() > 1
            && self.blocks.len().is_multiple_of(2)
            && self.blocks.len() / 2 >= needed
        {
            // The block of a hash is the high bits of it times the number: half as many blocks put
            // neighbours together.
            let half = self.blocks.len() / 2;
            for at in 0..half {
                let Some([a, b]) = self.blocks.get(2 * at..).and_then(<[_]>::first_chunk) else {
                    break;
                };
                let both = std::array::from_fn(|i| a[i] | b[i]);
                if let Some(block) = self.blocks.get_mut(at) {
                    *block = both;
                }
            }
            self.blocks.truncate(half);
        }
        self
    }

    /// Appends the header and the bits.
    ///
    /// # Errors
    /// `Usage` if they are more than 2 GiB.
    pub(crate) fn write(&self, out: &mut Vec<u8>) -> Result<()> {
        let header = BloomFilterHeader {
            num_bytes: i32::try_from(self.len())
                .map_err(|_| Error::usage("a bloom filter of more than 2 GiB"))?,
            algorithm: BloomFilterAlgorithm::Block,
            hash: BloomFilterHash::XxHash,
            compression: BloomFilterCompression::Uncompressed,
            ..BloomFilterHeader::default()
        };
        memory::room(out, BloomLayout::HEADER_BYTES + self.len())?;
        header.write(out)?;
        for block in &self.blocks {
            block.iter().for_each(|word| out.extend_from_slice(&word.to_le_bytes()));
        }
        Ok(())
    }

    /// Reads a filter, header included; `None` if its algorithm, hash or compression is unknown, so
    /// that it excludes nothing.
    ///
    /// # Errors
    /// `Malformed` if the header is broken, or the bits are not there.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Self>> {
        let Some(layout) = BloomLayout::parse(bytes)? else {
            return Ok(None);
        };
        let mut cursor = Cursor::new(bytes, Spec::BloomFilter);
        cursor.take(layout.header_len)?;
        let (blocks, _) = cursor.take(layout.blocks * BLOCK)?.as_chunks::<BLOCK>();
        Ok(Some(Self { blocks: blocks.iter().map(words).collect() }))
    }

    /// The blocks.
    pub(crate) fn blocks(&self) -> &[[u32; 8]] {
        &self.blocks
    }

    /// Sets the bits that are set in `other`; false, and without effect, if that has another number
    /// of blocks.
    #[must_use]
    pub(crate) fn unite(&mut self, other: &Self) -> bool {
        if self.blocks.len() != other.blocks.len() {
            return false;
        }
        for (block, other) in self.blocks.iter_mut().zip(&other.blocks) {
            block.iter_mut().zip(other).for_each(|(word, bits)| *word |= bits);
        }
        true
    }

    fn block_of(&self, hash: u64) -> usize {
        block_of(hash, self.blocks.len())
    }
}

/// Whether the value of a hash may be among those of a filter with these bits.
#[cfg(feature = "check")]
pub(crate) fn bits_might_contain(bits: &[u8], hash: u64) -> bool {
    let (blocks, _) = bits.as_chunks::<BLOCK>();
    blocks.get(block_of(hash, blocks.len())).is_some_and(|block| is_set(&words(block), hash))
}

/// Where the blocks of a stored filter lie: enough to fetch only those that are asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BloomLayout {
    header_len: usize,
    blocks: usize,
}

impl BloomLayout {
    /// More bytes than a header of today's format takes.
    pub(crate) const HEADER_BYTES: usize = 64;

    /// Reads the header at the begin of `bytes`, which may end after it; `None` if the filter's
    /// algorithm, hash or compression is unknown, so that it excludes nothing.
    ///
    /// # Errors
    /// `Malformed` if the header is broken.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Option<Self>> {
        let mut reader = ThriftReader::new(bytes);
        let header = BloomFilterHeader::read(&mut reader)?;
        if header.algorithm != BloomFilterAlgorithm::Block
            || header.hash != BloomFilterHash::XxHash
            || header.compression != BloomFilterCompression::Uncompressed
        {
            return Ok(None);
        }
        let len =
            usize::try_from(header.num_bytes).ok().filter(|n| *n > 0 && n.is_multiple_of(BLOCK));
        let Some(len) = len else {
            return Err(Error::mismatch(
                Spec::BloomFilter,
                "bytes of the bloom filter",
                "a multiple of 32",
                header.num_bytes,
            ));
        };
        Ok(Some(Self { header_len: reader.position(), blocks: len / BLOCK }))
    }

    /// Bytes of the filter, its header included.
    pub(crate) fn byte_len(&self) -> u64 {
        (self.header_len + self.blocks * BLOCK) as u64
    }

    /// The bytes that answer for these hashes, counted from where the filter begins: sorted,
    /// without overlaps, each one or more blocks.
    pub(crate) fn ranges(&self, hashes: &[u64]) -> Vec<Range<u64>> {
        let mut blocks: Vec<usize> =
            hashes.iter().map(|hash| block_of(*hash, self.blocks)).collect();
        blocks.sort_unstable();
        blocks.dedup();
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for block in blocks {
            let start = (self.header_len + block * BLOCK) as u64;
            match ranges.last_mut() {
                Some(last) if last.end == start => last.end += BLOCK as u64,
                _ => ranges.push(start..start + BLOCK as u64),
            }
        }
        ranges
    }

    /// The filter as far as it was fetched: `bytes` of the `ranges`, in the same order.
    pub(crate) fn blocks<'a>(
        &self,
        ranges: &[Range<u64>],
        bytes: impl IntoIterator<Item = &'a [u8]>,
    ) -> Blocks {
        let mut blocks = Vec::new();
        for (range, bytes) in ranges.iter().zip(bytes) {
            let first = range.start.checked_sub(self.header_len as u64);
            let first = first.and_then(|start| usize::try_from(start).ok());
            let Some(first) = first.filter(|start| start.is_multiple_of(BLOCK)) else {
                continue;
            };
            let (chunks, _) = bytes.as_chunks::<BLOCK>();
            blocks.extend((first / BLOCK..).zip(chunks.iter().map(words)));
        }
        blocks.sort_unstable_by_key(|(at, _)| *at);
        Blocks { of: self.blocks, blocks }
    }
}

/// Some blocks of a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// How many blocks the filter has.
    of: usize,
    /// The fetched blocks, in order.
    blocks: Vec<(usize, [u32; 8])>,
}

impl Blocks {
    /// Whether the value of this hash may be present; true if its block was not fetched.
    pub(crate) fn might_contain_hash(&self, hash: u64) -> bool {
        let at = block_of(hash, self.of);
        let found = self.blocks.binary_search_by_key(&at, |(at, _)| *at).ok();
        match found.and_then(|found| self.blocks.get(found)) {
            Some((_, block)) => is_set(block, hash),
            None => true,
        }
    }
}

impl From<Bloom> for Blocks {
    fn from(bloom: Bloom) -> Self {
        Self { of: bloom.blocks.len(), blocks: bloom.blocks.into_iter().enumerate().collect() }
    }
}

/// The words of a block.
fn words(block: &[u8; BLOCK]) -> [u32; 8] {
    let (words, _) = block.as_chunks::<4>();
    std::array::from_fn(|i| u32::from_le_bytes(words[i]))
}

/// Which of `blocks` blocks a hash belongs to.
fn block_of(hash: u64, blocks: usize) -> usize {
    // Below 2^32 times below 2^32, and the quotient below the number of blocks.
    usize::try_from(((hash >> 32) * blocks as u64) >> 32).expect("below the number of blocks")
}

/// Whether all bits of a hash are set in its block.
fn is_set(block: &[u32; 8], hash: u64) -> bool {
    block.iter().zip(mask(hash)).all(|(word, mask)| word & mask != 0)
}

/// The bit of each word that a hash sets.
fn mask(hash: u64) -> [u32; 8] {
    #[expect(clippy::cast_possible_truncation, reason = "the low half of the hash, by definition")]
    let low = hash as u32;
    SALT.map(|salt| 1 << (low.wrapping_mul(salt) >> 27))
}

/// Blocks that a filter of `distinct` values needs.
fn blocks_for(distinct: u64, fpp: f64) -> usize {
    let bits = -8.0 * distinct.max(1) as f64 / (1.0 - fpp.powf(1.0 / 8.0)).ln();
    // The formula is for bits that are set anywhere; in blocks some are fuller than others. 10 %
    // more make up for it.
    let blocks = (bits * 1.1 / (BLOCK as f64 * 8.0)).ceil().clamp(1.0, MAX_BLOCKS as f64);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 1 and 2^22"
    )]
    let blocks = blocks as usize;
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_of_the_specification() {
        // XXH64 with seed 0 of the empty string.
        assert_eq!(hash(b""), 0xEF46_DB37_51D8_E999);
    }

    #[test]
    fn some_blocks_answer_as_the_whole_filter() {
        let mut bloom = Bloom { blocks: vec![[0; 8]; 7] };
        (0..60u64).for_each(|i| bloom.insert(&i.to_le_bytes()));
        let mut bytes = Vec::new();
        bloom.write(&mut bytes).unwrap();
        let layout = BloomLayout::parse(&bytes[..BloomLayout::HEADER_BYTES]).unwrap().unwrap();
        assert_eq!(layout.byte_len(), bytes.len() as u64);
        let hashes: Vec<u64> = (50..70u64).step_by(7).map(|i| hash(&i.to_le_bytes())).collect();
        let ranges = layout.ranges(&hashes);
        assert!(!ranges.is_empty() && ranges.windows(2).all(|pair| pair[0].end < pair[1].start));
        let part = |range: &Range<u64>| &bytes[range.start as usize..range.end as usize];
        let blocks = layout.blocks(&ranges, ranges.iter().map(part));
        for hash in hashes {
            assert_eq!(blocks.might_contain_hash(hash), bloom.might_contain_hash(hash));
        }
        // What was not fetched may hold anything.
        assert!(layout.blocks(&[], []).might_contain_hash(hash(b"absent")));
        let whole = Blocks::from(bloom.clone());
        assert!((0..200u64).all(|i| {
            let hash = hash(&i.to_le_bytes());
            whole.might_contain_hash(hash) == bloom.might_contain_hash(hash)
        }));
    }

    #[test]
    fn members_are_found_and_others_seldom() {
        for (n, fpp) in [(1u64, 0.01), (1000, 0.1), (50_000, 0.01), (20_000, 0.001)] {
            let mut bloom = Bloom::new(n * 16, fpp).unwrap();
            (0..n).for_each(|i| bloom.insert(&i.to_le_bytes()));
            let folded = bloom.clone().folded(n, fpp);
            assert!(folded.len() <= bloom.len());
            assert!((0..n).all(|i| folded.might_contain(&i.to_le_bytes())), "{n}");
            let tries = 200_000u64;
            let wrong = (n..n + tries).filter(|i| folded.might_contain(&i.to_le_bytes())).count();
            assert!(wrong as f64 <= tries as f64 * fpp * 2.0 + 10.0, "{n} {fpp}: {wrong}");
            let mut bytes = Vec::new();
            folded.write(&mut bytes).unwrap();
            assert_eq!(Bloom::parse(&bytes).unwrap().unwrap(), folded);
            assert!(Bloom::parse(&bytes[..bytes.len() - 1]).is_err());
        }
    }
}
