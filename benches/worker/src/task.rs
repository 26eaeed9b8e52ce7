//! The protocol: what a task says, and what an answer says.

use serde::{Deserialize, Serialize};

use crate::measure::Measured;

/// A task. It is given to every contender alike, so that some fields are for
/// others.
#[derive(Debug, Clone, Deserialize)]
#[serde(default)]
pub struct Task {
    pub op: Op,
    pub file: String,
    /// Columns to read; all if there are none.
    pub cols: Option<Vec<String>>,
    /// Rows of a batch.
    pub batch: usize,
    pub mode: Mode,
    pub strings: Strings,
    pub io: Io,
    pub threads: usize,
    /// How often to do it.
    pub iters: usize,
    /// The column of a filter: `lo` ≤ value < `hi`.
    pub fcol: String,
    pub lo: i64,
    pub hi: i64,
    /// `rows`, `pages+rows` or `select`.
    pub fmode: String,
    /// Whether the page index is decoded with the metadata.
    pub page_index: bool,
    /// `default`, `none`, `snappy`, `zstd1`, `zstd3`.
    pub codec: String,
    /// `default`, `plain`, `v2`, `delta`, `bss`, `dlba`, `dba`.
    pub enc: String,
    /// Rows of a row group; 0 is the writer's own default.
    pub rg_rows: u64,
    /// Where the file goes.
    pub out: Option<String>,
}

impl Default for Task {
    fn default() -> Self {
        Self {
            op: Op::Clear,
            file: String::new(),
            cols: None,
            batch: 65_536,
            mode: Mode::Stream,
            strings: Strings::Utf8,
            io: Io::File,
            threads: 1,
            iters: 1,
            fcol: String::new(),
            lo: 0,
            hi: 0,
            fmode: String::new(),
            page_index: false,
            codec: "snappy".to_owned(),
            enc: "default".to_owned(),
            rg_rows: 0,
            out: None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    Read,
    Meta,
    Filter,
    Write,
    /// Drops the prepared state.
    Clear,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Each batch is dropped once it is seen.
    Stream,
    /// All are held to the end.
    Collect,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Strings {
    Utf8,
    View,
    /// Dictionaries are kept.
    Dict,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Io {
    /// The file is opened, and read through the page cache.
    File,
    /// Its bytes are in memory before the clock starts.
    Mem,
}

/// The result of a task.
#[derive(Debug, Serialize)]
pub struct Answer {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(flatten)]
    figures: Option<Figures>,
}

#[derive(Debug, Serialize)]
struct Figures {
    #[serde(flatten)]
    measured: Measured,
    #[serde(flatten)]
    done: Done,
}

/// The findings of a task.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Done {
    pub rows: u64,
    /// Bytes of the file that was written; 0 for other tasks.
    pub bytes: u64,
}

impl Answer {
    pub fn measured(measured: Measured, done: Done) -> Self {
        Self { ok: true, error: None, figures: Some(Figures { measured, done }) }
    }

    pub fn cleared() -> Self {
        Self { ok: true, error: None, figures: None }
    }

    pub fn failed(error: String) -> Self {
        Self { ok: false, error: Some(error), figures: None }
    }
}
