//! [`EmptyBinaryReader`] reads BYTE_ARRAY as values of no bytes, `FixedSizeBinary(0)`.
//!
//! Other readers refuse FIXED_LEN_BYTE_ARRAY(0), so writers store empty byte strings instead. Trap:
//! only a hint says that they are empty, so it is checked.

use arrow_array::ArrayRef;
use arrow_array::cast::AsArray;
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;
use bytes::Bytes;

use super::binary::BinaryReader;
use super::fixed_binary::without_bytes;
use super::reader::{Count, ValueReader};
use crate::error::{Error, Result};
use crate::format::Encoding;
use crate::free_lists::FreeLists;
use crate::page::DictionaryPage;
use crate::schema::Physical;
use crate::schema::convert::BytesLayout;
use crate::simd::bitmap::Bitmap;

/// Decodes BYTE_ARRAY into `FixedSizeBinary(0)`, by way of `Binary`.
pub(super) struct EmptyBinaryReader {
    bytes: Box<dyn ValueReader>,
}

impl EmptyBinaryReader {
    pub(super) fn new(carries_prefix: bool) -> Self {
        let (of, layout) = (Physical::ByteArray, BytesLayout::Offsets32);
        Self { bytes: BinaryReader::boxed(of, layout, &DataType::Binary, None, carries_prefix) }
    }
}

impl ValueReader for EmptyBinaryReader {
    fn use_free_lists(&mut self, free_lists: &FreeLists) {
        self.bytes.use_free_lists(free_lists);
    }

    fn reserve(&mut self, slots: usize) -> Result<()> {
        self.bytes.reserve(slots)
    }

    fn wants_dictionary_first(&self) -> bool {
        self.bytes.wants_dictionary_first()
    }

    fn dictionary_bytes(&self, entries: usize, byte_len: usize) -> usize {
        self.bytes.dictionary_bytes(entries, byte_len)
    }

    fn set_dictionary(&mut self, page: DictionaryPage) -> Result<()> {
        self.bytes.set_dictionary(page)
    }

    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()> {
        self.bytes.set_page(encoding, bytes, count)
    }

    fn leave_page(&mut self) -> bool {
        self.bytes.leave_page()
    }

    fn read(&mut self, n: usize, max_bytes: usize) -> Result<()> {
        self.bytes.read(n, max_bytes)
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.bytes.skip(n)
    }

    fn read_selected(&mut self, n: usize, selection: &Bitmap, max_bytes: usize) -> Result<()> {
        self.bytes.read_selected(n, selection, max_bytes)
    }

    fn holds(&self, n: usize) -> Option<bool> {
        self.bytes.holds(n)
    }

    fn room_for_nulls(&mut self, nulls: usize, max_bytes: usize) -> Result<()> {
        self.bytes.room_for_nulls(nulls, max_bytes)
    }

    fn spread(&mut self, validity: &Bitmap, first: usize, slots: usize, values: usize) {
        self.bytes.spread(validity, first, slots, values);
    }

    fn bytes_held(&self) -> usize {
        self.bytes.bytes_held()
    }

    fn finish(&mut self, nulls: Option<NullBuffer>, slots: usize) -> Result<ArrayRef> {
        let array = self.bytes.finish(nulls, slots)?;
        let offsets = array.as_binary::<i32>().value_offsets();
        if offsets.first() != offsets.last() {
            return Err(Error::unsupported(
                "conversion with loss",
                "a byte string that is not empty does not fit FixedSizeBinary(0); read the column \
                 as its own type",
            ));
        }
        without_bytes(array.nulls().cloned(), array.len())
    }
}
