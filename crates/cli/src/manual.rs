//! `completions` and `man` make what a package installs beside the tool, of the command line
//! itself.

use std::io::{Error, Write};
use std::path::Path;

use clap::Command;
use clap_mangen::Man;

use crate::args::{Completions, Global};
use crate::command_line;
use crate::failure::{Failure, Result};
use crate::output::Sink;

/// Prints the script of a shell.
pub(crate) fn completions(command: &Completions, global: &Global) -> Result<()> {
    let mut out = Sink::open(global)?;
    let mut script = Vec::new();
    clap_complete::generate(command.shell, &mut command_line::whole_command(), "marq", &mut script);
    out.write_all(&script)?;
    out.close()?;
    Ok(())
}

/// Prints the manual page of the tool; with a folder as the output, writes those of all commands.
pub(crate) fn pages(global: &Global) -> Result<()> {
    let mut command = command_line::whole_command();
    command.build();
    match global.output.as_deref().filter(|path| path.is_dir()) {
        Some(folder) => each_page(&command, "marq", folder),
        None => {
            let mut out = Sink::open(global)?;
            out.write_all(&page(&command, "marq")?)?;
            out.close()?;
            Ok(())
        }
    }
}

/// Writes the page of a command and of those within it.
fn each_page(command: &Command, name: &str, folder: &Path) -> Result<()> {
    let path = folder.join(format!("{name}.1"));
    std::fs::write(&path, page(command, name)?)
        .map_err(|e| Failure::Output(Error::new(e.kind(), format!("{}: {e}", path.display()))))?;
    let shown = command.get_subcommands().filter(|sub| sub.get_name() != "help");
    for sub in shown {
        each_page(sub, &format!("{name}-{}", sub.get_name()), folder)?;
    }
    Ok(())
}

fn page(command: &Command, name: &str) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    Man::new(command.clone().display_name(name.to_owned())).title(name).render(&mut text)?;
    Ok(text)
}
