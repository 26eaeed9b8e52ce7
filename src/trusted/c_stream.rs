//! The calls of the Arrow C Stream interface, and the arrays of what they return.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_data::ArrayData;
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Schema, SchemaRef};

/// A C stream of another library, which was not released.
pub(crate) struct CStream(FFI_ArrowArrayStream);

/// The struct of the interface, `ArrowArrayStream`. The names by which arrow 59 and 60 give its
/// functions differ; its layout is that of C in both.
#[repr(C)]
struct Functions {
    get_schema:
        Option<unsafe extern "C" fn(*mut FFI_ArrowArrayStream, *mut FFI_ArrowSchema) -> c_int>,
    get_next: Option<unsafe extern "C" fn(*mut FFI_ArrowArrayStream, *mut FFI_ArrowArray) -> c_int>,
    get_last_error: Option<unsafe extern "C" fn(*mut FFI_ArrowArrayStream) -> *const c_char>,
    release: Option<unsafe extern "C" fn(*mut FFI_ArrowArrayStream)>,
    private_data: *mut c_void,
}

fn functions(stream: &FFI_ArrowArrayStream) -> &Functions {
    const {
        assert!(size_of::<Functions>() == size_of::<FFI_ArrowArrayStream>());
        assert!(align_of::<Functions>() == align_of::<FFI_ArrowArrayStream>());
    }
    // SAFETY: both are the struct that the interface defines, in the layout of C: four functions
    // that may be null, and a pointer. The borrow is that of the stream.
    unsafe { &*std::ptr::from_ref(stream).cast::<Functions>() }
}

impl CStream {
    /// # Errors
    /// `CDataInterface` if the stream was released before, or lacks a function.
    pub(crate) fn new(stream: FFI_ArrowArrayStream) -> Result<Self, ArrowError> {
        let Functions { get_schema, get_next, release, .. } = functions(&stream);
        match (release, get_schema, get_next) {
            (Some(_), Some(_), Some(_)) => Ok(Self(stream)),
            (None, ..) => Err(failed("the stream was released before")),
            _ => Err(failed("the stream lacks a function")),
        }
    }

    /// # Errors
    /// `CDataInterface` with the text of the producer, or if the schema is none.
    pub(crate) fn schema(&mut self) -> Result<SchemaRef, ArrowError> {
        let get_schema = functions(&self.0).get_schema;
        let get_schema = get_schema.ok_or_else(|| failed("the stream has no schema"))?;
        let mut schema = FFI_ArrowSchema::empty();
        // SAFETY: the stream was not released (`new`), and is not moved during the call; `schema`
        // is a place for one. The caller who filled the struct with functions, or took it over from
        // an address, promised that they are those of a C stream.
        match unsafe { get_schema(&raw mut self.0, &raw mut schema) } {
            0 => Ok(Arc::new(Schema::try_from(&schema)?)),
            code => Err(self.last_error(code)),
        }
    }

    /// The next array, of the type that the schema has; `None` after the last.
    ///
    /// # Errors
    /// `CDataInterface` with the text of the producer, or if the array is none of that type.
    pub(crate) fn next(&mut self, data_type: DataType) -> Result<Option<ArrayData>, ArrowError> {
        let get_next = functions(&self.0).get_next;
        let get_next = get_next.ok_or_else(|| failed("the stream has no arrays"))?;
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: as for the schema; `array` is a place for one.
        match unsafe { get_next(&raw mut self.0, &raw mut array) } {
            0 if array.is_released() => Ok(None),
            // SAFETY: the array was not released, and by the interface it has the type of the
            // schema that the stream stated.
            0 => unsafe { from_ffi_and_data_type(array, data_type) }.map(Some),
            code => Err(self.last_error(code)),
        }
    }

    #[cold]
    fn last_error(&mut self, code: i32) -> ArrowError {
        let last_error = functions(&self.0).get_last_error;
        // SAFETY: as for the schema.
        let text = last_error.map(|last_error| unsafe { last_error(&raw mut self.0) });
        match text.filter(|text| !text.is_null()) {
            // SAFETY: by the interface a text that is not null ends with a null byte, and lives
            // until the next call, before which it is copied.
            Some(text) => failed(&unsafe { CStr::from_ptr(text) }.to_string_lossy()),
            None => failed(&format!("the stream failed with the number {code}, without a reason")),
        }
    }
}

#[cold]
fn failed(text: &str) -> ArrowError {
    ArrowError::CDataInterface(text.to_owned())
}

