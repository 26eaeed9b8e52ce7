//! The enums of the metadata keep numbers that the specification may add later.
//!
//! Spec: `parquet.thrift`. Used by every other module of `format`, and by all that read metadata.
//! An unknown number is kept as `Unknown`, and is written back unchanged; it becomes an error only
//! where it must be acted on. Trap: `Unknown(n)` of a known number would not equal its variant; use
//! `from`.

use crate::thrift::derive::thrift;

thrift! {
    /// Physical type of a leaf.
    pub enum Type {
        /// One bit.
        Boolean = 0 "BOOLEAN",
        /// 4 bytes.
        Int32 = 1 "INT32",
        /// 8 bytes.
        Int64 = 2 "INT64",
        /// 12 bytes, deprecated: a timestamp in nanoseconds.
        Int96 = 3 "INT96",
        /// IEEE 754 binary32.
        Float = 4 "FLOAT",
        /// IEEE 754 binary64.
        Double = 5 "DOUBLE",
        /// Bytes with a length.
        ByteArray = 6 "BYTE_ARRAY",
        /// Bytes of the length in the schema.
        FixedLenByteArray = 7 "FIXED_LEN_BYTE_ARRAY",
    }
}

thrift! {
    /// How often a node of the schema occurs in its parent.
    pub enum FieldRepetitionType {
        /// Exactly once.
        Required = 0 "REQUIRED",
        /// Once or not at all.
        Optional = 1 "OPTIONAL",
        /// Any number of times.
        Repeated = 2 "REPEATED",
    }
}

thrift! {
    /// The deprecated annotation of a node; [`LogicalType`](crate::format::LogicalType) wins if
    /// both are present.
    pub enum ConvertedType {
        /// A string.
        Utf8 = 0 "UTF8",
        /// A map.
        Map = 1 "MAP",
        /// Misused by old writers for the entries of a map, and for the map itself.
        MapKeyValue = 2 "MAP_KEY_VALUE",
        /// A list.
        List = 3 "LIST",
        /// The name of an enum value, UTF-8.
        Enum = 4 "ENUM",
        /// An unscaled integer; the schema element has scale and precision.
        Decimal = 5 "DECIMAL",
        /// Days since 1970-01-01.
        Date = 6 "DATE",
        /// Milliseconds since midnight.
        TimeMillis = 7 "TIME_MILLIS",
        /// Microseconds since midnight.
        TimeMicros = 8 "TIME_MICROS",
        /// Milliseconds since 1970-01-01, UTC.
        TimestampMillis = 9 "TIMESTAMP_MILLIS",
        /// Microseconds since 1970-01-01, UTC.
        TimestampMicros = 10 "TIMESTAMP_MICROS",
        /// Unsigned, 8 bits.
        Uint8 = 11 "UINT_8",
        /// Unsigned, 16 bits.
        Uint16 = 12 "UINT_16",
        /// Unsigned, 32 bits.
        Uint32 = 13 "UINT_32",
        /// Unsigned, 64 bits.
        Uint64 = 14 "UINT_64",
        /// Signed, 8 bits.
        Int8 = 15 "INT_8",
        /// Signed, 16 bits.
        Int16 = 16 "INT_16",
        /// Signed, 32 bits.
        Int32 = 17 "INT_32",
        /// Signed, 64 bits.
        Int64 = 18 "INT_64",
        /// A JSON document, UTF-8.
        Json = 19 "JSON",
        /// A BSON document.
        Bson = 20 "BSON",
        /// Months, days and milliseconds, 4 bytes each; has no logical type.
        Interval = 21 "INTERVAL",
    }
}

thrift! {
    /// How values, levels or dictionary indexes are written in a page.
    pub enum Encoding {
        /// One value after the other.
        Plain = 0 "PLAIN",
        /// Deprecated name for a dictionary page in PLAIN, or a data page of dictionary indexes.
        PlainDictionary = 2 "PLAIN_DICTIONARY",
        /// The hybrid of runs and packed bits.
        Rle = 3 "RLE",
        /// Deprecated: packed bits, the most significant first; only for levels.
        BitPacked = 4 "BIT_PACKED",
        /// Integers as packed differences.
        DeltaBinaryPacked = 5 "DELTA_BINARY_PACKED",
        /// Byte strings: all lengths, then all bytes.
        DeltaLengthByteArray = 6 "DELTA_LENGTH_BYTE_ARRAY",
        /// Byte strings: the length of the prefix shared with the one before, and the rest.
        DeltaByteArray = 7 "DELTA_BYTE_ARRAY",
        /// Indexes into the dictionary page, in RLE.
        RleDictionary = 8 "RLE_DICTIONARY",
        /// The first bytes of all values, then the second bytes, and so on.
        ByteStreamSplit = 9 "BYTE_STREAM_SPLIT",
        /// Adaptive lossless floating point.
        Alp = 10 "ALP",
        /// Patched frame of reference: integers. Experimental, a proposal (parquet-format pull
        /// request 617) that may change: with the feature `preview`, it is read, and written where
        /// a column asks for it.
        Pfor = 11 "PFOR",
    }
}

thrift! {
    /// How the pages of a column chunk are compressed.
    pub enum CompressionCodec {
        /// Not at all.
        Uncompressed = 0 "UNCOMPRESSED",
        /// Snappy, the raw format.
        Snappy = 1 "SNAPPY",
        /// GZIP (RFC 1952), any number of members.
        Gzip = 2 "GZIP",
        /// LZO1X in Hadoop's framing.
        Lzo = 3 "LZO",
        /// Brotli (RFC 7932).
        Brotli = 4 "BROTLI",
        /// Deprecated: LZ4 in Hadoop's framing, or in whatever the writer took for it.
        Lz4 = 5 "LZ4",
        /// Zstandard (RFC 8478).
        Zstd = 6 "ZSTD",
        /// LZ4 blocks without framing.
        Lz4Raw = 7 "LZ4_RAW",
    }
}

thrift! {
    /// The kind of a page.
    pub enum PageType {
        /// Levels and values, compressed together.
        DataPage = 0 "DATA_PAGE",
        /// Never specified; skipped.
        IndexPage = 1 "INDEX_PAGE",
        /// The values that dictionary indexes point to.
        DictionaryPage = 2 "DICTIONARY_PAGE",
        /// Levels outside of the compression, whole rows.
        DataPageV2 = 3 "DATA_PAGE_V2",
    }
}

thrift! {
    /// Whether the bounds in a column index are sorted from page to page; pages of nulls do not
    /// count.
    pub enum BoundaryOrder {
        /// Not sorted, or not known to be.
        Unordered = 0 "UNORDERED",
        /// Minima and maxima never fall.
        Ascending = 1 "ASCENDING",
        /// Minima and maxima never rise.
        Descending = 2 "DESCENDING",
    }
}

thrift! {
    /// How the edge between two points of a GEOGRAPHY value runs.
    pub enum EdgeInterpolationAlgorithm {
        /// Along the great circle.
        Spherical = 0 "SPHERICAL",
        /// Vincenty's formulae on the spheroid.
        Vincenty = 1 "VINCENTY",
        /// Thomas's formulae on the spheroid.
        Thomas = 2 "THOMAS",
        /// Andoyer's formulae on the spheroid.
        Andoyer = 3 "ANDOYER",
        /// Karney's algorithm on the spheroid.
        Karney = 4 "KARNEY",
    }
}
