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
    /// Sorted by their paths.
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
        if let Some(old) = aside(&self.root).filter(|aside| aside.exists()) {
            return Err(left_aside(&old));
        }
        // A process that was killed after it had exchanged the folders leaves it in the new one,
        // which later would pass for a folder that is only being made.
        let marker = self.root.join(MARKER);
        match fs::remove_file(&marker) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => {
                return Err(failed("removing what was left", e, &marker));
            }
            _ => {}
        }
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
    let file = lock_file(folder).map_err(|e| failed("opening the folder", e, folder))?;
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Error::usage(format_args!(
            "{}: another process changes the folder",
            folder.display()
        ))),
        // Where folders cannot be locked, others do not lock them either.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(file),
    }
}

#[cfg(unix)]
fn lock_file(folder: &Path) -> io::Result<File> {
    File::open(folder)
}

/// A file beside the folder, which cannot be renamed while something in it is open. It stays.
#[cfg(not(unix))]
fn lock_file(folder: &Path) -> io::Result<File> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let path = folder.with_file_name(format!(".{name}.compact-lock"));
    File::options().create(true).truncate(false).write(true).open(path)
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
    Err(left_behind(path))
}

fn left_behind(path: &Path) -> Error {
    Error::usage(format_args!(
        "{}: the old folder, which a killed process could not remove; if nothing was added to the \
         folder while that ran, it can go",
        path.display()
    ))
}

