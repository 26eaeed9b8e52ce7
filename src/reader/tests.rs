//! Tests that the work for a footer of some hundred KB grows with its length, not with its square;
//! and which decompressed pages a reader keeps.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields, Schema};
use bytes::Bytes;

use super::Reader;
use crate::format::*;
use crate::schema::MatchBy;
use crate::steps;

fn leaf(name: String, r#type: Type) -> SchemaElement {
    let repetition_type = Some(FieldRepetitionType::Optional);
    SchemaElement { r#type: Some(r#type), repetition_type, name, ..Default::default() }
}

fn group(name: &str, children: usize) -> SchemaElement {
    let repetition_type = Some(FieldRepetitionType::Optional);
    let num_children = i32::try_from(children).ok();
    SchemaElement { repetition_type, name: name.into(), num_children, ..Default::default() }
}

/// A file without rows: `fields` of the root, its elements, and `row_groups` times a chunk for each
/// leaf.
fn file(
    fields: usize,
    elements: Vec<SchemaElement>,
    row_groups: usize,
    key_values: Option<Vec<KeyValue>>,
) -> Bytes {
    let chunk = |element: &SchemaElement| {
        let meta_data = Some(ColumnMetaData {
            r#type: element.r#type?,
            encodings: vec![Encoding::Plain],
            path_in_schema: vec![element.name.clone()],
            data_page_offset: 4,
            ..Default::default()
        });
        Some(ColumnChunk { meta_data, ..Default::default() })
    };
    let columns: Vec<ColumnChunk> = elements.iter().filter_map(chunk).collect();
    let mut schema = vec![group("schema", fields)];
    schema.extend(elements);
    let row_groups = vec![RowGroup { columns, ..Default::default() }; row_groups];
    let key_value_metadata = key_values;
    let meta =
        FileMetaData { version: 1, schema, row_groups, key_value_metadata, ..Default::default() };
    let footer = meta.to_thrift();
    let len = u32::try_from(footer.len()).unwrap().to_le_bytes();
    [b"PAR1", &footer[..], &len, b"PAR1"].concat().into()
}

/// A footer of many parts.
type Make = fn(usize) -> Bytes;

fn name(i: usize) -> String {
    format!("c{i}")
}

fn leaves(n: usize) -> Vec<SchemaElement> {
    (0..n).map(|i| leaf(name(i), Type::Int32)).collect()
}

fn pairs(n: usize, value: impl Fn(usize) -> String) -> Option<Vec<KeyValue>> {
    let pair = |i| KeyValue { key: name(i), value: Some(value(i)), ..Default::default() };
    Some((0..n).map(pair).collect())
}

fn flat(n: usize) -> Bytes {
    file(n, leaves(n), 1, None)
}

fn one_struct(n: usize) -> Bytes {
    file(1, [vec![group("s", n)], leaves(n)].concat(), 1, None)
}

fn equal_names(n: usize) -> Bytes {
    file(1, [vec![group("s", n)], vec![leaf(name(0), Type::Int32); n]].concat(), 1, None)
}

fn row_groups(n: usize) -> Bytes {
    file(4, leaves(4), n / 4, None)
}

fn key_values(n: usize) -> Bytes {
    file(1, leaves(1), 1, pairs(n, name))
}

fn coordinate_systems(n: usize) -> Bytes {
    let column = |i: usize| {
        let crs = Some(format!("projjson:{}", name(i)));
        let geometry = LogicalType::Geometry(GeometryType { crs, ..Default::default() });
        SchemaElement { logical_type: Some(geometry), ..leaf(name(i), Type::ByteArray) }
    };
    file(n, (0..n).map(column).collect(), 1, pairs(n, |_| "{\"a\":1}".to_owned()))
}

/// All that needs no rows.
fn look_at_all(file: Bytes) {
    let reader = Reader::new(file).expect("a footer").threads(1);
    let arrow = reader.schema().expect("a schema");
    let metadata = reader.metadata();
    let schema = metadata.schema();
    let leaves: Vec<_> =
        (0..schema.leaves_len()).map(|i| schema.leaf(i).expect("a leaf")).collect();
    assert_eq!(schema.to_string().is_empty(), leaves.is_empty());
    for row_group in 0..metadata.row_groups() {
        for chunk in metadata.column_chunks(row_group).expect("chunks") {
            chunk.expect("a chunk");
        }
        for leaf in 0..schema.leaves_len() {
            metadata.column_chunk(row_group, leaf).expect("a chunk");
        }
    }
    // By name, each for itself and all at once; equal names are refused, and soon.
    let paths: Vec<String> = leaves.iter().map(|leaf| leaf.path.dotted()).collect();
    let found = paths.iter().filter(|path| schema.leaf_named(path).is_ok()).count();
    if found == paths.len() {
        let all = reader.clone().project(&paths).expect("columns");
        assert_eq!(all.schema().expect("a schema").fields().len(), arrow.fields().len());
    }
    let some = metadata.column_statistics(0, &reader.read_options().arrow);
    assert_eq!(some.expect("statistics").len(), metadata.row_groups());
    assert_eq!(reader.count().expect("a count"), 0);
    // As a target, in another order.
    let back = |fields: &Fields| -> Fields { fields.iter().rev().cloned().collect() };
    let turned = arrow.fields().iter().map(|field| match field.data_type() {
        DataType::Struct(fields) => {
            let data_type = DataType::Struct(back(fields));
            Arc::new(Field::new(field.name(), data_type, field.is_nullable()))
        }
        _ => Arc::clone(field),
    });
    let target = Schema::new(back(&turned.collect()));
    if found == paths.len() {
        reader.target(Arc::new(target), MatchBy::Name).expect("reachable");
    }
}

#[test]
fn work_grows_with_the_length_of_the_footer_and_not_faster() {
    const TIMES: usize = 6;
    let kinds: [(&str, Make); 6] = [
        ("columns", flat),
        ("children of one struct", one_struct),
        ("children with one name", equal_names),
        ("row groups", row_groups),
        ("key-values", key_values),
        ("coordinate systems", coordinate_systems),
    ];
    for (kind, make) in kinds {
        let (few, many) = (make(1_500), make(1_500 * TIMES));
        let steps = |file: Bytes| steps::taken_by(|| look_at_all(file));
        let (few, many) = (steps(few), steps(many));
        assert!(few > 1_500, "{kind}: steps are counted");
        // A little more than the ratio of the lengths, for what is looked up by halving.
        assert!(many <= few * (TIMES + 2), "{kind}: {few} steps, then {many}");
    }
}

#[cfg(feature = "encryption")]
#[test]
fn a_dictionary_that_was_decrypted_does_not_outlive_its_read() {
    use arrow_array::{ArrayRef, RecordBatch, StringArray};

    use crate::crypt::{Decryption, Encryption, Key};
    use crate::io::WriteSink;
    use crate::limits::Limits;
    use crate::write::WriteOptions;
    use crate::{Compression, Writer};

    let texts = StringArray::from_iter_values((0..10_000).map(|i| format!("text {}", i % 50)));
    let batch = RecordBatch::try_from_iter([("s", Arc::new(texts) as ArrayRef)]).unwrap();
    let key = || Key::new(&[7; 16]).unwrap();
    let held_after_reads = |options: WriteOptions| {
        let options = options.with_compression(Compression::Snappy).with_page_rows(1000);
        let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        let file = Bytes::from(writer.into_inner().unwrap().1);
        let keys = Decryption::new().with_footer_key(key()).with_plaintext_files(true);
        let mut reader = Reader::with_keys(file, Limits::default(), &keys).unwrap();
        reader.options.page_index = crate::read::PageIndexUse::Always;
        [(); 2].map(|()| {
            reader.take(&[5000]).unwrap();
            reader.page_cache.bytes_held()
        })
    };
    let [first, second] = held_after_reads(WriteOptions::new());
    assert!(second > first, "a dictionary that was read twice is kept");
    let [first, second] =
        held_after_reads(WriteOptions::new().with_encryption(Encryption::new(key())));
    assert_eq!(first, second);
}
