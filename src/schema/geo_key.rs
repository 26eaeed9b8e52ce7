//! [`GeoMetadata`]: the value of the key `geo`, which says what the geometry columns of a file are.
//!
//! Spec: GeoParquet 1.0 and 1.1 (OGC), "Metadata". Used by `geo_fields`, by predicates, by the
//! writer, and by `check`.
//! Trap: the value comes from a file. Its size and its nesting are limited, and coordinate systems
//! stay the text that they are. Members that are unknown are ignored, as the specification wants;
//! values that are unknown are kept.

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::value::RawValue;

use super::json_text::{JSON_DEPTH, json_depth, quoted};
use crate::error::{Error, LimitKind, Result, Spec};
use crate::format::{BoundingBox, KeyValue};

/// The metadata of GeoParquet: the value of the key [`GeoMetadata::KEY`] of a file.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::geo::{GeoCrs, GeoEncoding, GeoMetadata};
///
/// let text = r#"{
///     "version": "1.1.0",
///     "primary_column": "geometry",
///     "columns": {
///         "geometry": {"encoding": "WKB", "geometry_types": ["Point"], "bbox": [4, 50, 7, 54]}
///     }
/// }"#;
/// let geo = GeoMetadata::parse(text)?;
/// let column = &geo.columns["geometry"];
/// assert_eq!((&column.encoding, &column.crs), (&GeoEncoding::Wkb, &GeoCrs::Default));
/// assert_eq!(column.bbox.as_ref().map(|bbox| (bbox.xmin, bbox.ymax)), Some((4.0, 54.0)));
/// assert_eq!(GeoMetadata::parse(&geo.to_json())?, geo);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct GeoMetadata {
    /// The version of the specification.
    pub version: String,
    /// The name of the column that is meant if none is named.
    pub primary_column: String,
    /// The geometry columns, by name.
    pub columns: BTreeMap<String, GeoColumn>,
}

/// The metadata of a geometry column in [`GeoMetadata`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct GeoColumn {
    /// How the geometries are stored.
    pub encoding: GeoEncoding,
    /// The types that occur, such as `Point` or `MultiPolygon Z`; empty if unknown.
    pub geometry_types: Vec<String>,
    /// The coordinate system.
    pub crs: GeoCrs,
    /// How edges run: `planar`, which is the default, or `spherical`.
    pub edges: Option<String>,
    /// The winding order of exterior rings: `counterclockwise`, if it is known.
    pub orientation: Option<String>,
    /// The box around all geometries; with `xmin > xmax` it crosses the antimeridian.
    pub bbox: Option<BoundingBox>,
    /// The epoch of coordinates in a dynamic coordinate system, as a decimal year.
    pub epoch: Option<f64>,
    /// The columns with a box for each row.
    pub covering: Option<GeoCovering>,
}

/// How the geometries of a column are stored.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum GeoEncoding {
    /// Well-known binary.
    #[default]
    Wkb,
    /// Structs of coordinates: points.
    Point,
    /// Lists of such structs.
    LineString,
    /// Lists of rings.
    Polygon,
    /// Lists of points.
    MultiPoint,
    /// Lists of line strings.
    MultiLineString,
    /// Lists of polygons.
    MultiPolygon,
    /// An encoding of another version of the specification.
    Other(String),
}

impl GeoEncoding {
    /// The name in the metadata.
    pub fn name(&self) -> &str {
        match self {
            Self::Wkb => "WKB",
            Self::Point => "point",
            Self::LineString => "linestring",
            Self::Polygon => "polygon",
            Self::MultiPoint => "multipoint",
            Self::MultiLineString => "multilinestring",
            Self::MultiPolygon => "multipolygon",
            Self::Other(name) => name,
        }
    }

