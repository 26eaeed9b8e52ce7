//! [`MarquetryTable`]: a table of Parquet files.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, SchemaRef};
use async_trait::async_trait;
use datafusion_catalog_listing::{ListingOptions, ListingTable, ListingTableConfig};
use datafusion_common::{Constraints, Result, Statistics};
use datafusion_datasource::ListingTableUrl;
use datafusion_execution::cache::cache_manager::FileStatisticsCache;
use datafusion_execution::cache::default_cache::DefaultCache;
use datafusion_expr::dml::InsertOp;
use datafusion_expr::{Expr, TableProviderFilterPushDown, TableType};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_session::{ScanArgs, ScanResult, Session, TableProvider};

use crate::format::MarquetryFormat;

/// A table of one Parquet file, of several, or of folders of them.
///
/// ```ignore
/// let table = MarquetryTable::open(&ctx.state(), ["data/2026/"]).await?;
/// ctx.register_table("t", Arc::new(table))?;
/// ```
///
/// Folders such as `year=2026/` become columns, if they are named by
/// [`MarquetryTable::open_partitioned`].
#[derive(Clone)]
pub struct MarquetryTable {
    listing: Arc<ListingTable>,
    format: MarquetryFormat,
    partitions: Vec<(String, DataType)>,
}

impl fmt::Debug for MarquetryTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MarquetryTable")
            .field("paths", self.listing.table_paths())
            .field("format", &self.format)
            .field("partitions", &self.partitions)
            .finish_non_exhaustive()
    }
}

impl MarquetryTable {
    /// The files at `paths`: files, folders (with a `/` at the end), glob patterns, or URLs of
    /// stores that the session knows.
    ///
    /// # Errors
    /// Those of the store; faults of the files; or schemas that do not fit together.
    pub async fn open<P: AsRef<str>>(
        state: &dyn Session,
        paths: impl IntoIterator<Item = P>,
    ) -> Result<Self> {
        Self::open_partitioned(state, paths, [], MarquetryFormat::new()).await
    }

    /// Like [`MarquetryTable::open`], for files in folders named `column=value`, for the columns in
    /// `partitions`; with a format that says how the files are read.
    ///
    /// # Errors
    /// As [`MarquetryTable::open`].
    pub async fn open_partitioned<P: AsRef<str>>(
        state: &dyn Session,
        paths: impl IntoIterator<Item = P>,
        partitions: impl IntoIterator<Item = (String, DataType)>,
        format: MarquetryFormat,
    ) -> Result<Self> {
        let urls = urls(paths)?;
        let partitions: Vec<_> = partitions.into_iter().collect();
        let config = config(&urls, &format, &partitions).infer_schema(state).await?;
        // Not that of the session, where tables without a name share their entries: the orders that
        // DataFusion's own source takes files to have are not always those of their rows.
        let of_session = state.runtime_env().cache_manager.get_file_statistic_cache();
        let cache = of_session.map(|cache| {
            Arc::new(DefaultCache::new(cache.cache_limit())) as Arc<FileStatisticsCache>
        });
        let listing = ListingTable::try_new(config)?.with_cache(cache);
        Ok(Self { listing: Arc::new(listing), format, partitions })
    }

    /// Like [`MarquetryTable::open_partitioned`], for files whose schema is known: nothing is read.
    ///
    /// # Errors
    /// If a path is no URL.
    pub fn with_schema<P: AsRef<str>>(
        schema: SchemaRef,
        paths: impl IntoIterator<Item = P>,
        partitions: impl IntoIterator<Item = (String, DataType)>,
        format: MarquetryFormat,
    ) -> Result<Self> {
        Self::from_urls(schema, &urls(paths)?, partitions.into_iter().collect(), format)
    }

    /// Like [`MarquetryTable::with_schema`], for paths that are parsed.
    pub(crate) fn from_urls(
        schema: SchemaRef,
        urls: &[ListingTableUrl],
        partitions: Vec<(String, DataType)>,
        format: MarquetryFormat,
    ) -> Result<Self> {
        let config = config(urls, &format, &partitions).with_schema(schema);
        let listing = Arc::new(ListingTable::try_new(config)?);
        Ok(Self { listing, format, partitions })
    }

    /// Where its files are.
    pub fn paths(&self) -> &[ListingTableUrl] {
        self.listing.table_paths()
    }

    /// The format of its files.
    pub fn format(&self) -> &MarquetryFormat {
        &self.format
    }

    /// The columns that are in the names of folders, and their types.
    pub fn partitions(&self) -> &[(String, DataType)] {
        &self.partitions
    }
}

fn urls<P: AsRef<str>>(paths: impl IntoIterator<Item = P>) -> Result<Vec<ListingTableUrl>> {
    paths.into_iter().map(|path| ListingTableUrl::parse(path.as_ref())).collect()
}

fn config(
    urls: &[ListingTableUrl],
    format: &MarquetryFormat,
    partitions: &[(String, DataType)],
) -> ListingTableConfig {
    // A file may have any name; in a folder those of Parquet files count.
    let is_folder = urls.iter().any(ListingTableUrl::is_collection);
    let extension = if is_folder { ".parquet" } else { "" };
    let options = ListingOptions::new(Arc::new(format.clone()))
        .with_file_extension(extension)
        .with_table_partition_cols(partitions.to_vec());
    ListingTableConfig::new_with_multi_paths(urls.to_vec()).with_listing_options(options)
}

#[async_trait]
impl TableProvider for MarquetryTable {
    fn schema(&self) -> SchemaRef {
        self.listing.schema()
    }

    fn constraints(&self) -> Option<&Constraints> {
        self.listing.constraints()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.listing.scan(state, projection, filters, limit).await
    }

    async fn scan_with_args<'a>(
        &self,
        state: &dyn Session,
        args: ScanArgs<'a>,
    ) -> Result<ScanResult> {
        self.listing.scan_with_args(state, args).await
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        self.listing.supports_filters_pushdown(filters)
    }

    fn statistics(&self) -> Option<Statistics> {
        self.listing.statistics()
    }

    async fn insert_into(
        &self,
        state: &dyn Session,
        input: Arc<dyn ExecutionPlan>,
        insert_op: InsertOp,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        self.listing.insert_into(state, input, insert_op).await
    }
}
