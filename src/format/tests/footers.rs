//! Tests of whole footers, and of what is decoded of them on demand.

use super::schema_elements::assert_is_same;
use super::spelled::Spelled;
use super::*;

#[test]
fn footer_index_agrees_with_the_whole_footer() {
    let spelled = Spelled::new();
    for seed in 0..200 {
        let mut rng = Rng::with_seed(seed);
        let (mut tree, _) = spelled.random("FileMetaData", &mut rng);
        if rng.bool() {
            oracle::add_unknown_fields(&mut tree, &mut rng);
        }
        let mut bytes = oracle::write(&tree);
        let len = bytes.len();
        bytes.extend([0x55; 28]);
        let whole = FileMetaData::read(&mut ThriftReader::new(&bytes)).unwrap();
        let mut index = FooterIndex::parse(Bytes::from(bytes)).unwrap();
        assert_eq!(index.byte_len(), len, "seed {seed}");
        assert_eq!(index.head().schema.len(), whole.schema.len());
        let elements = index.take_schema();
        assert_eq!(elements.len(), whole.schema.len());
        for (i, element) in (0u32..).zip(&whole.schema) {
            assert_is_same(&elements, i, element);
        }
        assert_eq!(index.to_file_meta_data().unwrap(), whole);
        let head = index.head();
        assert_eq!(head.version, whole.version);
        assert_eq!(head.num_rows, whole.num_rows);
        assert_eq!(head.key_value_metadata, whole.key_value_metadata);
        assert_eq!(head.created_by, whole.created_by);
        let orders = head.column_orders.as_ref().map(|orders| orders.iter().cloned().collect());
        assert_eq!(orders, whole.column_orders, "seed {seed}");
        assert_eq!(head.encryption_algorithm, whole.encryption_algorithm);
        assert_eq!(head.footer_signing_key_metadata, whole.footer_signing_key_metadata);
        assert_eq!(head.row_groups.len(), whole.row_groups.len());
        for (i, (ours, theirs)) in head.row_groups.iter().zip(&whole.row_groups).enumerate() {
            assert_eq!(ours.total_byte_size, theirs.total_byte_size);
            assert_eq!(ours.num_rows, theirs.num_rows);
            assert_eq!(ours.sorting_columns, theirs.sorting_columns);
            assert_eq!(ours.file_offset, theirs.file_offset);
            assert_eq!(ours.total_compressed_size, theirs.total_compressed_size);
            assert_eq!(ours.ordinal, theirs.ordinal);
            assert_eq!(ours.columns.len(), theirs.columns.len());
            for (j, chunk) in theirs.columns.iter().enumerate() {
                assert_eq!(&index.column_chunk(i, j).unwrap(), chunk, "seed {seed}");
            }
            let error = index.column_chunk(i, theirs.columns.len()).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Usage);
        }
        assert_eq!(
            index.column_chunk(head.row_groups.len(), 0).unwrap_err().kind(),
            ErrorKind::Usage
        );
    }
}

#[test]
fn a_megabyte_of_mutations_is_read_or_malformed() {
    let spelled = Spelled::new();
    let mut rng = Rng::with_seed(1);
    let mut row_groups = Vec::new();
    let mut size = 0;
    while size < 1 << 20 {
        let (tree, _) = spelled.random("RowGroup", &mut rng);
        size += oracle::write(&tree).len();
        row_groups.push(tree);
    }
    let footer = ProtocolValue::Struct(vec![
        (1, ProtocolValue::I32(1)),
        (2, ProtocolValue::List(thrift::protocol::TType::Struct, Vec::new())),
        (3, ProtocolValue::I64(0)),
        (4, ProtocolValue::List(thrift::protocol::TType::Struct, row_groups)),
    ]);
    let whole = oracle::write(&footer);
    FileMetaData::read(&mut ThriftReader::new(&whole)).unwrap();
    for round in 0..100 {
        let mut bytes = whole.clone();
        for _ in 0..=round / 10 {
            mutate(&mut bytes, &mut rng);
        }
        let read = FileMetaData::read(&mut ThriftReader::new(&bytes));
        let index = FooterIndex::parse(Bytes::from(bytes));
        if let Ok(read) = &read {
            assert_eq!(index.as_ref().unwrap().head().row_groups.len(), read.row_groups.len());
        }
        for error in [read.err(), index.err()].into_iter().flatten() {
            assert!(is_expected(&error), "round {round}: {error}");
        }
    }
    let noise: Vec<u8> = std::iter::repeat_with(|| rng.u8(..)).take(1 << 20).collect();
    for start in (0..noise.len()).step_by(97) {
        if let Err(error) = FileMetaData::read(&mut ThriftReader::new(&noise[start..])) {
            assert!(is_expected(&error), "{error}");
        }
    }
}

