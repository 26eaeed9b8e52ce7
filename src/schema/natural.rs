//! The natural mapping derives a column's Arrow type from its annotation alone, by the table in
//! [`crate::schema`].
//!
//! Trap: the levels of a node follow from the tree of the file. Neither a hint nor a target changes
//! them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, IntervalUnit, TimeUnit};

use super::annotation;
use super::arrow_options::{ArrowOptions, TextColumns};
use super::extension::{self, CrsTexts, Extension};
use super::leaf::Physical;
use super::nested::{self, Element, Group};
use super::node::{Node, Repetition, Schema};
use super::projection::{ProjectedChildren, Projection};
use super::shape::{Kind, Levels, Shape, struct_of};
use crate::error::{Error, Result};
use crate::format::{
    ConvertedType, DecimalType, IntType, LogicalType, TimeUnit as Unit, TimestampType,
};
use crate::memory;

/// The natural mapping.
pub(super) struct Mapper<'a> {
    pub(super) options: &'a ArrowOptions,
    pub(super) crs: CrsTexts<'a>,
    /// BYTE_ARRAY leaves without annotation that are strings.
    pub(super) text: HashSet<usize>,
    /// Field ids of nodes that have none in the file.
    pub(super) ids: HashMap<u32, i32>,
}

/// The innermost list around a node, which its levels count from.
#[derive(Debug, Clone, Copy, Default)]
struct Outer {
    /// Definition level of an element of the innermost list around.
    slot: u16,
    /// Repetition level of that list.
    rep: u16,
}

impl Outer {
    fn element_of(repeated: Node<'_>) -> Self {
        Self { slot: repeated.max_def(), rep: repeated.max_rep() }
    }

    fn levels(self, present: u16) -> Levels {
        Levels { slot: self.slot, present, rep: self.rep }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Nullable {
    Yes,
    No,
}

impl Mapper<'_> {
    /// Maps the projected top-level fields. `refine` changes each; it is given the position of the
    /// field in the file.
    pub(super) fn fields(
        &self,
        schema: &Schema,
        projection: &Projection,
        refine: impl Fn(usize, Shape) -> Result<Shape>,
    ) -> Result<Vec<Shape>> {
        let map = |position: usize, node: Node<'_>, inner: Option<&ProjectedChildren>| {
            refine(position, self.field(node, inner, Outer::default())?)
        };
        match projection.resolve(schema)? {
            None => {
                let fields = schema.fields().enumerate();
                let fields = fields.filter(|(_, node)| has_columns(*node));
                memory::try_collected(fields.map(|(position, node)| map(position, node, None)))
            }
            Some(projected) => {
                let wanted = projected.iter();
                let wanted = wanted.filter_map(|of| Some((of, schema.field(of.position)?)));
                memory::try_collected(wanted.map(|(of, node)| {
                    map(of.position, check_has_columns(node)?, of.inner.as_ref())
                }))
            }
        }
    }

    /// The field id of a node: its own, or that of the name mapping.
    pub(super) fn field_id(&self, node: Node<'_>) -> Option<i32> {
        node.field_id().or_else(|| self.ids.get(&node.index()).copied())
    }

    /// Maps a top-level field in full.
    pub(super) fn whole_field(&self, node: Node<'_>) -> Result<Shape> {
        self.field(node, None, Outer::default())
    }

    /// Maps each leaf of a top-level field as if no other was projected, in order.
    pub(super) fn each_leaf(&self, field: Node<'_>, each: &mut impl FnMut(Result<Shape>)) {
        self.each_leaf_below((field, field), &mut Vec::new(), each);
    }

    /// Of a node in a field; `path` leads from the field to it, by positions.
    fn each_leaf_below(
        &self,
        (field, node): (Node<'_>, Node<'_>),
        path: &mut Vec<usize>,
        each: &mut impl FnMut(Result<Shape>),
    ) {
        if node.is_leaf() {
            let inner = ProjectedChildren::path_to(path);
            each(inner.and_then(|inner| self.field(field, inner.as_ref(), Outer::default())));
        }
        for (position, child) in node.children().enumerate() {
            path.push(position);
            self.each_leaf_below((field, child), path, each);
            path.pop();
        }
    }

