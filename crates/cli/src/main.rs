//! Runs the program `marq`.

use std::process::ExitCode;

fn main() -> ExitCode {
    marquetry_cli::run(std::env::args_os())
}
