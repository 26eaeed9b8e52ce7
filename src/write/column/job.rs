//! [`Encoder`]: what is known of a chunk before it is written, and the [`Form`] that its values are
//! brought into.

use super::dictionary::Interned;
use super::source::Source;
use super::values::Values;
use crate::format::Encoding;
use crate::schema::Leaf;
use crate::spare::Spare;
use crate::write::options::LeafSettings;
use crate::write::shred::LeafColumn;
use crate::write::tools::Tools;

/// Threads that help with a chunk.
pub(crate) trait Share: Sync {
    /// Threads that are likely to help now, the calling one among them.
    fn threads(&self) -> usize;

    /// Calls `work` with every number below `n`, on any of them; returns when all calls have.
    fn share(&self, n: usize, work: &(dyn Fn(usize) + Sync));
}

/// The calling thread alone.
pub(crate) struct Alone;

impl Share for Alone {
    fn threads(&self) -> usize {
        1
    }

    fn share(&self, n: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..n).for_each(work);
    }
}

/// A leaf of a row group that becomes a column chunk.
pub(super) struct Encoder<'a> {
    pub(super) column: &'a LeafColumn,
    pub(super) leaf: &'a Leaf,
    pub(super) settings: &'a LeafSettings,
    pub(super) rows: usize,
    pub(super) tools: &'a Tools,
    pub(super) share: &'a dyn Share,
}

/// The values of the chunk in the form in which they are written.
pub(super) enum Form<'a> {
    /// As they are, in one encoding.
    Plain { values: Source<'a>, encoding: Encoding },
    /// As indices into a dictionary.
    Dictionary {
        dictionary: Interned<'a>,
        /// The values one by one, where they were handed in so.
        values: Option<Values<'a>>,
    },
}

impl Form<'_> {
    /// Gives the memory back.
    pub(super) fn give(self, spare: &Spare) {
        match self {
            Self::Plain { values, .. } => values.give(spare),
            Self::Dictionary { dictionary, values } => {
                spare.give(dictionary.codes);
                values.into_iter().for_each(|values| values.give(spare));
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
