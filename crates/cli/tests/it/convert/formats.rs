//! Tests `marq convert` from every format to every format, and what it refuses.

use std::io::Write;
use std::process::{Output, Stdio};
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::Int8Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, FixedSizeBinaryArray, Int8Array, Int64Array, ListArray,
    RecordBatch, StringArray,
};
use arrow_buffer::{ArrowNativeType, OffsetBuffer};
use arrow_ipc::reader::FileReader;
use arrow_ipc::writer::FileWriter;
use arrow_schema::{DataType, Field, TimeUnit};
use bytes::Bytes;
use marquetry::Reader;
use serde_json::{Value, json};

use crate::support::folder::{Folder, error};
use crate::support::testdata;

/// Dictionaries without entries, at the top and in lists, and long lists of values that rows share.
fn coded() -> RecordBatch {
    let none: ArrayRef = Arc::new(StringArray::new_null(0));
    let nulls = DictionaryArray::<Int8Type>::new(Int8Array::new_null(3), none.clone());
    let entry: ArrayRef = Arc::new(StringArray::from(vec!["x".repeat(1 << 20)]));
    let keys = Int8Array::from(vec![0; 12]);
    let entries: ArrayRef = Arc::new(DictionaryArray::<Int8Type>::new(keys, entry));
    let item = Arc::new(Field::new_list_field(entries.data_type().clone(), true));
    let lists = |lengths: [usize; 3], values| {
        let offsets = OffsetBuffer::from_lengths(lengths);
        Arc::new(ListArray::new(item.clone(), offsets, values, None)) as ArrayRef
    };
    let empty = Arc::new(DictionaryArray::<Int8Type>::new(Int8Array::new_null(0), none));
    let long = lists([3, 4, 5], entries);
    let columns = [("d", Arc::new(nulls) as ArrayRef), ("e", lists([0; 3], empty)), ("l", long)];
    RecordBatch::try_from_iter_with_nullable(columns.map(|(n, c)| (n, c, true))).expect("rows")
}

#[test]
fn dictionaries_without_entries_and_in_lists_are_shown_and_expanded() {
    let folder = Folder::new();
    let rows = coded();
    let mut file = Vec::new();
    let mut writer = FileWriter::try_new(&mut file, &rows.schema()).expect("a file");
    writer.write(&rows.slice(0, 0)).expect("no rows");
    writer.write(&rows).expect("rows");
    writer.finish().expect("an end");
    folder.put("coded.arrow", file);
    folder.convert(&["coded.arrow", "-q", "-o", "coded.parquet"]);
    let is_same = |text: &str, of: &str| {
        let lines: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(lines.len(), 3, "{of}");
        for (line, n) in lines.iter().zip(3..) {
            assert!(line["d"].is_null() && line["e"] == json!([]), "{of}");
            let list = line["l"].as_array().expect("a list");
            assert!(list.len() == n && list.iter().all(|text| text == &*"x".repeat(1 << 20)));
        }
    };
    for of in ["coded.arrow", "coded.parquet"] {
        folder.convert(&[of, "-q", "-o", "out.jsonl"]);
        is_same(&folder.content("out.jsonl"), of);
        folder.convert(&[of, "-q", "-o", "plain.arrow"]);
        let file = std::fs::File::open(folder.path("plain.arrow")).expect("a file");
        let batches =
            FileReader::try_new(file, None).expect("Arrow").collect::<Result<Vec<_>, _>>();
        // Each piece has the elements of its own lists.
        for batch in batches.expect("batches") {
            let lists = batch.column_by_name("l").expect("lists").as_list::<i32>();
            let own = lists.value_offsets().last().expect("an end").as_usize();
            assert_eq!(lists.values().len(), own);
            assert!(matches!(lists.value_type(), DataType::Utf8));
        }
        folder.convert(&["plain.arrow", "-q", "-o", "out.jsonl"]);
        is_same(&folder.content("out.jsonl"), "plain.arrow");
    }
    folder.text(&["cat", "coded.parquet", "--wide", "-c", "d,e"]);
    folder.text(&["stats", "coded.parquet", "--values", "-c", "d"]);
    let args = ["convert", "coded.arrow", "--where", "d = 'x'", "-q", "--to", "jsonl", "-o", "-"];
    assert_eq!(folder.text(&args), "");
}

