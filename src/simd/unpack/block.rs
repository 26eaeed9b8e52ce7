//! A block of values, and loops over it that are unrolled.

/// Values in a block: a block of width `w` takes `4 * w` bytes.
pub(crate) const BLOCK: usize = 32;

/// Does `$body` for each value of a block, whose place `$i` is a constant: the compiler leaves a
/// loop as it is, with a branch for each value.
macro_rules! unroll {
    ($i:ident => $body:block) => {
        $crate::simd::unpack::unroll!($i => $body, [
            0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31
        ])
    };
    ($i:ident => $body:block, [$($n:literal)*]) => {
        $({
            const $i: usize = $n;
            $body
        })*
    };
}
pub(in crate::simd) use unroll;
