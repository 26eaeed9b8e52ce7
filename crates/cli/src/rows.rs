//! `head`, `tail`, `cat` and `sample` print rows.

use std::ops::Range;
use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use marquetry::read::VirtualColumn;
use marquetry::{Batches, Reader, RowSelection};

use crate::args::{Columns, FilesOfRows, Global, Rows, Sample, When};
use crate::damage::Losses;
use crate::failure::{Failure, Result, after_printing};
use crate::hive::Input;
use crate::input::{self, Opened};
use crate::printer::Printer;
use crate::progress::{Bar, Extent, Read};

/// Number of rows that are shown by default.
const DEFAULT_ROWS: u64 = 10;

/// The first rows of all files together.
pub(crate) fn head(command: &Rows, global: &Global) -> Result<()> {
    let n = command.rows_max.unwrap_or(DEFAULT_ROWS);
    first(command, global, WantedRows::First(n), n)
}

/// All rows of all files, or the first.
pub(crate) fn cat(command: &Rows, global: &Global) -> Result<()> {
    let wanted = command.rows_max.map_or(WantedRows::All, WantedRows::First);
    first(command, global, wanted, command.rows_max.unwrap_or(u64::MAX))
}

/// `wanted`, or the `n` rows after those that are passed over.
fn first(command: &Rows, global: &Global, wanted: WantedRows, n: u64) -> Result<()> {
    print(command, global, |inputs| {
        let Some(skip) = command.skip else { return Ok(wanted) };
        let mut at = 0u64;
        let ranges = inputs.iter().map(|input| {
            // An error is reported when its turn comes.
            let Ok(rows) = count(input, command, global) else { return Ok(0..1) };
            let end = input::sum_of_rows([at, rows])?;
            let within = |row: u64| row.clamp(at, end) - at;
            let range = within(skip)..within(skip.saturating_add(n));
            at = end;
            Ok(range)
        });
        Ok(WantedRows::Ranges(ranges.collect::<Result<_>>()?))
    })
}

/// The last rows of all files together.
pub(crate) fn tail(command: &Rows, global: &Global) -> Result<()> {
    let mut left = command.rows_max.unwrap_or(DEFAULT_ROWS);
    print(command, global, |inputs| {
        let mut last = Vec::new();
        for input in inputs.iter().rev() {
            let rows = if left > 0 { count(input, command, global) } else { Ok(0) };
            last.push(match rows {
                Ok(rows) => rows.saturating_sub(left)..rows,
                // As in `first`.
                Err(_) => 0..1,
            });
            left = left.saturating_sub(rows.unwrap_or_default());
        }
        last.reverse();
        Ok(WantedRows::Ranges(last))
    })
}

/// The rows of a file that the flags leave.
fn count(input: &Input, command: &Rows, global: &Global) -> Result<u64> {
    Ok(input::open_rows(input, &command.files, global)?.reader.count()?)
}

/// Some rows of all files together, chosen at random.
pub(crate) fn sample(command: &Sample, global: &Global) -> Result<()> {
    let mut rng = fastrand::Rng::with_seed(command.seed);
    let command = &command.rows;
    print(command, global, |inputs| {
        let mut ends = Vec::new();
        let mut rows = 0u64;
        for input in inputs {
            let of_file = count(input, command, global);
            rows = input::sum_of_rows([rows, *of_file.as_ref().unwrap_or(&0)])?;
            ends.push((rows, of_file.is_err()));
        }
        let wanted = command.rows_max.unwrap_or(DEFAULT_ROWS).min(rows);
        let mut chosen = std::collections::BTreeSet::new();
        // Floyd's choice: every set of rows is equally likely.
        for last in rows - wanted..rows {
            let row = rng.u64(0..=last);
            if !chosen.insert(row) {
                chosen.insert(last);
            }
        }
        let mut begin = 0;
        let of_file = ends.into_iter().map(|(end, failed)| {
            let rows = chosen.range(begin..end).map(|row| row - begin);
            // As in `tail`.
            let rows = rows.chain(failed.then_some(0)).collect();
            begin = end;
            rows
        });
        Ok(WantedRows::Rows(of_file.collect()))
    })
}

