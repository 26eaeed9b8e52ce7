//! The program of [`marquetry_fuzz::command`], with the targets here.

use std::process::ExitCode;

fn main() -> ExitCode {
    marquetry_fuzz::command::run(marquetry_fuzz::targets::ALL)
}
