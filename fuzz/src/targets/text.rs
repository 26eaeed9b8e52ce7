//! Texts that a file or a catalog states, besides the format: the key `geo`, name mappings, key
//! material, checksums. What is parsed survives being printed.

use std::sync::Arc;

use marquetry::arrow_schema::{Field, Schema};
use marquetry::crypt::kms::{KeyMaterial, KeyMaterials};
use marquetry::file_reference::Checksum;
use marquetry::geo::GeoMetadata;
use marquetry::schema::{FIELD_ID_KEY, MatchBy, NameMapping};
use marquetry_testkit::cells::{Cell, cells, columns};
use marquetry_testkit::generate::case;

use super::reading::{one, open, rows, within_memory};
use crate::input::{Input, Output};

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (kind, of_case, bytes) = (input.u8(), input.u8(), input.rest());
    let text = std::str::from_utf8(bytes);
    within_memory(data.len(), || match (kind % 4, text) {
        (0, Ok(text)) => geo(text),
        (1, Ok(text)) => mapping(text, of_case),
        (2, _) => material(bytes),
        (3, Ok(text)) => {
            let checksum = Checksum::parse(text);
            assert_eq!(checksum.to_string(), text);
            _ = checksum.verify(b"some bytes");
        }
        _ => {}
    });
}

fn geo(text: &str) {
    let Ok(geo) = GeoMetadata::parse(text) else { return };
    let printed = geo.to_json();
    let again = GeoMetadata::parse(&printed).unwrap_or_else(|e| panic!("{printed}: {e}"));
    assert_eq!(again, geo);
    assert_eq!(again.to_json(), printed);
}

/// Reads the columns of a table by the ids that the mapping gives them: the first column has 1.
fn mapping(text: &str, of_case: u8) {
    let Ok(mapping) = NameMapping::from_json(text) else { return };
    let case = case(of_case.into());
    let fields = case.schema.fields().iter().zip(1..).map(|(field, id)| {
        let mut metadata = field.metadata().clone();
        metadata.insert(FIELD_ID_KEY.to_owned(), format!("{id}"));
        Field::clone(field).with_metadata(metadata).with_nullable(true)
    });
    let target = Schema::new(fields.collect::<Vec<_>>());
    let reader = open(case.file.clone()).expect("a file").name_mapping(mapping);
    let count = reader.file_rows().expect("rows");
    let Ok(reader) = reader.target(Arc::new(target), MatchBy::FieldId) else { return };
    let Ok(rows) = rows(&reader) else { return };
    assert_eq!(rows.count() as u64, count, "{}", case.name);
    let Some(found) = one(&rows.batches) else { return };
    let stored = columns(&case.schema, &case.batches);
    for (field, column) in found.schema().fields().iter().zip(found.columns()) {
        let of_a_column = |found: &Vec<Cell>| stored.contains(found);
        // The fields of a nested column are mapped, too.
        let is_known = field.data_type().is_nested()
            || column.logical_null_count() == column.len()
            || of_a_column(&cells(column));
        assert!(is_known, "{field} has values of no column: {}", case.name);
    }
}

fn material(json: &[u8]) {
    if let Ok(material) = KeyMaterial::from_json(json) {
        let again = KeyMaterial::from_json(material.to_json().as_bytes());
        // A KMS without a name is printed as DEFAULT.
        assert_eq!(again.expect("what was printed").to_json(), material.to_json());
    }
    if let Ok(materials) = KeyMaterials::from_json(json) {
        let again = KeyMaterials::from_json(materials.to_json().as_bytes());
        assert_eq!(again.expect("what was printed").to_json(), materials.to_json());
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let boxes = r#""covering":{"bbox":{"xmin":["b","x"],"ymin":["b","y"],"xmax":["b","X"],
        "ymax":["b","Y"]}}"#;
    let geo = |column: &str| {
        format!(
            r#"{{"version":"1.1.0","primary_column":"g","columns":{{"g":{{"encoding":"WKB",
            "geometry_types":["Point","Polygon Z"],{column}}}}}}}"#
        )
    };
    let mapping = r#"[{"field-id":1,"names":["c0","old"]},{"field-id":2,"names":["c1"],"fields":
        [{"names":["element"],"field-id":7,"fields":[]}]},{"names":["c2"]}]"#;
    let material = r#"{"keyMaterialType":"PKMT1","internalStorage":true,"isFooterKey":true,
        "kmsInstanceID":"d","kmsInstanceURL":"d","masterKeyID":"k","wrappedDEK":"YWJj",
        "doubleWrapping":true,"keyEncryptionKeyID":"aWQ=","wrappedKEK":"a2Vr"}"#;
    let texts: Vec<(u8, String)> = vec![
        (0, geo(boxes)),
        (0, geo(r#""crs":{"id":{"authority":"EPSG","code":4326}},"edges":"spherical""#)),
        (
            0,
            geo(
                r#""crs":null,"bbox":[1,2,3,4,5,6],"epoch":2021.5,"orientation":"counterclockwise""#,
            ),
        ),
        (1, mapping.to_owned()),
        (1, "[]".to_owned()),
        (2, material.to_owned()),
        (2, format!("{{\"footerKey\":{material:?}}}")),
        (3, "CRC32:0a1b2c3d".to_owned()),
        (3, "SHA-256:00".to_owned()),
        (3, format!("SHA-256:{:064x}", 7)),
        (3, "CRC32C:0a1b2c3d".to_owned()),
        (3, "MD5:d41d8cd98f00b204e9800998ecf8427e".to_owned()),
        (3, "ETAG:x".to_owned()),
    ];
    let seed = |(at, (kind, text)): (u8, &(u8, String))| {
        Output::default().u8(*kind).u8(at).rest(text.as_bytes()).bytes()
    };
    (0..).zip(&texts).map(seed).collect()
}
