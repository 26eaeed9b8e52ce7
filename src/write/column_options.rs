//! [`ColumnOptions`]: the settings that may differ for single columns, and [`LeafSettings`]: those
//! of one leaf.

use std::sync::Arc;

use crate::compress::Compression;
use crate::encoding::choose::{HAS_PFOR, Profile, is_legal};
use crate::encoding::readers::{TargetReader, ValueType};
use crate::error::{Error, Result};
use crate::format::Encoding;
use crate::page::PageVersion;
use crate::schema::{Leaf, Physical};

/// Which statistics are collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StatisticsLevel {
    /// Nothing but counts.
    None,
    /// Bounds of column chunks; of geometries, the box around them and their types.
    Chunk,
    /// Bounds of column chunks and of pages: the page index.
    Page,
}

impl StatisticsLevel {
    /// Whether bounds are wanted.
    pub(super) fn bounds(self) -> bool {
        self >= Self::Chunk
    }
}

/// The settings of a bloom filter.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct BloomOptions {
    /// The false positive probability: the share of absent values that the filter takes for
    /// present.
    pub fpp: f64,
}

impl BloomOptions {
    /// Sets the false positive probability, between 0 and 1.
    #[must_use]
    pub const fn with_fpp(mut self, fpp: f64) -> Self {
        self.fpp = fpp;
        self
    }
}

impl Default for BloomOptions {
    fn default() -> Self {
        Self { fpp: 0.01 }
    }
}

/// Pages whose bounds follow from the content, so that an edit changes only the pages around it.
/// Pages of different columns then begin at different rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChunkingOptions {
    /// Minimum bytes of levels and values of a page; only the last may have fewer.
    pub min_bytes: usize,
    /// Maximum bytes, which only the last row of a page may exceed.
    pub max_bytes: usize,
}

impl ChunkingOptions {
    /// Pages of at least `min_bytes` and at most `max_bytes`.
    pub const fn new(min_bytes: usize, max_bytes: usize) -> Self {
        Self { min_bytes, max_bytes }
    }
}

impl Default for ChunkingOptions {
    fn default() -> Self {
        Self { min_bytes: 256 << 10, max_bytes: 1 << 20 }
    }
}

/// Options that differ for some columns; the others are those of the file.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::{BloomOptions, WriteOptions};
///
/// let options = WriteOptions::default()
///     .with_column("user_id", |column| column.with_bloom(BloomOptions::default()))
///     .with_column("metrics.*", |column| column.with_dictionary(false));
/// # let _ = options;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Default)]
pub struct ColumnOptions {
    encoding: Option<Encoding>,
    compression: Option<Compression>,
    dictionary: Option<bool>,
    bloom: Option<BloomOptions>,
    statistics: Option<StatisticsLevel>,
    total_order: Option<bool>,
    pub(super) page_bytes: Option<usize>,
    pub(super) page_rows: Option<usize>,
}

impl ColumnOptions {
    /// The encoding of the values, without a dictionary. RLE_DICTIONARY stands for a dictionary of
    /// any size, which BOOLEAN never has.
    #[must_use]
    pub fn with_encoding(mut self, encoding: Encoding) -> Self {
        self.encoding = Some(encoding);
        self
    }

    /// The codec.
    #[must_use]
    pub fn with_compression(mut self, compression: Compression) -> Self {
        self.compression = Some(compression);
        self
    }

    /// Whether a dictionary is used if it makes the chunk smaller.
    #[must_use]
    pub fn with_dictionary(mut self, dictionary: bool) -> Self {
        self.dictionary = Some(dictionary);
        self
    }

    /// Adds a bloom filter.
    #[must_use]
    pub fn with_bloom(mut self, bloom: BloomOptions) -> Self {
        self.bloom = Some(bloom);
        self
    }

    /// Which statistics are collected.
    #[must_use]
    pub fn with_statistics(mut self, level: StatisticsLevel) -> Self {
        self.statistics = Some(level);
        self
    }

    /// The order of floats.
    #[must_use]
    pub fn with_total_order(mut self, total_order: bool) -> Self {
        self.total_order = Some(total_order);
        self
    }

    /// Maximum bytes of a data page before compression, about.
    #[must_use]
    pub fn with_page_bytes(mut self, bytes: usize) -> Self {
        self.page_bytes = Some(bytes);
        self
    }

    /// Maximum rows of a data page.
    #[must_use]
    pub fn with_page_rows(mut self, rows: usize) -> Self {
        self.page_rows = Some(rows);
        self
    }

