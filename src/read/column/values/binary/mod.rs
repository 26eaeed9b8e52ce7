//! Byte strings: every encoding says where they lie ([`ValueSpan`](crate::encoding::ValueSpan)s),
//! and every layout builds its array from the spans.
//!
//! `find` decodes the spans of a page. `offsets` and `views` are the layouts, and `sparse` looks up
//! a few entries of a dictionary. `text` checks UTF-8 in bulk: a dictionary once, other pages block
//! by block.

mod layout;
mod find;
mod text;
mod offsets;
mod views;
mod reader;

pub(super) use self::find::SpanDecoder;
pub(in crate::read::column) use self::offsets::Offsets;
pub(super) use self::reader::BinaryReader;
