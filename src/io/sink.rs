//! [`Sink`] receives the bytes of a file.

use std::fs::{File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use bytes::Bytes;

use crate::error::{Error, Result};

/// Receives the bytes of a file, one piece after the other.
///
/// After an error nothing more is written, and [`Sink::finish`] is never called. A sink that is
/// dropped unfinished should leave nothing that looks like a whole file.
pub trait Sink: Send {
    /// Appends bytes, all of them.
    ///
    /// # Errors
    /// `Io` if they cannot be written.
    fn write(&mut self, bytes: Bytes) -> Result<()>;

    /// Makes the file whole: everything is written, nothing more comes.
    ///
    /// # Errors
    /// `Io` if what was written may be lost.
    fn finish(&mut self) -> Result<()>;
}

impl<S: Sink + ?Sized> Sink for Box<S> {
    fn write(&mut self, bytes: Bytes) -> Result<()> {
        (**self).write(bytes)
    }

    fn finish(&mut self) -> Result<()> {
        (**self).finish()
    }
}

/// A [`Write`] as a sink: a `Vec<u8>`, a socket, standard output. Finishing flushes it.
#[derive(Debug)]
pub struct WriteSink<W>(pub W);

impl<W: Write + Send> Sink for WriteSink<W> {
    fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.0.write_all(&bytes).map_err(|e| Error::io("writing", e))
    }

    fn finish(&mut self) -> Result<()> {
        self.0.flush().map_err(|e| Error::io("flushing", e))
    }
}

/// A file at a path, which holds at every instant either its previous contents or the whole new
/// file.
///
/// Bytes go to a temporary file beside it, `.NAME.PID-N.tmp`, which is synced and renamed at the
/// end, and removed if the sink is dropped before. A symbolic link is followed. A path that is no
/// regular file, such as a pipe or a device, cannot be replaced: bytes go straight there.
///
/// The temporary file is locked while it is written. That of a killed process is not, and the next
/// writer of the same file removes it.
#[derive(Debug)]
pub struct PathSink {
    path: PathBuf,
    /// `None` if bytes go straight to the path.
    temporary: Option<PathBuf>,
    file: Option<File>,
    /// Whether a file that is at the path by then is replaced.
    replaces: bool,
}

