//! A file as a tree of spans: spans lie end to end, and the leaves are the bytes of the file.

use bytes::Bytes;
use marquetry::Result;
use marquetry::inspect::{Inspector, Spans};

use super::crypt;
use super::reading::{limits, within_memory};
use crate::input::{Input, Output};

/// Spans that are looked at: a page may have any number of values.
const MAX_SPANS: usize = 20_000;

pub fn run(data: &[u8]) {
    let input = Input::new(data);
    let file = Bytes::copy_from_slice(input.rest());
    within_memory(file.len() * 4, || {
        let Ok(inspector) = inspector(&file) else { return };
        let mut found = Vec::new();
        let mut left = MAX_SPANS;
        if tile(inspector.spans(), 0, &mut found, &mut left) {
            assert!(found == file, "leaves of {} bytes, not {}", found.len(), file.len());
        }
    });
}

fn inspector(file: &Bytes) -> Result<Inspector> {
    let keys = crypt::keys().with_plaintext_files(true);
    Inspector::with_keys(file.clone(), limits(), Some(&keys))
}

/// Checks that spans tile from `start` on, and appends the bytes of their leaves; false if there
/// are too many.
fn tile(spans: Spans, start: u64, bytes: &mut Vec<u8>, left: &mut usize) -> bool {
    let mut at = start;
    for span in spans {
        *left = left.saturating_sub(1);
        if *left == 0 {
            return false;
        }
        let span = span.expect("memory can be read");
        assert_eq!(span.offset, at, "{span:?}");
        at = span.end();
        let before = bytes.len();
        match span.children() {
            Some(children) => {
                if !tile(children, span.offset, bytes, left) {
                    return false;
                }
            }
            None => span.bytes().for_each(|piece| bytes.extend(piece.expect("memory"))),
        }
        assert_eq!((bytes.len() - before) as u64, span.length, "{span:?}");
        for inside in [span.decompressed(), span.decrypted()].into_iter().flatten() {
            if !tile(inside, 0, &mut Vec::new(), left) {
                return false;
            }
        }
        _ = span.checksum();
        if let Some(slots) = span.slots() {
            slots.take(100).for_each(drop);
        }
        if let Some(value) = &span.value {
            _ = format!("{value:?}");
        }
    }
    true
}

pub fn seeds() -> Vec<Vec<u8>> {
    let files = crate::seeds::files().into_iter().chain(crate::seeds::pages());
    let files = files.chain(crypt::files());
    let seed = |file: Vec<u8>| {
        let file = Bytes::from(file);
        let problem = inspector(&file).expect("a file").problem().map(ToString::to_string);
        assert_eq!(problem, None);
        Output::default().rest(&file).bytes()
    };
    files.map(seed).collect()
}
