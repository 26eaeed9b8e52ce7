//! Chooses the encoding of a column chunk: which encodings are measured, and which one is written.
//!
//! This is the only place for that policy. `write::column` measures samples of the chunk with every
//! candidate encoding, compressed as it would be stored, and asks here. The cost of an encoding is
//! its bytes, and by profile the time to read them.

use crate::error::{Error, Result};
use crate::format::{Encoding, Type};

/// The aim of a writer, by which it chooses defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Profile {
    /// Small files that every current engine reads fast.
    #[default]
    Balanced,
    /// The smallest files, at the price of writing and reading time.
    Small,
    /// Files that are read fastest: smaller pages, light encodings and codecs.
    FastRead,
    /// Files whose rows are read one by one, by their numbers: small pages that begin at common
    /// rows, and encodings that are entered anywhere at little cost.
    Points,
    /// Only what readers of 2015 know: PLAIN and dictionaries, version 1 pages, SNAPPY.
    Compatible,
}

/// Whether this build reads and writes PFOR, which is experimental.
pub(crate) const HAS_PFOR: bool = cfg!(feature = "preview");

/// The encodings that are tried for values of a type, beside a dictionary.
pub(crate) fn candidates(profile: Profile, physical: Type) -> &'static [Encoding] {
    use Encoding::{
        Alp, ByteStreamSplit, DeltaBinaryPacked, DeltaByteArray, DeltaLengthByteArray, Plain, Rle,
    };
    match (profile, physical) {
        (Profile::Compatible, _) | (_, Type::Int96) => &[Plain],
        (_, Type::Boolean) => &[Plain, Rle],
        (Profile::Small, Type::Int32 | Type::Int64) => &[Plain, DeltaBinaryPacked, ByteStreamSplit],
        (_, Type::Int32 | Type::Int64) => &[Plain, DeltaBinaryPacked],
        (_, Type::Float | Type::Double) => &[Plain, ByteStreamSplit, Alp],
        (Profile::FastRead | Profile::Points, Type::ByteArray) => &[Plain, DeltaLengthByteArray],
        (_, Type::ByteArray) => &[Plain, DeltaLengthByteArray, DeltaByteArray],
        (Profile::FastRead | Profile::Points, Type::FixedLenByteArray) => &[Plain],
        (_, Type::FixedLenByteArray) => &[Plain, ByteStreamSplit, DeltaByteArray],
        _ => &[Plain],
    }
}

/// Bytes of a page of PLAIN words that are compressed: in larger pages ZSTD looks for longer
/// matches at the same level, and misses those of single numbers (10 million doubles of three
/// decimals, ZSTD 1: 59 MB in pages of 512 KiB, 38 MB in pages of 128 KiB).
pub(crate) const PLAIN_WORDS_PAGE: usize = 128 << 10;

/// Bytes of a page as it is stored, below which pages are joined: each takes some 60 bytes for its
/// header and in the page index.
pub(crate) const MIN_PAGE: usize = 3 << 10;

/// As [`MIN_PAGE`], of files whose rows are read one by one: a page is decompressed for a row.
pub(crate) const MIN_PAGE_OF_POINTS: usize = 768;

/// Maximum bytes of a page of byte strings that repeat far apart: ZSTD of level 3 finds repeats up
/// to 2 MiB away (240,000 byte strings of 1400 bytes: 5 % smaller than in pages of 690 KB).
pub(crate) const LONG_PAGE: usize = 8 << 20;

/// Relative cost of a byte in long pages, because a row that is read alone needs its whole page.
pub(crate) const LONG_PAGE_COST: f64 = 1.01;

/// Relative cost of a byte of integers in BYTE_STREAM_SPLIT, beside DELTA_BINARY_PACKED: its reader
/// decompresses all bytes of the values first (keys of 17 bits, ZSTD: 6 % fewer bytes; DuckDB takes
/// 1.4 times as long, polars 2.1 times, pyarrow 1.0 times).
pub(crate) const SPLIT_INTEGERS_COST: f64 = 1.12;

/// Relative cost of a byte of DELTA_BINARY_PACKED in long blocks, beside short ones, which most
/// writers write.
pub(crate) const LONG_BLOCKS_COST: f64 = 1.005;

/// Relative cost of a byte of indices in a layout that is not the shortest, because its reader
/// decompresses more.
pub(crate) const LAYOUT_COST: f64 = 1.03;

/// Whether the format allows this encoding for values of a type, dictionaries aside; of proposals,
/// PFOR is one with the feature `preview`.
pub fn is_legal(encoding: Encoding, physical: Type) -> bool {
    use Type::{Boolean, ByteArray, Double, FixedLenByteArray, Float, Int32, Int64};
    match encoding {
        Encoding::Plain => true,
        Encoding::Rle => physical == Boolean,
        Encoding::DeltaBinaryPacked => matches!(physical, Int32 | Int64),
        Encoding::DeltaLengthByteArray => physical == ByteArray,
        Encoding::DeltaByteArray => matches!(physical, ByteArray | FixedLenByteArray),
        Encoding::ByteStreamSplit => {
            matches!(physical, Int32 | Int64 | Float | Double | FixedLenByteArray)
        }
        Encoding::Alp => matches!(physical, Float | Double),
        Encoding::Pfor => HAS_PFOR && matches!(physical, Int32 | Int64),
        _ => false,
    }
}

