//! The version of a reader from which on it reads a [`Feature`].
//!
//! It was found by experiment, too: files with single features were read with DuckDB 0.9, 1.0, 1.1,
//! 1.2, 1.3, 1.4, 1.5 and 2.0, polars 1.0, 1.10, 1.20, 1.31, 1.36 and 2.1, and pyarrow 12, 14, 16,
//! 17, 18, 20, 22, 24 and 26. Trap: older versions were only seen to return values, which were not
//! compared.

use std::fmt;

use super::feature::{EncodedAs, Feature};
use crate::encoding::readers::TargetReader;
use crate::format::{CompressionCodec, Encoding, LogicalType, Type};

/// A version of a reader: its first two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ReaderVersion(u16, u16);

impl fmt::Display for ReaderVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self(major, 0) if *major >= 10 => write!(f, "{major}"),
            Self(major, minor) => write!(f, "{major}.{minor}"),
        }
    }
}

/// The oldest version that was tried; `None` if only one was.
pub(super) fn oldest(reader: TargetReader) -> Option<ReaderVersion> {
    match reader {
        TargetReader::DuckDb => Some(ReaderVersion(0, 9)),
        TargetReader::Polars => Some(ReaderVersion(1, 0)),
        TargetReader::PyArrow => Some(ReaderVersion(12, 0)),
        _ => None,
    }
}

/// The oldest version of those tried that reads a feature; `None` if it is the oldest of all.
pub(super) fn since(reader: TargetReader, feature: &Feature) -> Option<ReaderVersion> {
    match reader {
        TargetReader::DuckDb => duckdb(feature),
        TargetReader::Polars => polars(feature),
        TargetReader::PyArrow => pyarrow(feature),
        _ => None,
    }
}

fn duckdb(feature: &Feature) -> Option<ReaderVersion> {
    use Feature as F;
    Some(match feature {
        F::Codec(CompressionCodec::Lz4Raw) | F::Decimal(39..) => ReaderVersion(1, 0),
        F::Codec(CompressionCodec::Brotli) => ReaderVersion(1, 1),
        F::Encoding(EncodedAs { encoding, physical, .. }) => match (encoding, physical) {
            (Encoding::ByteStreamSplit, Type::Int32 | Type::Int64) => ReaderVersion(2, 0),
            // Older ones return values as well; a change of 1.5 corrected them.
            (Encoding::DeltaByteArray, Type::FixedLenByteArray) => ReaderVersion(2, 0),
            _ => return None,
        },
        F::Geometry | F::Geography | F::Variant { .. } => ReaderVersion(2, 0),
        _ => return None,
    })
}

fn polars(feature: &Feature) -> Option<ReaderVersion> {
    use Feature as F;
    Some(match feature {
        F::Float16 | F::Map | F::MapOnlyLogical | F::MapWithoutValue => ReaderVersion(1, 10),
        F::Encoding(of) => match (of.encoding, &of.logical) {
            (Encoding::ByteStreamSplit, Some(LogicalType::Float16)) => ReaderVersion(1, 36),
            (Encoding::DeltaBinaryPacked, _) => ReaderVersion(1, 10),
            (Encoding::DeltaByteArray | Encoding::DeltaLengthByteArray, _)
                if of.hinted_dictionary =>
            {
                ReaderVersion(1, 20)
            }
            _ => return None,
        },
        F::NoPathInSchema => ReaderVersion(2, 1),
        _ => return None,
    })
}

fn pyarrow(feature: &Feature) -> Option<ReaderVersion> {
    use Feature as F;
    Some(match feature {
        F::Float16 => ReaderVersion(16, 0),
        F::Encoding(EncodedAs { encoding, physical, .. }) => match (encoding, physical) {
            (Encoding::ByteStreamSplit, Type::Float | Type::Double) => return None,
            (Encoding::ByteStreamSplit, _) => ReaderVersion(16, 0),
            (Encoding::DeltaByteArray, Type::FixedLenByteArray) => ReaderVersion(14, 0),
            _ => return None,
        },
        F::Geometry | F::Geography | F::UnknownLogicalType | F::FileReference => {
            ReaderVersion(20, 0)
        }
        F::Variant { .. } => ReaderVersion(22, 0),
        _ => return None,
    })
}
