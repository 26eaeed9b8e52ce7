//! From the schema of a file to Arrow: which fields a read gives, and how they follow from levels.
//!
//! Called when a read is planned; `read::column` and `levels::assemble` do what the [`Shape`]s say. Only what is projected is
//! mapped. In order: the natural mapping (the table in [`crate::schema`]), then `hint`, then the options, or in place of
//! these two the wanted schema (`target`).
//! Trap: the levels of a node follow from the tree of the file alone. Neither a hint nor a target changes them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, IntervalUnit, SchemaRef, TimeUnit};

use super::annotation::{self, Annotation};
use super::convert::conversion;
use super::extension::{self, CrsTexts, Extension};
use super::hint::{self, Hint};
use super::nested::{self, Element, Group};
use super::node::{Node, Repetition, Schema};
use super::projection::Picks;
use super::target::Groups;
use super::{Kind, Levels, Physical, Projection, Shape, target, text};
use crate::error::{Error, Result};
use crate::format::{ConvertedType, KeyValue, LogicalType};

/// How the columns of a file become Arrow fields.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ArrowOptions {
    /// Unit of the timestamps that INT96 columns become. Default nanoseconds, which end in the year 2262; files of Spark
    /// may need microseconds.
    pub int96: TimeUnit,
    /// Read strings and byte strings as `Utf8View` and `BinaryView`. Default false.
    pub views: bool,
    /// Columns to read without expanding their dictionaries. Default none.
    pub dictionaries: Dictionaries,
    /// Read BYTE_ARRAY columns without annotation as strings, as Impala and old Spark meant them. Default false.
    pub binary_as_string: bool,
    /// Restore the Arrow types that the writer noted under `ARROW:schema`, where the annotation of the column leaves them open and
    /// nothing is lost by it. Default true.
    pub hint: bool,
    /// The schema that the rows shall have, whatever the file has: see [`ArrowOptions::with_target`]. Default none.
    pub target: Option<SchemaRef>,
    /// How fields of the target find theirs in the file. Default by name.
    pub match_by: MatchBy,
}

/// Which columns are read without expanding their dictionaries, as `Dictionary(Int32, _)`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Dictionaries {
    /// None but those that a hint says so of.
    #[default]
    None,
    /// All strings.
    Strings,
    /// The columns with these names, looked up as [`Projection::names`] does; of a group, all its strings and byte strings.
    Named(Vec<String>),
}

/// How fields of a target schema find theirs in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MatchBy {
    /// By exact name.
    #[default]
    Name,
    /// By the field id under `PARQUET:field_id`; a target field without one by name.
    FieldId,
}

impl Default for ArrowOptions {
    fn default() -> Self {
        Self {
            int96: TimeUnit::Nanosecond,
            views: false,
            dictionaries: Dictionaries::None,
            binary_as_string: false,
            hint: true,
            target: None,
            match_by: MatchBy::Name,
        }
    }
}

impl ArrowOptions {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the unit of INT96 timestamps.
    #[must_use]
    pub fn with_int96(mut self, unit: TimeUnit) -> Self {
        self.int96 = unit;
        self
    }

    /// Sets whether strings and byte strings are views.
    #[must_use]
    pub fn with_views(mut self, views: bool) -> Self {
        self.views = views;
        self
    }

    /// Sets which columns stay dictionary-encoded.
    #[must_use]
    pub fn with_dictionaries(mut self, dictionaries: Dictionaries) -> Self {
        self.dictionaries = dictionaries;
        self
    }

    /// Sets whether BYTE_ARRAY without annotation is a string.
    #[must_use]
    pub fn with_binary_as_string(mut self, binary_as_string: bool) -> Self {
        self.binary_as_string = binary_as_string;
        self
    }

    /// Sets whether `ARROW:schema` is heeded.
    #[must_use]
    pub fn with_hint(mut self, hint: bool) -> Self {
        self.hint = hint;
        self
    }

