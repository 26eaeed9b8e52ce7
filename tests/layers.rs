//! The layers of the architecture, held against the `use` lines: each module uses those of its own layer and below, never above.

use std::fs;
use std::path::{Path, PathBuf};

/// Modules by layer, as the crate docs draw them.
const LAYERS: [(u8, &[&str]); 10] = [
    (0, &["error", "limits", "bytes", "simd", "spare", "trusted"]),
    (1, &["thrift", "format"]),
    (2, &["schema"]),
    (3, &["encoding", "compress"]),
    (4, &["levels", "stats"]),
    (5, &["page"]),
    (6, &["selection", "predicate"]),
    (7, &["read", "write"]),
    (8, &["io"]),
    (9, &["reader", "writer", "export"]),
];

/// Uses that the table would forbid, each with its reason.
const EXCEPTIONS: [(&str, &str, &str); 2] = [
    ("simd", "encoding", "a span is a word of the encodings that kernels copy by"),
    ("trusted", "encoding", "the same"),
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

/// The modules that a file names behind `crate::`, tests left out: those may use anything.
fn used(text: &str) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    for (i, line) in text.lines().enumerate() {
        if line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test") {
            break;
        }
        if line.trim_start().starts_with("//") {
            continue;
        }
        for part in line.split("crate::").skip(1) {
            let module: String =
                part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            // Types stand at the root for users; inside, modules are named.
            if module.starts_with(|c: char| c.is_lowercase()) {
                out.push((i + 1, module));
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
        if module == "encoding" || module == "compress" {
            for (i, line) in
                text.lines().take_while(|line| !line.starts_with("#[cfg(test)]")).enumerate()
            {
                if line.contains("arrow_") && !line.trim_start().starts_with("//") {
                    broken.push(format!("src/{inside}:{}: codecs know no Arrow", i + 1));
                }
            }
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
        if inside.starts_with("simd/") || inside == "trusted.rs" {
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
