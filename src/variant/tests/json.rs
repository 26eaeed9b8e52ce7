//! Tests JSON text in both directions.

use fastrand::Rng;
use serde_json::Value;

use super::super::{Variant, VariantBuilder, VariantJsonOptions};
use super::twin::{Tree, encode, tree};
use super::{VariantBuf, VariantMetadata, built, from_json};
use crate::error::{ErrorKind, Result, Spec};

fn json(value: Variant<'_>) -> String {
    value.to_json().unwrap()
}

#[test]
fn json_comes_back_as_it_was() {
    for text in [
        "null",
        "true",
        "[]",
        "{}",
        "[[],{},[false]]",
        r#"{"a":{"b":[1,2,{"c":null}]},"z":"\u0001\"x\\\b\f\n\r\t/"}"#,
        "1.10",
        "-0.001",
        "-0.0",
        "0.00000000000000000000000000000000000001",
        "9223372036854775807",
        "9223372036854775808",
        "-9223372036854775809",
        "99999999999999999999999999999999999999",
        "12345678901234567890.123456789012345678",
        "1e+300",
        "5e-324",
        "-128",
        "\"grün 🐢 \u{7f}\"",
    ] {
        let buf = from_json(text);
        buf.as_variant().validate().unwrap();
        assert_eq!(json(buf.as_variant()), text);
    }
}

#[test]
fn numbers_become_what_holds_them_exactly() {
    let doubles = VariantJsonOptions::new().with_doubles(true);
    for (text, exact, with_doubles) in [
        ("127", Variant::Int8(127), None),
        ("-129", Variant::Int16(-129), None),
        ("-0", Variant::Int8(0), None),
        ("2147483648", Variant::Int64(1 << 31), None),
        ("1.10", Variant::Decimal(110, 2), Some(1.1)),
        ("-0.5", Variant::Decimal(-5, 1), Some(-0.5)),
        // No decimal is a negative zero; fuzzing found `-0e2`, which is printed as `-0.0`.
        ("-0.00", Variant::Double(-0.0), Some(-0.0)),
        ("-0e2", Variant::Double(-0.0), None),
        ("0.00", Variant::Decimal(0, 2), Some(0.0)),
        ("1e2", Variant::Double(100.0), None),
        ("1.5E-1", Variant::Double(0.15), None),
        ("18446744073709551616", Variant::Decimal(1 << 64, 0), None),
        ("100000000000000000000000000000000000000", Variant::Double(1e38), None),
        ("0.000000000000000000000000000000000000001", Variant::Double(1e-39), None),
    ] {
        assert_eq!(format!("{:?}", from_json(text).as_variant()), format!("{exact:?}"), "{text}");
        let other = built(|builder| builder.append_json_with(text, &doubles));
        let expected = with_doubles.map_or(exact, Variant::Double);
        assert_eq!(format!("{:?}", other.as_variant()), format!("{expected:?}"), "{text}");
    }
}

#[test]
fn escapes_and_blanks_are_read() {
    let buf = from_json(" { \"\\u00e9\\uD83D\\uDC22\\/\" :\t[ 1 , \"\\\\\\\"\" ]\r\n} ");
    assert_eq!(json(buf.as_variant()), "{\"é🐢/\":[1,\"\\\\\\\"\"]}");
}

#[test]
fn text_that_is_no_json_is_an_error_with_its_place() {
    for (text, at) in [
        ("", 0),
        ("  ", 2),
        ("nul", 0),
        ("truex", 4),
        ("[1,]", 3),
        ("[1 2]", 3),
        ("[1", 2),
        ("{\"a\"}", 4),
        ("{\"a\":1,}", 7),
        ("{a:1}", 1),
        ("{\"a\":1]", 6),
        ("[1}", 2),
        ("01", 1),
        ("-", 1),
        ("+1", 0),
        (".5", 0),
        ("1.", 2),
        ("1e", 2),
        ("1e+", 3),
        ("1e999", 0),
        ("NaN", 0),
        ("\"a", 2),
        ("\"a\nb\"", 2),
        ("\"\\x\"", 2),
        ("\"\\u12g4\"", 3),
        ("\"\\ud800\"", 2),
        ("\"\\udc00\"", 2),
        ("\"\\ud800\\u0041\"", 2),
        ("\"\\ud83d\\ud83d\"", 2),
        ("\"\\u00é\"", 3),
        ("1 2", 2),
        ("\u{feff}1", 0),
        ("[\"é\",x]", 6),
    ] {
        let error = VariantBuilder::new().append_json(text).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed(Spec::LogicalTypes("JSON")), "{text}");
        assert!(error.message().contains(&format!("at byte {at}:")), "{text}: {error}");
    }
}

