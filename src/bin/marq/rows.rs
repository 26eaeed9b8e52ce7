//! `head`, `tail`, `cat`, `sample`: rows.

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use marquetry::read::VirtualColumn;
use marquetry::{Reader, RowSelection};

use crate::args::{Global, Rows, Sample};
use crate::failure::{Failure, Result};
use crate::input;
use crate::printer::Printer;

/// Rows shown where nobody says how many.
const DEFAULT_ROWS: u64 = 10;

/// The first rows of each file.
pub(crate) fn head(command: &Rows, global: &Global) -> Result<()> {
    print(command, global, |reader, n| first_rows(reader, n.unwrap_or(DEFAULT_ROWS)))
}

/// The last rows of each file.
pub(crate) fn tail(command: &Rows, global: &Global) -> Result<()> {
    print(command, global, |reader, n| {
        let rows = reader.count()?;
        let first = rows.saturating_sub(n.unwrap_or(DEFAULT_ROWS));
        Ok(vec![stretch(reader, first..rows)])
    })
}

/// All rows of each file.
pub(crate) fn cat(command: &Rows, global: &Global) -> Result<()> {
    print(command, global, |reader, n| match n {
        Some(n) => first_rows(reader, n),
        None => Ok(vec![reader.clone()]),
    })
}

/// Some rows of each file, chosen at random.
pub(crate) fn sample(command: &Sample, global: &Global) -> Result<()> {
    print(&command.rows, global, |reader, n| {
        let numbers = numbers(reader)?;
        let rows = match &numbers {
            Some(numbers) => numbers.len() as u64,
            None => reader.rows()?,
        };
        let mut rng = fastrand::Rng::with_seed(command.seed);
        let wanted = n.unwrap_or(DEFAULT_ROWS).min(rows);
        let mut chosen = std::collections::BTreeSet::new();
        // Floyd's choice: every set of rows is equally likely.
        for last in rows - wanted..rows {
            let row = rng.u64(0..=last);
            if !chosen.insert(row) {
                chosen.insert(last);
            }
        }
        let Some(numbers) = numbers else {
            return Ok(chosen.into_iter().map(|row| stretch(reader, row..row + 1)).collect());
        };
        let mut of_file: Vec<u64> = numbers
            .iter()
            .zip(0u64..)
            .filter_map(|(number, row)| chosen.contains(&row).then_some(*number))
            .collect();
        of_file.sort_unstable();
        let mut options = reader.read_options().clone();
        (options.filter, options.selection) = (None, None);
        let rows = RowSelection::from_rows(reader.file_rows()?, of_file)?;
        Ok(vec![reader.clone().options(options).select(rows)?])
    })
}

/// The numbers in the file of the rows that pass the filter; `None` if there is no filter.
fn numbers(reader: &Reader) -> Result<Option<Vec<u64>>> {
    if reader.read_options().filter.is_none() {
        return Ok(None);
    }
    let number = VirtualColumn::RowNumber { name: "row".into() };
    let reader = reader.clone().project::<&str>([])?.virtual_column(number);
    let mut batches = reader.batches()?;
    let mut numbers = Vec::new();
    while let Some(batch) = batches.next_batch()? {
        let column = batch.column(0).as_primitive::<Int64Type>();
        numbers.extend(column.values().iter().map(|row| row.unsigned_abs()));
    }
    Ok(Some(numbers))
}

fn first_rows(reader: &Reader, n: u64) -> Result<Vec<Reader>> {
    let rows = match reader.read_options().filter {
        Some(_) => n,
        None => n.min(reader.rows()?),
    };
    Ok(vec![stretch(reader, 0..rows)])
}

/// Some rows of those that the flags leave.
fn stretch(reader: &Reader, rows: std::ops::Range<u64>) -> Reader {
    let first = reader.read_options().offset;
    reader.clone().offset(first + rows.start).limit(rows.end - rows.start)
}

/// Prints rows of all files; those that cannot be read are reported after the rows of the others.
fn print(
    command: &Rows,
    global: &Global,
    choose: impl Fn(&Reader, Option<u64>) -> Result<Vec<Reader>>,
) -> Result<()> {
    let paths = input::paths(&command.files.files)?;
    let printer = Printer::open(global)?;
    let mut printer = printer.with_renamed_duplicates(command.files.rename_duplicates);
    let mut failures: Vec<Failure> = Vec::new();
    for (i, path) in paths.iter().enumerate() {
        if paths.len() > 1 {
            printer.title(path);
        }
        let reader = input::open_rows(path, &command.files, global);
        let printed = reader.and_then(|reader| {
            let chosen = choose(&reader, command.rows_max)?;
            print_rows(&mut printer, &reader, chosen)
        });
        let Err(failure) = printed else { continue };
        // What is wrong with the first file for want of a better command line is so with the others.
        let ends_all = matches!(failure, Failure::Output(_)) || (i == 0 && failure.code() == 2);
        if ends_all || failures.len() + 1 == paths.len() {
            printer.give_up()?;
            report(&failures, global);
            return Err(failure);
        }
        failures.push(failure);
    }
    printer.close()?;
    report(&failures, global);
    if failures.is_empty() { Ok(()) } else { Err(Failure::Partial) }
}

fn report(failures: &[Failure], global: &Global) {
    for failure in failures {
        let _ = failure.report(global.format);
    }
}

fn print_rows(printer: &mut Printer, reader: &Reader, chosen: Vec<Reader>) -> Result<()> {
    for (i, rows) in chosen.iter().enumerate() {
        let mut batches = rows.batches()?;
        if i == 0 {
            printer.schema(reader.schema()?.as_ref())?;
        }
        while let Some(batch) = batches.next_batch()? {
            printer.rows(&batch)?;
        }
    }
    Ok(())
}