    /// Maps a node with its repetition. `inner` selects the nodes below; `None` is all.
    fn field(
        &self,
        node: Node<'_>,
        inner: Option<&ProjectedChildren>,
        outer: Outer,
    ) -> Result<Shape> {
        let element = node.max_def();
        match node.repetition()? {
            Repetition::Required => self.value(node, inner, outer, Nullable::No),
            Repetition::Optional => self.value(node, inner, outer, Nullable::Yes),
            // Repeated without a LIST around it: a list that is never null, of elements that are
            // never null.
            Repetition::Repeated => {
                let item = self.value(node, inner, Outer::element_of(node), Nullable::No)?;
                let data_type = DataType::List(Arc::clone(&item.field));
                Ok(Shape {
                    field: self.named(node, data_type, Nullable::No, None),
                    levels: outer.levels(element.saturating_sub(1)),
                    kind: Kind::List { item: Box::new(item), element, rep: node.max_rep() },
                })
            }
        }
    }

    /// Maps a node, its own repetition aside.
    fn value(
        &self,
        node: Node<'_>,
        inner: Option<&ProjectedChildren>,
        outer: Outer,
        nullable: Nullable,
    ) -> Result<Shape> {
        if node.is_leaf() {
            return self.leaf(node, outer, nullable);
        }
        let (data_type, kind, extension) = match nested::group(node) {
            Group::List(list) => {
                let repeated = list.repeated;
                let outer = Outer::element_of(repeated);
                let inner = inner.and_then(|of_list| of_list.inside(0));
                let item = match (list.element, repeated.children().next()) {
                    (Element::Child, Some(child)) => {
                        let inner = inner.and_then(|of_repeated| of_repeated.inside(0));
                        self.field(child, inner, outer)?
                    }
                    _ => self.value(repeated, inner, outer, Nullable::No)?,
                };
                let (element, rep) = (outer.slot, outer.rep);
                let data_type = DataType::List(Arc::clone(&item.field));
                (data_type, Kind::List { item: Box::new(item), element, rep }, None)
            }
            Group::Map(map) => {
                let outer = Outer::element_of(map.entries);
                let entries = self.entries(map, inner, outer)?;
                let (element, rep) = (outer.slot, outer.rep);
                let data_type = DataType::Map(Arc::clone(&entries.field), false);
                (data_type, Kind::Map { entries: Box::new(entries), element, rep }, None)
            }
            found => {
                let children = self.children(node, inner, outer)?;
                // A part of a variant is no variant, because without the other fields its values
                // have another meaning.
                let extension = match found {
                    Group::Variant if inner.is_none() => {
                        Some(Marker::Extension(Extension::variant()))
                    }
                    Group::File => Some(Marker::LogicalType(extension::FILE)),
                    _ => None,
                };
                (struct_of(&children), Kind::Struct(children), extension)
            }
        };
        Ok(Shape {
            field: self.named(node, data_type, nullable, extension),
            levels: outer.levels(node.max_def()),
            kind,
        })
    }

    /// The entries of a map. Key and value are always read, even if only the key is asked for,
    /// because an Arrow map has both.
    fn entries(
        &self,
        map: nested::Map<'_>,
        inner: Option<&ProjectedChildren>,
        outer: Outer,
    ) -> Result<Shape> {
        let key = self.value(map.key, None, outer, Nullable::No)?;
        let inner = inner.and_then(|of_map| of_map.inside(0)?.inside(1));
        let children = vec![key, self.field(map.value, inner, outer)?];
        Ok(Shape {
            field: self.named(map.entries, struct_of(&children), Nullable::No, None),
            levels: outer.levels(outer.slot),
            kind: Kind::Struct(children),
        })
    }

    fn children(
        &self,
        group: Node<'_>,
        inner: Option<&ProjectedChildren>,
        outer: Outer,
    ) -> Result<Vec<Shape>> {
        let Some(projected) = inner else {
            let children = group.children().filter(|child| has_columns(*child));
            return children.map(|child| self.field(child, None, outer)).collect();
        };
        projected
            .iter()
            .filter_map(|wanted| Some((wanted, group.child_at(wanted.position)?)))
            .map(|(wanted, child)| {
                self.field(check_has_columns(child)?, wanted.inner.as_ref(), outer)
            })
            .collect()
    }

