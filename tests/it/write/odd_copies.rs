//! Tests of copies that ask for much or for what cannot be: each is refused by name, or its file is
//! what was asked for.

use std::sync::Arc;

use bytes::Bytes;
use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::types::{Int32Type, Int64Type};
use marquetry::arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int32Array, Int64Array, ListArray, RecordBatch,
    StringArray, StructArray, UInt32Array,
};
use marquetry::arrow_schema::{DataType, Field};
use marquetry::format::{ConvertedType, LogicalType, Statistics};
use marquetry::io::WriteSink;
use marquetry::rewrite::{Compact, Fill, FillPart, Rewrite, RowSorter, Salvage, SplitBy};
use marquetry::{
    BloomOptions, Compression, ErrorKind, PageVersion, Reader, SortColumn, WriteOptions,
};

use super::filling::{numbers, with_footer};
use super::rewriting::{open, write};
use crate::support::read_with;

fn made(rewrite: &Rewrite) -> marquetry::Result<Bytes> {
    let mut out = Vec::new();
    rewrite.run(WriteSink(&mut out))?;
    Ok(out.into())
}

fn rows(reader: Reader) -> RecordBatch {
    let batches = read_with(reader.clone()).expect("rows");
    arrow_select::concat::concat_batches(&reader.schema().unwrap(), &batches).unwrap()
}

/// The error of a copy.
fn refused(rewrite: Rewrite, kind: ErrorKind) -> String {
    let error = made(&rewrite).expect_err("refused");
    assert_eq!(error.kind(), kind, "{error}");
    error.to_string()
}

#[test]
fn a_file_is_not_split_into_nothing_or_into_a_million_parts() {
    let mut rng = fastrand::Rng::with_seed(5);
    let ids: ArrayRef =
        Arc::new(Int64Array::from_iter_values((0..1 << 20 | 1).map(|_| rng.i64(..))));
    let batch = RecordBatch::try_from_iter([("id", ids)]).unwrap();
    let file = write(&batch, WriteOptions::new().with_row_group_rows(2 << 20));
    let of = |readers: usize| Rewrite::new(vec![open(&file); readers]);
    let split = [
        of(2).split(SplitBy::Rows(10)),
        of(1).split(SplitBy::Rows(0)),
        of(1).split(SplitBy::Rows(1)),
        of(1).split(SplitBy::Files(2 << 20)),
        of(1).split(SplitBy::Bytes(1)),
    ];
    for (case, parts) in split.into_iter().enumerate() {
        assert_eq!(parts.expect_err("too many").kind(), ErrorKind::Usage, "case {case}");
    }
    assert_eq!(of(1).split(SplitBy::Rows(1 << 19)).unwrap().len(), 3);
}

#[test]
fn a_file_is_appended_to_only_if_it_is_the_one_that_was_opened() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.parquet");
    let file = write(&numbers(), WriteOptions::new());
    std::fs::write(&path, &file).unwrap();
    let append = Rewrite::new([Reader::open(&path).unwrap(), open(&file)]);
    std::fs::write(&path, [&file[..], b"more"].concat()).unwrap();
    assert_eq!(append.append_to(&path).unwrap_err().kind(), ErrorKind::Usage);
    assert_eq!(std::fs::read(&path).unwrap().len(), file.len() + 4, "it is left as it is");
    std::fs::write(&path, &file).unwrap();
    assert_eq!(append.append_to(&path).unwrap().rows, 2_000);
    assert_eq!(rows(Reader::open(&path).unwrap()).num_rows(), 2_000);
    // Of a part of it, nothing stays where it is.
    let part = Rewrite::new([open(&file).limit(10), open(&file)]);
    assert_eq!(part.kept_bytes().unwrap(), None);
}

