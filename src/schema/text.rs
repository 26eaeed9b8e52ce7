//! Formats a schema as text: the message form that older tools print, and a tree.
//!
//! Used by the command-line tool and by error texts. parquet-format defines no text form; this is
//! the one of parquet-java.
//!
//! ```text
//! message schema {
//!   required int64 id = 1;
//!   optional group tags (LIST) {
//!     repeated group list {
//!       optional binary element (STRING);
//!     }
//!   }
//! }
//! ```
//!
//! Trap: names come from the file; characters that would move the cursor of a terminal are escaped.

use std::fmt::{self, Write};

use super::leaf::{Leaf, Physical};
use super::node::{Node, Schema};
use crate::format::{
    ConvertedType, FieldRepetitionType, LogicalType, SchemaElementRef, TimeUnit, Type,
};

impl fmt::Display for Schema {
    /// The message form, without a line break at the end.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "message {} {{", Name(self.root().name()))?;
        for node in self.fields() {
            message(f, node, 1)?;
        }
        f.write_char('}')
    }
}

impl Schema {
    /// Draws the schema as a tree, one line per node.
    pub fn tree(&self) -> impl fmt::Display {
        SchemaPrinter(self)
    }
}

struct SchemaPrinter<'a>(&'a Schema);

impl fmt::Display for SchemaPrinter<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", Name(self.0.root().name()))?;
        branches(f, self.0.root(), &mut String::new())
    }
}

fn message(f: &mut fmt::Formatter<'_>, node: Node<'_>, depth: usize) -> fmt::Result {
    let element = node.element();
    let indent = 2 * depth;
    write!(f, "{:indent$}{} ", "", Repeats(element.repetition_type))?;
    match node.is_leaf() {
        true => write!(f, "{}", TypeOf(&element))?,
        false => f.write_str("group")?,
    }
    write!(f, " {}{}", Name(node.name()), AnnotationOf(&element))?;
    if let Some(id) = element.field_id {
        write!(f, " = {id}")?;
    }
    if node.is_leaf() {
        return f.write_str(";\n");
    }
    f.write_str(" {\n")?;
    for child in node.children() {
        message(f, child, depth + 1)?;
    }
    writeln!(f, "{:indent$}}}", "")
}

fn branches(f: &mut fmt::Formatter<'_>, group: Node<'_>, margin: &mut String) -> fmt::Result {
    let mut children = group.children().peekable();
    while let Some(node) = children.next() {
        let (branch, bar) = match children.peek() {
            Some(_) => ("├─ ", "│  "),
            None => ("└─ ", "   "),
        };
        let element = node.element();
        write!(f, "\n{margin}{branch}{}: ", Name(node.name()))?;
        write!(f, "{} ", Repeats(element.repetition_type))?;
        match node.is_leaf() {
            true => write!(f, "{}", TypeOf(&element))?,
            false => f.write_str("group")?,
        }
        write!(f, "{}", AnnotationOf(&element))?;
        margin.push_str(bar);
        branches(f, node, margin)?;
        margin.truncate(margin.len() - bar.len());
    }
    Ok(())
}

/// The type of a leaf with its annotation in force: `fixed_len_byte_array(16) (UUID)`.
pub(crate) fn leaf_type(leaf: &Leaf) -> String {
    let physical = physical_type(leaf.physical);
    match (&leaf.logical, leaf.converted) {
        (Some(logical), _) => format!("{physical} ({})", Logical(logical)),
        (None, Some(ConvertedType::Interval)) => format!("{physical} (INTERVAL)"),
        (None, _) => physical,
    }
}

impl Leaf {
    /// The type with the annotation in force: `fixed_len_byte_array(16) (UUID)`.
    pub fn type_text(&self) -> String {
        leaf_type(self)
    }
}

fn physical_type(physical: Physical) -> String {
    match physical {
        Physical::FixedLenByteArray(length) => format!("fixed_len_byte_array({length})"),
        other => type_name(other.format_type()).to_owned(),
    }
}

fn type_name(r#type: Type) -> &'static str {
    match r#type {
        Type::Boolean => "boolean",
        Type::Int32 => "int32",
        Type::Int64 => "int64",
        Type::Int96 => "int96",
        Type::Float => "float",
        Type::Double => "double",
        Type::ByteArray => "binary",
        Type::FixedLenByteArray => "fixed_len_byte_array",
        Type::Unknown(_) => "unknown",
    }
}

/// A name of the file.
struct Name<'a>(&'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c.is_control() {
                true => write!(f, "{}", c.escape_default())?,
                false => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

struct Repeats(Option<FieldRepetitionType>);

impl fmt::Display for Repeats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None | Some(FieldRepetitionType::Required) => f.write_str("required"),
            Some(FieldRepetitionType::Optional) => f.write_str("optional"),
            Some(FieldRepetitionType::Repeated) => f.write_str("repeated"),
            Some(FieldRepetitionType::Unknown(number)) => write!(f, "unknown({number})"),
        }
    }
}

/// The physical type of a leaf as the file has it.
struct TypeOf<'a>(&'a SchemaElementRef<'a>);