    fn leaf(&self, node: Node<'_>, outer: Outer, nullable: Nullable) -> Result<Shape> {
        let (data_type, extension) = self.natural_type(node)?;
        Ok(Shape {
            field: self.named(node, data_type, nullable, extension.map(Marker::Extension)),
            levels: outer.levels(node.max_def()),
            kind: Kind::Leaf { leaf: node.leaves().start },
        })
    }

    /// The natural Arrow type of a leaf: the table in [`crate::schema`].
    fn natural_type(&self, leaf: Node<'_>) -> Result<(DataType, Option<Extension>)> {
        let physical = leaf.physical()?;
        let logical = match leaf.head().is_annotated() {
            true => {
                annotation::in_force(leaf.element(), physical)
                    .map_err(|e| e.at_column(leaf.path().dotted()))?
                    .logical
            }
            false => None,
        };
        let Some(logical) = &logical else {
            return Ok((self.physical_type(leaf, physical)?, None));
        };
        let mut extension = None;
        let data_type = match logical {
            LogicalType::String | LogicalType::Enum => DataType::Utf8,
            LogicalType::Json => {
                extension = Some(Extension::json());
                DataType::Utf8
            }
            LogicalType::Bson => DataType::Binary,
            LogicalType::Geometry(geometry) => {
                extension = Some(Extension::geometry(geometry.crs.as_deref(), &self.crs));
                DataType::Binary
            }
            LogicalType::Geography(geography) => {
                let crs = geography.crs.as_deref();
                extension = Some(Extension::geography(crs, geography.algorithm, &self.crs));
                DataType::Binary
            }
            LogicalType::Uuid => {
                extension = Some(Extension::uuid());
                DataType::FixedSizeBinary(16)
            }
            LogicalType::Float16 => DataType::Float16,
            LogicalType::Integer(IntType { bit_width, is_signed, .. }) => {
                // The parsed schema has no other widths.
                let known = int_type(i32::from(*bit_width), *is_signed);
                known.unwrap_or(if *is_signed { DataType::Int64 } else { DataType::UInt64 })
            }
            LogicalType::Decimal(decimal) => {
                decimal_type(decimal).map_err(|e| e.at_column(leaf.path().dotted()))?
            }
            LogicalType::Date => DataType::Date32,
            LogicalType::Time(time) => match time.unit {
                Unit::Millis => DataType::Time32(TimeUnit::Millisecond),
                Unit::Micros => DataType::Time64(TimeUnit::Microsecond),
                _ => DataType::Time64(TimeUnit::Nanosecond),
            },
            LogicalType::Timestamp(timestamp) => timestamp_type(timestamp),
            LogicalType::Unknown => DataType::Null,
            // Never in force on a leaf.
            LogicalType::List
            | LogicalType::Map
            | LogicalType::Variant(_)
            | LogicalType::File
            | LogicalType::Unrecognized(..) => self.physical_type(leaf, physical)?,
        };
        Ok((data_type, extension))
    }

    /// The Arrow type of a leaf without logical type.
    fn physical_type(&self, leaf: Node<'_>, physical: Physical) -> Result<DataType> {
        let is_interval = leaf.head().converted_type() == Some(ConvertedType::Interval);
        Ok(match physical {
            Physical::Boolean => DataType::Boolean,
            Physical::Int32 => DataType::Int32,
            Physical::Int64 => DataType::Int64,
            Physical::Int96 => DataType::Timestamp(self.options.int96, None),
            Physical::Float => DataType::Float32,
            Physical::Double => DataType::Float64,
            Physical::ByteArray if self.text.contains(&leaf.leaves().start) => DataType::Utf8,
            Physical::ByteArray => DataType::Binary,
            Physical::FixedLenByteArray(12) if is_interval => {
                DataType::Interval(IntervalUnit::MonthDayNano)
            }
            Physical::FixedLenByteArray(length) => match i32::try_from(length) {
                Ok(length) => DataType::FixedSizeBinary(length),
                Err(_) => {
                    return Err(Error::unsupported("value length", format_args!("{length} bytes"))
                        .at_column(leaf.path().dotted()));
                }
            },
        })
    }

