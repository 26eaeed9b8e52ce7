//! Refuses the allocations that a file or a batch sizes, one after the other: each is an error, or
//! the job does without the memory. None ends the process.
//!
//! Small allocations are not refused: those below [`MIN_BYTES`] bytes have no size that a file
//! states, or one that its bytes have paid for. What is left is in [`OUTSIDE`], and in
//! `docs/threats.md`.
//!
//! The jobs are done in other processes, because an allocation that is not asked for fallibly ends
//! its process.

mod jobs;
mod outside;
mod sites;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::Command;

use self::jobs::{File, JOBS, Job};
use self::outside::OUTSIDE;
use self::sites::Site;
use crate::alone;
use crate::support::heap::{Refusal, refusing};

/// Bytes of the smallest allocation that is refused: a page of memory.
const MIN_BYTES: usize = 4 << 10;

/// The name of the variable that tells another process what to do.
const TASK: &str = "MARQUETRY_REFUSE";

/// Which allocations are refused.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    /// One, and all others succeed.
    One,
    /// One and all after it: there is no memory any more.
    Rest,
}

fn refusal(refused: usize, mode: Mode, seen: fn(usize, usize)) -> Refusal {
    Refusal { min_bytes: MIN_BYTES, refused, all_after: mode == Mode::Rest, seen }
}

/// Does the work on one thread, whatever pool it asks for: allocations are numbered by thread.
fn on_one_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("a thread").install(work)
}

/// The sites of the allocations of a job.
fn survey(file: &File, job: &Job) -> Vec<Site> {
    on_one_thread(|| {
        let done = |result: marquetry::Result<_>| match result {
            Ok(_) => {}
            Err(error) => panic!("{}, {}: {error}", file.name, job.0),
        };
        // What is made once is not counted.
        done((job.1)(file));
        sites::take();
        let (result, _) = refusing(refusal(usize::MAX, Mode::One, sites::note), || (job.1)(file));
        done(result);
        sites::take()
    })
}

/// The end of a job whose allocation of some number is refused.
#[derive(Debug, Clone, PartialEq)]
enum End {
    Error,
    /// It does without.
    Same,
    Wrong(String),
    Abort,
}

/// Refuses allocations of a job, each in a run of its own; those of sites that have ended a process
/// before are not tried again.
fn refuse(
    file: &str,
    job: &str,
    mode: Mode,
    numbers: Vec<usize>,
    sites: &[Site],
) -> Vec<(usize, End)> {
    let mut ends = Vec::new();
    let mut left = numbers;
    while let Some(first) = left.first().copied() {
        let numbers: Vec<String> = left.iter().map(usize::to_string).collect();
        let task = format!("{file}|{job}|{mode:?}|{}", numbers.join(","));
        let output = Command::new(std::env::current_exe().expect("a test has a path"))
            .args(["refusal::work_of_another_process", "--exact", "--nocapture"])
            .env(TASK, task)
            .output()
            .expect("a process");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let done: Vec<(usize, End)> = text.lines().filter_map(end).collect();
        left.retain(|number| done.iter().all(|(of, _)| of != number));
        ends.extend(done);
        if !left.is_empty() {
            let errors = String::from_utf8_lossy(&output.stderr);
            assert!(errors.contains("memory allocation of"), "{file}, {job}, {first}: {errors}");
            let number = left[0];
            ends.push((number, End::Abort));
            left.retain(|other| sites[*other] != sites[number]);
        }
    }
    ends
}

/// The end that a line of another process tells.
fn end(line: &str) -> Option<(usize, End)> {
    let (number, text) = line.strip_prefix("refused ")?.split_once(' ')?;
    let end = match text {
        "error" => End::Error,
        "same" => End::Same,
        other => End::Wrong(other.to_owned()),
    };
    Some((number.parse().ok()?, end))
}

/// Does nothing, unless another test has started this process.
#[test]
fn work_of_another_process() {
    let Ok(task) = std::env::var(TASK) else { return };
    let parts: Vec<&str> = task.split('|').collect();
    let [file, job, mode, numbers] = parts[..] else { panic!("{task}") };
    let file = &jobs::file(file).expect("a file of this name");
    let job = JOBS.iter().find(|of| of.0 == job).expect("a job of this name");
    let mode = if mode == "Rest" { Mode::Rest } else { Mode::One };
    println!();
    on_one_thread(|| {
        let expected = (job.1)(file).expect("without refusals");
        std::panic::set_hook(Box::new(|_| {}));
        for number in numbers.split(',') {
            let refusal = refusal(number.parse().expect("a number"), mode, |_, _| {});
            let work = || catch_unwind(AssertUnwindSafe(|| (job.1)(file)));
            let text = match refusing(refusal, work).0 {
                Err(panic) => format!("panics: {}", panic_text(&*panic)),
                Ok(Err(_)) => "error".into(),
                Ok(Ok(outcome)) if outcome.says_the_same_as(&expected, file) => "same".into(),
                Ok(Ok(_)) => "gives something else".into(),
            };
            println!("refused {number} {text}");
        }
    });
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("?")
}

