//! `info` shows one screen about a file.

use std::collections::BTreeMap;
use std::io::Write;

use marquetry::Reader;
use marquetry::crypt::Signature;
use marquetry::format::{
    ColumnMetaData, ColumnOrders, Encoding, EncryptionAlgorithm, PageType, SortingColumn,
};
use serde::Serialize;

use crate::args::{Global, Info};
use crate::escape::escape;
use crate::failure::{Failure, Result, after_printing};
use crate::geo::{self, GeoColumn, GeoKey};
use crate::input;
use crate::json::AsText;
use crate::output::{Sink, bytes, count, share};
use crate::report::{self, Column, Report, Tables};
use crate::shredded::{self, ShreddedColumn};

/// Prints the information, or the value of one key.
pub(crate) fn run(command: &Info, global: &Global) -> Result<()> {
    let paths = input::paths(&command.files.files)?;
    if let Some(key) = &command.kv {
        return key_value(&paths, key, global);
    }
    let (mut files, end) = input::each_readable(&paths, global, |path| {
        FileInfo::new(path, &input::open(path, global)?)
    })?;
    let found = match (files.pop(), files.is_empty()) {
        (Some(file), true) => InfoReport::One(Box::new(file)),
        (last, _) => {
            files.extend(last);
            let rows = input::sum_of_rows(files.iter().map(|of| of.rows))?;
            let bytes = files.iter().fold(0u64, |sum, of| sum.saturating_add(of.file_bytes));
            InfoReport::All { bytes, rows, files }
        }
    };
    after_printing(report::print(&found, global), end)
}

fn key_value(paths: &[String], key: &str, global: &Global) -> Result<()> {
    let mut out = Sink::open(global)?;
    for path in paths {
        let reader = input::open(path, global)?;
        let pair = reader.metadata().key_values().iter().find(|pair| pair.key == key);
        let pair = pair.ok_or_else(|| Failure::Usage(format!("{path} has no key {key:?}")))?;
        let value = pair.value.as_deref().unwrap_or_default();
        // A program gets every byte of it.
        match out.terminal {
            true => writeln!(out, "{}", escape(value))?,
            false => writeln!(out, "{value}")?,
        }
    }
    out.close()?;
    Ok(())
}

#[derive(Serialize)]
#[serde(untagged)]
enum InfoReport {
    One(Box<FileInfo>),
    All { files: Vec<FileInfo>, bytes: u64, rows: u64 },
}

/// One screen about a file.
#[derive(Serialize)]
pub(crate) struct FileInfo {
    file: String,
    file_bytes: u64,
    rows: u64,
    columns: usize,
    row_groups: usize,
    row_group_rows: Vec<u64>,
    created_by: Option<String>,
    version: i32,
    bytes: Parts,
    uncompressed_bytes: u64,
    /// Compressed bytes by codec.
    codecs: BTreeMap<String, u64>,
    /// Column chunks by encoding.
    encodings: BTreeMap<String, u64>,
    /// Column chunks that stopped using their dictionary, by encoding_stats.
    dictionary_fallbacks: u64,
    encrypted_chunks: u64,
    #[serde(skip)]
    chunks: u64,
    encryption: Option<EncryptionInfo>,
    column_orders: Option<usize>,
    /// The sort order that all row groups claim, if they agree.
    sorted_by: Vec<String>,
    geospatial: Vec<GeoColumn>,
    /// The key `geo`.
    geoparquet: Option<GeoKey>,
    variants: Vec<ShreddedColumn>,
    key_values: Vec<String>,
}

/// Where the bytes of a file are.
#[derive(Default, Serialize)]
struct Parts {
    /// With the dictionary pages, where their bytes are unknown.
    data_pages: u64,
    /// `None` if the footer does not say of all of them how long they are.
    dictionary_pages: Option<u64>,
    page_index: u64,
    /// The same; then they are among the other bytes.
    bloom_filters: Option<u64>,
    footer: u64,
    other: u64,
}

