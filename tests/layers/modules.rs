//! Finds the modules of the crate: their order in the lists of their folders, and which use which.

use std::collections::HashMap;
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use super::source::{matching, without_comments, without_tests};

/// A module: its path from the root of the crate.
pub(crate) type Module = Vec<String>;

/// A source file.
pub(crate) struct Source {
    /// As it is named from the root of the package.
    pub(crate) file: String,
    pub(crate) module: Module,
    /// Without its tests.
    pub(crate) code: String,
    pub(crate) code_and_tests: String,
}

/// The modules of a file in their order, and the names that others may have through it.
#[derive(Default)]
pub(crate) struct Members {
    pub(crate) order: Vec<String>,
    /// Names of files that are not those of their modules, and the modules.
    renamed: Vec<(String, String)>,
    /// Names that the file imports, and their paths from the root.
    imported: Vec<(String, Module)>,
}

pub(crate) struct Crate {
    pub(crate) sources: Vec<Source>,
    /// Files that tests alone have.
    pub(crate) tests: Vec<Source>,
    pub(crate) members: HashMap<Module, Members>,
}

/// Names of modules that tests alone have.
const TESTS: [&str; 4] = ["tests", "samples", "oracle", "steps"];

impl Crate {
    pub(crate) fn library() -> &'static Self {
        static LIBRARY: LazyLock<Crate> = LazyLock::new(|| Crate::read("src"));
        &LIBRARY
    }

    /// The crate whose sources are below this folder.
    pub(crate) fn read(sources_below: &str) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let folder = root.join(sources_below);
        let mut files = Vec::new();
        files_below(&folder, &mut files);
        // A file that only starts a library is no module of it.
        files.retain(|path| *path != folder.join("main.rs"));
        files.sort();
        let mut sources = Vec::new();
        for path in files {
            let name = |root: &Path| {
                let inside = path.strip_prefix(root).expect("below the root");
                inside.to_string_lossy().replace('\\', "/")
            };
            let (file, inside) = (name(root), name(&folder));
            let mut module: Module =
                inside.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
            if module.last().is_some_and(|name| name == "mod" || name == "lib") {
                module.pop();
            }
            let code_and_tests =
                without_comments(&fs::read_to_string(&path).expect("a source file"));
            let code = without_tests(&code_and_tests);
            sources.push(Source { file, module, code, code_and_tests });
        }
        let is_test = |name: &String| TESTS.contains(&name.as_str());
        let of_tests = |source: &mut Source| source.module.iter().any(is_test);
        let tests = sources.extract_if(.., of_tests).collect();
        let members: HashMap<Module, Members> =
            sources.iter().map(|source| (source.module.clone(), members(source))).collect();
        let mut listed = members.values().flat_map(|members| &members.order);
        assert!(!listed.any(is_test), "{TESTS:?} are names of modules that tests alone have");
        for source in &mut sources {
            if let [folder @ .., name] = &mut source.module[..] {
                let renamed = members.get(folder).map_or(&[][..], |members| &members.renamed);
                if let Some((_, module)) = renamed.iter().find(|(file, _)| file == name) {
                    name.clone_from(module);
                }
            }
        }
        Self { sources, tests, members }
    }

    /// Whether the module of `source` is in the list of its folder.
    pub(crate) fn lists(&self, source: &Source) -> bool {
        let [folder @ .., name] = &source.module[..] else { return true };
        self.members.get(folder).is_some_and(|members| members.order.contains(name))
    }

    /// The modules that a file names by paths from the root or from modules above it.
    pub(crate) fn named(&self, source: &Source) -> Vec<Module> {
        uses(source).into_iter().map(|path| self.resolve(&path)).collect()
    }

    /// The module that a path from the root leads to, through what others import.
    fn resolve(&self, path: &[String]) -> Module {
        let (mut found, mut rest) = (Module::new(), path.to_vec());
        // An import may be of an import; two of one name may be of each other.
        for _ in 0..64 {
            let (Some(next), Some(known)) = (rest.first(), self.members.get(&found)) else { break };
            if known.order.contains(next) {
                found.push(rest.remove(0));
            } else if let Some((_, origin)) = known.imported.iter().find(|(name, _)| name == next) {
                rest = [origin, &rest[1..]].concat();
                found.clear();
            } else {
                break;
            }
        }
        found
    }
}

fn files_below(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files_below(&path, out);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            out.push(path);
        }
    }
}