/// The same values, where no struct has an offset: those of its children have it. `make_array` of
/// arrow 59 applies the offset of a struct twice to the children of structs in it, and panics.
///
/// # Errors
/// `CDataInterface` if a child of a struct is shorter than the struct.
pub(crate) fn without_struct_offsets(data: ArrayData) -> Result<ArrayData, ArrowError> {
    if data.child_data().is_empty() {
        return Ok(data);
    }
    let (offset, len) = (data.offset(), data.len());
    let is_struct = matches!(data.data_type(), DataType::Struct(_));
    let children = data.child_data().iter().map(|child| {
        let child = if is_struct { part_of(child, offset, len)? } else { child.clone() };
        without_struct_offsets(child)
    });
    let children = children.collect::<Result<_, _>>()?;
    let offset = if is_struct { 0 } else { offset };
    let builder = data.into_builder().offset(offset).child_data(children);
    // SAFETY: `data` was valid. A struct has no buffers, and its nulls are those of its slots, so
    // that an offset is only where its values begin in its children: these were cut to begin there,
    // and have its length. Children of other types have the length, type and values that they had.
    Ok(unsafe { builder.build_unchecked() })
}

/// `len` values from `offset` on. Children of a struct stay as they are, unlike in a slice.
fn part_of(data: &ArrayData, offset: usize, len: usize) -> Result<ArrayData, ArrowError> {
    let end = offset.checked_add(len).filter(|end| *end <= data.len());
    if end.is_none() {
        return Err(failed("a child of a struct is shorter than the struct"));
    }
    let nulls = data.nulls().map(|nulls| nulls.slice(offset, len));
    let builder = data.clone().into_builder();
    let builder = builder.offset(data.offset() + offset).len(len).nulls(nulls);
    // SAFETY: `data` was valid, and the values are a part of its own, compared above.
    Ok(unsafe { builder.build_unchecked() })
}

#[cfg(test)]
mod tests {
    use arrow_array::cast::AsArray;
    use arrow_array::types::Int32Type;
    use arrow_array::{Array, ArrayRef, Int32Array, make_array};
    use arrow_buffer::{Buffer, NullBuffer};
    use arrow_schema::{Field, Fields};

    use super::*;

    const NUMBERS: usize = 40;

    fn field(data: &ArrayData) -> Field {
        Field::new("x", data.data_type().clone(), true)
    }

    fn is_valid(at_in_child: usize) -> bool {
        at_in_child % 7 != 3
    }

    /// Structs around numbers. Each lacks the first and the last slot of its child, as other
    /// libraries cut them: by an offset.
    fn cut_structs(depth: usize) -> ArrayData {
        let numbers = (0..NUMBERS as i32).map(|i| (i % 5 != 0).then_some(i));
        let mut data = Int32Array::from_iter(numbers).to_data();
        for _ in 0..depth {
            let len = data.len() - 2;
            let nulls: NullBuffer = (1..=len).map(is_valid).collect::<Vec<_>>().into();
            let builder = ArrayData::builder(DataType::Struct(Fields::from(vec![field(&data)])));
            let builder = builder.offset(1).len(len).nulls(Some(nulls)).child_data(vec![data]);
            // SAFETY: the child has a slot before the first of the struct, and one after its last.
            data = unsafe { builder.build_unchecked() };
        }
        data
    }

    fn assert_cut_structs(array: &ArrayRef, depth: usize) {
        assert_eq!(array.len(), NUMBERS - 2 * depth);
        let mut array = Arc::clone(array);
        for outside in 0..depth {
            for i in 0..array.len() {
                assert_eq!(array.is_valid(i), is_valid(i + outside + 1), "{outside}, {i}");
            }
            array = Arc::clone(array.as_struct().column(0));
        }
        for (i, number) in (depth..).zip(array.as_primitive::<Int32Type>()) {
            assert_eq!(number, (i % 5 != 0).then_some(i as i32));
        }
    }

    #[test]
    fn offsets_of_structs_in_structs_count_once() {
        for depth in 0..5 {
            let data = without_struct_offsets(cut_structs(depth)).unwrap();
            data.validate_full().unwrap();
            assert_cut_structs(&make_array(data), depth);
            // Inside a list of a single row, of all of them.
            let items = cut_structs(depth);
            let offsets = Buffer::from_vec(vec![0, items.len() as i32]);
            let list = DataType::List(Arc::new(field(&items)));
            let builder = ArrayData::builder(list).len(1).add_buffer(offsets);
            // SAFETY: the only list has all items.
            let list = unsafe { builder.add_child_data(items).build_unchecked() };
            let list = make_array(without_struct_offsets(list).unwrap());
            assert_cut_structs(list.as_list::<i32>().values(), depth);
        }
    }

    #[test]
    fn a_child_that_is_too_short_is_an_error() {
        let inner = cut_structs(1);
        for (offset, len) in [(1, inner.len()), (usize::MAX, 1), (0, inner.len() + 1)] {
            assert!(part_of(&inner, offset, len).is_err(), "{offset}, {len}");
        }
        assert_eq!(part_of(&inner, inner.len(), 0).unwrap().len(), 0);
    }

    #[test]
    fn a_stream_that_was_released_is_refused() {
        assert!(CStream::new(FFI_ArrowArrayStream::empty()).is_err());
    }
}
