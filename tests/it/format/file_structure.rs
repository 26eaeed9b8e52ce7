//! Tests the file structure and thrift through whole files; unit tests of `thrift` and `format`
//! test single bytes of thrift.

use bytes::Bytes;
use marquetry::format::*;
use marquetry::{ErrorKind, Reader};
use serde_json::json;

use crate::support::*;

fn simple() -> Vec<Chunk> {
    vec![Chunk::new(Type::Int32, 3, &[v1(3, Encoding::Plain, &ints(&[1, 2, 3]))])]
}

fn schema() -> Vec<SchemaElement> {
    vec![required("v", Type::Int32)]
}

fn changed(change: impl FnOnce(&mut FileMetaData)) -> Vec<u8> {
    file_with(schema(), vec![(3, simple())], change)
}

fn one_two_three(file: Vec<u8>) {
    assert_eq!(column(&read(file).expect("rows")), [json!(1), json!(2), json!(3)]);
}

#[test]
fn files_cut_short_and_wrong_magic_numbers_are_malformed() {
    let whole = file(schema(), 3, simple());
    for cut in 0..whole.len() {
        assert!(is_malformed(whole[..cut].to_vec()), "cut at {cut}");
    }
    for at in [0, whole.len() - 1] {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        assert!(is_malformed(bytes), "byte {at}");
    }
    let mut long = whole.clone();
    let at = whole.len() - 8;
    long[at..at + 4].copy_from_slice(&u32::MAX.to_le_bytes());
    assert!(is_malformed(long));
}

#[test]
fn an_encrypted_footer_says_that_keys_are_needed() {
    let mut bytes = file(schema(), 3, simple());
    let end = bytes.len();
    bytes[..4].copy_from_slice(b"PARE");
    bytes[end - 4..].copy_from_slice(b"PARE");
    assert_eq!(kind(bytes), ErrorKind::Crypto);
}

#[test]
fn versions_1_and_2_are_the_same() {
    one_two_three(changed(|meta| meta.version = 1));
    one_two_three(changed(|meta| meta.version = 2));
}

#[test]
fn files_without_rows_or_row_groups() {
    for groups in [vec![], vec![(0, vec![Chunk::new(Type::Int32, 0, &[])])]] {
        let file = file_with(schema(), groups, |_| {});
        let reader = Reader::new(bytes::Bytes::from(file)).expect("a footer");
        assert_eq!(reader.rows().expect("a count"), 0);
        assert!(read_with(reader).expect("no rows").is_empty());
    }
    let mixed = vec![(0, vec![Chunk::new(Type::Int32, 0, &[])]), (3, simple())];
    one_two_three(file_with(schema(), mixed, |_| {}));
}

fn with_dictionary() -> Chunk {
    let indices = [&[1][..], &levels_v2(&[0, 1, 0], 1)].concat();
    Chunk::new(Type::Int32, 3, &[v1(3, Encoding::RleDictionary, &indices)])
        .with_dictionary(dictionary(2, &ints(&[5, 6])))
}

#[test]
fn dictionary_page_offset_zero_is_absent() {
    let file = file_with(schema(), vec![(3, simple())], |meta| {
        meta.row_groups[0].columns[0].meta_data.as_mut().expect("a chunk").dictionary_page_offset =
            Some(0);
    });
    one_two_three(file);
}

#[test]
fn a_dictionary_page_may_stand_at_data_page_offset() {
    let mut chunk = with_dictionary();
    chunk.says_dictionary = false;
    let file = file(schema(), 3, vec![chunk]);
    assert_eq!(column(&read(file).expect("rows")), [json!(5), json!(6), json!(5)]);
}

#[test]
fn index_page_offset_zero_is_ignored() {
    one_two_three(changed(|meta| {
        meta.row_groups[0].columns[0].meta_data.as_mut().expect("a chunk").index_page_offset =
            Some(0);
    }));
}

#[test]
fn enum_values_that_nobody_knows_matter_only_in_use() {
    let two = file_with(
        vec![required("v", Type::Int32), required("w", Type::Unknown(99))],
        vec![(3, [simple(), simple()].concat())],
        |_| {},
    );
    let reader = Reader::new(bytes::Bytes::from(two)).expect("the footer parses").threads(1);
    assert!(matches!(reader.schema().expect_err("asked for").kind(), ErrorKind::Unsupported(_)));
    let rows = read_with(reader.project(["v"]).expect("the other column")).expect("rows");
    assert_eq!(column(&rows).len(), 3);

    let file = file(
        schema(),
        3,
        vec![Chunk::new(Type::Int32, 3, &[v1(3, Encoding::Unknown(77), &ints(&[1, 2, 3]))])],
    );
    assert_eq!(kind(file), ErrorKind::Unsupported("encoding"));
}

