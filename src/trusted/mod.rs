//! Builds Arrow arrays without a second validation, and makes the few other calls that need a
//! proof.
//!
//! No function trusts its caller: it checks its preconditions, or a type whose fields are private
//! to its file guarantees them. `docs/soundness.md` explains for each why it is sound.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use arrow_array::types::ArrowDictionaryKeyType;
use arrow_array::{ArrayRef, DictionaryArray, PrimitiveArray};
use arrow_buffer::ArrowNativeType;
use arrow_ipc as ipc;
use flatbuffers::{Follow, ForwardsUOffset, Vector, Verifiable, Verifier, VerifierOptions};

#[cfg(feature = "ffi")]
pub(crate) use self::c_stream::{CStream, without_struct_offsets};
pub(crate) use self::layout_check::too_long;
pub(crate) use self::lists::ListOffsets;
pub use self::map::MappedFile;
pub(crate) use self::offsets::{Memory, Offset, OffsetStrings, StringEntries};
pub use self::text::TrustedUtf8;
pub(crate) use self::text::{Place, TextCheck};
pub(crate) use self::views::{Home, INLINE, ViewStrings};
use crate::error::{Error, Result};
use crate::simd::native::PlainOldData;

#[cfg(feature = "ffi")]
mod c_stream;
mod layout_check;
mod map;
mod text;
mod lists;
mod offsets;
mod views;

// SAFETY: any 16 bits are a valid number.
unsafe impl PlainOldData for half::f16 {
    const ZERO: Self = Self::ZERO;
}

// SAFETY: two words of 128 bits, between which nothing lies; any bits are a number.
unsafe impl PlainOldData for arrow_buffer::i256 {
    const ZERO: Self = Self::ZERO;
}

/// An array of keys into a dictionary.
///
/// `read::column::values::dictionary` sees to it that every key is one of the values. It is checked
/// here all the same: one pass over the keys costs little, and a kernel of another crate that
/// returns fewer values than it was asked for must not cause undefined behaviour.
///
/// # Errors
/// `Arrow` if a key that is not null is no index of the values.
pub(crate) fn dictionary_array<K: ArrowDictionaryKeyType>(
    keys: PrimitiveArray<K>,
    values: ArrayRef,
) -> Result<ArrayRef> {
    if !all_below(keys.values(), values.len()) {
        // Keys of nulls may have any value.
        let highest = keys.iter().flatten().map(ArrowNativeType::as_usize).max();
        if let Some(highest) = highest.filter(|highest| *highest >= values.len()) {
            return Err(beyond_values(highest, values.len()));
        }
    }
    // SAFETY: no key that is not null is negative or beyond the values, as was checked above.
    Ok(Arc::new(unsafe { DictionaryArray::<K>::new_unchecked(keys, values) }))
}

/// Whether all keys are indices of `len` values. Both bounds in one pass, so that it is done in
/// vectors.
fn all_below<T: ArrowNativeType>(keys: &[T], len: usize) -> bool {
    let Some(first) = keys.first() else { return true };
    let (mut lowest, mut highest) = (*first, *first);
    for key in keys {
        lowest = if *key < lowest { *key } else { lowest };
        highest = if *key > highest { *key } else { highest };
    }
    // A negative index exceeds every length.
    lowest.as_usize() < len && highest.as_usize() < len
}

#[cold]
fn beyond_values(key: usize, values: usize) -> Error {
    let text = format!("a dictionary of {values} values was given the key {key}");
    arrow_schema::ArrowError::InvalidArgumentError(text).into()
}

/// The tables of a flatbuffer that holds an Arrow schema: each is verified before it is read, and
/// all of them together at a cost that the length of the flatbuffer bounds.
///
/// Tables may be shared, so that few bytes stand for many. Those of a usual flatbuffer are verified
/// once each; when the budget is spent, no more tables are returned. A table that is not valid is
/// not returned, and halves the budget of those after it.
pub(crate) struct IpcTables<'a> {
    bytes: &'a [u8],
    /// It counts what it visits, over all that it verifies. `None` when the budget is spent.
    verifier: RefCell<Option<Verifier<'a, 'a>>>,
    /// The budgets after the next failures.
    budgets: Cell<&'a [VerifierOptions]>,
}

