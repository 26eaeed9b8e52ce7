//! Tests sinks that fail: the file at the path is the old one or the new one, and errors are
//! reported.

use std::fs;
use std::io::{self, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use marquetry::arrow_array::RecordBatch;
use marquetry::io::{PathSink, Sink, WriteSink};
use marquetry::{Error, ErrorKind, Reader, Result, RowGroupEncoder, WriteOptions, Writer};

use crate::support::numbered::{names, numbers, rows, write_file};

#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    /// One call fails, later ones work.
    Once,
    /// A call fails, and all after it.
    Sticky,
    /// One call fails when half of its bytes are there.
    Half,
}

/// The calls that a sink has seen; it outlives the writer.
#[derive(Default)]
struct Seen {
    calls: usize,
    bytes: Vec<u8>,
    failed: bool,
    finished: bool,
}

/// Fails at one call: of [`Sink`], or of [`Write`].
struct Faulty {
    seen: Arc<Mutex<Seen>>,
    at: usize,
    fault: Fault,
}

impl Faulty {
    fn call(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut seen = self.seen.lock().unwrap();
        let call = seen.calls;
        seen.calls += 1;
        if call == self.at || (call > self.at && self.fault == Fault::Sticky) {
            seen.failed = true;
            if self.fault == Fault::Half {
                seen.bytes.extend_from_slice(&bytes[..bytes.len() / 2]);
            }
            return Err(io::Error::other(format!("fault at call {call}")));
        }
        seen.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

impl Sink for Faulty {
    fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.call(&bytes).map_err(|e| Error::io("writing", e))
    }

    fn finish(&mut self) -> Result<()> {
        self.call(&[]).map_err(|e| Error::io("finishing", e))?;
        self.seen.lock().unwrap().finished = true;
        Ok(())
    }
}

impl Write for Faulty {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.call(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.call(&[])?;
        self.seen.lock().unwrap().finished = true;
        Ok(())
    }
}

/// Every kind of call of a writer, in turn. After the first error all fail, and the sink is left
/// alone.
fn drive<S: Sink>(sink: S, seen: &Mutex<Seen>, threads: usize) -> Result<()> {
    let options = WriteOptions::new().with_row_group_rows(300).with_page_rows(100);
    let encoder = RowGroupEncoder::new(rows(0, 1).schema(), options)?.with_threads(threads)?;
    let mut writer = Writer::over(sink, encoder.clone());
    let mut first: Option<Error> = None;
    let mut calls_then = 0;
    for step in 0..8 {
        let done = match step {
            3 | 6 => writer.flush(),
            4 => writer.append(encoder.encode(&[rows(step * 250, 250)])?),
            _ => writer.write(&rows(step * 250, 250)),
        };
        match (&first, done) {
            (None, Err(error)) => {
                calls_then = seen.lock().unwrap().calls;
                first = Some(error);
            }
            (Some(first), Ok(())) => panic!("step {step} works after {first}"),
            (Some(_), Err(later)) => assert_eq!(later.kind(), ErrorKind::Usage, "{later}"),
            (None, Ok(())) => {}
        }
    }
    let finished = writer.finish();
    match first {
        None => finished.map(drop),
        Some(error) => {
            assert!(finished.is_err(), "finish works after {error}");
            assert_eq!(seen.lock().unwrap().calls, calls_then, "the sink is called after {error}");
            Err(error)
        }
    }
}

#[test]
fn a_sink_that_fails_at_any_call_ends_the_writer() {
    let mut cases = 0;
    let clean = Arc::new(Mutex::new(Seen::default()));
    let sink = |at, fault, seen: &Arc<Mutex<Seen>>| Faulty { seen: seen.clone(), at, fault };
    drive(sink(usize::MAX, Fault::Once, &clean), &clean, 1).unwrap();
    let clean = clean.lock().unwrap();
    assert_eq!(
        numbers(&Reader::new(Bytes::from(clean.bytes.clone())).unwrap()).unwrap().len(),
        1500
    );
    assert!(clean.finished && clean.calls > 12, "{} calls", clean.calls);
    for at in 0..clean.calls {
        for fault in [Fault::Once, Fault::Sticky, Fault::Half] {
            for threads in [1, 2] {
                for through_write in [false, true] {
                    let seen = Arc::new(Mutex::new(Seen::default()));
                    let faulty = sink(at, fault, &seen);
                    let done = if through_write {
                        drive(WriteSink(faulty), &seen, threads)
                    } else {
                        drive(faulty, &seen, threads)
                    };
                    let error = done.expect_err("a fault is told");
                    assert_eq!(error.kind(), ErrorKind::Io, "{error}");
                    assert!(error.to_string().contains(&format!("fault at call {at}")), "{error}");
                    let seen = seen.lock().unwrap();
                    assert!(seen.failed && !seen.finished);
                    // The last call brings no bytes: they are all there, and may be lost all the
                    // same.
                    if at + 1 < clean.calls {
                        let opened = Reader::new(Bytes::from(seen.bytes.clone()));
                        assert!(opened.is_err(), "{fault:?} at {at}: it opens");
                        assert!(clean.bytes.starts_with(&seen.bytes), "{fault:?} at {at}");
                    }
                    cases += 1;
                }
            }
        }
    }
    println!("{cases} faults, {} calls of a sink", clean.calls);
}

/// Panics at one call.
struct Panicking {
    calls: usize,
    at: usize,
}

impl Sink for Panicking {
    fn write(&mut self, _: Bytes) -> Result<()> {
        self.calls += 1;
        assert!(self.calls != self.at, "planted");
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        panic!("a file that lacks bytes is finished");
    }
}

#[test]
fn a_sink_that_panics_ends_the_writer() {
    for (at, appends) in [(1, false), (2, false), (5, true)] {
        let options = WriteOptions::new().with_row_group_rows(300);
        let encoder = RowGroupEncoder::new(rows(0, 1).schema(), options).unwrap();
        let encoder = encoder.with_threads(1).unwrap();
        let mut writer = Writer::over(Panicking { calls: 0, at }, encoder.clone());
        let call = AssertUnwindSafe(|| match appends {
            true => (0..10).try_for_each(|_| writer.append(encoder.encode(&[rows(0, 10)])?)),
            false => writer.write(&rows(0, 4_000)),
        });
        catch_unwind(call).expect_err("a panic of the sink");
        let error = writer.write(&rows(0, 10)).expect_err("a writer that is at its end");
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        let error = writer.finish().expect_err("no file");
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
}

/// A [`Write`] that is interrupted and takes few bytes at a time, or none.
struct Hesitant {
    rng: fastrand::Rng,
    bytes: Vec<u8>,
    /// Where nothing is taken any more.
    max: usize,
}

impl Write for Hesitant {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.rng.bool() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let max = bytes.len().min(self.max - self.bytes.len());
        let n = if max == 0 { 0 } else { self.rng.usize(1..=max) };
        self.bytes.extend_from_slice(&bytes[..n]);
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn short_and_interrupted_writes_are_continued() {
    let seed = fastrand::u64(..);
    println!("seed {seed}");
    let clean = Mutex::new(Seen::default());
    for round in 0..20 {
        let rng = fastrand::Rng::with_seed(seed + round);
        let mut sink = WriteSink(Hesitant { rng: rng.clone(), bytes: Vec::new(), max: usize::MAX });
        drive(&mut Borrowed(&mut sink), &clean, 1).unwrap();
        let whole = sink.0.bytes;
        assert_eq!(numbers(&Reader::new(Bytes::from(whole.clone())).unwrap()).unwrap().len(), 1500);
        // A write that takes nothing is an error, not a loop.
        let max = rng.clone().usize(0..whole.len());
        let mut sink = WriteSink(Hesitant { rng, bytes: Vec::new(), max });
        let error = drive(&mut Borrowed(&mut sink), &clean, 1).expect_err("nothing more is taken");
        assert_eq!(error.kind(), ErrorKind::Io, "{error}");
        assert!(whole.starts_with(&sink.0.bytes) && sink.0.bytes.len() == max);
        assert!(Reader::new(Bytes::from(sink.0.bytes)).is_err());
    }
}

/// A sink that is looked at afterwards.
struct Borrowed<'a, S>(&'a mut S);

impl<S: Sink> Sink for &mut Borrowed<'_, S> {
    fn write(&mut self, bytes: Bytes) -> Result<()> {
        self.0.write(bytes)
    }

    fn finish(&mut self) -> Result<()> {
        self.0.finish()
    }
}

#[test]
fn a_path_has_the_old_file_until_the_new_one_is_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    write_file(&path, 0, 10).unwrap();
    let old = fs::read(&path).unwrap();
    let schema = rows(0, 1).schema();

