//! [`Address`]: what a URL names, and the name that is shown for it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

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
    /// The whole URL, secrets among it.
    pub(super) whole: String,
}

/// The names of URLs that arguments gave: each is that of one URL.
struct Names {
    by_url: BTreeMap<String, String>,
    by_name: BTreeMap<String, String>,
}

fn names() -> MutexGuard<'static, Names> {
    static NAMES: Mutex<Names> =
        Mutex::new(Names { by_url: BTreeMap::new(), by_name: BTreeMap::new() });
    NAMES.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Address {
    /// Parses a URL, or the name of one that `argument` gave.
    ///
    /// # Errors
    /// `Usage` for other schemes, and where a bucket is missing.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let known = names().by_name.get(text).cloned();
        let (name, whole) = match known {
            Some(whole) => (text.to_owned(), whole),
            None => (shown(text), text.to_owned()),
        };
        let Some((scheme, _)) = scheme_of(&whole) else {
            return Err(Error::usage(unknown_scheme(&name)));
        };
        let (_, rest) = name.split_once("://").unwrap_or_default();
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        // Of a web server that is not told from its password, opening it says why.
        if bucket.is_empty() && scheme != Scheme::Web {
            return Err(Error::usage(format_args!("{name}: no bucket is named")));
        }
        let (bucket, key) = (bucket.to_owned(), key.to_owned());
        Ok(Self { scheme, name, bucket, key, whole })
    }

    /// Checks that the URL of a store has no password and no signature, which would not be sent.
    ///
    /// # Errors
    /// `Usage`.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.scheme == Scheme::Web || self.whole == self.name {
            return Ok(());
        }
        let variables = match self.scheme {
            Scheme::Azure => "AZURE_STORAGE_SAS_TOKEN or AZURE_STORAGE_ACCOUNT_KEY",
            Scheme::Google => "GOOGLE_APPLICATION_CREDENTIALS",
            _ => "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY",
        };
        let name = &self.name;
        let text = format_args!(
            "{name}: the URL of a store has no keys and no signature: set {variables}"
        );
        Err(Error::usage(text))
    }
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

/// An argument that names a file: a `file://` URL becomes its path, and another URL the name that
/// is shown for it, which has no password and no query.
///
/// # Errors
/// If a `file://` URL names another machine.
pub(crate) fn argument(text: &str) -> Result<String, String> {
    if let Some(rest) = text.get(..7).filter(|it| it.eq_ignore_ascii_case("file://")) {
        return file_path(text.get(rest.len()..).unwrap_or_default());
    }
    let Some((scheme, _)) = scheme_of(text) else {
        return Ok(if is_path(text) { text.to_owned() } else { shown(text) });
    };
    let name = shown(text);
    // Web URLs whose name is the URL, too: it would be the name of a signed one otherwise. A scheme
    // alone is no URL, and refused by that name.
    if (scheme != Scheme::Web && name == text) || name.ends_with("://") {
        return Ok(name);
    }
    let mut names = names();
    if let Some(known) = names.by_url.get(text) {
        return Ok(known.clone());
    }
    let candidates = std::iter::once(name.clone()).chain((2..).map(|n| numbered(&name, n)));
    let free = candidates.into_iter().find(|name| !names.by_name.contains_key(name));
    let name = free.unwrap_or(name);
    names.by_url.insert(text.to_owned(), name.clone());
    names.by_name.insert(name.clone(), text.to_owned());
    Ok(name)
}

/// Whether a text is a path, and not a URL of another scheme: `C://x` is one.
fn is_path(text: &str) -> bool {
    let scheme = text.split_once("://").map_or("", |(scheme, _)| scheme);
    scheme.len() < 2 || scheme.contains(['/', '\\']) || Path::new(text).exists()
}

/// The name with a number in front of its extensions, which say the form of the file.
fn numbered(name: &str, n: usize) -> String {
    let file = name.rsplit('/').next().unwrap_or_default();
    let has_path = name.matches('/').count() > 2;
    let dot = file.find('.').filter(|_| has_path);
    let at = dot.map_or(name.len(), |dot| name.len() - file.len() + dot);
    let (before, extensions) = name.split_at(at);
    format!("{before}#{n}{extensions}")
}

/// The URL without user, password, query and fragment; the scheme alone if the part before the path
/// is not that of a server, because it may be the beginning of a password.
fn shown(text: &str) -> String {
    let Some((scheme, rest)) = text.split_once("://") else { return text.to_owned() };
    if let Some((kind, _)) = scheme_of(text).filter(|(kind, _)| *kind != Scheme::Web) {
        return format!("{scheme}://{}", shown_object(kind, rest));
    }
    let (server, path) = rest.split_at(rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len()));
    let server = server.rsplit_once('@').map_or(server, |(_, server)| server);
    let path = path.split(['?', '#']).next().unwrap_or_default();
    // `https:///user:password@server` is a URL, too.
    if is_server(server) || (server.is_empty() && !path.contains('@')) {
        format!("{scheme}://{server}{path}")
    } else {
        format!("{scheme}://")
    }
}

