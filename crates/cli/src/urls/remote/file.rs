//! [`UrlSource`]: a file at a URL, read by blocking calls.
//!
//! The first request brings the end of the file, whose answer tells its length; that end is kept.
//! Ranges that are asked for together are fetched side by side. Every answer must be of the version
//! of the first.

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::future::BoxFuture;
use marquetry::Error;
use marquetry::io::Source;
use marquetry::read::Latency;

use super::super::options::{Observer, Request};
use super::fault::Fault;
use super::runtime;

/// The bytes that are asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum WantedBytes {
    Range(Range<u64>),
    /// At most this many bytes, to the end.
    Last(u64),
}

impl WantedBytes {
    /// Checks, before it is read, that an answer has no other bytes than these: it may have fewer
    /// of a range that goes on after the end of the file.
    ///
    /// # Errors
    /// If it has others.
    pub(super) fn check(&self, given: &Range<u64>, file_len: u64) -> Result<(), Fault> {
        let is_wanted = match self {
            Self::Range(range) => {
                given.start == range.start && given.end == file_len.min(range.end)
            }
            Self::Last(bytes) => given.end == file_len && given.end - given.start <= *bytes,
        };
        if is_wanted { Ok(()) } else { Err(short(self, given)) }
    }
}

/// Appends a chunk of an answer.
///
/// # Errors
/// If the answer has more than the bytes that it stated.
pub(super) fn append(bytes: &mut Vec<u8>, chunk: &[u8], stated: u64) -> Result<(), Fault> {
    if (bytes.len() + chunk.len()) as u64 > stated {
        let text = format!("the server sends more than the {stated} bytes that it stated");
        return Err(Fault::new(std::io::ErrorKind::InvalidData, text));
    }
    bytes.extend_from_slice(chunk);
    Ok(())
}

/// The marks of a version of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Version {
    /// The entity tag, with its quotes.
    pub(super) tag: Option<String>,
    pub(super) modified: Option<String>,
    pub(super) file_len: u64,
}

impl Version {
    /// Whether two answers are of one version: by their tags if both have one.
    fn is_same(&self, other: &Self) -> bool {
        let by_mark = match (&self.tag, &other.tag) {
            (Some(a), Some(b)) => a == b,
            _ => self.modified == other.modified,
        };
        by_mark && self.file_len == other.file_len
    }

    /// The tag, if a server compares it byte for byte.
    pub(super) fn strong_tag(&self) -> Option<&str> {
        self.tag.as_deref().filter(|tag| !tag.starts_with("W/"))
    }
}

/// An answer.
pub(super) struct WebAnswer {
    pub(super) start: u64,
    pub(super) bytes: Bytes,
    pub(super) version: Version,
}

/// A file that requests are made to.
pub(super) trait Remote: Send + Sync {
    /// Fetches bytes: all of a range, if the file has them. `expected` is the version that they
    /// must be of.
    fn get(
        self: Arc<Self>,
        wanted: WantedBytes,
        expected: Option<Version>,
    ) -> BoxFuture<'static, Result<WebAnswer, Fault>>;

    /// Bytes that are kept for later requests.
    fn kept_bytes(&self) -> u64 {
        0
    }
}

/// A file at a URL.
pub struct UrlSource {
    name: Arc<str>,
    remote: Arc<dyn Remote>,
    observer: Option<Observer>,
    /// Held while the end is fetched. A failure stays one: it was tried often enough.
    state: Mutex<Option<Result<FirstAnswer, Fault>>>,
    /// Bytes of the end that are kept: to be read while it is fetched.
    end_bytes: AtomicU64,
}

/// A file since the first answer.
struct FirstAnswer {
    version: Version,
    /// Bytes at the end of the file.
    end: Bytes,
}

impl std::fmt::Debug for UrlSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UrlSource").field("name", &self.name).finish_non_exhaustive()
    }
}

