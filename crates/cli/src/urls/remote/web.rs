//! [`WebFile`]: a file of a web server, by GET with ranges.
//!
//! Spec: RFC 9110, "Range Requests" and "Conditional Requests". A server may ignore a range and
//! send the whole file: it is kept if it is small, and refused if not.

use std::io::ErrorKind;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use marquetry::Error;
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_RANGE, ETAG, HeaderMap, HeaderName, IF_MATCH, LAST_MODIFIED, RANGE,
    RETRY_AFTER,
};
use reqwest::{Client, Response, StatusCode, Url};

use super::environment;
use super::fault::{self, Fault};
use super::file::{Remote, Version, WantedBytes, WebAnswer, append};
use super::stores::{CONNECT_TIMEOUT, certificates};
use crate::urls::address::{Address, decoded};
use crate::urls::options::UrlOptions;

/// A file of a web server.
pub(super) struct WebFile {
    client: Client,
    url: Url,
    /// User and password.
    login: Option<(String, String)>,
    retries: u32,
    /// The file, of a server that sends it whole.
    whole: Mutex<Option<(Bytes, Version)>>,
}

/// Why an attempt failed.
enum Failed {
    /// Another attempt may succeed, after this time if the server says it.
    ForNow(Fault, Option<Duration>),
    ForGood(Fault),
}

impl WebFile {
    pub(super) fn new(address: &Address, options: &UrlOptions) -> Result<Self, Error> {
        let wrong = |e: &dyn std::fmt::Display| {
            Error::usage(format_args!(
                "{}: no URL: {e}; in a user or a password, / ? # @ are %2F %3F %23 %40",
                address.name
            ))
        };
        let mut url = Url::parse(&address.whole).map_err(|e| wrong(&e))?;
        url.set_fragment(None);
        let (user, password) = (decoded(url.username()), url.password().map(decoded));
        let of_netrc = || environment::netrc(url.host_str()?);
        let login = match password {
            Some(password) => Some((user, password)),
            None if user.is_empty() => of_netrc(),
            // A token, unless there is a password for that user.
            None => of_netrc().filter(|(login, _)| *login == user).or(Some((user, String::new()))),
        };
        let _ = (url.set_username(""), url.set_password(None));
        let client = client(options)?;
        let login = login.filter(|_| !options.anonymous);
        Ok(Self { client, url, login, retries: options.retries, whole: Mutex::new(None) })
    }

    /// The part of the whole file, if the server sent that.
    fn of_whole(&self, wanted: &WantedBytes) -> Option<WebAnswer> {
        let whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        let (bytes, version) = whole.as_ref()?;
        let len = bytes.len();
        let at = |n: u64| usize::try_from(n).map_or(len, |n| n.min(len));
        let range = match wanted {
            WantedBytes::Range(range) => at(range.start)..at(range.end),
            WantedBytes::Last(last) => len - at(*last)..len,
        };
        let start = range.start as u64;
        Some(WebAnswer { start, bytes: bytes.slice(range), version: version.clone() })
    }

    async fn fetch(
        &self,
        wanted: WantedBytes,
        expected: Option<Version>,
    ) -> Result<WebAnswer, Fault> {
        let mut wait = FIRST_WAIT;
        let mut attempt = 0;
        loop {
            if let Some(part) = self.of_whole(&wanted) {
                return Ok(part);
            }
            match self.attempt(&wanted, expected.as_ref()).await {
                Ok(part) => return Ok(part),
                Err(Failed::ForGood(fault)) => return Err(fault),
                Err(Failed::ForNow(fault, _)) if attempt >= self.retries => {
                    return Err(match attempt {
                        0 => fault,
                        retries => fault.after(retries),
                    });
                }
                Err(Failed::ForNow(_, after)) => {
                    let after = after.unwrap_or(wait).min(MAX_WAIT);
                    tokio::time::sleep(after).await;
                    (attempt, wait) = (attempt + 1, wait.saturating_mul(2).min(MAX_WAIT));
                }
            }
        }
    }

    async fn send(&self, method: reqwest::Method, headers: HeaderMap) -> Result<Response, Failed> {
        let mut request = self.client.request(method, self.url.clone()).headers(headers);
        if let Some((user, password)) = &self.login {
            request = request.basic_auth(user, Some(password));
        }
        request.send().await.map_err(|error| Failed::ForNow(of_reqwest(error), None))
    }

