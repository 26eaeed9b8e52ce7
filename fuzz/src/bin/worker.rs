//! Reads a path a line on standard input, reads the whole file through the library, and answers one
//! line:
//!
//! `OK`, `ERR text`, `PANIC text` (caught), `MEMERR text` (a limit, or memory refused) or `BADDATA
//! text` (what came back fails full validation), each with `peak=BYTES`, the most heap that the
//! file took.
//!
//! Flags: `--threads N` (default 1), `--views` (strings as views).

use std::io::{BufRead, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_array::Array;
use marquetry::{ErrorKind, Reader};
// The allocator that counts.
use marquetry_fuzz as _;
use marquetry_testkit::heap;

/// How a file is read.
struct Options {
    threads: usize,
    views: bool,
}

enum PruneResult {
    Ok,
    Err(String),
    MemErr(String),
    BadData(String),
}

fn main() {
    let mut options = Options { threads: 1, views: false };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--threads" => options.threads = args.next().and_then(|n| n.parse().ok()).unwrap_or(1),
            "--views" => options.views = true,
            other => {
                eprintln!("unknown flag {other}");
                std::process::exit(2);
            }
        }
    }
    std::panic::set_hook(Box::new(|_| {}));
    let mut out = std::io::stdout();
    for path in std::io::stdin().lock().lines().map_while(Result::ok) {
        let before = heap::start();
        let answer = catch_unwind(AssertUnwindSafe(|| read(&path, &options)));
        let peak = heap::peak().saturating_sub(before);
        let (word, text) = match answer {
            Ok(PruneResult::Ok) => ("OK", String::new()),
            Ok(PruneResult::Err(text)) => ("ERR", text),
            Ok(PruneResult::MemErr(text)) => ("MEMERR", text),
            Ok(PruneResult::BadData(text)) => ("BADDATA", text),
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

fn read(path: &str, options: &Options) -> PruneResult {
    match read_all(path, options) {
        Ok(answer) => answer,
        Err(error) => match error.kind() {
            ErrorKind::Limit(_) => PruneResult::MemErr(error.to_string()),
            _ => PruneResult::Err(error.to_string()),
        },
    }
}

fn read_all(path: &str, options: &Options) -> marquetry::Result<PruneResult> {
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
                return Ok(PruneResult::BadData(error.to_string()));
            }
        }
    }
    Ok(PruneResult::Ok)
}
