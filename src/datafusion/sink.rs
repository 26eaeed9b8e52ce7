//! [`MarquetrySink`]: what `COPY` and `INSERT` write, one file per task.
//!
//! Rows wait until a row group is full, and their bytes are reserved from the memory pool of
//! DataFusion meanwhile. If the pool has no room, the row group ends early.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use async_trait::async_trait;
use datafusion_common::config::TableParquetOptions;
use datafusion_common::{DataFusionError, Result};
use datafusion_common_runtime::{JoinSet, SpawnedTask};
use datafusion_datasource::display::FileGroupDisplay;
use datafusion_datasource::file_sink_config::{FileSink, FileSinkConfig};
use datafusion_datasource::sink::DataSink;
use datafusion_datasource::write::demux::DemuxedStreamReceiver;
use datafusion_datasource::write::get_writer_schema;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::{
    ExecutionPlanMetricsSet, MetricBuilder, MetricCategory, MetricsSet,
};
use datafusion_physical_plan::{DisplayAs, DisplayFormatType};
use object_store::ObjectStore;

use super::write_options::write_options;
use crate::io::StoreSink;
use crate::write::{SortColumn, WriteOptions, WriteReport};
use crate::writer::{AsyncWriter, RowGroupEncoder};

/// Writes the rows of a query to Parquet files.
///
/// The options of DataFusion are taken as those of [`WriteOptions`]; one that is set and has no
/// counterpart is an error that names it. Columns are encoded in parallel, unless
/// `allow_single_file_parallelism` is false.
#[derive(Debug)]
pub struct MarquetrySink {
    config: FileSinkConfig,
    options: TableParquetOptions,
    sort_order: Vec<SortColumn>,
    metrics: ExecutionPlanMetricsSet,
}

impl MarquetrySink {
    /// A sink that is configured so.
    pub fn new(config: FileSinkConfig, options: TableParquetOptions) -> Self {
        let metrics = ExecutionPlanMetricsSet::new();
        Self { config, options, sort_order: Vec::new(), metrics }
    }

    /// Notes in the files that their rows are sorted so, as the plan says.
    #[must_use]
    pub fn with_sort_order(mut self, sort_order: Vec<SortColumn>) -> Self {
        self.sort_order = sort_order;
        self
    }

    fn write_options(&self) -> Result<WriteOptions> {
        let options = write_options(&self.options)?;
        Ok(match self.sort_order.is_empty() {
            true => options,
            false => options.with_unchecked_sort_order(self.sort_order.iter().cloned()),
        })
    }
}

impl DisplayAs for MarquetrySink {
    fn fmt_as(&self, t: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if t == DisplayFormatType::TreeRender {
            return Ok(());
        }
        f.write_str("MarquetrySink(file_groups=")?;
        FileGroupDisplay(&self.config.file_group).fmt_as(t, f)?;
        f.write_str(")")
    }
}

#[async_trait]
impl FileSink for MarquetrySink {
    fn config(&self) -> &FileSinkConfig {
        &self.config
    }

    async fn spawn_writer_tasks_and_join(
        &self,
        context: &Arc<TaskContext>,
        demux_task: SpawnedTask<Result<()>>,
        mut files: DemuxedStreamReceiver,
        store: Arc<dyn ObjectStore>,
    ) -> Result<u64> {
        let rows_written = MetricBuilder::new(&self.metrics)
            .with_category(MetricCategory::Rows)
            .global_counter("rows_written");
        let bytes_written = MetricBuilder::new(&self.metrics)
            .with_category(MetricCategory::Bytes)
            .global_counter("bytes_written");
        let options = self.write_options()?;
        let mut encoder = RowGroupEncoder::new(get_writer_schema(&self.config), options)?;
        if !self.options.global.allow_single_file_parallelism {
            encoder = encoder.with_threads(1)?;
        }
        let mut tasks = JoinSet::new();
        while let Some((path, mut batches)) = files.recv().await {
            let reservation = MemoryConsumer::new(format!("MarquetrySink[{path}]"))
                .register(context.memory_pool());
            let sink = StoreSink::new(Arc::clone(&store), path);
            let mut file = OneFile::new(AsyncWriter::over(sink, encoder.clone()), reservation);
            tasks.spawn(async move {
                while let Some(batch) = batches.recv().await {
                    if let Err(e) = file.write(&batch).await {
                        // What was begun of the file is removed; the first error counts.
                        let _ = file.writer.abort().await;
                        return Err(e);
                    }
                }
                Ok(file.writer.finish().await?)
            });
        }
        while let Some(done) = tasks.join_next().await {
            let report: WriteReport = match done {
                Ok(done) => done?,
                Err(e) if e.is_panic() => std::panic::resume_unwind(e.into_panic()),
                Err(e) => return Err(DataFusionError::ExecutionJoin(Box::new(e))),
            };
            rows_written.add(usize::try_from(report.rows).unwrap_or(usize::MAX));
            bytes_written.add(usize::try_from(report.bytes).unwrap_or(usize::MAX));
        }
        let demuxed = demux_task.join_unwind().await;
        demuxed.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)))??;
        Ok(rows_written.value() as u64)
    }
}

/// A file that is written, and the memory for its rows.
struct OneFile {
    writer: AsyncWriter<StoreSink>,
    reservation: MemoryReservation,
    /// Bytes of the file when rows were last known to be encoded.
    written: u64,
}

impl OneFile {
    fn new(writer: AsyncWriter<StoreSink>, reservation: MemoryReservation) -> Self {
        Self { writer, reservation, written: 0 }
    }

    async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let bytes = batch.get_array_memory_size();
        if self.reservation.try_grow(bytes).is_err() {
            self.writer.flush().await?;
            self.reservation.resize(0);
            self.reservation.try_grow(bytes)?;
        }
        self.writer.write(batch).await?;
        if self.writer.bytes_written() > self.written {
            // A row group went out, and with it the rows that waited.
            self.written = self.writer.bytes_written();
            self.reservation.resize(0);
        }
        Ok(())
    }
}

#[async_trait]
impl DataSink for MarquetrySink {
    fn metrics(&self) -> Option<MetricsSet> {
        Some(self.metrics.clone_inner())
    }

    fn schema(&self) -> &SchemaRef {
        self.config.output_schema()
    }

    async fn write_all(
        &self,
        data: SendableRecordBatchStream,
        context: &Arc<TaskContext>,
    ) -> Result<u64> {
        FileSink::write_all(self, data, context).await
    }
}
