//! `report` makes a page about a file, to open in a browser.

use serde::Serialize;

use crate::args::{FileReport, Global, GoalFlags, Section};
use crate::doctor::{self, Diagnosis};
use crate::failure::{Failure, Result};
use crate::info::FileInfo;
use crate::layout::{FileLayout, Grid, Overlay, Strip, Timeline, timelines};
use crate::map;
use crate::output;
use crate::picture::{self, HtmlPage, MapPicture, PartSizes};
use crate::report::{self, Column, Report, Tables};

/// Makes the page, or prints the facts in it.
pub(crate) fn run(command: &FileReport, global: &Global) -> Result<()> {
    if global.format.is_none() && output::is_at_terminal(global) {
        let text = "the report is a page for a browser: write it to a file with -o FILE.html, or \
                    say -f table or -f json";
        return Err(Failure::Usage(text.to_owned()));
    }
    let layout = FileLayout::open(&command.source.file, global)?;
    let overlay = map::overlay(&layout, command.overlaid.overlay.as_deref(), global)?;
    let report = PageReport::new(command, &layout, overlay.as_ref(), global)?;
    match global.format {
        Some(_) => report::print(&report, global)?,
        None => map::write(&report.page(command, &layout, overlay.as_ref(), global)?, global)?,
    }
    layout.end(global)
}

/// Columns whose pages are shown.
const MAX_LANES: usize = 24;

#[derive(Serialize)]
struct PageReport {
    file: String,
    file_bytes: u64,
    problem: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<FileInfo>,
    /// The uses of the bytes, the largest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<PartSizes>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<Vec<Timeline>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    doctor: Option<Diagnosis>,
}

impl PageReport {
    fn new(
        command: &FileReport,
        layout: &FileLayout,
        overlay: Option<&Overlay>,
        global: &Global,
    ) -> Result<Self> {
        let has = |section| command.has(section);
        let reader = layout.reader(global)?;
        let summary = match &reader {
            Some(reader) if has(Section::Summary) => Some(FileInfo::new(&layout.path, reader)?),
            _ => None,
        };
        let doctor = match &reader {
            Some(reader) if has(Section::Doctor) => {
                Some(doctor::diagnose(&layout.path, reader, &GoalFlags::default(), global)?)
            }
            _ => None,
        };
        let pages = || timelines(layout, &largest(layout), overlay, global);
        Ok(Self {
            file: layout.path.clone(),
            file_bytes: layout.file_bytes(),
            problem: layout.problem(),
            summary,
            bytes: has(Section::Bytes).then(|| PartSizes::new(layout)).transpose()?,
            pages: has(Section::Pages).then(pages).transpose()?,
            doctor,
        })
    }

    fn page(
        &self,
        command: &FileReport,
        layout: &FileLayout,
        overlay: Option<&Overlay>,
        global: &Global,
    ) -> Result<String> {
        let grid = Grid::new(layout, picture::GRID, global)?;
        let strip = Strip::new(layout, picture::STRIP_LINES, picture::STRIP_WIDTH)?;
        let color_by = command.color_by;
        let picture = MapPicture { layout, grid: &grid, strip: &strip, overlay, color_by, global };
        let chosen = |section: &Section| command.has(*section);
        Ok(picture::page(&HtmlPage {
            picture,
            sections: Section::ALL.into_iter().filter(chosen).collect(),
            summary: self.summary.as_ref().map(|info| info.about(global)).unwrap_or_default(),
            timelines: self.pages.as_deref().unwrap_or_default(),
            parts: self.bytes.as_ref(),
            doctor: self.doctor.as_ref(),
        }))
    }
}

/// The columns with the most bytes, in the order of the file.
fn largest(layout: &FileLayout) -> Vec<usize> {
    let mut bytes: Vec<(u64, usize)> = (0..layout.columns()).map(|leaf| (0, leaf)).collect();
    for chunk in layout.chunks() {
        if let Some((sum, _)) = bytes.get_mut(chunk.column) {
            *sum = sum.saturating_add(chunk.bytes);
        }
    }
    // Stable: of equal ones the first.
    bytes.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    let mut leaves: Vec<usize> = bytes.into_iter().take(MAX_LANES).map(|(_, leaf)| leaf).collect();
    leaves.sort_unstable();
    leaves
}

impl Report for PageReport {
    const COMMAND: &'static str = "report";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        #[derive(Serialize)]
        struct PageOfColumn<'a> {
            column: &'a str,
            #[serde(flatten)]
            page: &'a crate::layout::PageBox,
        }
        let columns = self.pages.iter().flatten();
        columns.flat_map(|of| of.boxes.iter().map(|page| PageOfColumn { column: &of.column, page }))
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        if let Some(summary) = &self.summary {
            summary.tables(out)?;
        }
        if let Some(parts) = &self.bytes {
            let columns = [
                Column::text("what", |(part, _): &(&picture::PartSize, u64)| {
                    part.part.name().to_owned()
                }),
                Column::bytes("bytes", |(part, _)| Some(part.bytes)),
                Column::number("share", |(part, all)| output::share(part.bytes, *all)),
            ];
            let lines: Vec<_> = parts.0.iter().map(|part| (part, self.file_bytes)).collect();
            out.show("where the bytes go", &columns, &lines, &[])?;
        }
        let columns = [
            Column::text("column", |of: &Timeline| of.column.clone()),
            Column::count("pages", |of| Some(of.pages as u64)),
            Column::text("min", |of| of.min.clone().unwrap_or_default()),
            Column::text("max", |of| of.max.clone().unwrap_or_default()),
            Column::text("problem", |of| of.problem.clone().unwrap_or_default()),
        ];
        if let Some(pages) = &self.pages {
            out.show("pages", &columns, pages, &["problem"])?;
        }
        match &self.doctor {
            Some(diagnosis) => diagnosis.tables(out),
            None => Ok(()),
        }
    }
}
