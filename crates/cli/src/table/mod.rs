//! Draws tables for people: on a screen, one column a line, or as Markdown.
//!
//! A table is drawn while its rows come: widths are those of the first rows, later cells are cut to
//! them. What is drawn is escaped here.

mod layout;
mod width;

use std::io::Write;
use std::time::{Duration, Instant};

use terminal_size::{Width, terminal_size_of};

use crate::args::{Format, Global};
use crate::escape::escape;
use crate::failure::Result;
use crate::output::Sink;
pub(crate) use layout::Layout;
use width::cut_middle;

pub(crate) use width::{cut, width};

/// The text of null.
pub(crate) const NULL: &str = "null";

/// A column of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TableColumn {
    /// Its name.
    pub(crate) name: String,
    /// Its type in a word or two; nothing where none is known.
    pub(crate) type_name: String,
    pub(crate) align: Align,
    /// The width below which it is not cut while columns can be left out.
    pub(crate) least: usize,
    /// Whether its cells are paths, whose ends matter.
    pub(crate) is_path: bool,
}

/// The alignment of cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Cell {
    Null,
    Text(String),
}

/// How tables look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Style {
    form: TableForm,
    /// Whether nulls and types are dimmed.
    dim: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TableForm {
    /// Lines as long as the screen; of any length without one.
    Screen(Option<usize>),
    Vertical(Option<usize>),
    Markdown,
}

impl Style {
    /// The columns of the screen that lines must fit.
    pub(crate) fn screen(&self) -> Option<usize> {
        match self.form {
            TableForm::Screen(screen) => screen,
            TableForm::Vertical(_) | TableForm::Markdown => None,
        }
    }

    /// Whether there are colours.
    pub(crate) fn has_colors(&self) -> bool {
        self.dim
    }

    /// The style that the flags and the output ask for.
    pub(crate) fn new(format: Format, global: &Global, out: &Sink) -> Self {
        let screen = screen(out);
        let form = match format {
            Format::Md => TableForm::Markdown,
            _ if global.vertical => TableForm::Vertical(screen),
            _ if global.wide => TableForm::Screen(None),
            _ => TableForm::Screen(screen),
        };
        let color = anstream::AutoStream::choice(&std::io::stdout());
        let dim = out.stdout && !global.no_color && color != anstream::ColorChoice::Never;
        Self { form, dim: dim && form != TableForm::Markdown }
    }
}

/// The columns of the screen, where there is one.
fn screen(out: &Sink) -> Option<usize> {
    let columns = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    if let Some(columns @ 1..) = columns {
        return Some(columns.min(MAX_SCREEN));
    }
    if !out.terminal {
        return None;
    }
    match terminal_size_of(std::io::stdout()) {
        Some((Width(columns), _)) if columns > 0 => Some(columns.into()),
        _ => Some(80),
    }
}

/// Lines are made of this many columns at most, whatever the environment says.
const MAX_SCREEN: usize = 1 << 16;

/// Cells are padded to at most this many columns where they are not cut: a single long one would
/// multiply the text by the number of rows.
const MAX_PADDED: usize = 1000;

/// Rows that widths are taken from.
const SAMPLE_ROWS: usize = 1000;
/// Bytes of cells from which on no more rows are waited for.
const SAMPLE_BYTES: usize = 1 << 22;
/// How long rows are held before they are shown.
const SAMPLE_TIME: Duration = Duration::from_millis(250);

/// A table that rows are added to.
pub(crate) struct Table {
    style: Style,
    columns: Vec<TableColumn>,
    /// The first rows, until the layout is known.
    held: Vec<Vec<Cell>>,
    held_bytes: usize,
    since: Option<Instant>,
    layout: Option<Layout>,
    rows: u64,
    /// Whether a cell was cut.
    cut: bool,
}

impl Table {
    /// A table with these columns.
    pub(crate) fn new(style: Style, columns: Vec<TableColumn>) -> Self {
        let columns = columns
            .into_iter()
            .map(|column| TableColumn { name: escape(&column.name).into_owned(), ..column })
            .collect();
        Self {
            style,
            columns,
            held: Vec::new(),
            held_bytes: 0,
            since: None,
            layout: None,
            rows: 0,
            cut: false,
        }
    }

