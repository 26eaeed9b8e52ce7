//! Tests of the library's interface as a whole: its stages and types, errors, C streams, spans.

#[cfg(feature = "ffi")]
mod c_streams;
mod errors;
mod readers;
mod stages_and_types;
#[cfg(feature = "tracing")]
mod tracing_spans;
