//! `variant_get`: extracts the part at a path of each value, as a column of a given type.
//!
//! Through shredded objects and lists, the path is followed once for all rows, and a shredded
//! column of the requested type is returned as it is. Only values that are not shredded are read
//! row by row.

use std::borrow::Cow;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, StructArray, UInt64Array};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::array::VariantArray;
use super::columns::{ShreddedNode, TypedKind, with_nulls};
use super::metadata::VariantMetadata;
use super::nested_builder::NestedBuilder;
use super::path::{VariantPath, VariantStep};
use super::scalar_builder::{ScalarBuilder, no_type_of_a_part};
use super::unshred::{Unshredder, binary, check_whole, end_of};
use super::value::Variant;
use crate::error::Result;

/// Where a path leads in the columns, before single values are read.
struct FoundPath<'a> {
    node: Cow<'a, ShreddedNode>,
    /// Null in the rows that lack a part of the path.
    nulls: Option<NullBuffer>,
    /// Whether it is the whole value, or an element of a list: never missing.
    is_required: bool,
    /// The steps that are left, within `value`.
    rest: &'a [VariantStep],
}

impl VariantArray {
    /// The part at `path` of each value, as a column of `data_type`: null if it is missing or of
    /// another type. Numbers are converted if the result is equal, and to floats by rounding;
    /// timestamps change their unit if nothing is lost; nothing else is converted. With
    /// [`VariantArray::unshredded_type`], the parts are a VARIANT column again. With a list or a
    /// struct, arrays and objects become lists and structs of those types, to any depth: elements
    /// of another type and fields that are missing are null, and other fields are left out.
    ///
    /// ```
    /// use arrow_array::cast::AsArray;
    /// use arrow_array::types::Int64Type;
    /// use arrow_schema::DataType;
    /// use marquetry::variant::{VariantArray, VariantPath, VariantStep};
    /// # use std::sync::Arc;
    /// # use arrow_array::{ArrayRef, BinaryArray, StructArray};
    /// # use arrow_schema::Field;
    /// // {"a": 7} and null
    /// # let metadata: &[u8] = b"\x01\x01\x00\x01a";
    /// # let object: &[u8] = &[2, 1, 0, 0, 2, 3 << 2, 7];
    /// # let columns: Vec<(Arc<Field>, ArrayRef)> = vec![
    /// #     (Arc::new(Field::new("metadata", DataType::Binary, false)),
    /// #      Arc::new(BinaryArray::from_vec(vec![metadata, metadata]))),
    /// #     (Arc::new(Field::new("value", DataType::Binary, false)),
    /// #      Arc::new(BinaryArray::from_vec(vec![object, &[0]]))),
    /// # ];
    /// # let array = StructArray::from(columns);
    /// let column = VariantArray::new(&array)?;
    /// let path = VariantPath::new([VariantStep::Field("a".to_owned())]);
    /// let numbers = column.get(&path, &DataType::Int64)?;
    /// assert_eq!(numbers.as_primitive::<Int64Type>().value(0), 7);
    /// assert!(numbers.is_null(1));
    /// # Ok::<(), marquetry::Error>(())
    /// ```
    ///
    /// # Errors
    /// `Usage` for a type that is not in the list of [`VariantShape::scalar`], an unsigned integer,
    /// that of a VARIANT, or a `List`, `LargeList` or `Struct` of nullable fields of these;
    /// `Malformed(Variant)` if a value is cut short or contradicts itself.
    ///
    /// [`VariantShape::scalar`]: super::VariantShape::scalar
    pub fn get(&self, path: &VariantPath, data_type: &DataType) -> Result<ArrayRef> {
        Self::check_type(data_type)?;
        let found = self.follow(path)?;
        if *data_type == Self::unshredded_type() {
            return self.get_variant(&found);
        }
        if data_type.is_nested() {
            return self.get_nested(&found, data_type);
        }
        if found.rest.is_empty() {
            let typed = found.node.typed.as_ref().filter(|typed| {
                matches!(typed.kind, TypedKind::Scalar(_)) && typed.array.data_type() == data_type
            });
            let others =
                found.node.value.as_ref().map_or(0, |value| value.len() - value.null_count());
            if let Some(typed) = typed.filter(|_| others == 0) {
                return with_nulls(&typed.array, found.nulls.as_ref());
            }
        }
        let mut out =
            ScalarBuilder::new(data_type, self.len).ok_or_else(|| no_type_of_a_part(data_type))?;
        let mut unshredder = Unshredder::new(self);
        for row in 0..self.len {
            if let Some(value) = self.part(&found, row, &mut unshredder)? {
                out.push_converted(row, &value)?;
            }
        }
        out.finish(self.len, data_type)
    }