    /// Adds a row.
    pub(crate) fn row(&mut self, out: &mut impl Write, cells: Vec<Cell>) -> Result<()> {
        let mut shown = Vec::with_capacity(cells.len());
        for cell in cells {
            let (cell, is_cut) = self.shown(cell);
            self.cut |= is_cut;
            shown.push(cell);
        }
        let cells = shown;
        if self.layout.is_some() {
            return self.draw_row(out, &cells);
        }
        let len = |cell: &Cell| match cell {
            Cell::Null => size_of::<Cell>(),
            Cell::Text(text) => size_of::<Cell>() + text.len(),
        };
        self.held_bytes += cells.iter().map(len).sum::<usize>();
        self.held.push(cells);
        let since = *self.since.get_or_insert_with(Instant::now);
        let enough = self.held.len() >= SAMPLE_ROWS || self.held_bytes >= SAMPLE_BYTES;
        if enough
            || matches!(self.style.form, TableForm::Vertical(_))
            || since.elapsed() > SAMPLE_TIME
        {
            self.begin(out, true)?;
        }
        Ok(())
    }

    /// Shows the rows that are held if they have waited for long.
    pub(crate) fn show(&mut self, out: &mut impl Write) -> Result<()> {
        match self.since {
            Some(since) if self.layout.is_none() && since.elapsed() > SAMPLE_TIME => {
                self.begin(out, true)
            }
            _ => Ok(()),
        }
    }

    /// Ends the table.
    pub(crate) fn end(mut self, out: &mut impl Write) -> Result<()> {
        if self.layout.is_none() {
            self.begin(out, false)?;
        }
        let Some(layout) = self.layout.take() else { return Ok(()) };
        if !matches!(self.style.form, TableForm::Screen(_)) {
            return Ok(());
        }
        rule(out, &layout, ["└", "┴", "┘"])?;
        let all = self.columns.len();
        if layout.hidden > 0 {
            let hidden = layout.hidden;
            writeln!(out, "{hidden} of {all} columns left out; --wide or --vertical shows them")?;
        } else if self.cut {
            writeln!(out, "cells cut at …; --wide or --vertical shows them whole")?;
        }
        Ok(())
    }

    /// A cell as it is drawn: escaped, and not longer than the screen; and whether it has many more
    /// characters than that.
    fn shown(&self, cell: Cell) -> (Cell, bool) {
        let Cell::Text(text) = cell else { return (Cell::Null, false) };
        let mut is_cut = false;
        let text = match self.style.form {
            TableForm::Screen(Some(screen)) => {
                // More than is ever shown, less than a cell of a megabyte costs.
                let end = text.char_indices().nth(4 * screen).map_or(text.len(), |(i, _)| i);
                is_cut = end < text.len();
                let mut shown = escape(text.get(..end).unwrap_or_default());
                if is_cut {
                    shown.to_mut().push('…');
                }
                cut(&shown, screen).into_owned()
            }
            TableForm::Screen(None) | TableForm::Vertical(_) => escape(&text).into_owned(),
            TableForm::Markdown => markdown(&escape(&text)),
        };
        (Cell::Text(text), is_cut)
    }

    /// Draws the header and the rows that are held; whether more may come decides whether room is
    /// kept for them.
    fn begin(&mut self, out: &mut impl Write, more: bool) -> Result<()> {
        let held = std::mem::take(&mut self.held);
        match self.style.form {
            TableForm::Screen(screen) => {
                let (layout, types) = self.layout_of(&held, screen, more);
                rule(out, &layout, ["┌", "┬", "┐"])?;
                self.layout = Some(layout);
                self.draw_header(out, |column| &column.name, false)?;
                if types {
                    self.draw_header(out, |column| &column.type_name, true)?;
                }
                if let Some(layout) = &self.layout {
                    rule(out, layout, ["├", "┼", "┤"])?;
                }
            }
            TableForm::Markdown => {
                let names: Vec<String> =
                    self.columns.iter().map(|column| markdown(&column.name)).collect();
                for (column, name) in self.columns.iter_mut().zip(names) {
                    column.name = name;
                }
                let mut layout = Layout::whole(&self.natural(&held));
                // A dash, and the colon for right alignment.
                layout.left.iter_mut().for_each(|width| *width = 2.max(*width));
                let widths = layout.left.clone();
                self.layout = Some(layout);
                for (column, width) in self.columns.iter().zip(&widths) {
                    let space = width.saturating_sub(self::width(&column.name));
                    write!(out, "| {}{} ", column.name, " ".repeat(space))?;
                }
                writeln!(out, "|")?;
                for (column, width) in self.columns.iter().zip(widths) {
                    match column.align {
                        Align::Left => write!(out, "| {} ", "-".repeat(width))?,
                        Align::Right => write!(out, "| {}: ", "-".repeat(width - 1))?,
                    }
                }
                writeln!(out, "|")?;
            }
            TableForm::Vertical(_) => self.layout = Some(Layout::whole(&[])),
        }
        held.iter().try_for_each(|cells| self.draw_row(out, cells))
    }

