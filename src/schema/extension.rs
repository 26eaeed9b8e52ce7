//! Extension types add, in the metadata of a field, the meaning that Arrow has no type for.
//!
//! Used by `to_arrow` (from the annotation of a node), by `hint`, and by `from_arrow` (to the
//! annotation of a node). Specs: Arrow's canonical extension types, GeoArrow's extension metadata,
//! LogicalTypes.md for the coordinate systems.
//! Trap: an extension type is valid only on certain storage types; on any other (a dictionary, say)
//! it must be removed.

use std::cell::{Cell, OnceCell};
use std::collections::HashMap;

use arrow_schema::extension::{EXTENSION_TYPE_METADATA_KEY, EXTENSION_TYPE_NAME_KEY};
use arrow_schema::{DataType, Field};
use serde_json::value::RawValue;

use super::geo_key::{GeoColumn, GeoCrs, GeoEncoding};
use super::json_text::{is_json_object, quoted};
use crate::error::{Error, Result};
use crate::format::{
    EdgeInterpolationAlgorithm, GeographyType, GeometryType, KeyValue, LogicalType, VariantType,
};

/// The key of a field's metadata that holds the field id of the file.
pub const FIELD_ID_KEY: &str = "PARQUET:field_id";

/// The key of a field's metadata that names the logical type of a group which Arrow has no
/// extension type for: `FILE`.
pub const LOGICAL_TYPE_KEY: &str = "PARQUET:logical_type";

/// The value of [`LOGICAL_TYPE_KEY`] on a FILE group.
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
    pub(super) fn geometry(crs: Option<&str>, texts: &CrsTexts<'_>) -> Self {
        Self::wkb(crs, None, texts)
    }

    /// Well-known binary with edges along the surface, spherical unless `algorithm` says otherwise.
    pub(super) fn geography(
        crs: Option<&str>,
        algorithm: Option<EdgeInterpolationAlgorithm>,
        texts: &CrsTexts<'_>,
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
        Self::wkb(crs, Some(edges), texts)
    }

    fn wkb(crs: Option<&str>, edges: Option<&str>, texts: &CrsTexts<'_>) -> Self {
        let mut members = Vec::new();
        members.extend(crs_members(crs, texts));
        members.extend(edges.map(|edges| format!("\"edges\":{}", quoted(edges))));
        Self { name: WKB, metadata: Some(format!("{{{}}}", members.join(","))) }
    }

    /// Geometries of GeoArrow as the key `geo` describes them; `None` for an encoding that has no
    /// extension type.
    pub(super) fn of_geo_key(column: &GeoColumn) -> Option<Self> {
        let name = match column.encoding {
            GeoEncoding::Wkb => WKB,
            GeoEncoding::Point => "geoarrow.point",
            GeoEncoding::LineString => "geoarrow.linestring",
            GeoEncoding::Polygon => "geoarrow.polygon",
            GeoEncoding::MultiPoint => "geoarrow.multipoint",
            GeoEncoding::MultiLineString => "geoarrow.multilinestring",
            GeoEncoding::MultiPolygon => "geoarrow.multipolygon",
            GeoEncoding::Other(_) => return None,
        };
        let crs = match &column.crs {
            GeoCrs::Default => Some(crs_member("\"OGC:CRS84\"", "authority_code")),
            GeoCrs::Unknown => None,
            GeoCrs::Projjson(json) => Some(crs_member(json, "projjson")),
        };
        let edges = column.edges.as_deref().filter(|_| column.has_geodesic_edges());
        let edges = edges.map(|edges| format!("\"edges\":{}", quoted(edges)));
        let members: Vec<String> = crs.into_iter().chain(edges).collect();
        Some(Self { name, metadata: Some(format!("{{{}}}", members.join(","))) })
    }

    pub(super) fn write(self, metadata: &mut HashMap<String, String>) {
        metadata.insert(EXTENSION_TYPE_NAME_KEY.to_owned(), self.name.to_owned());
        if let Some(text) = self.metadata {
            metadata.insert(EXTENSION_TYPE_METADATA_KEY.to_owned(), text);
        }
    }
}

/// The coordinate systems in the key-values of a file, for columns that name their keys.
///
/// Each is checked once. Thousands of columns may name the same long one, and each gets a copy of
/// it: so copies are counted, and beyond the budget the column has only the key, as if the file did
/// not have it.
pub(super) struct CrsTexts<'a> {
    key_values: &'a [KeyValue],
    /// By key: the value of the first entry with it, if that is a JSON object. Made when first
    /// asked for.
    objects: OnceCell<HashMap<&'a str, Option<&'a str>>>,
    /// Bytes that may still be copied.
    budget: Cell<usize>,
}

