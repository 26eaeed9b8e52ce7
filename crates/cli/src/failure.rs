//! Reports what is wrong, and chooses the exit code of a command.

use std::borrow::Cow;
use std::process::ExitCode;

use marquetry::{Error, ErrorKind, LimitKind, Spec};
use unicode_width::UnicodeWidthStr;

use crate::args::Format;
use crate::escape::{escape, escape_json};

/// A result whose error ends the command.
pub(crate) type Result<T, E = Failure> = std::result::Result<T, E>;

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// An error of the library.
    File(Error),
    /// Invalid content of a file that is not Parquet.
    Content { file: String, line: Option<u64>, message: String, hint: Option<&'static str> },
    /// The output cannot be written.
    Output(std::io::Error),
    /// The command line names something that does not exist.
    Usage(String),
    /// This file has other columns than the files before it, which are in one CSV.
    OtherColumns(String),
    /// Some files failed, and have been reported; others succeeded.
    Partial,
    /// Requirements that are not met, one per line.
    Found(Vec<String>),
}

/// How a command ends that has printed what it found: as `found` says, also where the reader of the
/// pipe has closed it before all was printed.
pub(crate) fn after_printing(printed: Result<()>, found: Result<()>) -> Result<()> {
    match printed {
        Err(failure) if !failure.is_closed_pipe() => Err(failure),
        _ => found,
    }
}

impl Failure {
    /// An error in the content of a file that is not Parquet.
    pub(crate) fn content(file: &str, line: Option<u64>, message: impl ToString) -> Self {
        Self::Content { file: file.to_owned(), line, message: message.to_string(), hint: None }
    }

    /// The same with what may help, where that is known.
    pub(crate) fn with_hint(self, help: Option<&'static str>) -> Self {
        match self {
            Self::Content { file, line, message, .. } => {
                Self::Content { file, line, message, hint: help }
            }
            other => other,
        }
    }

    /// The same with the file that an error of the library is about.
    pub(crate) fn at_file(self, file: &str) -> Self {
        match self {
            Self::File(error) => Self::File(error.at_file(file)),
            other => other,
        }
    }

    /// The same with the column chunk.
    pub(crate) fn at_chunk(self, file: &str, row_group: usize, column: &str) -> Self {
        match self.at_file(file) {
            Self::File(error) => Self::File(error.at_row_group(row_group).at_column(column)),
            other => other,
        }
    }

    /// Whether the reader of the output has closed its pipe: `marq cat FILE | head`.
    fn is_closed_pipe(&self) -> bool {
        matches!(self, Self::Output(error) if error.kind() == std::io::ErrorKind::BrokenPipe)
    }

    /// Prints the error on standard error, and returns the exit code.
    pub(crate) fn report(&self, format: Option<Format>) -> ExitCode {
        let code = self.code();
        match self {
            _ if self.is_closed_pipe() => return ExitCode::SUCCESS,
            Self::Partial => {}
            Self::Found(lines) => {
                for line in lines {
                    eprintln!("marq: {}", escape(line));
                }
            }
            _ if matches!(format, Some(Format::Json | Format::Jsonl)) => {
                eprintln!("{}", escape_json(&self.json(code).to_string()))
            }
            _ => {
                // As people chose it: --color, NO_COLOR and CLICOLOR_FORCE.
                let (red, cyan, end) = ("\x1b[1;31m", "\x1b[36m", "\x1b[0m");
                anstream::eprintln!("{red}marq:{end} {}", escape_marked(&self.text()));
                if let Some(hint) = self.hint() {
                    anstream::eprintln!("  {cyan}hint:{end} {hint}");
                }
            }
        }
        ExitCode::from(code)
    }

    /// The exit code.
    pub(crate) fn code(&self) -> u8 {
        match self {
            Self::Output(_) => 1,
            Self::Content { .. } => 3,
            Self::Usage(_) | Self::OtherColumns(_) => 2,
            Self::Partial => 5,
            Self::Found(_) => 4,
            Self::File(error) => match error.kind() {
                ErrorKind::Usage => 2,
                ErrorKind::Crypto | ErrorKind::Malformed(Spec::Encryption) => 6,
                ErrorKind::Malformed(_)
                | ErrorKind::Unsupported(_)
                | ErrorKind::Limit(_)
                | ErrorKind::FeatureDisabled(_) => 3,
                // As after the signal of an interrupt.
                ErrorKind::Cancelled => 130,
                // The system, or a fault of ours, which the message tells apart: nothing is wrong
                // with the file, and nothing with the command line.
                _ => 1,
            },
        }
    }

    pub(crate) fn text(&self) -> String {
        match self {
            Self::File(error) => in_flags(&error.to_string()),
            Self::Content { file, line: Some(line), message, .. } => {
                format!("{file}, line {line}: {message}")
            }
            Self::Content { file, line: None, message, .. } => format!("{file}: {message}"),
            Self::Output(error) => format!("the output cannot be written: {error}"),
            Self::Usage(text) => text.clone(),
            Self::OtherColumns(file) => format!(
                "{file}: the file has other columns than the first one, and CSV has one header; \
                 --by-name unites them"
            ),
            Self::Partial => "some files failed".to_owned(),
            Self::Found(lines) => lines.join("; "),
        }
    }

