//! The pages of columns along the rows of the file: the box of a page is as wide as its rows, and
//! the bar in it reaches from its lower to its upper bound.

use super::canvas::WIDTH;
use super::palette::{STEP_COUNT, Tone};
use super::xml::{Area, Xml, fitting, real, unit, whole};
use crate::args::Global;
use crate::layout::{PageBox, Timeline};
use crate::output::{bytes, count, counted};

/// Where lanes begin, after the names.
const LEFT: f64 = 190.0;
const HEIGHT: f64 = 30.0;
const STEP: f64 = 40.0;
/// Pages that are reached one by one by the keyboard; of more, lanes are.
const MAX_STOPS: usize = 400;

/// Draws the lanes of columns of a file with these row groups; returns the picture and its height.
pub(super) fn draw(timelines: &[Timeline], groups: &[u64], global: &Global) -> (String, f64) {
    let rows = groups.iter().fold(0u64, |sum, rows| sum.saturating_add(*rows));
    let boxes = timelines.iter().map(|of| of.boxes.len()).sum::<usize>();
    let scale = (WIDTH - LEFT - 8.0) / real(rows.max(1));
    let lanes = Lanes { scale, has_page_stops: boxes <= MAX_STOPS, global };
    let mut out = Xml::new();
    let top = 34.0;
    let height = top + STEP * real(timelines.len() as u64);
    lanes.axis(rows, top, &mut out);
    out.open("g", &[("class", "stops"), ("data-width", "1000")]);
    for (i, timeline) in timelines.iter().enumerate() {
        lanes.lane(timeline, i, top + STEP * real(i as u64), &mut out);
    }
    out.close("g");
    lanes.boundaries(groups, top, height - 8.0, &mut out);
    (out.finish(), height)
}

struct Lanes<'a> {
    /// Units of a row.
    scale: f64,
    /// Whether the keyboard reaches pages, and not lanes.
    has_page_stops: bool,
    global: &'a Global,
}

