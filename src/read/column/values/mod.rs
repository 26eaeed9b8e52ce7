//! Decodes the values of pages into Arrow arrays: one [`ValueReader`] for each kind of array.
//!
//! Values are decoded densely, straight into the buffer that becomes the Arrow buffer. Where there
//! are nulls, they are then spread to their slots in place.

mod reader;
mod sparse;
mod binary;
mod boolean;
mod fixed_bytes;
mod fixed_binary;
mod empty_binary;
mod distinct;
mod indices;
mod dictionary;
mod null;
mod primitive;
mod from_bytes;
mod intervals;
mod converted;
mod ints;
mod run_end;
mod build;

pub(super) use self::binary::Offsets;
pub(super) use self::build::value_reader;
pub(super) use self::reader::{Count, ValueReader};