impl Folder {
    /// Runs `marq` with this on its standard input.
    fn run_with(&self, args: &[&str], input: &[u8]) -> Output {
        let mut command = self.command(args);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("marq runs");
        // Who fails early reads nothing.
        let _ = child.stdin.take().expect("a pipe").write_all(input);
        child.wait_with_output().expect("an answer")
    }

    /// Runs `marq convert`, which succeeds.
    fn convert(&self, args: &[&str]) -> Output {
        let output = self.run(&[&["convert"], args].concat());
        assert!(output.status.success(), "{args:?}: {}", error(&output));
        output
    }

    /// Runs `marq convert`, which fails with this code; returns its message.
    fn not_converted(&self, code: i32, args: &[&str]) -> String {
        let output = self.run(&[&["convert"], args].concat());
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", error(&output));
        error(&output)
    }
}

fn trips() -> String {
    testdata("trips.parquet").to_string_lossy().into_owned()
}

const CSV: &str = "\
id,name,price,day,at,ok,nothing
1,a,1.5,2024-01-01,2024-01-01T10:00:00,true,
2,\"b, \"\"c\"\"\",,2024-01-02,2024-01-01T10:00:00.250,false,
3,\"two
lines\",-3.25,,,,
";

#[test]
fn csv_to_parquet_and_back_is_the_same_text() {
    let folder = Folder::new();
    folder.put("a.csv", CSV);
    folder.convert(&["a.csv", "-o", "a.parquet"]);
    assert_eq!(folder.type_of("a.parquet", "id"), DataType::Int64);
    assert_eq!(folder.type_of("a.parquet", "price"), DataType::Float64);
    assert_eq!(folder.type_of("a.parquet", "day"), DataType::Date32);
    assert_eq!(folder.type_of("a.parquet", "ok"), DataType::Boolean);
    assert_eq!(folder.type_of("a.parquet", "nothing"), DataType::Utf8);
    assert!(matches!(
        folder.type_of("a.parquet", "at"),
        DataType::Timestamp(TimeUnit::Microsecond, None)
    ));
    folder.convert(&["a.parquet", "-o", "b.csv"]);
    assert_eq!(folder.content("b.csv"), CSV);
}

