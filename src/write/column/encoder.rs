//! [`ChunkEncoder`] knows a chunk before it is written; [`ChunkForm`] is the form that its values
//! are converted to.

use super::dictionary::ValueDictionary;
use super::encode::CodeLayout;
use super::parallelism::Parallelism;
use super::source::ValueSource;
use super::values::LeafValues;
use crate::compress::Compression;
use crate::encoding::delta_binary::DeltaBlocks;
use crate::format::Encoding;
use crate::free_lists::FreeLists;
use crate::schema::Leaf;
use crate::write::column_options::LeafSettings;
use crate::write::context::EncoderContext;
use crate::write::shred::LeafColumn;

/// A leaf of a row group that becomes a column chunk.
pub(crate) struct ChunkEncoder<'a> {
    pub(in crate::write) column: &'a LeafColumn,
    pub(in crate::write) leaf: &'a Leaf,
    pub(in crate::write) settings: &'a LeafSettings,
    pub(in crate::write) rows: usize,
    pub(in crate::write) context: &'a EncoderContext,
    pub(in crate::write) parallelism: &'a dyn Parallelism,
}

/// The values of the chunk in the form in which they are written.
pub(super) enum ChunkForm<'a> {
    /// As they are, in one encoding.
    Plain { values: ValueSource<'a>, encoding: Encoding, blocks: DeltaBlocks },
    /// As indices into a dictionary.
    Dictionary {
        dictionary: ValueDictionary<'a>,
        layout: CodeLayout,
        /// The values themselves, if they were gathered to build the dictionary.
        values: Option<LeafValues<'a>>,
    },
}

/// The form that was chosen for a chunk.
pub(super) struct ChosenForm<'a> {
    pub(super) form: ChunkForm<'a>,
    pub(super) codec: Compression,
    /// Whether the codec does better in small pages.
    pub(super) small_pages: bool,
    /// About how many bytes the pages will take.
    pub(super) likely_bytes: usize,
}

impl ChunkForm<'_> {
    /// Returns the memory to its pool.
    pub(super) fn put_back(self, free_lists: &FreeLists) {
        match self {
            Self::Plain { values, .. } => values.put_back(free_lists),
            Self::Dictionary { dictionary, values, .. } => {
                free_lists.put_back(dictionary.codes);
                values.into_iter().for_each(|values| values.put_back(free_lists));
            }
        }
    }

    /// How many values there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Plain { values, .. } => values.len(),
            Self::Dictionary { dictionary, .. } => dictionary.codes.len(),
        }
    }

    /// The encoding of the data pages.
    pub(super) fn encoding(&self) -> Encoding {
        match self {
            Self::Plain { encoding, .. } => *encoding,
            Self::Dictionary { .. } => Encoding::RleDictionary,
        }
    }
}
