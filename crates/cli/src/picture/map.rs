//! The map: row groups below each other, as high as their rows; columns beside each other, as wide
//! as their bytes.

use super::canvas::{LEFT, MapPicture, WIDTH};
use super::measure::{self, facts, legend, tone};
use super::palette::class_by;
use super::xml::{Area, Xml, fitting, length, real, unit};
use crate::args::ColorBy;
use crate::layout::{Grid, GridCell, GridColumn, GridRow};
use crate::output::{bytes, count, counted};

/// Least width of a column, and least height of a row.
const MIN_WIDTH: f64 = 6.0;
const MIN_HEIGHT: f64 = 8.0;
/// Cells that are reached one by one by the keyboard; of more, columns are.
const MAX_STOPS: usize = 400;
/// The highest labels of columns, and the line of fields above them.
const LABELS: f64 = 110.0;
const FIELDS: f64 = 16.0;

/// The first lines of a picture.
pub(super) fn heading(picture: &MapPicture<'_>) -> String {
    let name = picture.layout.path.rsplit(['/', '\\']).next().unwrap_or_default();
    fitting(name, WIDTH / 2.0).unwrap_or_default() + &format!(" — {}", sizes(picture))
}

/// How large the file is.
pub(super) fn sizes(picture: &MapPicture<'_>) -> String {
    let MapPicture { layout, grid, global, .. } = picture;
    let rows = grid.rows.iter().fold(0u64, |sum, row| sum.saturating_add(row.rows));
    let size = bytes(layout.file_bytes(), global);
    match layout.problem() {
        Some(_) => format!("{size}; its footer cannot be read"),
        None => {
            let n = |n: usize, what| counted(n as u64, what, global);
            let (groups, leaves) = (n(grid.row_groups, "row group"), n(grid.leaves, "column"));
            format!("{size}, {}, {groups}, {leaves}", counted(rows, "row", global))
        }
    }
}

/// A sentence about cells that are summed up, if there are some.
pub(super) fn summed_up(picture: &MapPicture<'_>) -> Option<String> {
    let grid = picture.grid;
    let pairs = [
        ("columns", grid.leaves, grid.columns.len()),
        ("row groups", grid.row_groups, grid.rows.len()),
    ];
    let changed = pairs.iter().filter(|(_, all, shown)| all != shown);
    let texts = changed.map(|(what, all, shown)| {
        format!("{} {what} in {shown}", count(*all as u64, picture.global))
    });
    let text = texts.collect::<Vec<_>>().join(", ");
    (!text.is_empty()).then(|| format!("Neighbours are summed up: {text}."))
}

/// The picture in words.
pub(super) fn description(picture: &MapPicture<'_>) -> String {
    let mut out = format!(
        "{}. Row groups are rows of the picture, as high as their rows; columns are as wide as \
         their bytes. Colours show the {}.",
        sizes(picture),
        measure::title(picture.color_by)
    );
    if let Some(why) = picture.layout.problem() {
        out.push_str(&format!(" The footer cannot be read: {why}"));
    }
    if let Some(text) = summed_up(picture) {
        out.push_str(&format!(" {text}"));
    }
    if let Some(overlay) = picture.overlay {
        let groups = overlay.row_groups_pruned;
        out.push_str(&format!(
            " Faded: what {} prunes; {} rows are left, {groups} row groups are pruned.",
            overlay.condition,
            count(overlay.rows_left, picture.global)
        ));
    }
    out
}