#[test]
fn csv_with_other_delimiters_nulls_and_headers() {
    let folder = Folder::new();
    folder.put("a.tsv", "a\tb\n1\tx,y\nNA\t\n");
    folder.convert(&["a.tsv", "--null", "NA", "-o", "a.parquet"]);
    assert_eq!(folder.type_of("a.parquet", "a"), DataType::Int64);
    folder.convert(&["a.parquet", "--null", "NA", "-o", "b.tsv"]);
    assert_eq!(folder.content("b.tsv"), folder.content("a.tsv"));
    folder.put("c.csv", "1;2\n3;4\n");
    folder.convert(&["c.csv", "--no-header", "--delimiter", ";", "-o", "c.jsonl"]);
    let line = folder.content("c.jsonl").lines().next().map(str::to_owned);
    assert_eq!(line.as_deref(), Some(r#"{"column_1":1,"column_2":2}"#));
    // One column: a null is a line all the same.
    folder.put("d.jsonl", "{\"a\":1}\n{\"a\":null}\n{\"a\":3}\n");
    folder.convert(&["d.jsonl", "-o", "d.csv"]);
    folder.convert(&["d.csv", "-o", "e.jsonl"]);
    assert_eq!(folder.content("e.jsonl"), folder.content("d.jsonl"));
}

#[test]
fn nested_json_to_parquet_and_back_is_the_same_text() {
    let folder = Folder::new();
    let lines = concat!(
        r#"{"z":1,"name":"a","tags":["x",null,"y"],"at":{"lon":1.5,"lat":-2.0,"who":[{"k":1}]}}"#,
        "\n",
        r#"{"z":9007199254740993,"name":null,"tags":[],"at":null}"#,
        "\n",
        r#"{"z":null,"name":"ü\n\"","tags":null,"at":{"lon":null,"lat":0.25,"who":[]}}"#,
        "\n",
    );
    folder.put("a.jsonl", lines);
    folder.convert(&["a.jsonl", "-o", "a.parquet"]);
    folder.convert(&["a.parquet", "-o", "b.jsonl"]);
    assert_eq!(folder.content("b.jsonl"), lines);
    // Through CSV, nested cells are JSON; --schema reads them.
    folder.convert(&["a.jsonl", "-c", "z,tags", "-o", "c.csv"]);
    folder.convert(&["c.csv", "--schema", "tags: list<utf8>", "-o", "c.jsonl"]);
    folder.convert(&["a.jsonl", "-c", "z,tags", "-o", "d.jsonl"]);
    assert_eq!(folder.content("c.jsonl"), folder.content("d.jsonl"));
}

#[test]
fn an_arrow_stream_comes_in_and_parquet_goes_out() {
    let folder = Folder::new();
    let ids: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None, Some(3)]));
    let names: ArrayRef = Arc::new(StringArray::from(vec!["a", "b", "c"]));
    let batch = RecordBatch::try_from_iter([("id", ids), ("name", names)]).expect("a batch");
    let mut stream = Vec::new();
    let mut writer =
        arrow_ipc::writer::StreamWriter::try_new(&mut stream, &batch.schema()).expect("a stream");
    writer.write(&batch).expect("written");
    writer.write(&batch).expect("written");
    writer.finish().expect("finished");
    drop(writer);
    let output = folder.run_with(&["convert", "-", "--to", "parquet"], &stream);
    assert!(output.status.success(), "{}", error(&output));
    let reader = Reader::new(Bytes::from(output.stdout.clone())).expect("Parquet");
    let rows: Vec<RecordBatch> =
        reader.batches().expect("rows").collect::<Result<_, _>>().expect("rows");
    let rows = arrow_select::concat::concat_batches(&batch.schema(), &rows).expect("one batch");
    assert_eq!(rows.slice(0, 3), batch);
    assert_eq!(rows.slice(3, 3), batch);
    // And Parquet from standard input, to every other form and back.
    for form in ["arrow", "arrows", "jsonl", "csv"] {
        let there = folder.run_with(&["convert", "-", "--to", form], &output.stdout);
        let text = ["convert", "-", "--from", form, "--to", "parquet"];
        let back = folder.run_with(&text, &there.stdout);
        assert!(back.status.success(), "{form}: {}", error(&back));
        let reader = Reader::new(Bytes::from(back.stdout)).expect("Parquet");
        assert_eq!(reader.rows().expect("rows"), 6, "{form}");
    }
    let cut = folder.run_with(&["convert", "-", "--to", "csv"], &stream[..stream.len() / 2]);
    assert_eq!(cut.status.code(), Some(3), "{}", error(&cut));
    let unknown = folder.run_with(&["convert", "-", "--to", "csv"], b"a,b\n1,2\n");
    assert_eq!(unknown.status.code(), Some(2), "{}", error(&unknown));
}

#[test]
fn a_schema_overrides_what_is_inferred() {
    let folder = Folder::new();
    folder.put("a.csv", "id,name,price,raw\n1,007,12.30,0x00ff\n2,008,4,0x\n");
    let schema = "id: int32 not null, name: utf8, price: decimal128(10,2), raw: binary";
    folder.convert(&["a.csv", "--schema", schema, "-o", "a.parquet"]);
    assert_eq!(folder.type_of("a.parquet", "id"), DataType::Int32);
    assert_eq!(folder.type_of("a.parquet", "price"), DataType::Decimal128(10, 2));
    assert_eq!(folder.type_of("a.parquet", "raw"), DataType::Binary);
    folder.convert(&["a.parquet", "-o", "b.csv"]);
    assert_eq!(folder.content("b.csv"), "id,name,price,raw\n1,007,12.30,0x00ff\n2,008,4.00,0x\n");
    folder.convert(&["a.csv", "--schema", "name: string", "-o", "c.parquet"]);
    assert_eq!(folder.type_of("c.parquet", "id"), DataType::Int64);
    assert_eq!(folder.type_of("c.parquet", "name"), DataType::Utf8);
    let only = ["a.csv", "--schema-only", "-o", "d.parquet", "--schema"];
    folder.convert(&[&only[..], &["id: utf8, name: utf8, price: utf8, raw: utf8"]].concat());
    folder
        .not_converted(3, &[&only[..], &["id: utf8, nam: utf8, price: utf8, raw: utf8"]].concat());
    folder.not_converted(2, &["a.csv", "-o", "x.parquet", "--schema", "nope: utf8"]);
    folder.not_converted(2, &["a.csv", "-o", "x.parquet", "--schema", "id: quux"]);
    folder.not_converted(2, &["a.csv", "-o", "x.parquet", "--schema", "id: list<utf8"]);
    let text = folder.not_converted(3, &["b.csv", "-o", "x.parquet", "--schema", "name: date32"]);
    assert!(text.contains("line 2"), "{text}");
    folder.put("n.csv", "a,b\n1,2\n,3\n");
    let text =
        folder.not_converted(3, &["n.csv", "-o", "x.parquet", "--schema", "a: int64 not null"]);
    assert!(text.contains("line 3"), "{text}");

    folder.put("a.jsonl", "{\"id\":1,\"m\":{\"a\":1},\"t\":\"2024-01-01T00:00:00Z\"}\n");
    let schema = "m: map<utf8, int32>, t: timestamp(ms, UTC), id: uint8, late: utf8";
    folder.convert(&["a.jsonl", "--schema", schema, "-o", "e.parquet"]);
    assert!(matches!(folder.type_of("e.parquet", "m"), DataType::Map(..)));
    assert_eq!(folder.type_of("e.parquet", "id"), DataType::UInt8);
    let time = DataType::Timestamp(TimeUnit::Millisecond, Some("UTC".into()));
    assert_eq!(folder.type_of("e.parquet", "t"), time);
    assert_eq!(folder.batches("e.parquet")[0].num_columns(), 4);
}

