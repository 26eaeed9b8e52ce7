//! [`Leaf`]: a primitive node of the schema, which is a column of the file.

use std::fmt;
use std::sync::Arc;

use crate::format::{ConvertedType, LogicalType, Type};

/// A primitive node of the schema: one column chunk in every row group belongs to it.
///
/// Parsing the schema has checked it: `type_length` is present and positive if the type needs it,
/// the levels count the ancestors, and the annotation fits the physical type (one that does not is
/// removed, and `ordered` is false).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Leaf {
    /// Position among the leaves, depth-first: the index into `RowGroup.columns`.
    pub index: usize,
    /// Names from below the root to the leaf.
    pub path: LeafPath,
    /// The physical type.
    pub physical: Physical,
    /// The logical type in force: `logicalType`, else the one that `converted_type` stands for,
    /// else none. An annotation that is unknown, or not allowed on the physical type, is ignored.
    pub logical: Option<LogicalType>,
    /// The converted type as written; only this field tells INTERVAL.
    pub converted: Option<ConvertedType>,
    /// False if the annotation was unknown or misplaced; then bounds in statistics must not be
    /// trusted.
    pub ordered: bool,
    /// Highest definition level: OPTIONAL and REPEATED nodes from below the root down to the leaf.
    pub max_def: u16,
    /// Highest repetition level: REPEATED nodes from below the root down to the leaf.
    pub max_rep: u16,
    /// Whether the leaf itself is OPTIONAL or REPEATED.
    pub nullable: bool,
    /// User id of the leaf.
    pub field_id: Option<i32>,
}

/// The physical type of a leaf, its length included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Physical {
    /// One bit.
    Boolean,
    /// 4 bytes, signed or not by annotation.
    Int32,
    /// 8 bytes, signed or not by annotation.
    Int64,
    /// 12 bytes: nanoseconds of the day, Julian day.
    Int96,
    /// IEEE 754 binary32.
    Float,
    /// IEEE 754 binary64.
    Double,
    /// Bytes with a length.
    ByteArray,
    /// This many bytes; may be 0.
    FixedLenByteArray(usize),
}

impl Physical {
    /// The type of the format, without the length.
    pub fn format_type(self) -> Type {
        match self {
            Self::Boolean => Type::Boolean,
            Self::Int32 => Type::Int32,
            Self::Int64 => Type::Int64,
            Self::Int96 => Type::Int96,
            Self::Float => Type::Float,
            Self::Double => Type::Double,
            Self::ByteArray => Type::ByteArray,
            Self::FixedLenByteArray(_) => Type::FixedLenByteArray,
        }
    }

    /// Bytes of one PLAIN value, if all values have the same length.
    pub fn byte_width(self) -> Option<usize> {
        match self {
            Self::Boolean | Self::ByteArray => None,
            Self::Int32 | Self::Float => Some(4),
            Self::Int64 | Self::Double => Some(8),
            Self::Int96 => Some(12),
            Self::FixedLenByteArray(n) => Some(n),
        }
    }
}

impl fmt::Display for Physical {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Boolean => f.write_str("BOOLEAN"),
            Self::Int32 => f.write_str("INT32"),
            Self::Int64 => f.write_str("INT64"),
            Self::Int96 => f.write_str("INT96"),
            Self::Float => f.write_str("FLOAT"),
            Self::Double => f.write_str("DOUBLE"),
            Self::ByteArray => f.write_str("BYTE_ARRAY"),
            Self::FixedLenByteArray(n) => write!(f, "FIXED_LEN_BYTE_ARRAY({n})"),
        }
    }
}

/// The names from below the root to a leaf. Names may contain dots, and may be empty.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct LeafPath(Arc<[Arc<str>]>);

impl LeafPath {
    /// A path of these names.
    pub(crate) fn new(names: impl IntoIterator<Item = Arc<str>>) -> Self {
        Self(names.into_iter().collect())
    }

    /// The names, outermost first.
    pub fn names(&self) -> &[Arc<str>] {
        &self.0
    }

    /// Whether this is the dotted form.
    pub(crate) fn is_dotted(&self, text: &str) -> bool {
        let mut rest = text;
        for (i, name) in self.0.iter().enumerate() {
            let after = if i > 0 { rest.strip_prefix('.') } else { Some(rest) };
            let Some(after) = after.and_then(|after| after.strip_prefix(&**name)) else {
                return false;
            };
            rest = after;
        }
        rest.is_empty()
    }

    /// The dotted form, for errors and for people.
    pub fn dotted(&self) -> String {
        self.to_string()
    }
}

impl fmt::Display for LeafPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(".")?;
            }
            f.write_str(name)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_known_by_its_dotted_form() {
        for names in [&["a"][..], &["a", "b"], &["a.b", "c"], &["", ""], &["ab", "", "ä"]] {
            let path = LeafPath::new(names.iter().map(|name| Arc::from(*name)));
            let dotted = path.dotted();
            for text in ["a", "a.b", "a.b.c", ".", "", "ab..ä", "ab.ä", "a.b.", "b"] {
                assert_eq!(path.is_dotted(text), dotted == text, "{dotted:?}, {text:?}");
            }
        }
    }
}
