//! Runs sqllogictest files of DataFusion with its own source and with ours, and compares the
//! results.
//!
//! ```text
//! cargo run --bin slt -- FOLDER [NAME …]
//! ```
//!
//! FOLDER holds `test_files` (the package `datafusion-sqllogictest` does); without names, all files
//! that name Parquet are run. PARQUET_TESTING may name a copy of apache/parquet-testing. Each
//! engine runs in a copy of its own, because the files write. Plans are not compared: they name the
//! source. Statements that fail with both are counted apart: most of those are meant to fail,
//! others need data of other repositories.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use datafusion::prelude::{SessionConfig, SessionContext};
use engines::{ours, rows, stock};

/// A statement or query of a file.
struct Record {
    line: usize,
    sql: String,
    /// Whether the rows have no order.
    is_sorted: bool,
}

#[tokio::main]
async fn main() {
    let mut args = std::env::args().skip(1);
    let folder = PathBuf::from(args.next().expect("a folder")).canonicalize().expect("a folder");
    let names: Vec<String> = args.collect();
    let mut total = BTreeMap::new();
    for path in files(&folder.join("test_files"), &names) {
        let mut answers = Vec::new();
        for session in [stock as fn(SessionConfig) -> SessionContext, ours] {
            let copy = tempfile::tempdir().expect("a folder");
            let home = copy.path().join("datafusion/sqllogictest");
            copy_tree(&folder, &home);
            if let Some(data) = std::env::var_os("PARQUET_TESTING") {
                let link = copy.path().join("parquet-testing");
                std::os::unix::fs::symlink(data, link).expect("a link");
            }
            std::env::set_current_dir(&home).expect("the copy");
            let config = SessionConfig::new().with_target_partitions(4);
            answers.push(run(&session(config), &path).await);
        }
        std::env::set_current_dir(&folder).expect("the folder");
        let name = path.strip_prefix(&folder).unwrap_or(&path).display().to_string();
        let counts = compare(&name, &answers[0], &answers[1]);
        println!("{name}: {counts:?}");
        for (kind, n) in counts {
            *total.entry(kind).or_insert(0) += n;
        }
    }
    println!("all: {total:?}");
}

/// The files to run, sorted.
fn files(folder: &Path, names: &[String]) -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let text = std::fs::read_to_string(&path).unwrap_or_default().to_lowercase();
            let is_wanted = match names {
                [] => text.contains("parquet"),
                names => names.contains(&name),
            };
            if is_wanted && name.ends_with(".slt") {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}

fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("a folder");
    for entry in std::fs::read_dir(from).expect("a folder").flatten() {
        let to = to.join(entry.file_name());
        match entry.path().is_dir() {
            true => copy_tree(&entry.path(), &to),
            false => drop(std::fs::copy(entry.path(), to).expect("a copy")),
        }
    }
}

/// The statements and queries of a file.
fn records(path: &Path) -> Vec<Record> {
    let text = std::fs::read_to_string(path).expect("a file");
    let lines: Vec<&str> = text.lines().collect();
    let mut out = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let line = lines[at];
        at += 1;
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.first() {
            Some(&"statement" | &"query") => {
                let first = at;
                while at < lines.len() && !lines[at].trim().is_empty() && lines[at] != "----" {
                    at += 1;
                }
                let sql = lines[first..at].join("\n");
                out.push(Record { line: first, sql, is_sorted: words.contains(&"rowsort") });
                // The expected result, which the other run replaces.
                while at < lines.len() && !lines[at].trim().is_empty() {
                    at += 1;
                }
            }
            Some(&"include") => {
                let folder = path.parent().unwrap_or(Path::new("."));
                let part = words.get(1).copied().unwrap_or_default();
                out.extend(records(&folder.join(part)));
            }
            Some(&"halt") => break,
            _ => {}
        }
    }
    out
}

type Answer = (Record, Result<Vec<String>, String>);

async fn run(session: &SessionContext, path: &Path) -> Vec<Answer> {
    let mut out = Vec::new();
    std::fs::create_dir_all("test_files/scratch").expect("a folder");
    for record in records(path) {
        let answer = match session.sql(&record.sql).await {
            Ok(frame) => frame.collect().await.map(|batches| rows(&batches)),
            Err(e) => Err(e),
        };
        let answer = answer.map(|mut rows| {
            if record.is_sorted {
                rows.sort();
            }
            rows
        });
        out.push((record, answer.map_err(|e| e.to_string())));
    }
    out
}

/// How many answers were alike; those that were not are printed.
fn compare(name: &str, stock: &[Answer], ours: &[Answer]) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::new();
    for ((record, stock), (_, ours)) in stock.iter().zip(ours) {
        let sql = record.sql.to_lowercase();
        let is_plan = sql.trim_start().starts_with("explain");
        let kind = match (stock, ours) {
            (Ok(_), Ok(_)) if is_plan => "plans",
            (Ok(a), Ok(b)) if a == b => "alike",
            (Err(_), Err(_)) => "failed alike",
            _ => "OTHER",
        };
        *counts.entry(kind).or_insert(0) += 1;
        if kind == "OTHER" {
            println!("--- {name}:{}\n{}", record.line, record.sql);
            for (who, answer) in [("stock", stock), ("ours", ours)] {
                match answer {
                    Ok(rows) => {
                        println!("{who}: {} rows {:?}", rows.len(), &rows[..rows.len().min(4)])
                    }
                    Err(e) => println!("{who}: error {}", e.lines().next().unwrap_or_default()),
                }
            }
        }
    }
    counts
}
