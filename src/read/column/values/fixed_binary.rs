//! [`FixedBinaryReader`] reads FIXED_LEN_BYTE_ARRAY without conversion.

use arrow_array::{Array, ArrayRef, FixedSizeBinaryArray, UInt32Array};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::DataType;
use bytes::Bytes;

use super::fixed_bytes::FixedBytesDecoder;
use super::reader::{Count, ValueReader, indices_of_page, no_dictionary, over_memory_limit};
use super::sparse::SparseDictionary;
use crate::encoding::dictionary::Indices;
use crate::error::{Error, Result};
use crate::format::Encoding;
use crate::free_lists::FreeLists;
use crate::memory;
use crate::page::DictionaryPage;
use crate::simd::bitmap::Bitmap;
use crate::simd::{Isa, Kernel, expand};

/// Decodes FIXED_LEN_BYTE_ARRAY into `FixedSizeBinary`.
pub(super) struct FixedBinaryReader {
    width: usize,
    values: FixedBytesDecoder,
    dictionary: Option<SparseDictionary>,
    /// The values of a page that refers to the dictionary.
    indices: Option<Indices>,
    out: Vec<u8>,
    free_lists: FreeLists,
    looked_up: Vec<u32>,
}

impl FixedBinaryReader {
    pub(super) fn new(width: usize, data_type: DataType) -> Result<Self> {
        debug_assert!(
            matches!(data_type, DataType::FixedSizeBinary(_)),
            "the only type of this column"
        );
        Ok(Self {
            width,
            values: FixedBytesDecoder::new(width, false),
            dictionary: None,
            indices: None,
            out: Vec::new(),
            free_lists: FreeLists::none(),
            looked_up: Vec::new(),
        })
    }
}

impl FixedBinaryReader {
    /// Checks that `n` more slots fit into an array of at most `max_bytes` bytes.
    fn check_memory(&self, n: usize, max_bytes: usize) -> Result<()> {
        let wanted = n.saturating_mul(self.width);
        let left = max_bytes.saturating_sub(self.out.len());
        match wanted <= left {
            true => Ok(()),
            false => Err(over_memory_limit(wanted as u64, left)),
        }
    }
}

impl ValueReader for FixedBinaryReader {
    fn use_free_lists(&mut self, free_lists: &FreeLists) {
        self.free_lists = free_lists.clone();
    }

    fn reserve(&mut self, slots: usize) -> Result<()> {
        let bytes = slots.saturating_mul(self.width).min(MAX_RESERVED);
        self.free_lists.reserve(&mut self.out, bytes)
    }

    fn dictionary_bytes(&self, _entries: usize, _byte_len: usize) -> usize {
        0
    }

    fn leave_page(&mut self) -> bool {
        self.values.leave_page();
        self.indices = None;
        false
    }

    fn set_dictionary(&mut self, page: DictionaryPage) -> Result<()> {
        self.dictionary = Some(SparseDictionary::with_width(page, self.width)?);
        Ok(())
    }

    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()> {
        let Self { indices, values, .. } = self;
        let set_page = |bytes| values.set_page(encoding, bytes, count);
        *indices = indices_of_page(encoding, bytes, count, set_page)?;
        Ok(())
    }

    fn read(&mut self, n: usize, max_bytes: usize) -> Result<()> {
        self.check_memory(n, max_bytes)?;
        let Some(indices) = &mut self.indices else {
            return self.values.read(n, max_bytes, &mut self.out);
        };
        let dictionary = self.dictionary.as_mut().ok_or_else(no_dictionary)?;
        self.looked_up.clear();
        indices.read(n, &mut self.looked_up)?;
        dictionary.append(&self.looked_up, &mut self.out)
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        match &mut self.indices {
            Some(indices) => indices.skip(n),
            None => self.values.skip(n),
        }
    }

    fn room_for_nulls(&mut self, nulls: usize, max_bytes: usize) -> Result<()> {
        self.check_memory(nulls, max_bytes)?;
        memory::room(&mut self.out, nulls.saturating_mul(self.width))
    }

    fn spread(&mut self, validity: &Bitmap, first: usize, slots: usize, values: usize) {
        let width = self.width;
        let start = self.out.len() - values * width;
        self.out.resize(start + slots * width, 0);
        let region = &mut self.out[start..];
        match width {
            4 => spread_fixed::<4>(region, values, validity, first),
            8 => spread_fixed::<8>(region, values, validity, first),
            12 => spread_fixed::<12>(region, values, validity, first),
            16 => spread_fixed::<16>(region, values, validity, first),
            32 => spread_fixed::<32>(region, values, validity, first),
            _ => spread_any(region, width, values, validity, first),
        }
    }

