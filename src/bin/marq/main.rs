//! `marq`: inspects Parquet files, and converts them to and from other formats.
//!
//! One module per command. Only data go to standard output; messages go to standard error.

mod args;
// Shared with the library, whose interface has no calendar.
#[path = "../../calendar.rs"]
mod calendar;
mod cells;
mod checks;
mod convert;
mod count;
mod crypt;
mod escape;
mod explain;
mod failure;
mod files;
mod geo;
mod help;
mod help_where;
mod hive;
mod info;
mod input;
mod interrupt;
mod keys;
mod output;
mod packed;
mod pages;
mod parquet_out;
mod printer;
mod progress;
mod report;
mod rows;
mod schema;
mod shredded;
mod sniff;
mod source;
mod stats;
mod table;
mod text;
mod types;
mod variants;
mod walk;

use std::process::ExitCode;

use clap::error::ErrorKind;

use crate::args::{Args, Command};
use crate::failure::{Failure, Result};

fn main() -> ExitCode {
    interrupt::listen();
    let mut args = match args::parse() {
        Ok(args) => args,
        Err(error) if error.kind() == ErrorKind::InvalidSubcommand => {
            let text = args::unknown_command(&error).unwrap_or_else(|| error.to_string());
            return Failure::Usage(text).report(None);
        }
        Err(error) => {
            // Help and version are answers; everything else is a usage error.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    args.global.color().apply();
    match checks::check(&mut args).and_then(|()| run(&args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(args.global.format),
    }
}

fn run(args: &Args) -> Result<()> {
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
        Command::Stats(command) => stats::run(command, global),
        Command::Convert(command) => convert::run(command, global),
        Command::Crypt(command) => crypt::run(command, global),
    }
}