#[test]
fn a_name_twice_is_an_error_or_the_last_one_counts() {
    let text = r#"{"b":[1,2,3],"a":"x","b":{"c":1,"c":2},"a":5}"#;
    let error = VariantBuilder::new().append_json(text).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed(Spec::LogicalTypes("JSON")));
    let last = VariantJsonOptions::new().with_last_duplicate(true);
    let buf = built(|builder| builder.append_json_with(text, &last));
    buf.as_variant().validate().unwrap();
    assert_eq!(json(buf.as_variant()), r#"{"a":5,"b":{"c":2}}"#);
    assert_eq!(buf.value().len(), from_json(r#"{"b":{"c":2},"a":5}"#).value().len());
}

#[test]
fn dates_and_times_are_shown_in_any_year() {
    let micros = 1_713_271_496_780_000;
    for (value, text) in [
        (Variant::Date(0), "\"1970-01-01\""),
        (Variant::Date(-1), "\"1969-12-31\""),
        (Variant::Date(19_782), "\"2024-02-29\""),
        (Variant::Date(-719_528), "\"0000-01-01\""),
        (Variant::Date(-719_529), "\"-0001-12-31\""),
        (Variant::Date(2_932_897), "\"+10000-01-01\""),
        (Variant::Date(i32::MAX), "\"+5881580-07-11\""),
        (Variant::Date(i32::MIN), "\"-5877641-06-23\""),
        (Variant::TimestampMicros(micros), "\"2024-04-16T12:44:56.780Z\""),
        (Variant::TimestampNtzMicros(micros + 1), "\"2024-04-16T12:44:56.780001\""),
        (Variant::TimestampNanos(-1), "\"1969-12-31T23:59:59.999999999Z\""),
        (Variant::TimestampNtzNanos(0), "\"1970-01-01T00:00:00\""),
        (Variant::TimestampMicros(i64::MAX), "\"+294247-01-10T04:00:54.775807Z\""),
        (Variant::TimestampMicros(i64::MIN), "\"-290308-12-21T19:59:05.224192Z\""),
        (Variant::TimestampNtzNanos(i64::MIN), "\"1677-09-21T00:12:43.145224192\""),
        (Variant::TimeMicros(0), "\"00:00:00\""),
        (Variant::TimeMicros(86_399_000_001), "\"23:59:59.000001\""),
        (Variant::TimeMicros(-1_000), "\"-00:00:00.001\""),
        (Variant::TimeMicros(i64::MIN), "\"-2562047788:00:54.775808\""),
    ] {
        assert_eq!(json(value), text);
    }
}

#[test]
fn other_scalars_are_shown() {
    let uuid = *b"\xf2\x4f\x9b\x64\x81\xfa\x49\xd1\xb7\x4e\x8c\x09\xa6\xe3\x1c\x56";
    for (value, text) in [
        (uuid.into(), "\"f24f9b64-81fa-49d1-b74e-8c09a6e31c56\""),
        (b"\x00\xff\x10".as_slice().into(), "\"AP8Q\""),
        (Variant::Float(0.1), "0.1"),
        (Variant::Double(0.1_f32.into()), "0.10000000149011612"),
        (Variant::Float(f32::NAN), "\"NaN\""),
        (Variant::Double(f64::INFINITY), "\"Infinity\""),
        (Variant::Double(f64::NEG_INFINITY), "\"-Infinity\""),
        (Variant::Decimal(-5, 3), "-0.005"),
        (Variant::Decimal(0, 2), "0.00"),
        (Variant::Decimal(-12345, 0), "-12345"),
        (Variant::Decimal(10_i128.pow(38) - 1, 38), "0.99999999999999999999999999999999999999"),
        (Variant::Int64(i64::MIN), "-9223372036854775808"),
    ] {
        assert_eq!(json(value), text);
    }
}

/// Compares JSON as serde_json reads it with what it was written from.
fn assert_shown(tree: &Tree, shown: &Value) {
    match (tree, shown) {
        (Tree::List(values), Value::Array(shown)) => {
            assert_eq!(values.len(), shown.len());
            values.iter().zip(shown).for_each(|(value, shown)| assert_shown(value, shown));
        }
        (Tree::Object(fields), Value::Object(shown)) => {
            assert!(fields.keys().eq(shown.keys()), "the names, in their order");
            fields
                .values()
                .zip(shown.values())
                .for_each(|(value, shown)| assert_shown(value, shown));
        }
        (Tree::Scalar(scalar), shown) => match (scalar.as_variant(), shown) {
            (Variant::Null, Value::Null) => {}
            (Variant::Boolean(a), Value::Bool(b)) => assert_eq!(a, *b),
            (Variant::String(a), Value::String(b)) => assert_eq!(a, b),
            (Variant::Double(a), Value::Number(b)) => assert_eq!(Some(a), b.as_f64()),
            #[expect(clippy::cast_possible_truncation, reason = "the nearest float")]
            (Variant::Float(a), Value::Number(b)) => {
                assert_eq!(Some(a), b.as_f64().map(|b| b as f32))
            }
            (Variant::Decimal(..), Value::Number(_)) => {}
            (a @ (Variant::Float(_) | Variant::Double(_)), Value::String(b)) => {
                assert!(
                    !format!("{a:?}").is_empty()
                        && ["NaN", "Infinity", "-Infinity"].contains(&b.as_str())
                );
            }
            (a, Value::Number(b)) => assert_eq!(a, Variant::Int64(b.as_i64().unwrap())),
            (a, Value::String(_)) => assert!(!matches!(a, Variant::Null | Variant::Boolean(_))),
            (a, b) => panic!("{a:?} is shown as {b}"),
        },
        (a, b) => panic!("{a:?} is shown as {b}"),
    }
}

#[test]
fn any_value_is_shown_as_json_that_another_parser_reads() {
    for seed in 0..2000 {
        let mut rng = Rng::with_seed(seed);
        println!("seed {seed}");
        let tree = tree(&mut rng, 0);
        let (metadata, value) = encode(&tree, &mut rng);
        let value = Variant::new(VariantMetadata::new(&metadata).unwrap(), &value).unwrap();
        let text = value.to_json().unwrap();
        assert_shown(&tree, &serde_json::from_str(&text).unwrap());
        let pretty = value.to_json_pretty().unwrap();
        let [a, b] = [&text, &pretty].map(|text| from_json(text));
        assert_eq!(a.as_variant(), b.as_variant());
        // Exact numbers come back as they were, and so does JSON of JSON.
        assert_eq!(a.as_variant().to_json().unwrap(), json(b.as_variant()));
    }
}

#[test]
fn the_pretty_form_is_the_usual_one() {
    let text = r#"{"a":[],"b":{},"c":[1,{"d":null}]}"#;
    let value: Value = serde_json::from_str(text).unwrap();
    let pretty = from_json(text).as_variant().to_json_pretty().unwrap();
    assert_eq!(pretty, serde_json::to_string_pretty(&value).unwrap());
}

/// Builds a text as serde_json parses it, where both take numbers as doubles.
fn of_serde(value: &Value, builder: &mut VariantBuilder) -> Result<()> {
    match value {
        Value::Null => builder.append(()),
        Value::Bool(v) => builder.append(*v),
        Value::Number(v) => match (v.as_i64(), v.as_u64()) {
            (Some(v), _) => builder.append(v),
            (_, Some(v)) => builder.append(Variant::Decimal(v.into(), 0)),
            _ => builder.append(v.as_f64().unwrap()),
        },
        Value::String(v) => builder.append(v.as_str()),
        Value::Array(values) => {
            builder.begin_list()?;
            values.iter().try_for_each(|value| of_serde(value, builder))?;
            builder.end_list()
        }
        Value::Object(fields) => {
            builder.begin_object()?;
            for (name, value) in fields {
                builder.name(name)?;
                of_serde(value, builder)?;
            }
            builder.end_object()
        }
    }
}

/// Texts that are nearly JSON: both parsers take the same, and as the same.
#[test]
fn mutated_text_is_taken_or_refused_as_serde_json_does() {
    let options = VariantJsonOptions::new().with_doubles(true).with_last_duplicate(true);
    let seeds = [
        r#"{"a":[1,-2.5,3e4,{"b":"x\u00e9\n"}],"c":null,"d":true,"e":{"f":false,"g":[]}}"#,
        r#"["\ud83d\udc22","a\\b\"c",0.0,-0,12345678901234567890,1e-7,"long text without any escape"]"#,
        r#"{"":{"":{}},"x":[[[]]],"y":" \t","z":[0,10,200]}"#,
    ];
    let pieces = [
        "\"", "\\", "\\u", "{", "}", "[", "]", ",", ":", "0", "1", "-", ".", "e", "E+", "null",
        " ", "\u{1}", "é",
    ];
    let mut rng = Rng::with_seed(11);
    let (mut taken, mut builder) = (0, VariantBuilder::new());
    for i in 0..60_000 {
        let mut text = seeds[i % seeds.len()].to_owned();
        for _ in 0..rng.usize(1..4) {
            let places: Vec<usize> =
                text.char_indices().map(|(i, _)| i).chain([text.len()]).collect();
            let [mut a, mut b] = [0; 2].map(|_| rng.usize(..places.len()));
            (a, b) = (places[a.min(b)], places[a.max(b).min(a.min(b) + rng.usize(..4))]);
            let piece = if rng.u8(..3) == 0 { "" } else { pieces[rng.usize(..pieces.len())] };
            text.replace_range(a..b, piece);
        }
        builder.clear();
        let ours = builder.append_json_with(&text, &options);
        let theirs = serde_json::from_str::<Value>(&text);
        // Digits beyond 38 and exponents are doubles in both.
        assert_eq!(ours.is_ok(), theirs.is_ok(), "{text}: {ours:?}, {theirs:?}");
        if let Ok(theirs) = theirs {
            taken += 1;
            let theirs = built(|builder| of_serde(&theirs, builder));
            let ours = builder.finish().unwrap();
            ours.as_variant().validate().unwrap();
            assert!(same(&ours, &theirs), "{text}");
        }
    }
    println!("{taken} of 60000 taken");
    assert!(taken > 5000);
}

/// The same JSON; integers of more than 64 bits are decimals in ours and doubles in theirs.
fn same(ours: &VariantBuf, theirs: &VariantBuf) -> bool {
    fn eq(a: Variant<'_>, b: Variant<'_>) -> bool {
        match (a, b) {
            (Variant::Object(a), Variant::Object(b)) => {
                a.len() == b.len()
                    && a.iter().zip(b.iter()).all(|(a, b)| {
                        let (a, b) = (a.unwrap(), b.unwrap());
                        a.0 == b.0 && eq(a.1, b.1)
                    })
            }
            (Variant::List(a), Variant::List(b)) => {
                a.len() == b.len()
                    && a.iter().zip(b.iter()).all(|(a, b)| eq(a.unwrap(), b.unwrap()))
            }
            (Variant::Decimal(a, 0), Variant::Double(b)) => a.to_string().parse() == Ok(b),
            // serde_json takes -0 for a double.
            (Variant::Int8(0), Variant::Double(b)) => b == 0.0,
            _ => a == b,
        }
    }
    eq(ours.as_variant(), theirs.as_variant())
}
