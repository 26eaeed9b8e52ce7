//! For engines, and for the crates that are published together with this one (feature `engine`).
//!
//! **Outside semver**: any version may change what stands here. Depend on one version
//! (`marquetry = "=0.1.0"`).

pub use crate::calendar::civil_from_days;