impl<'a> CrsTexts<'a> {
    pub(super) fn new(key_values: &'a [KeyValue]) -> Self {
        Self { key_values, objects: OnceCell::new(), budget: Cell::new(MAX_CRS_BYTES) }
    }

    /// The value under `key`, if it is a JSON object.
    fn json_object(&self, key: &str) -> Option<&'a str> {
        let objects = self.objects.get_or_init(|| {
            let mut objects = HashMap::new();
            for entry in self.key_values {
                #[cfg(test)]
                crate::steps::add(1);
                let value = || entry.value.as_deref().filter(|value| is_json_object(value));
                objects.entry(entry.key.as_str()).or_insert_with(value);
            }
            objects
        });
        let found = (*objects.get(key)?)?;
        self.budget.set(self.budget.get().checked_sub(found.len())?);
        Some(found)
    }
}

/// A coordinate system takes some KB, and files have few columns with one.
const MAX_CRS_BYTES: usize = 16 << 20;

/// Removes the extension type of `field` if it is one of ours and does not live on its storage.
pub(super) fn keep_if_fitting(field: &mut Field) {
    let fits = match field.extension_type_name() {
        Some(name @ (UUID | JSON | WKB)) => lives_on(name, field.data_type()),
        _ => true,
    };
    if !fits {
        let metadata = field.metadata_mut();
        metadata.remove(EXTENSION_TYPE_NAME_KEY);
        metadata.remove(EXTENSION_TYPE_METADATA_KEY);
    }
}

/// Whether the extension type `name` is one of ours and may have this storage.
fn lives_on(name: &str, storage: &DataType) -> bool {
    match name {
        UUID => *storage == DataType::FixedSizeBinary(16),
        JSON => matches!(storage, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View),
        WKB => matches!(storage, DataType::Binary | DataType::LargeBinary | DataType::BinaryView),
        VARIANT => matches!(storage, DataType::Struct(_)),
        _ => false,
    }
}

/// The logical type of the extension type of `field`, or of the mark under [`LOGICAL_TYPE_KEY`].
/// `None` if there is none, or if it is not allowed on the storage of the field.
///
/// `key_values` are those that the file will have.
///
/// # Errors
/// `Usage` if the metadata of the extension type violate GeoArrow; `Unsupported` if they name edges
/// that the format does not have.
pub(super) fn logical_type(field: &Field, key_values: &[KeyValue]) -> Result<Option<LogicalType>> {
    let storage = field.data_type();
    let name = field.extension_type_name().filter(|name| lives_on(name, storage));
    Ok(match name {
        Some(UUID) => Some(LogicalType::Uuid),
        Some(JSON) => Some(LogicalType::Json),
        Some(VARIANT) => {
            let version = VariantType { specification_version: Some(1), ..VariantType::default() };
            Some(LogicalType::Variant(version))
        }
        Some(WKB) => Some(of_wkb(field.extension_type_metadata(), key_values)?),
        _ => {
            let mark = field.metadata().get(LOGICAL_TYPE_KEY);
            let is_file = mark.is_some_and(|mark| mark == FILE);
            (is_file && matches!(storage, DataType::Struct(_))).then_some(LogicalType::File)
        }
    })
}

/// Whether `field` has geometries in well-known binary.
pub(crate) fn is_wkb(field: &Field) -> bool {
    field.extension_type_name() == Some(WKB) && lives_on(WKB, field.data_type())
}

/// Whether `field` has well-known binary whose edges are not planar. Metadata that violate GeoArrow
/// are ignored.
pub(crate) fn has_geodesic_edges(field: &Field) -> bool {
    let is_wkb = field.extension_type_name() == Some(WKB);
    let members = field.extension_type_metadata().filter(|_| is_wkb).and_then(Members::parse);
    let edges = members.and_then(|members| members.text("edges").ok().flatten());
    edges.is_some_and(|edges| edges != "planar")
}

