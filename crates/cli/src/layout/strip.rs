//! [`Strip`]: the bytes of a file in their order, in bins of equal length.
//!
//! A bin shows what has most of its bytes. What is small and says much weighs more than its bytes:
//! the footer, gaps, indexes and bloom filters must not vanish beside pages.

use std::sync::Arc;

use serde::Serialize;

use super::file::FileLayout;
use super::parts::{BytesUse, Detail, Piece, pieces};
use crate::failure::Result;

/// The file, folded into lines of equal length.
pub(crate) struct Strip {
    pub(crate) lines: usize,
    /// Bins on a line.
    pub(crate) width: usize,
    pub(crate) line_bytes: u64,
    /// The contents of the bins, in their order.
    pub(crate) pieces: Vec<StripPiece>,
}

/// The contents of bins next to each other.
pub(crate) struct StripPiece {
    pub(crate) bins: std::ops::Range<usize>,
    pub(crate) region: Region,
    /// How many regions begin in them.
    pub(crate) regions: usize,
}

/// A part of the file.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Region {
    pub(crate) offset: u64,
    pub(crate) bytes: u64,
    #[serde(serialize_with = "by_name")]
    pub(crate) part: BytesUse,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) row_group: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) column: Option<Arc<str>>,
}

pub(crate) fn by_name<S: serde::Serializer>(part: &BytesUse, to: S) -> Result<S::Ok, S::Error> {
    part.name().serialize(to)
}

impl Region {
    pub(crate) fn new(offset: u64, piece: &Piece<'_>) -> Self {
        Self {
            offset,
            bytes: piece.bytes,
            part: piece.part,
            row_group: piece.row_group,
            column: piece.column.cloned(),
        }
    }
}

#[derive(Clone, Default)]
struct Bin {
    shown: Option<Region>,
    weight: u128,
    regions: usize,
}

/// Bytes of a line of a small file.
const MIN_LINE: u64 = 4096;

impl Strip {
    /// At most `max_lines` of `width` bins.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn new(layout: &FileLayout, max_lines: usize, width: usize) -> Result<Self> {
        let len = layout.file_bytes().max(1);
        let lines = usize::try_from(len.div_ceil(MIN_LINE)).unwrap_or(usize::MAX).min(max_lines);
        let lines = lines.max(1);
        let line_bytes = len.div_ceil(lines as u64);
        let mut bins = vec![Bin::default(); lines * width];
        let all = u128::from(line_bytes) * lines as u128;
        let count = bins.len() as u128;
        // Bins of a file that is smaller than they are many are parts of a byte.
        let bin_of = |byte: u64| {
            let bin = u128::from(byte) * count / all;
            usize::try_from(bin).unwrap_or(usize::MAX)
        };
        let mut at = 0u64;
        let walked = pieces(&layout.inspector, Detail::Chunks, |piece| {
            let region = Region::new(at, piece);
            let end = at.saturating_add(piece.bytes);
            let (first, last) = (bin_of(at), bin_of(end.saturating_sub(1)));
            for (i, bin) in bins.iter_mut().enumerate().take(last + 1).skip(first) {
                // Bytes of the region in the bin, in units of a bin's number.
                let start = (u128::from(at) * count).max(i as u128 * all);
                let stop = (u128::from(end) * count).min((i as u128 + 1) * all);
                let weight = stop.saturating_sub(start).saturating_mul(importance(region.part));
                bin.regions += usize::from(i == first);
                if weight > bin.weight {
                    bin.weight = weight;
                    bin.shown = Some(region.clone());
                }
            }
            at = end;
        });
        walked.map_err(|e| e.at_file(layout.path.as_str()))?;
        Ok(Self { lines, width, line_bytes, pieces: joined(bins) })
    }
}

/// How much more a byte counts than one of a page.
fn importance(part: BytesUse) -> u128 {
    match part {
        BytesUse::Footer => 1 << 40,
        BytesUse::Gaps | BytesUse::Unparsed => 16,
        BytesUse::BloomFilters | BytesUse::ColumnIndexes | BytesUse::OffsetIndexes => 4,
        _ => 1,
    }
}

/// Bins of many small regions that become one piece.
const MAX_JOINED: usize = 8;

/// Joins bins next to each other that show the same region, or many of one kind.
fn joined(bins: Vec<Bin>) -> Vec<StripPiece> {
    let mut pieces: Vec<StripPiece> = Vec::new();
    // The region of the last bin, which a piece of several begins before.
    let mut before = None;
    for (i, bin) in bins.into_iter().enumerate() {
        let Some(region) = bin.shown else { continue };
        let offset = region.offset;
        let joins = |last: &StripPiece| {
            let is_many = bin.regions > 1 && last.regions > last.bins.len();
            let is_alike = last.region.part == region.part && last.bins.len() < MAX_JOINED;
            last.bins.end == i && (before == Some(offset) || is_many && is_alike)
        };
        match pieces.last_mut().filter(|last| joins(last)) {
            Some(last) => {
                last.bins.end = i + 1;
                last.regions += bin.regions;
            }
            None => pieces.push(StripPiece { bins: i..i + 1, region, regions: bin.regions }),
        }
        before = Some(offset);
    }
    pieces
}
