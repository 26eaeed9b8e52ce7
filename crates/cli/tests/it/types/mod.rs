//! Tests of types with output forms of their own.

mod geometry;
mod geoparquet;
mod variant;
