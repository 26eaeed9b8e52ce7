//! What the bytes of a file mean: its structure, pages, encodings, codecs, and what cannot be.

mod codecs;
mod contradictions;
mod encodings;
mod file_structure;
mod pages;
mod values_of_no_bytes;