impl UrlSource {
    pub(super) fn new(name: Arc<str>, remote: Arc<dyn Remote>, observer: Option<Observer>) -> Self {
        Self { name, remote, observer, state: Mutex::new(None), end_bytes: AtomicU64::new(0) }
    }

    /// Bytes that are kept in memory.
    pub(crate) fn kept_bytes(&self) -> u64 {
        self.end_bytes.load(Ordering::Relaxed).saturating_add(self.remote.kept_bytes())
    }

    /// The URL, without what is secret in it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Fetches the end of the file, the first time.
    fn with_opened<T>(&self, use_it: impl FnOnce(&mut FirstAnswer) -> T) -> Result<T, Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let opened = state.get_or_insert_with(|| {
            let part = self.fetch(WantedBytes::Last(END_BYTES), None)?;
            Ok(FirstAnswer { version: part.version, end: part.bytes })
        });
        match opened {
            Ok(opened) => {
                let used = use_it(opened);
                self.end_bytes.store(opened.end.len() as u64, Ordering::Relaxed);
                Ok(used)
            }
            Err(fault) => Err(fault.clone().error("the URL cannot be opened", &self.name)),
        }
    }

    fn version(&self) -> Result<Version, Error> {
        self.with_opened(|opened| opened.version.clone())
    }

    fn fetch(&self, wanted: WantedBytes, expected: Option<Version>) -> Result<WebAnswer, Fault> {
        let fetched = fetch(self.remote.clone(), wanted, expected, self.teller());
        let waited = runtime::wait(fetched);
        waited.map_err(|e| Fault::new(std::io::ErrorKind::Other, e.to_string()))?
    }

    /// Tells the observer of a part.
    fn teller(&self) -> impl Fn(&WebAnswer, Instant) + Send + use<> {
        let (name, observer) = (self.name.clone(), self.observer.clone());
        move |part, begun| {
            let range = part.start..part.start + part.bytes.len() as u64;
            if let Some(observer) = &observer {
                observer.tell(Request::new(name.clone(), range, begun.elapsed()));
            }
        }
    }

    /// The bytes of a range near the end of the file: with what lies between it and the end that is
    /// kept, because page indexes lie there side by side, and are asked for one after the other.
    fn read_to_end(&self, range: &Range<u64>) -> Result<Option<Bytes>, Error> {
        // Held while more of the end is fetched, so that others find it there.
        self.with_opened(|opened| self.lengthen(opened, range))?
    }

    fn lengthen(
        &self,
        opened: &mut FirstAnswer,
        range: &Range<u64>,
    ) -> Result<Option<Bytes>, Error> {
        let end_at = opened.version.file_len - opened.end.len() as u64;
        let max = match end_at.saturating_sub(range.end) {
            // What is left of a long footer, and perhaps of its end.
            0 => MAX_ADJOINING_RANGE,
            gap if gap <= MAX_NEAR_BYTES => MAX_NEAR_RANGE,
            _ => return Ok(None),
        };
        if range.start >= end_at
            || end_at.min(range.end) - range.start > max
            || opened.version.file_len - range.start > MAX_END_BYTES
        {
            return Ok(None);
        }
        let wanted = WantedBytes::Range(range.start..end_at);
        let part = self.fetch(wanted, Some(opened.version.clone()));
        let part = part.map_err(|fault| fault.error(&reading(range), &self.name))?;
        opened.end = [&part.bytes[..], &opened.end[..]].concat().into();
        Ok(opened.find(range))
    }
}

impl FirstAnswer {
    /// The bytes of a range, if they are in the end that is kept.
    fn find(&self, range: &Range<u64>) -> Option<Bytes> {
        let end_at = self.version.file_len - self.end.len() as u64;
        let from = usize::try_from(range.start.checked_sub(end_at)?).ok()?;
        let to = usize::try_from(range.end.checked_sub(end_at)?).ok()?;
        (from <= to && to <= self.end.len()).then(|| self.end.slice(from..to))
    }
}

