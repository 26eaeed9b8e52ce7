#[path = "../../../../../src/write/column/parallelism.rs"]
pub(crate) mod parallelism;
pub(crate) mod dictionary;
