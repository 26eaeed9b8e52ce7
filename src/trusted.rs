//! trusted
