//! [`PrimitiveReader`] reads fixed-width values, from pages of any encoding.

use arrow_array::ArrayRef;
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_schema::DataType;
use bytes::Bytes;

use super::reader::{Count, ValueReader, fixed_width_array, indices_of_page, no_dictionary};
use super::sparse::SparseDictionary;
use crate::encoding::dictionary::Indices;
use crate::error::Result;
use crate::format::Encoding;
use crate::free_lists::FreeLists;
use crate::memory;
use crate::page::DictionaryPage;
use crate::simd::bitmap::Bitmap;
use crate::simd::compact::compact;
use crate::simd::expand;
use crate::simd::native::PlainOldData;

/// Decodes and converts the values of pages that do not refer to the dictionary, and the dictionary
/// itself.
pub(super) trait PrimitiveSource: Send {
    /// A value of the array.
    type Out: ArrowNativeType + PlainOldData;

    /// Bytes of an entry of a dictionary page, if all have the same and it is not 0. Single entries
    /// can then be looked up in the page.
    fn entry_width(&self) -> Option<usize>;

    /// Checks that a dictionary page holds all of its entries, and appends them.
    fn read_dictionary(&mut self, page: &DictionaryPage, out: &mut Vec<Self::Out>) -> Result<()>;

    /// As [`ValueReader::set_page`].
    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()>;

    /// Lets go of the page.
    fn leave_page(&mut self);

    /// Appends the next `n` values. Scratch memory may take `max_bytes` bytes.
    fn read(&mut self, n: usize, max_bytes: usize, out: &mut Vec<Self::Out>) -> Result<()>;

    fn skip(&mut self, n: usize) -> Result<()>;

    /// Whether skipping takes no time, whatever the number of values.
    fn skips_at_once(&self) -> bool {
        false
    }

    /// As [`ValueReader::holds`].
    fn holds(&self, _n: usize) -> Option<bool> {
        None
    }
}

/// Reads the values of a primitive array.
pub(super) struct PrimitiveReader<S: PrimitiveSource> {
    source: S,
    dictionary: PrimitiveDictionary<S::Out>,
    /// The values of a page that refers to the dictionary.
    indices: Option<Indices>,
    out: Vec<S::Out>,
    free_lists: FreeLists,
    /// Indices of entries that are looked up in the page.
    selected: Vec<u32>,
    data_type: DataType,
}

/// The dictionary of the chunk.
enum PrimitiveDictionary<T> {
    Missing,
    /// While few of its entries were wanted.
    Sparse(SparseDictionary),
    Entries(Vec<T>),
}

/// Whether so few of `n` values are selected that runs of them are read one by one.
fn few(selected: &Bitmap, n: usize) -> bool {
    selected.count_ones(0..n) < n / 16
}

/// Counts `more` wanted entries. The entries, once they are converted; `None` while so few were
/// wanted that they are looked up one by one.
fn entries<'a, S: PrimitiveSource>(
    dictionary: &'a mut PrimitiveDictionary<S::Out>,
    source: &mut S,
    more: usize,
) -> Result<Option<&'a [S::Out]>> {
    if let PrimitiveDictionary::Sparse(sparse) = dictionary {
        if sparse.stays_sparse(more) {
            return Ok(None);
        }
        let mut entries = memory::vec_for(sparse.page().values)?;
        source.read_dictionary(sparse.page(), &mut entries)?;
        *dictionary = PrimitiveDictionary::Entries(entries);
    }
    match dictionary {
        PrimitiveDictionary::Entries(entries) => Ok(Some(entries)),
        _ => Err(no_dictionary()),
    }
}

impl<S: PrimitiveSource + 'static> PrimitiveReader<S> {
    /// A reader for arrays of `data_type`, whose values are `S::Out`.
    pub(super) fn boxed(data_type: &DataType, source: S) -> Box<dyn ValueReader> {
        Box::new(Self {
            source,
            dictionary: PrimitiveDictionary::Missing,
            indices: None,
            out: Vec::new(),
            free_lists: FreeLists::none(),
            selected: Vec::new(),
            data_type: data_type.clone(),
        })
    }

    /// Appends the entries at `selected`, taken from the dictionary page.
    fn look_up(&mut self) -> Result<()> {
        let PrimitiveDictionary::Sparse(sparse) = &mut self.dictionary else {
            return Err(no_dictionary());
        };
        let mut bytes = Vec::new();
        sparse.append(&self.selected, &mut bytes)?;
        let page = DictionaryPage { values: self.selected.len(), bytes: bytes.into() };
        self.source.read_dictionary(&page, &mut self.out)
    }
}

