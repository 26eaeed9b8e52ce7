//! Tests of rewriting random files by random plans: the rows stay, what the new file states is
//! true, and it states no less than the old one did.
//!
//! `MARQUETRY_CASES=5000` tries that many. `MARQUETRY_FILES=FOLDER[:FOLDER…] cargo test … --
//! --ignored foreign_files` does the same with files of other writers.

use std::panic::{AssertUnwindSafe, catch_unwind};

use arrow_select::concat::concat_batches;
use bytes::Bytes;
use fastrand::Rng;
use marquetry::arrow_array::{Array, RecordBatch};
#[cfg(feature = "check")]
use marquetry::check::{CheckLevel, Checker, Severity};
#[cfg(feature = "encryption")]
use marquetry::crypt::{Decryption, Encryption, Key};
use marquetry::format::{ColumnMetaData, FileMetaData, LogicalType};
use marquetry::io::WriteSink;
use marquetry::rewrite::{ChunkMethod, Rewrite, RewritePlan};
use marquetry::{
    BloomOptions, Compression, ErrorKind, PageVersion, Reader, StatisticsLevel, WriteOptions,
};

use crate::support::generate::{case, every_case};
use crate::support::read_with;

/// A rewrite, and what it does.
struct RandomPlan {
    rewrite: Rewrite,
    readers: Vec<Reader>,
    is_encrypted: bool,
    /// Whether bounds of pages may go.
    fewer_statistics: bool,
    said: String,
}

fn codec(rng: &mut Rng) -> Compression {
    let codecs = [
        Compression::Uncompressed,
        Compression::Snappy,
        Compression::Gzip(1),
        Compression::Zstd(1),
        Compression::Lz4Raw,
        Compression::Brotli(1),
    ];
    codecs[rng.usize(0..codecs.len())]
}

/// A reader of some of the row groups, or of some rows in a row.
fn part(rng: &mut Rng, reader: Reader) -> Reader {
    let row_groups = reader.metadata().row_groups();
    let reader = match rng.u8(0..4) {
        0 if row_groups > 0 => {
            let mut chosen: Vec<usize> = (0..row_groups).filter(|_| rng.bool()).collect();
            rng.shuffle(&mut chosen);
            reader.row_groups(chosen).expect("row groups")
        }
        _ => reader,
    };
    match rng.u8(0..3) {
        0 => {
            let rows = reader.file_rows().expect("rows");
            reader.offset(rng.u64(0..=rows)).limit(rng.u64(0..=rows))
        }
        _ => reader,
    }
}

fn options(rng: &mut Rng, columns: &[String]) -> (WriteOptions, bool) {
    let mut options = WriteOptions::new();
    let mut fewer_statistics = false;
    if rng.bool() {
        options = options.with_page_rows(rng.usize(1..100));
    }
    if rng.bool() {
        options = options.with_page_version([PageVersion::V1, PageVersion::V2][rng.usize(0..2)]);
    }
    if rng.u8(0..3) == 0 {
        options = options.with_compression(codec(rng));
    }
    if rng.u8(0..4) == 0 {
        fewer_statistics = true;
        options = options.with_statistics(StatisticsLevel::Chunk);
    }
    if rng.bool() {
        options = options.with_row_group_rows(rng.u64(10..300));
    }
    if rng.bool() {
        let column = columns[rng.usize(0..columns.len())].clone();
        options = options.with_column(column, |of| of.with_bloom(BloomOptions::default()));
    }
    (options, fewer_statistics)
}

