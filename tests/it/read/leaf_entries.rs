//! Tests the levels and values of leaves that are read without assembly, against the naive model.

use marquetry::Reader;
use marquetry::arrow_schema::Field;
use marquetry::schema::Physical;

use crate::support::cells::{Entry, Shredder, cells, columns, leaves, plain_type};
use crate::support::generate::{case, every_case};

/// The entries of all leaves of a row group, by the naive shredder.
fn expected(reader: &Reader, row_group: usize, physical: &[Physical]) -> Vec<Vec<Entry>> {
    let part = reader.clone().row_groups([row_group]).unwrap();
    let schema = part.schema().unwrap();
    let batches: Vec<_> = part.batches().unwrap().collect::<Result<_, _>>().unwrap();
    let mut entries = vec![Vec::new(); physical.len()];
    let mut first = 0;
    for (field, column) in schema.fields().iter().zip(&columns(&schema, &batches)) {
        for cell in column {
            Shredder { physical, out: &mut entries }.cell(field, cell, (0, 0, 0), first);
        }
        first += leaves(field).len();
    }
    entries
}

#[test]
fn levels_and_values_of_leaves_are_those_of_the_naive_shredder() {
    let mut compared = std::sync::atomic::AtomicUsize::new(0);
    every_case(100, |seed| {
        let case = case(seed);
        let mut rng = fastrand::Rng::with_seed(seed);
        let reader = Reader::new(case.file.clone()).unwrap().batch_rows(rng.usize(1..300));
        let schema = reader.metadata().schema();
        let all: Vec<_> = (0..schema.leaves_len()).map(|i| schema.leaf(i).unwrap()).collect();
        let physical: Vec<Physical> = all.iter().map(|leaf| leaf.physical).collect();
        let fields = reader.schema().unwrap();
        if fields.fields().iter().map(|field| leaves(field).len()).sum::<usize>() != all.len() {
            return; // VARIANT, and groups that are no columns
        }
        for row_group in 0..reader.metadata().row_groups() {
            let wanted = expected(&reader, row_group, &physical);
            let expected_rows = reader.metadata().footer().row_group_rows(row_group).unwrap();
            for (leaf, wanted) in all.iter().zip(&wanted) {
                let name = format!("{}, row group {row_group}, {}", case.name, leaf.path);
                let (mut def, mut rep, mut values, mut rows) = (vec![], vec![], vec![], 0);
                for entries in reader.leaf_entries(row_group, leaf.index).expect(&name) {
                    let entries = entries.expect(&name);
                    rows += entries.rows;
                    def.extend(entries.definition_levels.iter().map(|level| usize::from(*level)));
                    rep.extend(entries.repetition_levels.iter().map(|level| usize::from(*level)));
                    let data_type = plain_type(entries.values.data_type()).clone();
                    let field = Field::new("values", data_type, false);
                    let mut found = vec![Vec::new(); all.len()];
                    for cell in cells(&entries.values) {
                        Shredder { physical: &physical, out: &mut found }.cell(
                            &field,
                            &cell,
                            (0, 0, 0),
                            leaf.index,
                        );
                    }
                    values.extend(found.swap_remove(leaf.index).into_iter().map(|e| e.value));
                }
                let any = |max: u16, levels: Vec<usize>| if max == 0 { vec![] } else { levels };
                let wanted_def = wanted.iter().map(|entry| entry.def).collect();
                let wanted_rep = wanted.iter().map(|entry| entry.rep).collect();
                assert_eq!(def, any(leaf.max_def, wanted_def), "{name}");
                assert_eq!(rep, any(leaf.max_rep, wanted_rep), "{name}");
                let there = wanted.iter().filter(|entry| entry.value.is_some());
                let there: Vec<_> = there.map(|entry| entry.value.clone()).collect();
                assert_eq!(values, there, "{name}");
                assert_eq!(rows as u64, expected_rows);
                compared.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            }
        }
    });
    assert!(*compared.get_mut() > 500, "{compared:?}");
}

#[test]
fn a_chunk_of_other_rows_than_its_row_group_ends_in_an_error() {
    use crate::support::files::{Chunk, file, ints, required, v1};
    use marquetry::format::{Encoding, Type};

    for rows in [2, 4] {
        let pages = [v1(3, Encoding::Plain, &ints(&[1, 2, 3]))];
        let chunk = Chunk::new(Type::Int32, 3, &pages);
        let reader = Reader::new(bytes::Bytes::from(file(
            vec![required("v", Type::Int32)],
            rows,
            vec![chunk],
        )));
        let reader = reader.unwrap();
        let entries = reader.leaf_entries(0, 0).and_then(|all| all.collect::<Result<Vec<_>, _>>());
        let error = entries.expect_err("a chunk of three rows");
        assert!(matches!(error.kind(), marquetry::ErrorKind::Malformed(_)), "{error}");
    }
}

