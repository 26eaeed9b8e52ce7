//! Tests of writing: the rules of the specification, the files, and where they go.

#[cfg(feature = "object_store")]
mod asynchronous;
mod encoded_sizes;
mod encodings_of_readers;
mod failing_sinks;
#[cfg(feature = "check")]
mod filling;
mod leaves;
mod metadata_is_true;
#[cfg(feature = "check")]
mod odd_copies;
pub mod round_trip;
mod random_rewrites;
mod rewriting;
mod rules;
#[cfg(feature = "check")]
mod salvage;
mod shared_bytes;
mod sorting;
mod spilling;
#[cfg(feature = "check")]
mod untrue_places;
