//! What is nested as deep as the limits can be raised to takes no more than 1 MiB of stack, in
//! every way of reading and writing.

use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::thread;

use arrow_buffer::OffsetBuffer;
use arrow_ipc::writer::{FileWriter, StreamWriter};
use bytes::Bytes;
use fastrand::Rng;
use marquetry::arrow_array::{Array, ArrayRef, Int32Array, ListArray, RecordBatch, StructArray};
use marquetry::arrow_schema::Field;
use marquetry::format::*;
use marquetry::io::WriteSink;
use marquetry::{ErrorKind, LimitKind, Limits, Predicate, Reader, WriteOptions, Writer, col};

use crate::alone;
use crate::structure::read_every_way;
use crate::support::{Chunk, file, group, ints, levels_v1, optional, v1};

/// The stack that all of this must fit. `MARQUETRY_STACK` is another one, to measure.
fn on_a_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let stack = std::env::var("MARQUETRY_STACK").ok().and_then(|n| n.parse().ok());
    let thread = thread::Builder::new().stack_size(stack.unwrap_or(1 << 20));
    match thread.spawn(work).unwrap().join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// How many groups may be around a column. `MARQUETRY_DEPTH` is another limit, to measure; it must
/// be below that of the crate.
fn deepest(nest: Nest, limit: usize) -> usize {
    let limit = std::env::var("MARQUETRY_DEPTH").ok().and_then(|n| n.parse().ok()).unwrap_or(limit);
    match nest {
        // Every group but the root counts twice.
        Nest::Repeated => limit / 2,
        _ => limit,
    }
}

#[derive(Clone, Copy, Debug)]
enum Nest {
    Structs,
    Lists,
    Maps,
    Repeated,
}

const NESTS: [Nest; 4] = [Nest::Structs, Nest::Lists, Nest::Maps, Nest::Repeated];

/// A file of two rows, whose only leaf has `depth` groups above it, the root among them.
fn deep(nest: Nest, depth: usize) -> Bytes {
    use FieldRepetitionType::{Optional, Repeated};
    let annotated = |converted, mut element: SchemaElement| {
        element.converted_type = Some(converted);
        element
    };
    let (mut schema, mut def, mut rep) = (Vec::new(), 1, 0);
    while schema.len() + 1 < depth {
        let pair = schema.len() + 2 < depth;
        match nest {
            Nest::Lists if pair => {
                schema.push(annotated(ConvertedType::List, group("l", Optional, 1)));
                schema.push(group("list", Repeated, 1));
                (def, rep) = (def + 2, rep + 1);
            }
            Nest::Maps if pair => {
                schema.push(annotated(ConvertedType::Map, group("m", Optional, 1)));
                schema.push(group("key_value", Repeated, 1));
                (def, rep) = (def + 2, rep + 1);
            }
            Nest::Repeated => {
                schema.push(group("r", Repeated, 1));
                (def, rep) = (def + 1, rep + 1);
            }
            _ => {
                schema.push(group("g", Optional, 1));
                def += 1;
            }
        }
    }
    schema.push(optional("v", Type::Int32));
    let reps = if rep > 0 { levels_v1(&[0, 0], rep) } else { Vec::new() };
    let body = [reps, levels_v1(&[def, 0], def), ints(&[7])].concat();
    let chunk = Chunk::new(Type::Int32, 2, &[v1(2, Encoding::Plain, &body)]);
    file(schema, 2, vec![chunk]).into()
}

fn raised() -> Limits {
    let mut limits = Limits::default();
    limits.nesting = usize::MAX;
    limits
}

