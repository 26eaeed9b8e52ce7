//! Reads Arrow IPC files and streams, whatever is wrong with them.
//!
//! Traps: `arrow-ipc` allocates as many bytes as a file states before it reads them, and panics
//! on some invalid files. So lengths are checked before it sees them, and a panic is an error.

use std::any::Any;
use std::cell::Cell;
use std::io::{BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Once};

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::reader::{FileReader, StreamDecoder, StreamReader, read_footer_length};
use arrow_ipc::{Block, root_as_footer, root_as_message};
use arrow_schema::{ArrowError, SchemaRef};

use crate::args::{Global, SourceForm};
use crate::content::{Content, ContentKind, Counted, invalid};
use crate::failure::Result;
use crate::input;
use crate::pieces::Batches;

/// The schema and the batches of an Arrow IPC file or stream; `read` counts its bytes.
pub(crate) fn open(
    file: Content,
    global: &Global,
    read: &Arc<AtomicU64>,
) -> Result<(SchemaRef, Batches)> {
    let name = file.name.clone();
    let opened = match file.form {
        SourceForm::Arrows => {
            let from = BufReader::with_capacity(1 << 16, file.into_read(read)?);
            caught(|| of_stream(from))
        }
        _ => {
            let from: Box<dyn ReadSeek> = match file.bytes {
                ContentKind::File(inner) => {
                    Box::new(BufReader::new(Counted { inner, read: read.clone() }))
                }
                ContentKind::Url(inner) => {
                    Box::new(BufReader::new(Counted { inner, read: read.clone() }))
                }
                ContentKind::Stream(mut stream) => {
                    Box::new(Cursor::new(input::read_whole(&mut stream, &name, global)?))
                }
            };
            caught(|| of_file(from))
        }
    };
    let (schema, mut next) = opened.map_err(|e| invalid(&name, e))?;
    let mut has_ended = false;
    let batches = std::iter::from_fn(move || {
        if has_ended {
            return None;
        }
        let batch = caught(&mut next).transpose();
        // After a panic, the state of the reader may be anything.
        has_ended = !matches!(batch, Some(Ok(_)));
        batch.map(|batch| batch.map_err(|e| invalid(&name, e)))
    });
    Ok((schema, Box::new(batches.flat_map(slices))))
}

/// The rows of a batch, a few at a time: a column of nulls may state any number of rows, and what
/// is made of them takes memory.
fn slices(batch: Result<RecordBatch>) -> Batches {
    let batch = match batch {
        Ok(batch) if batch.num_rows() > MAX_ROWS => batch,
        other => return Box::new(std::iter::once(other)),
    };
    let rows = batch.num_rows();
    let starts = (0..rows).step_by(MAX_ROWS);
    Box::new(starts.map(move |start| Ok(batch.slice(start, MAX_ROWS.min(rows - start)))))
}

/// Rows of a batch that is handed on, at most.
const MAX_ROWS: usize = 1 << 16;

trait ReadSeek: Read + Seek {}

impl<T: Read + Seek> ReadSeek for T {}

/// Returns the next batch; `None` at the end.
type NextBatch = Box<dyn FnMut() -> Result<Option<RecordBatch>, ArrowError>>;

fn of_file(mut from: Box<dyn ReadSeek>) -> Result<(SchemaRef, NextBatch), ArrowError> {
    check_blocks(&mut from)?;
    let mut reader = FileReader::try_new(from, None)?;
    Ok((reader.schema(), Box::new(move || reader.next().transpose())))
}

/// The bytes after the footer: its length, and the magic number.
const TAIL: usize = 10;

/// Checks that the footer and the blocks that it names are within the file.
fn check_blocks(file: &mut (impl Read + Seek)) -> Result<(), ArrowError> {
    let len = file.seek(SeekFrom::End(0))?;
    let outside = |what: &str| {
        ArrowError::ParseError(format!("{what} is not within the {len} bytes of the file"))
    };
    let footer_end = len.checked_sub(TAIL as u64).ok_or_else(|| outside("the footer"))?;
    file.seek(SeekFrom::Start(footer_end))?;
    let mut tail = [0; TAIL];
    file.read_exact(&mut tail)?;
    let footer_len = read_footer_length(tail)?;
    let footer_start = footer_end.checked_sub(footer_len as u64);
    file.seek(SeekFrom::Start(footer_start.ok_or_else(|| outside("the footer"))?))?;
    let mut footer = vec![0; footer_len];
    file.read_exact(&mut footer)?;
    let footer = root_as_footer(&footer).map_err(|e| ArrowError::ParseError(e.to_string()))?;
    let lists = [footer.dictionaries(), footer.recordBatches()];
    let is_within = |block: &Block| end_of(block).is_some_and(|end| end <= len);
    match lists.into_iter().flatten().flatten().all(is_within) {
        true => Ok(()),
        false => Err(outside("a block")),
    }
}

