//! Names the places in the library that allocate.

use std::backtrace::Backtrace;
use std::sync::Mutex;

static SEEN: Mutex<Vec<(usize, Backtrace)>> = Mutex::new(Vec::new());

pub fn clear() {
    SEEN.lock().unwrap().clear();
}

/// Keeps who asks for memory.
pub fn note(_: usize, bytes: usize) {
    SEEN.lock().unwrap().push((bytes, Backtrace::force_capture()));
}

/// The sites since [`clear`].
pub fn take() -> Vec<String> {
    let seen = std::mem::take(&mut *SEEN.lock().unwrap());
    seen.iter().map(|(_, trace)| site(trace)).collect()
}

/// The innermost functions of the library that led to an allocation.
fn site(trace: &Backtrace) -> String {
    let text = trace.to_string();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let mut out = String::new();
    let mut ours = 0;
    for pair in lines.windows(2) {
        let Some(at) = pair[1].strip_prefix("at ") else { continue };
        let name = pair[0].split_once(": ").map_or(pair[0], |(_, name)| name);
        if at.contains("tests/support/heap.rs")
            || at.contains("tests/memory/")
            || at.starts_with("/rustc/")
        {
            continue;
        }
        let _ = name;
        ours += usize::from(at.starts_with("./src"));
        let at = at.rsplit_once("/registry/src/").map_or(at, |(_, at)| at);
        let at = at.rsplit_once(':').map_or(at, |(at, _)| at);
        let at = if at.starts_with("./") { at } else { at.split('/').nth(1).unwrap_or(at) };
        if !out.ends_with(&format!("{at} < ")) {
            out += &format!("{at} < ");
        }
        if ours >= 2 {
            break;
        }
    }
    out
}
