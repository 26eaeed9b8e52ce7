//! [`JsSource`]: an object of JavaScript that provides the bytes of a file.
//!
//! Dropping the future of a request aborts the request.

use std::future::Future;
use std::ops::Range;
use std::pin::pin;
use std::rc::Rc;

use bytes::Bytes;
use futures_channel::oneshot;
use futures_util::future::{BoxFuture, Either, select, try_join_all};
use js_sys::{Reflect, Uint8Array};
use marquetry::io::{AsyncSource, FileEnd};
use marquetry::{Error, Result};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};

use crate::error::{MAX_SAFE, count, thrown};
use crate::requests::Requests;

#[wasm_bindgen]
extern "C" {
    /// Provides the bytes of a file, as `js/sources.js` describes it.
    pub type Source;

    /// The bytes from `start` to `end`.
    #[wasm_bindgen(method, catch)]
    async fn read(
        this: &Source,
        start: f64,
        end: f64,
        signal: JsValue,
    ) -> std::result::Result<JsValue, JsValue>;

    /// The last `max` bytes, and the size: `{ bytes, size }`.
    #[wasm_bindgen(method, catch, js_name = readEnd)]
    async fn read_end(
        this: &Source,
        max: f64,
        signal: JsValue,
    ) -> std::result::Result<JsValue, JsValue>;

    /// Whether the bytes are on this machine.
    #[wasm_bindgen(method, getter, js_name = isLocal)]
    fn is_local(this: &Source) -> bool;

    /// Ends requests.
    type AbortController;

    #[wasm_bindgen(constructor)]
    fn new() -> AbortController;

    #[wasm_bindgen(method, getter)]
    fn signal(this: &AbortController) -> JsValue;

    #[wasm_bindgen(method)]
    fn abort(this: &AbortController);
}

/// The bytes of an object of JavaScript.
pub(crate) struct JsSource {
    requests: Requests<Request>,
    latency: marquetry::read::Latency,
}

enum Request {
    End { max: u64, answer: oneshot::Sender<Result<FileEnd>> },
    Ranges { ranges: Vec<Range<u64>>, answer: oneshot::Sender<Result<Vec<Bytes>>> },
}

impl JsSource {
    /// Starts the task that asks `source`. It ends when the last reader is dropped.
    pub(crate) fn start(source: Source) -> Self {
        use marquetry::read::Latency;
        let latency = if source.is_local() { Latency::LOCAL } else { Latency::STORE };
        let source = Rc::new(source);
        let serve = move |request| serve(source.clone(), request);
        Self { requests: Requests::start("source of the file", serve), latency }
    }
}

impl AsyncSource for JsSource {
    fn len(&self) -> BoxFuture<'_, Result<u64>> {
        Box::pin(async { Ok(self.read_end(0).await?.file_len) })
    }

    fn read(&self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        Box::pin(async {
            let bytes = self.read_many(vec![range]).await?.pop();
            bytes.ok_or_else(|| Error::internal("a request without an answer"))
        })
    }

    fn read_many(&self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        Box::pin(self.requests.ask(|answer| Request::Ranges { ranges, answer }))
    }

    fn read_end(&self, max: u64) -> BoxFuture<'_, Result<FileEnd>> {
        Box::pin(self.requests.ask(move |answer| Request::End { max, answer }))
    }

    fn latency(&self) -> marquetry::read::Latency {
        self.latency
    }
}

/// Answers one request.
async fn serve(source: Rc<Source>, request: Request) {
    let abort = AbortController::new();
    match request {
        Request::End { max, answer } => {
            until_cancelled(end(&source, max, &abort), answer, &abort).await;
        }
        Request::Ranges { ranges, answer } => {
            let read = |range: Range<u64>| range_of(&source, range, &abort);
            let all = try_join_all(ranges.into_iter().map(read));
            until_cancelled(all, answer, &abort).await;
        }
    }
}

/// Sends what the work comes to, or aborts it once the answer is not wanted any more. A request
/// that fails aborts those beside it.
async fn until_cancelled<T>(
    work: impl Future<Output = Result<T>>,
    mut answer: oneshot::Sender<Result<T>>,
    abort: &AbortController,
) {
    let done = match select(pin!(work), answer.cancellation()).await {
        Either::Left((done, _)) => Some(done),
        Either::Right(_) => None,
    };
    if !matches!(done, Some(Ok(_))) {
        abort.abort();
    }
    if let Some(done) = done {
        // It fails if no one waits.
        let _ = answer.send(done);
    }
}

async fn range_of(source: &Source, range: Range<u64>, abort: &AbortController) -> Result<Bytes> {
    let (start, end) = (number(range.start)?, number(range.end)?);
    let read = source.read(start, end, abort.signal()).await;
    let bytes = bytes(read.map_err(|e| failed(&e))?)?;
    let (wanted, given) = (range.end - range.start, bytes.len() as u64);
    if given != wanted {
        let text = format!("the source gave {given} bytes of {wanted} that were asked for");
        return Err(Error::io(text, std::io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(bytes)
}

async fn end(source: &Source, max: u64, abort: &AbortController) -> Result<FileEnd> {
    let read = source.read_end(number(max)?, abort.signal()).await;
    let end = read.map_err(|e| failed(&e))?;
    let part = |name: &str| Reflect::get(&end, &name.into()).unwrap_or(JsValue::UNDEFINED);
    let bytes = bytes(part("bytes"))?;
    let file_len = count("the size of the source", part("size").as_f64().unwrap_or(f64::NAN))?;
    if bytes.len() as u64 != max.min(file_len) {
        let text = format!("the source gave {} bytes of the last {max} of {file_len}", bytes.len());
        return Err(Error::io(text, std::io::ErrorKind::UnexpectedEof.into()));
    }
    Ok(FileEnd::new(bytes, file_len))
}

fn bytes(value: JsValue) -> Result<Bytes> {
    let array = value.dyn_into::<Uint8Array>();
    let array = array.map_err(|_| Error::usage("a source gives bytes as a Uint8Array"))?;
    Ok(array.to_vec().into())
}

#[expect(clippy::cast_precision_loss, reason = "larger numbers are refused")]
fn number(n: u64) -> Result<f64> {
    let number = n as f64;
    let is_exact = number <= MAX_SAFE;
    is_exact.then_some(number).ok_or_else(|| Error::usage(format_args!("byte {n} is too far")))
}

/// An error with the message that JavaScript threw.
fn failed(value: &JsValue) -> Error {
    Error::io("the bytes of the file cannot be read", std::io::Error::other(thrown(value)))
}
