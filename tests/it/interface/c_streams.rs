//! Tests C streams: the batches come out unchanged, and errors keep their text and their number.

use std::ffi::CStr;
use std::sync::Arc;

use marquetry::arrow_array::ffi_stream::FFI_ArrowArrayStream;
use marquetry::arrow_array::{RecordBatch, RecordBatchIterator, RecordBatchReader};
use marquetry::arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use marquetry::{Error, ErrorKind, Reader, ffi};

use crate::support::cells::columns;
use crate::support::generate::{case, every_case};
use crate::support::{read_with, testdata};

#[test]
fn batches_that_went_through_c_are_the_same() {
    every_case(300, |seed| {
        let case = case(seed);
        let reader = Reader::new(case.file).unwrap().batch_rows(100);
        let expected = read_with(reader.clone()).unwrap();
        let stream = ffi::export(reader.batches().unwrap()).unwrap();
        let mut imported = ffi::import(stream).unwrap().validated(true);
        let schema = imported.schema();
        assert_eq!(schema.fields(), reader.schema().unwrap().fields(), "seed {seed}");
        let mut found = Vec::new();
        while let Some(batch) = imported.next_batch().unwrap() {
            found.push(batch);
        }
        assert_eq!(found.len(), expected.len(), "seed {seed}");
        assert_eq!(columns(&schema, &found), columns(&schema, &expected), "seed {seed}");
    });
}

/// Asks for a batch as C does: the number, and the text.
fn asked(stream: &mut FFI_ArrowArrayStream) -> (i32, String) {
    let mut array = marquetry::arrow_array::ffi::FFI_ArrowArray::empty();
    // SAFETY: the stream was made by `export`, and the array is empty and ours.
    unsafe {
        let number = stream.get_next.expect("a stream")(stream, &mut array);
        let text = stream.get_last_error.expect("a stream")(stream);
        let text = if text.is_null() { c"" } else { CStr::from_ptr(text) };
        (number, text.to_string_lossy().into_owned())
    }
}

fn failing(error: impl Into<ArrowError>) -> FFI_ArrowArrayStream {
    let schema = Arc::new(Schema::empty());
    let batches = std::iter::once(Err::<RecordBatch, _>(error.into()));
    ffi::export(RecordBatchIterator::new(batches, schema)).unwrap()
}

#[cfg(target_os = "linux")]
#[test]
fn errors_keep_their_text_and_become_the_number_of_their_kind() {
    let trips = || Reader::open(testdata("trips.parquet")).unwrap();
    let limited = trips().memory(1).batches().unwrap_err_or_first();
    assert!(matches!(limited.kind(), ErrorKind::Limit(_)), "{limited}");
    let missing = Reader::open("no such file").unwrap_err();
    let usage = trips().project(["nothing"]).unwrap_err();
    let unsupported = unsupported();
    for (error, number) in [(limited, 12), (missing, 5), (usage, 22), (unsupported, 38)] {
        let text = error.to_string();
        let mut stream = failing(error);
        let (found, told) = asked(&mut stream);
        assert_eq!(found, number, "{text}");
        assert!(told.contains(&text), "{told:?} does not say {text:?}");
        assert_eq!(asked(&mut stream).0, 0, "after an error there is no more");
    }
}

/// An error that something is not supported: a schema that C cannot have.
fn unsupported() -> Error {
    let schema = Schema::new(vec![Field::new("a\0b", DataType::Int32, false)]);
    ffi::export(RecordBatchIterator::new([], Arc::new(schema))).unwrap_err()
}

trait FirstError {
    fn unwrap_err_or_first(self) -> Error;
}

impl FirstError for marquetry::Result<marquetry::Batches> {
    fn unwrap_err_or_first(self) -> Error {
        match self {
            Err(e) => e,
            Ok(mut batches) => batches.next_batch().expect_err("an error"),
        }
    }
}

#[test]
fn null_bytes_and_panics_end_no_process() {
    let error = unsupported();
    assert!(matches!(error.kind(), ErrorKind::Unsupported(_)), "{error}");
    let zone = DataType::Timestamp(TimeUnit::Second, Some("U\0TC".into()));
    let list = DataType::new_list(zone, true);
    let schema: SchemaRef = Arc::new(Schema::new(vec![Field::new("a", list, true)]));
    let error = ffi::export(RecordBatchIterator::new([], schema)).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported(_)), "{error}");
    let mut stream = failing(ArrowError::CDataInterface("a\0b".to_owned()));
    assert!(asked(&mut stream).1.contains("a\u{fffd}b"));
    let schema: SchemaRef = Arc::new(Schema::empty());
    let panics = std::iter::once(()).map(|()| panic!("on purpose"));
    let mut stream = ffi::export(RecordBatchIterator::new(panics, schema)).unwrap();
    let (number, text) = asked(&mut stream);
    assert!(number != 0 && text.contains("on purpose"), "{text}");
}

#[test]
fn an_imported_error_is_told_once_and_a_released_stream_is_refused() {
    let error = Error::from(ArrowError::CDataInterface("out of luck".to_owned()));
    let mut imported = ffi::import(failing(error)).unwrap();
    let error = imported.next_batch().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Arrow);
    assert!(error.to_string().contains("out of luck"), "{error}");
    assert!(imported.next_batch().unwrap().is_none());
    assert_eq!(ffi::import(FFI_ArrowArrayStream::empty()).unwrap_err().kind(), ErrorKind::Arrow);
    let reader: Box<dyn RecordBatchReader> = Box::new(imported);
    assert_eq!(reader.schema().fields().len(), 0);
}
