//! [`MarquetryEngine`]: an engine with another Parquet handler.

use std::fmt;
use std::sync::Arc;

use delta_kernel::{Engine, EvaluationHandler, JsonHandler, ParquetHandler, StorageHandler};
use object_store::ObjectStore;

use crate::MarquetryParquetHandler;

/// An [`Engine`] that reads and writes Parquet files by marquetry, and does all else by another
/// engine.
pub struct MarquetryEngine {
    inner: Arc<dyn Engine>,
    parquet: Arc<MarquetryParquetHandler>,
}

impl MarquetryEngine {
    /// Wraps `inner`, whose files are in `store`.
    ///
    /// Files with a presigned URL are read by the Parquet handler of `inner`.
    pub fn new(inner: Arc<dyn Engine>, store: Arc<dyn ObjectStore>) -> Self {
        let handler = MarquetryParquetHandler::new(store);
        let handler = handler.with_presigned(inner.parquet_handler());
        Self::with_handler(inner, handler)
    }

    /// Wraps `inner`, with a handler whose options were set.
    pub fn with_handler(inner: Arc<dyn Engine>, handler: MarquetryParquetHandler) -> Self {
        Self { inner, parquet: Arc::new(handler) }
    }

    /// The engine that does all else.
    pub fn inner(&self) -> &Arc<dyn Engine> {
        &self.inner
    }
}

impl fmt::Debug for MarquetryEngine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MarquetryEngine").field("parquet", &self.parquet).finish_non_exhaustive()
    }
}

impl Engine for MarquetryEngine {
    fn evaluation_handler(&self) -> Arc<dyn EvaluationHandler> {
        self.inner.evaluation_handler()
    }

    fn storage_handler(&self) -> Arc<dyn StorageHandler> {
        self.inner.storage_handler()
    }

    fn json_handler(&self) -> Arc<dyn JsonHandler> {
        self.inner.json_handler()
    }

    fn parquet_handler(&self) -> Arc<dyn ParquetHandler> {
        self.parquet.clone()
    }
}
