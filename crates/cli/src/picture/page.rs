//! A page for a browser, in one file: pictures, tables with the same facts, a style and a script.
//!
//! Nothing is fetched, and no text of a file is ever markup: `maud` escapes what stands in the
//! page and `Xml` what stands in pictures. The policy of the page is a second lock: it allows one
//! script, by its hash.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::bytes::PartSizes;
use super::canvas::{MapPicture, WIDTH};
use super::measure::{self, facts};
use super::xml::{Xml, clean, real, unit};
use super::{map, pages, palette, strip};
use crate::args::{ColorBy, Section};
use crate::doctor::{Diagnosis, percent};
use crate::layout::Timeline;
use crate::output::{bytes, count, share};

/// All that a page may show.
pub(crate) struct HtmlPage<'a> {
    pub(crate) picture: MapPicture<'a>,
    pub(crate) sections: Vec<Section>,
    /// Facts about the file, by their names.
    pub(crate) summary: Vec<(&'static str, String)>,
    pub(crate) timelines: &'a [Timeline],
    pub(crate) parts: Option<&'a PartSizes>,
    pub(crate) doctor: Option<&'a Diagnosis>,
}

const SCRIPT: &str = include_str!("page.js");
const STYLE: &str = include_str!("page.css");
/// The hash of the script, which the tests hold.
const SCRIPT_HASH: &str = "FDLfE+FikdBXoIO3V3sj8gt4RuC/kGPIZVOeUWju4kw=";

/// Lines of a table; of what has more, the largest are shown.
const MAX_LINES: usize = 200;

/// Makes the page.
pub(crate) fn page(page: &HtmlPage<'_>) -> String {
    let MapPicture { layout, .. } = &page.picture;
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{SCRIPT_HASH}'; \
         base-uri 'none'; form-action 'none'"
    );
    let name = layout.path.rsplit(['/', '\\']).next().unwrap_or_default();
    let command = format!("marq hexdump {} --at ", quoted(&layout.path));
    let document = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content={ "marq " (env!("CARGO_PKG_VERSION")) };
                title { (clean(name)) " — layout" }
                style { (PreEscaped(STYLE)) (PreEscaped(palette::css())) }
            }
            body data-command=(clean(&command)) {
                main {
                    h1 { (clean(name)) }
                    p { (map::sizes(&page.picture)) "." }
                    @if let Some(problem) = layout.problem() {
                        p class="problem" role="alert" {
                            "The footer cannot be read, so that most of the file is not known: "
                            (clean(&problem))
                        }
                    }
                    @for section in &page.sections { (page.section(*section)) }
                    footer { "Made by marq " (env!("CARGO_PKG_VERSION")) "." }
                }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    document.into_string()
}

/// A name as a shell takes it.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,:@%".contains(c);
    match !path.is_empty() && path.chars().all(is_plain) && !path.starts_with('-') {
        true => path.to_owned(),
        false => format!("'{}'", path.replace('\'', "'\\''")),
    }
}

