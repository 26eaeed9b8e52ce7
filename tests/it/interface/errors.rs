//! Tests that the kind and the place of an error survive every way that errors travel: the loop of
//! the README, a `dyn RecordBatchReader`, the stream, and chains of causes.

use std::error::Error as _;
use std::fs;
use std::ops::Range;
use std::path::Path;

use bytes::Bytes;
use marquetry::arrow_array::{RecordBatch, RecordBatchReader};
use marquetry::arrow_schema::ArrowError;
use marquetry::format::{CompressionCodec, ConvertedType, Encoding, Type};
use marquetry::io::{Source, WriteSink};
use marquetry::{Error, ErrorKind, LimitKind, Reader, Result, WriteOptions, Writer};

use crate::support::numbered::rows;
use crate::support::{Chunk, file, ints, optional, required, testdata, texts, v1};

/// A file that fails while its batches are read.
struct Case {
    name: &'static str,
    expected: fn(ErrorKind) -> bool,
    /// Whether the error names row group and column.
    placed: bool,
    source: Faulty,
    memory: u64,
}

/// A source of bytes that fails from one of its requests on.
#[derive(Clone)]
struct Faulty {
    bytes: Bytes,
    /// A byte that cannot be read.
    lost: Option<u64>,
}

impl Source for Faulty {
    fn len(&self) -> Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        if self.lost.is_some_and(|lost| range.contains(&lost)) {
            // As a source does that is built on `std::io`, and wraps its error.
            let told = std::io::Error::new(std::io::ErrorKind::ConnectionReset, "gone");
            return Err(std::io::Error::other(Error::io("reading far away", told)).into());
        }
        Ok(self.bytes.slice(range.start as usize..range.end as usize))
    }
}

fn cases() -> Vec<Case> {
    let whole = |bytes: Vec<u8>| Faulty { bytes: bytes.into(), lost: None };
    let column = |chunk: Chunk| file(vec![required("v", Type::Int32)], 3, vec![chunk]);
    let three = || Chunk::new(Type::Int32, 3, &[v1(3, Encoding::Plain, &ints(&[1, 2, 3]))]);
    let cut = column(Chunk::new(Type::Int32, 3, &[v1(3, Encoding::Plain, &ints(&[1, 2]))]));
    let unknown = column(three().codec(CompressionCodec::Unknown(77)));
    let mut text = optional("v", Type::ByteArray);
    text.converted_type = Some(ConvertedType::Utf8);
    let page = [&[2, 0, 0, 0, 2, 1][..], &texts(&["ab"])].concat();
    let page = [&page[..page.len() - 2], &[0xff, 0xff]].concat();
    let not_utf8 =
        file(vec![text], 1, vec![Chunk::new(Type::ByteArray, 1, &[v1(1, Encoding::Plain, &page)])]);
    let mut far = whole(large());
    far.lost = Some(1_000);
    let many = whole(fs::read(testdata("trips.parquet")).expect("a file of this repository"));
    let case =
        |name, expected, placed, source| Case { name, expected, placed, source, memory: 4 << 30 };
    vec![
        case("values end early", |k| matches!(k, ErrorKind::Malformed(_)), true, whole(cut)),
        case("not UTF-8", |k| matches!(k, ErrorKind::Malformed(_)), true, whole(not_utf8)),
        case("unknown codec", |k| matches!(k, ErrorKind::Unsupported(_)), true, whole(unknown)),
        case("source fails", |k| k == ErrorKind::Io, false, far),
        Case {
            memory: 1_000,
            ..case("limit", |k| k == ErrorKind::Limit(LimitKind::Memory), false, many)
        },
    ]
}

/// A file that is longer than the first read that finds its footer.
fn large() -> Vec<u8> {
    let batch = rows(0, 200_000);
    let mut writer =
        Writer::new(WriteSink(Vec::new()), batch.schema(), WriteOptions::new()).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap().1
}

