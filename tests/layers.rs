//! The layers of the architecture, held against the `use` lines: each module uses those of its own
//! layer and below, never above.

#[path = "layers/modules.rs"]
mod modules;
#[path = "layers/source.rs"]
mod source;

use modules::{Crate, Module, Source};

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

/// The modules of the root that a file names after `crate::`.
fn used(source: &Source) -> Vec<(usize, String)> {
    let mut out = Vec::new();
    for (i, line) in source::lines(&source.code) {
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
    let mut broken = Vec::new();
    let mut checked = 0;
    for source in &Crate::read().sources {
        let Some(module) = source.module.first() else { continue };
        let file = &source.file;
        for (line, uses) in used(source) {
            checked += 1;
            let excepted = EXCEPTIONS.iter().any(|(from, to, _)| from == module && *to == uses);
            if layer(&uses) > layer(module) && !excepted {
                broken.push(format!("{file}:{line}: {module} uses {uses}, which lies above it"));
            }
        }
        if ["simd", "encoding", "compress"].contains(&module.as_str()) {
            for (line, code) in source::lines(&source.code) {
                // Not `narrow_`.
                let names_arrow = code
                    .match_indices("arrow_")
                    .any(|(at, _)| !code[..at].ends_with(char::is_alphanumeric));
                if names_arrow {
                    broken.push(format!("{file}:{line}: {module} knows no Arrow"));
                }
            }
        }
        if module == "encoding" || module == "compress" {
            let other = if module == "encoding" { "compress" } else { "encoding" };
            for (line, uses) in used(source) {
                if uses == other {
                    broken.push(format!("{file}:{line}: codecs do not use one another"));
                }
            }
        }
    }
    assert!(checked > 100, "the test would find nothing: {checked} uses seen");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn unsafe_stands_in_simd_and_trusted_alone() {
    let mut found = Vec::new();
    for Source { file, code, .. } in &Crate::read().sources {
        if file.starts_with("src/simd/") || file.starts_with("src/trusted/") {
            continue;
        }
        for (line, code) in source::lines(code) {
            let is_unsafe = |kind: &&str| code.contains(&format!("unsafe {kind}"));
            if ["{", "fn", "impl"].iter().any(|kind| is_unsafe(kind)) {
                found.push(format!("{file}:{line}"));
            }
        }
    }
    assert!(found.is_empty(), "unsafe outside its home: {}", found.join(", "));
}

/// Of every folder: each file uses only what stands above it in the `mod` lines of its folder's
/// `mod.rs` (or of the file that bears the folder's name), which itself comes last. So there are no
/// circles.
#[test]
fn files_of_a_folder_use_only_what_stands_above_them_in_its_list() {
    let library = Crate::read();
    let (mut broken, mut checked) = (Vec::new(), 0);
    for source in &library.sources {
        let module = &source.module;
        if !library.lists(source) {
            broken.push(format!("{} stands in no list", source.file));
        }
        for used in library.named(source) {
            if used.first() != module.first() || used == *module {
                continue;
            }
            checked += 1;
            let common = module.iter().zip(&used).take_while(|(a, b)| a == b).count();
            let order = &library.members[&module[..common]].order;
            let place =
                |of: &Module| of.get(common).and_then(|name| order.iter().position(|m| m == name));
            // The file of the folder itself comes after all that is in it.
            let allowed = match (place(module), place(&used)) {
                (None, _) => true,
                (Some(_), None) => false,
                (Some(own), Some(other)) => other < own,
            };
            if !allowed {
                broken.push(format!("{} uses {}", source.file, used.join("::")));
            }
        }
    }
    broken.sort();
    broken.dedup();
    assert!(checked > 1000, "the test would find nothing: {checked} uses seen");
    assert!(broken.is_empty(), "used from below in the list of a folder:\n{}", broken.join("\n"));
}
