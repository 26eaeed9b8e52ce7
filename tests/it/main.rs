//! The integration tests: one binary, a folder for each subject. ../README.md says where a test
//! goes, and which test covers which section of the specification.

#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tests are no API, and fail where they must"
)]

#[cfg(feature = "encryption")]
mod encryption;
mod export;
#[cfg(feature = "full")]
mod faults;
mod filter;
mod format;
#[cfg(feature = "inspect")]
mod inspect;
#[cfg(feature = "check")]
mod check;
mod interface;
mod metadata;
mod read;
mod types;
mod variant;
mod write;

#[path = "../support/mod.rs"]
mod support;
