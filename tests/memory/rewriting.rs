//! Tests that the heap of rewriting and recovering stays within what is meant for it.

use std::sync::Arc;

use bytes::Bytes;
use marquetry::arrow_array::{ArrayRef, Int64Array, RecordBatch};
#[cfg(feature = "full")]
use marquetry::format::{Encoding, Type};
use marquetry::io::WriteSink;
use marquetry::rewrite::Rewrite;
#[cfg(feature = "full")]
use marquetry::rewrite::Salvage;
use marquetry::{Reader, Writer};

use crate::alone;
#[cfg(feature = "full")]
use crate::support;
use crate::support::heap;

/// Columns of one row; pages without values after those of the last columns may be of several
/// chunks.
#[cfg(feature = "full")]
fn of_many_ways(columns: usize, ambiguous: usize, empty_pages: usize) -> (Bytes, Bytes) {
    let page = support::v1(1, Encoding::Plain, &support::ints(&[7]));
    let empty = support::v1(0, Encoding::Plain, &[]);
    let chunks = (0..columns).map(|at| {
        let mut pages = vec![page.clone()];
        if at + ambiguous >= columns {
            pages.extend(std::iter::repeat_n(empty.clone(), empty_pages));
        }
        support::Chunk::new(Type::Int32, 1, &pages)
    });
    let schema = (0..columns).map(|at| support::required(&format!("c{at}"), Type::Int32));
    let whole = Bytes::from(support::file(schema.collect(), 1, chunks.collect()));
    let cut = whole.slice(..whole.len() - 8);
    (whole, cut)
}

#[cfg(feature = "full")]
#[test]
fn the_ways_to_divide_pages_take_bounded_memory() {
    let _alone = alone();
    let (whole, cut) = of_many_ways(200, 7, 7);
    let known = Reader::new(whole).expect("a file");
    let before = heap::start();
    let found = Salvage::new(cut).schema_of(&known).expect("a schema").find().expect("an account");
    let peak = heap::peak() - before;
    let lost = &found.account().lost;
    assert!(lost.iter().any(|part| part.reason.contains("too many ways")), "{lost:?}");
    println!("{} MiB", peak >> 20);
    assert!(peak < 192 << 20, "{peak} bytes");
}

#[test]
fn encoders_of_many_columns_share_their_buffers() {
    let _alone = alone();
    let mut rng = fastrand::Rng::with_seed(5);
    let mut file = |columns: usize| {
        let column = |at: usize| {
            let numbers: ArrayRef =
                Arc::new(Int64Array::from_iter_values((0..16_384).map(|_| rng.i64(..))));
            (format!("column_{at}"), numbers)
        };
        let columns: Vec<_> = (0..columns).map(column).collect();
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        let mut out = Vec::new();
        let mut writer =
            Writer::new(WriteSink(&mut out), batch.schema(), Default::default()).expect("a schema");
        writer.write(&batch).expect("rows");
        writer.finish().expect("a file");
        Bytes::from(out)
    };
    let mut peak = |columns: usize| {
        let reader = Reader::new(file(columns)).expect("a file").threads(1);
        let before = heap::start();
        let rewrite = Rewrite::new([reader]).encode("*");
        rewrite.run(WriteSink(std::io::sink())).expect("a file");
        heap::peak() - before
    };
    let (few, many) = (peak(20), peak(220));
    println!("{} KiB for 20 columns, {} KiB for 220", few >> 10, many >> 10);
    // The indexes and the metadata of each remain.
    assert!(many < few + 200 * (32 << 10), "{few} bytes for 20 columns, {many} for 220");
}