/// The way back of [`Extension::geometry`] and [`Extension::geography`].
fn of_wkb(metadata: Option<&str>, key_values: &[KeyValue]) -> Result<LogicalType> {
    use EdgeInterpolationAlgorithm as Edges;
    // GeoArrow: no metadata are those of an empty object.
    let text = metadata.map(str::trim).filter(|text| !text.is_empty()).unwrap_or("{}");
    let Some(members) = Members::parse(text) else {
        return Err(Error::usage(format_args!("metadata of {WKB} are no JSON object: {text}")));
    };
    let crs = crs_of(&members, key_values)?;
    let algorithm = match members.text("edges")?.as_deref() {
        None | Some("planar") => {
            return Ok(LogicalType::Geometry(GeometryType { crs, ..GeometryType::default() }));
        }
        Some("spherical") => Edges::Spherical,
        Some("vincenty") => Edges::Vincenty,
        Some("thomas") => Edges::Thomas,
        Some("andoyer") => Edges::Andoyer,
        Some("karney") => Edges::Karney,
        Some(other) => {
            return Err(Error::unsupported(
                "edges of a geography",
                format_args!("the format has no word for {other:?} edges"),
            ));
        }
    };
    let algorithm = Some(algorithm);
    Ok(LogicalType::Geography(GeographyType { crs, algorithm, ..GeographyType::default() }))
}

/// The way back of [`crs_members`].
fn crs_of(members: &Members<'_>, key_values: &[KeyValue]) -> Result<Option<String>> {
    // GeoArrow: absent is unknown. Parquet: absent is OGC:CRS84.
    const UNKNOWN: &str = "srid:0";
    let Some(crs) = members.raw("crs") else {
        return Ok(Some(UNKNOWN.to_owned()));
    };
    if crs.starts_with('{') {
        let same = |entry: &&KeyValue| entry.value.as_deref() == Some(crs);
        return Ok(Some(match key_values.iter().find(same) {
            Some(entry) => format!("projjson:{}", entry.key),
            None => crs.to_owned(),
        }));
    }
    // GeoArrow: a missing coordinate system is unknown.
    let text = members.text("crs")?.unwrap_or_default();
    let is_srid = members.text("crs_type")?.is_some_and(|kind| kind == "srid");
    Ok(match text.as_str() {
        "" => Some(UNKNOWN.to_owned()),
        "OGC:CRS84" => None,
        number if is_srid => Some(format!("srid:{number}")),
        _ => Some(text),
    })
}

/// The coordinate system of LogicalTypes.md as members of GeoArrow's metadata.
fn crs_members(crs: Option<&str>, texts: &CrsTexts<'_>) -> Option<String> {
    let crs = crs.filter(|crs| !crs.is_empty()).unwrap_or("OGC:CRS84");
    if crs == "OGC:CRS84" {
        return Some(crs_member("\"OGC:CRS84\"", "authority_code"));
    }
    if let Some(number) = crs.strip_prefix("srid:") {
        return (number != "0").then(|| crs_member(&quoted(number), "srid"));
    }
    if let Some(json) = crs.strip_prefix("projjson:").and_then(|key| texts.json_object(key)) {
        return Some(crs_member(json, "projjson"));
    }
    let value = if is_json_object(crs) { crs.to_owned() } else { quoted(crs) };
    Some(format!("\"crs\":{value}"))
}

/// A coordinate system as members of GeoArrow's metadata.
fn crs_member(value: &str, kind: &str) -> String {
    format!("\"crs\":{value},\"crs_type\":\"{kind}\"")
}

/// The members of a JSON object: names, and unparsed values. Nulls are left out.
struct Members<'a>(HashMap<String, &'a RawValue>);

impl<'a> Members<'a> {
    /// Those of `text`; `None` if it is no JSON object.
    fn parse(text: &'a str) -> Option<Self> {
        let mut members: HashMap<String, &RawValue> = serde_json::from_str(text).ok()?;
        members.retain(|_, value| value.get() != "null");
        Some(Self(members))
    }

