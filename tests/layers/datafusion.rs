//! What the DataFusion part uses of the crate that no user has.
//!
//! It is to become a crate of its own, which has the public interface alone: these lists may only
//! shrink.

use std::collections::BTreeSet;

use super::modules::{Crate, Source, uses};

/// Paths that `src/datafusion` names and that are not in `docs/public-api.txt`.
const PATHS: [&str; 10] = [
    "bytes::saturated",
    "io::is_replaced",
    "io::replaced",
    "limits::Budget",
    "predicate::nested_bits",
    "read::FilterCounters",
    "read::LoadedIndexes",
    "schema::HintUse",
    "schema::TextColumns",
    "write::batch_bytes",
];

/// Functions outside `src/datafusion` that are compiled for it alone.
const FUNCTIONS: [&str; 40] = [
    "io::stream::driver::fetch",
    "io::stream::driver::fetch_small",
    "io::stream::driver::hold_back",
    "io::stream::driver::is_fetched",
    "io::stream::driver::keep_fetched",
    "io::stream::driver::let_go",
    "io::stream::driver::share_memory",
    "io::stream::driver::take_over",
    "io::stream::part_sizes::allow",
    "io::stream::source::keep",
    "io::stream::source::take_kept",
    "io::stream::store::allow_part_bytes",
    "io::stream::store::bytes_held",
    "io::stream::store::drain",
    "io::stream::store::wanted_part_bytes",
    "predicate::expression::last_function",
    "predicate::nested_bits::repeated",
    "read::counters::take",
    "read::loaded_indexes::beside",
    "read::loaded_indexes::is_empty",
    "read::loaded_indexes::new",
    "read::metadata::with_indexes",
    "read::prune::skips_page_indexes",
    "reader::stream::end",
    "reader::stream::fetch",
    "reader::stream::fetch_small",
    "reader::stream::hold_back",
    "reader::stream::is_fetched",
    "reader::stream::keep_fetched",
    "reader::stream::lacks_memory",
    "reader::stream::let_go",
    "reader::stream::open_async_at",
    "reader::stream::open_async_guessing",
    "reader::stream::share_memory",
    "reader::stream::take_over",
    "writer::file::bytes_held",
    "writer::upload::allow_part_bytes",
    "writer::upload::bytes_held",
    "writer::upload::drain",
    "writer::upload::wanted_part_bytes",
];

fn is_part(source: &Source) -> bool {
    source.module.first().is_some_and(|module| module == "datafusion")
}

/// Fails for what is found and not listed, and for what is listed and not found.
fn assert_listed(found: &BTreeSet<String>, listed: &[&str]) {
    assert!(listed.is_sorted(), "the list is sorted");
    let listed: BTreeSet<String> = listed.iter().map(|&name| name.to_owned()).collect();
    let new: Vec<_> = found.difference(&listed).collect();
    assert!(new.is_empty(), "not public, so that a crate of its own could not use it: {new:#?}");
    let gone: Vec<_> = listed.difference(found).collect();
    assert!(gone.is_empty(), "not used any more: take it from the list: {gone:#?}");
}

#[test]
fn datafusion_uses_the_public_interface_and_the_paths_listed_here() {
    let public = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/public-api.txt");
    let public = std::fs::read_to_string(public).expect("the list of the public surface");
    let is_public = |path: &str| {
        let path = format!("marquetry::{path}");
        public.match_indices(&path).any(|(at, _)| {
            let rest = &public[at + path.len()..];
            !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
        })
    };
    let library = Crate::library();
    let part: Vec<&Source> = library.sources.iter().filter(|source| is_part(source)).collect();
    let macros: BTreeSet<&str> = (part.iter())
        .flat_map(|source| source.code.split("macro_rules! ").skip(1))
        .filter_map(|rest| rest.split_whitespace().next())
        .collect();
    let used: BTreeSet<String> = (part.iter().flat_map(|source| uses(source)))
        .filter(|path| path.first().is_none_or(|first| first != "datafusion"))
        .filter(|path| !path.iter().any(|name| macros.contains(name.as_str())))
        .map(|path| path.join("::"))
        .collect();
    assert!(used.len() > 20, "the test would find nothing: {} paths seen", used.len());
    assert_listed(&used.into_iter().filter(|path| !is_public(path)).collect(), &PATHS);
}

#[test]
fn functions_for_datafusion_alone_are_listed_here() {
    let library = Crate::library();
    let mut found = BTreeSet::new();
    for source in library.sources.iter().filter(|source| !is_part(source)) {
        for (at, gate) in source.code.match_indices("#[cfg(") {
            let rest = &source.code[at + gate.len()..];
            let Some((condition, item)) = rest.split_once(")]") else { continue };
            let item = item.split(['{', ';', ',']).next().unwrap_or_default();
            if !condition.contains("feature = \"datafusion\"") || condition.contains("not(") {
                continue;
            }
            let name = item.split_once("fn ").map(|(_, rest)| rest.split(['(', '<']).next());
            if let Some(name) = name.flatten() {
                found.insert([source.module.join("::").as_str(), name].join("::"));
            }
        }
    }
    assert_listed(&found, &FUNCTIONS);
}
