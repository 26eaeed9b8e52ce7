//! Key material.
