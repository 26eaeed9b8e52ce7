//! What the DataFusion part uses of the crate that no user has.
//!
//! It is to become a crate of its own, which has the public interface alone: these lists may only
//! shrink.

use std::collections::BTreeSet;

use super::modules::{Crate, Source, uses};

/// Paths that `src/datafusion` names and that are not in `docs/public-api.txt`.
const PATHS: [&str; 1] = ["bytes::saturated"];

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
    assert_listed(
        &used
            .into_iter()
            .filter(|path| !is_public(path) && !path.starts_with("engine::"))
            .collect(),
        &PATHS,
    );
}