#[test]
fn the_deepest_file_is_read_in_every_way_on_a_small_stack() {
    let _alone = alone();
    for nest in NESTS {
        let file = deep(nest, deepest(nest, Limits::MAX_NESTING));
        on_a_small_stack(move || {
            let reader = Reader::with_limits(file.clone(), raised()).unwrap().threads(1);
            let mut batches = reader.batches().unwrap();
            let batch = batches.next_batch().unwrap().unwrap();
            assert_eq!(batch.num_rows(), 2, "{nest:?}");
            batch.column(0).to_data().validate_full().unwrap();
            // What a caller does with a batch.
            let printed = format!("{:?}{:?}{}", batch.schema(), batch, batch.schema());
            assert!(printed.len() > 1000);
            assert_eq!(batch, batch.slice(0, 2));
            let path = reader.metadata().schema().leaf(0).unwrap().path.dotted();
            drop(batch);
            for predicate in [col(&path).is_null(), col(&path).eq(7)] {
                let reader = reader.clone().filter(predicate);
                _ = reader.count();
                _ = reader.batches().and_then(|mut batches| batches.next_batch());
            }
            assert_eq!(reader.clone().project([&path]).unwrap().take(&[0]).unwrap().num_rows(), 1);
            let findings = read_every_way(&file, &mut Rng::with_seed(1), None, &[]);
            assert!(findings.is_empty(), "{nest:?}: {findings:?}");
        });
    }
}

#[test]
fn what_is_nested_deeper_is_refused_and_told_how_deep_may_be() {
    for (limits, text) in [
        (Limits::default(), "deeper than 208 levels; Limits::nesting can be raised to 224"),
        (raised(), "deeper than 224 levels; no deeper one can be read"),
    ] {
        for nest in NESTS {
            let depth = deepest(nest, limits.nesting.min(Limits::MAX_NESTING));
            let limits = limits.clone();
            on_a_small_stack(move || {
                Reader::with_limits(deep(nest, depth), limits.clone()).unwrap();
                for depth in [depth + 1, 20_000] {
                    let error =
                        Reader::with_limits(deep(nest, depth), limits.clone()).err().unwrap();
                    assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Nesting));
                    assert!(error.to_string().contains(text), "{nest:?} {depth}: {error}");
                }
            });
        }
    }
}

/// An array of two rows, of one value and one null, with so many levels around it. Names are those
/// of the format: a hint that is nested deeper than 64 tables is not heeded.
fn nested(nest: Nest, levels: usize) -> ArrayRef {
    let mut array: ArrayRef = Arc::new(Int32Array::from(vec![Some(7), None]));
    for _ in 0..levels {
        let field = Arc::new(Field::new("element", array.data_type().clone(), true));
        array = match nest {
            Nest::Structs => Arc::new(StructArray::from(vec![(field, array)])),
            _ => Arc::new(ListArray::new(field, OffsetBuffer::from_lengths([1, 1]), array, None)),
        };
    }
    array
}

#[test]
fn the_deepest_arrays_are_written_on_a_small_stack_and_deeper_ones_refused() {
    let _alone = alone();
    // Below the root; a list is two groups.
    for (nest, levels) in [(Nest::Structs, 207), (Nest::Lists, 103)] {
        on_a_small_stack(move || {
            let batch = RecordBatch::try_from_iter([("c", nested(nest, levels))]).unwrap();
            let mut written = Vec::new();
            let options = WriteOptions::new();
            let mut writer =
                Writer::new(WriteSink(&mut written), batch.schema(), options.clone()).unwrap();
            writer.write(&batch).unwrap();
            writer.finish().unwrap();
            let reader = Reader::new(Bytes::from(written)).unwrap().threads(1);
            let read = reader.batches().unwrap().next_batch().unwrap().unwrap();
            assert_eq!(read, batch, "{nest:?}");
            // Until Arrow itself takes more than the stack.
            for levels in [levels + 1, 1000] {
                let batch = RecordBatch::try_from_iter([("c", nested(nest, levels))]).unwrap();
                let error = Writer::new(WriteSink(Vec::new()), batch.schema(), options.clone());
                let error = error.expect_err("it is too deep");
                assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Nesting), "{error}");
                assert!(error.to_string().contains("the most that is written"), "{error}");
            }
        });
    }
}

