//! `info`: one screen about a file.

use std::collections::BTreeMap;

use marquetry::Reader;
use marquetry::format::ColumnOrders;
use serde_json::{Value, json};

use crate::args::{Global, Info};
use crate::escape::escape;
use crate::failure::{Failure, Result};
use crate::geo;
use crate::input;
use crate::output::{Sink, bytes, count, share};
use crate::report::{Report, Section};
use crate::shredded;

/// Prints the information, or the value of one key.
pub(crate) fn run(command: &Info, global: &Global) -> Result<()> {
    let paths = input::paths(&command.files.files)?;
    if let Some(key) = &command.kv {
        return key_value(&paths, key, global);
    }
    let (found, end) = input::each_readable(&paths, global, |path| {
        let reader = input::open(path, global)?;
        let summary = Summary::of(&reader)?;
        let sections = summary.sections(path, &reader, global)?;
        Ok((summary.json(path, &reader)?, sections, reader.file_len(), reader.file_rows()?))
    })?;
    let (bytes_all, rows) =
        found.iter().fold((0, 0), |(bytes, rows), one| (bytes + one.2, rows + one.3));
    let (mut files, mut sections) = (Vec::new(), Vec::new());
    for (file, shown, ..) in found {
        files.push(file);
        sections.extend(shown);
    }
    let json = match files.as_slice() {
        [one] => one.clone(),
        _ => {
            let all = [files.len().to_string(), bytes(bytes_all, global), count(rows, global)];
            sections
                .push(Section::new("in all", &[">files", ">size", ">rows"]).with(vec![all.into()]));
            json!({ "files": files, "bytes": bytes_all, "rows": rows })
        }
    };
    Report { command: "info", json, records: files, sections }.print(global)?;
    end
}

fn key_value(paths: &[String], key: &str, global: &Global) -> Result<()> {
    use std::io::Write;
    let mut out = Sink::open(global)?;
    for path in paths {
        let reader = input::open(path, global)?;
        let pair = reader.metadata().key_values().iter().find(|pair| pair.key == key);
        match pair {
            Some(pair) => {
                let value = pair.value.as_deref().unwrap_or_default();
                // A program gets every byte of it.
                if out.terminal {
                    writeln!(out, "{}", escape(value))?
                } else {
                    writeln!(out, "{value}")?
                }
            }
            None => return Err(Failure::Usage(format!("{path} has no key {key:?}"))),
        }
    }
    out.close()?;
    Ok(())
}

/// Totals over the column chunks.
#[derive(Default)]
struct Summary {
    data: u64,
    dictionary: u64,
    index: u64,
    bloom: u64,
    footer: u64,
    raw: u64,
    codecs: BTreeMap<String, u64>,
    encodings: BTreeMap<String, u64>,
    /// Column chunks that stopped using their dictionary, by encoding_stats.
    fallbacks: u64,
    encrypted: u64,
    chunks: u64,
    group_rows: Vec<u64>,
}

impl Summary {
    fn of(reader: &Reader) -> Result<Self> {
        let footer = reader.metadata();
        let mut summary = Self { footer: footer_bytes(reader)?, ..Self::default() };
        let size = |n: i64| u64::try_from(n).unwrap_or_default();
        for group in 0..footer.row_groups() {
            summary.group_rows.push(footer.row_group_rows(group)?);
            for leaf in 0..footer.schema().leaves_len() {
                let chunk = footer.column_chunk(group, leaf)?;
                summary.chunks += 1;
                let len =
                    |n: Option<i32>| n.and_then(|n| u64::try_from(n).ok()).unwrap_or_default();
                summary.index += len(chunk.offset_index_length) + len(chunk.column_index_length);
                summary.encrypted += u64::from(chunk.crypto_metadata.is_some());
                let Some(meta) = chunk.meta_data else { continue };
                let compressed = size(meta.total_compressed_size);
                let dictionary = meta.dictionary_page_offset.filter(|at| *at > 0);
                let dictionary =
                    dictionary.map_or(0, |at| size(meta.data_page_offset - at).min(compressed));
                summary.dictionary += dictionary;
                summary.data += compressed - dictionary;
                summary.raw += size(meta.total_uncompressed_size);
                summary.bloom += len(meta.bloom_filter_length);
                *summary.codecs.entry(meta.codec.to_string()).or_default() += compressed;
                for encoding in &meta.encodings {
                    *summary.encodings.entry(encoding.to_string()).or_default() += 1;
                }
                summary.fallbacks += u64::from(gave_up(&meta));
            }
        }
        Ok(summary)
    }

