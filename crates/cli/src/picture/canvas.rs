//! The parts that a picture is drawn of, and its measures.

use crate::args::{ColorBy, Global};
use crate::layout::{FileLayout, Grid, GridSize, Overlay, Strip};

/// A map and a strip of a file.
pub(crate) struct MapPicture<'a> {
    pub(crate) layout: &'a FileLayout,
    pub(crate) grid: &'a Grid,
    pub(crate) strip: &'a Strip,
    pub(crate) overlay: Option<&'a Overlay>,
    pub(crate) color_by: ColorBy,
    pub(crate) global: &'a Global,
}

/// Cells that a picture has room for.
pub(crate) const GRID: GridSize = GridSize { columns: 150, rows: 64, cells: 4000 };

/// Lines and bins of a strip: bins are two units wide.
pub(crate) const STRIP_LINES: usize = 12;
pub(crate) const STRIP_WIDTH: usize = 430;

/// Width of a picture, in its units.
pub(super) const WIDTH: f64 = 960.0;

/// Where the picture begins, after the labels on the left.
pub(super) const LEFT: f64 = 96.0;