impl PathSink {
    /// Begins a file at `path`; an existing file stays until the new one is whole.
    ///
    /// # Errors
    /// `Io` if no file can be created in the folder, or `path` is a folder.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let mut path = path.as_ref().to_path_buf();
        let failed =
            |e, path: &Path| Error::io("creating the file", e).at_file(path.display().to_string());
        if let Ok(there) = std::fs::metadata(&path)
            && !there.is_file()
        {
            // A folder refuses here.
            let file = File::options().write(true).open(&path).map_err(|e| failed(e, &path))?;
            return Ok(Self { path, temporary: None, file: Some(file), replaces: true });
        }
        // The file that a link names need not be there yet.
        let mut links = 0;
        while let Ok(target) = std::fs::read_link(&path) {
            links += 1;
            if links > MAX_LINKS {
                return Err(failed(io::Error::other("too many symbolic links"), &path));
            }
            path = path.parent().map_or_else(|| target.clone(), |folder| folder.join(&target));
        }
        let Some(name) = path.file_name() else {
            return Err(failed(io::ErrorKind::IsADirectory.into(), &path));
        };
        // A long name leaves no space for more.
        let shown: String = name.to_string_lossy().chars().take(NAME_SHOWN).collect();
        remove_abandoned(&path, &shown);
        let mut attempt = 0u32;
        let (temporary, file) = loop {
            let hidden = format!(".{shown}.{}-{attempt}.tmp", std::process::id());
            let temporary = path.with_file_name(hidden);
            let file = new_file(&path).open(&temporary);
            match file.and_then(|file| lock(&file, &temporary).map(|locked| (file, locked))) {
                Ok((file, true)) => break (temporary, file),
                // Another process took it for abandoned before it was locked.
                Ok((_, false)) if attempt < MAX_ATTEMPTS => attempt += 1,
                Ok((_, false)) => return Err(failed(io::ErrorKind::WouldBlock.into(), &path)),
                // A name that is taken belongs to another writer.
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists && attempt < MAX_ATTEMPTS => {
                    attempt += 1
                }
                Err(e) => return Err(failed(e, &path)),
            }
        };
        Ok(Self { path, temporary: Some(temporary), file: Some(file), replaces: true })
    }

    /// As [`PathSink::create`], but a file that is at the path when this one is finished stays: it
    /// is an error of the kind `AlreadyExists`.
    ///
    /// # Errors
    /// As [`PathSink::create`].
    pub(crate) fn create_new(path: impl AsRef<Path>) -> Result<Self> {
        let mut sink = Self::create(path)?;
        sink.replaces = false;
        Ok(sink)
    }

    /// The temporary file that bytes go to; `None` if they go straight to the path, or the file is
    /// finished.
    ///
    /// For a program that is ended by a signal, and removes the file before it ends.
    pub fn temporary(&self) -> Option<&Path> {
        self.temporary.as_deref()
    }

    /// Copies the first `len` bytes of another file, before anything else is written: by reference
    /// to the same blocks where the file system has that, else without reading them into the
    /// process where the operating system can.
    pub(crate) fn begin_with(&mut self, old: &File, len: u64) -> Result<()> {
        let Some(file) = &mut self.file else {
            return Err(Error::usage("the file is finished"));
        };
        let done = match share_blocks(old, file) {
            true => file
                .set_len(len)
                .and_then(|()| std::io::Seek::seek(file, io::SeekFrom::Start(len)))
                .map(|_| len),
            false => io::copy(&mut old.take(len), file),
        };
        match done {
            Ok(copied) if copied == len => Ok(()),
            Ok(_) => Err(self.failed("copying", io::ErrorKind::UnexpectedEof.into())),
            Err(e) => Err(self.failed("copying", e)),
        }
    }

    fn failed(&self, what: &str, e: io::Error) -> Error {
        Error::io(what, e).at_file(self.path.display().to_string())
    }
}

impl Sink for PathSink {
    fn write(&mut self, bytes: Bytes) -> Result<()> {
        let Some(file) = &mut self.file else {
            return Err(Error::usage("the file is finished"));
        };
        file.write_all(&bytes).map_err(|e| self.failed("writing", e))
    }

    fn finish(&mut self) -> Result<()> {
        let Some(file) = self.file.take() else {
            return Err(Error::usage("the file is finished"));
        };
        let Some(temporary) = self.temporary.take() else {
            // Nothing is buffered here, and pipes and devices may refuse to be synced.
            return Ok(());
        };
        // Renamed while it is locked, so that no process removes it as abandoned.
        let done =
            file.sync_all().and_then(|()| keep_permissions(&file, &self.path)).and_then(|()| {
                match self.replaces {
                    true => std::fs::rename(&temporary, &self.path),
                    false => rename_new(&temporary, &self.path),
                }
            });
        drop(file);
        match done {
            Ok(()) => sync_folder(&self.path).map_err(|e| self.failed("syncing the folder", e)),
            Err(e) => {
                let _ = std::fs::remove_file(&temporary);
                Err(self.failed("finishing the file", e))
            }
        }
    }
}

impl Drop for PathSink {
    fn drop(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            let _ = std::fs::remove_file(temporary);
        }
    }
}

/// Renames a file to a path where nothing is. File systems without hard links replace a file that
/// comes there in the same moment.
fn rename_new(old: &Path, new: &Path) -> io::Result<()> {
    match std::fs::hard_link(old, new) {
        Ok(()) => {
            // The new name is there: nothing is lost with the old one.
            let _ = std::fs::remove_file(old);
            Ok(())
        }
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Err(e),
        Err(_) if new.symlink_metadata().is_ok() => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => std::fs::rename(old, new),
    }
}

