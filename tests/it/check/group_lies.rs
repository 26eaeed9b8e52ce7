//! Lies about groups, which no column tells alone: values of VARIANT and FILE groups that break a
//! rule, and columns that contradict their siblings. Each is found at its row and column, and
//! nothing else is.

use std::collections::HashMap;
use std::sync::Arc;

use marquetry::arrow_array::*;
use marquetry::arrow_buffer::OffsetBuffer;
use marquetry::arrow_schema::{DataType, Field, Fields, Schema};
use marquetry::check::{CheckLevel, Checker, Finding, Severity};
use marquetry::format::{Encoding, FieldRepetitionType, Type};
use marquetry::schema::{FILE, LOGICAL_TYPE_KEY};
use marquetry::{PageVersion, Threads, WriteOptions};

use super::model::{findings, line, written};
use crate::metadata::kept::{Watched, total};
use crate::support::{Chunk, file, group, ints, leaf, levels_v1, v1};

const VARIANT: &str = "arrow.parquet.variant";
/// Metadata with the names `a` and `b`.
const NAMES: &[u8] = &[0x11, 2, 0, 1, 2, b'a', b'b'];
/// The object `{"a": 1, "b": 2}`.
const OBJECT: &[u8] = &[2, 2, 0, 1, 0, 2, 4, 0x0C, 1, 0x0C, 2];
/// The object `{"b": 2}`, the array `[1]`, and the integer 7.
const ONLY_B: &[u8] = &[2, 1, 1, 0, 2, 0x0C, 2];
const ARRAY: &[u8] = &[3, 1, 0, 2, 0x0C, 1];
const SEVEN: &[u8] = &[0x0C, 7];

fn binary<'a>(values: impl IntoIterator<Item = Option<&'a [u8]>>) -> ArrayRef {
    Arc::new(BinaryArray::from_iter(values))
}

/// A struct of these children, all of them optional but `metadata`.
fn fields_of(children: Vec<(&str, ArrayRef)>) -> StructArray {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = children
        .into_iter()
        .map(|(name, array)| {
            let is_group = matches!(array.data_type(), DataType::Struct(_)) && name.len() == 1;
            let nullable = name != "metadata" && !is_group;
            (Field::new(name, array.data_type().clone(), nullable), array)
        })
        .unzip();
    StructArray::new(Fields::from(fields), arrays, None)
}

fn one_column(name: &str, key: &str, mark: &str, array: ArrayRef) -> Vec<u8> {
    let marks = [(key, mark), ("ARROW:extension:metadata", "")];
    let marks = marks[..if mark == VARIANT { 2 } else { 1 }].iter();
    let marks: HashMap<String, String> =
        marks.map(|(key, mark)| ((*key).to_owned(), (*mark).to_owned())).collect();
    let field = Field::new(name, array.data_type().clone(), false).with_metadata(marks);
    let batch = RecordBatch::try_new(Arc::new(Schema::new(vec![field])), vec![array]).unwrap();
    written(&batch, WriteOptions::default().with_page_version(PageVersion::V2))
}

/// A file with a VARIANT column `v` of three rows. In the second, something is wrong.
fn variant(children: Vec<(&str, ArrayRef)>) -> Vec<u8> {
    let array = Arc::new(fields_of(children));
    one_column("v", "ARROW:extension:name", VARIANT, array)
}

/// A VARIANT whose second row has these metadata and this value.
fn stored(metadata: &[u8], value: &[u8]) -> Vec<u8> {
    variant(vec![
        ("metadata", binary([NAMES, metadata, NAMES].map(Some))),
        ("value", binary([OBJECT, value, SEVEN].map(Some))),
    ])
}

/// A VARIANT whose second row has this `value` beside a `typed_value` column.
fn beside(value: Option<&[u8]>, typed: ArrayRef) -> Vec<u8> {
    variant(vec![
        ("metadata", binary([NAMES; 3].map(Some))),
        ("value", binary([Some(SEVEN), value, None])),
        ("typed_value", typed),
    ])
}

