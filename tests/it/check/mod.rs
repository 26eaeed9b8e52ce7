//! Files are checked: those that state nothing but the truth have no finding, and each planted lie
//! is found, at its place, and nothing else.

mod geo_key;
mod healthy;
mod lies;
mod group_lies;
mod model;
mod memory;
mod summaries;
