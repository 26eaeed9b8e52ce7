//! [`BloomFilter`]: the bloom filter of a column chunk, as an object that can be asked.
//!
//! Spec: BloomFilter.md. Pruning fetches single blocks instead: `prune`. Trap: an encrypted filter
//! is two modules, header and bits.

use std::ops::Range;

use super::metadata::Metadata;
use super::prune::decrypted_bloom;
use crate::error::{Error, Result, Spec};
use crate::format::{ColumnMetaData, FieldRepetitionType, SchemaElement};
use crate::limits::Limits;
use crate::predicate::expression::col;
use crate::predicate::literal::Literal;
use crate::predicate::{ColumnFacts, PruneResult};
use crate::schema::{ArrowOptions, Physical, Schema};
use crate::stats::bloom::{Bloom, BloomLayout};

/// The bloom filter of a column chunk: a value is certainly absent, or may be present.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::io::WriteSink;
/// use marquetry::{BloomOptions, Reader, WriteOptions, Writer, lit};
///
/// let plain = Reader::open("testdata/trips.parquet")?.project(["id"])?;
/// let options =
///     WriteOptions::new().with_column("id", |of| of.with_bloom(BloomOptions::default()));
/// let mut writer = Writer::new(WriteSink(Vec::new()), plain.schema()?, options)?;
/// for batch in plain.batches()? {
///     writer.write(&batch?)?;
/// }
/// let reader = Reader::new(bytes::Bytes::from(writer.into_inner()?.1))?;
/// let filter = reader.bloom_filter(0, 0)?.expect("it was written");
/// assert!(filter.might_contain(1)?);
/// assert!(!filter.might_contain(-5)?);
/// assert!(filter.might_contain(lit("1").by_value())?);
/// println!("{} of {} bits are set", filter.set_bits(), filter.byte_len() * 8);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct BloomFilter {
    bits: Bloom,
    /// The column alone, without what is around it.
    schema: Schema,
    path: String,
}

impl BloomFilter {
    /// Whether the column chunk may hold `value`; false if it certainly does not. The value is
    /// compared with the column as in a predicate, [by value](Literal::by_value) if it says so. If
    /// the column is inside a list, its elements are looked for.
    ///
    /// # Errors
    /// `Usage` if the column's type has no such value.
    pub fn might_contain(&self, value: impl Into<Literal>) -> Result<bool> {
        let test = col(self.path.as_str()).eq(value.into());
        let bound = test.bind(&self.schema, &[], &ArrowOptions::default())?;
        let mut facts = ColumnFacts::unknown(1);
        facts.bloom = Some(self.bits.clone().into());
        let result = bound.prune_row_group(1, |_| Some(&facts));
        Ok(result != PruneResult::Cannot)
    }

    /// Number of its blocks, of 32 bytes each.
    pub fn blocks(&self) -> usize {
        self.bits.blocks().len()
    }

    /// Bytes of its bits.
    pub fn byte_len(&self) -> usize {
        self.bits.len()
    }

    /// Number of bits that are set.
    pub fn set_bits(&self) -> u64 {
        self.bits.blocks().iter().flatten().map(|word| u64::from(word.count_ones())).sum()
    }

    /// The share of absent values that it takes for present: exact for values whose hashes are
    /// equally distributed.
    pub fn false_positive_rate(&self) -> f64 {
        let of_word = |word: &u32| f64::from(word.count_ones()) / 32.0;
        let of_block = |block: &[u32; 8]| block.iter().map(of_word).product::<f64>();
        let blocks = self.bits.blocks();
        #[expect(clippy::cast_precision_loss, reason = "far fewer than 2^52 blocks fit in memory")]
        let count = blocks.len().max(1) as f64;
        blocks.iter().map(of_block).sum::<f64>() / count
    }

    /// Adds the values of `other`, so that the filter answers for both column chunks.
    ///
    /// # Errors
    /// `Usage` if the filters have different sizes, or are of columns of different types.
    pub fn merge(&mut self, other: &Self) -> Result<()> {
        let (one, two) = (self.schema.leaf(0)?, other.schema.leaf(0)?);
        if (one.physical, &one.logical) != (two.physical, &two.logical) {
            return Err(Error::usage(format_args!(
                "the bloom filters of {} and {} cannot be merged: their types differ",
                self.path, other.path
            )));
        }
        let (own, others) = (self.blocks(), other.blocks());
        match self.bits.unite(&other.bits) {
            true => Ok(()),
            false => Err(Error::usage(format_args!(
                "bloom filters of {own} and {others} blocks cannot be merged"
            ))),
        }
    }

    /// The filter as it is stored where nothing is encrypted: its header, then its bits.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.byte_len() + BloomLayout::HEADER_BYTES);
        self.bits.write(&mut bytes).expect("its header stated a length of 32 bits");
        bytes
    }
}

