//! Pages: from the header and the body on disk to levels and values that are cut apart and checked
//! (`open`), and back (`seal`).
//!
//! Spec: README.md, "Data Pages"; `parquet.thrift`, PageHeader. Used by `read::chunk`. Version 1
//! and version 2 meet in `open` and nowhere later. Trap: version 2 names the length of the
//! definition levels first but stores the repetition levels first, and compresses neither.

mod open;
mod seal;

pub(crate) use open::count;
pub(crate) use open::{
    DataPage, DictionaryPage, Page, PageContext, PageMemory, PageOpener, PagePosition, StoredHeader,
};
pub use seal::PageVersion;
pub(crate) use seal::{PageParts, Sealed, Sealer};
