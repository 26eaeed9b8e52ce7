//! Tables that other writers made, read by the kernel's handler and by ours.
//!
//! `MARQUETRY_DELTA_TABLES` is a folder of tables: each is a table itself, or has one in `delta`
//! and, in `expected`, Parquet files with its rows.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::RecordBatch;
use delta_kernel::expressions::{Expression, Predicate, Scalar};
use delta_kernel::schema::DataType;
use delta_kernel::{Engine, KernelResult, Snapshot};
use marquetry::Reader;
use marquetry::schema::ArrowOptions;

use crate::support::*;

fn tables() -> Vec<PathBuf> {
    let folder = std::env::var("MARQUETRY_DELTA_TABLES").expect("a folder of tables");
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut tables: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    tables.sort();
    tables
}

fn rows(engine: &Arc<dyn Engine>, table: &Path) -> KernelResult<Vec<RecordBatch>> {
    let url = url::Url::from_directory_path(table).expect("an absolute path");
    let snapshot = Snapshot::builder_for(url).build(engine.as_ref())?;
    let scan = snapshot.scan_builder().build()?;
    scan.execute(Arc::clone(engine))?.map(|data| data.map(batch_of)).collect()
}

/// As the kernel's tests read them: by the Arrow types that their writer noted.
fn expected(folder: &Path) -> Vec<String> {
    let mut all = Vec::new();
    for path in parquet_files(folder) {
        let mut options = marquetry::read::ReadOptions::default();
        options.arrow = ArrowOptions::new().with_int96(arrow_schema::TimeUnit::Microsecond);
        let reader = Reader::open(path).expect("a file").options(options);
        for batch in reader.batches().expect("a plan") {
            all.extend(lines(&batch.expect("a batch")));
        }
    }
    all
}

