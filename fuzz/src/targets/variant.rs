//! VARIANT: values of any bytes, JSON texts, paths and shapes; what is valid survives being built
//! again, shredded and put together.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{ArrayRef, BinaryArray, StructArray};
use marquetry::arrow_schema::{DataType, Field};
use marquetry::variant::{
    Variant, VariantArray, VariantArrayBuilder, VariantBuf, VariantBuilder, VariantInference,
    VariantMetadata, VariantPath, VariantShape,
};
use marquetry_testkit::cells;

use super::reading::within_memory;
use crate::input::{Input, Output};

const SHAPES: [&str; 3] =
    ["{a: int64, b: string}", "{a: int32, d: {e: int8, f: int8}}", "[double]"];

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let kind = input.u8();
    let (first, second, rest) = (input.part(), input.part(), input.rest());
    within_memory(data.len(), || match kind % 3 {
        0 => value(first, second, rest),
        1 => json(first, second),
        _ => column(first, second, rest),
    });
}

/// A value of any bytes: every way of looking at it ends.
fn value(metadata: &[u8], bytes: &[u8], path: &[u8]) {
    let Ok(metadata) = VariantMetadata::new(metadata) else { return };
    for name in (0..metadata.len()).filter_map(|id| metadata.name(id)) {
        // Of names that are equal, any.
        let found = metadata.find(name).and_then(|id| metadata.name(id));
        assert_eq!(found, Some(name));
    }
    let Ok(value) = Variant::new(metadata, bytes) else { return };
    let is_valid = value.validate().is_ok();
    let text = value.to_json();
    if let Some(path) = std::str::from_utf8(path).ok().and_then(|text| text.parse().ok()) {
        let path: VariantPath = path;
        let again: VariantPath = path.to_string().parse().expect("a path that was printed");
        assert_eq!(again, path);
        let found = value.get_path(&path);
        assert!(found.is_ok() || !is_valid, "{found:?}");
    }
    if !is_valid {
        return;
    }
    // Values without a place in JSON: NaN and infinities.
    _ = text;
    let mut builder = VariantBuilder::new();
    builder.append(value).expect("what is valid");
    let built = builder.finish().expect("what is valid");
    built.as_variant().validate().expect("what was built");
    assert!(built.as_variant() == value || has_nan(&value), "{built:?} of {value:?}");
    assert_eq!(built.as_variant().to_json().ok(), value.to_json().ok());
}

/// Whether a value differs from itself.
fn has_nan(value: &Variant<'_>) -> bool {
    let same = value;
    same != value
}

/// A JSON text, and how it is printed.
fn json(text: &[u8], shape: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else { return };
    let mut builder = VariantBuilder::new();
    if builder.append_json(text).is_err() {
        return;
    }
    let value = builder.finish().expect("a value");
    value.as_variant().validate().expect("what was built");
    let printed = value.as_variant().to_json().expect("what was JSON");
    let mut again = VariantBuilder::new();
    again.append_json(&printed).unwrap_or_else(|e| panic!("{printed}: {e}"));
    let again = again.finish().expect("a value");
    // A double without an exponent is read as a decimal, and printed as before.
    assert_eq!(again.as_variant().to_json().expect("what was JSON"), printed, "of {text}");
    let pretty = value.as_variant().to_json_pretty().expect("what was JSON");
    let mut of_pretty = VariantBuilder::new();
    of_pretty.append_json(&pretty).unwrap_or_else(|e| panic!("{pretty}: {e}"));
    let mut rows = VariantArrayBuilder::new();
    rows.append_json(text).expect("once more");
    rows.append_null();
    rows.append_json(&printed).expect("once more");
    shredded(&rows.finish().expect("an array"), shape);
}

/// A column of two values of any bytes.
fn column(metadata: &[u8], first: &[u8], second: &[u8]) {
    let columns: Vec<(Arc<Field>, ArrayRef)> =
        [("metadata", [metadata, metadata]), ("value", [first, second])]
            .into_iter()
            .map(|(name, values)| {
                let array: ArrayRef = Arc::new(BinaryArray::from_iter_values(values));
                (Arc::new(Field::new(name, DataType::Binary, false)), array)
            })
            .collect();
    shredded(&StructArray::from(columns), SHAPES[0].as_bytes());
}

