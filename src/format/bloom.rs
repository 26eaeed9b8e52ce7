//! The header of a bloom filter, which precedes its bits.
//!
//! Spec: BloomFilter.md, `parquet.thrift`. Read by `stats::bloom`.
//! Each of the three unions has one member so far: split blocks, XXH64, no compression.
//! Trap: `numBytes` counts the bits only, and is a number of the file, so it must be checked before
//! it is used.

use crate::thrift::derive::thrift;

thrift! {
    /// How the bits of a bloom filter are read.
    #[derive(Eq, Hash)]
    pub struct BloomFilterHeader {
        /// Bytes of the filter after this header.
        1 required num_bytes: i32,
        /// How a hash sets bits.
        2 required algorithm: BloomFilterAlgorithm,
        /// How a value is hashed.
        3 required hash: BloomFilterHash,
        /// How the bits are compressed.
        4 required compression: BloomFilterCompression,
    }
}

thrift! {
    /// How a hash sets bits.
    #[derive(Eq, Hash)]
    pub union BloomFilterAlgorithm {
        /// Split blocks of 256 bits.
        1 Block "BLOCK",
    }
}

thrift! {
    /// How a value is hashed.
    #[derive(Eq, Hash)]
    pub union BloomFilterHash {
        /// XXH64 with seed 0 of the PLAIN bytes.
        1 XxHash "XXHASH",
    }
}

thrift! {
    /// How the bits are compressed.
    #[derive(Eq, Hash)]
    pub union BloomFilterCompression {
        /// Not at all.
        1 Uncompressed "UNCOMPRESSED",
    }
}
