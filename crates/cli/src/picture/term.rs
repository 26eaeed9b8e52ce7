//! The map and the strip for a terminal: half blocks in 256 colours, or letters without colours.

use std::io::Write;

use super::canvas::MapPicture;
use super::map;
use super::measure::{self, legend, tone};
use super::palette::{self, Tone, part_letter};
use crate::args::{ColorBy, Global};
use crate::escape::escape;
use crate::failure::Result;
use crate::layout::{BytesUse, FileLayout, Grid, GridSize, Overlay, Strip};
use crate::output::Sink;
use crate::table::{Style, cut, width};

/// Columns of a screen whose width is not known.
const SCREEN: usize = 80;
/// Columns for the numbers of row groups, and of offsets.
const LABEL: usize = 11;
/// Half lines of a map.
const MAX_HEIGHT: usize = 32;
const STRIP_LINES: usize = 4;

/// Prints the map and the strip of a file.
///
/// # Errors
/// Of the output, of reading, and a limit of memory.
pub(crate) fn print(
    out: &mut Sink,
    style: Style,
    layout: &FileLayout,
    overlay: Option<&Overlay>,
    color_by: ColorBy,
    global: &Global,
) -> Result<()> {
    let room = style.screen().unwrap_or(SCREEN).saturating_sub(LABEL + 1).max(8);
    let rows = if style.has_colors() { MAX_HEIGHT } else { MAX_HEIGHT / 2 };
    let size = GridSize { columns: room / 2, rows, cells: usize::MAX };
    let grid = Grid::new(layout, size, global)?;
    let strip = Strip::new(layout, STRIP_LINES, room)?;
    let picture = MapPicture { layout, grid: &grid, strip: &strip, overlay, color_by, global };
    let mut term = Term { out, has_colors: style.has_colors(), room };
    let name = cut(&escape(&layout.path), term.line()).into_owned();
    writeln!(term.out, "{name}")?;
    writeln!(term.out, "{}", cut(&map::sizes(&picture), term.line()))?;
    if let Some(problem) = layout.problem() {
        writeln!(term.out, "the footer cannot be read: {}", escape(&problem))?;
    }
    if let Some(overlay) = overlay {
        let left = crate::output::count(overlay.rows_left, global);
        let text = format!("faded: pruned by {}; {left} rows are left", escape(&overlay.condition));
        writeln!(term.out, "{}", cut(&text, term.line()))?;
    }
    if !grid.cells().is_empty() {
        writeln!(term.out)?;
        term.map(&picture)?;
    }
    writeln!(term.out)?;
    term.strip(&picture)
}

struct Term<'a> {
    out: &'a mut Sink,
    has_colors: bool,
    /// Columns of the pictures.
    room: usize,
}

/// A cell of the screen: its colour, and its letter where there is none.
#[derive(Clone, Copy, PartialEq)]
struct Dot {
    tone: Tone,
    letter: char,
    is_pruned: bool,
}

