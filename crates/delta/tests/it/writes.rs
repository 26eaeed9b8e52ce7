//! Written files, stores, runtimes and cancellation.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::builder::{Int32Builder, ListBuilder, MapBuilder};
use arrow_array::{ArrayRef, Int32Array, Int64Array, RecordBatch, StructArray};
use arrow_schema::{DataType as A, Field, Fields};
use delta_kernel::cancellation::{CancellationToken, CancelledFuture};
use delta_kernel::schema::{DataType, StructField};
use delta_kernel::{
    CancellationTokenRef, EngineData, FileMeta, KernelError, KernelResult, ParquetHandler,
};
use marquetry::Reader;
use marquetry::schema::FIELD_ID_KEY;
use marquetry_delta::MarquetryParquetHandler;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{ObjectStore, ObjectStoreExt as _};
use url::Url;

use crate::support::*;

fn numbers(range: std::ops::Range<i64>) -> RecordBatch {
    let column: ArrayRef = Arc::new(Int64Array::from_iter_values(range));
    RecordBatch::try_from_iter([("a", column)]).expect("a batch")
}

type Data = Box<dyn EngineData>;

/// Batches that end in an error.
fn failing() -> Box<dyn Iterator<Item = KernelResult<Data>> + Send> {
    Box::new(as_data([numbers(0..3)]).chain([Err(KernelError::generic("no more"))]))
}

#[test]
fn files_are_there_when_they_are_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a b/c/part.parquet");
    let ours = our_engine().parquet_handler();
    let size = ours.write_parquet_file(url_of(&path), as_data([numbers(0..3), numbers(3..5)]));
    let written = std::fs::read(&path).expect("the file");
    assert_eq!(size.expect("written"), written.len() as u64);
    let hint = b"ARROW:schema";
    assert!(!written.windows(hint.len()).any(|bytes| bytes == hint));
    let wanted = schema([StructField::nullable("a", DataType::LONG)]);
    assert_eq!(read(ours.as_ref(), &path, &wanted).expect("read").num_rows(), 5);
    let default = default_engine().parquet_handler();
    assert_eq!(read(default.as_ref(), &path, &wanted).expect("read").num_rows(), 5);
    // A write that fails leaves the old file, and nothing else.
    let error = ours.write_parquet_file(url_of(&path), failing()).expect_err("it fails");
    assert!(error.to_string().contains("no more"), "{error}");
    assert_eq!(std::fs::read(&path).expect("the file"), written);
    let entries = std::fs::read_dir(path.parent().expect("a folder")).expect("a folder");
    assert_eq!(entries.count(), 1);
    // It is replaced.
    let size = ours.write_parquet_file(url_of(&path), as_data([numbers(0..1)])).expect("written");
    assert_eq!(size, std::fs::metadata(&path).expect("the file").len());
    assert_eq!(read(ours.as_ref(), &path, &wanted).expect("read").num_rows(), 1);
    assert!(ours.write_parquet_file(url_of(&path), as_data([])).is_err(), "there is no schema");
}

fn in_memory() -> (Arc<InMemory>, MarquetryParquetHandler, FileMeta) {
    let store = Arc::new(InMemory::new());
    let handler = MarquetryParquetHandler::new(Arc::clone(&store) as Arc<dyn ObjectStore>);
    let location = Url::parse("memory:///a%20b/part.parquet").expect("a URL");
    (store, handler, FileMeta { location, last_modified: 0, size: 0 })
}

fn on_a_runtime<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(future)
}

