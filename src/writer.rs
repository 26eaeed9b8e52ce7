//! [`Writer`] writes record batches into a Parquet file.

mod row_group_encoder;
mod leaf_writer;
mod file_encoder;
mod side_footer;
mod file;
#[cfg(feature = "async")]
mod upload;

pub use file::Writer;
pub(crate) use file_encoder::FileEncoder;
pub use leaf_writer::LeafWriter;
pub use row_group_encoder::RowGroupEncoder;
#[cfg(feature = "async")]
pub use upload::AsyncWriter;