impl Term<'_> {
    fn line(&self) -> usize {
        self.room + LABEL
    }

    fn map(&mut self, picture: &MapPicture<'_>) -> Result<()> {
        let grid = picture.grid;
        let widths = integers(grid.columns.iter().map(|of| of.bytes), self.room);
        let names = names(grid, &widths);
        writeln!(self.out, "{:LABEL$}{names}", "group")?;
        let half_lines = if self.has_colors { 2 } else { 1 };
        let wanted = (grid.rows.len() * 2 * half_lines).min(MAX_HEIGHT * half_lines / 2);
        let heights = integers(grid.rows.iter().map(|of| of.rows), wanted.max(grid.rows.len()));
        let letters = legend(grid, picture.color_by, picture.layout.file_bytes());
        // Each half line: the row that it is of, and which part of it.
        let lines: Vec<(usize, usize, usize)> = heights
            .iter()
            .enumerate()
            .flat_map(|(row, height)| (0..*height).map(move |i| (row, i, *height)))
            .collect();
        let mut labelled = None;
        for pair in lines.chunks(half_lines) {
            let first = pair.iter().map(|(row, ..)| *row).find(|row| labelled < Some(*row));
            let label = first.map_or_else(String::new, |row| {
                labelled = pair.last().map(|(row, ..)| *row);
                grid.rows.get(row).map_or_else(String::new, |row| match row.row_groups.len() {
                    1 => row.row_groups.start.to_string(),
                    _ => format!("{}-{}", row.row_groups.start, row.row_groups.end - 1),
                })
            });
            write!(self.out, "{:LABEL$}", cut(&label, LABEL - 1))?;
            let dots = |&(row, i, height): &(usize, usize, usize)| -> Vec<Dot> {
                let is_pruned = is_pruned(picture, row, i, height);
                let dot = |cell| {
                    let tone = tone(cell, picture.color_by, picture.layout.file_bytes());
                    let known = letters.iter().find(|of| of.tone == tone);
                    Dot { tone, letter: known.map_or('?', |of| of.letter), is_pruned }
                };
                grid.row(row).iter().map(dot).collect()
            };
            let upper = pair.first().map(dots).unwrap_or_default();
            let lower = pair.get(1).map(dots);
            self.cells(&upper, lower.as_deref(), &widths)?;
        }
        self.legend(
            measure::title(picture.color_by),
            letters.iter().map(|of| (of.tone, of.letter, of.label.as_str())),
        )
    }

    /// A line of cells, whose lower half may have other colours.
    fn cells(&mut self, upper: &[Dot], lower: Option<&[Dot]>, widths: &[usize]) -> Result<()> {
        for (i, (dot, width)) in upper.iter().zip(widths).enumerate() {
            // Neighbours of one colour are told apart by a gap, where there is room.
            let gap = usize::from(*width >= 3);
            let width = width - gap;
            if self.has_colors {
                let below = lower.map(|lower| lower.get(i).unwrap_or(dot));
                self.half_blocks(*dot, below.copied(), width)?;
            } else {
                let letter = if dot.is_pruned { '·' } else { dot.letter };
                write!(self.out, "{}", letter.to_string().repeat(width))?;
            }
            let gap = if i + 1 < widths.len() { gap } else { 0 };
            write!(self.out, "{:gap$}", "")?;
        }
        writeln!(self.out)?;
        Ok(())
    }

    fn half_blocks(&mut self, upper: Dot, lower: Option<Dot>, width: usize) -> Result<()> {
        const FADED: u8 = 237;
        let color = |dot: Dot| if dot.is_pruned { FADED } else { dot.tone.color_256() };
        let upper = color(upper);
        let blocks = "▀".repeat(width);
        match lower {
            Some(lower) => {
                write!(self.out, "\x1b[38;5;{upper};48;5;{}m{blocks}\x1b[0m", color(lower))?;
            }
            None => write!(self.out, "\x1b[38;5;{upper}m{blocks}\x1b[0m")?,
        }
        Ok(())
    }

    fn strip(&mut self, picture: &MapPicture<'_>) -> Result<()> {
        let strip = picture.strip;
        let mut shown: Vec<Option<BytesUse>> = vec![None; strip.lines * strip.width];
        for piece in &strip.pieces {
            for bin in shown.get_mut(piece.bins.clone()).unwrap_or_default() {
                *bin = Some(piece.region.part);
            }
        }
        let line = crate::output::bytes(strip.line_bytes, picture.global);
        writeln!(self.out, "bytes in their order, {line} a line")?;
        for (i, line) in shown.chunks(strip.width.max(1)).enumerate() {
            let offset = format!("{:#x}", strip.line_bytes.saturating_mul(i as u64));
            write!(self.out, "{offset:LABEL$}")?;
            for run in line.chunk_by(|a, b| a == b) {
                let Some(Some(part)) = run.first() else { continue };
                let dot = Dot {
                    tone: palette::part(*part),
                    letter: part_letter(*part),
                    is_pruned: false,
                };
                match self.has_colors {
                    true => self.half_blocks(dot, Some(dot), run.len())?,
                    false => write!(self.out, "{}", dot.letter.to_string().repeat(run.len()))?,
                }
            }
            writeln!(self.out)?;
        }
        let parts = BytesUse::ALL.into_iter().filter(|part| shown.contains(&Some(*part)));
        self.legend("", parts.map(|part| (palette::part(part), part_letter(part), part.name())))
    }

    /// Colours or letters and what they mean, in lines that fit.
    fn legend<'l>(
        &mut self,
        title: &str,
        items: impl Iterator<Item = (Tone, char, &'l str)>,
    ) -> Result<()> {
        let mut at = 0;
        if !title.is_empty() {
            write!(self.out, "{title}:")?;
            at = width(title) + 1;
        }
        for (tone, letter, label) in items {
            let wide = width(label) + 5;
            if at > 0 && at + wide > self.line() {
                writeln!(self.out)?;
                at = 0;
            }
            write!(self.out, "{}", if at > 0 { "  " } else { "" })?;
            match self.has_colors {
                true => write!(self.out, "\x1b[38;5;{}m██\x1b[0m {label}", tone.color_256())?,
                false => write!(self.out, "{letter} {label}")?,
            }
            at += wide;
        }
        writeln!(self.out)?;
        Ok(())
    }
}

