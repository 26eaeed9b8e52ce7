//! [`TargetReader`] lists which encodings current readers decode, by physical and logical type. No
//! other module knows that.
//!
//! Spec: Encodings.md says what is legal. Some readers refuse some legal files. The table was found
//! by experiment: for each Arrow type, encoding and page version, a file was read with each of the
//! readers, column by column; its columns were with and without nulls, all null, constant, in lists
//! and dictionaries. Trap: a reader may decode an encoding for one logical type and not for another
//! of the same physical type.

use std::fmt;
use std::str::FromStr;

use super::choose::HAS_PFOR;
use crate::error::{Error, Result};
use crate::format::{Encoding, IntType, LogicalType, Type};

/// A reader that files are written for; see
/// [`WriteOptions::with_readers`](crate::WriteOptions::with_readers).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TargetReader {
    /// DuckDB 2.0: no BYTE_STREAM_SPLIT of FIXED_LEN_BYTE_ARRAY.
    DuckDb,
    /// polars 2.1: FIXED_LEN_BYTE_ARRAY only as PLAIN and with a dictionary.
    Polars,
    /// pyarrow 26: all encodings but ALP and PFOR; columns that are dictionaries in the Arrow
    /// schema only as PLAIN and with a dictionary, if they hold strings or binary.
    PyArrow,
    /// parquet-java 1.17: all encodings but ALP and PFOR.
    ParquetJava,
    /// Spark 4.3: no BYTE_STREAM_SPLIT of unsigned integers of 32 and 64 bits.
    Spark,
    /// Spark 4.3 without its vectorized reader (`spark.sql.parquet.enableVectorizedReader` is
    /// false): all encodings but ALP and PFOR.
    SparkRows,
    /// The `parquet` crate 60 of arrow-rs: all encodings but ALP and PFOR.
    ArrowRs,
    /// This library: all encodings, PFOR with the feature `preview`.
    Marquetry,
}

impl TargetReader {
    /// All readers.
    pub const ALL: [Self; 8] = [
        Self::DuckDb,
        Self::Polars,
        Self::PyArrow,
        Self::ParquetJava,
        Self::Spark,
        Self::SparkRows,
        Self::ArrowRs,
        Self::Marquetry,
    ];

    /// The name that [`str::parse`] accepts.
    pub fn name(self) -> &'static str {
        match self {
            Self::DuckDb => "duckdb",
            Self::Polars => "polars",
            Self::PyArrow => "pyarrow",
            Self::ParquetJava => "parquet-java",
            Self::Spark => "spark",
            Self::SparkRows => "spark-rows",
            Self::ArrowRs => "arrow-rs",
            Self::Marquetry => "marquetry",
        }
    }

    /// The version that was tried.
    pub fn version(self) -> &'static str {
        match self {
            Self::DuckDb => "2.0",
            Self::Polars => "2.1",
            Self::PyArrow => "26",
            Self::ParquetJava => "1.17",
            Self::Spark | Self::SparkRows => "4.3",
            Self::ArrowRs => "60",
            Self::Marquetry => env!("CARGO_PKG_VERSION"),
        }
    }

    /// Whether the reader decodes values of this type in this encoding; RLE_DICTIONARY stands for a
    /// dictionary.
    pub fn reads(self, encoding: Encoding, values: &ValueType<'_>) -> bool {
        !unread_by(encoding, values).contains(&self)
    }
}

/// The name and the version that was tried.
impl fmt::Display for TargetReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::DuckDb => "DuckDB",
            Self::Polars => "polars",
            Self::PyArrow => "pyarrow",
            Self::ParquetJava => "parquet-java",
            Self::Spark => "Spark",
            Self::SparkRows => "Spark by rows",
            Self::ArrowRs => "arrow-rs",
            Self::Marquetry => "marquetry",
        };
        write!(f, "{name} {}", self.version())
    }
}

impl FromStr for TargetReader {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|reader| reader.name() == name).ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::usage(format_args!("no reader \"{name}\" is known; there are {names}"))
        })
    }
}

/// The types of a leaf, by which a reader decodes it or refuses it.
#[derive(Debug, Clone, Copy)]
#[non_exhaustive]
pub struct ValueType<'a> {
    /// The physical type.
    pub physical: Type,
    /// The logical type.
    pub logical: Option<&'a LogicalType>,
    /// Whether the file says, under `ARROW:schema`, that the leaf is a dictionary.
    pub hinted_dictionary: bool,
}

impl<'a> ValueType<'a> {
    /// The type of a leaf that the file does not declare to be a dictionary.
    pub const fn new(physical: Type, logical: Option<&'a LogicalType>) -> Self {
        Self { physical, logical, hinted_dictionary: false }
    }

    /// Sets whether the file says, under `ARROW:schema`, that the leaf is a dictionary.
    #[must_use]
    pub const fn with_hinted_dictionary(mut self, hinted_dictionary: bool) -> Self {
        self.hinted_dictionary = hinted_dictionary;
        self
    }
}