#[test]
fn objects_are_there_when_they_are_whole() {
    let (store, ours, file) = in_memory();
    let path = Path::from("a b/part.parquet");
    ours.write_parquet_file(file.location.clone(), failing()).expect_err("it fails");
    assert!(on_a_runtime(store.head(&path)).is_err(), "nothing is left");
    let batches = [numbers(0..3), numbers(3..5)];
    let size = ours.write_parquet_file(file.location.clone(), as_data(batches)).expect("written");
    assert_eq!(on_a_runtime(store.head(&path)).expect("the object").size, size);
    let wanted = schema([StructField::nullable("a", DataType::LONG)]);
    let batches = read_batches(&ours, &[file.clone(), file.clone()], &wanted, None).expect("read");
    assert_eq!(batches.iter().map(RecordBatch::num_rows).sum::<usize>(), 10);
    let footer = ours.read_parquet_footer(&file).expect("a footer");
    assert_eq!(footer.schema.fields().count(), 1);
    // Rows of many files stay in their order.
    let files: Vec<_> = (0..40)
        .map(|at| {
            let location = Url::parse(&format!("memory:///{at}.parquet")).expect("a URL");
            let rows = as_data([numbers(at * 10..at * 10 + 10)]);
            let size = ours.write_parquet_file(location.clone(), rows).expect("written");
            FileMeta { location, last_modified: 0, size }
        })
        .collect();
    let all = joined(&read_batches(&ours, &files, &wanted, None).expect("read"));
    assert_eq!(all, joined(&[numbers(0..400)]).with_schema(all.schema()).expect("one type"));
    // A read that is given up ends.
    let mut some = ours.read_parquet_files(&files, wanted, None).expect("a read");
    assert!(some.next().is_some_and(|batch| batch.is_ok()));
    drop(some);
}

/// The kernel is synchronous, and may be called from any thread.
#[test]
fn threads_of_a_runtime_may_wait() {
    let (_store, ours, file) = in_memory();
    let wanted = schema([StructField::nullable("a", DataType::LONG)]);
    on_a_runtime(async {
        let rows = as_data([numbers(0..3)]);
        ours.write_parquet_file(file.location.clone(), rows).expect("written");
        assert_eq!(
            read_batches(&ours, std::slice::from_ref(&file), &wanted, None).expect("read").len(),
            1
        );
        assert!(ours.read_parquet_footer(&file).is_ok());
        drop(ours);
    });
    // With the runtime of the caller; the rows of a write are those of a read of the same handler.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build();
    let runtime = runtime.expect("a runtime");
    let (_store, ours, file) = in_memory();
    let ours = ours.with_runtime(runtime.handle().clone());
    ours.write_parquet_file(file.location.clone(), as_data([numbers(0..3)])).expect("written");
    let rows = ours.read_parquet_files(std::slice::from_ref(&file), wanted, None).expect("a read");
    let copy = Url::parse("memory:///copy.parquet").expect("a URL");
    assert!(ours.write_parquet_file(copy, rows).expect("written") > 0);
}

#[derive(Default)]
struct Token(AtomicBool);

impl CancellationToken for Token {
    fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }

    fn cancelled_future(&self) -> CancelledFuture<'_> {
        let is_cancelled = self.is_cancelled();
        Box::pin(async move {
            if !is_cancelled {
                std::future::pending::<()>().await;
            }
        })
    }
}

#[test]
fn a_cancelled_read_ends_with_one_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("part.parquet");
    write(&path, &numbers(0..100));
    let (_store, stored, object) = in_memory();
    stored.write_parquet_file(object.location.clone(), as_data([numbers(0..100)])).expect("ok");
    let wanted = schema([StructField::nullable("a", DataType::LONG)]);
    for (ours, file) in [(handler(), meta_of(&path)), (stored, object)] {
        let ours = ours.with_batch_rows(10);
        let token = Arc::new(Token::default());
        let lent: CancellationTokenRef = token.clone();
        let mut batches = ours
            .read_parquet_files_with_cancellation(
                std::slice::from_ref(&file),
                Arc::clone(&wanted),
                None,
                Some(lent.clone()),
            )
            .expect("a read");
        assert!(batches.next().is_some_and(|batch| batch.is_ok()));
        token.0.store(true, Ordering::SeqCst);
        assert!(matches!(batches.next(), Some(Err(KernelError::Cancelled))));
        assert!(batches.next().is_none());
        let files = std::slice::from_ref(&file);
        let wanted = Arc::clone(&wanted);
        let refused =
            ours.read_parquet_files_with_cancellation(files, wanted, None, Some(lent.clone()));
        assert!(matches!(refused.err(), Some(KernelError::Cancelled)));
        let footer = ours.read_parquet_footer_with_cancellation(&file, Some(lent));
        assert!(matches!(footer.err(), Some(KernelError::Cancelled)));
    }
}

