//! Statistics: how values are ordered, the bounds of pages and chunks, the page index, bloom filters.
//!
//! Spec: `parquet.thrift` (Statistics, ColumnOrder), PageIndex.md, BloomFilter.md. Used by `write::leaf`, which collects them.
//! Trap: a bound that is wrong loses rows in every reader that believes it. Where an order is not defined there is no bound.

pub mod bloom;
pub mod bounds;
pub mod collect;
pub mod order;
pub mod page_index;