    /// Checks that a part can have this type.
    pub(crate) fn check_type(data_type: &DataType) -> Result<()> {
        match data_type {
            DataType::Struct(_) | DataType::List(_) | DataType::LargeList(_) => {
                NestedBuilder::new(data_type).map(drop)
            }
            other if ScalarBuilder::new(other, 0).is_some() => Ok(()),
            other => Err(no_type_of_a_part(other)),
        }
    }

    /// Follows the path through shredded columns.
    fn follow<'a>(&'a self, path: &'a VariantPath) -> Result<FoundPath<'a>> {
        let mut node = Cow::Borrowed(&self.root);
        let mut nulls = self.nulls.clone();
        let mut rest = path.steps();
        while let Some((step, after)) = rest.split_first() {
            let typed = node.typed.as_ref();
            let next = match (typed.map(|typed| (typed, &typed.kind)), step) {
                (Some((typed, TypedKind::Object(fields))), VariantStep::Field(name)) => {
                    let at = fields.binary_search_by(|field| field.0.as_str().cmp(name.as_str()));
                    let Ok(at) = at else { break };
                    nulls = NullBuffer::union(nulls.as_ref(), typed.nulls.as_ref());
                    match &node {
                        Cow::Borrowed(node) => match node.typed.as_ref().map(|typed| &typed.kind) {
                            Some(TypedKind::Object(fields)) => Cow::Borrowed(&fields[at].1),
                            _ => break,
                        },
                        Cow::Owned(_) => Cow::Owned(fields[at].1.clone()),
                    }
                }
                (
                    Some((typed, TypedKind::List(ranges, _, elements))),
                    VariantStep::Index(index),
                ) => {
                    let mut rows = Vec::with_capacity(self.len);
                    for row in 0..self.len {
                        let valid = typed.is_valid(row)
                            && nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
                        let mut elements = if valid { ranges.elements(row) } else { 0..0 };
                        rows.push(elements.nth(*index).map(|at| at as u64));
                    }
                    let rows = UInt64Array::from(rows);
                    nulls = NullBuffer::union(nulls.as_ref(), rows.nulls());
                    // A row that has no such element is null as a whole, and so are its parts.
                    let taken = arrow_select::take::take(elements, &rows, None)?;
                    nulls = NullBuffer::union(nulls.as_ref(), taken.nulls());
                    Cow::Owned(ShreddedNode::new(taken.as_struct(), 0)?)
                }
                _ => break,
            };
            node = next;
            rest = after;
        }
        let way = path.steps().len() - rest.len();
        let last = way.checked_sub(1).and_then(|last| path.steps().get(last));
        let is_required = !matches!(last, Some(VariantStep::Field(_)));
        Ok(FoundPath { node, nulls, is_required, rest })
    }

