//! Tests that deleted rows are left out, in every form of a deletion vector, and that broken ones
//! are errors.

use std::collections::BTreeSet;
use std::sync::Arc;

use fastrand::Rng;
use marquetry::arrow_array::RecordBatch;
use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::types::Int64Type;
use marquetry::read::VirtualColumn;
use marquetry::{Dataset, DeletionVector, ErrorKind, Reader, RowSelection, WriteOptions, col};

use crate::read::row_selection::write;
use crate::support::numbered::rows;

const MAGIC: u32 = 1_681_511_377;

/// A set of 64-bit numbers in the portable form of Roaring, its containers in random forms.
fn roaring(rng: &mut Rng, numbers: &BTreeSet<u64>) -> Vec<u8> {
    let mut out = Vec::new();
    let highs: BTreeSet<u32> = numbers.iter().map(|n| (n >> 32) as u32).collect();
    out.extend((highs.len() as u64).to_le_bytes());
    for high in highs {
        out.extend(high.to_le_bytes());
        let of = |n: &&u64| (**n >> 32) as u32 == high;
        let low: Vec<u32> = numbers.iter().filter(of).map(|n| *n as u32).collect();
        out.extend(set(rng, &low));
    }
    out
}

fn set(rng: &mut Rng, numbers: &[u32]) -> Vec<u8> {
    let containers: Vec<&[u32]> = numbers.chunk_by(|a, b| a >> 16 == b >> 16).collect();
    let with_runs = rng.bool();
    let (mut flags, mut bodies) = (vec![0u8; containers.len().div_ceil(8)], Vec::new());
    for (i, numbers) in containers.iter().enumerate() {
        let low: Vec<u16> = numbers.iter().map(|n| *n as u16).collect();
        let mut body = Vec::new();
        if with_runs && rng.bool() {
            flags[i / 8] |= 1 << (i % 8);
            let runs: Vec<&[u16]> = low.chunk_by(|a, b| a.wrapping_add(1) == *b).collect();
            body.extend((runs.len() as u16).to_le_bytes());
            for run in runs {
                body.extend(run[0].to_le_bytes());
                body.extend(((run.len() - 1) as u16).to_le_bytes());
            }
        } else if low.len() <= 4096 {
            low.iter().for_each(|n| body.extend(n.to_le_bytes()));
        } else {
            body.resize(8192, 0);
            low.iter().for_each(|n| body[usize::from(*n) / 8] |= 1 << (n % 8));
        }
        bodies.push(body);
    }
    let n = containers.len();
    let mut out = Vec::new();
    match with_runs {
        true => {
            out.extend((12347 | (n as u32 - 1) << 16).to_le_bytes());
            out.extend(&flags);
        }
        false => {
            out.extend(12346u32.to_le_bytes());
            out.extend((n as u32).to_le_bytes());
        }
    }
    for numbers in &containers {
        out.extend(((numbers[0] >> 16) as u16).to_le_bytes());
        out.extend((numbers.len() as u16).wrapping_sub(1).to_le_bytes());
    }
    if !with_runs || n >= 4 {
        let mut offset = out.len() + 4 * n;
        for body in &bodies {
            out.extend((offset as u32).to_le_bytes());
            offset += body.len();
        }
    }
    bodies.iter().for_each(|body| out.extend(body));
    out
}

fn delta(rng: &mut Rng, numbers: &BTreeSet<u64>) -> Vec<u8> {
    [&MAGIC.to_le_bytes()[..], &roaring(rng, numbers)].concat()
}

fn blob(content: &[u8]) -> Vec<u8> {
    let len = u32::try_from(content.len()).unwrap().to_be_bytes();
    [&len[..], content, &crc32fast::hash(content).to_be_bytes()].concat()
}

/// Rows below `len`, alone and in runs.
fn deleted(rng: &mut Rng, len: u64) -> BTreeSet<u64> {
    let mut out = BTreeSet::new();
    for _ in 0..rng.usize(0..30) {
        let first = rng.u64(0..len);
        let run = if rng.bool() { 1 } else { rng.u64(1..len.div_ceil(8) + 2) };
        out.extend((first..first + run).filter(|n| *n < len));
    }
    out
}

