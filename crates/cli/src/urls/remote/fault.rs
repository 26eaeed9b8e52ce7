//! [`Fault`]: why a request failed, in words that have no secret in them.

use std::error::Error as _;
use std::io;

use marquetry::Error;

/// Why a request failed.
#[derive(Debug, Clone)]
pub(super) struct Fault {
    kind: io::ErrorKind,
    text: String,
}

impl Fault {
    pub(super) fn new(kind: io::ErrorKind, text: impl Into<String>) -> Self {
        Self { kind, text: text.into() }
    }

    /// The file has another version than when it was opened.
    pub(super) fn changed() -> Self {
        let text = "it was changed while it was read: run the command again";
        Self::new(io::ErrorKind::Other, text)
    }

    /// The same after requests that were made again.
    pub(super) fn after(self, retries: u32) -> Self {
        let times = if retries == 1 { "once".to_owned() } else { format!("{retries} times") };
        Self { text: format!("{}, also when asked again {times}", self.text), ..self }
    }

    /// The error of what was being done with a file.
    pub(super) fn error(self, what: &str, name: &str) -> Error {
        self.unplaced(what).at_file(name)
    }

    /// The same without the name of the file, which the caller adds.
    pub(super) fn unplaced(self, what: &str) -> Error {
        Error::io(what, io::Error::new(self.kind, self.text))
    }
}

/// The fault that a status of HTTP stands for; `detail` is what the server says about it.
pub(super) fn of_status(status: u16, detail: &str) -> Fault {
    let said = if detail.is_empty() { String::new() } else { format!(": {}", tidy(detail)) };
    let (kind, text) = match status {
        404 | 410 => (io::ErrorKind::NotFound, "there is no such file"),
        401 => (
            io::ErrorKind::PermissionDenied,
            "the server wants a password: put one into ~/.netrc (NETRC names another file)",
        ),
        403 => (
            io::ErrorKind::PermissionDenied,
            "the server refuses access: a signed URL may have expired",
        ),
        412 => return Fault::changed(),
        _ => (io::ErrorKind::Other, "the server failed"),
    };
    Fault::new(kind, format!("{text} (HTTP {status}{said})"))
}

/// The fault of a request to a store.
pub(super) fn of_store(error: &object_store::Error) -> Fault {
    use object_store::Error as Store;
    let said = || tidy(&innermost(error));
    match error {
        Store::NotFound { .. } => {
            let said = said();
            let text = match said.contains("NoSuchBucket") {
                true => "there is no such bucket",
                false => "there is no such object; a folder ends with /",
            };
            Fault::new(io::ErrorKind::NotFound, text)
        }
        Store::Precondition { .. } | Store::NotModified { .. } => Fault::changed(),
        Store::PermissionDenied { .. } | Store::Unauthenticated { .. } => Fault::new(
            io::ErrorKind::PermissionDenied,
            format!("the store refuses access ({}); --anonymous is for public objects", said()),
        ),
        _ => {
            let said = said();
            let is_region = said.contains("region") || said.contains("redirect");
            let hint = if is_region { "; --region says where the bucket is" } else { "" };
            Fault::new(io::ErrorKind::Other, format!("the request failed: {said}{hint}"))
        }
    }
}

/// Whether a store answered with this status. The types of its causes are private: their texts say
/// it, the first words of one of them, because what follows may be the name of the object.
pub(super) fn has_status(error: &object_store::Error, status: u16) -> bool {
    let answer = format!("Server returned non-2xx status code: {status} ");
    let mut next = error.source();
    while let Some(cause) = next {
        if cause.to_string().starts_with(&answer) {
            return true;
        }
        next = cause.source();
    }
    false
}

/// The text of the error that others were made of, with the number of retries.
fn innermost(error: &object_store::Error) -> String {
    let (mut text, mut next) = (error.to_string(), error.source());
    let retries = text.split_once("after ").and_then(|(_, rest)| {
        let (n, _) = rest.split_once(" retries")?;
        n.parse::<u32>().ok()
    });
    while let Some(error) = next {
        text = error.to_string();
        next = error.source();
    }
    match retries {
        Some(retries) => format!("{text}, after {retries} retries"),
        None => text,
    }
}

/// The message of a server, in a line: of XML the code and the message, and no query of a URL,
/// which may be a secret.
pub(super) fn tidy(text: &str) -> String {
    let element = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(inner, _)| inner)
    };
    let said = match (element("Code"), element("Message")) {
        (Some(code), Some(message)) => {
            let status = text.split_once("status code: ").map(|(_, rest)| rest);
            let status = status.and_then(|rest| rest.split(':').next()).unwrap_or_default();
            format!("{status} {code}: {message}")
        }
        _ => text.to_owned(),
    };
    let words = said.split_whitespace().map(|word| match word.split_once("://") {
        Some(_) => word.split('?').next().unwrap_or_default(),
        None => word,
    });
    let line = words.collect::<Vec<_>>().join(" ");
    let line = line.trim_end_matches([':', '.']);
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}…", line.get(..end).unwrap_or_default()),
        None => line.to_owned(),
    }
}

/// Characters of what a server says that are shown.
const MAX_CHARS: usize = 240;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_is_one_line_without_a_query() {
        let xml = "Server returned non-2xx status code: 403 Forbidden: <?xml?><Error><Code>\
                   InvalidAccessKeyId</Code><Message>No such key.</Message></Error>";
        assert_eq!(tidy(xml), "403 Forbidden InvalidAccessKeyId: No such key");
        let url = "error sending request for https://h/x?sig=secret to h";
        assert_eq!(tidy(url), "error sending request for https://h/x to h");
        assert!(tidy(&"x".repeat(1000)).chars().count() <= MAX_CHARS + 1);
    }
}