/// How a file is encrypted.
#[derive(Serialize)]
struct EncryptionInfo {
    algorithm: AsText<EncryptionAlgorithm>,
    footer: &'static str,
    signature: &'static str,
}

impl FileInfo {
    pub(crate) fn new(path: &str, reader: &Reader) -> Result<Self> {
        let footer = reader.metadata();
        let head = footer.index().head();
        let mut info = Self {
            file: path.to_owned(),
            file_bytes: reader.file_len(),
            rows: 0,
            columns: footer.schema().leaves_len(),
            row_groups: footer.row_groups(),
            row_group_rows: Vec::new(),
            created_by: head.created_by.clone(),
            version: head.version,
            bytes: Parts {
                footer: footer_bytes(reader)?,
                dictionary_pages: Some(0),
                bloom_filters: Some(0),
                ..Parts::default()
            },
            uncompressed_bytes: 0,
            codecs: BTreeMap::new(),
            encodings: BTreeMap::new(),
            dictionary_fallbacks: 0,
            encrypted_chunks: 0,
            chunks: 0,
            encryption: encryption(reader),
            column_orders: head.column_orders.as_ref().map(ColumnOrders::len),
            sorted_by: match head.row_groups.split_first() {
                Some((first, others))
                    if others.iter().all(|of| of.sorting_columns == first.sorting_columns) =>
                {
                    sorted_by(reader, first.sorting_columns.as_deref())
                }
                _ => Vec::new(),
            },
            geospatial: geo::columns(reader)?,
            geoparquet: GeoKey::in_file(reader),
            variants: shredded::columns(reader)?,
            key_values: head.key_value_metadata.iter().flatten().map(|kv| kv.key.clone()).collect(),
        };
        for group in 0..info.row_groups {
            info.row_group_rows.push(footer.row_group_rows(group)?);
            for leaf in 0..info.columns {
                let chunk = footer.column_chunk(group, leaf)?;
                info.chunks += 1;
                info.encrypted_chunks += u64::from(chunk.crypto_metadata.is_some());
                for index in [chunk.offset_index_length, chunk.column_index_length] {
                    add(&mut info.bytes.page_index, len(index));
                }
                if let Some(meta) = chunk.meta_data {
                    info.add(&meta);
                }
            }
        }
        info.rows = reader.file_rows()?;
        let known = info.parts().iter().fold(0u64, |known, part| known.saturating_add(part.1));
        info.bytes.other = info.file_bytes.saturating_sub(known);
        Ok(info)
    }

    /// Adds a column chunk.
    fn add(&mut self, meta: &ColumnMetaData) {
        let compressed = size(meta.total_compressed_size);
        let sum = |all: Option<u64>, of_chunk: Option<u64>| Some(all?.saturating_add(of_chunk?));
        let (before, dictionary) = (self.bytes.dictionary_pages, dictionary_bytes(meta));
        self.bytes.dictionary_pages = sum(before, dictionary);
        let data = match self.bytes.dictionary_pages {
            Some(_) => compressed - dictionary.unwrap_or_default().min(compressed),
            None => compressed.saturating_add(before.unwrap_or_default()),
        };
        add(&mut self.bytes.data_pages, data);
        let filter = match meta.bloom_filter_offset {
            Some(_) => meta.bloom_filter_length.and_then(|n| u64::try_from(n).ok()),
            None => Some(0),
        };
        self.bytes.bloom_filters = sum(self.bytes.bloom_filters, filter);
        add(&mut self.uncompressed_bytes, size(meta.total_uncompressed_size));
        add(self.codecs.entry(meta.codec.to_string()).or_default(), compressed);
        for encoding in &meta.encodings {
            *self.encodings.entry(encoding.to_string()).or_default() += 1;
        }
        self.dictionary_fallbacks += u64::from(gave_up(meta));
    }

