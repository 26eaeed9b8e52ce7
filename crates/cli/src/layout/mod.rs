//! The layout of a file: what `size`, `map` and `report` are made of.
//!
//! It comes from the footer, the page indexes and the headers of pages; no page is decoded. A file
//! whose footer cannot be read has a layout too, in which most is unparsed.

mod chunk;
mod file;
mod parts;
mod strip;
mod overlay;
mod timeline;
mod grid;

pub(crate) use file::FileLayout;
pub(crate) use grid::{Grid, GridCell, GridColumn, GridRow, GridSize};
pub(crate) use overlay::Overlay;
pub(crate) use parts::{BytesUse, Detail, Piece, pieces};
pub(crate) use strip::{Region, Strip, StripPiece, by_name};
pub(crate) use timeline::{PageBox, Timeline, timelines};
