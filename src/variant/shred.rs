//! Shredding: moves parts of values into columns, by a [`VariantShape`].
//!
//! Spec: VariantShredding.md. A value moves into `typed_value` if it is equal there (an integer of
//! another width is, a float in a column of doubles is not); otherwise it stays in `value`. Fields
//! without a column stay in `value`, as a smaller object.
//!
//! Columns are filled lazily: a field that most rows lack takes its nulls when a row has it again.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, ListArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, Field, Fields};

use super::array::VariantArray;
use super::encode;
use super::members::ObjectField;
use super::metadata::VariantMetadata;
use super::scalar_builder::{BytesBuilder, ScalarBuilder, pad};
use super::shape::{Numbers, ShapeNode, VariantShape};
use super::unshred::{Unshredder, check_whole};
use super::value::Variant;
use crate::error::{Error, LimitKind, Result};
use crate::limits::Growth;
use crate::memory;

impl VariantArray {
    /// Moves the values into columns of this shape: a struct of `metadata`, `value` and
    /// `typed_value`, with the same nulls. Values of another shape are unshredded first. The
    /// metadata are not copied.
    ///
    /// # Errors
    /// `Malformed(Variant)` if a value is cut short or contradicts itself.
    pub fn shred(&self, shape: &VariantShape) -> Result<StructArray> {
        self.shred_within(shape, Growth::UNLIMITED)
    }

    /// As [`shred`](Self::shred); `growth` counts the columns.
    pub(crate) fn shred_within(
        &self,
        shape: &VariantShape,
        growth: &Growth,
    ) -> Result<StructArray> {
        if shape.is_any() {
            return self.unshred_within(growth);
        }
        let mut column = NodeBuilder::new(&shape.0, shape.1);
        column.count_slots(self.len, growth)?;
        let mut values = Unshredder::new(self, growth);
        let mut scratch = Vec::new();
        let mut state = ShredState { left_over: Vec::new(), growth };
        for row in 0..self.len {
            if self.is_null(row) {
                continue;
            }
            let stored = self.root.value.as_ref().filter(|_| !self.is_shredded());
            values.enter(row)?;
            let bytes = match stored.and_then(|column| column.get(row)) {
                Some(bytes) => bytes,
                None => {
                    scratch.clear();
                    values.append(row, &mut scratch)?;
                    &scratch
                }
            };
            column.push(row, values.metadata()?, bytes, &mut state)?;
        }
        let DataType::Struct(fields) = shape.data_type() else {
            unreachable!("a shape is a struct in Arrow")
        };
        let names = self.metadata_array()?;
        let metadata = Field::new("metadata", names.data_type().clone(), false);
        let fields: Fields =
            std::iter::once(Arc::new(metadata)).chain(fields.iter().skip(1).cloned()).collect();
        let mut columns = vec![names.clone()];
        columns.extend(column.finish(self.len)?);
        Ok(StructArray::try_new(fields, columns, self.nulls.clone())?)
    }
}

/// Whether a number would have another scale in a column of this type.
fn rescales(data_type: &DataType, value: &Variant<'_>) -> bool {
    let DataType::Decimal128(_, scale) = data_type else { return false };
    !matches!(value, Variant::Decimal(_, own) if *own == scale.unsigned_abs())
}

struct ShredState<'a> {
    /// Fields without a column of the open objects, outermost first.
    left_over: Vec<(u32, u32)>,
    growth: &'a Growth,
}

/// Builds a pair of `value` and `typed_value`.
#[derive(Debug)]
struct NodeBuilder {
    /// Bytes of a slot, lists aside.
    slot_bytes: usize,
    value: BytesBuilder,
    typed: Option<TypedBuilder>,
    numbers: Numbers,
}

#[derive(Debug)]
enum TypedBuilder {
    Scalar(ScalarBuilder, DataType),
    List {
        ends: Vec<i32>,
        nulls: NullBufferBuilder,
        element: Box<NodeBuilder>,
        elements: usize,
        shape: ShapeNode,
    },
    Object {
        nulls: NullBufferBuilder,
        names: Vec<String>,
        fields: Vec<NodeBuilder>,
        shape: Vec<(String, ShapeNode)>,
    },
}

impl NodeBuilder {
    fn new(shape: &ShapeNode, numbers: Numbers) -> Self {
        let typed = match shape {
            ShapeNode::Any => None,
            ShapeNode::Scalar(data_type) => {
                let scalars = ScalarBuilder::new(data_type, 0).expect("shapes refuse other types");
                Some(TypedBuilder::Scalar(scalars, data_type.clone()))
            }
            ShapeNode::List(element) => Some(TypedBuilder::List {
                ends: vec![0],
                nulls: NullBufferBuilder::new(0),
                element: Box::new(Self::new(element, numbers)),
                elements: 0,
                shape: (**element).clone(),
            }),
            ShapeNode::Object(fields) => Some(TypedBuilder::Object {
                nulls: NullBufferBuilder::new(0),
                names: fields.iter().map(|(name, _)| name.clone()).collect(),
                fields: fields.iter().map(|(_, shape)| Self::new(shape, numbers)).collect(),
                shape: fields.clone(),
            }),
        };
        let slot_bytes = memory::bytes_of_nulls(&shape.group(), 1);
        Self { slot_bytes, value: BytesBuilder::new(), typed, numbers }
    }

    /// Counts `n` slots that are about to be set; vectors that grow are up to twice as large.
    fn count_slots(&self, n: usize, growth: &Growth) -> Result<()> {
        growth.take(self.slot_bytes.saturating_mul(n).saturating_mul(2))
    }

