//! A small web server on the loopback, which is a store with the interface of S3, too: it counts
//! what it is asked for, and can be slow, short, failing, changing, or ignorant of ranges.

use std::collections::BTreeMap;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// How the server answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    #[default]
    Plain,
    /// Whole files, whatever range is asked for.
    IgnoresRanges,
    /// Says that a whole file of this length comes, and sends nothing of it.
    ClaimsWhole(u64),
    /// The next answers with bodies end in the middle of them.
    Short(u32),
    /// This status, for the next requests that bring bytes; 429 asks to try again at once.
    Failing(u16, u32),
    /// Nothing is answered.
    Silent,
    /// Each answer has another entity tag.
    ChangingTag,
    /// There are no entity tags, and each answer has another time.
    ChangingTime,
    /// Bytes from the end of a file are refused.
    NoSuffix,
    /// Content-Range states other bytes than were asked for.
    WrongRange,
    /// All bytes, where those at the end are asked for, as an answer to a range.
    WholeRange,
    /// Parts of uploads are refused after this number.
    PartsFail(u32),
    /// Parts of uploads are never answered.
    PartsHang,
}

/// A request that came.
#[derive(Debug, Clone)]
pub struct Seen {
    pub method: String,
    pub target: String,
    pub headers: BTreeMap<String, String>,
    /// Bytes of the body that was sent.
    pub sent: usize,
}

#[derive(Default)]
struct State {
    files: BTreeMap<String, Vec<u8>>,
    uploads: BTreeMap<String, BTreeMap<u32, Vec<u8>>>,
    seen: Vec<Seen>,
    mode: Mode,
    begun: u32,
}

/// A running server. It ends with the process.
pub struct Server {
    pub port: u16,
    state: Arc<Mutex<State>>,
}

/// Both directions of a connection.
pub trait Connection: Read + Write {}

impl<T: Read + Write> Connection for T {}

impl Server {
    pub fn new() -> Self {
        Self::over(|stream| Some(Box::new(stream)))
    }

    /// A server whose connections are made of those of TCP, such as by TLS.
    pub fn over(
        wrap: impl Fn(TcpStream) -> Option<Box<dyn Connection>> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state = Arc::new(Mutex::new(State::default()));
        let (of_server, wrap) = (state.clone(), Arc::new(wrap));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (state, wrap) = (of_server.clone(), wrap.clone());
                thread::spawn(move || wrap(stream).map(|stream| serve(stream, &state)));
            }
        });
        Self { port, state }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no panic")
    }

    /// Adds a file, by its path without a slash in front.
    pub fn put(&self, path: &str, bytes: Vec<u8>) {
        self.state().files.insert(path.to_owned(), bytes);
    }

    pub fn get(&self, path: &str) -> Option<Vec<u8>> {
        self.state().files.get(path).cloned()
    }

    pub fn remove(&self, path: &str) {
        self.state().files.remove(path);
    }

    pub fn paths(&self) -> Vec<String> {
        self.state().files.keys().cloned().collect()
    }

    pub fn set(&self, mode: Mode) {
        self.state().mode = mode;
    }

    /// The requests since the last call.
    pub fn seen(&self) -> Vec<Seen> {
        std::mem::take(&mut self.state().seen)
    }

    /// Uploads that were begun, and neither ended nor aborted.
    pub fn open_uploads(&self) -> usize {
        self.state().uploads.len()
    }

    /// Waits until a request comes that `is_it`.
    pub fn wait_for(&self, is_it: impl Fn(&Seen) -> bool) {
        for _ in 0..6000 {
            if self.state().seen.iter().any(&is_it) {
                return;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("no such request came within a minute");
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}/{path}", self.port)
    }
}

