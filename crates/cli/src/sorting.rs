//! Sorts rows by the columns of `--sort`, in memory or by temporary files.

use std::path::{Path, PathBuf};

use arrow_schema::SchemaRef;
use marquetry::SortColumn;
use marquetry::rewrite::RowSorter;

use crate::args::{Global, SortFlags};
use crate::failure::{Failure, Result};

/// The columns of `--sort`.
pub(crate) fn columns(flags: &SortFlags) -> Result<Vec<SortColumn>> {
    flags.sort.iter().map(|text| sort_column(text)).collect()
}

/// A column and how it is sorted: `COL[:desc][:nulls-first]`.
pub(crate) fn sort_column(text: &str) -> Result<SortColumn> {
    NamedOrder::new(text).map(|order| order.column())
}

/// The name of a column, and how a text says that it is sorted.
pub(crate) struct NamedOrder<'a> {
    pub(crate) name: &'a str,
    pub(crate) descending: bool,
    /// Whether nulls come first, where the text says it.
    pub(crate) nulls_first: Option<bool>,
}

impl<'a> NamedOrder<'a> {
    /// # Errors
    /// `Usage` if there is no name.
    pub(crate) fn new(text: &'a str) -> Result<Self> {
        let (mut name, mut descending, mut nulls_first) = (text, false, None);
        while let Some((rest, word)) = name.rsplit_once(':') {
            match word {
                "desc" => descending = true,
                "asc" => {}
                "nulls-first" => nulls_first = Some(true),
                "nulls-last" => nulls_first = nulls_first.or(Some(false)),
                _ => break,
            }
            name = rest;
        }
        if name.is_empty() {
            return Err(Failure::Usage(format!("{text:?} names no column to sort by")));
        }
        Ok(Self { name, descending, nulls_first })
    }

    fn column(&self) -> SortColumn {
        let by = match self.descending {
            true => SortColumn::descending(self.name),
            false => SortColumn::ascending(self.name),
        };
        if self.nulls_first == Some(true) { by.nulls_first() } else { by }
    }
}

/// The columns that the rows of each file are sorted by: those that the file has.
pub(crate) fn of_files(flags: &SortFlags, partition_by: &[String]) -> Result<Vec<SortColumn>> {
    let mut columns = Vec::new();
    for text in &flags.sort {
        let order = NamedOrder::new(text)?;
        if !partition_by.iter().any(|partition| partition == order.name) {
            columns.push(order.column());
        }
    }
    Ok(columns)
}

/// The sorter of the rows, if they are to be sorted: by partition first, so that one partition is
/// written after the other.
pub(crate) fn sorter(
    flags: &SortFlags,
    partition_by: &[String],
    schema: &SchemaRef,
    global: &Global,
) -> Result<Option<RowSorter>> {
    if flags.sort.is_empty() {
        return Ok(None);
    }
    let mut by: Vec<SortColumn> = partition_by.iter().map(SortColumn::ascending).collect();
    by.extend(of_files(flags, partition_by)?);
    let sorter = RowSorter::new(schema.clone(), by)?;
    let sorter = match global.mem {
        Some(bytes) => sorter.memory(bytes),
        None => sorter,
    };
    let is_secret = global.has_keys();
    Ok(Some(match temp_folder(flags, global.output.as_deref(), is_secret) {
        Some(folder) => sorter.temp_folder(folder),
        None if is_secret => sorter.without_temp_files(),
        None => sorter,
    }))
}

/// The folder of temporary files: beside the output. Rows of encrypted files go only where the user
/// says.
pub(crate) fn temp_folder(
    flags: &SortFlags,
    output: Option<&Path>,
    is_secret: bool,
) -> Option<PathBuf> {
    if flags.temp.is_some() || is_secret {
        return flags.temp.clone();
    }
    let parent = output.filter(|output| *output != Path::new("-"))?.parent()?;
    match parent.as_os_str().is_empty() {
        true => Some(".".into()),
        // It may have to be made yet.
        false => parent.is_dir().then(|| parent.to_owned()),
    }
}
