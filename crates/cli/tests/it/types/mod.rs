//! Types with forms of their own.

mod geometry;
mod variant;
