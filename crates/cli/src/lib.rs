//! `marq` inspects Parquet files, and converts them to and from other formats.
//!
//! [`run`] is the whole tool, for programs that bundle it, and [`urls`] opens URLs as files; both
//! are outside semver. Each command has one module. Only data go to standard output; messages go
//! to standard error.

#![forbid(unsafe_code)]

// The command line.
mod escape;
pub mod urls;
mod args;
mod failure;
mod help;
mod help_where;
mod packed;
mod pieces;
mod command_line;

// Files that are read.
mod interrupt;
mod trace_io;
mod url_stream;
mod locations;
mod sorting;
mod folder_out;
mod files;
mod checks;
mod keys;
mod sniff;
mod json;
mod variants;
mod named_columns;
mod damage;
mod hive;
mod input;
mod content;

// What is printed.
mod output;
mod progress;
mod cells;
mod table;
mod printer;
mod report;

// Parts that several commands have.
mod types;
mod geo;
mod walk;
mod shredded;
mod info;
mod trial;
mod crypt;
mod salvage;
mod parquet_out;
mod fill;
mod recipe;
mod text;
mod ipc;
mod source;
mod geo_out;
mod stats;
mod check;
mod bench;
mod doctor;
mod layout;
mod picture;

// Commands that show something.
mod schema;
mod rows;
mod count;
mod explain;
mod pages;
mod dict;
mod bloom;
mod readers;
mod size;
mod map;
mod file_report;
mod hexdump;
mod diff;

// Commands that write files.
mod convert;
mod plan_report;
mod rewriting;
mod concat;
mod compact;
mod optimize;
mod manual;

use std::ffi::OsString;
use std::process::ExitCode;

use crate::args::{Args, Command};
use crate::failure::Result;

/// Runs the command line `args`, which begins with the name of the program.
///
/// Signals are handled from then on: one that ends the process leaves nothing half written.
pub fn run(args: impl IntoIterator<Item = OsString>) -> ExitCode {
    interrupt::listen();
    let mut args = match command_line::parse(args.into_iter().collect()) {
        Ok(args) => args,
        Err(no_command) => return no_command.answer(),
    };
    args.global.color().apply();
    locations::configure(&args.global);
    trace_io::begin(&args.global);
    let done = checks::check(&mut args).and_then(|()| command(&args));
    interrupt::keep();
    let code = match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(args.global.format),
    };
    trace_io::report(&args.global, |name| {
        let reader = input::open(name, &args.global).ok()?;
        Some((reader.file_len(), reader.metadata().footer().clone()))
    });
    code
}

fn command(args: &Args) -> Result<()> {
    let global = &args.global;
    match &args.command {
        Command::Info(command) => info::run(command, global),
        Command::Schema(command) => schema::run(command, global),
        Command::Head(command) => rows::head(command, global),
        Command::Tail(command) => rows::tail(command, global),
        Command::Cat(command) => rows::cat(command, global),
        Command::Sample(command) => rows::sample(command, global),
        Command::Count(command) => count::run(command, global),
        Command::Explain(command) => explain::run(command, global),
        Command::Pages(command) => pages::run(command, global),
        Command::Dict(command) => dict::run(command, global),
        Command::Bloom(command) => bloom::run(command, global),
        Command::Readers(command) => readers::run(command, global),
        Command::Stats(command) => stats::run(command, global),
        Command::Size(command) => size::run(command, global),
        Command::Map(command) => map::run(command, global),
        Command::Report(command) => file_report::run(command, global),
        Command::Hexdump(command) => hexdump::run(command, global),
        Command::Check(command) => check::run(command, global),
        Command::Diff(command) => diff::run(command, global),
        Command::Convert(command) => convert::run(command, global),
        Command::Concat(command) => concat::concat(command, global),
        Command::Salvage(command) => salvage::run(command, global),
        Command::Append(command) => concat::append(command, global),
        Command::Rewrite(command) => rewriting::rewrite(command, global),
        Command::Split(command) => rewriting::split(command, global),
        Command::Compact(command) => compact::run(command, global),
        Command::Fill(command) => fill::run(command, global),
        Command::Doctor(command) => doctor::run(command, global),
        Command::Optimize(command) => optimize::run(command, global),
        Command::Bench(command) => bench::run(command, global),
        Command::Crypt(command) => crypt::run(command, global),
        Command::Completions(command) => manual::completions(command, global),
        Command::Man => manual::pages(global),
    }
}
