#![doc = include_str!("../README.md")]

mod engine;
mod error;
mod runtime;
mod filter;
mod plan;
mod reshape;
mod read;
mod write;
mod handler;

pub use engine::MarquetryEngine;
pub use handler::MarquetryParquetHandler;
