//! Reads an UNKNOWN leaf, which has no values.

use arrow_array::{ArrayRef, NullArray};
use arrow_buffer::NullBuffer;
use bytes::Bytes;

use super::reader::{Count, ValueReader};
use crate::error::Result;
use crate::format::Encoding;
use crate::page::DictionaryPage;
use crate::simd::bitmap::Bitmap;

/// Values of an UNKNOWN leaf: none.
pub(super) struct NullReader;

impl ValueReader for NullReader {
    fn reserve(&mut self, _slots: usize) -> Result<()> {
        Ok(())
    }

    fn room_for_nulls(&mut self, _nulls: usize, _max_bytes: usize) -> Result<()> {
        Ok(())
    }

    fn dictionary_bytes(&self, _entries: usize, _byte_len: usize) -> usize {
        0
    }

    fn leave_page(&mut self) -> bool {
        false
    }

    fn set_dictionary(&mut self, _page: DictionaryPage) -> Result<()> {
        Ok(())
    }

    fn set_page(&mut self, _encoding: Encoding, _bytes: Bytes, _count: Count) -> Result<()> {
        Ok(())
    }

    fn read(&mut self, _n: usize, _max_bytes: usize) -> Result<()> {
        // Some writers store values all the same (testdata/null_type_with_values.parquet). They
        // have no meaning.
        Ok(())
    }

    fn skip(&mut self, _n: usize) -> Result<()> {
        Ok(())
    }

    fn read_selected(&mut self, _n: usize, _selection: &Bitmap, _max_bytes: usize) -> Result<()> {
        Ok(())
    }

    fn spread(&mut self, _validity: &Bitmap, _first: usize, _slots: usize, _values: usize) {}

    fn bytes_held(&self) -> usize {
        0
    }

    fn finish(&mut self, _nulls: Option<NullBuffer>, slots: usize) -> Result<ArrayRef> {
        Ok(std::sync::Arc::new(NullArray::new(slots)))
    }
}
