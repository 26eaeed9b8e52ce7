//! The one error of the crate: what kind, which section of the specification, where in the file.
//!
//! Every stage adds its place once ([`Error::at_row_group`], [`Error::at_column`],
//! [`Error::at_page`], [`Error::at_offset`]); callees do not know it. Programs match on
//! [`Error::kind`], people read the text.

use std::fmt;
use std::sync::Arc;

/// A result whose error is [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong, where, and which rule was broken.
///
/// One word wide, so that `Result<usize>` stays in registers.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::{ErrorKind, Reader};
///
/// let bytes = bytes::Bytes::from_static(b"PAR1, and no footer");
/// match Reader::new(bytes) {
///     Err(e) if matches!(e.kind(), ErrorKind::Malformed(_)) => eprintln!("{e}, {:?}", e.at()),
///     other => drop(other?),
/// }
/// # Ok(())
/// # }
/// ```
pub struct Error(Box<Inner>);

#[derive(Debug)]
struct Inner {
    kind: ErrorKind,
    at: At,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
    /// Whether code of the caller failed with it.
    is_of_caller: bool,
}

/// The kind of an [`Error`]: what a program decides by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The operating system, or another source of bytes, failed.
    Io,
    /// The bytes break a rule of the format.
    Malformed(Spec),
    /// Legal, but something that this crate does not do; names what.
    Unsupported(&'static str),
    /// A limit of [`Limits`](crate::Limits) was reached; names which.
    Limit(LimitKind),
    /// The file needs a cargo feature that this build does not have; names it.
    FeatureDisabled(&'static str),
    /// A key is missing, or authentication failed.
    Crypto,
    /// Arrow refused what was built.
    Arrow,
    /// The caller asked for something that does not exist or does not fit.
    Usage,
    /// This crate is at fault: no file and no caller should be able to cause it. Please report it.
    Internal,
    /// The work was given up before its end, because its result is not wanted any more.
    Cancelled,
}

/// Where in the specification the broken rule stands. The text names the section.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Spec {
    /// File layout: magic numbers, footer, offsets (README.md of parquet-format).
    Container,
    /// The thrift compact protocol.
    Thrift,
    /// A metadata structure; names it (`parquet.thrift`).
    Metadata(&'static str),
    /// The schema tree.
    Schema,
    /// Page layout, levels, checksums (README.md, "Data Pages").
    Pages,
    /// Definition and repetition levels.
    Levels,
    /// An encoding; names it (Encodings.md).
    Encodings(&'static str),
    /// A codec; names it (Compression.md).
    Compression(&'static str),
    /// A logical type; names it (LogicalTypes.md).
    LogicalTypes(&'static str),
    /// Page index (PageIndex.md).
    PageIndex,
    /// Bloom filters (BloomFilter.md).
    BloomFilter,
    /// Modular encryption (Encryption.md).
    Encryption,
    /// Variant values (VariantEncoding.md, VariantShredding.md).
    Variant,
    /// Geospatial values: well-known binary (Geospatial.md).
    Geospatial,
    /// The metadata of geometry columns under the key `geo` (GeoParquet of the OGC).
    GeoParquet,
    /// Deletion vectors of tables (PROTOCOL.md of Delta, puffin-spec.md of Iceberg).
    DeletionVectors,
}

/// Which limit of [`Limits`](crate::Limits), or of an object store, was reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum LimitKind {
    /// Bytes of the footer.
    Footer,
    /// Bytes of a page, uncompressed.
    Page,
    /// Depth of the schema or of a thrift value.
    Nesting,
    /// Memory budget of the read.
    Memory,
    /// Bytes or items of one Arrow array (32-bit offsets, dictionary keys).
    ArrayLength,
    /// Rows of a read without columns.
    Rows,
    /// Parts of an object that is uploaded.
    Parts,
}

/// A place in a file. Parts that are not known are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct At {
    /// Name of the file.
    pub file: Option<Arc<str>>,
    /// Number of the stream, where several are written.
    pub stream: Option<usize>,
    /// Index of the row group.
    pub row_group: Option<usize>,
    /// Dotted path of the column.
    pub column: Option<Arc<str>>,
    /// Index of the page in its column chunk, the dictionary page not counted.
    pub page: Option<usize>,
    /// Whether it is the dictionary page of the column chunk; `page` is `None` then.
    pub is_dictionary_page: bool,
    /// Byte offset in the file.
    pub offset: Option<u64>,
}

impl Error {
    #[cold]
    #[inline(never)]
    fn new(kind: ErrorKind, message: String) -> Self {
        let (at, source, is_of_caller) = (At::default(), None, false);
        Self(Box::new(Inner { kind, at, message, source, is_of_caller }))
    }

    /// The bytes break a rule of the section `spec`.
    #[cold]
    pub fn malformed(spec: Spec, message: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Malformed(spec), message.to_string())
    }

    /// As [`Error::malformed`], with both numbers: "`what`: expected …, found …".
    #[cold]
    pub(crate) fn mismatch(
        spec: Spec,
        what: &str,
        expected: impl fmt::Display,
        found: impl fmt::Display,
    ) -> Self {
        Self::new(ErrorKind::Malformed(spec), format!("{what}: expected {expected}, found {found}"))
    }

    /// Legal, but not done by this crate. `what` is the name of the thing, `message` the detail.
    #[cold]
    pub fn unsupported(what: &'static str, message: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Unsupported(what), message.to_string())
    }

    /// A limit was reached. The text should say how to raise it.
    #[cold]
    pub(crate) fn limit(which: LimitKind, message: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Limit(which), message.to_string())
    }

    /// This build lacks the cargo feature `feature`, which is needed for `what`.
    #[cold]
    pub(crate) fn feature_disabled(feature: &'static str, what: impl fmt::Display) -> Self {
        Self::new(
            ErrorKind::FeatureDisabled(feature),
            format!("{what} needs the cargo feature `{feature}`"),
        )
    }

    /// A key is missing or authentication failed.
    #[cold]
    pub fn crypto(message: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Crypto, message.to_string())
    }

    /// The caller asked for something that does not exist or does not fit.
    #[cold]
    pub fn usage(message: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Usage, message.to_string())
    }

    /// An invariant is broken that no file and no caller should be able to break.
    #[cold]
    pub fn internal(message: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Internal, message.to_string())
    }

    /// `what` was given up before its end, because its result is not wanted any more.
    #[cold]
    pub fn cancelled(what: impl fmt::Display) -> Self {
        Self::new(ErrorKind::Cancelled, format!("{what} was cancelled"))
    }

    /// An I/O failure, with what was being done.
    #[cold]
    pub fn io(what: impl fmt::Display, source: std::io::Error) -> Self {
        let mut error = Self::new(ErrorKind::Io, what.to_string());
        error.0.source = Some(Box::new(source));
        error
    }

    /// Whether an encrypted module is not what was written: the file was changed, or a key is
    /// missing or wrong. Nothing may go on as if it were not there.
    pub(crate) fn is_of_encryption(&self) -> bool {
        matches!(self.kind(), ErrorKind::Crypto | ErrorKind::Malformed(Spec::Encryption))
    }

    /// Marks an error that code of the caller failed with, such as a function of a predicate: a
    /// read ends with it, whatever kind it is of.
    pub(crate) fn of_caller(mut self) -> Self {
        self.0.is_of_caller = true;
        self
    }

    /// Whether code of the caller failed with it.
    pub(crate) fn is_of_caller(&self) -> bool {
        self.0.is_of_caller
    }

    /// What kind of error this is.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// Where in the file it happened, as far as known.
    pub fn at(&self) -> &At {
        &self.0.at
    }

    /// The message without kind and place.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The error that caused this one, such as the [`std::io::Error`] of the system.
    ///
    /// The text of this error ends with the text of its cause, and
    /// [`source`](std::error::Error::source) goes on below the cause, so that a chain of causes
    /// says each of them once. [`std::io::Error::get_ref`] works the same way.
    pub fn get_ref(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
        self.0.source.as_deref()
    }

    /// Says, in front of the message, what it is about.
    pub(crate) fn within(mut self, place: impl fmt::Display) -> Self {
        self.0.message = format!("{place}: {}", self.0.message);
        self
    }

    /// Adds the name of the file, unless one is there.
    #[must_use]
    pub fn at_file(mut self, file: impl Into<Arc<str>>) -> Self {
        self.0.at.file.get_or_insert_with(|| file.into());
        self
    }

    /// Adds the number of the stream, unless one is there.
    #[must_use]
    pub(crate) fn at_stream(mut self, stream: usize) -> Self {
        self.0.at.stream.get_or_insert(stream);
        self
    }

    /// Adds the row group, unless one is there.
    #[must_use]
    pub fn at_row_group(mut self, row_group: usize) -> Self {
        self.0.at.row_group.get_or_insert(row_group);
        self
    }

    /// Adds the path of the column, unless one is there.
    #[must_use]
    pub fn at_column(mut self, column: impl Into<Arc<str>>) -> Self {
        self.0.at.column.get_or_insert_with(|| column.into());
        self
    }

    /// Adds the index of the page, unless one is there, or it is the dictionary page.
    #[must_use]
    pub fn at_page(mut self, page: usize) -> Self {
        if !self.0.at.is_dictionary_page {
            self.0.at.page.get_or_insert(page);
        }
        self
    }

    /// Adds that it is the dictionary page, unless the index of a page is there.
    #[must_use]
    pub(crate) fn at_dictionary_page(mut self) -> Self {
        self.0.at.is_dictionary_page = self.0.at.page.is_none();
        self
    }

    /// Adds the byte offset in the file, unless one is there.
    #[must_use]
    pub fn at_offset(mut self, offset: u64) -> Self {
        self.0.at.offset.get_or_insert(offset);
        self
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inner { kind, at, message, source, .. } = &*self.0;
        write!(f, "{at}{message}")?;
        if let Some(source) = source {
            write!(f, ": {source}")?;
        }
        match kind {
            ErrorKind::Malformed(spec) => write!(f, " ({spec})"),
            ErrorKind::Unsupported(what) => write!(f, " (unsupported: {what})"),
            ErrorKind::Internal => f.write_str(" (a fault of marquetry: please report it)"),
            _ => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Error")
            .field("kind", &self.0.kind)
            .field("at", &self.0.at)
            .field("message", &self.0.message)
            .field("source", &self.0.source)
            .finish()
    }
}

