//! A file that is examined, and the aim by which it is judged.

use marquetry::Reader;
use marquetry::schema::{Node, Schema};

use super::advice::Advice;
use crate::args::{GoalName, Unit};
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
    /// By how much a file may grow, as a share of its bytes, where reads become faster.
    pub(super) max_growth: f64,
    /// Bytes that row groups should have, and those below which they are small.
    pub(super) row_group_bytes: u64,
    pub(super) min_row_group_bytes: u64,
}

pub(super) const MIB: u64 = 1 << 20;

impl Goal {
    pub(crate) fn new(name: GoalName) -> Self {
        let (codecs, profile): (&'static [&str], _) = match name {
            GoalName::Size => (&["zstd:3", "zstd:9", "zstd:12"], "small"),
            GoalName::Scan => (&["lz4_raw", "snappy", "zstd:1"], "fast-read"),
            GoalName::Balanced => (&["lz4_raw", "zstd:1", "zstd:3"], "balanced"),
            GoalName::ObjectStore => (&["zstd:3", "zstd:9"], "balanced"),
            GoalName::Points => (&["lz4_raw", "zstd:1", "zstd:4"], "points"),
        };
        let (weight_of_bytes, max_growth) = match name {
            GoalName::Size => (1.0, 0.0),
            GoalName::Scan => (0.25, 0.25),
            GoalName::Balanced | GoalName::Points => (0.6, 0.1),
            GoalName::ObjectStore => (0.85, 0.0),
        };
        let (row_group, min) = match name {
            GoalName::Size => (256, 16),
            GoalName::Scan => (64, 8),
            GoalName::Balanced | GoalName::Points => (128, 8),
            GoalName::ObjectStore => (256, 64),
        };
        let (row_group_bytes, min_row_group_bytes) = (row_group * MIB, min * MIB);
        Self {
            name,
            codecs,
            profile,
            weight_of_bytes,
            max_growth,
            row_group_bytes,
            min_row_group_bytes,
        }
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
    /// The unit of INT96 that was asked for.
    pub(super) int96: Option<Unit>,
    pub(super) findings: Vec<Advice>,
}

impl Exam<'_> {
    /// The command that writes the file anew.
    pub(super) fn optimize(&self) -> String {
        let (target, int96) = (self.goal.text(), self.int96_flag());
        self.command(|file| format!("marq optimize {file} -o NEW.parquet --target {target}{int96}"))
    }

    pub(super) fn fill(&self, flags: &str) -> String {
        self.command(|file| format!("marq fill {file} -o NEW.parquet{flags}"))
    }

    /// The command that `make` returns for a file that it writes anew: for a decrypted copy, if the
    /// file is encrypted, because such commands refuse to write it in plain text.
    pub(super) fn command(&self, make: impl FnOnce(&str) -> String) -> String {
        let file = quoted(self.file);
        if !is_encrypted(self.reader) {
            return make(&file);
        }
        let plain = "PLAIN.parquet";
        format!("marq crypt decrypt {file} -o {plain}; {}", make(plain))
    }

    /// The flag by which other commands read INT96 as this one does.
    pub(super) fn int96_flag(&self) -> &'static str {
        match self.int96 {
            None => "",
            Some(Unit::S) => " --int96 s",
            Some(Unit::Ms) => " --int96 ms",
            Some(Unit::Us) => " --int96 us",
            Some(Unit::Ns) => " --int96 ns",
        }
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

/// The top-level nodes in the order of the columns that are read: groups without leaves have none.
pub(super) fn column_nodes(schema: &Schema) -> impl Iterator<Item = Node<'_>> {
    schema.fields().filter(|node| !node.leaves().is_empty())
}

/// Whether its name means this column, as a command would name it, and no other.
pub(super) fn is_named(schema: &Schema, node: Node<'_>) -> bool {
    schema.node_named(node.name()).is_ok_and(|named| named.leaves() == node.leaves())
}
