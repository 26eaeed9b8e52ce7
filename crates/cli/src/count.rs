//! `count`: rows, from the metadata alone, or of those that meet a condition.

use std::io::Write;

use serde_json::json;

use crate::args::{Files, Global};
use crate::failure::{Failure, Result};
use crate::hive::Input;
use crate::input;
use crate::output::{Sink, count};
use crate::report::{Report, Section};

/// Counts the rows of each file, and of all.
pub(crate) fn run(command: &Files, global: &Global) -> Result<()> {
    let mut files = Vec::new();
    let mut failed = false;
    let inputs = input::inputs(&command.files, global)?;
    for input in &inputs {
        match rows_of(input, global) {
            Ok(rows) => files.push((input.path.clone(), rows)),
            // One file is the whole work; of several, the others still count.
            Err(failure) if inputs.len() == 1 => return Err(failure),
            Err(failure) => {
                let _ = failure.report(global.format);
                failed = true;
            }
        }
    }
    let total: u64 = files.iter().map(|(_, rows)| rows).sum();
    let end = if failed { Err(Failure::Partial) } else { Ok(()) };
    if global.format.is_none() {
        // A number is what a script wants: n=$(marq count FILE).
        let mut out = Sink::open(global)?;
        if !out.terminal {
            writeln!(out, "{total}")?;
            out.close()?;
            return end;
        }
    }
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
    end
}

/// Rows of a file that meet the filter; it is not opened where its folders say that none does.
fn rows_of(input: &Input, global: &Global) -> Result<u64> {
    if input.is_pruned(global.filter.as_deref())? {
        return Ok(0);
    }
    Ok(input::open_filtered(input, global)?.count()?)
}
