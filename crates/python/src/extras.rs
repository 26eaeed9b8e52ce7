//! VARIANT and geometry values, and reads into arrays that the caller has.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Schema};
use marquetry::geo::{Edges, Rectangle, to_wkt};
use marquetry::variant::{VariantArray, VariantArrayBuilder, VariantPath, VariantShape};
use pyo3::buffer::{Element, PyBuffer};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::chain::PyBatches;
use crate::error::{OrRaise, usage};
use crate::table::{Column, Table, import_array};

/// A VARIANT column as JSON texts.
#[pyfunction]
pub(crate) fn variant_to_json(py: Python<'_>, of: &Bound<'_, PyAny>) -> PyResult<Column> {
    let array = variants(of)?;
    let texts = py.detach(|| array.to_json()).or_raise(py)?;
    Ok(Column::new(Arc::new(texts), "json"))
}

/// A part of each value, as a column of a type.
#[pyfunction]
pub(crate) fn variant_get(
    py: Python<'_>,
    of: &Bound<'_, PyAny>,
    path: &str,
    r#type: &str,
) -> PyResult<Column> {
    let array = variants(of)?;
    let path = path.parse::<VariantPath>().or_raise(py)?;
    let shape = VariantShape::parse(r#type).or_raise(py)?;
    // A shape of a scalar has its type as that of `typed_value`.
    let DataType::Struct(fields) = shape.data_type() else {
        return Err(usage(py, "the type of a part is a scalar, such as int64"));
    };
    let typed = fields.iter().find(|field| field.name() == "typed_value");
    let Some(typed) = typed else { return Err(usage(py, "the type of a part is a scalar")) };
    let found = py.detach(|| array.get(&path, typed.data_type())).or_raise(py)?;
    Ok(Column::new(found, "part"))
}

fn variants(of: &Bound<'_, PyAny>) -> PyResult<VariantArray> {
    let py = of.py();
    let array = import_array(of)?;
    let Some(rows) = array.as_struct_opt() else {
        return Err(usage(py, format_args!("a VARIANT is a struct, not {}", array.data_type())));
    };
    VariantArray::new(rows).or_raise(py)
}

/// A table with one VARIANT column, of JSON texts.
#[pyfunction]
pub(crate) fn variant_from_json(
    py: Python<'_>,
    texts: Vec<Option<String>>,
    name: &str,
) -> PyResult<Table> {
    let build = || -> marquetry::Result<RecordBatch> {
        let mut builder = VariantArrayBuilder::new();
        for text in &texts {
            match text {
                Some(text) => builder.append_json(text)?,
                None => builder.append_null(),
            }
        }
        let array: ArrayRef = Arc::new(builder.finish()?);
        let schema = Arc::new(Schema::new(vec![VariantArray::field(name, true)]));
        Ok(RecordBatch::try_new(schema, vec![array])?)
    };
    Ok(Table::from_batch(py.detach(build).or_raise(py)?))
}

/// The text of a geometry in WKB.
#[pyfunction]
pub(crate) fn geo_to_wkt(py: Python<'_>, wkb: &[u8], max: usize) -> PyResult<String> {
    to_wkt(wkb, max).or_raise(py)
}

/// The box around a geometry in WKB; `None` if it is empty.
#[pyfunction]
pub(crate) fn geo_bounds(
    py: Python<'_>,
    wkb: &[u8],
    geodesic: bool,
) -> PyResult<Option<(f64, f64, f64, f64)>> {
    let edges = if geodesic { Edges::Geodesic } else { Edges::Planar };
    let found = Rectangle::around(wkb, edges).or_raise(py)?;
    Ok(found.map(|r| (r.xmin, r.ymin, r.xmax, r.ymax)))
}

/// Reads all batches into arrays of the caller, by the names of columns; returns the number of
/// rows.
#[pyfunction]
pub(crate) fn read_into(
    py: Python<'_>,
    batches: &PyBatches,
    out: &Bound<'_, PyDict>,
    rows: usize,
) -> PyResult<usize> {
    let mut at = 0;
    while let Some(batch) = batches.next(py)? {
        for batch in &batch.batches {
            if at + batch.num_rows() > rows {
                return Err(usage(py, format_args!("there are more than {rows} rows")));
            }
            for (name, array) in out {
                let name: String = name.extract()?;
                let Some(column) = batch.column_by_name(&name) else {
                    return Err(usage(py, format_args!("no column {name:?} is read")));
                };
                copy(py, &name, column, &array, at)?;
            }
            at += batch.num_rows();
        }
    }
    Ok(at)
}

fn copy(
    py: Python<'_>,
    name: &str,
    column: &ArrayRef,
    out: &Bound<'_, PyAny>,
    at: usize,
) -> PyResult<()> {
    if column.null_count() > 0 {
        return Err(usage(py, format_args!("column {name:?} has a null, and arrays have none")));
    }
    match column.data_type() {
        DataType::Int8 => copy_as::<Int8Type>(name, column, out, at),
        DataType::Int16 => copy_as::<Int16Type>(name, column, out, at),
        DataType::Int32 => copy_as::<Int32Type>(name, column, out, at),
        DataType::Int64 => copy_as::<Int64Type>(name, column, out, at),
        DataType::UInt8 => copy_as::<UInt8Type>(name, column, out, at),
        DataType::UInt16 => copy_as::<UInt16Type>(name, column, out, at),
        DataType::UInt32 => copy_as::<UInt32Type>(name, column, out, at),
        DataType::UInt64 => copy_as::<UInt64Type>(name, column, out, at),
        DataType::Float32 => copy_as::<Float32Type>(name, column, out, at),
        DataType::Float64 => copy_as::<Float64Type>(name, column, out, at),
        other => Err(usage(py, format_args!("column {name:?} is {other}, and no number"))),
    }
}

fn copy_as<T: ArrowPrimitiveType>(
    name: &str,
    column: &ArrayRef,
    out: &Bound<'_, PyAny>,
    at: usize,
) -> PyResult<()>
where
    T::Native: Element,
{
    let py = out.py();
    let values = column.as_primitive::<T>().values();
    let fits = |found: &str| {
        usage(
            py,
            format_args!("the array for {name:?} is {found}, and the column {}", T::DATA_TYPE),
        )
    };
    let buffer = PyBuffer::<T::Native>::get(out).map_err(|_| fits("of another type"))?;
    let Some(memory) = buffer.as_slice_ptr().filter(|_| !buffer.readonly()) else {
        return Err(fits("read-only, or not contiguous"));
    };
    if at.checked_add(values.len()).is_none_or(|end| end > memory.len()) {
        return Err(fits("too short"));
    }
    // SAFETY: `at + values.len()` is at most the length of the buffer, which is writable, of this
    // type, and stays while `buffer` lives; the values of the column are other memory, so that the
    // two do not overlap.
    unsafe {
        let out = memory.cast::<T::Native>().as_ptr().add(at);
        std::ptr::copy_nonoverlapping(values.as_ptr(), out, values.len());
    }
    Ok(())
}