#[test]
fn deep_predicates_are_parsed_and_evaluated_on_a_small_stack_or_refused() {
    let _alone = alone();
    on_a_small_stack(|| {
        let file = deep(Nest::Structs, 1);
        for (open, close) in
            [("(", ")"), ("not ", ""), ("not (", ")"), ("(v = 1 or v = 2 and ", ")")]
        {
            let text = |n: usize| format!("{}v = 7{}", open.repeat(n), close.repeat(n));
            for deep in [500, 100_000] {
                let error = Predicate::parse(&text(deep)).unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Usage, "{open}");
            }
            let max = (1..500).rfind(|n| Predicate::parse(&text(*n)).is_ok()).unwrap();
            assert!(max >= 99, "{max} of {open}");
            let predicate = Predicate::parse(&text(max)).unwrap();
            let again = Predicate::parse(&predicate.to_string());
            assert!(again.is_err() || again.unwrap() == predicate);
            let reader = Reader::new(file.clone()).unwrap().threads(1).filter(predicate.clone());
            assert!(reader.count().unwrap() <= 2);
            reader.explain().unwrap();
            drop(predicate.clone());
        }
    });
}

/// The tool itself, with a stack of 1 MiB for every thread.
fn marq(folder: &Path, args: &str) -> Output {
    let script = format!("ulimit -s 1024; exec {} {args}", env!("CARGO_BIN_EXE_marq"));
    Command::new("sh")
        .args(["-c", &script])
        .current_dir(folder)
        .env("RUST_MIN_STACK", "1048576")
        .output()
        .unwrap()
}

/// An Arrow IPC file, or a stream, of one column with so many levels around it; made where there is
/// stack enough.
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

#[cfg(unix)]
#[test]
fn marq_converts_what_arrow_files_nest_or_refuses_it_on_a_small_stack() {
    let folder = tempfile::tempdir().unwrap();
    for nest in [Nest::Structs, Nest::Lists] {
        for (is_file, name) in [(true, "in.arrow"), (false, "in.arrows")] {
            for levels in [10, 50, 63, 100, 300, 1000, 5000] {
                std::fs::write(folder.path().join(name), ipc(nest, levels, is_file)).unwrap();
                for to in ["out.parquet", "out.arrow", "out.jsonl"] {
                    let output = marq(folder.path(), &format!("convert {name} -o {to}"));
                    let said = String::from_utf8_lossy(&output.stderr).into_owned();
                    let code = output.status.code();
                    let name = format!("{nest:?} {levels} {name} {to}");
                    // Arrow's own readers follow 64 tables, of which some stand around the column.
                    let wanted = if levels <= 50 { 0 } else { 3 };
                    assert_eq!(code, Some(wanted), "{name}: {said}");
                }
            }
        }
    }
}

#[cfg(unix)]
#[test]
fn marq_shows_and_converts_what_is_nested_deep_on_a_small_stack() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    for nest in NESTS {
        let name = format!("{nest:?}.parquet");
        write(&name, &deep(nest, deepest(nest, Limits::default().nesting)));
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
            let output = marq(folder.path(), &format!("{command} {name}"));
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let code = output.status.code();
            assert!(matches!(code, Some(0 | 1 | 3)), "{name} {command}: {code:?} {said}");
        }
    }
    let deep = |n: usize, open: &str, close: &str| {
        format!("{{\"a\":{}1{}}}\n", open.repeat(n), close.repeat(n))
    };
    for n in [60, 120, 1000, 100_000] {
        for (open, close) in [("[", "]"), ("{\"b\":", "}"), ("[{\"b\":", "}]")] {
            write("in.jsonl", deep(n, open, close).as_bytes());
            let output = marq(folder.path(), "convert in.jsonl -o y.parquet");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let code = output.status.code();
            assert!(matches!(code, Some(0..=3)), "{n} of {open}: {code:?} {said}");
        }
    }
}