impl fmt::Display for At {
    /// `file: row group 3, column a.b, page 7, byte 41288: `, or nothing if no part is known.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(f, "{file}: ")?;
        }
        let mut separator = "";
        let mut part = |f: &mut fmt::Formatter<'_>, name: &str, value: &dyn fmt::Display| {
            write!(f, "{separator}{name}{value}")?;
            separator = ", ";
            Ok::<(), fmt::Error>(())
        };
        if let Some(stream) = &self.stream {
            part(f, "stream ", stream)?;
        }
        if let Some(row_group) = &self.row_group {
            part(f, "row group ", row_group)?;
        }
        if let Some(column) = &self.column {
            part(f, "column ", column)?;
        }
        if let Some(page) = &self.page {
            part(f, "page ", page)?;
        }
        if self.is_dictionary_page {
            part(f, "dictionary page", &"")?;
        }
        if let Some(offset) = &self.offset {
            part(f, "byte ", offset)?;
        }
        if !separator.is_empty() {
            f.write_str(": ")?;
        }
        Ok(())
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if *self == Self::GeoParquet {
            return f.write_str("GeoParquet 1.1, Metadata");
        }
        f.write_str("Parquet format, ")?;
        match self {
            Self::Container => f.write_str("README.md, File format"),
            Self::Thrift => f.write_str("parquet.thrift, Thrift compact protocol"),
            Self::Metadata(name) => write!(f, "parquet.thrift, {name}"),
            Self::Schema => f.write_str("parquet.thrift, SchemaElement"),
            Self::Pages => f.write_str("README.md, Data Pages"),
            Self::Levels => f.write_str("README.md, Nested Encoding"),
            Self::Encodings(name) => write!(f, "Encodings.md, {name}"),
            Self::Compression(name) => write!(f, "Compression.md, {name}"),
            Self::LogicalTypes(name) => write!(f, "LogicalTypes.md, {name}"),
            Self::PageIndex => f.write_str("PageIndex.md"),
            Self::BloomFilter => f.write_str("BloomFilter.md"),
            Self::Encryption => f.write_str("Encryption.md"),
            Self::Variant => f.write_str("VariantEncoding.md"),
            Self::Geospatial => f.write_str("Geospatial.md, WKB"),
            Self::GeoParquet => Ok(()),
            Self::DeletionVectors => f.write_str("Deletion vectors of Delta and Iceberg"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // `Display` has said the cause itself.
        self.get_ref().and_then(std::error::Error::source)
    }
}

