//! The integration tests: one binary, one module for each section of the specification or part of
//! the interface. README.md says which test holds which rule.

#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tests are no API, and fail where they must"
)]

mod api;
mod arrow;
mod batches;
mod cells;
mod codecs;
mod container;
mod contradictions;
mod copies;
mod encodings;
#[cfg(feature = "encryption")]
mod encryption;
mod errors;
mod export;
mod external;
mod faults;
#[cfg(feature = "ffi")]
mod ffi;
mod files;
mod filter;
mod filter_stages;
mod generate;
mod geo;
mod growth;
mod kept_types;
mod lies;
mod metadata;
mod pages;
mod partitions;
mod parts;
mod points;
mod pruning;
mod readers;
mod retries;
mod round_trip;
mod selection;
mod shredding;
mod sinks;
mod sizes;
#[cfg(feature = "tracing")]
mod spans;
#[cfg(feature = "object_store")]
mod streams;
mod support;
mod truth;
mod truth_of_writing;
mod typed_statistics;
mod types;
#[cfg(feature = "object_store")]
mod uploads;
mod waves;
mod writing;
mod zero_width;
