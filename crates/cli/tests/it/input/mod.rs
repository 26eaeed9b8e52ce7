//! Tests of input: the files that are read.

mod folders_and_globs;
