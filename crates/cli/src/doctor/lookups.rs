//! Prices bloom filters: their bytes, and the row groups that a lookup of one value then reads.

use std::cmp::Ordering;

use arrow_array::{Array, ArrayRef};
use arrow_ord::ord::make_comparator;
use arrow_ord::rank::rank;
use arrow_schema::{DataType, SortOptions};
use arrow_select::concat::concat;
use marquetry::{BloomOptions, WriteOptions};

use super::advice::{Advice, Weight};
use super::exam::{Exam, column_nodes, is_named};
use crate::bench::stored_bytes;
use crate::failure::Result;
use crate::trial::{SampleRows, TrialFile};

/// Columns that are tried, the largest first.
const MAX_COLUMNS: usize = 4;
/// Values that are looked up.
const LOOKUPS: usize = 64;
/// The share of the file that a filter may take, at most.
const MAX_SHARE: f64 = 0.05;
/// The rate of false positives that filters have by default.
const FALSE_POSITIVES: f64 = 0.01;

/// The row groups that lookups of single values read, on average.
struct LookupReads {
    by_bounds: f64,
    by_bloom: f64,
}

impl Exam<'_> {
    /// Tries bloom filters for columns of many values, whose bounds tell little.
    pub(super) fn lookups(&mut self, rows: &SampleRows) -> Result<()> {
        let footer = self.reader.metadata();
        if footer.row_groups() < 2 {
            return Ok(());
        }
        let mut columns = Vec::new();
        for (at, node) in column_nodes(footer.schema()).enumerate() {
            let has_filter = || -> Result<bool> {
                let meta = footer.column_chunk(0, node.leaves().start)?.meta_data;
                Ok(meta.is_some_and(|meta| meta.bloom_filter_offset.is_some()))
            };
            let field = rows.schema.fields().get(at);
            if node.is_leaf()
                && is_named(footer.schema(), node)
                && field.is_some_and(|field| is_looked_up(field.data_type()))
                && !has_filter()?
            {
                columns.push((stored_bytes(self.reader, self.plan, node.leaves())?, at, node));
            }
        }
        columns.sort_by_key(|(bytes, ..)| std::cmp::Reverse(*bytes));
        let names: Vec<(usize, String)> = columns
            .into_iter()
            .take(MAX_COLUMNS)
            .map(|(_, at, node)| (at, node.name().to_owned()))
            .collect();
        for (at, name) in names {
            let arrays: Vec<&dyn Array> = rows
                .batches
                .iter()
                .filter_map(|batch| Some(batch.columns().get(at)?.as_ref()))
                .collect();
            if arrays.is_empty() {
                continue;
            }
            if let Some(reads) = self.lookup_reads(&name, &concat(&arrays)?)? {
                self.try_bloom(&name, rows, at, &reads)?;
            }
        }
        Ok(())
    }

    /// The row groups that lookups of values of the sample read; `None` if that cannot be told.
    fn lookup_reads(&self, name: &str, values: &ArrayRef) -> Result<Option<LookupReads>> {
        let bounds = self.reader.column_statistics(name)?;
        let (Ok(ranks), true) = (rank(values, None), bounds.min.data_type() == values.data_type())
        else {
            return Ok(None);
        };
        let options = SortOptions::default();
        let (least, most) = (
            make_comparator(values, &bounds.min, options)?,
            make_comparator(values, &bounds.max, options)?,
        );
        // Equal values have one rank, and rows of a rank are how often it is there.
        let mut sorted = ranks.clone();
        sorted.sort_unstable();
        let rows = values.len();
        let (mut by_bounds, mut by_bloom, mut lookups) = (0usize, 0.0, 0usize);
        for at in (0..rows).step_by((rows / LOOKUPS).max(1)).filter(|at| values.is_valid(*at)) {
            let within = |group: usize| {
                let is_known = bounds.min.is_valid(group) && bounds.max.is_valid(group);
                !is_known
                    || (least(at, group) != Ordering::Less && most(at, group) != Ordering::Greater)
            };
            let groups = (0..bounds.len()).filter(|group| within(*group)).count();
            let rank = ranks.get(at).copied().unwrap_or_default();
            let before = sorted.partition_point(|of| *of < rank);
            let found = sorted.partition_point(|of| *of <= rank) - before;
            // What is there once in the sample is taken to be there once.
            let in_file = match found {
                0 | 1 => 1,
                found => self.plan.extrapolated(found as u64),
            };
            let in_file = usize::try_from(in_file).unwrap_or(usize::MAX).clamp(1, groups.max(1));
            by_bounds += groups;
            by_bloom += float(in_file) + FALSE_POSITIVES * float(groups.saturating_sub(in_file));
            lookups += 1;
        }
        let mean = |sum: f64| sum / float(lookups.max(1));
        let reads = LookupReads { by_bounds: mean(float(by_bounds)), by_bloom: mean(by_bloom) };
        let is_worth_it = lookups > 0 && reads.by_bloom * 2.0 <= reads.by_bounds;
        Ok(is_worth_it.then_some(reads))
    }

    /// Writes a column with a filter, and without it.
    fn try_bloom(
        &mut self,
        name: &str,
        rows: &SampleRows,
        at: usize,
        reads: &LookupReads,
    ) -> Result<()> {
        let batches = rows.batches.iter().map(|batch| batch.project(&[at]));
        let alone = SampleRows {
            schema: std::sync::Arc::new(rows.schema.project(&[at])?),
            batches: batches.collect::<Result<_, _>>()?,
            rows: rows.rows,
            memory_bytes: rows.memory_bytes,
        };
        // The row groups of the file, because each has a filter of its own.
        let group_rows = self.plan.all_rows / self.reader.metadata().row_groups().max(1) as u64;
        let plain = WriteOptions::new().with_row_group_rows(group_rows.max(1));
        let bloom = plain.with_column(alone.schema.field(0).name().as_str(), |column| {
            column.with_bloom(BloomOptions::default())
        });
        let Ok(trial) = TrialFile::write(&alone, &bloom, 1) else { return Ok(()) };
        let metadata = trial.report.metadata()?;
        let chunks = metadata.row_groups.iter().flat_map(|group| &group.columns);
        let filters = chunks.filter_map(|chunk| chunk.meta_data.as_ref()?.bloom_filter_length);
        let added = filters.map(|len| u64::try_from(len).unwrap_or(0)).sum();
        let added = self.plan.extrapolated(added);
        if float_of(added) > MAX_SHARE * float_of(self.reader.file_len()) {
            return Ok(());
        }
        let text = format!(
            "a lookup of one of its values reads {:.1} of {} row groups by their bounds, and {:.1} \
             with a bloom filter; one of a value that is not there reads 1 in 100 of those",
            reads.by_bounds,
            self.reader.metadata().row_groups(),
            reads.by_bloom,
        );
        let command = self.fill(&format!(" --bloom {}", super::quoted(name)));
        let mut advice = Advice::new(Weight::Note, "bloom-filter-missing", text, command);
        advice = advice.of_column(name);
        advice.bytes = i64::try_from(added).ok();
        self.findings.push(advice);
        Ok(())
    }
}

/// Whether values of a type are looked up one by one.
fn is_looked_up(data_type: &DataType) -> bool {
    data_type.is_integer()
        || matches!(
            data_type,
            DataType::Utf8
                | DataType::LargeUtf8
                | DataType::Utf8View
                | DataType::Binary
                | DataType::LargeBinary
                | DataType::BinaryView
                | DataType::FixedSizeBinary(_)
        )
}

#[expect(clippy::cast_precision_loss, reason = "a mean")]
fn float(n: usize) -> f64 {
    n as f64
}

#[expect(clippy::cast_precision_loss, reason = "a share")]
fn float_of(n: u64) -> f64 {
    n as f64
}
