//! Finds the files that a command works on: those that are named, and those in folders or matched
//! by globs, of paths and of the URLs of stores.
//!
//! A named file is taken whatever its name is. Of folders and globs, regular files are taken, each
//! once, whatever links lead to it; names that begin with `_` or `.` are skipped, as Spark, Hive
//! and pyarrow do (`_delta_log`, `_temporary`, `.crc`).

use std::collections::{HashSet, VecDeque};
use std::path::{Component, Path, PathBuf};

use glob::{MatchOptions, Pattern};
use marquetry::Error;
use walkdir::{DirEntry, WalkDir};

use crate::failure::{Failure, Result};
use crate::{locations, urls};

/// A file, and the deepest folder that the command line names for it: keys of partitions are looked
/// for below what all files have in common of these.
pub(crate) struct Found {
    pub(crate) path: String,
    pub(crate) below: PathBuf,
}

/// The files of a command line, in its order; those of a folder or glob by their paths.
pub(crate) fn expand(arguments: &[String]) -> Result<Vec<Found>> {
    let mut files = Vec::new();
    let mut seen = HashSet::new();
    for argument in arguments {
        let path = Path::new(argument);
        let found = if urls::is_url(argument) {
            // One that is named is taken, also a second time.
            let mut is_new =
                |file: &Found| seen.insert(PathBuf::from(&file.path)) || file.path == *argument;
            files.extend(of_url(argument)?.into_iter().filter(&mut is_new));
            continue;
        } else if path.is_dir() {
            let found = walk(path, |below| Reach { is_match: is_parquet(below), ..Reach::IN })?;
            if found.is_empty() {
                let text = format!(
                    "{argument}: no .parquet file in this folder; names that begin with _ or . are \
                     passed over, unless they are given"
                );
                return Err(Failure::Usage(text));
            }
            let below = |file| (file, path.to_owned());
            found.into_iter().map(below).collect()
        } else if argument == "-" || path.exists() || !is_glob(argument) {
            if argument.contains("://") && !path.exists() {
                return Err(Failure::Usage(urls::unknown_scheme(argument)));
            }
            seen.extend(path.canonicalize());
            // Opening a path that does not exist reports the error.
            files.push(Found { path: argument.clone(), below: folder(path) });
            continue;
        } else {
            let found = matching(argument)?;
            if found.is_empty() {
                return Err(Failure::Usage(format!("no file matches {argument}")));
            }
            found
        };
        for (file, below) in found {
            if seen.insert(file.real) {
                files.push(Found { path: file.path.to_string_lossy().into_owned(), below });
            }
        }
    }
    Ok(files)
}

/// The deepest folder that all files have in common.
pub(crate) fn common_folder(files: &[Found]) -> PathBuf {
    let named = files.iter().filter(|file| file.path != "-");
    let mut folders = named.map(|file| normal(&file.below));
    let Some(first) = folders.next() else { return PathBuf::new() };
    let shared = folders.fold(first, |shared, folder| {
        let same = shared.iter().zip(&folder).take_while(|(a, b)| a == b).count();
        shared.into_iter().take(same).collect()
    });
    shared.into_iter().collect()
}

/// The folders of a path below `common`.
pub(crate) fn folders_below(path: &str, common: &Path) -> Vec<String> {
    let folders = normal(&folder(Path::new(path)));
    let below = folders.into_iter().skip(common.components().count());
    below.map(|name| name.to_string_lossy().into_owned()).collect()
}

/// The parts of a path from the root, without `.`.
fn normal(path: &Path) -> Vec<std::ffi::OsString> {
    let whole = std::path::absolute(path);
    let parts =
        whole.as_deref().unwrap_or(path).components().filter(|part| *part != Component::CurDir);
    parts.map(|part| part.as_os_str().to_owned()).collect()
}

