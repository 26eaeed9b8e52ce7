//! Checks the footer apart from schema and column chunks: counts, sums, row groups, and that no
//! bytes are claimed twice.
//!
//! Spec: `parquet.thrift`, README.md "File format".

use std::collections::HashSet;
use std::ops::Range;

use super::chunk_metadata::range_of;
use super::context::FileContext;
use super::finding::{Finding, Findings};
use super::kind::FindingKind as K;
use crate::error::{Error, Result};
use crate::format::{ColumnChunkRef, RowGroupHead};
use crate::memory;
use crate::read::chunk_range;

pub(super) fn check(file: &FileContext, findings: &mut Findings) -> Result<()> {
    let head = file.footer.index().head();
    if !(1..=2).contains(&head.version) {
        let finding = Finding::lie(K::VersionUnknown, "version", head.version, "1 or 2");
        findings.push(finding);
    }
    if head.created_by.as_ref().is_none_or(String::is_empty) {
        findings.push(Finding::new(K::WriterUnnamed, "created_by is not stated"));
    }
    let mut keys = HashSet::new();
    if let Some(twin) = file.footer.key_values().iter().find(|pair| !keys.insert(&pair.key)) {
        let text = format_args!("two entries have the key {:?}", twin.key);
        findings.push(Finding::new(K::KeyRepeats, text));
    }
    let is_signed = head.encryption_algorithm.is_some() || file.footer.is_encrypted();
    let left = file.footer.stored_len().saturating_sub(file.footer.index().byte_len());
    if left > 0 && !is_signed {
        let text = format_args!("{left} bytes follow the footer, before its length");
        findings.push(Finding::new(K::FooterBytesLeft, text).with_offset(file.footer_start()));
    }
    let groups = head.row_groups.iter().map(|group| i128::from(group.num_rows.max(0)));
    let rows: i128 = groups.sum();
    if i128::from(head.num_rows) != rows {
        findings.push(Finding::lie(K::FileRowsWrong, "num_rows", head.num_rows, rows));
    }
    for (index, group) in head.row_groups.iter().enumerate() {
        check_row_group(file, index, group, findings);
    }
    check_claims(file, findings)
}

fn check_row_group(
    file: &FileContext,
    index: usize,
    group: &RowGroupHead,
    findings: &mut Findings,
) {
    let mut push = |finding: Finding| findings.push(finding.with_row_group(index));
    let leaves = file.footer.schema().leaves_len();
    if group.num_rows < 0 {
        let text = format_args!("num_rows is {}", group.num_rows);
        push(Finding::new(K::RowGroupRowsNegative, text));
    }
    if group.columns.len() != leaves {
        let name = "the number of columns";
        let stated = group.columns.len();
        push(Finding::lie(K::RowGroupColumnsMiscounted, name, stated, leaves));
    }
    // In a summary, the row groups have the ordinals of their files.
    let first = file.footer.column_chunk_ref(index, 0).ok();
    let is_elsewhere = first.is_some_and(|chunk| chunk.file_path.is_some());
    if let Some(ordinal) = group.ordinal.filter(|_| !is_elsewhere)
        && usize::try_from(ordinal) != Ok(index)
    {
        push(Finding::lie(K::RowGroupOrdinalWrong, "ordinal", ordinal, index));
    }
    let mut sorted = HashSet::new();
    for sorting in group.sorting_columns.iter().flatten() {
        let leaf = usize::try_from(sorting.column_idx).ok().filter(|leaf| *leaf < leaves);
        if leaf.is_none() || !sorted.insert(sorting.column_idx) {
            let text = format_args!(
                "column_idx {} of {leaves} columns, or it was there before",
                sorting.column_idx
            );
            push(Finding::new(K::SortingColumnInvalid, text));
        }
    }
    check_sums(file, index, group, findings);
}

/// Compares the sizes of a row group with those of its column chunks.
fn check_sums(file: &FileContext, index: usize, group: &RowGroupHead, findings: &mut Findings) {
    let mut push = |finding: Finding| findings.push(finding.with_row_group(index));
    let Ok(chunks) = file.footer.column_chunks(index) else { return };
    let (mut raw, mut stored, mut first, mut is_known) = (0i128, 0i128, None, true);
    for chunk in chunks {
        let meta = chunk.ok().and_then(|chunk| chunk.meta_data);
        let Some(meta) = meta else {
            is_known = false;
            continue;
        };
        raw += i128::from(meta.total_uncompressed_size);
        stored += i128::from(meta.total_compressed_size);
        let offsets = (meta.dictionary_page_offset, meta.data_page_offset);
        first.get_or_insert(offsets);
    }
    if !is_known {
        return;
    }
    if i128::from(group.total_byte_size) != raw {
        push(Finding::lie(K::RowGroupSizeWrong, "total_byte_size", group.total_byte_size, raw));
    }
    if let Some(stated) = group.total_compressed_size
        && i128::from(stated) != stored
    {
        let name = "total_compressed_size";
        push(Finding::lie(K::RowGroupCompressedSizeWrong, name, stated, stored));
    }
    if let (Some(stated), Some((dictionary, data))) = (group.file_offset, first)
        && stated != 0
        && Some(stated) != dictionary
        && stated != data
    {
        let found = dictionary.filter(|offset| *offset > 0).unwrap_or(data);
        push(Finding::lie(K::RowGroupOffsetWrong, "file_offset", stated, found));
    }
}

