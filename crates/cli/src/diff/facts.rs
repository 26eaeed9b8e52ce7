//! Statements in which two files differ: their schemas, their layouts, and their statistics.

use std::collections::{BTreeSet, HashMap, HashSet};

use arrow_array::{Array, ArrayRef};
use arrow_ord::ord::make_comparator;
use arrow_schema::{DataType, Field, FieldRef, Schema};
use marquetry::format::{KeyValue, LogicalType};
use marquetry::schema::{ArrowOptions, Leaf, Physical};
use marquetry::{ColumnStatistics, Error, Reader};
use serde::Serialize;

use super::value::is_comparable;
use crate::args::ValueForms;
use crate::cells::{Forms, ValuesOf};
use crate::failure::Result;

/// Something that the files state otherwise.
#[derive(Debug, Serialize)]
pub(super) struct FactDiff {
    /// The column; nothing for what is said of the file.
    pub(super) column: Option<String>,
    pub(super) what: &'static str,
    pub(super) a: Option<String>,
    pub(super) b: Option<String>,
}

/// Compares two values of a fact.
fn compare(
    out: &mut Vec<FactDiff>,
    column: Option<&str>,
    what: &'static str,
    a: Option<String>,
    b: Option<String>,
) {
    if a != b {
        out.push(FactDiff { column: column.map(str::to_owned), what, a, b });
    }
}

/// The differences of two schemas: columns, their order, types, and what may be null.
pub(super) fn schema(a: &Reader, b: &Reader) -> Result<Vec<FactDiff>> {
    let (of_a, of_b) = (a.schema()?, b.schema()?);
    let mut out = Vec::new();
    fields(of_a.fields(), of_b.fields(), "", &mut out);
    let both = |own: &Schema, other: &Schema| {
        let others = by_name(other.fields().iter(), |field| field.name());
        let names = own.fields().iter().map(|field| field.name().as_str());
        names.filter(|name| others.contains_key(name)).collect::<Vec<_>>().join(", ")
    };
    compare(&mut out, None, "order", Some(both(&of_a, &of_b)), Some(both(&of_b, &of_a)));
    let mut told: HashSet<String> = out.iter().filter_map(|fact| fact.column.clone()).collect();
    for (column, leaf_a, leaf_b) in leaf_pairs(a, b) {
        let (leaf_a, leaf_b) =
            (a.metadata().schema().leaf(leaf_a), b.metadata().schema().leaf(leaf_b));
        let (Ok(leaf_a), Ok(leaf_b)) = (leaf_a, leaf_b) else { continue };
        let annotation = |leaf: &Leaf| {
            let is_said = leaf.logical.as_ref().is_some_and(|logical| !is_implied(logical, leaf));
            let text = is_said.then(|| leaf.type_text())?;
            // The physical type before it is a matter of the layout.
            let (_, annotation) = text.split_once(" (")?;
            Some(annotation.strip_suffix(')').unwrap_or(annotation).to_owned())
        };
        let (text_a, text_b) = (annotation(&leaf_a), annotation(&leaf_b));
        // What the type says is said already.
        if text_a != text_b && told.insert(column.clone()) {
            compare(&mut out, Some(&column), "logical type", text_a, text_b);
        }
    }
    Ok(out)
}

/// Whether an annotation says no more than the physical type does.
fn is_implied(logical: &LogicalType, leaf: &Leaf) -> bool {
    let LogicalType::Integer(integer) = logical else { return false };
    let bits = match leaf.physical {
        Physical::Int32 => 32,
        Physical::Int64 => 64,
        _ => return false,
    };
    integer.is_signed && integer.bit_width == bits
}

/// The leaves that both files have, where their columns have the same leaves.
fn leaf_pairs(a: &Reader, b: &Reader) -> Vec<(String, usize, usize)> {
    let mut out = Vec::new();
    let (of_a, of_b) = (a.metadata().schema(), b.metadata().schema());
    let others = by_name(of_b.root().children(), |node| node.name());
    for node in of_a.root().children() {
        let same = others.get(node.name());
        let Some(same) = same.filter(|other| other.leaves().len() == node.leaves().len()) else {
            continue;
        };
        for (leaf_a, leaf_b) in node.leaves().zip(same.leaves()) {
            let path = of_a.leaf_node(leaf_a).map(|leaf| leaf.path().dotted());
            out.extend(path.map(|path| (path, leaf_a, leaf_b)));
        }
    }
    out
}

/// The first of each name.
pub(super) fn by_name<'a, T>(
    all: impl Iterator<Item = T>,
    name: impl Fn(&T) -> &'a str,
) -> HashMap<&'a str, T> {
    let mut found = HashMap::new();
    for one in all {
        found.entry(name(&one)).or_insert(one);
    }
    found
}

