//! The flags of `size`, `map` and `report`.

use clap::ValueEnum;
use serde::Serialize;

use super::shared::{Files, SourceFile};

#[derive(Debug, clap::Args)]
pub(crate) struct Size {
    #[command(flatten)]
    pub(crate) files: Files,
    /// The kind of things that are ranked. The headers of all pages are read for structure and
    /// encoding; the footer alone for column and codec.
    #[arg(long, default_value = "column")]
    pub(crate) by: SizeBy,
    /// Only this many lines; the others are summed up in one.
    #[arg(long, value_name = "N")]
    pub(crate) top: Option<usize>,
}

/// The things that `size` ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum SizeBy {
    /// Columns, with their indexes and bloom filters.
    Column,
    /// Values, levels, dictionaries, page headers, indexes, bloom filters, footer, gaps.
    Structure,
    /// Encodings of values.
    Encoding,
    /// Codecs of pages.
    Codec,
}

impl SizeBy {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Column => "column",
            Self::Structure => "structure",
            Self::Encoding => "encoding",
            Self::Codec => "codec",
        }
    }

    /// The header of the column of names in a table.
    pub(crate) const fn header(self) -> &'static str {
        match self {
            Self::Column => "column",
            _ => "what",
        }
    }
}

#[derive(Debug, clap::Args)]
pub(crate) struct Map {
    #[command(flatten)]
    pub(crate) source: SourceFile,
    /// The form of the picture. Default: by the extension of -o; a terminal picture on a terminal,
    /// and the layout as JSON in a pipe.
    #[arg(long, value_name = "FORM")]
    pub(crate) to: Option<Picture>,
    /// The measure that colours show.
    #[arg(long, value_name = "MEASURE", default_value = "codec")]
    pub(crate) color_by: ColorBy,
    #[command(flatten)]
    pub(crate) overlaid: Overlaid,
}

#[derive(Debug, clap::Args)]
pub(crate) struct FileReport {
    #[command(flatten)]
    pub(crate) source: SourceFile,
    /// The sections, separated by commas. Default: all but doctor.
    #[arg(long, value_name = "SECTIONS", value_delimiter = ',')]
    pub(crate) sections: Vec<Section>,
    /// The measure that the colours of the map show first.
    #[arg(long, value_name = "MEASURE", default_value = "codec")]
    pub(crate) color_by: ColorBy,
    #[command(flatten)]
    pub(crate) overlaid: Overlaid,
}

impl FileReport {
    pub(crate) fn has(&self, section: Section) -> bool {
        match self.sections.is_empty() {
            true => section != Section::Doctor,
            false => self.sections.contains(&section),
        }
    }
}

/// Flags for whatever lies on top of a picture.
#[derive(Debug, clap::Args)]
pub(crate) struct Overlaid {
    /// Fades what statistics, bloom filters, dictionaries and page indexes prune for a condition:
    /// `where=fare > 20`; see `marq help where`.
    #[arg(long, value_name = "where=EXPR", value_parser = overlay, allow_hyphen_values = true)]
    pub(crate) overlay: Option<String>,
}

/// The condition of an overlay.
fn overlay(text: &str) -> Result<String, String> {
    let condition = text.strip_prefix("where=").map(str::trim).filter(|text| !text.is_empty());
    condition.map(str::to_owned).ok_or_else(|| format!("{text:?} is not like where=fare > 20"))
}

/// The form of a picture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Picture {
    /// One picture, in a file of its own.
    Svg,
    /// A page with the picture, in which the measure can be switched, and its tables.
    Html,
    /// Characters and colours of the terminal.
    Term,
}

/// The measure that colours show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ColorBy {
    /// The codec of the pages.
    Codec,
    /// The encoding of most data pages.
    Encoding,
    /// Stored bytes of uncompressed ones.
    Ratio,
    /// Stored bits of a value.
    Size,
    /// Nulls among the values.
    Nulls,
    /// Where in the file it lies: what was written first is the oldest.
    Age,
}

impl ColorBy {
    pub(crate) const ALL: [Self; 6] =
        [Self::Codec, Self::Encoding, Self::Ratio, Self::Size, Self::Nulls, Self::Age];
}

/// A section of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Section {
    /// Rows, columns, codecs, writer.
    Summary,
    /// Row groups and columns to scale.
    Map,
    /// The bytes in their order.
    Strip,
    /// Pages along the rows, with their bounds.
    Pages,
    /// The purposes of the bytes.
    Bytes,
    /// The findings of `marq doctor`: trials that take seconds, so on request alone.
    Doctor,
}

impl Section {
    pub(crate) const ALL: [Self; 6] =
        [Self::Summary, Self::Map, Self::Strip, Self::Pages, Self::Bytes, Self::Doctor];
}
