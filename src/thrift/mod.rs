//! The thrift compact protocol.

pub(crate) mod derive;
mod unknown;

pub use unknown::Unknown;