/// Shredded by a shape and by one that is inferred, and put together again.
fn shredded(array: &StructArray, shape: &[u8]) {
    let Ok(column) = VariantArray::new(array) else { return };
    let value = |column: &VariantArray, row| column.value(row).ok().flatten();
    let is_valid = (0..column.len()).all(|row| {
        column.is_null(row)
            || value(&column, row).is_some_and(|v| v.as_variant().validate().is_ok())
    });
    _ = column.to_json();
    let shapes = [
        std::str::from_utf8(shape).ok().and_then(|text| VariantShape::parse(text).ok()),
        VariantInference::new().infer(std::slice::from_ref(&column)).ok(),
    ];
    for shape in shapes.into_iter().flatten() {
        let again = VariantShape::parse(&shape.to_string()).expect("a shape that was printed");
        assert!(again == shape, "{again} of {shape}");
        let shredded = column.shred(&shape);
        assert!(shredded.is_ok() || !is_valid, "{shredded:?}");
        let Ok(shredded) = shredded else { continue };
        let shredded = VariantArray::new(&shredded).expect("what was shredded");
        parts(&column, &shredded, is_valid);
        let whole = shredded.unshred().and_then(|array| VariantArray::new(&array));
        assert!(whole.is_ok() || !is_valid, "{whole:?}");
        let Ok(whole) = whole else { continue };
        for row in 0..if is_valid { column.len() } else { 0 } {
            let (before, after) = (value(&column, row), value(&whole, row));
            let direct = value(&shredded, row);
            assert!(same(before.as_ref(), after.as_ref()), "{before:?} {after:?} by {shape}");
            assert!(same(before.as_ref(), direct.as_ref()), "{before:?} {direct:?} by {shape}");
        }
    }
}

/// Parts of a column as columns of their own: those of the shredded form are the same.
fn parts(column: &VariantArray, shredded: &VariantArray, is_valid: bool) {
    let lists = DataType::List(Arc::new(Field::new("item", DataType::Float64, true)));
    let types = [DataType::Int64, DataType::Utf8, VariantArray::unshredded_type(), lists];
    let paths = ["$", "a", "d", "d.e", "c", "c[0]"];
    for (path, data_type) in paths.iter().flat_map(|path| types.iter().map(move |of| (path, of))) {
        let path: VariantPath = path.parse().expect("a path");
        let (a, b) = (column.get(&path, data_type), shredded.get(&path, data_type));
        match (a, b) {
            // The same value has several forms.
            (Ok(a), Ok(b)) if is_valid && *data_type == types[2] => {
                let [a, b] = [a, b].map(|part| VariantArray::new(part.as_struct()).expect("parts"));
                for row in 0..a.len() {
                    let (a, b) = (a.value(row).expect("a part"), b.value(row).expect("a part"));
                    assert!(same(a.as_ref(), b.as_ref()), "{path}: {a:?} {b:?}");
                }
            }
            (Ok(a), Ok(b)) if is_valid => {
                assert!(cells::cells(&a) == cells::cells(&b), "{path} as {data_type}: {a:?} {b:?}")
            }
            (a, b) => assert!(a.is_ok() == b.is_ok() || !is_valid, "{path}: {a:?} {b:?}"),
        }
    }
}

pub fn same(a: Option<&VariantBuf>, b: Option<&VariantBuf>) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => {
            a.as_variant() == b.as_variant() || has_nan(&a.as_variant()) && has_nan(&b.as_variant())
        }
        _ => false,
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    // Names are looked up in another way where many are in no order.
    let others: String = (0..20).rev().map(|i| format!(r#""n{i}":{i},"#)).collect();
    let many = format!(r#"{{{others}"d":{{"f":4,"e":5}},"a":1}}"#);
    let texts = [
        r#"{"a":1,"b":"text","c":[1,2.5,null,true],"d":{"e":-3}}"#,
        r#"[{"a":1},{"a":"x","b":[]},[[]],1e300,123456789012345678901234567890]"#,
        r#""a string that is long enough not to be a short one, which ends at sixty-three bytes""#,
        "12.345",
        "-170141183460469231731687303715884105727",
        r#"{"é":"\u00e9\ud83d\ude00\n","":{}}"#,
        "false",
        &many,
    ];
    let paths = ["a", "c[2]", "d.e", "$.b"];
    let mut seeds = Vec::new();
    for (i, text) in texts.into_iter().enumerate() {
        let shape = SHAPES[i % SHAPES.len()];
        VariantShape::parse(shape).expect("a shape");
        let head = Output::default().u8(1).part(text.as_bytes());
        seeds.push(head.part(shape.as_bytes()).bytes());
        let mut builder = VariantBuilder::new();
        builder.append_json(text).expect("JSON");
        let (metadata, value) = builder.finish().expect("a value").into_parts();
        let head = Output::default().u8(0).part(&metadata).part(&value);
        seeds.push(head.rest(paths[i % paths.len()].as_bytes()).bytes());
        seeds.push(Output::default().u8(2).part(&metadata).part(&value).rest(&value).bytes());
    }
    seeds
}
