//! Parses the command line.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ColorChoice, CommandFactory, FromArgMatches};

use crate::args::Args;
use crate::failure::{Failure, Result};
use crate::help;
use crate::help_where;

/// Parses the command line. A first word that is no command, but may be a file, is taken as one:
/// `marq FILE`.
///
/// # Errors
/// Usage errors; also help and version.
pub(crate) fn parse(mut words: Vec<OsString>) -> Result<Args, NoCommand> {
    number_of_rows(&mut words);
    let command = whole_command().color(colors(&words));
    if words.len() <= 1 {
        return Err(NoCommand::Screen(help::screen(command)));
    }
    if matches!(words.get(1..), Some([help, topic]) if help == "help" && topic == "where") {
        return Err(NoCommand::HelpWhere);
    }
    let parse = |command: clap::Command, words: &[OsString]| {
        let matches = command.try_get_matches_from(words)?;
        Args::from_arg_matches(&matches)
    };
    let error = match parse(command.clone(), &words) {
        Err(error) if error.kind() == ErrorKind::InvalidSubcommand => error,
        done => return Ok(done?),
    };
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidSubcommand) else {
        return Err(error.into());
    };
    let at = words.iter().position(|found| found.to_string_lossy() == *word);
    match at.filter(|_| may_be_a_file(word)) {
        Some(at) => {
            words.insert(at, "info".into());
            Ok(parse(command, &words)?)
        }
        None => Err(error.into()),
    }
}

/// The whole command line, with its help.
pub(crate) fn whole_command() -> clap::Command {
    help::complete(Args::command())
}

/// A command line without a command to run.
pub(crate) enum NoCommand {
    /// No subcommand: the screen that lists them.
    Screen(StyledStr),
    /// `marq help where`.
    HelpWhere,
    /// A wrong command line; also help and version.
    Error(clap::Error),
}

impl From<clap::Error> for NoCommand {
    fn from(error: clap::Error) -> Self {
        Self::Error(error)
    }
}

impl NoCommand {
    /// Prints the text, or the error.
    pub(crate) fn answer(self) -> ExitCode {
        match self {
            Self::Screen(screen) => {
                eprint!("{screen}");
                ExitCode::from(2)
            }
            Self::HelpWhere => {
                // A closed pipe means that its reader has read enough.
                let _ = std::io::stdout().write_all(help_where::TEXT.as_bytes());
                ExitCode::SUCCESS
            }
            Self::Error(error) if error.kind() == ErrorKind::InvalidSubcommand => {
                let text = unknown_command(&error).unwrap_or_else(|| error.to_string());
                Failure::Usage(text).report(None)
            }
            Self::Error(error) => {
                // Help and version are answers; everything else is a usage error.
                let _ = error.print();
                ExitCode::from(if error.use_stderr() { 2 } else { 0 })
            }
        }
    }
}

/// `head -5 FILE` is `head -n 5 FILE`, also for the other commands that print rows.
fn number_of_rows(words: &mut Vec<OsString>) {
    const PRINTING: [&str; 4] = ["head", "tail", "cat", "sample"];
    let text: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let Some(command) = text.iter().skip(1).position(|word| PRINTING.contains(&&**word)) else {
        return;
    };
    let is_number = |word: &str| {
        let digits = word.strip_prefix('-').unwrap_or_default();
        !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    // A number after a flag may be its value.
    let found = (command + 2..text.len())
        .take_while(|i| text[*i] != "--")
        .find(|i| is_number(&text[*i]) && (*i == command + 2 || !text[*i - 1].starts_with('-')));
    if let Some(i) = found {
        let number = text[i].trim_start_matches('-').to_owned();
        words.splice(i..=i, ["-n".into(), number.into()]);
    }
}

fn may_be_a_file(word: &str) -> bool {
    word == "-" || word.contains(['.', '/', '\\', '*', '?', '[', ':']) || Path::new(word).exists()
}

/// The error for a word that is neither a command nor a file.
fn unknown_command(error: &clap::Error) -> Option<String> {
    let ContextValue::String(word) = error.get(ContextKind::InvalidSubcommand)? else {
        return None;
    };
    let close = match error.get(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::Strings(close)) => close.join(" or "),
        Some(ContextValue::String(close)) => close.clone(),
        _ => String::new(),
    };
    let close = if close.is_empty() { ".".to_owned() } else { format!("; did you mean {close}?") };
    let command = Args::command();
    let names: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let names = names.join(", ");
    Some(format!("{word:?} is neither a command nor a file{close} The commands are {names}"))
}

/// --color and --no-color, which the help obeys before they are parsed.
fn colors(words: &[OsString]) -> ColorChoice {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let is_given = |when: &str| {
        let equals = format!("--color={when}");
        words.iter().any(|word| *word == equals)
            || words.windows(2).any(|pair| pair[0] == "--color" && pair[1] == when)
    };
    match () {
        () if is_given("never") || words.iter().any(|word| word == "--no-color") => {
            ColorChoice::Never
        }
        () if is_given("always") => ColorChoice::Always,
        () => ColorChoice::Auto,
    }
}