    /// Sets the schema that the rows shall have: its fields, in its order, whatever the file has.
    ///
    /// Types may be wider than those of the file, but nothing may be lost. A nullable field that the file does not have is all
    /// null; this holds inside of structs, lists and maps too. A field that may be null in the file may not be non-null in the
    /// target. The target alone decides about types: the hint and the other options but `int96` and `match_by` have no say.
    /// A projection then chooses among the fields of the target.
    #[must_use]
    pub fn with_target(mut self, target: SchemaRef, match_by: MatchBy) -> Self {
        self.target = Some(target);
        self.match_by = match_by;
        self
    }
}

/// What a read gives: the Arrow schema, and for each of its fields how it follows from the leaves.
#[derive(Debug, Clone, PartialEq)]
pub struct Mapping {
    /// The schema of the rows.
    pub schema: SchemaRef,
    /// One per field of the schema.
    pub(crate) shapes: Vec<Shape>,
}

impl Mapping {
    /// The leaves that are read, in the order of the shapes. No leaf is read twice.
    pub fn leaves(&self) -> Vec<usize> {
        let mut leaves = Vec::new();
        for shape in &self.shapes {
            shape.for_each_leaf(&mut |leaf, _| leaves.push(leaf));
        }
        leaves
    }
}

/// Maps the projected part of `schema` to Arrow. `key_values` are those of the file.
///
/// # Errors
/// `Usage` if the projection, a named dictionary column or the target does not fit the file; `Unsupported` if a projected
/// column has no Arrow type.
pub fn to_arrow(
    schema: &Schema,
    key_values: &[KeyValue],
    projection: &Projection,
    options: &ArrowOptions,
) -> Result<Mapping> {
    map_to_arrow(schema, key_values, projection, options, Groups::AreRead)
}

/// As [`to_arrow`], to find out where columns come from, and not to read them: with a target, groups may be without any field
/// that the file has.
pub(crate) fn describe_in_arrow(
    schema: &Schema,
    key_values: &[KeyValue],
    projection: &Projection,
    options: &ArrowOptions,
) -> Result<Mapping> {
    map_to_arrow(schema, key_values, projection, options, Groups::AreDescribed)
}

fn map_to_arrow(
    schema: &Schema,
    key_values: &[KeyValue],
    projection: &Projection,
    options: &ArrowOptions,
    groups: Groups,
) -> Result<Mapping> {
    let mapper = Mapper { options, crs: CrsTexts::new(key_values) };
    if let Some(target) = &options.target {
        return target::to_target(schema, &mapper, projection, target, groups);
    }
    let hint = if options.hint { Hint::find(key_values) } else { None };
    let hint = hint.as_ref().and_then(Hint::open);
    let shapes = mapper.fields(schema, projection, |position, shape| match &hint {
        Some(hint) => hint.refine(schema, position, shape),
        None => shape,
    })?;
    let shapes = refine_by_options(schema, shapes, options)?;
    let fields: Fields = shapes.iter().map(|shape| Arc::clone(&shape.field)).collect();
    let mut metadata = hint.map(|hint| hint.metadata()).unwrap_or_default();
    // A key without a value is not the same as one with an empty value, and Arrow can only say the latter.
    let present = key_values.iter().filter(|entry| entry.key != hint::KEY);
    metadata.extend(present.filter_map(|entry| Some((entry.key.clone(), entry.value.clone()?))));
    let schema = Arc::new(arrow_schema::Schema::new_with_metadata(fields, metadata));
    Ok(Mapping { schema, shapes })
}

/// The natural mapping.
pub(super) struct Mapper<'a> {
    pub(super) options: &'a ArrowOptions,
    crs: CrsTexts<'a>,
}

