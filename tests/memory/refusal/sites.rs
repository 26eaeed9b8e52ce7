//! Names the places in the library that allocate.

use std::backtrace::Backtrace;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The stacks of the allocations of a job, in their order.
static SEEN: Mutex<Vec<Backtrace>> = Mutex::new(Vec::new());

fn seen() -> MutexGuard<'static, Vec<Backtrace>> {
    SEEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps what leads to an allocation.
pub fn note(_number: usize, _bytes: usize) {
    let trace = Backtrace::force_capture();
    seen().push(trace);
}

/// The sites since the last call.
pub fn take() -> Vec<Site> {
    std::mem::take(&mut *seen()).iter().map(Site::new).collect()
}

/// Files whose functions allocate for others.
const HELPERS: [&str; 3] = ["./src/memory.rs", "./src/free_lists.rs", "./src/simd/"];

/// Where the library allocates, or calls what allocates.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Site {
    /// The file of the library, and before it the crate that it calls, if it is another.
    pub file: String,
    /// The line there.
    pub line: String,
}

impl Site {
    fn new(trace: &Backtrace) -> Self {
        let text = trace.to_string();
        let mut others = None;
        for at in text.lines().filter_map(|line| line.trim().strip_prefix("at ")) {
            if at.starts_with("/rustc/") || at.contains("tests/support") {
                continue;
            }
            let (at, line) = without_column(at);
            if HELPERS.iter().any(|helper| at.starts_with(helper)) {
                continue;
            }
            if let Some(own) = at.strip_prefix("./src/") {
                let file = match others {
                    Some(name) => format!("{name} in {own}"),
                    None => own.to_owned(),
                };
                return Self { file, line };
            }
            // The innermost one, without its version.
            if let (None, Some((_, registry))) = (&others, at.split_once("/registry/src/")) {
                let name = registry.split('/').nth(1).unwrap_or_default();
                others = name.rsplit_once('-').map(|(name, _)| name.to_owned());
            }
        }
        Self { file: "the test".into(), line: String::new() }
    }

    pub fn is_of_the_library(&self) -> bool {
        self.file != "the test"
    }
}

/// The file and the line of `file:line:column`.
fn without_column(at: &str) -> (&str, String) {
    let mut parts = at.rsplitn(3, ':');
    let (_, line, file) = (parts.next(), parts.next(), parts.next());
    (file.unwrap_or(at), line.unwrap_or_default().to_owned())
}
