//! Exports: many streams to many files.

mod files;
mod partitions;