fn is_outside(site: &Site) -> bool {
    !site.is_of_the_library() || OUTSIDE.iter().any(|(file, _)| *file == site.file)
}

/// Some of what [`every_refused_allocation`] does: one allocation of each site.
#[test]
fn a_refused_allocation_that_a_file_or_a_batch_sizes_is_an_error() {
    let _alone = alone();
    let mut tried = BTreeSet::new();
    let (mut errors, mut failed) = (0, Vec::new());
    for file in ["flat", "nested", "encodings", "wide"].map(jobs::file) {
        let file = file.expect("a file of this name");
        for job in JOBS.iter().filter(|job| file.has(job.0) && jobs::is_usual(job.0)) {
            let sites = survey(&file, job);
            let is_new = |number: &usize| {
                let site = &sites[*number];
                !is_outside(site) && tried.insert((job.0, site.clone()))
            };
            let numbers: Vec<usize> = (0..sites.len()).filter(is_new).collect();
            for (number, end) in refuse(file.name, job.0, Mode::One, numbers, &sites) {
                errors += usize::from(end == End::Error);
                if matches!(end, End::Abort | End::Wrong(_)) {
                    failed.push(format!("{}, {}: {:?}, {end:?}", file.name, job.0, sites[number]));
                }
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    assert!(errors > 50, "the test would find nothing: {errors} errors");
}

/// Prints what becomes of every refused allocation, and where processes end. A part of the titles
/// may be given as `MARQUETRY_JOBS`, and the number of allocations of each site as
/// `MARQUETRY_CASES`.
#[test]
#[ignore = "takes half an hour"]
fn every_refused_allocation() {
    let _alone = alone();
    let only = std::env::var("MARQUETRY_JOBS").unwrap_or_default();
    let cases = std::env::var("MARQUETRY_CASES").ok().and_then(|n| n.parse().ok());
    let cases = cases.unwrap_or(usize::MAX);
    let (mut totals, mut wrong) = ([0; 4], Vec::new());
    let mut aborts: BTreeMap<Site, Vec<String>> = BTreeMap::new();
    for file in jobs::NAMES.map(jobs::file) {
        let file = file.expect("a file of this name");
        for job in JOBS.iter().filter(|job| file.has(job.0)) {
            let title = format!("{}, {}", file.name, job.0);
            if !title.contains(&only) {
                continue;
            }
            let sites = survey(&file, job);
            for mode in [Mode::One, Mode::Rest] {
                let mut of_site: BTreeMap<&Site, usize> = BTreeMap::new();
                let is_case = |number: &usize| {
                    let seen = of_site.entry(&sites[*number]).or_default();
                    *seen += 1;
                    *seen <= cases && sites[*number].is_of_the_library()
                };
                let numbers: Vec<usize> = (0..sites.len()).filter(is_case).collect();
                let mut of_job = [0; 4];
                for (number, end) in refuse(file.name, job.0, mode, numbers, &sites) {
                    let kind = match &end {
                        End::Error => 0,
                        End::Same => 1,
                        End::Abort => 2,
                        End::Wrong(_) => 3,
                    };
                    of_job[kind] += 1;
                    let site = &sites[number];
                    match end {
                        // After a refusal the job may go on to another site.
                        End::Abort if mode == Mode::Rest && sites.iter().any(is_outside) => {}
                        End::Abort => {
                            aborts.entry(site.clone()).or_default().push(title.clone());
                        }
                        End::Wrong(text) => {
                            wrong.push(format!("{title}, {mode:?}: {site:?} {text}"))
                        }
                        _ => {}
                    }
                }
                println!(
                    "{title}, {mode:?}: {} errors, {} without, {} aborts, {} wrong of {}",
                    of_job[0],
                    of_job[1],
                    of_job[2],
                    of_job[3],
                    sites.len()
                );
                totals.iter_mut().zip(of_job).for_each(|(all, some)| *all += some);
            }
        }
    }
    println!("in all: {totals:?} errors, without, aborts, wrong");
    for (site, titles) in &aborts {
        let known = if is_outside(site) { "outside" } else { "NEW" };
        let (n, some) = (titles.len(), titles.iter().take(3).map(String::as_str));
        let some = some.collect::<Vec<_>>().join("; ");
        println!("{known} {}:{} | {n} times: {some}", site.file, site.line);
    }
    println!("{}", wrong.join("\n"));
    assert!(wrong.is_empty() && aborts.keys().all(is_outside), "see above");
}
