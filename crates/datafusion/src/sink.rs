//! [`MarquetrySink`] writes the rows of `COPY` and `INSERT`, one file per task.
//!
//! Rows wait until a row group is full, are encoded while the next ones come, and go out in parts;
//! meanwhile their bytes are reserved from the memory pool of DataFusion. If the pool is exhausted,
//! the sink waits for the parts that are being uploaded, and then ends the row group early. No file
//! appears before all of them are written: if one fails, or the query does, the others are
//! discarded too.

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
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryLimit, MemoryReservation};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::metrics::{
    Count, ExecutionPlanMetricsSet, MetricBuilder, MetricCategory, MetricsSet, Time,
};
use datafusion_physical_plan::{DisplayAs, DisplayFormatType};
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt};

use crate::error::{settings_error, to_datafusion};
use crate::statistics::saturated;
use crate::write_options::write_options;
use marquetry::engine::batch_bytes;
use marquetry::io::StoreSink;
use marquetry::{AsyncWriter, RowGroupEncoder, SortColumn, WriteOptions, WriteReport};

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

    /// Records in the files that their rows are sorted in this order, as the plan states.
    #[must_use]
    pub fn with_sort_order(mut self, sort_order: Vec<SortColumn>) -> Self {
        self.sort_order = sort_order;
        self
    }

    #[cfg(feature = "proto")]
    pub(crate) fn options(&self) -> &TableParquetOptions {
        &self.options
    }

    fn write_options(&self) -> Result<WriteOptions> {
        let options = write_options(&self.options)?;
        Ok(match self.sort_order.is_empty() {
            true => options,
            false => options.with_unchecked_sort_order(self.sort_order.iter().cloned()),
        })
    }

    fn counter(&self, category: MetricCategory, name: &'static str) -> Count {
        MetricBuilder::new(&self.metrics).with_category(category).global_counter(name)
    }

    fn encoder(&self) -> Result<RowGroupEncoder> {
        let schema = get_writer_schema(&self.config);
        let encoder =
            RowGroupEncoder::new(schema, self.write_options()?).map_err(settings_error)?;
        match self.options.global.allow_single_file_parallelism {
            true => Ok(encoder),
            false => encoder.with_threads(1).map_err(to_datafusion),
        }
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
        let rows_written = self.counter(MetricCategory::Rows, "rows_written");
        let bytes_written = self.counter(MetricCategory::Bytes, "bytes_written");
        let encoder = self.encoder()?;
        let compute = MetricBuilder::new(&self.metrics).elapsed_compute(0);
        let mut tasks = JoinSet::new();
        while let Some((path, mut batches)) = files.recv().await {
            let reservation = MemoryConsumer::new(format!("MarquetrySink[{path}]"))
                .register(context.memory_pool());
            let sink = StoreSink::new(Arc::clone(&store), path.clone());
            let sink = match context.memory_pool().memory_limit() {
                MemoryLimit::Finite(bytes) => sink.with_memory(bytes as u64 / POOL_PART),
                _ => sink,
            };
            let writer = AsyncWriter::over(sink, encoder.clone());
            let mut file = OneFile { path, writer, reservation, compute: compute.clone() };
            tasks.spawn(async move {
                let written = async {
                    while let Some(batch) = batches.recv().await {
                        file.write(&batch).await?;
                    }
                    file.flush().await
                };
                let written = written.await;
                file.unless_failed(written).await
            });
        }
        let (written, mut failed) = joined(tasks).await;
        // Why there are no more rows: at their end, or after an error.
        let demuxed = demux_task.join_unwind().await;
        let demuxed = demuxed.map_err(|e| DataFusionError::ExecutionJoin(Box::new(e)));
        if let Err(e) = demuxed.and_then(|demuxed| demuxed) {
            failed.get_or_insert(e);
        }
        if let Some(e) = failed {
            for file in written {
                let _ = file.writer.abort().await;
            }
            return Err(e);
        }
        let mut tasks = JoinSet::new();
        for file in written {
            tasks.spawn(file.finish());
        }
        let (finished, failed) = joined(tasks).await;
        if let Some(e) = failed {
            for (path, _) in finished {
                // The first error counts.
                let _ = store.delete(&path).await;
            }
            return Err(e);
        }
        for (_, WriteReport { rows, bytes, .. }) in finished {
            rows_written.add(saturated(rows));
            bytes_written.add(saturated(bytes));
        }
        Ok(rows_written.value() as u64)
    }
}

