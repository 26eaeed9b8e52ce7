//! [`FolderOut`]: a folder that appears once all files in it are whole.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use marquetry::Error;

use crate::failure::{Failure, Result};
use crate::interrupt;

/// A new folder. Files are written into one beside it, which takes its name in the end, and goes if
/// that does not come: after an error, and when a signal ends the program. What a killed process
/// leaves is removed by the next one that writes the same folder.
pub(crate) struct FolderOut {
    target: PathBuf,
    /// The folder beside it.
    beside: PathBuf,
    /// Held while this process lives.
    _lock: Option<File>,
}

impl FolderOut {
    /// # Errors
    /// `Usage` if there is something at `target` other than an empty folder.
    pub(crate) fn create(target: &Path) -> Result<Self> {
        let target = target.canonicalize().unwrap_or_else(|_| target.to_owned());
        let shown = target.display();
        if let Ok(there) = target.symlink_metadata() {
            if !there.is_dir() {
                return Err(Failure::Usage(format!("{shown}: it is a file; say a folder with -o")));
            }
            if fs::read_dir(&target).is_ok_and(|mut entries| entries.next().is_some()) {
                return Err(Failure::Usage(format!(
                    "{shown}: the folder is not empty; say a new one with -o"
                )));
            }
        }
        let Some(name) = target.file_name() else {
            return Err(Failure::Usage(format!("{shown}: say a folder with a name")));
        };
        let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.unwrap_or_else(|| Path::new("."));
        let failed = |e| failed("making the folder", e, parent);
        fs::create_dir_all(parent).map_err(failed)?;
        let prefix = format!(".{}.marq-", name.to_string_lossy());
        remove_abandoned(parent, &prefix);
        let beside = parent.join(format!("{prefix}{}", std::process::id()));
        interrupt::remove_at_end(&beside);
        fs::create_dir(&beside).map_err(failed)?;
        let lock = File::open(&beside).ok().filter(|folder| folder.try_lock().is_ok());
        Ok(Self { target, beside, _lock: lock })
    }

    /// Where files are written.
    pub(crate) fn path(&self) -> &Path {
        &self.beside
    }

    /// Gives the folder its name.
    pub(crate) fn finish(self) -> Result<()> {
        let failed = |e| failed("finishing the folder", e, &self.target);
        sync_folders(&self.beside).map_err(failed)?;
        if self.target.exists() {
            // It is empty, or this fails.
            let permissions = fs::metadata(&self.target).map_err(failed)?.permissions();
            fs::set_permissions(&self.beside, permissions).map_err(failed)?;
            fs::remove_dir(&self.target).map_err(failed)?;
        }
        fs::rename(&self.beside, &self.target).map_err(failed)?;
        let parent = self.target.parent().filter(|parent| !parent.as_os_str().is_empty());
        sync_folder(parent.unwrap_or_else(|| Path::new("."))).map_err(failed)
    }
}

impl Drop for FolderOut {
    fn drop(&mut self) {
        // After it was finished, it is not there.
        let _ = fs::remove_dir_all(&self.beside);
    }
}

/// Removes what killed processes have left: the folders that none holds.
fn remove_abandoned(parent: &Path, prefix: &str) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(prefix));
        let is_number = |pid: &str| !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit());
        if !pid.is_some_and(is_number) {
            continue;
        }
        let Ok(folder) = File::open(entry.path()) else { continue };
        if folder.try_lock().is_ok() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Makes the names in a folder, and in those within it, durable.
fn sync_folders(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_folders(&entry.path())?;
        }
    }
    sync_folder(folder)
}

/// Where folders cannot be opened, names are durable without that.
#[cfg(unix)]
fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> io::Result<()> {
    Ok(())
}

fn failed(what: &str, e: io::Error, path: &Path) -> Failure {
    Error::io(what, e).at_file(path.display().to_string()).into()
}
