//! [`Splicer`] copies row groups of files into a new one.
//!
//! ```text
//! magic | pages, chunk by chunk | bloom filters | column indexes | offset indexes | footer
//! ```
//!
//! Pages whose protection stays are copied as bytes, without looking at them; others page by page,
//! perhaps with another codec. What cannot be copied is decoded and encoded.
//! The order is that of [`Writer`](crate::Writer). Trap: a checksum covers the stored bytes, and is
//! computed anew where these change. It is verified before that, or a damaged page would get a
//! correct checksum.

mod splicer;
mod chunks;
mod indexes;
mod merged;
mod old_footers;
mod run;

pub(super) use splicer::Splicer;
