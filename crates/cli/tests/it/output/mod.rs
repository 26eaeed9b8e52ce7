//! Tests of what is shown and written of files.

mod display;
mod forms;
mod check;
mod hexdump;
