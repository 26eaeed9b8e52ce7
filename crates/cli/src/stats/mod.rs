//! `stats`: the statistics of a file.

mod bounds;
mod tally;
mod values;

use std::cmp::Ordering;

use marquetry::Reader;
use marquetry::format::{ColumnMetaData, GeospatialStatistics};
use marquetry::schema::Leaf;
use serde_json::{Value, json};

use self::bounds::Bound;
use crate::args::{By, Global, Stats};
use crate::failure::{Failure, Result};
use crate::geo;
use crate::input;
use crate::output::{bytes, count, share};
use crate::report::{Listing, Report, Section, with_keys};
use crate::walk;

/// Lists statistics by column, column chunk, row group or page.
pub(crate) fn run(command: &Stats, global: &Global) -> Result<()> {
    if command.values {
        return values::run(command, global);
    }
    let (mut lines, mut listing) = (Vec::new(), Listing::new(global));
    let paths = input::paths(&command.files.files)?;
    let (sections, end) = input::each_readable(&paths, global, |path| {
        let reader = input::open(path, global)?;
        let leaves = input::leaves(&reader, path, &command.columns.names())?;
        let section =
            Section::new(path, headers(command.by)).with_expendable(&["ratio", "compressed"]);
        let mut file = File {
            path,
            reader: &reader,
            global,
            section,
            lines: &mut lines,
            listing: &mut listing,
        };
        match command.by {
            By::Rowgroup if command.columns.names().is_empty() => file.row_groups(None)?,
            By::Rowgroup => file.row_groups(Some(&leaves))?,
            _ => leaves.into_iter().try_for_each(|leaf| file.leaf(leaf, command.by))?,
        }
        Ok(file.section)
    })?;
    let by = match command.by {
        By::Column => "column",
        By::Chunk => "chunk",
        By::Rowgroup => "rowgroup",
        By::Page => "page",
    };
    let (json, records) = match listing.is_csv() {
        true => (Value::Null, lines),
        false => {
            let lines = Value::Array(lines);
            (with_keys([("by", json!(by)), ("stats", lines)], &Value::Null), Vec::new())
        }
    };
    Report { command: "stats", json, records, sections }.print(global)?;
    end
}

fn headers(by: By) -> &'static [&'static str] {
    match by {
        By::Rowgroup => &[">row group", ">rows", ">compressed", ">raw", ">ratio", "sorted by"],
        By::Column => &[
            "column",
            ">values",
            ">nulls",
            ">NaN",
            "min",
            "max",
            ">distinct",
            ">compressed",
            ">ratio",
        ],
        By::Chunk => &[
            "column",
            ">row group",
            ">values",
            ">nulls",
            ">NaN",
            "min",
            "max",
            ">distinct",
            ">compressed",
            ">ratio",
        ],
        By::Page => {
            &["column", ">row group", ">page", ">values", ">nulls", "min", "max", ">compressed"]
        }
    }
}

/// What is known of the values of a column, or of a chunk of it.
#[derive(Clone)]
struct Known {
    values: u64,
    nulls: Option<u64>,
    nans: Option<u64>,
    distinct: Option<u64>,
    min: Option<Bound>,
    max: Option<Bound>,
    geospatial: Option<GeospatialStatistics>,
    compressed: u64,
    raw: u64,
}

impl Known {
    fn of_chunk(leaf: &Leaf, meta: &ColumnMetaData) -> Self {
        let statistics = meta.statistics.clone().unwrap_or_default();
        let (min, max) = bounds::of_chunk(leaf, &statistics);
        let number = |n: Option<i64>| n.and_then(|n| u64::try_from(n).ok());
        let size = |n: i64| u64::try_from(n).unwrap_or_default();
        Self {
            values: size(meta.num_values),
            nulls: number(statistics.null_count),
            nans: number(statistics.nan_count),
            distinct: number(statistics.distinct_count),
            min,
            max,
            geospatial: meta.geospatial_statistics.clone().filter(|_| geo::is_geospatial(leaf)),
            compressed: size(meta.total_compressed_size),
            raw: size(meta.total_uncompressed_size),
        }
    }

    /// Whether there is nothing that bounds could be of.
    fn only_nulls(&self) -> bool {
        self.nulls == Some(self.values)
    }

