//! Finds names that occur twice, and numbers them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};

/// The schema with the names that are shown: `a`, `a_2`, `a_3` for columns and struct members of
/// one name, if `rename` is set.
pub(super) fn shown(schema: &Schema, rename: bool) -> SchemaRef {
    let fields = if rename { renamed(schema.fields()) } else { schema.fields().clone() };
    Arc::new(Schema::new(fields))
}

/// The dotted path of the first column or struct member whose name another one beside it has.
pub(super) fn duplicate(fields: &Fields) -> Option<String> {
    let mut seen = HashSet::new();
    fields.iter().find_map(|field| match seen.insert(field.name()) {
        false => Some(field.name().clone()),
        true => duplicate_below(field),
    })
}

/// The same for the fields inside a column.
pub(super) fn duplicate_below(field: &Field) -> Option<String> {
    let found = match field.data_type() {
        DataType::Struct(fields) => duplicate(fields)?,
        // Entries are shown as "key" and "value".
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => pair.iter().find_map(|field| duplicate_below(field))?,
            _ => return None,
        },
        other => duplicate_below(item(other)?)?,
    };
    Some(format!("{}.{found}", field.name()))
}

fn renamed(fields: &Fields) -> Fields {
    let taken: HashSet<&str> = fields.iter().map(|field| field.name().as_str()).collect();
    // How many columns of a name there were so far, so that no number is tried twice.
    let mut numbers: HashMap<String, u64> = HashMap::new();
    let rename = |field: &FieldRef| {
        let number = numbers.entry(field.name().clone()).or_insert(0);
        let mut name = field.name().clone();
        loop {
            *number += 1;
            if *number == 1 {
                break;
            }
            name = format!("{}_{number}", field.name());
            // A name that the file has itself stays with its column.
            if !taken.contains(name.as_str()) {
                break;
            }
        }
        let field = field.as_ref().clone().with_data_type(inside(field.data_type()));
        Arc::new(field.with_name(name))
    };
    fields.iter().map(rename).collect()
}

fn inside(data_type: &DataType) -> DataType {
    let of = |field: &FieldRef| {
        Arc::new(field.as_ref().clone().with_data_type(inside(field.data_type())))
    };
    match data_type {
        DataType::Struct(fields) => DataType::Struct(renamed(fields)),
        DataType::List(item) => DataType::List(of(item)),
        DataType::LargeList(item) => DataType::LargeList(of(item)),
        DataType::ListView(item) => DataType::ListView(of(item)),
        DataType::LargeListView(item) => DataType::LargeListView(of(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(of(item), *size),
        DataType::Map(entries, sorted) => DataType::Map(of(entries), *sorted),
        DataType::Dictionary(key, value) => {
            DataType::Dictionary(key.clone(), Box::new(inside(value)))
        }
        DataType::RunEndEncoded(ends, values) => DataType::RunEndEncoded(ends.clone(), of(values)),
        other => other.clone(),
    }
}

/// The field of the elements of a list or of runs.
fn item(data_type: &DataType) -> Option<&Field> {
    match data_type {
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::RunEndEncoded(_, item) => Some(item),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(names: &[&str]) -> Fields {
        names.iter().map(|name| Field::new(*name, DataType::Int32, true)).collect()
    }

    #[test]
    fn duplicates_are_found_and_numbered_at_every_depth() {
        let inner = Field::new("s", DataType::Struct(fields(&["x", "x"])), true);
        let list = Field::new("l", DataType::List(Arc::new(inner)), true);
        let outer: Fields = vec![list].into();
        assert_eq!(duplicate(&outer).as_deref(), Some("l.s.x"));
        assert_eq!(duplicate(&renamed(&outer)), None);
        assert_eq!(duplicate(&fields(&["a", "b"])), None);
        let all = renamed(&fields(&["a", "a_2", "a", "a", "b"]));
        let names: Vec<&str> = all.iter().map(|field| field.name().as_str()).collect();
        assert_eq!(names, ["a", "a_2", "a_3", "a_4", "b"]);
    }
}
