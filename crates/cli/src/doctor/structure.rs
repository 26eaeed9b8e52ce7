//! Looks at the layout of a file: what is missing, and what is too small or too large.

use marquetry::format::CompressionCodec;
use marquetry::rewrite::{Fill, FillPart};
use marquetry::schema::Projection;
use marquetry::{ErrorKind, WriteOptions};

use super::advice::{Advice, Weight};
use super::exam::{Exam, MIB, is_encrypted, quoted};
use crate::args::GoalName;
use crate::failure::Result;
use crate::output::rounded_bytes;
use crate::recipe::Recipe;
use crate::trial::{SampleRows, TrialFile};

/// Bytes of row groups above which they are large: a reader holds one per thread.
const LARGE_ROW_GROUP: u64 = 1 << 30;
/// Bytes of a footer that take longer to read than they should.
const LARGE_FOOTER: u64 = 16 * MIB;
/// Uncompressed bytes of pages, at most.
const LARGE_PAGE: u64 = 8 * MIB;
/// Stored bytes of pages below which their headers cost more than they bring.
const SMALL_PAGE: u64 = 2 << 10;

impl Exam<'_> {
    /// Examines the layout. `sample` is the size up to which whole files are looked at.
    pub(super) fn structure(&mut self, sample: u64, recipe: &mut Recipe) -> Result<()> {
        self.codecs()?;
        self.footer();
        self.row_groups(recipe)?;
        self.pages()?;
        if is_encrypted(self.reader) {
            return Ok(());
        }
        match self.reader.file_len() <= sample.saturating_mul(4) {
            true => self.missing_parts()?,
            false => self.missing_by_footer()?,
        }
        Ok(())
    }

    fn codecs(&mut self) -> Result<()> {
        let footer = self.reader.metadata();
        let mut found: Option<(CompressionCodec, u64)> = None;
        for group in 0..footer.row_groups() {
            for chunk in footer.column_chunks(group)? {
                let Some(meta) = chunk?.meta_data else { continue };
                if matches!(meta.codec, CompressionCodec::Lz4 | CompressionCodec::Lzo) {
                    found.get_or_insert((meta.codec, 0)).1 += 1;
                }
            }
        }
        if let Some((codec, chunks)) = found {
            let text =
                format!("{chunks} column chunks are compressed with {codec}, which is deprecated");
            let advice = Advice::new(Weight::Error, "codec-deprecated", text, self.optimize());
            self.findings.push(advice);
        }
        Ok(())
    }

    fn footer(&mut self) {
        let (bytes, file) =
            (self.reader.metadata().index().byte_len() as u64, self.reader.file_len());
        let is_large =
            bytes > LARGE_FOOTER || (bytes > MIB / 16 && bytes.saturating_mul(20) > file);
        if is_large {
            let text = format!(
                "the footer takes {bytes} bytes of {file}, and every reader reads it whole; fewer row \
                 groups make it shorter"
            );
            let advice = Advice::new(Weight::Warning, "footer-large", text, self.optimize());
            self.findings.push(advice);
        }
    }

    fn row_groups(&mut self, recipe: &mut Recipe) -> Result<()> {
        let footer = self.reader.metadata();
        let groups = footer.row_groups() as u64;
        let bytes = self.reader.file_len() / groups.max(1);
        let most = (0..footer.row_groups()).map(|group| footer.row_group_rows(group));
        let most = most.collect::<Result<Vec<u64>, _>>()?.into_iter().max().unwrap_or(0);
        let is_small = groups > 1 && bytes < self.goal.min_row_group_bytes;
        let is_large = bytes > LARGE_ROW_GROUP;
        if !is_small && !is_large {
            // The profile for points has row groups of its own.
            let is_kept = most > 0 && self.goal.name != GoalName::Points;
            recipe.row_group_rows = is_kept.then_some(most);
            return Ok(());
        }
        let wanted = self.goal.row_group_bytes / MIB;
        recipe.row_group_bytes = Some(format!("{wanted}MiB"));
        let (code, what) = match is_small {
            true => ("row-groups-small", "small: each costs requests, and metadata in the footer"),
            false => ("row-groups-large", "large: a reader holds one for each thread"),
        };
        let text = format!(
            "{groups} row groups of {} are {what}; {wanted} MiB are better",
            rounded_bytes(bytes)
        );
        let mut advice = Advice::new(Weight::Warning, code, text, self.optimize());
        if is_small && self.plan.rows > most {
            // The same rows in row groups of both sizes.
            let rows = SampleRows::read(&self.plan.reader(self.reader, &Projection::All)?)?;
            let options = WriteOptions::new();
            let small =
                TrialFile::write(&rows, &options.clone().with_row_group_rows(most.max(1)), 1)?;
            let bytes = self.goal.row_group_bytes;
            let large = TrialFile::write(&rows, &options.with_row_group_bytes(bytes), 1)?;
            let of = |trial: &TrialFile| self.plan.extrapolated(trial.bytes.len() as u64);
            advice = advice.priced(of(&small), of(&large));
            let times = (small.write_time.as_secs_f64(), large.write_time.as_secs_f64());
            advice.write_time = (times.0 > 0.0).then(|| times.1 / times.0 - 1.0);
        }
        self.findings.push(advice);
        Ok(())
    }

    /// Looks at the pages of the first row group of the sample.
    fn pages(&mut self) -> Result<()> {
        let Some(&group) = self.plan.row_groups.first() else { return Ok(()) };
        let footer = self.reader.metadata();
        for leaf in 0..footer.schema().leaves_len() {
            let name = footer.schema().leaf_node(leaf)?.path().dotted().to_owned();
            let (mut pages, mut stored, mut largest) = (0u64, 0u64, 0u64);
            for page in self.reader.stored_pages(group, leaf)? {
                let header = page?.header;
                let of = |n: i32| u64::try_from(n).unwrap_or(0);
                if header.dictionary_page_header.is_none() {
                    pages += 1;
                    stored += of(header.compressed_page_size);
                    largest = largest.max(of(header.uncompressed_page_size));
                }
            }
            if largest > LARGE_PAGE {
                let text = format!(
                    "a page of {} MiB uncompressed: a reader that wants one row of it decodes all",
                    largest / MIB
                );
                let advice = Advice::new(Weight::Note, "pages-large", text, self.optimize());
                self.findings.push(advice.of_column(&name));
            } else if pages > 64 && stored / pages < SMALL_PAGE {
                let text = format!("{pages} pages of {} bytes in a column chunk", stored / pages);
                let advice = Advice::new(Weight::Note, "pages-small", text, self.optimize());
                self.findings.push(advice.of_column(&name));
            }
        }
        Ok(())
    }

    /// Finds the parts that `fill` would add, with their bytes.
    fn missing_parts(&mut self) -> Result<()> {
        let plan = match Fill::new(self.reader.clone()).plan() {
            Ok(plan) => plan,
            Err(error) if matches!(error.kind(), ErrorKind::Io | ErrorKind::Limit(_)) => {
                return Err(error.into());
            }
            Err(error) if matches!(error.kind(), ErrorKind::Malformed(_)) => {
                let command = format!("marq check {} --level truth", quoted(self.file));
                let text = error.message().to_owned();
                let mut advice = Advice::new(Weight::Error, "states-untruth", text, command);
                advice.column = error.at().column.as_deref().map(str::to_owned);
                self.findings.push(advice);
                return Ok(());
            }
            Err(_) => return Ok(()),
        };
        for part in plan.parts {
            let (code, severity, why) = worth(part.part);
            let text = format!("{} {} lack {}: {why}", part.count, part.part.unit(), part.part);
            let mut advice = Advice::new(severity, code, text, self.fill(""));
            advice.bytes = i64::try_from(part.bytes).ok();
            self.findings.push(advice);
        }
        let checksums = Fill::new(self.reader.clone()).only([FillPart::Checksums]);
        if let Some(part) = checksums.decode_values(false).plan()?.parts.first() {
            let (code, severity, why) = worth(part.part);
            let text = format!("{} pages lack checksums: {why}", part.count);
            let mut advice = Advice::new(severity, code, text, self.fill(" --what checksums"));
            advice.bytes = i64::try_from(part.bytes).ok();
            self.findings.push(advice);
        }
        Ok(())
    }

    /// The same without bytes, of a file that is too large to be decoded whole.
    fn missing_by_footer(&mut self) -> Result<()> {
        let footer = self.reader.metadata();
        let (mut indexes, mut statistics, mut encodings) = (0u64, 0u64, 0u64);
        for group in 0..footer.row_groups() {
            for chunk in footer.column_chunks(group)? {
                let chunk = chunk?;
                let Some(meta) = &chunk.meta_data else { continue };
                indexes += u64::from(chunk.offset_index_offset.is_none());
                let stated = meta.statistics.as_ref();
                statistics += u64::from(stated.is_none_or(|stated| stated.null_count.is_none()));
                encodings += u64::from(meta.encoding_stats.is_none());
            }
        }
        for (part, count) in [
            (FillPart::OffsetIndex, indexes),
            (FillPart::Statistics, statistics),
            (FillPart::EncodingStats, encodings),
        ] {
            if count > 0 {
                let (code, severity, why) = worth(part);
                let text = format!("{count} column chunks lack {part}: {why}");
                self.findings.push(Advice::new(severity, code, text, self.fill("")));
            }
        }
        Ok(())
    }
}

/// The use of a part.
fn worth(part: FillPart) -> (&'static str, Weight, &'static str) {
    match part {
        FillPart::EncodingStats => (
            "encoding-stats-missing",
            Weight::Note,
            "readers cannot tell whether a dictionary has all values",
        ),
        FillPart::Statistics => {
            ("statistics-missing", Weight::Warning, "filters cannot pass over row groups")
        }
        FillPart::SizeStatistics => {
            ("size-statistics-missing", Weight::Note, "readers cannot tell the memory they need")
        }
        FillPart::OffsetIndex => {
            ("offset-index-missing", Weight::Warning, "readers cannot fetch single pages")
        }
        FillPart::ColumnIndex => {
            ("column-index-missing", Weight::Warning, "filters cannot pass over pages")
        }
        FillPart::ColumnOrders => {
            ("column-orders-missing", Weight::Warning, "bounds mean nothing without them")
        }
        FillPart::Checksums => {
            ("checksums-missing", Weight::Note, "damage of stored bytes is not noticed")
        }
        _ => ("part-missing", Weight::Note, "it helps readers"),
    }
}
