//! [`HintFault`]: how a hint contradicts the schema that it is for.
//!
//! A hint is used as far as it fits, so that none of this is an error of a read.

use arrow_ipc as ipc;

use super::hint::{Hint, KEY, OpenHint};
use super::leaf::Physical;
use super::node::{Node, Schema};
use crate::error::Result;
use crate::format::KeyValue;

/// The first contradiction between a hint and the schema.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum HintFault {
    /// It is not Base64, or no schema.
    Unreadable,
    /// It has another number of fields.
    Fields { hinted: usize, stored: usize },
    /// A field has another name.
    Name { position: usize, hinted: String, stored: String },
    /// A field cannot be stored as the column is.
    Type { name: String, hinted: String, stored: String },
}

/// The fault of the hint of a file, if it has one that has a fault.
///
/// # Errors
/// `Limit(Memory)` if the system has no memory for it.
pub(crate) fn hint_fault(schema: &Schema, key_values: &[KeyValue]) -> Result<Option<HintFault>> {
    if !key_values.iter().any(|entry| entry.key == KEY) {
        return Ok(None);
    }
    let hint = Hint::find(key_values)?;
    let Some(hint) = hint.as_ref().and_then(Hint::open) else {
        return Ok(Some(HintFault::Unreadable));
    };
    let (hinted, stored) = (hint.fields_len(), schema.fields().len());
    if hinted != stored {
        return Ok(Some(HintFault::Fields { hinted, stored }));
    }
    Ok(schema.fields().enumerate().find_map(|(position, node)| fault_of(&hint, position, node)))
}

fn fault_of(hint: &OpenHint<'_>, position: usize, node: Node<'_>) -> Option<HintFault> {
    let Some(field) = hint.field(position) else { return Some(HintFault::Unreadable) };
    let (name, stored) = (field.name().unwrap_or_default(), node.name());
    if name != stored {
        let (hinted, stored) = (name.to_owned(), stored.to_owned());
        return Some(HintFault::Name { position, hinted, stored });
    }
    // What Parquet cannot store is stored as something else, and marked.
    if hint.mark_of(field).is_some() || fits(field.type_type(), node) {
        return None;
    }
    let hinted = field.type_type().variant_name().unwrap_or("an unknown type").to_owned();
    let stored = match node.physical() {
        Ok(physical) => physical.to_string(),
        Err(_) => "a group".to_owned(),
    };
    Some(HintFault::Type { name: node.path().dotted(), hinted, stored })
}

/// Whether a column of a type can be stored as this node, whatever its parameters are.
fn fits(hinted: ipc::Type, node: Node<'_>) -> bool {
    use Physical as P;
    use ipc::Type as T;
    let physical = node.physical().ok();
    match hinted {
        T::Struct_
        | T::List
        | T::LargeList
        | T::ListView
        | T::LargeListView
        | T::FixedSizeList
        | T::Map => !node.is_leaf() || node.max_rep() > 0,
        T::Bool => physical == Some(P::Boolean),
        T::Int => matches!(physical, Some(P::Int32 | P::Int64)),
        T::FloatingPoint => {
            matches!(physical, Some(P::Float | P::Double | P::FixedLenByteArray(2)))
        }
        T::Utf8 | T::LargeUtf8 | T::Utf8View | T::Binary | T::LargeBinary | T::BinaryView => {
            matches!(physical, Some(P::ByteArray | P::FixedLenByteArray(_)))
        }
        // A union or a type of later versions may be stored as anything.
        _ => true,
    }
}
