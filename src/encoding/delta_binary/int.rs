//! [`Int`]: the kernels of DELTA_BINARY_PACKED for integers of 32 and of 64 bits.

use crate::simd::Isa;
use crate::simd::deltas::{BLOCK, Differences};
use crate::simd::deltas::{
    differences_i32_with, differences_i64_with, raise_u32_with, raise_u64_with,
};
use crate::simd::native::Native;
use crate::simd::pack::{pack_u32_with, pack_u64_with};
use crate::simd::prefix_sum::{PackedDeltas, sum_packed_i32, sum_packed_i64};

/// INT32 or INT64.
pub(crate) trait Int: Native + Ord + TryFrom<i64> + Into<i64> {
    /// A packed difference.
    type Delta: Copy + Default + Send + Sync + std::fmt::Debug;

    /// Bits of the type: no difference takes more.
    const BITS: u32;

    /// Bits of a packed difference at most. DuckDB (1.0 to 2.0, `PARQUET_VERSION v2`) takes the
    /// differences of INT32 in 64 bits, where that less the smallest takes up to 33: of those the
    /// low 32 count, as the specification has it that they wrap.
    const MAX_WIDTH: u32;

    /// From a number of the header, wrapping to the width.
    fn wrap(value: i64) -> Self;

    /// Appends `n` values: packed differences of `width` bits, each plus `step`, summed up after
    /// `last`. Returns the last value.
    fn sum_packed(
        packed: PackedDeltas<'_>,
        step: Self,
        last: Self,
        scratch: &mut Vec<Self::Delta>,
        out: &mut Vec<Self>,
    ) -> Self;

    /// Appends `n` values at equal distances. Returns the last value.
    fn progression(n: usize, step: Self, last: Self, out: &mut Vec<Self>) -> Self;

    /// The differences of a block of 2 to 129 values, less the smallest of them.
    fn differences(isa: Isa, values: &[Self], out: &mut [Self::Delta; BLOCK]) -> Differences<Self>;

    /// Rebases deltas that are relative to the minimum `from` onto the smaller minimum `to`, and
    /// returns their bit width.
    fn raise(isa: Isa, deltas: &mut [Self::Delta], from: Self, to: Self) -> u8;

    /// Appends packed differences.
    fn pack(isa: Isa, deltas: &[Self::Delta], width: u32, out: &mut Vec<u8>);
}

macro_rules! int {
    ($int:ty, $delta:ty, $max:literal, $sum:ident, $differences:ident, $raise:ident, $pack:ident) => {
        impl Int for $int {
            type Delta = $delta;
            const BITS: u32 = <$int>::BITS;
            const MAX_WIDTH: u32 = $max;

            #[allow(clippy::cast_possible_truncation, reason = "the format wraps")]
            fn wrap(value: i64) -> Self {
                value as Self
            }

            fn sum_packed(
                packed: PackedDeltas<'_>,
                step: Self,
                last: Self,
                scratch: &mut Vec<Self::Delta>,
                out: &mut Vec<Self>,
            ) -> Self {
                $sum(packed, step, last, scratch, out)
            }

            fn progression(n: usize, step: Self, last: Self, out: &mut Vec<Self>) -> Self {
                let mut value = last;
                if step == 0 {
                    out.resize(out.len() + n, value);
                    return value;
                }
                out.extend((0..n).map(|_| {
                    value = value.wrapping_add(step);
                    value
                }));
                value
            }

            fn differences(
                isa: Isa,
                values: &[Self],
                out: &mut [$delta; BLOCK],
            ) -> Differences<Self> {
                $differences(isa, values, out)
            }

            fn raise(isa: Isa, deltas: &mut [$delta], from: Self, to: Self) -> u8 {
                $raise(isa, deltas, from.wrapping_sub(to).cast_unsigned())
            }

            fn pack(isa: Isa, deltas: &[$delta], width: u32, out: &mut Vec<u8>) {
                $pack(isa, deltas, width, out);
            }
        }
    };
}
int!(i32, u32, 33, sum_packed_i32, differences_i32_with, raise_u32_with, pack_u32_with);
int!(i64, u64, 64, sum_packed_i64, differences_i64_with, raise_u64_with, pack_u64_with);