impl Lanes<'_> {
    fn x(&self, row: u64) -> f64 {
        LEFT + self.scale * real(row)
    }

    /// The numbers of some rows.
    fn axis(&self, rows: u64, top: f64, out: &mut Xml) {
        const TICKS: u64 = 4;
        let mut before = None;
        for tick in 0..=TICKS {
            let row = u64::try_from(u128::from(rows) * u128::from(tick) / u128::from(TICKS));
            let row = row.unwrap_or(rows);
            if before.replace(row) == Some(row) {
                continue;
            }
            let x = unit(self.x(row));
            let class = if tick == TICKS { "dim end" } else { "dim" };
            let y = unit(top - 10.0);
            out.element(
                "text",
                &[("class", class), ("x", &x), ("y", &y)],
                &count(row, self.global),
            );
            let line = format!("M{x} {}v5", unit(top - 7.0));
            out.empty("path", &[("class", "line"), ("d", &line)]);
        }
        let place = [("class", "dim"), ("x", "8"), ("y", &*unit(top - 10.0))];
        out.element("text", &place, "column, bounds; rows →");
    }

    /// Where row groups begin, if there is room to see it.
    fn boundaries(&self, groups: &[u64], top: f64, bottom: f64, out: &mut Xml) {
        const MAX_LINES: usize = 200;
        if groups.len() > MAX_LINES {
            return;
        }
        let (mut row, mut path) = (0u64, String::new());
        for rows in groups.iter().take(groups.len().saturating_sub(1)) {
            row = row.saturating_add(*rows);
            path += &format!("M{} {}V{}", unit(self.x(row)), unit(top - 4.0), unit(bottom));
        }
        if !path.is_empty() {
            let dashes = [("stroke-dasharray", "3 3"), ("pointer-events", "none")];
            out.empty("path", &[&[("class", "line"), ("d", &*path)][..], &dashes].concat());
        }
    }

    fn lane(&self, timeline: &Timeline, index: usize, y: f64, out: &mut Xml) {
        let name = fitting(&timeline.column, LEFT - 16.0).unwrap_or_default();
        out.element("text", &[("x", "8"), ("y", &unit(y + 12.0))], &name);
        let under = match (&timeline.min, &timeline.max, &timeline.problem) {
            (_, _, Some(_)) => "not all is known: see below".to_owned(),
            (Some(min), Some(max), _) => {
                let half = |text| fitting(text, LEFT / 2.0 - 18.0).unwrap_or_default();
                format!("{} … {}", half(min), half(max))
            }
            _ => "no bounds".to_owned(),
        };
        let under = fitting(&under, LEFT - 16.0).unwrap_or_default();
        out.element("text", &[("class", "dim"), ("x", "8"), ("y", &unit(y + 25.0))], &under);
        for (i, page) in timeline.boxes.iter().enumerate() {
            self.page(timeline, page, (index == 0 && i == 0, y), out);
        }
        if !self.has_page_stops {
            self.stop(timeline, index == 0, y, out);
        }
    }

    /// The stops of the keyboard in a lane with many pages.
    fn stop(&self, timeline: &Timeline, is_first: bool, y: f64, out: &mut Xml) {
        let mut text = format!("{}: {}", timeline.column, self.counted(timeline.pages, "page"));
        if let (Some(min), Some(max)) = (&timeline.min, &timeline.max) {
            text += &format!(", {} … {}", short(min), short(max));
        }
        let pruned = timeline.boxes.iter().filter(|page| page.is_pruned == Some(true));
        match pruned.map(|page| page.pages).sum::<usize>() {
            0 => {}
            n => text += &format!(", {} pruned", self.counted(n, "page")),
        }
        let area = Area { x: LEFT, y, width: WIDTH - LEFT - 8.0, height: HEIGHT };
        let [x, y, width, height] = area.units();
        let place = [("x", &*x), ("y", &y), ("width", &width), ("height", &height)];
        let stop = [
            ("fill", "none"),
            ("pointer-events", "none"),
            ("tabindex", if is_first { "0" } else { "-1" }),
            ("role", "img"),
            ("aria-label", &*text),
        ];
        out.empty("rect", &[&place[..], &stop].concat());
    }

    fn counted(&self, n: usize, what: &str) -> String {
        counted(n as u64, what, self.global)
    }

    fn page(&self, timeline: &Timeline, page: &PageBox, (is_first, y): (bool, f64), out: &mut Xml) {
        let (x, right) = (self.x(page.rows.start), self.x(page.rows.end));
        let area = Area { x, y, width: (right - x).max(0.6), height: HEIGHT };
        let class = if page.is_pruned == Some(true) { "out" } else { "in" };
        let text = self.text(timeline, page);
        let at = format!("{:#x}", page.offset);
        // One stop for each lane, and arrows between its pages.
        let index = if is_first { "0" } else { "-1" };
        out.open("g", &[("class", class), ("data-at", &at), ("tabindex", index), ("role", "img")]);
        out.element("title", &[], &text);
        let (bar, tone) = match page.position {
            Some((low, high)) => {
                let bottom = y + HEIGHT - 1.5 - low * (HEIGHT - 3.0);
                let top = y + 1.5 + (1.0 - high) * (HEIGHT - 3.0);
                let top = top.min(bottom - 2.0).max(y);
                let middle = (low + high) / 2.0 * (real(STEP_COUNT as u64) - 0.01);
                (Area { y: top, height: bottom - top, ..area }, Tone::Step(whole(middle)))
            }
            None => (area, Tone::Unknown),
        };
        if page.position.is_some() || !page.is_null {
            bar.rect(out, &tone.class());
        }
        // A hit anywhere in the box is one, also where nothing is painted.
        let [x, y, width, height] = area.units();
        out.empty(
            "rect",
            &[
                ("class", "page"),
                ("pointer-events", "all"),
                ("x", &x),
                ("y", &y),
                ("width", &width),
                ("height", &height),
            ],
        );
        out.close("g");
    }

    fn text(&self, timeline: &Timeline, page: &PageBox) -> String {
        let pages = match page.pages {
            1 => format!("page {}", page.page),
            n => format!("{n} pages from page {}", page.page),
        };
        let mut out = format!(
            "{}, row group {}, {pages}: rows {} to {}, {}",
            timeline.column,
            page.row_group,
            count(page.rows.start, self.global),
            count(page.rows.end.saturating_sub(1).max(page.rows.start), self.global),
            bytes(page.bytes, self.global)
        );
        match (&page.min, &page.max) {
            (Some(min), Some(max)) => out += &format!(", {} … {}", short(min), short(max)),
            _ if page.is_null => out += ", only nulls",
            _ => out += ", no bounds",
        }
        if let Some(nulls) = page.nulls.filter(|n| *n > 0 && !page.is_null) {
            out += &format!(", {} nulls", count(nulls, self.global));
        }
        if page.is_pruned == Some(true) {
            out += ", pruned";
        }
        out
    }
}

/// A bound, as far as a line has room for it.
fn short(text: &str) -> String {
    fitting(text, 160.0).unwrap_or_default()
}
