//! Tests of `marq convert`.

mod arrow_input;
mod compact;
mod concat;
mod rewrite;
#[cfg(unix)]
mod deep_nesting;
#[cfg(unix)]
mod ended_early;
#[cfg(unix)]
mod failures;
mod folders;
mod formats;
mod salvage;
mod improving;
mod shared_bytes;
mod text;
