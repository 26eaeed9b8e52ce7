//! Tests that the heap of rewriting and recovering stays within what is meant for it.

#[cfg(feature = "full")]
use bytes::Bytes;
#[cfg(feature = "full")]
use marquetry::format::{Encoding, Type};
#[cfg(feature = "full")]
use marquetry::rewrite::Salvage;
#[cfg(feature = "full")]
use marquetry::Reader;

#[cfg(feature = "full")]
use crate::alone;
#[cfg(feature = "full")]
use crate::support;
#[cfg(feature = "full")]
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
