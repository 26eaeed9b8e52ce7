//! Levels as bytes in memory of this process or in its temporary files: in the form that they have
//! in memory, so that they come back as they were.
//!
//! ```text
//! entries, u64 | definition levels | repetition levels
//! levels: 0 | level, u16    1 | first, rest, u16 | slots, u64    2 | u16 for each    3 | bits
//! ```

use super::buffer::{LevelBuffer, LevelView, Period};
use super::leaf::{Def, LeafLevels};
use crate::bytes::Cursor;
use crate::error::{Error, Result, Spec};
use crate::memory;

impl LeafLevels {
    /// Appends all levels as bytes.
    ///
    /// # Errors
    /// `Limit(Memory)` if the system has no memory.
    pub(crate) fn store(&self, out: &mut Vec<u8>) -> Result<()> {
        memory::append(out, &(self.len() as u64).to_le_bytes())?;
        match &self.def {
            Def::Levels(levels) => store(levels, out)?,
            Def::Bits(bits) => {
                memory::push(out, BITS)?;
                memory::append(out, &bits.to_bytes(0..self.len())?)?;
            }
        }
        store(&self.rep, out)
    }

    /// Appends levels that were stored.
    ///
    /// # Errors
    /// `Malformed` if the bytes are no levels of this leaf.
    pub(crate) fn push_stored(&mut self, from: &mut Cursor<'_>) -> Result<()> {
        let n = usize::try_from(from.u64()?).map_err(|_| broken())?;
        let mut def = LevelBuffer::default();
        let form = from.u8()?;
        if form == BITS && self.max_def() == 1 {
            let bits = from.take(n.div_ceil(8))?;
            let rep = stored(from.u8()?, n, self.max_rep(), from)?;
            if rep.uniform() == Some(0) {
                return self.push_validity(bits, 0, n);
            }
            let level = |i: usize| bits.get(i / 8).map_or(0, |byte| u16::from(byte >> (i % 8) & 1));
            def.push_vec(memory::collected((0..n).map(level))?)?;
            return self.push(&def, &rep);
        }
        let def = stored(form, n, self.max_def(), from)?;
        let rep = stored(from.u8()?, n, self.max_rep(), from)?;
        self.append(def, rep)
    }
}

fn store(levels: &LevelBuffer, out: &mut Vec<u8>) -> Result<()> {
    memory::room(out, MAX_FORM)?;
    match levels.view() {
        LevelView::Uniform(level) => {
            out.push(UNIFORM);
            out.extend(level.to_le_bytes());
        }
        LevelView::Regular(Period { first, rest, slots }) => {
            out.push(REGULAR);
            out.extend(first.to_le_bytes());
            out.extend(rest.to_le_bytes());
            out.extend((slots as u64).to_le_bytes());
        }
        LevelView::Mixed(levels) => {
            out.push(MIXED);
            memory::room(out, size_of_val(levels))?;
            levels.iter().for_each(|level| out.extend_from_slice(&level.to_le_bytes()));
        }
    }
    Ok(())
}

/// Bytes of the longest form, the levels of each slot aside.
const MAX_FORM: usize = 13;

fn stored(form: u8, n: usize, max: u16, from: &mut Cursor<'_>) -> Result<LevelBuffer> {
    let mut levels = LevelBuffer::default();
    let checked = |level: u16| if level <= max { Ok(level) } else { Err(broken()) };
    match form {
        UNIFORM => levels.push_run(checked(from.u16()?)?, n)?,
        REGULAR => {
            let (first, rest) = (checked(from.u16()?)?, checked(from.u16()?)?);
            let slots = usize::try_from(from.u64()?).map_err(|_| broken())?;
            if slots == 0 || !n.is_multiple_of(slots) {
                return Err(broken());
            }
            levels.push_regular(Period { first, rest, slots }, n / slots)?;
        }
        MIXED => {
            let bytes = from.take(n.checked_mul(2).ok_or_else(broken)?)?;
            let (pairs, _) = bytes.as_chunks::<2>();
            let all = pairs.iter().map(|pair| checked(u16::from_le_bytes(*pair)));
            levels.push_vec(memory::try_collected(all)?)?;
        }
        _ => return Err(broken()),
    }
    Ok(levels)
}

#[cold]
fn broken() -> Error {
    Error::malformed(Spec::Levels, "stored levels are not those of their leaf")
}

const UNIFORM: u8 = 0;
const REGULAR: u8 = 1;
const MIXED: u8 = 2;
const BITS: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(levels: &LeafLevels) {
        let mut bytes = Vec::new();
        levels.store(&mut bytes).unwrap();
        let mut back = LeafLevels::new(levels.max_def(), levels.max_rep());
        // Twice, because levels are appended.
        for _ in 0..2 {
            let mut from = Cursor::new(&bytes, Spec::Levels);
            back.push_stored(&mut from).unwrap();
            assert!(from.is_empty());
        }
        let once: Vec<_> = levels.entries().collect();
        assert_eq!(back.entries().collect::<Vec<_>>(), [once.clone(), once].concat());
        for cut in 0..bytes.len() {
            let mut from = Cursor::new(&bytes[..cut], Spec::Levels);
            let mut back = LeafLevels::new(levels.max_def(), levels.max_rep());
            assert!(back.push_stored(&mut from).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn levels_come_back_from_bytes_and_from_fewer_bytes_none() {
        let mut flat = LeafLevels::new(1, 0);
        flat.push_run(1, 5).unwrap();
        round_trip(&flat);
        flat.push_validity(&[0b1010_0101], 1, 6).unwrap();
        round_trip(&flat);
        let mut required = LeafLevels::new(0, 0);
        required.push_run(0, 7).unwrap();
        round_trip(&required);
        let (mut def, mut rep) = (LevelBuffer::default(), LevelBuffer::default());
        def.push_run(2, 6).unwrap();
        rep.push_regular(Period { first: 0, rest: 1, slots: 3 }, 2).unwrap();
        let mut lists = LeafLevels::new(2, 1);
        lists.push(&def, &rep).unwrap();
        round_trip(&lists);
        def.push_slice(&[0, 1]).unwrap();
        rep.push_slice(&[0, 0]).unwrap();
        let mut mixed = LeafLevels::new(2, 1);
        mixed.push(&def, &rep).unwrap();
        round_trip(&mixed);
    }

    #[test]
    fn levels_above_the_highest_are_refused() {
        let (mut def, mut rep) = (LevelBuffer::default(), LevelBuffer::default());
        def.push_slice(&[0, 3]).unwrap();
        rep.push_run(0, 2).unwrap();
        let mut high = LeafLevels::new(3, 0);
        high.push(&def, &rep).unwrap();
        let mut bytes = Vec::new();
        high.store(&mut bytes).unwrap();
        let found = LeafLevels::new(2, 0).push_stored(&mut Cursor::new(&bytes, Spec::Levels));
        assert!(found.is_err());
    }
}
