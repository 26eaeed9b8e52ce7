use super::*;
use crate::error::Result;

fn built(append: impl FnOnce(&mut VariantBuilder) -> Result<()>) -> VariantBuf {
    let mut builder = VariantBuilder::new();
    append(&mut builder).expect("appended");
    builder.finish().expect("finished")
}

fn of_json(text: &str) -> VariantBuf {
    built(|builder| builder.append_json(text))
}

#[test]
fn the_object_of_the_specification_lists_fields_by_name_and_values_as_they_came() {
    let buf = of_json(r#"{"c":3,"b":2,"a":1}"#);
    assert_eq!(buf.metadata(), b"\x01\x03\x00\x01\x02\x03cba");
    assert_eq!(buf.value(), [2, 3, 2, 1, 0, 4, 2, 0, 6, 12, 3, 12, 2, 12, 1]);
    assert_eq!(buf.as_variant().to_json().expect("JSON"), r#"{"a":1,"b":2,"c":3}"#);
}

#[test]
fn json_comes_back() {
    for text in [
        "null",
        "true",
        "[]",
        "{}",
        "[[],{}]",
        r#"{"a":{"b":[1,2,{"c":null}]},"z":"\u0001\"x\\"}"#,
        "1.10",
        "-0.001",
        "12345678901234567890",
        "1e+300",
        "-128",
        "0.5",
        "123456789012345678901234567890.12345678",
        r#""grün 🐢""#,
    ] {
        let buf = of_json(text);
        buf.as_variant().validate().expect("valid");
        assert_eq!(buf.as_variant().to_json().expect("JSON"), text);
    }
}

#[test]
fn a_sorted_dictionary_is_sorted_whatever_came_first() {
    let mut builder = VariantBuilder::with_sorted_names();
    for text in
        [r#"{"b":{"x":1,"a":2},"a":3}"#, r#"{"b":{"x":1,"a":2},"a":3}"#, r#"{"q":1,"b":2}"#, "[]"]
    {
        builder.append_json(text).expect("appended");
        let buf = builder.finish().expect("finished");
        let metadata = VariantMetadata::new(buf.metadata()).expect("metadata");
        assert!(metadata.is_sorted() && metadata.is_ascending());
        assert_eq!(buf.as_variant(), of_json(text).as_variant());
    }
}
