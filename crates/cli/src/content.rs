//! Opens a file of any form, and detects that form.

use std::fs::File;
use std::io::{self, Cursor, IsTerminal, Read as _, Seek, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow_schema::ArrowError;
use bytes::Bytes;
use marquetry::{Error, Limits, Reader};

use crate::args::{Global, SourceForm};
use crate::failure::{Failure, Result};
use crate::hive::Input;
use crate::packed::{self, Packing};
use crate::url_stream::UrlStream;
use crate::{input, locations, trace_io, urls};

/// An open file, and its format.
pub(crate) struct Content {
    pub(crate) name: String,
    pub(crate) input: Input,
    pub(crate) form: SourceForm,
    /// Length of a file; `None` for a pipe.
    pub(crate) len: Option<u64>,
    pub(crate) bytes: ContentKind,
    /// How the file is compressed as a whole.
    packing: Option<Packing>,
    /// The longest line of JSON or record of CSV: a part of the memory, because the value is held
    /// as text, as tokens, and as a column.
    pub(crate) max_record_bytes: u64,
}

/// A record takes at most one of this number of parts of the memory limit.
const PARTS_OF_MEMORY: u64 = 16;

pub(crate) enum ContentKind {
    File(File),
    Url(UrlStream),
    Stream(Box<dyn io::Read>),
}

impl Content {
    pub(crate) fn open(input: Input, form: Option<SourceForm>, global: &Global) -> Result<Self> {
        let memory = global.mem.unwrap_or_else(|| Limits::default().memory_bytes);
        let name = input.path.clone();
        let failed = |e| Error::io("the file cannot be opened", e).at_file(name.as_str());
        let mut len = None;
        let bytes = if name == "-" {
            if form.is_none() && io::stdin().is_terminal() {
                return Err(Failure::Usage("standard input is a terminal".to_owned()));
            }
            ContentKind::Stream(Box::new(io::stdin().lock()))
        } else if urls::is_url(&name) {
            let source = locations::source(&name)?;
            let file_len = source.len()?;
            len = Some(file_len);
            ContentKind::Url(UrlStream::new(source, file_len))
        } else {
            let file = File::open(&name).map_err(failed)?;
            let metadata = file.metadata().map_err(failed)?;
            if metadata.is_dir() {
                return Err(failed(io::ErrorKind::IsADirectory.into()).into());
            }
            if metadata.is_file() {
                len = Some(metadata.len());
                ContentKind::File(file)
            } else {
                ContentKind::Stream(Box::new(file))
            }
        };
        let mut file = Self {
            name,
            input,
            form: SourceForm::Parquet,
            len,
            bytes,
            packing: None,
            max_record_bytes: (memory / PARTS_OF_MEMORY).max(1),
        };
        if form.is_none() && file.ends_as_parquet()? {
            return Ok(file);
        }
        file.packing = Packing::from_magic(&file.magic()?);
        file.form = match form {
            Some(form) => form,
            None => file.recognised()?,
        };
        if file.packing.is_some() && matches!(file.form, SourceForm::Parquet | SourceForm::Arrow) {
            let text = "is compressed as a whole; decompress it first";
            return Err(Failure::content(&file.name, None, text));
        }
        Ok(file)
    }

    /// Whether a URL is a Parquet file, by its end, which is there: the beginning costs a request.
    fn ends_as_parquet(&self) -> Result<bool> {
        let ContentKind::Url(stream) = &self.bytes else { return Ok(false) };
        let end = stream.source.read(stream.len.saturating_sub(4)..stream.len)?;
        Ok(matches!(&end[..], b"PAR1" | b"PARE"))
    }

    /// The first bytes of the contents.
    fn magic(&mut self) -> Result<Vec<u8>> {
        let magic = self.head(|file| {
            let mut magic = Vec::new();
            file.take(6).read_to_end(&mut magic).map(|_| magic)
        })?;
        magic.map_err(|e| unreadable(&self.name, e))
    }

    fn recognised(&mut self) -> Result<SourceForm> {
        let magic = self.magic()?;
        match recognise(&magic, &self.name) {
            Some(form) => Ok(form),
            // The reader reports its fault.
            None if self.name != "-" => Ok(SourceForm::Parquet),
            None => {
                let text = "standard input is of no known form; say it with --from";
                Err(Failure::Usage(text.to_owned()))
            }
        }
    }

    /// Lets `look` read from the beginning; the same bytes can then be read again.
    pub(crate) fn head<T>(&mut self, look: impl FnOnce(&mut dyn io::Read) -> T) -> Result<T> {
        let packing = self.packing;
        let seen = self.bytes.head(self.max_record_bytes, |file| match packing {
            None => Ok(look(file)),
            Some(packing) => Ok(look(&mut packing.reader(Box::new(file))?)),
        });
        seen.map_err(|e| unreadable(&self.name, e))
    }

    /// A reader of the file, which is left empty.
    pub(crate) fn reader(&mut self, global: &Global) -> Result<Reader> {
        match std::mem::replace(&mut self.bytes, ContentKind::Stream(Box::new(io::empty()))) {
            ContentKind::File(file) => {
                input::configure(trace_io::traced(&self.name, file), &self.name, global)
            }
            ContentKind::Url(stream) => input::configure(stream.source, &self.name, global),
            ContentKind::Stream(mut stream) => {
                let bytes = input::read_whole(&mut stream, &self.name, global)?;
                input::configure(Bytes::from(bytes), &self.name, global)
            }
        }
    }

    /// Opens the contents of the file; `read` counts the bytes of the file itself.
    pub(crate) fn into_read(self, read: &Arc<AtomicU64>) -> Result<Box<dyn io::Read>> {
        let read = read.clone();
        let file: Box<dyn io::Read> = match self.bytes {
            ContentKind::File(inner) => Box::new(Counted { inner, read }),
            ContentKind::Url(inner) => Box::new(Counted { inner, read }),
            ContentKind::Stream(inner) => Box::new(Counted { inner, read }),
        };
        let Some(packing) = self.packing else { return Ok(file) };
        packing.reader(file).map_err(|e| unreadable(&self.name, e))
    }
}

impl ContentKind {
    /// A pipe cannot seek, so the bytes that were read are kept, and come first. They are a few
    /// records at most.
    fn head<T>(
        &mut self,
        max_record_bytes: u64,
        look: impl FnOnce(&mut dyn io::Read) -> io::Result<T>,
    ) -> io::Result<T> {
        match self {
            Self::File(file) => {
                let seen = look(file)?;
                file.seek(SeekFrom::Start(0))?;
                Ok(seen)
            }
            Self::Url(file) => {
                let seen = look(file)?;
                file.seek(SeekFrom::Start(0))?;
                Ok(seen)
            }
            Self::Stream(stream) => {
                let rest = std::mem::replace(stream, Box::new(io::empty()));
                let max_bytes = max_record_bytes.saturating_mul(PARTS_OF_MEMORY / 4);
                let mut tee = Tee { inner: rest, seen: Vec::new(), max_bytes };
                let seen = look(&mut tee)?;
                *stream = Box::new(Cursor::new(tee.seen).chain(tee.inner));
                Ok(seen)
            }
        }
    }
}

/// The format by the magic number, else by the file extension.
fn recognise(magic: &[u8], name: &str) -> Option<SourceForm> {
    if magic.starts_with(b"PAR1") || magic.starts_with(b"PARE") {
        return Some(SourceForm::Parquet);
    }
    if magic.starts_with(b"ARROW1") {
        return Some(SourceForm::Arrow);
    }
    if magic.starts_with(&[0xff; 4]) {
        return Some(SourceForm::Arrows);
    }
    let ending = packed::ending(Path::new(name)).unwrap_or_default();
    Some(match ending.as_str() {
        "parquet" => SourceForm::Parquet,
        "arrow" | "ipc" | "feather" => SourceForm::Arrow,
        "arrows" => SourceForm::Arrows,
        "csv" | "tsv" => SourceForm::Csv,
        "jsonl" | "ndjson" | "json" => SourceForm::Jsonl,
        _ if matches!(magic.trim_ascii_start(), [b'{' | b'[', ..]) => SourceForm::Jsonl,
        _ => return None,
    })
}

/// Keeps the bytes that are read.
struct Tee {
    inner: Box<dyn io::Read>,
    seen: Vec<u8>,
    max_bytes: u64,
}

impl io::Read for Tee {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out)?;
        self.seen.extend_from_slice(out.get(..n).unwrap_or_default());
        if self.seen.len() as u64 > self.max_bytes {
            let text = format!(
                "types are inferred from more than {} bytes of a pipe, which are held in memory; \
                 raise --mem, or infer from fewer with --infer-rows",
                self.max_bytes
            );
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        Ok(n)
    }
}

/// Counts the bytes that are read.
pub(crate) struct Counted<R> {
    pub(crate) inner: R,
    pub(crate) read: Arc<AtomicU64>,
}

impl<R: io::Read> io::Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(out)?;
        self.read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

impl<R: Seek> Seek for Counted<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}

/// An error in the content of a file that Arrow or another library reads.
pub(crate) fn invalid(name: &str, error: ArrowError) -> Failure {
    match error {
        ArrowError::IoError(_, error) => unreadable(name, error),
        // The library's own, which says what it is.
        ArrowError::ExternalError(error) if error.is::<Error>() => {
            Error::from(ArrowError::ExternalError(error)).at_file(name).into()
        }
        error => Failure::content(name, None, error),
    }
}

/// A failure to read, or an error in the content that a decoder found.
fn unreadable(name: &str, error: io::Error) -> Failure {
    match is_content(error.kind()) {
        true => Failure::content(name, None, error),
        false => Error::io("reading", error).at_file(name).into(),
    }
}

/// Whether an error is one of the content: an early end, or what a decoder refuses.
fn is_content(kind: io::ErrorKind) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    matches!(kind, UnexpectedEof | InvalidData | InvalidInput)
}
