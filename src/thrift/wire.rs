//! The types of the wire format, which are the low nibble of a field header.

/// Ends a struct.
pub(crate) const STOP: u8 = 0;
/// As a field: true, without payload. In a list: one byte.
pub(crate) const TRUE: u8 = 1;
/// As a field: false, without payload. In a list: one byte.
pub(crate) const FALSE: u8 = 2;
/// One byte.
pub(crate) const I8: u8 = 3;
/// Zigzag, at most 3 bytes.
pub(crate) const I16: u8 = 4;
/// Zigzag, at most 5 bytes.
pub(crate) const I32: u8 = 5;
/// Zigzag, at most 10 bytes.
pub(crate) const I64: u8 = 6;
/// 8 bytes, little-endian.
pub(crate) const DOUBLE: u8 = 7;
/// A length and as many bytes; also for text.
pub(crate) const BINARY: u8 = 8;
/// A header and elements.
pub(crate) const LIST: u8 = 9;
/// As a list.
pub(crate) const SET: u8 = 10;
/// A header and pairs.
pub(crate) const MAP: u8 = 11;
/// Fields until the stop; also for unions.
pub(crate) const STRUCT: u8 = 12;
/// 16 bytes.
pub(crate) const UUID: u8 = 13;
