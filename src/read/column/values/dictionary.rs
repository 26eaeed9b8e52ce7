//! Dictionary arrays: the keys come from the data pages, the values from the dictionary page.
//!
//! A chunk may fall back to other encodings after some pages, or have no dictionary at all. Values
//! of such pages are appended to the dictionary of the batch; at its end those that are equal
//! become one entry, so that few values need few keys, whatever the writer chose.

use std::hash::BuildHasher;
use std::marker::PhantomData;
use std::ops::Range;

use arrow_array::cast::AsArray;
use arrow_array::types::ArrowDictionaryKeyType;
use arrow_array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, PrimitiveArray, StringViewArray, UInt32Array,
    new_empty_array, types,
};
use arrow_buffer::{ArrowNativeType, Buffer, NullBuffer};
use arrow_schema::DataType;
use bytes::Bytes;
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use super::fixed_binary::{joined, taken};
use super::reader::{Count, ValueReader, no_dictionary};
use crate::encoding::dictionary::{Indices, out_of_range};
use crate::error::{Error, LimitKind, Result};
use crate::format::Encoding;
use crate::free_lists::FreeLists;
use crate::page::DictionaryPage;
use crate::simd::bitmap::Bitmap;
use crate::simd::expand;
use crate::trusted;

/// The reader of a dictionary array. `values` decodes its entries.
pub(super) fn dictionary_reader(
    key: &DataType,
    value: &DataType,
    values: Box<dyn ValueReader>,
) -> Result<Box<dyn ValueReader>> {
    fn of<K: ArrowDictionaryKeyType>(
        value: &DataType,
        values: Box<dyn ValueReader>,
    ) -> Box<dyn ValueReader> {
        Box::new(DictionaryReader::<K> {
            indices: Vec::new(),
            coded: DictionaryIndices::new(value, values),
            spare: FreeLists::new(0),
            keys: PhantomData,
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

/// Indices into a dictionary that grows with the values of pages that are not dictionary-encoded.
/// Used for dictionary arrays and run-end arrays.
pub(super) struct DictionaryIndices {
    values: Box<dyn ValueReader>,
    /// The dictionary page as an array.
    dictionary: Option<ArrayRef>,
    /// Values of this batch from pages that are not dictionary-encoded. They follow the dictionary.
    appended: usize,
    /// Indices of the current page; `None` if it is not dictionary-encoded.
    indices: Option<Indices>,
    value_type: DataType,
}

impl DictionaryIndices {
    pub(super) fn new(value_type: &DataType, values: Box<dyn ValueReader>) -> Self {
        Self {
            values,
            dictionary: None,
            appended: 0,
            indices: None,
            value_type: value_type.clone(),
        }
    }

    /// As [`ValueReader::dictionary_bytes`]: what the values make of it, and the array of its
    /// entries.
    pub(super) fn dictionary_bytes(&self, entries: usize, byte_len: usize) -> usize {
        let array = match self.value_type.primitive_width() {
            Some(width) => entries.saturating_mul(width),
            // The payload, and an offset or a view for each.
            None => entries.saturating_mul(size_of::<u128>()).saturating_add(byte_len),
        };
        self.values.dictionary_bytes(entries, byte_len).saturating_add(array)
    }

    pub(super) fn set_dictionary(&mut self, page: DictionaryPage) -> Result<()> {
        let (n, byte_len) = (page.values, page.bytes.len());
        // All bytes come from the page, or from the copy that replaces invalid UTF-8.
        let room = byte_len.saturating_add(self.values.dictionary_bytes(0, byte_len));
        self.values.set_dictionary(page)?;
        // Reserved once, so that the array does not grow step by step.
        self.values.reserve(n);
        // All entries in order: what pages with the indices 0, 1, 2 … decode to.
        for start in (0..n).step_by(COUNTED) {
            let indices = start..n.min(start + COUNTED);
            let count = indices.len();
            let page = counting_indices(indices);
            self.values.set_page(Encoding::RleDictionary, page, Count::Exactly(count))?;
            self.values.read(count, room)?;
        }
        self.values.leave_page();
        self.dictionary = Some(self.values.finish(None, n)?);
        // Forgets that number, because values of other pages are unlikely to be as many.
        self.values.reserve(0);
        Ok(())
    }

    pub(super) fn leave_page(&mut self) -> bool {
        self.indices = None;
        self.values.leave_page()
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
        // A chunk without a dictionary has none.
        self.dictionary.as_ref().map_or(0, |dictionary| dictionary.len())
    }

    /// Appends the index of each of the next `n` values.
    pub(super) fn read(&mut self, n: usize, room: usize, out: &mut Vec<u32>) -> Result<()> {
        match &mut self.indices {
            Some(indices) => {
                let start = out.len();
                let read = indices.read(n, out);
                self.checked(read, start, out)
            }
            None => {
                self.values.read(n, room)?;
                self.append(n, out)
            }
        }
    }

    /// As [`DictionaryIndices::read`], of those of the next `n` values whose bits of `picks` are
    /// set.
    pub(super) fn read_picked(
        &mut self,
        n: usize,
        picks: &Bitmap,
        room: usize,
        out: &mut Vec<u32>,
    ) -> Result<()> {
        let start = out.len();
        match &mut self.indices {
            Some(indices) => {
                let read = indices.read_picked(n, picks, out);
                self.checked(read, start, out)
            }
            None => {
                self.values.read_picked(n, picks, room)?;
                self.append(picks.count_ones(0..n), out)
            }
        }
    }

    /// Checks that the new indices are those of entries. On an error all of them are removed,
    /// because no key may point beyond the values.
    fn checked(&self, read: Result<()>, start: usize, out: &mut Vec<u32>) -> Result<()> {
        let checked = read.and_then(|()| {
            let entries = self.dictionary.as_ref().ok_or_else(no_dictionary)?.len();
            match out[start..].iter().copied().max() {
                Some(highest) if highest as usize >= entries => Err(out_of_range(highest, entries)),
                _ => Ok(()),
            }
        });
        if checked.is_err() {
            out.truncate(start);
        }
        checked
    }

    /// Gives indices to `n` values that were appended to the dictionary.
    fn append(&mut self, n: usize, out: &mut Vec<u32>) -> Result<()> {
        let first = self.entries() + self.appended;
        let end = u32::try_from(first + n).map_err(|_| too_many(first + n))?;
        out.extend(end - u32::try_from(n).expect("the end, which is no less, fits")..end);
        self.appended += n;
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

    /// The values that the indices of this batch point into; the next batch begins with the
    /// dictionary alone. Indices of equal values are made equal where some were appended.
    pub(super) fn finish(&mut self, indices: &mut [u32]) -> Result<ArrayRef> {
        let appended = std::mem::take(&mut self.appended);
        let more = self.values.finish(None, appended)?;
        let all = match &self.dictionary {
            None if appended == 0 => return Ok(new_empty_array(&self.value_type)),
            Some(dictionary) if appended == 0 => return Ok(dictionary.clone()),
            None => more,
            Some(dictionary) => joined(dictionary, &more)?,
        };
        let (first, place) = distinct(&all, self.entries());
        if first.len() == all.len() {
            return Ok(all);
        }
        for index in indices {
            *index = place[*index as usize];
        }
        taken(&all, &UInt32Array::from(first))
    }
}

/// Finds equal values. Gives the position of the first of each distinct value, and for every value
/// its index among those. The first `entries` values are kept even if they are equal.
fn distinct(values: &ArrayRef, entries: usize) -> (Vec<u32>, Vec<u32>) {
    let bytes = ValueBytes::of(values);
    let state = FixedState::default();
    let mut table: HashTable<(u64, u32)> = HashTable::new();
    let (mut first, mut place) = (Vec::<u32>::new(), Vec::with_capacity(values.len()));
    let mut hashes = Vec::with_capacity(HASHED);
    for start in (0..values.len()).step_by(HASHED) {
        // Hashed in blocks, so that hashing does not wait for the table.
        hashes.clear();
        let end = values.len().min(start + HASHED);
        hashes.extend((start..end).map(|i| state.hash_one(bytes.get(i))));
        if first.len() > start / 2 {
            // Most values are distinct: the table grows once, not many times.
            table.reserve(values.len() - start, |(hash, _)| *hash);
        }
        for (i, &hash) in (start..end).zip(&hashes) {
            let value = bytes.get(i);
            let is_it = |(h, at): &(u64, u32)| {
                let at = first.get(*at as usize);
                *h == hash && at.is_some_and(|at| bytes.get(*at as usize) == value)
            };
            let at = match table.entry(hash, is_it, |(hash, _)| *hash) {
                Entry::Occupied(known) if i >= entries => known.get().1,
                entry => {
                    let at = u32::try_from(first.len()).expect("indices have 32 bits");
                    if let Entry::Vacant(vacant) = entry {
                        vacant.insert((hash, at));
                    }
                    first.push(u32::try_from(i).expect("indices have 32 bits"));
                    at
                }
            };
            place.push(at);
        }
    }
    (first, place)
}

/// Values that are hashed at a time.
const HASHED: usize = 256;

/// The values of an array as bytes, to compare them.
enum ValueBytes<'a> {
    Offsets32(&'a [i32], &'a [u8]),
    Offsets64(&'a [i64], &'a [u8]),
    Text(&'a StringViewArray),
    Views(&'a BinaryViewArray),
    Bits(&'a BooleanArray),
    /// A buffer, where the first value begins, and the bytes of each.
    Words(Buffer, usize, usize),
    /// Values of no bytes.
    Nothing,
}

impl<'a> ValueBytes<'a> {
    fn of(array: &'a ArrayRef) -> Self {
        match array.data_type() {
            DataType::Utf8 => {
                let array = array.as_string::<i32>();
                Self::Offsets32(array.value_offsets(), array.value_data())
            }
            DataType::Binary => {
                let array = array.as_binary::<i32>();
                Self::Offsets32(array.value_offsets(), array.value_data())
            }
            DataType::LargeUtf8 => {
                let array = array.as_string::<i64>();
                Self::Offsets64(array.value_offsets(), array.value_data())
            }
            DataType::LargeBinary => {
                let array = array.as_binary::<i64>();
                Self::Offsets64(array.value_offsets(), array.value_data())
            }
            DataType::Utf8View => Self::Text(array.as_string_view()),
            DataType::BinaryView => Self::Views(array.as_binary_view()),
            DataType::Boolean => Self::Bits(array.as_boolean()),
            other => {
                let width = match other {
                    DataType::FixedSizeBinary(width) => usize::try_from(*width).ok(),
                    other => other.primitive_width(),
                };
                let data = array.to_data();
                match (width, data.buffers().first()) {
                    (Some(width), Some(buffer)) => {
                        Self::Words(buffer.clone(), data.offset() * width, width)
                    }
                    _ => Self::Nothing,
                }
            }
        }
    }

    fn get(&self, i: usize) -> &[u8] {
        fn between<O: ArrowNativeType>(ends: Option<&[O]>) -> std::ops::Range<usize> {
            match ends {
                Some([start, end]) => start.as_usize()..end.as_usize(),
                _ => 0..0,
            }
        }
        match self {
            Self::Offsets32(offsets, values) => values.get(between(offsets.get(i..i + 2))),
            Self::Offsets64(offsets, values) => values.get(between(offsets.get(i..i + 2))),
            Self::Text(array) => Some(array.value(i).as_bytes()),
            Self::Views(array) => Some(array.value(i)),
            Self::Bits(array) => Some(if array.value(i) { &[1][..] } else { &[0] }),
            Self::Words(buffer, start, width) => {
                buffer.get(start + i * width..start + (i + 1) * width)
            }
            Self::Nothing => None,
        }
        .unwrap_or_default()
    }
}

/// Indices that are made at a time.
const COUNTED: usize = 1 << 16;

/// These indices, as a data page would hold them: 32 bits each, in one packed run.
fn counting_indices(indices: Range<usize>) -> Bytes {
    let groups = indices.len().div_ceil(8);
    let mut bytes = Vec::with_capacity(6 + groups * 32);
    bytes.push(32);
    let mut header = (groups as u64) << 1 | 1;
    while header >= 0x80 {
        bytes.push((header & 0x7F) as u8 | 0x80);
        header >>= 7;
    }
    bytes.push((header & 0x7F) as u8);
    for index in indices.start..indices.start + groups * 8 {
        // Those behind the last are padding, and wrap.
        #[expect(clippy::cast_possible_truncation, reason = "entries have 32 bits")]
        bytes.extend_from_slice(&(index as u32).to_le_bytes());
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

struct DictionaryReader<K: ArrowDictionaryKeyType> {
    /// Indices of the slots so far; they become keys at the end of the batch.
    indices: Vec<u32>,
    coded: DictionaryIndices,
    spare: FreeLists,
    keys: PhantomData<fn() -> K>,
}

impl<K: ArrowDictionaryKeyType> ValueReader for DictionaryReader<K> {
    fn use_free_lists(&mut self, spare: &FreeLists) {
        self.spare = spare.clone();
        self.coded.values.use_free_lists(spare);
    }

    fn reserve(&mut self, slots: usize) {
        self.indices.reserve_exact(slots);
    }

    fn wants_dictionary_first(&self) -> bool {
        true
    }

    fn dictionary_bytes(&self, entries: usize, byte_len: usize) -> usize {
        self.coded.dictionary_bytes(entries, byte_len)
    }

    fn leave_page(&mut self) -> bool {
        self.coded.leave_page()
    }

    fn set_dictionary(&mut self, page: DictionaryPage) -> Result<()> {
        self.coded.set_dictionary(page)
    }

    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()> {
        self.coded.set_page(encoding, bytes, count)
    }

    fn read(&mut self, n: usize, room: usize) -> Result<()> {
        self.coded.read(n, room, &mut self.indices)
    }

    fn read_picked(&mut self, n: usize, picks: &Bitmap, room: usize) -> Result<()> {
        self.coded.read_picked(n, picks, room, &mut self.indices)
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.coded.skip(n)
    }

    fn spread(&mut self, validity: &Bitmap, first: usize, slots: usize, values: usize) {
        let start = self.indices.len() - values;
        expand::spread(&mut self.indices, start, validity, first, slots);
    }

    fn bytes_held(&self) -> usize {
        self.indices.capacity() * size_of::<u32>() + self.coded.bytes_held()
    }

    fn finish(&mut self, nulls: Option<NullBuffer>, _slots: usize) -> Result<ArrayRef> {
        let values = self.coded.finish(&mut self.indices)?;
        if K::Native::from_usize(values.len()).is_none() {
            let highest = self.indices.iter().copied().max().unwrap_or(0) as usize;
            if K::Native::from_usize(highest).is_none() {
                return Err(too_many(highest + 1));
            }
        }
        let mut keys = self.spare.take(self.indices.len());
        keys.extend(self.indices.iter().map(|&index| K::Native::usize_as(index as usize)));
        // The next batch uses the same memory for its indices.
        self.indices.clear();
        let keys = PrimitiveArray::<K>::try_new(self.spare.lend(keys).into(), nulls)?;
        trusted::dictionary_array(keys, values)
    }
}
