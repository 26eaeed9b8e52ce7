//! The library's deletion vectors beside the crate `roaring`.

use std::ops::Range;

use fastrand::Rng;
use marquetry::DeletionVector;
use roaring::{RoaringBitmap, RoaringTreemap};

/// Begins a bitmap in a table.
const MAGIC: u32 = 1_681_511_377;

fn random_bitmap(random: &mut Rng) -> RoaringBitmap {
    let mut bitmap = RoaringBitmap::new();
    for _ in 0..random.usize(1..5) {
        // A container has the numbers of one of these.
        let first = u32::from(random.u16(..)) << 16;
        match random.u8(0..4) {
            // A few values: an array.
            0 => bitmap.extend((0..random.u32(1..200)).map(|_| first | u32::from(random.u16(..)))),
            // Many values: bits.
            1 => bitmap.extend((0..random.u32(4_000..6_000)).map(|at| first | (at * 11 % 65_536))),
            // Runs, also over the end of the container.
            2 => {
                for _ in 0..random.u32(1..6) {
                    let start = first.saturating_add(random.u32(..70_000));
                    bitmap.insert_range(start..=start.saturating_add(random.u32(..9_000)));
                }
            }
            _ => {
                bitmap.insert_range(first..=first | 0xffff);
            }
        }
    }
    if random.bool() {
        bitmap.optimize();
    }
    bitmap
}

fn random_treemap(random: &mut Rng) -> RoaringTreemap {
    let mut key = 0;
    let bitmaps = (0..random.usize(0..3)).map(|_| {
        key += random.u32(0..3);
        let bitmap = random_bitmap(random);
        key += 1;
        (key - 1, bitmap)
    });
    RoaringTreemap::from_bitmaps(bitmaps.collect::<Vec<_>>())
}

fn bytes_of(treemap: &RoaringTreemap) -> Vec<u8> {
    let mut bytes = MAGIC.to_le_bytes().to_vec();
    treemap.serialize_into(&mut bytes).expect("in memory");
    bytes
}

/// Ranges that do not touch.
fn joined(ranges: impl Iterator<Item = Range<u64>>) -> Vec<Range<u64>> {
    let mut joined: Vec<Range<u64>> = Vec::new();
    for range in ranges {
        match joined.last_mut() {
            Some(last) if last.end == range.start => last.end = range.end,
            _ => joined.push(range),
        }
    }
    joined
}

fn assert_same(mine: &DeletionVector, theirs: &RoaringTreemap, case: &str) {
    assert_eq!(mine.count(), theirs.len(), "{case}");
    let values = theirs.iter().map(|value| value..value + 1);
    assert_eq!(joined(mine.ranges()), joined(values), "{case}");
}

/// Vectors, and vectors with a changed byte. `CASES=10000` tries more.
#[test]
fn vectors_have_the_rows_that_roaring_reads() {
    let number = |name: &str, default| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
    };
    let (seed, cases): (u64, u64) = (number("SEED", 20_261_126), number("CASES", 300));
    println!("SEED={seed}");
    let (mut both, mut neither, mut only_ours, mut only_theirs) = (0, 0, 0, 0);
    for case in 0..cases {
        let mut random = Rng::with_seed(seed.wrapping_add(case));
        let treemap = random_treemap(&mut random);
        let bytes = bytes_of(&treemap);
        let text = format!("case {case} of seed {seed}");
        let mine = DeletionVector::from_delta(bytes.clone()).expect("a vector");
        assert_same(&mine, &treemap, &text);
        let mut blob = u32::try_from(bytes.len()).expect("small").to_be_bytes().to_vec();
        blob.extend(&bytes);
        blob.extend(crc32fast::hash(&bytes).to_be_bytes());
        let of_blob = DeletionVector::from_blob(blob).expect("a vector");
        assert_eq!(of_blob.count(), mine.count(), "{text}");
        let mut padded = bytes.clone();
        padded.resize(bytes.len().next_multiple_of(4), 0);
        let inline = DeletionVector::from_delta_inline(&z85::encode(padded), bytes.len());
        assert_same(&inline.expect("a vector"), &treemap, &text);

        let mut changed = bytes;
        let at = random.usize(4..changed.len());
        changed[at] ^= 1 << random.u8(0..8);
        let theirs = RoaringTreemap::deserialize_from(&changed[4..]);
        match (DeletionVector::from_delta(changed), theirs) {
            (Ok(mine), Ok(theirs)) => {
                assert_same(&mine, &theirs, &format!("{text}, changed"));
                both += 1;
            }
            (Err(_), Err(_)) => neither += 1,
            (Ok(_), Err(_)) => only_ours += 1,
            (Err(_), Ok(_)) => only_theirs += 1,
        }
    }
    println!(
        "changed: {both} read by both, {neither} by neither, {only_ours} by us, {only_theirs} by roaring"
    );
}