    fn hint(&self) -> Option<&'static str> {
        let error = match self {
            Self::File(error) => error,
            Self::Content { hint, .. } => return *hint,
            _ => return None,
        };
        Some(match error.kind() {
            ErrorKind::Limit(LimitKind::Footer) => {
                "raise the limit with --limit-footer SIZE, if you trust the file"
            }
            ErrorKind::Limit(LimitKind::Memory) => {
                "raise the limit with --mem SIZE, or read fewer columns with -c"
            }
            ErrorKind::Limit(LimitKind::ArrayLength) => {
                "read fewer rows at a time with --rows A:B, or fewer columns with -c"
            }
            ErrorKind::Limit(LimitKind::Rows) => "read fewer rows with --rows A:B",
            ErrorKind::Limit(LimitKind::Nesting) if error.message().contains("Limits::nesting") => {
                "marq has no flag for this limit; the library reads on with a larger one"
            }
            ErrorKind::Usage
                if error.message().starts_with("there is no field")
                    && !error.message().contains("did you mean") =>
            {
                "marq schema lists the fields; in --where, text stands in single quotes: 'text'"
            }
            ErrorKind::Unsupported("timestamp out of range") => {
                "read INT96 in a coarser unit: --int96 us"
            }
            _ => return None,
        })
    }

    /// The message of the operating system, or of Arrow.
    fn cause(&self) -> Option<String> {
        match self {
            Self::File(error) => error.get_ref().map(ToString::to_string),
            Self::Output(error) => Some(error.to_string()),
            _ => None,
        }
    }

    /// The section of the specification that is broken.
    fn section(&self) -> Option<String> {
        match self {
            Self::File(error) => match error.kind() {
                ErrorKind::Malformed(spec) => Some(spec.to_string()),
                _ => None,
            },
            _ => None,
        }
    }

    fn json(&self, code: u8) -> serde_json::Value {
        let at = match self {
            Self::File(error) => error.at().clone(),
            _ => marquetry::At::default(),
        };
        let message = match self {
            Self::Content { message, .. } => message.clone(),
            Self::File(error) => in_flags(error.message()),
            _ => self.text(),
        };
        let (file, line) = match self {
            Self::Content { file, line, .. } => (Some(&**file), *line),
            _ => (at.file.as_deref(), None),
        };
        let mut json = serde_json::json!({
            "code": code, "file": file, "row_group": at.row_group, "column": at.column.as_deref(),
            "page": at.page, "offset": at.offset, "message": message, "cause": self.cause(),
            "section": self.section(), "hint": self.hint(),
        });
        if let (Some(json), Some(line)) = (json.as_object_mut(), line) {
            json.insert("line".to_owned(), line.into());
        }
        json
    }
}

/// Escapes the text, except the line breaks of a message that ends in a line of a predicate and a
/// mark below it. The mark moves right by the length of the escapes before it.
fn escape_marked(text: &str) -> Cow<'_, str> {
    let marked = text.rsplit_once('\n').and_then(|(above, mark)| {
        let (message, line) = above.rsplit_once('\n')?;
        let before = mark.strip_suffix('^').filter(|before| before.trim().is_empty())?;
        Some((message, line, line.chars().take(before.len()).collect::<String>()))
    });
    let Some((message, line, before)) = marked else { return escape(text) };
    let mark = " ".repeat(escape(&before).width());
    Cow::Owned(format!("{}\n{}\n{mark}^", escape(message), escape(line)))
}

/// Names that the library's messages use, and the flags that do it here.
const FLAGS: [(&str, &str); 12] = [
    ("Reader::shared_bytes(true) (marq: --shared-bytes)", "--shared-bytes"),
    ("Decryption::with_plaintext_files(true) (marq: --allow-plain)", "--allow-plain"),
    ("Decryption::with_aad_prefix (marq: --aad-prefix)", "--aad-prefix"),
    ("(Decryption; marq: ", "("),
    ("Decryption::with_unauthenticated_pages(true)", "only the library, when it is asked to,"),
    ("Decryption::with_unverified_footers(true)", "only the library, when it is asked to,"),
    ("Limits::memory_bytes", "--mem"),
    ("Limits::footer_bytes", "--limit-footer"),
    ("Limits::", "the library's limit "),
    ("Reader::int96(TimeUnit::Microsecond), or with marq --int96 us", "--int96 us"),
    ("Reader::target", "the library's target schema"),
    ("Reader::files_below", "the library's files_below"),
];

/// The message with the flags of this tool in the place of the library's names.
pub(crate) fn in_flags(message: &str) -> String {
    FLAGS.iter().fold(message.to_owned(), |message, (name, flag)| {
        if message.contains(name) { message.replace(name, flag) } else { message }
    })
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::File(error)
    }
}

impl From<std::io::Error> for Failure {
    fn from(error: std::io::Error) -> Self {
        Self::Output(error)
    }
}

impl From<arrow_schema::ArrowError> for Failure {
    fn from(error: arrow_schema::ArrowError) -> Self {
        match error {
            arrow_schema::ArrowError::IoError(_, error) => Self::Output(error),
            other => Self::File(other.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exit_code_follows_the_kind_of_the_error() {
        for (error, code) in [
            (Error::from(std::io::Error::other("gone")), 1),
            (Error::internal("levels and values disagree"), 1),
            (Error::usage("no such column"), 2),
            (Error::malformed(Spec::Container, "no magic number"), 3),
            (Error::unsupported("a codec", "none that is known"), 3),
            (Error::crypto("no key"), 6),
            (Error::malformed(Spec::Encryption, "a wrong tag"), 6),
            (Error::cancelled("the read"), 130),
        ] {
            assert_eq!(Failure::File(error).code(), code);
        }
    }
}