/// Draws the map from `top` on; returns it, and where it ends.
pub(super) fn draw(picture: &MapPicture<'_>, by: &[ColorBy], top: f64) -> (String, f64) {
    let grid = picture.grid;
    let mut out = Xml::new();
    if let Some(problem) = picture.layout.problem() {
        let text = format!("The footer cannot be read: {problem}");
        let text = fitting(&text, WIDTH - 16.0).unwrap_or_default();
        out.element("text", &[("x", "8"), ("y", &unit(top + 14.0))], &text);
        return (out.finish(), top + 20.0);
    }
    let mut at = legends(picture, by, top, &mut out);
    at = notes(picture, at, &mut out);
    let places = Places::new(grid, at);
    at = labels(grid, &places, at, &mut out);
    let places = Places { top: at, ..places };
    cells(picture, by, &places, &mut out);
    marks(grid, &places, &mut out);
    row_labels(picture, &places, &mut out);
    veils(picture, &places, &mut out);
    if grid.cells().len() > MAX_STOPS {
        column_stops(picture, &places, &mut out);
    }
    (out.finish(), at + places.height())
}

/// Where columns and rows are.
struct Places {
    top: f64,
    /// Left and right ends.
    columns: Vec<(f64, f64)>,
    /// Upper and lower ends below the top.
    rows: Vec<(f64, f64)>,
}

impl Places {
    fn new(grid: &Grid, top: f64) -> Self {
        let widths = shares(&grid.columns, |column| column.bytes, WIDTH - LEFT - 8.0, MIN_WIDTH);
        let wanted = (real(grid.rows.len() as u64) * 22.0).clamp(90.0, 520.0);
        let heights = shares(&grid.rows, |row| row.rows, wanted, MIN_HEIGHT);
        Self { top, columns: ends(&widths, LEFT), rows: ends(&heights, 0.0) }
    }

    fn height(&self) -> f64 {
        self.rows.last().map_or(0.0, |(_, end)| *end)
    }

    fn area(&self, row: usize, column: usize) -> Option<Area> {
        let ((x, right), (y, bottom)) = (self.columns.get(column)?, self.rows.get(row)?);
        Some(Area { x: *x, y: self.top + y, width: right - x, height: bottom - y })
    }
}

/// Divides a length: each has at least `min`, and of what is left as much as it weighs.
fn shares<T>(items: &[T], weight: impl Fn(&T) -> u64, length: f64, min: f64) -> Vec<f64> {
    let n = real(items.len() as u64);
    let min = min.min(length / n.max(1.0));
    let all: f64 = items.iter().map(|item| real(weight(item))).sum();
    let left = (length - min * n).max(0.0);
    let share = |item: &T| match all {
        0.0 => left / n,
        all => left * real(weight(item)) / all,
    };
    items.iter().map(|item| min + share(item)).collect()
}

fn ends(lengths: &[f64], start: f64) -> Vec<(f64, f64)> {
    let step = |at: &mut f64, length: &f64| {
        let start = *at;
        *at += length;
        Some((start, *at))
    };
    lengths.iter().scan(start, step).collect()
}

/// The legend of each measure; one of them is shown. Returns where it ends.
fn legends(picture: &MapPicture<'_>, by: &[ColorBy], top: f64, out: &mut Xml) -> f64 {
    let file_bytes = picture.layout.file_bytes();
    let mut bottom = top;
    for &by in by {
        let name = measure::name(by);
        let class = format!("legend legend-{name}");
        out.open("g", &[("class", &class)]);
        let (mut x, mut y) = (8.0, top);
        let mut item = |out: &mut Xml, swatch: Option<&str>, text: &str, class: &str| {
            let room = if swatch.is_some() { 16.0 } else { 0.0 };
            let width = room + length(text) + 14.0;
            if x + width > WIDTH && x > 8.0 {
                (x, y) = (8.0, y + 16.0);
            }
            if let Some(swatch) = swatch {
                let area = Area { x, y, width: 12.0, height: 10.0 };
                area.rect(out, &format!("key {swatch}"));
            }
            let place = [("class", class), ("x", &*unit(x + room)), ("y", &*unit(y + 9.0))];
            out.element("text", &place, text);
            x += width;
        };
        item(out, None, &format!("{}:", measure::title(by)), "dim");
        for meaning in legend(picture.grid, by, file_bytes) {
            item(out, Some(&meaning.tone.class()), &meaning.label, "");
        }
        out.close("g");
        bottom = f64::max(bottom, y + 20.0);
    }
    bottom
}

