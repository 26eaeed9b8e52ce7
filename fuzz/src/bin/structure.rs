//! Makes mutants that are wrong below the codecs, and reads each in every way. Prints the
//! findings; exit status 1 if there are some.
//!
//! ```text
//! cargo run --bin structure -- --count 200000 [--series 1] [--from 0] [--seeds FOLDER]
//!     [--keep FOLDER] [--skip PATH,…]
//! cargo run --bin structure -- --file PATH [--series 1] [--from 0] [--count 1]
//! ```
//!
//! Mutants follow from the seeds, the series and their index alone: `--from INDEX --count 1 --keep
//! FOLDER` makes one again. Without `--seeds` all seeds are files that the library writes. With
//! `--file` no mutant is made: that file is read, as often as `--count` says, with the numbers that
//! the mutants from `--from` on are read with. The work is done by processes of this program, of 1
//! MiB of stack, so that an abort or a hang is a finding too.

use std::path::PathBuf;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
// The allocator that counts.
use marquetry_fuzz as _;
use marquetry_testkit::heap;
use marquetry_testkit::mutants::paths::Finding;
use marquetry_testkit::mutants::{Heap, mutant, note_panics, read_every_way, rng, seeds};

/// Mutants that one process reads.
const PART: u64 = 1000;
/// How long it may take, by far.
const MAX_TIME: Duration = Duration::from_secs(1800);

struct Options {
    series: u64,
    from: u64,
    count: u64,
    seeds: Option<PathBuf>,
    keep: Option<PathBuf>,
    skip: String,
    file: Option<PathBuf>,
    child: bool,
}

fn options() -> Result<Options, String> {
    let (series, from, count) = (1, 0, 1000);
    let mut options = Options {
        series,
        from,
        count,
        seeds: None,
        keep: None,
        skip: String::new(),
        file: None,
        child: false,
    };
    let mut args = std::env::args().skip(1);
    while let Some(flag) = args.next() {
        if flag == "--child" {
            options.child = true;
            continue;
        }
        let value = args.next().ok_or(format!("{flag} needs a value"))?;
        let number = || value.parse().map_err(|_| format!("{flag}: {value} is no number"));
        match flag.as_str() {
            "--series" => options.series = number()?,
            "--from" => options.from = number()?,
            "--count" => options.count = number()?,
            "--seeds" => options.seeds = Some(value.into()),
            "--keep" => options.keep = Some(value.into()),
            "--skip" => options.skip = value,
            "--file" => options.file = Some(value.into()),
            _ => return Err(format!("unknown flag {flag}")),
        }
    }
    Ok(options)
}

fn main() -> ExitCode {
    let options = match options() {
        Ok(options) => options,
        Err(message) => {
            eprintln!("{message}");
            return ExitCode::from(2);
        }
    };
    let findings = if options.child { work(options) } else { parts(&options) };
    ExitCode::from(u8::from(findings > 0))
}

/// Has the mutants read, a part after the other; how many parts had findings.
fn parts(options: &Options) -> u64 {
    let mut findings = 0;
    let mut done = 0;
    while done < options.count {
        let part = PART.min(options.count - done);
        let from = options.from + done;
        findings += u64::from(!part_ends_well(from, part));
        done += part;
    }
    println!("{done} mutants of series {}, findings in {findings} parts", options.series);
    findings
}

fn part_ends_well(from: u64, count: u64) -> bool {
    let this = std::env::current_exe().expect("this program");
    let mut command = Command::new(this);
    // The last option wins.
    command.args(std::env::args().skip(1));
    command.args(["--from", &from.to_string(), "--count", &count.to_string(), "--child"]);
    let mut child = command.stdin(Stdio::null()).spawn().expect("a process");
    let start = Instant::now();
    loop {
        match child.try_wait().expect("a child") {
            Some(status) if status.code().is_some_and(|code| code < 2) => return status.success(),
            Some(status) => {
                println!(
                    "FINDING the process ends with {status}: mutants {from} to {}",
                    from + count
                );
                return false;
            }
            None if start.elapsed() > MAX_TIME => {
                child.kill().expect("a child");
                child.wait().expect("a child");
                println!("FINDING no end: mutants {from} to {}", from + count);
                return false;
            }
            None => std::thread::sleep(Duration::from_millis(20)),
        }
    }
}

/// Reads the mutants; how many findings there are.
fn work(options: Options) -> u64 {
    let thread = std::thread::Builder::new().stack_size(1 << 20);
    let file = options.file.as_ref().map(|path| Bytes::from(std::fs::read(path).expect("a file")));
    let mut all = if file.is_some() { Vec::new() } else { seeds::generated(60) };
    if let Some(folder) = &options.seeds {
        all.extend(seeds::folder(folder).expect("a folder"));
    }
    note_panics();
    let read = move || {
        let counted = Heap { start: heap::start, peak: heap::peak };
        let skip: Vec<&str> = options.skip.split(',').collect();
        let (series, mut findings) = (options.series, 0);
        for index in options.from..options.from + options.count {
            let (file, name) = match &file {
                Some(file) => (file.clone(), "the file".to_owned()),
                None => {
                    let mutant = mutant(&all, series, index);
                    let name = format!("{}; {}", all[mutant.seed].name, mutant.done.join(", "));
                    (mutant.file, name)
                }
            };
            let mut numbers = rng(!series, index);
            let found = read_every_way(&file, &mut numbers, Some(counted), &skip);
            for finding in &found {
                let Finding { path, what } = finding;
                println!("FINDING mutant {index} of series {series} ({name}): {path} {what}");
            }
            findings += found.len() as u64;
            if let Some(folder) = &options.keep
                && (!found.is_empty() || options.count == 1)
            {
                let path = folder.join(format!("{series}_{index}.parquet"));
                std::fs::write(path, &file).expect("a file");
            }
        }
        findings
    };
    thread.spawn(read).expect("a thread").join().expect("panics are caught")
}
