//! Pages: `open` parses the header and the body of a page and separates levels and values; `seal`
//! does the reverse.
//!
//! Spec: README.md, "Data Pages"; `parquet.thrift`, PageHeader. Used by `read::chunk`. Only `open`
//! distinguishes pages of version 1 and version 2. Trap: version 2 names the length of the
//! definition levels first but stores the repetition levels first, and compresses neither.

mod open;
mod seal;

pub(crate) use open::count;
pub(crate) use open::{
    DataPage, DictionaryPage, Page, PageContext, PageMemory, PageOpener, PagePosition, StoredHeader,
};
pub use seal::PageVersion;
pub(crate) use seal::{PageParts, SealedPage, Sealer};