/// The paths from the root that a file names by `crate::` and `super::`.
pub(crate) fn uses(source: &Source) -> Vec<Vec<String>> {
    let Source { module, code, .. } = source;
    let inline = inline_modules(code);
    let mut out = Vec::new();
    let starts = code.match_indices("crate::").chain(code.match_indices("super::"));
    for (at, start) in starts {
        // In the middle of a path this is no beginning, and a visibility is no use.
        let before = &code[..at];
        if before.ends_with("::")
            || before.ends_with("(in ")
            || before.ends_with(char::is_alphanumeric)
        {
            continue;
        }
        let mut from = Module::new();
        let mut tree = &code[at..];
        if start == "crate::" {
            tree = &tree[start.len()..];
        } else {
            let around = inline.iter().filter(|(_, range)| range.contains(&at));
            from = module.iter().cloned().chain(around.map(|(name, _)| name.clone())).collect();
            while let Some(rest) = tree.strip_prefix(start) {
                from.pop();
                tree = rest;
            }
        }
        let tree = paths(&format!("_::{tree}"));
        out.extend(tree.into_iter().map(|path| [&from, &path[1..]].concat()));
    }
    out
}

/// The modules within a file, and their places.
fn inline_modules(code: &str) -> Vec<(String, Range<usize>)> {
    let starts = code.match_indices("mod ").filter_map(|(at, word)| {
        let (name, _) = code[at + word.len()..].split_once(" {")?;
        let end = at + word.len() + name.len() + 1;
        let is_name = name.chars().all(|c| c.is_alphanumeric() || c == '_');
        is_name.then(|| (name.to_owned(), at..matching(code, end)))
    });
    starts.collect()
}

/// The paths that a use tree stands for, `a::{b, c::d}` being `a::b` and `a::c::d`.
fn paths(tree: &str) -> Vec<Vec<String>> {
    let name = |c: char| c.is_alphanumeric() || c == '_';
    let end = tree.find(|c| !name(c)).unwrap_or(tree.len());
    let (head, rest) = tree.split_at(end);
    let head = head.to_owned();
    let Some(below) = rest.strip_prefix("::") else {
        return vec![vec![head]];
    };
    let mut members = vec![String::new()];
    match below.strip_prefix('{') {
        None => members[0] = below.to_owned(),
        Some(inner) => {
            let mut depth = 0;
            for c in inner.chars() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    _ => {}
                }
                if c == ',' && depth == 0 {
                    members.push(String::new());
                } else if let Some(member) = members.last_mut() {
                    member.push(c);
                }
            }
        }
    }
    let members = members.iter().map(|member| member.trim()).filter(|member| !member.is_empty());
    let below = members.flat_map(paths);
    below.map(|path| [vec![head.clone()], path].concat()).collect()
}

fn members(source: &Source) -> Members {
    let Source { module, code, .. } = source;
    let mut out = Members::default();
    for statement in code.split(';') {
        let words: Vec<&str> = statement.split_whitespace().collect();
        let [.., "mod", name] = words[..] else { continue };
        if !out.order.iter().any(|known| known == name) {
            out.order.push(name.to_owned());
        }
        // A path is in an attribute of its own, or in one of a feature.
        for path in statement.split("path = \"").skip(1) {
            let file = path.split(".rs\"").next().unwrap_or_default();
            out.renamed.push((file.to_owned(), name.to_owned()));
        }
    }
    // Imports of modules within the file are indented.
    let imports = code.lines().scan(0, |at, line| {
        let start = *at;
        *at += line.len() + 1;
        Some((start, line))
    });
    for (at, line) in imports {
        let Some((visibility, tree)) = line.split_once("use ") else { continue };
        if !(visibility.is_empty() || visibility.starts_with("pub")) {
            continue;
        }
        let tree = code[at + line.len() - tree.len()..].split(';').next().unwrap_or_default();
        for mut path in paths(tree) {
            let Some(last) = path.last().cloned() else { continue };
            let mut from = module.clone();
            while let Some("crate" | "self" | "super") = path.first().map(String::as_str) {
                match path.remove(0).as_str() {
                    "crate" => from.clear(),
                    "super" => _ = from.pop(),
                    _ => {}
                }
            }
            let origin = [from, path].concat();
            // A macro is imported where it is defined.
            if origin != [&module[..], std::slice::from_ref(&last)].concat() {
                out.imported.push((last, origin));
            }
        }
    }
    out
}