fn end_of(block: &Block) -> Option<u64> {
    let metadata_len = u64::try_from(block.metaDataLength()).ok()?;
    let end = u64::try_from(block.offset()).ok()?.checked_add(metadata_len)?;
    end.checked_add(u64::try_from(block.bodyLength()).ok()?)
}

fn of_stream(from: impl BufRead + 'static) -> Result<(SchemaRef, NextBatch), ArrowError> {
    let mut messages = Messages { from };
    let mut message = messages.next()?.unwrap_or_default();
    let schema = StreamReader::try_new(message.as_slice(), None)?.schema();
    let (mut decoder, mut has_ended) = (StreamDecoder::new(), false);
    let next = move || {
        loop {
            if let Some(batch) = decoder.decode(&mut message)? {
                return Ok(Some(batch));
            }
            if has_ended {
                return Ok(None);
            }
            // The decoder leaves a message without a body until bytes come after it.
            message = messages.next()?.unwrap_or_else(|| {
                has_ended = true;
                Buffer::from(&END)
            });
        }
    };
    Ok((schema, Box::new(next)))
}

/// The mark in front of the length of a message.
const CONTINUATION: [u8; 4] = [0xFF; 4];
/// The end of a stream: a message of no bytes.
const END: [u8; 8] = [0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 0];

/// The messages of a stream.
struct Messages<R> {
    from: R,
}

impl<R: BufRead> Messages<R> {
    /// The next message with its body; `None` at the end. Memory grows with the bytes that come,
    /// whatever lengths are stated.
    fn next(&mut self) -> Result<Option<Buffer>, ArrowError> {
        if self.from.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let mut bytes = Vec::new();
        let mut stated = self.append_length(&mut bytes)?;
        if stated == CONTINUATION {
            stated = self.append_length(&mut bytes)?;
        }
        let start = bytes.len();
        match i32::from_le_bytes(stated) {
            0 => return Ok(None),
            len => self.append(len.into(), &mut bytes)?,
        }
        let message = root_as_message(bytes.get(start..).unwrap_or_default());
        let message = message.map_err(|e| ArrowError::ParseError(e.to_string()))?;
        self.append(message.bodyLength(), &mut bytes)?;
        Ok(Some(Buffer::from_vec(bytes)))
    }

    fn append_length(&mut self, to: &mut Vec<u8>) -> Result<[u8; 4], ArrowError> {
        self.append(4, to)?;
        Ok(to.last_chunk().copied().unwrap_or_default())
    }

    /// Appends the next `len` bytes.
    fn append(&mut self, len: i64, to: &mut Vec<u8>) -> Result<(), ArrowError> {
        let outside = || ArrowError::ParseError(format!("the stream has no {len} bytes more"));
        let len = u64::try_from(len).map_err(|_| outside())?;
        let read = self.from.by_ref().take(len).read_to_end(to)?;
        if read as u64 == len { Ok(()) } else { Err(outside()) }
    }
}

thread_local! {
    /// Whether panics of this thread are errors, and are not printed.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
}

/// Runs what may panic where a file is invalid.
///
/// # Errors
/// Those of `run`, and a panic.
fn caught<T>(run: impl FnOnce() -> Result<T, ArrowError>) -> Result<T, ArrowError> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !IS_CAUGHT.get() {
                usual(panic);
            }
        }));
    });
    IS_CAUGHT.set(true);
    let done = panic::catch_unwind(AssertUnwindSafe(run));
    IS_CAUGHT.set(false);
    done.unwrap_or_else(|panic| {
        Err(ArrowError::ParseError(format!("not a valid file: {}", text(&*panic))))
    })
}

/// The message of a panic.
fn text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref().copied()).unwrap_or_default()
}
