//! [`decoding`]: the reader of chunks that are decoded, whatever its user has set for rows.

use crate::read::ReadOptions;
use crate::reader::Reader;
use crate::schema::ArrowOptions;

/// A reader of the same file whose columns have the types of the Parquet schema, with the limits
/// of the given one.
pub(super) fn decoding(reader: &Reader) -> Reader {
    let of = reader.read_options();
    let options = ReadOptions {
        arrow: ArrowOptions::new().with_hint(false),
        verify_checksums: of.verify_checksums,
        latency: of.latency,
        pool: of.pool.clone(),
        limits: of.limits.clone(),
        ..ReadOptions::default()
    };
    reader.clone().options(options)
}
