//! [`Target`] and [`OutFile`]: where the files of an export go, a local folder or an object store.

use std::collections::HashSet;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use arrow_array::RecordBatch;
use bytes::Bytes;

use crate::error::{Error, Result};
use crate::io::{PathSink, Sink};
use crate::write::WriteReport;
use crate::writer::{RowGroupEncoder, Writer};

#[cfg(feature = "object_store")]
use crate::bytes::saturated;
#[cfg(feature = "object_store")]
use crate::io::{AsyncSink, StoreSink};
#[cfg(feature = "object_store")]
use crate::writer::AsyncWriter;
#[cfg(feature = "object_store")]
use object_store::{ObjectStore, ObjectStoreExt, path::Path as ObjectPath};

/// Where files go. Paths within it have `/` between names.
pub(super) enum Target {
    Folder(PathBuf),
    #[cfg(feature = "object_store")]
    Store {
        store: std::sync::Arc<dyn ObjectStore>,
        prefix: ObjectPath,
        /// The memory of an upload.
        upload: u64,
    },
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => folder.fmt(f),
            #[cfg(feature = "object_store")]
            Self::Store { store, prefix, .. } => write!(f, "{store}: {prefix}"),
        }
    }
}

/// What an export has made: removed when it fails.
#[derive(Default)]
pub(super) struct Made {
    /// Files that are there, or may be.
    pub(super) files: Mutex<Vec<String>>,
    folders: Mutex<HashSet<PathBuf>>,
}

/// A panic of another thread leaves nothing half done here.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Target {
    /// Maximum files that may be open at a time in so much memory.
    #[cfg_attr(
        not(feature = "object_store"),
        expect(unused_variables, reason = "those of a folder hold none themselves")
    )]
    pub(super) fn max_open(&self, memory: u64) -> usize {
        match self {
            Self::Folder(_) => usize::MAX,
            // As much for rows as for the upload.
            #[cfg(feature = "object_store")]
            Self::Store { .. } => saturated(memory / (2 * StoreSink::MIN_MEMORY)).max(1),
        }
    }

    /// Takes a part of the memory of a file for what is on its way; gives what is left for the
    /// rows.
    pub(super) fn take_share(&mut self, memory: u64) -> u64 {
        match self {
            Self::Folder(_) => memory,
            #[cfg(feature = "object_store")]
            Self::Store { upload, .. } => {
                *upload = (memory / UPLOAD_SHARE).max(StoreSink::MIN_MEMORY.min(memory / 2));
                memory - *upload
            }
        }
    }

    /// The whole path of a file.
    pub(super) fn path(&self, file: &str) -> PathBuf {
        match self {
            Self::Folder(folder) => folder.join(file),
            #[cfg(feature = "object_store")]
            Self::Store { prefix, .. } => PathBuf::from(object(prefix, file).to_string()),
        }
    }

    /// Whether something stands at a path already.
    pub(super) async fn is_taken(&self, file: &str) -> Result<bool> {
        match self {
            Self::Folder(folder) => Ok(folder.join(file).symlink_metadata().is_ok()),
            #[cfg(feature = "object_store")]
            Self::Store { store, prefix, .. } => match store.head(&object(prefix, file)).await {
                Ok(_) => Ok(true),
                Err(object_store::Error::NotFound { .. }) => Ok(false),
                Err(e) => Err(Error::io("looking for an object of the name", e.into())),
            },
        }
    }

    /// Begins a file.
    pub(super) fn begin(
        &self,
        file: &str,
        encoder: RowGroupEncoder,
        made: &Made,
    ) -> Result<OutFile> {
        match self {
            Self::Folder(folder) => {
                let path = folder.join(file);
                if let Some(parent) = path.parent().filter(|parent| *parent != folder) {
                    make_folders(folder, parent, made)?;
                }
                Ok(OutFile::Local(Box::new(Writer::over(PathSink::create(path)?, encoder))))
            }
            #[cfg(feature = "object_store")]
            Self::Store { store, prefix, upload } => {
                let sink = StoreSink::new(store.clone(), object(prefix, file)).with_memory(*upload);
                Ok(OutFile::Store(Box::new(AsyncWriter::over(sink, encoder))))
            }
        }
    }

    /// Writes a whole file.
    pub(super) async fn put(&self, file: &str, bytes: Bytes) -> Result<()> {
        match self {
            Self::Folder(folder) => {
                let mut sink = PathSink::create(folder.join(file))?;
                sink.write(bytes)?;
                sink.finish()
            }
            #[cfg(feature = "object_store")]
            Self::Store { store, prefix, .. } => {
                let mut sink = StoreSink::new(store.clone(), object(prefix, file));
                sink.write(vec![bytes]).await?;
                sink.finish().await
            }
        }
    }

    /// Removes all that was made. What fails is left.
    pub(super) async fn remove(&self, made: &Made) {
        let files = std::mem::take(&mut *lock(&made.files));
        match self {
            Self::Folder(folder) => {
                for file in files {
                    let _ = fs::remove_file(folder.join(file));
                }
                let mut folders: Vec<PathBuf> = lock(&made.folders).drain().collect();
                // Those within others first. One that is not empty stays.
                folders.sort_by_key(|folder| std::cmp::Reverse(folder.components().count()));
                for folder in folders {
                    let _ = fs::remove_dir(folder);
                }
            }
            #[cfg(feature = "object_store")]
            Self::Store { store, prefix, .. } => {
                for file in files {
                    let _ = store.delete(&object(prefix, &file)).await;
                }
            }
        }
    }
}

