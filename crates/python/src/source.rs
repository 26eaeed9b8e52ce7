//! Where bytes come from: paths, bytes, and objects of Python that read ranges.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use marquetry::io::Source;
use marquetry::read::Latency;
use marquetry::{Error, Result};
use marquetry_cli::urls::{Address, UrlOptions, open_url};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyDict, PyString};

use crate::error::usage;
use crate::gil::{Kept, call};
use crate::job::{self, Cancel};
use crate::keys::{given, only_known};

/// A source as Python names it.
pub(crate) enum Given {
    Path(PathBuf),
    Bytes(Bytes),
    Object(Arc<PyRanges>),
    Url(String, UrlOptions),
}

impl Given {
    /// A path, bytes, or an object with `read_range` and `size`: `marq._sources` makes them of
    /// whatever else there is.
    pub(crate) fn new(of: &Bound<'_, PyAny>, urls: &UrlOptions) -> PyResult<Self> {
        if of.is_instance_of::<PyString>() {
            let text = of.extract::<String>().unwrap_or_default();
            if is_url(&text) {
                return Ok(Self::Url(text, urls.clone()));
            }
            return Ok(Self::Path(of.extract()?));
        }
        if of.is_instance_of::<PyBytes>() {
            let bytes: PyBackedBytes = of.extract()?;
            return Ok(Self::Bytes(Bytes::from_owner(Kept::new(bytes))));
        }
        let is_local = of.getattr("is_local")?.extract()?;
        Ok(Self::Object(Arc::new(PyRanges { object: Kept::new(of.clone().unbind()), is_local })))
    }

    /// The bytes, which fail to be read once `cancel` is set. With `reopens`, a file is opened for
    /// each read, so that thousands of files are not open at a time.
    pub(crate) fn open(&self, cancel: &Cancel, reopens: bool) -> Result<Arc<dyn Source>> {
        let source: Arc<dyn Source> = match self {
            Self::Path(path) if reopens => Arc::new(Reopened::new(path)?),
            Self::Path(path) => Arc::new(open(path)?),
            Self::Bytes(bytes) => Arc::new(bytes.clone()),
            Self::Object(object) => object.clone(),
            Self::Url(url, options) => {
                job::refuse_child()?;
                Arc::new(open_url(url, options)?)
            }
        };
        Ok(Arc::new(Cancellable { source, cancel: cancel.clone() }))
    }
}

/// Whether a path is a URL that the tool opens, too.
pub(crate) fn is_url(path: &str) -> bool {
    path.contains("://") && Address::parse(path).is_ok()
}

/// How URLs are opened, from a dictionary; what is not given comes from the environment.
pub(crate) fn url_options(of: Option<&Bound<'_, PyDict>>) -> PyResult<UrlOptions> {
    let mut out = UrlOptions::default();
    let Some(of) = of else { return Ok(out) };
    const KNOWN: [&str; 6] = ["endpoint", "region", "ca_file", "anonymous", "timeout", "retries"];
    only_known(of, "url_options", &KNOWN)?;
    out.endpoint = given(of, "endpoint")?;
    out.region = given(of, "region")?;
    out.ca_file = given(of, "ca_file")?;
    if let Some(anonymous) = given(of, "anonymous")? {
        out.anonymous = anonymous;
    }
    if let Some(seconds) = given::<f64>(of, "timeout")? {
        let timeout = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
        out.timeout = timeout.ok_or_else(|| {
            usage(of.py(), format_args!("timeout={seconds}: a number of seconds above 0"))
        })?;
    }
    if let Some(retries) = given(of, "retries")? {
        out.retries = retries;
    }
    Ok(out)
}

fn open(path: &Path) -> Result<File> {
    let failed = |e| Error::io("the file cannot be opened", e);
    let file = File::open(path).map_err(failed)?;
    // Reading a folder fails with a text that says less.
    match file.metadata() {
        Ok(found) if found.is_dir() => Err(failed(std::io::ErrorKind::IsADirectory.into())),
        _ => Ok(file),
    }
}

