//! Statistics: how values are ordered, the bounds of pages and chunks, the page index, bloom
//! filters.
//!
//! Spec: `parquet.thrift` (Statistics, ColumnOrder), PageIndex.md, BloomFilter.md. Collected by
//! `write::column`.
//! Trap: a wrong bound loses rows in every reader that trusts it. If an order is not defined, there
//! is no bound.

pub(crate) mod bloom;
pub(crate) mod bounds;
pub(crate) mod order;
pub(crate) mod collect;
pub(crate) mod page_index;