    fn rows(&self) -> u64 {
        self.group_rows.iter().sum()
    }

    fn parts(&self, reader: &Reader) -> Vec<(&'static str, u64)> {
        let known = self.data + self.dictionary + self.index + self.bloom + self.footer;
        vec![
            ("data pages", self.data),
            ("dictionary pages", self.dictionary),
            ("page index", self.index),
            ("bloom filters", self.bloom),
            ("footer", self.footer),
            ("other", reader.file_len().saturating_sub(known)),
        ]
    }

    fn json(&self, path: &str, reader: &Reader) -> Result<Value> {
        let head = reader.metadata().index().head();
        let parts: serde_json::Map<String, Value> = self
            .parts(reader)
            .into_iter()
            .map(|(name, n)| (name.replace(' ', "_"), json!(n)))
            .collect();
        Ok(json!({
            "file": path, "file_bytes": reader.file_len(), "rows": self.rows(), "columns": reader.metadata().schema().leaves_len(),
            "row_groups": self.group_rows.len(), "row_group_rows": self.group_rows, "created_by": head.created_by,
            "version": head.version, "bytes": parts, "uncompressed_bytes": self.raw, "codecs": self.codecs,
            "encodings": self.encodings, "dictionary_fallbacks": self.fallbacks, "encrypted_chunks": self.encrypted,
            "encryption": encryption(reader),
            "column_orders": head.column_orders.as_ref().map(ColumnOrders::len),
            "sorted_by": sorted_by(reader),
            "geospatial": geo::columns(reader)?.iter().map(geo::GeoColumn::json).collect::<Vec<_>>(),
            "variants": shredded::columns(reader)?.iter().map(shredded::ShreddedColumn::json).collect::<Vec<_>>(),
            "key_values": head.key_value_metadata.iter().flatten().map(|kv| kv.key.clone()).collect::<Vec<_>>(),
        }))
    }