    /// The widths of the names and of the cells of these rows, as far as cells are padded.
    fn natural(&self, rows: &[Vec<Cell>]) -> Vec<usize> {
        let max = self.style.screen().map_or(MAX_PADDED, |_| usize::MAX);
        let width = |text: &str| width(text).min(max);
        let mut natural: Vec<usize> =
            self.columns.iter().map(|column| width(&column.name)).collect();
        for row in rows {
            for (natural, cell) in natural.iter_mut().zip(row) {
                let width = match cell {
                    Cell::Null => NULL.len(),
                    Cell::Text(text) => width(text),
                };
                *natural = width.max(*natural);
            }
        }
        natural
    }

    /// The layout that these rows ask for, and whether types have room in it.
    fn layout_of(&self, rows: &[Vec<Cell>], screen: Option<usize>, more: bool) -> (Layout, bool) {
        let natural = self.natural(rows);
        let least: Vec<usize> = self.columns.iter().map(|column| column.least).collect();
        let types = self.columns.iter().map(|column| width(&column.type_name));
        let known = self.columns.iter().any(|column| !column.type_name.is_empty());
        let with_types: Vec<usize> = natural
            .iter()
            .zip(types.clone())
            .map(|(natural, of_type)| of_type.max(*natural))
            .collect();
        // Numbers get longer, and texts do: later ones should not be cut while the screen has room.
        let grown: Vec<usize> = with_types
            .iter()
            .zip(&self.columns)
            .map(|(width, column)| match column.align {
                Align::Right => 12.max(*width),
                Align::Left => width + (width / 2).min(8),
            })
            .collect();
        if more
            && screen
                .is_none_or(|screen| Layout::fit(&grown, &least, screen) == Layout::whole(&grown))
        {
            return (Layout::whole(&grown), known);
        }
        let Some(screen) = screen else { return (Layout::whole(&with_types), known) };
        let layout = Layout::fit(&with_types, &least, screen);
        if known && layout == Layout::whole(&with_types) {
            return (layout, true);
        }
        let layout = Layout::fit(&natural, &least, screen);
        let types: Vec<usize> = types.collect();
        let fits =
            |(i, width): (usize, usize)| types.get(i).is_none_or(|of_type| *of_type <= width);
        let fits = layout.shown().all(fits);
        (layout, known && fits)
    }

    fn draw_header(
        &self,
        out: &mut impl Write,
        of: impl Fn(&TableColumn) -> &str,
        dim: bool,
    ) -> Result<()> {
        let Some(layout) = &self.layout else { return Ok(()) };
        line(out, &self.style, layout, |i| match self.columns.get(i) {
            Some(column) => Shown { text: of(column), align: column.align, dim, is_path: false },
            None => Shown { text: "", align: Align::Left, dim, is_path: false },
        })
    }

    fn draw_row(&mut self, out: &mut impl Write, cells: &[Cell]) -> Result<()> {
        self.rows += 1;
        if let TableForm::Vertical(screen) = self.style.form {
            return self.draw_vertical(out, cells, screen);
        }
        let Some(layout) = &self.layout else { return Ok(()) };
        let of = |i: usize| {
            let column = self.columns.get(i);
            let align = column.map_or(Align::Left, |column| column.align);
            let is_path = column.is_some_and(|column| column.is_path);
            match cells.get(i) {
                Some(Cell::Text(text)) => Shown { text, align, dim: false, is_path },
                _ => Shown { text: NULL, align, dim: true, is_path: false },
            }
        };
        let is_cut = self.style.screen().is_some();
        self.cut |= is_cut && layout.shown().any(|(i, columns)| width(of(i).text) > columns);
        line(out, &self.style, layout, of)
    }