#[test]
fn entries_of_changed_files_end_in_rows_or_in_errors() {
    let (mut ended, mut failed) = (0, 0);
    for seed in 0..400 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let mut bytes = case(seed % 40).file.to_vec();
        for _ in 0..rng.usize(1..8) {
            let at = rng.usize(4..bytes.len());
            bytes[at] = rng.u8(..);
        }
        let Ok(reader) = Reader::new(bytes::Bytes::from(bytes)) else { continue };
        let reader = reader.memory(64 << 20).batch_rows(rng.usize(1..300));
        for row_group in 0..reader.metadata().row_groups() {
            for leaf in 0..reader.metadata().schema().leaves_len() {
                let entries = reader.leaf_entries(row_group, leaf);
                match entries.and_then(|all| all.collect::<Result<Vec<_>, _>>()) {
                    Ok(_) => ended += 1,
                    Err(_) => failed += 1,
                }
            }
        }
    }
    assert!(ended > 500 && failed > 50, "{ended} ended, {failed} failed");
}

#[test]
#[cfg(feature = "object_store")]
fn what_comes_asynchronously_is_what_a_source_gives() {
    use crate::support::mutants::paths::block_on;

    let mut batches = 0;
    for seed in 0..20 {
        let case = case(seed);
        let reader = Reader::new(case.file.clone()).unwrap().batch_rows(100);
        block_on(async {
            let other = marquetry::AsyncReader::open_async(case.file.clone()).await.unwrap();
            let other = other.batch_rows(100);
            for row_group in 0..reader.metadata().row_groups() {
                for leaf in 0..reader.metadata().schema().leaves_len() {
                    let mut entries = other.leaf_entries(row_group, leaf).unwrap();
                    for wanted in reader.leaf_entries(row_group, leaf).unwrap() {
                        let wanted = wanted.unwrap();
                        let found = entries.next_batch().await.unwrap().expect("as many batches");
                        assert_eq!(found.definition_levels, wanted.definition_levels, "{seed}");
                        assert_eq!(found.repetition_levels, wanted.repetition_levels, "{seed}");
                        assert_eq!(&found.values, &wanted.values, "{seed}");
                        batches += 1;
                    }
                    assert!(entries.next_batch().await.unwrap().is_none(), "{seed}");
                }
            }
            Ok(())
        })
        .unwrap();
    }
    assert!(batches > 200, "{batches}");
}

#[test]
fn sizes_that_a_file_only_states_take_no_memory() {
    use crate::support::files::{Chunk, file, group, required, v1};
    use marquetry::format::{Encoding, FieldRepetitionType, Type};
    use marquetry::{ErrorKind, LimitKind};

    let kind = |file: Vec<u8>, rows: usize| {
        let reader = Reader::new(bytes::Bytes::from(file)).unwrap().memory(64 << 20);
        let reader = reader.batch_rows(rows);
        let all = reader.leaf_entries(0, 0).and_then(|all| all.collect::<Result<Vec<_>, _>>());
        all.unwrap_err().kind()
    };
    // One row of lists without elements: levels of three bytes that become 4 GiB.
    let entries = 1 << 30;
    let run = |level: u32| {
        let mut out = Vec::new();
        let mut header = (entries as u64) << 1;
        while header >= 0x80 {
            out.push((header & 0x7f) as u8 | 0x80);
            header >>= 7;
        }
        out.push(header as u8);
        out.push(level as u8);
        [&u32::try_from(out.len()).unwrap().to_le_bytes()[..], &out].concat()
    };
    let body = [run(0), run(0)].concat();
    let schema = vec![group("a", FieldRepetitionType::Repeated, 1), required("v", Type::Int32)];
    let page = v1(entries, Encoding::Plain, &body);
    let chunk = Chunk::new(Type::Int32, entries, &[page]);
    let rows = i64::try_from(entries).unwrap();
    let found = kind(file(schema, rows, vec![chunk]), usize::MAX);
    assert_eq!(found, ErrorKind::Limit(LimitKind::Memory));

    // Rows that a chunk has no slots for, and those that it only claims to have.
    for slots in [3, 1 << 40] {
        let pages = [v1(3, Encoding::Plain, &[0; 12])];
        let chunk = Chunk::new(Type::Int32, slots, &pages);
        let found = kind(file(vec![required("v", Type::Int32)], 1 << 40, vec![chunk]), usize::MAX);
        assert!(matches!(found, ErrorKind::Malformed(_)), "{found:?}");
    }

    // A chunk of another type than its column.
    let chunk = Chunk::new(Type::Int64, 1, &[v1(1, Encoding::Plain, &[0; 8])]);
    let found = kind(file(vec![required("v", Type::Int32)], 1, vec![chunk]), 10);
    assert!(matches!(found, ErrorKind::Malformed(_)), "{found:?}");
}

#[test]
fn values_of_a_column_that_is_said_to_be_null_are_as_many_as_there_are() {
    use crate::support::files::{Chunk, file, ints, levels_v1, optional, v1};
    use marquetry::arrow_array::Array;
    use marquetry::format::{Encoding, LogicalType, Type};

    let mut schema = vec![optional("v", Type::Int32)];
    schema[0].logical_type = Some(LogicalType::Unknown);
    let body = [levels_v1(&[1, 0, 1], 1), ints(&[5, 6])].concat();
    let chunk = Chunk::new(Type::Int32, 3, &[v1(3, Encoding::Plain, &body)]);
    let reader = Reader::new(bytes::Bytes::from(file(schema, 3, vec![chunk]))).unwrap();
    let all: Vec<_> = reader.leaf_entries(0, 0).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].definition_levels, [1, 0, 1]);
    assert_eq!(all[0].values.len(), 2);
    assert_eq!(all[0].values.data_type(), &marquetry::arrow_schema::DataType::Null);
}