impl<'a> IpcTables<'a> {
    /// The tables of `bytes`; `budgets` are those of [`ipc_budgets`].
    pub(crate) fn new(bytes: &'a [u8], budgets: &'a [VerifierOptions]) -> Self {
        let tables = Self { bytes, verifier: RefCell::new(None), budgets: Cell::new(budgets) };
        tables.verifier.replace(tables.next_verifier());
        tables
    }

    fn next_verifier(&self) -> Option<Verifier<'a, 'a>> {
        let (budget, rest) = self.budgets.get().split_first()?;
        self.budgets.set(rest);
        Some(Verifier::new(budget, self.bytes))
    }

    /// The field to which the reference at `at` points, if it is sound.
    pub(crate) fn field(&self, at: usize) -> Option<ipc::Field<'a>> {
        self.verified::<ForwardsUOffset<ipc::Field<'_>>>(at)
    }

    /// The key-values to which the reference at `at` points, if they are sound.
    pub(crate) fn key_values(
        &self,
        at: usize,
    ) -> Option<Vector<'a, ForwardsUOffset<ipc::KeyValue<'a>>>> {
        self.verified::<ForwardsUOffset<Vector<'_, ForwardsUOffset<ipc::KeyValue<'_>>>>>(at)
    }

    /// Follows the reference at `at` after all that it leads to was verified.
    fn verified<T: Verifiable + Follow<'a>>(&self, at: usize) -> Option<T::Inner> {
        let mut slot = self.verifier.try_borrow_mut().ok()?;
        // A verifier that has failed has lost count of its depth: it is not used again.
        let mut verifier = slot.take()?;
        if let Err(error) = T::run_verifier(&mut verifier, at) {
            use flatbuffers::InvalidFlatbuffer::{ApparentSizeTooLarge, TooManyTables};
            if !matches!(error, ApparentSizeTooLarge | TooManyTables) {
                *slot = self.next_verifier();
            }
            return None;
        }
        *slot = Some(verifier);
        // SAFETY: the verifier, which was made for these bytes, has just found that a valid value
        // of this type is at `at`.
        Some(unsafe { T::follow(self.bytes, at) })
    }
}

/// Budget for visiting the tables of a flatbuffer of `len` bytes: each byte is visited a few times,
/// as tables share the lists of where their fields are. If the flatbuffer is not valid within a
/// budget, the next one counts, which is half as large.
pub(crate) fn ipc_budgets(len: usize) -> [VerifierOptions; 8] {
    std::array::from_fn(|failures| VerifierOptions {
        max_tables: len >> failures,
        max_apparent_size: len.saturating_mul(IPC_VISITS) >> failures,
        ..VerifierOptions::default()
    })
}

/// How often each byte of a flatbuffer may be visited. A field of the shortest name is about 60
/// bytes, for which about 150 are counted; one of a list or a struct has the same.
const IPC_VISITS: usize = 8;

/// Reads `len` bytes at `offset` into `out`, which is emptied first; memory that is overwritten
/// anyway is not zeroed.
///
/// # Errors
/// The error of the operating system; `UnexpectedEof` if the file is shorter.
pub(crate) fn read_at(
    file: &std::fs::File,
    offset: u64,
    len: usize,
    out: &mut Vec<u8>,
) -> std::io::Result<()> {
    out.clear();
    out.try_reserve_exact(len).map_err(|_| std::io::ErrorKind::OutOfMemory)?;
    platform::read_at(file, offset, len, out)
}

#[cfg(unix)]
mod platform {
    use std::fs::File;
    use std::io;

    use rustix::io::{pread, retry_on_intr};

    pub(super) fn read_at(
        file: &File,
        offset: u64,
        len: usize,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        while out.len() < len {
            let left = len - out.len();
            let at = offset.saturating_add(out.len() as u64);
            let spare = &mut out.spare_capacity_mut()[..left];
            let read = retry_on_intr(|| pread(file, &mut *spare, at).map(|(read, _)| read.len()))?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            // SAFETY: `pread` gave the first `read` bytes after the length as initialised ones,
            // and they are within the capacity.
            unsafe { out.set_len(out.len() + read) };
        }
        Ok(())
    }
}

#[cfg(windows)]
mod platform {
    use std::fs::File;
    use std::io;
    use std::os::windows::fs::FileExt;

