//! Tests of input: the files that are read.

mod damage;
mod folders_and_globs;
mod footers;
mod forged_counts;