impl HtmlPage<'_> {
    fn section(&self, section: Section) -> Markup {
        let has_footer = self.picture.layout.footer().is_some();
        match section {
            Section::Summary if !self.summary.is_empty() => self.summary(),
            Section::Map if has_footer => self.map(),
            Section::Strip => self.strip(),
            Section::Pages if !self.timelines.is_empty() => self.pages(),
            Section::Bytes => self.bytes(),
            Section::Doctor => self.doctor(),
            _ => html! {},
        }
    }

    fn summary(&self) -> Markup {
        html! {
            section aria-labelledby="summary" {
                h2 id="summary" { "Summary" }
                table {
                    tbody {
                        @for (name, value) in &self.summary {
                            tr { th scope="row" { (name) } td { (clean(&value.replace(" %", "\u{a0}%"))) } }
                        }
                    }
                }
            }
        }
    }

    fn map(&self) -> Markup {
        let picture = &self.picture;
        let (inner, height) = map::draw(picture, &ColorBy::ALL, 4.0);
        let name = measure::name(picture.color_by);
        html! {
            section aria-labelledby="map" {
                h2 id="map" { "Map" }
                p { "Row groups below each other, as high as their rows; columns beside each other, \
                     as wide as their bytes." }
                fieldset hidden {
                    legend { "Colours show" }
                    @for by in ColorBy::ALL {
                        label {
                            input type="radio" name="by" value=(measure::name(by))
                                checked[by == picture.color_by];
                            (measure::name(by))
                        }
                    }
                }
                figure data-by=(name) {
                    (svg("map", "Map", &map::description(picture), &inner, height))
                }
                (self.output(Section::Map))
                (self.columns())
                (self.row_groups())
            }
        }
    }

    /// Where the script says what is pointed at; the first one says how.
    fn output(&self, section: Section) -> Markup {
        let has_one = |of: &&Section| matches!(of, Section::Map | Section::Strip | Section::Pages);
        let is_first = self.sections.iter().find(has_one) == Some(&section);
        html! {
            output hidden {
                @if is_first {
                    "Point at a part, or reach it with Tab and the arrow keys. A click or Enter \
                     keeps the command that shows its bytes; Escape lets go."
                }
            }
        }
    }

    /// The table of columns.
    fn columns(&self) -> Markup {
        let MapPicture { grid, global, layout, .. } = &self.picture;
        let mut order: Vec<usize> = (0..grid.columns.len()).collect();
        order.sort_by_key(|i| std::cmp::Reverse(grid.columns.get(*i).map(|of| of.bytes)));
        let shown = order.iter().take(MAX_LINES);
        let left_out = order.len().saturating_sub(MAX_LINES);
        html! {
            details {
                summary { "The columns as a table" }
                div class="wide" { table {
                    thead { tr {
                        th scope="col" { "column" }
                        th scope="col" class="n" { "bytes" }
                        th scope="col" class="n" { "of the file" }
                        th scope="col" { "what is known" }
                    } }
                    tbody { @for &i in shown { @if let Some(column) = grid.columns.get(i) {
                        @let cell = grid.column(i);
                        tr {
                            th scope="row" { (clean(&column.name)) }
                            td class="n" { (bytes(cell.bytes, global)) }
                            td class="n" { (share(cell.bytes, layout.file_bytes())) }
                            td { (clean(&facts(&cell, global).get(1..).unwrap_or_default().join(", "))) }
                        }
                    } } }
                } }
                @if left_out > 0 { p { (left_out) " smaller ones are left out." } }
            }
        }
    }

    /// The table of row groups.
    fn row_groups(&self) -> Markup {
        let MapPicture { grid, global, layout, overlay, .. } = &self.picture;
        let rows = layout.rows();
        html! {
            details {
                summary { "The row groups as a table" }
                div class="wide" { table {
                    thead { tr {
                        th scope="col" { "row groups" }
                        th scope="col" class="n" { "rows" }
                        th scope="col" class="n" { "bytes" }
                        @if overlay.is_some() { th scope="col" { "pruned" } }
                    } }
                    tbody { @for (i, row) in grid.rows.iter().enumerate().take(MAX_LINES) {
                        @let sum = grid.row(i).iter().fold(0u64, |sum, of| sum.saturating_add(of.bytes));
                        tr {
                            th scope="row" { (map::row_name(row)) }
                            td class="n" { (count(row.rows, global)) }
                            td class="n" { (bytes(sum, global)) }
                            @if let Some(overlay) = overlay {
                                @let pruned = row.row_groups.clone().flat_map(|group| {
                                    overlay.pruned(group, rows.get(group).copied().unwrap_or(0))
                                });
                                @let pruned = pruned.fold(0u64, |sum, range| {
                                    sum.saturating_add(range.end.saturating_sub(range.start))
                                });
                                td { (count(pruned, global)) " rows" }
                            }
                        }
                    } }
                } }
            }
        }
    }

    fn strip(&self) -> Markup {
        let picture = &self.picture;
        let (inner, height) = strip::draw(picture, 0.0);
        let pieces = &picture.strip.pieces;
        let about = "The bytes of the file in their order; the table below has the same.";
        html! {
            section aria-labelledby="strip" {
                h2 id="strip" { "Strip" }
                figure { (svg("strip", "Strip", about, &inner, height)) }
                (self.output(Section::Strip))
                details {
                    summary { "The strip as a table" }
                    div class="wide" { table {
                        thead { tr { th scope="col" { "offset" } th scope="col" { "what is there" } } }
                        tbody { @for piece in pieces.iter().take(MAX_LINES) { tr {
                            th scope="row" { code { (format!("{:#x}", piece.region.offset)) } }
                            td { (clean(&strip::text(piece, picture.global))) }
                        } } }
                    } }
                    @if pieces.len() > MAX_LINES {
                        p { (pieces.len() - MAX_LINES) " more: marq hexdump --depth header lists all." }
                    }
                }
            }
        }
    }

    fn pages(&self) -> Markup {
        let groups = self.picture.layout.rows();
        let (inner, height) = pages::draw(self.timelines, &groups, self.picture.global);
        let shown = self.timelines.len();
        let all = self.picture.layout.columns();
        let is_estimated = self.timelines.iter().any(|of| of.is_estimated);
        html! {
            section aria-labelledby="pages" {
                h2 id="pages" { "Pages" }
                p {
                    "Each box is a data page, as wide as its rows. The bar in it reaches from its \
                     lower to its upper bound: stairs are sorted, and bars over the whole height \
                     prune nothing."
                    @if shown < all { " The " (shown) " largest of " (count(all as u64, self.picture.global))
                        " columns are shown." }
                    @if is_estimated {
                        " Where a nested column has no page index, the rows of its pages are \
                         estimated."
                    }
                    @if let Some(overlay) = self.picture.overlay {
                        " Faded: pages without a row that where " code { (clean(&overlay.condition)) }
                        " leaves."
                    }
                }
                figure {
                    (svg("timeline", "Pages", "The table below has the same facts.", &inner, height))
                }
                (self.output(Section::Pages))
                @let problems = self.timelines.iter().filter_map(|of| {
                    of.problem.as_ref().map(|problem| (&of.column, problem))
                });
                @let problems: Vec<_> = problems.collect();
                @if !problems.is_empty() {
                    p { "Pages that are not shown, or not all:" }
                    ul { @for (column, problem) in problems {
                        li { (clean(column)) ": " (clean(problem)) }
                    } }
                }
                details {
                    summary { "The pages as a table" }
                    div class="wide" { (self.page_table()) }
                }
            }
        }
    }

    /// The pages, as many as a table has.
    fn page_table(&self) -> Markup {
        let global = self.picture.global;
        let all = self.timelines.iter().map(|of| of.boxes.len()).sum::<usize>();
        let boxes =
            self.timelines.iter().flat_map(|of| of.boxes.iter().map(move |page| (of, page)));
        const MAX_PAGES: usize = 500;
        html! {
            table {
                thead { tr {
                    th scope="col" { "column" }
                    th scope="col" class="n" { "row group" }
                    th scope="col" class="n" { "page" }
                    th scope="col" class="n" { "rows" }
                    th scope="col" class="n" { "bytes" }
                    th scope="col" { "min" }
                    th scope="col" { "max" }
                    @if self.picture.overlay.is_some() { th scope="col" { "pruned" } }
                } }
                tbody { @for (of, page) in boxes.take(MAX_PAGES) { tr {
                    th scope="row" { (clean(&of.column)) }
                    td class="n" { (page.row_group) }
                    td class="n" { (page.page) @if page.pages > 1 { "–" (page.page + page.pages - 1) } }
                    td class="n" {
                        (count(page.rows.end.saturating_sub(page.rows.start), global))
                    }
                    td class="n" { (bytes(page.bytes, global)) }
                    td { (clean(page.min.as_deref().unwrap_or_default())) }
                    td { (clean(page.max.as_deref().unwrap_or_default())) }
                    @if let Some(is_pruned) = page.is_pruned { td { @if is_pruned { "yes" } @else { "no" } } }
                } } }
            }
            @if all > MAX_PAGES { p { (all - MAX_PAGES) " more are left out; marq pages lists all." } }
        }
    }

    fn bytes(&self) -> Markup {
        let Some(parts) = self.parts else { return html! {} };
        let (global, file_bytes) = (self.picture.global, self.picture.layout.file_bytes());
        const BAR: f64 = 320.0;
        html! {
            section aria-labelledby="bytes" {
                h2 id="bytes" { "Where the bytes go" }
                div class="wide" { table {
                    thead { tr {
                        th scope="col" { "what" }
                        th scope="col" class="n" { "bytes" }
                        th scope="col" class="n" { "of the file" }
                        td { }
                    } }
                    tbody { @for part in &parts.0 {
                        @let width = BAR * real(part.bytes) / real(file_bytes.max(1));
                        @let class = format!("part {}", palette::part(part.part).class());
                        tr {
                            th scope="row" { (part.part.name()) }
                            td class="n" { (bytes(part.bytes, global)) }
                            td class="n" { (share(part.bytes, file_bytes)) }
                            td { svg width=(unit(BAR)) height="12" aria-hidden="true" {
                                rect class=(class) width=(unit(width.max(1.0))) height="12" { }
                            } }
                        }
                    } }
                } }
            }
        }
    }
}