    /// The Arrow field of `node`.
    fn named(
        &self,
        node: Node<'_>,
        data_type: DataType,
        nullable: Nullable,
        marker: Option<Marker>,
    ) -> FieldRef {
        // Even if the schema says otherwise, because an array of nulls holds nothing else.
        let nullable = nullable == Nullable::Yes || data_type == DataType::Null;
        let field = Field::new(node.name(), data_type, nullable);
        let field_id = self.field_id(node);
        if field_id.is_none() && marker.is_none() {
            return Arc::new(field);
        }
        let mut metadata = HashMap::new();
        if let Some(id) = field_id {
            metadata.insert(extension::FIELD_ID_KEY.to_owned(), id.to_string());
        }
        match marker {
            Some(Marker::Extension(extension)) => extension.write(&mut metadata),
            Some(Marker::LogicalType(name)) => {
                metadata.insert(extension::LOGICAL_TYPE_KEY.to_owned(), name.to_owned());
            }
            None => {}
        }
        Arc::new(field.with_metadata(metadata))
    }
}

/// The BYTE_ARRAY leaves that count as strings although the file does not annotate them.
pub(super) fn text_leaves(schema: &Schema, columns: &TextColumns) -> Result<HashSet<usize>> {
    let mut leaves = HashSet::new();
    let names = match columns {
        TextColumns::None => return Ok(leaves),
        TextColumns::All => {
            leaves.extend(0..schema.leaves_len());
            &[][..]
        }
        TextColumns::Named(names) => names,
    };
    for name in names {
        leaves.extend(schema.node_named(name)?.leaves());
    }
    leaves.retain(|leaf| schema.leaf_node(*leaf).is_ok_and(is_bare_byte_array));
    Ok(leaves)
}

/// Whether a leaf is a BYTE_ARRAY that no annotation and no VARIANT around it gives a meaning.
fn is_bare_byte_array(leaf: Node<'_>) -> bool {
    let in_variant = || {
        let mut around = leaf.parent();
        while let Some(node) = around.filter(|node| !nested::is_variant(*node)) {
            around = node.parent();
        }
        around.is_some()
    };
    leaf.physical().is_ok_and(|physical| physical == Physical::ByteArray)
        && !leaf.head().is_annotated()
        && !in_variant()
}

/// The type that the metadata of a field name.
enum Marker {
    Extension(Extension),
    LogicalType(&'static str),
}

/// The Arrow type of a DECIMAL.
///
/// # Errors
/// `Unsupported` beyond 76 digits.
fn decimal_type(decimal: &DecimalType) -> Result<DataType> {
    match (u8::try_from(decimal.precision), i8::try_from(decimal.scale)) {
        (Ok(precision @ ..=38), Ok(scale)) => Ok(DataType::Decimal128(precision, scale)),
        (Ok(precision @ ..=76), Ok(scale)) => Ok(DataType::Decimal256(precision, scale)),
        _ => Err(Error::unsupported(
            "decimal of more than 76 digits",
            format_args!("precision {} is more than Arrow has", decimal.precision),
        )),
    }
}

/// The Arrow type of a TIMESTAMP.
fn timestamp_type(timestamp: &TimestampType) -> DataType {
    let unit = match timestamp.unit {
        Unit::Millis => TimeUnit::Millisecond,
        Unit::Micros => TimeUnit::Microsecond,
        _ => TimeUnit::Nanosecond,
    };
    DataType::Timestamp(unit, timestamp.is_adjusted_to_utc.then(|| Arc::from("UTC")))
}

/// The Arrow integer of a width in bits.
pub(super) fn int_type(bit_width: i32, is_signed: bool) -> Option<DataType> {
    Some(match (bit_width, is_signed) {
        (8, true) => DataType::Int8,
        (8, false) => DataType::UInt8,
        (16, true) => DataType::Int16,
        (16, false) => DataType::UInt16,
        (32, true) => DataType::Int32,
        (32, false) => DataType::UInt32,
        (64, true) => DataType::Int64,
        (64, false) => DataType::UInt64,
        _ => return None,
    })
}

/// Whether `node` has any column. Groups without columns are left out, as other readers do, because
/// the file does not store where they are null.
pub(super) fn has_columns(node: Node<'_>) -> bool {
    !node.leaves().is_empty()
}

/// Checks that there is something to read of a node that was asked for by name or index.
fn check_has_columns(node: Node<'_>) -> Result<Node<'_>> {
    if !has_columns(node) {
        return Err(Error::usage(format_args!(
            "{} is a group without columns: there is nothing to read of it",
            node.path()
        )));
    }
    Ok(node)
}
