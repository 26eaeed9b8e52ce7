//! Text that is JSON: strings as JSON has them, and how deeply a text is nested.

use serde_json::value::RawValue;

/// A JSON string.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// Whether `text` is a JSON object, so that it can be put into another without breaking that.
pub(super) fn is_json_object(text: &str) -> bool {
    // Borrowed: whatever the file holds, nothing is copied.
    let is_object = |json: &RawValue| json.get().starts_with('{');
    serde_json::from_str::<&RawValue>(text).is_ok_and(is_object) && json_depth(text) <= JSON_DEPTH
}

/// The most objects and arrays of a JSON text that lie in each other.
pub(super) fn json_depth(text: &str) -> usize {
    let (mut depth, mut max, mut in_string) = (0usize, 0, false);
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => in_string = !in_string,
            b'\\' if in_string => _ = bytes.next(),
            b'{' | b'[' if !in_string => {
                depth += 1;
                max = max.max(depth);
            }
            b'}' | b']' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    max
}

/// Deepest object or array that is taken for JSON: readers that descend into it have a stack.
pub(super) const JSON_DEPTH: usize = 64;
