//! Messages that the codecs did not write: changed at random here, and by a fuzzing engine in
//! `crates/datafusion/fuzz`.

#![cfg(feature = "proto")]

use std::panic::{catch_unwind, resume_unwind};

use datafusion_common::DataFusionError;
use fastrand::Rng;

#[path = "../../../../tests/support/heap.rs"]
#[expect(dead_code, unreachable_pub, reason = "shared with tests that refuse allocations")]
mod heap;
mod target;

#[global_allocator]
static ALLOCATOR: heap::Counting = heap::Counting;

/// Changes some bytes: replaced, cut out, doubled, cut off.
fn damaged(bytes: &[u8], rng: &mut Rng) -> Vec<u8> {
    let mut out = bytes.to_vec();
    for _ in 0..rng.usize(1..4) {
        let at = rng.usize(..=out.len());
        let few = (at + rng.usize(..9)).min(out.len());
        let many = (at + rng.usize(..60)).min(out.len());
        match rng.u8(0..6) {
            0 | 1 if at < out.len() => out[at] = rng.u8(..),
            2 if at < out.len() => out[at] ^= 1 << rng.u8(0..8),
            3 => drop(out.drain(at..few)),
            4 => {
                let again = out[at..many].to_vec();
                out.splice(at..at, again);
            }
            _ if rng.u8(0..4) == 0 => out.truncate(at),
            _ => {}
        }
    }
    out
}

#[test]
fn messages_of_the_codecs_come_back_as_they_were_sent() {
    let mut rows = Vec::new();
    for (i, seed) in target::seeds().iter().enumerate() {
        target::run(seed);
        let decoded = target::round_trip(seed[0], &seed[1..]).expect("a message");
        assert_eq!(decoded.encoded.expect("another message"), seed[1..], "seed {i}");
        rows.extend(decoded.scan.map(|scan| target::execute(&scan).expect("rows")));
    }
    // Of two files of 100 rows; those with a limit return 30 of each.
    assert_eq!(rows, [100, 2, 100, 26, 50, 60, 66, 60, 60, 60]);
}

#[test]
fn filters_of_other_types_than_boolean_are_refused() {
    let message = target::encode(target::scan(0, Some(target::column("id")))).expect("a message");
    let error = target::decode(&message, &[]).expect_err("a number is no condition");
    assert!(matches!(error, DataFusionError::Internal(_)), "{error}");
}

#[test]
fn damaged_messages_are_errors_or_plans_that_are_the_same_again() {
    let number = |name| std::env::var(name).ok().and_then(|number| number.parse().ok());
    let seed = number("MARQUETRY_SEED").unwrap_or_else(|| fastrand::u64(..));
    println!("MARQUETRY_SEED={seed}");
    let mut rng = Rng::with_seed(seed);
    let seeds = target::seeds();
    for _ in 0..number("MARQUETRY_CASES").unwrap_or(20_000) {
        let message = damaged(&seeds[rng.usize(..seeds.len())], &mut rng);
        if let Err(finding) = catch_unwind(|| target::run(&message)) {
            println!("b\"{}\"", message.escape_ascii());
            resume_unwind(finding);
        }
    }
}
