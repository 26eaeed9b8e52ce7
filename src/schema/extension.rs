//! Extension types: what Arrow has no type for, said in the metadata of a field.
//!
//! Used by `to_arrow` (from the annotation of a node) and by `hint`. Specs: Arrow's canonical extension types, GeoArrow's
//! extension metadata, LogicalTypes.md for the coordinate systems.
//! Trap: an extension type lives on certain storage types only; on any other (a dictionary, say) it must go.

use std::collections::HashMap;

use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, Field};

use crate::format::{EdgeInterpolationAlgorithm, KeyValue};

/// The key of a field's metadata that holds the field id of the file.
pub const FIELD_ID_KEY: &str = "PARQUET:field_id";

/// The key of a field's metadata that names the logical type of a group which Arrow has no extension type for: `FILE`.
pub const LOGICAL_TYPE_KEY: &str = "PARQUET:logical_type";

/// What [`LOGICAL_TYPE_KEY`] says on a FILE group.
pub const FILE: &str = "FILE";

pub(super) const UUID: &str = "arrow.uuid";
pub(super) const JSON: &str = "arrow.json";
pub(super) const VARIANT: &str = "arrow.parquet.variant";
pub(super) const WKB: &str = "geoarrow.wkb";

/// An extension type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Extension {
    pub(super) name: &'static str,
    pub(super) metadata: Option<String>,
}

impl Extension {
    pub(super) fn uuid() -> Self {
        Self { name: UUID, metadata: None }
    }

    pub(super) fn json() -> Self {
        Self { name: JSON, metadata: Some(String::new()) }
    }

    pub(super) fn variant() -> Self {
        Self { name: VARIANT, metadata: Some(String::new()) }
    }

    /// Well-known binary with planar edges.
    pub(super) fn geometry(crs: Option<&str>, key_values: &[KeyValue]) -> Self {
        Self::wkb(crs, None, key_values)
    }

    /// Well-known binary with edges along the surface, spherical unless `algorithm` says otherwise.
    pub(super) fn geography(
        crs: Option<&str>,
        algorithm: Option<EdgeInterpolationAlgorithm>,
        key_values: &[KeyValue],
    ) -> Self {
        let edges = match algorithm {
            None | Some(EdgeInterpolationAlgorithm::Spherical) => "spherical",
            Some(EdgeInterpolationAlgorithm::Vincenty) => "vincenty",
            Some(EdgeInterpolationAlgorithm::Thomas) => "thomas",
            Some(EdgeInterpolationAlgorithm::Andoyer) => "andoyer",
            Some(EdgeInterpolationAlgorithm::Karney) => "karney",
            // GeoArrow has no word for it; the nearest that is not planar.
            Some(EdgeInterpolationAlgorithm::Unknown(_)) => "spherical",
        };
        Self::wkb(crs, Some(edges), key_values)
    }

    fn wkb(crs: Option<&str>, edges: Option<&str>, key_values: &[KeyValue]) -> Self {
        let mut members = Vec::new();
        members.extend(crs_members(crs, key_values));
        members.extend(edges.map(|edges| format!("\"edges\":{}", quoted(edges))));
        Self { name: WKB, metadata: Some(format!("{{{}}}", members.join(","))) }
    }

    pub(super) fn write(self, metadata: &mut HashMap<String, String>) {
        metadata.insert(EXTENSION_TYPE_NAME_KEY.to_owned(), self.name.to_owned());
        if let Some(text) = self.metadata {
            metadata.insert(EXTENSION_TYPE_METADATA_KEY.to_owned(), text);
        }
    }
}

/// Removes the extension type of `field` if it is one of ours and does not live on its storage.
pub(super) fn keep_if_fitting(field: &mut Field) {
    let storage = field.data_type();
    let fits = match field.extension_type_name() {
        Some(UUID) => *storage == DataType::FixedSizeBinary(16),
        Some(JSON) => {
            matches!(storage, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
        }
        Some(WKB) => {
            matches!(storage, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
        }
        _ => true,
    };
    if !fits {
        let metadata = field.metadata_mut();
        metadata.remove(EXTENSION_TYPE_NAME_KEY);
        metadata.remove(EXTENSION_TYPE_METADATA_KEY);
    }
}

/// The coordinate system of LogicalTypes.md as members of GeoArrow's metadata.
fn crs_members(crs: Option<&str>, key_values: &[KeyValue]) -> Option<String> {
    let member = |value: &str, kind: &str| format!("\"crs\":{value},\"crs_type\":\"{kind}\"");
    let crs = crs.filter(|crs| !crs.is_empty()).unwrap_or("OGC:CRS84");
    if crs == "OGC:CRS84" {
        return Some(member("\"OGC:CRS84\"", "authority_code"));
    }
    if let Some(number) = crs.strip_prefix("srid:") {
        return (number != "0").then(|| member(&quoted(number), "srid"));
    }
    if let Some(key) = crs.strip_prefix("projjson:") {
        let found = key_values.iter().find(|entry| entry.key == key);
        let json = found.and_then(|entry| entry.value.as_deref());
        if let Some(json) = json.filter(|json| is_json_object(json)) {
            return Some(member(json, "projjson"));
        }
    }
    let value = if is_json_object(crs) { crs.to_owned() } else { quoted(crs) };
    Some(format!("\"crs\":{value}"))
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '\0'..='\x1f' => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            _ => out.push(c),
        }
    }
    out.push('"');
    out
}