    async fn attempt(
        &self,
        wanted: &WantedBytes,
        expected: Option<&Version>,
    ) -> Result<WebAnswer, Failed> {
        let mut headers = HeaderMap::new();
        let range = match wanted {
            WantedBytes::Range(range) => {
                format!("bytes={}-{}", range.start, range.end.saturating_sub(1))
            }
            WantedBytes::Last(bytes) => format!("bytes=-{bytes}"),
        };
        let mut set = |name: HeaderName, value: &str| {
            value.parse().ok().map(|value| headers.insert(name, value));
        };
        set(RANGE, &range);
        set(ACCEPT_ENCODING, "identity");
        if let Some(tag) = expected.and_then(Version::strong_tag) {
            set(IF_MATCH, tag);
        }
        let response = self.send(reqwest::Method::GET, headers).await?;
        match response.status() {
            StatusCode::PARTIAL_CONTENT => part(response, wanted).await,
            StatusCode::OK => self.keep_whole(response, wanted).await,
            StatusCode::RANGE_NOT_SATISFIABLE => match wanted {
                // The file is empty, or the server knows no ranges from the end.
                WantedBytes::Last(bytes) => self.bounded(*bytes).await,
                WantedBytes::Range(_) => Err(Failed::ForGood(Fault::changed())),
            },
            _ => Err(failed(response).await),
        }
    }

    /// The last bytes, by a request for the length and one for them.
    async fn bounded(&self, bytes: u64) -> Result<WebAnswer, Failed> {
        let head = self.send(reqwest::Method::HEAD, HeaderMap::new()).await?;
        if !head.status().is_success() {
            return Err(failed(head).await);
        }
        let Some(len) = stated_len(&head) else {
            let text = "the server does not say how long the file is";
            return Err(Failed::ForGood(Fault::new(ErrorKind::Other, text)));
        };
        let version = version(&head, len);
        if len == 0 {
            return Ok(WebAnswer { start: 0, bytes: Bytes::new(), version });
        }
        let wanted = WantedBytes::Range(len.saturating_sub(bytes)..len);
        Box::pin(self.attempt(&wanted, Some(&version))).await
    }

    /// Keeps a file that the server sends whole.
    async fn keep_whole(
        &self,
        mut response: Response,
        wanted: &WantedBytes,
    ) -> Result<WebAnswer, Failed> {
        let stated = stated_len(&response);
        let too_long = |len: String| {
            let text = format!(
                "the server ignores ranges, and would send the whole file ({len}): marq takes at \
                 most {MAX_WHOLE} bytes of it; download the file first"
            );
            Failed::ForGood(Fault::new(ErrorKind::Unsupported, text))
        };
        if let Some(len) = stated.filter(|len| *len > MAX_WHOLE) {
            return Err(too_long(format!("{len} bytes")));
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(of_body)? {
            if (bytes.len() + chunk.len()) as u64 > MAX_WHOLE {
                return Err(too_long("of unknown length".to_owned()));
            }
            bytes.extend_from_slice(&chunk);
        }
        let len = bytes.len() as u64;
        if let Some(stated) = stated.filter(|stated| *stated != len) {
            return Err(Failed::ForNow(ended_early(len, stated), None));
        }
        let version = version(&response, len);
        *self.whole.lock().unwrap_or_else(PoisonError::into_inner) = Some((bytes.into(), version));
        self.of_whole(wanted)
            .ok_or_else(|| Failed::ForGood(Fault::new(ErrorKind::Other, "the file was not kept")))
    }
}

/// The client of all files, with its connections and the certificates of the system.
fn client(options: &UrlOptions) -> Result<Client, Error> {
    static CLIENTS: Mutex<Vec<(String, Client)>> = Mutex::new(Vec::new());
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    let key = format!("{options:?}");
    if let Some((_, client)) = clients.iter().find(|(known, _)| *known == key) {
        return Ok(client.clone());
    }
    let mut builder = Client::builder()
        .connect_timeout(options.timeout.min(CONNECT_TIMEOUT))
        .read_timeout(options.timeout)
        // It would tell the query of a signed URL to where it is redirected.
        .referer(false)
        .user_agent(concat!("marq/", env!("CARGO_PKG_VERSION")));
    if let Some(certificates) = certificates(options)? {
        let wrong = |e| Error::usage(format_args!("--ca-file: {e}"));
        for certificate in reqwest::Certificate::from_pem_bundle(&certificates).map_err(wrong)? {
            builder = builder.add_root_certificate(certificate);
        }
    }
    let failed = |e| Error::io("the client of HTTP", std::io::Error::other(causes(e)));
    let client = builder.build().map_err(failed)?;
    clients.push((key, client.clone()));
    Ok(client)
}

impl Remote for WebFile {
    fn get(
        self: Arc<Self>,
        wanted: WantedBytes,
        expected: Option<Version>,
    ) -> BoxFuture<'static, Result<WebAnswer, Fault>> {
        Box::pin(async move { self.fetch(wanted, expected).await })
    }

    fn kept_bytes(&self) -> u64 {
        let whole = self.whole.lock().unwrap_or_else(PoisonError::into_inner);
        whole.as_ref().map_or(0, |(bytes, _)| bytes.len() as u64)
    }
}

