//! [`Inspector`]: a file from its first byte to its last.
//!
//! ```text
//! magic | regions and gaps | footer | footer length | magic
//! ```
//!
//! Trap: a footer that cannot be read takes all knowledge of what stands before it along.

use std::ops::Range;
use std::sync::Arc;

use super::memory;
use super::metadata::{self, Context};
use super::module;
use super::regions::{File, Regions};
use super::sealed::SealedModules;
use super::span::{Cutter, Reference, Span, SpanKind, Spans};
use super::value::Value;
use crate::crypt::Decryption;
use crate::error::{Error, ErrorKind, Result};
use crate::format::tail::{self, MAGIC, MAGIC_ENCRYPTED, MIN_FILE_LEN, TAIL_LEN};
use crate::format::{FileCryptoMetaData, FileMetaData};
use crate::io::{Source, open_footer};
use crate::limits::{Budget, Limits};
use crate::read::Footer;

/// A file whose every byte is explained. Made once, and asked for spans as often as one likes.
///
/// ```
/// use std::fs::File;
/// use marquetry::inspect::{Inspector, SpanKind};
///
/// # fn main() -> marquetry::Result<()> {
/// let file = File::open("testdata/trips.parquet").unwrap();
/// let inspector = Inspector::new(file)?;
/// let mut at = 0;
/// for span in inspector.spans() {
///     let span = span?;
///     assert_eq!(span.offset, at, "spans lie end to end");
///     at = span.end();
///     if span.kind == SpanKind::ColumnChunk {
///         println!("{} bytes of {}", span.length, span.name);
///     }
/// }
/// assert_eq!(at, inspector.file_len());
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Inspector {
    source: Arc<dyn Source>,
    file_len: u64,
    budget: Budget,
    /// What the footer says, or why it cannot be read.
    file: Result<Arc<File>, Arc<Error>>,
}

impl std::fmt::Debug for Inspector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inspector")
            .field("file_len", &self.file_len)
            .field("problem", &self.problem())
            .finish_non_exhaustive()
    }
}

/// Bytes of a magic number.
const MAGIC_LEN: u64 = 4;

impl Inspector {
    /// Of a file that is not encrypted, or whose keys are not known.
    ///
    /// # Errors
    /// `Io`. What is wrong with the file, its spans say.
    pub fn new(source: impl Source + 'static) -> Result<Self> {
        Self::with_keys(source, Limits::default(), None)
    }

    /// As [`Inspector::new`], with caps on what the file may ask for, and with keys.
    ///
    /// # Errors
    /// As [`Inspector::new`].
    pub fn with_keys(
        source: impl Source + 'static,
        limits: Limits,
        keys: Option<&Decryption>,
    ) -> Result<Self> {
        let source: Arc<dyn Source> = Arc::new(source);
        let file_len = source.len()?;
        let budget = Budget::new(limits.memory_bytes);
        let file = match open_footer(&*source, &limits, keys) {
            Ok((footer, file_len)) => Ok(Arc::new(File {
                source: source.clone(),
                footer,
                file_len,
                limits,
                budget: budget.clone(),
            })),
            Err(error) if error.kind() == ErrorKind::Io => return Err(error),
            Err(error) => Err(Arc::new(error)),
        };
        Ok(Self { source, file_len, budget, file })
    }

    /// Length of the file, in bytes.
    pub fn file_len(&self) -> u64 {
        self.file_len
    }

    /// The footer, if it can be read.
    pub fn metadata(&self) -> Option<&Footer> {
        self.file.as_ref().ok().map(|file| &file.footer)
    }

    /// Why the footer cannot be read, if it cannot.
    pub fn problem(&self) -> Option<&Error> {
        self.file.as_ref().err().map(|error| &**error)
    }

    /// The whole file, in spans that lie end to end.
    pub fn spans(&self) -> Spans {
        let this = self.clone();
        let Some(places) = FixedParts::new(&*self.source, self.file_len).transpose() else {
            let span = self.unparsed(0..self.file_len);
            return Spans::infallible((span.length > 0).then_some(span).into_iter());
        };
        let places = match places {
            Ok(places) => places,
            Err(error) => return Spans::failed(error),
        };
        let middle = places.head.end..places.footer.start;
        let mut head = this.magic(places.head.clone());
        let regions = match &self.file {
            Ok(file) => Regions::new(file, middle.clone()).map_err(Arc::new),
            Err(error) => Err(error.clone()),
        };
        let regions = match regions {
            Ok(mut regions) => {
                if let Ok(span) = &mut head {
                    match regions.references(&places.head) {
                        Ok(references) => span.references = references,
                        Err(error) => return Spans::failed(error),
                    }
                }
                Ok(regions)
            }
            Err(error) => Err(this.without_footer(&error, middle, &places)),
        };
        let rest = SpansAfterHead { inspector: this, places, regions, end: None };
        Spans::new(std::iter::once(head).chain(rest))
    }

