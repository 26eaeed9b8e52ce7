//! [`FillRequest`]: the file that is filled in, and what is asked for.

use super::parts::FillPart;
use crate::reader::Reader;
use crate::write::column_options::BloomOptions;
use crate::write::sorting::SortColumn;

/// A request to fill in a file.
#[derive(Debug, Clone)]
pub(super) struct FillRequest {
    pub(super) reader: Reader,
    pub(super) parts: Vec<FillPart>,
    pub(super) blooms: Vec<(String, BloomOptions)>,
    pub(super) sorted: Vec<SortColumn>,
    /// Whether levels and values are decoded, and not only page headers read.
    pub(super) decodes_values: bool,
    /// Maximum bytes of a bound.
    pub(super) bound_bytes: usize,
}