/// The integers of a `typed_value` column, the second as given.
fn integers(second: Option<i64>) -> ArrayRef {
    Arc::new(Int64Array::from(vec![None, second, Some(3)]))
}

/// Objects with a field `a`, in the rows that are not null.
fn objects(nulls: [bool; 3], value: Option<&[u8]>, typed: Option<i64>) -> ArrayRef {
    let typed: ArrayRef = Arc::new(Int64Array::from(vec![None, typed, Some(3)]));
    let field = fields_of(vec![("value", binary([None, value, None])), ("typed_value", typed)]);
    let object = fields_of(vec![("a", Arc::new(field))]);
    let (fields, columns, _) = object.into_parts();
    Arc::new(StructArray::new(fields, columns, Some(nulls.to_vec().into())))
}

/// Lists: the first is null, and the second has one element of `value` and `typed_value`.
fn lists(nulls: [bool; 3], value: Option<&[u8]>, typed: Option<i64>) -> ArrayRef {
    let typed: ArrayRef = Arc::new(Int64Array::from(vec![typed, Some(4)]));
    let element = fields_of(vec![("value", binary([value, None])), ("typed_value", typed)]);
    let item = Arc::new(Field::new("element", element.data_type().clone(), false));
    let offsets = OffsetBuffer::from_lengths([0, 1, 1]);
    Arc::new(ListArray::new(item, offsets, Arc::new(element), Some(nulls.to_vec().into())))
}

const SECOND: [bool; 3] = [false, true, true];
const THIRD: [bool; 3] = [false, false, true];

fn lines(file: Vec<u8>) -> Vec<String> {
    let text = |finding: &Finding| format!("{} {}", line(finding), finding.message);
    findings(file, CheckLevel::Truth).iter().map(text).collect()
}

#[test]
fn variants_that_keep_the_rules_have_no_finding() {
    for file in [
        stored(NAMES, ONLY_B),
        // Names that are not said to be sorted.
        stored(&[0x01, 2, 0, 1, 2, b'b', b'a'], &[2, 2, 1, 0, 0, 2, 4, 0x0C, 1, 0x0C, 2]),
        beside(Some(OBJECT), integers(None)),
        beside(None, integers(Some(5))),
        beside(Some(ONLY_B), objects(SECOND, None, Some(1))),
        beside(None, objects(SECOND, Some(SEVEN), None)),
        // The field `a` is missing.
        beside(None, objects(SECOND, None, None)),
        beside(Some(ARRAY), objects(THIRD, None, None)),
        beside(None, lists(SECOND, None, Some(1))),
        beside(Some(OBJECT), lists(THIRD, None, None)),
    ] {
        assert_eq!(lines(file), [""; 0]);
    }
}

