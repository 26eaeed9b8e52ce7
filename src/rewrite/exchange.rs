//! [`FolderTree`]: a folder with all that is in it, which a new one takes the place of at once.

use std::ffi::OsStr;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The content of a folder, by the paths in it; folders stand before what is in them.
pub(super) struct FolderTree {
    /// Without symbolic links on the way.
    root: PathBuf,
    entries: Vec<(PathBuf, EntryKind)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryKind {
    Folder,
    File,
    Link,
}

/// A folder beside another, which is removed unless it takes its place.
pub(super) struct Beside {
    path: PathBuf,
    is_needed: bool,
    /// Both folders are locked for as long as this is there.
    _locks: [File; 2],
}

impl Beside {
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        if !self.is_needed {
            let _ = fs::remove_dir_all(&self.path);
        }
    }
}

impl FolderTree {
    /// Lists a folder.
    ///
    /// # Errors
    /// `Io` if it cannot be read, `Unsupported` if something in it is neither a file, a folder nor
    /// a symbolic link.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let root = fs::canonicalize(folder).map_err(|e| failed("reading the folder", e, folder))?;
        let mut tree = Self { root, entries: Vec::new() };
        let mut folders = vec![PathBuf::new()];
        while let Some(within) = folders.pop() {
            let whole = tree.root.join(&within);
            let reading = |e| failed("reading the folder", e, &whole);
            let mut names = Vec::new();
            for entry in fs::read_dir(&whole).map_err(reading)? {
                let entry = entry.map_err(reading)?;
                names.push((entry.file_name(), entry.file_type().map_err(reading)?));
            }
            names.sort_by(|(a, _), (b, _)| a.cmp(b));
            for (name, kind) in names {
                let path = within.join(name);
                if path == Path::new(MARKER) {
                    continue;
                }
                let kind = match kind {
                    kind if kind.is_dir() => EntryKind::Folder,
                    kind if kind.is_file() => EntryKind::File,
                    kind if kind.is_symlink() => EntryKind::Link,
                    _ => {
                        let what = "a folder with pipes, sockets or devices";
                        let text = format_args!("{} is none of a file", path.display());
                        return Err(Error::unsupported(what, text));
                    }
                };
                if kind == EntryKind::Folder {
                    folders.push(path.clone());
                }
                tree.entries.push((path, kind));
            }
        }
        tree.entries.sort_by(|(a, _), (b, _)| a.cmp(b));
        Ok(tree)
    }

    /// The Parquet files, by their paths; not those that are hidden, or in a hidden folder.
    pub(super) fn parquet_files(&self) -> impl Iterator<Item = &Path> {
        let is_hidden = |part: &OsStr| {
            let part = part.to_string_lossy();
            part.starts_with(['_', '.'])
        };
        let is_wanted = move |path: &Path| {
            let ending = path.extension().map(|ending| ending.to_string_lossy());
            ending.is_some_and(|ending| ending == "parquet" || ending == "parq")
                && !path.iter().any(is_hidden)
        };
        let files = self.entries.iter().filter(|(_, kind)| *kind == EntryKind::File);
        files.map(|(path, _)| path.as_path()).filter(move |path| is_wanted(path))
    }

    /// The name of what lists the files of a table.
    pub(super) fn table_metadata(&self) -> Option<String> {
        let names = ["_delta_log", "_metadata", ".hoodie", "_symlink_format_manifest"];
        self.entries.iter().find_map(|(path, kind)| {
            let name = path.file_name()?.to_str()?;
            // A table of Iceberg.
            let is_iceberg = name == "metadata" && *kind == EntryKind::Folder;
            (names.contains(&name) || is_iceberg).then(|| path.display().to_string())
        })
    }

    /// A folder beside this one, with all that is in it but some files: as hard links.
    ///
    /// # Errors
    /// `Io` if it cannot be made, `Usage` if the folder has none around it.
    pub(super) fn link_beside(&self, is_left_out: &dyn Fn(&Path) -> bool) -> Result<Beside> {
        let (Some(parent), Some(name)) = (self.root.parent(), self.root.file_name()) else {
            return Err(Error::usage("the root of the file system cannot be replaced"));
        };
        let path = parent.join(format!(".{}.compact", name.to_string_lossy()));
        let of_root = lock(&self.root)?;
        remove_abandoned(&path)?;
        let making = |e| failed("making a folder beside it", e, &path);
        fs::create_dir(&path).map_err(making)?;
        let locks = [of_root, lock(&path)?];
        let beside = Beside { path: path.clone(), is_needed: false, _locks: locks };
        fs::write(path.join(MARKER), "").map_err(making)?;
        let keep = |within: &Path| -> io::Result<()> {
            let mode = fs::metadata(self.root.join(within))?.permissions();
            fs::set_permissions(path.join(within), mode)
        };
        keep(Path::new("")).map_err(making)?;
        for (within, kind) in &self.entries {
            let (old, new) = (self.root.join(within), path.join(within));
            let done = match kind {
                EntryKind::Folder => fs::create_dir(&new).and_then(|()| keep(within)),
                EntryKind::File if is_left_out(within) => Ok(()),
                EntryKind::File => fs::hard_link(&old, &new),
                EntryKind::Link => fs::read_link(&old).and_then(|to| link(&to, &new)),
            };
            done.map_err(|e| failed("linking into a folder beside it", e, &old))?;
        }
        Ok(beside)
    }
}