impl From<std::io::Error> for Error {
    /// Takes an [`Error`] out again that was wrapped on its way through `std::io`.
    #[cold]
    fn from(source: std::io::Error) -> Self {
        source.downcast().unwrap_or_else(|source| Self::io("I/O failed", source))
    }
}

impl From<arrow_schema::ArrowError> for Error {
    /// Takes an [`Error`] out again that was wrapped on its way through Arrow's traits.
    #[cold]
    fn from(source: arrow_schema::ArrowError) -> Self {
        use arrow_schema::ArrowError;
        let arrow = |source: Box<dyn std::error::Error + Send + Sync>| {
            let mut error = Self::new(ErrorKind::Arrow, "Arrow refused the data".to_owned());
            error.0.source = Some(source);
            error
        };
        match source {
            ArrowError::ExternalError(source) => match source.downcast::<Self>() {
                Ok(ours) => *ours,
                Err(source) => arrow(source),
            },
            ArrowError::IoError(what, source) => match source.downcast::<Self>() {
                Ok(ours) => ours,
                // Arrow's own conversion repeats the cause as the description.
                Err(source) if what == source.to_string() => Self::io("I/O failed", source),
                Err(source) => Self::io(what, source),
            },
            other => arrow(Box::new(other)),
        }
    }
}

