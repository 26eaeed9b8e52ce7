//! Tests what is read again, and what is not: an error of the caller's own code ends a read,
//! whatever its kind.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use marquetry::arrow_array::{ArrayRef, Int64Array, RecordBatch};
use marquetry::io::{Source, WriteSink};
use marquetry::{Error, ErrorKind, LimitKind, Predicate, Reader, Result, Spec, Writer};

use crate::support::testdata;

const ROWS: i64 = 1000;

/// Two columns, which are decoded for one batch.
fn table() -> Bytes {
    let column = || Arc::new(Int64Array::from_iter_values(0..ROWS)) as ArrayRef;
    let batch = RecordBatch::try_from_iter([("a", column()), ("b", column())]).unwrap();
    let mut writer =
        Writer::new(WriteSink(Vec::new()), batch.schema(), Default::default()).unwrap();
    writer.write(&batch).unwrap();
    Bytes::from(writer.into_inner().unwrap().1)
}

/// Bytes that are neither in memory nor local, so that the columns of a filter are fetched first.
struct Far(Bytes);

impl Source for Far {
    fn len(&self) -> Result<u64> {
        Source::len(&self.0)
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        Source::read(&self.0, range)
    }
}

/// An error as a contradicting page index gives it, and one as memory that runs out gives it: of
/// another read, in the second case.
fn look_alikes() -> [(ErrorKind, fn() -> Error); 2] {
    let contradiction = || Error::malformed(Spec::PageIndex, "of the caller");
    let too_large = || {
        let other = Reader::open(testdata("trips.parquet")).unwrap().memory(1);
        other.batches().unwrap().next_batch().unwrap_err()
    };
    [
        (ErrorKind::Malformed(Spec::PageIndex), contradiction),
        (ErrorKind::Limit(LimitKind::Memory), too_large),
    ]
}

/// A predicate that fails, and how often it was asked.
fn failing(error: fn() -> Error) -> (Predicate, Arc<AtomicUsize>) {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let predicate = Predicate::function(["a"], move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
        Err(error())
    });
    (predicate, calls)
}

#[test]
fn a_predicate_that_fails_is_asked_once_whatever_its_error_looks_like() {
    for (kind, error) in look_alikes() {
        for threads in [1, 2] {
            for is_far in [false, true] {
                let source: Arc<dyn Source> = match is_far {
                    true => Arc::new(Far(table())),
                    false => Arc::new(table()),
                };
                let (predicate, calls) = failing(error);
                let reader = Reader::new(source).unwrap().threads(threads).filter(predicate);
                let found = reader.batches().unwrap().next_batch().unwrap_err();
                let what = format!("{threads} threads, far {is_far}: {found}");
                assert_eq!(found.kind(), kind, "{what}");
                assert_eq!(calls.load(Ordering::Relaxed), 1, "{what}");
                assert_eq!(reader.progress().indexes_ignored(), 0, "{what}");
            }
        }
    }
}

#[cfg(feature = "async")]
#[test]
fn a_predicate_that_fails_is_asked_once_by_a_stream_too() {
    use futures_util::TryStreamExt;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for (kind, error) in look_alikes() {
        for threads in [1, 2] {
            for latency in [marquetry::read::Latency::LOCAL, marquetry::read::Latency::STORE] {
                let (predicate, calls) = failing(error);
                let opened = runtime.block_on(marquetry::AsyncReader::open_async(table()));
                let reader = opened.unwrap().threads(threads).latency(latency).filter(predicate);
                let found = runtime.block_on(async {
                    let batches: Result<Vec<RecordBatch>> = reader.stream()?.try_collect().await;
                    batches
                });
                let found = found.unwrap_err();
                let what = format!("{threads} threads, {latency:?}: {found}");
                assert_eq!(found.kind(), kind, "{what}");
                assert_eq!(calls.load(Ordering::Relaxed), 1, "{what}");
                assert_eq!(reader.progress().indexes_ignored(), 0, "{what}");
            }
        }
    }
}
