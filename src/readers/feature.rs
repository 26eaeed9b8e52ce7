//! [`Feature`]: something in a file that not all readers read.

use std::borrow::Cow;
use std::mem::Discriminant;

use arrow_schema::DataType;

use crate::format::{CompressionCodec, Encoding, LogicalType, TimeUnit, Type};

/// A feature of a file, or of a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Feature {
    /// The footer is encrypted.
    EncryptedFooter,
    /// The column is encrypted.
    EncryptedColumn,
    /// The pages are in another file.
    ElsewhereFile,
    /// The size of a chunk leaves out some of its bytes, as old writers had it.
    ShortChunk,
    /// The metadata of a chunk do not repeat the path of the column.
    NoPathInSchema,
    /// The file has no column.
    NoColumns,
    /// Some group has no child.
    EmptyGroup,
    /// An element of the schema does not say how often it occurs.
    NoRepetition,
    /// The column lies within this number of nodes.
    Depth(usize),
    /// There are not as many column orders as columns.
    ColumnOrders,
    /// A column before this one has the same name.
    DuplicateName,
    /// A column before this one has the same name, but for capitals.
    DuplicateButForCase,
    /// A page has this encoding.
    Encoding(EncodedAs),
    /// The metadata name an encoding that is not in the older versions of the format.
    NewEncoding(Encoding),
    /// Differences of INT32 that may take 33 bits, as DuckDB writes them.
    WideDeltas,
    /// Levels are packed in the deprecated way.
    BitPackedLevels,
    /// A chunk has this codec.
    Codec(CompressionCodec),
    /// This library does not read the column, for this reason.
    NotOurs(String),
    /// A logical type that this library does not know.
    UnknownLogicalType,
    /// A converted type that the format does not have.
    UnknownConvertedType(i32),
    /// The converted type BSON.
    BsonConverted,
    /// A decimal whose precision or scale is missing in the older form.
    HalfDecimal,
    /// A decimal of this precision.
    Decimal(i32),
    /// The logical type UNKNOWN on a group.
    UnknownOnGroup,
    /// The logical type UNKNOWN: all values are null.
    AllNull,
    /// A logical type without the converted type of the same meaning.
    OnlyLogical(&'static str),
    /// A time of day.
    Time {
        unit: TimeUnit,
        is_utc: bool,
    },
    /// A point in time in nanoseconds.
    TimestampNanos,
    /// INT96.
    Int96,
    Float16,
    Uuid,
    Interval,
    Geometry,
    Geography,
    /// A part of a FILE.
    FileReference,
    /// The logical type FILE on a column, where it does not belong.
    FileOnLeaf,
    /// The converted type INTERVAL beside a logical type.
    IntervalWithLogical,
    /// A part of a VARIANT; whether it begins with metadata and value, and whether it is shredded.
    Variant {
        in_order: bool,
        shredded: bool,
    },
    /// A part of a VARIANT that is shredded, and has no place for other values.
    VariantPartWithoutValue,
    /// A part of a map.
    Map,
    /// A map whose group has not one child.
    MapOfSeveral,
    /// A map whose entries are not a key and a value.
    MapWithoutValue,
    /// A group with the converted type MAP_KEY_VALUE and not two children.
    KeyValueOfOne,
    /// A map whose key may be null.
    MapOfOptionalKeys,
    /// A map that is repeated itself.
    RepeatedMap,
    /// A map without the converted type of the same meaning.
    MapOnlyLogical,
    /// A list in the older form, whose elements are structs of one field.
    ListOfSingleField,
    /// A type of the Arrow schema that Parquet does not have.
    Hint(DataType),
}

impl Feature {
    /// A key that is the same for the same features of the chunks of one column: which numbers
    /// these have is all that differs.
    pub(super) fn key_in_chunks(&self) -> (Discriminant<Self>, i32) {
        let number = match self {
            Self::Codec(codec) => (*codec).into(),
            Self::NewEncoding(encoding) => (*encoding).into(),
            Self::Encoding(of) => of.encoding.into(),
            _ => 0,
        };
        (std::mem::discriminant(self), number)
    }
}

/// An encoding, and the values that it stands for.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct EncodedAs {
    pub(super) encoding: Encoding,
    pub(super) physical: Type,
    pub(super) logical: Option<LogicalType>,
    pub(super) hinted_dictionary: bool,
}

/// A reason without parts.
pub(super) const fn text(text: &'static str) -> Cow<'static, str> {
    Cow::Borrowed(text)
}
