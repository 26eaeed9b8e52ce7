//! A file of one page, laid out by hand: every line of it.

use arrow_array::{ArrayRef, ListArray, RecordBatch, StringArray, types::Int32Type};
use marquetry::arrow_array;
use marquetry::inspect::{SpanKind, Value};
use marquetry::{Compression, PageVersion, WriteOptions, Writer};
use std::sync::Arc;

use super::spans::{Tree, tree};

fn written(column: ArrayRef, options: WriteOptions) -> Vec<u8> {
    let batch = RecordBatch::try_from_iter([("a", column)]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.parquet");
    let mut writer = Writer::create_with(&path, batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    std::fs::read(path).unwrap()
}

fn options(version: PageVersion) -> WriteOptions {
    WriteOptions::new()
        .with_compression(Compression::Uncompressed)
        .with_dictionary(false)
        .with_page_version(version)
}

fn all(trees: &[Tree], kind: SpanKind) -> Vec<&Tree> {
    trees.iter().flat_map(|tree| tree.all(kind)).collect()
}

fn list(value: Option<&Value>) -> Vec<Value> {
    match value {
        Some(Value::List(items)) => items.iter().collect(),
        other => panic!("{other:?} is no list"),
    }
}

#[test]
fn a_value_has_its_length_and_its_bytes() {
    let column = Arc::new(StringArray::from(vec![Some("text1"), None, Some("t2")]));
    for version in [PageVersion::V1, PageVersion::V2] {
        let trees = tree(&written(column.clone(), options(version)), None);
        let values = all(&trees, SpanKind::Value);
        let texts: Vec<String> = values
            .iter()
            .map(|tree| match &tree.span.value {
                Some(Value::Text(text)) => text.to_string(),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(texts, ["text1", "t2"]);
        let first = values[0];
        let kinds: Vec<_> = first.children.iter().map(|tree| tree.span.kind).collect();
        assert_eq!(kinds, [SpanKind::Length, SpanKind::ValueBytes]);
        assert_eq!(first.children[0].span.value, Some(Value::UInt(5)));
        let levels = all(&trees, SpanKind::DefinitionLevels);
        let ints = [1, 0, 1].map(Value::Int);
        assert_eq!(list(levels[0].span.value.as_ref()), ints);
    }
}

#[test]
fn slots_of_nested_columns_say_what_their_levels_mean() {
    let column = ListArray::from_iter_primitive::<Int32Type, _, _>([
        Some(vec![Some(7), None]),
        None,
        Some(vec![]),
        Some(vec![Some(9)]),
    ]);
    for version in [PageVersion::V1, PageVersion::V2] {
        let trees = tree(&written(Arc::new(column.clone()), options(version)), None);
        let kind =
            if version == PageVersion::V1 { SpanKind::DataPage } else { SpanKind::DataPageV2 };
        let pages = all(&trees, kind);
        let slots: Vec<_> = pages[0].span.slots().unwrap().map(Result::unwrap).collect();
        let texts: Vec<&str> = slots.iter().map(|slot| slot.text.as_str()).collect();
        assert_eq!(
            texts,
            [
                "r=0, d=3 of 3: a value",
                "r=1, d=2 of 3: another `list`: `list` is there, `element` is null",
                "r=0, d=0 of 3: `a` is null",
                "r=0, d=1 of 3: `a` is there, `list` is empty",
                "r=0, d=3 of 3: a value",
            ]
        );
        assert!(slots.iter().all(|slot| slot.count == 1));
    }
}

#[test]
fn fields_of_the_metadata_have_names_ids_types_values_and_meanings() {
    let column = Arc::new(StringArray::from(vec!["b", "a"]));
    let trees = tree(&written(column, options(PageVersion::V2)), None);
    let fields = all(&trees, SpanKind::Field);
    let field = |name: &str| {
        let found = fields.iter().find(|tree| tree.span.name == name);
        &found.unwrap_or_else(|| panic!("no field {name}")).span
    };
    let kind = field("type");
    assert_eq!(kind.field.unwrap().id, 1);
    assert_eq!(kind.field.unwrap().thrift_type, "PageType");
    assert_eq!(kind.value, Some(Value::Int(3)));
    assert!(kind.text.as_ref().unwrap().starts_with("DATA_PAGE_V2: "));
    let rows = field("num_rows");
    assert_eq!((rows.field.unwrap().id, rows.field.unwrap().thrift_type), (3, "i32"));
    assert_eq!(rows.value, Some(Value::Int(2)));
    let elements = all(&trees, SpanKind::Element);
    let min = elements.iter().find(|tree| tree.span.name == "min_values[0]").unwrap();
    assert!(matches!(&min.span.value, Some(Value::Text(text)) if &**text == "a"));
}
