//! Checks a summary against the files that it names: `_metadata`, as Spark, Dask and others write.
//!
//! Spec: `ColumnChunk.file_path` of `parquet.thrift`. Trap: the paths are as untrusted as the rest;
//! one that leads out of the folder is not followed.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::context::FileContext;
use super::finding::{Finding, Findings};
use super::kind::FindingKind as K;
use crate::error::Result;
use crate::format::ColumnChunk;
use crate::io::{ReopenedFile, open_footer};
use crate::read::Footer;
use crate::reader::inside;

/// A file of a summary.
struct SummaryFile {
    /// `None` if it cannot be read, which was reported.
    footer: Option<Footer>,
    /// Row groups of the summary that were compared.
    next: usize,
}

/// Compares the row groups of a summary with those of the files below `base`.
pub(super) fn check(file: &FileContext, base: &Path, findings: &mut Findings) {
    let mut files: HashMap<String, SummaryFile> = HashMap::new();
    for row_group in 0..file.footer.row_groups() {
        let Some(path) = path_of(&file.footer, row_group) else { continue };
        let of_path = match files.get_mut(&path) {
            Some(known) => known,
            None => {
                let footer = open(file, base, &path, findings);
                files.entry(path.clone()).or_insert(SummaryFile { footer, next: 0 })
            }
        };
        let Some(footer) = &of_path.footer else { continue };
        compare(file, footer, (row_group, of_path.next), &path, findings);
        of_path.next += 1;
    }
    let mut files: Vec<(String, SummaryFile)> = files.into_iter().collect();
    files.sort_by(|a, b| a.0.cmp(&b.0));
    for (path, SummaryFile { footer, next }) in files {
        let Some(footer) = footer.filter(|footer| footer.row_groups() > next) else { continue };
        let groups = footer.row_groups();
        let name = format!("the number of row groups of the file {path:?}");
        findings.push(Finding::lie(K::SummaryRowGroupsDiffer, &name, next, groups));
    }
}

/// The file that a row group lies in, if it is another one.
fn path_of(footer: &Footer, row_group: usize) -> Option<String> {
    let chunk = footer.column_chunk_ref(row_group, 0).ok()?;
    chunk.file_path.filter(|path| !path.is_empty()).map(str::to_owned)
}

fn open(file: &FileContext, base: &Path, path: &str, findings: &mut Findings) -> Option<Footer> {
    let opened = || -> Result<Footer> {
        let base = base.canonicalize().map_err(|e| crate::Error::io("the folder", e))?;
        let source = ReopenedFile::within(&inside(&base, path)?, &base)?;
        Ok(open_footer(&source, &file.limits, None)?.0)
    };
    let footer = match opened() {
        Ok(footer) => footer,
        Err(error) => {
            let text = format_args!("the file {path:?} cannot be read: {}", error.message());
            findings.push(Finding::new(K::SummaryFileUnreadable, text));
            return None;
        }
    };
    let (own, other) = (file.footer.schema(), footer.schema());
    // The root may have any name.
    if !own.elements().skip(1).eq(other.elements().skip(1)) {
        let text = format_args!("the file {path:?} has another schema");
        findings.push(Finding::new(K::SummarySchemaDiffers, text));
        return None;
    }
    Some(footer)
}

fn compare(
    file: &FileContext,
    footer: &Footer,
    (row_group, of_file): (usize, usize),
    path: &str,
    findings: &mut Findings,
) {
    let mut push = |finding: Finding| findings.push(finding.with_row_group(row_group));
    let head = |footer: &Footer, at: usize| {
        let group = footer.index().head().row_groups.get(at)?;
        Some((group.num_rows, group.total_byte_size, group.columns.len()))
    };
    let (stated, found) = (head(&file.footer, row_group), head(footer, of_file));
    let (Some(stated), Some(found)) = (stated, found) else {
        let text = format_args!("the file {path:?} has no row group {of_file}");
        push(Finding::new(K::SummaryRowGroupsDiffer, text));
        return;
    };
    if stated != found {
        let name = format!("(rows, bytes, columns) of row group {of_file} of {path:?}");
        let (stated, found) = (format!("{stated:?}"), format!("{found:?}"));
        push(Finding::lie(K::SummaryRowGroupsDiffer, &name, stated, found));
        return;
    }
    for leaf in 0..stated.2 {
        let chunk = |footer: &Footer, at| footer.column_chunk(at, leaf).ok();
        let (own, other) = (chunk(&file.footer, row_group), chunk(footer, of_file));
        let same = own.zip(other).is_some_and(|(own, other)| is_same(own, other));
        if !same {
            let node = file.footer.schema().leaf_node(leaf).ok();
            let column: Arc<str> = node.map_or_else(String::new, |n| n.path().dotted()).into();
            let text = format_args!("the column chunk is another in the file {path:?}");
            push(Finding::new(K::SummaryRowGroupsDiffer, text).with_column(&column));
        }
    }
}

/// Whether a column chunk of a summary is that of its file. Summaries may leave the indexes out.
fn is_same(mut own: ColumnChunk, mut other: ColumnChunk) -> bool {
    for chunk in [&mut own, &mut other] {
        chunk.file_path = None;
        chunk.file_offset = 0;
        (chunk.offset_index_offset, chunk.offset_index_length) = (None, None);
        (chunk.column_index_offset, chunk.column_index_length) = (None, None);
    }
    own == other
}
