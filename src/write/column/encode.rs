//! Encodes values: the only place where the writer matches type and encoding.

use std::ops::Range;

use super::byte_arrays::{ByteArrayValues, Ends};
use super::values::LeafValues;
use crate::encoding::delta_binary::DeltaBlocks;
use crate::encoding::rle::{self, BitWidth};
use crate::encoding::vectors::VectorWord;
use crate::encoding::{alp, delta_binary, delta_bytes, delta_length, pfor, plain, split};
use crate::error::{Error, Result};
use crate::format::Encoding;
use crate::free_lists::FreeLists;
use crate::memory;
use crate::schema::Physical;
use crate::simd::native::{Word, append_bytes_le, as_bytes_le};

/// The values of `range`, if their bytes in memory are those of PLAIN.
pub(super) fn as_plain<'v>(values: &'v LeafValues<'_>, range: Range<usize>) -> Option<&'v [u8]> {
    match values {
        LeafValues::Words32(values) => as_bytes_le(values.get(range)?),
        LeafValues::Words64(values) => as_bytes_le(values.get(range)?),
        LeafValues::Fixed { width, bytes } => bytes.get(range.start * width..range.end * width),
        _ => None,
    }
}

/// Maximum bytes that the values of `range` take in an encoding.
pub(super) fn max_len(values: &LeafValues<'_>, range: Range<usize>, encoding: Encoding) -> usize {
    let n = range.len();
    // The kernels write whole vectors.
    let plain = values.plain_len(range).saturating_add(MAX_OVERWRITTEN);
    // The headers of blocks, and of miniblocks.
    let deltas = n / 4 + 1024;
    plain.saturating_add(match encoding {
        Encoding::DeltaBinaryPacked | Encoding::DeltaLengthByteArray => deltas,
        // Prefixes and suffixes; the lengths of PLAIN pay for the first.
        Encoding::DeltaByteArray => n * size_of::<u32>() + 2 * deltas,
        // What is no decimal number is stored as it is, with its position, beside its place.
        Encoding::Alp => 4 * n + n / 8 + 1024,
        Encoding::Pfor => n / 32 + 64,
        Encoding::Rle => n / 4,
        _ => 0,
    })
}

/// Bytes that kernels write beyond what they append.
const MAX_OVERWRITTEN: usize = 128;

/// Appends the values of `range` in an encoding; DELTA_BINARY_PACKED in `blocks`.
///
/// # Errors
/// `Internal` if the format has no such encoding for the type, `Limit(Memory)` if the system has no
/// memory, `Limit(Page)` if the page takes more than 2 GiB.
pub(super) fn encode(
    values: &LeafValues<'_>,
    range: Range<usize>,
    physical: Physical,
    encoding: Encoding,
    blocks: DeltaBlocks,
    free_lists: &FreeLists,
    out: &mut Vec<u8>,
) -> Result<()> {
    memory::room(out, max_len(values, range.clone(), encoding))?;
    match (values, encoding) {
        (LeafValues::Bits(bits), Encoding::Plain) => {
            out.extend_from_slice(&bits.to_bytes(range)?);
        }
        (LeafValues::Bits(bits), Encoding::Rle) => {
            // RLE of booleans has its length before it.
            let start = out.len();
            out.extend([0; 4]);
            let n = range.len();
            rle::encode_bits_into(&bits.to_bytes(range)?, 0, n, out);
            let len = u32::try_from(out.len() - start - 4).expect("a page has less than 2 GiB");
            out[start..start + 4].copy_from_slice(&len.to_le_bytes());
        }
        (LeafValues::Words32(values), encoding) => {
            let values = values.get(range).expect("pages and samples lie within the values");
            let float = |bits: &i32| f32::from_bits(bits.cast_unsigned());
            encode_ints(values, encoding, blocks, float, out)?
                .ok_or_else(|| illegal(encoding, physical))?;
        }
        (LeafValues::Words64(values), encoding) => {
            let values = values.get(range).expect("pages and samples lie within the values");
            let float = |bits: &i64| f64::from_bits(bits.cast_unsigned());
            encode_ints(values, encoding, blocks, float, out)?
                .ok_or_else(|| illegal(encoding, physical))?;
        }
        (LeafValues::Bytes(byte_arrays), Encoding::Plain) => plain_texts(byte_arrays, range, out),
        (LeafValues::Bytes(byte_arrays), Encoding::DeltaLengthByteArray) => {
            let mut lengths = free_lists.take(range.len())?;
            byte_arrays.append_lengths(range.clone(), &mut lengths);
            delta_length::encode_pieces_into(&lengths, byte_arrays.payload_slices(range), out);
            free_lists.put_back(lengths);
        }
        (LeafValues::Bytes(byte_arrays), Encoding::DeltaByteArray) => {
            let (mut prefixes, mut suffixes) =
                (free_lists.take(range.len())?, free_lists.take(range.len())?);
            let values = byte_arrays.iter(range);
            delta_bytes::encode_all_into(values, &mut prefixes, &mut suffixes, out);
            free_lists.put_back(prefixes);
            free_lists.put_back(suffixes);
        }
        (LeafValues::Fixed { width, bytes }, encoding) => {
            let bytes = bytes
                .get(range.start * width..range.end * width)
                .expect("pages and samples lie within the values");
            encode_fixed(bytes, *width, encoding, out)?
                .ok_or_else(|| illegal(encoding, physical))?;
        }
        _ => return Err(illegal(encoding, physical)),
    }
    Ok(())
}

