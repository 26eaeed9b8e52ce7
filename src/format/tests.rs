//! Tests every struct of the format against an independent codec, and against a second statement of
//! the specification.

mod spelled;
mod structs;
mod schema_elements;
mod footers;

use bytes::Bytes;
use fastrand::Rng;

use self::spelled::Spelled;
use super::*;
use crate::error::{Error, ErrorKind, LimitKind, Result, Spec};
use crate::thrift::oracle::{self, ProtocolValue};
use crate::thrift::{Read, ThriftReader, Write, wire};

/// What ours makes of some bytes: how Rust prints it, what it writes, and how many bytes it took.
struct Ours {
    text: String,
    written: Vec<u8>,
    read_len: usize,
}

fn ours<T: Write + std::fmt::Debug>(bytes: &[u8]) -> Result<Ours> {
    let mut reader = ThriftReader::new(bytes);
    let value = T::read(&mut reader)?;
    let mut written = Vec::new();
    value.write(&mut written).unwrap();
    Ok(Ours { text: format!("{value:?}"), written, read_len: reader.position() })
}

type ReadOurs = fn(&[u8]) -> Result<Ours>;

macro_rules! by_name {
    ($($Name:ident)*) => { &[$((stringify!($Name), ours::<$Name> as ReadOurs)),*] };
}

const STRUCTS_OF_OURS: &[(&str, ReadOurs)] = by_name! {
    FileMetaData SchemaElement RowGroup SortingColumn ColumnChunk ColumnMetaData PageEncodingStats KeyValue Statistics
    SizeStatistics GeospatialStatistics BoundingBox PageHeader DataPageHeader IndexPageHeader DictionaryPageHeader
    DataPageHeaderV2 PageLocation OffsetIndex ColumnIndex BloomFilterHeader AesGcmV1 AesGcmCtrV1 FileCryptoMetaData
    EncryptionWithColumnKey DecimalType TimeType TimestampType IntType VariantType GeometryType GeographyType
    LogicalType TimeUnit ColumnOrder BloomFilterAlgorithm BloomFilterHash BloomFilterCompression EncryptionAlgorithm
    ColumnCryptoMetaData
};

/// Random values of every struct and union of the specification, with a seed each.
fn for_random_values(
    rounds: u64,
    mut test: impl FnMut(&Spelled, &'static str, ReadOurs, ProtocolValue, String, &mut Rng),
) {
    let spelled = Spelled::new();
    assert_eq!(spelled.structs.len() + spelled.unions.len(), STRUCTS_OF_OURS.len());
    for &(name, read) in STRUCTS_OF_OURS {
        for seed in 0..rounds {
            let mut rng = Rng::with_seed(seed);
            let (tree, text) = spelled.random(name, &mut rng);
            let noted = Noted(name, seed);
            test(&spelled, name, read, tree, text, &mut rng);
            std::mem::forget(noted);
        }
    }
}

/// Prints which random value failed.
struct Noted(&'static str, u64);

impl Drop for Noted {
    fn drop(&mut self) {
        eprintln!("failed: {} with seed {}", self.0, self.1);
    }
}

/// The kinds that bad bytes may lead to.
fn is_expected(error: &Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::Malformed(Spec::Metadata(_)) | ErrorKind::Limit(LimitKind::Nesting)
    )
}

fn mutate(bytes: &mut Vec<u8>, rng: &mut Rng) {
    if bytes.is_empty() {
        return;
    }
    let at = rng.usize(..bytes.len());
    match rng.u8(..6) {
        0 => bytes[at] = rng.u8(..),
        1 => bytes[at] ^= 1 << rng.u8(..8),
        2 => bytes[at] = *rng.choice(&[0, 0x7F, 0x80, 0xFF, 0xFC, 0x1C]).unwrap(),
        3 => bytes.truncate(at),
        4 => drop(bytes.remove(at)),
        _ => {
            let more = [0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F];
            let n = rng.usize(1..=more.len());
            bytes.splice(at..at, more.into_iter().take(n));
        }
    }
}
