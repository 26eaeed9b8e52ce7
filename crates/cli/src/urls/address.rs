//! [`Address`]: what a URL names, and the name that is shown for it.

use std::sync::{Mutex, PoisonError};

use marquetry::Error;

/// The kind of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scheme {
    /// `s3://BUCKET/KEY`, also `s3a`: S3, and stores that have its interface.
    S3,
    /// `gs://BUCKET/KEY`, also `gcs`: Google Cloud Storage.
    Google,
    /// `az://CONTAINER/KEY`, also `abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/KEY`.
    Azure,
    /// `http://…` and `https://…`: a web server.
    Web,
}

/// An object that a listing names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedName {
    /// The URL.
    pub(crate) url: String,
    /// The part after the prefix, without a slash in front.
    pub(crate) below: String,
}

/// The place that a URL names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The kind of store.
    pub scheme: Scheme,
    /// The URL without user, password, query and fragment: what messages show.
    pub name: String,
    /// The bucket or container, with the account after `@`; of a web server, its name and port.
    pub bucket: String,
    /// The key of the object: as it is, nothing is decoded.
    pub key: String,
    /// The whole URL of a web server, secrets among it.
    pub(super) whole: String,
}

/// The URLs that are shown without a part of them, and the whole ones.
static HIDDEN: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

impl Address {
    /// Parses a URL, or the name of one that `argument` gave.
    ///
    /// # Errors
    /// `Usage` for other schemes, and where the bucket is missing.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let whole = whole(text);
        let name = if whole == text { shown(&whole).0 } else { text.to_owned() };
        let Some((scheme, rest)) = scheme_of(&whole) else {
            return Err(Error::usage(unknown_scheme(&name)));
        };
        let rest =
            if scheme == Scheme::Web { name.split_once("://").map_or("", |it| it.1) } else { rest };
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        if bucket.is_empty() {
            return Err(Error::usage(format_args!("{name}: no bucket or server is named")));
        }
        let (bucket, key) = (bucket.to_owned(), key.to_owned());
        Ok(Self { scheme, name, bucket, key, whole })
    }
}

/// The whole URL that a name is shown for.
fn whole(name: &str) -> String {
    let hidden = HIDDEN.lock().unwrap_or_else(PoisonError::into_inner);
    let found = hidden.iter().find(|(shown, _)| shown == name);
    found.map_or_else(|| name.to_owned(), |(_, whole)| whole.clone())
}

fn scheme_of(text: &str) -> Option<(Scheme, &str)> {
    let (scheme, rest) = text.split_once("://")?;
    let scheme = match scheme.to_ascii_lowercase().as_str() {
        "s3" | "s3a" => Scheme::S3,
        "gs" | "gcs" => Scheme::Google,
        "az" | "azure" | "adl" | "abfs" | "abfss" => Scheme::Azure,
        "http" | "https" => Scheme::Web,
        _ => return None,
    };
    Some((scheme, rest))
}

/// Whether a text is a URL of a store or of a web server.
pub(crate) fn is_url(text: &str) -> bool {
    scheme_of(text).is_some()
}

/// The error for the scheme of a text such as `hdfs://…`.
pub(crate) fn unknown_scheme(name: &str) -> String {
    format!("{name}: marq knows s3://, gs://, az://, https://, http://, file://, paths, and -")
}

/// An argument that names a file: a `file://` URL becomes its path, and a URL with a password or a
/// query the name that is shown for it.
///
/// # Errors
/// If a `file://` URL names another machine.
pub(crate) fn argument(text: &str) -> Result<String, String> {
    if let Some(rest) = text.get(..7).filter(|it| it.eq_ignore_ascii_case("file://")) {
        return file_path(text.get(rest.len()..).unwrap_or_default());
    }
    if !is_url(text) {
        return Ok(text.to_owned());
    }
    let (name, is_changed) = shown(text);
    if !is_changed {
        return Ok(name);
    }
    let mut hidden = HIDDEN.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((shown, _)) = hidden.iter().find(|(_, whole)| whole == text) {
        return Ok(shown.clone());
    }
    let is_free = |name: &String| hidden.iter().all(|(shown, _)| shown != name);
    let numbered = std::iter::once(name.clone()).chain((2..).map(|n| format!("{name}#{n}")));
    let shown = numbered.into_iter().find(is_free).unwrap_or(name);
    hidden.push((shown.clone(), text.to_owned()));
    Ok(shown)
}