/// Fetches a part, and checks that it is what was wanted.
async fn fetch(
    remote: Arc<dyn Remote>,
    wanted: WantedBytes,
    expected: Option<Version>,
    tell: impl Fn(&WebAnswer, Instant) + Send,
) -> Result<WebAnswer, Fault> {
    let begun = Instant::now();
    let part = remote.get(wanted.clone(), expected.clone()).await?;
    tell(&part, begun);
    if expected.is_some_and(|expected| !expected.is_same(&part.version)) {
        return Err(Fault::changed());
    }
    let given = part.start..part.start + part.bytes.len() as u64;
    let is_whole = match &wanted {
        WantedBytes::Range(range) => given == *range,
        WantedBytes::Last(_) => given.end == part.version.file_len,
    };
    if is_whole { Ok(part) } else { Err(short(&wanted, &given)) }
}

fn short(wanted: &WantedBytes, given: &Range<u64>) -> Fault {
    let wanted = match wanted {
        WantedBytes::Range(range) => format!("bytes {} to {}", range.start, range.end),
        WantedBytes::Last(bytes) => format!("the last {bytes} bytes"),
    };
    let text = format!(
        "the server gave bytes {} to {}, where {wanted} were asked for",
        given.start, given.end
    );
    Fault::new(std::io::ErrorKind::UnexpectedEof, text)
}

fn reading(range: &Range<u64>) -> String {
    format!("reading {} bytes at {}", range.end.saturating_sub(range.start), range.start)
}

impl Source for UrlSource {
    fn len(&self) -> Result<u64, Error> {
        Ok(self.version()?.file_len)
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes, Error> {
        if let Some(bytes) = self.loaded(&range) {
            return Ok(bytes);
        }
        let found = self.read_many(std::slice::from_ref(&range));
        found.unwrap_or_else(|| Ok(Vec::new()))?.pop().ok_or_else(|| Error::internal("no answer"))
    }

    fn read_many(&self, ranges: &[Range<u64>]) -> Option<Result<Vec<Bytes>, Error>> {
        Some(self.read_all(ranges))
    }

    fn latency(&self) -> Latency {
        Latency::STORE
    }

    fn loaded(&self, range: &Range<u64>) -> Option<Bytes> {
        self.with_opened(|opened| opened.find(range)).ok()?
    }
}

impl UrlSource {
    fn read_all(&self, ranges: &[Range<u64>]) -> Result<Vec<Bytes>, Error> {
        let version = self.version()?;
        let len = version.file_len;
        if let Some(range) = ranges.iter().find(|it| it.start > it.end || it.end > len) {
            let text = format!("the file has {len} bytes");
            let fault = Fault::new(std::io::ErrorKind::UnexpectedEof, text);
            return Err(fault.error(&reading(range), &self.name));
        }
        if let [range] = ranges
            && let Some(bytes) = self.read_to_end(range)?
        {
            return Ok(vec![bytes]);
        }
        // Long ranges in pieces of one size, so that they come over several connections.
        let mut pieces = Vec::new();
        for (at, range) in ranges.iter().enumerate().filter(|(_, range)| !range.is_empty()) {
            let n = (range.end - range.start).div_ceil(MAX_REQUEST_BYTES);
            let piece = (range.end - range.start).div_ceil(n);
            let starts = (0..n).map(|i| range.start + i * piece);
            pieces.extend(starts.map(|start| (at, start..range.end.min(start + piece))));
        }
        let requests = pieces.into_iter().map(|(at, range)| {
            let (remote, version, tell) = (self.remote.clone(), version.clone(), self.teller());
            async move {
                let wanted = WantedBytes::Range(range.clone());
                let part = fetch(remote, wanted, Some(version), tell).await;
                part.map(|part| (at, part.bytes)).map_err(|fault| (range, fault))
            }
        });
        // Collected first: the stream must not borrow.
        let requests: Vec<_> = requests.collect();
        let stream = futures_util::stream::iter(requests).buffered(SIDE_BY_SIDE);
        let parts = runtime::wait(async move { stream.collect::<Vec<_>>().await })?;
        let mut found: Vec<Vec<Bytes>> = vec![Vec::new(); ranges.len()];
        for part in parts {
            let (at, bytes) =
                part.map_err(|(range, fault)| fault.error(&reading(&range), &self.name))?;
            if let Some(found) = found.get_mut(at) {
                found.push(bytes);
            }
        }
        Ok(found.into_iter().map(joined).collect())
    }
}

fn joined(mut pieces: Vec<Bytes>) -> Bytes {
    match pieces.len() {
        0 | 1 => pieces.pop().unwrap_or_default(),
        _ => pieces.concat().into(),
    }
}

/// Bytes of the first request: more cost less than a second request where footers are longer than
/// usual.
const END_BYTES: u64 = 256 << 10;
/// Bytes that are fetched to reach the end that is kept: about a third of the time of a request.
const MAX_NEAR_BYTES: u64 = 1 << 20;
/// Bytes of a range that is fetched with what follows it: column chunks are longer, mostly.
const MAX_NEAR_RANGE: u64 = 256 << 10;
/// Bytes of a range that is kept because it ends where the end begins.
const MAX_ADJOINING_RANGE: u64 = 16 << 20;
/// Bytes of the end that are kept: page indexes and a footer are shorter, mostly.
const MAX_END_BYTES: u64 = 32 << 20;
/// Bytes of a request that is one of several.
const MAX_REQUEST_BYTES: u64 = 8 << 20;
/// Requests of a read that run at a time.
const SIDE_BY_SIDE: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    /// A file of zeros.
    struct Zeros(u64);

