//! `size` ranks what a file spends its bytes on.

use std::collections::BTreeMap;

use marquetry::format::CompressionCodec;
use serde::Serialize;

use crate::args::{Global, Size, SizeBy};
use crate::failure::{Result, after_printing};
use crate::input;
use crate::layout::{BytesUse, Detail, FileLayout, Piece, pieces};
use crate::output::share;
use crate::report::{self, Column, Report, ReportMemory, Tables};

#[derive(Serialize)]
struct SizeReport {
    by: SizeBy,
    files: Vec<FileSize>,
}

/// The uses of the bytes of a file, the largest first.
#[derive(Serialize)]
struct FileSize {
    file: String,
    file_bytes: u64,
    /// Why the footer cannot be read, if it cannot.
    problem: Option<String>,
    lines: Vec<SizeLine>,
}

#[derive(Serialize)]
struct SizeLine {
    /// The column, the codec, the encoding, or what the bytes are for.
    name: String,
    kind: &'static str,
    bytes: u64,
    /// Of the file.
    share: f64,
    /// Their bytes once decompressed, if that is known.
    uncompressed_bytes: Option<u64>,
    /// Bytes of it that are no pages: indexes and bloom filters.
    index_bytes: u64,
    bloom_filter_bytes: u64,
    #[serde(skip)]
    shown_share: String,
}

/// Ranks the bytes of each file.
pub(crate) fn run(command: &Size, global: &Global) -> Result<()> {
    let paths = input::paths(&command.files.files)?;
    let mut broken = Vec::new();
    let (files, end) = input::each_readable(&paths, global, |path| {
        let layout = FileLayout::open(path, global)?;
        let file = FileSize::new(&layout, command, global)?;
        broken.extend(layout.problem().map(|_| layout));
        Ok(file)
    })?;
    let printed = report::print(&SizeReport { by: command.by, files }, global);
    let end = end.and_then(|()| broken.iter().try_for_each(|layout| layout.end(global)));
    after_printing(printed, end)
}

/// A group of bytes that a line is about.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Group {
    kind: &'static str,
    name: String,
    /// The leaf, of a column: several may have one name.
    leaf: Option<usize>,
}

impl Group {
    fn new(kind: &'static str, name: impl Into<String>) -> Self {
        Self { kind, name: name.into(), leaf: None }
    }

    fn of_column(leaf: usize, name: impl Into<String>) -> Self {
        Self { leaf: Some(leaf), ..Self::new("column", name) }
    }
}

/// Bytes of a group.
#[derive(Default)]
struct Sum {
    bytes: u64,
    uncompressed_bytes: Option<u64>,
    index_bytes: u64,
    bloom_filter_bytes: u64,
}

impl FileSize {
    fn new(layout: &FileLayout, command: &Size, global: &Global) -> Result<Self> {
        let path = &layout.path;
        let memory = ReportMemory::new(global);
        let mut sums: BTreeMap<Group, Sum> = BTreeMap::new();
        let (mut full, mut text_bytes) = (None, 0);
        let row_groups = layout.footer().map_or(0, |footer| footer.row_groups());
        let chunks = row_groups.saturating_mul(layout.columns());
        memory.check(path, chunks.saturating_mul(size_of::<Option<CompressionCodec>>()))?;
        let codecs = Codecs::new(layout, command.by);
        let detail = match command.by {
            SizeBy::Column | SizeBy::Codec => Detail::Chunks,
            SizeBy::Structure | SizeBy::Encoding => Detail::Pages,
        };
        let walked = pieces(&layout.inspector, detail, |piece| {
            let group = codecs.group(piece, command.by);
            if !sums.contains_key(&group) {
                text_bytes += group.name.len() + size_of::<(Group, Sum)>();
                full = full.take().or_else(|| memory.check(path, 2 * text_bytes).err());
            }
            if full.is_none() {
                sums.entry(group).or_default().add(piece);
            }
        });
        walked.map_err(|e| e.at_file(path.as_str()))?;
        if let Some(failure) = full {
            return Err(failure);
        }
        if command.by == SizeBy::Column {
            add_uncompressed(layout, &mut sums);
        }
        let file_bytes = layout.file_bytes();
        let mut lines: Vec<SizeLine> = sums
            .into_iter()
            .map(|(Group { kind, name, .. }, sum)| SizeLine::new(name, kind, &sum, file_bytes))
            .collect();
        // Stable: of equal ones the first by its name.
        lines.sort_by_key(|line| std::cmp::Reverse(line.bytes));
        if let Some(top) = command.top {
            others(&mut lines, top, file_bytes);
        }
        Ok(Self { file: path.clone(), file_bytes, problem: layout.problem(), lines })
    }

    fn title(&self, by: SizeBy, global: &Global) -> String {
        let largest = self.lines.iter().find(|line| line.kind != "others");
        let first = largest.map_or_else(String::new, |line| {
            let what = if line.kind == "column" { "the column " } else { "" };
            format!(": {what}{} {}", line.name, line.shown_share)
        });
        let bytes = crate::output::bytes(self.file_bytes, global);
        format!("{}: {bytes} by {}{first}", self.file, by.name())
    }
}

