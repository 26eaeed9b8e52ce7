//! Which files are read.

mod folders_and_globs;