    fn named(name: String) -> Self {
        match name.as_str() {
            "WKB" => Self::Wkb,
            "point" => Self::Point,
            "linestring" => Self::LineString,
            "polygon" => Self::Polygon,
            "multipoint" => Self::MultiPoint,
            "multilinestring" => Self::MultiLineString,
            "multipolygon" => Self::MultiPolygon,
            _ => Self::Other(name),
        }
    }
}

/// The coordinate system of a geometry column.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum GeoCrs {
    /// Not stated: longitudes and latitudes (OGC:CRS84).
    #[default]
    Default,
    /// `null`: there is none, or it is unknown.
    Unknown,
    /// The text of a PROJJSON object.
    Projjson(String),
}

/// The paths, name by name, of the columns that hold a box for each row (`covering.bbox`).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct GeoCovering {
    /// The path of the smallest x.
    pub xmin: Vec<String>,
    /// The path of the smallest y.
    pub ymin: Vec<String>,
    /// The path of the largest x.
    pub xmax: Vec<String>,
    /// The path of the largest y.
    pub ymax: Vec<String>,
}

/// Maximum bytes of the value: a coordinate system takes some KB, and files have few columns with
/// one.
const MAX_BYTES: usize = 4 << 20;

/// Maximum number of geometry columns, because each is kept.
const MAX_COLUMNS: usize = 10_000;

impl GeoMetadata {
    /// The key of the key-value metadata.
    pub const KEY: &'static str = "geo";

    /// Metadata of the version that is written, 1.1.0, without columns.
    pub fn new(primary_column: impl Into<String>) -> Self {
        let (version, columns) = ("1.1.0".to_owned(), BTreeMap::new());
        Self { version, primary_column: primary_column.into(), columns }
    }

    /// The metadata in the key-values of a file; `None` if it has no such key.
    ///
    /// # Errors
    /// As [`GeoMetadata::parse`].
    pub fn find(key_values: &[KeyValue]) -> Result<Option<Self>> {
        let entry = key_values.iter().find(|pair| pair.key == Self::KEY);
        entry.map(|entry| Self::parse(entry.value.as_deref().unwrap_or_default())).transpose()
    }

    /// Parses the value of the key. Unknown members are ignored.
    ///
    /// # Errors
    /// `Malformed(GeoParquet)` if it is no JSON, or a member is missing or of another type;
    /// `Limit(Memory)` if it has more than 4 MiB or 10,000 columns.
    pub fn parse(text: &str) -> Result<Self> {
        if text.len() > MAX_BYTES {
            return Err(too_large(format_args!("{} bytes", text.len()), MAX_BYTES));
        }
        if json_depth(text) > JSON_DEPTH {
            return Err(malformed("the value", "JSON that is less deeply nested", text));
        }
        let file = Object::parse("the value", text)?;
        let columns = Object::parse("columns", file.required("columns")?)?;
        if columns.members.len() > MAX_COLUMNS {
            return Err(too_large(format_args!("{} columns", columns.members.len()), MAX_COLUMNS));
        }
        let parsed = columns.members.iter().map(|(name, value)| {
            let column = Object::parse(&format!("columns.{name}"), value.get())?;
            Ok((name.clone(), GeoColumn::parse(&column)?))
        });
        Ok(Self {
            version: file.string("version", file.required("version")?)?,
            primary_column: file.string("primary_column", file.required("primary_column")?)?,
            columns: parsed.collect::<Result<_>>()?,
        })
    }

    /// The value of the key.
    pub fn to_json(&self) -> String {
        let columns = self.columns.iter();
        let columns =
            columns.map(|(name, column)| format!("{}:{}", quoted(name), column.to_json()));
        let (version, primary) = (quoted(&self.version), quoted(&self.primary_column));
        let columns = columns.collect::<Vec<_>>().join(",");
        format!("{{\"version\":{version},\"primary_column\":{primary},\"columns\":{{{columns}}}}}")
    }
}

