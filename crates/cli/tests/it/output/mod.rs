//! Tests of what is shown and written of files.

mod chunk_parts;
mod display;
mod forms;
mod check;
mod closed_pipe;
mod diff;
mod hexdump;
mod pictures;
mod readers;
mod sizes;
mod shared_values;
