//! Faults of an object store: answers that fail, break off, come late, or are of another version of
//! the object.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use fastrand::Rng;
use futures_util::TryStreamExt;
use futures_util::stream::{self, BoxStream, StreamExt};
use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::types::Int64Type;
use marquetry::{AsyncReader, Reader, Result};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, GetOptions, GetResult, GetResultPayload, ListResult, MultipartUpload, ObjectMeta,
    ObjectStore, ObjectStoreExt, PutMultipartOptions, PutOptions, PutPayload, PutResult,
};

use super::{PLAIN, ROWS};
use crate::support::faults::{FAULT, Markers, late};
use crate::support::generate::every_case;
use crate::support::mutants::paths::block_on;
use crate::support::numbered::rows;

static REACHED: Markers = Markers::new();

const MARKERS: [&str; 7] = [
    "all rows",
    "all rows, though the store was late",
    "a request fails",
    "an answer breaks off",
    "an answer ends early",
    "the object is replaced while it is read",
    "opening fails",
];

/// A store whose answers fail by the numbers of a seed.
#[derive(Debug)]
struct FaultStore {
    inner: InMemory,
    rng: Mutex<Rng>,
    /// One request in this number fails; 0 for none.
    faults: u32,
    replaces: bool,
    tags: Tags,
    given: AtomicUsize,
}

/// How a store treats entity tags.
#[derive(Debug, Clone, Copy)]
enum Tags {
    /// It gives an object of the tag that is asked for, or an error.
    Strong,
    /// It gives the object that there is, whatever tag is asked for.
    Ignored,
    /// A request for a weak tag matches no object.
    Weak,
}

impl fmt::Display for FaultStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("store with faults")
    }
}

fn fault() -> object_store::Error {
    object_store::Error::Generic { store: "fault", source: FAULT.into() }
}

/// Begins at the row `ROWS`, and is as long as the other version, nearly.
fn other_version() -> Bytes {
    use marquetry::io::WriteSink;
    let encoder = marquetry::RowGroupEncoder::new(rows(0, 1).schema(), super::options());
    let mut writer = marquetry::Writer::over(WriteSink(Vec::new()), encoder.expect("an encoder"));
    writer.write(&rows(ROWS, ROWS)).expect("rows");
    writer.into_inner().expect("a file").1.into()
}

impl FaultStore {
    /// The fault of a request: none, an error, a stream that breaks off, one that ends early,
    /// another version.
    fn next(&self) -> (u32, u8) {
        let mut rng = self.rng.lock().expect("a lock");
        let fails = self.faults > 0 && rng.u32(..self.faults) == 0;
        let kind = if fails { rng.u8(1..if self.replaces { 5 } else { 4 }) } else { 0 };
        self.given.fetch_add(usize::from(kind > 0), Ordering::Relaxed);
        (rng.u32(..3), kind)
    }
}

#[async_trait::async_trait]
impl ObjectStore for FaultStore {
    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        options: PutOptions,
    ) -> object_store::Result<PutResult> {
        self.inner.put_opts(path, payload, options).await
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> object_store::Result<Box<dyn MultipartUpload>> {
        self.inner.put_multipart_opts(path, options).await
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> object_store::Result<GetResult> {
        let (polls, kind) = self.next();
        late(polls).await;
        match kind {
            1 => {
                REACHED.reach("a request fails");
                return Err(fault());
            }
            4 => {
                REACHED.reach("the object is replaced while it is read");
                self.inner.put(path, other_version().into()).await?;
            }
            _ => {}
        }
        let is_head = options.head;
        let options = match self.tags {
            Tags::Ignored => GetOptions { if_match: None, ..options },
            Tags::Strong | Tags::Weak => options,
        };
        let mut found = self.inner.get_opts(path, options).await?;
        if matches!(self.tags, Tags::Weak) {
            found.meta.e_tag = found.meta.e_tag.map(|tag| format!("W/\"{tag}\""));
        }
        if !matches!(kind, 2 | 3) || is_head {
            return Ok(found);
        }
        let (meta, range) = (found.meta.clone(), found.range.clone());
        let attributes = std::mem::take(&mut found.attributes);
        let bytes = found.bytes().await?;
        let half = bytes.slice(..bytes.len() / 2);
        let end = match kind {
            2 => {
                REACHED.reach("an answer breaks off");
                vec![Ok(half), Err(fault())]
            }
            _ => {
                REACHED.reach("an answer ends early");
                vec![Ok(half)]
            }
        };
        let payload = GetResultPayload::Stream(stream::iter(end).boxed());
        Ok(GetResult { payload, meta, range, attributes })
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, object_store::Result<Path>>,
    ) -> BoxStream<'static, object_store::Result<Path>> {
        self.inner.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, object_store::Result<ObjectMeta>> {
        self.inner.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> object_store::Result<ListResult> {
        self.inner.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &Path,
        to: &Path,
        options: CopyOptions,
    ) -> object_store::Result<()> {
        self.inner.copy_opts(from, to, options).await
    }
}

/// The numbers of the rows, which are those of `version` from 0 on, and how the read ended.
async fn read(reader: &AsyncReader) -> (Vec<i64>, Result<()>) {
    let mut found: Vec<i64> = Vec::new();
    let mut batches = match reader.stream() {
        Ok(batches) => batches,
        Err(error) => return (found, Err(error)),
    };
    loop {
        match batches.try_next().await {
            Ok(Some(batch)) => {
                let numbers = batch.column(0).as_primitive::<Int64Type>().values();
                for (i, number) in numbers.iter().enumerate() {
                    assert_eq!(&batch.column(1).slice(i, 1), rows(*number, 1).column(1));
                }
                found.extend_from_slice(numbers);
            }
            Ok(None) => return (found, Ok(())),
            Err(error) => return (found, Err(error)),
        }
    }
}

#[test]
fn whatever_a_store_answers_rows_are_those_of_one_version() {
    let cases = every_case(600, |seed| {
        let mut rng = Rng::with_seed(seed);
        let faults = [0, 2, 4, 10][rng.usize(..4)];
        let threads = rng.usize(1..=2);
        let replaces = rng.bool();
        let tags = [Tags::Strong, Tags::Ignored, Tags::Weak][rng.usize(..3)];
        let store = Arc::new(FaultStore {
            inner: InMemory::new(),
            rng: Mutex::new(rng.fork()),
            faults,
            replaces,
            tags,
            given: AtomicUsize::new(0),
        });
        block_on(async {
            let put = store.put(&"a".into(), Bytes::clone(&PLAIN).into()).await;
            put.expect("memory");
            let dynamic: Arc<dyn ObjectStore> = store.clone();
            let Ok(reader) = Reader::open_store(dynamic, "a").await else {
                assert!(store.given.load(Ordering::Relaxed) > 0, "it opens");
                REACHED.reach("opening fails");
                return Ok(());
            };
            let reader = reader.threads(threads).batch_rows(25);
            let (found, done) = read(&reader).await;
            let first = found.first().copied().unwrap_or(0);
            assert!(first == 0 || first == ROWS, "rows from {first} on");
            assert_eq!(found, Vec::from_iter(first..first + found.len() as i64));
            let given = store.given.load(Ordering::Relaxed);
            match done {
                Ok(()) => {
                    assert_eq!(found.len() as i64, ROWS);
                    let name =
                        if given == 0 { "all rows, though the store was late" } else { "all rows" };
                    REACHED.reach(name);
                }
                Err(error) => assert!(given > 0, "{error}"),
            }
            Ok(())
        })
        .expect("an end");
    });
    if cases >= 600 {
        REACHED.assert_reached(&MARKERS);
    }
}
