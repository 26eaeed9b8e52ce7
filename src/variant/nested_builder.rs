//! [`NestedBuilder`] builds columns of lists and structs from parts of VARIANT values.
//!
//! A value of another kind than its column is null there, at any depth, as is a field that an
//! object lacks; fields that have no column are left out.

use std::sync::Arc;

use arrow_array::{ArrayRef, LargeListArray, ListArray, StructArray};
use arrow_buffer::{NullBufferBuilder, OffsetBuffer, ScalarBuffer};
use arrow_schema::{DataType, FieldRef, Fields};

use super::array::VariantArray;
use super::array_builder::VariantArrayBuilder;
use super::elements::VariantList;
use super::scalar_builder::{ScalarBuilder, no_type_of_a_part};
use super::shape::MAX_DEPTH;
use super::value::Variant;
use crate::error::{Error, LimitKind, Result, quoted};
use crate::limits::Growth;
use crate::memory;

/// A column whose rows are appended one after another.
pub(super) struct NestedBuilder {
    len: usize,
    /// Bytes of a slot, lists aside.
    slot_bytes: usize,
    kind: NestedKind,
}

enum NestedKind {
    /// With its type.
    Scalar(Box<ScalarBuilder>, DataType),
    Variant(Box<VariantArrayBuilder>),
    /// With its element, and whether its offsets have 64 bits.
    List(ListsBuilder, FieldRef, bool),
    Struct(Fields, Vec<NestedBuilder>, NullBufferBuilder),
}

struct ListsBuilder {
    ends: Vec<i32>,
    nulls: NullBufferBuilder,
    elements: Box<NestedBuilder>,
}

impl NestedBuilder {
    /// An empty column of a type.
    ///
    /// # Errors
    /// `Usage` if parts cannot be extracted as this type.
    pub(super) fn new(data_type: &DataType) -> Result<Self> {
        Self::within(data_type, 0)
    }

    fn within(data_type: &DataType, depth: usize) -> Result<Self> {
        if depth > MAX_DEPTH {
            return Err(Error::usage(format_args!(
                "a type of parts of VARIANT values nests deeper than {MAX_DEPTH} lists and structs"
            )));
        }
        let of_field = |field: &FieldRef| match field.is_nullable() {
            true => Self::within(field.data_type(), depth + 1),
            false => Err(Error::usage(format_args!(
                "the field {} of a part is not nullable, and a VARIANT value may lack it",
                quoted(field.name())
            ))),
        };
        let kind = match data_type {
            DataType::Struct(_) if *data_type == VariantArray::unshredded_type() => {
                NestedKind::Variant(Box::default())
            }
            DataType::Struct(fields) => {
                let builders = fields.iter().map(of_field).collect::<Result<_>>()?;
                NestedKind::Struct(fields.clone(), builders, NullBufferBuilder::new(0))
            }
            DataType::List(element) | DataType::LargeList(element) => {
                let elements = Box::new(of_field(element)?);
                let lists =
                    ListsBuilder { ends: vec![0], nulls: NullBufferBuilder::new(0), elements };
                let is_large = matches!(data_type, DataType::LargeList(_));
                NestedKind::List(lists, element.clone(), is_large)
            }
            other => match ScalarBuilder::new(other, 0) {
                Some(builder) => NestedKind::Scalar(Box::new(builder), other.clone()),
                None => return Err(no_type_of_a_part(other)),
            },
        };
        Ok(Self { len: 0, slot_bytes: memory::bytes_of_nulls(data_type, 1), kind })
    }

    /// Counts `n` slots that are about to be appended; vectors that grow are up to twice as large.
    pub(super) fn count_slots(&self, n: usize, growth: &Growth) -> Result<()> {
        growth.take(self.slot_bytes.saturating_mul(n).saturating_mul(2))
    }

    /// Appends a row, whose slot was counted.
    pub(super) fn push(&mut self, value: Option<&Variant<'_>>, growth: &Growth) -> Result<()> {
        match &mut self.kind {
            // Rows that are skipped are null.
            NestedKind::Scalar(builder, _) => {
                if let Some(value) = value {
                    builder.push_converted(self.len, value, growth)?;
                }
            }
            NestedKind::Variant(builder) => match value {
                Some(value) => {
                    let before = builder.bytes();
                    builder.append(*value)?;
                    growth.take((builder.bytes() - before).saturating_mul(2))?;
                }
                None => builder.append_null(),
            },
            NestedKind::List(lists, ..) => {
                let list = match value {
                    Some(Variant::List(list)) => Some(list),
                    _ => None,
                };
                lists.push(list, growth)?;
            }
            NestedKind::Struct(fields, builders, nulls) => {
                let object = match value {
                    Some(Variant::Object(object)) => Some(object),
                    _ => None,
                };
                for (field, builder) in fields.iter().zip(builders) {
                    let member = object.map(|object| object.get(field.name())).transpose()?;
                    builder.push(member.flatten().as_ref(), growth)?;
                }
                nulls.append(object.is_some());
            }
        }
        self.len += 1;
        Ok(())
    }

    /// The column.
    pub(super) fn finish(self) -> Result<ArrayRef> {
        let len = self.len;
        Ok(match self.kind {
            NestedKind::Scalar(builder, data_type) => builder.finish(len, &data_type)?,
            NestedKind::Variant(mut builder) => Arc::new(builder.finish()?),
            NestedKind::List(ListsBuilder { ends, mut nulls, elements }, field, is_large) => {
                let (elements, nulls) = (elements.finish()?, nulls.finish());
                if is_large {
                    let ends: Vec<i64> = ends.into_iter().map(i64::from).collect();
                    let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
                    Arc::new(LargeListArray::try_new(field, offsets, elements, nulls)?)
                } else {
                    let offsets = OffsetBuffer::new(ScalarBuffer::from(ends));
                    Arc::new(ListArray::try_new(field, offsets, elements, nulls)?)
                }
            }
            NestedKind::Struct(fields, builders, mut nulls) => {
                let columns = builders.into_iter().map(Self::finish).collect::<Result<_>>()?;
                let nulls = nulls.finish();
                Arc::new(StructArray::try_new_with_length(fields, columns, nulls, len)?)
            }
        })
    }
}

impl ListsBuilder {
    fn push(&mut self, list: Option<&VariantList<'_>>, growth: &Growth) -> Result<()> {
        if let Some(list) = list {
            self.elements.count_slots(list.len(), growth)?;
            for element in list.iter() {
                self.elements.push(Some(&element?), growth)?;
            }
        }
        let end = i32::try_from(self.elements.len).map_err(|_| too_many_elements())?;
        self.ends.push(end);
        self.nulls.append(list.is_some());
        Ok(())
    }
}

#[cold]
fn too_many_elements() -> Error {
    Error::limit(
        LimitKind::ArrayLength,
        "the lists of a batch have more than 2^31 elements: ask for fewer rows at a time",
    )
}
