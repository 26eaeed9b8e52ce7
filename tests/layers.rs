//! The layers of the architecture, held against the `use` lines: each module uses those of its own
//! layer and below, never above.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Modules by layer, as the crate docs draw them.
const LAYERS: [(u8, &[&str]); 11] = [
    (
        0,
        &[
            "error",
            "trace",
            "limits",
            "bytes",
            "calendar",
            "range_cache",
            "simd",
            "free_lists",
            "trusted",
        ],
    ),
    (1, &["thrift", "format"]),
    (2, &["schema"]),
    (3, &["encoding", "compress", "crypt"]),
    (4, &["levels", "stats", "variant", "geo", "file_reference"]),
    (5, &["page"]),
    (6, &["selection", "predicate"]),
    (7, &["read", "write"]),
    (8, &["io"]),
    (9, &["reader", "writer", "export", "ffi", "engine"]),
    (10, &["rewrite", "datafusion"]),
];

/// Uses that the table would forbid, each with its reason.
const EXCEPTIONS: [(&str, &str, &str); 2] = [
    ("simd", "encoding", "a span is a word of the encodings that kernels copy by"),
    ("trusted", "encoding", "builders of strings take them as the decoders give them"),
];

fn layer(module: &str) -> u8 {
    let found = LAYERS.iter().find(|(_, modules)| modules.contains(&module));
    found.unwrap_or_else(|| panic!("module {module} stands in no layer: add it to the table")).0
}

fn sources(folder: &Path, out: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, out);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            out.push(path);
        }
    }
}

/// The lines of a file with their numbers, without its tests: a module of them is its end, and one
/// item that is there for them is a line.
fn without_tests(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let is_for_tests =
        |line: &str| line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test");
    let mut lines = (1..).zip(text.lines()).peekable();
    std::iter::from_fn(move || {
        while let Some((i, line)) = lines.next() {
            if !is_for_tests(line) {
                return Some((i, line));
            }
            let (_, item) = lines.next()?;
            if item.starts_with("mod ") {
                return None;
            }
        }
        None
    })
}

/// The modules that a file names after `crate::`, tests left out: those may use anything.
fn used(text: &str) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    for (i, line) in without_tests(text) {
        if line.trim_start().starts_with("//") {
            continue;
        }
        for part in line.split("crate::").skip(1) {
            let module: String =
                part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            // Types stand at the root for users; inside, modules are named.
            if module.starts_with(|c: char| c.is_lowercase()) {
                out.push((i, module));
            }
        }
    }
    out
}

#[test]
fn every_module_uses_only_its_own_layer_and_those_below() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut broken = Vec::new();
    let mut checked = 0;
    for file in files {
        let inside =
            file.strip_prefix(&root).expect("below src").to_string_lossy().replace('\\', "/");
        if inside == "lib.rs"
            || inside.starts_with("bin/")
            || inside.ends_with("tests.rs")
            || inside.contains("/tests/")
            || inside.ends_with("oracle.rs")
        {
            continue;
        }
        let module =
            inside.split('/').next().unwrap_or_default().trim_end_matches(".rs").to_owned();
        let text = fs::read_to_string(&file).expect("a source file");
        for (line, uses) in used(&text) {
            checked += 1;
            let excepted = EXCEPTIONS.iter().any(|(from, to, _)| *from == module && *to == uses);
            if layer(&uses) > layer(&module) && !excepted {
                broken.push(format!(
                    "src/{inside}:{line}: {module} uses {uses}, which lies above it"
                ));
            }
        }
        if module == "simd" || module == "encoding" || module == "compress" {
            for (i, line) in without_tests(&text) {
                // Not `narrow_`.
                let names_arrow = line
                    .match_indices("arrow_")
                    .any(|(at, _)| !line[..at].ends_with(char::is_alphanumeric));
                if names_arrow && !line.trim_start().starts_with("//") {
                    broken.push(format!("src/{inside}:{}: {module} knows no Arrow", i));
                }
            }
        }
        if module == "encoding" || module == "compress" {
            let other = if module == "encoding" { "compress" } else { "encoding" };
            for (line, uses) in used(&text) {
                if uses == other {
                    broken.push(format!("src/{inside}:{line}: codecs do not use one another"));
                }
            }
        }
    }
    assert!(checked > 100, "the test would find nothing: {checked} uses seen");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn unsafe_stands_in_simd_and_trusted_alone() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut found = Vec::new();
    for file in files {
        let inside =
            file.strip_prefix(&root).expect("below src").to_string_lossy().replace('\\', "/");
        if inside.starts_with("simd/") || inside.starts_with("trusted/") {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source file");
        for (i, line) in text.lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if code.contains("unsafe {")
                || code.contains("unsafe fn")
                || code.contains("unsafe impl")
            {
                found.push(format!("src/{inside}:{}", i + 1));
            }
        }
    }
    assert!(found.is_empty(), "unsafe outside its home: {}", found.join(", "));
}