/// The loop of the README: `?` over the results of an iterator of Arrow's kind.
fn readme_loop(reader: &Reader, out: &Path) -> Result<()> {
    let batches = reader.batches()?;
    let mut writer = Writer::create(out, batches.schema())?;
    for batch in batches {
        writer.write(&batch?)?;
    }
    writer.finish().map(drop)
}

/// A consumer that knows nothing but Arrow.
fn arrow_loop(reader: &Reader) -> Result<usize, ArrowError> {
    let reader: Box<dyn RecordBatchReader> = Box::new(reader.batches()?);
    let batches = reader.collect::<Result<Vec<RecordBatch>, ArrowError>>()?;
    Ok(batches.iter().map(RecordBatch::num_rows).sum())
}

fn check(case: &Case, way: &str, error: &Error) {
    assert!((case.expected)(error.kind()), "{}, {way}: {error:?}", case.name);
    if case.placed {
        let at = error.at();
        assert_eq!((at.row_group, at.column.as_deref()), (Some(0), Some("v")), "{way}: {error}");
    }
}

#[test]
fn kind_and_place_survive_every_loop_over_batches() {
    let folder = tempfile::tempdir().unwrap();
    for case in &cases() {
        for threads in [1, 2] {
            let reader = Reader::new(case.source.clone()).unwrap();
            let reader = reader.threads(threads).memory(case.memory);
            let told = readme_loop(&reader, &folder.path().join("out.parquet")).unwrap_err();
            check(case, "the loop of the README", &told);
            let arrow = arrow_loop(&reader).unwrap_err();
            check(case, "a RecordBatchReader", &Error::from(arrow));
            let direct = reader.batches().unwrap().next_batch().unwrap_err();
            assert_eq!(direct.to_string(), told.to_string(), "{}", case.name);
        }
    }
}

#[cfg(feature = "object_store")]
#[test]
fn kind_and_place_survive_a_stream_whose_errors_become_those_of_arrow() {
    use futures_util::{StreamExt, TryStreamExt};
    use marquetry::io::AsyncSource;

    struct Far(Faulty);

    impl AsyncSource for Far {
        fn len(&self) -> futures_util::future::BoxFuture<'_, Result<u64>> {
            Box::pin(async { self.0.len() })
        }

        fn read(&self, range: Range<u64>) -> futures_util::future::BoxFuture<'_, Result<Bytes>> {
            Box::pin(async move { self.0.read(range) })
        }
    }

    for case in cases() {
        let reader = Far(case.source.clone());
        let told: Result<Vec<RecordBatch>> =
            tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(
                async {
                    let reader = Reader::open_async(reader).await?.memory(case.memory);
                    let stream = reader.stream()?.map(|batch| batch.map_err(ArrowError::from));
                    stream.try_collect().await.map_err(Error::from)
                },
            );
        check(&case, "a stream", &told.unwrap_err());
    }
}

#[test]
fn a_chain_of_causes_says_each_cause_once() {
    let folder = tempfile::tempdir().unwrap();
    let missing = Reader::open(folder.path().join("not-there.parquet")).expect_err("no file");
    let io = || std::io::Error::new(std::io::ErrorKind::NotFound, "the disk is gone");
    let wrapped = ArrowError::IoError("while writing".to_owned(), io());
    let converted = Error::from(ArrowError::from(io()));
    for error in [missing, Error::io("reading", io()), Error::from(wrapped), converted] {
        assert_eq!(error.kind(), ErrorKind::Io);
        let text = error.to_string();
        let cause = error.get_ref().expect("a cause");
        assert!(text.contains(&cause.to_string()), "people see the cause: {text}");
        // As `anyhow` prints `{:#}`: the texts of the chain, one after the other.
        let mut chain = vec![text];
        let mut next = error.source();
        while let Some(cause) = next {
            chain.push(cause.to_string());
            next = cause.source();
        }
        let chain = chain.join(": ");
        assert_eq!(chain.matches(&cause.to_string()).count(), 1, "{chain}");
        let kind = cause.downcast_ref::<std::io::Error>().map(std::io::Error::kind);
        assert_eq!(kind, Some(std::io::ErrorKind::NotFound), "programs find it too");
    }
}