    /// The unparsed value of the member `name`; of several, the last.
    fn raw(&self, name: &str) -> Option<&'a str> {
        self.0.get(name).map(|value| value.get())
    }

    /// The string that the member `name` is.
    fn text(&self, name: &str) -> Result<Option<String>> {
        let parse = |raw| {
            serde_json::from_str(raw).map_err(|_| {
                Error::usage(format_args!("{name:?} in metadata of {WKB} is no string: {raw}"))
            })
        };
        self.raw(name).map(parse).transpose()
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
            (Some("a \"b\" \\ \n"), "{\"crs\":\"a \\\"b\\\" \\\\ \\n\"}"),
            (Some("{\"id\": [1, -2.5e3]}"), "{\"crs\":{\"id\": [1, -2.5e3]}}"),
            (Some("{\"a\":1},\"x\":{}"), "{\"crs\":\"{\\\"a\\\":1},\\\"x\\\":{}\"}"),
        ] {
            let extension = Extension::geometry(crs, &CrsTexts::new(&key_values));
            assert_eq!(extension.metadata.as_deref(), Some(expected), "{crs:?}");
        }
        let karney = Some(EdgeInterpolationAlgorithm::Karney);
        let extension = Extension::geography(Some("srid:0"), karney, &CrsTexts::new(&[]));
        assert_eq!(extension.metadata.as_deref(), Some("{\"edges\":\"karney\"}"));
    }

    #[test]
    fn a_coordinate_system_that_many_columns_name_is_copied_within_a_budget() {
        let json = format!("{{\"x\":\"{}\"}}", "x".repeat(1 << 20));
        let value = Some(json.clone());
        let key_values = [KeyValue { key: "k".to_owned(), value, ..KeyValue::default() }];
        let texts = CrsTexts::new(&key_values);
        let all = (0..1_000).map(|_| Extension::geometry(Some("projjson:k"), &texts));
        let bytes: Vec<usize> = all.map(|found| found.metadata.unwrap().len()).collect();
        assert!(bytes.first().is_some_and(|first| *first > json.len()));
        assert!(bytes.iter().sum::<usize>() < MAX_CRS_BYTES + (1 << 20), "{bytes:?}");
    }

    #[test]
    fn coordinate_systems_there_and_back() {
        let key_values = [KeyValue {
            key: "here".to_owned(),
            value: Some("{\"type\":\"x\"}".to_owned()),
            ..KeyValue::default()
        }];
        for crs in [
            None,
            Some("srid:0"),
            Some("srid:4326"),
            Some("projjson:here"),
            Some("projjson:gone"),
            Some("EPSG:3857"),
            Some("a \"b\" \\ \n é"),
            Some("{\"id\": [1, -2.5e3]}"),
        ] {
            let there = Extension::geometry(crs, &CrsTexts::new(&key_values)).metadata;
            let back = of_wkb(there.as_deref(), &key_values).unwrap();
            let crs = crs.map(str::to_owned);
            let geometry = GeometryType { crs: crs.clone(), ..GeometryType::default() };
            assert_eq!(back, LogicalType::Geometry(geometry));
            for algorithm in (0..5).map(EdgeInterpolationAlgorithm::from) {
                let algorithm = Some(algorithm);
                let there =
                    Extension::geography(crs.as_deref(), algorithm, &CrsTexts::new(&key_values))
                        .metadata;
                let back = of_wkb(there.as_deref(), &key_values).unwrap();
                let crs = crs.clone();
                let geography = GeographyType { crs, algorithm, ..GeographyType::default() };
                assert_eq!(back, LogicalType::Geography(geography));
            }
        }
    }

    #[test]
    fn metadata_of_shapes() {
        use crate::error::ErrorKind;
        let crs = |text: Option<&str>| match of_wkb(text, &[]).unwrap() {
            LogicalType::Geometry(geometry) => geometry.crs,
            other => panic!("{other:?}"),
        };
        for text in [None, Some(""), Some(" "), Some("{}"), Some("{\"crs\":null,\"edges\":null}")] {
            assert_eq!(crs(text).as_deref(), Some("srid:0"), "{text:?}");
        }
        assert_eq!(crs(Some("{\"edges\":\"planar\",\"crs\":\"\"}")).as_deref(), Some("srid:0"));
        let text =
            " { \"crs\" : \"A\\u00e9\\ud83d\\ude00\\/\" , \"crs_type\":\"authority_code\" } ";
        assert_eq!(crs(Some(text)).as_deref(), Some("Aé😀/"));
        for text in ["[]", "{", "{\"crs\":1}", "{\"crs\":\"x\",\"crs_type\":{}}", "{\"edges\":[]}"]
        {
            assert_eq!(of_wkb(Some(text), &[]).unwrap_err().kind(), ErrorKind::Usage, "{text}");
        }
        let kind = of_wkb(Some("{\"edges\":\"loxodrome\"}"), &[]).unwrap_err().kind();
        assert!(matches!(kind, ErrorKind::Unsupported(_)));
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
