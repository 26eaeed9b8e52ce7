//! Statements of files: checks of files that may be broken, their statistics, indexes,
//! dictionaries, and the plans of reads.

use arrow_array::RecordBatch;
use bytes::Bytes;
use fastrand::Rng;
use marquetry::check::{CheckLevel, CheckReport, Checker, Finding, Severity};
use marquetry::crypt::Decryption;
use marquetry::readers::readers_of;
use marquetry::{ErrorKind, Reader, Result, Threads};
use marquetry_testkit::mutants::paths::predicate;

use super::crypt;
use super::reading::{Rows, assert_same, assert_valid, limits, rows, within_memory};
use crate::input::{Input, Output};

/// Leaves and row groups whose chunks are looked at, at most.
const MAX_CHUNKS: usize = 8;

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (level, mut rng) = (input.u8(), input.rng());
    let level = CheckLevel::ALL[usize::from(level) % CheckLevel::ALL.len()];
    let file = Bytes::copy_from_slice(input.rest());
    let Ok((found, report)) = within_memory(file.len(), || checked(&file, level, 1)) else {
        return;
    };
    let (again, same) = checked(&file, level, 2).expect("what one thread found");
    assert!(found == again && report == same, "two threads find {again:#?}, not {found:#?}");
    let open = || Reader::with_keys(file.clone(), limits(), &keys());
    let Ok(reader) = within_memory(file.len(), open).map(|reader| reader.threads(1)) else {
        assert!(!found.is_empty(), "a file that is refused is in order");
        return;
    };
    within_memory(file.len(), || statements(&reader));
    let plain = within_memory(file.len(), || rows(&reader));
    if level < CheckLevel::Values {
        return;
    }
    // The types that a hint states may hold fewer values than those of the format.
    if let Err(error) = within_memory(file.len(), || rows(&without_hint(&reader)))
        && !matches!(error.kind(), ErrorKind::Limit(_) | ErrorKind::Unsupported(_))
    {
        assert!(!found.is_empty(), "nothing is found, but: {error}");
    }
    let is_true = level == CheckLevel::Truth
        && found.iter().all(|finding| finding.severity() == Severity::Note);
    other_reads(&reader, &plain, is_true, &mut rng);
}

fn without_hint(reader: &Reader) -> Reader {
    let mut options = reader.read_options().clone();
    options.arrow = options.arrow.with_hint(false);
    reader.clone().options(options)
}

fn keys() -> Decryption {
    crypt::keys().with_plaintext_files(true)
}

fn checked(file: &Bytes, level: CheckLevel, threads: usize) -> Result<(Vec<Finding>, CheckReport)> {
    let mut found = Vec::new();
    let checker = Checker::new(file.clone()).keys(keys()).limits(limits()).level(level);
    let report = checker.threads(Threads::Exactly(threads)).run(|finding| found.push(finding))?;
    assert_eq!(Severity::ALL.iter().map(|of| report.count(*of)).sum::<u64>(), found.len() as u64);
    found.iter().for_each(|finding| assert!(!finding.to_string().is_empty()));
    Ok((found, report))
}

/// Reads the statements of the file that are read without its rows.
fn statements(reader: &Reader) {
    let metadata = reader.metadata();
    let schema = metadata.schema();
    for report in readers_of(metadata).into_iter().flatten() {
        assert_eq!(
            report.reads_all(),
            report.refuses_file.is_none()
                && report.columns.iter().all(|column| column.verdict.is_read())
        );
    }
    if let Ok(explained) = reader.explain() {
        _ = (explained.to_string(), explained.bytes(), explained.requests());
    }
    _ = reader.estimated_cost();
    for leaf in 0..schema.leaves_len().min(MAX_CHUNKS) {
        let path = schema.leaf_node(leaf).expect("a leaf").path().dotted();
        for statistics in [reader.column_statistics(&path), reader.page_statistics(&path)] {
            if let Ok(batch) = statistics.and_then(|statistics| statistics.to_batch()) {
                assert_valid(&batch);
            }
        }
        for row_group in 0..metadata.row_groups().min(MAX_CHUNKS) {
            if let Ok(Some(values)) = reader.dictionary_values(row_group, leaf) {
                values.to_data().validate_full().expect("a valid array");
            }
            if let Ok(Some(filter)) = reader.bloom_filter(row_group, leaf) {
                assert!(filter.set_bits() <= filter.byte_len() as u64 * 8);
                assert!((0.0..=1.0).contains(&filter.false_positive_rate()));
                _ = (filter.might_contain(7), filter.might_contain("a"));
            }
            _ = reader.page_index(row_group, leaf);
            let pages = reader.stored_pages(row_group, leaf).into_iter().flatten();
            pages.take(1000).for_each(|page| _ = page);
        }
    }
}

/// Reads that trust the file less, or more: where its statements are true, they are the same.
fn other_reads(reader: &Reader, plain: &Result<Rows>, is_true: bool, rng: &mut Rng) {
    let lossy = within_memory(1 << 20, || rows(&reader.clone().lossy_utf8(true)));
    if let Ok(plain) = plain
        && plain.is_all
    {
        let lossy = lossy.expect("what is read strictly");
        assert_same(&plain.batches, &lossy.batches, "where all is UTF-8");
    }
    let Ok(predicate) = predicate(reader, rng) else { return };
    let filtered = reader.clone().filter(predicate);
    let trusting = within_memory(1 << 20, || rows(&filtered));
    let verified = within_memory(1 << 20, || rows(&filtered.clone().verify_statistics(true)));
    let count = |batches: &[RecordBatch]| batches.iter().map(RecordBatch::num_rows).sum::<usize>();
    match (trusting, verified, plain) {
        (Ok(trusting), Ok(verified), Ok(plain)) if plain.is_all => {
            assert!(count(&verified.batches) <= plain.count());
            if is_true {
                assert_same(&trusting.batches, &verified.batches, "filtered, of a true file");
            }
        }
        (Err(error), Ok(_), Ok(_)) if is_true => panic!("{error}, only where statistics are used"),
        _ => {}
    }
}

pub fn seeds() -> Vec<Vec<u8>> {
    let files = crate::seeds::files().into_iter().chain(crypt::files()).enumerate();
    let seed = |(i, file): (usize, Vec<u8>)| {
        Output::default().u8(3 - (i % 7 / 2) as u8).u16(i as u16).rest(&file).bytes()
    };
    files.map(seed).collect()
}
