//! [`Encoder::choose`]: in which form a chunk is written.

use super::arrays::bytes_layout;
use super::dictionary::{DictionaryLimits, Interned, intern, intern_parts, unify};
use super::gather::{Gathered, gather, is_keyed};
use super::job::{Encoder, Form};
use super::measure::{Choice, Of, SAMPLE, sample_ranges};
use super::select::Race;
use super::source::Source;
use super::values::Values;
use crate::compress::Compression;
use crate::error::Result;
use crate::format::Encoding;
use crate::page::Sealer;
use crate::schema::Physical;

impl<'a> Encoder<'a> {
    /// Picks the form that is best.
    ///
    /// # Errors
    /// `Usage` if a value does not fit the leaf, or the encoding that was asked for.
    pub(super) fn choose(&self, sealer: &mut Sealer) -> Result<Choice<'a>> {
        let (settings, spare) = (self.settings, &self.tools.spare);
        let must = settings.encoding == Some(Encoding::RleDictionary);
        if let Some(encoding) = settings.encoding
            && !must
        {
            return self.given(encoding, sealer);
        }
        let wants_dictionary = settings.dictionary && self.leaf.physical != Physical::Boolean;
        if wants_dictionary && let Some(dictionary) = self.keyed()? {
            return self.choose_keyed(dictionary, sealer);
        }
        let source = self.source()?;
        let mut race = Race::new(self, Of::Values(&source), sealer);
        let mut gathered = None;
        if wants_dictionary && (must || race.may_be_won_by_a_dictionary()?) {
            let limits = match must {
                true => DictionaryLimits::NONE,
                false => DictionaryLimits { bytes: settings.dictionary_bytes, must_pay: true },
            };
            let (values, dictionary) = self.intern(&source, limits)?;
            gathered = values;
            if let Some(dictionary) = dictionary {
                let of = race.dictionary(&dictionary)?;
                if must || race.is_won_by(of)? {
                    return Ok(of.choice(Form::Dictionary { dictionary, values: gathered }));
                }
                spare.give(dictionary.codes);
            }
        }
        let best = race.best()?;
        let values = gathered.map_or(source, Source::Whole);
        Ok(best.choice(Form::Plain { values, encoding: best.estimate.encoding }))
    }

    /// The form of values that came as keys into others.
    fn choose_keyed(&self, dictionary: Interned<'a>, sealer: &mut Sealer) -> Result<Choice<'a>> {
        let mut race = Race::new(self, Of::Keys(&dictionary), sealer);
        let of = race.dictionary(&dictionary)?;
        if self.settings.encoding.is_some() || race.is_won_by(of)? {
            return Ok(of.choice(Form::Dictionary { dictionary, values: None }));
        }
        let best = race.best()?;
        let values = Source::Whole(dictionary.entries.take(&dictionary.codes));
        self.tools.spare.give(dictionary.codes);
        Ok(best.choice(Form::Plain { values, encoding: best.estimate.encoding }))
    }

    /// The form in an encoding that was asked for.
    fn given(&self, encoding: Encoding, sealer: &mut Sealer) -> Result<Choice<'a>> {
        let values = self.source()?;
        let bytes = match (encoding, self.settings.compression) {
            (Encoding::Plain, Compression::Uncompressed) => values.plain_len(self.leaf),
            _ => {
                let sample = values.sample(&sample_ranges(values.len(), SAMPLE), self.leaf)?;
                let (_, stored) = self.measure(&sample, encoding, sealer)?;
                stored.saturating_mul(values.len()) / sample.len().max(1)
            }
        };
        Ok(Choice { form: Form::Plain { values, encoding }, helps: true, bytes })
    }

    /// The values: page by page, unless all are needed at once.
    fn source(&self) -> Result<Source<'a>> {
        let parts = &self.column.parts;
        if !is_keyed(parts) && self.settings.chunking.is_none() {
            return Ok(Source::Parts(parts));
        }
        Ok(Source::Whole(match gather(parts, self.leaf, &self.tools.spare)? {
            Gathered::Plain(values) => values,
            Gathered::Keyed { entries, keys } => entries.take(&keys),
        }))
    }

    /// The dictionary of values that came as keys, if they did.
    fn keyed(&self) -> Result<Option<Interned<'a>>> {
        let (parts, spare) = (&self.column.parts, &self.tools.spare);
        if !is_keyed(parts) {
            return Ok(None);
        }
        Ok(match gather(parts, self.leaf, spare)? {
            Gathered::Plain(_) => None,
            Gathered::Keyed { entries, keys } => {
                let dictionary = unify(&entries, &keys, spare);
                spare.give(keys);
                dictionary
            }
        })
    }

    /// Looks for a dictionary; and gives the values if they had to be gathered for it.
    fn intern(
        &self,
        source: &Source<'a>,
        limits: DictionaryLimits,
    ) -> Result<(Option<Values<'a>>, Option<Interned<'a>>)> {
        let (parts, spare) = (&self.column.parts, &self.tools.spare);
        let are_byte_arrays = parts.iter().all(|part| bytes_layout(part, self.leaf).is_some());
        if self.leaf.physical == Physical::ByteArray && !is_keyed(parts) && are_byte_arrays {
            return Ok((None, intern_parts(parts, self.leaf, limits, spare)));
        }
        let values = match source {
            Source::Whole(values) => return Ok((None, intern(values, limits, spare))),
            Source::Parts(parts) => match gather(parts, self.leaf, spare)? {
                Gathered::Plain(values) => values,
                Gathered::Keyed { entries, keys } => entries.take(&keys),
            },
        };
        let dictionary = intern(&values, limits, spare);
        Ok((Some(values), dictionary))
    }
}
