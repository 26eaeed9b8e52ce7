//! The tests that start `marq`: one binary, a folder for each subject.

#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tests are no API, and fail where they must"
)]

mod arguments;
mod convert;
mod encryption;
mod input;
mod output;
mod support;
mod types;
#[cfg(feature = "urls")]
mod urls;