/// The readers that refuse values of this type in this encoding. All of them, if the format does
/// not allow the encoding for the type, or has deprecated it.
fn unread_by(encoding: Encoding, values: &ValueType<'_>) -> &'static [TargetReader] {
    use Encoding as E;
    use TargetReader::{DuckDb, Polars, PyArrow, Spark};
    use Type::{Boolean, ByteArray, Double, FixedLenByteArray, Float, Int32, Int64};
    let is_decimal = matches!(values.logical, Some(LogicalType::Decimal(_)));
    match (encoding, values.physical) {
        (E::Plain | E::RleDictionary, _) => &[],
        (E::Rle, Boolean) => &[],
        (E::DeltaBinaryPacked, Int32 | Int64) => &[],
        // pyarrow: "DecodeArrow of DictAccumulator for DeltaByteArrayDecoder" is not implemented.
        (E::DeltaLengthByteArray | E::DeltaByteArray, ByteArray) if values.hinted_dictionary => {
            &[PyArrow]
        }
        // DuckDB: "only supported for string/blob data". Spark: decimals in BYTE_ARRAY in no
        // encoding, if there are few digits.
        (E::DeltaLengthByteArray, ByteArray) if is_decimal => &[DuckDb, Spark],
        (E::DeltaByteArray, ByteArray) if is_decimal => &[Spark],
        (E::DeltaLengthByteArray | E::DeltaByteArray, ByteArray) => &[],
        // polars: "Decoding FixedLenByteArray(16) "DeltaByteArray"-encoded" is not supported.
        (E::DeltaByteArray, FixedLenByteArray) => &[Polars],
        // "only supported for FLOAT, DOUBLE, INT32 or INT64 data". polars reads FLOAT16.
        (E::ByteStreamSplit, FixedLenByteArray) => match values.logical {
            Some(LogicalType::Float16) => &[DuckDb],
            _ => &[DuckDb, Polars],
        },
        // Spark: the vectorized reader of the encoding has no `readUnsignedIntegers` and no
        // `readUnsignedLongs`.
        (E::ByteStreamSplit, Int32 | Int64) => match values.logical {
            Some(LogicalType::Integer(IntType { bit_width: 32 | 64, is_signed: false })) => {
                &[Spark]
            }
            _ => &[],
        },
        (E::ByteStreamSplit, Float | Double) => &[],
        // DuckDB and parquet-java refuse the whole file: the number of the encoding is unknown.
        (E::Alp, Float | Double) => &OTHERS,
        // As of ALP, the number is unknown to them: not tried, as it is a proposal.
        (E::Pfor, Int32 | Int64) if HAS_PFOR => &OTHERS,
        _ => &TargetReader::ALL,
    }
}

/// All readers but this library.
const OTHERS: [TargetReader; 7] = [
    TargetReader::DuckDb,
    TargetReader::Polars,
    TargetReader::PyArrow,
    TargetReader::ParquetJava,
    TargetReader::Spark,
    TargetReader::SparkRows,
    TargetReader::ArrowRs,
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding::choose::WRITTEN;
    use crate::format::DecimalType;

    fn read_by_all(physical: Type, logical: Option<LogicalType>, dictionary: bool) -> String {
        let values =
            ValueType { physical, logical: logical.as_ref(), hinted_dictionary: dictionary };
        let read = |e: &Encoding| TargetReader::ALL.iter().all(|reader| reader.reads(*e, &values));
        let names: Vec<_> =
            WRITTEN.iter().filter(|e| read(e)).map(|encoding| encoding.to_string()).collect();
        names.join(" ")
    }

    #[test]
    fn what_all_of_them_read() {
        let unsigned =
            |bit_width| Some(LogicalType::Integer(IntType { bit_width, is_signed: false }));
        let decimal = Some(LogicalType::Decimal(DecimalType { scale: 2, precision: 20 }));
        for (physical, logical, dictionary, expected) in [
            (Type::Boolean, None, false, "PLAIN RLE_DICTIONARY RLE"),
            (
                Type::Int32,
                None,
                false,
                "PLAIN RLE_DICTIONARY DELTA_BINARY_PACKED BYTE_STREAM_SPLIT",
            ),
            (
                Type::Int32,
                unsigned(16),
                true,
                "PLAIN RLE_DICTIONARY DELTA_BINARY_PACKED BYTE_STREAM_SPLIT",
            ),
            (Type::Int32, unsigned(32), false, "PLAIN RLE_DICTIONARY DELTA_BINARY_PACKED"),
            (Type::Int64, unsigned(64), false, "PLAIN RLE_DICTIONARY DELTA_BINARY_PACKED"),
            (Type::Int96, None, false, "PLAIN RLE_DICTIONARY"),
            (Type::Double, None, false, "PLAIN RLE_DICTIONARY BYTE_STREAM_SPLIT"),
            (
                Type::ByteArray,
                Some(LogicalType::String),
                false,
                "PLAIN RLE_DICTIONARY DELTA_LENGTH_BYTE_ARRAY DELTA_BYTE_ARRAY",
            ),
            (Type::ByteArray, Some(LogicalType::String), true, "PLAIN RLE_DICTIONARY"),
            (Type::ByteArray, decimal.clone(), false, "PLAIN RLE_DICTIONARY"),
            (Type::FixedLenByteArray, decimal, false, "PLAIN RLE_DICTIONARY"),
            (Type::FixedLenByteArray, Some(LogicalType::Uuid), false, "PLAIN RLE_DICTIONARY"),
        ] {
            let name = format!("{physical} {logical:?} {dictionary}");
            assert_eq!(read_by_all(physical, logical, dictionary), expected, "{name}");
        }
    }

    #[test]
    fn names_are_parsed() {
        for reader in TargetReader::ALL {
            assert_eq!(reader.name().parse::<TargetReader>().unwrap(), reader);
        }
        assert!("excel".parse::<TargetReader>().is_err());
    }
}