    pub(super) fn read_at(
        file: &File,
        offset: u64,
        len: usize,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        out.resize(len, 0);
        let mut done = 0;
        while done < len {
            // It moves the position that handles share, and does not go by it.
            match file.seek_read(&mut out[done..], offset.saturating_add(done as u64)) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(read) => done += read,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

#[cfg(not(any(unix, windows)))]
mod platform {
    use std::fs::File;
    use std::io::{self, Read, Seek, SeekFrom};
    use std::sync::{Mutex, PoisonError};

    /// The position is shared between handles of one open file, so that one read goes after the
    /// other.
    static POSITION: Mutex<()> = Mutex::new(());

    pub(super) fn read_at(
        file: &File,
        offset: u64,
        len: usize,
        out: &mut Vec<u8>,
    ) -> io::Result<()> {
        let _alone = POSITION.lock().unwrap_or_else(PoisonError::into_inner);
        let mut file = file;
        file.seek(SeekFrom::Start(offset))?;
        let read = file.take(len as u64).read_to_end(out)?;
        if read == len { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }
}

#[cfg(test)]
mod tests {
    use arrow_buffer::NullBuffer;

    use super::*;
    use crate::error::ErrorKind;
    use arrow_array::types::{Int8Type, UInt32Type};
    use arrow_array::{Array, Int8Array, Int32Array, UInt32Array};

    #[test]
    fn a_key_beyond_the_values_is_an_error_whatever_was_promised() {
        let values: ArrayRef = Arc::new(Int32Array::from(vec![5, 6]));
        let of = |keys: Vec<Option<i8>>| {
            dictionary_array::<Int8Type>(Int8Array::from(keys), values.clone())
        };
        assert_eq!(of(vec![Some(0), None, Some(1)]).unwrap().len(), 3);
        for wrong in [2, -1, i8::MIN] {
            let error = of(vec![Some(0), Some(wrong)]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Arrow, "{error}");
        }
        // What stands where nothing is may be anything.
        let nulls = NullBuffer::from(vec![false, true]);
        let keys = Int8Array::new(vec![9, 1].into(), Some(nulls));
        assert!(dictionary_array::<Int8Type>(keys, values).is_ok());
        let none: ArrayRef = Arc::new(Int32Array::from(Vec::<i32>::new()));
        let keys = UInt32Array::from(vec![None, None]);
        assert!(dictionary_array::<UInt32Type>(keys, none.clone()).is_ok());
        let keys = UInt32Array::from(vec![0]);
        assert!(dictionary_array::<UInt32Type>(keys, none).is_err());
    }

    #[test]
    fn reads_by_offset_go_side_by_side_and_end_with_the_file() {
        use std::io::Write;
        let mut file = tempfile::tempfile().unwrap();
        let bytes: Vec<u8> = (0..1u32 << 20).flat_map(|i| i.to_le_bytes()).collect();
        file.write_all(&bytes).unwrap();
        let file = &file;
        std::thread::scope(|scope| {
            for thread in 0..4u64 {
                let bytes = &bytes;
                scope.spawn(move || {
                    let mut out = vec![1; 7];
                    for i in 0..200 {
                        let at = (thread * 7919 + i * 20_011) as usize;
                        read_at(file, at as u64, 4099, &mut out).unwrap();
                        assert_eq!(out, bytes[at..at + 4099]);
                    }
                });
            }
        });
        let end = bytes.len() as u64;
        let mut out = Vec::new();
        read_at(file, end - 3, 3, &mut out).unwrap();
        assert_eq!(out, bytes[bytes.len() - 3..]);
        read_at(file, end, 0, &mut out).unwrap();
        assert!(out.is_empty());
        for (at, len) in [(end - 3, 4), (end, 1), (u64::MAX - 1, 3)] {
            let error = read_at(file, at, len, &mut out).unwrap_err();
            let kinds = [std::io::ErrorKind::UnexpectedEof, std::io::ErrorKind::InvalidInput];
            assert!(kinds.contains(&error.kind()), "{error}");
        }
    }

    #[test]
    fn zero_is_all_zero_bits() {
        assert_eq!(<half::f16 as PlainOldData>::ZERO.to_bits(), 0);
        assert_eq!(<arrow_buffer::i256 as PlainOldData>::ZERO.to_le_bytes(), [0; 32]);
    }
}
