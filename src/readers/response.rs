//! [`response`]: how each reader responds to each [`Feature`], as it was found by experiment with
//! the versions that [`TargetReader`] names.
//!
//! Trap: a reader may refuse a whole file for one column, because it parses the whole schema, or
//! checks all column chunks, before it reads any of them.

use std::borrow::Cow;

use arrow_schema::{DataType, IntervalUnit};

use super::feature::{EncodedAs, Feature, text};
use super::verdict::Verdict;
use crate::encoding::choose::HAS_PFOR;
use crate::encoding::readers::{TargetReader, ValueType};
use crate::format::{CompressionCodec, Encoding, LogicalType, TimeUnit, Type};

/// How a reader responds to a feature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Response {
    /// It reads the column.
    Reads,
    /// It returns something else than is meant: this.
    As(Cow<'static, str>),
    /// It reads the column if it is given this.
    If(Cow<'static, str>),
    /// It does not read the column.
    Refuses(Cow<'static, str>),
    /// It does not open the file.
    RefusesFile(Cow<'static, str>),
}

impl Response {
    /// The verdict on a column with the feature.
    pub(super) fn verdict(self) -> Verdict {
        match self {
            Self::Reads => Verdict::Reads,
            Self::As(what) => Verdict::ReadsAs(what),
            Self::If(what) => Verdict::ReadsIf(what),
            Self::Refuses(reason) | Self::RefusesFile(reason) => Verdict::Refuses(reason),
        }
    }
}

/// How `reader` responds to a feature.
pub(super) fn response(reader: TargetReader, feature: &Feature) -> Response {
    if reader == TargetReader::Marquetry {
        return ours(feature);
    }
    match feature {
        Feature::EncryptedFooter if reader == TargetReader::DuckDb => refuses_file(ENCRYPTED),
        Feature::EncryptedColumn if reader == TargetReader::DuckDb => refuses(ENCRYPTED),
        Feature::EncryptedFooter => Response::If(text("the key of the footer")),
        Feature::EncryptedColumn => Response::If(text("the key of the column")),
        Feature::ElsewhereFile => Response::Refuses(text("its pages are in another file")),
        Feature::Encoding(encoded) => encoding(reader, encoded),
        Feature::NewEncoding(encoding) => new_encoding(reader, *encoding),
        Feature::Codec(codec) => of_codec(reader, *codec),
        Feature::UnknownConvertedType(n) => unknown_converted_type(reader, *n),
        other => match reader {
            TargetReader::DuckDb => duckdb(other),
            TargetReader::Polars => polars(other),
            TargetReader::PyArrow => pyarrow(other),
            TargetReader::ParquetJava => parquet_java(other),
            TargetReader::Spark | TargetReader::SparkRows => spark(other),
            TargetReader::ArrowRs => arrow_rs(other),
            TargetReader::Marquetry => Response::Reads,
        },
    }
}

fn refuses(reason: &'static str) -> Response {
    Response::Refuses(text(reason))
}

fn refuses_file(reason: &'static str) -> Response {
    Response::RefusesFile(text(reason))
}

fn read_as(what: &'static str) -> Response {
    Response::As(text(what))
}

/// How this library responds to a feature.
fn ours(feature: &Feature) -> Response {
    match feature {
        Feature::EncryptedFooter => Response::If(text("the key of the footer")),
        Feature::EncryptedColumn => Response::If(text("the key of the column")),
        Feature::ElsewhereFile => refuses("its pages are in another file"),
        Feature::NotOurs(reason) => Response::Refuses(Cow::Owned(reason.clone())),
        Feature::NewEncoding(encoding @ Encoding::Unknown(_)) => {
            Response::Refuses(Cow::Owned(format!("the encoding is {encoding}")))
        }
        Feature::NewEncoding(Encoding::Pfor) if !HAS_PFOR => {
            refuses("the encoding PFOR, without the feature preview")
        }
        Feature::Codec(codec @ CompressionCodec::Unknown(_)) => {
            Response::Refuses(Cow::Owned(format!("the codec is {codec}")))
        }
        Feature::Codec(CompressionCodec::Lzo) if !cfg!(feature = "lzo") => {
            refuses("the codec LZO, without the feature lzo")
        }
        _ => Response::Reads,
    }
}

fn encoding(reader: TargetReader, encoded: &EncodedAs) -> Response {
    let EncodedAs { encoding, physical, logical, hinted_dictionary } = encoded;
    let values =
        ValueType::new(*physical, logical.as_ref()).with_hinted_dictionary(*hinted_dictionary);
    // The vectorized reader stores decimals of few digits as integers, never from bytes.
    let few_digits = matches!(logical, Some(LogicalType::Decimal(of)) if of.precision <= 18);
    if reader == TargetReader::Spark && *physical == Type::ByteArray && few_digits {
        return refuses("decimals of at most 18 digits in BYTE_ARRAY");
    }
    if reader.reads(*encoding, &values) {
        return Response::Reads;
    }
    let of = match (hinted_dictionary, logical) {
        (true, _) => " of a column that is a dictionary in the Arrow schema".to_owned(),
        (_, Some(LogicalType::Decimal(_))) => format!(" of decimals in {physical}"),
        _ => format!(" of {physical}"),
    };
    Response::Refuses(Cow::Owned(format!("{encoding}{of}")))
}

/// An encoding that is not in the older versions of the format: its number in the metadata is
/// unknown to a reader.
fn new_encoding(reader: TargetReader, encoding: Encoding) -> Response {
    let reason = Cow::Owned(format!("the encoding {encoding}"));
    match reader {
        TargetReader::PyArrow | TargetReader::Polars => Response::Refuses(reason),
        // It knows ALP, and does not decode all of it.
        TargetReader::ArrowRs if encoding == Encoding::Alp => Response::Refuses(reason),
        _ => Response::RefusesFile(reason),
    }
}

fn of_codec(reader: TargetReader, codec: CompressionCodec) -> Response {
    use TargetReader::{ParquetJava, Spark, SparkRows};
    match (codec, reader) {
        (CompressionCodec::Unknown(_), _) => {
            Response::RefusesFile(Cow::Owned(format!("the codec is {codec}")))
        }
        (CompressionCodec::Lzo, _) => refuses("the codec LZO"),
        (CompressionCodec::Lz4, ParquetJava | Spark | SparkRows) => {
            refuses("the deprecated codec LZ4")
        }
        (CompressionCodec::Brotli, ParquetJava | Spark | SparkRows) => {
            refuses("the codec BROTLI, which is not shipped with it")
        }
        _ => Response::Reads,
    }
}

fn unknown_converted_type(reader: TargetReader, n: i32) -> Response {
    let reason = Cow::Owned(format!("the converted type is unknown ({n})"));
    match reader {
        TargetReader::Polars | TargetReader::ArrowRs => Response::RefusesFile(reason),
        // 24 was the null type of some writers.
        TargetReader::DuckDb | TargetReader::PyArrow if n != 24 => Response::RefusesFile(reason),
        _ => Response::Reads,
    }
}

fn duckdb(feature: &Feature) -> Response {
    use Feature as F;
    match feature {
        F::NoPathInSchema => refuses_file("path_in_schema is missing"),
        F::NoColumns => refuses_file("there are no columns"),
        F::Int96 => read_as("timestamps in microseconds"),
        F::Depth(depth) if *depth > DEEP => refuses_file(TOO_DEEP),
        F::BitPackedLevels => refuses("BIT_PACKED levels"),
        F::BsonConverted => refuses_file("the converted type BSON"),
        F::HalfDecimal => refuses_file("a decimal without precision or scale"),
        F::MapWithoutValue | F::KeyValueOfOne => {
            refuses_file("a map whose entries are not keys and values")
        }
        F::MapOnlyLogical => read_as("a struct: MAP has no converted type"),
        F::ListOfSingleField => read_as("a list without the structs around its elements"),
        F::OnlyLogical(_) => read_as("BLOB: the logical type has no converted type"),
        F::Decimal(39..) => read_as("DOUBLE: it has decimals of at most 38 digits"),
        F::Time { unit: TimeUnit::Nanos, is_utc: true } => read_as("times in microseconds"),
        F::Hint(DataType::Duration(_)) => read_as("BIGINT: it ignores the Arrow schema"),
        F::Variant { in_order: false, .. } => {
            refuses("a VARIANT that does not begin with metadata and value")
        }
        F::VariantPartWithoutValue => refuses("a part of a VARIANT that is only shredded"),
        F::Variant { .. } => read_as("VARIANT, unshredded"),
        F::FileReference => read_as("a struct: it does not know FILE"),
        _ => Response::Reads,
    }
}

fn polars(feature: &Feature) -> Response {
    use Feature as F;
    match feature {
        F::UnknownLogicalType => refuses_file("a logical type that it does not know"),
        F::Variant { .. } => refuses_file("the logical type VARIANT"),
        F::Geometry => refuses_file("the logical type GEOMETRY"),
        F::Geography => refuses_file("the logical type GEOGRAPHY"),
        F::FileReference => refuses_file("the logical type FILE"),
        F::UnknownOnGroup => refuses_file("the logical type UNKNOWN on a group"),
        F::Interval => refuses_file("the type INTERVAL"),
        F::HalfDecimal => refuses_file("a decimal without precision or scale"),
        F::Decimal(39..) => refuses("decimals of more than 38 digits"),
        F::DuplicateName => refuses_file("two columns of the same name"),
        F::EmptyGroup => refuses_file("a group without fields"),
        F::NoRepetition => refuses_file("an element without repetition type"),
        F::MapOfSeveral => refuses_file("a map whose entries are not keys and values"),
        F::MapOfOptionalKeys => refuses_file("a map whose keys may be null"),
        F::ShortChunk => refuses(SHORT_CHUNK),
        F::RepeatedMap => refuses_file("a map that is repeated"),
        F::Map | F::MapOnlyLogical => read_as("maps with the last of equal keys"),
        F::Depth(depth) if *depth > DEEP => refuses(TOO_DEEP),
        F::BitPackedLevels => refuses("BIT_PACKED levels"),
        F::Int96 => read_as(NANOSECONDS),
        F::AllNull => read_as("the physical type, if there are values"),
        F::Hint(DataType::Date64) => read_as("timestamps in milliseconds"),
        _ => Response::Reads,
    }
}

fn pyarrow(feature: &Feature) -> Response {
    use Feature as F;
    match feature {
        F::NoPathInSchema => refuses_file("path_in_schema is missing"),
        F::ColumnOrders => refuses_file("there are not as many column orders as columns"),
        F::Depth(depth) if *depth > DEEP => refuses_file("more than 100 nested nodes"),
        F::UnknownOnGroup => refuses_file("the logical type UNKNOWN on a group"),
        F::MapOfSeveral => refuses_file("a map whose entries are not keys and values"),
        F::MapOfOptionalKeys => refuses_file("a map whose keys may be null"),
        F::Int96 => read_as(NANOSECONDS),
        F::Interval => read_as("12 bytes"),
        // "delta bit width larger than integer bit width"
        F::WideDeltas => refuses(WIDE_DELTAS),
        F::Variant { .. } => read_as("a struct of the stored parts"),
        F::FileReference => read_as("a struct: it does not know FILE"),
        _ => Response::Reads,
    }
}

fn parquet_java(feature: &Feature) -> Response {
    use Feature as F;
    match feature {
        F::NoPathInSchema => refuses_file("path_in_schema is missing"),
        F::UnknownLogicalType => refuses_file("a logical type that it does not know"),
        F::FileReference => refuses_file("the logical type FILE"),
        F::NoColumns => refuses_file("there are no columns"),
        F::EmptyGroup => refuses_file("a group without fields"),
        F::NoRepetition => refuses_file("an element without repetition type"),
        F::DuplicateName => refuses_file("two columns of the same name"),
        F::ShortChunk => refuses(SHORT_CHUNK),
        _ => Response::Reads,
    }
}

fn spark(feature: &Feature) -> Response {
    use Feature as F;
    match feature {
        F::Float16 => refuses_file("the logical type FLOAT16"),
        F::Uuid => refuses_file("the logical type UUID"),
        F::Time { .. } => refuses_file("the logical type TIME"),
        F::TimestampNanos => refuses_file("timestamps in nanoseconds"),
        F::Interval => refuses_file("the type INTERVAL"),
        F::Decimal(39..) => refuses_file("decimals of more than 38 digits"),
        F::DuplicateName | F::DuplicateButForCase => {
            refuses_file("two columns of the same name, capitals aside")
        }
        F::AllNull => read_as("the physical type, if there are values"),
        F::Hint(DataType::Duration(_)) => read_as("BIGINT: it ignores the Arrow schema"),
        F::Variant { .. } => read_as("VARIANT, unshredded"),
        other => parquet_java(other),
    }
}

fn arrow_rs(feature: &Feature) -> Response {
    use Feature as F;
    match feature {
        F::HalfDecimal => refuses_file("a decimal without precision or scale"),
        F::ColumnOrders => refuses_file("there are not as many column orders as columns"),
        F::NoRepetition => refuses_file("an element without repetition type"),
        F::MapOfSeveral => refuses_file("a map whose entries are not keys and values"),
        F::RepeatedMap => refuses_file("a map that is repeated"),
        F::FileOnLeaf => refuses_file("the logical type FILE on a column"),
        F::IntervalWithLogical => refuses_file("INTERVAL beside a logical type"),
        F::ShortChunk => refuses(SHORT_CHUNK),
        F::Hint(DataType::Interval(IntervalUnit::MonthDayNano)) => {
            refuses("intervals of months, days and nanoseconds")
        }
        F::WideDeltas => refuses(WIDE_DELTAS),
        F::Variant { .. } => read_as("a struct of the stored parts"),
        F::FileReference => read_as("a struct: it does not know FILE"),
        _ => Response::Reads,
    }
}

/// More nested nodes than these are not read by some readers, or not within 8 GiB.
const DEEP: usize = 100;
/// With the right key, "computed AES tag differs"; keys of columns are "not yet implemented".
const ENCRYPTED: &str = "encryption by other writers";
const NANOSECONDS: &str = "timestamps in nanoseconds: none before 1677 or after 2262";
const SHORT_CHUNK: &str = "the size of the column chunk is too small, as old writers had it";
const TOO_DEEP: &str = "more than 100 nested nodes";
const WIDE_DELTAS: &str = "DELTA_BINARY_PACKED of INT32 by DuckDB, which may take 33 bits";