    let mut writer = Writer::create(&path, schema.clone()).unwrap();
    for i in 0..3 {
        writer.write(&rows(i, 100)).unwrap();
        writer.flush().unwrap();
        assert_eq!(fs::read(&path).unwrap(), old);
    }
    drop(writer);
    assert_eq!(
        (fs::read(&path).unwrap(), names(folder.path())),
        (old.clone(), vec!["a.parquet".into()])
    );

    // A poisoned one as well.
    let mut writer = Writer::create(&path, schema.clone()).unwrap();
    let other = RecordBatch::try_from_iter([("x", rows(0, 1).column(0).clone())]).unwrap();
    writer.write(&rows(0, 5)).unwrap();
    assert!(writer.write(&other).is_err());
    drop(writer);
    assert_eq!((fs::read(&path).unwrap(), names(folder.path())), (old, vec!["a.parquet".into()]));

    // Two writers at once do not mix; the last one wins.
    let mut writers: Vec<_> =
        (0..2).map(|_| Writer::create(&path, schema.clone()).unwrap()).collect();
    writers[0].write(&rows(1000, 500)).unwrap();
    writers[1].write(&rows(2000, 700)).unwrap();
    for (writer, from) in writers.into_iter().zip([1000, 2000]) {
        writer.finish().unwrap();
        assert_eq!(numbers(&Reader::open(&path).unwrap()).unwrap()[0], from);
    }
    // Nor does one that is never ended: its temporary file is locked, and stays.
    std::mem::forget(Writer::create(&path, schema).unwrap());
    assert_eq!(names(folder.path()).len(), 2);
    write_file(&path, 7, 7).unwrap();
    assert_eq!(numbers(&Reader::open(&path).unwrap()).unwrap(), (7..14).collect::<Vec<_>>());
    assert_eq!(names(folder.path()).len(), 2);
}

