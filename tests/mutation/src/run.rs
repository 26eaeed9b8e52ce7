//! Runs the tests: once by themselves, and then on each mutant.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::Mutant;

const REACHED: &str = "mutants/reached.tsv";
const RESULTS: &str = "mutants/results.tsv";
const WORKERS: usize = 2;
/// Seconds that a test takes at most, without a mutant, to be tried on those of other modules.
const MAX_SECONDS: f64 = 8.0;
/// Of address space, for each process.
const MEMORY_KIB: usize = 8 << 20;

/// A test, and what it does without a mutant.
struct Test {
    is_unit: bool,
    name: String,
    seconds: f64,
    reaches: BTreeSet<u32>,
}

/// Tries each mutant that has no result yet, and prints all results.
pub(crate) fn run(mutants: &[Mutant]) {
    let binaries = [built(&["--lib"]), built(&["--test", "it"])];
    let tests = recorded(&binaries);
    let results = lines(RESULTS);
    let is_done = |mutant: &Mutant| results.iter().any(|row| row[0] == mutant.id.to_string());
    let waiting: Vec<&Mutant> = mutants.iter().filter(|mutant| !is_done(mutant)).collect();
    println!("{} wait", waiting.len());
    in_parallel(&waiting, RESULTS, |mutant| {
        let (stage, reason) = tried(mutant, &tests, &binaries);
        let row = format!("{}\t{stage}\t{reason}\t{}\n", mutant.id, mutant.name);
        print!("{row}");
        row
    });
    report(mutants, &tests);
}

/// Builds tests, and returns the path of their binary.
fn built(target: &[&str]) -> String {
    let arguments = ["test", "--features", "full", "--no-run", "--message-format=json"];
    let output =
        Command::new("cargo").args(arguments).args(target).stderr(Stdio::inherit()).output();
    let output = String::from_utf8(output.expect("cargo starts").stdout).expect("it is JSON");
    let messages = output.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    // Others are those of the tool.
    let manifest = std::env::current_dir().expect("it was set").join("Cargo.toml");
    let messages = messages.filter(|it| it["manifest_path"].as_str() == manifest.to_str());
    let paths = messages.filter_map(|message| message["executable"].as_str().map(str::to_owned));
    let paths: Vec<String> = paths.collect();
    paths.into_iter().next_back().expect("the tests compile")
}

fn names(binary: &str, arguments: &[&str]) -> BTreeSet<String> {
    let output =
        Command::new(binary).args(["--list", "--format", "terse"]).args(arguments).output();
    let output = String::from_utf8(output.expect("the tests start").stdout).expect("it is text");
    output.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_owned).collect()
}

/// Runs each test that is not known yet by itself.
fn recorded(binaries: &[String; 2]) -> Vec<Test> {
    let known: BTreeSet<String> =
        lines(REACHED).into_iter().map(|row| row[0].clone() + &row[1]).collect();
    let mut waiting = Vec::new();
    let mut all = BTreeSet::new();
    for (stage, binary) in ["unit", "it"].into_iter().zip(binaries) {
        for name in &names(binary, &[]) - &names(binary, &["--ignored"]) {
            all.insert(format!("{stage}{name}"));
            waiting.push((stage, binary, name));
        }
    }
    waiting.retain(|(stage, _, name)| !known.contains(&format!("{stage}{name}")));
    println!("{} tests are recorded", waiting.len());
    in_parallel(&waiting, REACHED, |(stage, binary, name)| {
        let file = format!("mutants/{stage}-{}", name.replace("::", "-"));
        let began = Instant::now();
        let outcome = tested(binary, [name.as_str()], ("MUTANTS_REACHED", &file), 600.0);
        let outcome = outcome.unwrap_or_else(|| "ok".to_owned());
        let seconds = began.elapsed().as_secs_f64();
        let reached = fs::read_to_string(&file).unwrap_or_default();
        _ = fs::remove_file(&file);
        let reached: BTreeSet<&str> = reached.lines().collect();
        let reached: Vec<&str> = reached.into_iter().collect();
        format!("{stage}\t{name}\t{seconds:.3}\t{outcome}\t{}\n", reached.join(" "))
    });
    let mut tests = Vec::new();
    for row in lines(REACHED).into_iter().filter(|row| all.contains(&(row[0].clone() + &row[1]))) {
        if row[3] != "ok" {
            println!("fails without a mutant: {} {}", row[1], row[3]);
            continue;
        }
        tests.push(Test {
            is_unit: row[0] == "unit",
            name: row[1].clone(),
            seconds: row[2].parse().expect("it was written so"),
            reaches: row[4].split_whitespace().map(|id| id.parse().expect("an id")).collect(),
        });
    }
    tests
}