fn plan(rng: &mut Rng, open: &dyn Fn() -> Reader) -> RandomPlan {
    let first = open();
    let fields = first.metadata().schema().fields().filter(|field| !field.leaves().is_empty());
    let columns: Vec<String> = fields.map(|field| field.name().to_owned()).collect();
    let readers: Vec<Reader> = (0..rng.usize(1..3)).map(|_| part(rng, open())).collect();
    let mut rewrite = Rewrite::new(readers.clone());
    let mut said = format!("{} readers, ", readers.len());
    let mut fewer_statistics = false;
    let pattern = |rng: &mut Rng| match rng.bool() || columns.is_empty() {
        true => "*".to_owned(),
        false => columns[rng.usize(0..columns.len())].clone(),
    };
    if rng.bool() {
        let (pattern, codec) = (pattern(rng), codec(rng));
        said += &format!("codec {pattern:?} {codec:?}, ");
        rewrite = rewrite.codec(pattern, codec);
    }
    if rng.bool() {
        let pattern = pattern(rng);
        said += &format!("encode {pattern:?}, ");
        rewrite = rewrite.encode(pattern);
    }
    if rng.bool() && !columns.is_empty() {
        let (options, fewer) = options(rng, &columns);
        fewer_statistics = fewer;
        said += &format!("{options:?}, ");
        rewrite = rewrite.options(options);
    }
    if rng.u8(0..5) == 0 {
        said += "regroup, ";
        rewrite = rewrite.regroup(true);
    }
    if rng.u8(0..4) == 0 {
        rewrite = rewrite.verify_checksums(true);
    }
    let is_encrypted = cfg!(feature = "encryption") && rng.u8(0..4) == 0;
    #[cfg(feature = "encryption")]
    if is_encrypted {
        rewrite = rewrite.encryption(Encryption::new(key()));
    }
    RandomPlan { rewrite, readers, is_encrypted, fewer_statistics, said }
}

#[cfg(feature = "encryption")]
fn key() -> Key {
    Key::new(b"0123456789012345").expect("a key")
}

/// Opens a file that a plan has made.
fn made(file: &Bytes, is_encrypted: bool) -> Reader {
    #[cfg(feature = "encryption")]
    if is_encrypted {
        let keys = Decryption::new().with_footer_key(key());
        return Reader::with_keys(file.clone(), Default::default(), &keys).expect("a file");
    }
    assert!(!is_encrypted);
    Reader::new(file.clone()).expect("a file")
}

/// The lies of a file: the codes of the findings, and what they say.
#[cfg(feature = "check")]
fn lies(file: &Bytes, is_encrypted: bool) -> Vec<(&'static str, String)> {
    let checker = Checker::new(file.clone()).level(CheckLevel::Truth);
    #[cfg(feature = "encryption")]
    let checker = match is_encrypted {
        true => checker.keys(Decryption::new().with_footer_key(key())),
        false => checker,
    };
    let mut found = Vec::new();
    checker.run(|finding| found.push(finding)).expect("a check");
    found.retain(|finding| finding.severity() > Severity::Note);
    found.into_iter().map(|finding| (finding.kind.code(), finding.to_string())).collect()
}

#[cfg(not(feature = "check"))]
fn lies(_: &Bytes, _: bool) -> Vec<(&'static str, String)> {
    Vec::new()
}

fn footer(reader: &Reader) -> FileMetaData {
    reader.metadata().index().to_file_meta_data().expect("a footer")
}

/// Checks that each chunk of whole row groups states what the old one states.
fn assert_as_tight(plan: &RewritePlan, of: &RandomPlan, file: &Bytes) {
    let new = footer(&made(file, of.is_encrypted));
    for (planned, new) in plan.row_groups.iter().zip(&new.row_groups) {
        let old = footer(&of.readers[planned.file]);
        let has_orders = old.column_orders.is_some();
        let leaves = old.schema.iter().filter(|element| element.r#type.is_some());
        let leaves: Vec<_> = leaves.collect();
        let old = &old.row_groups[planned.row_group];
        if old.num_rows.cast_unsigned() != planned.rows || old.columns.len() != new.columns.len() {
            continue;
        }
        let columns = old.columns.iter().zip(&new.columns).zip(&planned.chunks);
        for (((old, new), planned), leaf) in columns.zip(&leaves) {
            let counts = |meta: &ColumnMetaData| {
                let statistics = meta.statistics.clone().unwrap_or_default();
                let has_bounds = statistics.min_value.is_some() && statistics.max_value.is_some();
                (meta.num_values, statistics.null_count, has_bounds)
            };
            let (Some(a), Some(b)) = (&old.meta_data, &new.meta_data) else { continue };
            let ((values, nulls, bounds), now) = (counts(a), counts(b));
            assert_eq!(values, now.0, "{}", of.said);
            assert!(nulls.is_none() || now.1.is_some(), "{nulls:?} {now:?} {}", of.said);
            // Without an order, bounds mean nothing.
            let has_order = has_orders && is_ordered(leaf.logical_type.as_ref());
            let keeps = has_order && (!of.fewer_statistics || planned.method == ChunkMethod::Bytes);
            let lost = keeps && bounds && !now.2;
            assert!(!lost, "bounds of {:?} are lost: {planned:?} {}", a.path_in_schema, of.said);
            let pages = old.column_index_offset.is_some() && new.column_index_offset.is_none();
            // A page of NaNs has no bounds, and then there is no column index.
            let nans = b.statistics.as_ref().and_then(|statistics| statistics.nan_count);
            let lost = keeps && pages && nans.is_none_or(|nans| nans == 0);
            assert!(!lost, "{:?}: {planned:?} {}", a.path_in_schema, of.said);
            let bloom = a.bloom_filter_offset.is_some() && b.bloom_filter_offset.is_none();
            assert!(!bloom || planned.method == ChunkMethod::Encoded, "{}", of.said);
        }
    }
}

/// Whether the format has an order for values of this type; of one from its future it is not known.
fn is_ordered(logical: Option<&LogicalType>) -> bool {
    !matches!(logical, Some(LogicalType::Unknown | LogicalType::Unrecognized(_)))
}

fn is_refused(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::Malformed(_) | ErrorKind::Usage)
}