/// The encodings that are written, PFOR if the build has it.
pub(super) const WRITTEN: [Encoding; 9] = [
    Encoding::Plain,
    Encoding::RleDictionary,
    Encoding::Rle,
    Encoding::DeltaBinaryPacked,
    Encoding::DeltaLengthByteArray,
    Encoding::DeltaByteArray,
    Encoding::ByteStreamSplit,
    Encoding::Alp,
    Encoding::Pfor,
];

/// Finds an encoding by its name in the specification; `DICTIONARY` and `RLE_DICTIONARY` stand for
/// a dictionary.
///
/// # Errors
/// `Usage` if no encoding has that name, or if it is one that is only read.
pub fn encoding_named(name: &str) -> Result<Encoding> {
    let wanted = name.to_ascii_uppercase();
    let wanted = if wanted == "DICTIONARY" { "RLE_DICTIONARY" } else { &wanted };
    let written = || WRITTEN.into_iter().filter(|e| HAS_PFOR || *e != Encoding::Pfor);
    written().find(|encoding| encoding.to_string() == wanted).ok_or_else(|| {
        let names: Vec<_> = written().map(|encoding| encoding.to_string()).collect();
        let names = names.join(", ");
        Error::usage(format_args!("no encoding \"{name}\" is written; there are {names}"))
    })
}

/// An encoding, and the bytes that the chunk is likely to take with it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Estimate {
    /// The encoding; RLE_DICTIONARY stands for a dictionary.
    pub encoding: Encoding,
    /// Bytes, compressed, of the whole chunk.
    pub bytes: f64,
    /// Bytes of the dictionary once it is read, if there is one.
    pub dictionary_bytes: usize,
}

impl Estimate {
    /// Its bytes, and what they cost to read: the least is the best.
    pub(crate) fn cost(&self, profile: Profile) -> f64 {
        self.bytes * (1.0 + burden(profile, self))
    }
}

/// Bytes of a dictionary that stays in the caches of a core while its indices are looked up.
const CACHED_BYTES: usize = 1 << 20;

/// Cost of reading an encoding, as a fraction of its size.
fn burden(profile: Profile, estimate: &Estimate) -> f64 {
    let (light, heavy) = match profile {
        Profile::Small => (0.0, 0.01),
        Profile::Balanced | Profile::Compatible | Profile::Points => (0.01, 0.06),
        Profile::FastRead => (0.05, 0.4),
    };
    match estimate.encoding {
        Encoding::RleDictionary if estimate.dictionary_bytes <= CACHED_BYTES => 0.0,
        Encoding::Plain | Encoding::ByteStreamSplit | Encoding::DeltaLengthByteArray => light,
        // Entries are fetched from far away.
        Encoding::RleDictionary => heavy / 2.0,
        // Less to do than for a dictionary too large for the nearest cache, which is what it
        // competes with.
        Encoding::DeltaBinaryPacked | Encoding::Alp => heavy / 2.0,
        _ => heavy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(profile: Profile, estimates: &[Estimate]) -> Option<Encoding> {
        let cost = |estimate: &&Estimate| estimate.cost(profile);
        let best = estimates.iter().min_by(|a, b| cost(a).total_cmp(&cost(b)));
        best.map(|best| best.encoding)
    }

    #[test]
    fn encodings_are_found_by_their_names() {
        assert_eq!(encoding_named("dictionary").unwrap(), Encoding::RleDictionary);
        for encoding in WRITTEN {
            let found = encoding_named(&encoding.to_string().to_ascii_lowercase());
            let is_written = HAS_PFOR || encoding != Encoding::Pfor;
            assert_eq!(found.ok(), is_written.then_some(encoding));
        }
        let refused = encoding_named("BIT_PACKED").unwrap_err();
        assert_eq!(refused.kind(), crate::error::ErrorKind::Usage);
    }

    #[test]
    fn every_candidate_is_legal() {
        for physical in [
            Type::Boolean,
            Type::Int32,
            Type::Int64,
            Type::Int96,
            Type::Float,
            Type::Double,
            Type::ByteArray,
            Type::FixedLenByteArray,
        ] {
            for profile in [
                Profile::Balanced,
                Profile::Small,
                Profile::FastRead,
                Profile::Points,
                Profile::Compatible,
            ] {
                for &encoding in candidates(profile, physical) {
                    assert!(is_legal(encoding, physical), "{encoding} of {physical}");
                }
            }
        }
    }

    #[test]
    fn a_little_smaller_does_not_pay_for_slow_reading() {
        let estimates = [
            Estimate { encoding: Encoding::Plain, bytes: 1000.0, dictionary_bytes: 0 },
            Estimate { encoding: Encoding::DeltaByteArray, bytes: 970.0, dictionary_bytes: 0 },
        ];
        assert_eq!(choose(Profile::FastRead, &estimates), Some(Encoding::Plain));
        assert_eq!(choose(Profile::Small, &estimates), Some(Encoding::DeltaByteArray));
    }

    #[test]
    fn a_dictionary_beyond_the_caches_must_save_more() {
        let of = |dictionary_bytes| {
            let dictionary =
                Estimate { encoding: Encoding::RleDictionary, bytes: 980.0, dictionary_bytes };
            let plain = Estimate { encoding: Encoding::Plain, bytes: 980.0, dictionary_bytes: 0 };
            choose(Profile::Balanced, &[plain, dictionary])
        };
        assert_eq!(of(CACHED_BYTES), Some(Encoding::RleDictionary));
        assert_eq!(of(CACHED_BYTES + 1), Some(Encoding::Plain));
    }
}
