//! `marq size`: every byte is counted once, and the most comes first.

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array};
use marquetry::format::{Encoding, Thrift as _};
use marquetry::{BloomOptions, ColumnOptions, Compression, WriteOptions, Writer};
use serde_json::Value;

use crate::support::folder::{Folder, error};

/// The names and bytes of the lines about a file.
fn lines(file: &Value) -> Vec<(String, u64)> {
    let lines = file["lines"].as_array().expect("lines");
    let line = |line: &Value| {
        let name = line["name"].as_str().expect("a name").to_owned();
        (name, line["bytes"].as_u64().expect("bytes"))
    };
    lines.iter().map(line).collect()
}

#[test]
fn every_byte_is_counted_once_in_every_ranking() {
    let folder = Folder::new();
    for name in ["trips.parquet", "nested_v2.parquet", "duckdb.parquet", "no_rows.parquet"] {
        folder.copy(name);
        let len = std::fs::metadata(folder.path(name)).expect("a file").len();
        for by in ["column", "structure", "encoding", "codec"] {
            let found = folder.json(&["size", name, "--by", by]);
            assert_eq!((&found["schema"], &found["by"]), (&"marq/1/size".into(), &by.into()));
            let lines = lines(&found["files"][0]);
            assert_eq!(lines.iter().map(|(_, bytes)| bytes).sum::<u64>(), len, "{name} {by}");
            assert!(lines.is_sorted_by(|a, b| a.1 >= b.1), "{lines:?}");
        }
    }
}

/// Makes `name`, a file with a bloom filter of some kilobytes.
fn with_bloom_filter(folder: &Folder, name: &str) {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..20_000));
    let batch = arrow_array::RecordBatch::try_from_iter([("id", ids)]).expect("a batch");
    let bloom = |column: ColumnOptions| column.with_bloom(BloomOptions::default());
    let options = WriteOptions::new().with_column("id", bloom);
    let path = folder.path(name);
    let mut writer = Writer::create_with(path, batch.schema(), options).expect("a writer");
    writer.write(&batch).expect("written");
    writer.finish().expect("finished");
}

#[test]
fn bloom_filters_are_named_with_their_share() {
    let folder = Folder::new();
    with_bloom_filter(&folder, "a.parquet");
    let found = folder.json(&["size", "a.parquet", "--by", "structure"]);
    let lines = lines(&found["files"][0]);
    let filters = lines.iter().find(|(name, _)| name == "bloom filters").expect("a filter");
    assert!(filters.1 > 1000);
    let text = folder.text(&["size", "a.parquet", "-f", "table", "--raw"]);
    assert!(text.contains("bloom filters") && text.contains(&filters.1.to_string()), "{text}");
}

#[test]
fn lines_beyond_the_top_are_summed_up() {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    let all = lines(&folder.json(&["size", "trips.parquet"])["files"][0]);
    let top = lines(&folder.json(&["size", "trips.parquet", "--top", "2"])["files"][0]);
    assert_eq!(top[..2], all[..2]);
    let others = (format!("{} others", all.len() - 2), all[2..].iter().map(|line| line.1).sum());
    assert_eq!(top[2..], [others]);
}

#[test]
fn of_a_broken_file_the_bytes_are_unparsed_and_the_error_comes_after() {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    let (len, footer) = folder.copy_with_broken_footer("trips.parquet", "broken.parquet");
    let output = folder.run(&["size", "broken.parquet"]);
    assert_eq!(output.status.code(), Some(3));
    let found: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert!(found["files"][0]["problem"].is_string());
    let lines = lines(&found["files"][0]);
    assert_eq!(lines[0], ("unparsed".to_owned(), (len - 8 - footer - 4) as u64));
    assert_eq!(lines[1], ("footer".to_owned(), (footer + 12) as u64));
}

#[test]
fn filters_and_indexes_are_ranked_without_being_read() {
    let folder = Folder::new();
    with_bloom_filter(&folder, "a.parquet");
    for args in [
        &["size", "a.parquet"][..],
        &["size", "a.parquet", "--by", "structure"],
        &["map", "a.parquet"],
        &["report", "a.parquet", "--sections", "bytes"],
    ] {
        let output = folder.run(&[args, &["--trace-io", "-f", "json"]].concat());
        let error = error(&output);
        let trace: Value =
            serde_json::from_str(error.lines().last().expect("a line")).expect(&error);
        let reads = trace["trace_io"].as_array().expect("reads");
        assert!(!reads.is_empty());
        for read in reads {
            let what = read["what"].as_str().expect("a text");
            // The footer is read with some bytes before it.
            let is_it = !what.contains("footer")
                && (what.contains("bloom filter") || what.contains("page index"));
            assert!(!is_it, "{args:?}: {read}");
        }
    }
}