    fn bytes_held(&self) -> usize {
        self.out.capacity()
    }

    fn finish(&mut self, nulls: Option<NullBuffer>, slots: usize) -> Result<ArrayRef> {
        let out = std::mem::take(&mut self.out);
        let width = i32::try_from(self.width)
            .map_err(|_| Error::unsupported("FIXED_LEN_BYTE_ARRAY", "a length beyond 2^31"))?;
        let out = self.free_lists.pooled(out);
        let array = FixedSizeBinaryArray::try_new_with_len(width, out, nulls, slots)?;
        Ok(std::sync::Arc::new(array))
    }
}

/// As `arrow_select::take`, which does not work for values of no bytes, because it derives their
/// number from their bytes.
pub(super) fn taken(values: &ArrayRef, indices: &UInt32Array) -> Result<ArrayRef> {
    if *values.data_type() == DataType::FixedSizeBinary(0) {
        return without_bytes(indices.nulls().cloned(), indices.len());
    }
    Ok(arrow_select::take::take(values, indices, None)?)
}

/// As `arrow_select::concat` of two arrays without nulls, also for values of no bytes.
pub(super) fn joined(first: &ArrayRef, second: &ArrayRef) -> Result<ArrayRef> {
    if *first.data_type() == DataType::FixedSizeBinary(0) {
        return without_bytes(None, first.len() + second.len());
    }
    Ok(arrow_select::concat::concat(&[first, second])?)
}

/// `len` values of no bytes.
pub(super) fn without_bytes(nulls: Option<NullBuffer>, len: usize) -> Result<ArrayRef> {
    let none = Buffer::from_vec(Vec::<u8>::new());
    Ok(std::sync::Arc::new(FixedSizeBinaryArray::try_new_with_len(0, none, nulls, len)?))
}

/// Moves the first `values` values of `W` bytes to the slots that are valid; the others become 0.
fn spread_fixed<const W: usize>(region: &mut [u8], values: usize, validity: &Bitmap, first: usize) {
    expand::spread_in(
        Isa::for_kernel(Kernel::Expand),
        region.as_chunks_mut::<W>().0,
        values,
        validity,
        first,
    );
}

/// As [`spread_fixed`], for any width.
fn spread_any(region: &mut [u8], width: usize, values: usize, validity: &Bitmap, first: usize) {
    // Values of no bytes have no place to move to.
    let slots = region.len().checked_div(width).unwrap_or(0);
    // From the back, so that no value is overwritten before it has moved.
    let mut from = values;
    for slot in (0..slots).rev() {
        let to = slot * width;
        if validity.get(first + slot) {
            from -= 1;
            region.copy_within(from * width..(from + 1) * width, to);
        } else {
            region[to..to + width].fill(0);
        }
    }
}

/// Maximum bytes reserved for a batch before its first value, because the file states the width:
/// no more than a small part of the memory that a read may take.
const MAX_RESERVED: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn little_is_reserved_for_values_of_any_width() {
        let width = (1 << 30) - 1;
        let mut reader =
            FixedBinaryReader::new(width, DataType::FixedSizeBinary(width as i32)).unwrap();
        reader.reserve(200).unwrap();
        assert!(reader.bytes_held() < 17 << 20, "{} bytes", reader.bytes_held());
    }

    #[test]
    fn every_width_is_spread_as_any_width_is() {
        let seed = 8;
        let mut rng = fastrand::Rng::with_seed(seed);
        let slots = 200;
        let mut validity = Bitmap::default();
        (0..slots).for_each(|_| validity.append_run(rng.bool(), 1));
        let values = (0..slots).filter(|i| validity.get(*i)).count();
        fn by<const W: usize>(region: &mut [u8], values: usize, validity: &Bitmap) {
            spread_fixed::<W>(region, values, validity, 0);
        }
        type Spread = fn(&mut [u8], usize, &Bitmap);
        let cases: [(usize, Spread); 5] =
            [(4, by::<4>), (8, by::<8>), (12, by::<12>), (16, by::<16>), (32, by::<32>)];
        for (width, spread) in cases {
            let mut region: Vec<u8> = (0..slots * width).map(|_| rng.u8(..)).collect();
            let mut expected = region.clone();
            spread_any(&mut expected, width, values, &validity, 0);
            spread(&mut region, values, &validity);
            assert_eq!(region, expected, "width {width} seed {seed}");
        }
    }
}
