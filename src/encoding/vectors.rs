//! Pages of vectors that are decoded one by one: the layout that ALP and PFOR share.
//!
//! Spec: AlpEncoding.md, PforEncoding.md. Used by `encoding::alp` and `encoding::pfor`.
//!
//! ```text
//! page     = header (7 bytes), offset of each vector u32, counted from the first offset, vector*
//! ```

use bytes::Bytes;

use super::too_few_values;
use crate::bytes::Cursor;
use crate::error::{Error, LimitKind, Result, Spec};
use crate::memory;
use crate::simd::Isa;
use crate::simd::native::{Native, Word, append_bytes_le};
use crate::simd::pack::{pack_u32_with, pack_u64_with};
use crate::simd::unpack::{unpack_u32, unpack_u64};

/// The words of a vector: `i32` or `i64`.
pub(crate) trait VectorWord: Native + Word + Ord {
    /// Bits of the type.
    const BITS: u32;

    /// The word at the start of little-endian bytes.
    fn from_le(bytes: &[u8]) -> Option<Self>;

    /// Reads a word.
    ///
    /// # Errors
    /// `Malformed` if the bytes end early.
    fn read(cursor: &mut Cursor<'_>) -> Result<Self>;

    /// Appends `n` words: packed differences to a frame of reference, each converted by `convert`.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    fn unpack(
        packed: Packed<'_, Self>,
        n: usize,
        convert: impl Fn(Self) -> Self,
        out: &mut Vec<Self>,
    ) -> Result<()>;

    /// Appends the packed differences of words to the frame.
    fn pack(isa: Isa, words: &[Self], frame: Self, width: u32, out: &mut Vec<u8>);

    /// The bits that `max - least` takes, wrapping.
    fn width(least: Self, max: Self) -> u32;

    /// The sum, wrapping.
    fn plus(self, other: Self) -> Self;

    /// The difference, wrapping.
    fn minus(self, other: Self) -> Self;
}

/// Packed differences to a frame of reference.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packed<'b, W> {
    pub bytes: &'b [u8],
    /// Bits of a difference.
    pub width: u32,
    pub frame: W,
}

impl<'b, W: VectorWord> Packed<'b, W> {
    /// Takes the differences of `n` values.
    ///
    /// # Errors
    /// `Malformed` if the type has fewer bits, or the bytes end early.
    pub(super) fn take(
        cursor: &mut Cursor<'b>,
        n: usize,
        width: u8,
        frame: W,
        spec: Spec,
    ) -> Result<Self> {
        let width = u32::from(width);
        if width > W::BITS {
            let expected = format_args!("at most {}", W::BITS);
            return Err(Error::mismatch(spec, "bit width", expected, width));
        }
        Ok(Self { bytes: cursor.take((n * width as usize).div_ceil(8))?, width, frame })
    }
}

macro_rules! vector_word {
    ($int:ty, $unpack:ident, $pack:ident) => {
        impl VectorWord for $int {
            const BITS: u32 = <$int>::BITS;

            fn from_le(bytes: &[u8]) -> Option<Self> {
                bytes.first_chunk().map(|bytes| Self::from_le_bytes(*bytes))
            }

            fn read(cursor: &mut Cursor<'_>) -> Result<Self> {
                Ok(Self::from_le_bytes(cursor.array()?))
            }

            fn unpack(
                packed: Packed<'_, Self>,
                n: usize,
                convert: impl Fn(Self) -> Self,
                out: &mut Vec<Self>,
            ) -> Result<()> {
                let mut deltas = memory::vec_for(n.next_multiple_of(32))?;
                memory::room(out, n)?;
                $unpack(packed.bytes, packed.width, n, &mut deltas);
                let frame = packed.frame;
                out.extend(
                    deltas.iter().map(|delta| convert(delta.cast_signed().wrapping_add(frame))),
                );
                Ok(())
            }

            fn pack(isa: Isa, words: &[Self], frame: Self, width: u32, out: &mut Vec<u8>) {
                let mut deltas = [0; 256];
                for block in words.chunks(deltas.len()) {
                    for (delta, word) in deltas.iter_mut().zip(block) {
                        *delta = word.wrapping_sub(frame).cast_unsigned();
                    }
                    $pack(isa, deltas.get(..block.len()).expect("no longer"), width, out);
                }
            }

            fn width(least: Self, max: Self) -> u32 {
                Self::BITS - max.wrapping_sub(least).leading_zeros()
            }

            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }

            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
        }
    };
}
vector_word!(i32, unpack_u32, pack_u32_with);
vector_word!(i64, unpack_u64, pack_u64_with);

/// An encoding whose pages are vectors.
pub(crate) trait VectorEncoding {
    type Word: VectorWord;
    const SPEC: Spec;

