//! [`ReopenedFile`]: a local file that is opened for each read, so that reads may be from many
//! files.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;

use super::source::Source;
use crate::error::{Error, Result};

/// A local file that is not kept open: a process may have few files open, and a dataset many.
///
/// A file that was replaced or changed since is refused, as far as its length and modification time
/// reveal it.
#[derive(Debug)]
pub(crate) struct ReopenedFile {
    path: PathBuf,
    /// The folder that it must lie in, whatever links there are by now: without any itself.
    base: Option<PathBuf>,
    len: u64,
    modified: Option<SystemTime>,
}

impl ReopenedFile {
    /// The file at `path`, as it is now.
    ///
    /// # Errors
    /// `Io` if it cannot be opened.
    pub(crate) fn new(path: &Path) -> Result<Self> {
        Self::opened(path, None)
    }

    /// The file at `path`, which lies below `base`: both without links.
    ///
    /// # Errors
    /// As [`ReopenedFile::new`].
    pub(crate) fn within(path: &Path, base: &Path) -> Result<Self> {
        Self::opened(path, Some(base.to_path_buf()))
    }

    fn opened(path: &Path, base: Option<PathBuf>) -> Result<Self> {
        let (len, modified) = stamp(&open(path)?)?;
        Ok(Self { path: path.to_path_buf(), base, len, modified })
    }

    fn reopen(&self) -> Result<File> {
        if let Some(base) = &self.base {
            let real = self.path.canonicalize();
            let real = real.map_err(|e| Error::io("the file cannot be opened", e))?;
            if !real.starts_with(base) {
                let why =
                    "a link that leads out of the base folder has taken the place of the file";
                return Err(Error::unsupported("column chunks outside of the base folder", why));
            }
        }
        let file = open(&self.path)?;
        if stamp(&file)? != (self.len, self.modified) {
            let advice = std::io::Error::other("open it again");
            return Err(Error::io("the file was changed since it was opened", advice));
        }
        Ok(file)
    }
}

fn open(path: &Path) -> Result<File> {
    let failed = |e| Error::io("the file cannot be opened", e);
    // Opening a pipe would wait for a writer, and a device may do anything.
    if !path.metadata().map_err(failed)?.is_file() {
        return Err(failed(std::io::Error::other("it is a folder, a pipe or a device")));
    }
    File::open(path).map_err(failed)
}

/// The length and the modification time of a file, which reveal that it changed.
fn stamp(file: &File) -> Result<(u64, Option<SystemTime>)> {
    let metadata = file.metadata().map_err(|e| Error::io("the length of the file", e))?;
    Ok((metadata.len(), metadata.modified().ok()))
}

impl Source for ReopenedFile {
    fn len(&self) -> Result<u64> {
        Ok(self.len)
    }

    fn is_local(&self) -> bool {
        true
    }

    fn keep_open(&self) -> Result<Option<Arc<dyn Source>>> {
        Ok(Some(Arc::new(self.reopen()?)))
    }

    fn read_cached(&self, ranges: &[Range<u64>], out: &mut Vec<u8>) -> bool {
        self.reopen().is_ok_and(|file| file.read_cached(ranges, out))
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        Source::read(&self.reopen()?, range)
    }

    fn read_into(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        self.reopen()?.read_into(range, out)
    }
}
