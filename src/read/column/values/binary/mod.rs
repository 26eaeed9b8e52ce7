//! Byte strings: every encoding says where they lie ([`Span`](crate::encoding::Span)s), every
//! layout takes them from there.
//!
//! `find` decodes the spans of a page. `offsets` and `views` are the layouts, and `sparse` looks up
//! few entries of a dictionary. Text is checked in bulk (`text`): a dictionary once, other pages by
//! the block.

mod layout;
mod find;
mod text;
mod offsets;
mod views;
mod reader;

pub(super) use self::find::SpanDecoder;
pub(in crate::read::column) use self::offsets::Offsets;
pub(super) use self::reader::BinaryReader;
