//! Encodes a row group: its leaves on one thread or on many.

use std::sync::Arc;

use super::Pool;
use crate::error::Result;
use crate::write::{EncodedChunk, EncodedRowGroup, Layout, PendingRowGroup};

/// The threads that encode.
#[derive(Debug, Clone, Default)]
pub(crate) enum Encode {
    /// The calling one.
    Serial,
    /// As many as there are cores, where there is more than one leaf.
    #[default]
    Auto,
    /// Those of a pool.
    Pool(Pool),
}

impl Encode {
    pub(crate) fn new(threads: usize) -> Result<Self> {
        if threads <= 1 { Ok(Self::Serial) } else { Pool::new(threads).map(Self::Pool) }
    }

    #[cfg(feature = "parallel")]
    pub(crate) fn pool(pool: Arc<rayon::ThreadPool>) -> Self {
        Self::Pool(Pool::Own(pool))
    }
}

/// Encodes all leaves of a row group.
///
/// # Errors
/// `Usage` if a value does not fit its leaf.
pub(crate) fn encode_row_group(
    threads: &Encode,
    layout: &Arc<Layout>,
    pending: &PendingRowGroup,
) -> Result<EncodedRowGroup> {
    let columns = pending.columns(layout);
    let encode = |column: &crate::write::Column| -> Result<Vec<EncodedChunk>> {
        let leaves = pending.shred(layout, column)?;
        column
            .leaves
            .clone()
            .zip(&leaves)
            .map(|(leaf, shredded)| pending.encode(layout, leaf, shredded))
            .collect()
    };
    let chunks = match threads {
        Encode::Serial => columns.iter().map(encode).collect::<Result<Vec<_>>>()?,
        Encode::Auto => Pool::Global.map(&columns, encode)?,
        Encode::Pool(pool) => pool.map(&columns, encode)?,
    };
    Ok(EncodedRowGroup { rows: pending.rows(), chunks: chunks.into_iter().flatten().collect() })
}
