//! The door of a leaf: physical type and conversion are matched here, once, and become a [`Column`].

use arrow_array::{ArrayRef, NullArray, make_array};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::DataType;
use bytes::Bytes;

use super::boolean::BooleanColumn;
use super::bytes::BytesColumn;
use super::dictionary::dictionary_column;
use super::fixed::{FixedBytesColumn, fixed_column};
use super::runs::run_column;
use super::words::word_column;
use crate::error::{Error, LimitKind, Result, Spec};
use crate::format::Encoding;
use crate::page::DictionaryPage;
use crate::read::options::Utf8;
use crate::read::plan::LeafPlan;
use crate::schema::Physical;
use crate::schema::convert::Conversion;
use crate::simd::bitmap::Bitmap;
use crate::spare::Spare;

/// The values of a leaf on their way to an Arrow array. One call does a page, a block or a batch; never a value.
pub(super) trait Column: Send {
    /// Lends memory that was used before.
    fn use_spare(&mut self, _spare: &Spare) {}

    /// Makes room for this many slots.
    fn reserve(&mut self, slots: usize);

    /// Whether the dictionary must come before all values, as what is made of these points into it.
    fn wants_dictionary_first(&self) -> bool {
        false
    }

    /// Bytes, at most, of what [`Column::set_dictionary`] makes of a dictionary page of so many entries and bytes, and of what reading makes of it later.
    fn dictionary_bytes(&self, entries: usize, byte_len: usize) -> usize;

    /// Takes the dictionary of the chunk, after [`Column::dictionary_bytes`] were reserved.
    fn set_dictionary(&mut self, page: DictionaryPage) -> Result<()>;

    /// Takes the values of the next data page.
    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()>;

    /// Lets go of the data page, all of whose values were read or are not wanted. Says whether what was read so far points into it.
    fn leave_page(&mut self) -> bool;

    /// Decodes the next `n` values of the page behind what is there, densely. May grow by at most `room` bytes.
    fn read(&mut self, n: usize, room: usize) -> Result<()>;

    /// Skips the next `n` values of the page.
    fn skip(&mut self, n: usize) -> Result<()>;

    /// Decodes those of the next `n` values of the page whose bits of `picks` are set, as [`Column::read`]. The others are not looked at, where that is
    /// less work.
    fn read_picked(&mut self, n: usize, picks: &Bitmap, room: usize) -> Result<()> {
        let mut at = 0;
        for run in picks.runs() {
            self.skip(run.start - at)?;
            self.read(run.len(), room)?;
            at = run.end;
        }
        self.skip(n - at)
    }

    /// Whether the next `n` values of the page are there as a whole, of a PLAIN page that may be cut off; `None` if that cannot be told without reading
    /// them.
    fn holds(&self, _n: usize) -> Option<bool> {
        None
    }

    /// Moves the last `values` values to their slots: the set bits of `validity[first..first + slots]`.
    fn spread(&mut self, validity: &Bitmap, first: usize, slots: usize, values: usize);

    /// Bytes held by the array so far.
    fn bytes_held(&self) -> usize;

    /// The array of the `slots` slots so far; the next one begins empty.
    fn finish(&mut self, nulls: Option<NullBuffer>, slots: usize) -> Result<ArrayRef>;
}

/// How many values a page holds.
#[derive(Debug, Clone, Copy)]
pub(super) enum Count {
    /// This many.
    Exactly(usize),
    /// No more than this: version 1 pages of nullable leaves do not say how many are null.
    AtMost(usize),
}

impl Count {
    /// The highest number that it can be.
    pub(super) fn most(self) -> usize {
        match self {
            Self::Exactly(n) | Self::AtMost(n) => n,
        }
    }

