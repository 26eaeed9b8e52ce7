//! Messages that the codecs did not write: changed at random here, and by a fuzzing engine in
//! `crates/datafusion/fuzz`.

#![cfg(feature = "proto")]

use std::panic::{catch_unwind, resume_unwind};

use fastrand::Rng;

#[path = "../../../../tests/support/heap.rs"]
#[allow(dead_code, unreachable_pub)]
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
fn filters_that_are_no_conditions_are_refused() {
    let message = target::encode(target::scan(0, Some(target::column("id")))).expect("a message");
    let error = target::decode(&message, &[]).expect_err("a number is no condition");
    assert!(error.to_string().contains("a filter that is no condition: id"), "{error}");
}

#[test]
fn damaged_messages_are_errors_or_plans_that_are_the_same_again() {
    let seeds = target::seeds();
    seeds.iter().for_each(|seed| target::run(seed));
    let cases = std::env::var("MARQUETRY_CASES").ok().and_then(|n| n.parse().ok());
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let mut rng = Rng::with_seed(seed);
    for _ in 0..cases.unwrap_or(5_000) {
        let message = damaged(&seeds[rng.usize(..seeds.len())], &mut rng);
        if let Err(finding) = catch_unwind(|| target::run(&message)) {
            println!("b\"{}\"", message.escape_ascii());
            resume_unwind(finding);
        }
    }
}
