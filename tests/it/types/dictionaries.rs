//! Tests dictionary arrays of many entries: what is read is what was written, whatever lengths the
//! entries have.

use std::sync::Arc;

use arrow_cast::cast;
use marquetry::arrow_array::types::Int32Type;
use marquetry::arrow_array::{
    Array, ArrayRef, DictionaryArray, Int32Array, RecordBatch, StringArray,
};
use marquetry::arrow_schema::DataType;
use marquetry::io::WriteSink;
use marquetry::schema::Dictionaries;
use marquetry::{Reader, WriteOptions, Writer};

use crate::support::generate::every_case;
use crate::support::read_with;

/// The length of an entry, by its place and the number of entries.
type Length = fn(usize, usize) -> usize;

const LENGTHS: [(&str, Length); 6] = [
    ("digits", |i, _| i.to_string().len()),
    ("longer and longer", |i, n| i * 40 / n),
    ("shorter and shorter", |i, n| (n - i) * 40 / n),
    ("empty, then long", |i, n| if i < n * 3 / 4 { 0 } else { 50 }),
    ("long, then empty", |i, n| if i < n / 4 { 50 } else { 0 }),
    ("one that is long", |i, n| if i == n - 1 { 60_000 } else { 4 }),
];

fn entries(n: usize, length: Length) -> StringArray {
    StringArray::from_iter_values((0..n).map(|i| {
        let width = length(i, n);
        format!("{i:0>width$}")[..width].to_owned()
    }))
}

fn keyed(keys: Int32Array, values: ArrayRef) -> ArrayRef {
    Arc::new(DictionaryArray::<Int32Type>::new(keys, values))
}

fn written(column: &ArrayRef) -> bytes::Bytes {
    let batch = RecordBatch::try_from_iter([("d", column.clone())]).expect("a batch");
    let options = WriteOptions::new().with_row_group_rows(1 << 20);
    let mut writer = Writer::new(WriteSink(Vec::new()), batch.schema(), options).expect("a writer");
    writer.write(&batch).expect("rows");
    writer.into_inner().expect("a file").1.into()
}

fn assert_same(reader: Reader, expected: &ArrayRef, what: &str) {
    let mut at = 0;
    for batch in read_with(reader).unwrap_or_else(|e| panic!("{what}: {e}")) {
        let found = cast(batch.column(0), &DataType::Utf8).expect("texts");
        assert!(found.to_data() == expected.slice(at, found.len()).to_data(), "{what}");
        at += found.len();
    }
    assert_eq!(at, expected.len(), "{what}");
}

#[test]
fn entries_of_any_lengths_come_back() {
    for n in [1, 1_000, 1_024, 1_025, 4_000, 5_000, 20_000] {
        for (name, length) in LENGTHS {
            let values = entries(n, length);
            for r#type in
                [DataType::Utf8, DataType::LargeUtf8, DataType::Utf8View, DataType::Binary]
            {
                let what = format!("{n} of {type}, {name}");
                let keys = Int32Array::from_iter_values(0..n as i32);
                let column = keyed(keys, cast(&values, &r#type).expect("a cast"));
                let file = written(&column);
                let expected: ArrayRef = Arc::new(values.clone());
                let open = || Reader::new(file.clone()).expect("a file").threads(1);
                assert_eq!(
                    open().schema().expect("a schema").field(0).data_type(),
                    column.data_type()
                );
                assert_same(open(), &expected, &what);
                let kept = open().dictionaries(Dictionaries::Strings);
                assert_same(kept, &expected, &what);
            }
        }
    }
}

#[test]
fn random_dictionaries_come_back() {
    every_case(60, |seed| {
        let mut rng = fastrand::Rng::with_seed(seed);
        let n = rng.usize(1..6_000);
        let mut widest = rng.usize(1..60);
        let texts = (0..n).map(|i| {
            if rng.usize(0..1_000) == 0 {
                widest = rng.usize(1..3_000);
            }
            format!("{i}{}", "x".repeat(rng.usize(0..widest)))
        });
        let values: ArrayRef = Arc::new(StringArray::from_iter_values(texts));
        let keys =
            (0..rng.usize(1..10_000)).map(|_| (rng.u8(..) > 9).then(|| rng.i32(0..n as i32)));
        let column = keyed(keys.collect(), values);
        let expected = cast(&column, &DataType::Utf8).expect("texts");
        let file = written(&column);
        let reader = Reader::new(file).expect("a file").threads(1);
        assert_same(reader.batch_rows(rng.usize(1..5_000)), &expected, &format!("seed {seed}"));
    });
}
