//! The integration tests: one binary, one module a section of the checklist. README.md maps line to test.

mod arrow;
mod cli;
mod codecs;
mod container;
mod encodings;
mod pages;
mod support;
mod truth;
mod types;
