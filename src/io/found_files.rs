//! [`find_files`]: the files that a path stands for: itself, those in a folder, or those that match
//! a pattern.
//!
//! Of folders and patterns, regular files are taken, by their paths; names that begin with `_` or
//! `.` are left out, as Spark, Hive and pyarrow do (`_delta_log`, `.crc`).

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// The files of a path, in the order of their paths.
///
/// # Errors
/// `Usage` if a folder has no Parquet file, or nothing matches; `Io` if a folder cannot be read.
pub(crate) fn find_files(path: &Path) -> Result<Vec<PathBuf>> {
    let text = path.to_string_lossy();
    let found = if path.is_dir() {
        walk(path, None)?
    } else if !path.exists() && text.contains(WILDCARDS) {
        matching(&text)?
    } else {
        // Opening a path that does not exist reports the error.
        return Ok(vec![path.to_owned()]);
    };
    if found.is_empty() {
        let error =
            Error::usage("no Parquet file is there: names that begin with _ or . are left out");
        return Err(error.at_file(text));
    }
    Ok(found)
}

const WILDCARDS: [char; 3] = ['*', '?', '['];

fn matching(pattern: &str) -> Result<Vec<PathBuf>> {
    let names: Vec<&str> = pattern.split(['/', std::path::MAIN_SEPARATOR]).collect();
    let literal = names.iter().take_while(|name| !name.contains(WILDCARDS)).count();
    let (root, names) = names.split_at(literal);
    let names: Vec<&str> = names.iter().copied().filter(|name| !["", "."].contains(name)).collect();
    match root {
        [] => walk(Path::new("."), Some(&names)),
        [""] => walk(Path::new("/"), Some(&names)),
        root => walk(Path::new(&root.join("/")), Some(&names)),
    }
}

/// The regular files below `folder` that match `names`, or whose endings are those of Parquet
/// files. Links are followed after everything that is there without them, and no folder is entered
/// twice: they do not lead in circles, and a file has its own path.
fn walk(folder: &Path, names: Option<&[&str]>) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    let mut entered = HashSet::new();
    // Folders, and the names that are still to be matched below them.
    let mut folders = vec![(folder.to_owned(), names.map(<[&str]>::to_vec))];
    let mut links = Vec::new();
    while let Some((folder, names)) = folders.pop().or_else(|| links.pop()) {
        let Ok(real) = folder.canonicalize() else { continue };
        if !folder.is_dir() || !entered.insert((real, names.clone())) {
            continue;
        }
        let unreadable =
            |e| Error::io("the folder cannot be read", e).at_file(folder.to_string_lossy());
        for entry in folder.read_dir().map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let (path, name) = (entry.path(), entry.file_name());
            let name = name.to_string_lossy();
            let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
            let later = if is_link { &mut links } else { &mut folders };
            let Some(names) = &names else {
                if is_hidden(&name) {
                    continue;
                }
                match path.is_dir() {
                    true => later.push((path, None)),
                    false if is_parquet(&path) && path.is_file() => found.push(path),
                    false => {}
                }
                continue;
            };
            for rest in below(names, &name) {
                match rest {
                    // A folder that matches stands for the files in it.
                    [] if path.is_dir() => later.push((path.clone(), None)),
                    [] if path.is_file() => found.push(path.clone()),
                    [] => {}
                    rest => later.push((path.clone(), Some(rest.to_vec()))),
                }
            }
        }
    }
    found.sort_unstable();
    found.dedup();
    Ok(found)
}

/// The part that is still to be matched below a name; nothing if it does not match.
fn below<'a, 'b>(names: &'a [&'b str], name: &str) -> Vec<&'a [&'b str]> {
    match names {
        [] => Vec::new(),
        // Any folders, or none.
        ["**", rest @ ..] => {
            let mut found = below(rest, name);
            if !is_hidden(name) {
                found.push(names);
                // A pattern that ends with it stands for all files.
                found.extend(rest.is_empty().then_some(rest));
            }
            found
        }
        [pattern, rest @ ..] => {
            let shows = !is_hidden(name) || pattern.starts_with(['_', '.']);
            match shows && matches(pattern.as_bytes(), name.as_bytes()) {
                true => vec![rest],
                false => Vec::new(),
            }
        }
    }
}