impl GeoColumn {
    /// A column of well-known binary in longitudes and latitudes, of unknown types.
    pub fn new() -> Self {
        Self {
            encoding: GeoEncoding::Wkb,
            geometry_types: Vec::new(),
            crs: GeoCrs::Default,
            edges: None,
            orientation: None,
            bbox: None,
            epoch: None,
            covering: None,
        }
    }

    /// Whether edges are the shortest ways on a sphere, and not straight.
    pub fn has_geodesic_edges(&self) -> bool {
        self.edges.as_deref().is_some_and(|edges| edges != "planar")
    }

    fn parse(of: &Object<'_>) -> Result<Self> {
        let encoding = of.string("encoding", of.required("encoding")?)?;
        let crs = match of.get("crs") {
            None => GeoCrs::Default,
            Some("null") => GeoCrs::Unknown,
            Some(json) if json.starts_with('{') => GeoCrs::Projjson(json.to_owned()),
            Some(other) => {
                return Err(malformed(&of.place("crs"), "a PROJJSON object or null", other));
            }
        };
        let text = |name: &str| of.optional(name).map(|raw| of.string(name, raw)).transpose();
        let epoch = of.optional("epoch").map(|raw| of.number("epoch", raw)).transpose()?;
        Ok(Self {
            encoding: GeoEncoding::named(encoding),
            geometry_types: of.strings("geometry_types", of.required("geometry_types")?)?,
            crs,
            edges: text("edges")?,
            orientation: text("orientation")?,
            bbox: of.optional("bbox").map(|raw| of.bbox("bbox", raw)).transpose()?,
            epoch,
            covering: of.covering()?,
        })
    }

    fn to_json(&self) -> String {
        let types = self.geometry_types.iter().map(|name| quoted(name)).collect::<Vec<_>>();
        let mut out = format!(
            "{{\"encoding\":{},\"geometry_types\":[{}]",
            quoted(self.encoding.name()),
            types.join(",")
        );
        let mut member = |name: &str, value: &str| {
            write!(out, ",\"{name}\":{value}").expect("a string takes all text");
        };
        match &self.crs {
            GeoCrs::Default => {}
            GeoCrs::Unknown => member("crs", "null"),
            GeoCrs::Projjson(json) => member("crs", json),
        }
        if let Some(edges) = &self.edges {
            member("edges", &quoted(edges));
        }
        if let Some(orientation) = &self.orientation {
            member("orientation", &quoted(orientation));
        }
        if let Some(bbox) = self.bbox.as_ref().and_then(sides) {
            member("bbox", &format!("[{bbox}]"));
        }
        if let Some(epoch) = self.epoch.and_then(number) {
            member("epoch", &epoch);
        }
        if let Some(covering) = &self.covering {
            member("covering", &covering.to_json());
        }
        out.push('}');
        out
    }
}

impl Default for GeoColumn {
    fn default() -> Self {
        Self::new()
    }
}

impl GeoCovering {
    /// The fields `xmin`, `ymin`, `xmax` and `ymax` of the top-level struct `column`.
    pub fn of_struct(column: &str) -> Self {
        let path = |side: &str| vec![column.to_owned(), side.to_owned()];
        Self { xmin: path("xmin"), ymin: path("ymin"), xmax: path("xmax"), ymax: path("ymax") }
    }

    fn to_json(&self) -> String {
        let Self { xmin, ymin, xmax, ymax } = self;
        let paths = [("xmin", xmin), ("ymin", ymin), ("xmax", xmax), ("ymax", ymax)];
        let paths = paths.map(|(side, path)| {
            let names = path.iter().map(|name| quoted(name)).collect::<Vec<_>>();
            format!("\"{side}\":[{}]", names.join(","))
        });
        format!("{{\"bbox\":{{{}}}}}", paths.join(","))
    }
}