#[test]
fn each_lie_in_a_variant_is_found_in_its_row_and_nothing_else_is() {
    let long_name: &[u8] = &[0x11, 2, 0, 1, 9, b'a', b'b'];
    for (what, file) in [
        // Metadata.
        ("metadata are empty", stored(&[], SEVEN)),
        ("metadata end before", stored(long_name, SEVEN)),
        ("name 0 of the metadata lies outside", stored(&[0x11, 2, 0, 2, 1, b'a'], SEVEN)),
        ("the first name of metadata begins", stored(&[0x11, 1, 1, 2, b'a', b'b'], SEVEN)),
        ("not UTF-8", stored(&[0x11, 1, 0, 1, 0xFF], SEVEN)),
        ("said", stored(&[0x11, 2, 0, 1, 2, b'b', b'a'], SEVEN)),
        ("said", stored(&[0x11, 2, 0, 1, 2, b'a', b'a'], SEVEN)),
        ("1 bytes follow the names", stored(&[0x11, 1, 0, 1, b'a', b'b'], SEVEN)),
        // Values.
        ("not in the order of their names", stored(NAMES, &[2, 2, 1, 0, 2, 0, 4, 12, 1, 12, 2])),
        ("two fields of the name \"a\"", stored(NAMES, &[2, 2, 0, 0, 0, 2, 4, 12, 1, 12, 2])),
        ("the name of field 1", stored(NAMES, &[2, 2, 0, 5, 0, 2, 4, 12, 1, 12, 2])),
        ("lies outside of it", stored(NAMES, &[2, 2, 0, 1, 0, 9, 4, 12, 1, 12, 2])),
        ("share bytes", stored(NAMES, &[2, 2, 0, 1, 0, 0, 2, 12, 1])),
        ("ends before its contents", stored(NAMES, &[0x18, 1])),
        ("a value takes 2 bytes", stored(NAMES, &[12, 1, 1])),
        ("scale 39", stored(NAMES, &[8 << 2, 39, 0, 0, 0, 0])),
        ("a string is not UTF-8", stored(NAMES, &[1 << 2 | 1, 0xFF])),
        // Shredding.
        ("both `value` and `typed_value` are set", beside(Some(SEVEN), integers(Some(5)))),
        ("`value` and `typed_value` are null", beside(None, integers(None))),
        ("must be an object", beside(Some(SEVEN), objects(SECOND, None, Some(1)))),
        ("is shredded, and is in `value`", beside(Some(OBJECT), objects(SECOND, None, Some(1)))),
        ("an object is in `value`", beside(Some(ONLY_B), objects(THIRD, None, None))),
        ("both `value` and", beside(None, objects(SECOND, Some(SEVEN), Some(1)))),
        ("an array is in `value`", beside(Some(ARRAY), lists(THIRD, None, None))),
        ("both `value` and", beside(Some(SEVEN), lists(SECOND, None, Some(1)))),
        ("`value` and `typed_value` are null", beside(None, lists(SECOND, None, None))),
        ("both `value` and", beside(None, lists(SECOND, Some(SEVEN), Some(1)))),
    ] {
        let found = lines(file);
        let expected = "variant-invalid g0 v row 1 of the row group: ";
        let what = if what == "said" { "say that their names are sorted" } else { what };
        let is_it = found.len() == 1 && found[0].starts_with(expected) && found[0].contains(what);
        assert!(is_it, "{what}: {found:?}");
    }
}

#[test]
fn a_variant_in_a_list_is_found_in_the_row_of_the_list() {
    let item = fields_of(vec![
        ("metadata", binary([NAMES; 4].map(Some))),
        ("value", binary([SEVEN, SEVEN, &[0x18, 1], SEVEN].map(Some))),
    ]);
    let mark = [("ARROW:extension:name", VARIANT), ("ARROW:extension:metadata", "")]
        .map(|(key, mark)| (key.to_owned(), mark.to_owned()));
    let field = Field::new("element", item.data_type().clone(), false).with_metadata(mark.into());
    let offsets = OffsetBuffer::from_lengths([1, 0, 0, 3]);
    let array = Arc::new(ListArray::new(Arc::new(field), offsets, Arc::new(item), None));
    let found = lines(one_column("list", "none", "", array));
    let expected = "variant-invalid g0 list.list.element row 3 of the row group: ";
    assert!(found.len() == 1 && found[0].starts_with(expected), "{found:?}");
}

