//! Files that are changed below their codecs, as by the program `structure`, and given to the
//! targets that take files. Each change is two bytes of the input: an engine keeps those that reach
//! new code, and adds to them.

use std::sync::LazyLock;

use bytes::Bytes;
use marquetry_testkit::mutants::{Seed, changed, rng};

use super::{check, every_way, file, inspect, rewrite};
use crate::input::{Input, Output};

/// Changes of a file, at most.
const MAX_CHANGES: usize = 12;
/// Values can be doubled by each change.
const MAX_FILE: usize = 256 << 10;
/// Bytes that choose what is done with a file, at most.
const MAX_CHOICE: usize = 3;

/// The targets that take files, and how many bytes choose what is done with each.
const USES: [(fn(&[u8]), usize); 5] =
    [(every_way::run, 2), (file::run, 2), (rewrite::run, 3), (check::run, 3), (inspect::run, 0)];

static SEEDS: LazyLock<Vec<Seed>> = LazyLock::new(|| {
    let files = crate::seeds::files().into_iter().map(Bytes::from);
    files.enumerate().filter_map(|(i, file)| Seed::new(format!("{i}"), &file)).collect()
});

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (use_and_late, choice) = (input.u8(), [input.u8(), input.u8(), input.u8()]);
    let [seed, donor] = [input.u16(), input.u16()].map(|at| &SEEDS[usize::from(at) % SEEDS.len()]);
    let number = |bytes: &[u8]| bytes.iter().fold(0, |n, byte| n << 8 | u64::from(*byte));
    let numbers = input.rest().chunks(2).take(MAX_CHANGES).map(|bytes| rng(0, number(bytes)));
    let late = (use_and_late & 0x80 > 0).then(|| rng(1, number(&choice)));
    let file = changed(seed, donor, numbers, late);
    if file.len() > MAX_FILE {
        return;
    }
    let (run, choices) = USES[usize::from(use_and_late & 0x7F) % USES.len()];
    run(&Output::default().rest(&choice[..choices]).rest(&file).bytes());
}

pub fn seeds() -> Vec<Vec<u8>> {
    let seed = |i: usize| {
        let of_use = (i % USES.len()) as u8 | if i % 16 == 0 { 0x80 } else { 0 };
        let head = Output::default().u8(of_use).rest(&[i as u8; MAX_CHOICE]);
        let head = head.u16(i as u16).u16((i + 9) as u16);
        (0..i % 4).fold(head, |head, change| head.u16((i * 7 + change * 31) as u16)).bytes()
    };
    (0..SEEDS.len()).map(seed).collect()
}