    /// The spans of `range`, before a footer that cannot be read.
    fn without_footer(
        &self,
        error: &Error,
        range: Range<u64>,
        places: &FixedParts,
    ) -> Box<dyn Iterator<Item = Result<Span>> + Send> {
        if range.is_empty() {
            return Box::new(std::iter::empty());
        }
        // The modules of an encrypted file lie end to end, so that they are found without it.
        if places.is_encrypted && error.kind() == ErrorKind::Crypto {
            return match SealedModules::new(&self.source, &self.budget, range, &places.footer) {
                Ok(modules) => Box::new(modules),
                Err(error) => Box::new(std::iter::once(Err(error))),
            };
        }
        let why =
            format!("what stands here, the footer says, which cannot be read: {}", error.message());
        Box::new(std::iter::once(Ok(self.unparsed(range).with_text(why))))
    }

    /// The footer alone, with its length and the magic number after it.
    pub fn footer(&self) -> Spans {
        let places = match FixedParts::new(&*self.source, self.file_len) {
            Ok(Some(places)) => places,
            Ok(None) => return Spans::list(vec![self.unparsed(0..self.file_len)]),
            Err(error) => return Spans::failed(error),
        };
        Spans::new(self.end(&places, Vec::new()))
    }

    /// The footer, unless it is empty, its length and the magic number.
    fn end(
        &self,
        places: &FixedParts,
        references: Vec<Reference>,
    ) -> impl Iterator<Item = Result<Span>> + Send + use<> {
        let mut footer = (!places.footer.is_empty()).then(|| self.footer_span(places));
        if let Some(span) = &mut footer {
            span.references = references;
        }
        let end = places.tail.start + MAGIC_LEN;
        let length = self.length(places.tail.start..end);
        let magic = self.magic(end..places.tail.end);
        footer.map(Ok).into_iter().chain([length, magic])
    }

    /// The pages of a column chunk.
    ///
    /// # Errors
    /// `Usage` if there is no such chunk, `Unsupported` if it lies in another file; why the footer,
    /// or the metadata of the chunk, cannot be read.
    pub fn column_chunk(&self, row_group: usize, leaf: usize) -> Result<Span> {
        match &self.file {
            Ok(file) => file.chunk(row_group, leaf).map_err(|e| e.at_row_group(row_group)),
            Err(error) => Err(Error::malformed(crate::Spec::Container, error.message())),
        }
    }

    fn unparsed(&self, range: Range<u64>) -> Span {
        let span = Span::in_file(&self.source, range, SpanKind::Unparsed, "unparsed");
        span.with_any_text(self.problem().map(|error| error.message().to_owned()))
    }

    fn magic(&self, range: Range<u64>) -> Result<Span> {
        let bytes = self.source.read(range.clone())?;
        let len = bytes.len();
        let mut cutter = Cutter::new(bytes.clone(), range.start);
        let text = match bytes.first_chunk() {
            Some(&MAGIC) => "a Parquet file",
            Some(&MAGIC_ENCRYPTED) => "a Parquet file whose footer is encrypted",
            _ => {
                let span = cutter.cut(len, SpanKind::Unparsed, "magic");
                return Ok(span.with_text("neither PAR1 nor PARE"));
            }
        };
        let span = cutter.cut(len, SpanKind::Magic, "magic").with_text(text);
        Ok(match super::value::Text::new(bytes) {
            Ok(magic) => span.with_value(Value::Text(magic)),
            Err(_) => span,
        })
    }

    fn length(&self, range: Range<u64>) -> Result<Span> {
        let bytes = self.source.read(range.clone())?;
        let number = bytes.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        let mut cutter = Cutter::new(bytes, range.start);
        let span = cutter.cut(usize::MAX, SpanKind::FooterLength, "footer length");
        Ok(match number {
            Some(number) => span.with_value(Value::UInt(number.into())),
            None => span,
        })
    }

    /// The footer, encrypted or not.
    fn footer_span(&self, places: &FixedParts) -> Span {
        let range = places.footer.clone();
        let name = "footer";
        let span = Span::in_file(&self.source, range.clone(), SpanKind::Footer, name);
        let this = self.clone();
        let is_encrypted = places.is_encrypted;
        let why = self.problem().map(|error| format!("it cannot be read: {}", error.message()));
        let span = span.with_any_text(why);
        span.with_children(move || {
            let bytes = match this.metadata() {
                Some(footer) => Ok(footer.stored()),
                None => memory::read(&*this.source, range.clone(), &this.budget),
            };
            let bytes = match bytes {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == ErrorKind::Io => return Spans::failed(error),
                Err(error) => {
                    let span = this.unparsed(range.clone());
                    return Spans::list(vec![span.with_text(error.message().to_owned())]);
                }
            };
            let cutter = Cutter::new(bytes, range.start);
            Spans::list(if is_encrypted { this.sealed(cutter) } else { this.plain(cutter) })
        })
    }

