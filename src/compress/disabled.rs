//! Stands in for the codecs whose cargo feature is off: constructing one is an error that names the
//! feature.

macro_rules! disabled {
    ($($module:ident, $feature:literal, $name:literal;)*) => {$(
        #[allow(dead_code, reason = "used where the feature is off")]
        pub(super) mod $module {
            use crate::error::{Error, Result};

            /// Cannot be made.
            pub(in crate::compress) enum Decoder {}

            impl Decoder {
                pub(in crate::compress) fn new() -> Result<Self> {
                    Err(Error::feature_disabled($feature, concat!("the codec ", $name)))
                }

                pub(in crate::compress) fn decompress(&mut self, _: &[u8], _: usize, _: &mut Vec<u8>) -> Result<()> {
                    match *self {}
                }

                pub(in crate::compress) fn working_bytes(&self, _: &[u8]) -> usize {
                    match *self {}
                }

                pub(in crate::compress) fn decompress_start(&mut self, _: &[u8], _: usize, _: usize, _: &mut Vec<u8>) -> bool {
                    match *self {}
                }
            }

            /// Cannot be made.
            pub(in crate::compress) enum Encoder {}

            impl Encoder {
                pub(in crate::compress) fn new(_: i32) -> Result<Self> {
                    Err(Error::feature_disabled($feature, concat!("the codec ", $name)))
                }

                pub(in crate::compress) fn compress(&mut self, _: &[u8], _: &mut Vec<u8>) -> Result<()> {
                    match *self {}
                }

                pub(in crate::compress) fn compress_apart(&mut self, _: &[u8], _: &[usize], _: &mut Vec<u8>) -> Result<()> {
                    match *self {}
                }
            }
        }
    )*};
}

disabled! {
    brotli, "brotli", "BROTLI";
    gzip_fast, "gzip", "GZIP";
    lz4_hadoop, "lz4", "LZ4";
    lz4_raw, "lz4", "LZ4_RAW";
    lzo, "lzo", "LZO";
    snappy, "snappy", "SNAPPY";
    zstd, "zstd", "ZSTD";
}