/// Makes an empty file share all blocks of another one; false if the file system cannot.
#[cfg(target_os = "linux")]
fn share_blocks(old: &File, new: &File) -> bool {
    rustix::fs::ioctl_ficlone(new, old).is_ok()
}

#[cfg(not(target_os = "linux"))]
fn share_blocks(_old: &File, _new: &File) -> bool {
    false
}

/// Locks a new temporary file; false if it was removed before that. Where files cannot be locked,
/// none is ever removed as abandoned.
fn lock(file: &File, path: &Path) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(is_at(file, path)),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(_)) => Ok(true),
    }
}

/// Whether the file still has its name.
#[cfg(unix)]
fn is_at(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    match (file.metadata(), std::fs::metadata(path)) {
        (Ok(file), Ok(there)) => (file.dev(), file.ino()) == (there.dev(), there.ino()),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_at(_file: &File, path: &Path) -> bool {
    path.exists()
}

/// Removes the temporary files of `path` that no process holds any more. Whatever fails leaves
/// them.
fn remove_abandoned(path: &Path, shown: &str) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let Ok(entries) = std::fs::read_dir(folder.unwrap_or_else(|| Path::new("."))) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let is_file = || entry.file_type().is_ok_and(|kind| kind.is_file());
        if !is_temporary(&name.to_string_lossy(), shown) || !is_file() {
            continue;
        }
        // Opened as a writer, without a change: some systems lock only what can be written.
        let Ok(file) = File::options().write(true).open(entry.path()) else { continue };
        if file.try_lock().is_ok() {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Whether a name is `.NAME.PID-N.tmp`.
fn is_temporary(name: &str, shown: &str) -> bool {
    let rest = name.strip_prefix('.').and_then(|name| name.strip_prefix(shown));
    let rest = rest.and_then(|rest| rest.strip_prefix('.')?.strip_suffix(".tmp"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    rest.and_then(|rest| rest.split_once('-')).is_some_and(|(pid, n)| digits(pid) && digits(n))
}

/// How the temporary file of `path` is made: readable by its owner alone, and with no permission
/// that the replaced file lacks, from the first byte on and if the process is killed.
#[cfg(unix)]
fn new_file(path: &Path) -> std::fs::OpenOptions {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let mut options = File::options();
    options.write(true).create_new(true);
    if let Ok(old) = std::fs::metadata(path) {
        options.mode(old.permissions().mode() & 0o600);
    }
    options
}

#[cfg(not(unix))]
fn new_file(_path: &Path) -> std::fs::OpenOptions {
    let mut options = File::options();
    options.write(true).create_new(true);
    options
}

/// Gives the new file the permissions of the file that it replaces.
fn keep_permissions(file: &File, path: &Path) -> io::Result<()> {
    match std::fs::metadata(path) {
        Ok(old) => file.set_permissions(old.permissions()),
        Err(_) => Ok(()),
    }
}

/// Makes the new name durable: on Unix the folder has it, which has a cache of its own.
#[cfg(unix)]
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match File::open(folder.unwrap_or_else(|| Path::new("."))) {
        Ok(folder) => match folder.sync_all() {
            // Some file systems cannot sync folders.
            Err(e)
                if matches!(e.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) =>
            {
                Ok(())
            }
            done => done,
        },
        Err(_) => Ok(()),
    }
}

#[cfg(not(unix))]
fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// Characters of the file's name in that of the temporary one: at most 160 of the 255 bytes that a
/// name may have.
const NAME_SHOWN: usize = 40;

/// Maximum symbolic links that lead to a file, as on Linux.
const MAX_LINKS: u32 = 40;

/// Temporary names that are tried, because more than a few are taken only where something else is
/// wrong.
const MAX_ATTEMPTS: u32 = 10_000;
