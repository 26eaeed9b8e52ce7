//! [`TempFolder`]: a folder for temporary files, which leave nothing behind.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::write::{SpillFile, SpillStore};

/// A folder for temporary files of a writer, for
/// [`WriteOptions::with_spill`](crate::WriteOptions::with_spill).
///
/// Files there are readable by their owner alone, and named `.marq-spill.PID-N.tmp`. The name is
/// removed as soon as the file is open, where the system allows that, so that nothing is left of it
/// after the process ends, however that does; elsewhere it is removed with the writer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TempFolder(PathBuf);

impl TempFolder {
    /// The folder at `path`, which must exist when a file is made.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The folder of the system ([`std::env::temp_dir`]), which may be small, or in memory.
    #[cfg(not(target_family = "wasm"))]
    pub fn of_system() -> Self {
        Self(std::env::temp_dir())
    }
}

impl SpillStore for TempFolder {
    fn create(&self) -> Result<Box<dyn SpillFile>> {
        let file = TemporaryFile::create(&self.0, "spill", "a temporary file of the writer")?;
        Ok(Box::new(file))
    }
}

/// A file that goes when it is dropped, or has gone already.
pub(crate) struct TemporaryFile {
    pub(crate) file: File,
    /// Its name, where it still has one.
    path: Option<PathBuf>,
    folder: PathBuf,
    what: &'static str,
}

impl TemporaryFile {
    /// Makes a file with `kind` in its name; `what` it is for stands in errors.
    ///
    /// # Errors
    /// `Io` if there is no file to be created in the folder.
    pub(crate) fn create(folder: &Path, kind: &str, what: &'static str) -> Result<Self> {
        let failed = |e| Error::io(what, e).at_file(folder.display().to_string());
        let mut options = File::options();
        options.read(true).write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut attempt = 0u32;
        loop {
            let path = folder.join(format!(".marq-{kind}.{}-{attempt}.tmp", std::process::id()));
            match options.open(&path) {
                Ok(file) => {
                    // The file stays until it is closed.
                    let is_gone = std::fs::remove_file(&path).is_ok();
                    let path = (!is_gone).then_some(path);
                    return Ok(Self { file, path, folder: folder.to_owned(), what });
                }
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && attempt < MAX_ATTEMPTS => {
                    attempt += 1;
                }
                Err(e) => return Err(failed(e)),
            }
        }
    }

    pub(crate) fn failed(&self, e: io::Error) -> Error {
        Error::io(self.what, e).at_file(self.folder.display().to_string())
    }
}

impl SpillFile for TemporaryFile {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let end = self.file.seek(SeekFrom::End(0));
        end.and_then(|_| self.file.write_all(bytes)).map_err(|e| self.failed(e))
    }

    fn read_at(&mut self, offset: u64, out: &mut [u8]) -> Result<()> {
        let start = self.file.seek(SeekFrom::Start(offset));
        start.and_then(|_| self.file.read_exact(out)).map_err(|e| self.failed(e))
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            let _ = std::fs::remove_file(path);
        }
    }
}

/// Names that are tried, because others may have them.
const MAX_ATTEMPTS: u32 = 10_000;