    /// Sets what differs for a leaf.
    ///
    /// # Errors
    /// `Usage` if a setting does not fit the leaf.
    pub(super) fn apply(&self, leaf: &Leaf, settings: &mut LeafSettings) -> Result<()> {
        let physical = leaf.physical.format_type();
        let wrong = |what: &dyn std::fmt::Display| {
            Err(Error::usage(format_args!("the setting for \"{}\": {what}", leaf.path.dotted())))
        };
        if let Some(encoding) = self.encoding {
            let dictionary = encoding == Encoding::RleDictionary;
            if dictionary && leaf.physical == Physical::Boolean {
                return wrong(&format_args!("{physical} is never written as a dictionary"));
            }
            if !dictionary && !is_legal(encoding, physical) {
                if encoding == Encoding::Pfor && !HAS_PFOR {
                    return wrong(&"PFOR is experimental, and needs the feature `preview`");
                }
                return wrong(&format_args!("{encoding} is no encoding of {physical}"));
            }
            settings.dictionary = dictionary;
            settings.encoding = Some(encoding);
        }
        if let Some(bloom) = self.bloom {
            if !(bloom.fpp > 0.0 && bloom.fpp < 1.0) {
                return wrong(&"the false-positive rate of a bloom filter lies between 0 and 1");
            }
            settings.bloom = Some(bloom);
        }
        if self.page_bytes == Some(0) || self.page_rows == Some(0) {
            return wrong(&"the size of a page must be more than 0");
        }
        self.set(settings);
        Ok(())
    }

    /// Sets what holds for a leaf of any type.
    pub(super) fn set(&self, settings: &mut LeafSettings) {
        if let Some(compression) = self.compression {
            settings.compression = compression;
            settings.codec_is_fixed = true;
        }
        settings.dictionary = self.dictionary.unwrap_or(settings.dictionary);
        settings.statistics = self.statistics.unwrap_or(settings.statistics);
        settings.total_order = self.total_order.unwrap_or(settings.total_order);
        settings.page_bytes = self.page_bytes.unwrap_or(settings.page_bytes);
        settings.page_rows = self.page_rows.unwrap_or(settings.page_rows);
        settings.page_bytes_are_fixed |= self.page_bytes.is_some();
        settings.page_rows_are_fixed |= self.page_rows.is_some();
    }
}

/// How one leaf is written.
#[derive(Debug, Clone)]
pub(crate) struct LeafSettings {
    pub(crate) profile: Profile,
    /// The target readers: only encodings that each of them decodes are chosen.
    pub(crate) readers: Arc<[TargetReader]>,
    /// Whether the file says, under `ARROW:schema`, that the leaf is a dictionary.
    pub(crate) arrow_dictionary: bool,
    pub(crate) compression: Compression,
    /// Whether the codec was asked for, so that it is used even where it does not help.
    pub(crate) codec_is_fixed: bool,
    pub(crate) page_version: PageVersion,
    pub(crate) encoding: Option<Encoding>,
    pub(crate) dictionary: bool,
    pub(crate) dictionary_bytes: usize,
    pub(crate) page_bytes: usize,
    /// Whether `page_bytes` was asked for, so that no page has more even where that helps.
    pub(crate) page_bytes_are_fixed: bool,
    pub(crate) page_rows: usize,
    /// Whether `page_rows` was asked for.
    pub(crate) page_rows_are_fixed: bool,
    pub(crate) statistics: StatisticsLevel,
    pub(crate) total_order: bool,
    pub(crate) checksums: bool,
    pub(crate) chunking: Option<ChunkingOptions>,
    pub(crate) bound_bytes: usize,
    pub(crate) bloom: Option<BloomOptions>,
}

impl LeafSettings {
    /// Whether the values may be written as a dictionary.
    pub(crate) fn may_have_dictionary(&self) -> bool {
        self.dictionary && matches!(self.encoding, None | Some(Encoding::RleDictionary))
    }

    /// Whether all readers that the file is for decode the leaf in this encoding.
    pub(crate) fn is_read_in(&self, encoding: Encoding, leaf: &Leaf) -> bool {
        let values = ValueType {
            physical: leaf.physical.format_type(),
            logical: leaf.logical.as_ref(),
            hinted_dictionary: self.arrow_dictionary,
        };
        self.readers.iter().all(|reader| reader.reads(encoding, &values))
    }
}
