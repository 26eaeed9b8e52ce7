//! The scalar definition, compiled for AVX2 and for AVX-512.

use super::{BLOCK, scalar};

macro_rules! twin {
    ($name:ident, $value:ty, $features:literal, $scalar:ident) => {
        /// Packs whole blocks.
        ///
        /// # Safety
        /// The machine must have the features.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn $name(blocks: &[[$value; BLOCK]], width: u32, out: &mut [u8]) {
            scalar::$scalar(blocks, width, out);
        }
    };
}
twin!(blocks_u32_avx2, u32, "avx2,bmi2", blocks_u32);
twin!(blocks_u64_avx2, u64, "avx2,bmi2", blocks_u64);
twin!(blocks_u32_avx512, u32, "avx2,bmi2,avx512f,avx512bw,avx512vl", blocks_u32);
twin!(blocks_u64_avx512, u64, "avx2,bmi2,avx512f,avx512bw,avx512vl", blocks_u64);
