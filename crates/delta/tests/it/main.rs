//! The handler beside the contract of the kernel, and beside the kernel's own handler.
#![expect(clippy::cast_possible_truncation, reason = "small numbers of rows")]

mod support;

mod columns;
mod deletion_vectors;
mod golden;
mod predicates;
mod random;
mod tables;
mod timing;
mod variants;
mod writes;