/// Adds what the chunks of each column decompress to.
fn add_uncompressed(layout: &FileLayout, sums: &mut BTreeMap<Group, Sum>) {
    let mut leaves: Vec<u64> = vec![0; layout.columns()];
    for chunk in layout.chunks() {
        if let Some(bytes) = leaves.get_mut(chunk.column) {
            *bytes = bytes.saturating_add(chunk.uncompressed_bytes);
        }
    }
    for (leaf, bytes) in leaves.into_iter().enumerate() {
        if let Some(sum) = sums.get_mut(&Group::of_column(leaf, layout.column(leaf))) {
            sum.uncompressed_bytes = Some(bytes);
        }
    }
}

/// Leaves the first lines, and sums up the others in one.
fn others(lines: &mut Vec<SizeLine>, top: usize, file_bytes: u64) {
    let rest = lines.split_off(top.min(lines.len()));
    if rest.is_empty() {
        return;
    }
    let mut sum = Sum::default();
    for line in &rest {
        sum.bytes = sum.bytes.saturating_add(line.bytes);
        sum.index_bytes = sum.index_bytes.saturating_add(line.index_bytes);
        sum.bloom_filter_bytes = sum.bloom_filter_bytes.saturating_add(line.bloom_filter_bytes);
    }
    lines.push(SizeLine::new(format!("{} others", rest.len()), "others", &sum, file_bytes));
}

impl Sum {
    fn add(&mut self, piece: &Piece<'_>) {
        self.bytes = self.bytes.saturating_add(piece.bytes);
        let inside = match piece.part {
            BytesUse::ColumnIndexes | BytesUse::OffsetIndexes => &mut self.index_bytes,
            BytesUse::BloomFilters => &mut self.bloom_filter_bytes,
            _ => return,
        };
        *inside = inside.saturating_add(piece.bytes);
    }
}

impl SizeLine {
    fn new(name: String, kind: &'static str, sum: &Sum, file_bytes: u64) -> Self {
        #[expect(clippy::cast_precision_loss, reason = "a share")]
        let part = sum.bytes as f64 / file_bytes.max(1) as f64;
        Self {
            name,
            kind,
            bytes: sum.bytes,
            share: (part * 1e6).round() / 1e6,
            uncompressed_bytes: sum.uncompressed_bytes,
            index_bytes: sum.index_bytes,
            bloom_filter_bytes: sum.bloom_filter_bytes,
            shown_share: share(sum.bytes, file_bytes),
        }
    }
}

/// The codec of each column chunk, where that is what bytes are ranked by.
struct Codecs {
    columns: usize,
    of_chunks: Vec<Option<CompressionCodec>>,
}

impl Codecs {
    fn new(layout: &FileLayout, by: SizeBy) -> Self {
        let columns = if by == SizeBy::Codec { layout.columns() } else { 0 };
        let mut of_chunks = Vec::new();
        if columns > 0 {
            for chunk in layout.chunks() {
                let index = chunk.row_group * columns + chunk.column;
                // A row group may have fewer chunks than there are columns.
                of_chunks.resize(of_chunks.len().max(index + 1), None);
                if let Some(codec) = of_chunks.get_mut(index) {
                    *codec = chunk.codec;
                }
            }
        }
        Self { columns, of_chunks }
    }

    /// The group that a piece counts for.
    fn group(&self, piece: &Piece<'_>, by: SizeBy) -> Group {
        let structure = || Group::new("structure", piece.part.name());
        match by {
            SizeBy::Column => match piece.column.zip(piece.leaf) {
                Some((column, leaf)) => Group::of_column(leaf, &**column),
                None => structure(),
            },
            SizeBy::Structure => structure(),
            SizeBy::Encoding => match (piece.encoding, piece.part) {
                (Some(encoding), BytesUse::DictionaryPages) => {
                    Group::new("dictionary", format!("dictionary pages, {encoding}"))
                }
                (Some(encoding), BytesUse::Values | BytesUse::LevelsAndValues) => {
                    Group::new("encoding", encoding.to_string())
                }
                _ => structure(),
            },
            SizeBy::Codec => match self.codec(piece) {
                Some(codec) => Group::new("codec", codec.to_string()),
                None => structure(),
            },
        }
    }

    fn codec(&self, piece: &Piece<'_>) -> Option<CompressionCodec> {
        if piece.part != BytesUse::Pages {
            return None;
        }
        *self.of_chunks.get(piece.row_group? * self.columns + piece.leaf?)?
    }
}

impl Report for SizeReport {
    const COMMAND: &'static str = "size";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        #[derive(Serialize)]
        struct LineOfFile<'a> {
            file: &'a str,
            #[serde(flatten)]
            line: &'a SizeLine,
        }
        self.files
            .iter()
            .flat_map(|file| file.lines.iter().map(|line| LineOfFile { file: &file.file, line }))
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        let columns = [
            Column::text(self.by.header(), |of: &SizeLine| of.name.clone()),
            Column::bytes("bytes", |of| Some(of.bytes)),
            Column::number("share", |of| of.shown_share.clone()),
            Column::bytes("raw", |of| of.uncompressed_bytes),
            Column::bytes("indexes", |of| Some(of.index_bytes).filter(|n| *n > 0)),
            Column::bytes("bloom filters", |of| Some(of.bloom_filter_bytes).filter(|n| *n > 0)),
        ];
        let columns = match self.by {
            SizeBy::Column => &columns[..],
            _ => &columns[..3],
        };
        for file in &self.files {
            let title = file.title(self.by, out.global);
            out.show(&title, columns, &file.lines, &["raw", "indexes", "bloom filters"])?;
        }
        Ok(())
    }
}
