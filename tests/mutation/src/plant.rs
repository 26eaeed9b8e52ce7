//! Draws mutants, and writes them into the sources.

use std::collections::BTreeSet;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, iter};

use serde_json::Value;

use crate::places::places;
use crate::{MODULES, Mutant};

const DROPPED: &str = "mutants/dropped";
pub(crate) const PLANTED: &str = "mutants/planted";
const ORIGINALS: &str = "mutants/src";

/// `count` of all mutants by the order of their places, and the numbers of places and of mutants.
pub(crate) fn drawn(count: usize, seed: u64) -> (Vec<Mutant>, usize, usize) {
    let sources = if Path::new(ORIGINALS).exists() { ORIGINALS } else { "src" };
    let (mut all, mut place_count) = (Vec::new(), 0);
    for module in MODULES {
        let mut test_modules = Vec::new();
        let mut found = Vec::new();
        for path in files(&Path::new(sources).join(module)) {
            let source = fs::read_to_string(&path).expect("a source is text");
            found.push((path.clone(), places(&source, &mut test_modules)));
        }
        for (path, places) in found {
            let stem = path.with_extension("");
            if test_modules
                .iter()
                .any(|tests| stem.components().any(|part| part.as_os_str() == tests.as_str()))
            {
                continue;
            }
            let file =
                path.strip_prefix(sources).expect("it was found there").display().to_string();
            for place in places {
                place_count += 1;
                for (change, text) in place.changes {
                    let name = format!(
                        "src/{file}:{}:{} {}: {change}",
                        place.line, place.column, place.function
                    );
                    let (file, bytes) = (file.clone(), place.bytes.clone());
                    all.push(Mutant { id: 0, module, file, bytes, text, name });
                }
            }
        }
    }
    let all_count = all.len();
    let mut order: Vec<usize> = (0..all_count).collect();
    fastrand::Rng::with_seed(seed).shuffle(&mut order);
    let chosen: BTreeSet<usize> = order.into_iter().take(count).collect();
    let drawn =
        all.into_iter().enumerate().filter(|(i, _)| chosen.contains(i)).map(|(_, mutant)| mutant);
    let drawn = drawn.zip(1..).map(|(mutant, id)| Mutant { id, ..mutant }).collect();
    (drawn, place_count, all_count)
}

/// Sources below a folder, or in its file.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut entries: Vec<_> = fs::read_dir(folder)
        .expect("the module is a folder")
        .map(|entry| entry.expect("it is read").path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            found.extend(files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
    found
}

pub(crate) fn dropped() -> BTreeSet<u32> {
    let text = fs::read_to_string(DROPPED).unwrap_or_default();
    text.lines().map(|id| id.parse().expect("a line is an id")).collect()
}

/// Writes the mutants into the sources, without those that do not compile.
pub(crate) fn plant(mutants: &[Mutant]) {
    if !Path::new(ORIGINALS).exists() {
        let copied = Command::new("cp").args(["-r", "src", ORIGINALS]).status();
        assert!(copied.is_ok_and(|status| status.success()));
    }
    let mut dropped = dropped();
    loop {
        let viable: Vec<&Mutant> = mutants.iter().filter(|it| !dropped.contains(&it.id)).collect();
        let planted = write_sources(mutants, &viable);
        let errors = errors(&planted);
        if errors.is_empty() {
            break;
        }
        println!("{} do not compile", errors.len());
        dropped.extend(errors);
        let lines: String = dropped.iter().map(|id| format!("{id}\n")).collect();
        fs::write(DROPPED, lines).expect("the copy can be written");
    }
    fs::write(PLANTED, "").expect("the copy can be written");
}

/// Where a mutant stands in the source that was written.
struct Planted {
    id: u32,
    file: String,
    changed: Range<usize>,
    whole: Range<usize>,
}

/// Writes each source of `all`, with `viable`.
fn write_sources(all: &[Mutant], viable: &[&Mutant]) -> Vec<Planted> {
    let mut planted = Vec::new();
    let files: BTreeSet<&str> = all.iter().map(|mutant| mutant.file.as_str()).collect();
    for file in files {
        let source = fs::read_to_string(Path::new(ORIGINALS).join(file)).expect("it was read");
        // Mutants of one place are neighbours, and places that enclose others come first.
        let mut of_file: Vec<&Mutant> =
            viable.iter().copied().filter(|it| it.file == file).collect();
        of_file.sort_by_key(|it| (it.bytes.start, std::cmp::Reverse(it.bytes.end), it.id));
        let mut writer = Rewriter {
            source: &source,
            mutants: &of_file,
            text: String::new(),
            planted: Vec::new(),
        };
        writer.write(0..source.len());
        let path = format!("src/{file}");
        fs::write(&path, &writer.text).expect("the copy can be written");
        planted.extend(writer.planted.into_iter().map(|it| Planted { file: path.clone(), ..it }));
    }
    let lib = fs::read_to_string(Path::new(ORIGINALS).join("lib.rs")).expect("it is text");
    let lints =
        "#![allow(warnings, arithmetic_overflow, unconditional_panic, overflowing_literals)]";
    let lib = lib.replacen("\n#![", &format!("\n{lints}\n#!["), 1);
    fs::write("src/lib.rs", format!("{lib}\nmod mutant;\n")).expect("the copy can be written");
    fs::write("src/mutant.rs", include_str!("runtime.rs")).expect("the copy can be written");
    planted
}

struct Rewriter<'a> {
    source: &'a str,
    /// Those that are still to be written.
    mutants: &'a [&'a Mutant],
    text: String,
    planted: Vec<Planted>,
}