impl HtmlPage<'_> {
    /// The findings of `doctor`, and the commands that mend them.
    fn doctor(&self) -> Markup {
        let Some(doctor) = self.doctor else { return html! {} };
        let global = self.picture.global;
        html! {
            section aria-labelledby="doctor" {
                h2 id="doctor" { "What could be better" }
                p {
                    "By trials with " (count(doctor.sample_rows, global)) " of "
                    (count(doctor.rows, global)) " rows."
                    @if let Some(predicted) = doctor.predicted_bytes {
                        " Written anew, the file would have " (bytes(predicted, global)) "."
                    }
                    @if doctor.findings.is_empty() { " Nothing was found." }
                }
                @if !doctor.findings.is_empty() {
                    div class="wide" { table {
                        thead { tr {
                            th scope="col" { "finding" }
                            th scope="col" { "column" }
                            th scope="col" class="n" { "bytes" }
                            th scope="col" class="n" { "write time" }
                            th scope="col" class="n" { "read time" }
                            th scope="col" { "message" }
                        } }
                        tbody { @for finding in &doctor.findings { tr {
                            th scope="row" { (finding.code) }
                            td { (clean(finding.column.as_deref().unwrap_or_default())) }
                            td class="n" { (finding.bytes_changed()) }
                            td class="n" { (percent(finding.write_time)) }
                            td class="n" { (percent(finding.read_time)) }
                            td { (clean(&finding.message)) }
                        } } }
                    } }
                    p { "Do:" }
                    ul { @for command in doctor.commands() { li { code { (clean(command)) } } } }
                }
            }
        }
    }
}