#[test]
fn every_flag_of_writing_shows_in_the_file() {
    let folder = Folder::new();
    let trips = trips();
    let out = |flags: &[&str]| {
        folder.convert(&[&[&*trips, "-o", "a.parquet"], flags].concat());
    };
    let chunks = |column: &str| {
        let pages = folder.json(&["pages", "-c", column, "a.parquet"]);
        pages["chunks"].as_array().expect("chunks").clone()
    };
    let pages = |column: &str, key: &str| -> Vec<String> {
        let values = chunks(column).into_iter().flat_map(|chunk| {
            let pages = chunk["pages"].as_array().expect("pages").clone();
            pages.into_iter().map(|page| page[key].as_str().unwrap_or_default().to_owned())
        });
        values.collect()
    };
    for (flag, name) in
        [("none", "UNCOMPRESSED"), ("snappy", "SNAPPY"), ("gzip", "GZIP"), ("zstd:9", "ZSTD")]
    {
        out(&["--codec", flag]);
        assert_eq!(chunks("fare")[0]["codec"], name, "{flag}");
    }
    out(&["--page-version", "2"]);
    assert!(pages("fare", "type").contains(&"DATA_PAGE_V2".to_owned()));
    out(&["--page-version", "1"]);
    assert!(pages("fare", "type").contains(&"DATA_PAGE".to_owned()));
    assert!(pages("vendor", "type").contains(&"DICTIONARY_PAGE".to_owned()));
    out(&["--dictionary", "off"]);
    assert!(!pages("vendor", "type").contains(&"DICTIONARY_PAGE".to_owned()));
    out(&["--encoding", "id=DELTA_BINARY_PACKED"]);
    assert_eq!(pages("id", "encoding"), ["DELTA_BINARY_PACKED"]);
    out(&["--row-group-rows", "300"]);
    assert_eq!(folder.json(&["info", "a.parquet"])["row_groups"], 4);
    out(&["--row-group-bytes", "4KiB"]);
    assert!(folder.json(&["info", "a.parquet"])["row_groups"].as_u64() > Some(2));
    out(&["--profile", "compatible"]);
    assert_eq!(chunks("pickup")[0]["codec"], "SNAPPY");
    out(&["--bloom", "id:0.001"]);
    let reader = Reader::open(folder.path("a.parquet")).expect("Parquet");
    let chunk = |i: usize| reader.metadata().column_chunk(0, i).expect("a chunk");
    let meta = |i: usize| chunk(i).meta_data.expect("metadata");
    assert!(meta(0).bloom_filter_offset.is_some() && meta(1).bloom_filter_offset.is_none());
    out(&["--threads", "1", "--mem", "64MiB"]);
    let said = folder.convert(&[&trips, "-v", "-o", "a.parquet"]);
    assert!(error(&said).starts_with("1 000 rows, 1 row group, ratio "), "{}", error(&said));
}