/// A folder that was renamed out of the way, while another may have been made in its place.
fn left_aside(path: &Path) -> Error {
    Error::usage(format_args!(
        "{}: the folder as it was before a process was killed that renamed it; it may be the only \
         copy of its files: look which of them the folder lacks, and move these there, before it \
         goes",
        path.display()
    ))
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
        if tree.entries.binary_search_by(|(known, _)| known.cmp(within)).is_ok() {
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

/// Two folders change places: at once where the system can, else by three renames.
fn change_places(a: &Path, b: &Path) -> Result<()> {
    match exchanged(a, b) {
        Some(Ok(())) => Ok(()),
        Some(Err(e)) if !is_missing(&e) => Err(Error::unsupported(
            "folders that change places",
            format_args!("{}: {e}; copy it to a file system that has this", a.display()),
        )),
        _ => renamed(a, b),
    }
}

/// Exchanges two folders at once; `None` if this system cannot.
#[cfg(any(target_os = "linux", target_os = "macos"))]
fn exchanged(a: &Path, b: &Path) -> Option<io::Result<()>> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Some(renameat_with(CWD, a, CWD, b, RenameFlags::EXCHANGE).map_err(Into::into))
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn exchanged(_a: &Path, _b: &Path) -> Option<io::Result<()>> {
    None
}

/// Whether an error says that the file system has no such operation.
fn is_missing(e: &io::Error) -> bool {
    matches!(e.kind(), io::ErrorKind::Unsupported | io::ErrorKind::InvalidInput)
}

/// The folder `a` becomes `b`, and `b` becomes `a`. Between the first two renames there is no `a`:
/// what a kill leaves then is put right by [`recover`].
fn renamed(a: &Path, b: &Path) -> Result<()> {
    let failed = |e| failed("renaming the folder", e, a);
    let aside = aside(a).ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
    fs::rename(a, &aside).map_err(failed)?;
    if let Err(e) = fs::rename(b, a) {
        let _ = fs::rename(&aside, a);
        return Err(failed(e));
    }
    // The new folder is there; the old one only has another name if this fails.
    let _ = fs::rename(&aside, b);
    Ok(())
}

/// Where a folder is between two renames.
fn aside(folder: &Path) -> Option<PathBuf> {
    let name = folder.file_name()?.to_string_lossy();
    Some(folder.with_file_name(format!(".{name}.compact-old")))
}

/// Gives a folder its name back that a killed process has left without it.
///
/// # Errors
/// `Io`.
pub(super) fn recover(folder: &Path) -> Result<()> {
    if folder.symlink_metadata().is_ok() {
        return Ok(());
    }
    match aside(folder).filter(|aside| aside.is_dir()) {
        Some(aside) => fs::rename(&aside, folder)
            .map_err(|e| failed("giving the folder its name back", e, folder)),
        None => Ok(()),
    }
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
#[cfg(unix)]
pub(super) fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(path)?.sync_all()
}

/// A folder cannot be opened here.
#[cfg(not(unix))]
pub(super) fn sync_folder(_path: &Path) -> io::Result<()> {
    Ok(())
}

/// The file by which a folder that is being made is known.
const MARKER: &str = ".compact-new";

fn failed(what: &str, e: io::Error, path: &Path) -> Error {
    Error::io(what, e).at_file(path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn folders_change_places_by_renames_and_a_kill_between_them_is_put_right() {
        let scratch = tempfile::tempdir().unwrap();
        let (a, b) = (scratch.path().join("a"), scratch.path().join(".a.compact"));
        let put = |folder: &Path, name: &str| {
            fs::create_dir(folder).unwrap();
            fs::write(folder.join(name), "").unwrap();
        };
        put(&a, "old");
        put(&b, "new");
        renamed(&a, &b).unwrap();
        assert!(a.join("new").exists() && b.join("old").exists());
        assert_eq!(fs::read_dir(scratch.path()).unwrap().count(), 2);
        // Killed after the first rename.
        fs::rename(&a, aside(&a).unwrap()).unwrap();
        recover(&a).unwrap();
        assert!(a.join("new").exists());
        // There is no second folder: the first one comes back.
        fs::remove_dir_all(&b).unwrap();
        assert!(renamed(&a, &b).is_err());
        assert!(a.join("new").exists());
        recover(&scratch.path().join("never there")).unwrap();
    }

    fn kind(result: Result<Beside>) -> ErrorKind {
        result.map(drop).unwrap_err().kind()
    }

    #[test]
    fn a_folder_beside_takes_the_place_and_keeps_what_came_meanwhile() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("a");
        fs::create_dir_all(folder.join("sub")).unwrap();
        for name in ["one.parquet", "two.parquet", "sub/three.parq", "sub/.hidden.parquet"] {
            fs::write(folder.join(name), name).unwrap();
        }
        let tree = FolderTree::read(&folder).unwrap();
        let found: Vec<&Path> = tree.parquet_files().collect();
        assert_eq!(found, ["one.parquet", "sub/three.parq", "two.parquet"].map(Path::new));
        assert_eq!(tree.table_metadata(), None);
        let beside = tree.link_beside(&|path| path == Path::new("one.parquet")).unwrap();
        fs::write(beside.path().join("joined.parquet"), "").unwrap();
        // Another process adds these, and the last one under a name that is there already.
        fs::create_dir(folder.join("late")).unwrap();
        for name in ["late/four.parquet", "five.parquet", "joined.parquet"] {
            fs::write(folder.join(name), name).unwrap();
        }
        let old = beside.path().to_owned();
        exchange(&tree, beside).unwrap();
        for name in ["two.parquet", "sub/three.parq", "late/four.parquet", "five.parquet"] {
            assert_eq!(fs::read_to_string(folder.join(name)).unwrap(), name);
        }
        assert!(!folder.join("one.parquet").exists() && !folder.join(MARKER).exists());
        // So the old folder stays, with the file whose name was taken.
        assert_eq!(fs::read_to_string(old.join("joined.parquet")).unwrap(), "joined.parquet");
        assert_eq!(kind(tree.link_beside(&|_| false)), ErrorKind::Usage);
    }

    #[test]
    fn what_a_killed_process_was_making_is_removed_and_nothing_else() {
        let scratch = tempfile::tempdir().unwrap();
        let (folder, beside) = (scratch.path().join("a"), scratch.path().join(".a.compact"));
        fs::create_dir(&folder).unwrap();
        fs::create_dir(&beside).unwrap();
        let tree = FolderTree::read(&folder).unwrap();
        assert_eq!(kind(tree.link_beside(&|_| false)), ErrorKind::Usage);
        fs::write(beside.join(MARKER), "").unwrap();
        drop(tree.link_beside(&|_| false).unwrap());
        assert!(!beside.exists());
        // What was renamed out of the way may be the only copy: nothing is removed then.
        fs::create_dir(&beside).unwrap();
        fs::write(beside.join(MARKER), "").unwrap();
        fs::create_dir(aside(&folder).unwrap()).unwrap();
        assert_eq!(kind(tree.link_beside(&|_| false)), ErrorKind::Usage);
        assert!(beside.exists());
    }

    #[test]
    fn a_marker_that_a_kill_left_in_the_new_folder_does_not_pass_to_the_old_one() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("a");
        fs::create_dir(&folder).unwrap();
        // Killed after the exchange.
        fs::write(folder.join(MARKER), "").unwrap();
        let tree = FolderTree::read(&folder).unwrap();
        let mut beside = tree.link_beside(&|_| false).unwrap();
        assert!(beside.path().join(MARKER).exists());
        fs::write(folder.join("late.parquet"), "late").unwrap();
        // Killed after the next one, before what came late was moved.
        let old = beside.path().to_owned();
        change_places(&folder, &old).unwrap();
        beside.is_needed = true;
        drop(beside);
        assert_eq!(remove_abandoned(&old).unwrap_err().kind(), ErrorKind::Usage);
        assert_eq!(fs::read_to_string(old.join("late.parquet")).unwrap(), "late");
    }

    #[test]
    fn a_folder_that_another_process_changes_is_left_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("a");
        fs::create_dir(&folder).unwrap();
        let tree = FolderTree::read(&folder).unwrap();
        let beside = tree.link_beside(&|_| false).unwrap();
        assert_eq!(kind(tree.link_beside(&|_| false)), ErrorKind::Usage);
        drop(beside);
        assert!(tree.link_beside(&|_| false).is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_links_and_a_socket_is_refused() {
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("a");
        fs::create_dir(&folder).unwrap();
        link(Path::new("nowhere"), &folder.join("link")).unwrap();
        let tree = FolderTree::read(&folder).unwrap();
        let beside = tree.link_beside(&|_| false).unwrap();
        assert_eq!(fs::read_link(beside.path().join("link")).unwrap(), Path::new("nowhere"));
        let _socket = std::os::unix::net::UnixListener::bind(folder.join("socket")).unwrap();
        let refused = FolderTree::read(&folder).map(drop).unwrap_err().kind();
        assert!(matches!(refused, ErrorKind::Unsupported(_)), "{refused:?}");
        assert_eq!(
            FolderTree::read(&folder.join("no")).map(drop).unwrap_err().kind(),
            ErrorKind::Io
        );
    }
}
