//! Layouts that the hint states in the metadata of a field: run ends and list views.
//!
//! polars 2.1 refuses all columns of a file whose hint has such a type. So the hint has the plain
//! type, and [`LAYOUT_KEY`] the layout to make of it. Hints of other writers have the types
//! themselves.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_ipc as ipc;
use arrow_schema::{DataType, Field, FieldRef, Fields};

use crate::schema::fields::arrow_fields;

/// `list_view`, or `run_ends:int32` with the type of the run ends. Of values that may not be null,
/// `run_ends:int32:required`.
const LAYOUT_KEY: &str = "marquetry:layout";

/// The names of the two fields of runs, where they are not the usual ones.
const RUN_ENDS_KEY: &str = "marquetry:run_ends";
const VALUES_KEY: &str = "marquetry:values";

const LIST_VIEW: &str = "list_view";
const RUN_ENDS: &str = "run_ends";
const VALUES: &str = "values";
const REQUIRED: &str = "required";

/// The fields as the hint states them.
pub(super) fn plain_fields(fields: &Fields) -> Fields {
    arrow_fields(fields.iter().map(plain_field))
}

fn plain_field(field: &FieldRef) -> FieldRef {
    let mut marks = HashMap::new();
    let data_type = plain_type(field.data_type(), &mut marks);
    let is_marked = field.metadata().keys().any(|key| is_mark(key));
    if data_type == *field.data_type() && !is_marked {
        return Arc::clone(field);
    }
    // A mark that was there before does not concern this field.
    let own = field.metadata().iter().filter(|(key, _)| !is_mark(key));
    let own = own.map(|(key, value)| (key.clone(), value.clone()));
    let metadata: HashMap<String, String> = own.chain(marks).collect();
    Arc::new(field.as_ref().clone().with_data_type(data_type).with_metadata(metadata))
}

/// The type as the hint states it; `marks` take the rest.
fn plain_type(data_type: &DataType, marks: &mut HashMap<String, String>) -> DataType {
    let mut mark = |key: &str, value: &str| _ = marks.insert(key.to_owned(), value.to_owned());
    match data_type {
        DataType::ListView(item) => {
            mark(LAYOUT_KEY, LIST_VIEW);
            DataType::List(plain_field(item))
        }
        DataType::LargeListView(item) => {
            mark(LAYOUT_KEY, LIST_VIEW);
            DataType::LargeList(plain_field(item))
        }
        DataType::List(item) => DataType::List(plain_field(item)),
        DataType::LargeList(item) => DataType::LargeList(plain_field(item)),
        DataType::FixedSizeList(item, len) => DataType::FixedSizeList(plain_field(item), *len),
        DataType::Struct(fields) => DataType::Struct(plain_fields(fields)),
        DataType::Map(entries, sorted) => DataType::Map(plain_field(entries), *sorted),
        DataType::RunEndEncoded(ends, values) => {
            let bits = ends.data_type().primitive_width().map_or(0, |bytes| 8 * bytes);
            let required = if values.is_nullable() { "" } else { ":required" };
            mark(LAYOUT_KEY, &format!("{RUN_ENDS}:int{bits}{required}"));
            for (key, usual, field) in
                [(RUN_ENDS_KEY, RUN_ENDS, ends), (VALUES_KEY, VALUES, values)]
            {
                if field.name() != usual {
                    mark(key, field.name());
                }
            }
            match values.data_type() {
                DataType::Dictionary(_, value) => value.as_ref().clone(),
                plain => plain.clone(),
            }
        }
        other => other.clone(),
    }
}

/// Whether a key of a field's metadata states its layout.
pub(super) fn is_mark(key: &str) -> bool {
    [LAYOUT_KEY, RUN_ENDS_KEY, VALUES_KEY].contains(&key)
}

fn marked<'a>(hinted: ipc::Field<'a>, key: &str) -> Option<&'a str> {
    let found = hinted.custom_metadata()?.iter().find(|entry| entry.key() == Some(key))?;
    found.value()
}

/// The type of a list, which the hint states as `list`.
pub(super) fn list_layout(hinted: ipc::Field<'_>, list: DataType) -> DataType {
    match list {
        DataType::List(item) if marked(hinted, LAYOUT_KEY) == Some(LIST_VIEW) => {
            DataType::ListView(item)
        }
        DataType::LargeList(item) if marked(hinted, LAYOUT_KEY) == Some(LIST_VIEW) => {
            DataType::LargeListView(item)
        }
        other => other,
    }
}

/// The type of a leaf, which the hint states as `values`.
pub(super) fn leaf_layout(hinted: ipc::Field<'_>, values: DataType, nullable: bool) -> DataType {
    let mut words = marked(hinted, LAYOUT_KEY).unwrap_or_default().split(':');
    let ends = match (words.next(), words.next()) {
        (Some(RUN_ENDS), Some("int16")) => DataType::Int16,
        (Some(RUN_ENDS), Some("int32")) => DataType::Int32,
        (Some(RUN_ENDS), Some("int64")) => DataType::Int64,
        _ => return values,
    };
    let nullable = nullable || words.next() != Some(REQUIRED);
    let name = |key, usual| marked(hinted, key).unwrap_or(usual);
    DataType::RunEndEncoded(
        Arc::new(Field::new(name(RUN_ENDS_KEY, RUN_ENDS), ends, false)),
        Arc::new(Field::new(name(VALUES_KEY, VALUES), values, nullable)),
    )
}