#[test]
fn a_read_whose_runtime_is_shut_down_is_an_error() {
    let (_store, ours, file) = in_memory();
    ours.write_parquet_file(file.location.clone(), as_data([numbers(0..100)])).expect("written");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).build();
    let runtime = runtime.expect("a runtime");
    let ours = ours.with_runtime(runtime.handle().clone()).with_batch_rows(10);
    let wanted = schema([StructField::nullable("a", DataType::LONG)]);
    let read = |token| {
        let files = std::slice::from_ref(&file);
        ours.read_parquet_files_with_cancellation(files, Arc::clone(&wanted), None, token)
    };
    let mut begun = read(None).expect("a read");
    assert!(begun.next().is_some_and(|batch| batch.is_ok()));
    drop(runtime);
    let rest: Vec<_> = begun.map(|batch| batch.is_ok()).collect();
    assert!(rest.len() < 9 && rest.last() == Some(&false), "{rest:?}");
    // Nor is a read that begins after it an empty one.
    for token in [None, Some(Arc::new(Token::default()) as CancellationTokenRef)] {
        let rest: Vec<_> = read(token).expect("a read").map(|batch| batch.is_ok()).collect();
        assert_eq!(rest, [false]);
    }
}

/// A handler that only says that it was called.
#[derive(Default)]
struct Called(AtomicBool);

impl ParquetHandler for Called {
    fn read_parquet_files(
        &self,
        _: &[FileMeta],
        _: delta_kernel::schema::SchemaRef,
        _: Option<delta_kernel::PredicateRef>,
    ) -> KernelResult<delta_kernel::FileDataReadResultIterator> {
        self.0.store(true, Ordering::SeqCst);
        Ok(Box::new(std::iter::empty()))
    }

    fn write_parquet_file(
        &self,
        _: Url,
        _: delta_kernel::KernelResultIteratorStatic<Data>,
    ) -> KernelResult<u64> {
        Err(KernelError::generic("not asked for"))
    }

    fn read_parquet_footer(&self, _: &FileMeta) -> KernelResult<delta_kernel::ParquetFooter> {
        Err(KernelError::generic("called"))
    }
}

#[test]
fn presigned_urls_go_to_the_other_handler() {
    let location = Url::parse("https://host/part.parquet?X-Amz-Signature=0").expect("a URL");
    let file = FileMeta { location, last_modified: 0, size: 10 };
    let wanted = schema([StructField::nullable("a", DataType::LONG)]);
    let error = read_batches(&handler(), std::slice::from_ref(&file), &wanted, None);
    assert!(error.is_err(), "no handler reads it");
    let other = Arc::new(Called::default());
    let ours = handler().with_presigned(other.clone());
    assert!(read_batches(&ours, std::slice::from_ref(&file), &wanted, None).is_ok());
    assert!(other.0.load(Ordering::SeqCst));
    let footer = ours.read_parquet_footer(&file).map(|footer| footer.schema);
    assert!(footer.expect_err("called").to_string().contains("called"));
}

