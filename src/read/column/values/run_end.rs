//! Run-end arrays: equal neighbours become one run, and repeated entries are never expanded.
//!
//! Runs are found in the dictionary indices of a batch. Equal values of pages without a dictionary
//! have one index at the end of the batch (see `DictionaryIndices::finish`), so that they form runs
//! too.

use arrow_array::types::{Int16Type, Int32Type, Int64Type, RunEndIndexType};
use arrow_array::{ArrayRef, PrimitiveArray, RunArray, UInt32Array, make_array};
use arrow_buffer::{ArrowNativeType, NullBuffer};
use arrow_data::ArrayData;
use arrow_schema::{DataType, FieldRef};
use bytes::Bytes;

use super::dictionary::DictionaryIndices;
use super::fixed_binary::taken;
use super::reader::{Count, ValueReader};
use crate::error::{Error, LimitKind, Result};
use crate::format::Encoding;
use crate::page::DictionaryPage;
use crate::simd::bitmap::Bitmap;
use crate::simd::expand;

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
    Ok(Box::new(RunEndReader {
        indices: Vec::new(),
        coded: DictionaryIndices::new(value.data_type(), values),
        data_type: DataType::RunEndEncoded(ends.clone(), value.clone()),
        build,
    }))
}

struct RunEndReader {
    /// The index of the value of each slot.
    indices: Vec<u32>,
    coded: DictionaryIndices,
    data_type: DataType,
    build: fn(&DataType, &[usize], &ArrayRef) -> Result<ArrayRef>,
}

impl ValueReader for RunEndReader {
    fn reserve(&mut self, slots: usize) {
        self.indices.reserve_exact(slots);
    }

    fn wants_dictionary_first(&self) -> bool {
        true
    }

    fn dictionary_bytes(&self, entries: usize, byte_len: usize) -> usize {
        self.coded.dictionary_bytes(entries, byte_len)
    }

    fn leave_page(&mut self) -> bool {
        self.coded.leave_page()
    }

    fn set_dictionary(&mut self, page: DictionaryPage) -> Result<()> {
        self.coded.set_dictionary(page)
    }

    fn set_page(&mut self, encoding: Encoding, bytes: Bytes, count: Count) -> Result<()> {
        self.coded.set_page(encoding, bytes, count)
    }

    fn read(&mut self, n: usize, room: usize) -> Result<()> {
        self.coded.read(n, room, &mut self.indices)
    }

    fn read_picked(&mut self, n: usize, picks: &Bitmap, room: usize) -> Result<()> {
        self.coded.read_picked(n, picks, room, &mut self.indices)
    }

    fn skip(&mut self, n: usize) -> Result<()> {
        self.coded.skip(n)
    }

    fn spread(&mut self, validity: &Bitmap, first: usize, slots: usize, values: usize) {
        let start = self.indices.len() - values;
        expand::spread(&mut self.indices, start, validity, first, slots);
    }

    fn bytes_held(&self) -> usize {
        self.indices.capacity() * size_of::<u32>() + self.coded.bytes_held()
    }

    fn finish(&mut self, nulls: Option<NullBuffer>, slots: usize) -> Result<ArrayRef> {
        let mut indices = std::mem::take(&mut self.indices);
        // The values first: equal ones then have one index, and make one run.
        let values = self.coded.finish(&mut indices)?;
        let slot = |i: usize| match &nulls {
            Some(nulls) if nulls.is_null(i) => None,
            _ => indices.get(i).copied(),
        };
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
    // Of no rows there is no run.
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