    fn parts(&self) -> [(&'static str, u64); 6] {
        let Parts { data_pages, dictionary_pages, page_index, bloom_filters, footer, other } =
            self.bytes;
        let data = match dictionary_pages {
            Some(_) => "data pages",
            None => "data and dictionary pages",
        };
        let rest = if bloom_filters.is_some() { "other" } else { "bloom filters, other" };
        [
            (data, data_pages),
            ("dictionary pages", dictionary_pages.unwrap_or_default()),
            ("page index", page_index),
            ("bloom filters", bloom_filters.unwrap_or_default()),
            ("footer", footer),
            (rest, other),
        ]
    }

    /// The table about the file, line by line.
    pub(crate) fn about(&self, global: &Global) -> Vec<(&'static str, String)> {
        let groups = &self.row_group_rows;
        let average = self.rows.checked_div(groups.len() as u64).unwrap_or_default();
        let [least, max] = [groups.iter().min(), groups.iter().max()]
            .map(|rows| count(rows.copied().unwrap_or_default(), global));
        let shares = |map: &BTreeMap<String, u64>, whole: u64| {
            let one = |(name, n): (&String, &u64)| format!("{name} {}", share(*n, whole));
            map.iter().map(one).collect::<Vec<_>>().join(", ")
        };
        let compressed = self.codecs.values().fold(0u64, |all, n| all.saturating_add(*n));
        let (raw, chunks) = (self.uncompressed_bytes, self.chunks);
        let row_groups = groups.len();
        let average = count(average, global);
        let row_groups = if least == max {
            format!("{row_groups} of {max} rows")
        } else {
            format!("{row_groups} of {least} to {max} rows, {average} on average")
        };
        let mut lines = vec![
            ("size", bytes(self.file_bytes, global)),
            ("rows", count(self.rows, global)),
            ("columns", count(self.columns as u64, global)),
            ("row groups", row_groups),
            ("written by", self.created_by.clone().unwrap_or_else(|| "not stated".to_owned())),
            ("codecs, by bytes", shares(&self.codecs, compressed)),
            (
                "compressed",
                format!(
                    "{} of {} ({})",
                    bytes(compressed, global),
                    bytes(raw, global),
                    share(compressed, raw)
                ),
            ),
            ("encodings, by chunks", shares(&self.encodings, chunks)),
            (
                "dictionaries given up",
                format!("in {} of {chunks} column chunks", self.dictionary_fallbacks),
            ),
        ];
        if let Some(EncryptionInfo { algorithm, footer, signature }) = &self.encryption {
            let encrypted = self.encrypted_chunks;
            let text = format!("{encrypted} of {chunks} column chunks, by {}", algorithm.0);
            lines.extend([("encrypted", text), ("footer", format!("{footer}, {signature}"))]);
        }
        lines.extend(self.geoparquet.as_ref().map(|geo| ("GeoParquet", geo.about())));
        let lists = [("sorted by", &self.sorted_by), ("keys", &self.key_values)];
        let lists = lists.into_iter().filter(|(_, list)| !list.is_empty());
        lines.extend(lists.map(|(name, list)| (name, list.join(", "))));
        lines
    }

    pub(crate) fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        out.about(&self.file, &self.about(out.global))?;
        let parts = self.parts().map(|(name, n)| (name, n, self.file_bytes));
        let columns = [
            Column::text("where the bytes are", |(name, ..): &(&str, u64, u64)| (*name).to_owned()),
            Column::bytes("bytes", |(_, n, _)| Some(*n)),
            Column::number("share", |(_, n, all)| share(*n, *all)),
        ];
        out.show("", &columns, parts.iter().filter(|(_, n, _)| *n > 0), &[])?;
        geo::show(&self.geospatial, out)?;
        if let Some(geo) = &self.geoparquet {
            geo.show(out)?;
        }
        shredded::show(&self.variants, out)
    }
}

impl Report for InfoReport {
    const COMMAND: &'static str = "info";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        match self {
            Self::One(file) => std::slice::from_ref(&**file).iter(),
            Self::All { files, .. } => files.iter(),
        }
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        let (files, bytes, rows) = match self {
            Self::One(file) => return file.tables(out),
            Self::All { files, bytes, rows } => (files, *bytes, *rows),
        };
        files.iter().try_for_each(|file| file.tables(out))?;
        let columns = [
            Column::number("files", |(files, ..): &(usize, u64, u64)| files.to_string()),
            Column::bytes("size", |(_, bytes, _)| Some(*bytes)),
            Column::count("rows", |(.., rows)| Some(*rows)),
        ];
        out.show("in all", &columns, [&(files.len(), bytes, rows)], &[])
    }
}

