//! Refuses each allocation that a file or a batch sizes, one after the other.

mod jobs;
mod sites;

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, Stdio};

use self::jobs::{File, JOBS, Job, Outcome};
use crate::support::heap::{Refusal, refusing};

const MIN_BYTES: usize = 4 << 10;

fn var<T: std::str::FromStr>(name: &str) -> Option<T> {
    std::env::var(name).ok().and_then(|n| n.parse().ok())
}

fn min_bytes() -> usize {
    var("MARQUETRY_MIN_BYTES").unwrap_or(MIN_BYTES)
}

fn refuse(refused: usize, all_after: bool, seen: fn(usize, usize)) -> Refusal {
    Refusal { min_bytes: min_bytes(), refused, all_after, seen }
}

/// The call site of each allocation.
fn survey(file: &File, job: &Job) -> (Outcome, Vec<String>) {
    // What is made once.
    _ = job.1(file);
    sites::clear();
    let (done, _) = refusing(refuse(usize::MAX, false, sites::note), || job.1(file));
    (done.unwrap_or_else(|e| panic!("{} {}: {e}", file.name, job.0)), sites::take())
}

#[test]
fn child() {
    let Some(task) = var::<String>("MARQUETRY_REFUSE_TASK") else { return };
    let parts: Vec<&str> = task.split('|').collect();
    in_one_thread(|| one_child(&parts));
}

fn in_one_thread(work: impl FnOnce() + Send) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    pool.install(work);
}

fn one_child(parts: &[&str]) {
    let files = jobs::files(1, Some(parts[0]));
    let file = &files[0];
    let job = JOBS.iter().find(|job| job.0 == parts[1]).unwrap();
    let all_after = parts[2] == "after";
    let expected = job.1(file).unwrap();
    let indexes: Vec<usize> = parts[3].split(',').map(|n| n.parse().unwrap()).collect();
    std::panic::set_hook(Box::new(|_| {}));
    for index in indexes {
        println!("@{index} ");
        let r = refuse(index, all_after, |_, _| {});
        let (done, n) = refusing(r, || catch_unwind(AssertUnwindSafe(|| job.1(file))));
        let text = match done {
            Err(panic) => format!("PANIC {}", panic_text(&*panic)),
            Ok(Ok(outcome)) if n <= index => {
                assert!(outcome.says_the_same_as(&expected, file));
                "unreached".into()
            }
            Ok(Ok(outcome)) => {
                if outcome.says_the_same_as(&expected, file) {
                    "same".into()
                } else {
                    "DIFFERS".into()
                }
            }
            Ok(Err(error)) => format!("error {:?}: {error}", error.kind()),
        };
        println!("={index} {text}");
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("?")
}

#[test]
fn measure() {
    let Some(filter) = var::<String>("MARQUETRY_REFUSE") else { return };
    in_one_thread(|| measure_all(&filter));
}

fn measure_all(filter: &str) {
    let (mut total, mut aborts) = (0, 0);
    let mut by_site: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut texts: BTreeMap<String, usize> = BTreeMap::new();
    for file in jobs::files(1, None) {
        for job in JOBS {
            let title = format!("{}: {}", file.name, job.0);
            if !title.contains(filter) || !file.has(job.0) {
                continue;
            }
            let (_, sites) = survey(&file, job);
            for mode in ["alone", "after"] {
                let mut bad: BTreeSet<&str> = BTreeSet::new();
                let mut left: Vec<usize> = (0..sites.len()).collect();
                let (mut died, mut skipped) = (0, 0);
                while !left.is_empty() {
                    let list: Vec<String> = left.iter().map(usize::to_string).collect();
                    let task = format!("{}|{}|{mode}|{}", file.name, job.0, list.join(","));
                    let out = Command::new(std::env::current_exe().unwrap())
                        .args(["refusal::child", "--exact", "--nocapture"])
                        .env("MARQUETRY_REFUSE_TASK", task)
                        .env_remove("MARQUETRY_REFUSE")
                        .stderr(Stdio::piped())
                        .output()
                        .unwrap();
                    let text = String::from_utf8_lossy(&out.stdout).into_owned();
                    let mut begun = None;
                    for line in text.lines() {
                        if let Some(at) = line.find('@') {
                            if let Ok(n) = line[at + 1..].trim().parse::<usize>() {
                                begun = Some(n);
                            }
                        }
                        if let Some(done) = line.strip_prefix('=') {
                            let (n, what) = done.split_once(' ').unwrap();
                            let n: usize = n.parse().unwrap();
                            begun = None;
                            left.retain(|i| *i != n);
                            *texts.entry(what.chars().take(100).collect()).or_default() += 1;
                            if what.starts_with("PANIC") || what.starts_with("DIFF") {
                                println!("{title} {mode} {n} {what} at {}", sites[n]);
                            }
                        }
                    }
                    if let Some(n) = begun {
                        died += 1;
                        bad.insert(&sites[n]);
                        by_site
                            .entry(sites[n].clone())
                            .or_default()
                            .insert(format!("{title} {mode}"));
                        let before = left.len();
                        left.retain(|i| !bad.contains(sites[*i].as_str()));
                        skipped += before - left.len();
                    } else if !out.status.success() {
                        panic!("{title}: {} {}", text, String::from_utf8_lossy(&out.stderr));
                    }
                }
                println!(
                    "#### {title}, {mode}: {} allocations, {died} sites abort, {skipped} at them",
                    sites.len()
                );
                total += sites.len();
                aborts += skipped;
            }
        }
    }
    println!("{total} indexes, {aborts} at sites that abort:");
    for (site, of) in by_site {
        println!("! {site} | {}", of.into_iter().take(3).collect::<Vec<_>>().join("; "));
    }
    for (text, n) in texts {
        println!("{n:6} {text}");
    }
}