/// The bytes of an answer to a request for a range.
async fn part(mut response: Response, wanted: &WantedBytes) -> Result<WebAnswer, Failed> {
    let header = response.headers().get(CONTENT_RANGE).and_then(|value| value.to_str().ok());
    let Some((range, len)) = header.and_then(content_range) else {
        let said = header.unwrap_or("nothing");
        let text = format!("the server does not say which bytes it sent: Content-Range is {said}");
        return Err(Failed::ForGood(Fault::new(ErrorKind::InvalidData, text)));
    };
    wanted.check(&range, len).map_err(Failed::ForGood)?;
    let version = version(&response, len);
    let stated = range.end - range.start;
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(of_body)? {
        append(&mut bytes, &chunk, stated).map_err(Failed::ForGood)?;
    }
    if (bytes.len() as u64) < stated {
        return Err(Failed::ForNow(ended_early(bytes.len() as u64, stated), None));
    }
    Ok(WebAnswer { start: range.start, bytes: bytes.into(), version })
}

/// `bytes FIRST-LAST/LEN`.
fn content_range(value: &str) -> Option<(Range<u64>, u64)> {
    let (range, len) = value.trim().strip_prefix("bytes")?.trim().split_once('/')?;
    let (first, last) = range.split_once('-')?;
    let (first, last) = (first.trim().parse::<u64>().ok()?, last.trim().parse::<u64>().ok()?);
    let (end, len) = (last.checked_add(1)?, len.trim().parse::<u64>().ok()?);
    (first < end && end <= len).then_some((first..end, len))
}

fn version(response: &Response, file_len: u64) -> Version {
    let header = |name| {
        let value = response.headers().get(name)?;
        value.to_str().ok().map(str::to_owned)
    };
    Version { tag: header(ETAG), modified: header(LAST_MODIFIED), file_len }
}

/// The length of the body, by its header: of HEAD, too, which has none.
fn stated_len(response: &Response) -> Option<u64> {
    let value = response.headers().get(reqwest::header::CONTENT_LENGTH)?;
    value.to_str().ok()?.trim().parse().ok()
}

/// The fault of another status.
async fn failed(mut response: Response) -> Failed {
    let status = response.status();
    let after = response.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    let after = after.and_then(|value| value.parse().ok()).map(Duration::from_secs);
    let reason = status.canonical_reason().unwrap_or_default().to_owned();
    // Stores say there what is wrong.
    let is_xml = response
        .headers()
        .get(reqwest::header::CONTENT_TYPE)
        .is_some_and(|value| value.to_str().is_ok_and(|value| value.contains("xml")));
    let mut detail = reason;
    if is_xml && let Ok(Some(chunk)) = response.chunk().await {
        let said = String::from_utf8_lossy(chunk.get(..chunk.len().min(4096)).unwrap_or_default());
        detail = fault::tidy(&said);
    }
    let fault = fault::of_status(status.as_u16(), &detail);
    match status.as_u16() {
        408 | 425 | 429 | 500 | 502 | 503 | 504 => Failed::ForNow(fault, after),
        _ => Failed::ForGood(fault),
    }
}

fn ended_early(given: u64, wanted: u64) -> Fault {
    let text = format!("the answer of the server ended after {given} of {wanted} bytes");
    Fault::new(ErrorKind::UnexpectedEof, text)
}

fn of_body(error: reqwest::Error) -> Failed {
    Failed::ForNow(of_reqwest(error), None)
}

/// The fault of a request without a whole answer.
fn of_reqwest(error: reqwest::Error) -> Fault {
    let is_silent = error.is_timeout();
    let kind = if is_silent { ErrorKind::TimedOut } else { ErrorKind::Other };
    let text = match () {
        () if is_silent && error.is_connect() => "the server cannot be reached in time".to_owned(),
        () if is_silent => "the server is silent: --timeout lets it take longer".to_owned(),
        () if error.is_connect() => format!("the server cannot be reached: {}", causes(error)),
        () => format!("the request failed: {}", causes(error)),
    };
    Fault::new(kind, text)
}

/// The innermost cause, without the URL.
fn causes(error: reqwest::Error) -> String {
    let error = error.without_url();
    let mut text = error.to_string();
    let mut next = std::error::Error::source(&error);
    while let Some(cause) = next {
        text = cause.to_string();
        next = cause.source();
    }
    fault::tidy(&text)
}

/// Bytes of a file that a server sends whole.
const MAX_WHOLE: u64 = 64 << 20;
/// Time before the first request that is made again; it doubles.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// Maximum of that, and of what a server asks for.
const MAX_WAIT: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_ranges_that_contradict_themselves_are_none() {
        assert_eq!(content_range("bytes 0-9/20"), Some((0..10, 20)));
        assert_eq!(content_range("bytes 10-19/20"), Some((10..20, 20)));
        for wrong in [
            "bytes 9-0/20",
            "bytes 0-20/20",
            "bytes 0-9/*",
            "items 0-9/20",
            "0-9/20",
            "bytes 0-18446744073709551615/20",
            "",
        ] {
            assert_eq!(content_range(wrong), None, "{wrong}");
        }
    }
}