    /// The same of both: unknown where one of them does not say it.
    fn and(self, other: Self) -> Self {
        let both = |a: Option<u64>, b: Option<u64>| a?.checked_add(b?);
        let only_nulls = (self.only_nulls(), other.only_nulls());
        let (min, max) = match only_nulls {
            (true, _) => (other.min, other.max),
            (_, true) => (self.min, self.max),
            _ => {
                let either = |a: Option<Bound>, b: Option<Bound>, wanted| a?.either(b?, wanted);
                (
                    either(self.min, other.min, Ordering::Less),
                    either(self.max, other.max, Ordering::Greater),
                )
            }
        };
        let geospatial = match (only_nulls, self.geospatial, other.geospatial) {
            ((true, _), _, of) | ((_, true), of, _) => of,
            (_, Some(a), Some(b)) => Some(geo::both(a, b)),
            _ => None,
        };
        Self {
            values: self.values.saturating_add(other.values),
            nulls: both(self.nulls, other.nulls),
            nans: both(self.nans, other.nans),
            // The same values may be in both.
            distinct: None,
            min,
            max,
            geospatial,
            compressed: self.compressed.saturating_add(other.compressed),
            raw: self.raw.saturating_add(other.raw),
        }
    }

    fn cells(&self, global: &Global) -> Vec<String> {
        let shown = |n: Option<u64>| n.map_or_else(String::new, |n| count(n, global));
        let bbox = self.geospatial.as_ref().and_then(|found| found.bbox.as_ref());
        let bound = |bound: &Option<Bound>, least| match (bound, bbox) {
            (Some(bound), _) => bound.text(),
            (None, Some(bbox)) => geo::corner(bbox, least),
            (None, None) => String::new(),
        };
        vec![
            count(self.values, global),
            shown(self.nulls),
            shown(self.nans),
            bound(&self.min, true),
            bound(&self.max, false),
            shown(self.distinct),
            bytes(self.compressed, global),
            share(self.compressed, self.raw),
        ]
    }

    fn json(&self) -> Value {
        let bound = |bound: &Option<Bound>| bound.as_ref().map(Bound::json);
        let exact = |bound: &Option<Bound>| bound.as_ref().and_then(|bound| bound.exact);
        json!({
            "values": self.values, "nulls": self.nulls, "nans": self.nans,
            "min": bound(&self.min), "max": bound(&self.max),
            "min_exact": exact(&self.min), "max_exact": exact(&self.max), "distinct": self.distinct,
            "geospatial": self.geospatial.as_ref().map(geo::json),
            "compressed_bytes": self.compressed, "uncompressed_bytes": self.raw,
        })
    }
}

/// A file, and what was found in it so far.
struct File<'a> {
    path: &'a str,
    reader: &'a Reader,
    global: &'a Global,
    section: Section,
    lines: &'a mut Vec<Value>,
    listing: &'a mut Listing,
}

