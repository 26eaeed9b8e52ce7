//! Dictionaries kept: keys straight from the page, the dictionary page as the values of the array.
//!
//! A chunk may fall back to other encodings after some pages. Values of such pages are appended to the dictionary of the batch, each with
//! a key of its own: Arrow allows equal entries.

use std::sync::Arc;

use arrow_array::types::ArrowDictionaryKeyType;
use arrow_array::{Array, ArrayRef, DictionaryArray, PrimitiveArray, new_empty_array, types};
use arrow_buffer::{ArrowNativeType, NullBuffer, ScalarBuffer};
use arrow_schema::DataType;
use bytes::Bytes;

use super::column::{Column, Count, no_dictionary};
use crate::encoding::dictionary::Indices;
use crate::error::{Error, LimitKind, Result, Spec};
use crate::format::Encoding;
use crate::page::DictionaryPage;
use crate::simd::bitmap::Bitmap;
use crate::simd::expand;

/// The column of a leaf whose dictionary is kept. `values` decodes the values.
pub(super) fn dictionary_column(
    key: &DataType,
    value: &DataType,
    values: Box<dyn Column>,
) -> Result<Box<dyn Column>> {
    fn of<K: ArrowDictionaryKeyType>(value: &DataType, values: Box<dyn Column>) -> Box<dyn Column>
    where
        K::Native: Send,
    {
        Box::new(DictionaryColumn::<K> {
            keys: Vec::new(),
            coded: Coded::new(value, values),
            indices: Vec::new(),
        })
    }
    Ok(match key {
        DataType::Int8 => of::<types::Int8Type>(value, values),
        DataType::Int16 => of::<types::Int16Type>(value, values),
        DataType::Int32 => of::<types::Int32Type>(value, values),
        DataType::Int64 => of::<types::Int64Type>(value, values),
        DataType::UInt8 => of::<types::UInt8Type>(value, values),
        DataType::UInt16 => of::<types::UInt16Type>(value, values),
        DataType::UInt32 => of::<types::UInt32Type>(value, values),
        DataType::UInt64 => of::<types::UInt64Type>(value, values),
        other => {
            return Err(Error::usage(format_args!("{other} cannot be the key of a dictionary")));
        }
    })
}

/// Indices into a dictionary that grows where pages are not dictionary-encoded. Shared with the run-end column.
pub(super) struct Coded {
    values: Box<dyn Column>,
    /// The dictionary page as an array.
    dictionary: Option<ArrayRef>,
    /// Values of other pages in this batch: they follow the dictionary.
    appended: usize,
    /// Indices of the current page; `None` if it is not dictionary-encoded.
    indices: Option<Indices>,
    value_type: DataType,
}

impl Coded {
    pub(super) fn new(value_type: &DataType, values: Box<dyn Column>) -> Self {
        Self {
            values,
            dictionary: None,
            appended: 0,
            indices: None,
            value_type: value_type.clone(),
        }
    }

    pub(super) fn set_dictionary(&mut self, page: DictionaryPage) -> Result<()> {
        let n = page.values;
        self.values.set_dictionary(page)?;
        // The values in their order: what a page with the indices 0, 1, 2 … would decode to.
        self.values.set_page(Encoding::RleDictionary, counting_indices(n), Count::Exactly(n))?;
        if n > 0 {
            self.values.read(n, usize::MAX)?;
        }
        self.dictionary = Some(self.values.finish(None, n)?);
        Ok(())
    }

    pub(super) fn set_page(
        &mut self,
        encoding: Encoding,
        bytes: Bytes,
        count: Count,
    ) -> Result<()> {
        self.indices = match encoding {
            Encoding::RleDictionary | Encoding::PlainDictionary => {
                Some(Indices::new(bytes, count.most())?)
            }
            other => {
                self.values.set_page(other, bytes, count)?;
                None
            }
        };
        Ok(())
    }

    fn entries(&self) -> usize {
        self.dictionary.as_ref().map_or(0, |dictionary| dictionary.len())
    }

