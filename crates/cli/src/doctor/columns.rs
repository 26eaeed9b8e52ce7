//! Tries codecs, with the encodings that the writer chooses, for each column of the sample.

use marquetry::format::{CompressionCodec, Encoding, Type};
use marquetry::schema::{Node, Projection};
use marquetry::{Compression, Reader, WriteOptions};

use super::advice::{Advice, Weight, change};
use super::exam::Exam;
use crate::bench::stored_bytes;
use crate::failure::Result;
use crate::recipe::{ColumnRecipe, Recipe};
use crate::trial::{SampleRows, TrialFile, median_of, read_all};

/// Rounds of each measurement of time.
const ROUNDS: usize = 3;
/// Columns that are tried, the largest first; the others are written like the rest of the file.
const MAX_COLUMNS: usize = 200;
/// The least that a higher level of a codec must save for the next one to be tried.
const MIN_LEVEL_GAIN: f64 = 0.01;

/// A column, and what it takes as it is.
struct Tried<'a> {
    name: &'a str,
    rows: SampleRows,
    bytes: u64,
    write: f64,
    read: f64,
    /// Bytes in the whole file.
    file_bytes: u64,
}

/// The best of the trials of a column.
struct Best {
    codec: &'static str,
    encodings: Vec<Encoding>,
    bytes: u64,
    write: f64,
    read: f64,
    score: f64,
}

impl Exam<'_> {
    /// Tries each column.
    pub(super) fn columns(&mut self, recipe: &mut Recipe) -> Result<()> {
        let reader = self.reader;
        let mut columns = Vec::new();
        // By their indices, because several may have one name.
        for (field, node) in reader.metadata().schema().fields().enumerate() {
            columns.push((stored_bytes(reader, self.plan, node.leaves())?, field, node));
        }
        columns.sort_by_key(|(bytes, ..)| std::cmp::Reverse(*bytes));
        for (bytes, field, node) in columns.into_iter().take(MAX_COLUMNS) {
            if bytes > 0 {
                self.column(field, node, bytes, recipe)?;
            }
        }
        Ok(())
    }

    fn column(
        &mut self,
        field: usize,
        node: Node<'_>,
        bytes: u64,
        recipe: &mut Recipe,
    ) -> Result<()> {
        let (facts, name) = (ColumnFacts::read(self.reader, node)?, node.name());
        let reader = self.plan.reader(self.reader, &Projection::fields([field]))?.threads(1);
        let rows = SampleRows::read(&reader)?;
        let read = median_of(ROUNDS, || read_all(&reader).map(|_| ()))?.as_secs_f64();
        let options = WriteOptions::new().with_compression(facts.codec);
        let write = TrialFile::write(&rows, &options, 1)?.write_time.as_secs_f64();
        let file_bytes = self.plan.extrapolated(bytes);
        let tried = Tried { name, rows, bytes, write, read, file_bytes };
        let best = self.best(&tried, &facts, recipe)?;
        let encodings: Vec<String> = best.encodings.iter().map(Encoding::to_string).collect();
        let encodings = encodings.join(", ");
        let saved = -change(tried.bytes, best.bytes);
        let (codec, score) = (best.codec, best.score);
        if facts.has_int96 {
            let text = "values are INT96, which is deprecated; written as INT64 timestamps";
            let advice = Advice::new(Weight::Warning, "int96", text, self.optimize());
            self.push(advice, &tried, &best);
        }
        if facts.falls_back {
            let text = format!(
                "pages after the first are not in its dictionary, which was full; {encodings} and \
                 {codec} by the trial"
            );
            let advice = Advice::new(Weight::Note, "dictionary-fallback", text, self.optimize());
            self.push(advice, &tried, &best);
        }
        // A column that becomes larger than the target allows keeps its codec.
        let is_kept = score >= MIN_SCORE || !self.is_within(&tried, best.bytes);
        for leaf in &facts.leaves {
            let codec = if is_kept { facts.codec_text } else { codec };
            let column = ColumnRecipe { codec: Some(codec.to_owned()), ..ColumnRecipe::default() };
            // Of several columns of one name, the largest decides.
            recipe.columns.entry(leaf.clone()).or_insert(column);
        }
        if is_kept {
            return Ok(());
        }
        let share_of_file = share(tried.file_bytes, self.reader.file_len());
        let severity = match saved >= 0.1 && share_of_file >= 0.01 {
            true => Weight::Warning,
            false => Weight::Note,
        };
        let text = format!(
            "{encodings} and {codec}, in place of {} and {}",
            facts.encodings, facts.codec_name
        );
        self.push(Advice::new(severity, "column-encoding", text, self.optimize()), &tried, &best);
        Ok(())
    }

    fn push(&mut self, advice: Advice, tried: &Tried<'_>, best: &Best) {
        let after = self.plan.extrapolated(best.bytes);
        let mut advice = advice.of_column(tried.name).priced(tried.file_bytes, after);
        let of = |before: f64, after: f64| (before > 0.0).then(|| after / before - 1.0);
        advice.write_time = of(tried.write, best.write);
        advice.read_time = of(tried.read, best.read);
        self.findings.push(advice);
    }

    /// Whether a column has at most the bytes that the target allows.
    fn is_within(&self, tried: &Tried<'_>, bytes: u64) -> bool {
        change(tried.bytes, bytes) <= self.goal.max_growth
    }

    /// Writes a column with each codec, and with the one that it has.
    fn best(&self, tried: &Tried<'_>, facts: &ColumnFacts, recipe: &Recipe) -> Result<Best> {
        let mut best: Option<Best> = None;
        // Settings of other columns are for columns that are not there.
        let alone = Recipe { columns: Default::default(), ..recipe.clone() }.options()?;
        let family = |codec: &str| codec.split(':').next().unwrap_or_default().to_owned();
        let is_new = |codec: &&str| self.goal.codecs.iter().all(|of| family(of) != **codec);
        let own = Some(facts.codec_text).filter(is_new);
        let mut level: Option<(String, u64)> = None;
        let mut is_enough = false;
        for codec in self.goal.codecs.iter().copied().chain(own) {
            // Levels rise, and so does the time that they take.
            let before = level.take().filter(|(of, _)| *of == family(codec));
            if before.is_some() && is_enough {
                level = before;
                continue;
            }
            let options = alone.clone().with_compression(codec.parse::<Compression>()?);
            let trial = TrialFile::write(&tried.rows, &options, 1)?;
            let read = trial.read_time(ROUNDS)?.as_secs_f64();
            let write = trial.write_time.as_secs_f64();
            let columns = trial.columns()?;
            let bytes = columns.iter().map(|column| column.bytes).sum();
            is_enough = before.is_some_and(|(_, before)| change(before, bytes) > -MIN_LEVEL_GAIN);
            level = Some((family(codec), bytes));
            let score = self.goal.score(
                change(tried.bytes, bytes) + 1.0,
                if tried.read > 0.0 { read / tried.read } else { 1.0 },
            );
            let rank = |score: f64, bytes: u64| (!self.is_within(tried, bytes), score);
            let is_better = |best: &Best| rank(score, bytes) < rank(best.score, best.bytes);
            if best.as_ref().is_none_or(is_better) {
                let mut encodings: Vec<Encoding> = Vec::new();
                for encoding in columns.iter().flat_map(|column| &column.encodings) {
                    if *encoding != Encoding::Rle && !encodings.contains(encoding) {
                        encodings.push(*encoding);
                    }
                }
                // The page of a dictionary.
                if encodings.contains(&Encoding::RleDictionary) {
                    encodings.retain(|encoding| *encoding != Encoding::Plain);
                }
                best = Some(Best { codec, encodings, bytes, write, read, score });
            }
        }
        best.ok_or_else(|| marquetry::Error::internal("there are codecs to try").into())
    }
}

