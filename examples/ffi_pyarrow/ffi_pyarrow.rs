//! A library of C functions that hand streams of batches to pyarrow, and take them from it.
//! `examples/ffi_pyarrow/trips.py` calls them: `cargo build --features ffi --example ffi_pyarrow`,
//! then `python examples/ffi_pyarrow/trips.py`.

use std::ffi::{CStr, CString, c_char};
use std::ptr::null_mut;

use marquetry::ffi::{FFI_ArrowArrayStream, export, import};
use marquetry::{Reader, Result, Writer};

/// Reads a Parquet file: puts a stream of its batches at `out`. Returns the text of an error, or
/// null.
///
/// # Safety
/// `path` must be a C string, and `out` must point to memory for a stream that nothing else uses.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marquetry_read(
    path: *const c_char,
    out: *mut FFI_ArrowArrayStream,
) -> *mut c_char {
    // SAFETY: the caller guarantees the text.
    let path = unsafe { CStr::from_ptr(path) }.to_string_lossy();
    let read = || export(Reader::open(&*path)?.batches()?);
    // SAFETY: the caller guarantees the capacity.
    answer(read().map(|stream| unsafe { out.write(stream) }))
}

/// Writes a Parquet file of the batches of `stream`, which is released. Returns the text of an
/// error, or null.
///
/// # Safety
/// `path` must be a C string, and `stream` a C stream that is not used elsewhere.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marquetry_write(
    path: *const c_char,
    stream: *mut FFI_ArrowArrayStream,
) -> *mut c_char {
    // SAFETY: the caller guarantees the text and the stream.
    let path = unsafe { CStr::from_ptr(path) }.to_string_lossy();
    // SAFETY: the caller hands over a stream that is theirs, as the C stream interface has it.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(stream) };
    let write = || -> Result<()> {
        let mut batches = import(stream)?;
        let mut writer = Writer::create(&*path, batches.schema())?;
        while let Some(batch) = batches.next_batch()? {
            writer.write(&batch)?;
        }
        writer.finish().map(|_| ())
    };
    answer(write())
}

/// Frees the text of an error.
///
/// # Safety
/// `text` came from one of these functions, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marquetry_free(text: *mut c_char) {
    // SAFETY: `answer` made it, as the caller guarantees.
    drop(unsafe { CString::from_raw(text) });
}

fn answer(done: Result<()>) -> *mut c_char {
    let text = done.err().map(|e| e.to_string().replace('\0', "?"));
    text.and_then(|text| CString::new(text).ok()).map_or(null_mut(), CString::into_raw)
}
