//! A file that is examined, and the aim by which it is judged.

use marquetry::Reader;

use super::advice::Advice;
use crate::args::GoalName;
use crate::crypt;
use crate::trial::SamplePlan;

/// The aim of a file, and the settings that follow.
pub(crate) struct Goal {
    pub(crate) name: GoalName,
    /// Codecs that are tried.
    pub(super) codecs: &'static [&'static str],
    pub(super) profile: &'static str,
    /// The weight of bytes beside that of the time of reads.
    pub(super) weight_of_bytes: f64,
    /// Bytes that row groups should have, and those below which they are small.
    pub(super) row_group_bytes: u64,
    pub(super) min_row_group_bytes: u64,
}

pub(super) const MIB: u64 = 1 << 20;

impl Goal {
    pub(crate) fn new(name: GoalName) -> Self {
        let (codecs, profile, weight_of_bytes, row_group, min): (&'static [&str], _, _, _, _) =
            match name {
                GoalName::Size => (&["zstd:3", "zstd:9", "zstd:12"], "small", 1.0, 256, 16),
                GoalName::Scan => (&["lz4_raw", "snappy", "zstd:1"], "fast-read", 0.25, 64, 8),
                GoalName::Balanced => (&["lz4_raw", "zstd:1", "zstd:3"], "balanced", 0.6, 128, 8),
                GoalName::ObjectStore => (&["zstd:3", "zstd:9"], "balanced", 0.85, 256, 64),
                GoalName::Points => (&["lz4_raw", "zstd:1", "zstd:3"], "points", 0.6, 128, 8),
            };
        let (row_group_bytes, min_row_group_bytes) = (row_group * MIB, min * MIB);
        Self { name, codecs, profile, weight_of_bytes, row_group_bytes, min_row_group_bytes }
    }

    pub(crate) fn text(&self) -> &'static str {
        match self.name {
            GoalName::Size => "size",
            GoalName::Scan => "scan",
            GoalName::Balanced => "balanced",
            GoalName::ObjectStore => "object-store",
            GoalName::Points => "points",
        }
    }

    /// How much better bytes and time are than those before: less than 1 is better.
    pub(super) fn score(&self, bytes: f64, time: f64) -> f64 {
        bytes.powf(self.weight_of_bytes) * time.powf(1.0 - self.weight_of_bytes)
    }
}

/// A file that is examined.
pub(super) struct Exam<'a> {
    pub(super) file: &'a str,
    pub(super) reader: &'a Reader,
    pub(super) goal: &'a Goal,
    pub(super) plan: &'a SamplePlan,
    pub(super) findings: Vec<Advice>,
}

impl Exam<'_> {
    /// The command that writes the file anew.
    pub(super) fn optimize(&self) -> String {
        let (file, target) = (quoted(self.file), self.goal.text());
        format!("marq optimize {file} -o NEW.parquet --target {target}")
    }

    pub(super) fn fill(&self, flags: &str) -> String {
        format!("marq fill {} -o NEW.parquet{flags}", quoted(self.file))
    }
}

/// A word of a shell.
pub(super) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=+,:@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Whether a file is read with keys, so that its parts are not to be written in plain text.
pub(super) fn is_encrypted(reader: &Reader) -> bool {
    crypt::footer::is_encrypted(reader)
}
