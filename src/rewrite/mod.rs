//! Whole files made anew from others, page by page: no value is decoded.
//!
//! [`recrypt`] gives a file another protection: it encrypts, decrypts, or changes keys.

mod page_copier;
mod recrypt;

pub use recrypt::{Recrypted, recrypt};

#[cfg(all(test, feature = "encryption"))]
mod tests;
