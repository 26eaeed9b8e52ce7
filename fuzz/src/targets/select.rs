//! Predicates, selections and deletion vectors on random tables: the rows are those for which the
//! naive twin is true.

use std::sync::LazyLock;

use arrow_array::RecordBatch;
use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use bytes::Bytes;
use fastrand::Rng;
use marquetry::read::{PageIndexUse, VirtualColumn};
use marquetry::{DeletionVector, Predicate, Reader, RowSelection, not};
use marquetry_testkit::cells::{Cell, columns};
use marquetry_testkit::generate::{Case, case};
use marquetry_testkit::predicates::{comparable, random};

use super::reading::{open, rows, within_memory};
use crate::input::{Input, Output};

/// Rows that are tried one by one.
const MAX_ROWS: u64 = 1 << 16;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let case = case(u64::from(input.u16() % 2000));
    let mut of_filter = input.rng();
    let flags = input.u8();
    let (bits, text, vector) = (input.part(), input.part(), input.rest());
    if let Some(predicate) = parse(text) {
        ask(&predicate, flags);
    }
    let reader = open(case.file.clone()).expect("a file");
    let all = columns(&case.schema, &rows(&reader).expect("rows").batches);
    let n = reader.file_rows().expect("a count");
    let mut wanted: Vec<u64> = (0..n).collect();
    let mut reader = settings(reader, flags);
    let targets = comparable(&case.schema);
    if flags & 1 > 0 && !targets.is_empty() {
        let (predicate, twin) = random(&mut of_filter, &targets, &all, 3);
        let row = |row: &u64| usize::try_from(*row).expect("few rows");
        wanted.retain(|at| twin.evaluate(&all, row(at)) == Some(true));
        reader = reader.filter(predicate);
    }
    if flags & 2 > 0 {
        let bit = |row: u64| {
            let byte = bits.get(usize::try_from(row / 8).expect("few rows")).unwrap_or(&0x5A);
            byte >> (row % 8) & 1 > 0
        };
        wanted.retain(|row| bit(*row));
        let selection = RowSelection::from_bits((0..n).map(bit).collect());
        reader = reader.select(selection).expect("all rows");
    }
    if let Some(deleted) = within_memory(vector.len(), || deletion_vector(vector)) {
        let is_deleted = deleted_rows(&deleted, n);
        wanted.retain(|row| !is_deleted[usize::try_from(*row).expect("few rows")]);
        reader = reader.exclude(&deleted).expect("a deletion vector");
    }
    let of_limits = (flags & 4 > 0).then(|| (of_filter.u64(0..=n / 4), of_filter.u64(0..=n)));
    if let Some((offset, limit)) = of_limits {
        let few = |rows: u64| usize::try_from(rows).expect("few rows");
        wanted = wanted.into_iter().skip(few(offset)).take(few(limit)).collect();
        reader = reader.offset(offset).limit(limit);
    }
    compare(&reader, &case, &all, &wanted);
    points(&reader, &mut of_filter, n);
}

/// Any text: parsed or refused, and the same again once it is printed.
fn parse(text: &[u8]) -> Option<Predicate> {
    let predicate = Predicate::parse(std::str::from_utf8(text).ok()?).ok()?;
    let printed = predicate.to_string();
    let again = Predicate::parse(&printed).unwrap_or_else(|e| panic!("{printed}: {e}"));
    assert_eq!(again.to_string(), printed);
    Some(predicate)
}

/// The rows of any predicate on a table with a column of each type are those for which it is true
/// in memory, and its opposite is true of none of them.
fn ask(predicate: &Predicate, flags: u8) {
    let reader = typed();
    let schema = reader.schema().expect("a schema");
    let (Ok(bound), Ok(opposite)) =
        (predicate.bind_to(&schema), not(predicate.clone()).bind_to(&schema))
    else {
        return;
    };
    let filtered = settings(reader.clone(), flags).try_filter(predicate.clone());
    let filtered = filtered.expect("a predicate that is bound");
    let mut wanted = Vec::new();
    let mut row = 0;
    for batch in rows(&reader).expect("rows").batches {
        let Ok(found) = bound.evaluate(&batch) else {
            // An overflow, or a cast of a value that the type does not have.
            _ = rows(&filtered);
            return;
        };
        let others = opposite.evaluate(&batch).expect("what can be evaluated");
        let both = found.values() & others.values();
        assert_eq!(both.count_set_bits(), 0, "{predicate}, and not");
        wanted.extend(found.values().set_indices().map(|at| row + at as u64));
        row += batch.num_rows() as u64;
    }
    let found = rows(&filtered).unwrap_or_else(|e| panic!("{predicate}: {e}"));
    assert_eq!(numbers(&found.batches), wanted, "{predicate}");
}

/// The table with a column of each type.
fn typed() -> Reader {
    static FILE: LazyLock<Bytes> = LazyLock::new(|| crate::logical::typed().into());
    open(FILE.clone()).expect("a file")
}

/// The last column: the numbers of the rows.
fn numbers(batches: &[RecordBatch]) -> Vec<u64> {
    let numbers = batches.iter().flat_map(|batch| {
        let numbers = batch.column(batch.num_columns() - 1).as_primitive::<Int64Type>();
        numbers.values().to_vec()
    });
    numbers.map(i64::cast_unsigned).collect()
}

fn settings(reader: Reader, flags: u8) -> Reader {
    let mut options = reader.read_options().clone();
    options.page_index = [PageIndexUse::Always, PageIndexUse::Auto, PageIndexUse::Never]
        [usize::from(flags >> 3 & 3).min(2)];
    options.virtual_columns = vec![VirtualColumn::RowNumber { name: "number".into() }];
    options.batch_rows = [3, 40, 1000][usize::from(flags >> 5 & 3).min(2)];
    reader.options(options).threads(1 + usize::from(flags >> 7))
}

