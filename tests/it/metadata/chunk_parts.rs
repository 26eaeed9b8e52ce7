//! Tests of bloom filters and dictionaries of column chunks, read apart from rows.

use std::collections::BTreeSet;

use arrow_array::cast::AsArray;
use arrow_array::types::Int32Type;
use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt32Array};
use bytes::Bytes;
#[cfg(feature = "encryption")]
use marquetry::crypt::Encryption;
use marquetry::format::{Encoding, Type};
use marquetry::io::WriteSink;
use marquetry::{ErrorKind, Limits, Reader, WriteOptions, Writer, col, lit};

#[cfg(feature = "encryption")]
use crate::encryption;
use crate::support::{Chunk, dictionary, file, file_with, ints, required, testdata, v1};

fn written(columns: Vec<(&str, ArrayRef)>, options: WriteOptions) -> Reader {
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    Reader::new(Bytes::from(writer.into_inner().unwrap().1)).unwrap()
}

fn with_blooms(names: &[&str]) -> WriteOptions {
    let options = WriteOptions::new().with_row_group_rows(100);
    names.iter().fold(options, |options, name| {
        options.with_column(*name, |of| of.with_bloom(Default::default()))
    })
}

#[test]
fn filters_find_what_is_there_and_seldom_what_is_not() {
    let numbers: ArrayRef = std::sync::Arc::new(Int64Array::from_iter_values(0..300));
    let words: ArrayRef =
        std::sync::Arc::new(StringArray::from_iter_values((0..300).map(|i| format!("w{i}"))));
    let small: ArrayRef = std::sync::Arc::new(UInt32Array::from_iter_values(0..300));
    let columns = vec![("n", numbers), ("a.b", words), ("u", small)];
    let reader = written(columns, with_blooms(&["n", "a.b", "u"]));
    let mut wrong = 0;
    for group in 0..3 {
        let filters: Vec<_> =
            (0..3).map(|leaf| reader.bloom_filter(group, leaf).unwrap().unwrap()).collect();
        for i in 0..300 {
            let is_there = (100 * group..100 * (group + 1)).contains(&(i as usize));
            let found = [
                filters[0].might_contain(i).unwrap(),
                filters[0].might_contain(lit(i.to_string()).by_value()).unwrap(),
                filters[1].might_contain(format!("w{i}")).unwrap(),
                filters[2].might_contain(i).unwrap(),
            ];
            assert!(!is_there || found == [true; 4], "{group} {i}: {found:?}");
            wrong += found.iter().filter(|found| !is_there && **found).count();
        }
        assert!(!filters[2].might_contain(lit(-1).by_value()).unwrap());
        assert_eq!(filters[2].might_contain(-1).unwrap_err().kind(), ErrorKind::Usage);
        assert_eq!(filters[0].might_contain("word").unwrap_err().kind(), ErrorKind::Usage);
        // 2 % and not more are expected of each.
        let estimate = filters[0].false_positive_rate();
        assert!(estimate > 0.0 && estimate < 0.03, "{estimate}");
        assert_eq!(filters[0].byte_len(), filters[0].blocks() * 32);
    }
    assert!(wrong < 150, "{wrong} of 2400 absent values were taken for present");
}

#[test]
fn a_merged_filter_knows_the_values_of_both() {
    let numbers: ArrayRef = std::sync::Arc::new(Int64Array::from_iter_values(0..200));
    let words: ArrayRef =
        std::sync::Arc::new(StringArray::from_iter_values((0..200).map(|i| i.to_string())));
    let reader = written(vec![("n", numbers), ("w", words)], with_blooms(&["n", "w"]));
    let filter = |group, leaf| reader.bloom_filter(group, leaf).unwrap().unwrap();
    let (mut all, second) = (filter(0, 0), filter(1, 0));
    let bits = all.set_bits();
    all.merge(&second).unwrap();
    assert!((0..200).all(|i| all.might_contain(i).unwrap()));
    assert!(all.set_bits() > bits && all.set_bits() <= bits + second.set_bits());
    assert_eq!(all.merge(&filter(0, 1)).unwrap_err().kind(), ErrorKind::Usage);
    assert!(reader.bloom_filter(0, 2).is_err());
}

#[test]
fn the_elements_of_lists_are_looked_for() {
    let file = testdata("trips.parquet");
    let trips = Reader::open(file).unwrap().project(["tags"]).unwrap();
    let options = WriteOptions::new()
        .with_column("tags.key_value.key", |of| of.with_bloom(Default::default()));
    let mut writer = Writer::new(WriteSink(Vec::new()), trips.schema().unwrap(), options).unwrap();
    for batch in trips.batches().unwrap() {
        writer.write(&batch.unwrap()).unwrap();
    }
    let reader = Reader::new(Bytes::from(writer.into_inner().unwrap().1)).unwrap();
    let filter = reader.bloom_filter(0, 0).unwrap().expect("a filter of the keys");
    let keys = reader.dictionary_values(0, 0).unwrap().expect("a dictionary of the keys");
    for key in keys.as_string::<i32>().iter().flatten() {
        assert!(filter.might_contain(key).unwrap(), "{key}");
    }
    assert!(!filter.might_contain("no such key").unwrap());
}

