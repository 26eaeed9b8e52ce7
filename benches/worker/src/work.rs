//! The tasks, done with the public face of the crate: what a user would write, and no short cuts.

use std::fs::{self, File};
use std::hint::black_box;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use marquetry::arrow_array::RecordBatch;
use marquetry::arrow_schema::SchemaRef;
use marquetry::format::Encoding;
use marquetry::io::WriteSink;
use marquetry::read::PageIndexUse;
use marquetry::schema::{ArrowOptions, Dictionaries, Projection, to_arrow};
use marquetry::{
    BufferPool, Compression, PageVersion, Reader, RowGroupEncoder, RowSelection, WriteOptions,
    Writer, col,
};

use crate::Result;
use crate::task::{Done, Io, Mode, Op, Strings, Task};

/// State that is prepared outside the clock, and kept for the next task of the same file.
#[derive(Default)]
pub struct Work {
    /// A file to read from memory.
    bytes: Option<(String, Bytes)>,
    /// A table to write.
    table: Option<Table>,
    /// Memory that reads use again, if they are to.
    pool: Option<BufferPool>,
}

struct Table {
    file: String,
    strings: Strings,
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Work {
    /// Work whose reads share a pool of `MARQUETRY_POOL` bytes, if that variable is set. Without it
    /// every read begins with fresh memory from the system, like those of the contenders whose
    /// allocator can be told to return memory.
    pub fn from_env() -> Result<Self> {
        let bytes = match std::env::var("MARQUETRY_POOL") {
            Ok(bytes) => Some(bytes.parse()?),
            Err(_) => None,
        };
        Ok(Self { pool: bytes.map(BufferPool::new), ..Self::default() })
    }

    /// Reads what the clock does not count.
    pub fn prepare(&mut self, task: &Task) -> Result<()> {
        let same = |table: &Table| table.file == task.file && table.strings == task.strings;
        if task.op == Op::Write {
            if !self.table.as_ref().is_some_and(same) {
                self.table = None;
                let whole = Task { cols: None, threads: 1, io: Io::File, ..task.clone() };
                let batches = wanted(Reader::open(&task.file)?, &whole)?.batches()?;
                let schema = batches.schema();
                let batches = batches.collect::<Result<_, _>>()?;
                let (file, strings) = (task.file.clone(), task.strings);
                self.table = Some(Table { file, strings, schema, batches });
            }
        } else if task.io == Io::Mem
            && self.bytes.as_ref().is_none_or(|(file, _)| *file != task.file)
        {
            self.bytes = None;
            self.bytes = Some((task.file.clone(), fs::read(&task.file)?.into()));
        }
        Ok(())
    }

    /// Drops what was prepared.
    pub fn clear(&mut self) {
        (self.bytes, self.table) = (None, None);
        if let Some(pool) = &self.pool {
            pool.clear();
        }
    }

    /// Does a task that is prepared.
    pub fn run(&self, task: &Task) -> Result<Done> {
        match task.op {
            Op::Read => self.read(task),
            Op::Meta => self.meta(task),
            Op::Filter => self.filter(task),
            Op::Write => self.write(task),
            Op::Clear => Ok(Done { rows: 0, bytes: 0 }),
        }
    }

    fn open(&self, task: &Task) -> Result<Reader> {
        let reader = match (&self.bytes, task.io) {
            (Some((_, bytes)), Io::Mem) => Reader::new(bytes.clone())?,
            _ => Reader::open(&task.file)?,
        };
        Ok(match &self.pool {
            Some(pool) => reader.buffer_pool(pool),
            None => reader,
        })
    }

    fn read(&self, task: &Task) -> Result<Done> {
        drain(wanted(self.open(task)?, task)?, task)
    }

    /// Decodes all metadata, as other readers do when they open a file: opening alone leaves the
    /// column chunks where they are. Each chunk is decoded in full and seen; what stays is the
    /// footer, which gives it again whenever it is asked.
    fn meta(&self, task: &Task) -> Result<Done> {
        let mut reader = self.open(task)?;
        if task.page_index {
            reader.load_page_indexes()?;
        }
        let footer = reader.metadata();
        let (key_values, options) = (footer.key_values(), ArrowOptions::new());
        let schema = to_arrow(footer.schema(), key_values, &Projection::All, &options)?;
        for row_group in 0..footer.row_groups() {
            for chunk in footer.column_chunks(row_group)? {
                let chunk = black_box(chunk?);
                if task.page_index {
                    black_box(footer.page_index_of(&chunk)?);
                }
            }
        }
        let rows = footer.rows()?;
        black_box(schema);
        Ok(Done { rows, bytes: 0 })
    }

    /// Reads the rows with `lo` ≤ `fcol` < `hi`; or, with `select`, `hi` of a thousand, picked one
    /// by one.
    fn filter(&self, task: &Task) -> Result<Done> {
        let reader = wanted(self.open(task)?, task)?;
        let mut options = reader.read_options().clone();
        options.page_index = match &*task.fmode {
            "rows" => PageIndexUse::Never,
            _ => PageIndexUse::Always,
        };
        let reader = reader.options(options);
        if task.fmode == "select" {
            let rows = reader.rows()?;
            let picked =
                RowSelection::from_rows(rows, (0..rows).filter(|row| pick(*row, task.hi)))?;
            return drain(reader.select(picked)?, task);
        }
        let wanted = col(&*task.fcol).gt_eq(task.lo).and(col(&*task.fcol).lt(task.hi));
        drain(reader.filter(wanted), task)
    }

    fn write(&self, task: &Task) -> Result<Done> {
        let table = self.table.as_ref().ok_or("no table is prepared")?;
        let path = task.out.as_ref().map_or_else(scratch, PathBuf::from);
        let encoder = RowGroupEncoder::new(table.schema.clone(), options(task)?)?;
        // No other contender waits for the disk, and `Writer::create` does.
        let sink = WriteSink(File::create(&path)?);
        let mut writer = Writer::over(sink, encoder.with_threads(task.threads)?);
        for batch in &table.batches {
            writer.write(batch)?;
        }
        let report = writer.finish()?;
        Ok(Done { rows: report.rows, bytes: report.bytes })
    }
}

/// Whether a row is one of `of_thousand`: by the mixing function that all contenders use.
fn pick(row: u64, of_thousand: i64) -> bool {
    let mut bits = row.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    for (shift, factor) in [(30, 0xBF58_476D_1CE4_E5B9), (27, 0x94D0_49BB_1331_11EB)] {
        bits = (bits ^ bits >> shift).wrapping_mul(factor);
    }
    (bits ^ bits >> 31) % 1000 < of_thousand.unsigned_abs()
}

/// Reads all batches.
fn drain(reader: Reader, task: &Task) -> Result<Done> {
    let (mut rows, mut held) = (0, Vec::new());
    for batch in reader.batches()? {
        let batch = batch?;
        rows += batch.num_rows() as u64;
        match task.mode {
            Mode::Collect => held.push(batch),
            Mode::Stream => drop(black_box(batch)),
        }
    }
    black_box(&held);
    Ok(Done { rows, bytes: 0 })
}

/// A reader of what a task wants of a file.
fn wanted(reader: Reader, task: &Task) -> Result<Reader> {
    let reader = reader.batch_rows(task.batch).threads(task.threads);
    let reader = match task.strings {
        Strings::Utf8 => reader,
        Strings::View => reader.views(true),
        Strings::Dict => reader.dictionaries(Dictionaries::Strings),
    };
    Ok(match &task.cols {
        Some(columns) => reader.project(columns)?,
        None => reader,
    })
}

/// How a task wants a file to be written.
fn options(task: &Task) -> Result<WriteOptions> {
    let options = match &*task.codec {
        "default" => WriteOptions::new(),
        "none" => WriteOptions::new().with_compression(Compression::Uncompressed),
        "snappy" => WriteOptions::new().with_compression(Compression::Snappy),
        "zstd1" => WriteOptions::new().with_compression(Compression::Zstd(1)),
        "zstd3" => WriteOptions::new().with_compression(Compression::Zstd(3)),
        other => return Err(format!("no codec {other}").into()),
    };
    let options = match task.rg_rows {
        0 => options,
        rows => options.with_row_group_rows(rows),
    };
    let all = |encoding| options.clone().with_column("*", |column| column.with_encoding(encoding));
    Ok(match &*task.enc {
        "default" => options,
        "plain" => all(Encoding::Plain),
        "v2" => options.with_page_version(PageVersion::V2),
        "delta" => all(Encoding::DeltaBinaryPacked),
        "bss" => all(Encoding::ByteStreamSplit),
        "dlba" => all(Encoding::DeltaLengthByteArray),
        "dba" => all(Encoding::DeltaByteArray),
        other => return Err(format!("no encoding {other}").into()),
    })
}

/// A file in memory, where the system has such files.
fn scratch() -> PathBuf {
    let shared = Path::new("/dev/shm");
    let folder = if shared.is_dir() { shared.to_path_buf() } else { std::env::temp_dir() };
    folder.join("bench_marquetry.parquet")
}