#[test]
fn ten_thousand_random_vectors_delete_exactly_their_rows() {
    let seed = fastrand::u64(..);
    let mut rng = Rng::with_seed(seed);
    for i in 0..10_000 {
        let len = [10, 1_000, 70_000][if i % 100 == 0 { 2 } else { i % 2 }];
        let mut numbers = deleted(&mut rng, len);
        let beyond = if rng.u8(..) < 30 { 1 << 33 } else { 0 };
        numbers.extend((beyond > 0).then_some(beyond + 5));
        let bytes = delta(&mut rng, &numbers);
        let vector = match rng.bool() {
            true => DeletionVector::from_delta(bytes),
            false => DeletionVector::from_blob([blob(&bytes), vec![9, 9]].concat()),
        };
        let vector = vector.unwrap_or_else(|e| panic!("seed {seed}, vector {i}: {e}"));
        assert_eq!(vector.count(), numbers.len() as u64, "seed {seed}");
        assert!(vector.ranges().flatten().eq(numbers.iter().copied()), "seed {seed}");
        let kept = vector.kept(len);
        assert_eq!(kept.len(), len);
        assert!(kept.rows().eq((0..len).filter(|n| !numbers.contains(n))), "seed {seed}");
        assert_eq!(kept, RowSelection::from_rows(len, kept.rows()).unwrap(), "seed {seed}");
    }
}

#[test]
fn a_container_of_4096_values_is_an_array() {
    let seed = fastrand::u64(..);
    let mut rng = Rng::with_seed(seed);
    for n in [4_095, 4_096, 4_097] {
        let numbers: BTreeSet<u64> = (0..n).map(|i| 3 * i).collect();
        let vector = DeletionVector::from_delta(delta(&mut rng, &numbers)).expect("a vector");
        assert!(vector.ranges().flatten().eq(numbers.iter().copied()), "{n}, seed {seed}");
    }
}

fn numbers(batches: impl Iterator<Item = RecordBatch>) -> Vec<i64> {
    let of = |batch: RecordBatch| batch.column(0).as_primitive::<Int64Type>().values().to_vec();
    batches.flat_map(of).collect()
}

fn read(reader: &Reader) -> Vec<i64> {
    numbers(reader.batches().unwrap().map(|batch| batch.unwrap()))
}

#[test]
fn deleted_rows_are_left_out_of_every_read() {
    let options = WriteOptions::new().with_page_rows(100).with_row_group_rows(1_700);
    let file = write(&rows(0, 5_000), options);
    let reader = Reader::new(file).unwrap();
    let seed = fastrand::u64(..);
    let mut rng = Rng::with_seed(seed);
    for _ in 0..200 {
        let gone = deleted(&mut rng, 5_100);
        let bytes = delta(&mut rng, &gone);
        let reader = reader.clone().threads(rng.usize(1..3));
        let reader = reader.exclude(&DeletionVector::from_delta(bytes).unwrap()).unwrap();
        let left: Vec<i64> = (0..5_000).filter(|n| !gone.contains(&(*n as u64))).collect();
        assert_eq!(read(&reader), left, "seed {seed}");
        assert_eq!(reader.rows().unwrap(), left.len() as u64);
        let filtered = reader.clone().filter(col("n").gt_eq(2_345));
        let passed: Vec<i64> = left.iter().copied().filter(|n| *n >= 2_345).collect();
        assert_eq!(read(&filtered), passed, "seed {seed}");
        assert_eq!(filtered.count().unwrap(), passed.len() as u64, "seed {seed}");
        let limited: Vec<i64> = passed.iter().copied().skip(10).take(50).collect();
        assert_eq!(read(&filtered.offset(10).limit(50)), limited, "seed {seed}");
        let group: Vec<i64> = left.iter().copied().filter(|n| (1_700..3_400).contains(n)).collect();
        assert_eq!(read(&reader.clone().row_groups([1]).unwrap()), group, "seed {seed}");
        let odd = RowSelection::from_rows(5_000, (1..5_000).step_by(2)).unwrap();
        let odd_left: Vec<i64> = left.iter().copied().filter(|n| n % 2 == 1).collect();
        assert_eq!(read(&reader.clone().select(odd).unwrap()), odd_left, "seed {seed}");
        let parts = reader.streams(3).unwrap().into_iter().flatten();
        assert_eq!(numbers(parts.map(|batch| batch.unwrap())), left, "seed {seed}");
        let dataset = Dataset::new([reader.clone(), reader.clone()]);
        assert_eq!(dataset.rows().unwrap(), 2 * left.len() as u64);
    }
}