#[test]
fn each_lie_in_a_file_reference_is_found_in_its_row_and_nothing_else_is() {
    struct Row {
        uri: Option<&'static str>,
        offset: Option<i64>,
        size: Option<i64>,
        checksum: Option<&'static str>,
        inline: Option<&'static [u8]>,
    }
    const NONE: Row = Row { uri: None, offset: None, size: None, checksum: None, inline: None };
    let uri = Some("s3://b/1");
    let file = |second: Row| {
        let (first, last) = (Row { uri, ..NONE }, Row { inline: Some(b"x"), ..NONE });
        let rows = [first, second, last];
        let texts = |of: fn(&Row) -> Option<&'static str>| -> ArrayRef {
            Arc::new(StringArray::from_iter(rows.iter().map(of)))
        };
        let numbers = |of: fn(&Row) -> Option<i64>| -> ArrayRef {
            Arc::new(Int64Array::from_iter(rows.iter().map(of)))
        };
        let children = vec![
            ("uri", texts(|row| row.uri)),
            ("offset", numbers(|row| row.offset)),
            ("size", numbers(|row| row.size)),
            ("checksum", texts(|row| row.checksum)),
            ("inline", binary(rows.iter().map(|row| row.inline))),
        ];
        one_column("f", LOGICAL_TYPE_KEY, FILE, Arc::new(fields_of(children)))
    };
    let (offset, size) = (Some(5), Some(7));
    assert_eq!(lines(file(Row { uri, offset, size, ..NONE })), [""; 0]);
    let bad = Some("CRC32:0000000G");
    for (what, row) in [
        ("neither inline nor uri is set", NONE),
        ("neither inline nor uri is set", Row { uri: Some(""), ..NONE }),
        ("offset is set, and size is not", Row { uri, offset, ..NONE }),
        ("offset is set, and uri is not", Row { inline: Some(b"x"), offset, size, ..NONE }),
        ("offset is negative", Row { uri, offset: Some(-1), size, ..NONE }),
        ("size is negative", Row { uri, size: Some(-1), ..NONE }),
        ("checksum is not lowercase hexadecimal", Row { uri, checksum: bad, ..NONE }),
    ] {
        let found = lines(file(row));
        let expected = "file-reference-invalid g0 f row 1 of the row group: ";
        let is_it = found.len() == 1 && found[0].starts_with(expected) && found[0].contains(what);
        assert!(is_it, "{what}: {found:?}");
    }
}

/// Repetition and definition levels.
type Levels = (&'static [u32], &'static [u32]);

#[test]
fn columns_that_contradict_their_siblings_are_found() {
    // optional group g { repeated group list { optional int x, y, z } }
    let schema = || {
        let list = group("list", FieldRepetitionType::Repeated, 3);
        let mut all = vec![group("g", FieldRepetitionType::Optional, 1), list];
        all.extend(
            ["x", "y", "z"].map(|name| leaf(name, Type::Int32, FieldRepetitionType::Optional)),
        );
        all
    };
    let chunk = |(rep, def): Levels| {
        let values = vec![7; def.iter().filter(|level| **level == 3).count()];
        let body = [levels_v1(rep, 1), levels_v1(def, 3), ints(&values)].concat();
        Chunk::new(Type::Int32, rep.len(), &[v1(rep.len(), Encoding::Plain, &body)])
    };
    let found = |x, y, z| {
        let mut chunks: Vec<Chunk> = [x, y, z].map(chunk).into();
        for (chunk, name) in chunks.iter_mut().zip(["x", "y", "z"]) {
            chunk.meta.path_in_schema = ["g", "list", name].map(str::to_owned).into();
        }
        let found = findings(file(schema(), 3, chunks), CheckLevel::Pages);
        let errors = found.iter().filter(|finding| finding.severity() == Severity::Error);
        errors.map(|of| format!("{} {}", line(of), of.message)).collect::<Vec<_>>()
    };
    // Null, a list of two, an empty list: leaves may be null where they like.
    let (x, y): (Levels, Levels) = ((&[0, 0, 1, 0], &[0, 3, 2, 1]), (&[0, 0, 1, 0], &[0, 2, 3, 1]));
    assert_eq!(found(x, y, x), [""; 0]);
    for (row, other) in [
        // Lists of other lengths.
        (1, (&[0, 0, 1, 1, 0][..], &[0, 3, 3, 3, 1][..])),
        (1, (&[0, 0, 0, 1], &[0, 3, 2, 2])),
        // Null where the others are empty.
        (0, (&[0, 0, 1, 0], &[1, 3, 2, 1])),
        (2, (&[0, 0, 1, 0], &[0, 3, 2, 0])),
    ] {
        let is_found = |chunks: [Levels; 3], name: &str, model: &str| {
            let [found] = &found(chunks[0], chunks[1], chunks[2])[..] else { panic!("{row}") };
            assert!(
                found.starts_with(&format!("sibling-levels-differ g0 g.list.{name}")),
                "{found}"
            );
            let first = format!("differ first in row {row} of the row group");
            assert!(found.contains(&first) && found.contains(model), "{found}");
        };
        is_found([x, y, other], "z", "g.list.x");
        is_found([x, other, y], "y", "g.list.x");
        is_found([other, x, y], "x", "g.list.y");
    }
}

