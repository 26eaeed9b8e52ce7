//! Tests row groups that are written from the levels and values of their leaves.

use std::sync::Arc;

use marquetry::arrow_array::{ArrayRef, Int32Array, RecordBatch, StringArray, StructArray};
use marquetry::arrow_schema::{DataType, Field, Fields, Schema, SchemaRef};
use marquetry::io::WriteSink;
use marquetry::read::LeafEntries;
use marquetry::{
    ErrorKind, LeafWriter, Reader, Result, RowGroupEncoder, SortColumn, WriteOptions, Writer,
};

use crate::support::cells::columns;
use crate::support::generate::{Case, case, every_case};

/// The leaves of each row group of a file, as they are read, for an encoder of its schema.
fn copied(reader: &Reader, encoder: &RowGroupEncoder) -> Result<Vec<LeafWriter>> {
    let metadata = reader.metadata();
    let row_group = |row_group: usize| {
        let rows = metadata.footer().row_group_rows(row_group)?;
        let mut leaves = encoder.leaves(usize::try_from(rows).unwrap());
        for leaf in 0..metadata.schema().leaves_len() {
            assert_eq!(leaves.next_leaf().map(|leaf| leaf.index), Some(leaf));
            let entries = reader.leaf_entries(row_group, leaf)?.collect::<Result<Vec<_>>>()?;
            leaves.write(&entries)?;
        }
        Ok(leaves)
    };
    (0..metadata.row_groups()).map(row_group).collect()
}

fn encoder(case: &Case) -> RowGroupEncoder {
    RowGroupEncoder::new(case.schema.clone(), case.options.clone()).unwrap()
}

fn table(file: bytes::Bytes) -> (SchemaRef, Vec<Vec<crate::support::cells::Cell>>) {
    let reader = Reader::new(file).unwrap();
    let schema = reader.schema().unwrap();
    let batches: Vec<_> = reader.batches().unwrap().collect::<Result<_, _>>().unwrap();
    (schema.clone(), columns(&schema, &batches))
}