/// The URL without user, password, query and fragment, and whether there was one of them.
fn shown(text: &str) -> (String, bool) {
    let is_web = matches!(scheme_of(text), Some((Scheme::Web, _)));
    let Some((scheme, rest)) = text.split_once("://").filter(|_| is_web) else {
        return (text.to_owned(), false);
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (server, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let server = server.rsplit_once('@').map_or(server, |(_, server)| server);
    let name = format!("{scheme}://{server}{path}");
    let is_changed = name != text;
    (name, is_changed)
}

/// The path of a `file://` URL, which is percent-encoded; what is not may stand as it is.
fn file_path(rest: &str) -> Result<String, String> {
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    if !host.is_empty() && !host.eq_ignore_ascii_case("localhost") {
        return Err(format!(
            "file://{rest}: a file of this machine has three slashes: file:///PATH"
        ));
    }
    let path = decoded(path);
    // file:///C:/data is C:/data.
    let is_drive =
        matches!(path.as_bytes(), [b'/', drive, b':', ..] if drive.is_ascii_alphabetic());
    let path = if is_drive && cfg!(windows) { path.get(1..).unwrap_or_default() } else { &path };
    Ok(path.to_owned())
}

/// Percent-decodes a text; what is not UTF-8 afterwards stays encoded.
pub(super) fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [byte, after @ ..] = rest {
        let digit = |at: usize| after.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        let code = digit(0).zip(digit(1)).and_then(|(a, b)| u8::try_from(a * 16 + b).ok());
        match code.filter(|_| *byte == b'%') {
            Some(code) => {
                out.push(code);
                rest = after.get(2..).unwrap_or_default();
            }
            None => {
                out.push(*byte);
                rest = after;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_told_from_paths() {
        for url in ["s3://b/k", "S3A://b", "gs://b/k", "az://c/k", "https://h/x", "http://h"] {
            assert!(is_url(url), "{url}");
        }
        for path in ["a.parquet", "C:\\data\\x.parquet", "c://x", "hdfs://h/x", "s3:/b", "-", ""] {
            assert!(!is_url(path), "{path}");
        }
    }

    #[test]
    fn a_name_has_no_password_and_no_query() {
        let signed = "https://user:secret@h:8080/a/b.parquet?X-Amz-Signature=f00/b4r=#top";
        let name = argument(signed).expect("a URL");
        assert_eq!(name, "https://h:8080/a/b.parquet");
        let address = Address::parse(&name).expect("a URL");
        assert_eq!((address.whole.as_str(), address.name.as_str()), (signed, name.as_str()));
        assert_eq!((address.bucket.as_str(), address.key.as_str()), ("h:8080", "a/b.parquet"));
        let other = argument("https://h:8080/a/b.parquet?X-Amz-Signature=other").expect("a URL");
        assert_eq!(other, "https://h:8080/a/b.parquet#2");
        assert_eq!(argument(signed).expect("a URL"), name, "the same URL has the same name");
    }

    #[test]
    fn keys_of_stores_are_taken_as_they_are() {
        let address = Address::parse("s3://b/a%20b/c d?e.parquet").expect("a URL");
        assert_eq!((address.scheme, address.key.as_str()), (Scheme::S3, "a%20b/c d?e.parquet"));
        assert_eq!(
            Address::parse("s3:///k").expect_err("a usage error").kind(),
            marquetry::ErrorKind::Usage
        );
        assert_eq!(
            Address::parse("hdfs://h/k").expect_err("a usage error").kind(),
            marquetry::ErrorKind::Usage
        );
    }

    #[test]
    fn file_urls_are_paths() {
        for (url, path) in [
            ("file:///tmp/a%20b.parquet", "/tmp/a b.parquet"),
            ("file:///tmp/a b.parquet", "/tmp/a b.parquet"),
            ("FILE://localhost/tmp/100%.parquet", "/tmp/100%.parquet"),
        ] {
            assert_eq!(argument(url).as_deref(), Ok(path));
        }
        assert!(argument("file://server/x").is_err());
    }
}
