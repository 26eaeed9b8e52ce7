//! [`MarquetryFormat`]: the file format, and the factory by which a session makes it.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Schema, SchemaRef};
use async_trait::async_trait;
use datafusion_common::config::{ConfigField, TableParquetOptions};
use datafusion_common::parsers::CompressionTypeVariant;
use datafusion_common::{DataFusionError, GetExt, Result, Statistics};
use datafusion_datasource::TableSchema;
use datafusion_datasource::file::FileSource;
use datafusion_datasource::file_compression_type::FileCompressionType;
use datafusion_datasource::file_format::{FileFormat, FileFormatFactory, FileMeta};
use datafusion_datasource::file_scan_config::{FileScanConfig, FileScanConfigBuilder};
use datafusion_datasource::file_sink_config::FileSinkConfig;
use datafusion_datasource::sink::DataSinkExec;
use datafusion_datasource::source::DataSourceExec;
use datafusion_datasource::write::get_writer_schema;
use datafusion_expr::dml::InsertOp;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr_common::sort_expr::{LexOrdering, LexRequirement, PhysicalSortExpr};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_session::Session;
use futures_util::{StreamExt, TryStreamExt};
use object_store::{ObjectMeta, ObjectStore};

use crate::schema::{TypeOptions, with_views, without_metadata};
use crate::settings::{ScanSettings, check_options};
use crate::sink::MarquetrySink;
use crate::source::MarquetrySource;
use crate::write_options::write_options;
use crate::{metadata, statistics};
use marquetry::{Metadata, RowGroupEncoder, SortColumn, WriteOptions};

/// Makes [`MarquetryFormat`]s for a session: registered in place of the factory that DataFusion
/// has for `parquet`, it makes `CREATE EXTERNAL TABLE … STORED AS PARQUET` and `COPY` go through
/// this crate.
#[derive(Debug, Clone, Default)]
pub struct MarquetryFormatFactory {
    options: Option<TableParquetOptions>,
    settings: ScanSettings,
}

impl MarquetryFormatFactory {
    /// Goes by the options of the session.
    pub fn new() -> Self {
        <Self as Default>::default()
    }

    /// Uses these options, whatever those of the session are.
    #[must_use]
    pub fn with_options(mut self, options: TableParquetOptions) -> Self {
        self.options = Some(options);
        self
    }

    /// Passes these settings to its formats. Their options are those of the session or of
    /// [`with_options`](Self::with_options).
    #[must_use]
    pub fn with_settings(mut self, settings: ScanSettings) -> Self {
        self.settings = settings;
        self
    }

    #[cfg(feature = "proto")]
    pub(crate) fn options(&self) -> Option<&TableParquetOptions> {
        self.options.as_ref()
    }

    #[cfg(feature = "proto")]
    pub(crate) fn settings(&self) -> &ScanSettings {
        &self.settings
    }

    fn format(&self, options: TableParquetOptions) -> MarquetryFormat {
        MarquetryFormat { settings: self.settings.clone().with_options(options) }
    }
}

impl GetExt for MarquetryFormatFactory {
    fn get_ext(&self) -> String {
        EXTENSION.to_owned()
    }
}

impl FileFormatFactory for MarquetryFormatFactory {
    fn create(
        &self,
        state: &dyn Session,
        format_options: &HashMap<String, String>,
    ) -> Result<Arc<dyn FileFormat>> {
        let mut of_session = state.default_table_options();
        let mut options = self.options.clone().unwrap_or_else(|| of_session.parquet.clone());
        for (key, value) in format_options {
            match key.strip_prefix("format.") {
                Some(key) => options.set(key, value)?,
                None if self.options.is_some() => options.set(key, value)?,
                // An option of an extension, or a wrong one.
                None => of_session.set(key, value)?,
            }
        }
        check_options(&options)?;
        let mut format = self.format(options);
        // DataFusion's default is false, which expresses no wish of the user.
        let is_pushdown = |key: &str| key.rsplit('.').next() == Some("pushdown_filters");
        if let Some((_, value)) = format_options.iter().find(|(key, _)| is_pushdown(key)) {
            format.settings = format.settings.with_pushdown(value.eq_ignore_ascii_case("true"));
        }
        Ok(Arc::new(format))
    }

