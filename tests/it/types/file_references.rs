//! Tests FILE columns in both directions: they are marked in Arrow, and their children are ordinary
//! columns.

use std::sync::Arc;

use bytes::Bytes;
use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::*;
use marquetry::arrow_schema::{DataType, Field, Schema};
use marquetry::file_reference::{Checksum, FileColumn, FileTarget};
use marquetry::format::LogicalType;
use marquetry::io::WriteSink;
use marquetry::schema::{Dictionaries, FILE, LOGICAL_TYPE_KEY};
use marquetry::{ErrorKind, Reader, Result, WriteOptions, Writer, col};

use crate::support::read_with;

fn marked(children: Vec<Field>) -> Field {
    let mark = [(LOGICAL_TYPE_KEY.to_owned(), FILE.to_owned())];
    Field::new("file", DataType::Struct(children.into()), true).with_metadata(mark.into())
}

fn write(children: Vec<(&str, ArrayRef)>, options: WriteOptions) -> Result<Bytes> {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = children
        .into_iter()
        .map(|(name, array)| (Field::new(name, array.data_type().clone(), true), array))
        .unzip();
    let nulls = vec![true, false, true].into();
    let group = StructArray::new(fields.clone().into(), arrays, Some(nulls));
    let schema = Arc::new(Schema::new(vec![marked(fields)]));
    let batch = RecordBatch::try_new(schema, vec![Arc::new(group)]).expect("a batch");
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options)?;
    writer.write(&batch)?;
    Ok(writer.into_inner()?.1.into())
}

fn texts(values: [Option<&str>; 3]) -> ArrayRef {
    Arc::new(StringArray::from(values.to_vec()))
}

fn ints(values: [Option<i64>; 3]) -> ArrayRef {
    Arc::new(Int64Array::from(values.to_vec()))
}

#[test]
fn any_children_in_any_order_come_back_with_their_mark_and_statistics() {
    let uri = || texts([Some("s3://b/1"), None, Some("s3://b/2")]);
    let size = || ints([Some(10), None, Some(30)]);
    let offset = || ints([None, None, Some(5)]);
    let checksum = || texts([Some("ETAG:x"), None, Some("CRC32:00000000")]);
    let kind = || texts([Some("image/png"), None, None]);
    let inline = || -> ArrayRef { Arc::new(BinaryArray::from(vec![None, None, None])) };
    for children in [
        vec![
            ("uri", uri()),
            ("offset", offset()),
            ("size", size()),
            ("content_type", kind()),
            ("checksum", checksum()),
            ("inline", inline()),
        ],
        vec![("size", size()), ("checksum", checksum()), ("uri", uri()), ("offset", offset())],
        vec![("uri", uri())],
    ] {
        for hint in [true, false] {
            let names: Vec<&str> = children.iter().map(|(name, _)| *name).collect();
            let options = WriteOptions::new().with_hint(hint);
            let reader = Reader::new(write(children.clone(), options).expect("a file"));
            let reader = reader.expect("a file");
            let footer = reader.metadata();
            let node = footer.schema().node_named("file").expect("a group");
            assert_eq!(node.element().logical_type, Some(LogicalType::File));
            assert_eq!(node.children().map(|child| child.name()).collect::<Vec<_>>(), names);
            // Children are ordinary columns, with statistics and indexes.
            for (i, name) in names.iter().enumerate() {
                let chunk = footer.column_chunk(0, i).expect("a chunk");
                let statistics = chunk.meta_data.and_then(|meta| meta.statistics).expect("some");
                let expected: Option<&[u8]> = match *name {
                    "uri" => Some(b"s3://b/1"),
                    "size" => Some(&[10, 0, 0, 0, 0, 0, 0, 0]),
                    "offset" => Some(&[5, 0, 0, 0, 0, 0, 0, 0]),
                    "checksum" => Some(b"CRC32:00000000"),
                    "content_type" => Some(b"image/png"),
                    _ => None,
                };
                assert_eq!(statistics.min_value.as_deref(), expected, "{name}");
                assert!(chunk.column_index_offset.is_some(), "{name}");
            }
            for dictionaries in [Dictionaries::None, Dictionaries::Strings] {
                let reader = reader.clone().dictionaries(dictionaries);
                let schema = reader.schema().expect("a schema");
                assert!(FileColumn::is_file(schema.field(0)), "hint {hint}");
                let batches = read_with(reader).expect("rows");
                let files = FileColumn::new(batches[0].column(0).as_struct()).expect("a column");
                let found: Vec<_> = files.iter().collect();
                let all = names.len() > 1;
                let range = |range| if all { Some(range) } else { None };
                let external = |uri, range| FileTarget::External { uri, range };
                assert_eq!(found[0].target, external("s3://b/1", range(0..10)));
                assert_eq!(found[1].target, FileTarget::Null);
                assert_eq!(found[2].target, external("s3://b/2", range(5..35)));
                assert_eq!(found[0].checksum, all.then_some(Checksum::Etag("x")));
                files.check().expect("what may be written");
            }
            let second = reader.filter(col("file.uri").eq("s3://b/2"));
            assert_eq!(second.count().expect("a count"), 1);
        }
    }
}

#[test]
fn invalid_values_are_read_and_copied_and_said_to_be_so() {
    let children = vec![
        ("offset", ints([Some(1), None, Some(-1)])),
        ("size", ints([None, None, Some(3)])),
        ("uri", texts([Some("u"), None, Some("u")])),
    ];
    let reader = Reader::new(write(children, WriteOptions::new()).expect("a file"));
    let batches = read_with(reader.expect("a file")).expect("rows");
    let files = FileColumn::new(batches[0].column(0).as_struct()).expect("a column");
    for row in [0, 2] {
        let found = files.get(row).expect("a row");
        assert!(matches!(found.target, FileTarget::Invalid(_)), "{found:?}");
    }
    assert_eq!(files.check().expect_err("row 0").kind(), ErrorKind::Usage);
}

#[test]
fn a_child_that_the_format_does_not_know_is_refused_at_open() {
    for children in [
        vec![("uri", texts([None; 3])), ("mtime", ints([None; 3]))],
        vec![("size", texts([None; 3]))],
        vec![("URI", texts([None; 3]))],
    ] {
        let error = write(children, WriteOptions::new()).expect_err("no FILE column");
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
}
