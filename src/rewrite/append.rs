//! [`Rewrite::append_to`]: a file becomes longer, and what it holds stays where it is.
//!
//! ```text
//! old bytes, without the footer | new pages | their bloom filters and indexes | footer
//! ```
//!
//! The old bytes go into the new file by the file system: as references to the same blocks where it
//! has these (Btrfs, XFS), else as a copy that does not leave the kernel. The old file stays until
//! the new one is whole, so that a process that is killed leaves the one or the other.

use std::fs::File;
use std::path::Path;

use super::files::{Rewrite, Rewritten};
use super::inputs::Inputs;
use super::plan::ChunkMethod;
use crate::error::{Error, Result};
use crate::io::PathSink;

impl Rewrite {
    /// Bytes of the first file that [`Rewrite::append_to`] leaves where they are; `None` if its
    /// column chunks cannot all stay: something of them changes, the file is encrypted, or some of
    /// its row groups or rows are not wanted. The new file is then written from the start.
    ///
    /// # Errors
    /// As [`Rewrite::plan`].
    pub fn kept_bytes(&self) -> Result<Option<u64>> {
        let plan = self.plan()?;
        let inputs = self.inputs()?;
        let Some(first) = inputs.files.first() else { return Ok(None) };
        let of_first = || plan.row_groups.iter().filter(|row_group| row_group.file == 0);
        let chunks = of_first().flat_map(|row_group| &row_group.chunks);
        let in_order = of_first().enumerate().all(|(at, row_group)| row_group.row_group == at);
        let is_whole = !plan.regroups
            && in_order
            && of_first().count() == first.reader.metadata().row_groups()
            && first.leaves.len() == first.footer().schema().leaves_len()
            && first.leaves.iter().enumerate().all(|(at, leaf)| *leaf == Some(at));
        let mut methods = chunks.map(|chunk| chunk.method);
        if !is_whole || self.is_encrypting() || !methods.all(|of| of == ChunkMethod::Bytes) {
            return Ok(None);
        }
        Ok(footer_start(&inputs))
    }

    /// Writes the new file over the first one, which lies at `path`: its bytes are not read if the
    /// file system copies them, and its column chunks, indexes and bloom filters stay where they
    /// are. The rest is as [`Rewrite::run`] does it.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::Reader;
    /// use marquetry::rewrite::Rewrite;
    ///
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let path = folder.path().join("all.parquet");
    /// # std::fs::copy("testdata/trips.parquet", &path).unwrap();
    /// let (all, today) = (Reader::open(&path)?, Reader::open("testdata/trips.parquet")?);
    /// let done = Rewrite::new([all, today]).append_to(&path)?;
    /// assert_eq!(done.rows, 2_000);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// As [`Rewrite::run`]; `Usage` if the file at `path` is not the first one, as far as its
    /// length tells.
    pub fn append_to(&self, path: impl AsRef<Path>) -> Result<Rewritten> {
        let path = path.as_ref();
        self.append_over(path, PathSink::create(path)?)
    }

    /// Like [`Rewrite::append_to`], with a sink that was made for the path.
    ///
    /// # Errors
    /// As [`Rewrite::append_to`].
    pub fn append_over(&self, path: impl AsRef<Path>, mut sink: PathSink) -> Result<Rewritten> {
        let path = path.as_ref();
        let Some(kept) = self.kept_bytes()? else { return self.run(sink) };
        let failed = |e| Error::io("reading", e).at_file(path.display().to_string());
        let old = File::open(path).map_err(failed)?;
        let found = old.metadata().map_err(failed)?.len();
        let expected = self.readers().first().map(crate::reader::Reader::file_len);
        if expected != Some(found) {
            return Err(Error::usage("the file to append to is not the one that was opened"));
        }
        sink.begin_with(&old, kept)?;
        let done = self.splice_after(sink, kept)?;
        Ok(Rewritten { rows: done.rows, row_groups: done.row_groups, bytes: done.bytes })
    }
}

/// Where the footer of the first file begins, if nothing of it is encrypted.
fn footer_start(inputs: &Inputs<'_>) -> Option<u64> {
    let first = inputs.files.first()?;
    let metadata = first.reader.metadata();
    if metadata.is_encrypted() || metadata.index().head().encryption_algorithm.is_some() {
        return None;
    }
    let stored = metadata.footer().stored().len() as u64;
    first.reader.file_len().checked_sub(TAIL_LEN)?.checked_sub(stored)
}

/// Bytes of the length of the footer and the magic number.
const TAIL_LEN: u64 = 8;