impl Rewriter<'_> {
    /// Writes these bytes of the source, with the mutants in them.
    fn write(&mut self, bytes: Range<usize>) {
        let mut at = bytes.start;
        while let Some(first) = self
            .mutants
            .first()
            .filter(|it| it.bytes.start < bytes.end && it.bytes.end <= bytes.end)
        {
            let place = first.bytes.clone();
            self.text.push_str(&self.source[at..place.start]);
            let here = self
                .mutants
                .iter()
                .take_while(|it| it.bytes == place && is_same_kind(it, first))
                .count();
            let (here, rest) = self.mutants.split_at(here);
            self.mutants = rest;
            let whole = self.text.len();
            let first_planted = self.planted.len();
            self.text.push_str(if place.is_empty() { "" } else { "(" });
            for mutant in here {
                self.text.push_str(&format!("if crate::mutant::on({}) {{", mutant.id));
                let changed = self.text.len();
                self.text.push_str(&mutant.text);
                let changed = changed..self.text.len();
                self.text.push_str(if place.is_empty() { "} " } else { "} else " });
                let (id, file) = (mutant.id, String::new());
                self.planted.push(Planted { id, file, changed, whole: 0..0 });
            }
            let own = first_planted..self.planted.len();
            if !place.is_empty() {
                self.text.push_str("{ ");
                self.write(place.clone());
                self.text.push_str(" })");
            }
            for planted in &mut self.planted[own] {
                planted.whole = whole..self.text.len();
            }
            at = place.end;
        }
        self.text.push_str(&self.source[at..bytes.end]);
    }
}

/// False of a guard and of the operator that is all of it.
fn is_same_kind(one: &Mutant, other: &Mutant) -> bool {
    one.name.contains(": guard") == other.name.contains(": guard")
}

/// The mutants that the compiler's errors are in.
fn errors(planted: &[Planted]) -> BTreeSet<u32> {
    // Not `cargo check`, for which all dependencies would be compiled once more.
    let arguments = ["test", "--lib", "--no-run", "--features", "full"];
    let output = Command::new("cargo").args(arguments).arg("--message-format=json").output();
    let output = output.expect("cargo starts");
    let text = String::from_utf8_lossy(&output.stdout);
    let messages = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let errors: Vec<Value> =
        messages.map(|it| it["message"].clone()).filter(|it| it["level"] == "error").collect();
    let mut found = BTreeSet::new();
    for error in &errors {
        let spans = error["spans"].as_array().into_iter().flatten();
        let ours: Vec<(&str, usize, usize)> = spans
            .flat_map(|span| iter::successors(Some(span), |span| span["expansion"].get("span")))
            .filter_map(|span| {
                let byte = |name: &str| span[name].as_u64().and_then(|it| usize::try_from(it).ok());
                Some((span["file_name"].as_str()?, byte("byte_start")?, byte("byte_end")?))
            })
            .collect();
        let within = |range: &Range<usize>, file: &str| {
            ours.iter()
                .any(|&(name, start, end)| name == file && range.start <= start && end <= range.end)
        };
        let mut culprits: Vec<u32> =
            planted.iter().filter(|it| within(&it.changed, &it.file)).map(|it| it.id).collect();
        if culprits.is_empty() {
            let around = planted.iter().filter(|it| within(&it.whole, &it.file));
            let innermost = around.min_by_key(|it| it.whole.len());
            culprits.extend(innermost.map(|it| it.id));
        }
        assert!(
            !culprits.is_empty() || ours.is_empty(),
            "no mutant is there: {}",
            error["rendered"]
        );
        found.extend(culprits);
    }
    assert!(
        output.status.success() || !found.is_empty(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    found
}
