//! VARIANT columns, plain and shredded.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use delta_kernel::schema::{DataType, StructField, StructType};
use marquetry::WriteOptions;
use marquetry::variant::{VariantArray, VariantArrayBuilder, VariantShape, VariantShredding};

use crate::support::*;

const JSON: [&str; 4] = [r#"{"a":1,"b":"x"}"#, r#"{"a":2}"#, "[1,2]", "null"];

#[test]
fn variants_are_put_together() {
    let mut variants = VariantArrayBuilder::new();
    for json in JSON {
        variants.append_json(json).expect("JSON");
    }
    variants.append_null();
    let variants = variants.finish().expect("values");
    let fields = vec![VariantArray::field("v", true)];
    let batch = RecordBatch::try_new(arrow_schema(fields), vec![Arc::new(variants)]);
    let batch = batch.expect("a batch");
    let folder = tempfile::tempdir().expect("a folder");
    let wanted = schema([StructField::nullable("v", DataType::unshredded_variant())]);
    let shape = [("a", VariantShape::scalar(arrow_schema::DataType::Int64).expect("a shape"))];
    let shape = VariantShredding::Shape(VariantShape::object(shape).expect("a shape"));
    for (name, shredding) in [("plain", VariantShredding::Stored), ("shredded", shape)] {
        let path = folder.path().join(name);
        let options = WriteOptions::default().with_hint(false).with_shredding("v", shredding);
        write_with(&path, std::slice::from_ref(&batch), options);
        let is_shredded = {
            let reader = marquetry::Reader::open(&path).expect("a file");
            let schema = reader.schema().expect("a schema");
            matches!(schema.field(0).data_type(), arrow_schema::DataType::Struct(parts) if parts.len() > 2)
        };
        assert_eq!(is_shredded, name == "shredded");
        let ours = read(&handler(), &path, &wanted).expect("read");
        let json = VariantArray::new(ours.column(0).as_struct()).expect("variants");
        let json = json.to_json().expect("JSON");
        let json: Vec<_> = json.iter().collect();
        let expected: Vec<_> = JSON.iter().map(|json| Some(*json)).chain([None]).collect();
        assert_eq!(json, expected, "{name}");
        let theirs = read(default_engine().parquet_handler().as_ref(), &path, &wanted);
        match is_shredded {
            true => assert!(theirs.is_err(), "the kernel's handler refuses them"),
            false => assert_eq!(ours, theirs.expect("read")),
        }
    }
    // Within a struct they are refused, rather than read without their typed part.
    let path = folder.path().join("shredded");
    let reader = marquetry::Reader::open(&path).expect("a file");
    let batches: Result<Vec<_>, _> = reader.batches().expect("a plan").collect();
    let stored = joined(&batches.expect("read"));
    let inner = arrow_array::StructArray::from(stored);
    let outer = RecordBatch::try_from_iter([("s", Arc::new(inner) as arrow_array::ArrayRef)]);
    let path = folder.path().join("nested");
    write(&path, &outer.expect("a batch"));
    let inner = StructType::try_new([StructField::nullable("v", DataType::unshredded_variant())]);
    let wanted = schema([StructField::nullable("s", inner.expect("a struct"))]);
    let error = read(&handler(), &path, &wanted).expect_err("shredded");
    assert!(error.to_string().contains("shredded VARIANT"), "{error}");
}
