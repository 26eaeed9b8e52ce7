//! [`decoding`]: the reader of chunks that are decoded, whatever its user has set for rows.

use crate::read::ReadOptions;
use crate::reader::Reader;
use crate::schema::ArrowOptions;

/// A reader of the same file whose columns have the types of the Parquet schema, with the limits
/// of the given one.
pub(super) fn decoding(reader: &Reader) -> Reader {
    let of = reader.read_options();
    let mut options = ReadOptions::default();
    options.arrow = ArrowOptions::new().with_hint(false);
    options.verify_checksums = of.verify_checksums;
    options.latency = of.latency;
    options.pool.clone_from(&of.pool);
    options.limits = of.limits.clone();
    reader.clone().options(options)
}
