//! Bars show the uses of the bytes of a file.

use serde::Serialize;

use crate::failure::Result;
use crate::layout::{BytesUse, Detail, FileLayout, pieces};

/// The bytes of each part that occurs, the most first.
#[derive(Serialize)]
pub(crate) struct PartSizes(pub(crate) Vec<PartSize>);

#[derive(Serialize)]
pub(crate) struct PartSize {
    #[serde(rename = "name", serialize_with = "crate::layout::by_name")]
    pub(crate) part: BytesUse,
    pub(crate) bytes: u64,
}

impl PartSizes {
    /// Reads the headers of all pages.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn new(layout: &FileLayout) -> Result<Self> {
        let mut sums = BytesUse::ALL.map(|part| PartSize { part, bytes: 0 });
        let walked = pieces(&layout.inspector, Detail::Pages, |piece| {
            if let Some(sum) = sums.iter_mut().find(|sum| sum.part == piece.part) {
                sum.bytes = sum.bytes.saturating_add(piece.bytes);
            }
        });
        walked.map_err(|e| e.at_file(layout.path.as_str()))?;
        let mut sums: Vec<PartSize> = sums.into_iter().filter(|sum| sum.bytes > 0).collect();
        sums.sort_by_key(|sum| std::cmp::Reverse(sum.bytes));
        Ok(Self(sums))
    }
}
