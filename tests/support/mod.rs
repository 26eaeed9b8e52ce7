//! Helpers that the tests share: the binaries of the library's own tests have it as a module, and
//! the tool, the fuzzers and other packages as the crate `marquetry-testkit`. (As a crate that
//! depends on the library it would have the library built twice for its unit tests.)

#![allow(
    dead_code,
    missing_docs,
    unused_imports,
    unreachable_pub,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "no API; no binary uses all of it, and tests fail where they must"
)]

pub mod cells;
pub mod encode;
#[cfg(feature = "full")]
pub mod faults;
pub mod files;
pub mod generate;
pub mod heap;
#[cfg(feature = "full")]
pub mod mutants;
pub mod nests;
pub mod numbered;
pub mod row_groups;
pub mod predicates;

pub use files::*;
