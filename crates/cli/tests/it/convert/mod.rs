//! Tests of `marq convert`.

#[cfg(unix)]
mod deep_nesting;
#[cfg(unix)]
mod failures;
mod formats;
mod shared_bytes;
mod text;