/// A source whose reads fail once the work is cancelled.
struct Cancellable {
    source: Arc<dyn Source>,
    cancel: Cancel,
}

impl Source for Cancellable {
    fn len(&self) -> Result<u64> {
        self.source.len()
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.cancel.check()?;
        self.source.read(range)
    }

    fn read_many(&self, ranges: &[Range<u64>]) -> Option<Result<Vec<Bytes>>> {
        match self.cancel.check() {
            Ok(()) => self.source.read_many(ranges),
            Err(e) => Some(Err(e)),
        }
    }

    fn read_cached(&self, ranges: &[Range<u64>], out: &mut Vec<u8>) -> bool {
        self.cancel.check().is_ok() && self.source.read_cached(ranges, out)
    }

    fn in_memory(&self) -> bool {
        self.source.in_memory()
    }

    fn is_local(&self) -> bool {
        self.source.is_local()
    }

    fn latency(&self) -> Latency {
        self.source.latency()
    }

    fn loaded(&self, range: &Range<u64>) -> Option<Bytes> {
        self.source.loaded(range)
    }

    fn read_into(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        self.cancel.check()?;
        self.source.read_into(range, out)
    }
}

/// A file that is opened for each read.
struct Reopened {
    path: PathBuf,
    len: u64,
    modified: Option<std::time::SystemTime>,
}

impl Reopened {
    fn new(path: &Path) -> Result<Self> {
        let found = open(path)?.metadata().map_err(|e| Error::io("the length of the file", e))?;
        Ok(Self { path: path.to_owned(), len: found.len(), modified: found.modified().ok() })
    }

    fn file(&self) -> Result<File> {
        let file = open(&self.path)?;
        let found = file.metadata().map_err(|e| Error::io("the length of the file", e))?;
        if found.len() != self.len || found.modified().ok() != self.modified {
            let changed = std::io::Error::other("it was changed since its footer was read");
            return Err(Error::io("the file cannot be read", changed));
        }
        Ok(file)
    }
}

impl Source for Reopened {
    fn len(&self) -> Result<u64> {
        Ok(self.len)
    }

    fn is_local(&self) -> bool {
        true
    }

    fn read_cached(&self, ranges: &[Range<u64>], out: &mut Vec<u8>) -> bool {
        self.file().is_ok_and(|file| file.read_cached(ranges, out))
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        self.file()?.read(range)
    }

    fn read_into(&self, range: Range<u64>, out: &mut Vec<u8>) -> Result<()> {
        self.file()?.read_into(range, out)
    }
}

/// An object of Python that reads ranges.
pub(crate) struct PyRanges {
    object: Kept<Py<PyAny>>,
    is_local: bool,
}

impl Source for PyRanges {
    fn len(&self) -> Result<u64> {
        call("the length of the file", |py| {
            self.object.get().bind(py).call_method0("size")?.extract::<u64>()
        })
    }

    fn latency(&self) -> Latency {
        if self.is_local { Latency::LOCAL } else { Latency::STORE }
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        let wanted = range.end.saturating_sub(range.start);
        let read = |py: Python<'_>| -> PyResult<Bytes> {
            let found =
                self.object.get().bind(py).call_method1("read_range", (range.start, range.end))?;
            let bytes: PyBackedBytes = found.extract()?;
            // A copy: the object is freed here, and not when the main thread, which waits for the
            // read, runs Python again.
            Ok(Bytes::copy_from_slice(&bytes))
        };
        let bytes = call("reading the file object", read)?;
        if bytes.len() as u64 != wanted {
            let short = std::io::Error::new(
                std::io::ErrorKind::UnexpectedEof,
                format!("expected {wanted} bytes, found {}", bytes.len()),
            );
            return Err(Error::io(format_args!("reading at byte {}", range.start), short));
        }
        Ok(bytes)
    }
}
