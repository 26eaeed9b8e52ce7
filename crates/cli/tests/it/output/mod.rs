//! What is shown and written of files.

mod display;
mod forms;
mod hexdump;