/// Adds bytes to a sum of them: all that a file states may be more than there are numbers for.
fn add(sum: &mut u64, bytes: u64) {
    *sum = sum.saturating_add(bytes);
}

/// A size of the metadata, which is not negative in files that are right.
pub(crate) fn size(n: i64) -> u64 {
    u64::try_from(n).unwrap_or_default()
}

fn len(n: Option<i32>) -> u64 {
    n.and_then(|n| u64::try_from(n).ok()).unwrap_or_default()
}

/// Bytes of the dictionary page of a chunk, if the footer says where it ends. Some writers leave
/// out where it begins, or state that place for the data pages, too.
fn dictionary_bytes(meta: &ColumnMetaData) -> Option<u64> {
    let compressed = size(meta.total_compressed_size);
    let bytes = match meta.dictionary_page_offset.filter(|at| *at > 0) {
        Some(at) => size(meta.data_page_offset).saturating_sub(size(at)).min(compressed),
        None if meta.encodings.iter().any(is_coded) => 0,
        None => return Some(0),
    };
    (bytes > 0 || compressed == 0).then_some(bytes)
}

/// Whether values of this encoding are indexes into a dictionary.
fn is_coded(encoding: &Encoding) -> bool {
    matches!(encoding, Encoding::RleDictionary | Encoding::PlainDictionary)
}

/// Bytes of the footer as it is stored, its length and the magic number included.
fn footer_bytes(reader: &Reader) -> Result<u64> {
    let end = reader.file_len();
    let tail = reader.source().read(end.saturating_sub(8)..end)?;
    let len = tail.first_chunk::<4>().map_or(0, |len| u32::from_le_bytes(*len));
    Ok(u64::from(len) + 8)
}

/// How the file is encrypted, if it is.
fn encryption(reader: &Reader) -> Option<EncryptionInfo> {
    let footer = reader.metadata();
    let algorithm = match footer.crypto_metadata() {
        Some(crypto) => crypto.encryption_algorithm,
        None => footer.index().head().encryption_algorithm.clone()?,
    };
    Some(EncryptionInfo {
        algorithm: AsText(algorithm),
        footer: if footer.is_encrypted() { "encrypted" } else { "signed" },
        signature: match footer.signature() {
            Signature::Encrypted => "authentic",
            Signature::Verified => "verified",
            Signature::Unverified => "not verified",
            _ => "not signed",
        },
    })
}

/// Whether data pages of a chunk with a dictionary do without it.
fn gave_up(meta: &ColumnMetaData) -> bool {
    let mut with = false;
    let mut without = false;
    for stats in meta.encoding_stats.iter().flatten() {
        if matches!(stats.page_type, PageType::DataPage | PageType::DataPageV2) && stats.count > 0 {
            with |= is_coded(&stats.encoding);
            without |= !is_coded(&stats.encoding);
        }
    }
    with && without
}

/// The columns that a row group claims to be sorted by.
pub(crate) fn sorted_by(reader: &Reader, columns: Option<&[SortingColumn]>) -> Vec<String> {
    let one = |sorting: &SortingColumn| {
        let name = sorted_name(reader, sorting);
        format!("{name}{}", if sorting.descending { " descending" } else { "" })
    };
    columns.into_iter().flatten().map(one).collect()
}

/// The path of a column that a row group claims to be sorted by.
pub(crate) fn sorted_name(reader: &Reader, sorting: &SortingColumn) -> String {
    let leaf = usize::try_from(sorting.column_idx).ok();
    let node = leaf.and_then(|leaf| reader.metadata().schema().leaf_node(leaf).ok());
    node.map_or_else(|| sorting.column_idx.to_string(), |node| node.path().dotted())
}
