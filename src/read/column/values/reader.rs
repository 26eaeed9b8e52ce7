//! [`ValueReader`] decodes the values of a leaf to an Arrow array, whatever their type; with what
//! its implementations share.

use arrow_array::{ArrayRef, make_array};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use bytes::Bytes;

use crate::encoding::dictionary::Indices;
use crate::error::{Error, LimitKind, Result, Spec};
use crate::format::Encoding;
use crate::free_lists::FreeLists;
use crate::page::DictionaryPage;
use crate::simd::bitmap::Bitmap;

/// Decodes the values of a leaf into an Arrow array. A call handles a page, a block or a batch,
/// never a single value.
pub(in crate::read::column) trait ValueReader: Send {
    /// Sets the free lists that buffers are taken from.
    fn use_free_lists(&mut self, _free_lists: &FreeLists) {}

    /// Reserves capacity for this many slots.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    fn reserve(&mut self, slots: usize) -> Result<()>;

    /// Whether the dictionary must be set before any values are read, because the array points into
    /// it.
    fn wants_dictionary_first(&self) -> bool {
        false
    }

    /// Maximum bytes that are allocated for a dictionary page of `entries` entries and `byte_len`
    /// bytes: by [`ValueReader::set_dictionary`], or later while reading.
    fn dictionary_bytes(&self, entries: usize, byte_len: usize) -> usize;

    /// Takes the dictionary of the chunk, after [`ValueReader::dictionary_bytes`] were reserved.
    fn set_dictionary(&mut self, page: DictionaryPage) -> Result<()>;

    /// Takes the values of the next data page.
    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()>;

    /// Drops the data page. True if the array so far points into it.
    fn leave_page(&mut self) -> bool;

    /// Decodes the next `n` values of the page, densely, and appends them. The array may then have
    /// at most `max_bytes` bytes.
    fn read(&mut self, n: usize, max_bytes: usize) -> Result<()>;

    /// Skips the next `n` values of the page.
    fn skip(&mut self, n: usize) -> Result<()>;

    /// Like [`ValueReader::read`], but only those of the next `n` values whose bits of `selection`
    /// are set. The others need not be decoded.
    fn read_selected(&mut self, n: usize, selection: &Bitmap, max_bytes: usize) -> Result<()> {
        let mut at = 0;
        for run in selection.runs() {
            self.skip(run.start - at)?;
            self.read(run.len(), max_bytes)?;
            at = run.end;
        }
        self.skip(n - at)
    }

    /// Whether the next `n` values lie in the page as a whole. A PLAIN page may be cut off. `None`
    /// if only reading them shows it.
    fn holds(&self, _n: usize) -> Option<bool> {
        None
    }

    /// Makes room for `nulls` more slots in an array of at most `max_bytes` bytes: of values whose
    /// width the file states, a null takes as much as a value.
    ///
    /// # Errors
    /// `Limit(Memory)` if they do not fit, or the system has no memory.
    fn room_for_nulls(&mut self, nulls: usize, max_bytes: usize) -> Result<()>;

    /// Moves the last `values` values to their slots: the set bits of `validity[first..first +
    /// slots]`.
    fn spread(&mut self, validity: &Bitmap, first: usize, slots: usize, values: usize);

    /// Bytes held by the array so far.
    fn bytes_held(&self) -> usize;

    /// The array of the `slots` slots so far; the next one begins empty.
    fn finish(&mut self, nulls: Option<NullBuffer>, slots: usize) -> Result<ArrayRef>;
}

/// How many values a page holds.
#[derive(Debug, Clone, Copy)]
pub(in crate::read::column) enum Count {
    /// This many.
    Exactly(usize),
    /// At most this many: version 1 pages of nullable leaves do not state the number of nulls.
    AtMost(usize),
}

impl Count {
    /// The highest number that it can be.
    pub(in crate::read::column) fn max(self) -> usize {
        match self {
            Self::Exactly(n) | Self::AtMost(n) => n,
        }
    }

    /// The number of values, if the encoded bytes state `stated`.
    pub(in crate::read::column) fn settle(
        self,
        stated: usize,
        encoding: &'static str,
    ) -> Result<usize> {
        let wrong = |expected: &dyn std::fmt::Display| {
            Err(Error::mismatch(Spec::Encodings(encoding), "values in the page", expected, stated))
        };
        match self {
            Self::Exactly(n) if n != stated => wrong(&n),
            Self::AtMost(n) if n < stated => wrong(&format_args!("at most {n}")),
            _ => Ok(stated),
        }
    }
}

/// The indices of a page into the dictionary. Values of another encoding are given to `set_page`.
pub(in crate::read::column) fn indices_of_page(
    encoding: Encoding,
    bytes: Bytes,
    count: Count,
    set_page: impl FnOnce(Bytes) -> Result<()>,
) -> Result<Option<Indices>> {
    match encoding {
        Encoding::RleDictionary | Encoding::PlainDictionary => {
            Indices::new(bytes, count.max()).map(Some)
        }
        _ => set_page(bytes).map(|()| None),
    }
}

/// The array of fixed-width values.
pub(in crate::read::column) fn fixed_width_array<T: ArrowNativeType>(
    data_type: &DataType,
    values: Vec<T>,
    nulls: Option<NullBuffer>,
    free_lists: &FreeLists,
) -> Result<ArrayRef> {
    let data = ArrayData::builder(data_type.clone())
        .len(values.len())
        .add_buffer(free_lists.pooled(values))
        .nulls(nulls)
        .build()?;
    Ok(make_array(data))
}

/// An encoding that the format does not allow for a type, or that does not exist.
#[cold]
pub(in crate::read::column) fn illegal(
    encoding: Encoding,
    physical: impl std::fmt::Display,
) -> Error {
    match encoding {
        Encoding::Unknown(number) => Error::unsupported(
            "encoding",
            format_args!("encoding {number}, which this version does not know"),
        ),
        known => Error::malformed(
            Spec::Encodings("Supported Encodings"),
            format_args!("{known} is not an encoding of {physical}"),
        ),
    }
}

/// A data page whose values are indices, in a chunk without a dictionary.
#[cold]
pub(in crate::read::column) fn no_dictionary() -> Error {
    Error::malformed(
        Spec::Encodings("RLE_DICTIONARY"),
        "a page refers to a dictionary, and the column chunk has none",
    )
}

/// Values are read without a page, because the levels of a page without values ask for some.
#[cold]
pub(in crate::read::column) fn no_page() -> Error {
    Error::malformed(Spec::Pages, "the levels ask for values, and the page has none")
}

/// The array would take more memory than is left.
#[cold]
pub(in crate::read::column) fn over_memory_limit(wanted: u64, max_bytes: usize) -> Error {
    Error::limit(
        LimitKind::Memory,
        format_args!(
            "the values of one batch need {wanted} bytes more, {max_bytes} are left; \
             ask for fewer rows per batch, or raise Limits::memory_bytes"
        ),
    )
}