/// The stage that finds the mutant, and how.
fn tried(mutant: &Mutant, tests: &[Test], binaries: &[String; 2]) -> (&'static str, String) {
    let module = mutant.module.replace('/', "::") + "::";
    let mut reached = false;
    for stage in ["module", "lib", "it"] {
        let mut of_stage: Vec<&Test> = tests
            .iter()
            .filter(|test| {
                let is_of_module = test.is_unit && test.name.starts_with(&module);
                let is_of_stage = match stage {
                    "module" => is_of_module,
                    "lib" => test.is_unit && !is_of_module,
                    _ => !test.is_unit,
                };
                let is_quick = is_of_module || test.seconds <= MAX_SECONDS;
                is_of_stage && is_quick && test.reaches.contains(&mutant.id)
            })
            .collect();
        if of_stage.is_empty() {
            continue;
        }
        reached = true;
        of_stage.sort_by(|one, other| one.seconds.total_cmp(&other.seconds));
        // A few quick tests find most.
        let (quick, slow) = of_stage.split_at(of_stage.len().min(20));
        for some in [quick, slow].into_iter().filter(|some| !some.is_empty()) {
            let seconds: f64 = some.iter().map(|test| test.seconds).sum();
            let names = some.iter().map(|test| test.name.as_str());
            let binary = &binaries[usize::from(stage == "it")];
            let limit = (5.0 * seconds).max(20.0);
            let active = ("MUTANT", mutant.id.to_string());
            if let Some(reason) = tested(binary, names, (active.0, &active.1), limit) {
                return (stage, reason);
            }
        }
    }
    (if reached { "survives" } else { "unreached" }, "-".to_owned())
}

/// Runs tests until one fails, and says which, or what else happened. `None` if all pass.
fn tested<'a>(
    binary: &str,
    names: impl IntoIterator<Item = &'a str>,
    variable: (&str, &str),
    limit_seconds: f64,
) -> Option<String> {
    let script = format!("ulimit -c 0; ulimit -v {MEMORY_KIB}; exec \"$@\"");
    let mut child = Command::new("sh")
        .args(["-c", &script, "sh", binary, "--exact", "--test-threads", "1"])
        .args(names)
        .env(variable.0, variable.1)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the tests start");
    let output = BufReader::new(child.stdout.take().expect("it is piped"));
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in output.split(b'\n').map_while(Result::ok) {
            _ = sender.send(String::from_utf8_lossy(&line).into_owned());
        }
    });
    let end = Instant::now() + Duration::from_secs_f64(limit_seconds);
    let found = loop {
        match lines.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(line) => {
                if let Some(test) = line.strip_suffix(" ... FAILED") {
                    break Some(test.trim_start_matches("test ").to_owned());
                }
            }
            Err(RecvTimeoutError::Timeout) => break Some("takes too long".to_owned()),
            Err(RecvTimeoutError::Disconnected) => break None,
        }
    };
    if found.is_some() {
        _ = child.kill();
    }
    let status = child.wait().expect("it was started");
    found.or_else(|| (!status.success()).then(|| format!("ends with {status}")))
}

/// Does `work` for each item, and appends the rows that it returns to a file.
fn in_parallel<T: Sync>(items: &[T], path: &str, work: impl Fn(&T) -> String + Sync) {
    let file = OpenOptions::new().create(true).append(true).open(path);
    let file = Mutex::new(file.expect("the copy can be written"));
    let next = Mutex::new(items.iter());
    thread::scope(|scope| {
        for _ in 0..WORKERS {
            scope.spawn(|| {
                loop {
                    let Some(item) = next.lock().expect("no worker panics").next() else { break };
                    let row = work(item);
                    let mut file = file.lock().expect("no worker panics");
                    file.write_all(row.as_bytes()).expect("the copy can be written");
                }
            });
        }
    });
}

/// The rows of a file, without the last one if it was cut.
fn lines(path: &str) -> Vec<Vec<String>> {
    let file = fs::read(path).unwrap_or_default();
    let rows = file.as_slice().lines().map_while(Result::ok);
    rows.map(|row| row.split('\t').map(str::to_owned).collect()).collect()
}

/// Prints the survivors, and the counts of each module.
fn report(mutants: &[Mutant], tests: &[Test]) {
    let results: BTreeMap<u32, Vec<String>> =
        lines(RESULTS).into_iter().map(|row| (row[0].parse().expect("an id"), row)).collect();
    let mut counts: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    println!("\n{} unit tests and integration tests", tests.len());
    for mutant in mutants {
        let row = &results[&mutant.id];
        if ["survives", "unreached"].contains(&row[1].as_str()) {
            println!("{}", row.join(" "));
        }
        for module in [mutant.module, "all"] {
            *counts.entry(module).or_default().entry(row[1].as_str()).or_default() += 1;
        }
    }
    println!(
        "\n| module | viable | killed by module | by lib | by it | survive | unreached | score |"
    );
    for (module, counts) in counts {
        let count = |stage| counts.get(stage).copied().unwrap_or(0);
        let viable: usize = counts.values().sum();
        let stages = ["module", "lib", "it", "survives", "unreached"].map(count);
        let killed: usize = stages[..3].iter().sum();
        let columns = stages.map(|it| it.to_string()).join(" | ");
        let score = 100.0 * killed as f64 / viable as f64;
        println!("| {module} | {viable} | {columns} | {score:.1} % |");
    }
}
