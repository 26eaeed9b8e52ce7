//! `variant_get`: extracts the part at a path of each value, as a column of a given type.
//!
//! Through shredded objects and lists, the path is followed once for all rows, and a shredded
//! column of the requested type is returned as it is. Only values that are not shredded are read
//! row by row.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, StructArray, UInt64Array};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use super::array::VariantArray;
use super::columns::{ShreddedNode, TypedKind, with_nulls};
use super::metadata::VariantMetadata;
use super::nested_builder::NestedBuilder;
use super::path::{VariantPath, VariantStep};
use super::scalar_builder::{ScalarBuilder, no_type_of_a_part};
use super::unshred::{Unshredder, binary, check_whole, end_of, first_end};
use super::value::Variant;
use crate::bytes::saturated;
use crate::error::Result;
use crate::limits::Growth;
use crate::memory;
use crate::rows::value_bytes;

/// Where a path leads in the columns, before single values are read.
struct FoundPath<'a> {
    node: &'a ShreddedNode,
    /// Where the arrays of the node have each row, if the path leads into lists; `None` for a row
    /// that has no such element. Elements stay where they are, because a null of their type may be
    /// large.
    places: Option<Vec<Option<usize>>>,
    /// Null in the rows that lack a part of the path.
    nulls: Option<NullBuffer>,
    /// Whether it is the whole value, or an element of a list: never missing.
    is_required: bool,
    /// The steps that are left, within `value`.
    rest: &'a [VariantStep],
}