    /// The part of a row that is a scalar; null for others.
    fn part<'a>(
        &'a self,
        found: &'a FoundPath<'a>,
        row: usize,
        names: &mut Unshredder<'a>,
    ) -> Result<Option<Variant<'a>>> {
        if found.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return Ok(None);
        }
        if found.rest.is_empty()
            && let Some(typed) = &found.node.typed
            && typed.is_valid(row)
        {
            return Ok(match &typed.kind {
                TypedKind::Scalar(scalars) => Some(scalars.value(row)),
                TypedKind::List(..) | TypedKind::Object(_) => None,
            });
        }
        let Some(value) = found.node.value.as_ref().and_then(|column| column.get(row)) else {
            return Ok(None);
        };
        names.enter(row)?;
        step_into(names.metadata()?, value, found.rest).map(|found| found.map(|(value, _)| value))
    }

    /// The parts as lists or structs.
    fn get_nested(&self, found: &FoundPath<'_>, data_type: &DataType) -> Result<ArrayRef> {
        let mut out = NestedBuilder::new(data_type)?;
        let mut unshredder = Unshredder::new(self);
        let mut names = Unshredder::new(self);
        let mut whole = Vec::new();
        for row in 0..self.len {
            whole.clear();
            let on_the_way = found.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            if !on_the_way || !unshredder.append_of(&found.node, row, row, &mut whole)? {
                out.push(None)?;
                continue;
            }
            names.enter(row)?;
            let part = step_into(names.metadata()?, &whole, found.rest)?;
            out.push(part.as_ref().map(|(value, _)| value))?;
        }
        out.finish()
    }

    /// The parts as they are.
    fn get_variant(&self, found: &FoundPath<'_>) -> Result<ArrayRef> {
        let mut unshredder = Unshredder::new(self);
        let mut names = Unshredder::new(self);
        let mut bytes = Vec::new();
        let mut ends = Vec::with_capacity(self.len + 1);
        ends.push(0);
        let mut valid = Vec::with_capacity(self.len);
        let mut whole = Vec::new();
        for row in 0..self.len {
            let on_the_way = found.nulls.as_ref().is_none_or(|nulls| nulls.is_valid(row));
            let mut is_there = false;
            if on_the_way {
                names.enter(row)?;
                whole.clear();
                is_there = unshredder.append_of(&found.node, row, row, &mut whole)?;
                // At the top level and in lists, a missing value is null.
                if !is_there && found.rest.is_empty() && found.is_required {
                    whole.push(0);
                    is_there = true;
                }
                if is_there {
                    let part = step_into(names.metadata()?, &whole, found.rest)?;
                    is_there = part.is_some();
                    bytes.extend_from_slice(part.map_or(&[][..], |(_, bytes)| bytes));
                }
            }
            valid.push(is_there);
            ends.push(end_of(&bytes)?);
        }
        let DataType::Struct(fields) = Self::unshredded_type() else {
            unreachable!("a VARIANT is a struct in Arrow")
        };
        let columns: Vec<ArrayRef> = vec![self.plain_metadata()?, Arc::new(binary(bytes, ends))];
        let nulls = Some(NullBuffer::from(valid)).filter(|nulls| nulls.null_count() > 0);
        Ok(Arc::new(StructArray::try_new(fields, columns, nulls)?))
    }
}

/// The value that a path leads to within another, and its bytes.
fn step_into<'a>(
    metadata: VariantMetadata<'a>,
    bytes: &'a [u8],
    path: &[VariantStep],
) -> Result<Option<(Variant<'a>, &'a [u8])>> {
    let (mut value, len) = Variant::read(metadata, bytes, 0)?;
    check_whole(bytes, len)?;
    let mut bytes = bytes;
    for step in path {
        let inner = match (step, value) {
            (VariantStep::Field(name), Variant::Object(object)) => object.find(name)?,
            (VariantStep::Index(index), Variant::List(list)) => list.part(*index)?,
            _ => None,
        };
        let Some(inner) = inner else { return Ok(None) };
        bytes = inner;
        value = Variant::read(metadata, bytes, 0)?.0;
    }
    Ok(Some((value, bytes)))
}