#[test]
fn columns_after_a_broken_chunk_are_counted() {
    let folder = Folder::new();
    let numbers: ArrayRef = Arc::new(Int64Array::from_iter_values(0..1000));
    folder.columns("a.parquet", ["a", "b", "c"].map(|name| (name, numbers.clone())).into());
    let whole = folder.json(&["map", "a.parquet"]);
    let reader = marquetry::Reader::open(folder.path("a.parquet")).expect("a file");
    let chunk = reader.metadata().column_chunk(0, 1).expect("a chunk").to_thrift();
    drop(reader);
    folder.change_footer_bytes("a.parquet", |footer| {
        let at = footer.windows(chunk.len()).position(|bytes| bytes == chunk).expect("it");
        // `file_offset`, the second field, becomes the third, which is a struct.
        assert_eq!(footer[at], 0x26);
        footer[at] = 0x36;
    });
    let found = folder.json(&["map", "a.parquet"]);
    let [a, b, c] = [0, 1, 2].map(|column| &found["chunks"][column]);
    assert_eq!((a, c), (&whole["chunks"][0], &whole["chunks"][2]));
    assert!(b["problem"].is_string() && b["column"] == 1 && b["bytes"] == 0, "{b}");
    let sizes = lines(&folder.json(&["size", "a.parquet"])["files"][0]);
    assert!(["a", "c"].iter().all(|name| sizes.iter().any(|line| line.0 == *name)), "{sizes:?}");
    let codecs = folder.json(&["size", "a.parquet", "--by", "codec"]);
    let codec = codecs["files"][0]["lines"].as_array().expect("lines").iter();
    let bytes = codec.filter(|line| line["kind"] == "codec").map(|line| line["bytes"].as_u64());
    let pages = a["bytes"].as_u64().zip(c["bytes"].as_u64()).map(|(a, c)| a + c);
    assert_eq!(Some(bytes.flatten().sum()), pages, "{codecs}");
}

#[test]
fn columns_of_one_path_are_told_apart() {
    let folder = Folder::new();
    let numbers =
        |n: i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values((0..1000).map(|i| i * n))) };
    let batch = arrow_array::RecordBatch::try_from_iter([("a", numbers(1)), ("b", numbers(7))]);
    let batch = batch.expect("a batch");
    let plain = |column: ColumnOptions| {
        column.with_compression(Compression::Uncompressed).with_encoding(Encoding::Plain)
    };
    let options = WriteOptions::new().with_compression(Compression::Snappy);
    let options = options.with_column("b", plain);
    let path = folder.path("a.parquet");
    let mut writer = Writer::create_with(path, batch.schema(), options).expect("a writer");
    writer.write(&batch).expect("written");
    writer.finish().expect("finished");
    let sizes = |by: &str| -> Vec<Value> {
        let found = folder.json(&["size", "a.parquet", "--by", by]);
        let lines = found["files"][0]["lines"].as_array().expect("lines").iter();
        lines.filter(|line| line["kind"] == by).cloned().collect()
    };
    let (codecs, mut columns) = (sizes("codec"), sizes("column"));
    assert_eq!((codecs.len(), columns.len()), (2, 2));
    folder.rename("a.parquet", 1, "a");
    columns.iter_mut().for_each(|line| line["name"] = "a".into());
    let without_shares = |mut lines: Vec<Value>| {
        // The footer is shorter now.
        lines.iter_mut().for_each(|line| line["share"] = Value::Null);
        lines
    };
    for (by, before) in [("codec", codecs), ("column", columns)] {
        assert_eq!(without_shares(sizes(by)), without_shares(before), "{by}");
    }
}

#[test]
fn bytes_of_which_the_footer_does_not_say_are_unknown_to_info() {
    let folder = Folder::new();
    folder.copy("trips.parquet");
    with_bloom_filter(&folder, "bloom.parquet");
    let info = |file: &str| folder.json(&["info", file])["bytes"].clone();
    let bytes =
        |info: &Value, key: &str| info[key].as_u64().unwrap_or_else(|| panic!("{key}: {info}"));
    let pages = info("trips.parquet");
    let dictionaries = bytes(&pages, "dictionary_pages");
    assert!(dictionaries > 0, "{pages}");
    // As some writers do, of one chunk: then the sum is unknown.
    folder.change_footer("trips.parquet", |footer| {
        let chunks = footer.row_groups.iter_mut().flat_map(|group| &mut group.columns);
        let mut metas = chunks.filter_map(|chunk| chunk.meta_data.as_mut());
        let last = metas.rfind(|meta| meta.dictionary_page_offset.is_some()).expect("a dictionary");
        last.data_page_offset = last.dictionary_page_offset.take().expect("its offset");
    });
    let found = info("trips.parquet");
    assert_eq!(found["dictionary_pages"], Value::Null);
    assert_eq!(bytes(&found, "data_pages"), bytes(&pages, "data_pages") + dictionaries);
    let shown = folder.text(&["info", "trips.parquet", "-f", "table"]);
    assert!(shown.contains("data and dictionary pages"), "{shown}");
    let filters = info("bloom.parquet");
    assert!(bytes(&filters, "bloom_filters") > 1000);
    folder.change_footer("bloom.parquet", |footer| {
        let meta = footer.row_groups[0].columns[0].meta_data.as_mut().expect("metadata");
        meta.bloom_filter_length = None;
    });
    let found = info("bloom.parquet");
    assert_eq!(found["bloom_filters"], Value::Null);
    let other = bytes(&filters, "other") + bytes(&filters, "bloom_filters");
    assert_eq!(bytes(&found, "other"), other);
}