#[test]
fn footer_that_claims_a_gigantic_list_is_malformed_at_once() {
    // Field 4 claims 2^32 - 1 row groups, then a megabyte of stops follows.
    let mut bytes =
        vec![0x15, 0x02, 0x19, 0x0C, 0x16, 0x00, 0x19, 0xFC, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F];
    bytes.resize(1 << 20, 0);
    let error = FileMetaData::read(&mut ThriftReader::new(&bytes)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed(Spec::Metadata("FileMetaData")));
    let error = FooterIndex::parse(Bytes::from(bytes)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed(Spec::Metadata("FileMetaData")));
    assert!(error.message().contains("row_groups"), "{error}");
}

#[test]
fn copies_of_a_footer_are_equal_and_have_what_is_not_known() {
    let pair = KeyValue::new("key", "value");
    let chunk = ColumnChunk { file_offset: 7, ..ColumnChunk::default() };
    let mut group = RowGroup { columns: vec![chunk; 3], num_rows: 5, ..RowGroup::default() };
    group.sorting_columns = Some(vec![SortingColumn::new(1)]);
    group.unknown.push(crate::thrift::Field { id: 30, ty: wire::TRUE }, &[]).unwrap();
    let footer = FileMetaData {
        version: 2,
        schema: vec![SchemaElement { name: "schema".into(), ..SchemaElement::default() }],
        num_rows: 5,
        row_groups: vec![group],
        key_value_metadata: Some(vec![pair]),
        created_by: Some("a writer".into()),
        column_orders: Some(vec![ColumnOrder::TypeOrder]),
        footer_signing_key_metadata: Some(vec![1, 2]),
        ..FileMetaData::default()
    };
    assert_eq!(footer.copied().unwrap(), footer);
    assert_eq!(footer.copied().unwrap().to_thrift(), footer.to_thrift());
}

#[test]
fn the_chunks_of_a_row_group_are_walked_until_one_is_malformed() {
    let chunk = |at: i64| ColumnChunk {
        file_offset: at,
        offset_index_offset: Some(10 * at),
        offset_index_length: Some(6),
        column_index_offset: Some(20 * at),
        column_index_length: Some(8),
        crypto_metadata: (at == 2).then_some(ColumnCryptoMetaData::EncryptionWithFooterKey),
        ..ColumnChunk::default()
    };
    let group = RowGroup { columns: (0..3).map(chunk).collect(), ..RowGroup::default() };
    let row_groups = vec![group, RowGroup::default()];
    let footer = FileMetaData { row_groups, ..FileMetaData::default() };
    let index = FooterIndex::parse(footer.to_thrift().into()).unwrap();
    let heads = index.head().row_groups.iter().map(|head| head.columns.is_empty());
    assert_eq!(heads.collect::<Vec<_>>(), [false, true]);
    assert!(index.head().schema.is_empty());
    let mut chunks = index.column_chunks(0).unwrap();
    assert_eq!(chunks.next().unwrap().unwrap().file_offset, 0);
    assert_eq!(chunks.size_hint(), (2, Some(2)));
    assert_eq!(chunks.map(|chunk| chunk.unwrap().file_offset).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(index.column_chunks(1).unwrap().count(), 0);
    assert_eq!(index.column_chunks(2).unwrap_err().kind(), ErrorKind::Usage);
    // Where the indexes are, by a way that skips all else.
    let places = index.index_places(0, [0, 1, 2]).unwrap();
    for (column, places) in places.iter().enumerate() {
        let chunk = index.column_chunk_ref(0, column).unwrap();
        assert_eq!(*places, IndexPlaces::from(&chunk));
        assert_eq!(places.offset_index_offset, Some(10 * column as i64));
        assert_eq!(places.encrypted, column == 2);
    }
    assert_eq!(index.index_places(0, [3]).unwrap_err().kind(), ErrorKind::Usage);
    // The second one has no `file_offset`.
    let tree = |fields| ProtocolValue::Struct(fields);
    let offset = |at| tree(vec![(2, ProtocolValue::I64(at))]);
    let list = |all| ProtocolValue::List(thrift::protocol::TType::Struct, all);
    let group = tree(vec![
        (1, list(vec![offset(0), tree(vec![(4, ProtocolValue::I64(4))]), offset(2)])),
        (2, ProtocolValue::I64(0)),
        (3, ProtocolValue::I64(0)),
    ]);
    let footer = tree(vec![
        (1, ProtocolValue::I32(1)),
        (2, list(Vec::new())),
        (3, ProtocolValue::I64(0)),
        (4, list(vec![group])),
    ]);
    let index = FooterIndex::parse(oracle::write(&footer).into()).unwrap();
    let mut chunks = index.column_chunks(0).unwrap();
    assert!(chunks.next().unwrap().is_ok());
    let error = chunks.next().unwrap().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed(Spec::Metadata("ColumnChunk")));
    assert_eq!(chunks.next().unwrap().unwrap().file_offset, 2);
    assert!(chunks.next().is_none());
    assert_eq!(index.column_chunk(0, 2).unwrap().file_offset, 2);
    assert_eq!(index.to_file_meta_data().unwrap_err().kind(), error.kind());
}