    fn default(&self) -> Arc<dyn FileFormat> {
        Arc::new(self.format(self.options.clone().unwrap_or_default()))
    }
}

/// Ending of the names of files.
const EXTENSION: &str = "parquet";

/// Parquet files, read and written by this crate.
#[derive(Debug, Clone, Default)]
pub struct MarquetryFormat {
    settings: ScanSettings,
}

impl MarquetryFormat {
    /// With the options that DataFusion has by default.
    pub fn new() -> Self {
        <Self as Default>::default()
    }

    /// Goes by these settings.
    #[must_use]
    pub fn with_settings(self, settings: ScanSettings) -> Self {
        Self { settings }
    }

    /// The settings that it goes by.
    pub fn settings(&self) -> &ScanSettings {
        &self.settings
    }

    fn options(&self) -> &TableParquetOptions {
        self.settings.options()
    }

    async fn metadata(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        object: &ObjectMeta,
    ) -> Result<Metadata> {
        check_options(self.options())?;
        let cache = state.runtime_env().cache_manager.get_file_metadata_cache();
        let (limits, hint) = (self.settings.limits(), self.settings.size_hint());
        Ok(metadata::fetch(store, object, Some(&*cache), limits, hint).await?.metadata)
    }
}

impl fmt::Display for MarquetryFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("marquetry")
    }
}

#[async_trait]
impl FileFormat for MarquetryFormat {
    fn get_ext(&self) -> String {
        EXTENSION.to_owned()
    }

    fn get_ext_with_compression(&self, compression: &FileCompressionType) -> Result<String> {
        match compression.get_variant() {
            CompressionTypeVariant::UNCOMPRESSED => Ok(EXTENSION.to_owned()),
            other => Err(DataFusionError::Plan(format!(
                "Parquet files are not compressed as a whole, and {other} was asked for: the codec \
                 of their pages is the option compression"
            ))),
        }
    }

    fn compression_type(&self) -> Option<FileCompressionType> {
        None
    }