/// A picture within the page.
fn svg(id: &str, title: &str, about: &str, inner: &str, height: f64) -> PreEscaped<String> {
    let mut out = Xml::new();
    let view = format!("0 0 {} {}", unit(WIDTH), unit(height));
    let (title_id, about_id) = (format!("{id}-title"), format!("{id}-about"));
    let labels = [("aria-labelledby", &*title_id), ("aria-describedby", &*about_id)];
    out.open("svg", &[&[("viewBox", &*view), ("role", "group")][..], &labels].concat());
    out.element("title", &[("id", &title_id)], title);
    out.element("desc", &[("id", &about_id)], about);
    out.raw(inner);
    out.close("svg");
    PreEscaped(out.finish())
}

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use sha2::{Digest, Sha256};

    use super::*;

    #[test]
    fn policy_allows_the_script_of_the_page_and_no_other() {
        assert_eq!(SCRIPT_HASH, STANDARD.encode(Sha256::digest(SCRIPT)));
    }

    #[test]
    fn a_shell_takes_a_quoted_name_as_it_is() {
        assert_eq!(quoted("a/b-1.parquet"), "a/b-1.parquet");
        assert_eq!(quoted("it's $HOME"), "'it'\\''s $HOME'");
        assert_eq!(quoted("-f"), "'-f'");
    }
}
