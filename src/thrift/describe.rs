//! [`Describe`]: the names and types of metadata fields, to show metadata as it is serialized.
//!
//! The macro of [`derive`](super::derive) makes a description of every struct that owns its fields.
//! Used by `inspect`. Trap: a name is that of the Rust field, in snake case, and not always that of
//! the specification.

/// A metadata type that has a description of its serialized form.
pub(crate) trait Describe {
    /// Its type and the names of its fields.
    const DESCRIPTION: Description;
}

/// The type of a value, with the names of its fields or variants.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Description {
    Bool,
    I8,
    I16,
    I32,
    I64,
    Double,
    Binary,
    Text,
    Enum(&'static EnumDescription),
    List(&'static Self),
    Struct(&'static StructDescription),
}

/// An enum: a number with a name.
#[derive(Debug)]
pub(crate) struct EnumDescription {
    pub(crate) name: &'static str,
    /// The name of a number in the specification.
    pub(crate) text: fn(i32) -> String,
}

/// A struct, or a union, which has one of its fields.
#[derive(Debug)]
pub(crate) struct StructDescription {
    pub(crate) name: &'static str,
    pub(crate) fields: &'static [FieldDescription],
}

/// A field of a struct, or a member of a union.
#[derive(Debug)]
pub(crate) struct FieldDescription {
    pub(crate) id: i16,
    pub(crate) name: &'static str,
    /// Its attributes as source text: the lines of its documentation are `doc = "…"`.
    pub(crate) attributes: &'static [&'static str],
    pub(crate) value: Description,
}

impl FieldDescription {
    /// Its name as `parquet.thrift` spells it.
    pub(crate) fn name_in_specification(&self) -> &'static str {
        match self.name {
            "logical_type" => "logicalType",
            "bit_width" => "bitWidth",
            "is_signed" => "isSigned",
            "is_adjusted_to_utc" => "isAdjustedToUTC",
            "num_bytes" => "numBytes",
            name => name.trim_start_matches("r#"),
        }
    }
}

/// A member of a union that holds nothing.
pub(crate) const EMPTY: Description =
    Description::Struct(&StructDescription { name: "", fields: &[] });

macro_rules! describe {
    ($($Type:ty: $description:ident),*) => {
        $(impl Describe for $Type {
            const DESCRIPTION: Description = Description::$description;
        })*
    };
}
describe! {
    bool: Bool, i8: I8, i16: I16, i32: I32, i64: I64, f64: Double, Vec<u8>: Binary, String: Text
}

impl<T: Describe> Describe for Vec<T> {
    const DESCRIPTION: Description = Description::List(&T::DESCRIPTION);
}