    /// Reads the header of a page.
    ///
    /// # Errors
    /// `Malformed` if it breaks a rule, `Unsupported` if it names an unknown mode.
    fn header(cursor: &mut Cursor<'_>) -> Result<Header>;

    /// Appends the `n` values of a vector: of floats, the bits.
    ///
    /// # Errors
    /// `Malformed` if the vector breaks a rule.
    fn decode(vector: &mut Cursor<'_>, n: usize, out: &mut Vec<Self::Word>) -> Result<()>;
}

/// The facts that the header of a page states.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Header {
    /// The logarithm of the values of a vector to the base 2.
    pub log_vector: u8,
    /// The values of the page.
    pub n: usize,
}

/// Bytes of the header; offsets are counted from its end.
pub(super) const HEADER: usize = 7;

/// The format's default; vectors this long stay in the cache.
pub(super) const LOG_VECTOR: u8 = 10;
pub(super) const VECTOR: usize = 1 << LOG_VECTOR;

/// The number of values that a page states.
///
/// # Errors
/// As [`VectorEncoding::header`].
pub(crate) fn stated_len<E: VectorEncoding>(bytes: &[u8]) -> Result<usize> {
    Ok(E::header(&mut Cursor::new(bytes, E::SPEC))?.n)
}

/// Decodes the values of a page; floats as bits, which is what an Arrow buffer wants.
#[derive(Debug)]
pub(crate) struct Decoder<E: VectorEncoding> {
    bytes: Bytes,
    log_vector: u8,
    /// Values in all.
    n: usize,
    /// The next value.
    next: usize,
    /// The vector that `next` lies in, if some of it was read.
    vector: Vec<E::Word>,
    vector_index: Option<usize>,
}

impl<E: VectorEncoding> Decoder<E> {
    /// A decoder of `n` values.
    ///
    /// # Errors
    /// As [`VectorEncoding::header`]; `Malformed` if the page states another number of values, or
    /// its offsets are cut.
    pub(crate) fn new(bytes: Bytes, n: usize) -> Result<Self> {
        let header = E::header(&mut Cursor::new(&bytes, E::SPEC))?;
        let log_vector = header.log_vector;
        if !(3..=15).contains(&log_vector) {
            return Err(Error::mismatch(E::SPEC, "log_vector_size", "3 to 15", log_vector));
        }
        if header.n != n {
            return Err(Error::mismatch(E::SPEC, "num_elements", n, header.n));
        }
        let offsets_len = n.div_ceil(1 << log_vector).saturating_mul(size_of::<u32>());
        let found = bytes.len() - HEADER;
        if found < offsets_len {
            return Err(Error::mismatch(E::SPEC, "bytes of the offsets", offsets_len, found));
        }
        let decoder =
            Self { bytes, log_vector, n, next: 0, vector: Vec::new(), vector_index: None };
        if n > 0 && decoder.offset(0)? != offsets_len {
            return Err(Error::mismatch(E::SPEC, "first offset", offsets_len, decoder.offset(0)?));
        }
        Ok(decoder)
    }

    /// Appends the next `n` values.
    ///
    /// # Errors
    /// `Malformed` if there are fewer, or a vector breaks a rule; `out` is as it was then.
    pub(crate) fn read(&mut self, n: usize, out: &mut Vec<E::Word>) -> Result<()> {
        let before = out.len();
        let result = self.read_all(n, out);
        if result.is_err() {
            out.truncate(before);
        }
        result
    }

    fn read_all(&mut self, n: usize, out: &mut Vec<E::Word>) -> Result<()> {
        let end = self.end(n)?;
        while self.next < end {
            let index = self.next >> self.log_vector;
            let start = index << self.log_vector;
            let len = (self.n - start).min(1 << self.log_vector);
            let until = end.min(start + len);
            if self.next == start && until == start + len {
                self.decode_vector(index, len, out)?;
            } else {
                if self.vector_index != Some(index) {
                    // If it is broken, none is there.
                    self.vector_index = None;
                    let mut vector = std::mem::take(&mut self.vector);
                    vector.clear();
                    self.decode_vector(index, len, &mut vector)?;
                    self.vector = vector;
                    self.vector_index = Some(index);
                }
                let wanted = self.vector.get(self.next - start..until - start);
                out.extend_from_slice(wanted.expect("a vector has all of its values"));
            }
            self.next = until;
        }
        Ok(())
    }

    /// Skips the next `n` values: whole vectors are not looked at.
    ///
    /// # Errors
    /// `Malformed` if there are fewer.
    pub(crate) fn skip(&mut self, n: usize) -> Result<()> {
        self.next = self.end(n)?;
        Ok(())
    }

    fn end(&self, n: usize) -> Result<usize> {
        let left = self.n - self.next;
        if n > left {
            return Err(too_few_values(E::SPEC, n, left));
        }
        Ok(self.next + n)
    }

    /// The offset of a vector, counted from the end of the header.
    fn offset(&self, index: usize) -> Result<usize> {
        let mut cursor = Cursor::new(&self.bytes, E::SPEC);
        cursor.skip(HEADER + index * size_of::<u32>())?;
        Ok(cursor.u32()? as usize)
    }