/// Uploads take one part in so many of the memory, or as much as two parts take.
#[cfg(feature = "object_store")]
const UPLOAD_SHARE: u64 = 3;

/// The object of a file. Names of folders are escaped already, as the store wants them or not.
#[cfg(feature = "object_store")]
fn object(prefix: &ObjectPath, file: &str) -> ObjectPath {
    let whole = match prefix.as_ref() {
        "" => file.to_owned(),
        prefix => format!("{prefix}/{file}"),
    };
    ObjectPath::parse(&whole).unwrap_or_else(|_| ObjectPath::from(whole))
}

/// Makes the folders from `base` to `folder`, and remembers those that were not there.
fn make_folders(base: &Path, folder: &Path, made: &Made) -> Result<()> {
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

/// A file that is being written. Local ones are written at once: their futures never wait.
pub(super) enum OutFile {
    Local(Box<Writer<PathSink>>),
    #[cfg(feature = "object_store")]
    Store(Box<AsyncWriter<StoreSink>>),
}

/// Calls a method that both kinds of writers have.
macro_rules! either {
    ($file:expr, $writer:ident => $call:expr) => {
        match $file {
            OutFile::Local($writer) => $call,
            #[cfg(feature = "object_store")]
            OutFile::Store($writer) => $call,
        }
    };
}

impl OutFile {
    pub(super) fn bytes_written(&self) -> u64 {
        either!(self, writer => writer.bytes_written())
    }

    pub(super) fn estimated_bytes(&self) -> u64 {
        either!(self, writer => writer.estimated_bytes())
    }

    pub(super) fn rows_until(&self, batch: &RecordBatch, bytes: u64) -> usize {
        either!(self, writer => writer.rows_until(batch, bytes))
    }

    pub(super) fn ratio(&self) -> f64 {
        either!(self, writer => writer.ratio())
    }

    pub(super) fn expect_ratio(&mut self, ratio: f64) {
        either!(self, writer => writer.expect_ratio(ratio));
    }

    pub(super) async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match self {
            Self::Local(writer) => writer.write(batch),
            #[cfg(feature = "object_store")]
            Self::Store(writer) => writer.write(batch).await,
        }
    }

    pub(super) async fn flush(&mut self) -> Result<()> {
        match self {
            Self::Local(writer) => writer.flush(),
            #[cfg(feature = "object_store")]
            Self::Store(writer) => writer.flush().await,
        }
    }

    pub(super) async fn finish(self) -> Result<WriteReport> {
        match self {
            Self::Local(writer) => writer.finish(),
            #[cfg(feature = "object_store")]
            Self::Store(writer) => writer.finish().await,
        }
    }

    /// Gives up: nothing is left of the file.
    pub(super) async fn abort(self) {
        match self {
            Self::Local(_) => {}
            #[cfg(feature = "object_store")]
            Self::Store(writer) => {
                let _ = writer.abort().await;
            }
        }
    }
}
