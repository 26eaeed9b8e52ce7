//! `stats` lists the statistics of a file.

mod bounds;
mod tally;
mod value_counts;
mod values;

use std::cmp::Ordering;

use marquetry::Reader;
use marquetry::format::{ColumnIndex, ColumnMetaData};
use marquetry::read::Footer;
use marquetry::schema::Leaf;
use serde::{Serialize, Serializer};

pub(crate) use self::bounds::Bound;
use crate::args::{By, Global, Stats};
use crate::failure::{Result, after_printing};
use crate::geo::{self, Shapes};
use crate::info::{size, sorted_by};
use crate::input;
use crate::output::share;
use crate::report::{self, Column, Report, ReportMemory, Tables};
use crate::walk;

/// Lists statistics by column, column chunk, row group or page.
pub(crate) fn run(command: &Stats, global: &Global) -> Result<()> {
    match command.by {
        _ if command.values => values::run(command, global),
        By::Column => list(command, global, columns),
        By::Chunk => list(command, global, chunks),
        By::Rowgroup => list(command, global, row_groups),
        By::Page => list(command, global, pages),
    }
}

/// Prints the lines that `look` adds for each file.
fn list<L: StatsLine>(
    command: &Stats,
    global: &Global,
    look: impl Fn(&mut FileLines<'_, L>) -> Result<()>,
) -> Result<()> {
    let mut memory = ReportMemory::new(global);
    let names = command.columns.names();
    let paths = input::paths(&command.files.files)?;
    let (stats, end) = input::each_readable(&paths, global, |path| {
        let reader = input::open(path, global)?;
        let leaves = input::leaves(&reader, path, &names)?;
        let are_chosen = !names.is_empty();
        let (lines, memory) = (Vec::new(), &mut memory);
        let mut file =
            FileLines { path, reader: &reader, leaves: &leaves, are_chosen, lines, memory };
        look(&mut file)?;
        Ok((path.to_owned(), file.lines))
    })?;
    after_printing(report::print(&StatsReport { by: command.by, stats }, global), end)
}

/// The lines of all files.
#[derive(Serialize)]
struct StatsReport<L: Serialize> {
    by: By,
    #[serde(serialize_with = "without_files")]
    stats: Vec<(String, Vec<L>)>,
}

fn without_files<L: Serialize, S: Serializer>(
    files: &[(String, Vec<L>)],
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_seq(files.iter().flat_map(|(_, lines)| lines))
}

/// The statistics of a column, a column chunk, a row group or a page.
trait StatsLine: Serialize {
    fn columns(by: By) -> Vec<Column<'static, Self>>
    where
        Self: Sized;
}

impl<L: StatsLine> Report for StatsReport<L> {
    const COMMAND: &'static str = "stats";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        self.stats.iter().flat_map(|(_, lines)| lines)
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        let columns = L::columns(self.by);
        let mut files = self.stats.iter();
        files
            .try_for_each(|(file, lines)| out.show(file, &columns, lines, &["ratio", "compressed"]))
    }
}

/// A file, and what was found in it so far.
struct FileLines<'a, L> {
    path: &'a str,
    reader: &'a Reader,
    leaves: &'a [usize],
    /// Whether the columns were chosen.
    are_chosen: bool,
    lines: Vec<L>,
    memory: &'a mut ReportMemory,
}

impl<L> FileLines<'_, L> {
    /// Adds a line that holds `inside` bytes beside itself and the path.
    fn add(&mut self, line: L, inside: usize) -> Result<()> {
        self.memory.take(self.path, &line, inside + self.path.len())?;
        self.lines.push(line);
        Ok(())
    }

    /// Calls `each` with each leaf and row group, and the metadata of the column chunk.
    fn each_chunk(
        &mut self,
        mut each: impl FnMut(&mut Self, &Leaf, usize, &ColumnMetaData) -> Result<()>,
    ) -> Result<()> {
        let footer = self.reader.metadata();
        for leaf in self.leaves {
            let leaf = footer.schema().leaf(*leaf)?;
            for group in 0..footer.row_groups() {
                if let Some(meta) = footer.column_chunk(group, leaf.index)?.meta_data {
                    each(self, &leaf, group, &meta)?;
                }
            }
        }
        Ok(())
    }
}

