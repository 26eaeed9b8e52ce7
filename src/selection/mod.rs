//! [`RowSelection`]: which rows are wanted, as runs or as bits, with an exact algebra; and
//! [`PageMap`], which pages hold them.
//!
//! Pure: knows no file. Made by the user, by `take`, and by predicates; used by `read::plan`, which
//! asks for the pages, and by `read::row_group`, which decodes run by run. Trap: a selection has a
//! length, the rows that it speaks of; two that speak of different rows cannot be combined.

mod runs;
mod row_selection;
mod pages;

#[cfg(test)]
mod tests;

pub(crate) use pages::PageMap;
pub use row_selection::RowSelection;