    impl Remote for Zeros {
        fn get(
            self: Arc<Self>,
            wanted: WantedBytes,
            _: Option<Version>,
        ) -> BoxFuture<'static, Result<WebAnswer, Fault>> {
            let range = match wanted {
                WantedBytes::Range(range) => range,
                WantedBytes::Last(bytes) => self.0.saturating_sub(bytes)..self.0,
            };
            let len = usize::try_from(range.end - range.start).expect("a length");
            let version = Version { tag: None, modified: None, file_len: self.0 };
            let answer = WebAnswer { start: range.start, bytes: vec![0; len].into(), version };
            Box::pin(async move { Ok(answer) })
        }
    }

    #[test]
    fn a_file_that_is_read_backwards_is_not_kept_whole() {
        let (len, step) = (64 << 20, 8 << 20);
        let source = UrlSource::new("zeros".into(), Arc::new(Zeros(len)), None);
        let mut end = len - END_BYTES;
        while end > 0 {
            let start = end.saturating_sub(step);
            assert_eq!(source.read(start..end).expect("bytes").len() as u64, end - start);
            assert!(source.kept_bytes() <= MAX_END_BYTES, "{} bytes", source.kept_bytes());
            end = start;
        }
        assert!(source.kept_bytes() > END_BYTES, "ranges before the end are kept with it");
    }

    #[test]
    fn an_answer_has_no_bytes_that_are_not_wanted() {
        let (range, last) = (WantedBytes::Range(10..20), WantedBytes::Last(5));
        for (wanted, given, file_len, is_wanted) in [
            (&range, 10..20, 100, true),
            // The file became shorter: its version says so.
            (&range, 10..15, 15, true),
            (&range, 10..15, 100, false),
            (&range, 9..20, 100, false),
            (&range, 10..21, 100, false),
            (&range, 0..100, 100, false),
            (&last, 95..100, 100, true),
            (&last, 97..100, 100, true),
            (&last, 0..3, 3, true),
            (&last, 94..100, 100, false),
            (&last, 90..95, 100, false),
        ] {
            assert_eq!(wanted.check(&given, file_len).is_ok(), is_wanted, "{wanted:?}, {given:?}");
        }
    }
}
