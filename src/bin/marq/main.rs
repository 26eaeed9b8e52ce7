//! `marq`: look at Parquet files, and turn them into something else.
//!
//! One file a command. Data go to standard output and nothing else does; what is for people goes to standard error.

mod args;
mod cells;
mod convert;
mod count;
mod escape;
mod explain;
mod failure;
mod info;
mod input;
mod output;
mod pages;
mod parquet_out;
mod printer;
mod report;
mod rows;
mod schema;
mod source;
mod stats;
mod table;
mod text;
mod types;
mod walk;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};
use crate::failure::Result;

fn main() -> ExitCode {
    let args = match Args::try_parse_from(args::with_default_command(std::env::args_os())) {
        Ok(args) => args,
        Err(error) => {
            // Help and version are answers; everything else is a usage error.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    args.global.color.apply();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(args.global.format),
    }
}

fn run(args: &Args) -> Result<()> {
    let global = &args.global;
    global.refuse_what_is_not_there()?;
    args.command.refuse_filter(global)?;
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
    }
}