/// Whether a text is the name or the address of a server, and perhaps its port.
fn is_server(text: &str) -> bool {
    let after = text.rsplit_once(']').map_or(text, |(_, after)| after);
    let port = after.split_once(':').map_or("", |(_, port)| port);
    !text.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit())
}

/// Bucket and key with `…` in place of secrets, which the URL of a store cannot have.
fn shown_object(kind: Scheme, rest: &str) -> String {
    let (bucket, _) = rest.split_once('/').unwrap_or((rest, ""));
    // No bucket has a colon; a password after it may have slashes. Azure has CONTAINER@ACCOUNT.
    let has_login = bucket.contains(':') || (kind != Scheme::Azure && bucket.contains('@'));
    let after_login = rest.rsplit_once('@').filter(|_| has_login);
    let shown = match after_login {
        Some((_, after)) => format!("…@{after}"),
        None => rest.to_owned(),
    };
    match shown.split_once('?') {
        Some((before, query)) if is_signature(query) => format!("{before}?…"),
        _ => shown,
    }
}

/// Whether what follows a `?` has a parameter that is a secret: otherwise it is of a key or a glob.
fn is_signature(query: &str) -> bool {
    let secrets = ["sig", "signature", "token", "credential", "secret", "password"];
    let mut names = query.split('&').filter_map(|pair| pair.split_once('=')).map(|(name, _)| name);
    names.any(|name| secrets.iter().any(|secret| name.to_ascii_lowercase().ends_with(secret)))
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
        assert_eq!(other, "https://h:8080/a/b#2.parquet");
        assert_eq!(argument(signed).expect("a URL"), name, "the same URL has the same name");
    }

    #[test]
    fn each_url_has_a_name_of_its_own_that_ends_as_the_url() {
        for urls in [
            &["https://n/x.csv.gz", "https://n/x.csv.gz?v=1", "https://n/x.csv.gz?v=2"][..],
            &["https://n/y.csv.gz?v=1", "https://n/y.csv.gz", "https://n/y.csv.gz#2"],
            &["https://n.org", "https://n.org?a.b", "https://u@n.org"],
        ] {
            let names: Vec<String> = urls.iter().map(|url| argument(url).expect("a URL")).collect();
            for (name, url) in names.iter().zip(urls) {
                assert_eq!(Address::parse(name).expect("a URL").whole, *url);
                assert!(!url.contains("csv") || name.ends_with(".csv.gz"), "{name}");
            }
            assert!(names[0] != names[1] && names[1] != names[2] && names[0] != names[2]);
        }
    }

    #[test]
    fn what_may_be_a_secret_is_not_shown() {
        for (url, name) in [
            ("https://u:pa/ss@h/x", "https://"),
            ("https://u:p?ss@h/x", "https://"),
            ("https://u:p#ss@h/x", "https://"),
            ("https://u:p\\ss@h/x", "https://"),
            ("https:///u:secret@h/x", "https://"),
            ("https://u:p@ss@h:1/x@2", "https://h:1/x@2"),
            ("https://[::1]:80/a@b/x?q", "https://[::1]:80/a@b/x"),
            ("ftp://u:secret@h/x", "ftp://h/x"),
            ("ftp://u:se/cret@h/x", "ftp://"),
            ("hdfs://h/x.parquet?secret", "hdfs://h/x.parquet"),
            ("hdfs:///x.parquet", "hdfs:///x.parquet"),
            ("s3://KEY:SEC/RET@b/k", "s3://…@b/k"),
            ("gs://SECRET@b/k", "gs://…@b/k"),
            ("az://c/k?sv=1&sig=SECRET", "az://c/k?…"),
            ("s3://b/k?X-Amz-Signature=SECRET", "s3://b/k?…"),
        ] {
            assert_eq!(argument(url).as_deref(), Ok(name));
            assert_eq!(shown(url), name);
        }
        for clean in ["abfss://c@a.dfs.core.windows.net/k@1", "s3://b/t?/d=1/x@2?.parquet", "c://x"]
        {
            assert_eq!(argument(clean).as_deref(), Ok(clean));
        }
        for refused in ["s3://KEY:hidden@b/k", "az://c/k?sig=hidden", "gs://b/*?token=hidden"] {
            for text in [refused.to_owned(), argument(refused).expect("a name")] {
                let address = Address::parse(&text).expect("a URL");
                let error = address.check().expect_err("a usage error").to_string();
                assert!(!error.contains("hidden"), "{error}");
            }
        }
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