#[test]
fn annotations_that_are_unknown_misplaced_or_empty_are_passed_over() {
    let uuid = filled!(SchemaElement {
        logical_type: Some(LogicalType::Uuid),
        ..required("v", Type::Int32)
    });
    one_two_three(file(vec![uuid], 3, simple()));
    let unknown = filled!(SchemaElement {
        logical_type: Some(LogicalType::Unrecognized(Default::default())),
        ..required("v", Type::Int32)
    });
    one_two_three(file(vec![unknown], 3, simple()));
}

#[test]
fn a_missing_required_field_is_malformed() {
    // A footer of nothing but its end.
    assert!(is_malformed(close(b"PAR1".to_vec(), &[0])));
}

#[test]
fn schema_trees_that_lie_are_malformed() {
    let lie = |change: fn(&mut Vec<SchemaElement>)| changed(|meta| change(&mut meta.schema));
    assert!(is_malformed(lie(|schema| schema[0].num_children = Some(2))));
    assert!(is_malformed(lie(|schema| schema[0].num_children = Some(0))));
    assert!(is_malformed(lie(|schema| schema[0].num_children = Some(-1))));
    assert!(is_malformed(lie(|schema| schema[0].num_children = Some(i32::MAX))));
    assert!(is_malformed(lie(|schema| schema[1].r#type = None)));
    assert!(is_malformed(lie(|schema| schema.clear())));
    one_two_three(lie(|schema| schema[1].num_children = Some(0)));
}

#[test]
fn a_bomb_of_nesting_is_a_limit() {
    let mut schema: Vec<SchemaElement> =
        (0..2_000).map(|_| group("g", FieldRepetitionType::Optional, 1)).collect();
    schema.push(required("v", Type::Int32));
    assert!(matches!(kind(file(schema, 3, simple())), ErrorKind::Limit(_)));
}

#[test]
fn a_repetition_that_does_not_exist_is_an_error() {
    let odd = filled!(SchemaElement {
        repetition_type: Some(FieldRepetitionType::Unknown(7)),
        ..required("v", Type::Int32)
    });
    assert!(matches!(
        kind(file(vec![odd], 3, simple())),
        ErrorKind::Unsupported(_) | ErrorKind::Malformed(_)
    ));
}

#[test]
fn what_is_only_proposed_is_unsupported_by_name() {
    let vector = filled!(SchemaElement {
        repetition_type: Some(FieldRepetitionType::Unknown(3)),
        ..required("v", Type::Int32)
    });
    let mut footer = file(schema(), 3, simple());
    let end = footer.len();
    footer[end - 4..].copy_from_slice(b"PARX");
    let files = [
        ("VECTOR", file(vec![vector], 3, simple())),
        ("PARX", footer),
        ("version 3", changed(|meta| meta.version = 3)),
    ];
    for (name, bytes) in files {
        let error = read(bytes).expect_err(name);
        assert!(matches!(error.kind(), ErrorKind::Unsupported(_)), "{error}");
        assert!(error.to_string().contains(name), "{error}");
    }
}

#[test]
fn columns_without_paths_are_found_by_their_order() {
    let two = vec![required("a", Type::Int32), required("b", Type::Int32)];
    let chunk = |values: &[i32]| {
        let page = v1(values.len(), Encoding::Plain, &ints(values));
        Chunk::new(Type::Int32, values.len(), &[page])
    };
    let chunks = vec![chunk(&[1, 2]), chunk(&[3, 4])];
    let bytes = file_with(two, vec![(2, chunks)], |meta| {
        for chunk in &mut meta.row_groups[0].columns {
            chunk.meta_data.as_mut().expect("a chunk").path_in_schema = Vec::new();
        }
    });
    let reader = Reader::new(Bytes::from(bytes)).expect("a footer").project(["b"]).expect("b");
    assert_eq!(column(&read_with(reader).expect("rows")), [json!(3), json!(4)]);
}

#[test]
fn offsets_of_a_chunk_without_values_are_not_followed() {
    let file = file_with(schema(), vec![(0, vec![Chunk::new(Type::Int32, 0, &[])])], |meta| {
        let meta = meta.row_groups[0].columns[0].meta_data.as_mut().expect("a chunk");
        (meta.data_page_offset, meta.total_compressed_size) = (i64::MAX, i64::MAX);
        meta.key_value_metadata = Some(vec![filled!(KeyValue { key: "k".into(), value: None })]);
    });
    let reader = Reader::new(bytes::Bytes::from(file)).expect("a footer");
    let chunk = reader.metadata().column_chunk(0, 0).expect("metadata");
    let pair = &chunk.meta_data.expect("a chunk").key_value_metadata.expect("a list")[0];
    assert_eq!(pair.value, None, "absent is not empty");
    assert!(read_with(reader).expect("no rows").is_empty());
}

#[test]
fn field_ids_and_key_values_reach_arrow() {
    let file = file_with(
        vec![filled!(SchemaElement { field_id: Some(-7), ..required("v", Type::Int32) })],
        vec![(3, simple())],
        |meta| {
            meta.key_value_metadata =
                Some(vec![filled!(KeyValue { key: "who".into(), value: Some("me".into()) })])
        },
    );
    let schema =
        Reader::new(bytes::Bytes::from(file)).expect("a footer").schema().expect("a schema");
    assert_eq!(schema.field(0).metadata()["PARQUET:field_id"], "-7");
    assert_eq!(schema.metadata()["who"], "me");
}

#[test]
fn any_created_by_is_accepted() {
    for text in
        [None, Some(""), Some("parquet-mr"), Some("my tool version x.y (build"), Some("\u{1F980}")]
    {
        one_two_three(changed(|meta| meta.created_by = text.map(str::to_owned)));
    }
}

#[test]
fn data_in_another_file_are_refused_and_metadata_are_not() {
    let file =
        changed(|meta| meta.row_groups[0].columns[0].file_path = Some("part-0.parquet".into()));
    let reader = Reader::new(bytes::Bytes::from(file)).expect("a footer").threads(1);
    assert_eq!(reader.rows().expect("a count"), 3);
    let error = read_with(reader).expect_err("the data lie elsewhere");
    assert_eq!(error.kind(), ErrorKind::Unsupported("column chunks in other files"));
}

#[test]
fn chunks_outside_the_file_are_malformed() {
    for (offset, len) in [(-1, 10), (1 << 40, 10), (4, i64::MAX), (4, -1)] {
        assert!(is_malformed(changed(|meta| {
            let meta = meta.row_groups[0].columns[0].meta_data.as_mut().expect("a chunk");
            (meta.data_page_offset, meta.total_compressed_size) = (offset, len);
        })));
    }
}

#[test]
fn an_error_says_where_it_happened() {
    let mut bytes = file(
        schema(),
        3,
        vec![Chunk::new(Type::Int32, 3, &[v1(3, Encoding::Plain, &ints(&[1, 2]))])],
    );
    bytes.truncate(bytes.len());
    let error = read(bytes).expect_err("a value is missing");
    let at = error.at();
    assert_eq!((at.row_group, at.column.as_deref(), at.page), (Some(0), Some("v"), Some(0)));
}

#[test]
fn a_tail_that_is_given_too_few_ranges_does_not_blame_the_file() {
    use marquetry::read::Tail;
    let long = Chunk::new(Type::Int32, 30_000, &[v1(30_000, Encoding::Plain, &[7; 120_000])]);
    let file: Bytes = file(schema(), 30_000, vec![long]).into();
    let tail = || Tail::new(file.len() as u64).expect("long enough");
    let tail_of = tail();
    let given: Vec<Bytes> = tail_of
        .needs()
        .iter()
        .map(|range| file.slice(range.start as usize..range.end as usize))
        .collect();
    assert_eq!(given.len(), 2);
    let limits = marquetry::Limits::default();
    for wrong in [&given[1..], &given[..1], &[], &[&given[..], &given[1..]].concat()] {
        let error = tail().supply(wrong, &limits).expect_err("another number of ranges");
        assert_eq!(error.kind(), ErrorKind::Usage, "{} ranges: {error}", wrong.len());
    }
    tail().supply(&given, &limits).expect("the tail of a file");
}
