//! Makes the arrays that the kernel wants of those that were read.
//!
//! Types become those of the wanted fields, names, nullability and metadata included. What is null
//! in a struct is null in its children, too: the kernel looks at the masks of leaves only.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, BooleanArray, ListArray, MapArray, StructArray, new_null_array,
};
use arrow_buffer::NullBuffer;
use arrow_cast::{CastOptions, cast_with_options};
use arrow_schema::{ArrowError, DataType, Fields};
use arrow_select::nullif::nullif;

/// How an array that was read becomes a wanted one.
#[derive(Debug)]
pub(crate) enum Shape {
    /// Values, cast if their type is another.
    Leaf,
    /// For each wanted child, where it comes from.
    Struct(Vec<Child>),
    List(Box<Self>),
    /// Of keys and values.
    Map(Box<[Self; 2]>),
}

/// A child of a wanted struct.
#[derive(Debug)]
pub(crate) enum Child {
    /// The child of the read struct at this position.
    Read(usize, Shape),
    /// All null.
    Missing,
}

impl Shape {
    /// `array` as an array of the type `wanted`. It is null where `outer` is.
    pub(crate) fn apply(
        &self,
        array: &ArrayRef,
        wanted: &DataType,
        outer: Option<&NullBuffer>,
    ) -> Result<ArrayRef, ArrowError> {
        match (self, wanted) {
            (Self::Struct(children), DataType::Struct(fields)) => {
                self::structs(array, children, fields, outer)
            }
            (Self::List(item), DataType::List(field)) => {
                let array = masked(array, outer)?;
                let list = array.as_list_opt::<i32>().ok_or_else(|| unexpected(&array, wanted))?;
                let values = item.apply(list.values(), field.data_type(), None)?;
                let (offsets, nulls) = (list.offsets().clone(), list.nulls().cloned());
                Ok(Arc::new(ListArray::try_new(Arc::clone(field), offsets, values, nulls)?))
            }
            (Self::Map(pair), DataType::Map(entries, sorted)) => {
                let array = masked(array, outer)?;
                let map = array.as_map_opt().ok_or_else(|| unexpected(&array, wanted))?;
                let DataType::Struct(fields) = entries.data_type() else {
                    return Err(unexpected(&array, wanted));
                };
                let [key, value] = &fields[..] else { return Err(unexpected(&array, wanted)) };
                let keys = pair[0].apply(map.keys(), key.data_type(), None)?;
                let values = pair[1].apply(map.values(), value.data_type(), None)?;
                let inner = StructArray::try_new(fields.clone(), vec![keys, values], None)?;
                let (offsets, nulls) = (map.offsets().clone(), map.nulls().cloned());
                let map = MapArray::try_new(Arc::clone(entries), offsets, inner, nulls, *sorted)?;
                Ok(Arc::new(map))
            }
            _ if array.data_type() == wanted => masked(array, outer),
            _ => {
                // A value that does not fit is an error, not a null.
                let options = CastOptions { safe: false, ..CastOptions::default() };
                masked(&cast_with_options(array, wanted, &options)?, outer)
            }
        }
    }
}

fn structs(
    array: &ArrayRef,
    children: &[Child],
    fields: &Fields,
    outer: Option<&NullBuffer>,
) -> Result<ArrayRef, ArrowError> {
    let wanted = || DataType::Struct(fields.clone());
    let read = array.as_struct_opt().ok_or_else(|| unexpected(array, &wanted()))?;
    let nulls = NullBuffer::union(outer, read.nulls());
    let columns = children.iter().zip(fields).map(|(child, field)| match child {
        Child::Read(at, shape) => {
            let column = read.columns().get(*at).ok_or_else(|| unexpected(array, &wanted()))?;
            shape.apply(column, field.data_type(), nulls.as_ref())
        }
        Child::Missing => Ok(new_null_array(field.data_type(), array.len())),
    });
    let columns = columns.collect::<Result<Vec<_>, _>>()?;
    let array = match fields.is_empty() {
        true => StructArray::new_empty_fields(array.len(), nulls),
        false => StructArray::try_new(fields.clone(), columns, nulls)?,
    };
    Ok(Arc::new(array))
}

/// `array`, null where `outer` is as well.
fn masked(array: &ArrayRef, outer: Option<&NullBuffer>) -> Result<ArrayRef, ArrowError> {
    let Some(outer) = outer.filter(|outer| outer.null_count() > 0) else {
        return Ok(Arc::clone(array));
    };
    let has_all = array.nulls().is_some_and(|nulls| nulls.contains(outer));
    if has_all || *array.data_type() == DataType::Null {
        return Ok(Arc::clone(array));
    }
    nullif(array, &BooleanArray::new(!outer.inner(), None))
}

#[cold]
fn unexpected(array: &ArrayRef, wanted: &DataType) -> ArrowError {
    ArrowError::SchemaError(format!("{wanted} is wanted of {}", array.data_type()))
}
