//! [`Target`] and [`OutFile`]: where an export creates its files. [`Folder`] is a local target;
//! `store` has the one for object stores.

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::future::ready;
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use bytes::Bytes;

use crate::error::{Error, Result};
use crate::io::{PathSink, Sink};
use crate::write::WriteReport;
use crate::writer::{FileEncoder, RowGroupEncoder, Writer};

/// A future of a target; those of a folder are ready at once.
pub(super) type Later<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Where files go. Paths within it have `/` between names.
pub(super) trait Target: fmt::Debug + Send + Sync {
    /// Whether its futures never wait.
    fn is_local(&self) -> bool;

    /// Maximum files that may be open at a time in this memory.
    fn max_open(&self, memory: u64) -> usize;

    /// Reserves a part of the memory of a file for bytes that are being uploaded; returns the rest,
    /// for the rows.
    fn take_share(&mut self, memory: u64) -> u64;

    /// The whole path of a file.
    fn path(&self, file: &str) -> PathBuf;

    /// Whether the path exists already.
    fn is_taken<'a>(&'a self, file: &'a str) -> Later<'a, Result<bool>>;

    /// Begins a file.
    fn begin(
        &self,
        file: &str,
        encoder: RowGroupEncoder,
        made: &CreatedFiles,
    ) -> Result<Box<dyn OutFile>>;

    /// Writes a whole file.
    fn put<'a>(&'a self, file: &'a str, bytes: Bytes) -> Later<'a, Result<()>>;

    /// Removes all that was made. What fails is left.
    fn remove<'a>(&'a self, made: &'a CreatedFiles) -> Later<'a, ()>;
}

/// A file that is being written.
pub(super) trait OutFile: Send {
    /// The encoder of its rows; none after an error.
    fn file(&self) -> Option<&FileEncoder>;

    fn file_mut(&mut self) -> Option<&mut FileEncoder>;

    fn bytes_written(&self) -> u64 {
        self.file().map_or(0, FileEncoder::bytes_written)
    }

    fn estimated_bytes(&self) -> u64 {
        self.file().map_or(0, FileEncoder::estimated_bytes)
    }

    fn write<'a>(&'a mut self, batch: &'a RecordBatch) -> Later<'a, Result<()>>;

    fn flush(&mut self) -> Later<'_, Result<()>>;

    fn finish(self: Box<Self>) -> Later<'static, Result<WriteReport>>;

    /// Aborts: nothing of the file stays.
    fn abort(self: Box<Self>) -> Later<'static, ()>;
}

/// The files and folders that an export has created, which are removed if it fails.
#[derive(Default)]
pub(super) struct CreatedFiles {
    /// Files that are there, or may be.
    pub(super) files: Mutex<Vec<String>>,
    folders: Mutex<HashSet<PathBuf>>,
}

/// A panic of another thread leaves nothing half done here.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A local folder.
#[derive(Debug)]
pub(super) struct Folder(pub(super) PathBuf);

impl Target for Folder {
    fn is_local(&self) -> bool {
        true
    }

    fn max_open(&self, _: u64) -> usize {
        usize::MAX
    }

    fn take_share(&mut self, memory: u64) -> u64 {
        memory
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.join(file)
    }

    fn is_taken<'a>(&'a self, file: &'a str) -> Later<'a, Result<bool>> {
        Box::pin(ready(Ok(self.0.join(file).symlink_metadata().is_ok())))
    }

    fn begin(
        &self,
        file: &str,
        encoder: RowGroupEncoder,
        made: &CreatedFiles,
    ) -> Result<Box<dyn OutFile>> {
        let path = self.0.join(file);
        if let Some(parent) = path.parent().filter(|parent| *parent != self.0) {
            make_folders(&self.0, parent, made)?;
        }
        Ok(Box::new(Writer::over(PathSink::create_new(path)?, encoder)))
    }

    fn put<'a>(&'a self, file: &'a str, bytes: Bytes) -> Later<'a, Result<()>> {
        Box::pin(async move {
            let mut sink = PathSink::create_new(self.0.join(file))?;
            sink.write(bytes)?;
            sink.finish()
        })
    }

    fn remove<'a>(&'a self, made: &'a CreatedFiles) -> Later<'a, ()> {
        for file in std::mem::take(&mut *lock(&made.files)) {
            let _ = fs::remove_file(self.0.join(file));
        }
        let mut folders: Vec<PathBuf> = lock(&made.folders).drain().collect();
        // Inner folders first. A folder that is not empty stays.
        folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
        for folder in folders {
            let _ = fs::remove_dir(folder);
        }
        Box::pin(ready(()))
    }
}

/// Makes the folders from `base` to `folder`, and remembers those that were not there.
fn make_folders(base: &Path, folder: &Path, made: &CreatedFiles) -> Result<()> {
    let mut known = lock(&made.folders);
    let missing = folder.ancestors().take_while(|above| *above != base);
    let missing: Vec<&Path> = missing.take_while(|above| !known.contains(*above)).collect();
    for above in missing.into_iter().rev() {
        match fs::create_dir(above) {
            Ok(()) => {
                known.insert(above.to_path_buf());
            }
            Err(_) if above.is_dir() => {}
            Err(e) => {
                return Err(Error::io("making the folder", e).at_file(above.display().to_string()));
            }
        }
    }
    Ok(())
}

/// Written at once, by the thread that calls.
impl OutFile for Writer<PathSink> {
    fn file(&self) -> Option<&FileEncoder> {
        Some(self.file())
    }

    fn file_mut(&mut self) -> Option<&mut FileEncoder> {
        Some(self.file_mut())
    }

    fn write<'a>(&'a mut self, batch: &'a RecordBatch) -> Later<'a, Result<()>> {
        Box::pin(ready(self.write(batch)))
    }

    fn flush(&mut self) -> Later<'_, Result<()>> {
        Box::pin(ready(self.flush()))
    }

    fn finish(self: Box<Self>) -> Later<'static, Result<WriteReport>> {
        Box::pin(ready((*self).finish()))
    }

    fn abort(self: Box<Self>) -> Later<'static, ()> {
        Box::pin(ready(()))
    }
}