    fn draw_vertical(
        &self,
        out: &mut impl Write,
        cells: &[Cell],
        screen: Option<usize>,
    ) -> Result<()> {
        let names = self.columns.iter().map(|column| width(&column.name)).max();
        let names = names.unwrap_or_default().min(MAX_PADDED);
        let title = format!("─[ row {} ]", self.rows);
        let dashes = screen.unwrap_or(80).min(names + 40).saturating_sub(width(&title));
        writeln!(out, "{title}{}", "─".repeat(dashes))?;
        for (column, cell) in self.columns.iter().zip(cells) {
            let space = names.saturating_sub(width(&column.name));
            write!(out, "{}{} │ ", column.name, " ".repeat(space))?;
            match cell {
                Cell::Text(text) => writeln!(out, "{text}")?,
                Cell::Null if self.style.dim => writeln!(out, "{DIM}{NULL}{PLAIN}")?,
                Cell::Null => writeln!(out, "{NULL}")?,
            }
        }
        Ok(())
    }
}

const DIM: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// A cell of a line.
struct Shown<'a> {
    text: &'a str,
    align: Align,
    dim: bool,
    is_path: bool,
}

/// Draws a line of cells; `of` returns the cell of a column.
fn line<'a>(
    out: &mut impl Write,
    style: &Style,
    layout: &Layout,
    of: impl Fn(usize) -> Shown<'a>,
) -> Result<()> {
    let (bar, limited) = match style.form {
        TableForm::Markdown => ("|", false),
        TableForm::Screen(screen) => ("│", screen.is_some()),
        TableForm::Vertical(_) => return Ok(()),
    };
    for (i, (column, columns)) in layout.shown().enumerate() {
        if layout.hidden > 0 && i == layout.left.len() {
            write!(out, "{bar} … ")?;
        }
        let Shown { text, align, dim, is_path } = of(column);
        let text = match () {
            () if !limited => text.into(),
            () if is_path => cut_middle(text, columns),
            () => cut(text, columns),
        };
        let space = columns.saturating_sub(width(&text));
        let (before, after) = match align {
            Align::Left => (0, space),
            Align::Right => (space, 0),
        };
        let (on, off) = if dim && style.dim { (DIM, PLAIN) } else { ("", "") };
        // Not as widths: those of more than 65,535 are a panic.
        let [before, after] = [before, after].map(|n| " ".repeat(n));
        write!(out, "{bar} {before}{on}{text}{off}{after} ")?;
    }
    if layout.hidden > 0 && layout.right.is_empty() {
        write!(out, "{bar} … ")?;
    }
    writeln!(out, "{bar}")?;
    Ok(())
}

fn rule(out: &mut impl Write, layout: &Layout, [first, between, last]: [&str; 3]) -> Result<()> {
    let mut widths: Vec<usize> = layout.shown().map(|(_, width)| width).collect();
    if layout.hidden > 0 {
        widths.insert(layout.left.len(), 1);
    }
    let dashes: Vec<String> = widths.iter().map(|width| "─".repeat(width + 2)).collect();
    writeln!(out, "{first}{}{last}", dashes.join(between))?;
    Ok(())
}