/// The statistics of a column, or of a chunk of it.
#[derive(Serialize)]
struct ChunkLine {
    file: String,
    column: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    row_group: Option<usize>,
    #[serde(flatten)]
    statistics: ChunkStatistics,
}

/// Facts that are unknown are `None`.
#[derive(Default, Serialize)]
struct ChunkStatistics {
    values: Option<u64>,
    nulls: Option<u64>,
    nans: Option<u64>,
    min: Option<Bound>,
    max: Option<Bound>,
    min_exact: Option<bool>,
    max_exact: Option<bool>,
    distinct: Option<u64>,
    geospatial: Option<Shapes>,
    compressed_bytes: Option<u64>,
    uncompressed_bytes: Option<u64>,
}

fn columns(file: &mut FileLines<'_, ChunkLine>) -> Result<()> {
    let (leaves, row_groups) = (file.leaves, file.reader.metadata().row_groups());
    for leaf in leaves {
        let mut all: Option<(String, ChunkStatistics)> = None;
        let mut readable = 0;
        file.leaves = std::slice::from_ref(leaf);
        file.each_chunk(|file, leaf, _, meta| {
            readable += 1;
            let chunk = ChunkStatistics::new(file.reader.metadata(), leaf, meta);
            all = Some(match all.take() {
                None => (leaf.path.dotted(), chunk),
                Some((column, all)) => (column, all.and(chunk)),
            });
            Ok(())
        })?;
        if let Some((column, mut statistics)) = all {
            if readable < row_groups {
                statistics = statistics.and(ChunkStatistics::default());
            }
            file.add_chunk(column, None, statistics)?;
        }
    }
    Ok(())
}

fn chunks(file: &mut FileLines<'_, ChunkLine>) -> Result<()> {
    file.each_chunk(|file, leaf, group, meta| {
        let statistics = ChunkStatistics::new(file.reader.metadata(), leaf, meta);
        file.add_chunk(leaf.path.dotted(), Some(group), statistics)
    })
}

impl FileLines<'_, ChunkLine> {
    fn add_chunk(
        &mut self,
        column: String,
        row_group: Option<usize>,
        statistics: ChunkStatistics,
    ) -> Result<()> {
        let bounds = [&statistics.min, &statistics.max].into_iter().flatten();
        let inside = column.len() + bounds.map(Bound::memory_size).sum::<usize>();
        self.add(ChunkLine { file: self.path.to_owned(), column, row_group, statistics }, inside)
    }
}

impl ChunkStatistics {
    fn new(footer: &Footer, leaf: &Leaf, meta: &ColumnMetaData) -> Self {
        let statistics = meta.statistics.clone().unwrap_or_default();
        let number = |n: Option<i64>| n.and_then(|n| u64::try_from(n).ok());
        let geospatial = meta.geospatial_statistics.clone().filter(|_| geo::is_geospatial(leaf));
        Self {
            values: Some(size(meta.num_values)),
            nulls: number(statistics.null_count),
            nans: number(statistics.nan_count),
            min: None,
            max: None,
            min_exact: None,
            max_exact: None,
            distinct: number(statistics.distinct_count),
            geospatial: geospatial.map(Shapes::new),
            compressed_bytes: Some(size(meta.total_compressed_size)),
            uncompressed_bytes: Some(size(meta.total_uncompressed_size)),
        }
        .with_bounds(bounds::of_chunk(footer, leaf, &statistics))
    }

    fn with_bounds(self, (min, max): (Option<Bound>, Option<Bound>)) -> Self {
        let is_exact = |bound: &Option<Bound>| bound.as_ref().and_then(|bound| bound.exact);
        Self { min_exact: is_exact(&min), max_exact: is_exact(&max), min, max, ..self }
    }

