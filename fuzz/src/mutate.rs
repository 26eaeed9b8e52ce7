//! Random changes of bytes, for tests without a fuzzing engine.

use std::fmt;

use bolero::{Driver, ValueGenerator};

/// Bytes of a mutant, at most.
const MAX_LEN: usize = 1 << 16;

/// Generates mutants of these seeds.
pub(crate) struct Mutants(pub(crate) Vec<Vec<u8>>);

/// A seed after some changes. It is printed as a byte string of Rust.
pub(crate) struct Mutant(pub(crate) Vec<u8>);

impl fmt::Debug for Mutant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "b\"{}\"", self.0.escape_ascii())
    }
}

impl ValueGenerator for Mutants {
    type Output = Mutant;

    fn generate<D: Driver>(&self, driver: &mut D) -> Option<Mutant> {
        let Self(seeds) = self;
        let mut out = seeds[(0..seeds.len()).generate(driver)?].clone();
        for _ in 0..[0, 1, 1, 2, 4, 8][(0..6).generate(driver)?] {
            let other = &seeds[(0..seeds.len()).generate(driver)?];
            change(&mut out, other, driver)?;
        }
        out.truncate(MAX_LEN);
        Some(Mutant(out))
    }
}

fn change<D: Driver>(out: &mut Vec<u8>, other: &[u8], driver: &mut D) -> Option<()> {
    if out.is_empty() {
        out.push((0..=u8::MAX).generate(driver)?);
        return Some(());
    }
    let at = (0..out.len()).generate(driver)?;
    let few = (1..=16).generate(driver)?.min(out.len() - at);
    match (0..8).generate(driver)? {
        0 => out[at] ^= 1 << (0..8).generate(driver)?,
        1 => out[at] = [0, 1, 0x7F, 0x80, 0xFF, 16][(0..6).generate(driver)?],
        2 => out[at] = out[at].wrapping_add((0..=u8::MAX).generate(driver)?),
        3 => drop(out.drain(at..at + few)),
        4 => {
            let copy = out[at..at + few].to_vec();
            let to = (0..=out.len()).generate(driver)?;
            out.splice(to..to, copy);
        }
        5 => {
            for byte in &mut out[at..at + few] {
                *byte = (0..=u8::MAX).generate(driver)?;
            }
        }
        6 if !other.is_empty() => {
            let from = (0..other.len()).generate(driver)?;
            let len = (1..=64).generate(driver)?.min(other.len() - from);
            let end = out.len().min(at + len);
            out.splice(at..end, other[from..from + len].iter().copied());
        }
        _ => out.truncate(at + 1),
    }
    Some(())
}