/// The meaning of the marks in cells, as far as there are some.
fn notes(picture: &MapPicture<'_>, top: f64, out: &mut Xml) -> f64 {
    let grid = picture.grid;
    let has = |of: fn(&GridCell) -> usize| grid.cells().iter().any(|cell| of(cell) > 0);
    let mut notes = Vec::new();
    notes.extend(has(|cell| cell.dictionary_fallbacks).then_some("◥ dictionary given up"));
    notes.extend(has(|cell| cell.bloom_filters).then_some("● bloom filter"));
    notes.extend(has(|cell| cell.page_indexes).then_some("▁ page index"));
    notes.extend(has(|cell| cell.encrypted).then_some("▌ encrypted"));
    let mut lines = vec![notes.join("   ")];
    lines.extend(summed_up(picture));
    if let Some(overlay) = picture.overlay {
        let left = count(overlay.rows_left, picture.global);
        let condition = fitting(&overlay.condition, 400.0).unwrap_or_default();
        lines.push(format!("Faded: pruned by where {condition}. {left} rows are left to read."));
    }
    let mut at = top;
    for line in lines.iter().filter(|line| !line.is_empty()) {
        out.element("text", &[("class", "dim"), ("x", "8"), ("y", &unit(at + 9.0))], line);
        at += 16.0;
    }
    at
}

/// Names of columns, and of the fields that they are in. Returns where they end.
fn labels(grid: &Grid, places: &Places, top: f64, out: &mut Xml) -> f64 {
    /// A column is narrower than its name: the name is written upwards.
    const LINE: f64 = 10.0;
    let has_fields = grid.columns.iter().any(|column| !column.field.is_empty());
    let shown: Vec<(f64, f64, &str)> = grid
        .columns
        .iter()
        .zip(&places.columns)
        .map(|(column, (left, right))| (*left, right - left, own_name(column)))
        .collect();
    let lies_flat = |width: f64, name: &str| length(name) + 4.0 <= width;
    let upright = shown.iter().filter(|(_, width, name)| !lies_flat(*width, name));
    let highest = upright
        .filter(|(_, width, _)| *width >= LINE)
        .map(|(.., name)| length(name))
        .fold(12.0, f64::max);
    let height = highest.min(LABELS) + 6.0;
    let fields_at = top + if has_fields { FIELDS } else { 0.0 };
    let bottom = fields_at + height;
    for (x, width, name) in &shown {
        if lies_flat(*width, name) {
            let place = [("x", &*unit(x + 2.0)), ("y", &*unit(bottom - 4.0))];
            out.element("text", &place, name);
        } else if *width >= LINE {
            let Some(name) = fitting(name, LABELS) else { continue };
            let (x, y) = (unit(x + width / 2.0 + 3.5), unit(bottom - 4.0));
            let turn = format!("translate({x} {y}) rotate(-90)");
            out.element("text", &[("transform", &turn)], &name);
        }
    }
    if has_fields {
        fields(grid, places, top, out);
    }
    bottom
}

/// The name of a column within its top-level field.
fn own_name(column: &GridColumn) -> &str {
    match column.field.as_str() {
        "" => &column.name,
        field => {
            let rest = column.name.strip_prefix(field).and_then(|rest| rest.strip_prefix('.'));
            rest.unwrap_or(&column.name)
        }
    }
}

/// Brackets over the columns of one field.
fn fields(grid: &Grid, places: &Places, top: f64, out: &mut Xml) {
    let mut start = 0;
    while let Some(first) = grid.columns.get(start) {
        let rest = grid.columns.get(start..).unwrap_or_default();
        let n = rest.iter().take_while(|other| other.field == first.field).count().max(1);
        let ends = places.columns.get(start).zip(places.columns.get(start + n - 1));
        if let (false, Some(((left, _), (_, right)))) = (first.field.is_empty(), ends) {
            let y = top + FIELDS - 2.0;
            let (left, right) = (left + 1.0, right - 1.0);
            let path = format!("M{} {}v-3H{}v3", unit(left), unit(y + 3.0), unit(right));
            out.empty("path", &[("class", "line"), ("d", &path)]);
            if let Some(name) = fitting(&first.field, right - left) {
                let place = [("class", "dim"), ("x", &*unit(left)), ("y", &*unit(y - 4.0))];
                out.element("text", &place, &name);
            }
        }
        start += n;
    }
}