/// What the levels of a node count from.
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
    /// Maps the projected top-level fields, each refined by `refine`, which is told its position in the file.
    fn fields(
        &self,
        schema: &Schema,
        projection: &Projection,
        refine: impl Fn(usize, Shape) -> Shape,
    ) -> Result<Vec<Shape>> {
        let map = |position: usize, node: Node<'_>, inner: Option<&Picks>| {
            Ok(refine(position, self.field(node, inner, Outer::default())?))
        };
        match projection.resolve(schema)? {
            None => {
                let fields = schema.fields().enumerate();
                let fields = fields.filter(|(_, node)| has_columns(*node));
                fields.map(|(position, node)| map(position, node, None)).collect()
            }
            Some(picks) => picks
                .iter()
                .filter_map(|pick| Some((pick, schema.field(pick.position)?)))
                .map(|(pick, node)| map(pick.position, picked(node)?, pick.inner.as_ref()))
                .collect(),
        }
    }

    /// Maps a top-level field in full.
    pub(super) fn whole_field(&self, node: Node<'_>) -> Result<Shape> {
        self.field(node, None, Outer::default())
    }

    /// Maps a node with its repetition. Of what is below it, `inner` is wanted.
    fn field(&self, node: Node<'_>, inner: Option<&Picks>, outer: Outer) -> Result<Shape> {
        let element = node.max_def();
        match node.repetition()? {
            Repetition::Required => self.value(node, inner, outer, Nullable::No),
            Repetition::Optional => self.value(node, inner, outer, Nullable::Yes),
            // Repeated without a LIST around it: a list that is never null, of elements that are not either.
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
        inner: Option<&Picks>,
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
                // The key is always read, and if only the key is asked for the value too: an Arrow map has both.
                let key = self.value(map.key, None, outer, Nullable::No)?;
                let value = self.field(
                    map.value,
                    inner.and_then(|of_map| of_map.inside(0)?.inside(1)),
                    outer,
                )?;
                let entries = vec![key, value];
                let entries = Shape {
                    field: self.named(map.entries, struct_of(&entries), Nullable::No, None),
                    levels: outer.levels(outer.slot),
                    kind: Kind::Struct(entries),
                };
                let (element, rep) = (outer.slot, outer.rep);
                let data_type = DataType::Map(Arc::clone(&entries.field), false);
                (data_type, Kind::Map { entries: Box::new(entries), element, rep }, None)
            }
            found => {
                let children = self.children(node, inner, outer)?;
                // A part of a variant is none: without metadata or typed values it would say something else.
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

    fn children(&self, group: Node<'_>, inner: Option<&Picks>, outer: Outer) -> Result<Vec<Shape>> {
        let Some(picks) = inner else {
            let children = group.children().filter(|child| has_columns(*child));
            return children.map(|child| self.field(child, None, outer)).collect();
        };
        let children: Vec<Node<'_>> = group.children().collect();
        picks
            .iter()
            .filter_map(|pick| Some((pick, *children.get(pick.position)?)))
            .map(|(pick, child)| self.field(picked(child)?, pick.inner.as_ref(), outer))
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
        use crate::format::TimeUnit as Unit;
        let physical = leaf.physical()?;
        let Annotation { logical, .. } = annotation::in_force(leaf.element(), physical)
            .map_err(|e| e.at_column(leaf.path().dotted()))?;
        let Some(logical) = logical.as_deref() else {
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
            LogicalType::Integer(integer) => match (integer.bit_width, integer.is_signed) {
                (8, true) => DataType::Int8,
                (8, false) => DataType::UInt8,
                (16, true) => DataType::Int16,
                (16, false) => DataType::UInt16,
                (32, true) => DataType::Int32,
                (32, false) => DataType::UInt32,
                (_, true) => DataType::Int64,
                (_, false) => DataType::UInt64,
            },
            LogicalType::Decimal(decimal) => {
                match (u8::try_from(decimal.precision), i8::try_from(decimal.scale)) {
                    (Ok(precision @ ..=38), Ok(scale)) => DataType::Decimal128(precision, scale),
                    (Ok(precision @ ..=76), Ok(scale)) => DataType::Decimal256(precision, scale),
                    _ => {
                        return Err(Error::unsupported(
                            "decimal of more than 76 digits",
                            format_args!("precision {} is more than Arrow has", decimal.precision),
                        )
                        .at_column(leaf.path().dotted()));
                    }
                }
            }
            LogicalType::Date => DataType::Date32,
            LogicalType::Time(time) => match time.unit {
                Unit::Millis => DataType::Time32(TimeUnit::Millisecond),
                Unit::Micros => DataType::Time64(TimeUnit::Microsecond),
                _ => DataType::Time64(TimeUnit::Nanosecond),
            },
            LogicalType::Timestamp(timestamp) => {
                let unit = match timestamp.unit {
                    Unit::Millis => TimeUnit::Millisecond,
                    Unit::Micros => TimeUnit::Microsecond,
                    _ => TimeUnit::Nanosecond,
                };
                let zone = timestamp.is_adjusted_to_utc.then(|| Arc::from("UTC"));
                DataType::Timestamp(unit, zone)
            }
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
        let is_interval = leaf.element().converted_type == Some(ConvertedType::Interval);
        Ok(match physical {
            Physical::Boolean => DataType::Boolean,
            Physical::Int32 => DataType::Int32,
            Physical::Int64 => DataType::Int64,
            Physical::Int96 => DataType::Timestamp(self.options.int96, None),
            Physical::Float => DataType::Float32,
            Physical::Double => DataType::Float64,
            Physical::ByteArray if self.is_string(leaf) => DataType::Utf8,
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

    /// Whether a BYTE_ARRAY without logical type counts as a string.
    fn is_string(&self, leaf: Node<'_>) -> bool {
        let element = leaf.element();
        let annotated = element.logical_type.is_some() || element.converted_type.is_some();
        self.options.binary_as_string && !annotated
    }

    /// The Arrow field that stands for `node`.
    fn named(
        &self,
        node: Node<'_>,
        data_type: DataType,
        nullable: Nullable,
        marker: Option<Marker>,
    ) -> FieldRef {
        // Whatever the schema says: an array of nulls holds nothing else.
        let nullable = nullable == Nullable::Yes || data_type == DataType::Null;
        let field = Field::new(node.name(), data_type, nullable);
        let field_id = node.element().field_id;
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

/// What the metadata of a field say about its type.
enum Marker {
    Extension(Extension),
    LogicalType(&'static str),
}

/// Whether there is anything to read of `node`. Groups without columns are left out, as peers do: nothing in the file tells
/// how often they are there.
pub(super) fn has_columns(node: Node<'_>) -> bool {
    !node.leaves().is_empty()
}

/// A node that was asked for by name or index.
fn picked(node: Node<'_>) -> Result<Node<'_>> {
    if !has_columns(node) {
        return Err(Error::usage(format_args!(
            "{} is a group without columns: there is nothing to read of it",
            node.path()
        )));
    }
    Ok(node)
}

pub(super) fn struct_of(children: &[Shape]) -> DataType {
    DataType::Struct(children.iter().map(|child| Arc::clone(&child.field)).collect())
}

/// Applies `views` and `dictionaries`.
fn refine_by_options(
    schema: &Schema,
    mut shapes: Vec<Shape>,
    options: &ArrowOptions,
) -> Result<Vec<Shape>> {
    let kept = match &options.dictionaries {
        Dictionaries::None if !options.views => return Ok(shapes),
        Dictionaries::Named(names) => Kept::named(schema, names)?,
        Dictionaries::None | Dictionaries::Strings => Kept::default(),
    };
    let strings = options.dictionaries == Dictionaries::Strings;
    let mut wanted = |leaf: usize, found: &DataType| {
        use DataType as D;
        let (text, bytes) = match found {
            D::Dictionary(..) | D::RunEndEncoded(..) => return Ok(None),
            D::Utf8 | D::LargeUtf8 | D::Utf8View => (true, false),
            D::Binary | D::LargeBinary | D::BinaryView => (false, true),
            _ => (false, false),
        };
        let by_name = kept.leaves.contains(&leaf);
        if by_name || strings && text || (text || bytes) && kept.in_groups.contains(&leaf) {
            let value = match found {
                D::Utf8View => D::Utf8,
                D::BinaryView => D::Binary,
                other => other.clone(),
            };
            let dictionary = D::Dictionary(Box::new(D::Int32), Box::new(value));
            let leaf = schema.leaf(leaf)?;
            if conversion(&leaf, &dictionary).is_some() {
                return Ok(Some(dictionary));
            }
            if by_name {
                return Err(Error::usage(format_args!(
                    "column {} is {}, which has no dictionary form",
                    leaf.path,
                    text::leaf_type(&leaf)
                )));
            }
        }
        Ok(match found {
            _ if !options.views => None,
            D::Utf8 | D::LargeUtf8 => Some(D::Utf8View),
            D::Binary | D::LargeBinary => Some(D::BinaryView),
            _ => None,
        })
    };
    for shape in &mut shapes {
        retype_leaves(shape, &mut wanted)?;
    }
    Ok(shapes)
}

/// Leaves whose dictionaries are kept.
#[derive(Default)]
struct Kept {
    /// Named themselves.
    leaves: HashSet<usize>,
    /// Below a named group.
    in_groups: HashSet<usize>,
}

impl Kept {
    fn named(schema: &Schema, names: &[String]) -> Result<Self> {
        let mut kept = Self::default();
        for name in names {
            let node = schema.node_named(name)?;
            let leaves = if node.is_leaf() { &mut kept.leaves } else { &mut kept.in_groups };
            leaves.extend(node.leaves());
        }
        Ok(kept)
    }
}

/// Gives each leaf the type that `wanted` says, if it says one, and tells the nodes above. Whether anything changed.
fn retype_leaves(
    shape: &mut Shape,
    wanted: &mut impl FnMut(usize, &DataType) -> Result<Option<DataType>>,
) -> Result<bool> {
    let changed = match &mut shape.kind {
        Kind::Leaf { leaf } => {
            let Some(data_type) = wanted(*leaf, shape.field.data_type())? else {
                return Ok(false);
            };
            let field = Arc::make_mut(&mut shape.field);
            field.set_data_type(data_type);
            extension::keep_if_fitting(field);
            return Ok(true);
        }
        Kind::Struct(children) => {
            let mut changed = false;
            for child in children {
                changed |= retype_leaves(child, wanted)?;
            }
            changed
        }
        Kind::List { item: child, .. } | Kind::Map { entries: child, .. } => {
            retype_leaves(child, wanted)?
        }
        Kind::Missing => false,
    };
    if changed {
        let data_type = with_children(shape.field.data_type(), &shape.kind);
        Arc::make_mut(&mut shape.field).set_data_type(data_type);
    }
    Ok(changed)
}

/// The type `parent` with its child fields taken from `kind`.
pub(super) fn with_children(parent: &DataType, kind: &Kind) -> DataType {
    match kind {
        Kind::Struct(children) => struct_of(children),
        Kind::List { item: child, .. } | Kind::Map { entries: child, .. } => {
            let child = Arc::clone(&child.field);
            match parent {
                DataType::LargeList(_) => DataType::LargeList(child),
                DataType::ListView(_) => DataType::ListView(child),
                DataType::LargeListView(_) => DataType::LargeListView(child),
                DataType::FixedSizeList(_, length) => DataType::FixedSizeList(child, *length),
                DataType::Map(_, sorted) => DataType::Map(child, *sorted),
                _ => DataType::List(child),
            }
        }
        Kind::Leaf { .. } | Kind::Missing => parent.clone(),
    }
}

#[cfg(test)]
mod tests;
