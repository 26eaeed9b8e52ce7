//! Rewrites whole files page by page, without decoding a value.
//!
//! [`recrypt`] changes how a file is protected: it encrypts, decrypts, or changes keys.

mod page_copier;
mod recrypt;

pub use recrypt::{Recrypted, recrypt};

#[cfg(all(test, feature = "encryption"))]
mod tests;