fn cells(picture: &MapPicture<'_>, by: &[ColorBy], places: &Places, out: &mut Xml) {
    let (grid, file_bytes) = (picture.grid, picture.layout.file_bytes());
    let has_stops = grid.cells().len() <= MAX_STOPS;
    let width = grid.columns.len().to_string();
    out.open("g", &[("class", "stops"), ("data-width", &width)]);
    for (i, row) in grid.rows.iter().enumerate() {
        for (j, (cell, column)) in grid.row(i).iter().zip(&grid.columns).enumerate() {
            let Some(area) = places.area(i, j) else { continue };
            let classes = by
                .iter()
                .map(|by| class_by(measure::name(*by), tone(cell, *by, file_bytes)))
                .collect::<Vec<_>>()
                .join(" ");
            let text = format!(
                "{}, {}: {}",
                column.name,
                row_name(row),
                facts(cell, picture.global).join(", ")
            );
            let [x, y, width, height] = area.units();
            let class = format!("cell {classes}");
            let at = cell.offset.map(|offset| format!("{offset:#x}"));
            let mut attributes = vec![
                ("class", &*class),
                ("x", &*x),
                ("y", &y),
                ("width", &width),
                ("height", &height),
            ];
            attributes.extend(at.as_deref().map(|at| ("data-at", at)));
            if has_stops {
                let index = if i == 0 && j == 0 { "0" } else { "-1" };
                attributes.extend([("tabindex", index), ("role", "img")]);
            }
            out.open("rect", &attributes);
            out.element("title", &[], &text);
            out.close("rect");
        }
    }
    out.close("g");
}

/// Marks of cells, as one path for each kind.
fn marks(grid: &Grid, places: &Places, out: &mut Xml) {
    let mut paths: [String; 4] = Default::default();
    let [fallbacks, filters, indexes, encrypted] = &mut paths;
    for i in 0..grid.rows.len() {
        for (j, cell) in grid.row(i).iter().enumerate() {
            // In a smaller one nothing could be seen.
            let area = places.area(i, j).filter(|area| area.width >= 4.0 && area.height >= 7.0);
            let Some(area) = area else { continue };
            let (right, bottom) = (area.x + area.width, area.y + area.height);
            // Marks of narrow cells are narrower: all cells have them, or they would tell lies.
            let scale = (area.width / 9.0).min(1.0);
            if cell.dictionary_fallbacks > 0 {
                let side = unit(6.0 * scale);
                *fallbacks += &format!(
                    "M{} {}h-{side}l{side} {side}z",
                    unit(right - 1.0),
                    unit(area.y + 1.0)
                );
            }
            if cell.bloom_filters > 0 {
                let (x, y) = (unit(area.x + 2.0 * scale), unit(area.y + 4.0));
                let (r, d) = (unit(2.0 * scale), unit(4.0 * scale));
                *filters += &format!("M{x} {y}a{r} {r} 0 1 0 {d} 0a{r} {r} 0 1 0 -{d} 0z");
            }
            if cell.page_indexes > 0 {
                let (x, width) = (unit(area.x + 2.0 * scale), unit(area.width - 4.0 * scale));
                *indexes += &format!("M{x} {}h{width}v1h-{width}z", unit(bottom - 3.0));
            }
            if cell.encrypted > 0 {
                let (width, height) = (unit(2.5 * scale), unit(area.height - 4.0));
                let (x, y) = (unit(area.x + scale), unit(area.y + 2.0));
                *encrypted += &format!("M{x} {y}h{width}v{height}h-{width}z");
            }
        }
    }
    for path in paths.iter().filter(|path| !path.is_empty()) {
        out.empty("path", &[("class", "mark"), ("pointer-events", "none"), ("d", path)]);
    }
}

