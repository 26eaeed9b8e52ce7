//! Finds the columns that `-c` names: by names, nested paths, globs and exclusions.

use marquetry::Reader;

use crate::failure::{Failure, Result};

/// The leaves that names, nested paths, globs and exclusions select; by default all.
pub(crate) fn leaves(reader: &Reader, path: &str, wanted: &[String]) -> Result<Vec<usize>> {
    let schema = reader.metadata().schema();
    let mut paths = Vec::new();
    for leaf in 0..schema.leaves_len() {
        paths.push(schema.leaf_node(leaf)?.path().dotted());
    }
    let matching = |text: &str| -> Result<Vec<usize>> {
        if !text.contains(['*', '?', '[']) || paths.iter().any(|path| path == text) {
            let found = schema.node_named(text);
            return Ok(found.map_err(|e| e.at_file(path))?.leaves().collect());
        }
        let glob = glob::Pattern::new(text).map_err(|e| Failure::Usage(format!("{text}: {e}")))?;
        let found = paths.iter().enumerate().filter(|(_, path)| glob.matches(path));
        let found: Vec<usize> = found.map(|(leaf, _)| leaf).collect();
        if found.is_empty() {
            return Err(no_column(text, &paths));
        }
        Ok(found)
    };
    let mut leaves: Vec<usize> = Vec::new();
    if wanted.iter().all(|name| name.starts_with('!')) {
        leaves.extend(0..paths.len());
    }
    for name in wanted {
        match name.strip_prefix('!') {
            Some(out) => {
                let out = matching(out)?;
                leaves.retain(|leaf| !out.contains(leaf));
            }
            None => {
                let found = matching(name)?;
                leaves.extend(
                    found.into_iter().filter(|leaf| !leaves.contains(leaf)).collect::<Vec<_>>(),
                );
            }
        }
    }
    if leaves.is_empty() && !wanted.is_empty() {
        return Err(Failure::Usage("no column is left".to_owned()));
    }
    Ok(leaves)
}

/// The columns that names, globs and exclusions mean, in the order of the file where globs leave it
/// open.
pub(crate) fn columns(all: &[String], wanted: &[String]) -> Result<Vec<String>> {
    let pattern =
        |text: &str| glob::Pattern::new(text).map_err(|e| Failure::Usage(format!("{text}: {e}")));
    let mut names: Vec<String> = Vec::new();
    if wanted.iter().all(|name| name.starts_with('!')) {
        names = all.to_vec();
    }
    for name in wanted {
        if let Some(out) = name.strip_prefix('!') {
            let pattern = pattern(out)?;
            if !all.iter().any(|name| pattern.matches(name) || name == out) {
                return Err(no_column(&format!("!{out}"), all));
            }
            names.retain(|name| !pattern.matches(name) && name != out);
        } else if name.contains(['*', '?', '[']) && !all.contains(name) {
            let glob = pattern(name)?;
            let found: Vec<String> =
                all.iter().filter(|name| glob.matches(name)).cloned().collect();
            if found.is_empty() {
                return Err(no_column(name, all));
            }
            names.extend(found);
        } else {
            names.push(name.clone());
        }
    }
    if names.is_empty() {
        return Err(Failure::Usage("no column is left to read".to_owned()));
    }
    Ok(names)
}

fn no_column(pattern: &str, all: &[String]) -> Failure {
    let shown: Vec<&str> = all.iter().take(20).map(String::as_str).collect();
    let more = if shown.len() < all.len() { ", …" } else { "" };
    let names = shown.join(", ");
    Failure::Usage(format!("no column matches {pattern}; the columns are {names}{more}"))
}