fn folder(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// Whether a name is that of a Parquet file.
fn is_parquet(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    ["parquet", "parq", "pq", "pqt"].iter().any(|known| ending.eq_ignore_ascii_case(known))
}

/// Whether a name is passed over: Hive's `_year=2024` is a partition.
fn is_hidden(name: &str) -> bool {
    name.starts_with('.') || (name.starts_with('_') && !name.contains('='))
}

/// How far a name, or what lies below it, is wanted.
#[derive(Clone, Copy)]
struct Reach {
    /// The file is wanted.
    is_match: bool,
    /// Something below it may be.
    leads_on: bool,
    /// It is, although its name is one that is passed over.
    shows_hidden: bool,
}

impl Reach {
    const IN: Self = Self { is_match: true, leads_on: true, shows_hidden: false };
}

/// A file that was found, and its path without links.
struct FoundFile {
    path: PathBuf,
    real: PathBuf,
}

/// The regular files below `root` that are wanted, by their paths.
///
/// Links are followed after everything that is there without them, and no folder is entered twice:
/// they cannot lead in circles, and a file has its own path, whose folders say its partition, not
/// that of a link.
fn walk(root: &Path, reach: impl Fn(&Path) -> Reach) -> Result<Vec<FoundFile>> {
    let mut starts = VecDeque::from([root.to_owned()]);
    // The real paths of files and folders.
    let mut entered = HashSet::new();
    let mut found = Vec::new();
    let below = |path: &Path| path.strip_prefix(root).map(Path::to_owned).unwrap_or_default();
    while let Some(start) = starts.pop_front() {
        // A link that leads nowhere is no file.
        let Ok(real) = start.canonicalize() else { continue };
        if !start.is_dir() {
            let is_wanted = start.is_file() && reach(&below(&start)).is_match;
            if is_wanted && entered.insert(real.clone()) {
                found.push(FoundFile { path: start, real });
            }
            continue;
        }
        if !entered.insert(real.clone()) {
            continue;
        }
        let real_path = |entry: &DirEntry| {
            real.join(entry.path().strip_prefix(&start).unwrap_or_else(|_| entry.path()))
        };
        let mut wanted = |entry: &DirEntry| -> bool {
            let reach = reach(&below(entry.path()));
            let hidden = is_hidden(&entry.file_name().to_string_lossy()) && !reach.shows_hidden;
            let is_wanted = !hidden && (reach.is_match || reach.leads_on);
            is_wanted && (entry.file_type().is_symlink() || entered.insert(real_path(entry)))
        };
        let entries = WalkDir::new(&start).min_depth(1).sort_by_file_name().into_iter();
        for entry in entries.filter_entry(&mut wanted) {
            let entry = entry.map_err(unreadable)?;
            let kind = entry.file_type();
            if kind.is_symlink() {
                starts.push_back(entry.into_path());
            } else if kind.is_file() && reach(&below(entry.path())).is_match {
                found.push(FoundFile { real: real_path(&entry), path: entry.into_path() });
            }
        }
    }
    found.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(found)
}

/// Files in a folder that cannot be read would be missed in silence.
fn unreadable(error: walkdir::Error) -> Failure {
    let path = error.path().map(|path| path.display().to_string()).unwrap_or_default();
    Error::io("the folder cannot be read", error.into()).at_file(path).into()
}

/// The files that a URL names: itself, those in a folder if it ends with `/`, or those that match
/// a glob, unless an object has that very name. Web servers do not list, so their URLs have no
/// globs.
fn of_url(url: &str) -> Result<Vec<Found>> {
    urls::Address::parse(url)?.check()?;
    let (_, rest) = url.split_once("://").unwrap_or_default();
    let key = rest.split_once('/').map_or("", |(_, key)| key);
    let is_web = url.get(..4).is_some_and(|scheme| scheme.eq_ignore_ascii_case("http"));
    let is_folder = key.is_empty() || key.ends_with('/');
    let itself = || Ok(vec![Found { path: url.to_owned(), below: folder(Path::new(url)) }]);
    if is_web || !(is_folder || is_glob(key)) {
        return itself();
    }
    let root = url.get(..url.len() - key.len()).unwrap_or(url).trim_end_matches('/');
    let names: Vec<&str> = key.split('/').filter(|name| !name.is_empty()).collect();
    let literal = names.iter().take_while(|name| !is_glob(name)).count();
    let (folders, names) = names.split_at(literal);
    let prefix = folders.iter().fold(format!("{root}/"), |prefix, name| format!("{prefix}{name}/"));
    // A glob of one name does not look into folders, unless it ends with a slash.
    let deep = is_folder || names.len() != 1 || names == ["**"];
    let listed = locations::list(&prefix, deep)?;
    if listed.iter().any(|object| object.url == url) {
        return itself();
    }
    let pattern =
        |name: &&str| Pattern::new(name).map_err(|error| Failure::Usage(format!("{url}: {error}")));
    let patterns = names.iter().map(pattern).collect::<Result<Vec<_>>>()?;
    let found = listed.into_iter().filter_map(|object| {
        let below = Path::new(&object.below);
        let named = if patterns.is_empty() { 0 } else { names_met(&patterns, below, is_folder)? };
        let is_shown = below.components().all(|name| {
            let name = name.as_os_str().to_string_lossy();
            !is_hidden(&name) || patterns.iter().any(|of| spells(of, &name))
        });
        let is_wanted = is_shown && (named == below.components().count() || is_parquet(below));
        let folder: PathBuf = below.components().take(named).collect();
        let folder = if folder == below { self::folder(&folder) } else { folder };
        is_wanted.then(|| Found { below: Path::new(&prefix).join(folder), path: object.url })
    });
    let found: Vec<Found> = found.collect();
    if found.is_empty() {
        let what =
            if patterns.is_empty() { "no .parquet object is below" } else { "no object matches" };
        return Err(Failure::Usage(format!("{what} {url}")));
    }
    Ok(found)
}

/// After how many of its names an object meets all patterns: all of them, or, where the glob names
/// folders, fewer.
fn names_met(patterns: &[Pattern], below: &Path, is_folder: bool) -> Option<usize> {
    let (step, names) = (states(patterns, below)?, below.components().count());
    match step.is_named && !is_folder {
        true => Some(names),
        false => step.names.filter(|named| *named < names),
    }
}

/// Whether a pattern says the first character of a name that is passed over.
fn spells(pattern: &Pattern, name: &str) -> bool {
    pattern.as_str().starts_with(['_', '.']) && pattern.matches_with(name, OPTIONS)
}

/// The files that match a glob, each with the folder below which its keys are looked for; a folder
/// that matches stands for the Parquet files in it.
fn matching(glob: &str) -> Result<Vec<(FoundFile, PathBuf)>> {
    let names: Vec<&str> = glob.split(['/', std::path::MAIN_SEPARATOR]).collect();
    let literal = names.iter().take_while(|name| !is_glob(name)).count();
    let (root, names) = names.split_at(literal);
    let pattern = |name: &&str| {
        Pattern::new(name).map_err(|error| Failure::Usage(format!("{glob}: {error}")))
    };
    let names = names.iter().filter(|name| !["", "."].contains(name));
    let patterns = names.map(pattern).collect::<Result<Vec<_>>>()?;
    let root = match root {
        [] => PathBuf::from("."),
        [""] => PathBuf::from("/"),
        names => PathBuf::from(names.join("/")),
    };
    if !root.is_dir() {
        return Ok(Vec::new());
    }
    let found = walk(&root, |below| {
        let step = states(&patterns, below);
        let is_named = step.is_some_and(|step| step.is_named);
        let is_below = step.is_some_and(|step| step.names.is_some());
        let name = below.file_name().unwrap_or_default().to_string_lossy();
        Reach {
            is_match: is_named || (is_below && is_parquet(below)),
            leads_on: step.is_some(),
            shows_hidden: patterns.iter().any(|pattern| spells(pattern, &name)),
        }
    })?;
    let with_folder = |file: FoundFile| {
        let below = file.path.strip_prefix(&root).unwrap_or(&file.path);
        let names = below.components().count();
        let named = states(&patterns, below).and_then(|step| step.names).unwrap_or(names);
        let named = if named < names { named } else { names.saturating_sub(1) };
        let folder = root.join(below.components().take(named).collect::<PathBuf>());
        let shown = file.path.strip_prefix(".").map(Path::to_owned);
        (FoundFile { path: shown.unwrap_or_else(|_| file.path.clone()), ..file }, folder)
    };
    Ok(found.into_iter().map(with_folder).collect())
}

/// How names are matched with a pattern.
const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// The position of a path among the patterns of the names of a glob.
#[derive(Clone, Copy, Debug, PartialEq)]
struct PatternStep {
    /// All of it is named.
    is_named: bool,
    /// After how many of its names all patterns were met, for the first time.
    names: Option<usize>,
}

/// `None` if neither the path nor anything below it can match.
fn states(patterns: &[Pattern], below: &Path) -> Option<PatternStep> {
    let is_any = |i: usize| patterns.get(i).is_some_and(|pattern| pattern.as_str() == "**");
    // Patterns that may come next; `**` matches no name, too.
    let open = |mut at: Vec<usize>| {
        let mut i = 0;
        while let Some(state) = at.get(i).copied() {
            if is_any(state) && !at.contains(&(state + 1)) {
                at.push(state + 1);
            }
            i += 1;
        }
        at
    };
    let mut at = open(vec![0]);
    let mut names = None;
    for (i, name) in below.components().enumerate() {
        let name = name.as_os_str().to_string_lossy();
        let next = at.iter().filter_map(|state| match patterns.get(*state) {
            Some(_) if is_any(*state) => Some(*state),
            Some(pattern) => pattern.matches_with(&name, OPTIONS).then_some(*state + 1),
            None => None,
        });
        let next: HashSet<usize> = next.collect();
        at = open(next.into_iter().collect());
        if at.contains(&patterns.len()) {
            names = names.or(Some(i + 1));
        }
    }
    let is_named = at.contains(&patterns.len());
    (names.is_some() || !at.is_empty()).then_some(PatternStep { is_named, names })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_glob_says_which_paths_match_and_which_may_lead_on() {
        let step = |glob: &str, path: &str| {
            let patterns: Vec<_> =
                glob.split('/').map(|name| Pattern::new(name).expect("a pattern")).collect();
            states(&patterns, Path::new(path)).map(|step| (step.is_named, step.names))
        };
        for (glob, path, expected) in [
            ("*.parquet", "a.parquet", Some((true, Some(1)))),
            ("*.parquet", "a.csv", None),
            ("*.parquet", "a.parquet/part.parquet", Some((false, Some(1)))),
            ("*/b/*", "x", Some((false, None))),
            ("*/b/*", "x/c", None),
            ("*/b/*", "x/b/f", Some((true, Some(3)))),
            ("**/*.parquet", "a.parquet", Some((true, Some(1)))),
            ("**/*.parquet", "x/y/a.parquet", Some((true, Some(3)))),
            ("**/*.parquet", "x/y", Some((false, None))),
            ("**/*", "x/y.csv", Some((true, Some(1)))),
            ("a/**/z", "a/b/c/z", Some((true, Some(4)))),
            ("a/**/z", "b", None),
        ] {
            assert_eq!(step(glob, path), expected, "{glob} of {path}");
        }
    }
}
