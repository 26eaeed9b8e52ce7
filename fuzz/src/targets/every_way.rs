//! A file in all the ways that the tests of mutants read in: filters, targets, selections, points,
//! and what is written again.

use bytes::Bytes;
use marquetry_testkit::heap;
use marquetry_testkit::mutants::{Heap, read_every_way};

use crate::input::{Input, Output};

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let mut rng = input.rng();
    let file = Bytes::copy_from_slice(input.rest());
    let counted = Heap { start: heap::start, peak: heap::peak };
    // Summaries write files.
    let found = read_every_way(&file, &mut rng, Some(counted), &["summary"]);
    assert!(found.is_empty(), "{found:#?}");
}

pub fn seeds() -> Vec<Vec<u8>> {
    let files = crate::seeds::files().into_iter().enumerate();
    let seed = |(i, file): (usize, Vec<u8>)| {
        Output::default().u16(u16::try_from(i).expect("few")).rest(&file).bytes()
    };
    files.map(seed).collect()
}
