//! [`install!`](crate::install!) registers the format in a session with one call.
//!
//! It is a macro, because the type of a session is that of the whole engine, which this crate does
//! not depend on.

/// Replaces `parquet` in a `SessionContext` of DataFusion by this crate: for `CREATE EXTERNAL TABLE
/// … STORED AS PARQUET`, for listing tables that are made through the session, and for `COPY`.
///
/// ```ignore
/// let ctx = SessionContext::new();
/// marquetry_datafusion::install!(&ctx)?;
/// ctx.sql("CREATE EXTERNAL TABLE t STORED AS PARQUET LOCATION 'data/'").await?;
/// ```
///
/// It turns off the option `datafusion.optimizer.enable_aggregate_dynamic_filter_pushdown` of the
/// session: what DataFusion 55.2 learns for `max(a)` loses rows of other aggregates, as in
/// `SELECT max(a), min(b + 1)`.
///
/// A second argument is the [factory](crate::MarquetryFormatFactory) to install, for
/// options. `register_parquet` and `read_parquet` of a session do not ask it for its formats: use
/// [`MarquetryTable`](crate::MarquetryTable) in their place, or the rule
/// `ReplaceParquet`.
#[macro_export]
macro_rules! install {
    ($session:expr) => {
        $crate::install!($session, $crate::MarquetryFormatFactory::new())
    };
    ($session:expr, $factory:expr) => {{
        let state = ($session).state_ref();
        let mut state = state.write();
        let options = state.config_mut().options_mut();
        options.optimizer.enable_aggregate_dynamic_filter_pushdown = false;
        state.register_file_format(::std::sync::Arc::new($factory), true)
    }};
}