/// The row groups of a row.
pub(crate) fn row_name(row: &GridRow) -> String {
    match row.row_groups.len() {
        1 => format!("row group {}", row.row_groups.start),
        _ => format!("row groups {} to {}", row.row_groups.start, row.row_groups.end - 1),
    }
}

fn row_labels(picture: &MapPicture<'_>, places: &Places, out: &mut Xml) {
    let mut free_from = f64::MIN;
    for (row, (start, end)) in picture.grid.rows.iter().zip(&places.rows) {
        // Below the heading.
        let y = (places.top + (start + end) / 2.0 + 3.5).max(places.top + 8.0);
        if y < free_from {
            continue;
        }
        free_from = y + 11.0;
        let groups = match row.row_groups.len() {
            1 => row.row_groups.start.to_string(),
            _ => format!("{}–{}", row.row_groups.start, row.row_groups.end - 1),
        };
        let rows = count(row.rows, picture.global);
        let (x, y) = (unit(LEFT - 6.0), unit(y));
        out.element("text", &[("x", "8"), ("y", &y)], &groups);
        out.element("text", &[("class", "dim end"), ("x", &x), ("y", &y)], &rows);
    }
    let y = unit(places.top - 4.0);
    let x = unit(LEFT - 6.0);
    out.element("text", &[("class", "dim"), ("x", "8"), ("y", &y)], "group");
    out.element("text", &[("class", "dim end"), ("x", &x), ("y", &y)], "rows");
}

/// Fades the rows that the overlay prunes.
fn veils(picture: &MapPicture<'_>, places: &Places, out: &mut Xml) {
    let Some(overlay) = picture.overlay else { return };
    let (Some((left, _)), Some((_, right))) = (places.columns.first(), places.columns.last())
    else {
        return;
    };
    let rows = picture.layout.rows();
    for (row, (start, end)) in picture.grid.rows.iter().zip(&places.rows) {
        let scale = (end - start) / real(row.rows.max(1));
        let (mut first, mut veils) = (0u64, Vec::<(f64, f64)>::new());
        for row_group in row.row_groups.clone() {
            let n = rows.get(row_group).copied().unwrap_or(0);
            for range in overlay.pruned(row_group, n) {
                let y = real(first.saturating_add(range.start)) * scale;
                let bottom = real(first.saturating_add(range.end)) * scale;
                match veils.last_mut() {
                    // Closer than can be seen.
                    Some((_, end)) if y - *end < 0.3 => *end = bottom,
                    _ => veils.push((y, bottom)),
                }
            }
            first = first.saturating_add(n);
        }
        for (y, bottom) in veils {
            let y = places.top + start + y;
            let height = places.top + start + bottom - y;
            Area { x: *left, y, width: right - left, height }.rect(out, "veil");
        }
    }
}

/// The stops of the keyboard in a map with many cells: its columns.
fn column_stops(picture: &MapPicture<'_>, places: &Places, out: &mut Xml) {
    out.open("g", &[("class", "stops"), ("data-width", "1000")]);
    for (j, (column, (x, right))) in picture.grid.columns.iter().zip(&places.columns).enumerate() {
        let facts = facts(&picture.grid.column(j), picture.global).join(", ");
        let text = format!("{}: {facts}", column.name);
        let (x, width) = (unit(*x), unit(right - x));
        let (y, height) = (unit(places.top), unit(places.height()));
        out.empty(
            "rect",
            &[
                ("x", &*x),
                ("y", &y),
                ("width", &width),
                ("height", &height),
                ("fill", "none"),
                ("pointer-events", "none"),
                ("tabindex", if j == 0 { "0" } else { "-1" }),
                ("role", "img"),
                ("aria-label", &text),
            ],
        );
    }
    out.close("g");
}
