#[path = "../../../../src/io/job_queue.rs"]
mod job_queue;
pub(crate) mod pool;
pub(crate) mod scenario;