/// Whether a name matches a pattern of `*`, `?`, `[a-z]` and `[!a-z]`: bytes, so that `?` of a
/// letter beyond ASCII takes one for each of its bytes.
fn matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut p, mut n) = (0, 0);
    // Where the last `*` ended, and how much of the name it takes.
    let mut star: Option<(usize, usize)> = None;
    loop {
        let step = match pattern.get(p) {
            None if n == name.len() => return true,
            Some(b'*') => {
                star = Some((p + 1, n));
                p += 1;
                continue;
            }
            Some(_) if n < name.len() => one(&pattern[p..], name[n]),
            _ => None,
        };
        match (step, star) {
            (Some(len), _) => (p, n) = (p + len, n + 1),
            (None, Some((after, taken))) if taken < name.len() => {
                star = Some((after, taken + 1));
                (p, n) = (after, taken + 1);
            }
            _ => return false,
        }
    }
}

/// Bytes of the first element of a pattern, if it matches a byte.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match pattern {
        [b'?', ..] => Some(1),
        [b'[', set @ ..] => {
            let (set, negated) = match set {
                [b'!', rest @ ..] => (rest, true),
                set => (set, false),
            };
            // A bracket at the begin of a set belongs to it.
            let len = 1 + set.iter().skip(1).position(|of| *of == b']')?;
            let mut members = &set[..len];
            let mut is_in = false;
            while let [first, rest @ ..] = members {
                (is_in, members) = match rest {
                    [b'-', last, rest @ ..] => (is_in || (*first..=*last).contains(&byte), rest),
                    rest => (is_in || *first == byte, rest),
                };
            }
            (is_in != negated).then_some(2 + usize::from(negated) + len)
        }
        [first, ..] if *first == byte => Some(1),
        _ => None,
    }
}

fn is_parquet(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ["parquet", "parq", "pq", "pqt"].iter().any(|known| ending.eq_ignore_ascii_case(known))
}

/// Whether a name is left out: Hive's `_year=2024` is a partition.
fn is_hidden(name: &str) -> bool {
    name.starts_with('.') || (name.starts_with('_') && !name.contains('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_patterns() {
        for (pattern, name, expected) in [
            ("*.parquet", "a.parquet", true),
            ("*.parquet", "a.csv", false),
            ("a*b*c", "a-b-b-c", true),
            ("a*b*c", "a-b-c-d", false),
            ("part-?", "part-1", true),
            ("part-?", "part-12", false),
            ("part-[0-3]", "part-2", true),
            ("part-[!0-3]", "part-2", false),
            ("part-[!0-3]", "part-4", true),
            ("[]]", "]", true),
            ("[a", "a", false),
            ("**", "anything", true),
            ("", "", true),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), name.as_bytes()), expected, "{pattern} {name}");
        }
        // A pattern of many stars takes no exponential time.
        let many = "*a".repeat(50);
        assert!(!matches(many.as_bytes(), "a".repeat(49).as_bytes()));
    }

    #[test]
    fn files_of_folders_and_patterns_are_found_and_hidden_ones_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in [
            "b.parquet",
            "a.parquet",
            "notes.txt",
            "year=2023/x.parquet",
            "year=2024/deep/y.pq",
            "_delta_log/0.parquet",
            "_temporary.parquet",
        ] {
            let path = root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, b"").unwrap();
        }
        #[cfg(unix)]
        std::os::unix::fs::symlink(root, root.join("year=2024/circle")).unwrap();
        let found = |below: &str| {
            let found = find_files(&root.join(below)).unwrap_or_default();
            let names = found.iter().filter(|path| !path.to_string_lossy().contains("circle"));
            let names = names.map(|path| path.strip_prefix(root).unwrap().to_string_lossy());
            names.map(|name| name.into_owned()).collect::<Vec<_>>()
        };
        let all = ["a.parquet", "b.parquet", "year=2023/x.parquet", "year=2024/deep/y.pq"];
        assert_eq!(found(""), all);
        assert_eq!(found("*.parquet"), ["a.parquet", "b.parquet"]);
        assert_eq!(found("*/*.parquet"), ["year=2023/x.parquet"]);
        assert_eq!(found("year=202[34]"), ["year=2023/x.parquet", "year=2024/deep/y.pq"]);
        assert_eq!(found("**/*.p*q*"), all);
        assert_eq!(found("_temporary.parquet"), ["_temporary.parquet"]);
        assert_eq!(found("_temp*"), ["_temporary.parquet"]);
        assert!(find_files(&root.join("*.csv")).is_err());
    }
}
