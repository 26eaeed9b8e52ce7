//! Tests the layers of the architecture by the paths that each file names: a module uses only
//! modules below it, a file only files above it in the list of its folder.

#[path = "layers/modules.rs"]
mod modules;
#[path = "layers/source.rs"]
mod source;

use modules::{Crate, Module, Source};

/// Modules by layer, as the crate docs draw them; those of a layer in their order, too: each uses
/// only what stands before it.
const LAYERS: [&[&str]; 11] = [
    &[
        "error",
        "memory",
        "sync",
        "trace",
        "bytes",
        "rows",
        "calendar",
        "clock",
        "span",
        "simd",
        "free_lists",
        "limits",
        "range_cache",
        "trusted",
    ],
    &["thrift", "format"],
    &["schema"],
    &["encoding", "compress", "crypt"],
    &["levels", "geo", "stats", "variant", "file_reference"],
    &["page"],
    &["selection", "predicate"],
    &["read", "write"],
    &["io"],
    &["reader", "writer", "export", "ffi", "engine"],
    &["check", "rewrite", "inspect", "readers"],
];

/// Uses that the table would forbid, each with its reason.
const EXCEPTIONS: [(&str, &str, &str); 1] =
    [("trusted", "encoding", "builders of strings take them as the decoders give them")];

/// Modules that do not use each other: codecs, and the stages of the two directions.
const APART: [(&str, &str); 2] = [("encoding", "compress"), ("read", "write")];

fn place(module: &str) -> usize {
    let found = LAYERS.iter().flat_map(|layer| *layer).position(|known| *known == module);
    found.unwrap_or_else(|| panic!("module {module} stands in no layer: add it to the table"))
}

#[test]
fn every_module_uses_only_those_below_it() {
    let library = Crate::library();
    let (mut broken, mut checked) = (Vec::new(), 0);
    for source in &library.sources {
        let Some(module) = source.module.first() else { continue };
        let file = &source.file;
        for used in library.named(source) {
            let Some(uses) = used.first().filter(|uses| *uses != module) else { continue };
            checked += 1;
            let excepted = EXCEPTIONS.iter().any(|(from, to, _)| from == module && to == uses);
            if place(uses) > place(module) && !excepted {
                broken.push(format!("{file} uses {}, which lies above it", used.join("::")));
            }
            let is_pair =
                |(a, b): &(&str, &str)| [a, b] == [module, uses] || [b, a] == [module, uses];
            if APART.iter().any(is_pair) {
                broken.push(format!("{file} uses {}: these two stand apart", used.join("::")));
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
    }
    assert!(checked > 1000, "the test would find nothing: {checked} uses seen");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn unsafe_stands_in_simd_and_trusted_alone() {
    let mut found = Vec::new();
    let library = Crate::library();
    for Source { file, code_and_tests, .. } in library.sources.iter().chain(&library.tests) {
        if file.starts_with("src/simd/") || file.starts_with("src/trusted/") {
            continue;
        }
        for (line, code) in source::lines(code_and_tests) {
            let is_unsafe = |kind: &&str| code.contains(&format!("unsafe {kind}"));
            if ["{", "fn", "impl"].iter().any(is_unsafe) {
                found.push(format!("{file}:{line}"));
            }
        }
    }
    assert!(library.tests.len() > 10, "tests are looked at, too");
    assert!(found.is_empty(), "unsafe outside its home: {}", found.join(", "));
}

/// Of every folder of the library, of the DataFusion crate and of the tool: each file uses only
/// what stands above it in the `mod` lines of its folder's `mod.rs` (or of the file that bears the
/// folder's name), which itself comes last. So there are no circles.
#[test]
fn files_of_a_folder_use_only_what_stands_above_them_in_its_list() {
    let (mut broken, mut checked) = (Vec::new(), 0);
    let datafusion = Crate::read("crates/datafusion/src");
    let tool = Crate::read("crates/cli/src");
    let crates = [Crate::library(), &datafusion, &tool];
    let all = crates.into_iter().flat_map(|home| home.sources.iter().map(move |s| (home, s)));
    for (home, source) in all {
        let module = &source.module;
        if !home.lists(source) {
            broken.push(format!("{} stands in no list", source.file));
        }
        for used in home.named(source) {
            // The table of layers says which modules of the library use which.
            let is_of_layers = used.first() != module.first() && source.file.starts_with("src/");
            if is_of_layers || used == *module {
                continue;
            }
            checked += 1;
            let common = module.iter().zip(&used).take_while(|(a, b)| a == b).count();
            let order = &home.members[&module[..common]].order;
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