    fn context(&self) -> Context {
        Context::of_file(self.metadata())
    }

    /// A footer in plain text, and its signature.
    fn plain(&self, mut cutter: Cutter) -> Vec<Span> {
        const NONCE: usize = 12;
        const TAG: usize = 16;
        let is_signed = self
            .metadata()
            .is_some_and(|footer| footer.index().head().encryption_algorithm.is_some());
        let kind = SpanKind::FileMetaData;
        let mut out =
            vec![metadata::cut::<FileMetaData>(&mut cutter, kind, "FileMetaData", self.context())];
        let rest = match is_signed && cutter.rest().len() == NONCE + TAG {
            true => cutter.cut_rest(SpanKind::Signature, "signature").map(|span| {
                span.with_parts(|mut cutter| {
                    let nonce = cutter.cut(NONCE, SpanKind::Nonce, "nonce");
                    let tag = cutter.cut_rest(SpanKind::Tag, "tag");
                    Spans::infallible(std::iter::once(nonce).chain(tag))
                })
            }),
            false => cutter.cut_rest(SpanKind::Unused, "unused"),
        };
        out.extend(rest);
        out
    }

    /// How the file is encrypted, and the footer as a module.
    fn sealed(&self, mut cutter: Cutter) -> Vec<Span> {
        let kind = SpanKind::FileCryptoMetaData;
        let name = "FileCryptoMetaData";
        let mut out =
            vec![metadata::cut::<FileCryptoMetaData>(&mut cutter, kind, name, Context::default())];
        let Some(span) = cutter.cut_rest(SpanKind::Module, "footer") else { return out };
        let mut span = module::describe(span, true, None, |_| Spans::list(Vec::new()));
        let span = match self.metadata() {
            Some(footer) => {
                let (plain, context) = (footer.plain_bytes(), self.context());
                span.text = None;
                span.with_decrypted(move || {
                    let (plain, kind) = (plain.clone(), SpanKind::FileMetaData);
                    metadata::decrypted::<FileMetaData>(
                        plain,
                        kind,
                        "FileMetaData",
                        context.clone(),
                    )
                })
            }
            None => span,
        };
        out.push(span);
        out
    }
}

/// The spans after the first magic number.
struct SpansAfterHead {
    inspector: Inspector,
    places: FixedParts,
    /// The regions; if the footer does not tell them, what stands in their place.
    regions: Result<Regions, Box<dyn Iterator<Item = Result<Span>> + Send>>,
    /// The spans after them, once they are given.
    end: Option<Box<dyn Iterator<Item = Result<Span>> + Send>>,
}

impl Iterator for SpansAfterHead {
    type Item = Result<Span>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(end) = &mut self.end {
            return end.next();
        }
        let span = match &mut self.regions {
            Ok(regions) => regions.next_span().transpose(),
            Err(spans) => spans.next(),
        };
        match span {
            Some(Ok(span)) => Some(Ok(span)),
            Some(Err(error)) => {
                self.end = Some(Box::new(std::iter::empty()));
                Some(Err(error))
            }
            None => {
                let references = match &mut self.regions {
                    Ok(regions) => regions.references(&(0..u64::MAX)),
                    Err(_) => Ok(Vec::new()),
                };
                let references = match references {
                    Ok(references) => references,
                    Err(error) => {
                        self.end = Some(Box::new(std::iter::empty()));
                        return Some(Err(error));
                    }
                };
                let end = self.end.insert(Box::new(self.inspector.end(&self.places, references)));
                end.next()
            }
        }
    }
}

/// Where the parts are that every file has.
struct FixedParts {
    head: Range<u64>,
    footer: Range<u64>,
    /// The length of the footer, and the magic number.
    tail: Range<u64>,
    is_encrypted: bool,
}

impl FixedParts {
    /// `None` if the file is too short to have them.
    fn new(source: &dyn Source, file_len: u64) -> Result<Option<Self>> {
        if file_len < MIN_FILE_LEN {
            return Ok(None);
        }
        let start = file_len - TAIL_LEN as u64;
        let last = source.read(start..file_len)?;
        let Some(last) = last.first_chunk() else { return Ok(None) };
        // What the tail cannot say leaves no footer.
        let parsed = tail::parse(last, file_len).ok();
        let len = parsed.map_or(0, |tail| u64::from(tail.footer_len));
        Ok(Some(Self {
            head: 0..MAGIC_LEN,
            footer: start - len..start,
            tail: start..file_len,
            is_encrypted: parsed.is_some_and(|tail| tail.encrypted),
        }))
    }
}
