//! The scalar definition, compiled for AVX2.

use super::{BLOCK, scalar};

macro_rules! twin {
    ($name:ident, $value:ty, $features:literal) => {
        /// Packs whole blocks.
        ///
        /// # Safety
        /// The machine must have the features.
        #[target_feature(enable = $features)]
        pub(super) unsafe fn $name(blocks: &[[$value; BLOCK]], width: u32, out: &mut [u8]) {
            scalar::$name(blocks, width, out);
        }
    };
}
twin!(blocks_u32, u32, "avx2,bmi2");
twin!(blocks_u64, u64, "avx2,bmi2");
