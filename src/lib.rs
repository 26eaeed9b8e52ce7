//! Marquetry is an Arrow-native Apache Parquet reader.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    test,
    allow(clippy::unwrap_used, clippy::cast_possible_truncation, clippy::cast_sign_loss)
)]

pub mod bytes;
pub mod compress;
pub mod encoding;
pub mod error;
pub mod format;
pub mod io;
pub mod levels;
pub mod limits;
pub mod page;
pub mod read;
pub mod reader;
pub mod schema;
pub mod simd;
pub mod thrift;
mod trusted;

pub use {arrow_array, arrow_schema};

pub use error::{At, Error, ErrorKind, LimitKind, Result, Spec};
pub use limits::{Budget, Limits, Reservation};
pub use reader::{Batches, PageIndex, Reader, Threads};