#[test]
#[cfg(feature = "encryption")]
fn filters_and_dictionaries_of_encrypted_columns_are_decrypted() {
    let options = encryption::options(Some(
        Encryption::new(encryption::key(encryption::FOOTER_KEY))
            .with_column_key("secret", encryption::key(encryption::COLUMN_KEY)),
    ));
    let texts = (0..100).map(|i| format!("{} {}", encryption::SENTINEL, i % 3));
    let texts: ArrayRef = std::sync::Arc::new(StringArray::from_iter_values(texts));
    let numbers: ArrayRef = std::sync::Arc::new(Int64Array::from_iter_values(0..100));
    let batch = RecordBatch::try_from_iter([("id", numbers), ("secret", texts)]).unwrap();
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    let bytes = Bytes::from(writer.into_inner().unwrap().1);
    let reader = Reader::with_keys(bytes.clone(), Limits::default(), &encryption::keys()).unwrap();
    let filter = reader.bloom_filter(0, 1).unwrap().unwrap();
    assert!(filter.might_contain(format!("{} 1", encryption::SENTINEL)).unwrap());
    assert!(!filter.might_contain("another text").unwrap());
    let entries = reader.dictionary_values(0, 1).unwrap().unwrap();
    let entries: BTreeSet<_> = entries.as_string::<i32>().iter().flatten().collect();
    assert!(entries.iter().all(|text| text.starts_with(encryption::SENTINEL)), "{entries:?}");
    let without = marquetry::crypt::Decryption::new()
        .with_footer_key(encryption::key(encryption::FOOTER_KEY));
    let reader = Reader::with_keys(bytes, Limits::default(), &without).unwrap();
    assert_eq!(reader.bloom_filter(0, 1).unwrap_err().kind(), ErrorKind::Crypto);
    assert_eq!(reader.dictionary_values(0, 1).unwrap_err().kind(), ErrorKind::Crypto);
}

#[test]
fn a_dictionary_holds_the_values_of_its_column_and_no_page_after_it_is_needed() {
    let reader = Reader::open(testdata("trips.parquet")).unwrap();
    let leaf = reader.metadata().schema().leaf_named("payment").unwrap();
    for group in 0..reader.metadata().row_groups() {
        let entries = reader.dictionary_values(group, leaf).unwrap().unwrap();
        let entries: BTreeSet<_> = entries.as_string::<i32>().iter().flatten().collect();
        let of_group = reader.clone().project(["payment"]).unwrap().row_groups([group]).unwrap();
        for batch in of_group.batches().unwrap() {
            let batch = batch.unwrap();
            let values = batch.column(0).as_string::<i32>();
            assert!(values.iter().flatten().all(|value| entries.contains(value)));
        }
    }
    // The dictionary page is whole, the data page is junk.
    let junk = v1(2, Encoding::Alp, &[9; 40]);
    let chunk = Chunk::new(Type::Int32, 2, &[junk]).with_dictionary(dictionary(2, &ints(&[7, 9])));
    let reader = Reader::new(Bytes::from(file(vec![required("n", Type::Int32)], 2, vec![chunk])));
    let entries = reader.unwrap().dictionary_values(0, 0).unwrap().unwrap();
    assert_eq!(entries.as_primitive::<Int32Type>().values(), &[7, 9]);
}

#[test]
fn a_chunk_without_dictionary_has_none() {
    let chunk = Chunk::new(Type::Int32, 2, &[v1(2, Encoding::Plain, &ints(&[7, 9]))]);
    let bytes = Bytes::from(file(vec![required("n", Type::Int32)], 2, vec![chunk]));
    let reader = Reader::new(bytes).unwrap();
    assert!(reader.dictionary_values(0, 0).unwrap().is_none());
    assert!(reader.bloom_filter(0, 0).unwrap().is_none());
    assert_eq!(reader.dictionary_values(1, 0).unwrap_err().kind(), ErrorKind::Usage);
}

