//! `check` recomputes what files state, and reports each lie with its place.

mod record;
mod contract;
pub(crate) mod sarif;

use std::path::{Path, PathBuf};

use marquetry::Threads;
use marquetry::check::{Checker, Severity};

use self::contract::{Contract, unchecked};
use self::record::{CheckedFile, CheckedFiles, FindingRecord};
use crate::args::{Check, Format, Global};
use crate::failure::{Failure, Result, after_printing};
use crate::report::{self, ReportMemory};
use crate::{input, keys, locations, sniff};

/// Checks each of the files.
pub(crate) fn run(command: &Check, global: &Global) -> Result<()> {
    let paths = input::paths(&command.files.files)?;
    let mut memory = ReportMemory::new(global);
    let contract = command.contract.as_deref().map(Contract::read).transpose()?;
    let each = |path: &str| checked(path, command, global, contract.as_ref(), &mut memory);
    let (files, end) = input::each_readable(&paths, global, each)?;
    let failed: Vec<String> = files.iter().filter_map(CheckedFile::failure).collect();
    let report = CheckedFiles { files };
    let printed = match global.format {
        // The exit code says it all.
        None if global.quiet && global.output.is_none() => Ok(()),
        Some(Format::Sarif) => sarif::print(&report, global),
        _ => report::print(&report, global),
    };
    after_printing(printed, if failed.is_empty() { end } else { Err(Failure::Found(failed)) })
}

/// Findings of a file that are listed, at most.
const MAX_LISTED: usize = 10_000;

fn checked(
    path: &str,
    command: &Check,
    global: &Global,
    contract: Option<&Contract>,
    memory: &mut ReportMemory,
) -> Result<CheckedFile> {
    let source = input::source(path, global)?;
    if let Some(failure) = sniff::other_format(&source, path) {
        return Err(failure);
    }
    let mut checker =
        Checker::new(source).level(command.level.into()).limits(input::limits(global));
    if let Some(keys) = keys::decryption(global, path)? {
        checker = checker.keys(keys);
    }
    if let Some(threads) = global.threads {
        checker = checker.threads(Threads::Exactly(threads));
    }
    if let Some(folder) = summary_folder(path) {
        checker = checker.files_below(folder);
    }
    let mut file = CheckedFile::new(path, command.level.into());
    let least = Severity::from(command.severity);
    let mut list = Listed { file: &mut file, memory };
    let report = checker.run(|finding| {
        list.file.count(finding.severity());
        if finding.severity() >= least {
            list.push(FindingRecord::new(&finding));
        }
    });
    let report = report.map_err(|e| e.at_file(path))?;
    let has_errors = list.file.errors > 0;
    if let Some(contract) = contract {
        let mut push = |record: FindingRecord| {
            list.file.errors += 1;
            list.push(record);
        };
        match input::open(path, global) {
            Ok(reader) => {
                contract.check(&reader, &mut push).map_err(|e| e.at_file(path))?;
            }
            // What keeps the file from being read was found.
            Err(_) if has_errors => {}
            Err(failure) => push(unchecked(&failure.text())),
        }
    }
    file.add(report);
    Ok(file)
}

/// The findings of a file, as far as there is memory for them.
struct Listed<'a> {
    file: &'a mut CheckedFile,
    memory: &'a mut ReportMemory,
}

impl Listed<'_> {
    fn push(&mut self, record: FindingRecord) {
        let is_listed = self.file.findings.len() < MAX_LISTED
            && self.memory.take(&self.file.file, &record, record.heap_bytes()).is_ok();
        match is_listed {
            true => self.file.findings.push(record),
            false => self.file.left_out += 1,
        }
    }
}

/// The folder whose files a summary is of.
fn summary_folder(path: &str) -> Option<PathBuf> {
    // Of an object, the summary alone is checked.
    let path = Some(Path::new(path)).filter(|path| locations::url(path).is_none())?;
    let is_summary = path.file_name().is_some_and(|name| name == "_metadata");
    let here = || Path::new(".");
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    is_summary.then(|| folder.unwrap_or_else(here).to_owned())
}
