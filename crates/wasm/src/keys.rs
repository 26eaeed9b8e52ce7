//! [`Keys`]: what opens encrypted files.

use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;

use futures_channel::oneshot;
use js_sys::{Function, Promise, Uint8Array};
use marquetry::crypt::{AsyncKeyRetriever, Decryption, Key, KeyRequest};
use marquetry::{Error, Result};
use wasm_bindgen::prelude::wasm_bindgen;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;

use crate::error::{thrown, to_js};
use crate::requests::Requests;

/// The keys of a reader, as `Decryption` in `js/marquetry.d.ts` describes them.
#[wasm_bindgen]
#[derive(Debug, Default)]
pub struct Keys {
    decryption: Decryption,
}

#[wasm_bindgen]
impl Keys {
    /// No keys; `plaintext_files`, `unverified_footers` and `unauthenticated_pages` say what is
    /// read though it is not protected.
    #[wasm_bindgen(constructor)]
    pub fn new(
        plaintext_files: bool,
        unverified_footers: bool,
        unauthenticated_pages: bool,
    ) -> Self {
        let decryption = Decryption::new()
            .with_plaintext_files(plaintext_files)
            .with_unverified_footers(unverified_footers)
            .with_unauthenticated_pages(unauthenticated_pages);
        Self { decryption }
    }

    /// Sets the key of the footer.
    ///
    /// # Errors
    /// If it is no key.
    #[wasm_bindgen(js_name = setFooterKey)]
    pub fn set_footer_key(&mut self, key: JsValue) -> std::result::Result<(), JsValue> {
        let key = key_of(&key).map_err(to_js)?;
        self.change(|keys| keys.with_footer_key(key));
        Ok(())
    }

    /// Sets the key of a column, or of all below a field.
    ///
    /// # Errors
    /// If it is no key.
    #[wasm_bindgen(js_name = setColumnKey)]
    pub fn set_column_key(&mut self, path: &str, key: JsValue) -> std::result::Result<(), JsValue> {
        let key = key_of(&key).map_err(to_js)?;
        self.change(|keys| keys.with_column_key(path, key));
        Ok(())
    }

    /// Sets the AAD prefix.
    #[wasm_bindgen(js_name = setAadPrefix)]
    pub fn set_aad_prefix(&mut self, prefix: &[u8]) {
        self.change(|keys| keys.with_aad_prefix(prefix));
    }

    /// Sets the function that finds keys which are not given here.
    #[wasm_bindgen(js_name = setRetriever)]
    pub fn set_retriever(&mut self, retriever: Function) {
        self.change(|keys| keys.with_async_retriever(JsRetriever::start(retriever)));
    }
}

impl Keys {
    fn change(&mut self, change: impl FnOnce(Decryption) -> Decryption) {
        self.decryption = change(std::mem::take(&mut self.decryption));
    }

    pub(crate) fn decryption(self) -> Decryption {
        self.decryption
    }
}

/// A function of JavaScript that finds keys.
struct JsRetriever {
    requests: Requests<Wanted>,
}

/// The key of a column, or of the footer.
struct Wanted {
    column: Option<String>,
    metadata: Option<Vec<u8>>,
    answer: oneshot::Sender<Result<Key>>,
}

impl JsRetriever {
    fn start(retriever: Function) -> Self {
        let retriever = Rc::new(retriever);
        let serve = move |wanted: Wanted| {
            let retriever = retriever.clone();
            async move {
                let found = retrieve(&retriever, wanted.column.as_deref(), wanted.metadata).await;
                // It fails if no one waits.
                let _ = wanted.answer.send(found);
            }
        };
        Self { requests: Requests::start("key retriever", serve) }
    }
}

impl AsyncKeyRetriever for JsRetriever {
    fn retrieve<'a>(
        &'a self,
        request: KeyRequest<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<Key>> + Send + 'a>> {
        let column = request.column.map(ToString::to_string);
        let metadata = request.key_metadata.map(<[u8]>::to_vec);
        Box::pin(self.requests.ask(|answer| Wanted { column, metadata, answer }))
    }
}

/// Calls the function, and waits for the promise if it gives one. Nothing says that there is no
/// such key; what it throws ends the read.
async fn retrieve(
    retriever: &Function,
    column: Option<&str>,
    metadata: Option<Vec<u8>>,
) -> Result<Key> {
    let name = column.map_or_else(|| "the footer".to_owned(), |path| format!("column {path}"));
    let failed = |value: JsValue| {
        let text = format!("the key retriever failed for {name}");
        Error::io(text, std::io::Error::other(thrown(&value)))
    };
    let path = column.map_or(JsValue::UNDEFINED, JsValue::from_str);
    let metadata = metadata.map_or(JsValue::UNDEFINED, |bytes| Uint8Array::from(&*bytes).into());
    let found = retriever.call2(&JsValue::UNDEFINED, &path, &metadata).map_err(failed)?;
    let found = JsFuture::from(Promise::resolve(&found)).await.map_err(failed)?;
    if found.is_null() || found.is_undefined() {
        return Err(Error::crypto(format_args!("the key retriever has no key for {name}")));
    }
    key_of(&found)
}

/// A key from its bytes, or from hexadecimal digits.
fn key_of(value: &JsValue) -> Result<Key> {
    if let Some(digits) = value.as_string() {
        return Key::from_hex(&digits);
    }
    match value.dyn_ref::<Uint8Array>() {
        Some(bytes) => Key::new(&bytes.to_vec()),
        None => Err(Error::usage("a key is a Uint8Array, or a string of hexadecimal digits")),
    }
}