#[test]
fn another_codec_keeps_rows_and_schema() {
    let folder = Folder::new();
    let trips = trips();
    folder.convert(&[&trips, "--codec", "snappy", "-o", "a.parquet"]);
    let before = Reader::open(&trips).expect("Parquet");
    let after = Reader::open(folder.path("a.parquet")).expect("Parquet");
    let schema = before.schema().expect("a schema");
    assert_eq!(schema.fields(), after.schema().expect("a schema").fields());
    let rows = |reader: &Reader| -> RecordBatch {
        let rows: Vec<RecordBatch> =
            reader.batches().expect("rows").collect::<Result<_, _>>().expect("rows");
        let schema = rows[0].schema();
        let rows = rows.iter().map(|batch| {
            RecordBatch::try_new(schema.clone(), batch.columns().to_vec()).expect("a batch")
        });
        let rows: Vec<RecordBatch> = rows.collect();
        arrow_select::concat::concat_batches(&schema, &rows).expect("one batch")
    };
    assert_eq!(rows(&before).columns(), rows(&after).columns());
}

#[test]
fn bad_text_says_its_line_and_leaves_nothing() {
    let folder = Folder::new();
    folder.put("wide.csv", "a,b\n1,2\n1,2,3\n");
    folder.put("late.csv", "a,b\n1,2\n3,4\n5,x\n");
    folder.put("cut.jsonl", "{\"a\":1}\n\n{\"a\":\n");
    folder.put("late.jsonl", "{\"a\":1}\n{\"a\":2}\n{\"a\":2.5}\n");
    folder.put("new.jsonl", "{\"a\":1}\n{\"a\":2}\n{\"a\":2,\"b\":1}\n");
    let before = folder.names("");
    for (name, line, flags) in [
        ("wide.csv", 3, &[][..]),
        ("wide.csv", 3, &["--infer-rows", "1"]),
        ("late.csv", 4, &["--infer-rows", "2"]),
        ("cut.jsonl", 3, &[]),
        ("late.jsonl", 3, &["--infer-rows", "2"]),
        ("new.jsonl", 3, &["--infer-rows", "2"]),
    ] {
        for out in ["x.parquet", "x.arrow", "x.jsonl", "x.csv"] {
            let text = folder.not_converted(3, &[&[name, "-o", out], flags].concat());
            assert!(text.contains(&format!("{name}, line {line}: ")), "{text}");
        }
    }
    assert_eq!(folder.names(""), before);
    for name in ["late.csv", "late.jsonl", "new.jsonl"] {
        folder.convert(&[name, "--infer-rows", "0", "-o", "x.parquet"]);
    }
    let output = folder.run(&["convert", "-f", "json", "late.csv", "--infer-rows", "1", "-o", "y"]);
    assert_eq!(output.status.code(), Some(2), "no form by that ending");
    folder.not_converted(1, &["absent.csv", "-o", "x.parquet"]);
}

#[test]
fn the_readers_that_are_named_decide_which_encodings_are_taken() {
    let ids = (0..5000_i128).map(|i| i.to_be_bytes());
    let ids: ArrayRef = Arc::new(FixedSizeBinaryArray::try_from_iter(ids).expect("16 bytes each"));
    let batch = RecordBatch::try_from_iter([("id", ids)]).expect("a batch");
    let mut stream = Vec::new();
    let mut writer =
        arrow_ipc::writer::StreamWriter::try_new(&mut stream, &batch.schema()).expect("a stream");
    writer.write(&batch).expect("written");
    writer.finish().expect("finished");
    drop(writer);
    for (flags, expected) in [
        (&[][..], "PLAIN"),
        (&["--readers", "all"], "PLAIN"),
        (&["--readers", "duckdb,polars"], "PLAIN"),
        (&["--readers", "pyarrow,parquet-java,spark"], "BYTE_STREAM_SPLIT"),
        (&["--readers", "polars", "--encoding", "id=BYTE_STREAM_SPLIT"], "BYTE_STREAM_SPLIT"),
    ] {
        let args = [&["convert", "-", "--to", "parquet", "--dictionary", "off"], flags].concat();
        let output = Folder::new().run_with(&args, &stream);
        assert!(output.status.success(), "{}", error(&output));
        let reader = Reader::new(Bytes::from(output.stdout)).expect("Parquet");
        let chunk = reader.metadata().column_chunk(0, 0).expect("a chunk");
        let encodings = chunk.meta_data.expect("metadata").encodings;
        let found = encodings.iter().any(|encoding| encoding.to_string() == expected);
        assert!(found, "{flags:?}: {encodings:?}");
    }
}