/// Rewrites a file by a random plan; `None` if that is not supported. The lies that are known are
/// those of the old file.
fn rewrite(
    rng: &mut Rng,
    name: &str,
    open: &dyn Fn() -> Reader,
    known: &[&'static str],
) -> Option<()> {
    let of = plan(rng, open);
    let name = format!("{}{name}", of.said);
    let mut out = Vec::new();
    let plan = of.rewrite.plan().unwrap_or_else(|e| panic!("{e}: {name}"));
    let done = match of.rewrite.run(WriteSink(&mut out)) {
        Err(e) if matches!(e.kind(), ErrorKind::Unsupported(_)) => return None,
        // What a file must not hold need not be written again.
        Err(e) if !known.is_empty() && is_refused(e.kind()) => return None,
        done => done.unwrap_or_else(|e| panic!("{e}: {name}")),
    };
    assert_eq!(done.rows, plan.rows, "{name}");
    let out = Bytes::from(out);
    let schema = open().schema().expect("a schema");
    let rows = |readers: &mut dyn Iterator<Item = Reader>| -> RecordBatch {
        let batches: Vec<RecordBatch> =
            readers.flat_map(|reader| read_with(reader).expect("rows")).collect();
        concat_batches(&schema, &batches).expect("one batch")
    };
    let before = rows(&mut of.readers.iter().cloned());
    let reader = made(&out, of.is_encrypted);
    assert_eq!(reader.schema().expect("a schema"), schema, "{name}");
    let after = rows(&mut std::iter::once(reader));
    assert!(before == after, "rows differ: {name}");
    for (code, said) in lies(&out, of.is_encrypted) {
        assert!(known.contains(&code), "{code}, {said}: {name}");
    }
    // The entries that pad lists are lost where levels are encoded anew.
    if !plan.regroups && !known.contains(&"levels-inconsistent") {
        assert_eq!(done.row_groups, plan.row_groups.len(), "{name}");
        assert_as_tight(&plan, &of, &out);
    }
    Some(())
}

#[test]
fn random_files_by_random_plans_keep_their_rows_and_state_what_is_true() {
    let done = std::sync::atomic::AtomicU64::new(0);
    let cases = every_case(400, |seed| {
        let case = case(seed);
        let mut rng = Rng::with_seed(seed ^ 0x5EED);
        let open = || Reader::new(case.file.clone()).expect("a file").threads(1);
        if rewrite(&mut rng, &case.name, &open, &[]).is_some() {
            done.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        }
    });
    let done = done.into_inner();
    assert!(done >= cases as u64 * 9 / 10, "{done} of {cases} are done, the others unsupported");
}

#[test]
fn variant_columns_by_random_plans_stay_as_they_are_shredded() {
    every_case(60, |seed| {
        let file = Bytes::from(crate::variant::shredding::random_file(seed));
        let open = || Reader::new(file.clone()).expect("a file").threads(1);
        let mut rng = Rng::with_seed(seed ^ 0xA11);
        assert!(rewrite(&mut rng, &format!("seed {seed}"), &open, &[]).is_some());
    });
}

/// Files of the same columns but one: narrower, missing, in another order.
#[test]
fn files_of_random_tables_are_united_by_name() {
    every_case(150, |seed| {
        let case = case(seed);
        let whole = Reader::new(case.file.clone()).expect("a file").threads(1);
        let names: Vec<String> =
            case.schema.fields().iter().map(|field| field.name().clone()).collect();
        let mut rng = Rng::with_seed(seed);
        let left_out = rng.usize(0..names.len());
        let optional = case.schema.field(left_out).is_nullable();
        let kept = names.iter().enumerate().filter(|(at, _)| *at != left_out);
        let kept: Vec<&String> = kept.map(|(_, name)| name).collect();
        let duplicates = (1..names.len()).any(|at| names[..at].contains(&names[at]));
        if kept.is_empty() || duplicates || names.iter().any(|name| name.contains('.')) {
            return;
        }
        let mut some = Vec::new();
        let some_columns = whole.clone().project(kept).expect("columns");
        Rewrite::new([some_columns]).run(WriteSink(&mut some)).expect("a file");
        let some = Reader::new(Bytes::from(some)).expect("a file").threads(1);
        let mut out = Vec::new();
        let united = Rewrite::new([whole.clone(), some]).by_name(true).run(WriteSink(&mut out));
        let united = match united {
            Ok(united) => united,
            Err(e) => {
                // Only a column that is never null cannot be missing.
                assert!(!optional || e.kind() != ErrorKind::Usage, "{e}: {}", case.name);
                return;
            }
        };
        let rows = whole.file_rows().expect("rows");
        assert_eq!(united.rows, rows * 2, "{}", case.name);
        let out = Bytes::from(out);
        let found = lies(&out, false);
        assert!(found.is_empty(), "{found:?}: {}", case.name);
        let united = Reader::new(out).expect("a file").threads(1);
        assert_eq!(united.schema().expect("a schema"), whole.schema().expect("a schema"));
        let first = read_with(united.clone().limit(rows)).expect("rows");
        let schema = united.schema().expect("a schema");
        let first = concat_batches(&schema, &first).expect("one batch");
        let before = read_with(whole.clone()).expect("rows");
        assert!(first == concat_batches(&schema, &before).expect("one batch"), "{}", case.name);
        for batch in read_with(united.offset(rows)).expect("rows") {
            let missing = batch.column(left_out);
            assert_eq!(missing.logical_null_count(), missing.len(), "{}", case.name);
        }
    });
}

#[test]
fn files_of_other_writers_by_random_plans_keep_their_rows() {
    all_files(&["testdata".to_owned()], 3);
}

#[test]
#[ignore = "rewrites the files in the folders that MARQUETRY_FILES names, separated by colons"]
fn foreign_files_by_random_plans_keep_their_rows() {
    let folders = std::env::var("MARQUETRY_FILES").expect("folders of Parquet files");
    let folders: Vec<String> = folders.split(':').map(str::to_owned).collect();
    all_files(&folders, 5);
}

fn all_files(folders: &[String], plans: u64) {
    let (mut failed, mut done, mut unsupported) = (Vec::new(), 0, 0);
    for folder in folders {
        let Ok(paths) = std::fs::read_dir(folder) else { continue };
        let mut paths: Vec<_> = paths.collect();
        paths.sort_by_key(|path| path.as_ref().expect("an entry").path());
        for path in paths {
            let path = path.expect("an entry").path();
            if path.extension().is_none_or(|ending| ending != "parquet") {
                continue;
            }
            let Ok(reader) = Reader::open(&path) else { continue };
            // What cannot be read cannot be compared.
            if read_with(reader.clone()).is_err() || reader.schema().is_err() {
                continue;
            }
            let file = Bytes::from(std::fs::read(&path).expect("a file"));
            let known: Vec<_> = lies(&file, false).into_iter().map(|(code, _)| code).collect();
            for seed in 0..plans {
                let name = format!("{}, seed {seed}", path.display());
                let mut rng = Rng::with_seed(seed);
                let run = || rewrite(&mut rng, &name, &|| reader.clone(), &known);
                match catch_unwind(AssertUnwindSafe(run)) {
                    Ok(Some(())) => done += 1,
                    Ok(None) => unsupported += 1,
                    Err(_) => failed.push(name),
                }
            }
        }
    }
    println!("{done} rewritten, {unsupported} not supported, {} failed", failed.len());
    assert!(failed.is_empty(), "{failed:#?}");
    assert!(done > 0);
}