/// A vector in the form of Delta, or in a blob of Puffin.
fn deletion_vector(bytes: &[u8]) -> Option<DeletionVector> {
    let (kind, bytes) = bytes.split_first()?;
    let bytes = bytes.to_vec();
    match kind & 1 {
        0 => DeletionVector::from_delta(bytes).ok(),
        _ => DeletionVector::from_blob(bytes).ok(),
    }
}

fn deleted_rows(deleted: &DeletionVector, n: u64) -> Vec<bool> {
    let mut out = vec![false; usize::try_from(n.min(MAX_ROWS)).expect("few rows")];
    let (mut at, mut count) = (0, 0);
    for range in deleted.ranges() {
        assert!(range.start >= at && range.end > range.start, "{range:?} after {at}");
        (at, count) = (range.end, count + (range.end - range.start));
        for row in range.start..range.end.min(n) {
            out[usize::try_from(row).expect("few rows")] = true;
        }
    }
    assert_eq!(count, deleted.count());
    out
}

fn compare(reader: &Reader, case: &Case, all: &[Vec<Cell>], wanted: &[u64]) {
    let name = &case.name;
    let count = reader.count().unwrap_or_else(|e| panic!("{e}: {name}"));
    assert_eq!(count, wanted.len() as u64, "{name}");
    let found = rows(reader).unwrap_or_else(|e| panic!("{e}: {name}")).batches;
    assert_eq!(numbers(&found), wanted, "{name}");
    for (i, (found, all)) in columns(&case.schema, &found).iter().zip(all).enumerate() {
        let row = |row: &u64| all[usize::try_from(*row).expect("few rows")].clone();
        let expected: Vec<Cell> = wanted.iter().map(row).collect();
        assert!(*found == expected, "column {i}: {name}");
    }
}

/// Rows by their numbers.
fn points(reader: &Reader, rng: &mut Rng, n: u64) {
    if n == 0 {
        return;
    }
    let wanted: Vec<u64> = (0..rng.usize(..20)).map(|_| rng.u64(..n)).collect();
    let taken = reader.take(&wanted).expect("rows of the file");
    assert_eq!(numbers(&[taken]), wanted);
}

/// A vector of rows below 65,536: one array container.
fn vector(rows: &[u16]) -> Vec<u8> {
    let mut out = vec![0];
    out.extend(1_681_511_377u32.to_le_bytes());
    out.extend(1u64.to_le_bytes());
    out.extend(0u32.to_le_bytes());
    out.extend(12_346u32.to_le_bytes());
    out.extend(1u32.to_le_bytes());
    out.extend(0u16.to_le_bytes());
    out.extend(u16::try_from(rows.len() - 1).expect("few").to_le_bytes());
    out.extend(16u32.to_le_bytes());
    rows.iter().for_each(|row| out.extend(row.to_le_bytes()));
    out
}

pub fn seeds() -> Vec<Vec<u8>> {
    let texts = [
        "i = 1 and s < 'word 2' or not (d is null)",
        "i in (1, 2, 3) and s like '%o_d 1%' or l not in (0, 1099511627776)",
        "day between date '1970-01-09' and date '1971-01-01'",
        "any(list) = 3 or all(list) < 9 or starts_with(s, 'w') or list is empty",
        "t >= timestamp '1970-01-02 00:00:00' and f <> 1.5e0",
        "i + 1 > l * 2 or abs(i) % 7 = 1 or -d / 3 < f",
        "lower(s) = 'word 4' or upper(s) < 'WORD 3' and length(s) between 1 and 6",
        "cast(i as string) like '%1%' or cast(s as string) ilike 'W%' or cast(d as int64) > 5",
        "cast(i as decimal(20, 2)) > n or n + 1.25 > 3 or cast(n as double) / 3 < 0",
        "cast(day as timestamp) > t or cast(t as date) = day or cast(t as string) > '1970'",
        "variant_get(v, '$.a', 'int64') = 6 or variant_get(v, '$.b', 'string') like 'text%'",
        "intersects(geom, 3, -9, 12, 0) and row <> 5",
        "flag or x = X'0a' or x is null and flag in (true)",
        "u > 18446744073709551610 or u - 1 = l or i > '5' or l <= 1.5 or f > -3e0",
        "f = f and d <> d or d > 1 or i < row",
    ];
    let schema = typed().schema().expect("a schema");
    let batches = rows(&typed()).expect("rows").batches;
    let all: usize = batches.iter().map(RecordBatch::num_rows).sum();
    for text in texts {
        let predicate = Predicate::parse(text).expect("a predicate");
        let bound = predicate.bind_to(&schema).unwrap_or_else(|e| panic!("{text}: {e}"));
        let count = |batch| {
            let found = bound.evaluate(batch).unwrap_or_else(|e| panic!("{text}: {e}"));
            found.true_count()
        };
        let found: usize = batches.iter().map(count).sum();
        assert!(found > 0 && found < all, "{text}: {found} of {all} rows");
    }
    let seed = |i: u16| {
        let flags = (i * 37) as u8;
        let bits: Vec<u8> = (0..20).map(|k| (k * i % 251) as u8).collect();
        let head = Output::default().u16(i).u16(i).u8(flags);
        let head = head.part(&bits).part(texts[usize::from(i) % texts.len()].as_bytes());
        head.rest(&vector(&[0, 3, 4, 5, 40 + i, 300])).bytes()
    };
    (0..300).map(seed).collect()
}
