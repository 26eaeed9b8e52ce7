//! [`UrlOptions`]: how URLs are opened, beside what the environment says.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How URLs are opened.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct UrlOptions {
    /// The server of the store, in place of that of its provider.
    pub endpoint: Option<String>,
    /// The region of the bucket (S3).
    pub region: Option<String>,
    /// Requests are not signed, and carry no password.
    pub anonymous: bool,
    /// A file of certificates (PEM) that are trusted beside those of the system.
    pub ca_file: Option<PathBuf>,
    /// How long a server may be silent. Default 30 s. A request to a store takes at most four times
    /// as long.
    pub timeout: Duration,
    /// How often a request is made again that fails for reasons that may pass. Default 4, the first
    /// after 0.1 s, and each after twice as long.
    pub retries: u32,
    /// Is told of each request that brings bytes.
    pub observer: Option<Observer>,
}

impl Default for UrlOptions {
    fn default() -> Self {
        Self {
            endpoint: None,
            region: None,
            anonymous: false,
            ca_file: None,
            timeout: Duration::from_secs(30),
            retries: 4,
            observer: None,
        }
    }
}

/// A request that brought bytes.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Request {
    /// The name of the file.
    pub name: Arc<str>,
    /// The bytes of the file.
    pub range: Range<u64>,
    /// Time until all of them were there.
    pub elapsed: Duration,
}

/// A function that is told of requests.
#[derive(Clone)]
pub struct Observer(Arc<dyn Fn(Request) + Send + Sync>);

impl Observer {
    /// Calls `function` after each request, on any thread.
    pub fn new(function: impl Fn(Request) + Send + Sync + 'static) -> Self {
        Self(Arc::new(function))
    }

    /// Tells of a request.
    pub fn tell(&self, request: Request) {
        (self.0)(request);
    }
}

impl fmt::Debug for Observer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observer")
    }
}

impl Request {
    /// Bytes `range` of the file `name` came within `elapsed`.
    pub fn new(name: Arc<str>, range: Range<u64>, elapsed: Duration) -> Self {
        Self { name, range, elapsed }
    }
}
