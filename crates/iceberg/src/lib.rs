//! Data files of Apache Iceberg, written by marquetry.
//!
//! [`MarquetryWriterBuilder`] takes the place of iceberg's `ParquetWriterBuilder`: below
//! `RollingFileWriter`, `DataFileWriter` and whatever stands on them. [`data_file`] makes the entry
//! of a manifest from the report of any writer of marquetry.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use iceberg::io::FileIO;
//! use iceberg::spec::{NestedField, PrimitiveType, Schema, Type};
//! use iceberg::writer::file_writer::{FileWriter, FileWriterBuilder};
//! use marquetry_iceberg::MarquetryWriterBuilder;
//!
//! # async fn write(batch: arrow_array_58::RecordBatch) -> iceberg::Result<()> {
//! let id = NestedField::required(1, "id", Type::Primitive(PrimitiveType::Long));
//! let schema = Arc::new(Schema::builder().with_fields([Arc::new(id)]).build()?);
//! let file = FileIO::new_with_fs().new_output("/table/data/00000.parquet")?;
//! let mut writer = MarquetryWriterBuilder::new(schema).build(file).await?;
//! writer.write(&batch).await?;
//! let data_files = writer.close().await?;
//! # Ok(())
//! # }
//! ```

mod arrow;
mod metrics;
mod writer;

pub use metrics::data_file;
pub use writer::{MarquetryWriter, MarquetryWriterBuilder};

/// An error of marquetry as one of iceberg.
pub(crate) fn failed(error: marquetry::Error) -> iceberg::Error {
    use marquetry::ErrorKind;
    let kind = match error.kind() {
        ErrorKind::Malformed(_) | ErrorKind::Usage | ErrorKind::Arrow => {
            iceberg::ErrorKind::DataInvalid
        }
        ErrorKind::Unsupported(_) | ErrorKind::FeatureDisabled(_) => {
            iceberg::ErrorKind::FeatureUnsupported
        }
        _ => iceberg::ErrorKind::Unexpected,
    };
    iceberg::Error::new(kind, error.to_string()).with_source(error)
}
