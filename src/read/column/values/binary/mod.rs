//! Byte strings: every encoding says where they lie ([`Span`](crate::encoding::Span)s), every
//! layout takes them from there.
//!
//! Text is checked in bulk: a dictionary once, other pages by the block.

mod layout;
mod find;
mod sparse;
mod text;
mod offsets;
mod views;
mod reader;

pub(super) use self::find::SpanDecoder;
pub(in crate::read::column) use self::offsets::Offsets;
pub(super) use self::reader::BinaryReader;