/// The least that a change must bring, beside 1.
const MIN_SCORE: f64 = 0.95;

#[expect(clippy::cast_precision_loss, reason = "a share")]
fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole.max(1) as f64
}

/// A column by the footer.
pub(super) struct ColumnFacts {
    leaves: Vec<String>,
    codec: Compression,
    /// The codec as a recipe has it.
    codec_text: &'static str,
    codec_name: String,
    encodings: String,
    pub(super) has_dictionary: bool,
    /// Whether data pages follow that are not in the dictionary.
    falls_back: bool,
    has_int96: bool,
}

impl ColumnFacts {
    pub(super) fn read(reader: &Reader, node: Node<'_>) -> Result<Self> {
        let (footer, range) = (reader.metadata(), node.leaves());
        let mut leaves = Vec::new();
        for leaf in range.clone() {
            leaves.push(footer.schema().leaf_node(leaf)?.path().dotted().to_owned());
        }
        let (mut encodings, mut codec) = (Vec::new(), CompressionCodec::Uncompressed);
        let (mut has_dictionary, mut falls_back, mut has_int96) = (false, false, false);
        for group in 0..footer.row_groups() {
            for leaf in range.clone() {
                let Some(meta) = footer.column_chunk(group, leaf)?.meta_data else { continue };
                codec = meta.codec;
                has_int96 |= meta.r#type == Type::Int96;
                let is_of_levels =
                    |of: &Encoding| matches!(of, Encoding::Rle | Encoding::BitPacked);
                let is_indices = |of: &Encoding| {
                    matches!(of, Encoding::RleDictionary | Encoding::PlainDictionary)
                };
                let has_indices = meta.encodings.iter().any(is_indices);
                has_dictionary |= has_indices;
                let data = meta.encoding_stats.iter().flatten().filter(|of| {
                    of.page_type != marquetry::format::PageType::DictionaryPage && of.count > 0
                });
                let (indices, others): (Vec<_>, Vec<_>) =
                    data.map(|of| of.encoding).partition(|of| is_indices(of));
                falls_back |= !indices.is_empty() && !others.is_empty();
                for encoding in meta.encodings.iter().filter(|of| !is_of_levels(of)) {
                    let is_dictionary_page = has_indices && *encoding == Encoding::Plain;
                    if !encodings.contains(encoding) && (!is_dictionary_page || falls_back) {
                        encodings.push(*encoding);
                    }
                }
            }
        }
        let names: Vec<String> = encodings.iter().map(Encoding::to_string).collect();
        Ok(Self {
            leaves,
            codec: codec_text(codec).parse().unwrap_or(Compression::Uncompressed),
            codec_text: codec_text(codec),
            codec_name: codec.to_string(),
            encodings: names.join(", "),
            has_dictionary,
            falls_back,
            has_int96,
        })
    }
}

/// The codec that the writer has for one of a file, at its usual level.
fn codec_text(codec: CompressionCodec) -> &'static str {
    match codec {
        CompressionCodec::Snappy => "snappy",
        CompressionCodec::Gzip => "gzip",
        CompressionCodec::Brotli => "brotli",
        CompressionCodec::Zstd => "zstd",
        // Their times are much alike, and not each build has LZO.
        CompressionCodec::Lz4 | CompressionCodec::Lz4Raw | CompressionCodec::Lzo => "lz4_raw",
        _ => "none",
    }
}
