//! Tests that values nested as deep as the highest limits take at most 1 MiB of stack, in every way
//! of reading and writing.

use std::thread;

use bytes::Bytes;
use fastrand::Rng;
use marquetry::arrow_array::{Array, RecordBatch};
use marquetry::format::*;
use marquetry::inspect::{Inspector, SpanKind, Spans};
use marquetry::io::WriteSink;
use marquetry::{ErrorKind, LimitKind, Limits, Predicate, Reader, WriteOptions, Writer, col};

use crate::alone;
use crate::support::mutants::read_every_way;
use crate::support::nests::{NESTS, Nest, deep, deepest, nested};
use crate::support::{Chunk, close, file_with, ints, required, v1};

/// The stack that all of this must fit. `MARQUETRY_STACK` is another one, to measure.
fn on_a_small_stack<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let stack = std::env::var("MARQUETRY_STACK").ok().and_then(|n| n.parse().ok());
    let thread = thread::Builder::new().stack_size(stack.unwrap_or(1 << 20));
    match thread.spawn(work).unwrap().join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    }
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
            // Operations of a caller on a batch.
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

/// The depth of the deepest span, and how many could not be explained.
fn depth_of(spans: Spans) -> (usize, usize) {
    spans.map(Result::unwrap).fold((0, 0), |(depth, unparsed), span| {
        let is_unparsed = usize::from(span.kind == SpanKind::Unparsed);
        let below = span.children().map_or((0, 0), depth_of);
        (depth.max(1 + below.0), unparsed + is_unparsed + below.1)
    })
}

#[test]
fn a_nested_footer_is_a_tree_as_deep_as_footers_are_read() {
    let _alone = alone();
    // A struct in a struct; a list in a list, in a struct.
    for byte in [0x1C, 0x19] {
        on_a_small_stack(move || {
            let file = close(b"PAR1".to_vec(), &vec![byte; 100_000]);
            let inspector = Inspector::new(Bytes::from(file)).unwrap();
            assert!(inspector.problem().is_some());
            let (depth, unparsed) = depth_of(inspector.footer());
            assert!((60..80).contains(&depth), "{byte:#x}: {depth}");
            assert_eq!(unparsed, 1, "{byte:#x}");
        });
    }
    // An unknown field of a footer that is true.
    for (levels, is_read) in [(64, true), (65, false)] {
        let chunk = Chunk::new(Type::Int32, 1, &[v1(1, Encoding::Plain, &ints(&[7]))]);
        let groups = vec![(1, vec![chunk])];
        let mut footer = Vec::new();
        file_with(vec![required("v", Type::Int32)], groups, |meta| footer = meta.to_thrift());
        assert_eq!(footer.pop(), Some(0));
        // Field 100 is a struct, and so is the first field of each.
        footer.extend([0x0C, 200, 1]);
        footer.extend(vec![0x1C; levels - 1]);
        footer.extend(vec![0; levels + 1]);
        let inspector = Inspector::new(Bytes::from(close(b"PAR1".to_vec(), &footer))).unwrap();
        assert_eq!(inspector.problem().is_none(), is_read, "{levels}: {:?}", inspector.problem());
        let (depth, unparsed) = depth_of(inspector.footer());
        assert!(depth > 60 && (unparsed == 0) == is_read, "{levels}: {depth} {unparsed}");
    }
}
