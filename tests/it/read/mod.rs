//! Tests of reading: which rows, in which batches, on how many threads, from which source.

#[cfg(feature = "object_store")]
mod asynchronous;
mod batch_sizes;
mod damaged_pages;
mod chunks_in_other_files;
mod datasets;
mod deletion_vectors;
mod divided;
mod few_rows;
mod leaf_entries;
mod files_of_other_writers;
mod partitions;
mod read_again;
pub mod row_selection;
mod threads;
