//! The program of [`marquetry_fuzz::command`], with the target here.

use std::process::ExitCode;

fn main() -> ExitCode {
    marquetry_fuzz::command::run(marquetry_datafusion_fuzz::ALL)
}