    async fn infer_schema(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        objects: &[ObjectMeta],
    ) -> Result<SchemaRef> {
        let global = &self.options().global;
        let types = TypeOptions::new(global)?;
        let width = state.config_options().execution.meta_fetch_concurrency.get();
        let types = &types;
        let of_object = |object: &'_ ObjectMeta| {
            let object = object.clone();
            async move {
                let metadata = self.metadata(state, store, &object).await?;
                Ok::<_, DataFusionError>((object.location, types.schema_of(&metadata)?))
            }
        };
        let found = futures_util::stream::iter(objects).map(of_object);
        let mut found: Vec<_> = found.boxed().buffer_unordered(width).try_collect().await?;
        found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        let schemas = found.into_iter().map(|(_, schema)| match global.skip_metadata {
            true => without_metadata(&schema),
            false => schema,
        });
        let schema = Schema::try_merge(schemas)?;
        Ok(Arc::new(if global.schema_force_view_types { with_views(&schema) } else { schema }))
    }

    async fn infer_stats(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Statistics> {
        statistics::of_file(&self.metadata(state, store, object).await?, &table_schema)
    }

    async fn infer_ordering(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<Option<LexOrdering>> {
        Ok(statistics::ordering(&self.metadata(state, store, object).await?, &table_schema))
    }

    async fn infer_stats_and_ordering(
        &self,
        state: &dyn Session,
        store: &Arc<dyn ObjectStore>,
        table_schema: SchemaRef,
        object: &ObjectMeta,
    ) -> Result<FileMeta> {
        let metadata = self.metadata(state, store, object).await?;
        let ordering = statistics::ordering(&metadata, &table_schema);
        Ok(FileMeta::new(statistics::of_file(&metadata, &table_schema)?).with_ordering(ordering))
    }

    async fn create_physical_plan(
        &self,
        state: &dyn Session,
        config: FileScanConfig,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let source = config.file_source().downcast_ref::<MarquetrySource>().cloned();
        let Some(source) = source else {
            return datafusion_common::internal_err!(
                "marquetry: the scan is of a {} source, expected a MarquetrySource",
                config.file_source().file_type()
            );
        };
        let cache = state.runtime_env().cache_manager.get_file_metadata_cache();
        let pool = Arc::clone(&state.runtime_env().memory_pool);
        let settings = source.settings().clone().with_options(self.options().clone());
        let source = source.with_settings(settings);
        let source = source.with_metadata_cache(cache).with_memory_pool(pool);
        let orders = statistics::orders_across_files(&config);
        let config = FileScanConfigBuilder::from(config)
            .with_source(Arc::new(source))
            .with_output_ordering(orders)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    async fn create_writer_physical_plan(
        &self,
        input: Arc<dyn ExecutionPlan>,
        _state: &dyn Session,
        config: FileSinkConfig,
        order: Option<LexRequirement>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if config.insert_op != InsertOp::Append {
            return Err(DataFusionError::NotImplemented(
                "marquetry: INSERT OVERWRITE: write to a new folder".to_owned(),
            ));
        }
        // A fault of the options is reported when the query is planned.
        write_options(self.options())?;
        sink_of(config, self.options().clone(), input, order)
    }

    fn file_source(&self, table_schema: TableSchema) -> Arc<dyn FileSource> {
        let source = MarquetrySource::new(table_schema).with_settings(self.settings.clone());
        Arc::new(source)
    }
}

/// The node that writes the rows of `input`, which come in `order`.
pub(crate) fn sink_of(
    config: FileSinkConfig,
    options: TableParquetOptions,
    input: Arc<dyn ExecutionPlan>,
    order: Option<LexRequirement>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let sorted = order.as_ref().map(|order| sort_columns(order, &config)).unwrap_or_default();
    let sink = MarquetrySink::new(config, options).with_sort_order(sorted);
    Ok(Arc::new(DataSinkExec::new(input, Arc::new(sink), order)))
}

/// The order of the rows in terms of the columns that are written, as far as a file can state it.
fn sort_columns(order: &LexRequirement, config: &FileSinkConfig) -> Vec<SortColumn> {
    let order: LexOrdering = order.clone().into();
    let written = get_writer_schema(config);
    let key = |key: &PhysicalSortExpr| {
        let column = key.expr.downcast_ref::<Column>()?;
        let field = config.output_schema().fields().get(column.index())?;
        let is_claimed =
            is_ordered_in_files(field.data_type()) && written.field_with_name(field.name()).is_ok();
        let sorted = match key.options.descending {
            true => SortColumn::descending(field.name()),
            false => SortColumn::ascending(field.name()),
        };
        is_claimed.then(|| if key.options.nulls_first { sorted.nulls_first() } else { sorted })
    };
    let mut claimed: Vec<SortColumn> = order.iter().map_while(key).collect();
    // The library refuses columns without an order, and names that two columns have. A prefix of
    // an order is an order; an error of another cause returns when the files are begun.
    let is_stated = |claimed: &[SortColumn]| {
        let options = WriteOptions::new().with_unchecked_sort_order(claimed.iter().cloned());
        RowGroupEncoder::new(Arc::clone(&written), options).is_ok()
    };
    while !claimed.is_empty() && !is_stated(&claimed) {
        claimed.pop();
    }
    claimed
}

/// Whether files order values as DataFusion does: not floats, whose zeros and NaNs have an order of
/// their own in both, and not what holds other values.
fn is_ordered_in_files(data_type: &DataType) -> bool {
    match data_type {
        DataType::Dictionary(_, values) => is_ordered_in_files(values),
        DataType::RunEndEncoded(_, values) => is_ordered_in_files(values.data_type()),
        other => !other.is_nested() && !other.is_floating(),
    }
}
