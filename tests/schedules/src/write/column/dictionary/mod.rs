#[path = "../../../../../../src/write/column/dictionary/limits.rs"]
mod limits;
#[path = "../../../../../../src/write/column/dictionary/parts.rs"]
mod parts;
pub(crate) mod scenario;

mod part_sizes {
    //! Small, so that few values have several parts.

    pub(super) const MIN_PART_VALUES: usize = super::limits::BLOCK;
    pub(super) const MAPPED_CODES: usize = 3_000;
}
