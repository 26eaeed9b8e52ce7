//! VARIANT columns, plain and shredded.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch, StructArray};
use arrow_buffer::NullBuffer;
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

#[test]
fn a_variant_may_have_a_typed_value_in_the_place_of_its_value() {
    use arrow_schema::{DataType as A, Field, Fields};
    let names = BinaryArray::from_iter_values([[1, 0, 0]; 3]);
    let numbers = Int64Array::from(vec![Some(7), Some(-3), None]);
    let parts = Fields::from(vec![
        Field::new("metadata", A::Binary, false),
        Field::new("typed_value", A::Int64, true),
    ]);
    let columns: Vec<ArrayRef> = vec![Arc::new(names), Arc::new(numbers)];
    let nulls = NullBuffer::from(vec![true, true, false]);
    let variants = StructArray::new(parts.clone(), columns, Some(nulls));
    let field = VariantArray::field("v", true).with_data_type(A::Struct(parts));
    let batch = RecordBatch::try_new(arrow_schema(vec![field]), vec![Arc::new(variants)]);
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("typed");
    let options = WriteOptions::default().with_hint(false);
    let options = options.with_shredding("v", VariantShredding::Stored);
    write_with(&path, &[batch.expect("a batch")], options);
    let wanted = schema([StructField::nullable("v", DataType::unshredded_variant())]);
    let found = read(&handler(), &path, &wanted).expect("read");
    let found = VariantArray::new(found.column(0).as_struct()).expect("variants");
    assert!(!found.is_shredded());
    let json = found.to_json().expect("JSON");
    assert_eq!(json.iter().collect::<Vec<_>>(), [Some("7"), Some("-3"), None]);
}
