//! Compares what the leaves of a group say of it: where it is null, and how long the lists are that
//! it is in.
//!
//! Used by `checker` when all chunks of a row group are known. Trap: of the levels only a hash is
//! kept, so that the leaves that differ are read again, for the row, and those that they differ
//! from, once for all of a group.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use super::context::FileContext;
use super::finding::{Finding, Findings};
use super::kind::FindingKind as K;
use super::levels::{LevelShape, count};
use super::pages::PageWalk;
use super::siblings::GroupLevels;
use crate::error::Result;
use crate::limits::Reservation;
use crate::page::{Page, PageOpener, PagePosition};
use crate::read::chunk_range;
use crate::schema::Node;

/// Compares what the leaves of a row group say of the groups that they share. Those that contradict
/// more of their siblings than they agree with are added to `broken`.
pub(super) fn compare(
    file: &FileContext,
    row_group: usize,
    of_leaves: &[(usize, Vec<GroupLevels>)],
    broken: &mut BTreeSet<usize>,
    findings: &mut Findings,
) {
    let mut groups = BTreeMap::new();
    for (leaf, of_leaf) in of_leaves {
        for levels in of_leaf {
            // The outer group first.
            let key = (levels.leaves().start, std::cmp::Reverse(levels.leaves().end));
            groups.entry(key).or_insert_with(Vec::new).push((*leaf, levels.digest()));
        }
    }
    for ((start, end), of_group) in groups {
        let mut counts = BTreeMap::new();
        for (leaf, digest) in &of_group {
            counts.entry(*digest).or_insert((0, *leaf)).0 += 1;
        }
        // Of as many, those of the first leaf.
        let most =
            counts.iter().max_by_key(|(_, (count, first))| (*count, std::cmp::Reverse(*first)));
        let Some((&expected, &(_, model))) = most else { continue };
        let mut of_model = None;
        for (leaf, digest) in of_group {
            if digest == expected || !broken.insert(leaf) {
                continue;
            }
            let path = |leaf: usize| {
                let node = file.footer.schema().leaf_node(leaf).ok();
                node.map(|node| node.path().dotted()).unwrap_or_default()
            };
            let Some(group) = group_of(file, start..end.0) else { continue };
            let column: Arc<str> = path(leaf).into();
            let (name, other) = (group.path().dotted(), path(model));
            let text = match (digest.0, expected.0) {
                (found, expected) if found != expected => format!(
                    "its levels have {found} places for {name}, and those of {other} {expected}"
                ),
                _ => format!(
                    "its levels say otherwise than those of {other} where {name} is null or begins \
                     a row"
                ),
            };
            // What cannot be read again was reported.
            let of_model =
                of_model.get_or_insert_with(|| levels_of(file, row_group, group, model).ok());
            let row = of_model.as_ref().and_then(|(of_model, _memory)| {
                let (of_leaf, _memory) = levels_of(file, row_group, group, leaf).ok()?;
                of_leaf.first_difference(of_model)
            });
            let row = row.map(|row| format!("; they differ first in row {row} of the row group"));
            let text = text + &row.unwrap_or_default();
            let finding = Finding::new(K::SiblingLevelsDiffer, text);
            findings.push(finding.with_row_group(row_group).with_column(&column));
        }
    }
}

/// The group that has these leaves.
fn group_of(file: &FileContext, leaves: Range<usize>) -> Option<Node<'_>> {
    let mut node = file.footer.schema().leaf_node(leaves.start).ok();
    while let Some(at) = node {
        if at.leaves() == leaves {
            return Some(at);
        }
        node = at.parent();
    }
    None
}

/// Reads the levels of a leaf, as far as they are about a group; with their memory.
fn levels_of(
    file: &FileContext,
    row_group: usize,
    group: Node<'_>,
    leaf: usize,
) -> Result<(GroupLevels, Reservation)> {
    let footer = &file.footer;
    let (described, chunk) =
        (footer.schema().leaf(leaf)?, footer.column_chunk_ref(row_group, leaf)?);
    let range = chunk_range(footer, file.file_len, row_group, leaf, &chunk)?;
    let meta = chunk.meta_data.as_ref();
    let slots = meta.and_then(|meta| u64::try_from(meta.num_values).ok()).unwrap_or(0);
    let codec = meta.map(|meta| meta.codec).unwrap_or_default();
    let mut context = footer.page_context(&described, codec, &file.limits);
    context.decryptor = footer.chunk_decryptor(row_group, leaf, &chunk)?;
    let shape = LevelShape::new(footer.schema().leaf_node(leaf)?);
    let mut levels = GroupLevels::kept(group);
    let memory = file.budget.take_for("levels", levels.bytes_of(slots))?;
    let mut opener = PageOpener::new(context, &file.budget);
    let mut walk = PageWalk::new(file, range);
    let (mut found, mut data_pages, mut is_first) = (0, 0, true);
    while found < slots && !walk.is_done() {
        let position = PagePosition { is_first, data_pages };
        let page = walk.next_page(opener.context(), position)?;
        let body_len = page.body.len();
        let body = opener.open_verified(&page.stored.header, page.body, page.stored.body)?;
        if let Some(Page::Data(page)) = body {
            // As when the chunk was checked.
            file.expand(page.slots as u64 / 64, body_len)?;
            count(&page, &shape, None, std::slice::from_mut(&mut levels))?;
            found += page.slots as u64;
            data_pages += 1;
        }
        is_first = false;
    }
    Ok((levels, memory))
}