    fn sections(&self, path: &str, reader: &Reader, global: &Global) -> Result<Vec<Section>> {
        let head = reader.metadata().index().head();
        let groups = &self.group_rows;
        let average = self.rows().checked_div(groups.len() as u64).unwrap_or_default();
        let least = groups.iter().min().copied().unwrap_or_default();
        let max = groups.iter().max().copied().unwrap_or_default();
        let list = |map: &BTreeMap<String, u64>, whole: u64| {
            map.iter()
                .map(|(name, n)| format!("{name} {}", share(*n, whole)))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let compressed: u64 = self.codecs.values().sum();
        let mut rows = vec![
            line("size", bytes(reader.file_len(), global)),
            line("rows", count(self.rows(), global)),
            line("columns", count(reader.metadata().schema().leaves_len() as u64, global)),
            line(
                "row groups",
                format!(
                    "{} of {} to {} rows, {} on average",
                    groups.len(),
                    count(least, global),
                    count(max, global),
                    count(average, global)
                ),
            ),
            line("written by", head.created_by.clone().unwrap_or_else(|| "not stated".to_owned())),
            line("codecs", list(&self.codecs, compressed)),
            line(
                "compressed",
                format!(
                    "{} of {} ({})",
                    bytes(compressed, global),
                    bytes(self.raw, global),
                    share(compressed, self.raw)
                ),
            ),
            line("encodings", list(&self.encodings, self.chunks)),
            line(
                "dictionaries given up",
                format!("in {} of {} column chunks", self.fallbacks, self.chunks),
            ),
        ];
        if let Some(encryption) = encryption(reader) {
            let of = |name: &str| encryption[name].as_str().unwrap_or_default().to_owned();
            let (encrypted, chunks) = (self.encrypted, self.chunks);
            let algorithm = of("algorithm");
            let text = format!("{encrypted} of {chunks} column chunks, by {algorithm}");
            rows.push(line("encrypted", text));
            rows.push(line("footer", format!("{}, {}", of("footer"), of("signature"))));
        }
        let sorted = sorted_by(reader);
        if !sorted.is_empty() {
            rows.push(line("sorted by", sorted.join(", ")));
        }
        let keys: Vec<&str> =
            head.key_value_metadata.iter().flatten().map(|kv| kv.key.as_str()).collect();
        if !keys.is_empty() {
            rows.push(line("keys", keys.join(", ")));
        }
        let parts = self
            .parts(reader)
            .into_iter()
            .filter(|(_, n)| *n > 0)
            .map(|(name, n)| vec![name.to_owned(), bytes(n, global), share(n, reader.file_len())])
            .collect();
        let mut about = Section::new("", &["file"]).with(rows);
        // A header that begins with > is of numbers.
        let here = if path.starts_with('>') { "./" } else { "" };
        about.headers.push(format!("{here}{path}").into());
        let bytes = Section::new("", &["where the bytes are", ">bytes", ">share"]).with(parts);
        let mut sections = vec![about, bytes];
        let geo = geo::columns(reader)?;
        if !geo.is_empty() {
            let headers = &["geometries", "least", "greatest", "types", "row groups with a box"];
            let rows = geo.iter().map(geo::GeoColumn::cells).collect();
            sections.push(Section::new("", headers).with(rows));
        }
        let variants = shredded::columns(reader)?;
        if !variants.is_empty() {
            let headers = &["variants", "path", "type", ">typed values", ">other values", ">typed"];
            let rows = variants.iter().flat_map(|column| column.cells(global)).collect();
            sections.push(Section::new("", headers).with(rows));
        }
        Ok(sections)
    }
}

/// Bytes of the footer as it is stored, its length and the magic number included.
fn footer_bytes(reader: &Reader) -> Result<u64> {
    let end = reader.file_len();
    let tail = reader.source().read(end.saturating_sub(8)..end)?;
    let len = tail.first_chunk::<4>().map_or(0, |len| u32::from_le_bytes(*len));
    Ok(u64::from(len) + 8)
}

/// How the file is encrypted, if it is.
fn encryption(reader: &Reader) -> Option<Value> {
    use marquetry::crypt::Signature;
    let footer = reader.metadata();
    let algorithm = match footer.crypto_metadata() {
        Some(crypto) => crypto.encryption_algorithm,
        None => footer.index().head().encryption_algorithm.clone()?,
    };
    let signature = match footer.signature() {
        Signature::Encrypted => "authentic",
        Signature::Verified => "verified",
        Signature::Unverified => "not verified",
        _ => "not signed",
    };
    let footer = if footer.is_encrypted() { "encrypted" } else { "signed" };
    Some(json!({ "algorithm": algorithm.to_string(), "footer": footer, "signature": signature }))
}

fn line(name: &str, value: String) -> Vec<String> {
    vec![name.to_owned(), value]
}

/// Whether data pages of a chunk with a dictionary do without it.
fn gave_up(meta: &marquetry::format::ColumnMetaData) -> bool {
    use marquetry::format::{Encoding, PageType};
    let coded = |encoding| matches!(encoding, Encoding::RleDictionary | Encoding::PlainDictionary);
    let mut with = false;
    let mut without = false;
    for stats in meta.encoding_stats.iter().flatten() {
        if matches!(stats.page_type, PageType::DataPage | PageType::DataPageV2) && stats.count > 0 {
            with |= coded(stats.encoding);
            without |= !coded(stats.encoding);
        }
    }
    with && without
}

/// The sort order that all row groups claim, if they agree.
fn sorted_by(reader: &Reader) -> Vec<String> {
    let footer = reader.metadata();
    let groups = &footer.index().head().row_groups;
    let Some(first) = groups.first().and_then(|group| group.sorting_columns.clone()) else {
        return Vec::new();
    };
    if groups.iter().any(|group| group.sorting_columns.as_ref() != Some(&first)) {
        return Vec::new();
    }
    first
        .iter()
        .filter_map(|sorting| {
            let node = footer.schema().leaf_node(usize::try_from(sorting.column_idx).ok()?).ok()?;
            Some(format!(
                "{}{}",
                node.path().dotted(),
                if sorting.descending { " descending" } else { "" }
            ))
        })
        .collect()
}