#[test]
fn leaves_that_differ_are_compared_with_one_that_is_read_once() {
    // optional group g { optional int x; optional int y0, ... }, each null in another row.
    const LEAVES: u32 = 30;
    let chunk = |def: &[u32]| {
        let values = vec![7; def.iter().filter(|level| **level == 2).count()];
        let body = [levels_v1(def, 2), ints(&values)].concat();
        Chunk::new(Type::Int32, def.len(), &[v1(def.len(), Encoding::Plain, &body)])
    };
    let rows = 1_000;
    let mut schema = vec![group("g", FieldRepetitionType::Optional, 1 + LEAVES as i32)];
    schema.push(leaf("x", Type::Int32, FieldRepetitionType::Optional));
    let mut chunks = vec![chunk(&vec![2; rows])];
    chunks[0].meta.path_in_schema = vec!["g".into(), "x".into()];
    for at in 0..LEAVES {
        let name = format!("y{at}");
        schema.push(leaf(&name, Type::Int32, FieldRepetitionType::Optional));
        let mut def = vec![1; rows];
        def[at as usize] = 0;
        let mut chunk = chunk(&def);
        chunk.meta.path_in_schema = vec!["g".into(), name];
        chunks.push(chunk);
    }
    let stored: u64 = chunks.iter().map(|chunk| chunk.bytes.len() as u64).sum();
    let file = bytes::Bytes::from(file(schema, rows as i64, chunks));
    let mut found = Vec::new();
    let report = Checker::new(file).run(|finding| found.push(finding)).unwrap();
    let differ = found.iter().filter(|finding| line(finding).starts_with("sibling-levels-differ"));
    let differ = differ.count() as u64 + report.left_out;
    assert_eq!(differ, u64::from(LEAVES));
    assert!(report.bytes_read <= 2 * stored, "{} of {stored} bytes", report.bytes_read);
}

#[test]
fn a_field_is_read_once_for_all_groups_in_it() {
    const GROUPS: usize = 20;
    // In all but the first, one row has a value of no type.
    let group = |at: usize| {
        let values: Vec<&[u8]> = (0..GROUPS)
            .map(|row| if at > 0 && row == at { &[0x18, 1][..] } else { SEVEN })
            .collect();
        Arc::new(fields_of(vec![
            ("metadata", binary([NAMES; GROUPS].map(Some))),
            ("value", binary(values.into_iter().map(Some))),
        ]))
    };
    let mark = HashMap::from(
        [("ARROW:extension:name", VARIANT), ("ARROW:extension:metadata", "")]
            .map(|(key, mark)| (key.to_owned(), mark.to_owned())),
    );
    let columns: Vec<(Field, ArrayRef)> = (0..GROUPS)
        .map(|at| {
            let array = group(at);
            let field = Field::new(format!("v{at:02}"), array.data_type().clone(), false);
            (field.with_metadata(mark.clone()), array as ArrayRef)
        })
        .collect();
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = columns.into_iter().unzip();
    let array = Arc::new(StructArray::new(fields.into(), arrays, None));
    let file = one_column("s", "none", "", array);
    let len = file.len() as u64;
    let source = Watched::new(&file.into());
    let mut found = Vec::new();
    let checker =
        Checker::new(source.clone()).level(CheckLevel::Values).threads(Threads::Exactly(1));
    checker.run(|finding| found.push(format!("{} {}", line(&finding), finding.message))).unwrap();
    assert_eq!(found.len(), GROUPS - 1, "{found:?}");
    for (at, found) in (1..).zip(&found) {
        let expected = format!("variant-invalid g0 s.v{at:02} row {at} of the row group: ");
        assert!(found.starts_with(&expected), "{found}");
    }
    let read = total(&source.take());
    assert!(read < 4 * len, "{read} of {len} bytes");
}
