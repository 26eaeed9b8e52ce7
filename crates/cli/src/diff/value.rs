//! Compares values of two arrays of the same type: whether they are equal, and in which leaf they
//! differ.
//!
//! NaN is equal to NaN whatever its bits, -0.0 is not equal to 0.0, and VARIANT values are equal as
//! `marquetry::variant::Variant` says, however they are shredded.

use arrow_array::cast::AsArray;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, ArrayRef, StructArray};
use arrow_schema::{DataType, Field, FieldRef};
use marquetry::variant::{VariantArray, VariantBuf};

use crate::failure::Result;

/// FileRows that are compared one by one, if they are not equal together.
const FEW: usize = 16;

/// A row in which two columns differ, and the leaf, counted from the first of the column. A VARIANT
/// counts as one, because each file shreds it in its own way.
pub(super) struct DifferentCell {
    pub(super) row: usize,
    pub(super) leaf: usize,
}

/// The rows in which two arrays of the same length differ; `from` is added to their numbers.
pub(super) fn different_rows(
    a: &ArrayRef,
    b: &ArrayRef,
    field: &Field,
    from: usize,
    out: &mut Vec<DifferentCell>,
) -> Result<()> {
    let rows = a.len().min(b.len());
    if rows == 0 || a.to_data() == b.to_data() {
        return Ok(());
    }
    if VariantArray::is_variant(field) {
        let (a, b) = (VariantArray::new(a.as_struct())?, VariantArray::new(b.as_struct())?);
        for row in 0..rows {
            if !is_same_variant(a.value(row)?, b.value(row)?) {
                out.push(DifferentCell { row: from + row, leaf: 0 });
            }
        }
        return Ok(());
    }
    if rows > FEW {
        let half = rows / 2;
        different_rows(&a.slice(0, half), &b.slice(0, half), field, from, out)?;
        let rest = rows - half;
        return different_rows(&a.slice(half, rest), &b.slice(half, rest), field, from + half, out);
    }
    for row in 0..rows {
        let mut leaf = 0;
        if !is_same((&**a, row), (&**b, row), field, &mut leaf)? {
            out.push(DifferentCell { row: from + row, leaf });
        }
    }
    Ok(())
}

/// Whether types are the same but for the names of list items and map entries, and for what may be
/// null.
pub(super) fn is_comparable(a: &DataType, b: &DataType) -> bool {
    let fields = |a: &FieldRef, b: &FieldRef| is_comparable(a.data_type(), b.data_type());
    match (a, b) {
        (DataType::List(a), DataType::List(b))
        | (DataType::LargeList(a), DataType::LargeList(b))
        | (DataType::Map(a, _), DataType::Map(b, _)) => fields(a, b),
        (DataType::FixedSizeList(a, x), DataType::FixedSizeList(b, y)) => x == y && fields(a, b),
        (DataType::Struct(a), DataType::Struct(b)) => {
            let same = |(a, b): (&FieldRef, &FieldRef)| a.name() == b.name() && fields(a, b);
            let is_unnamed = |fields: &[FieldRef]| matches!(fields, [key, value] if key.name() == "key" && value.name() == "value");
            a.len() == b.len()
                && (a.iter().zip(b).all(same)
                    || is_unnamed(a) && a.iter().zip(b).all(|(a, b)| fields(a, b)))
        }
        (a, b) => a == b,
    }
}

/// A value: an array, and its place there.
type Place<'a> = (&'a dyn Array, usize);