    /// Sets row `row`, whose slot was counted; rows are set in ascending order.
    fn push(
        &mut self,
        row: usize,
        metadata: VariantMetadata<'_>,
        bytes: &[u8],
        state: &mut ShredState<'_>,
    ) -> Result<()> {
        let growth = state.growth;
        let Some(typed) = &mut self.typed else { return self.value.push(row, bytes, growth) };
        let (value, len) = Variant::read(metadata, bytes, 0)?;
        check_whole(bytes, len)?;
        match (typed, value) {
            (TypedBuilder::Scalar(scalars, data_type), value) => {
                let changes = self.numbers == Numbers::SameScale && rescales(data_type, &value);
                if changes || !scalars.push(row, &value, growth)? {
                    self.value.push(row, bytes, growth)?;
                }
                Ok(())
            }
            (TypedBuilder::List { ends, nulls, element, elements, .. }, Variant::List(list)) => {
                element.count_slots(list.len(), growth)?;
                for part in list.parts() {
                    element.push(*elements, metadata, part?, state)?;
                    *elements += 1;
                }
                let end = i32::try_from(*elements).map_err(|_| too_many_elements())?;
                if row > nulls.len() {
                    let before = ends.last().copied().unwrap_or_default();
                    ends.resize(row + 1, before);
                    pad(nulls, row);
                }
                ends.push(end);
                nulls.append_non_null();
                Ok(())
            }
            (TypedBuilder::Object { nulls, names, fields, .. }, Variant::Object(object)) => {
                let mut writer = ResidualObject { value: &mut self.value, start: None, row };
                let first = state.left_over.len();
                let mut at = 0;
                for part in object.parts() {
                    let part = part?;
                    while names.get(at).is_some_and(|name| name.as_str() < part.name) {
                        at += 1;
                    }
                    if names.get(at).is_some_and(|name| name == part.name) {
                        fields[at].push(row, metadata, part.bytes, state)?;
                        at += 1;
                    } else {
                        writer.push(part, state)?;
                    }
                }
                writer.finish(&state.left_over[first..], growth)?;
                state.left_over.truncate(first);
                pad(nulls, row);
                nulls.append_non_null();
                Ok(())
            }
            _ => self.value.push(row, bytes, growth),
        }
    }

    /// The arrays of `value` and `typed_value`.
    fn finish(self, len: usize) -> Result<Vec<ArrayRef>> {
        let (offsets, bytes, nulls) = self.value.parts(len);
        let value: ArrayRef = Arc::new(BinaryArray::try_new(offsets, bytes, nulls)?);
        let mut columns = vec![value];
        if let Some(typed) = self.typed {
            columns.push(typed.finish(len)?);
        }
        Ok(columns)
    }
}

/// The fields of an object that have no column, and stay in `value`.
struct ResidualObject<'a> {
    value: &'a mut BytesBuilder,
    start: Option<usize>,
    row: usize,
}

impl ResidualObject<'_> {
    fn push(&mut self, part: ObjectField<'_>, state: &mut ShredState<'_>) -> Result<()> {
        let start = match self.start {
            Some(start) => start,
            None => {
                self.value.pad(self.row);
                *self.start.insert(self.value.bytes.len())
            }
        };
        state.growth.room(&mut state.left_over, 1)?;
        state.left_over.push((part.id, encode::offset(&self.value.bytes, start)?));
        state.growth.room(&mut self.value.bytes, part.bytes.len())?;
        self.value.bytes.extend_from_slice(part.bytes);
        Ok(())
    }

    fn finish(self, fields: &[(u32, u32)], growth: &Growth) -> Result<()> {
        let Some(start) = self.start else { return Ok(()) };
        growth.room(&mut self.value.bytes, encode::max_header(fields.len()))?;
        encode::object(&mut self.value.bytes, start, fields)?;
        self.value.end_row()
    }
}

impl TypedBuilder {
    fn finish(self, len: usize) -> Result<ArrayRef> {
        Ok(match self {
            Self::Scalar(scalars, data_type) => scalars.finish(len, &data_type)?,
            Self::List { mut ends, mut nulls, element, elements, shape } => {
                let end = ends.last().copied().unwrap_or_default();
                ends.resize(len + 1, end);
                pad(&mut nulls, len);
                let values = group(&shape, element.finish(elements)?, elements)?;
                let field = Arc::new(Field::new("element", shape.group(), false));
                let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
                Arc::new(ListArray::try_new(field, offsets, Arc::new(values), nulls.finish())?)
            }
            Self::Object { mut nulls, fields, shape, .. } => {
                pad(&mut nulls, len);
                let mut columns: Vec<ArrayRef> = Vec::with_capacity(fields.len());
                let mut members = Vec::with_capacity(fields.len());
                for (pair, (name, shape)) in fields.into_iter().zip(&shape) {
                    columns.push(Arc::new(group(shape, pair.finish(len)?, len)?));
                    members.push(Arc::new(Field::new(name.as_str(), shape.group(), false)));
                }
                let fields: Fields = members.into();
                Arc::new(StructArray::try_new_with_length(fields, columns, nulls.finish(), len)?)
            }
        })
    }
}

/// A field or element of a shape, of its columns.
fn group(shape: &ShapeNode, columns: Vec<ArrayRef>, len: usize) -> Result<StructArray> {
    let DataType::Struct(fields) = shape.group() else {
        unreachable!("a pair is a struct in Arrow")
    };
    Ok(StructArray::try_new_with_length(fields, columns, None, len)?)
}

#[cold]
fn too_many_elements() -> Error {
    Error::limit(
        LimitKind::ArrayLength,
        "the shredded lists of a batch have more than 2^31 elements: write smaller batches",
    )
}
