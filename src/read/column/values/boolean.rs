//! Reads BOOLEAN values as bits.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray};
use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};
use bytes::Bytes;

use super::reader::{Count, ValueReader, illegal, no_dictionary, no_page};
use crate::encoding::dictionary::Indices;
use crate::encoding::{plain, rle};
use crate::error::Result;
use crate::format::Encoding;
use crate::memory;
use crate::page::DictionaryPage;
use crate::schema::Physical;
use crate::simd::bitmap::Bitmap;

/// Decodes a BOOLEAN leaf.
#[derive(Default)]
pub(super) struct BooleanReader {
    /// Legal, though writers make none: at most two different entries.
    dictionary: Option<Vec<bool>>,
    source: BooleanPage,
    out: Bitmap,
}

#[derive(Default)]
enum BooleanPage {
    #[default]
    Nothing,
    Plain(plain::PlainBooleans),
    Rle(rle::Booleans),
    Dictionary(Indices),
}

/// Bits that are looked up at a time.
const BLOCK: usize = 8192;

impl ValueReader for BooleanReader {
    fn reserve(&mut self, slots: usize) -> Result<()> {
        self.out.try_reserve(slots)
    }

    fn room_for_nulls(&mut self, nulls: usize, _max_bytes: usize) -> Result<()> {
        self.out.try_reserve(nulls)
    }

    fn dictionary_bytes(&self, entries: usize, _byte_len: usize) -> usize {
        entries
    }

    fn set_dictionary(&mut self, page: DictionaryPage) -> Result<()> {
        let mut bits = plain::PlainBooleans::new(page.bytes, page.values)?;
        let mut dictionary = memory::vec_for(page.values)?;
        let mut block = Bitmap::default();
        while dictionary.len() < page.values {
            let n = (page.values - dictionary.len()).min(BLOCK);
            block.clear();
            bits.read(n, &mut block)?;
            dictionary.extend((0..n).map(|i| block.get(i)));
        }
        self.dictionary = Some(dictionary);
        Ok(())
    }

    fn leave_page(&mut self) -> bool {
        self.source = BooleanPage::Nothing;
        false
    }

    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()> {
        self.source = match encoding {
            Encoding::Plain => {
                let n = match count {
                    Count::Exactly(n) => n,
                    Count::AtMost(n) => n.min(bytes.len().saturating_mul(8)),
                };
                BooleanPage::Plain(plain::PlainBooleans::new(bytes, n)?)
            }
            Encoding::Rle => BooleanPage::Rle(rle::Booleans::new(bytes, count.max())?),
            Encoding::RleDictionary | Encoding::PlainDictionary => {
                BooleanPage::Dictionary(Indices::new(bytes, count.max())?)
            }
            other => return Err(illegal(other, Physical::Boolean)),
        };
        Ok(())
    }

    fn read(&mut self, n: usize, _max_bytes: usize) -> Result<()> {
        match &mut self.source {
            BooleanPage::Plain(bits) => bits.read(n, &mut self.out),
            BooleanPage::Rle(runs) => runs.read(n, &mut self.out),
            BooleanPage::Dictionary(indices) => {
                let dictionary = self.dictionary.as_ref().ok_or_else(no_dictionary)?;
                let mut values = Vec::new();
                self.out.try_reserve(n)?;
                let mut left = n;
                while left > 0 {
                    values.clear();
                    indices.gather(left.min(BLOCK), dictionary, &mut values)?;
                    values.iter().for_each(|&bit| self.out.append_run(bit, 1));
                    left -= values.len();
                }
                Ok(())
            }
            BooleanPage::Nothing => Err(no_page()),
        }
    }

    fn read_selected(&mut self, n: usize, selection: &Bitmap, max_bytes: usize) -> Result<()> {
        let start = self.out.len();
        self.read(n, max_bytes)?;
        self.out.compact(start, selection);
        Ok(())
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        match &mut self.source {
            BooleanPage::Plain(bits) => bits.skip(n),
            BooleanPage::Rle(runs) => runs.skip(n),
            BooleanPage::Dictionary(indices) => indices.skip(n),
            BooleanPage::Nothing if n == 0 => Ok(()),
            BooleanPage::Nothing => Err(no_page()),
        }
    }

    fn spread(&mut self, validity: &Bitmap, first: usize, slots: usize, values: usize) {
        let start = self.out.len() - values;
        self.out.spread(start, validity, first, slots);
    }

    fn bytes_held(&self) -> usize {
        self.out.len() / 8
    }

    fn finish(&mut self, nulls: Option<NullBuffer>, _slots: usize) -> Result<ArrayRef> {
        let (words, len) = std::mem::take(&mut self.out).into_words();
        let bits = BooleanBuffer::new(Buffer::from_vec(words), 0, len);
        Ok(Arc::new(BooleanArray::new(bits, nulls)))
    }
}