/// Whether two values are equal. If not, `leaf` has grown by the leaves before the one that
/// differs.
fn is_same(a: Place<'_>, b: Place<'_>, field: &Field, leaf: &mut usize) -> Result<bool> {
    let ((a, i), (b, j)) = (a, b);
    if a.is_null(i) || b.is_null(j) {
        return Ok(a.is_null(i) == b.is_null(j));
    }
    if VariantArray::is_variant(field) {
        let (a, b) = (VariantArray::new(a.as_struct())?, VariantArray::new(b.as_struct())?);
        return Ok(is_same_variant(a.value(i)?, b.value(j)?));
    }
    match a.data_type() {
        DataType::Null => Ok(true),
        DataType::Float16 => {
            let (a, b) = (a.as_primitive::<Float16Type>(), b.as_primitive::<Float16Type>());
            let (a, b) = (a.value(i), b.value(j));
            Ok(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan())
        }
        DataType::Float32 => {
            let (a, b) = (a.as_primitive::<Float32Type>(), b.as_primitive::<Float32Type>());
            let (a, b) = (a.value(i), b.value(j));
            Ok(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan())
        }
        DataType::Float64 => {
            let (a, b) = (a.as_primitive::<Float64Type>(), b.as_primitive::<Float64Type>());
            let (a, b) = (a.value(i), b.value(j));
            Ok(a.to_bits() == b.to_bits() || a.is_nan() && b.is_nan())
        }
        DataType::Struct(_) => is_same_struct((a.as_struct(), i), (b.as_struct(), j), leaf),
        DataType::List(item) => {
            let (a, b) = (a.as_list::<i32>().value(i), b.as_list::<i32>().value(j));
            are_same(&a, &b, item, leaf)
        }
        DataType::LargeList(item) => {
            let (a, b) = (a.as_list::<i64>().value(i), b.as_list::<i64>().value(j));
            are_same(&a, &b, item, leaf)
        }
        DataType::FixedSizeList(item, _) => {
            let (a, b) = (a.as_fixed_size_list().value(i), b.as_fixed_size_list().value(j));
            are_same(&a, &b, item, leaf)
        }
        DataType::Map(entries, _) => {
            let (a, b): (ArrayRef, ArrayRef) = (
                std::sync::Arc::new(a.as_map().value(i)),
                std::sync::Arc::new(b.as_map().value(j)),
            );
            are_same(&a, &b, entries, leaf)
        }
        _ => Ok(a.slice(i, 1).to_data() == b.slice(j, 1).to_data()),
    }
}

fn is_same_struct(
    (a, i): (&StructArray, usize),
    (b, j): (&StructArray, usize),
    leaf: &mut usize,
) -> Result<bool> {
    for ((a, b), field) in a.columns().iter().zip(b.columns()).zip(a.fields()) {
        let before = *leaf;
        if !is_same((&**a, i), (&**b, j), field, leaf)? {
            return Ok(false);
        }
        *leaf = before + leaves_of(field);
    }
    Ok(true)
}

/// Whether the items of two lists are equal, in their order.
fn are_same(a: &ArrayRef, b: &ArrayRef, item: &FieldRef, leaf: &mut usize) -> Result<bool> {
    if a.len() != b.len() {
        return Ok(false);
    }
    let before = *leaf;
    for i in 0..a.len() {
        *leaf = before;
        if !is_same((&**a, i), (&**b, i), item, leaf)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn is_same_variant(a: Option<VariantBuf>, b: Option<VariantBuf>) -> bool {
    match (&a, &b) {
        (None, None) => true,
        (Some(a), Some(b)) => a.as_variant() == b.as_variant(),
        _ => false,
    }
}

/// The leaves of a field, a VARIANT being one.
fn leaves_of(field: &Field) -> usize {
    match children(field) {
        Some(fields) => fields.iter().map(|field| leaves_of(field)).sum(),
        None => 1,
    }
}

/// The leaf in the file of the `leaf`-th of a field whose VARIANT values are put together; both are
/// counted from the first of the column, and `stored` is the field as the file has it.
pub(super) fn stored_leaf(leaf: usize, field: &Field, stored: &Field) -> usize {
    let mut before = Vec::new();
    stored_leaves(field, stored, &mut before);
    before.iter().take(leaf).sum()
}

/// Adds how many leaves in the file each leaf of a field is.
fn stored_leaves(field: &Field, stored: &Field, out: &mut Vec<usize>) {
    match (children(field), nested(stored.data_type())) {
        (Some(fields), Some(stored)) => {
            fields.iter().zip(stored).for_each(|(field, stored)| stored_leaves(field, stored, out));
        }
        _ => out.push(leaves_of_type(stored.data_type())),
    }
}

/// The leaves of a type, those of VARIANT among them.
fn leaves_of_type(data_type: &DataType) -> usize {
    match nested(data_type) {
        Some(fields) => fields.iter().map(|field| leaves_of_type(field.data_type())).sum(),
        None => 1,
    }
}

/// The fields below a field, none of a VARIANT.
fn children(field: &Field) -> Option<&[FieldRef]> {
    nested(field.data_type()).filter(|_| !VariantArray::is_variant(field))
}

/// The fields of a type that is nested.
fn nested(data_type: &DataType) -> Option<&[FieldRef]> {
    match data_type {
        DataType::Struct(fields) => Some(fields),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => Some(std::slice::from_ref(item)),
        _ => None,
    }
}
