//! The colours of pictures, in both schemes.
//!
//! Categories have the colours of Okabe and Ito, which people with any kind of colour blindness
//! tell apart; steps those of cividis, whose lightness rises evenly. Cells have an outline, because
//! some of the colours are close to the ground, and every picture has tables with the same facts.

use std::fmt::Write as _;

use crate::layout::BytesUse;

/// The colour of something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// One of [`CATEGORIES`].
    Category(usize),
    /// One of [`STEPS`].
    Step(usize),
    Unknown,
}

/// Grey, blue, sky blue, orange, yellow, vermilion, green, purple, indigo.
const CATEGORIES: [&str; 9] = [
    "#9a9a9a", "#0072b2", "#56b4e9", "#e69f00", "#f0e442", "#d55e00", "#009e73", "#cc79a7",
    "#5b3fa8",
];
/// Number of categories.
pub(super) const CATEGORY_COUNT: usize = CATEGORIES.len();
/// The same for the 256 colours of a terminal.
const CATEGORIES_256: [u8; CATEGORY_COUNT] = [247, 25, 74, 214, 227, 166, 36, 175, 61];

/// From little to much, on a light ground; on a dark one the other way round, so that much is what
/// stands out.
const STEPS: [&str; 7] =
    ["#ffea46", "#dcc960", "#b5a970", "#8a8779", "#66696f", "#39486b", "#00204d"];
const STEPS_256: [u8; 7] = [17, 60, 242, 102, 144, 185, 227];

/// Number of steps of a measure.
pub(super) const STEP_COUNT: usize = STEPS.len();

impl Tone {
    /// The class of what has this colour.
    pub(super) fn class(self) -> String {
        match self {
            Self::Category(i) => format!("k{}", i % CATEGORIES.len()),
            Self::Step(i) => format!("s{}", i.min(STEPS.len() - 1)),
            Self::Unknown => "u".to_owned(),
        }
    }

    /// The colour of a terminal.
    pub(super) fn color_256(self) -> u8 {
        match self {
            Self::Category(i) => CATEGORIES_256.get(i % CATEGORIES.len()).copied().unwrap_or(247),
            Self::Step(i) => STEPS_256.get(i.min(STEPS.len() - 1)).copied().unwrap_or(17),
            Self::Unknown => 236,
        }
    }

    /// The letter of a terminal without colours.
    pub(super) fn letter(self) -> char {
        match self {
            Self::Category(_) => '#',
            Self::Step(i) => char::from_digit(u32::try_from(i).unwrap_or(9), 10).unwrap_or('9'),
            Self::Unknown => '?',
        }
    }
}

/// The colour of a part of the file.
pub(super) fn part(part: BytesUse) -> Tone {
    Tone::Category(match part {
        BytesUse::Pages | BytesUse::Values => 2,
        BytesUse::LevelsAndValues => 1,
        BytesUse::Levels => 6,
        BytesUse::DictionaryPages => 3,
        BytesUse::PageHeaders | BytesUse::ColumnIndexes => 7,
        BytesUse::OffsetIndexes => 6,
        BytesUse::BloomFilters => 4,
        BytesUse::Footer => 5,
        BytesUse::MetadataCopies => 1,
        BytesUse::Gaps => 0,
        BytesUse::OtherPages | BytesUse::Modules | BytesUse::Unparsed => return Tone::Unknown,
    })
}

/// The letter of a part of the file, where there are no colours.
pub(super) fn part_letter(part: BytesUse) -> char {
    match part {
        BytesUse::Pages => '=',
        BytesUse::PageHeaders => 'h',
        BytesUse::DictionaryPages => 'd',
        BytesUse::Levels => 'l',
        BytesUse::Values | BytesUse::LevelsAndValues => 'v',
        BytesUse::OtherPages | BytesUse::Modules => 'k',
        BytesUse::ColumnIndexes => 'c',
        BytesUse::OffsetIndexes => 'o',
        BytesUse::BloomFilters => 'b',
        BytesUse::Footer => 'F',
        BytesUse::MetadataCopies => 'm',
        BytesUse::Gaps => '.',
        BytesUse::Unparsed => '?',
    }
}

/// The class of what has the colour `tone` while the measure `by` is shown.
pub(super) fn class_by(by: &str, tone: Tone) -> String {
    let first = by.get(..1).unwrap_or_default();
    format!("{first}-{}", tone.class())
}

/// The names of the measures, whose first letters differ.
const MEASURES: [&str; 6] = ["codec", "encoding", "ratio", "size", "nulls", "age"];

/// The ground of a picture that stands alone.
pub(super) const BACKGROUND: &str =
    ".ground{fill:#fff}@media(prefers-color-scheme:dark){.ground{fill:#16181c}}";

/// The style of pictures.
pub(super) fn css() -> String {
    let mut out = String::from(SHAPES);
    let mut dark = String::from(DARK);
    for (i, color) in CATEGORIES.iter().enumerate() {
        let _ = writeln!(out, "{}{{fill:{color}}}", selectors(&format!("k{i}")));
    }
    for (i, (light, dark_color)) in STEPS.iter().zip(STEPS.iter().rev()).enumerate() {
        let classes = selectors(&format!("s{i}"));
        let _ = writeln!(out, "{classes}{{fill:{light}}}");
        let _ = writeln!(dark, "{classes}{{fill:{dark_color}}}");
    }
    let unknown = selectors("u");
    let _ = writeln!(out, "{unknown}{{fill:#fff;stroke-dasharray:2 2}}");
    let _ = writeln!(dark, "{unknown}{{fill:#16181c;stroke:#a9afb8}}");
    for name in MEASURES {
        let _ = writeln!(out, "[data-by={name}] .legend-{name}{{display:inline}}");
    }
    let _ = writeln!(out, "@media(prefers-color-scheme:dark){{{dark}}}");
    out
}

/// Anything with a colour: by a class of its own, or while a measure is shown.
fn selectors(class: &str) -> String {
    let by = MEASURES.map(|name| {
        let first = name.get(..1).unwrap_or_default();
        format!("[data-by={name}] .{first}-{class}")
    });
    format!(".{class},{}", by.join(","))
}

const SHAPES: &str = "\
text{font:10px system-ui,sans-serif;fill:#1b1d21}
.head{font-size:14px;font-weight:600}
.dim{fill:#565b63}
.end{text-anchor:end}
.cell,.part,.page,.key{stroke:#565b63;stroke-width:.6}
.page{fill:none;stroke:#9a9fa8}
.mark{fill:#000;stroke:#fff;stroke-width:.6}
.line{stroke:#9a9fa8;fill:none}
.veil{fill:#fff;opacity:.78;pointer-events:none}
.out{opacity:.2}
.legend{display:none}
[tabindex]:focus{outline:none;stroke:#d10068;stroke-width:2.5}
";

const DARK: &str = "\
text{fill:#e8eaed}
.dim{fill:#a9afb8}
.cell,.key{stroke:#a9afb8}
.part{stroke:#16181c}
.page{stroke:#6b717a}
.line{stroke:#6b717a}
.veil{fill:#16181c}
[tabindex]:focus{stroke:#ff6fae}
";