#[test]
fn row_groups_that_stay_where_they_are_forget_their_order_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("all.parquet");
    let options = || WriteOptions::new().with_sort_order([SortColumn::ascending("id")]);
    let file = write(&numbers(), options());
    std::fs::write(&path, &file).unwrap();
    let append = Rewrite::new([Reader::open(&path).unwrap(), open(&file)]).forget_order(true);
    assert!(append.kept_bytes().unwrap().is_some());
    append.append_to(&path).unwrap();
    let new = Reader::open(&path).unwrap();
    let metadata = new.metadata().index().to_file_meta_data().unwrap();
    assert!(metadata.row_groups.iter().all(|group| group.sorting_columns.is_none()));
    assert_eq!(rows(new).num_rows(), 2_000);
}

#[test]
fn a_column_that_is_encoded_keeps_its_codec() {
    let codecs = [
        Compression::Uncompressed,
        Compression::Snappy,
        Compression::Gzip(1),
        Compression::Brotli(1),
        Compression::Zstd(1),
        Compression::Lz4Raw,
    ];
    for codec in codecs {
        let file = write(&numbers(), WriteOptions::new().with_compression(codec));
        for rewrite in
            [Rewrite::new([open(&file)]).encode("*"), Rewrite::new([open(&file)]).regroup(true)]
        {
            let new = made(&rewrite).unwrap();
            let metadata = open(&new).metadata().index().to_file_meta_data().unwrap();
            let chunks = metadata.row_groups.iter().flat_map(|group| &group.columns);
            let found: Vec<_> = chunks.map(|of| of.meta_data.as_ref().unwrap().codec).collect();
            assert_eq!(found, vec![codec.codec(); found.len()]);
            assert_eq!(rows(open(&new)), rows(open(&file)));
        }
    }
}

#[test]
fn settings_for_columns_that_are_not_there_or_not_alone_are_refused() {
    let file = write(&numbers(), WriteOptions::new());
    let of = || Rewrite::new([open(&file)]);
    for rewrite in [of().encode("absent"), of().codec("absent", Compression::Snappy)] {
        assert!(refused(rewrite, ErrorKind::Usage).contains("absent"));
    }
    for rewrite in
        [of().field_id("id", -1), of().field_id("id", 1).field_id("u", 1), of().field_id("x", 1)]
    {
        refused(rewrite, ErrorKind::Usage);
    }
    refused(Rewrite::new([]), ErrorKind::Usage);
    refused(Rewrite::new([]).regroup(true), ErrorKind::Usage);
    // Two fields of one dotted path.
    let inner: ArrayRef = Arc::new(Int64Array::from(vec![1, 2]));
    let group =
        StructArray::from(vec![(Arc::new(Field::new("b", DataType::Int64, false)), inner.clone())]);
    let both =
        RecordBatch::try_from_iter([("a", Arc::new(group) as ArrayRef), ("a.b", inner)]).unwrap();
    let file = write(&both, WriteOptions::new());
    let ambiguous = Rewrite::new([open(&file)]).field_id("a.b", 3);
    assert!(refused(ambiguous, ErrorKind::Usage).contains("several"));
}

#[test]
fn files_whose_columns_differ_within_say_where() {
    let number = || -> ArrayRef { Arc::new(Int64Array::from(vec![1, 2])) };
    let group = |names: &[&str]| {
        let fields = names
            .iter()
            .map(|name| (Arc::new(Field::new(*name, DataType::Int64, false)), number()));
        let group: ArrayRef = Arc::new(StructArray::from(fields.collect::<Vec<_>>()));
        write(&RecordBatch::try_from_iter([("s", group)]).unwrap(), WriteOptions::new())
    };
    let (one, two) = (group(&["x"]), group(&["x", "y"]));
    let said = refused(Rewrite::new([open(&one), open(&two)]), ErrorKind::Usage);
    assert!(said.contains("nothing there, `required int64 y` here"), "{said}");
    // The annotation differs in what the message form does not show.
    let text: ArrayRef = Arc::new(StringArray::from(vec!["a"]));
    let text = write(&RecordBatch::try_from_iter([("t", text)]).unwrap(), WriteOptions::new());
    let older = with_footer(&text, |metadata| {
        let element = &mut metadata.schema[1];
        assert_eq!(element.logical_type, Some(LogicalType::String));
        (element.logical_type, element.converted_type) = (None, Some(ConvertedType::Utf8));
    });
    let said = refused(Rewrite::new([open(&text), open(&older)]), ErrorKind::Usage);
    assert!(said.contains("its schema is not that of the first file"), "{said}");
    // Two columns of one name cannot be matched by it.
    let twice = with_footer(&write(&numbers(), WriteOptions::new()), |metadata| {
        metadata.schema[2].name = "id".into();
    });
    let said = refused(Rewrite::new([open(&twice), open(&twice)]).by_name(true), ErrorKind::Usage);
    assert!(said.contains("several columns are called \"id\""), "{said}");
}

