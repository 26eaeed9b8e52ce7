//! Rewrites whole files without decoding a value.
//!
//! [`Rewrite`] copies row groups of one or several files into a new one; [`recrypt`] changes how a
//! file is protected.
//!
//! | file | what it does |
//! |---|---|
//! | `page_copier` | a page under another protection |
//! | `output` | where the bytes go |
//! | `inputs` | what one footer can say for all files |
//! | `splice` | copies the chunks, and what is around them |
//! | `files`, `recrypt` | the public interface |

mod page_copier;
mod output;
mod inputs;
mod splice;
mod files;
mod recrypt;

pub use files::{PlannedChunks, PlannedRowGroup, Rewrite, RewritePlan, Rewritten};
pub use recrypt::{Recrypted, recrypt};

#[cfg(all(test, feature = "encryption"))]
mod tests;
