//! Small schemas for tests.

use super::{Kind, Levels, Physical, Schema, Shape};
use crate::format::{
    ConvertedType, FieldRepetitionType, LogicalType, SchemaElement, SchemaElementRef,
};
use crate::limits::Limits;

pub(super) use FieldRepetitionType::{Optional, Repeated, Required};

/// A REQUIRED leaf.
pub(super) fn leaf(name: &str, physical: Physical) -> SchemaElement {
    let type_length = match physical {
        Physical::FixedLenByteArray(length) => Some(length as i32),
        _ => None,
    };
    SchemaElement { r#type: Some(physical.format_type()), type_length, ..element(name) }
}

/// A REQUIRED element with nothing but a name.
pub(super) fn element(name: &str) -> SchemaElement {
    SchemaElement {
        repetition_type: Some(Required),
        name: name.to_owned(),
        ..SchemaElement::default()
    }
}

/// An element, borrowed.
pub(super) fn borrowed(element: &SchemaElement) -> SchemaElementRef<'_> {
    SchemaElementRef {
        r#type: element.r#type,
        type_length: element.type_length,
        repetition_type: element.repetition_type,
        name: &element.name,
        num_children: element.num_children,
        converted_type: element.converted_type,
        scale: element.scale,
        precision: element.precision,
        field_id: element.field_id,
        logical_type: element.logical_type.clone(),
    }
}

/// A node with its descendants.
#[derive(Clone)]
pub(super) struct Tree(Vec<SchemaElement>);

/// A leaf.
pub(super) fn col(repetition: FieldRepetitionType, physical: Physical, name: &str) -> Tree {
    Tree(vec![SchemaElement { repetition_type: Some(repetition), ..leaf(name, physical) }])
}

/// A group.
pub(super) fn group(
    repetition: FieldRepetitionType,
    name: &str,
    children: impl IntoIterator<Item = Tree>,
) -> Tree {
    let mut elements = vec![SchemaElement { repetition_type: Some(repetition), ..element(name) }];
    let mut count = 0;
    for child in children {
        count += 1;
        elements.extend(child.0);
    }
    elements[0].num_children = Some(count);
    Tree(elements)
}

/// A list of three levels.
pub(super) fn list(repetition: FieldRepetitionType, name: &str, element: Tree) -> Tree {
    group(repetition, name, [group(Repeated, "list", [element])]).logical(LogicalType::List)
}

/// A map.
pub(super) fn map(repetition: FieldRepetitionType, name: &str, key: Tree, value: Tree) -> Tree {
    group(repetition, name, [group(Repeated, "key_value", [key, value])]).logical(LogicalType::Map)
}

impl Tree {
    pub(super) fn logical(mut self, logical: LogicalType) -> Self {
        self.0[0].logical_type = Some(logical);
        self
    }

    pub(super) fn converted(mut self, converted: ConvertedType) -> Self {
        self.0[0].converted_type = Some(converted);
        self
    }

    pub(super) fn id(mut self, id: i32) -> Self {
        self.0[0].field_id = Some(id);
        self
    }
}

/// The elements of a schema of these fields.
pub(super) fn elements(fields: impl IntoIterator<Item = Tree>) -> Vec<SchemaElement> {
    group(Required, "schema", fields).0
}

/// The schema of these fields.
pub(super) fn schema(fields: impl IntoIterator<Item = Tree>) -> Schema {
    Schema::parse(elements(fields), &Limits::default()).unwrap()
}

/// A shape on one line: `name? slot/present/rep type`, a list as `list element@rep <item>`.
pub(super) fn drawn(shape: &Shape) -> String {
    let Levels { slot, present, rep } = shape.levels;
    let mark = if shape.field.is_nullable() { "?" } else { "" };
    let what = match &shape.kind {
        Kind::Leaf { leaf } => format!("{} #{leaf}", shape.field.data_type()),
        Kind::Struct(children) => {
            let children: Vec<_> = children.iter().map(drawn).collect();
            format!("{{{}}}", children.join(", "))
        }
        Kind::List { item, element, rep } => format!("list {element}@{rep} <{}>", drawn(item)),
        Kind::Map { entries, element, rep } => format!("map {element}@{rep} <{}>", drawn(entries)),
        Kind::Missing => format!("{} missing", shape.field.data_type()),
    };
    format!("{}{mark} {slot}/{present}/{rep} {what}", shape.field.name())
}
