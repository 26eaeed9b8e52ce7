//! Tests paths as text.

use super::super::{Variant, VariantPath, VariantStep};
use super::from_json;
use crate::error::ErrorKind;

#[test]
fn a_path_is_read_and_shown() {
    for (text, shown) in [
        ("$", "$"),
        ("$.a[3].b", "$.a[3].b"),
        ("a.b", "$.a.b"),
        ("[0]", "$[0]"),
        ("$['odd name'][0]", "$['odd name'][0]"),
        (r#"$["a"]['b.c']"#, "$.a['b.c']"),
        (r"$['it\'s \\ \u00e9 \ud83d\udc22 \n']", r"$['it\'s \\ é 🐢 \n']"),
        ("$['']", "$['']"),
        ("$x.é-1", "$['$x'].é-1"),
        ("odd name.b", "$['odd name'].b"),
        ("$['*']", "$['*']"),
    ] {
        let path: VariantPath = text.parse().unwrap();
        assert_eq!(path.to_string(), shown);
        assert_eq!(shown.parse::<VariantPath>().unwrap(), path);
    }
    for text in [
        "",
        "$.",
        ".a",
        "$..a",
        "a.",
        "$.*",
        "$[*]",
        "$[-1]",
        "$[]",
        "$[1",
        "$['a",
        "$['a'",
        "$['a']b",
        "a]",
        "$[99999999999999999999]",
        r"$['\x']",
        r"$['\ud800']",
        r"$['\u12']",
        "a'b",
        "$[a]",
    ] {
        assert_eq!(text.parse::<VariantPath>().unwrap_err().kind(), ErrorKind::Usage, "{text}");
    }
}

#[test]
fn any_name_comes_back() {
    let mut rng = fastrand::Rng::with_seed(3);
    for _ in 0..2000 {
        let steps: Vec<VariantStep> = (0..rng.usize(..4))
            .map(|_| {
                if rng.bool() {
                    return VariantStep::Index(rng.usize(..));
                }
                let odd = ['\'', '"', '\\', '.', '[', ']', '$', '*', ' ', '\n', '\u{1}', '\u{7f}'];
                let c = |rng: &mut fastrand::Rng| match rng.u8(..3) {
                    0 => odd[rng.usize(..odd.len())],
                    1 => rng.char(..),
                    _ => rng.alphanumeric(),
                };
                VariantStep::Field((0..rng.usize(..6)).map(|_| c(&mut rng)).collect())
            })
            .collect();
        let path = VariantPath::new(steps);
        assert_eq!(path.to_string().parse::<VariantPath>().unwrap(), path, "{path}");
    }
}

#[test]
fn a_path_leads_to_a_part_or_to_none() {
    let buf = from_json(r#"{"a":[1,{"b c":"here"}],"n":null}"#);
    let at = |path: &str| buf.as_variant().get_path(&path.parse().unwrap()).unwrap();
    assert_eq!(at("$.a[1]['b c']"), Some(Variant::String("here")));
    assert_eq!(at("a[0]"), Some(Variant::Int8(1)));
    assert_eq!(at("$.n"), Some(Variant::Null));
    assert_eq!(at("$"), Some(buf.as_variant()));
    for none in ["$.b", "$.a[2]", "$.a.b", "$[0]", "$.n.x", "$.a[0].x"] {
        assert_eq!(at(none), None, "{none}");
    }
}