/// Values of `width` bytes each; `None` if the format has no such encoding for them.
fn encode_fixed(
    bytes: &[u8],
    width: usize,
    encoding: Encoding,
    out: &mut Vec<u8>,
) -> Result<Option<()>> {
    match encoding {
        Encoding::Plain => out.extend_from_slice(bytes),
        Encoding::ByteStreamSplit => split::encode_into(bytes, width, out),
        Encoding::DeltaByteArray => {
            let values = memory::collected(bytes.chunks_exact(width.max(1)))?;
            delta_bytes::encode_into(&values, out);
        }
        _ => return Ok(None),
    }
    Ok(Some(()))
}

fn plain_texts(byte_arrays: &ByteArrayValues<'_>, range: Range<usize>, out: &mut Vec<u8>) {
    match (byte_arrays, byte_arrays.segments(range.clone())) {
        (_, Some(segments)) => {
            for (bytes, ends) in segments {
                match ends {
                    Ends::Small(ends) => plain::encode_between_into(bytes, ends, out),
                    Ends::Large(ends) => plain::encode_between_into(bytes, ends, out),
                }
            }
        }
        (ByteArrayValues::Slices(slices), None) => {
            plain::encode_bytes_into(
                slices.get(range).expect("pages and samples lie within the values"),
                out,
            );
        }
        (ByteArrayValues::Segments { .. }, None) => {}
    }
}

/// Appends integers, or floats as their bits; `None` if the format has no such encoding for them.
fn encode_ints<T: delta_binary::Int + VectorWord, F: alp::Float>(
    values: &[T],
    encoding: Encoding,
    blocks: DeltaBlocks,
    float: impl Fn(&T) -> F,
    out: &mut Vec<u8>,
) -> Result<Option<()>> {
    match encoding {
        Encoding::Plain => append_bytes_le(values, out),
        Encoding::DeltaBinaryPacked => delta_binary::encode_blocks_into(values, blocks, out),
        Encoding::ByteStreamSplit => split_words(values, size_of::<T>(), out),
        Encoding::Alp => alp::encode_into(&memory::collected(values.iter().map(float))?, out)?,
        Encoding::Pfor => pfor::encode_into(values, out)?,
        _ => return Ok(None),
    }
    Ok(Some(()))
}

fn split_words<T: Word>(values: &[T], width: usize, out: &mut Vec<u8>) {
    match as_bytes_le(values) {
        Some(bytes) => split::encode_into(bytes, width, out),
        None => {
            let mut bytes = Vec::new();
            append_bytes_le(values, &mut bytes);
            split::encode_into(&bytes, width, out);
        }
    }
}

/// How indices into a dictionary are laid out in the hybrid of runs and packed values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum CodeLayout {
    /// In the bits of the largest index; runs where they save bytes.
    Runs,
    /// In the same bits, without runs: a codec may compress them better, because runs hide the
    /// rhythm of the values around them.
    Packed,
    /// In whole bytes: a codec sees equal indices as equal bytes, finds what repeats, and gives
    /// short codes to frequent ones.
    Bytes,
}

/// Appends indices into a dictionary: their bit width, then runs and packed values.
pub(super) fn encode_codes(codes: &[u32], layout: CodeLayout, out: &mut Vec<u8>) -> Result<()> {
    let width = code_width(codes.iter().copied().max().unwrap_or(0), layout);
    // Short runs among packed values have a byte more, for eight values.
    let max = (codes.len() / 8 + 1) * (width.bits() as usize + 3);
    memory::room(out, max.saturating_add(MAX_OVERWRITTEN))?;
    out.push(u8::try_from(width.bits()).map_err(|_| Error::internal("more than 32 bits"))?);
    match layout {
        CodeLayout::Packed => rle::encode_packed_into(codes, width, out),
        CodeLayout::Runs | CodeLayout::Bytes => rle::encode_into(codes, width, out),
    }
    Ok(())
}

/// The bit width of indices up to `max`.
pub(super) fn code_width(max: u32, layout: CodeLayout) -> BitWidth {
    match layout {
        CodeLayout::Runs | CodeLayout::Packed => BitWidth::for_max(max),
        // The largest number of as many bytes.
        CodeLayout::Bytes => match u32::BITS - max.leading_zeros() {
            0 => BitWidth::for_max(0),
            bits => BitWidth::for_max(u32::MAX >> (u32::BITS - bits.next_multiple_of(8))),
        },
    }
}

#[cold]
fn illegal(encoding: Encoding, physical: Physical) -> Error {
    Error::internal(format_args!("{encoding} is no encoding of {}", physical.format_type()))
}
