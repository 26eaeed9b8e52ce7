//! The simulation of faults of the library's own tests, optimised and with the checks of this
//! crate's profiles:
//!
//! ```text
//! MARQUETRY_CASES=100000 cargo test --release --test faults
//! ```

use marquetry_testkit as support;

#[path = "../../tests/it/faults/mod.rs"]
mod faults;
