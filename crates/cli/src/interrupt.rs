//! Removes unfinished output when a signal ends the program.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use marquetry::Error;
use marquetry::io::PathSink;

use crate::urls;

/// The temporary files of this process, those that are gone by now among them.
static TEMPORARY: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A file at `path`, whose temporary file is removed when a signal ends the program.
pub(crate) fn create(path: &Path) -> Result<PathSink, Error> {
    // Held meanwhile, so that no file is made after those known have been removed.
    let mut temporary = lock();
    let sink = PathSink::create(path)?;
    temporary.extend(sink.temporary().map(Path::to_owned));
    Ok(sink)
}

/// Has a file or a folder removed, too, when a signal ends the program.
pub(crate) fn remove_at_end(path: &Path) {
    lock().push(path.to_owned());
}

/// Keeps what is written: a signal that comes from now on removes nothing. Where one came before,
/// the program ends here.
pub(crate) fn keep() {
    lock().clear();
}

fn lock() -> MutexGuard<'static, Vec<PathBuf>> {
    TEMPORARY.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes a file, or a folder with all in it.
#[cfg(unix)]
fn remove(path: &Path) {
    if std::fs::remove_file(path).is_ok() || !path.is_dir() {
        return;
    }
    // Under another name, so that no thread makes one more file in it meanwhile.
    let mut gone = path.as_os_str().to_owned();
    gone.push("-gone");
    let _ = std::fs::rename(path, &gone);
    let _ = std::fs::remove_dir_all(&gone);
}

/// Ends the program with 128 + the number of the signal, when SIGINT, SIGTERM or SIGHUP comes.
#[cfg(unix)]
pub(crate) fn listen() {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    use signal_hook::iterator::Signals;
    let ignored = ignored();
    let wanted = [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|n| ignored & (1 << (n - 1)) == 0);
    // Otherwise the next run that writes the same file removes them.
    let Ok(mut signals) = Signals::new(wanted) else { return };
    std::thread::spawn(move || {
        if let Some(signal) = signals.forever().next() {
            let temporary = lock();
            temporary.iter().for_each(|path| remove(path));
            urls::abort_uploads();
            std::process::exit(128 + signal);
        }
    });
}

/// The signals that the parent process has set to be ignored, as `nohup` does: bit n − 1 for signal
/// n.
#[cfg(unix)]
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    line.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default()
}

#[cfg(not(unix))]
pub(crate) fn listen() {}