    /// Whether there is nothing that bounds could be of.
    fn only_nulls(&self) -> bool {
        self.nulls.is_some() && self.nulls == self.values
    }

    /// The same of both: unknown where one of them does not say it.
    fn and(self, other: Self) -> Self {
        let both = |a: Option<u64>, b: Option<u64>| a?.checked_add(b?);
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        let either = |a: Option<Bound>, b: Option<Bound>, wanted| a?.either(b?, wanted);
        let (bounds, geospatial) = match (self.only_nulls(), other.only_nulls()) {
            (true, _) => ((other.min, other.max), other.geospatial),
            (_, true) => ((self.min, self.max), self.geospatial),
            _ => (
                (
                    either(self.min, other.min, Ordering::Less),
                    either(self.max, other.max, Ordering::Greater),
                ),
                self.geospatial.zip(other.geospatial).map(|(a, b)| a.and(b)),
            ),
        };
        Self {
            values: sum(self.values, other.values),
            nulls: both(self.nulls, other.nulls),
            nans: both(self.nans, other.nans),
            min: None,
            max: None,
            // The same values may be in both.
            distinct: None,
            geospatial,
            compressed_bytes: sum(self.compressed_bytes, other.compressed_bytes),
            uncompressed_bytes: sum(self.uncompressed_bytes, other.uncompressed_bytes),
            ..self
        }
        .with_bounds(bounds)
    }

    /// A bound for people: of geometries the corner of their box.
    fn shown(&self, bound: &Option<Bound>, corner: fn(&Shapes) -> Option<String>) -> String {
        match bound {
            Some(bound) => bound.text(),
            None => self.geospatial.as_ref().and_then(corner).unwrap_or_default(),
        }
    }
}

impl StatsLine for ChunkLine {
    fn columns(by: By) -> Vec<Column<'static, Self>> {
        let mut columns = vec![
            Column::text("column", |of: &Self| of.column.clone()),
            Column::count("values", |of| of.statistics.values),
            Column::count("nulls", |of| of.statistics.nulls),
            Column::count("NaN", |of| of.statistics.nans),
            Column::text("min", |of| of.statistics.shown(&of.statistics.min, Shapes::least)),
            Column::text("max", |of| of.statistics.shown(&of.statistics.max, Shapes::greatest)),
            Column::count("distinct", |of| of.statistics.distinct),
            Column::bytes("compressed", |of| of.statistics.compressed_bytes),
            Column::number("ratio", |of| {
                known_share(of.statistics.compressed_bytes, of.statistics.uncompressed_bytes)
            }),
        ];
        if by == By::Chunk {
            columns.insert(1, Column::number("row group", |of| shown(of.row_group)));
        }
        columns
    }
}

/// The sizes of a row group.
#[derive(Serialize)]
struct RowGroupLine {
    file: String,
    row_group: usize,
    rows: u64,
    compressed_bytes: Option<u64>,
    uncompressed_bytes: Option<u64>,
    sorted_by: Vec<String>,
}

fn row_groups(file: &mut FileLines<'_, RowGroupLine>) -> Result<()> {
    let footer = file.reader.metadata();
    for (i, group) in footer.index().head().row_groups.iter().enumerate() {
        let mut line = RowGroupLine {
            file: file.path.to_owned(),
            row_group: i,
            rows: footer.row_group_rows(i)?,
            compressed_bytes: group.total_compressed_size.and_then(|n| u64::try_from(n).ok()),
            uncompressed_bytes: Some(size(group.total_byte_size)),
            sorted_by: sorted_by(file.reader, group.sorting_columns.as_deref()),
        };
        if file.are_chosen {
            (line.compressed_bytes, line.uncompressed_bytes) = (Some(0), Some(0));
            for leaf in file.leaves {
                let meta = footer.column_chunk(i, *leaf)?.meta_data;
                let add = |whole: Option<u64>, size_of: fn(&ColumnMetaData) -> i64| {
                    Some(whole?.saturating_add(size(size_of(meta.as_ref()?))))
                };
                line.compressed_bytes =
                    add(line.compressed_bytes, |meta| meta.total_compressed_size);
                line.uncompressed_bytes =
                    add(line.uncompressed_bytes, |meta| meta.total_uncompressed_size);
            }
        }
        let names = line.sorted_by.iter().map(|name| name.len() + size_of::<String>());
        let inside = names.sum();
        file.add(line, inside)?;
    }
    Ok(())
}

