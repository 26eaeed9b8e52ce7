//! Rewrites whole files: what can be copied is copied, and only the rest is decoded and encoded.
//!
//! [`Rewrite`] copies row groups of one or several files into a new one; [`recrypt`] changes how a
//! file is protected.
//!
//! | file | what it does |
//! |---|---|
//! | `plan`, `field_ids`, `settings` | what is done with each chunk, and what is asked for |
//! | `recompress`, `page_copier` | a page with another codec, or under another protection |
//! | `output` | where the bytes go |
//! | `decoding`, `columns`, `union` | one schema for files of several |
//! | `inputs` | what one footer can say for all files |
//! | `decide` | copied, or encoded, and why |
//! | `column_encoder` | decodes a column, and encodes it |
//! | `old_indexes`, `made_indexes` | what is around pages: where they come from, and anew |
//! | `moved_chunk` | where a copied chunk is in the new file |
//! | `sort` | sorts rows, also more than fit into memory, and merges sorted ones |
//! | `regroup` | reads all rows, and writes other row groups |
//! | `splice` | makes the chunks, and what is around them |
//! | `files`, `recrypt` | the public interface |
//! | `split`, `append` | one file as several, and a file that becomes longer |
//! | `key_order`, `exchange`, `compact` | the small files of a folder become few |
//! | `salvage` | recovers what is whole of a damaged file |
//! | `fill` | adds what the writer of a file left out |

mod plan;
mod field_ids;
mod settings;
mod recompress;
mod page_copier;
mod output;
mod decoding;
mod columns;
mod union;
mod geo_key;
mod inputs;
mod decide;
mod column_encoder;
mod old_indexes;
mod made_indexes;
mod moved_chunk;
mod sort;
mod regroup;
mod splice;
mod files;
mod split;
mod append;
mod key_order;
mod exchange;
mod compact;
mod recrypt;
#[cfg(feature = "check")]
mod salvage;
#[cfg(feature = "check")]
mod fill;

pub use compact::{Compact, CompactPlan, Compacted, PlannedJoin};
pub use files::{Rewrite, Rewritten};
pub use plan::{
    ChunkMethod, ChunkReason, PlannedChunk, PlannedChunks, PlannedRowGroup, RewritePlan,
};
pub use recrypt::{Recrypted, recrypt};
pub use sort::{RowSorter, SortedRows};
pub use split::SplitBy;
#[cfg(feature = "check")]
pub use {
    fill::{Fill, FillPart, FillPlan, Filled, FilledPart},
    salvage::{FoundBy, LostPart, RecoveredRowGroup, Salvage, SalvageAccount, Salvaged},
};

#[cfg(all(test, feature = "encryption"))]
mod tests;
