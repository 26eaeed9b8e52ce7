//! [`Rewrite::split`]: one file as several.

use std::ops::Range;

use super::files::Rewrite;
use super::inputs::Inputs;
use crate::error::{Error, Result};
use crate::read::chunk_range;

/// Where a file is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SplitBy {
    /// Each part has this many rows, the last one those that are left.
    Rows(u64),
    /// Each part has about as many bytes: the row groups that fit. One that is larger by itself is
    /// cut.
    Bytes(u64),
    /// This many parts of about as many rows: of whole row groups, if there are as many.
    Files(u64),
}

/// A row group: its rows among those that are chosen, and its bytes.
struct Extent {
    rows: Range<u64>,
    bytes: u64,
}

impl Rewrite {
    /// Divides the rows of the one reader into parts. Each is a rewrite with the settings so far.
    /// Row groups that lie in a part as a whole are copied; those that are cut are decoded and
    /// encoded, as the plan of each part says.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::Reader;
    /// use marquetry::io::WriteSink;
    /// use marquetry::rewrite::{Rewrite, SplitBy};
    ///
    /// let trips = Reader::open("testdata/trips.parquet")?;
    /// let parts = Rewrite::new([trips]).split(SplitBy::Rows(400))?;
    /// let rows = parts.iter().map(|part| Ok(part.run(WriteSink(Vec::new()))?.rows));
    /// assert_eq!(rows.collect::<marquetry::Result<Vec<_>>>()?, [400, 400, 200]);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Usage` if there is not one reader, a size is 0, or there would be more than 2^20 parts; as
    /// [`Rewrite::plan`].
    pub fn split(&self, by: SplitBy) -> Result<Vec<Self>> {
        let [reader] = self.readers() else {
            return Err(Error::usage("one file is split at a time"));
        };
        let (SplitBy::Rows(size) | SplitBy::Bytes(size) | SplitBy::Files(size)) = by;
        if size == 0 {
            return Err(Error::usage("a file is split into parts of more than nothing"));
        }
        let extents = extents(&self.inputs()?)?;
        let rows = extents.last().map_or(0, |last| last.rows.end);
        let cuts = match by {
            SplitBy::Rows(size) => evenly(rows, size)?,
            SplitBy::Bytes(size) => by_bytes(&extents, size)?,
            SplitBy::Files(files) if files <= extents.len() as u64 => by_files(&extents, files),
            SplitBy::Files(files) => evenly(rows, rows.div_ceil(files).max(1))?,
        };
        let start = reader.read_options().offset;
        let mut before = 0;
        let parts = cuts.into_iter().map(|cut| {
            let part = before..cut;
            before = cut;
            let reader = reader.clone().offset(start.saturating_add(part.start));
            self.with_readers([reader.limit(part.end - part.start)])
        });
        Ok(parts.collect())
    }
}

/// The row groups that are chosen.
fn extents(inputs: &Inputs<'_>) -> Result<Vec<Extent>> {
    let mut extents = Vec::new();
    let mut rows = 0u64;
    for file in &inputs.files {
        let (footer, file_len) = (file.footer(), file.reader.file_len());
        for part in &file.row_groups {
            let mut bytes = 0u64;
            for leaf in file.leaves.iter().filter_map(|leaf| *leaf) {
                let chunk = footer.column_chunk_ref(part.ordinal, leaf)?;
                let range = chunk_range(footer, file_len, part.ordinal, leaf, &chunk)?;
                bytes = bytes.saturating_add(range.end - range.start);
            }
            let end = rows.saturating_add(part.rows);
            extents.push(Extent { rows: rows..end, bytes });
            rows = end;
        }
    }
    Ok(extents)
}

/// The ends of parts of `size` rows; there is one part at least.
fn evenly(rows: u64, size: u64) -> Result<Vec<u64>> {
    let parts = rows.div_ceil(size).max(1);
    if parts > MAX_PARTS {
        return Err(too_many(parts));
    }
    Ok((1..=parts).map(|part| part.saturating_mul(size).min(rows)).collect())
}

/// The ends of parts of about `size` bytes.
fn by_bytes(extents: &[Extent], size: u64) -> Result<Vec<u64>> {
    let mut cuts: Vec<u64> = Vec::new();
    let mut held = 0u64;
    for extent in extents {
        let start = extent.rows.start;
        if held > 0 && held.saturating_add(extent.bytes) > size {
            cuts.push(start);
            held = 0;
        }
        held = held.saturating_add(extent.bytes);
        let rows = extent.rows.end - start;
        let pieces = extent.bytes.div_ceil(size).clamp(1, rows.max(1));
        if pieces > MAX_PARTS {
            return Err(too_many(pieces));
        }
        let each = rows.div_ceil(pieces).max(1);
        let inner = (1..pieces).map(|piece| start.saturating_add(piece.saturating_mul(each)));
        cuts.extend(inner.filter(|cut| *cut < extent.rows.end));
        // With the last part.
        let parts = cuts.len() as u64 + 1;
        if parts > MAX_PARTS {
            return Err(too_many(parts));
        }
        if pieces > 1 {
            held = extent.bytes / pieces;
        }
    }
    cuts.push(extents.last().map_or(0, |last| last.rows.end));
    cuts.dedup();
    Ok(cuts)
}

/// The ends of as many parts, each a row group at least: those nearest to equal parts.
fn by_files(extents: &[Extent], files: u64) -> Vec<u64> {
    let rows = extents.last().map_or(0, |last| last.rows.end);
    let files = usize::try_from(files).unwrap_or(usize::MAX).min(extents.len());
    let mut cuts = Vec::with_capacity(files);
    let mut next = 0;
    for part in 1..files {
        let wanted = u128::from(rows) * part as u128 / files.max(1) as u128;
        // One row group at least for each part after this one.
        let last = extents.len() - (files - part);
        let end = |at: usize| extents.get(at).map_or(rows, |extent| extent.rows.end);
        while next + 1 < last
            && u128::from(end(next + 1)).abs_diff(wanted) <= u128::from(end(next)).abs_diff(wanted)
        {
            next += 1;
        }
        cuts.push(end(next));
        next += 1;
    }
    cuts.push(rows);
    cuts
}

fn too_many(parts: u64) -> Error {
    Error::usage(format_args!("{parts} parts are more than {MAX_PARTS}"))
}

/// Maximum parts of a file.
const MAX_PARTS: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn parts_of_all_row_groups_count_together() {
        let half = MAX_PARTS / 2;
        let extents = |row_groups: u64| {
            let extent = |at| Extent { rows: at * half..(at + 1) * half, bytes: half };
            (0..row_groups).map(extent).collect::<Vec<_>>()
        };
        assert_eq!(by_bytes(&extents(2), 1).unwrap().len() as u64, MAX_PARTS);
        assert_eq!(by_bytes(&extents(3), 1).unwrap_err().kind(), ErrorKind::Usage);
        // So do whole row groups.
        let one = |at| Extent { rows: at..at + 1, bytes: 1 };
        let many: Vec<Extent> = (0..=MAX_PARTS).map(one).collect();
        assert_eq!(by_bytes(&many, 1).unwrap_err().kind(), ErrorKind::Usage);
        assert_eq!(by_bytes(&many, 2).unwrap().len() as u64, MAX_PARTS / 2 + 1);
    }
}