impl StatsLine for RowGroupLine {
    fn columns(_: By) -> Vec<Column<'static, Self>> {
        vec![
            Column::number("row group", |of: &Self| of.row_group.to_string()),
            Column::count("rows", |of| Some(of.rows)),
            Column::bytes("compressed", |of| of.compressed_bytes),
            Column::bytes("raw", |of| of.uncompressed_bytes),
            Column::number("ratio", |of| known_share(of.compressed_bytes, of.uncompressed_bytes)),
            Column::text("sorted by", |of| of.sorted_by.join(", ")),
        ]
    }
}

/// The statistics of a data page.
#[derive(Serialize)]
struct PageLine {
    file: String,
    column: String,
    row_group: usize,
    page: usize,
    values: Option<i32>,
    nulls: Option<i64>,
    min: Option<Bound>,
    max: Option<Bound>,
    compressed_bytes: u64,
}

fn pages(file: &mut FileLines<'_, PageLine>) -> Result<()> {
    file.each_chunk(|file, leaf, row_group, _| {
        let index = file.reader.page_index(row_group, leaf.index).ok();
        let index = index.and_then(|index| index.column_index);
        let column = leaf.path.dotted();
        let are_trusted = file.reader.metadata().trusts_page_bounds(leaf);
        let chunk = (row_group, leaf.index);
        let pages = walk::pages(file.reader, chunk, file.path, file.memory)
            .map_err(|e| e.at_chunk(file.path, row_group, &column))?;
        for page in pages {
            let Some(number) = page.number else { continue };
            let nulls = index.as_ref().and_then(|index| index.null_counts.as_ref());
            // A page of nulls has no bounds.
            let has_bounds = |index: &&ColumnIndex| index.null_pages.get(number) == Some(&false);
            let index = index.as_ref().filter(|_| are_trusted).filter(has_bounds);
            let bound = |bounds: Option<&Vec<Vec<u8>>>| {
                bounds.and_then(|bounds| Some(Bound::new(leaf, bounds.get(number)?)))
            };
            let line = PageLine {
                file: file.path.to_owned(),
                column: column.clone(),
                row_group,
                page: number,
                values: page.values,
                nulls: nulls.and_then(|nulls| nulls.get(number)).copied(),
                min: bound(index.map(|index| &index.min_values)),
                max: bound(index.map(|index| &index.max_values)),
                compressed_bytes: u64::from(page.compressed_bytes.max(0).cast_unsigned()),
            };
            let bounds = [&line.min, &line.max].into_iter().flatten();
            let inside = column.len() + bounds.map(Bound::memory_size).sum::<usize>();
            file.add(line, inside)?;
        }
        Ok(())
    })
}

impl StatsLine for PageLine {
    fn columns(_: By) -> Vec<Column<'static, Self>> {
        vec![
            Column::text("column", |of: &Self| of.column.clone()),
            Column::number("row group", |of| of.row_group.to_string()),
            Column::number("page", |of| of.page.to_string()),
            Column::number("values", |of| shown(of.values)),
            Column::number("nulls", |of| shown(of.nulls)),
            Column::text("min", |of| of.min.as_ref().map_or_else(String::new, Bound::text)),
            Column::text("max", |of| of.max.as_ref().map_or_else(String::new, Bound::text)),
            Column::bytes("compressed", |of| Some(of.compressed_bytes)),
        ]
    }
}

/// A share for people; nothing where a part is not known.
fn known_share(part: Option<u64>, whole: Option<u64>) -> String {
    part.zip(whole).map_or_else(String::new, |(part, whole)| share(part, whole))
}

fn shown(number: Option<impl ToString>) -> String {
    number.map_or_else(String::new, |number| number.to_string())
}
