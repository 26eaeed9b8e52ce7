//! Leaf pairs: from a leaf's physical and logical type to an Arrow data type. One table, used by `schema` and by `read::leaf`.

use arrow_schema::DataType;

use super::Leaf;

/// The way from the values of a leaf to an Arrow type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Conversion {
    /// Placeholder.
    Same,
}

/// The way from `leaf` to the Arrow type `to`, or `None` if there is none without loss.
///
/// `Dictionary` and `RunEndEncoded` are looked through: their value type decides.
pub fn conversion(leaf: &Leaf, to: &DataType) -> Option<Conversion> {
    let _ = (leaf, to);
    Some(Conversion::Same)
}
