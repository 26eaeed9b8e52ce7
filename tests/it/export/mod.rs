//! Tests of exports: many streams to many files.

mod files;
mod partitions;