    /// Appends the index of each of the next `n` values.
    pub(super) fn read(&mut self, n: usize, room: usize, out: &mut Vec<u32>) -> Result<()> {
        match &mut self.indices {
            Some(indices) => {
                let entries = self.dictionary.as_ref().ok_or_else(no_dictionary)?.len();
                let start = out.len();
                indices.read(n, out)?;
                let highest = out.iter().skip(start).copied().max().unwrap_or(0);
                if highest as usize >= entries && n > 0 {
                    return Err(Error::mismatch(
                        Spec::Encodings("RLE_DICTIONARY"),
                        "index",
                        format_args!("less than {entries}"),
                        highest,
                    ));
                }
            }
            None => {
                self.values.read(n, room)?;
                let first = self.entries() + self.appended;
                let end = u32::try_from(first + n).map_err(|_| too_many(first + n))?;
                out.extend(end - u32::try_from(n).unwrap_or_default()..end);
                self.appended += n;
            }
        }
        Ok(())
    }

    pub(super) fn skip(&mut self, n: usize) -> Result<()> {
        match &mut self.indices {
            Some(indices) => indices.skip(n),
            None => self.values.skip(n),
        }
    }

    pub(super) fn bytes_held(&self) -> usize {
        self.values.bytes_held()
    }

    /// The values that the indices of this batch point into; the next batch begins with the dictionary alone.
    pub(super) fn finish(&mut self) -> Result<ArrayRef> {
        let appended = std::mem::take(&mut self.appended);
        let more = self.values.finish(None, appended)?;
        Ok(match &self.dictionary {
            None if appended == 0 => new_empty_array(&self.value_type),
            None => more,
            Some(dictionary) if appended == 0 => dictionary.clone(),
            Some(dictionary) => arrow_select::concat::concat(&[dictionary, &more])?,
        })
    }
}

/// The indices 0 to `n`, as a data page would hold them: 32 bits each, in one packed run.
fn counting_indices(n: usize) -> Bytes {
    let groups = n.div_ceil(8);
    let mut bytes = Vec::with_capacity(6 + groups * 32);
    bytes.push(32);
    let mut header = (groups as u64) << 1 | 1;
    while header >= 0x80 {
        bytes.push((header & 0x7F) as u8 | 0x80);
        header >>= 7;
    }
    bytes.push((header & 0x7F) as u8);
    for index in 0..groups * 8 {
        bytes.extend_from_slice(&u32::try_from(index).unwrap_or_default().to_le_bytes());
    }
    bytes.into()
}

#[cold]
fn too_many(entries: usize) -> Error {
    Error::limit(
        LimitKind::ArrayLength,
        format_args!(
            "a dictionary of {entries} entries does not fit its key type; use a wider one"
        ),
    )
}

struct DictionaryColumn<K: ArrowDictionaryKeyType> {
    keys: Vec<K::Native>,
    coded: Coded,
    indices: Vec<u32>,
}

/// Keys narrowed at a time.
const BLOCK: usize = 1024;

impl<K: ArrowDictionaryKeyType> Column for DictionaryColumn<K>
where
    K::Native: Send,
{
    fn reserve(&mut self, slots: usize) {
        self.keys.reserve_exact(slots);
    }

    fn set_dictionary(&mut self, page: DictionaryPage) -> Result<()> {
        self.coded.set_dictionary(page)
    }

    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()> {
        self.coded.set_page(encoding, bytes, count)
    }

    fn read(&mut self, n: usize, room: usize) -> Result<()> {
        let mut left = n;
        while left > 0 {
            let n = left.min(BLOCK);
            self.indices.clear();
            self.coded.read(n, room, &mut self.indices)?;
            let highest = self.indices.iter().copied().max().unwrap_or(0) as usize;
            if K::Native::from_usize(highest).is_none() {
                return Err(too_many(highest + 1));
            }
            self.keys.extend(self.indices.iter().map(|&index| K::Native::usize_as(index as usize)));
            left -= n;
        }
        Ok(())
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.coded.skip(n)
    }

    fn spread(&mut self, validity: &Bitmap, first: usize, slots: usize, values: usize) {
        let start = self.keys.len() - values;
        expand::spread(&mut self.keys, start, validity, first, slots);
    }

    fn bytes_held(&self) -> usize {
        self.keys.capacity() * size_of::<K::Native>() + self.coded.bytes_held()
    }

    fn finish(&mut self, nulls: Option<NullBuffer>, _slots: usize) -> Result<ArrayRef> {
        let keys = ScalarBuffer::from(std::mem::take(&mut self.keys));
        let keys = PrimitiveArray::<K>::try_new(keys, nulls)?;
        let values = self.coded.finish()?;
        Ok(Arc::new(DictionaryArray::<K>::try_new(keys, values)?))
    }
}
