//! [`NameMapping`]: field ids for the fields of files that have none, by their names.
//!
//! Used by `to_arrow`, which gives the ids to the natural fields, so that a target finds them by
//! its own. Apache Iceberg keeps such a mapping for files that were written before they joined a
//! table.
//! Trap: the repeated groups of lists and maps are not named. Their elements, keys and values are,
//! by these words, whatever the file calls them.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::nested::{self, Element, Group};
use super::node::{Node, Schema};
use crate::error::{Error, Result};

/// Field ids by the names of fields, for files without field ids: the property
/// `schema.name-mapping.default` of an Iceberg table.
///
/// A file that has any field id is read by its own alone, as Iceberg wants it.
///
/// ```
/// use std::sync::Arc;
///
/// use marquetry::Reader;
/// use marquetry::arrow_schema::{DataType, Field, Schema};
/// use marquetry::schema::{FIELD_ID_KEY, MatchBy, NameMapping};
///
/// # fn main() -> marquetry::Result<()> {
/// let mapping = NameMapping::from_json(r#"[{"field-id": 7, "names": ["distance", "length"]}]"#)?;
/// let id = [(FIELD_ID_KEY.to_owned(), "7".to_owned())].into();
/// let metres = Field::new("metres", DataType::Float64, true).with_metadata(id);
/// let reader = Reader::open("testdata/trips.parquet")?
///     .name_mapping(mapping)
///     .target(Arc::new(Schema::new(vec![metres])), MatchBy::FieldId)?;
/// let batch = reader.batches()?.next_batch()?.expect("there are rows");
/// assert_eq!(batch.column_by_name("metres").map(|column| column.null_count()), Some(0));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct NameMapping {
    root: Arc<MappedFields>,
}

/// The fields side by side in a group, by their names.
#[derive(Debug, PartialEq, Eq, Default)]
struct MappedFields {
    fields: Vec<MappedField>,
    places: HashMap<String, usize>,
}

#[derive(Debug, PartialEq, Eq)]
struct MappedField {
    id: Option<i32>,
    below: MappedFields,
}

impl NameMapping {
    /// Parses the JSON that a table has: a list of fields, each with the names that it had, and its
    /// id. A field without an id is not read.
    ///
    /// # Errors
    /// `Usage` if it is something else, or siblings share a name.
    pub fn from_json(json: &str) -> Result<Self> {
        let value: Value = serde_json::from_str(json)
            .map_err(|e| Error::usage(format_args!("a name mapping is JSON: {e}")))?;
        Ok(Self { root: Arc::new(MappedFields::new(&value)?) })
    }

    /// The ids of the nodes of a file that has none itself.
    pub(super) fn ids(&self, schema: &Schema) -> HashMap<u32, i32> {
        let mut ids = HashMap::new();
        if !has_ids(schema) {
            self.root.assign(schema.fields(), &mut ids);
        }
        ids
    }
}

impl MappedFields {
    fn new(value: &Value) -> Result<Self> {
        let Value::Array(items) = value else { return Err(wrong("a list of fields", value)) };
        let mut all = Self::default();
        for item in items {
            let Value::Object(item) = item else { return Err(wrong("a field", item)) };
            all.add(item)?;
        }
        Ok(all)
    }

    fn add(&mut self, item: &Map<String, Value>) -> Result<()> {
        let id = match item.get("field-id") {
            None | Some(Value::Null) => None,
            Some(id) => {
                let number = id.as_i64().and_then(|id| i32::try_from(id).ok());
                Some(number.ok_or_else(|| wrong("a field-id of 32 bits", id))?)
            }
        };
        let place = self.fields.len();
        match item.get("names") {
            Some(Value::Array(names)) => {
                for name in names {
                    let text = name.as_str().ok_or_else(|| wrong("a name", name))?;
                    if self.places.insert(text.to_owned(), place).is_some_and(|at| at != place) {
                        return Err(Error::usage(format_args!(
                            "a name mapping has two fields {text:?} side by side"
                        )));
                    }
                }
            }
            other => return Err(wrong("a list of names", other.unwrap_or(&Value::Null))),
        }
        let below = match item.get("fields") {
            None | Some(Value::Null) => Self::default(),
            Some(fields) => Self::new(fields)?,
        };
        self.fields.push(MappedField { id, below });
        Ok(())
    }

    /// Gives ids to nodes side by side, and to those below them.
    fn assign<'a>(&self, nodes: impl Iterator<Item = Node<'a>>, ids: &mut HashMap<u32, i32>) {
        if self.fields.is_empty() {
            return;
        }
        for node in nodes {
            self.assign_to(node, node.name(), ids);
        }
    }

    /// Gives its id to a node with this name, and theirs to those below it.
    fn assign_to(&self, node: Node<'_>, name: &str, ids: &mut HashMap<u32, i32>) {
        let field = self.places.get(name).and_then(|place| self.fields.get(*place));
        let Some(field) = field else { return };
        if let Some(id) = field.id {
            ids.insert(node.index(), id);
        }
        let below = &field.below;
        if node.is_leaf() || below.fields.is_empty() {
            return;
        }
        match nested::group(node) {
            Group::List(list) => {
                let element = match list.element {
                    Element::Repeated => Some(list.repeated),
                    Element::Child => list.repeated.children().next(),
                };
                if let Some(element) = element {
                    below.assign_to(element, "element", ids);
                }
            }
            Group::Map(map) => {
                below.assign_to(map.key, "key", ids);
                below.assign_to(map.value, "value", ids);
            }
            Group::Struct | Group::Variant | Group::File => below.assign(node.children(), ids),
        }
    }
}

/// Whether any node has an id of its own.
fn has_ids(schema: &Schema) -> bool {
    fn any(node: Node<'_>) -> bool {
        node.field_id().is_some() || (!node.is_leaf() && node.children().any(any))
    }
    schema.fields().any(any)
}

fn wrong(wanted: &str, found: &Value) -> Error {
    Error::usage(format_args!("a name mapping has {found} in place of {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn what_is_no_mapping_is_refused() {
        for json in [
            "",
            "{}",
            "[1]",
            "[{}]",
            r#"[{"names": "a"}]"#,
            r#"[{"names": [1]}]"#,
            r#"[{"names": ["a"], "field-id": "1"}]"#,
            r#"[{"names": ["a"], "field-id": 2147483648}]"#,
            r#"[{"names": ["a"], "field-id": 1, "fields": 1}]"#,
            r#"[{"names": ["a"], "field-id": 1}, {"names": ["b", "a"], "field-id": 2}]"#,
        ] {
            let error = NameMapping::from_json(json).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage, "{json}: {error}");
        }
        // The example of the specification has no ids where a field is not read.
        let json = r#"[{"names": ["a", "a"]}, {"field-id": 1, "names": [], "fields": []}]"#;
        NameMapping::from_json(json).unwrap();
    }
}
