//! Flags that several commands have.

use clap::ValueEnum;
use serde::Serialize;

use crate::urls;

/// Files to work on.
#[derive(Debug, clap::Args)]
pub(crate) struct Files {
    /// Files, globs, folders, URLs, or - for standard input.
    #[arg(required = true, value_name = "FILE", value_parser = urls::argument)]
    pub(crate) files: Vec<String>,
}

/// Which columns, in all commands alike.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct Columns {
    /// Columns: names and nested paths, globs, and !NAME to leave one out; separated by commas, or
    /// repeated. A name with a comma is put in double quotes: -c '"a,b",c'.
    #[arg(
        short = 'c',
        long = "columns",
        alias = "column",
        value_name = "COLS",
        value_parser = names,
        allow_hyphen_values = true
    )]
    listed: Vec<Names>,
}

/// Columns of one flag.
#[derive(Debug, Clone)]
struct Names(Vec<String>);

impl Columns {
    /// The names, in their order.
    pub(crate) fn names(&self) -> Vec<String> {
        self.listed.iter().flat_map(|names| names.0.iter().cloned()).collect()
    }
}

/// Splits names at commas; a name in double quotes may contain commas, and "" stands for a quote.
fn names(text: &str) -> Result<Names, String> {
    let mut names = Vec::new();
    let mut rest = text;
    loop {
        let (sign, body) = match rest.strip_prefix("!\"") {
            Some(body) => ("!", Some(body)),
            None => ("", rest.strip_prefix('"')),
        };
        let after = match body.and_then(quoted) {
            Some((name, after)) if after.is_empty() || after.starts_with(',') => {
                names.push(format!("{sign}{name}"));
                after
            }
            _ => {
                let end = rest.find(',').unwrap_or(rest.len());
                names.push(rest[..end].to_owned());
                &rest[end..]
            }
        };
        match after.strip_prefix(',') {
            Some(after) => rest = after,
            None => return Ok(Names(names)),
        }
    }
}

/// A quoted name after its first quote, and what follows it.
fn quoted(body: &str) -> Option<(String, &str)> {
    let mut at = 0;
    loop {
        at += body.get(at..)?.find('"')?;
        match body.get(at + 1..)?.starts_with('"') {
            true => at += 2,
            false => return Some((body[..at].replace("\"\"", "\""), &body[at + 1..])),
        }
    }
}

/// The input file.
#[derive(Debug, clap::Args)]
pub(crate) struct SourceFile {
    /// The file, a URL, or - for standard input.
    #[arg(value_name = "FILE", value_parser = urls::argument)]
    pub(crate) file: String,
}

/// The forms of values that have more than one in text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, clap::Args)]
#[command(next_help_heading = VALUES)]
pub(crate) struct ValueForms {
    /// Decimals in JSON: numbers with all their digits, or text [default: number].
    #[arg(long, value_name = "FORM")]
    pub(crate) decimals: Option<DecimalForm>,
    /// Maps with text as keys: JSON objects, or lists of {"key": …, "value": …}, as all other maps
    /// are [default: object].
    #[arg(long, value_name = "FORM")]
    pub(crate) maps: Option<MapForm>,
    /// Bytes: hex after 0x, text, or base64. Default: text where all values seen first are, as
    /// those of strings that were written without annotation; else hex, and where text would begin
    /// with 0x.
    #[arg(long, value_name = "FORM")]
    pub(crate) binary: Option<BinaryForm>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum DecimalForm {
    /// JSON numbers.
    #[default]
    Number,
    /// JSON strings.
    Text,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum MapForm {
    /// JSON objects.
    #[default]
    Object,
    /// Lists of keys and values.
    Pairs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum BinaryForm {
    /// Hexadecimal digits after 0x.
    Hex,
    /// UTF-8.
    Text,
    /// Base64 with padding.
    Base64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum By {
    Column,
    Chunk,
    Rowgroup,
    Page,
}

/// A number of bytes: 512MiB, 64KB, 1000.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: f64 = number.parse().map_err(|_| format!("{text:?} is not a size like 512MiB"))?;
    let factor: f64 = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 1.0,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024.0 * 1024.0,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        other => return Err(format!("{other:?} is not a unit of size: KiB, MiB, GiB, KB, MB, GB")),
    };
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "no sign can be typed, and more than 2^64 is all of it"
    )]
    Ok((number * factor) as u64)
}

/// Headings of the help.
pub(super) const OUTPUT: &str = "Output";
pub(super) const READING: &str = "Reading";
pub(super) const WRITING: &str = "Writing Parquet";
pub(super) const TEXT: &str = "CSV and JSON lines";
pub(super) const VALUES: &str = "Values";
pub(super) const KEYS: &str = "Encryption";
