//! Opens what arguments name by URLs, as the flags of the command say.

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use marquetry::Error;
use marquetry::io::{Sink, Source};

use crate::args::Global;
use crate::failure::Result;
use crate::urls::{self, ListedName, Observer, UrlOptions, UrlSource};
use crate::{interrupt, trace_io};

/// The options that the flags give; set once, before anything is opened.
static OPTIONS: OnceLock<UrlOptions> = OnceLock::new();

/// Sets the options of all URLs of this process.
pub(crate) fn configure(global: &Global) {
    let mut options = UrlOptions::default();
    options.endpoint.clone_from(&global.endpoint);
    options.region.clone_from(&global.region);
    options.ca_file.clone_from(&global.ca_file);
    options.anonymous = global.anonymous;
    if let Some(seconds) = global.timeout {
        options.timeout = Duration::from_secs(seconds.max(1).into());
    }
    options.retries = global.retries.unwrap_or(options.retries);
    if global.trace_io {
        options.observer = Some(Observer::new(|request| trace_io::record(&request)));
    }
    let _ = OPTIONS.set(options);
}

fn options() -> &'static UrlOptions {
    OPTIONS.get_or_init(UrlOptions::default)
}

/// A file by its URL.
type OpenUrl = (String, Arc<UrlSource>);

/// Files that were opened last: some commands open theirs twice, and the end of each is kept.
static OPEN: Mutex<Vec<OpenUrl>> = Mutex::new(Vec::new());

/// Files that are kept open.
const MAX_OPEN: usize = 64;

/// Bytes that they hold when another is opened: each 256 KiB, or more of its end, or, of a server
/// without ranges, all of it.
const MAX_KEPT_BYTES: u64 = 128 << 20;

/// Forgets the files that were opened first, until one more can be kept open.
fn forget_oldest<T>(open: &mut Vec<T>, kept_bytes: impl Fn(&T) -> u64) {
    let mut kept = 0u64;
    let latest = open.iter().rev().take(MAX_OPEN - 1).take_while(|file| {
        kept = kept.saturating_add(kept_bytes(file));
        kept <= MAX_KEPT_BYTES
    });
    let forgotten = open.len() - latest.count();
    open.drain(..forgotten);
}

/// The bytes of the file that a URL names.
pub(crate) fn source(url: &str) -> Result<Arc<dyn Source>> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, source)) = open.iter().find(|(name, _)| name == url) {
        return Ok(source.clone());
    }
    let source = Arc::new(urls::open_url(url, options())?);
    forget_oldest(&mut open, |(_, source)| source.kept_bytes());
    open.push((url.to_owned(), source.clone()));
    Ok(source)
}

/// The output at a path or URL, which appears when it is whole.
pub(crate) fn sink(path: &Path) -> Result<Box<dyn Sink>, Error> {
    match url(path) {
        Some(url) => {
            let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
            open.retain(|(name, _)| name != url);
            Ok(Box::new(urls::create_url(url, options())?))
        }
        None => Ok(Box::new(interrupt::create(path)?)),
    }
}

/// The text of a path that is a URL.
pub(crate) fn url(path: &Path) -> Option<&str> {
    path.to_str().filter(|text| urls::is_url(text))
}

/// The objects below a URL that ends with `/`; `deep` if those in folders below are wanted, too.
pub(crate) fn list(url: &str, deep: bool) -> Result<Vec<ListedName>> {
    Ok(urls::list_url(url, deep, options())?)
}

/// Whether there is a file at a path, or an object at a URL.
pub(crate) fn exists(path: &Path) -> Result<bool> {
    match url(path) {
        Some(url) => Ok(urls::url_exists(url, options())?),
        None => Ok(path.exists()),
    }
}

/// Removes a file or an object, if that is possible.
pub(crate) fn remove(path: &Path) {
    match url(path) {
        Some(url) => drop(urls::delete_url(url, options())),
        None => drop(std::fs::remove_file(path)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_kept_open_up_to_a_number_and_to_a_sum_of_bytes() {
        let after = |mut open: Vec<u64>| {
            forget_oldest(&mut open, |bytes| *bytes);
            open
        };
        assert_eq!(after(vec![]), [0u64; 0]);
        assert_eq!(after(vec![1, 2, 3]), [1, 2, 3]);
        assert_eq!(after(vec![7; MAX_OPEN]).len(), MAX_OPEN - 1);
        let half = MAX_KEPT_BYTES / 2;
        assert_eq!(after(vec![1, half, half]), [half, half]);
        assert_eq!(after(vec![half, half + 1, half]), [half]);
        assert_eq!(after(vec![1, MAX_KEPT_BYTES + 1]), [0u64; 0]);
    }
}
