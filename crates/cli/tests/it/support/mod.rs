//! Helpers that the tests of the tool share.

pub mod folder;

pub use marquetry_testkit::files::*;
pub use marquetry_testkit::{nests, numbered};