/// The numbers of a box in the order of RFC 7946; `None` if JSON has no such number.
fn sides(bbox: &BoundingBox) -> Option<String> {
    let BoundingBox { xmin, xmax, ymin, ymax, zmin, zmax, .. } = *bbox;
    let sides = match (zmin, zmax) {
        (Some(zmin), Some(zmax)) => vec![xmin, ymin, zmin, xmax, ymax, zmax],
        _ => vec![xmin, ymin, xmax, ymax],
    };
    Some(sides.into_iter().map(number).collect::<Option<Vec<_>>>()?.join(","))
}

/// A number in JSON.
fn number(value: f64) -> Option<String> {
    serde_json::Number::from_f64(value).map(|number| number.to_string())
}

/// A JSON object of the value: names, and unparsed values.
struct Object<'a> {
    /// The path to it.
    at: String,
    members: BTreeMap<String, &'a RawValue>,
}

impl<'a> Object<'a> {
    fn parse(at: &str, text: &'a str) -> Result<Self> {
        match serde_json::from_str(text) {
            Ok(members) => Ok(Self { at: at.to_owned(), members }),
            Err(_) => Err(malformed(at, "a JSON object", text)),
        }
    }

    fn place(&self, name: &str) -> String {
        if self.at == "the value" { name.to_owned() } else { format!("{}.{name}", self.at) }
    }

    fn get(&self, name: &str) -> Option<&'a str> {
        self.members.get(name).map(|value| value.get())
    }

    /// A member that may be missing, or null.
    fn optional(&self, name: &str) -> Option<&'a str> {
        self.get(name).filter(|value| *value != "null")
    }

    fn required(&self, name: &str) -> Result<&'a str> {
        let missing = || {
            let place = self.place(name);
            Error::malformed(Spec::GeoParquet, format_args!("{place}: it is required, and missing"))
        };
        self.get(name).ok_or_else(missing)
    }

    fn string(&self, name: &str, raw: &str) -> Result<String> {
        serde_json::from_str(raw).map_err(|_| malformed(&self.place(name), "a string", raw))
    }

    fn strings(&self, name: &str, raw: &str) -> Result<Vec<String>> {
        serde_json::from_str(raw).map_err(|_| malformed(&self.place(name), "strings", raw))
    }

    fn number(&self, name: &str, raw: &str) -> Result<f64> {
        serde_json::from_str(raw).map_err(|_| malformed(&self.place(name), "a number", raw))
    }

    fn bbox(&self, name: &str, raw: &str) -> Result<BoundingBox> {
        let wrong = || malformed(&self.place(name), "4 or 6 numbers", raw);
        let sides: Vec<f64> = serde_json::from_str(raw).map_err(|_| wrong())?;
        match *sides {
            [xmin, ymin, xmax, ymax] => Ok(BoundingBox::new(xmin, xmax, ymin, ymax)),
            [xmin, ymin, zmin, xmax, ymax, zmax] => {
                let bbox = BoundingBox::new(xmin, xmax, ymin, ymax);
                Ok(BoundingBox { zmin: Some(zmin), zmax: Some(zmax), ..bbox })
            }
            _ => Err(wrong()),
        }
    }

    /// The covering of a column; `None` if there is none of boxes.
    fn covering(&self) -> Result<Option<GeoCovering>> {
        let Some(raw) = self.optional("covering") else { return Ok(None) };
        let covering = Object::parse(&self.place("covering"), raw)?;
        let Some(raw) = covering.optional("bbox") else { return Ok(None) };
        let bbox = Object::parse(&covering.place("bbox"), raw)?;
        let path = |side: &str| bbox.strings(side, bbox.required(side)?);
        let (xmin, ymin) = (path("xmin")?, path("ymin")?);
        Ok(Some(GeoCovering { xmin, ymin, xmax: path("xmax")?, ymax: path("ymax")? }))
    }
}

#[cold]
fn malformed(place: &str, expected: &str, found: &str) -> Error {
    let mut text: String = found.chars().take(MAX_SHOWN).collect();
    if text.len() < found.len() {
        text.push('…');
    }
    Error::mismatch(Spec::GeoParquet, place, expected, text)
}

