//! The tests that start `marq`: one binary, one module for each subject.

#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tests are no API, and fail where they must"
)]

mod cli;
mod control;
mod convert;
mod copies;
mod crypt_cli;
mod display;
#[cfg(unix)]
mod faults;
mod filter_text;
mod folder;
mod folders;
mod geo;
#[cfg(unix)]
mod stack;
mod text;
mod variant;
mod words;

// What the tests of the library have, too; not all of it is of use here.
#[allow(dead_code)]
#[path = "../../../../tests/hostile/nests.rs"]
mod nests;
#[cfg(unix)]
#[allow(dead_code)]
#[path = "../../../../tests/it/sinks.rs"]
mod sinks;
#[allow(dead_code)]
#[path = "../../../../tests/it/support.rs"]
mod support;