/// The rows that a command wants of its files, those that pass the filter.
enum WantedRows {
    All,
    /// The first of all files together.
    First(u64),
    /// Rows of each file.
    Ranges(Vec<Range<u64>>),
    /// Single rows of each file, in their order.
    Rows(Vec<Vec<u64>>),
}

impl WantedRows {
    /// Whether a file need not be opened; one at least is, for its columns.
    fn skips(&self, i: usize, printed: u64) -> bool {
        let skips = |is_empty: &dyn Fn(usize) -> bool, len: usize| {
            is_empty(i) && (i > 0 || (1..len).any(|i| !is_empty(i)))
        };
        match self {
            Self::All => false,
            Self::First(n) => i > 0 && printed >= *n,
            Self::Ranges(ranges) => {
                skips(&|i| ranges.get(i).is_none_or(Range::is_empty), ranges.len())
            }
            Self::Rows(rows) => skips(&|i| rows.get(i).is_none_or(Vec::is_empty), rows.len()),
        }
    }

    /// Readers of the wanted rows of a file.
    fn readers(&self, i: usize, reader: &Reader, printed: u64) -> Result<Vec<Reader>> {
        match self {
            Self::All => Ok(vec![reader.clone()]),
            Self::First(n) => first_rows(reader, n.saturating_sub(printed)),
            Self::Ranges(ranges) => {
                let rows = ranges.get(i).cloned().unwrap_or_default();
                Ok(vec![stretch(reader, rows)])
            }
            Self::Rows(rows) => single_rows(reader, rows.get(i).map_or(&[], Vec::as_slice)),
        }
    }
}

/// Readers of rows by their numbers among those of the reader.
fn single_rows(reader: &Reader, rows: &[u64]) -> Result<Vec<Reader>> {
    let Some(numbers) = numbers(reader)? else {
        return Ok(rows.iter().map(|row| stretch(reader, *row..row + 1)).collect());
    };
    let number = |row: &u64| numbers.get(usize::try_from(*row).ok()?).copied();
    let mut of_file: Vec<u64> = rows.iter().filter_map(number).collect();
    of_file.sort_unstable();
    let mut options = reader.read_options().clone();
    (options.filter, options.selection) = (None, None);
    let rows = RowSelection::from_rows(reader.file_rows()?, of_file)?;
    Ok(vec![reader.clone().options(options).select(rows)?])
}

/// The numbers in the file of the rows that pass the filter; `None` if there is no filter.
fn numbers(reader: &Reader) -> Result<Option<Vec<u64>>> {
    if reader.read_options().filter.is_none() {
        return Ok(None);
    }
    let number = VirtualColumn::RowNumber { name: "row".into() };
    let mut options = reader.read_options().clone();
    options.variant_columns.clear();
    let reader = reader.clone().options(options).project::<&str>([])?.virtual_column(number);
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
    reader.clone().offset(first.saturating_add(rows.start)).limit(rows.end - rows.start)
}