fn fields(a: &[FieldRef], b: &[FieldRef], above: &str, out: &mut Vec<FactDiff>) {
    let path = |field: &Field| match above {
        "" => field.name().clone(),
        above => format!("{above}.{}", field.name()),
    };
    let (of_a, of_b) =
        (by_name(a.iter(), |field| field.name()), by_name(b.iter(), |field| field.name()));
    for field in a {
        match of_b.get(field.name().as_str()) {
            Some(other) => self::field(field, other, &path(field), out),
            None => compare(out, Some(&path(field)), "column", Some(type_of(field)), None),
        }
    }
    for field in b.iter().filter(|field| !of_a.contains_key(field.name().as_str())) {
        compare(out, Some(&path(field)), "column", None, Some(type_of(field)));
    }
}

fn field(a: &FieldRef, b: &FieldRef, path: &str, out: &mut Vec<FactDiff>) {
    let nulls =
        |field: &Field| Some(if field.is_nullable() { "nullable" } else { "required" }.to_owned());
    compare(out, Some(path), "nulls", nulls(a), nulls(b));
    let extension = |field: &Field| field.extension_type_name().map(str::to_owned);
    compare(out, Some(path), "extension", extension(a), extension(b));
    match (a.data_type(), b.data_type()) {
        (DataType::Struct(x), DataType::Struct(y)) => fields(x, y, path, out),
        (DataType::List(x), DataType::List(y))
        | (DataType::LargeList(x), DataType::LargeList(y))
        | (DataType::FixedSizeList(x, _), DataType::FixedSizeList(y, _)) => {
            field(x, y, &format!("{path}[]"), out)
        }
        (DataType::Map(x, _), DataType::Map(y, _)) => {
            if let (DataType::Struct(x), DataType::Struct(y)) = (x.data_type(), y.data_type()) {
                for (part, (x, y)) in ["key", "value"].into_iter().zip(x.iter().zip(y)) {
                    field(x, y, &format!("{path}.{part}"), out);
                }
            }
        }
        (x, y) if is_comparable(x, y) => {}
        _ => compare(out, Some(path), "type", Some(type_of(a)), Some(type_of(b))),
    }
}

fn type_of(field: &FieldRef) -> String {
    field.data_type().to_string()
}

/// The differences of how the files are written.
pub(super) fn layout(a: &Reader, b: &Reader) -> Result<Vec<FactDiff>> {
    let mut out = Vec::new();
    let number = |n: u64| Some(n.to_string());
    compare(&mut out, None, "bytes", number(a.file_len()), number(b.file_len()));
    let groups = |reader: &Reader| Some(reader.metadata().row_groups().to_string());
    compare(&mut out, None, "row groups", groups(a), groups(b));
    let rows = |reader: &Reader| {
        let groups = 0..reader.metadata().row_groups();
        let most = groups.filter_map(|group| reader.metadata().row_group_rows(group).ok()).max();
        most.map(|rows| rows.to_string())
    };
    compare(&mut out, None, "rows of the largest row group", rows(a), rows(b));
    let writer = |reader: &Reader| reader.metadata().created_by().map(str::to_owned);
    compare(&mut out, None, "writer", writer(a), writer(b));
    key_values(a, b, &mut out);
    for (column, leaf_a, leaf_b) in leaf_pairs(a, b) {
        let (of_a, of_b) = (ChunkFacts::new(a, leaf_a)?, ChunkFacts::new(b, leaf_b)?);
        let column = Some(column.as_str());
        let joined = |set: BTreeSet<String>| Some(set.into_iter().collect::<Vec<_>>().join(", "));
        let physical = |reader: &Reader, leaf: usize| {
            reader.metadata().schema().leaf(leaf).ok().map(|leaf| leaf.physical.to_string())
        };
        compare(&mut out, column, "physical type", physical(a, leaf_a), physical(b, leaf_b));
        compare(&mut out, column, "codec", joined(of_a.codecs), joined(of_b.codecs));
        compare(&mut out, column, "encodings", joined(of_a.encodings), joined(of_b.encodings));
        compare(
            &mut out,
            column,
            "compressed bytes",
            number(of_a.compressed),
            number(of_b.compressed),
        );
        let (raw_a, raw_b) = (of_a.uncompressed, of_b.uncompressed);
        compare(&mut out, column, "uncompressed bytes", number(raw_a), number(raw_b));
        let (parts_a, parts_b) = (of_a.parts, of_b.parts);
        compare(&mut out, column, "beside its pages", joined(parts_a), joined(parts_b));
    }
    Ok(out)
}