/// The ids that the kernel states, of whatever it states them by.
#[test]
fn all_columns_get_their_field_ids() {
    let mapped = |field: Field, id: &str| {
        field.with_metadata([("delta.columnMapping.id".to_owned(), id.to_owned())].into())
    };
    let inner = Fields::from(vec![mapped(nullable("x", A::Int32), "4")]);
    let s = StructArray::new(inner.clone(), vec![Arc::new(Int32Array::from(vec![1]))], None);
    let mut lists =
        ListBuilder::new(Int32Builder::new()).with_field(Field::new("element", A::Int32, true));
    lists.values().append_value(1);
    lists.append(true);
    let lists = lists.finish();
    let mut maps = MapBuilder::new(None, Int32Builder::new(), Int32Builder::new());
    maps.keys().append_value(1);
    maps.values().append_value(1);
    maps.append(true).expect("equal");
    let maps = maps.finish();
    let list_type = arrow_array::Array::data_type(&lists).clone();
    let map_type = arrow_array::Array::data_type(&maps).clone();
    let nested = |field: Field, id: &str, json: &str| {
        let keys = ["parquet.field.id", "delta.columnMapping.nested.ids"];
        let metadata = keys.map(str::to_owned).into_iter().zip([id, json].map(str::to_owned));
        field.with_metadata(metadata.collect())
    };
    let fields = vec![
        mapped(nullable("s", A::Struct(inner)), "1"),
        nested(nullable("l", list_type), "2", r#"{"l.element": 5}"#),
        nested(nullable("m", map_type), "3", r#"{"m.key": 6, "m.value": 7}"#),
        arrow_id(mapped(nullable("both", A::Int32), "90"), 8),
    ];
    let columns: Vec<ArrayRef> =
        vec![Arc::new(s), Arc::new(lists), Arc::new(maps), Arc::new(Int32Array::from(vec![1]))];
    let batch = RecordBatch::try_new(arrow_schema(fields), columns).expect("a batch");
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("part.parquet");
    let ours = our_engine().parquet_handler();
    ours.write_parquet_file(url_of(&path), as_data([batch])).expect("written");
    let reader = Reader::open(&path).expect("a file");
    let schema = reader.schema().expect("a schema");
    assert_eq!(ids(schema.fields()), "s=1 s.x=4 l=2 l.element=5 m=3 m.key=6 m.value=7 both=8");
}

/// The columns of later batches are not taken by their position.
#[test]
fn batches_of_other_columns_than_the_first_are_refused() {
    let column = |name: &str, id: &str| {
        let id = ("delta.columnMapping.id".to_owned(), id.to_owned());
        nullable(name, A::Int64).with_metadata([id].into())
    };
    let batch = |fields: Vec<Field>| {
        let values = |at| Arc::new(Int64Array::from_iter_values([at, at])) as ArrayRef;
        let columns = (0..).take(fields.len()).map(values).collect();
        RecordBatch::try_new(arrow_schema(fields), columns).expect("a batch")
    };
    let (a, b, c) = (column("a", "1"), column("b", "2"), column("c", "3"));
    let inner = |fields: Vec<Field>| {
        let inner = StructArray::from(batch(fields));
        let field = Field::new("s", arrow_array::Array::data_type(&inner).clone(), false);
        RecordBatch::try_new(arrow_schema(vec![field]), vec![Arc::new(inner)]).expect("a batch")
    };
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("part.parquet");
    let first = || vec![a.clone(), b.clone()];
    for other in [vec![b.clone(), a.clone()], vec![a.clone(), b.clone(), c], vec![a.clone()]] {
        for batches in
            [[batch(first()), batch(other.clone())], [inner(first()), inner(other.clone())]]
        {
            handler()
                .write_parquet_file(url_of(&path), as_data(batches))
                .expect_err("other columns");
            assert!(!path.exists());
        }
    }
    let batches = [batch(first()), batch(first())];
    handler().write_parquet_file(url_of(&path), as_data(batches)).expect("the same columns");
}

fn ids(fields: &Fields) -> String {
    fn note(field: &Field, path: &str, out: &mut Vec<String>) {
        if let Some(id) = field.metadata().get(FIELD_ID_KEY) {
            out.push(format!("{path}={id}"));
        }
        match field.data_type() {
            A::Struct(inner) => {
                for field in inner {
                    note(field, &format!("{path}.{}", field.name()), out);
                }
            }
            A::List(item) => note(item, &format!("{path}.element"), out),
            A::Map(entries, _) => {
                if let A::Struct(pair) = entries.data_type() {
                    note(&pair[0], &format!("{path}.key"), out);
                    note(&pair[1], &format!("{path}.value"), out);
                }
            }
            _ => {}
        }
    }
    let mut out = Vec::new();
    for field in fields {
        note(field, field.name(), &mut out);
    }
    out.join(" ")
}
