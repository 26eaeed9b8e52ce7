//! Checks flags before anything is read: none is without effect, and no output is an input.

use std::path::Path;

use crate::args::{Args, Command, Crypt, DamageFlag, Format, Global, HiveTypes, Sample, When};
use crate::failure::{Failure, Result};
use crate::files;
use crate::help;
use crate::packed;
use crate::urls;

/// Checks the command line, and sets the format of the output by the extension of -o.
///
/// # Errors
/// `Usage`, with the flag and what it is for.
pub(crate) fn check(args: &mut Args) -> Result<()> {
    let convert = match &args.command {
        Command::Convert(command) => Some(command),
        _ => None,
    };
    if let Some((flag, purpose)) = without_effect(&args.command, &args.global) {
        return Err(Failure::Usage(format!("{flag} is for {purpose}")));
    }
    check_urls(args)?;
    let Some(output) = args.global.output.clone().filter(|path| *path != Path::new("-")) else {
        return Ok(());
    };
    let in_place = convert.is_some_and(|command| command.in_place)
        || matches!(&args.command, Command::Rewrite(command) if command.in_place);
    let is_output = |file: &String| is_same_file(Path::new(file), &output);
    let inputs = inputs_beside(args.command.files(), &output);
    if let Some(file) = inputs.iter().find(|file| is_output(file)).filter(|_| !in_place) {
        let is_rewrite = matches!(args.command, Command::Rewrite(_));
        let how = if convert.is_some() || is_rewrite { ", or say --in-place" } else { "" };
        return Err(Failure::Usage(format!(
            "{}: the output is the input {file}; write to another file{how}",
            output.display()
        )));
    }
    if convert.is_none() && !writes_files(&args.command) && args.global.format.is_none() {
        args.global.format = format_of(&output)?;
    }
    Ok(())
}

/// The files of the command line that may be the output, those in folders and of globs among them.
/// Those that cannot be found are the command's to report.
fn inputs_beside(arguments: &[String], output: &Path) -> Vec<String> {
    let is_object = output.to_str().is_some_and(urls::is_url);
    let mut inputs = arguments.to_vec();
    // A new file is no input, and a store is not asked twice for what lies elsewhere.
    if is_object || output.is_file() {
        let beside = arguments.iter().filter(|file| urls::is_url(file) == is_object);
        let found = beside.filter_map(|file| files::expand(std::slice::from_ref(file)).ok());
        inputs.extend(found.flatten().map(|file| file.path));
    }
    inputs
}

/// Whether a command writes rows, not a report.
fn writes_files(command: &Command) -> bool {
    matches!(
        command,
        Command::Convert(_)
            | Command::Concat(_)
            | Command::Append(_)
            | Command::Rewrite(_)
            | Command::Split(_)
            | Command::Compact(_)
            | Command::Salvage(_)
            | Command::Fill(_)
            | Command::Optimize(_)
            | Command::Crypt(
                Crypt::Encrypt(_) | Crypt::Decrypt(_) | Crypt::Rekey(_) | Crypt::Rewrap(_)
            )
    )
}

/// A flag without effect here, and what it is for.
fn without_effect(command: &Command, global: &Global) -> Option<(&'static str, &'static str)> {
    if let Command::Explain(command) = command
        && command.rows.variant_path.is_some()
    {
        return Some(("--variant-path", "commands that print or convert rows"));
    }
    if let Command::Tail(rows) | Command::Sample(Sample { rows, .. }) = command
        && rows.skip.is_some()
    {
        return Some(("--skip", "head and cat"));
    }
    let goes_on = global.on_damage != DamageFlag::Fail;
    match command {
        Command::Head(rows) | Command::Cat(rows) if goes_on && rows.skip.is_some() => {
            return Some(("--skip", "files that are read without --on-damage"));
        }
        Command::Convert(convert) if goes_on && convert.in_place => {
            return Some(("--in-place", "files that are read without --on-damage"));
        }
        Command::Count(_) if goes_on && global.filter.is_none() => {
            return Some(("--on-damage", "head, cat, convert, and count with --where"));
        }
        _ => {}
    }
    // Errors in JSON are for the commands that write files, too.
    let is_json = matches!(global.format, Some(Format::Json | Format::Jsonl));
    let given = |id: &str| match id {
        "filter" => global.filter.is_some(),
        "no_hive" => global.no_hive,
        "hive_types" => global.hive_types == HiveTypes::Text,
        "int96" => global.int96.is_some(),
        "threads" => global.threads.is_some(),
        "progress" => global.progress != When::Auto,
        "verbose" => global.verbose > 0,
        "raw" => global.raw,
        "wide" => global.wide,
        "vertical" => global.vertical,
        "verify_statistics" => global.verify_statistics,
        "on_damage" => global.on_damage != DamageFlag::Fail,
        "shared_bytes" => global.shared_bytes,
        "format" => global.format.is_some() && !is_json,
        _ => false,
    };
    let name = command.name();
    if global.format == Some(Format::Sarif) && !["check", "doctor"].contains(&name) {
        return Some(("-f sarif", "check and doctor"));
    }
    let decodes = !matches!(command, Command::Stats(stats) if !stats.values);
    let heeds = |flag: &help::Limited| {
        flag.commands.contains(&name) && (decodes || !help::OF_VALUES.contains(&flag.id))
    };
    let flag = help::LIMITED.iter().find(|flag| given(flag.id) && !heeds(flag))?;
    Some((flag.flag, flag.purpose))
}

