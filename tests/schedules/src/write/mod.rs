pub(crate) mod column;

pub(crate) use column::parallelism::{Parallelism, SingleThread};