impl FoundPath<'_> {
    /// Where the arrays of the node have a row; `None` if it lacks a part of the path.
    fn place(&self, row: usize) -> Option<usize> {
        if self.nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
            return None;
        }
        match &self.places {
            Some(places) => places.get(row).copied().flatten(),
            None => Some(row),
        }
    }

    /// A column of the node, with the nulls of the path.
    fn column(&self, array: &ArrayRef, growth: &Growth) -> Result<ArrayRef> {
        let Some(places) = &self.places else { return with_nulls(array, self.nulls.as_ref()) };
        growth.take(memory::bytes_of_nulls(array.data_type(), places.len()))?;
        growth.take(saturated(value_bytes(array)))?;
        let place = |row: usize| self.place(row).map(|place| place as u64);
        let places: UInt64Array = (0..places.len()).map(place).collect();
        Ok(arrow_select::take::take(array, &places, None)?)
    }
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
        self.get_within(path, data_type, Growth::UNLIMITED)
    }

    /// As [`get`](Self::get); `growth` counts what is copied.
    pub(crate) fn get_within(
        &self,
        path: &VariantPath,
        data_type: &DataType,
        growth: &Growth,
    ) -> Result<ArrayRef> {
        Self::check_type(data_type)?;
        let found = self.follow(path)?;
        if *data_type == Self::unshredded_type() {
            return self.get_variant(&found, growth);
        }
        if data_type.is_nested() {
            return self.get_nested(&found, data_type, growth);
        }
        if found.rest.is_empty() {
            let typed = found.node.typed.as_ref().filter(|typed| {
                matches!(typed.kind, TypedKind::Scalar(_)) && typed.array.data_type() == data_type
            });
            let others =
                found.node.value.as_ref().map_or(0, |value| value.len() - value.null_count());
            if let Some(typed) = typed.filter(|_| others == 0) {
                return found.column(&typed.array, growth);
            }
        }
        growth.take(memory::bytes_of_nulls(data_type, self.len))?;
        let mut out =
            ScalarBuilder::new(data_type, self.len).ok_or_else(|| no_type_of_a_part(data_type))?;
        let mut unshredder = Unshredder::new(self, growth);
        for row in 0..self.len {
            if let Some(value) = self.part(&found, row, &mut unshredder)? {
                out.push_converted(row, &value, growth)?;
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
        let mut found = FoundPath {
            node: &self.root,
            places: None,
            nulls: self.nulls.clone(),
            is_required: true,
            rest: path.steps(),
        };
        while let Some((step, rest)) = found.rest.split_first()
            && let Some(typed) = &found.node.typed
        {
            match (&typed.kind, step) {
                (TypedKind::Object(fields), VariantStep::Field(name)) => {
                    let at = fields.binary_search_by(|field| field.0.as_str().cmp(name.as_str()));
                    let Some((_, node)) = at.ok().and_then(|at| fields.get(at)) else { break };
                    match &mut found.places {
                        None => {
                            found.nulls =
                                NullBuffer::union(found.nulls.as_ref(), typed.nulls.as_ref());
                        }
                        Some(places) => {
                            let is_there = |place: &usize| typed.is_valid(*place);
                            places.iter_mut().for_each(|place| *place = place.filter(is_there));
                        }
                    }
                    found.node = node;
                    found.is_required = false;
                }
                (TypedKind::List(ranges, element), VariantStep::Index(index)) => {
                    let mut places = memory::vec_for(self.len)?;
                    for row in 0..self.len {
                        let list = found.place(row).filter(|list| typed.is_valid(*list));
                        places.push(list.and_then(|list| ranges.elements(list).nth(*index)));
                    }
                    found.places = Some(places);
                    found.node = element;
                    found.is_required = true;
                }
                _ => break,
            }
            found.rest = rest;
        }
        Ok(found)
    }

    /// The part of a row that is a scalar; null for others.
    fn part<'a>(
        &'a self,
        found: &FoundPath<'a>,
        row: usize,
        names: &mut Unshredder<'a>,
    ) -> Result<Option<Variant<'a>>> {
        let Some(place) = found.place(row) else { return Ok(None) };
        let node = found.node;
        if found.rest.is_empty()
            && let Some(typed) = &node.typed
            && typed.is_valid(place)
        {
            return Ok(match &typed.kind {
                TypedKind::Scalar(scalars) => Some(scalars.value(place)),
                TypedKind::List(..) | TypedKind::Object(_) => None,
            });
        }
        let Some(value) = node.value.as_ref().and_then(|column| column.get(place)) else {
            return Ok(None);
        };
        names.enter(row)?;
        step_into(names.metadata()?, value, found.rest).map(|found| found.map(|(value, _)| value))
    }

    /// The parts as lists or structs.
    fn get_nested(
        &self,
        found: &FoundPath<'_>,
        data_type: &DataType,
        growth: &Growth,
    ) -> Result<ArrayRef> {
        let mut out = NestedBuilder::new(data_type)?;
        out.count_slots(self.len, growth)?;
        let mut unshredder = Unshredder::of_part(self, found.node, growth);
        let mut names = Unshredder::new(self, growth);
        let mut whole = Vec::new();
        for row in 0..self.len {
            whole.clear();
            let is_there = match found.place(row) {
                Some(place) => unshredder.append_part(row, place, &mut whole)?,
                None => false,
            };
            if !is_there {
                out.push(None, growth)?;
                continue;
            }
            names.enter(row)?;
            let part = step_into(names.metadata()?, &whole, found.rest)?;
            out.push(part.as_ref().map(|(value, _)| value), growth)?;
        }
        out.finish()
    }

    /// The parts as they are.
    fn get_variant(&self, found: &FoundPath<'_>, growth: &Growth) -> Result<ArrayRef> {
        let mut unshredder = Unshredder::of_part(self, found.node, growth);
        let mut names = Unshredder::new(self, growth);
        let (mut bytes, mut ends) = (Vec::new(), first_end(self.len)?);
        let mut valid = memory::vec_for(self.len)?;
        let mut whole = Vec::new();
        for row in 0..self.len {
            let mut is_there = false;
            if let Some(place) = found.place(row) {
                names.enter(row)?;
                whole.clear();
                is_there = unshredder.append_part(row, place, &mut whole)?;
                // At the top level and in lists, a missing value is null.
                if !is_there && found.rest.is_empty() && found.is_required {
                    whole.push(0);
                    is_there = true;
                }
                if is_there {
                    let part = step_into(names.metadata()?, &whole, found.rest)?;
                    is_there = part.is_some();
                    let part = part.map_or(&[][..], |(_, bytes)| bytes);
                    growth.room(&mut bytes, part.len())?;
                    bytes.extend_from_slice(part);
                }
            }
            valid.push(is_there);
            ends.push(end_of(&bytes)?);
        }
        let DataType::Struct(fields) = Self::unshredded_type() else {
            unreachable!("a VARIANT is a struct in Arrow")
        };
        let columns: Vec<ArrayRef> =
            vec![self.plain_metadata(growth)?, Arc::new(binary(bytes, ends))];
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