impl From<Error> for arrow_schema::ArrowError {
    fn from(error: Error) -> Self {
        Self::ExternalError(Box::new(error))
    }
}

/// A text in quotes, its beginning if it is long.
struct Quoted<'a>(&'a str);

/// Characters of a text that an error shows: a file may have a name of any length.
const QUOTED_CHARS: usize = 100;

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(QUOTED_CHARS) {
            None => write!(f, "{:?}", self.0),
            Some((end, _)) => write!(f, "{:?}… ({} bytes)", &self.0[..end], self.0.len()),
        }
    }
}

/// `text` of a file for an error: in quotes, only its beginning if it is long.
pub(crate) fn quoted(text: &str) -> impl fmt::Display {
    Quoted(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_is_cut_after_100_characters() {
        assert_eq!(quoted("a\n\"").to_string(), r#""a\n\"""#);
        let exact = "\u{e9}".repeat(100);
        assert_eq!(quoted(&exact).to_string(), format!("{exact:?}"));
        let shown = quoted(&format!("{exact}b")).to_string();
        assert_eq!(shown, format!("{exact:?}… (201 bytes)"));
    }

    #[test]
    fn text_says_place_rule_and_both_numbers() {
        let error = Error::mismatch(Spec::Encodings("RLE"), "values in the run", 10, 12)
            .at_page(7)
            .at_column("a.b.list.element")
            .at_row_group(3)
            .at_offset(41_288)
            .at_page(9);
        assert_eq!(
            error.to_string(),
            "row group 3, column a.b.list.element, page 7, byte 41288: values in the run: expected 10, found 12 (Parquet format, Encodings.md, RLE)"
        );
        assert_eq!(error.kind(), ErrorKind::Malformed(Spec::Encodings("RLE")));
    }

    #[test]
    fn a_fault_of_our_own_says_so() {
        let error = Error::internal("levels and values disagree").at_column("a");
        assert_eq!(error.kind(), ErrorKind::Internal);
        assert_eq!(
            error.to_string(),
            "column a: levels and values disagree (a fault of marquetry: please report it)"
        );
        let error = Error::cancelled("the read");
        assert_eq!(error.kind(), ErrorKind::Cancelled);
        assert_eq!(error.to_string(), "the read was cancelled");
    }

    #[test]
    fn error_is_one_word() {
        assert_eq!(size_of::<Result<()>>(), size_of::<usize>());
    }
}