impl fmt::Display for TypeOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.0.r#type, self.0.type_length) {
            (Some(Type::Unknown(number)), _) => write!(f, "unknown({number})"),
            (Some(r#type @ Type::FixedLenByteArray), Some(length)) => {
                write!(f, "{}({length})", type_name(r#type))
            }
            (r#type, _) => f.write_str(r#type.map_or("group", type_name)),
        }
    }
}

/// The annotation as the file has it, in force or not: ` (STRING)`, or nothing.
struct AnnotationOf<'a>(&'a SchemaElementRef<'a>);

impl fmt::Display for AnnotationOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.0.logical_type, self.0.converted_type) {
            (Some(logical), _) => write!(f, " ({})", Logical(logical)),
            (None, Some(ConvertedType::Decimal)) => {
                let SchemaElementRef { precision, scale, .. } = self.0;
                write!(f, " (DECIMAL({},{}))", precision.unwrap_or(0), scale.unwrap_or(0))
            }
            (None, Some(converted)) => write!(f, " ({converted})"),
            (None, None) => Ok(()),
        }
    }
}

/// A logical type: `TIMESTAMP(MICROS,true)`.
pub(crate) struct Logical<'a>(pub(crate) &'a LogicalType);

impl fmt::Display for Logical<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use LogicalType as L;
        match self.0 {
            L::String => f.write_str("STRING"),
            L::Map => f.write_str("MAP"),
            L::List => f.write_str("LIST"),
            L::Enum => f.write_str("ENUM"),
            L::Decimal(decimal) => write!(f, "DECIMAL({},{})", decimal.precision, decimal.scale),
            L::Date => f.write_str("DATE"),
            L::Time(time) => write!(f, "TIME({},{})", unit(&time.unit), time.is_adjusted_to_utc),
            L::Timestamp(timestamp) => {
                let utc = timestamp.is_adjusted_to_utc;
                write!(f, "TIMESTAMP({},{utc})", unit(&timestamp.unit))
            }
            L::Integer(integer) => {
                write!(f, "INTEGER({},{})", integer.bit_width, integer.is_signed)
            }
            L::Unknown => f.write_str("UNKNOWN"),
            L::Json => f.write_str("JSON"),
            L::Bson => f.write_str("BSON"),
            L::Uuid => f.write_str("UUID"),
            L::Float16 => f.write_str("FLOAT16"),
            L::Variant(variant) => {
                write!(f, "VARIANT({})", variant.specification_version.unwrap_or(1))
            }
            L::Geometry(geometry) => match &geometry.crs {
                None => f.write_str("GEOMETRY"),
                Some(crs) => write!(f, "GEOMETRY({})", Name(crs)),
            },
            L::Geography(geography) => {
                let crs = geography.crs.as_deref().unwrap_or("OGC:CRS84");
                match (&geography.crs, geography.algorithm) {
                    (None, None) => f.write_str("GEOGRAPHY"),
                    (_, None) => write!(f, "GEOGRAPHY({})", Name(crs)),
                    (_, Some(edges)) => {
                        write!(f, "GEOGRAPHY({},{edges})", Name(crs))
                    }
                }
            }
            L::File => f.write_str("FILE"),
            L::Unrecognized(..) => f.write_str("unknown logical type"),
        }
    }
}

fn unit(unit: &TimeUnit) -> &'static str {
    match unit {
        TimeUnit::Millis => "MILLIS",
        TimeUnit::Micros => "MICROS",
        TimeUnit::Nanos => "NANOS",
        TimeUnit::Unrecognized(..) => "unknown unit",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{DecimalType, IntType, TimestampType};
    use crate::schema::samples::{Optional, Repeated, Required, col, group, list, schema};

    fn file() -> Schema {
        let unit = TimeUnit::Micros;
        let stamp = TimestampType { is_adjusted_to_utc: true, unit };
        let byte = IntType { bit_width: 8, is_signed: false };
        schema([
            col(Required, Physical::Int64, "id").id(1),
            col(Optional, Physical::Int64, "ts").logical(LogicalType::Timestamp(stamp)),
            col(Optional, Physical::FixedLenByteArray(16), "u").logical(LogicalType::Uuid),
            col(Optional, Physical::Int32, "b").logical(LogicalType::Integer(byte)),
            list(Optional, "tags", {
                let decimal = DecimalType { scale: 2, precision: 9 };
                col(Optional, Physical::Int32, "element").logical(LogicalType::Decimal(decimal))
            }),
            group(
                Repeated,
                "g\u{1b}[2J",
                [col(Required, Physical::ByteArray, "é\n").converted(ConvertedType::Utf8)],
            ),
        ])
    }

    #[test]
    fn message_form() {
        let expected = "\
message schema {
  required int64 id = 1;
  optional int64 ts (TIMESTAMP(MICROS,true));
  optional fixed_len_byte_array(16) u (UUID);
  optional int32 b (INTEGER(8,false));
  optional group tags (LIST) {
    repeated group list {
      optional int32 element (DECIMAL(9,2));
    }
  }
  repeated group g\\u{1b}[2J {
    required binary é\\n (UTF8);
  }
}";
        assert_eq!(file().to_string(), expected);
    }

    #[test]
    fn tree_form() {
        let expected = "\
schema
├─ id: required int64
├─ ts: optional int64 (TIMESTAMP(MICROS,true))
├─ u: optional fixed_len_byte_array(16) (UUID)
├─ b: optional int32 (INTEGER(8,false))
├─ tags: optional group (LIST)
│  └─ list: repeated group
│     └─ element: optional int32 (DECIMAL(9,2))
└─ g\\u{1b}[2J: repeated group
   └─ é\\n: required binary (UTF8)";
        assert_eq!(file().tree().to_string(), expected);
    }
}