fn key_values(a: &Reader, b: &Reader, out: &mut Vec<FactDiff>) {
    let (of_a, of_b) = (a.metadata().key_values().iter(), b.metadata().key_values().iter());
    let (of_a, of_b) = (by_name(of_a, |pair| &pair.key), by_name(of_b, |pair| &pair.key));
    let all: BTreeSet<&str> = of_a.keys().chain(of_b.keys()).copied().collect();
    for key in all {
        let value = |of: &HashMap<&str, &KeyValue>| {
            of.get(key).map(|pair| pair.value.clone().unwrap_or_default())
        };
        let short = |text: String| format!("{key}: {}", text.chars().take(200).collect::<String>());
        let (of_a, of_b) = (value(&of_a), value(&of_b));
        if of_a != of_b {
            compare(out, None, "key-value metadata", of_a.map(short), of_b.map(short));
        }
    }
}

/// Facts of the column chunks of a leaf, over all row groups.
#[derive(Default)]
struct ChunkFacts {
    codecs: BTreeSet<String>,
    encodings: BTreeSet<String>,
    compressed: u64,
    uncompressed: u64,
    /// Indexes and filters that any of them has.
    parts: BTreeSet<String>,
}

impl ChunkFacts {
    fn new(reader: &Reader, leaf: usize) -> Result<Self> {
        let mut facts = Self::default();
        for row_group in 0..reader.metadata().row_groups() {
            let chunk = reader.metadata().column_chunk(row_group, leaf)?;
            let mut has = |what: &str, is_there: bool| {
                if is_there {
                    facts.parts.insert(what.to_owned());
                }
            };
            has("column index", chunk.column_index_offset.is_some());
            has("offset index", chunk.offset_index_offset.is_some());
            let Some(meta) = chunk.meta_data else { continue };
            has("bloom filter", meta.bloom_filter_offset.is_some());
            has("dictionary", meta.dictionary_page_offset.is_some());
            facts.codecs.insert(meta.codec.to_string());
            facts.encodings.extend(meta.encodings.iter().map(ToString::to_string));
            let bytes = |n: i64| u64::try_from(n).unwrap_or(0);
            facts.compressed = facts.compressed.saturating_add(bytes(meta.total_compressed_size));
            let raw = bytes(meta.total_uncompressed_size);
            facts.uncompressed = facts.uncompressed.saturating_add(raw);
        }
        Ok(facts)
    }
}

/// The differences of what the files state of their values, over all row groups.
pub(super) fn statistics(a: &Reader, b: &Reader) -> Result<Vec<FactDiff>> {
    let mut out = Vec::new();
    for (column, leaf_a, leaf_b) in leaf_pairs(a, b) {
        let of = |reader: &Reader, leaf: usize| {
            reader.metadata().column_statistics(leaf, &ArrowOptions::new().with_hint(false))
        };
        let at = |error: Error| error.at_column(column.as_str());
        let (of_a, of_b) = (of(a, leaf_a).map_err(at)?, of(b, leaf_b).map_err(at)?);
        let column = Some(column.as_str());
        let nulls = |of: &ColumnStatistics| {
            // Unknown, if a row group does not say.
            (of.null_count.null_count() == 0).then(|| {
                of.null_count
                    .values()
                    .iter()
                    .fold(0u64, |sum, n| sum.saturating_add(*n))
                    .to_string()
            })
        };
        compare(&mut out, column, "nulls", nulls(&of_a), nulls(&of_b));
        let (min_a, min_b) = (bound(&of_a.min, false)?, bound(&of_b.min, false)?);
        compare(&mut out, column, "minimum", min_a, min_b);
        let (max_a, max_b) = (bound(&of_a.max, true)?, bound(&of_b.max, true)?);
        compare(&mut out, column, "maximum", max_a, max_b);
    }
    Ok(out)
}

/// The bound of all row groups that state one.
fn bound(all: &ArrayRef, is_max: bool) -> Result<Option<String>> {
    let Ok(order) = make_comparator(all, all, arrow_schema::SortOptions::default()) else {
        return Ok(None);
    };
    let stated = (0..all.len()).filter(|at| all.is_valid(*at));
    let by = |a: &usize, b: &usize| order(*a, *b);
    let Some(at) = (if is_max { stated.max_by(by) } else { stated.min_by(by) }) else {
        return Ok(None);
    };
    let one = all.slice(at, 1);
    let field = Field::new("bound", one.data_type().clone(), true);
    let mut forms = Forms::new(ValueForms::default());
    forms.look_at_column(&one, &field);
    Ok(ValuesOf::new(&forms).column(&one, &field)?.text(0)?)
}