/// Characters of a wrong value that an error shows, at most.
const MAX_SHOWN: usize = 60;

#[cold]
fn too_large(found: impl std::fmt::Display, max: usize) -> Error {
    let text = format_args!("the key geo: expected at most {max}, found {found}");
    Error::limit(LimitKind::Memory, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    /// The metadata of one column, with these members beside those that are required.
    fn with_column(column: &str) -> String {
        format!("{{\"version\":\"1.1.0\",\"primary_column\":\"g\",\"columns\":{{\"g\":{column}}}}}")
    }

    fn of_column(members: &str) -> String {
        with_column(&format!("{{\"encoding\":\"WKB\",\"geometry_types\":[]{members}}}"))
    }

    #[test]
    fn everything_there_and_back() {
        let text = of_column(
            ",\"crs\":{\"id\": {\"code\":1}},\"edges\":\"spherical\",\
             \"orientation\":\"counterclockwise\",\"bbox\":[170.5,-1.0,0.0,-170.0,1.0,8848.86],\
             \"epoch\":2021.47,\"covering\":{\"bbox\":{\"xmin\":[\"b\",\"xmin\"],\
             \"ymin\":[\"b\",\"ymin\"],\"xmax\":[\"b\",\"xmax\"],\"ymax\":[\"b\",\"ymax\"]}}",
        );
        let parsed = GeoMetadata::parse(&text).unwrap();
        assert_eq!(parsed.to_json(), text);
        let column = &parsed.columns["g"];
        assert_eq!(column.crs, GeoCrs::Projjson("{\"id\": {\"code\":1}}".to_owned()));
        assert_eq!(column.bbox.as_ref().unwrap().zmax, Some(8848.86));
        assert_eq!(column.covering, Some(GeoCovering::of_struct("b")));
        assert!(column.has_geodesic_edges());
    }

    #[test]
    fn what_is_unknown_is_kept_or_ignored() {
        let text = of_column(",\"x\":[],\"covering\":{\"h3\":1},\"edges\":\"bent\",\"crs\":null");
        let column = GeoMetadata::parse(&text).unwrap().columns.remove("g").unwrap();
        assert_eq!((column.covering, column.crs), (None, GeoCrs::Unknown));
        assert_eq!(column.edges.as_deref(), Some("bent"));
        let encoding = GeoEncoding::named("wkt".to_owned());
        assert_eq!(encoding, GeoEncoding::Other("wkt".to_owned()));
    }

    #[test]
    fn errors_name_the_member() {
        for (text, place) in [
            (String::new(), "the value"),
            ("[]".to_owned(), "the value"),
            ("{}".to_owned(), "columns"),
            ("{\"columns\":{}}".to_owned(), "version"),
            ("{\"columns\":{},\"version\":1}".to_owned(), "version"),
            (with_column("1"), "columns.g"),
            (with_column("{}"), "columns.g.encoding"),
            (of_column(",\"crs\":\"EPSG:4326\""), "columns.g.crs"),
            (of_column(",\"bbox\":[1,2,3]"), "columns.g.bbox"),
            (of_column(",\"bbox\":[1,2,3,NaN]"), "columns"),
            (of_column(",\"epoch\":\"now\""), "columns.g.epoch"),
            (of_column(",\"covering\":{\"bbox\":{}}"), "columns.g.covering.bbox.xmin"),
            (of_column(&format!(",\"x\":{}1{}", "[".repeat(99), "]".repeat(99))), "the value"),
        ] {
            let error = GeoMetadata::parse(&text).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed(Spec::GeoParquet), "{text}");
            let message = error.message();
            let place = if text.contains("NaN") { "the value" } else { place };
            assert!(message.starts_with(&format!("{place}:")), "{text}: {message}");
        }
        let error = GeoMetadata::parse(&" ".repeat(MAX_BYTES + 1)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Limit(LimitKind::Memory));
    }
}
