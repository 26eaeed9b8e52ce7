//! `count`: rows, from the metadata alone, or of those that meet a condition.

use serde_json::json;

use crate::args::{Files, Global};
use crate::failure::{Failure, Result};
use crate::input;
use crate::output::count;
use crate::report::{Report, Section};

/// Counts the rows of each file, and of all.
pub(crate) fn run(command: &Files, global: &Global) -> Result<()> {
    let mut files = Vec::new();
    let mut failed = false;
    let paths = input::paths(&command.files)?;
    for path in &paths {
        match input::open(path, global).and_then(|reader| Ok(reader.count()?)) {
            Ok(rows) => files.push((path.clone(), rows)),
            // One file is the whole work; of several, the others still count.
            Err(failure) if paths.len() == 1 => return Err(failure),
            Err(failure) => {
                let _ = failure.report(global.format);
                failed = true;
            }
        }
    }
    let total: u64 = files.iter().map(|(_, rows)| rows).sum();
    let mut rows: Vec<Vec<String>> =
        files.iter().map(|(path, rows)| vec![path.clone(), count(*rows, global)]).collect();
    if files.len() > 1 {
        rows.push(vec!["all".to_owned(), count(total, global)]);
    }
    let listed: Vec<_> =
        files.iter().map(|(path, rows)| json!({ "file": path, "rows": rows })).collect();
    let report = Report {
        command: "count",
        json: json!({ "rows": total, "files": listed }),
        records: listed,
        sections: vec![Section::new("", &["file", ">rows"]).with(rows)],
    };
    report.print(global)?;
    if failed { Err(Failure::Partial) } else { Ok(()) }
}
