//! [`RowSelection`]: the rows that are wanted, as runs or as bits, with an exact algebra; and
//! [`PageMap`]: the pages that hold them.
//!
//! A selection knows no file. The user, `take` and predicates make it; `read::plan` fetches its
//! pages, and `read::row_group` decodes run by run. Trap: a selection has a length, the number of
//! rows that it covers; selections of different lengths cannot be combined.

mod runs;
mod row_selection;
mod roaring;
mod deletion_vector;
mod pages;

#[cfg(test)]
mod tests;

pub use deletion_vector::DeletionVector;
pub(crate) use pages::PageMap;
pub use row_selection::RowSelection;