/// Whether all rows of a part of a row of the grid are pruned.
fn is_pruned(picture: &MapPicture<'_>, row: usize, i: usize, height: usize) -> bool {
    let (Some(overlay), Some(of)) = (picture.overlay, picture.grid.rows.get(row)) else {
        return false;
    };
    let part = |i: usize| u128::from(of.rows) * i as u128 / height.max(1) as u128;
    let (from, to) = (part(i), part(i + 1));
    let groups = picture.layout.rows();
    let mut first = 0u128;
    of.row_groups.clone().all(|group| {
        let rows = groups.get(group).copied().unwrap_or(0);
        let within =
            |at: u128| u64::try_from(at.saturating_sub(first)).unwrap_or(u64::MAX).min(rows);
        let range = within(from)..within(to);
        first += u128::from(rows);
        range.is_empty() || overlay.prunes(group, &range)
    })
}

/// The names of columns, each as far as the column is wide.
fn names(grid: &Grid, widths: &[usize]) -> String {
    let name = |(column, wide): (&crate::layout::GridColumn, &usize)| {
        let room = wide.saturating_sub(1);
        let name = escape(&column.name);
        let name = if room >= 3 || width(&name) <= room { cut(&name, room) } else { "".into() };
        let pad = wide.saturating_sub(width(&name));
        format!("{name}{}", " ".repeat(pad))
    };
    let line: String = grid.columns.iter().zip(widths).map(name).collect();
    line.trim_end().to_owned()
}

/// Divides a length among weights: each has at least one.
fn integers(weights: impl Iterator<Item = u64>, length: usize) -> Vec<usize> {
    let weights: Vec<u128> = weights.map(u128::from).collect();
    let all = weights.iter().sum::<u128>().max(1);
    let left = length.saturating_sub(weights.len()) as u128;
    let (mut sum, mut before) = (0u128, 0u128);
    let share = |weight: &u128| {
        sum += weight;
        // Below the length, which is a usize.
        let end = sum * left / all;
        let share = usize::try_from(end - before).unwrap_or(0);
        before = end;
        share + 1
    };
    weights.iter().map(share).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_length_are_all_of_it_and_none_is_nothing() {
        for (weights, length, parts) in [
            (&[1, 1, 2][..], 11, &[3, 3, 5][..]),
            (&[0, 0], 10, &[1, 1]),
            (&[u64::MAX, 1], 12, &[10, 2]),
            (&[5], 7, &[7]),
            (&[], 7, &[]),
        ] {
            assert_eq!(integers(weights.iter().copied(), length), parts, "{weights:?}");
        }
    }
}
