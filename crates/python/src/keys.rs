//! Keys of encrypted files, from the plain objects that `marq._crypt` makes.

use marquetry::crypt::{Algorithm, Decryption, Encryption, Key, KeyRequest, UnlistedColumns};
use marquetry::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::error::{OrRaise, usage};
use crate::gil::{Kept, call};

/// A value of a dictionary, unless it is missing or `None`.
pub(crate) fn given<'py, T>(of: &Bound<'py, PyDict>, name: &str) -> PyResult<Option<T>>
where
    T: for<'a> FromPyObject<'a, 'py, Error = PyErr>,
{
    match of.get_item(name)? {
        Some(value) if !value.is_none() => value.extract().map(Some),
        _ => Ok(None),
    }
}

/// The same for any object.
pub(crate) fn object<'py>(
    of: &Bound<'py, PyDict>,
    name: &str,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(of.get_item(name)?.filter(|value| !value.is_none()))
}

/// Refuses other names than those that are known, so that a misspelled one is not ignored.
pub(crate) fn only_known(of: &Bound<'_, PyDict>, what: &str, known: &[&str]) -> PyResult<()> {
    for name in of.keys() {
        let name: String = name.extract()?;
        if !known.contains(&name.as_str()) {
            let known = known.join(", ");
            return Err(usage(
                of.py(),
                format_args!("there is no option {name:?} of {what}: there are {known}"),
            ));
        }
    }
    Ok(())
}

fn key(py: Python<'_>, bytes: &[u8]) -> PyResult<Key> {
    Key::new(bytes).or_raise(py)
}

/// The keys of a reader, from the items of a `marq.Decryption`.
pub(crate) fn decryption(of: &Bound<'_, PyDict>) -> PyResult<Decryption> {
    let py = of.py();
    let mut keys = Decryption::new();
    if let Some(bytes) = given::<Vec<u8>>(of, "footer_key")? {
        keys = keys.with_footer_key(key(py, &bytes)?);
    }
    for (path, bytes) in given::<Vec<(String, Vec<u8>)>>(of, "column_keys")?.unwrap_or_default() {
        keys = keys.with_column_key(path, key(py, &bytes)?);
    }
    if let Some(prefix) = given::<Vec<u8>>(of, "aad_prefix")? {
        keys = keys.with_aad_prefix(prefix);
    }
    if let Some(retriever) = object(of, "retriever")? {
        let retriever = Kept::new(retriever.unbind());
        keys =
            keys.with_retriever(move |request: &KeyRequest<'_>| retrieve(retriever.get(), request));
    }
    if let Some(allowed) = given(of, "plaintext_files")? {
        keys = keys.with_plaintext_files(allowed);
    }
    if let Some(allowed) = given(of, "unverified_footers")? {
        keys = keys.with_unverified_footers(allowed);
    }
    if let Some(allowed) = given(of, "unauthenticated_pages")? {
        keys = keys.with_unauthenticated_pages(allowed);
    }
    Ok(keys)
}

/// Asks a function of Python: `None` says that there is no such key.
fn retrieve(retriever: &Py<PyAny>, request: &KeyRequest<'_>) -> Result<Key> {
    let column = request.column.map(ToString::to_string);
    let ask = |py: Python<'_>| -> PyResult<Option<Vec<u8>>> {
        let metadata = request.key_metadata.map(|bytes| PyBytes::new(py, bytes));
        let found = retriever.bind(py).call1((column.as_deref(), metadata))?;
        if found.is_none() { Ok(None) } else { found.extract().map(Some) }
    };
    match call("the key retriever", ask)? {
        Some(bytes) => Key::new(&bytes),
        None => Err(Error::crypto(match column {
            Some(column) => format!("the key retriever has no key for column {column}"),
            None => "the key retriever has no key for the footer".to_owned(),
        })),
    }
}

/// The keys of a writer, from the items of a `marq.Encryption`.
pub(crate) fn encryption(of: &Bound<'_, PyDict>) -> PyResult<Encryption> {
    let py = of.py();
    let Some(bytes) = given::<Vec<u8>>(of, "footer_key")? else {
        return Err(usage(py, "an encrypted file needs a footer key"));
    };
    let mut out = Encryption::new(key(py, &bytes)?);
    for (path, bytes) in given::<Vec<(String, Vec<u8>)>>(of, "column_keys")?.unwrap_or_default() {
        out = out.with_column_key(path, key(py, &bytes)?);
    }
    if let Some(metadata) = given::<Vec<u8>>(of, "footer_key_metadata")? {
        out = out.with_footer_key_metadata(metadata);
    }
    if let Some(plaintext) = given(of, "plaintext_footer")? {
        out = out.with_plaintext_footer(plaintext);
    }
    if let Some(prefix) = given::<Vec<u8>>(of, "aad_prefix")? {
        out = match given(of, "store_aad_prefix")? {
            Some(true) => out.with_stored_aad_prefix(prefix),
            _ => out.with_aad_prefix(prefix),
        };
    }
    match given::<String>(of, "algorithm")?.as_deref() {
        None | Some("aes_gcm_v1") => {}
        Some("aes_gcm_ctr_v1") => out = out.with_algorithm(Algorithm::AesGcmCtrV1),
        Some(other) => {
            let known = "aes_gcm_v1 and aes_gcm_ctr_v1";
            return Err(usage(py, format_args!("algorithm {other:?}: there are {known}")));
        }
    }
    if given(of, "encrypt_unlisted")?.unwrap_or(false) {
        out = out.with_unlisted_columns(UnlistedColumns::FooterKey);
    }
    Ok(out)
}