#[test]
fn a_path_that_is_no_place_for_a_file_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let inside = folder.path().join("folder");
    fs::create_dir(&inside).unwrap();
    let missing = folder.path().join("missing").join("a.parquet");
    let below_a_file = folder.path().join("file").join("a.parquet");
    fs::write(folder.path().join("file"), "text").unwrap();
    for path in [&inside, &missing, &below_a_file, &PathBuf::new(), &folder.path().join("..")] {
        let error = write_file(path, 0, 1).expect_err("no file there");
        assert_eq!(error.kind(), ErrorKind::Io, "{}: {error}", path.display());
    }
    assert_eq!(names(folder.path()), ["file", "folder"]);
    // A name as long as names may be.
    let long = inside.join("é".repeat(123) + ".parquet");
    write_file(&long, 0, 3).unwrap();
    assert_eq!(names(&inside).len(), 1);
    assert_eq!(Reader::open(&long).unwrap().rows().unwrap(), 3);
}

#[cfg(unix)]
#[test]
fn permissions_and_links_stay() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("a.parquet"), folder.path().join("link.parquet"));
    write_file(&path, 0, 10).unwrap();
    for mode in [0o600, 0o640, 0o444, 0o755] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        write_file(&path, 0, 20).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, mode);
    }
    std::os::unix::fs::symlink("a.parquet", &link).unwrap();
    write_file(&link, 0, 30).unwrap();
    assert!(link.is_symlink());
    assert_eq!(Reader::open(&path).unwrap().rows().unwrap(), 30);
    assert_eq!(names(folder.path()), ["a.parquet", "link.parquet"]);
    // A link to a file that is not there yet, and one that leads to itself.
    fs::remove_file(&path).unwrap();
    write_file(&link, 0, 40).unwrap();
    assert!(link.is_symlink());
    assert_eq!(Reader::open(&path).unwrap().rows().unwrap(), 40);
    let circle = folder.path().join("circle.parquet");
    std::os::unix::fs::symlink("circle.parquet", &circle).unwrap();
    assert_eq!(write_file(&circle, 0, 10).unwrap_err().kind(), ErrorKind::Io);
}

#[cfg(target_os = "linux")]
#[test]
fn a_device_stays_a_device_and_a_full_one_is_an_error() {
    use std::os::unix::fs::FileTypeExt;
    let before = names(Path::new("/dev"));
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    let mut writer = Writer::to(full(), rows(0, 1).schema()).unwrap();
    writer.write(&rows(0, 100)).unwrap();
    assert_eq!(writer.finish().expect_err("full").kind(), ErrorKind::Io);
    assert_eq!(write_file(Path::new("/dev/full"), 0, 100).expect_err("full").kind(), ErrorKind::Io);
    write_file(Path::new("/dev/null"), 0, 100).unwrap();
    for device in ["/dev/full", "/dev/null"] {
        assert!(fs::metadata(device).unwrap().file_type().is_char_device(), "{device}");
    }
    let after = names(Path::new("/dev"));
    assert!(after.iter().all(|name| before.contains(name) || !name.ends_with(".tmp")), "{after:?}");
}

#[test]
fn a_sink_is_finished_once() {
    let folder = tempfile::tempdir().unwrap();
    let mut sink = PathSink::create(folder.path().join("a")).unwrap();
    sink.write(Bytes::from_static(b"abc")).unwrap();
    sink.finish().unwrap();
    assert_eq!(sink.finish().expect_err("once").kind(), ErrorKind::Usage);
    assert_eq!(sink.write(Bytes::new()).expect_err("finished").kind(), ErrorKind::Usage);
    drop(sink);
    assert_eq!(names(folder.path()), ["a"]);
}
