//! [`RewriteSettings`]: what the user of a rewrite asks for.

use std::ops::Range;
use std::path::PathBuf;

use super::field_ids::FieldIdChange;
use crate::compress::Compression;
use crate::crypt::Encryption;
use crate::error::{Error, Result};
use crate::memory;
use crate::schema::Leaf;
use crate::write::WriteOptions;
use crate::write::leaf_names::LeafNames;
use crate::write::sorting::SortColumn;

/// The wishes of the user, with plain defaults: everything is copied.
#[derive(Debug, Clone, Default)]
pub(super) struct RewriteSettings {
    /// Whether columns are matched by name.
    pub(super) is_by_name: bool,
    pub(super) verifies_checksums: bool,
    pub(super) encryption: Option<Encryption>,
    /// Keys of the key-value metadata; one without a value goes.
    pub(super) key_values: Vec<(String, Option<String>)>,
    /// How what is encoded is written.
    pub(super) options: WriteOptions,
    /// Patterns of the columns that are encoded.
    pub(super) encoded: Vec<String>,
    /// Patterns of the columns whose pages get another codec; later ones win.
    pub(super) codecs: Vec<(String, Compression)>,
    pub(super) field_ids: Vec<FieldIdChange>,
    /// Whether row groups are made anew.
    pub(super) regroups: bool,
    /// Whether the row groups state no order of their rows.
    pub(super) forgets_order: bool,
    /// By what all rows are sorted.
    pub(super) sort_by: Vec<SortColumn>,
    /// Whether row groups stay, and the rows of each are sorted.
    pub(super) sorts_row_groups: bool,
    /// Whether the rows of each reader are sorted so already.
    pub(super) merges: bool,
    /// Ranges of readers whose rows are merged with one another, and by what.
    pub(super) merged: Vec<Range<usize>>,
    pub(super) merged_by: Vec<SortColumn>,
    /// Where rows go that are sorted and do not fit into memory.
    pub(super) temp_folder: Option<PathBuf>,
}

/// The wishes for one leaf of the new file.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LeafWishes {
    pub(super) is_encoded: bool,
    pub(super) codec: Option<Compression>,
}

impl RewriteSettings {
    /// The wishes for each leaf.
    ///
    /// # Errors
    /// `Usage` if a pattern names no leaf.
    pub(super) fn of_leaves(&self, leaves: &[Leaf]) -> Result<Vec<LeafWishes>> {
        let names = LeafNames::new(leaves)?;
        let mut wishes = memory::filled(LeafWishes::default(), leaves.len())?;
        let mut each = |pattern: &str, set: &dyn Fn(&mut LeafWishes)| {
            let named = names.named(pattern)?;
            for leaf in &named {
                wishes.get_mut(*leaf).into_iter().for_each(set);
            }
            match !named.is_empty() || pattern == "*" {
                true => Ok(()),
                false => Err(Error::usage(format_args!(
                    "a setting is for \"{pattern}\", and there is no such column"
                ))),
            }
        };
        for pattern in &self.encoded {
            each(pattern, &|wishes| wishes.is_encoded = true)?;
        }
        for (pattern, codec) in &self.codecs {
            each(pattern, &|wishes| wishes.codec = Some(*codec))?;
        }
        Ok(wishes)
    }
}