#[test]
fn what_does_not_exist_is_a_usage_error() {
    let folder = Folder::new();
    folder.put("a.csv", "a,b\n1,2\n");
    for flags in [
        &["--encoding", "nope=PLAIN"][..],
        &["--encoding", "a=NOPE"],
        &["--encoding", "a"],
        &["--bloom", "nope"],
        &["--bloom", "a:2"],
        &["--codec", "nope"],
        &["--readers", "pyarrow,nope"],
        &["--delimiter", "ab"],
        &["-c", "nope"],
        &["--row-group", "0"],
        &["--schema-only"],
        &["--from", "nope"],
        &["--row-group-rows", "0"],
    ] {
        folder.not_converted(2, &[&["a.csv", "-o", "x.parquet"], flags].concat());
    }
    assert_eq!(folder.names(""), ["a.csv"]);
}

#[test]
fn a_file_is_converted_onto_itself() {
    let folder = Folder::new();
    folder.convert(&[&trips(), "-o", "a.parquet"]);
    let before = folder.batches("a.parquet");
    let flags = ["a.parquet", "--codec", "gzip", "--row-group-rows", "100"];
    folder.not_converted(2, &[&flags[..], &["-o", "a.parquet"]].concat());
    folder.convert(&[&flags[..], &["--in-place", "-o", "a.parquet"]].concat());
    let rows = |batches: &[RecordBatch]| batches.iter().map(RecordBatch::num_rows).sum::<usize>();
    assert_eq!(rows(&before), rows(&folder.batches("a.parquet")));
    folder.put("a.csv", CSV);
    folder.convert(&["a.csv", "--in-place"]);
    assert_eq!(folder.content("a.csv"), CSV);
    folder.convert(&["a.parquet", "-o", "a.arrow"]);
    folder.convert(&["a.arrow", "--in-place"]);
    folder.convert(&["a.arrow", "-o", "b.parquet"]);
    assert_eq!(rows(&before), rows(&folder.batches("b.parquet")));
    assert_eq!(folder.names(""), ["a.arrow", "a.csv", "a.parquet", "b.parquet"]);
}

#[test]
fn several_files_become_one() {
    let folder = Folder::new();
    folder.put("p1.csv", "a,b\n1,\n");
    folder.put("p2.csv", "a,b\n2.5,x\n");
    folder.convert(&["p*.csv", "-o", "all.parquet"]);
    folder.convert(&["all.parquet", "-o", "all.csv"]);
    assert_eq!(folder.content("all.csv"), "a,b\n1.0,\n2.5,x\n");
    // A file of another form with the same schema joins in.
    folder.convert(&["p1.csv", "--schema", "a: double", "-o", "p1.arrows"]);
    folder.convert(&["p1.arrows", "all.parquet", "--rows", "0:1", "-o", "two.jsonl"]);
    assert_eq!(folder.content("two.jsonl").lines().count(), 2);
    folder.put("q.csv", "a,c\n1,2\n");
    folder.not_converted(2, &["p1.csv", "q.csv", "-o", "x.parquet"]);
    folder.not_converted(2, &["all.parquet", "q.csv", "-o", "x.parquet"]);
    folder.not_converted(2, &["none*.csv", "-o", "x.parquet"]);
}

#[test]
fn row_groups_of_a_wide_table_spill_into_the_folder_that_is_named() {
    let folder = Folder::new();
    let names: Vec<String> = (0..100).map(|i| format!("c{i}")).collect();
    let column = |i: i64| -> ArrayRef { Arc::new(Int64Array::from_iter_values(i..i + 20_000)) };
    let columns = names.iter().zip(0..).map(|(name, i)| (name.as_str(), column(i)));
    folder.columns("wide.parquet", columns.collect());
    let row_groups = |more: &[&str]| {
        let args = ["wide.parquet", "--mem", "16MiB", "--row-group-bytes", "1GiB"];
        folder.convert(&[&args, more, &["-o", "out.parquet"]].concat());
        let out = Reader::new(Bytes::from(folder.content_of("out.parquet"))).expect("a file");
        assert_eq!(out.rows().expect("a count"), 20_000);
        out.metadata().row_groups()
    };
    assert!(row_groups(&[]) > 1, "16 MB are more than the memory holds at a time");
    assert_eq!(row_groups(&["--spill", "."]), 1);
    assert_eq!(folder.names(""), ["out.parquet", "wide.parquet"]);
    folder
        .not_converted(1, &["wide.parquet", "--mem", "16MiB", "--spill", "no", "-o", "b.parquet"]);
    folder.not_converted(2, &["wide.parquet", "--spill", ".", "-o", "b.csv"]);
    assert_eq!(folder.names(""), ["out.parquet", "wide.parquet"]);
}