#[test]
fn a_filter_that_lies_elsewhere_or_states_too_much_is_malformed() {
    let open = |offset: i64, len: Option<i32>| {
        let chunk = Chunk::new(Type::Int32, 1, &[v1(1, Encoding::Plain, &ints(&[7]))]);
        let schema = vec![required("n", Type::Int32)];
        let bytes = file_with(schema, vec![(1, vec![chunk])], |meta| {
            let chunk = meta.row_groups[0].columns[0].meta_data.as_mut().unwrap();
            (chunk.bloom_filter_offset, chunk.bloom_filter_length) = (Some(offset), len);
        });
        Reader::new(Bytes::from(bytes)).unwrap()
    };
    // The last two are inside the file, where no header is.
    for (offset, len) in [
        (i64::MAX, Some(64)),
        (-4, Some(64)),
        (4, Some(i32::MAX)),
        (1 << 40, None),
        (4, Some(16)),
        (4, None),
    ] {
        let error = open(offset, len).bloom_filter(0, 0).unwrap_err();
        let is_refused =
            matches!(error.kind(), ErrorKind::Malformed(_) | ErrorKind::Unsupported(_));
        assert!(is_refused, "{offset} {len:?}: {error}");
        // Reads ignore such a filter.
        assert_eq!(open(offset, len).filter(col("n").eq(7)).count().unwrap(), 1);
    }
}

#[test]
fn a_filter_larger_than_the_memory_is_a_limit() {
    let numbers: ArrayRef = std::sync::Arc::new(Int64Array::from_iter_values(0..100_000));
    let options = WriteOptions::new().with_column("n", |of| of.with_bloom(Default::default()));
    let batch = RecordBatch::try_from_iter([("n", numbers)]).unwrap();
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    let bytes = Bytes::from(writer.into_inner().unwrap().1);
    let mut limits = Limits::default();
    limits.memory_bytes = 100_000;
    let reader = Reader::with_limits(bytes, limits).unwrap();
    let error = reader.bloom_filter(0, 0).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit(_)), "{error}");
}

#[cfg(feature = "async")]
#[tokio::test]
async fn parts_come_asynchronously_as_they_do_otherwise() {
    use crate::support::close;
    use marquetry::format::Thrift;
    use marquetry::schema::Physical;
    use marquetry::{AsyncReader, BloomFilter};

    for name in ["trips.parquet", "nested_v2.parquet"] {
        let bytes = Bytes::from(std::fs::read(testdata(name)).unwrap());
        let with_filters = {
            let reader = Reader::new(bytes.clone()).unwrap();
            let schema = reader.metadata().schema();
            let leaves = (0..schema.leaves_len()).map(|leaf| schema.leaf(leaf).unwrap());
            let paths: Vec<String> = leaves
                .filter(|leaf| leaf.physical != Physical::Boolean)
                .map(|leaf| leaf.path.dotted())
                .collect();
            let paths: Vec<&str> = paths.iter().map(String::as_str).collect();
            let options = with_blooms(&paths);
            let mut writer =
                Writer::new(WriteSink(Vec::new()), reader.schema().unwrap(), options).unwrap();
            reader.batches().unwrap().for_each(|batch| writer.write(&batch.unwrap()).unwrap());
            Bytes::from(writer.into_inner().unwrap().1)
        };
        let mut found = [0; 2];
        // The footer of the one states how long the filters are, that of the other does not.
        let reader = Reader::new(with_filters.clone()).unwrap();
        let mut meta = reader.metadata().index().to_file_meta_data().unwrap();
        for chunk in meta.row_groups.iter_mut().flat_map(|group| &mut group.columns) {
            chunk.meta_data.as_mut().unwrap().bloom_filter_length = None;
        }
        let without_lengths = Bytes::from(close(with_filters.to_vec(), &meta.to_thrift()));
        for bytes in [bytes, with_filters, without_lengths] {
            let reader = Reader::new(bytes.clone()).unwrap();
            let later = AsyncReader::open_async(bytes).await.unwrap();
            let leaves = reader.metadata().schema().leaves_len();
            for leaf in 0..leaves {
                let filter = reader.bloom_filter(0, leaf).unwrap();
                let again = later.bloom_filter(0, leaf).await.unwrap();
                let bits = |filter: &BloomFilter| (filter.byte_len(), filter.set_bits());
                assert_eq!(filter.as_ref().map(bits), again.as_ref().map(bits), "{name} {leaf}");
                found[0] += usize::from(filter.is_some());
                let entries = reader.dictionary_values(0, leaf).unwrap();
                assert_eq!(later.dictionary_values(0, leaf).await.unwrap(), entries);
                found[1] += usize::from(entries.is_some());
            }
            for error in [
                later.bloom_filter(0, leaves).await.unwrap_err(),
                later.dictionary_values(99, 0).await.unwrap_err(),
            ] {
                assert_eq!(error.kind(), ErrorKind::Usage);
            }
        }
        assert!(found.iter().all(|n| *n > 2), "{name}: {found:?}");
    }
}
