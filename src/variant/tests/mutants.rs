//! Tests mutated values: each is read in every way, and ends in a value or an error.

use fastrand::Rng;

use super::super::{Variant, VariantBuilder, VariantMetadata};
use super::twin::{encode, tree};

/// Reads all of a value, one part after another, ignoring errors. Returns the number of parts.
fn walk(value: Variant<'_>, budget: &mut usize) -> usize {
    // Values that share bytes can be reached by place for ever.
    if *budget == 0 {
        return 0;
    }
    *budget -= 1;
    1 + match value {
        Variant::Object(object) => (0..object.len())
            .map(|i| {
                let name = object.name(i);
                _ = name.map(|name| object.get(name));
                object.value(i).map_or(0, |value| walk(value, budget))
            })
            .sum::<usize>(),
        Variant::List(list) => {
            (0..list.len()).map(|i| list.get(i).map_or(0, |value| walk(value, budget))).sum()
        }
        _ => 0,
    }
}

fn mutate(bytes: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..rng.usize(1..4) {
        let len = bytes.len();
        let at = rng.usize(..=len);
        match rng.u8(..6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, rng.u8(..)),
            2 if at < len => drop(bytes.remove(at)),
            3 if at < len => bytes[at] ^= 1 << rng.u8(..8),
            4 if at < len => bytes[at] = [0, 1, 2, 3, 0x7f, 0x80, 0xff][rng.usize(..7)],
            _ if at < len => bytes[at] = rng.u8(..),
            _ => {}
        }
    }
}

/// `MARQUETRY_VARIANT_MUTANTS` is how many.
#[test]
fn a_mutant_is_a_value_or_an_error() {
    let count = std::env::var("MARQUETRY_VARIANT_MUTANTS").ok().and_then(|n| n.parse().ok());
    let count: u64 = count.unwrap_or(10_000);
    let (mut opened, mut valid, mut builder) = (0, 0, VariantBuilder::new());
    let path = "$.a[1]['0'].property_1".parse().unwrap();
    for seed in 0..count {
        let mut rng = Rng::with_seed(seed);
        let (mut metadata, mut value) = encode(&tree(&mut rng, 2), &mut rng);
        if rng.u8(..4) == 0 {
            mutate(&mut metadata, &mut rng);
        } else {
            mutate(&mut value, &mut rng);
        }
        let Ok(metadata) = VariantMetadata::new(&metadata) else { continue };
        let Ok(value) = Variant::new(metadata, &value) else { continue };
        opened += 1;
        walk(value, &mut 10_000);
        _ = value.get_path(&path);
        let (shown, is_equal) = (value.to_json(), value == value);
        builder.clear();
        let copied = builder.append(value);
        if value.validate().is_ok() {
            valid += 1;
            let shown = shown.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            copied.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            assert!(is_equal, "seed {seed}");
            let copy = builder.finish().unwrap();
            assert_eq!(copy.as_variant(), value, "seed {seed}");
            assert_eq!(copy.as_variant().to_json().unwrap(), shown, "seed {seed}");
            builder.append_json(&shown).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
    }
    println!("{count} mutants: {opened} begin like values, {valid} are valid");
}