/// Maximum part of a memory pool (one in this many) for the parts of a file that are being
/// uploaded, if that is enough for two.
const POOL_PART: u64 = 8;

/// The results of all tasks, and the first error. The error of one task does not end the others.
async fn joined<T: 'static>(mut tasks: JoinSet<Result<T>>) -> (Vec<T>, Option<DataFusionError>) {
    let (mut out, mut failed) = (Vec::new(), None);
    while let Some(done) = tasks.join_next().await {
        match done {
            Ok(Ok(done)) => out.push(done),
            Ok(Err(e)) => {
                failed.get_or_insert(e);
            }
            Err(e) if e.is_panic() => std::panic::resume_unwind(e.into_panic()),
            Err(e) => {
                failed.get_or_insert(DataFusionError::ExecutionJoin(Box::new(e)));
            }
        }
    }
    (out, failed)
}

/// A file that is written, and the memory for its rows.
struct OneFile {
    path: Path,
    writer: AsyncWriter<StoreSink>,
    reservation: MemoryReservation,
    compute: Time,
}

impl OneFile {
    /// The file, if all rows are `written`. After an error the unfinished file is removed.
    async fn unless_failed(self, written: Result<()>) -> Result<Self> {
        match written {
            Ok(()) => Ok(self),
            Err(e) => {
                // The first error counts.
                let _ = self.writer.abort().await;
                Err(e)
            }
        }
    }

    async fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        let bytes = saturated(batch_bytes(batch));
        self.reserve(bytes).await?;
        {
            let _timer = self.compute.timer();
            self.writer.write(batch).await.map_err(to_datafusion)?;
        }
        // Row groups that were written are not held any more; those that are being encoded are, and
        // so are the parts that are being uploaded.
        if self.reservation.try_resize(self.held()).is_err() {
            self.drain().await?;
            if self.reservation.try_resize(self.held()).is_err() {
                self.flush().await?;
            }
        }
        self.grow_parts();
        Ok(())
    }

    /// Lets the parts of a large object grow beyond their part of the pool, if the pool has memory
    /// for two of them. Else they stay as they are, as long as the store takes more of them.
    fn grow_parts(&mut self) {
        let reservation = &self.reservation;
        self.writer.grow_parts(|both| {
            let has_room = reservation.try_grow(saturated(both)).is_ok();
            if has_room {
                // Their memory is reserved as they fill.
                reservation.shrink(saturated(both));
            }
            has_room
        });
    }

    /// Reserves `bytes` more bytes.
    async fn reserve(&mut self, bytes: usize) -> Result<()> {
        if self.reservation.try_grow(bytes).is_ok() {
            return Ok(());
        }
        self.drain().await?;
        if self.reservation.try_grow(bytes).is_err() {
            self.flush().await?;
            self.reservation.try_grow(bytes)?;
        }
        Ok(())
    }

    /// Waits until nothing is being uploaded.
    async fn drain(&mut self) -> Result<()> {
        self.writer.drain().await.map_err(to_datafusion)?;
        // It is no more than before.
        self.reservation.resize(self.held().min(self.reservation.size()));
        Ok(())
    }

    /// Encodes and sends the rows that wait.
    async fn flush(&mut self) -> Result<()> {
        {
            let _timer = self.compute.timer();
            self.writer.flush().await.map_err(to_datafusion)?;
        }
        self.writer.drain().await.map_err(to_datafusion)?;
        self.reservation.resize(self.held());
        Ok(())
    }

    /// Makes the file whole, and says where it is.
    async fn finish(self) -> Result<(Path, WriteReport)> {
        let Self { path, writer, reservation, .. } = self;
        let report = writer.finish().await.map_err(to_datafusion)?;
        drop(reservation);
        Ok((path, report))
    }

    fn held(&self) -> usize {
        saturated(self.writer.bytes_held())
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