/// Bytes that the footer claims for something.
#[derive(Debug, Clone)]
struct Claim {
    range: Range<u64>,
    what: &'static str,
    row_group: u32,
    leaf: u32,
}

impl Claim {
    /// Claims are in the order of their bytes, and else in that of the footer.
    fn order(&self) -> (u64, u64, u32, u32, &'static str) {
        (self.range.start, self.range.end, self.row_group, self.leaf, self.what)
    }
}

/// Checks that no two claims share bytes.
fn check_claims(file: &FileContext, findings: &mut Findings) -> Result<()> {
    let (groups, leaves) = (file.footer.row_groups(), file.footer.schema().leaves_len());
    /// Pages, filter, two indexes.
    const CLAIMS: usize = 4;
    let len = groups.saturating_mul(leaves).saturating_mul(CLAIMS * size_of::<Claim>());
    let Ok(_memory) = file.budget.take_for("the claims on bytes of the file", len) else {
        let text = "there are too many column chunks to look for bytes that are claimed twice";
        findings.push(Finding::new(K::NotChecked, text));
        return Ok(());
    };
    let mut claims = Vec::new();
    for row_group in 0..groups {
        let Ok(chunks) = file.footer.column_chunks(row_group) else { continue };
        for (leaf, chunk) in chunks.enumerate() {
            let Ok(chunk) = chunk else { continue };
            add_claims(file, &chunk, row_group, leaf, &mut claims)?;
        }
    }
    claims.sort_unstable_by_key(Claim::order);
    let mut last: Option<&Claim> = None;
    for claim in &claims {
        if let Some(last) = last.filter(|last| last.range.end > claim.range.start) {
            let path = |leaf: u32| {
                let node = file.footer.schema().leaf_node(leaf as usize).ok();
                node.map_or_else(String::new, |node| node.path().dotted())
            };
            let text = format_args!(
                "the {} in {} to {} shares bytes with the {} of {:?} in row group {}, in {} to {}",
                claim.what,
                claim.range.start,
                claim.range.end,
                last.what,
                path(last.leaf),
                last.row_group,
                last.range.start,
                last.range.end
            );
            let column = path(claim.leaf).into();
            let finding = Finding::new(K::BytesClaimedTwice, text).with_column(&column);
            let finding = finding.with_row_group(claim.row_group as usize);
            findings.push(finding.with_offset(claim.range.start));
        }
        last = last.filter(|last| last.range.end >= claim.range.end).or(Some(claim));
    }
    Ok(())
}

fn add_claims(
    file: &FileContext,
    chunk: &ColumnChunkRef<'_>,
    row_group: usize,
    leaf: usize,
    out: &mut Vec<Claim>,
) -> Result<()> {
    if chunk.file_path.is_some_and(|path| !path.is_empty()) {
        return Ok(());
    }
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let mut push = |what, range: Option<Range<u64>>| {
        // What lies outside the file is reported with its chunk.
        if let Some(range) = range.filter(|range| !range.is_empty() && file.has_room_for(range)) {
            let (row_group, leaf) = (number(row_group), number(leaf));
            memory::push(out, Claim { range, what, row_group, leaf })?;
        }
        Ok::<_, Error>(())
    };
    if let Some(meta) = chunk.meta_data.as_ref().filter(|meta| meta.num_values > 0) {
        let range = chunk_range(&file.footer, file.file_len, row_group, leaf, chunk).ok();
        let stated = u64::try_from(meta.total_compressed_size).unwrap_or(0);
        // Where the sizes of chunks are short, their ends are guessed, and may be too far.
        let range = range.map(|range| match file.footer.has_short_chunks() {
            true => range.start..range.end.min(range.start.saturating_add(stated)),
            false => range,
        });
        push("column chunk", range)?;
    }
    if let Some(meta) = &chunk.meta_data {
        let filter = meta.bloom_filter_offset.zip(meta.bloom_filter_length);
        push("bloom filter", filter.and_then(|(offset, length)| range_of(offset, length)))?;
    }
    let columns = chunk.column_index_offset.zip(chunk.column_index_length);
    push("column index", columns.and_then(|(offset, length)| range_of(offset, length)))?;
    let offsets = chunk.offset_index_offset.zip(chunk.offset_index_length);
    push("offset index", offsets.and_then(|(offset, length)| range_of(offset, length)))
}