/// Folders whose files stand in an order of their own: each file uses only what stands above it in
/// the `mod` lines of its folder's `mod.rs` (or of the file that bears the folder's name), which
/// itself comes last.
const ORDERED: [&str; 6] = ["levels", "schema", "predicate", "read", "write", "io"];

/// A module: its path from the root of the crate.
type Module = Vec<String>;

/// The source of a module without its comments and its tests.
fn code(text: &str) -> String {
    let mut out = String::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test") {
            // One line that tests alone have, or all that is left.
            if lines.next().is_some_and(|item| item.ends_with(';')) {
                continue;
            }
            break;
        }
        out.push_str(line.split("//").next().unwrap_or_default());
        out.push('\n');
    }
    out
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

/// The modules of a file in their order, and where the names come from that it gives on.
#[derive(Default)]
struct Members {
    order: Vec<String>,
    given: Vec<(String, Vec<String>)>,
}

fn members(code: &str) -> Members {
    let mut out = Members::default();
    for statement in code.split(';') {
        let statement = statement.rsplit(['}', ']']).next().filter(|_| !statement.contains("use "));
        let words: Vec<&str> = statement.unwrap_or_default().split_whitespace().collect();
        if let [.., "mod", name] = words[..] {
            out.order.push(name.to_owned());
        }
    }
    for statement in code.split("pub use ").skip(1).chain(code.split("pub(crate) use ").skip(1)) {
        let tree = statement.split(';').next().unwrap_or_default();
        for path in paths(tree.trim_start_matches("self::")) {
            if let [.., last] = &path[..] {
                out.given.push((last.clone(), path.clone()));
            }
        }
    }
    out
}

/// The modules that a file names by paths from the root or from modules above it.
fn named(module: &Module, code: &str, members: &HashMap<Module, Members>) -> Vec<Module> {
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
        let mut from =
            if start == "crate::" { Vec::new() } else { module[..module.len() - 1].to_vec() };
        let mut tree = &code[at + start.len()..];
        while let Some(rest) = tree.strip_prefix("super::") {
            from.pop();
            tree = rest;
        }
        for path in paths(&format!("_::{tree}")) {
            let mut found = from.clone();
            let mut rest: Vec<String> = path[1..].to_vec();
            while let Some(next) = rest.first() {
                let Some(known) = members.get(&found) else { break };
                if known.order.contains(next) {
                    found.push(rest.remove(0));
                } else if let Some((_, given)) = known.given.iter().find(|(name, _)| name == next) {
                    rest = given.iter().take(given.len() - 1).cloned().collect();
                    if rest.is_empty() || !known.order.contains(&rest[0]) {
                        break;
                    }
                } else {
                    break;
                }
            }
            out.push(found);
        }
    }
    out
}

#[test]
fn files_of_a_folder_use_only_what_stands_above_them_in_its_list() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&root, &mut files);
    let mut codes: HashMap<Module, String> = HashMap::new();
    for file in &files {
        let inside = file.strip_prefix(&root).expect("below src").with_extension("");
        let mut module: Module =
            inside.components().map(|part| part.as_os_str().to_string_lossy().into()).collect();
        if module.last().is_some_and(|name| name == "mod" || name == "lib") {
            module.pop();
        }
        let is_test = module.iter().any(|name| name == "tests" || name == "samples");
        if !is_test && module.first().is_none_or(|first| first != "bin") {
            codes.insert(module, code(&fs::read_to_string(file).expect("a source file")));
        }
    }
    let members: HashMap<Module, Members> =
        codes.iter().map(|(module, code)| (module.clone(), members(code))).collect();
    let (mut broken, mut checked) = (Vec::new(), 0);
    for (module, code) in &codes {
        if module.first().is_none_or(|first| !ORDERED.contains(&first.as_str())) {
            continue;
        }
        for used in named(module, code, &members) {
            if used.first() != module.first() || used == *module {
                continue;
            }
            checked += 1;
            let common = module.iter().zip(&used).take_while(|(a, b)| a == b).count();
            let order = &members[&module[..common]].order;
            let place =
                |of: &Module| of.get(common).and_then(|name| order.iter().position(|m| m == name));
            // The file of the folder itself comes after all that is in it.
            let allowed = match (place(module), place(&used)) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(own), Some(other)) => other < own,
            };
            if !allowed {
                broken.push(format!("{} uses {}", module.join("/"), used.join("/")));
            }
        }
    }
    broken.sort();
    broken.dedup();
    assert!(checked > 100, "the test would find nothing: {checked} uses seen");
    assert!(broken.is_empty(), "used from below in the list of a folder:\n{}", broken.join("\n"));
}