/// Prints rows of all files; those that cannot be read are reported after the rows of the others.
fn print(
    command: &Rows,
    global: &Global,
    wanted: impl FnOnce(&[Input]) -> Result<WantedRows>,
) -> Result<()> {
    let mut inputs = input::unpruned(&command.files.files, global)?;
    if command.files.by_name && inputs.len() > 1 {
        inputs = input::united(inputs, global)?;
    }
    let wanted = wanted(&inputs)?;
    let printer = Printer::open(global)?;
    let printer = printer.with_forms(command.values);
    let mut printer = printer.with_renamed_duplicates(command.files.rename_duplicates);
    let mut bar = bar(&wanted, &inputs, command, global);
    let (mut failures, mut losses) = (Vec::<Failure>::new(), Losses::default());
    for (i, input) in inputs.iter().enumerate() {
        if wanted.skips(i, bar.rows()) {
            continue;
        }
        if inputs.len() > 1 {
            printer.title(&input.path);
        }
        let printed = input::open_rows(input, &command.files, global).and_then(|opened| {
            let chosen = wanted.readers(i, &opened.reader, bar.rows())?;
            print_rows(&mut printer, &opened, chosen, &mut bar, |batches| {
                losses.add(&input.path, batches, global);
            })
        });
        let Err(failure) = printed else { continue };
        // An error of the first file that stems from the command line concerns the other files too.
        let ends_all = matches!(failure, Failure::Output(_) | Failure::OtherColumns(_))
            || (i == 0 && failure.code() == 2);
        if ends_all || failures.len() + 1 == inputs.len() {
            let printed = printer.abort();
            drop(bar);
            report(&failures, global);
            let end = after_printing(Err(failure), end(&failures, &losses));
            return after_printing(printed, end);
        }
        failures.push(failure);
    }
    bar.finishing();
    let printed = printer.close().map(|bytes| bar.done(bytes, "", global));
    report(&failures, global);
    after_printing(printed, end(&failures, &losses))
}

/// How the command ends, by the files that failed and the rows that are lost.
fn end(failures: &[Failure], losses: &Losses) -> Result<()> {
    let whole = losses.end();
    if failures.is_empty() { whole } else { Err(Failure::Partial) }
}

fn report(failures: &[Failure], global: &Global) {
    for failure in failures {
        let _ = failure.report(global.format);
    }
}

fn print_rows(
    printer: &mut Printer,
    opened: &Opened,
    chosen: Vec<Reader>,
    bar: &mut Bar,
    mut at_end: impl FnMut(&Batches),
) -> Result<()> {
    for (i, rows) in chosen.iter().enumerate() {
        let mut batches = rows.batches()?;
        if i == 0 {
            printer.schema(opened.schema()?.as_ref())?;
        }
        while let Some(batch) = batches.next_batch()? {
            let rows = batch.num_rows();
            for batch in opened.complete(batch)? {
                printer.rows(&batch?)?;
            }
            bar.gave(rows);
        }
        at_end(&batches);
    }
    Ok(())
}

/// The progress of what goes into a file; what goes to a terminal or into a pager shows itself how
/// far it is.
fn bar(wanted: &WantedRows, inputs: &[Input], command: &Rows, global: &Global) -> Bar {
    let to_file = match global.output.as_deref().filter(|path| *path != Path::new("-")) {
        Some(_) => true,
        None => std::fs::metadata("/dev/stdout").is_ok_and(|there| there.is_file()),
    };
    let rows = || -> Option<u64> {
        let limit = match wanted {
            WantedRows::All => u64::MAX,
            WantedRows::First(n) => *n,
            WantedRows::Ranges(ranges) => {
                return input::sum_of_rows(ranges.iter().map(|r| r.end - r.start)).ok();
            }
            WantedRows::Rows(rows) => return Some(rows.iter().map(|rows| rows.len() as u64).sum()),
        };
        let mut rows = 0u64;
        // Columns do not matter.
        let files = FilesOfRows { columns: Columns::default(), ..command.files.clone() };
        for input in inputs.iter().take_while(|_| global.filter.is_none()) {
            let input = Input { path: input.path.clone(), partitions: None, target: None };
            let of_file = input::open_rows(&input, &files, global).ok()?.reader.rows().ok()?;
            rows = input::sum_of_rows([rows, of_file]).ok()?;
        }
        (global.filter.is_none()).then_some(rows.min(limit))
    };
    let work = match (global.progress, to_file) {
        (When::Never, _) | (When::Auto, false) => Extent::Rows(0),
        _ => rows().map_or(Extent::Unknown, Extent::Rows),
    };
    Bar::new(work, global, Read::default())
}