#[test]
fn geometries_of_two_coordinate_systems_are_not_joined() {
    let file = |crs: &str| {
        let geo = format!(
            r#"{{"version": "1.1.0", "primary_column": "name", "columns": {{"name":
            {{"encoding": "WKB", "geometry_types": [], "crs": {crs}}}}}}}"#
        );
        write(&numbers(), WriteOptions::new().with_key_value("geo", geo))
    };
    let (dutch, spaced) = (file(r#"{"id": 28992}"#), file(r#"{ "id" :28992 }"#));
    assert!(made(&Rewrite::new([open(&dutch), open(&spaced)])).is_ok());
    let joined = Rewrite::new([open(&dutch), open(&file(r#"{"id": 4326}"#))]);
    let error = made(&joined).unwrap_err();
    assert_eq!((error.kind(), error.at().column.as_deref()), (ErrorKind::Usage, Some("name")));
}

#[test]
fn rows_that_are_sorted_have_the_schema_of_the_sorter() {
    let batch = |numbers: Vec<i64>| {
        RecordBatch::try_from_iter([("n", Arc::new(Int64Array::from(numbers)) as ArrayRef)])
            .unwrap()
    };
    let metadata = [("key".to_owned(), "value".to_owned())].into();
    let schema = Arc::new(batch(vec![]).schema().as_ref().clone().with_metadata(metadata));
    let sorter = || RowSorter::new(schema.clone(), [SortColumn::ascending("n")]).unwrap();
    let mut sorted = sorter();
    // The same types without the metadata are the same rows.
    for numbers in [vec![3, 1], vec![], vec![2]] {
        sorted.push(&batch(numbers)).unwrap();
    }
    sorted.push(&batch(vec![0]).with_schema(schema.clone()).unwrap()).unwrap();
    assert!(format!("{sorted:?}").contains("rows: 4"), "{sorted:?}");
    let rows = sorted.finish().unwrap();
    assert_eq!((rows.schema(), rows.spilled_bytes()), (&schema, 0));
    assert!(format!("{rows:?}").contains("spilled_bytes: 0"), "{rows:?}");
    let numbers: Vec<i64> = rows
        .flat_map(|batch| batch.unwrap().column(0).as_primitive::<Int64Type>().values().to_vec())
        .collect();
    assert_eq!(numbers, [0, 1, 2, 3]);
    let text =
        RecordBatch::try_from_iter([("n", Arc::new(StringArray::from(vec!["1"])) as ArrayRef)]);
    assert_eq!(sorter().push(&text.unwrap()).unwrap_err().kind(), ErrorKind::Arrow);
    let none = RowSorter::new(batch(vec![]).schema(), []).map(drop).unwrap_err();
    assert_eq!(none.kind(), ErrorKind::Usage);
}

#[test]
fn rows_that_are_sorted_without_temporary_files_have_to_fit_into_memory() {
    let batch = numbers();
    let sorter = RowSorter::new(batch.schema(), [SortColumn::descending("id")]).unwrap();
    let mut sorter = sorter.memory(1_000).without_temp_files();
    sorter.push(&batch).unwrap();
    let error = sorter.push(&batch).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Limit(_)), "{error}");
}

/// A file of two columns, sorted by them, in row groups of 25 rows.
fn sorted_file(rows: &[(i64, i64)], by: Vec<SortColumn>, has_bounds: bool) -> Bytes {
    let column = |of: fn(&(i64, i64)) -> i64| -> ArrayRef {
        Arc::new(Int64Array::from_iter_values(rows.iter().map(of)))
    };
    let batch =
        RecordBatch::try_from_iter([("a", column(|row| row.0)), ("b", column(|row| row.1))]);
    let options = WriteOptions::new().with_row_group_rows(25).with_sort_order(by);
    let file = write(&batch.unwrap(), options);
    with_footer(&file, |metadata| {
        for chunk in metadata.row_groups.iter_mut().flat_map(|group| &mut group.columns) {
            if !has_bounds {
                chunk.meta_data.as_mut().unwrap().statistics = Some(Statistics::default());
            }
        }
    })
}

#[test]
fn sorted_files_are_merged_whether_their_keys_are_known_or_not() {
    let columns: [fn(&'static str) -> SortColumn; 2] =
        [SortColumn::ascending, SortColumn::descending];
    for (is_descending, column) in [false, true].into_iter().zip(columns) {
        for has_bounds in [false, true] {
            // Keys occur in both files, and at the borders of row groups.
            let sorted = |mut rows: Vec<(i64, i64)>| {
                rows.sort_unstable();
                if is_descending {
                    rows.reverse();
                }
                rows
            };
            let parts = [
                sorted((0..60).map(|i| (i / 4, i)).collect()),
                sorted((0..60).map(|i| (7 + i / 4, -i)).collect()),
            ];
            let folder = tempfile::tempdir().unwrap();
            let data = folder.path().join("data");
            std::fs::create_dir(&data).unwrap();
            for (name, rows) in ["a.parquet", "b.parquet"].into_iter().zip(&parts) {
                let by = vec![column("a"), column("b")];
                std::fs::write(data.join(name), sorted_file(rows, by, has_bounds)).unwrap();
            }
            let compact = Compact::new(&data).merge(true).file_bytes(1 << 20);
            assert!(format!("{compact:?}").contains("1048576"), "{compact:?}");
            assert_eq!(compact.run().unwrap().files_made, 1);
            let made = std::fs::read_dir(&data).unwrap().next().unwrap().unwrap();
            let found = rows(Reader::open(made.path()).unwrap());
            let of =
                |column: usize| found.column(column).as_primitive::<Int64Type>().values().to_vec();
            let found: Vec<(i64, i64)> = of(0).into_iter().zip(of(1)).collect();
            assert_eq!(found, sorted(parts.concat()), "{is_descending}, {has_bounds}");
        }
    }
}

#[test]
fn columns_of_two_types_get_one_that_holds_both() {
    let file = |values: ArrayRef, is_nullable: bool| {
        let batch = RecordBatch::try_from_iter_with_nullable([("n", values, is_nullable)]);
        write(&batch.unwrap(), WriteOptions::new())
    };
    let signed = file(Arc::new(Int32Array::from(vec![-1, 2])), false);
    let unsigned = file(Arc::new(UInt32Array::from(vec![Some(u32::MAX), None])), true);
    let joined = made(&Rewrite::new([open(&signed), open(&unsigned)]).by_name(true)).unwrap();
    let found = rows(open(&joined));
    let found: Vec<Option<i64>> = found.column(0).as_primitive::<Int64Type>().iter().collect();
    assert_eq!(found, [Some(-1), Some(2), Some(u32::MAX.into()), None]);
}

#[cfg(feature = "encryption")]
#[test]
fn what_is_encoded_is_encrypted_as_what_is_copied() {
    use marquetry::crypt::{Decryption, Encryption, Key};
    let key = || Key::new(b"0123456789abcdef").unwrap();
    let keys = Decryption::new().with_footer_key(key());
    let with_keys = |file: Bytes| Reader::with_keys(file, Default::default(), &keys).unwrap();
    let file = write(&numbers(), WriteOptions::new().with_row_group_rows(300));
    let of = || Rewrite::new([open(&file)]).encryption(Encryption::new(key()));
    for rewrite in
        [of().encode("name"), of().regroup(true), of().sort_by([SortColumn::ascending("id")])]
    {
        let encrypted = made(&rewrite).unwrap();
        assert!(!encrypted.windows(8).any(|bytes| bytes == b"name 39\0" || bytes == b"name 38\0"));
        assert_eq!(Reader::new(encrypted.clone()).unwrap_err().kind(), ErrorKind::Crypto);
        assert_eq!(rows(with_keys(encrypted)).columns(), rows(open(&file)).columns());
    }
    // The schema of an encrypted file tells nothing of another.
    let encrypted = with_keys(made(&of()).unwrap());
    let salvage = Salvage::new(file.clone());
    assert!(format!("{salvage:?}").contains("group_rows: None"), "{salvage:?}");
    let error = salvage.schema_of(&encrypted).map(drop).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Unsupported(_)), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    std::fs::create_dir(&data).unwrap();
    for name in ["a.parquet", "b.parquet"] {
        std::fs::write(data.join(name), &file).unwrap();
    }
    Compact::new(&data).encryption(Encryption::new(key())).run().unwrap();
    let made = std::fs::read_dir(&data).unwrap().next().unwrap().unwrap();
    let joined = with_keys(std::fs::read(made.path()).unwrap().into());
    assert_eq!(rows(joined).num_rows(), 2_000);
}

#[test]
fn a_salvage_without_a_row_group_writes_no_file() {
    let file = write(&numbers(), WriteOptions::new());
    let found = Salvage::new(file.slice(..100)).schema_of(&open(&file)).unwrap().find().unwrap();
    assert!(format!("{found:?}").contains("recovered: []"), "{found:?}");
    assert!(!found.account().is_complete());
    let error = found.write(WriteSink(Vec::new())).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{error}");
}

#[test]
fn a_row_group_whose_statistics_are_not_true_is_recovered_without_them() {
    type Lie = fn(&mut Statistics);
    let file = write(&numbers(), WriteOptions::new().with_row_group_rows(400));
    // A count of the footer, in which writers have faults; and a bound, which pages contradict.
    let lies: [(Lie, &str); 2] = [
        (|stated| stated.nan_count = Some(1), "footer in part"),
        (|stated| stated.min_value = Some(900f64.to_le_bytes().to_vec()), "page headers"),
    ];
    for (lie, name) in lies {
        let wrong = with_footer(&file, |metadata| {
            let meta = metadata.row_groups[1].columns[3].meta_data.as_mut().unwrap();
            lie(meta.statistics.as_mut().unwrap());
        });
        let found = Salvage::new(wrong).find().unwrap();
        let account = found.account();
        let by: Vec<_> = account.recovered.iter().map(|of| of.found_by.name()).collect();
        assert_eq!(by, ["footer", name, "footer"], "{account:?}");
        let is_noted = account.notes.iter().any(|note| note.contains("left out"));
        assert_eq!(is_noted, name == "footer in part", "{account:?}");
        let mut out = Vec::new();
        found.write(WriteSink(&mut out)).unwrap();
        assert_eq!(rows(open(&out.into())), rows(open(&file)));
    }
}

#[test]
fn pages_of_a_single_column_are_rows_in_their_order() {
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values((0..900).map(|i| i * i)));
    let lists = (0..900).map(|i| Some((0..i % 5).map(Some).collect::<Vec<_>>()));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists));
    for column in [ids, lists] {
        let batch = RecordBatch::try_from_iter([("c", column)]).unwrap();
        let options = WriteOptions::new().with_page_rows(100).with_row_group_rows(300);
        let file = write(&batch, options);
        let last = open(&file).metadata().column_chunk(2, 0).unwrap().meta_data.unwrap();
        let end = usize::try_from(last.data_page_offset + last.total_compressed_size).unwrap();
        // Without the footer; within a page; and by the schema of another file.
        for len in [file.len() - 9, end - 20] {
            let salvage = Salvage::new(file.slice(..len)).schema_of(&open(&file)).unwrap();
            let found = salvage.find().unwrap();
            let recovered = found.account().rows_recovered();
            assert!((300..=900).contains(&recovered), "{:?}", found.account());
            let found = rows(found.reader().unwrap());
            assert_eq!(found.columns(), batch.slice(0, found.num_rows()).columns());
        }
        let other = write(&numbers(), WriteOptions::new());
        let found = Salvage::new(file).schema_of(&open(&other)).unwrap().find().unwrap();
        assert!(found.account().notes[0].contains("another schema"), "{:?}", found.account());
        assert_eq!(found.account().rows_recovered(), 0);
    }
}

#[test]
fn parts_that_cannot_be_filled_in_are_noted() {
    let flags: ArrayRef = Arc::new(BooleanArray::from(vec![true; 400]));
    let shares = (0..400).map(|i| if (100..200).contains(&i) { f64::NAN } else { f64::from(i) });
    let shares: ArrayRef = Arc::new(Float64Array::from_iter_values(shares));
    let lists = (0..400).map(|i| Some((0..i % 5).map(Some).collect::<Vec<_>>()));
    let lists: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Int32Type, _, _>(lists));
    let columns = [("flag", flags), ("share", shares), ("list", lists)];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    for version in [PageVersion::V1, PageVersion::V2] {
        let options = WriteOptions::new().with_page_rows(50).with_page_version(version);
        let file = with_footer(&write(&batch, options), |metadata| {
            for chunk in metadata.row_groups.iter_mut().flat_map(|group| &mut group.columns) {
                (chunk.offset_index_offset, chunk.offset_index_length) = (None, None);
                (chunk.column_index_offset, chunk.column_index_length) = (None, None);
            }
        });
        let run = |fill: Fill| {
            let mut out = Vec::new();
            let done = fill.run(WriteSink(&mut out)).unwrap();
            assert_eq!(rows(open(&out.into())), rows(open(&file)));
            done
        };
        let parts = [FillPart::OffsetIndex, FillPart::ColumnIndex];
        let done = run(Fill::new(open(&file)).only(parts).bound_bytes(8));
        let told = |notes: &[String], what: &str| notes.iter().any(|note| note.contains(what));
        assert!(told(&done.notes, "column share: a page has no bounds"), "{:?}", done.notes);
        let counts: Vec<_> = done.parts.iter().map(|part| (part.part, part.count)).collect();
        assert_eq!(counts, [(FillPart::OffsetIndex, 3), (FillPart::ColumnIndex, 2)]);
        // Only headers of version 2 tell the rows of lists.
        let done = run(Fill::new(open(&file)).only(parts).decode_values(false));
        let is_told = told(&done.notes, "column list.list.element: page headers do not tell");
        assert_eq!(is_told, version == PageVersion::V1, "{:?}", done.notes);
        let offsets = done.parts.iter().find(|part| part.part == FillPart::OffsetIndex).unwrap();
        assert_eq!(offsets.count, if version == PageVersion::V1 { 2 } else { 3 });
        let bloom = Fill::new(open(&file)).bloom("flag", BloomOptions::default());
        assert_eq!(bloom.plan().unwrap_err().kind(), ErrorKind::Usage);
    }
}

#[test]
fn bounds_in_total_order_are_filled_in_with_nans() {
    let shares: ArrayRef = Arc::new(Float64Array::from(vec![2.0, f64::NAN, -1.0]));
    let batch = RecordBatch::try_from_iter([("share", shares)]).unwrap();
    let file = write(&batch, WriteOptions::new().with_total_order(true));
    let stated = |file: &Bytes| {
        let metadata = open(file).metadata().index().to_file_meta_data().unwrap();
        metadata.row_groups[0].columns[0].meta_data.clone().unwrap().statistics
    };
    let poor = with_footer(&file, |metadata| {
        metadata.row_groups[0].columns[0].meta_data.as_mut().unwrap().statistics = None;
    });
    let mut out = Vec::new();
    Fill::new(open(&poor)).only([FillPart::Statistics]).run(WriteSink(&mut out)).unwrap();
    let (found, before) = (stated(&out.into()).unwrap(), stated(&file).unwrap());
    assert_eq!((&found.min_value, &found.max_value), (&before.min_value, &before.max_value));
    assert_eq!(found.nan_count, Some(1));
}
