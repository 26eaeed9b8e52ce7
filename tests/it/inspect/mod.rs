//! Files as trees of spans.

mod article;
mod broken;
mod spans;
mod tiling;
mod values;