/// Locks a folder for this process.
fn lock(folder: &Path) -> Result<File> {
    let file = File::open(folder).map_err(|e| failed("opening the folder", e, folder))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::usage(format_args!(
            "{}: another process changes the folder",
            folder.display()
        ))),
        // Where folders cannot be locked, others do not lock them either.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
}

/// Removes what a killed process has left, if it is only what it was making.
fn remove_abandoned(path: &Path) -> Result<()> {
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    let _lock = lock(path)?;
    if path.join(MARKER).exists() {
        return fs::remove_dir_all(path).map_err(|e| failed("removing what was left", e, path));
    }
    Err(Error::usage(format_args!(
        "{}: the old folder, which a killed process could not remove; if nothing was added to the \
         folder while that ran, it can go",
        path.display()
    )))
}

/// Lets the new folder take the place of the old one, and removes the old one. What others have put
/// there meanwhile is kept.
///
/// # Errors
/// `Unsupported` if folders cannot change places, `Io`; the old folder is then as it was. After
/// they have changed places, nothing is an error.
pub(super) fn exchange(tree: &FolderTree, mut beside: Beside) -> Result<()> {
    let syncing = |e| failed("syncing the new folder", e, &beside.path);
    for (within, kind) in &tree.entries {
        if *kind == EntryKind::Folder {
            sync_folder(&beside.path.join(within)).map_err(syncing)?;
        }
    }
    sync_folder(&beside.path).map_err(syncing)?;
    change_places(&tree.root, &beside.path)?;
    // The old one now: what comes after this must not be lost by it.
    beside.is_needed = true;
    if let Some(parent) = tree.root.parent() {
        let _ = sync_folder(parent);
    }
    let _ = fs::remove_file(tree.root.join(MARKER));
    let is_moved = move_new(tree, &beside.path);
    beside.is_needed = !is_moved;
    Ok(())
}

/// Moves what was put into the old folder after it was listed to the new one; false if that failed
/// for something, which then stays beside.
fn move_new(tree: &FolderTree, old: &Path) -> bool {
    let Ok(now) = FolderTree::read(old) else { return false };
    let mut is_moved = true;
    for (within, kind) in &now.entries {
        if tree.entries.iter().any(|(known, _)| known == within) {
            continue;
        }
        let (from, to) = (old.join(within), tree.root.join(within));
        let done = match kind {
            _ if to.symlink_metadata().is_ok() => *kind == EntryKind::Folder,
            EntryKind::Folder => fs::create_dir(&to).is_ok(),
            EntryKind::File | EntryKind::Link => fs::rename(&from, &to).is_ok(),
        };
        is_moved &= done;
    }
    is_moved
}

/// Two folders change places, at once.
#[cfg(target_os = "linux")]
fn change_places(a: &Path, b: &Path) -> Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).map_err(|e| {
        Error::unsupported(
            "folders that change places",
            format_args!("{}: {e}; copy it to a file system that has this", a.display()),
        )
    })
}

#[cfg(not(target_os = "linux"))]
fn change_places(a: &Path, _b: &Path) -> Result<()> {
    Err(Error::unsupported(
        "folders that change places",
        format_args!("{}: this system has no such operation", a.display()),
    ))
}

#[cfg(unix)]
fn link(to: &Path, at: &Path) -> io::Result<()> {
    std::os::unix::fs::symlink(to, at)
}

#[cfg(not(unix))]
fn link(_to: &Path, _at: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// The file by which a folder that is being made is known.
const MARKER: &str = ".compact-new";

fn failed(what: &str, e: io::Error, path: &Path) -> Error {
    Error::io(what, e).at_file(path.display().to_string())
}
