//! [`ChunkEncoder::choose`] decides in which form a chunk is written.

use super::arrays::bytes_layout;
use super::dictionary::{DictionaryLimits, ValueDictionary, intern, intern_parts, unify};
use super::encoder::{ChunkEncoder, ChunkForm};
use super::gather::{GatheredValues, gather, is_keyed};
use super::measure::{
    BlocksTried, EncodingChoice, MAX_SAMPLE_BYTES, SAMPLE_VALUES, SampleSource, sample_ranges,
};
use super::select::EncodingSelector;
use super::source::ValueSource;
use super::values::LeafValues;
use crate::compress::Compression;
use crate::encoding::delta_binary::DeltaBlocks;
use crate::error::Result;
use crate::format::Encoding;
use crate::page::Sealer;
use crate::schema::Physical;

impl<'a> ChunkEncoder<'a> {
    /// Picks the form that is best.
    ///
    /// # Errors
    /// `Usage` if a value does not fit the leaf, or the encoding that was asked for.
    pub(super) fn choose(&self, sealer: &mut Sealer) -> Result<EncodingChoice<'a>> {
        let (settings, free_lists) = (self.settings, &self.context.free_lists);
        let must = settings.encoding == Some(Encoding::RleDictionary);
        if let Some(encoding) = settings.encoding
            && !must
        {
            return self.forced(encoding, sealer);
        }
        let wants_dictionary = settings.dictionary && self.leaf.physical != Physical::Boolean;
        if wants_dictionary && let Some(dictionary) = self.keyed()? {
            return self.choose_keyed(dictionary, sealer);
        }
        let source = self.source()?;
        let mut selector = EncodingSelector::new(self, SampleSource::Plain(&source), sealer);
        let mut gathered = None;
        if wants_dictionary && (must || selector.may_dictionary_be_best()?) {
            let limits = match must {
                true => DictionaryLimits::NONE,
                false => DictionaryLimits { bytes: settings.dictionary_bytes, must_pay: true },
            };
            let (values, dictionary) = self.intern(&source, limits)?;
            gathered = values;
            if let Some(dictionary) = dictionary {
                let (layout, of) = selector.dictionary(&dictionary)?;
                if must || selector.is_best(of)? {
                    let values = gathered;
                    return Ok(of.choice(ChunkForm::Dictionary { dictionary, layout, values }));
                }
                free_lists.put_back(dictionary.codes);
            }
        }
        let best = selector.best()?;
        let values = gathered.map_or(source, ValueSource::Whole);
        Ok(best.choice(best.plain(values)))
    }

    /// Picks the form of values that came as dictionary or run-end arrays.
    fn choose_keyed(
        &self,
        dictionary: ValueDictionary<'a>,
        sealer: &mut Sealer,
    ) -> Result<EncodingChoice<'a>> {
        let mut selector = EncodingSelector::new(self, SampleSource::Keyed(&dictionary), sealer);
        let (layout, of) = selector.dictionary(&dictionary)?;
        if self.settings.encoding.is_some() || selector.is_best(of)? {
            return Ok(of.choice(ChunkForm::Dictionary { dictionary, layout, values: None }));
        }
        let best = selector.best()?;
        let values = ValueSource::Whole(dictionary.entries.take(&dictionary.codes)?);
        self.context.free_lists.put_back(dictionary.codes);
        Ok(best.choice(best.plain(values)))
    }

    /// The form in an encoding that was asked for.
    fn forced(&self, encoding: Encoding, sealer: &mut Sealer) -> Result<EncodingChoice<'a>> {
        let values = self.source()?;
        let (bytes, blocks) = match (encoding, self.settings.compression) {
            (Encoding::Plain, Compression::Uncompressed) => {
                (values.plain_len(self.leaf), DeltaBlocks::Short)
            }
            _ => {
                let n = values.len();
                let sample = values.sample(&sample_ranges(n, SAMPLE_VALUES), self.leaf)?;
                let sample = sample.thinned(MAX_SAMPLE_BYTES)?;
                let of = self.measure_encoding(&sample, n, encoding, BlocksTried::All, sealer)?;
                (of.bytes(), of.blocks)
            }
        };
        let form = ChunkForm::Plain { values, encoding, blocks };
        Ok(EncodingChoice { form, helps: true, bytes })
    }

    /// The values: page by page, unless all are needed at once.
    fn source(&self) -> Result<ValueSource<'a>> {
        let parts = &self.column.parts;
        if !is_keyed(parts) && self.settings.chunking.is_none() {
            return Ok(ValueSource::Parts(parts));
        }
        Ok(ValueSource::Whole(match gather(parts, self.leaf, &self.context.free_lists)? {
            GatheredValues::Plain(values) => values,
            GatheredValues::Keyed { entries, keys } => entries.take(&keys)?,
        }))
    }

    /// The dictionary of values that came as keys, if they did.
    fn keyed(&self) -> Result<Option<ValueDictionary<'a>>> {
        let (parts, free_lists) = (&self.column.parts, &self.context.free_lists);
        if !is_keyed(parts) {
            return Ok(None);
        }
        Ok(match gather(parts, self.leaf, free_lists)? {
            GatheredValues::Plain(_) => None,
            GatheredValues::Keyed { entries, keys } => {
                let dictionary = unify(&entries, &keys, self.parallelism, free_lists);
                free_lists.put_back(keys);
                dictionary
            }
        })
    }

    /// Looks for a dictionary; and returns the values if they had to be gathered for it.
    fn intern(
        &self,
        source: &ValueSource<'a>,
        limits: DictionaryLimits,
    ) -> Result<(Option<LeafValues<'a>>, Option<ValueDictionary<'a>>)> {
        let (parts, free_lists) = (&self.column.parts, &self.context.free_lists);
        let are_byte_arrays = parts.iter().all(|part| bytes_layout(part, self.leaf).is_some());
        if self.leaf.physical == Physical::ByteArray && !is_keyed(parts) && are_byte_arrays {
            return Ok((
                None,
                intern_parts(parts, self.leaf, limits, self.parallelism, free_lists),
            ));
        }
        let values = match source {
            ValueSource::Whole(values) => {
                return Ok((None, intern(values, limits, self.parallelism, free_lists)));
            }
            ValueSource::Parts(parts) => match gather(parts, self.leaf, free_lists)? {
                GatheredValues::Plain(values) => values,
                GatheredValues::Keyed { entries, keys } => entries.take(&keys)?,
            },
        };
        let dictionary = intern(&values, limits, self.parallelism, free_lists);
        Ok((Some(values), dictionary))
    }
}