struct Asked {
    method: String,
    path: String,
    query: BTreeMap<String, String>,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

fn serve(stream: Box<dyn Connection>, state: &Mutex<State>) {
    let mut stream = BufReader::new(stream);
    while let Some(asked) = read_request(&mut stream) {
        let (head, body, is_open) = answer(&asked, state);
        let out = stream.get_mut();
        let written = out.write_all(head.as_bytes()).and_then(|()| out.write_all(&body));
        if written.and_then(|()| out.flush()).is_err() || !is_open {
            return;
        }
    }
}

fn read_request(stream: &mut impl BufRead) -> Option<Asked> {
    let line = |stream: &mut dyn BufRead| {
        let mut line = String::new();
        stream.read_line(&mut line).ok().filter(|n| *n > 0)?;
        Some(line.trim_end().to_owned())
    };
    let first = line(stream)?;
    let mut words = first.split(' ');
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let text = line(stream)?;
        let Some((name, value)) = text.split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let len = headers.get("content-length").and_then(|len| len.parse().ok()).unwrap_or(0);
    let mut body = vec![0; len];
    stream.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    let pairs = pairs.map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    let query = pairs.map(|(name, value)| (name.to_owned(), decoded(value))).collect();
    let path = decoded(path.trim_start_matches('/'));
    Some(Asked { method, path, query, headers, body })
}

fn decoded(text: &str) -> String {
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    while let [byte, after @ ..] = rest {
        let code = after.get(..2).and_then(|two| std::str::from_utf8(two).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()).filter(|_| *byte == b'%') {
            Some(code) => {
                out.push(code);
                rest = &after[2..];
            }
            None => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8(out).expect("text")
}

/// The head and the body of an answer, and whether the connection stays open.
fn answer(asked: &Asked, state: &Mutex<State>) -> (String, Vec<u8>, bool) {
    let mut state = state.lock().expect("no panic");
    let at = state.seen.len();
    let target = format!("{} {:?}", asked.path, asked.query);
    let (method, headers) = (asked.method.clone(), asked.headers.clone());
    state.seen.push(Seen { method, target, headers, sent: 0 });
    let is_get = asked.method == "GET" && !asked.query.contains_key("list-type");
    let is_part = asked.query.contains_key("partNumber");
    match state.mode {
        Mode::Silent => {
            drop(state);
            thread::sleep(Duration::from_secs(60));
            return (String::new(), Vec::new(), false);
        }
        Mode::PartsHang if is_part => {
            drop(state);
            thread::sleep(Duration::from_secs(60));
            return (String::new(), Vec::new(), false);
        }
        Mode::PartsFail(0) if is_part => return status(400, "InvalidPart"),
        Mode::PartsFail(n) if is_part => state.mode = Mode::PartsFail(n - 1),
        Mode::Failing(code, n) if is_get => {
            state.mode = if n > 1 { Mode::Failing(code, n - 1) } else { Mode::Plain };
            return status(code, "SlowDown");
        }
        _ => {}
    }
    let (head, mut body) = match asked.method.as_str() {
        "GET" if asked.query.contains_key("list-type") => listing(asked, &state),
        "GET" | "HEAD" => file(asked, &mut state),
        "PUT" | "POST" | "DELETE" => change(asked, &mut state),
        _ => return status(405, "MethodNotAllowed"),
    };
    let mut is_open = true;
    if asked.method == "HEAD" {
        body.clear();
    }
    if let Mode::Short(n) = state.mode
        && is_get
        && body.len() > 1
    {
        state.mode = if n > 1 { Mode::Short(n - 1) } else { Mode::Plain };
        body.truncate(body.len() / 2);
        is_open = false;
    }
    if matches!(state.mode, Mode::ClaimsWhole(_)) {
        is_open = false;
    }
    state.seen[at].sent = body.len();
    (head, body, is_open)
}

fn status(code: u16, name: &str) -> (String, Vec<u8>, bool) {
    let (head, body) =
        xml(code, &format!("<Error><Code>{name}</Code><Message>no</Message></Error>"));
    (head, body, true)
}

fn xml(code: u16, text: &str) -> (String, Vec<u8>) {
    let after = if code == 429 { "Retry-After: 0\r\n" } else { "" };
    let head = format!(
        "HTTP/1.1 {code} X\r\n{after}Content-Type: application/xml\r\nContent-Length: {}\r\n\r\n",
        text.len()
    );
    (head, text.as_bytes().to_vec())
}

fn tag(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}

/// The range that is asked for, within a file of this length.
fn range(header: &str, len: usize) -> Option<Range<usize>> {
    let (first, last) = header.strip_prefix("bytes=")?.split_once('-')?;
    let range = match (first.parse::<usize>(), last.parse::<usize>()) {
        (Ok(first), Ok(last)) => first..len.min(last + 1),
        (Ok(first), _) => first..len,
        (_, Ok(last)) => len - last.min(len)..len,
        _ => return None,
    };
    (range.start < range.end).then_some(range)
}

fn file(asked: &Asked, state: &mut State) -> (String, Vec<u8>) {
    if let Some(to) = asked.path.strip_prefix("moved/") {
        let head = format!("HTTP/1.1 302 Found\r\nLocation: /{to}\r\nContent-Length: 0\r\n\r\n");
        return (head, Vec::new());
    }
    if asked.path.starts_with("private/") && !asked.headers.contains_key("authorization") {
        return xml(401, "");
    }
    let Some(bytes) = state.files.get(&asked.path).cloned() else {
        return xml(404, "<Error><Code>NoSuchKey</Code><Message>none</Message></Error>");
    };
    let (mode, len) = (state.mode, bytes.len());
    state.begun += 1;
    let marks = match mode {
        Mode::ChangingTag => format!("ETag: \"{}\"\r\n", state.begun),
        Mode::ChangingTime => String::new(),
        _ => format!("ETag: {}\r\n", tag(&bytes)),
    };
    let second = if mode == Mode::ChangingTime { state.begun % 60 } else { 0 };
    let marks = format!("{marks}Last-Modified: Wed, 21 Oct 2026 07:28:{second:02} GMT\r\n");
    let tag = tag(&bytes);
    if asked.headers.get("if-match").is_some_and(|wanted| *wanted != tag) {
        return xml(412, "<Error><Code>PreconditionFailed</Code><Message>no</Message></Error>");
    }
    let header = asked.headers.get("range").filter(|_| mode != Mode::IgnoresRanges);
    if let Mode::ClaimsWhole(len) = mode {
        return (format!("HTTP/1.1 200 OK\r\n{marks}Content-Length: {len}\r\n\r\n"), Vec::new());
    }
    let Some(header) = header else {
        let head = format!("HTTP/1.1 200 OK\r\n{marks}Content-Length: {len}\r\n\r\n");
        return (head, if asked.method == "HEAD" { Vec::new() } else { bytes });
    };
    let is_suffix = header.starts_with("bytes=-");
    let found = range(header, len).filter(|_| !(is_suffix && mode == Mode::NoSuffix));
    let Some(range) = found else { return xml(416, "") };
    let range = if mode == Mode::WholeRange && is_suffix { 0..len } else { range };
    let first = if mode == Mode::WrongRange && !is_suffix { range.start + 1 } else { range.start };
    let head = format!(
        "HTTP/1.1 206 Partial Content\r\n{marks}Content-Range: bytes {first}-{}/{len}\r\n\
         Content-Length: {}\r\n\r\n",
        range.end - 1,
        range.len()
    );
    (head, bytes[range].to_vec())
}

/// The objects of a bucket: ListObjectsV2.
fn listing(asked: &Asked, state: &State) -> (String, Vec<u8>) {
    let value = |name: &str| asked.query.get(name).cloned().unwrap_or_default();
    let (prefix, delimiter) = (value("prefix"), value("delimiter"));
    let bucket = format!("{}/", asked.path.trim_end_matches('/'));
    let mut text = String::from("<ListBucketResult><IsTruncated>false</IsTruncated>");
    let mut folders: Vec<String> = Vec::new();
    for (path, bytes) in &state.files {
        let Some(key) = path.strip_prefix(&bucket) else { continue };
        let Some(rest) = key.strip_prefix(&prefix) else { continue };
        if let Some((folder, _)) = rest.split_once('/').filter(|_| !delimiter.is_empty()) {
            let folder = format!("{prefix}{folder}/");
            if folders.last() != Some(&folder) {
                folders.push(folder);
            }
            continue;
        }
        text += &format!(
            "<Contents><Key>{}</Key><Size>{}</Size><ETag>{}</ETag>\
             <LastModified>2026-10-21T07:28:00.000Z</LastModified></Contents>",
            key.replace('&', "&amp;"),
            bytes.len(),
            tag(bytes).replace('"', "&quot;")
        );
    }
    for folder in folders {
        text += &format!("<CommonPrefixes><Prefix>{folder}</Prefix></CommonPrefixes>");
    }
    xml(200, &(text + "</ListBucketResult>"))
}

/// Writes of S3: objects, and uploads in parts.
fn change(asked: &Asked, state: &mut State) -> (String, Vec<u8>) {
    let empty = || ("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned(), Vec::new());
    let upload = asked.query.get("uploadId").cloned();
    match (asked.method.as_str(), upload) {
        ("POST", None) => {
            state.begun += 1;
            let id = format!("upload-{}", state.begun);
            state.uploads.insert(id.clone(), BTreeMap::new());
            let text = format!(
                "<InitiateMultipartUploadResult><UploadId>{id}</UploadId>\
                 </InitiateMultipartUploadResult>"
            );
            xml(200, &text)
        }
        ("PUT", Some(id)) => {
            let number = asked.query["partNumber"].parse().expect("a number");
            let Some(parts) = state.uploads.get_mut(&id) else { return xml(404, "") };
            parts.insert(number, asked.body.clone());
            let tag = tag(&asked.body);
            (format!("HTTP/1.1 200 OK\r\nETag: {tag}\r\nContent-Length: 0\r\n\r\n"), Vec::new())
        }
        ("POST", Some(id)) => {
            let Some(parts) = state.uploads.remove(&id) else { return xml(404, "") };
            let whole: Vec<u8> = parts.into_values().flatten().collect();
            let tag = tag(&whole).replace('"', "&quot;");
            state.files.insert(asked.path.clone(), whole);
            let text = format!(
                "<CompleteMultipartUploadResult><ETag>{tag}</ETag></CompleteMultipartUploadResult>"
            );
            xml(200, &text)
        }
        ("DELETE", Some(id)) => {
            state.uploads.remove(&id);
            empty()
        }
        ("DELETE", None) => {
            state.files.remove(&asked.path);
            empty()
        }
        _ => {
            state.files.insert(asked.path.clone(), asked.body.clone());
            let tag = tag(&asked.body);
            (format!("HTTP/1.1 200 OK\r\nETag: {tag}\r\nContent-Length: 0\r\n\r\n"), Vec::new())
        }
    }
}
