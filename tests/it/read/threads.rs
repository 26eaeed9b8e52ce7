//! Tests that several threads read what one reads: with tasks that are split in the first wave or
//! in a later one, with a row group fetched before its turn, and with little memory.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use fastrand::Rng;
use marquetry::arrow_array::types::Int64Type;
use marquetry::arrow_array::*;
use marquetry::io::{Source, WriteSink};
use marquetry::{Compression, PageVersion, Reader, Result, WriteOptions, Writer};

use crate::support::cells::columns;
use crate::support::read_with;

/// A file whose bytes must be read; from a local one, large chunks are read in pieces.
struct Stored {
    bytes: Bytes,
    is_local: bool,
}

impl Source for Stored {
    fn len(&self) -> Result<u64> {
        Source::len(&self.bytes)
    }

    fn read(&self, range: Range<u64>) -> Result<Bytes> {
        Ok(Bytes::copy_from_slice(&self.bytes.read(range)?))
    }

    fn is_local(&self) -> bool {
        self.is_local
    }
}

fn lists(rng: &mut Rng, rows: usize) -> ListArray {
    let list = |rng: &mut Rng| {
        let items = if rng.u8(..) == 0 { 300 } else { rng.usize(0..9) };
        (rng.u8(..) > 20).then(|| (0..items).map(|_| Some(rng.i64(..))).collect::<Vec<_>>())
    };
    ListArray::from_iter_primitive::<Int64Type, _, _>((0..rows).map(|_| list(rng)))
}

/// Row groups of a leaf that outweighs the others, one of few values, one with nulls, and lists.
fn file(rng: &mut Rng, compression: Compression) -> Bytes {
    let options = WriteOptions::new()
        .with_compression(compression)
        .with_page_rows(rng.usize(500..4_000))
        .with_page_version([PageVersion::V1, PageVersion::V2][rng.usize(0..2)])
        .with_row_group_rows(rng.u64(20_000..40_000));
    let rows = 90_000;
    let text = |rng: &mut Rng| "text".repeat(rng.usize(5..60)) + &rng.u16(..).to_string();
    let texts = StringArray::from_iter_values((0..rows).map(|_| text(rng)));
    let few = Int64Array::from_iter_values((0..rows).map(|_| i64::from(rng.u8(..)) << 40));
    let nulls = Int64Array::from_iter((0..rows).map(|_| (rng.u8(..) > 50).then(|| rng.i64(..))));
    let batch = RecordBatch::try_from_iter([
        ("text", Arc::new(texts) as ArrayRef),
        ("few", Arc::new(few)),
        ("nulls", Arc::new(nulls)),
        ("lists", Arc::new(lists(rng, rows))),
    ])
    .unwrap();
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.into_inner().unwrap().1.into()
}

#[test]
fn several_threads_read_what_one_reads_with_any_memory() {
    let seed = 31;
    let mut rng = Rng::with_seed(seed);
    let mut read = 0;
    for compression in [Compression::Uncompressed, Compression::Snappy] {
        let file = file(&mut rng, compression);
        let (schema, all) = {
            let reader = Reader::new(file.clone()).unwrap().threads(1);
            let schema = reader.schema().unwrap();
            let all = columns(&schema, &read_with(reader).unwrap());
            (schema, all)
        };
        for case in 0..24 {
            let memory = rng.u64(2 << 20..24 << 20);
            let (rows, is_local) = ([500, 3_000, 65_536][rng.usize(0..3)], case % 2 == 0);
            let open = |threads| {
                let reader = Reader::new(Stored { bytes: file.clone(), is_local }).unwrap();
                reader.batch_rows(rows).memory(memory).threads(threads)
            };
            let name = format!(
                "seed {seed}: {compression:?}, local {is_local}, {memory} bytes, batches of {rows}"
            );
            let alone = read_with(open(1));
            for threads in 2..=4 {
                match (&alone, read_with(open(threads))) {
                    (_, Ok(batches)) => {
                        assert!(columns(&schema, &batches) == all, "{name}, {threads} threads");
                        read += 1;
                    }
                    (Ok(_), Err(e)) => panic!("{e}: {name}, {threads} threads"),
                    (Err(_), Err(_)) => {}
                }
            }
        }
    }
    assert!(read >= 100, "{read} of 144 reads had enough memory");
}

/// `n` as a field of type i32, in the compact protocol, after a field that has the number before.
fn i32_field(n: u64) -> Vec<u8> {
    let mut bytes = vec![0x15];
    let mut left = n << 1;
    while left >= 0x80 {
        bytes.push(left as u8 | 0x80);
        left >>= 7;
    }
    bytes.push(left as u8);
    bytes
}

#[test]
fn rows_that_page_headers_misstate_are_found_whoever_reads_them() {
    let (rows, of_page) = (80_000, 500);
    let mut rng = Rng::with_seed(5);
    let columns_of = [
        ("lists", Arc::new(lists(&mut rng, rows)) as ArrayRef),
        ("number", Arc::new(Int64Array::from_iter_values(0..rows as i64))),
    ];
    let batch = RecordBatch::try_from_iter(columns_of).unwrap();
    let options = WriteOptions::new()
        .with_compression(Compression::Uncompressed)
        .with_dictionary(false)
        .with_checksums(false)
        .with_page_version(PageVersion::V2)
        .with_column("lists", |column| column.with_page_rows(of_page));
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    let mut file = writer.into_inner().unwrap().1;
    // Every other page states a hundred rows more, the next one fewer: the sum is right.
    let honest = i32_field(of_page as u64);
    let pages: Vec<usize> =
        (0..file.len() - 4).filter(|at| file[*at..].starts_with(&honest)).collect();
    assert!((160..165).contains(&pages.len()), "{} headers", pages.len());
    for (i, at) in pages.iter().take(160).enumerate() {
        let said = [600, 400][i % 2];
        file[*at..at + honest.len()].copy_from_slice(&i32_field(said));
    }
    let file = Bytes::from(file);
    // So that shares begin with a row that the headers place in the page after its own.
    let cases = [(900, 6 << 20), (900, 9 << 20), (1_300, 9 << 20), (1_300, 12 << 20)];
    for (batch_rows, memory) in cases {
        for threads in 1..=4 {
            let reader = Reader::new(file.clone()).unwrap();
            // In waves that do not come to the end, where too many rows would be left.
            let reader = reader.batch_rows(batch_rows).memory(memory).threads(threads);
            let schema = reader.schema().unwrap();
            let found = columns(&schema, &read_with(reader).unwrap());
            let expected = columns(&schema, std::slice::from_ref(&batch));
            assert!(found == expected, "batches of {batch_rows}, {threads} threads");
        }
    }
}
