//! Files that state nothing but the truth.

use std::sync::Arc;

use arrow_array::{ArrayRef, BinaryArray, Int64Array, RecordBatch};
use marquetry::check::{CheckLevel, Checker, Finding, Severity};
use marquetry::{Compression, Limits, Threads, WriteOptions, Writer};

use super::model::{findings, line};
use crate::support::generate::{case, every_case};

#[test]
fn what_is_written_is_true() {
    every_case(400, |seed| {
        let case = case(seed);
        let found: Vec<String> = findings(case.file.clone(), CheckLevel::Truth)
            .iter()
            .map(|f| format!("{} {f}", line(f)))
            .collect();
        assert!(found.is_empty(), "{found:?}: {}", case.name);
    });
}

/// The faults of other writers in the files that they wrote for us.
const KNOWN: [(&str, &str); 3] = [
    // DuckDB pads ARRAYs that are null.
    ("duckdb_arrays", "levels-inconsistent"),
    // Arrow C++ counts the bytes of suffixes, as it seems.
    ("delta_byte_array", "chunk-bytes-wrong"),
    ("fastparquet", "page-bytes-left"),
];

#[test]
fn files_of_other_writers_have_no_errors_but_those_known() {
    let mut checked = 0;
    for entry in std::fs::read_dir("testdata").unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "parquet") {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        checked += 1;
        for finding in findings(std::fs::read(&path).unwrap(), CheckLevel::Truth) {
            let is_known = KNOWN
                .iter()
                .any(|(file, code)| name.starts_with(file) && finding.kind.code() == *code);
            let is_wrong = finding.severity() > Severity::Note && !is_known;
            assert!(!is_wrong, "{name}: {} {finding}", line(&finding));
        }
    }
    assert!(checked > 20, "{checked} files");
}

#[test]
fn threads_and_little_memory_change_nothing_but_what_is_checked() {
    let file = std::fs::read("testdata/trips.parquet").unwrap();
    let check = |threads, memory| {
        let mut limits = Limits::default();
        limits.memory_bytes = memory;
        let mut found = Vec::new();
        let checker = Checker::new(bytes::Bytes::from(file.clone())).level(CheckLevel::Truth);
        let report = checker.limits(limits).threads(threads).run(|finding| found.push(finding));
        (report.unwrap().chunks, found)
    };
    let (chunks, found) = check(Threads::Exactly(1), 1 << 30);
    assert_eq!((chunks, found.len()), (52, 0));
    #[cfg(feature = "parallel")]
    {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        assert_eq!(check(Threads::Pool(Arc::new(pool)), 1 << 30), (52, Vec::new()));
    }
    // The least memory that suffices for the footer: not for all chunks.
    let few = (1..1_000).map(|n| check(Threads::Auto, n * 1_000));
    let mut enough = few.skip_while(|(chunks, _)| *chunks < 52);
    let (_, found) = enough.next().expect("some memory suffices");
    let errors: Vec<&Finding> =
        found.iter().filter(|finding| finding.severity() > Severity::Note).collect();
    assert!(!found.is_empty() && errors.is_empty(), "{errors:?}");
}

/// Pages of many sizes; some lie across the ends of what is read at a time.
#[test]
fn each_byte_is_read_once_where_memory_allows() {
    let mut rng = fastrand::Rng::with_seed(5);
    let numbers: ArrayRef =
        Arc::new(Int64Array::from_iter_values((0..1_000_000).map(|_| rng.i64(..))));
    let lens: Vec<usize> = (0..1_000_000).map(|_| rng.usize(0..16)).collect();
    let mut bytes = lens.iter().map(|len| Some(vec![7; *len])).collect::<Vec<_>>();
    // Larger than what is read at a time.
    bytes[500_000] = Some((0..5_000_000u32).map(|at| (at % 251) as u8).collect());
    let bytes: ArrayRef = Arc::new(BinaryArray::from_iter(bytes));
    let batch = RecordBatch::try_from_iter([("n", numbers), ("b", bytes)]).unwrap();
    for page_bytes in [10_000, 300_000, 1 << 20, 3 << 20] {
        let options = WriteOptions::new()
            .with_compression(Compression::Uncompressed)
            .with_dictionary(false)
            .with_page_rows(usize::MAX)
            .with_page_bytes(page_bytes);
        let file = tempfile::NamedTempFile::new().unwrap();
        let mut writer = Writer::create_with(file.path(), batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        let written = writer.finish().unwrap().bytes;
        let check = |memory| {
            let mut limits = Limits::default();
            limits.memory_bytes = memory;
            let checker = Checker::new(std::fs::File::open(file.path()).unwrap());
            let checker =
                checker.level(CheckLevel::Truth).limits(limits).threads(Threads::Exactly(1));
            let mut found = Vec::new();
            let report = checker.run(|finding| found.push(finding)).unwrap();
            (report.bytes_read, found)
        };
        let (read, found) = check(1 << 30);
        assert_eq!(found, [], "{page_bytes}");
        assert!(read < written, "{read} of {written} bytes, pages of {page_bytes}");
        // Of less memory nothing comes but notes of what is not checked.
        for memory in (2..40).step_by(8) {
            let (_, found) = check(memory << 20);
            let errors = found.iter().filter(|finding| finding.severity() > Severity::Note);
            assert_eq!(errors.count(), 0, "{page_bytes}, {memory} MiB: {found:?}");
        }
    }
}