/// The format by the extension of a file, if it is a known one.
fn format_of(output: &Path) -> Result<Option<Format>> {
    let ending = packed::ending(output).unwrap_or_default();
    Ok(Some(match ending.as_str() {
        "json" => Format::Json,
        "jsonl" | "ndjson" => Format::Jsonl,
        "csv" => Format::Csv,
        "md" => Format::Md,
        "txt" => Format::Table,
        "sarif" => Format::Sarif,
        "parquet" | "arrow" | "ipc" | "feather" | "arrows" | "tsv" => {
            return Err(Failure::Usage(format!(
                "{}: only convert writes .{ending} files: marq convert FILE -o {}",
                output.display(),
                output.display()
            )));
        }
        _ => return Ok(None),
    }))
}

/// Whether two paths are the same file, also through symbolic and hard links.
pub(crate) fn is_same_file(a: &Path, b: &Path) -> bool {
    if a.to_str().is_some_and(urls::is_url) {
        return a == b;
    }
    let (Ok(a), Ok(b)) = (std::fs::canonicalize(a), std::fs::canonicalize(b)) else { return false };
    if !a.is_file() {
        return false;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let place = |path: &Path| std::fs::metadata(path).map(|file| (file.dev(), file.ino())).ok();
        if place(&a).is_some_and(|place_of_a| place(&b) == Some(place_of_a)) {
            return true;
        }
    }
    a == b
}

/// Checks that the flags of URLs are about some, and that no object is to be changed in its place.
fn check_urls(args: &Args) -> Result<()> {
    let Args { command, global } = args;
    let output = global.output.as_ref().map(|path| path.to_string_lossy().into_owned());
    if let Some(output) = output.as_ref().filter(|path| path.contains("://") && !urls::is_url(path))
    {
        return Err(Failure::Usage(urls::unknown_scheme(output)));
    }
    let changed = match command {
        Command::Append(append) => Some(&append.file),
        Command::Compact(compact) => Some(&compact.folder),
        Command::Rewrite(rewrite) if rewrite.in_place => Some(&rewrite.source.file),
        Command::Convert(convert) if convert.in_place => convert.files.files.first(),
        Command::Fill(fill) if fill.in_place => Some(&fill.source.file),
        _ => None,
    };
    if let Some(url) = changed.filter(|file| urls::is_url(file)) {
        return Err(Failure::Usage(format!(
            "{url}: objects cannot be changed in their place; write a new one with -o (concat, \
             rewrite, fill, convert)"
        )));
    }
    let given = [
        ("--endpoint", global.endpoint.is_some()),
        ("--region", global.region.is_some()),
        ("--anonymous", global.anonymous),
        ("--ca-file", global.ca_file.is_some()),
        ("--timeout", global.timeout.is_some()),
        ("--retries", global.retries.is_some()),
    ];
    let has_url = command.files().iter().chain(&output).any(|file| urls::is_url(file));
    match given.into_iter().find(|(_, is_given)| *is_given && !has_url) {
        Some((flag, _)) => Err(Failure::Usage(format!("{flag} is for URLs, and none is given"))),
        None => Ok(()),
    }
}
