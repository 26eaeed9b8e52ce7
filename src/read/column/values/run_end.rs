//! Reads run-end arrays: equal neighbours become one run, and repeated entries are never expanded.
//!
//! Runs are found in the dictionary indices of a batch. Equal values of pages without a dictionary
//! have one index at the end of the batch (see `DictionaryIndices::finish`), so that they form runs
//! too.

use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{ArrayRef, PrimitiveArray, RunArray, UInt32Array, make_array};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, FieldRef};

use super::fixed_binary::taken;
use super::indices::{FromIndices, IndexReader};
use super::reader::ValueReader;
use crate::error::{Error, LimitKind, Result};
use crate::free_lists::FreeLists;

/// The reader of a run-end array. `values` decodes its entries.
pub(super) fn run_end_reader(
    ends: &FieldRef,
    value: &FieldRef,
    values: Box<dyn ValueReader>,
) -> Result<Box<dyn ValueReader>> {
    let build = match ends.data_type() {
        DataType::Int16 => build::<Int16Type>,
        DataType::Int32 => build::<Int32Type>,
        DataType::Int64 => build::<Int64Type>,
        other => {
            return Err(Error::usage(format_args!("{other} cannot be the run ends of an array")));
        }
    };
    let data_type = DataType::RunEndEncoded(ends.clone(), value.clone());
    Ok(IndexReader::boxed(FromRuns { data_type, build }, value.data_type(), values))
}

/// Runs of equal indices.
struct FromRuns {
    data_type: DataType,
    build: fn(&DataType, &[usize], &ArrayRef) -> Result<ArrayRef>,
}

impl FromIndices for FromRuns {
    fn build(
        &self,
        indices: &[u32],
        values: ArrayRef,
        nulls: Option<NullBuffer>,
        _free_lists: &FreeLists,
    ) -> Result<ArrayRef> {
        let slot = |i: usize| match &nulls {
            Some(nulls) if nulls.is_null(i) => None,
            _ => Some(indices[i]),
        };
        let slots = indices.len();
        let (mut ends, mut keys) = (Vec::new(), Vec::new());
        for i in 0..slots {
            let here = slot(i);
            if i + 1 == slots || slot(i + 1) != here {
                ends.push(i + 1);
                keys.push(here);
            }
        }
        let values = taken(&values, &UInt32Array::from(keys))?;
        (self.build)(&self.data_type, &ends, &values)
    }
}

fn build<R: RunEndIndexType>(
    data_type: &DataType,
    ends: &[usize],
    values: &ArrayRef,
) -> Result<ArrayRef> {
    // Without rows there is no run.
    let len = ends.last().copied().unwrap_or(0);
    if R::Native::from_usize(len).is_none() {
        return Err(Error::limit(
            LimitKind::ArrayLength,
            format_args!(
                "{len} rows in a batch do not fit the run ends; read fewer rows per batch"
            ),
        ));
    }
    let ends =
        PrimitiveArray::<R>::from_iter_values(ends.iter().map(|&end| R::Native::usize_as(end)));
    let runs = RunArray::<R>::try_new(&ends, values)?;
    // The fields as the schema names them; the constructor has names of its own.
    let data: ArrayData = arrow_array::Array::to_data(&runs);
    Ok(make_array(data.into_builder().data_type(data_type.clone()).build()?))
}