impl<S: PrimitiveSource + 'static> ValueReader for PrimitiveReader<S> {
    fn use_free_lists(&mut self, free_lists: &FreeLists) {
        self.free_lists = free_lists.clone();
    }

    fn reserve(&mut self, slots: usize) -> Result<()> {
        self.free_lists.reserve(&mut self.out, slots)
    }

    fn dictionary_bytes(&self, entries: usize, _byte_len: usize) -> usize {
        entries.saturating_mul(size_of::<S::Out>())
    }

    fn leave_page(&mut self) -> bool {
        self.source.leave_page();
        self.indices = None;
        false
    }

    fn set_dictionary(&mut self, page: DictionaryPage) -> Result<()> {
        self.dictionary = match self.source.entry_width() {
            Some(width) => PrimitiveDictionary::Sparse(SparseDictionary::with_width(page, width)?),
            None => {
                let mut entries = memory::vec_for(page.values)?;
                self.source.read_dictionary(&page, &mut entries)?;
                PrimitiveDictionary::Entries(entries)
            }
        };
        Ok(())
    }

    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()> {
        let Self { indices, source, .. } = self;
        let set_page = |bytes| source.set_page(encoding, bytes, count);
        *indices = indices_of_page(encoding, bytes, count, set_page)?;
        if indices.is_some() {
            source.leave_page();
        }
        Ok(())
    }

    fn read(&mut self, n: usize, max_bytes: usize) -> Result<()> {
        let Some(indices) = &mut self.indices else {
            return self.source.read(n, max_bytes, &mut self.out);
        };
        match entries(&mut self.dictionary, &mut self.source, n)? {
            Some(entries) => indices.gather(n, entries, &mut self.out),
            None => {
                self.selected.clear();
                indices.read(n, &mut self.selected)?;
                self.look_up()
            }
        }
    }

    fn read_selected(&mut self, n: usize, selection: &Bitmap, max_bytes: usize) -> Result<()> {
        if let Some(indices) = &mut self.indices {
            let more = selection.count_ones(0..n);
            return match entries(&mut self.dictionary, &mut self.source, more)? {
                Some(entries) => indices.gather_selected(n, selection, entries, &mut self.out),
                None => {
                    self.selected.clear();
                    indices.read_selected(n, selection, &mut self.selected)?;
                    self.look_up()
                }
            };
        }
        if self.source.skips_at_once() && few(selection, n) {
            let mut at = 0;
            for run in selection.runs() {
                self.source.skip(run.start - at)?;
                self.source.read(run.len(), max_bytes, &mut self.out)?;
                at = run.end;
            }
            return self.source.skip(n - at);
        }
        let start = self.out.len();
        self.source.read(n, max_bytes, &mut self.out)?;
        compact(&mut self.out, start, selection, 0);
        Ok(())
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        match &mut self.indices {
            Some(indices) => indices.skip(n),
            None => self.source.skip(n),
        }
    }

    fn holds(&self, n: usize) -> Option<bool> {
        let held = if self.indices.is_some() { None } else { self.source.holds(n) };
        held.or(Some(n == 0))
    }

    fn room_for_nulls(&mut self, nulls: usize, _max_bytes: usize) -> Result<()> {
        memory::room(&mut self.out, nulls)
    }

    fn spread(&mut self, validity: &Bitmap, first: usize, slots: usize, values: usize) {
        let start = self.out.len() - values;
        expand::spread(&mut self.out, start, validity, first, slots);
    }

    fn bytes_held(&self) -> usize {
        self.out.capacity() * size_of::<S::Out>()
    }

    fn finish(&mut self, nulls: Option<NullBuffer>, _slots: usize) -> Result<ArrayRef> {
        fixed_width_array(&self.data_type, std::mem::take(&mut self.out), nulls, &self.free_lists)
    }
}
