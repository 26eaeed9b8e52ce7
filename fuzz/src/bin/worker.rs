//! Reads a path a line on standard input, reads the whole file through the library, and answers one
//! line:
//!
//! `OK`, `ERR text`, `PANIC text` (caught), `MEMERR text` (a limit, or memory refused) or `BADDATA
//! text` (what came back fails full validation), each with `peak=BYTES`, the most heap that the
//! file took.
//!
//! Flags: `--threads N` (default 1), `--views` (strings as views), `--all` (in every way that the
//! tests of mutants read in, too: filters, targets, selections, points, and what is written again).

use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::Array;
use bytes::Bytes;
use marquetry::{ErrorKind, Reader};
// The allocator that counts.
use marquetry_fuzz as _;
use marquetry_testkit::heap;
use marquetry_testkit::mutants::{Heap, note_panics, read_every_way, rng};

/// How a file is read.
struct Options {
    threads: usize,
    views: bool,
    all: bool,
}

enum Answer {
    Ok,
    Err(String),
    MemErr(String),
    BadData(String),
}

fn main() {
    let mut options = Options { threads: 1, views: false, all: false };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--threads" => options.threads = args.next().and_then(|n| n.parse().ok()).unwrap_or(1),
            "--views" => options.views = true,
            "--all" => options.all = true,
            other => {
                eprintln!("unknown flag {other}");
                std::process::exit(2);
            }
        }
    }
    note_panics();
    let mut out = std::io::stdout();
    for path in std::io::stdin().lock().lines().map_while(Result::ok) {
        let before = heap::start();
        let answer = catch_unwind(AssertUnwindSafe(|| read(&path, &options)));
        let peak = heap::peak().saturating_sub(before);
        let others = if options.all { others(&path) } else { String::new() };
        let (word, text) = match answer {
            _ if others.contains(" panics at ") => ("PANIC", others),
            Ok(_) if !others.is_empty() => ("BADDATA", others),
            Ok(Answer::Ok) => ("OK", String::new()),
            Ok(Answer::Err(text)) => ("ERR", text),
            Ok(Answer::MemErr(text)) => ("MEMERR", text),
            Ok(Answer::BadData(text)) => ("BADDATA", text),
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
                ("PANIC", text.unwrap_or("?").to_owned())
            }
        };
        let text = text.replace(['\n', '\r'], " ");
        if writeln!(out, "{word} peak={peak} {text}").and_then(|()| out.flush()).is_err() {
            return;
        }
    }
}

/// The findings of reading the file in every other way.
fn others(path: &str) -> String {
    let Ok(file) = std::fs::read(path) else { return String::new() };
    let counted = Heap { start: heap::start, peak: heap::peak };
    let mut numbers = rng(1, file.len() as u64);
    let found = read_every_way(&Bytes::from(file), &mut numbers, Some(counted), &[]);
    let lines = found.iter().map(|found| format!("{}: {}", found.path, found.what));
    lines.collect::<Vec<_>>().join("; ")
}

fn read(path: &str, options: &Options) -> Answer {
    match read_all(path, options) {
        Ok(answer) => answer,
        Err(error) => match error.kind() {
            ErrorKind::Limit(_) => Answer::MemErr(error.to_string()),
            _ => Answer::Err(error.to_string()),
        },
    }
}

fn read_all(path: &str, options: &Options) -> marquetry::Result<Answer> {
    let reader = Reader::open(path)?.threads(options.threads).views(options.views);
    reader.metadata().index().to_file_meta_data()?;
    for row_group in 0..reader.metadata().row_groups() {
        for leaf in 0..reader.metadata().schema().leaves_len() {
            // A broken index is a report, never a reason not to read.
            let _ = reader.page_index(row_group, leaf);
        }
    }
    let mut batches = reader.batches()?;
    while let Some(batch) = batches.next_batch()? {
        for column in batch.columns() {
            if let Err(error) = column.to_data().validate_full() {
                return Ok(Answer::BadData(error.to_string()));
            }
        }
    }
    Ok(Answer::Ok)
}
