//! Tests of the file format: structure, pages, encodings, codecs, and contradictions.

mod codecs;
mod contradictions;
mod encodings;
mod file_structure;
mod pages;
mod values_of_no_bytes;