#[test]
fn leaves_that_are_read_and_written_give_the_same_table() {
    let mut copies = std::sync::atomic::AtomicUsize::new(0);
    every_case(100, |seed| {
        let case = case(seed);
        let mut rng = fastrand::Rng::with_seed(seed);
        let reader = Reader::new(case.file.clone()).unwrap().batch_rows(rng.usize(1..300));
        let encoder = encoder(&case);
        let mut writer = Writer::over(WriteSink(Vec::new()), encoder.clone());
        for leaves in copied(&reader, &encoder).unwrap_or_else(|e| panic!("{e}: {}", case.name)) {
            writer.append(leaves.finish().unwrap()).unwrap();
            copies.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
        let (report, file) = writer.into_inner().unwrap();
        let file = bytes::Bytes::from(file);
        assert_eq!(table(file.clone()), table(case.file.clone()), "{}", case.name);
        let copy = Reader::new(file).unwrap();
        assert_eq!(report.rows, reader.rows().unwrap());
        // The statistics are made of the same values.
        for row_group in 0..reader.metadata().row_groups() {
            for leaf in 0..reader.metadata().schema().leaves_len() {
                let of = |reader: &Reader| {
                    let footer = reader.metadata().footer();
                    let meta = footer.column_chunk(row_group, leaf).unwrap().meta_data.unwrap();
                    let sizes = meta.size_statistics.unwrap_or_default();
                    let levels =
                        (sizes.repetition_level_histogram, sizes.definition_level_histogram);
                    let of = meta.statistics.unwrap_or_default();
                    (meta.num_values, of.min_value, of.max_value, of.null_count, levels)
                };
                assert_eq!(of(&copy), of(&reader), "{} leaf {leaf}", case.name);
            }
        }
    });
    assert!(*copies.get_mut() > 50, "{copies:?} row groups");
}

#[test]
#[cfg(feature = "object_store")]
fn the_asynchronous_writer_appends_the_same_row_groups() {
    use object_store::ObjectStoreExt;

    use crate::support::mutants::paths::block_on;

    for seed in 0..20 {
        let case = case(seed);
        let reader = Reader::new(case.file.clone()).unwrap();
        let store = Arc::new(object_store::memory::InMemory::new());
        let found = block_on(async {
            let sink = marquetry::io::StoreSink::new(store.clone(), "copy".into());
            let encoder = encoder(&case);
            let mut writer = marquetry::AsyncWriter::over(sink, encoder.clone());
            for leaves in copied(&reader, &encoder).unwrap() {
                writer.append(leaves.finish().unwrap()).await.unwrap();
            }
            writer.finish().await.unwrap();
            Ok(store.get(&"copy".into()).await.unwrap().bytes().await.unwrap())
        });
        assert_eq!(table(found.unwrap()), table(case.file.clone()), "{}", case.name);
    }
}

/// `a`: an INT32 that may be null, and a struct `s` in a list, of `x` and `y`.
fn schema() -> SchemaRef {
    let fields = Fields::from(vec![
        Field::new("x", DataType::Int32, true),
        Field::new("y", DataType::Utf8, false),
    ]);
    let item = Field::new("element", DataType::Struct(fields), true);
    Arc::new(Schema::new(vec![
        Field::new("a", DataType::Int32, true),
        Field::new_list("s", item, true),
    ]))
}

fn ints(values: &[i32]) -> ArrayRef {
    Arc::new(Int32Array::from(values.to_vec()))
}

fn texts(n: usize) -> ArrayRef {
    Arc::new(StringArray::from_iter_values((0..n).map(|i| format!("text {i}"))))
}

/// Four rows: of `s`, null, empty, two elements, one that is null.
fn leaves() -> [LeafEntries; 3] {
    let rep = vec![0, 0, 0, 1, 0];
    [
        LeafEntries::new(4, vec![1, 0, 1, 1], vec![], ints(&[1, 3, 4])),
        LeafEntries::new(4, vec![0, 1, 4, 3, 2], rep.clone(), ints(&[7])),
        LeafEntries::new(4, vec![0, 1, 3, 3, 2], rep, texts(2)),
    ]
}

fn written(leaves: &[LeafEntries]) -> Result<bytes::Bytes> {
    let encoder = RowGroupEncoder::new(schema(), WriteOptions::new())?;
    let mut row_group = encoder.leaves(4);
    leaves.iter().try_for_each(|leaf| row_group.write(std::slice::from_ref(leaf)))?;
    let mut writer = Writer::over(WriteSink(Vec::new()), encoder);
    writer.append(row_group.finish()?)?;
    Ok(writer.into_inner()?.1.into())
}

#[test]
fn rows_have_the_values_that_the_levels_say() {
    let (_, found) = table(written(&leaves()).unwrap());
    let a: ArrayRef = Arc::new(Int32Array::from(vec![Some(1), None, Some(3), Some(4)]));
    let x: ArrayRef = Arc::new(Int32Array::from(vec![Some(7), None, None]));
    let y: ArrayRef = Arc::new(StringArray::from(vec!["text 0", "text 1", ""]));
    let schema = schema();
    let DataType::List(item) = schema.field(1).data_type() else { unreachable!("made above") };
    let DataType::Struct(fields) = item.data_type() else { unreachable!("made above") };
    let elements =
        StructArray::new(fields.clone(), vec![x, y], Some(vec![true, true, false].into()));
    let lists = marquetry::arrow_array::ListArray::new(
        item.clone(),
        arrow_buffer::OffsetBuffer::new(vec![0, 0, 0, 2, 3].into()),
        Arc::new(elements),
        Some(vec![false, true, true, true].into()),
    );
    let rows = RecordBatch::try_new(schema.clone(), vec![a, Arc::new(lists)]).unwrap();
    assert_eq!(found, columns(&schema, &[rows]));
}

/// Changes one leaf of those that are right, and expects an error that names it.
#[track_caller]
fn refused(leaf: usize, change: impl FnOnce(&mut LeafEntries)) {
    let mut leaves = leaves();
    change(&mut leaves[leaf]);
    let error = written(&leaves).expect_err("levels that are wrong");
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    let path = ["a", "s.list.element.x", "s.list.element.y"][leaf];
    assert!(error.to_string().contains(path), "{error}");
}

#[test]
fn levels_and_values_that_contradict_each_other_are_refused() {
    refused(0, |a| a.definition_levels[0] = 2);
    refused(0, |a| a.definition_levels[0] = 0);
    refused(0, |a| a.definition_levels[1] = 1);
    refused(0, |a| a.definition_levels.truncate(3));
    refused(0, |a| a.definition_levels.push(0));
    refused(0, |a| a.repetition_levels = vec![0; 4]);
    refused(0, |a| a.rows = 3);
    refused(0, |a| a.rows = 5);
    refused(0, |a| a.values = texts(3));
    refused(0, |a| a.values = ints(&[1, 3]));
    refused(0, |a| a.values = Arc::new(Int32Array::from(vec![Some(1), None, Some(4)])));
    refused(1, |x| x.repetition_levels[3] = 2);
    refused(1, |x| x.repetition_levels[0] = 1);
    // An element of a list that is null, or empty; and one that is none.
    refused(1, |x| x.repetition_levels[1] = 1);
    refused(1, |x| {
        x.repetition_levels.swap(2, 3);
        x.repetition_levels[2] = 1;
    });
    refused(1, |x| x.definition_levels[3] = 1);
    refused(1, |x| x.repetition_levels.truncate(4));
    // The same for both leaves of a struct, but not of the lists around them.
    refused(2, |y| y.definition_levels[0] = 1);
    refused(2, |y| y.definition_levels[1] = 0);
    refused(2, |y| y.definition_levels[4] = 1);
    refused(2, |y| {
        y.definition_levels = vec![0, 1, 3, 3, 2, 2];
        y.repetition_levels = vec![0, 0, 0, 1, 0, 1];
    });
    refused(2, |y| {
        y.definition_levels = vec![0, 1, 3, 2, 2];
        y.values = texts(1);
    });
}

#[test]
fn a_row_group_needs_all_leaves_and_no_more() {
    let all = leaves();
    let error = written(&all[..2]).unwrap_err();
    assert!(error.kind() == ErrorKind::Usage && error.to_string().contains("s.list.element.y"));
    let [a, x, y] = all;
    assert_eq!(written(&[a.clone(), x.clone(), y, x]).unwrap_err().kind(), ErrorKind::Usage);
    // After an error there is no row group.
    let encoder = RowGroupEncoder::new(schema(), WriteOptions::new()).unwrap();
    let mut row_group = encoder.leaves(5);
    row_group.write(std::slice::from_ref(&a)).unwrap_err();
    assert!(row_group.write(std::slice::from_ref(&a)).is_err() && row_group.finish().is_err());
    // An order that is stated is not checked here.
    for (options, is_refused) in [
        (WriteOptions::new().with_sort_order([SortColumn::ascending("a")]), true),
        (WriteOptions::new().with_unchecked_sort_order([SortColumn::ascending("a")]), false),
    ] {
        let schema = Arc::new(schema().project(&[0]).unwrap());
        let encoder = RowGroupEncoder::new(schema, options).unwrap();
        let mut row_group = encoder.leaves(4);
        row_group.write(std::slice::from_ref(&a)).unwrap();
        assert_eq!(row_group.finish().is_err(), is_refused);
    }
}
