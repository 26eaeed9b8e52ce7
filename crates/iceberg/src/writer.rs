//! [`MarquetryWriter`]: iceberg's file writer.

use std::fmt;

use arrow_array_58::RecordBatch as Batch58;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use iceberg::arrow::schema_to_arrow_schema;
use iceberg::io::{FileWrite, OutputFile};
use iceberg::spec::{DataFileBuilder, SchemaRef};
use iceberg::writer::CurrentFileStatus;
use iceberg::writer::file_writer::{FileWriter, FileWriterBuilder};
use marquetry::io::AsyncSink;
use marquetry::{AsyncWriter, WriteOptions};

use crate::{arrow, data_file, failed};

/// Makes the writers of data files.
#[derive(Debug, Clone)]
pub struct MarquetryWriterBuilder {
    schema: SchemaRef,
    options: WriteOptions,
}

impl MarquetryWriterBuilder {
    /// Of files with this schema.
    pub fn new(schema: SchemaRef) -> Self {
        Self { schema, options: WriteOptions::default() }
    }

    /// Sets how they are written.
    #[must_use]
    pub fn with_options(mut self, options: WriteOptions) -> Self {
        self.options = options;
        self
    }
}

impl FileWriterBuilder for MarquetryWriterBuilder {
    type R = MarquetryWriter;

    async fn build(&self, output_file: OutputFile) -> iceberg::Result<Self::R> {
        Ok(MarquetryWriter {
            schema: self.schema.clone(),
            options: self.options.clone(),
            output_file,
            writer: None,
            rows: 0,
        })
    }
}

/// Writes one data file. Without a row, there is no file.
pub struct MarquetryWriter {
    schema: SchemaRef,
    options: WriteOptions,
    output_file: OutputFile,
    /// Once there is a row.
    writer: Option<AsyncWriter<IcebergSink>>,
    rows: usize,
}

impl fmt::Debug for MarquetryWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MarquetryWriter").field("output_file", &self.output_file).finish()
    }
}

impl FileWriter for MarquetryWriter {
    async fn write(&mut self, batch: &Batch58) -> iceberg::Result<()> {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        if self.writer.is_none() {
            let (schema, _) = arrow::import(&schema_to_arrow_schema(&self.schema)?, &[])?;
            let sink = IcebergSink(self.output_file.writer().await?);
            let writer = AsyncWriter::new(sink, schema, self.options.clone()).map_err(failed)?;
            self.writer = Some(writer);
        }
        let (_, batches) = arrow::import(&batch.schema(), std::slice::from_ref(batch))?;
        if let Some(writer) = &mut self.writer {
            for batch in &batches {
                writer.write(batch).await.map_err(failed)?;
            }
        }
        self.rows += batch.num_rows();
        Ok(())
    }

    async fn close(self) -> iceberg::Result<Vec<DataFileBuilder>> {
        let Some(writer) = self.writer else { return Ok(Vec::new()) };
        let report = writer.finish().await.map_err(failed)?;
        Ok(vec![data_file(&report, &self.schema, self.output_file.location())?])
    }
}

impl CurrentFileStatus for MarquetryWriter {
    fn current_file_path(&self) -> String {
        self.output_file.location().to_owned()
    }

    fn current_row_num(&self) -> usize {
        self.rows
    }

    fn current_written_size(&self) -> usize {
        let bytes = self.writer.as_ref().map_or(0, AsyncWriter::estimated_bytes);
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

/// The file of iceberg that bytes go to.
struct IcebergSink(Box<dyn FileWrite>);

impl AsyncSink for IcebergSink {
    fn write(&mut self, bytes: Vec<Bytes>) -> BoxFuture<'_, marquetry::Result<()>> {
        Box::pin(async {
            for part in bytes {
                self.0.write(part).await.map_err(|e| not_written(&e))?;
            }
            Ok(())
        })
    }

    fn finish(&mut self) -> BoxFuture<'_, marquetry::Result<()>> {
        Box::pin(async { self.0.close().await.map_err(|e| not_written(&e)) })
    }

    /// Iceberg's files are not given up: one that is not closed is in no manifest.
    fn abort(&mut self) -> BoxFuture<'_, marquetry::Result<()>> {
        Box::pin(async { Ok(()) })
    }
}

fn not_written(error: &iceberg::Error) -> marquetry::Error {
    marquetry::Error::io(
        "the data file cannot be written",
        std::io::Error::other(error.to_string()),
    )
}
