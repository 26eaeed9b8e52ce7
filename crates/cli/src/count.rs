//! `count` counts rows, from the metadata alone, or those that meet a condition.

use std::io::Write;

use marquetry::read::OnDamage;
use serde::Serialize;

use crate::args::{Files, Global};
use crate::damage::Losses;
use crate::failure::{Failure, Result, after_printing};
use crate::hive::Input;
use crate::input;
use crate::output::Sink;
use crate::report::{self, Column, Report, Tables};

#[derive(Serialize)]
struct Counts {
    rows: u64,
    files: Vec<FileCount>,
}

#[derive(Serialize)]
struct FileCount {
    file: String,
    rows: u64,
}

/// Counts the rows of each file, and of all.
pub(crate) fn run(command: &Files, global: &Global) -> Result<()> {
    let (mut files, mut losses) = (Vec::new(), Losses::default());
    let mut end = Ok(());
    let inputs = input::inputs(&command.files, global)?;
    for input in &inputs {
        match rows_of(input, global, &mut losses) {
            Ok(rows) => files.push(FileCount { file: input.path.clone(), rows }),
            // One file is the whole work; of several, the others still count.
            Err(failure) if inputs.len() == 1 => return Err(failure),
            Err(failure) => {
                let _ = failure.report(global.format);
                end = Err(Failure::Partial);
            }
        }
    }
    let end = losses.end().and(end);
    let rows = input::sum_of_rows(files.iter().map(|file| file.rows))?;
    let counts = Counts { rows, files };
    if global.format.is_none() {
        // A number is what a script wants: n=$(marq count FILE).
        let mut out = Sink::open(global)?;
        if !out.terminal {
            let printed = writeln!(out, "{}", counts.rows).map_err(Failure::from);
            return after_printing(printed.and_then(|()| out.close().map(drop)), end);
        }
    }
    after_printing(report::print(&counts, global), end)
}

impl Report for Counts {
    const COMMAND: &'static str = "count";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        self.files.iter()
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        let all = FileCount { file: "all".to_owned(), rows: self.rows };
        let all = (self.files.len() > 1).then_some(&all);
        let columns = [
            Column::text("file", |of: &FileCount| of.file.clone()),
            Column::count("rows", |of| Some(of.rows)),
        ];
        out.show("", &columns, self.files.iter().chain(all), &[])
    }
}

/// Rows of a file that meet the filter; it is not opened where its folders say that none does.
fn rows_of(input: &Input, global: &Global, losses: &mut Losses) -> Result<u64> {
    if input.is_pruned(global.filter.as_deref())? {
        return Ok(0);
    }
    let reader = input::open_filtered(input, global)?;
    // Refuses a file whose row groups have more rows than there are numbers for.
    reader.file_rows()?;
    if reader.read_options().on_damage == OnDamage::Fail || reader.read_options().filter.is_none() {
        return Ok(reader.count()?);
    }
    let mut batches = reader.project::<&str>([])?.batches()?;
    let mut rows = 0;
    while let Some(batch) = batches.next_batch()? {
        rows += batch.num_rows() as u64;
    }
    losses.add(&input.path, &batches, global);
    Ok(rows)
}
