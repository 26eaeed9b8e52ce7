//! [Apache DataFusion](https://datafusion.apache.org) reads and writes Parquet through
//! [`marquetry`], in place of its own source and sink.
//!
//! ```text
//!  MarquetryFormatFactory ─ MarquetryFormat ─┬─ MarquetrySource ─ one stream for each file
//!    options of the session   infers schema,  │    projection, filters, limit, row groups
//!                             statistics      └─ MarquetrySink ─── COPY, INSERT
//! ```
//!
//! * [`install!`](install) replaces `parquet` for `CREATE EXTERNAL TABLE`, listing tables and
//!   `COPY` of a session.
//! * [`ScanSettings`] say how files are read.
//! * [`MarquetryTable`] is a table of one file, of several, or of a folder.
//! * [`PredicateExpr`] is a filter in the language of [`Predicate`].
//! * `ReplaceParquet` (feature `replace`) is an optimizer rule that swaps the scans of
//!   DataFusion's own `ParquetSource`, such as table formats make them.
//! * `MarquetryPhysicalCodec` and `MarquetryLogicalCodec` (feature `proto`) carry scans
//!   to the workers of distributed engines; `MarquetryCodecWith` puts them in front of the codecs
//!   of an engine.
//!
//! All filters are evaluated in the scan, by default. Those that [`Predicate`] can express with
//! exactly the same meaning prune row groups and pages, and are evaluated on encoded values;
//! DataFusion's own expressions evaluate the others, on the columns that they need, before other
//! columns are decoded. Parts of a conjunction that can fail for some values (division, casts,
//! `abs`, functions of users) are evaluated last, in the order of the query, and only for rows that
//! passed the others: a filter fails in the scan for no row for which it would not fail above it.
//! Filters that DataFusion learns while the query runs (joins, `ORDER BY … LIMIT`) are looked at
//! again before each row group.
//!
//! The crate depends on the small crates of DataFusion only, without SQL and optimizer; their
//! version is 55.2.
//!
//! [`Predicate`]: marquetry::Predicate

#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "tests fail where they must"
    )
)]

mod error;
mod metadata;
mod schema;
mod statistics;
mod evaluate;
mod fallible;
mod routed;
mod key_set;
mod learned;
mod condition;
mod pushdown;
mod metrics;
mod local;
mod row_groups;
mod extensions;
mod columns;
mod settings;
mod scan;
mod file_filter;
mod file_plan;
mod file_stream;
mod files;
mod source;
mod write_options;
mod sink;
mod format;
mod table;
#[cfg(feature = "replace")]
mod replace;
#[cfg(feature = "proto")]
mod proto;
mod install;

pub use condition::PredicateExpr;
pub use format::{MarquetryFormat, MarquetryFormatFactory};
#[cfg(feature = "proto")]
pub use proto::{MarquetryCodecWith, MarquetryLogicalCodec, MarquetryPhysicalCodec};
#[cfg(feature = "replace")]
pub use replace::ReplaceParquet;
pub use settings::ScanSettings;
pub use sink::MarquetrySink;
pub use source::MarquetrySource;
pub use table::MarquetryTable;
