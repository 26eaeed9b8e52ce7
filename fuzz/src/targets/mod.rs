//! The targets, and what they share.

mod check;
mod crypt;
mod encoding;
mod every_way;
mod file;
mod footer;
mod geo;
mod inspect;
pub(crate) mod page;
mod rewrite;
mod roundtrip;
mod select;
mod snappy;
mod structure;
mod text;
mod variant;

pub mod reading;

/// A target: it panics on a finding.
pub struct Target {
    pub name: &'static str,
    pub run: fn(&[u8]),
    /// Inputs to begin with.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

macro_rules! targets {
    ($($name:ident,)*) => {
        /// All targets.
        pub const ALL: &[Target] = &[$(Target {
            name: stringify!($name),
            run: $name::run,
            seeds: $name::seeds,
        }),*];

        #[cfg(test)]
        mod tests {
            $(#[test]
            fn $name() {
                crate::front::test(bolero::check!(), super::$name::run, super::$name::seeds);
            })*
        }
    };
}

targets!(
    check, crypt, encoding, every_way, file, footer, geo, inspect, page, rewrite, roundtrip,
    select, snappy, structure, text, variant,
);
