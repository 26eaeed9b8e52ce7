//! Tests that deeply nested values are shown and converted on 1 MiB of stack.

use std::process::Output;
use std::thread;

use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use marquetry::Limits;

use crate::support::folder::{Folder, error, limited};
use crate::support::nests::{NESTS, Nest, deep, deepest, nested};

/// The tool itself, with a stack of 1 MiB for every thread.
fn marq(folder: &Folder, args: &str) -> Output {
    let args: Vec<&str> = args.split(' ').collect();
    let mut command = limited("ulimit -s 1024", &folder.command(&args));
    command.env("RUST_MIN_STACK", "1048576").output().expect("a shell")
}

/// An Arrow IPC file, or a stream, of one column with `levels` levels around it; made on a thread
/// with enough stack.
fn ipc(nest: Nest, levels: usize, is_file: bool) -> Vec<u8> {
    let make = move || {
        let batch = RecordBatch::try_from_iter([("c", nested(nest, levels))]).unwrap();
        let mut out = Vec::new();
        if is_file {
            let mut writer = FileWriter::try_new(&mut out, &batch.schema()).unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
        } else {
            let mut writer = StreamWriter::try_new(&mut out, &batch.schema()).unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
        }
        out
    };
    thread::Builder::new().stack_size(256 << 20).spawn(make).unwrap().join().unwrap()
}

#[test]
fn marq_converts_what_arrow_files_nest_or_refuses_it_on_a_small_stack() {
    let folder = Folder::new();
    for nest in [Nest::Structs, Nest::Lists] {
        for (is_file, name) in [(true, "in.arrow"), (false, "in.arrows")] {
            for levels in [10, 50, 63, 100, 300, 1000, 5000] {
                folder.put(name, ipc(nest, levels, is_file));
                for to in ["out.parquet", "out.arrow", "out.jsonl"] {
                    let output = marq(&folder, &format!("convert {name} -o {to}"));
                    let said = error(&output);
                    let code = output.status.code();
                    let name = format!("{nest:?} {levels} {name} {to}");
                    // Arrow's own readers follow 64 tables; some of these are around the column.
                    let wanted = if levels <= 50 { 0 } else { 3 };
                    assert_eq!(code, Some(wanted), "{name}: {said}");
                }
            }
        }
    }
}

#[test]
fn marq_shows_and_converts_what_is_nested_deep_on_a_small_stack() {
    let folder = Folder::new();
    for nest in NESTS {
        let name = format!("{nest:?}.parquet");
        folder.put(&name, deep(nest, deepest(nest, Limits::default().nesting)));
        for command in [
            "info",
            "schema",
            "schema --as json",
            "schema --as arrow",
            "schema --as parquet",
            "schema --as sql:duckdb",
            "pages",
            "stats",
            "count",
            "head",
            "head -f jsonl",
            "cat -f jsonl",
            "cat -f csv",
            "cat -f json",
            "convert -o x.arrow",
            "convert -o x.parquet",
        ] {
            let output = marq(&folder, &format!("{command} {name}"));
            let said = error(&output);
            let code = output.status.code();
            assert!(matches!(code, Some(0 | 1 | 3)), "{name} {command}: {code:?} {said}");
        }
    }
    let deep = |n: usize, open: &str, close: &str| {
        format!("{{\"a\":{}1{}}}\n", open.repeat(n), close.repeat(n))
    };
    for n in [60, 120, 1000, 100_000] {
        for (open, close) in [("[", "]"), ("{\"b\":", "}"), ("[{\"b\":", "}]")] {
            folder.put("in.jsonl", deep(n, open, close));
            let output = marq(&folder, "convert in.jsonl -o y.parquet");
            let said = error(&output);
            let code = output.status.code();
            assert!(matches!(code, Some(0..=3)), "{n} of {open}: {code:?} {said}");
        }
    }
}