impl File<'_> {
    fn leaf(&mut self, leaf: usize, by: By) -> Result<()> {
        let footer = self.reader.metadata();
        let leaf = footer.schema().leaf(leaf)?;
        let column = leaf.path.dotted();
        let mut all: Option<Known> = None;
        for group in 0..footer.row_groups() {
            let chunk = footer.column_chunk(group, leaf.index)?;
            let Some(meta) = chunk.meta_data else { continue };
            if by == By::Page {
                self.pages(&leaf, group)?;
                continue;
            }
            let known = Known::of_chunk(&leaf, &meta);
            if by == By::Column {
                all = Some(match all {
                    None => known,
                    Some(all) => all.and(known),
                });
                continue;
            }
            let place = [("column", json!(column)), ("row_group", json!(group))];
            self.add(place.to_vec(), &known)?;
        }
        if let Some(known) = all {
            self.add(vec![("column", json!(column))], &known)?;
        }
        Ok(())
    }

    /// Adds a line: where it is of, and what is known.
    fn add(&mut self, place: Vec<(&str, Value)>, known: &Known) -> Result<()> {
        let texts = place.iter().map(|(_, value)| value);
        let texts =
            texts.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
        let cells = texts.chain(known.cells(self.global)).collect();
        self.line(place, || cells, || known.json())
    }

    /// Adds a line of the form that is shown.
    fn line(
        &mut self,
        place: Vec<(&str, Value)>,
        cells: impl FnOnce() -> Vec<String>,
        found: impl FnOnce() -> Value,
    ) -> Result<()> {
        if self.listing.is_table() {
            let cells = cells();
            self.listing.take_row(self.path, &cells)?;
            self.section.rows.push(cells);
            return Ok(());
        }
        let mut line = json!({ "file": self.path });
        if let (Some(line), Value::Object(found)) = (line.as_object_mut(), found()) {
            line.extend(place.into_iter().map(|(key, value)| (key.to_owned(), value)));
            line.extend(found);
        }
        self.listing.take_json(self.path, &line)?;
        self.lines.push(line);
        Ok(())
    }

    fn row_groups(&mut self, leaves: Option<&[usize]>) -> Result<()> {
        let footer = self.reader.metadata();
        for (i, group) in footer.index().head().row_groups.iter().enumerate() {
            let rows = footer.row_group_rows(i)?;
            let size = |n: i64| u64::try_from(n).unwrap_or_default();
            let (mut raw, mut compressed) = (
                size(group.total_byte_size),
                group.total_compressed_size.and_then(|n| u64::try_from(n).ok()),
            );
            if let Some(leaves) = leaves {
                (raw, compressed) = (0, Some(0));
                for leaf in leaves {
                    let chunk = footer.column_chunk(i, *leaf)?;
                    let Some(meta) = chunk.meta_data else { continue };
                    raw += size(meta.total_uncompressed_size);
                    compressed = compressed.map(|n| n + size(meta.total_compressed_size));
                }
            }
            let sorted: Vec<String> = group
                .sorting_columns
                .iter()
                .flatten()
                .map(|s| {
                    let name = usize::try_from(s.column_idx)
                        .ok()
                        .and_then(|i| footer.schema().leaf_node(i).ok());
                    let name =
                        name.map_or_else(|| s.column_idx.to_string(), |node| node.path().dotted());
                    format!("{name}{}", if s.descending { " descending" } else { "" })
                })
                .collect();
            let cells = vec![
                i.to_string(),
                count(rows, self.global),
                compressed.map_or_else(String::new, |n| bytes(n, self.global)),
                bytes(raw, self.global),
                compressed.map_or_else(String::new, |n| share(n, raw)),
                sorted.join(", "),
            ];
            let found = || {
                json!({
                    "rows": rows, "compressed_bytes": compressed, "uncompressed_bytes": raw,
                    "sorted_by": sorted,
                })
            };
            self.line(vec![("row_group", json!(i))], || cells, found)?;
        }
        Ok(())
    }

    fn pages(&mut self, leaf: &Leaf, group: usize) -> Result<()> {
        let index = self.reader.page_index(group, leaf.index).ok();
        let index = index.and_then(|index| index.column_index);
        let place = |e: Failure| match e {
            Failure::File(e) => Failure::File(e.at_row_group(group).at_column(leaf.path.dotted())),
            other => other,
        };
        let pages = walk::pages(self.reader, (group, leaf.index), self.path, self.listing)
            .map_err(place)?;
        for (i, page) in pages.iter().filter(|page| page.is_data()).enumerate() {
            let index = index.as_ref().filter(|index| index.null_pages.get(i) == Some(&false));
            let of = |list: Option<&Vec<Vec<u8>>>| {
                let bytes = list.filter(|_| leaf.ordered).and_then(|list| list.get(i));
                bytes.map(|bytes| Bound::new(leaf, bytes))
            };
            let min = of(index.map(|index| &index.min_values));
            let max = of(index.map(|index| &index.max_values));
            let nulls = index
                .and_then(|index| index.null_counts.as_ref())
                .and_then(|nulls| nulls.get(i))
                .copied();
            let size = u64::from(page.header.compressed_page_size.max(0).cast_unsigned());
            let column = leaf.path.dotted();
            let bound =
                |bound: &Option<Bound>| bound.as_ref().map_or_else(String::new, Bound::text);
            let cells = || {
                vec![
                    column.clone(),
                    group.to_string(),
                    i.to_string(),
                    page.values().map_or_else(String::new, |n| n.to_string()),
                    nulls.map_or_else(String::new, |n| n.to_string()),
                    bound(&min),
                    bound(&max),
                    bytes(size, self.global),
                ]
            };
            let place =
                [("column", json!(column)), ("row_group", json!(group)), ("page", json!(i))];
            let found = || {
                json!({
                    "values": page.values(), "nulls": nulls, "min": min.as_ref().map(Bound::json),
                    "max": max.as_ref().map(Bound::json), "compressed_bytes": size,
                })
            };
            self.line(place.to_vec(), cells, found)?;
        }
        Ok(())
    }
}