/// A text in Markdown, in a cell of a table too: no end of the cell, and no HTML.
pub(crate) fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            // A backslash before it would be read as one of the pair.
            '|' if out.ends_with('\\') => out.push_str("&#124;"),
            '|' => out.push_str("\\|"),
            '<' if out.ends_with('\\') => out.push_str("&lt;"),
            '<' => out.push_str("\\<"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN_STYLE: Style = Style { form: TableForm::Screen(None), dim: false };

    fn column(name: &str, type_name: &str, align: Align) -> TableColumn {
        let (name, type_name) = (name.to_owned(), type_name.to_owned());
        TableColumn { name, type_name, align, least: 12, is_path: false }
    }

    fn text(text: &str) -> Cell {
        Cell::Text(text.to_owned())
    }

    fn drawn(form: TableForm, columns: Vec<TableColumn>, rows: Vec<Vec<Cell>>) -> String {
        let mut out = Vec::new();
        let mut table = Table::new(Style { form, ..PLAIN_STYLE }, columns);
        for row in rows {
            table.row(&mut out, row).expect("memory");
        }
        table.end(&mut out).expect("memory");
        String::from_utf8(out).expect("text")
    }

    #[test]
    fn cells_and_names_may_be_of_any_length() {
        let long = "x".repeat(70_000);
        for form in [TableForm::Screen(None), TableForm::Vertical(None), TableForm::Markdown] {
            for name in ["n", &long] {
                let columns =
                    vec![column(name, "string", Align::Left), column("m", "string", Align::Right)];
                let rows = vec![vec![text("a"), text("b")], vec![text(&long), text(&long)]];
                assert!(drawn(form, columns, rows).len() > 140_000, "{form:?}");
            }
        }
    }

    #[test]
    fn a_long_cell_does_not_lengthen_the_other_rows() {
        let long = "x".repeat(100_000);
        for form in [TableForm::Screen(None), TableForm::Vertical(None), TableForm::Markdown] {
            for name in ["n", &long] {
                let columns = vec![column(name, "", Align::Left), column("m", "", Align::Left)];
                let mut rows = vec![vec![text("a"), text("b")]; 300];
                rows.push(vec![text(&long), text("b")]);
                let len = drawn(form, columns, rows).len();
                let whole = if name == "n" { 1 } else { 2 };
                // A column a line says each name in each row.
                let names = if form == TableForm::Vertical(None) { 300 * name.len() } else { 0 };
                assert!(len - names < whole * long.len() + 1_000_000, "{form:?}: {len}");
            }
        }
    }

    #[test]
    fn a_later_longer_cell_is_not_said_to_be_cut_where_none_is() {
        let columns = vec![column("a", "", Align::Left)];
        let mut rows = vec![vec![text("12345")]; SAMPLE_ROWS];
        rows.push(vec![text("1234567890")]);
        let drawn = drawn(TableForm::Screen(None), columns, rows);
        assert!(drawn.contains("1234567890") && !drawn.contains("cut at"), "{drawn}");
    }

    #[test]
    fn types_stand_under_names_and_numbers_on_the_right() {
        let columns = vec![column("n", "int64", Align::Right), column("名", "string", Align::Left)];
        let rows = vec![vec![text("1"), text("日本")], vec![Cell::Null, text("x\ty")]];
        let wanted = "\
┌───────┬────────┐
│     n │ 名     │
│ int64 │ string │
├───────┼────────┤
│     1 │ 日本   │
│  null │ x\\ty   │
└───────┴────────┘
";
        assert_eq!(drawn(TableForm::Screen(Some(80)), columns, rows), wanted);
    }

    #[test]
    fn columns_left_out_are_counted() {
        let columns = vec![column("abcdef", "", Align::Left); 9];
        let rows = vec![vec![text("1"); 9]];
        let wanted = "\
┌────────┬───┬────────┐
│ abcdef │ … │ abcdef │
├────────┼───┼────────┤
│ 1      │ … │ 1      │
└────────┴───┴────────┘
7 of 9 columns left out; --wide or --vertical shows them
";
        assert_eq!(drawn(TableForm::Screen(Some(26)), columns, rows), wanted);
    }

    #[test]
    fn later_cells_keep_to_the_widths_of_the_first() {
        let columns = vec![column("a", "", Align::Left)];
        let mut rows = vec![vec![text("12345")]; SAMPLE_ROWS];
        rows.push(vec![text("12345678")]);
        let drawn = drawn(TableForm::Screen(Some(80)), columns, rows);
        assert!(drawn.contains("│ 123456… │\n"), "{drawn}");
    }

    #[test]
    fn markdown_cells_end_where_they_should() {
        let columns = vec![column("a|b", "", Align::Right)];
        let rows = vec![vec![text("x|y\\|<b>\n")]];
        let drawn = drawn(TableForm::Markdown, columns, rows);
        let lines: Vec<&str> = drawn.lines().collect();
        assert_eq!(lines[2].trim(), "| x\\|y\\&#124;\\<b>\\n |");
        assert!(lines[0].starts_with("| a\\|b ") && lines[1].ends_with("-: |"), "{drawn}");
    }

    #[test]
    fn what_is_left_out_of_a_cell_is_said() {
        let marks = format!("e{}HIDDEN", "\u{301}".repeat(400));
        let columns = vec![column("a", "", Align::Left)];
        let drawn = drawn(TableForm::Screen(Some(80)), columns, vec![vec![text(&marks)]]);
        assert!(!drawn.contains("HIDDEN"), "{drawn}");
        assert!(drawn.contains("… │") && drawn.contains("cells cut at …"), "{drawn}");
    }

    #[test]
    fn one_column_a_line() {
        let columns = vec![column("a", "", Align::Left), column("long", "", Align::Left)];
        let drawn =
            drawn(TableForm::Vertical(Some(20)), columns, vec![vec![text("1"), Cell::Null]]);
        assert_eq!(drawn, "─[ row 1 ]──────────\na    │ 1\nlong │ null\n");
    }
}
