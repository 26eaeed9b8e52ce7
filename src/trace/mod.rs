//! Spans of the `tracing` crate around the stages of a read and a write, with the feature
//! `tracing`; without it, nothing at all.
//!
//! ```text
//!  open ─ plan ─ row_group (fetch, prune) ─ decode        write_row_group ─ finish
//! ```
//!
//! All are of the target `marquetry` and the level DEBUG, `decode` of TRACE. Trap: a span that is
//! entered must not be held where a future may wait.

#[cfg_attr(feature = "tracing", path = "enabled.rs")]
#[cfg_attr(not(feature = "tracing"), path = "disabled.rs")]
mod spans;

pub(crate) use spans::{decode, finish, open, plan, row_group, write_row_group};
