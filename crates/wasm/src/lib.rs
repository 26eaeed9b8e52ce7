//! Parquet in a browser: what `js/marquetry.js` calls.
//!
//! A file is opened from a source of JavaScript, which provides ranges of its bytes: an HTTP
//! server, a dropped file, or bytes in memory. Batches are handed over as Arrow IPC streams.
//! Everything runs on the thread that calls; requests of a read run side by side.
//!
//! `unsafe` is in no line of this crate; the code that wasm-bindgen generates has its own.

#![cfg_attr(test, allow(clippy::unwrap_used))]

mod error;
mod requests;
mod source;
mod keys;
mod text;
mod chunks;
mod facts;
mod map;
mod batches;
mod file;

pub use batches::Batches;
pub use file::File;
pub use keys::Keys;

use wasm_bindgen::prelude::wasm_bindgen;

#[wasm_bindgen]
extern "C" {
    #[wasm_bindgen(js_namespace = console, js_name = error)]
    fn log_error(text: &str);
}

/// Runs when the module is loaded: a defect of this library that ends it is told to the console.
#[wasm_bindgen(start)]
pub fn start() {
    std::panic::set_hook(Box::new(|info| log_error(&format!("marquetry: {info}"))));
}