fn parquet_files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "parquet") {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// Whether these are the same rows, under the same schema up to the names of the elements of lists,
/// which the kernel's handler takes from the file.
fn is_same(name: &str, theirs: &[RecordBatch], mine: &[RecordBatch]) -> bool {
    let (theirs, mine) = match (theirs, mine) {
        ([], []) => return true,
        ([], rows) | (rows, []) => return rows.iter().all(|batch| batch.num_rows() == 0),
        (theirs, mine) => (joined(theirs), joined(mine)),
    };
    if theirs == mine {
        return true;
    }
    println!("{name}: other names of elements");
    let mine = mine.columns().iter().zip(theirs.schema_ref().fields());
    let renamed = mine.map(|(column, field)| arrow_cast::cast(column, field.data_type()));
    let renamed = renamed.collect::<Result<Vec<_>, _>>();
    renamed.is_ok_and(|renamed| renamed == theirs.columns())
}

#[test]
#[ignore = "MARQUETRY_DELTA_TABLES names a folder of tables, which are not part of the repository"]
fn tables_have_the_rows_that_the_kernel_reads() {
    let (default, ours) = (default_engine(), our_engine());
    let (mut same, mut refused, mut only_ours, mut as_expected) = (0, 0, Vec::new(), 0);
    let mut faults = Vec::new();
    for table in tables() {
        let inner = table.join("delta");
        let root = if inner.is_dir() { inner } else { table.clone() };
        let name = table.file_name().expect("a name").to_string_lossy().into_owned();
        match (rows(&default, &root), rows(&ours, &root)) {
            (Ok(theirs), Ok(mine)) => {
                let rows =
                    |batches: &[RecordBatch]| batches.iter().map(RecordBatch::num_rows).sum();
                let (theirs_rows, my_rows): (usize, usize) = (rows(&theirs), rows(&mine));
                if !is_same(&name, &theirs, &mine) {
                    faults.push(format!("{name}: {theirs_rows} and {my_rows} rows, not the same"));
                    continue;
                }
                same += 1;
                let folder = table.join("expected");
                if folder.is_dir() {
                    let mut mine: Vec<_> = mine.iter().flat_map(lines).collect();
                    let mut wanted = expected(&folder);
                    mine.sort();
                    wanted.sort();
                    if mine == wanted {
                        as_expected += 1;
                    } else {
                        let first = mine.iter().zip(&wanted).find(|(a, b)| a != b);
                        println!("{name}: other text than expected, first {first:?}");
                    }
                }
            }
            (Err(_), Err(_)) => refused += 1,
            (Err(theirs), Ok(_)) => only_ours.push(format!("{name}: {theirs}")),
            (Ok(_), Err(mine)) => faults.push(format!("{name}: {mine}")),
        }
    }
    println!(
        "{same} tables are the same, {as_expected} of them as expected; {refused} refused by both"
    );
    println!("read by ours only: {only_ours:#?}");
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(same > 0, "there is no table");
}

/// Data files, checkpoints and side files: each with all columns of its footer.
#[test]
#[ignore = "MARQUETRY_DELTA_TABLES names a folder of tables, which are not part of the repository"]
fn files_have_the_rows_that_the_kernel_reads() {
    let (default, ours) = (default_engine().parquet_handler(), our_engine().parquet_handler());
    let (mut same, mut refused, mut only_ours) = (0, 0, Vec::new());
    let mut faults = Vec::new();
    for path in tables().iter().flat_map(|table| parquet_files(table)) {
        let file = meta_of(&path);
        let footers = (default.read_parquet_footer(&file), ours.read_parquet_footer(&file));
        let schema = match footers {
            (Ok(theirs), Ok(mine)) if theirs.schema == mine.schema => mine.schema,
            (Err(_), Err(_)) => {
                refused += 1;
                continue;
            }
            (Err(theirs), Ok(_)) => {
                only_ours.push(format!("{}: {theirs}", path.display()));
                continue;
            }
            (Ok(theirs), Ok(mine)) => {
                faults.push(format!("{}: {:?} {:?}", path.display(), theirs.schema, mine.schema));
                continue;
            }
            (Ok(_), Err(mine)) => {
                faults.push(format!("{}: {mine}", path.display()));
                continue;
            }
        };
        let read = |handler: &dyn delta_kernel::ParquetHandler| {
            read_batches(handler, std::slice::from_ref(&file), &schema, None)
        };
        match (read(default.as_ref()), read(ours.as_ref())) {
            (Ok(theirs), Ok(mine)) => {
                if is_same(&path.display().to_string(), &theirs, &mine) {
                    same += 1;
                } else {
                    faults.push(format!("{}: other rows", path.display()));
                }
            }
            (Err(_), Err(_)) => refused += 1,
            (Err(theirs), Ok(_)) => only_ours.push(format!("{}: {theirs}", path.display())),
            (Ok(_), Err(mine)) => faults.push(format!("{}: {mine}", path.display())),
        }
    }
    println!("{same} files are the same; {refused} refused by both; {only_ours:#?}");
    assert!(faults.is_empty(), "{faults:#?}");
    assert!(same > 0, "there is no file");
}

/// The files that a scan with a predicate has left, by their paths.
fn files(engine: &dyn Engine, table: &Path, predicate: &Predicate) -> KernelResult<Vec<String>> {
    let url = url::Url::from_directory_path(table).expect("an absolute path");
    let snapshot = Snapshot::builder_for(url).build(engine)?;
    let scan = snapshot.scan_builder().with_predicate(Arc::new(predicate.clone())).build()?;
    let mut paths = Vec::new();
    for part in scan.scan_metadata(engine)? {
        paths = part?.visit_scan_files(paths, |paths, file| paths.push(file.path))?;
    }
    paths.sort();
    Ok(paths)
}

/// Checkpoints are read with predicates over their statistics.
#[test]
#[ignore = "MARQUETRY_DELTA_TABLES names a folder of tables, which are not part of the repository"]
fn predicates_leave_the_files_that_the_kernel_leaves() {
    let (default, ours) = (default_engine(), our_engine());
    let (mut same, mut skipped) = (0, 0);
    for table in tables() {
        let inner = table.join("delta");
        let root = if inner.is_dir() { inner } else { table };
        let log = std::fs::read_dir(root.join("_delta_log")).into_iter().flatten();
        let is_large =
            |path: PathBuf| std::fs::metadata(path).is_ok_and(|file| file.len() > 1 << 20);
        if log.flatten().any(|entry| is_large(entry.path())) {
            // Dozens of scans of it take minutes.
            continue;
        }
        let url = url::Url::from_directory_path(&root).expect("an absolute path");
        let Ok(snapshot) = Snapshot::builder_for(url).build(default.as_ref()) else { continue };
        let all = files(default.as_ref(), &root, &Predicate::literal(true)).unwrap_or_default();
        for field in snapshot.schema().fields().take(6) {
            let scalars: Vec<Scalar> = match *field.data_type() {
                DataType::LONG => [-1i64, 1, 5, 150, 100_000].map(Scalar::from).into(),
                DataType::INTEGER => [-1i32, 1, 5, 150, 100_000].map(Scalar::from).into(),
                DataType::STRING => ["", "1", "b", "m"].map(Scalar::from).into(),
                DataType::DATE => [0, 10_000, 19_000].map(Scalar::Date).into(),
                _ => continue,
            };
            let column = || Expression::column([field.name()]);
            let tests = scalars.into_iter().flat_map(|scalar| {
                [
                    Predicate::lt(column(), scalar.clone()),
                    Predicate::eq(column(), scalar.clone()),
                    Predicate::and(
                        Predicate::ge(column(), scalar),
                        Predicate::is_not_null(column()),
                    ),
                ]
            });
            for predicate in tests.chain([Predicate::is_null(column())]) {
                match (
                    files(default.as_ref(), &root, &predicate),
                    files(ours.as_ref(), &root, &predicate),
                ) {
                    (Ok(theirs), Ok(mine)) => {
                        assert_eq!(mine, theirs, "{}: {predicate}", root.display());
                        same += 1;
                        skipped += usize::from(mine.len() < all.len());
                    }
                    (Err(_), Err(_)) => {}
                    (theirs, mine) => panic!("{}: {theirs:?} {mine:?}", root.display()),
                }
            }
        }
    }
    println!("{same} scans have the same files, {skipped} of them not all");
    assert!(skipped > 0, "nothing was skipped");
}
