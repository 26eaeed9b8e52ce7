//! Recognises a file that is not Parquet by its first bytes, so that the error can say what to do.

use marquetry::io::Source;

use crate::failure::Failure;

/// Bytes that are looked at.
const HEAD: u64 = 512;

/// The error for a file that is empty or has another format; `None` for Parquet, and for formats
/// that are not recognised, which the reader reports.
pub(crate) fn not_parquet(source: &impl Source, path: &str) -> Option<Failure> {
    let len = source.len().ok()?;
    if len == 0 {
        return Some(Failure::content(path, None, "is empty"));
    }
    // The end first: of a URL it is there, and it is all that most files need.
    let tail = source.read(len.saturating_sub(4)..len).ok()?;
    let is_magic = |bytes: &[u8]| bytes.starts_with(b"PAR1") || bytes.starts_with(b"PARE");
    if is_magic(&tail) || &tail[..] == b"PARX" {
        return None;
    }
    let head = source.read(0..len.min(HEAD)).ok()?;
    if is_magic(&head) {
        let text =
            "begins as Parquet, but has no footer: the file was cut off, or was not finished";
        return (len >= 12).then(|| Failure::content(path, None, text));
    }
    let form = form(&head, path)?;
    Some(Failure::content(path, None, format!("is {form}, not Parquet: marq convert reads it")))
}

/// The same, for a file that is to be explained even if it was cut off or is damaged: only where it
/// has neither magic number.
pub(crate) fn other_format(source: &impl Source, path: &str) -> Option<Failure> {
    let head = source.read(0..4.min(source.len().ok()?)).ok()?;
    let is_parquet = head.starts_with(b"PAR1") || head.starts_with(b"PARE");
    if is_parquet { None } else { not_parquet(source, path) }
}

/// The form by its magic number, or by the extension where the text fits it.
fn form(head: &[u8], path: &str) -> Option<&'static str> {
    if head.starts_with(b"ARROW1") {
        return Some("an Arrow IPC file");
    }
    if head.starts_with(&[0xff; 4]) {
        return Some("an Arrow IPC stream");
    }
    let name = path.to_ascii_lowercase();
    let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
    let is_packed = head.starts_with(&[0x1f, 0x8b]) || head.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]);
    let is_text =
        is_packed || std::str::from_utf8(head).map_or_else(|e| e.error_len().is_none(), |_| true);
    if !is_text {
        return None;
    }
    let first = head.iter().find(|byte| !byte.is_ascii_whitespace());
    match first {
        _ if ends(&[".csv", ".tsv", ".csv.gz", ".tsv.gz", ".csv.zst", ".tsv.zst"]) => Some("CSV"),
        _ if ends(&[".jsonl", ".ndjson", ".json", ".jsonl.gz", ".jsonl.zst"]) => Some("JSON"),
        Some(b'{' | b'[') if !is_packed => Some("JSON"),
        _ => None,
    }
}