    fn decode_vector(&self, index: usize, n: usize, out: &mut Vec<E::Word>) -> Result<()> {
        let body = self.bytes.get(HEADER..).expect("the header was read");
        let start = self.offset(index)?;
        let end = if (index + 1) << self.log_vector < self.n {
            self.offset(index + 1)?
        } else {
            body.len()
        };
        let Some(vector) = body.get(start..end) else {
            return Err(Error::mismatch(
                E::SPEC,
                "offsets of a vector",
                format_args!("ascending, up to {}", body.len()),
                format_args!("{start} to {end}"),
            ));
        };
        let mut cursor = Cursor::new(vector, E::SPEC);
        E::decode(&mut cursor, n, out)?;
        if !cursor.is_empty() {
            let expected = cursor.position();
            return Err(Error::mismatch(E::SPEC, "bytes of a vector", expected, vector.len()));
        }
        Ok(())
    }
}

/// Values that do not fit the packed bits: their positions in the vector, and they themselves.
#[derive(Debug, Clone, Copy)]
pub(super) struct Exceptions<'b> {
    positions: &'b [u8],
    values: &'b [u8],
    spec: Spec,
}

impl<'b> Exceptions<'b> {
    /// Takes `count` exceptions of a vector of `n` words of type `W`.
    ///
    /// # Errors
    /// `Malformed` if they are more than the words, or the bytes end early.
    pub(super) fn read<W: VectorWord>(
        cursor: &mut Cursor<'b>,
        count: usize,
        n: usize,
        spec: Spec,
    ) -> Result<Self> {
        if count > n {
            return Err(Error::mismatch(spec, "exceptions", format_args!("at most {n}"), count));
        }
        let positions = cursor.take(count * size_of::<u16>())?;
        let values = cursor.take(count * size_of::<W>())?;
        Ok(Self { positions, values, spec })
    }

    /// Puts them in their places.
    ///
    /// # Errors
    /// `Malformed` if a position lies outside the vector.
    pub(super) fn patch<W: VectorWord>(self, vector: &mut [W]) -> Result<()> {
        let (positions, _) = self.positions.as_chunks::<2>();
        for (position, value) in positions.iter().zip(self.values.chunks_exact(size_of::<W>())) {
            let position = usize::from(u16::from_le_bytes(*position));
            let n = vector.len();
            let (Some(slot), Some(value)) = (vector.get_mut(position), W::from_le(value)) else {
                return Err(Error::mismatch(
                    self.spec,
                    "position of an exception",
                    format_args!("below {n}"),
                    position,
                ));
            };
            *slot = value;
        }
        Ok(())
    }
}

/// Appends a page of values in vectors of 1,024, which `vector` appends one by one.
///
/// # Errors
/// `Limit(Page)` if the page takes more than 2 GiB: exceptions take more than PLAIN does.
pub(super) fn encode_into<T>(
    modes: [u8; 3],
    values: &[T],
    out: &mut Vec<u8>,
    vector: impl FnMut(&[T], &mut Vec<u8>),
) -> Result<()> {
    encode_within(i32::MAX, modes, values, out, vector)
}

/// As [`encode_into`], with at most `max` values, and bytes before the last vector.
fn encode_within<T>(
    max: i32,
    modes: [u8; 3],
    values: &[T],
    out: &mut Vec<u8>,
    mut vector: impl FnMut(&[T], &mut Vec<u8>),
) -> Result<()> {
    let within = |n: usize| i32::try_from(n).ok().filter(|n| *n <= max).ok_or_else(too_large);
    let n = within(values.len())?;
    out.extend_from_slice(&modes);
    append_bytes_le(&[n], out);
    let start = out.len();
    let vectors = values.len().div_ceil(VECTOR);
    out.resize(start + vectors * size_of::<u32>(), 0);
    for (i, values) in values.chunks(VECTOR).enumerate() {
        let offset = within(out.len() - start)?;
        let at = start + i * size_of::<u32>();
        if let Some(slot) = out.get_mut(at..at + size_of::<u32>()) {
            slot.copy_from_slice(&offset.to_le_bytes());
        }
        vector(values, out);
    }
    Ok(())
}

#[cold]
fn too_large() -> Error {
    Error::limit(LimitKind::Page, "a page takes more than 2 GiB; write fewer rows per page")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn a_page_of_more_than_its_offsets_count_is_refused() {
        let copy = |vector: &[u8], out: &mut Vec<u8>| out.extend_from_slice(vector);
        let values = vec![7; 3 * VECTOR];
        // The third vector begins after three offsets and two vectors.
        let needed = i32::try_from(3 * size_of::<u32>() + 2 * VECTOR).unwrap();
        for (max, fits) in [(needed.max(3 * VECTOR as i32), true), (3 * VECTOR as i32 - 1, false)] {
            let encoded = encode_within(max, [0; 3], &values, &mut Vec::new(), copy);
            let kind = encoded.map_err(|e| e.kind());
            let expected = if fits { Ok(()) } else { Err(ErrorKind::Limit(LimitKind::Page)) };
            assert_eq!(kind, expected, "{max}");
        }
        let twice = |vector: &[u8], out: &mut Vec<u8>| out.extend([vector, vector].concat());
        let encoded = encode_within(3 * VECTOR as i32, [0; 3], &values, &mut Vec::new(), twice);
        assert_eq!(encoded.unwrap_err().kind(), ErrorKind::Limit(LimitKind::Page));
    }
}