/// Whether `text` is a JSON object, so that it can be put into another without breaking that.
fn is_json_object(text: &str) -> bool {
    let mut json = Json { rest: text.trim_start_matches(WHITE).as_bytes() };
    json.rest.first() == Some(&b'{') && json.value(0).is_some() && {
        json.white();
        json.rest.is_empty()
    }
}

const WHITE: [char; 4] = [' ', '\t', '\n', '\r'];

/// Deepest object or array that is taken for JSON.
const JSON_DEPTH: usize = 64;

/// Checks the grammar of RFC 8259; `None` where it is broken.
struct Json<'a> {
    rest: &'a [u8],
}

impl Json<'_> {
    fn white(&mut self) {
        while let [b' ' | b'\t' | b'\n' | b'\r', rest @ ..] = self.rest {
            self.rest = rest;
        }
    }

    fn eat(&mut self, what: &[u8]) -> Option<()> {
        self.rest = self.rest.strip_prefix(what)?;
        Some(())
    }

    fn value(&mut self, depth: usize) -> Option<()> {
        if depth > JSON_DEPTH {
            return None;
        }
        self.white();
        match *self.rest.first()? {
            b'{' => self.members(b"{", b"}", |json| {
                json.string()?;
                json.white();
                json.eat(b":")?;
                json.value(depth + 1)
            }),
            b'[' => self.members(b"[", b"]", |json| json.value(depth + 1)),
            b'"' => self.string(),
            b't' => self.eat(b"true"),
            b'f' => self.eat(b"false"),
            b'n' => self.eat(b"null"),
            _ => self.number(),
        }
    }

    fn members(
        &mut self,
        open: &[u8],
        close: &[u8],
        mut member: impl FnMut(&mut Self) -> Option<()>,
    ) -> Option<()> {
        self.eat(open)?;
        self.white();
        if self.eat(close).is_some() {
            return Some(());
        }
        loop {
            self.white();
            member(self)?;
            self.white();
            if self.eat(b",").is_none() {
                return self.eat(close);
            }
        }
    }

    fn string(&mut self) -> Option<()> {
        self.eat(b"\"")?;
        loop {
            match self.rest {
                [b'"', rest @ ..] => {
                    self.rest = rest;
                    return Some(());
                }
                [b'\\', b'u', a, b, c, d, rest @ ..]
                    if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) =>
                {
                    self.rest = rest;
                }
                [b'\\', b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', rest @ ..] => {
                    self.rest = rest;
                }
                [0x20..=0x5b | 0x5d..=0xff, rest @ ..] => self.rest = rest,
                _ => return None,
            }
        }
    }

    fn number(&mut self) -> Option<()> {
        let _ = self.eat(b"-");
        if self.eat(b"0").is_none() {
            self.digits()?;
        }
        if self.eat(b".").is_some() {
            self.digits()?;
        }
        if let [b'e' | b'E', rest @ ..] = self.rest {
            self.rest = rest;
            if let [b'+' | b'-', rest @ ..] = self.rest {
                self.rest = rest;
            }
            self.digits()?;
        }
        Some(())
    }

    fn digits(&mut self) -> Option<()> {
        let count = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.rest = self.rest.get(count..)?;
        (count > 0).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinate_systems() {
        let key_values = [KeyValue {
            key: "here".to_owned(),
            value: Some("{\"type\":\"x\"}".to_owned()),
            ..KeyValue::default()
        }];
        let crs84 = "{\"crs\":\"OGC:CRS84\",\"crs_type\":\"authority_code\"}";
        for (crs, expected) in [
            (None, crs84),
            (Some(""), crs84),
            (Some("OGC:CRS84"), crs84),
            (Some("srid:0"), "{}"),
            (Some("srid:4326"), "{\"crs\":\"4326\",\"crs_type\":\"srid\"}"),
            (Some("projjson:here"), "{\"crs\":{\"type\":\"x\"},\"crs_type\":\"projjson\"}"),
            (Some("projjson:gone"), "{\"crs\":\"projjson:gone\"}"),
            (Some("EPSG:3857"), "{\"crs\":\"EPSG:3857\"}"),
            (Some("a \"b\" \\ \n"), "{\"crs\":\"a \\\"b\\\" \\\\ \\u000a\"}"),
            (Some("{\"id\": [1, -2.5e3]}"), "{\"crs\":{\"id\": [1, -2.5e3]}}"),
            (Some("{\"a\":1},\"x\":{}"), "{\"crs\":\"{\\\"a\\\":1},\\\"x\\\":{}\"}"),
        ] {
            let extension = Extension::geometry(crs, &key_values);
            assert_eq!(extension.metadata.as_deref(), Some(expected), "{crs:?}");
        }
        let karney = Some(EdgeInterpolationAlgorithm::Karney);
        let extension = Extension::geography(Some("srid:0"), karney, &[]);
        assert_eq!(extension.metadata.as_deref(), Some("{\"edges\":\"karney\"}"));
    }

    #[test]
    fn json_objects() {
        for text in ["{}", " { } ", "{\"a\":{\"b\":[true,null,\"\\u00e9\\n\"]}}", "{\"é\":0.5}"] {
            assert!(is_json_object(text), "{text}");
        }
        for text in [
            "",
            "1",
            "[]",
            "{",
            "{}}",
            "{\"a\"}",
            "{\"a\":}",
            "{\"a\":1,}",
            "{a:1}",
            "{\"a\":01}",
            "{\"a\":\"\n\"}",
            "{\"a\":\"\\x\"}",
            "{\"a\":-}",
            "{\"a\":1.}",
            "{\"a\":nul}",
        ] {
            assert!(!is_json_object(text), "{text}");
        }
        let deep = format!("{{\"a\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(!is_json_object(&deep));
    }
}