/// The place of a bloom filter in a file, from which its bytes are fetched step by step.
pub(crate) struct StoredBloom {
    metadata: Metadata,
    row_group: usize,
    leaf: usize,
    start: u64,
    stated_len: Option<u64>,
}

impl StoredBloom {
    /// The filter of a column chunk; `None` if it has none.
    ///
    /// # Errors
    /// `Usage` if there is no such chunk, `Malformed` if its metadata are broken, `Crypto` if its
    /// key is missing.
    pub(crate) fn new(metadata: &Metadata, row_group: usize, leaf: usize) -> Result<Option<Self>> {
        let footer = metadata.footer();
        // Without its key, it is not known whether an encrypted chunk has a filter.
        footer.chunk_decryptor(row_group, leaf, &footer.column_chunk_ref(row_group, leaf)?)?;
        let chunk = footer.column_chunk(row_group, leaf)?;
        let Some(ColumnMetaData {
            bloom_filter_offset: Some(start), bloom_filter_length: len, ..
        }) = chunk.meta_data
        else {
            return Ok(None);
        };
        let start = u64::try_from(start).map_err(|_| outside())?;
        let stated_len = len.and_then(|len| u64::try_from(len).ok()).filter(|len| *len > 0);
        Ok(Some(Self { metadata: metadata.clone(), row_group, leaf, start, stated_len }))
    }

    /// The bytes to fetch first: all of the filter, or its header if the footer does not state how
    /// long it is.
    ///
    /// # Errors
    /// `Malformed` if they lie outside the file.
    pub(crate) fn first_range(&self) -> Result<Range<u64>> {
        let file_len = self.metadata.file_len();
        let end = match self.stated_len {
            Some(len) => self.start.checked_add(len),
            None => Some(self.start.saturating_add(BloomLayout::HEADER_BYTES as u64).min(file_len)),
        };
        end.filter(|end| *end <= file_len && self.start < *end)
            .map(|end| self.start..end)
            .ok_or_else(outside)
    }

    /// The whole range of the filter, if `bytes` of [`StoredBloom::first_range`] are not all of it.
    ///
    /// # Errors
    /// `Malformed` if the header is broken or the filter ends outside the file; `Unsupported` if it
    /// is encrypted and the footer does not state its length.
    pub(crate) fn whole_range(&self, bytes: &[u8]) -> Result<Option<Range<u64>>> {
        if self.stated_len.is_some() {
            return Ok(None);
        }
        let chunk = self.metadata.footer().column_chunk_ref(self.row_group, self.leaf)?;
        if chunk.is_encrypted() {
            return Err(Error::unsupported(
                "encrypted bloom filters of unknown length",
                "the footer does not state the length of the encrypted bloom filter",
            ));
        }
        let layout = BloomLayout::parse(bytes)?.ok_or_else(unknown_kind)?;
        let end = self.start.checked_add(layout.byte_len());
        let end = end.filter(|end| *end <= self.metadata.file_len()).ok_or_else(outside)?;
        Ok(Some(self.start..end))
    }

    /// The filter in `bytes`, decrypted if the column is encrypted.
    ///
    /// # Errors
    /// `Malformed` if it is broken, `Unsupported` if it is of another kind, `Crypto`.
    pub(crate) fn open(&self, bytes: &[u8]) -> Result<BloomFilter> {
        let (footer, leaf) = (self.metadata.footer(), self.leaf);
        let chunk = footer.column_chunk_ref(self.row_group, leaf)?;
        let opener = footer.chunk_decryptor(self.row_group, leaf, &chunk)?;
        let plain = opener.map(|opener| decrypted_bloom(&opener, bytes)).transpose()?;
        let bits = Bloom::parse(plain.as_deref().unwrap_or(bytes))?.ok_or_else(unknown_kind)?;
        let of = footer.schema().leaf(leaf)?;
        let path = of.path.dotted();
        let root = SchemaElement { num_children: Some(1), ..SchemaElement::new("") };
        let type_length = match of.physical {
            Physical::FixedLenByteArray(len) => i32::try_from(len).ok(),
            _ => None,
        };
        let column = SchemaElement {
            r#type: Some(of.physical.format_type()),
            type_length,
            repetition_type: Some(FieldRepetitionType::Required),
            logical_type: of.logical,
            ..SchemaElement::new(path.as_str())
        };
        let schema = Schema::parse(vec![root, column], &Limits::default())?;
        Ok(BloomFilter { bits, schema, path })
    }
}

#[cold]
fn outside() -> Error {
    Error::malformed(Spec::BloomFilter, "the bloom filter lies outside the file")
}

#[cold]
fn unknown_kind() -> Error {
    Error::unsupported(
        "the kind of bloom filter",
        "the bloom filter has an unknown algorithm, hash or compression",
    )
}