#[test]
fn rows_keep_their_numbers_and_vectors_add_up() {
    let reader = Reader::new(write(&rows(0, 50), WriteOptions::new())).unwrap();
    let mut rng = Rng::with_seed(1);
    let mut vector = |numbers: &[u64]| {
        DeletionVector::from_delta(delta(&mut rng, &numbers.iter().copied().collect())).unwrap()
    };
    let row = VirtualColumn::RowNumber { name: Arc::from("row") };
    let reader = reader.exclude(&vector(&[0, 2])).unwrap().exclude(&vector(&[3, 70])).unwrap();
    let reader = reader.project(["t"]).unwrap().virtual_column(row);
    let batch = reader.batches().unwrap().next().unwrap().unwrap();
    let found = batch.column(1).as_primitive::<Int64Type>();
    assert_eq!(found.values()[..3], [1, 4, 5]);
    assert_eq!(reader.take(&[2]).unwrap().num_rows(), 1);
}

#[cfg(feature = "async")]
#[test]
fn asynchronous_reads_leave_them_out_too() {
    use futures_util::TryStreamExt;
    use marquetry::AsyncReader;

    let file = write(&rows(0, 5_000), WriteOptions::new().with_page_rows(100));
    let gone: BTreeSet<u64> = (0..5_000).filter(|n| n % 7 < 2).collect();
    let vector = DeletionVector::from_delta(delta(&mut Rng::with_seed(3), &gone)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let reader = AsyncReader::open_async(file).await.unwrap().exclude(&vector).unwrap();
        let found: Vec<RecordBatch> = reader.stream().unwrap().try_collect().await.unwrap();
        assert!(numbers(found.into_iter()).into_iter().eq((0..5_000).filter(|n| n % 7 >= 2)));
    });
}

#[test]
fn pages_without_a_row_that_is_left_are_not_read() {
    let file = write(&rows(0, 400_000), WriteOptions::new().with_page_rows(5_000));
    let reader = Reader::new(file).unwrap();
    let gone: BTreeSet<u64> = (10_000..390_000).collect();
    let vector = DeletionVector::from_delta(delta(&mut Rng::with_seed(3), &gone)).unwrap();
    let reader = reader.exclude(&vector).unwrap();
    assert_eq!(read(&reader).len(), 20_000);
    let fetched = reader.progress().bytes_fetched();
    assert!(fetched * 5 < reader.file_len(), "{fetched} of {} bytes", reader.file_len());
}

#[test]
fn broken_vectors_are_errors_and_take_no_memory() {
    let seed = fastrand::u64(..);
    let mut rng = Rng::with_seed(seed);
    for _ in 0..3_000 {
        let numbers = deleted(&mut rng, 30_000);
        let mut bytes = delta(&mut rng, &numbers);
        match rng.u8(0..3) {
            0 => bytes.truncate(rng.usize(0..bytes.len())),
            1 => {
                let at = rng.usize(0..bytes.len());
                bytes[at] = rng.u8(..);
            }
            _ => bytes.push(0),
        }
        match DeletionVector::from_delta(bytes) {
            // Another set, which is one.
            Ok(vector) => {
                let rows = vector.ranges().map(|range| range.end - range.start).sum::<u64>();
                assert_eq!(rows, vector.count(), "seed {seed}");
                assert_eq!(vector.kept(30_000).len(), 30_000);
            }
            Err(e) => assert!(
                matches!(e.kind(), ErrorKind::Malformed(_) | ErrorKind::Unsupported(_)),
                "seed {seed}: {e}"
            ),
        }
    }
    let kind = |bytes: &[u8]| DeletionVector::from_delta(bytes.to_vec()).unwrap_err().kind();
    let of = |parts: &[&[u8]]| [&[&MAGIC.to_le_bytes()[..]], parts].concat().concat();
    let many = of(&[&u64::MAX.to_le_bytes()]);
    assert!(matches!(kind(&many), ErrorKind::Malformed(_)));
    let one = 1u64.to_le_bytes();
    let containers = of(&[&one, &[0; 4], &12346u32.to_le_bytes(), &u32::MAX.to_le_bytes()]);
    assert!(matches!(kind(&containers), ErrorKind::Malformed(_)));
    assert!(matches!(kind(&1_681_511_376u32.to_le_bytes()), ErrorKind::Unsupported(_)));
    let mut wrong = blob(&delta(&mut rng, &BTreeSet::from([1])));
    *wrong.last_mut().unwrap() ^= 1;
    let error = DeletionVector::from_blob(wrong).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{error}");
    for text in ["~~~~~", "0000", "#####", ""] {
        assert!(DeletionVector::from_delta_inline(text, 4).is_err(), "{text}");
    }
}