    /// The number of values, where `stated` is what the encoding itself says of it.
    pub(super) fn settle(self, stated: usize, encoding: &'static str) -> Result<usize> {
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

/// The column of a leaf, by what it is read as.
pub(super) fn column(plan: &LeafPlan, utf8: Utf8, carries_prefix: bool) -> Result<Box<dyn Column>> {
    match &plan.data_type {
        DataType::Dictionary(key, value) => {
            let values = plain_column(plan, value, utf8, carries_prefix)?;
            dictionary_column(key, value, values)
        }
        DataType::RunEndEncoded(ends, values) => {
            let inner = plain_column(plan, values.data_type(), utf8, carries_prefix)?;
            run_column(ends, values, inner)
        }
        other => plain_column(plan, other, utf8, carries_prefix),
    }
}

fn plain_column(
    plan: &LeafPlan,
    data_type: &DataType,
    utf8: Utf8,
    carries_prefix: bool,
) -> Result<Box<dyn Column>> {
    let physical = plan.leaf.physical;
    Ok(match plan.conversion {
        Conversion::Null => Box::new(NullColumn),
        Conversion::Boolean => Box::new(BooleanColumn::default()),
        Conversion::Bytes { layout, utf8: is_text } => {
            let check = if is_text { Some(utf8) } else { None };
            BytesColumn::boxed(physical, layout, data_type, check, carries_prefix)
        }
        Conversion::FixedBytes(width) => Box::new(FixedBytesColumn::new(width, data_type.clone())?),
        conversion => match physical {
            Physical::Int32 | Physical::Int64 | Physical::Float | Physical::Double => {
                word_column(physical, conversion, data_type)?
            }
            _ => fixed_column(physical, conversion, data_type, carries_prefix)?,
        },
    })
}

/// The array of fixed-width values.
pub(super) fn fixed_width_array<T: ArrowNativeType>(
    data_type: &DataType,
    values: Vec<T>,
    nulls: Option<NullBuffer>,
    spare: &Spare,
) -> Result<ArrayRef> {
    let data = ArrayData::builder(data_type.clone())
        .len(values.len())
        .add_buffer(spare.lend(values))
        .nulls(nulls)
        .build()?;
    Ok(make_array(data))
}

/// An encoding that the format does not allow for a type, or that does not exist.
#[cold]
pub(super) fn illegal(encoding: Encoding, physical: impl std::fmt::Display) -> Error {
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
pub(super) fn no_dictionary() -> Error {
    Error::malformed(
        Spec::Encodings("RLE_DICTIONARY"),
        "a page refers to a dictionary, and the column chunk has none",
    )
}

/// A page must be there when values are read; levels of a page without values ask for some.
#[cold]
pub(super) fn no_page() -> Error {
    Error::malformed(Spec::Pages, "the levels ask for values, and the page has none")
}

/// An empty vector with room for `n` values, whose number is a file's.
pub(super) fn vec_for<T>(n: usize) -> Result<Vec<T>> {
    let mut values = Vec::new();
    values.try_reserve_exact(n).map_err(|_| {
        let bytes = n.saturating_mul(size_of::<T>());
        Error::limit(
            LimitKind::Memory,
            format_args!("the system has no memory for the {bytes} bytes of a dictionary's table"),
        )
    })?;
    Ok(values)
}

/// The array would take more memory than is left.
#[cold]
pub(super) fn no_room(wanted: u64, room: usize) -> Error {
    Error::limit(
        LimitKind::Memory,
        format_args!(
            "the values of one batch need {wanted} bytes more, {room} are left; \
             ask for fewer rows per batch, or raise Limits::memory_bytes"
        ),
    )
}

/// Values of an UNKNOWN leaf: none.
struct NullColumn;

impl Column for NullColumn {
    fn reserve(&mut self, _slots: usize) {}

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

    fn read(&mut self, _n: usize, _room: usize) -> Result<()> {
        // Some writers store values all the same (testdata/null_type_with_values.parquet); nobody knows what they mean.
        Ok(())
    }

    fn skip(&mut self, _n: usize) -> Result<()> {
        Ok(())
    }

    fn read_picked(&mut self, _n: usize, _picks: &Bitmap, _room: usize) -> Result<()> {
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
