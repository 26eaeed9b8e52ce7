//! `crypt audit` shows which parts of a file are protected, by which keys, and which are readable
//! without keys.

use std::path::Path;

use glob::Pattern;
use marquetry::crypt::Signature;
use marquetry::format::{
    ColumnChunk, ColumnCryptoMetaData, ColumnMetaData, EncryptionAlgorithm, FileCryptoMetaData,
};
use marquetry::{ErrorKind, Reader};
use serde::Serialize;

use super::footer::{AadPrefix, KeyName, crypto_metadata};
use crate::args::{Audit, Global};
use crate::failure::{Failure, Result, after_printing};
use crate::json::AsText;
use crate::report::{self, Column, Report, Tables};
use crate::{input, keys};

/// Shows the protection of each file; fails if a column that must be protected is not.
pub(crate) fn run(command: &Audit, global: &Global) -> Result<()> {
    let mut required = Required::new(&command.require)?;
    let mut files = Vec::new();
    let (mut is_partial, mut denied) = (false, None);
    for path in input::paths(&command.files.files)? {
        let file = match FileAudit::new(&path, global) {
            Ok(file) => file,
            Err(failure @ (Failure::File(_) | Failure::Content { .. })) => {
                failure.report(global.format);
                is_partial = true;
                continue;
            }
            Err(other) => return Err(other),
        };
        if denied.is_none() {
            denied = file.denial(&required);
        }
        required.check(&file);
        files.push(file);
    }
    let audited = Audited { files, violations: std::mem::take(&mut required.violations) };
    let printed = report::print(&audited, global);
    let texts: Vec<String> = audited.violations.into_iter().map(|of| of.text).collect();
    let verdict = match denied {
        _ if !texts.is_empty() => Err(Failure::Found(texts)),
        Some(error) => Err(error),
        None if is_partial => Err(Failure::Partial),
        None => required.all_were_met(),
    };
    after_printing(printed, verdict)
}

#[derive(Serialize)]
struct Audited {
    files: Vec<FileAudit>,
    violations: Vec<Violation>,
}

/// A column that is not protected, and must be.
#[derive(Serialize)]
struct Violation {
    file: String,
    column: String,
    pattern: String,
    #[serde(skip)]
    text: String,
}

/// Columns that must be protected.
struct Required {
    /// Whether a column met each pattern.
    patterns: Vec<(Pattern, bool)>,
    violations: Vec<Violation>,
}

impl Required {
    fn new(patterns: &[String]) -> Result<Self> {
        let patterns = patterns.iter().map(|text| {
            let pattern = Pattern::new(text);
            pattern.map_err(|e| Failure::Usage(format!("--require {text}: {e}")))
        });
        let patterns = patterns.map(|pattern| Ok((pattern?, false))).collect::<Result<_>>()?;
        Ok(Self { patterns, violations: Vec::new() })
    }

    /// Notes the columns of the file that a pattern matches and that are not protected.
    fn check(&mut self, file: &FileAudit) {
        for column in file.columns.iter().flatten() {
            for (pattern, was_met) in &mut self.patterns {
                if !column.is_named_by(pattern) {
                    continue;
                }
                *was_met = true;
                if column.plain_chunks > 0 {
                    let (path, name) = (&file.file, &column.column);
                    let ColumnAudit { plain_chunks, chunks, .. } = column;
                    self.violations.push(Violation {
                        file: path.clone(),
                        column: name.clone(),
                        pattern: pattern.as_str().to_owned(),
                        text: format!(
                            "{path}: the column {name} must be protected (--require {pattern}), \
                             and {plain_chunks} of its {chunks} chunks are in plain text"
                        ),
                    });
                }
            }
        }
    }

    /// A pattern without a column is a mistake, or the column has another name.
    fn all_were_met(&self) -> Result<()> {
        match self.patterns.iter().find(|(_, was_met)| !was_met) {
            Some((pattern, _)) => {
                Err(Failure::Usage(format!("--require {pattern}: no column has that name")))
            }
            None => Ok(()),
        }
    }
}

/// How the footer is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum FooterMode {
    Plain,
    Signed,
    Encrypted,
}

/// The findings on a file.
#[derive(Serialize)]
struct FileAudit {
    file: String,
    footer: FooterAudit,
    plain_columns: Option<usize>,
    protected_columns: Option<usize>,
    /// `None` where the footer cannot be read.
    columns: Option<Vec<ColumnAudit>>,
    /// The parts of the file that can be read without keys.
    leaks: Vec<String>,
    #[serde(skip)]
    has_keys: bool,
}

/// The findings on a footer.
#[derive(Serialize)]
struct FooterAudit {
    mode: FooterMode,
    algorithm: Option<AsText<EncryptionAlgorithm>>,
    key: Option<KeyName>,
    signature: &'static str,
    aad_prefix: &'static str,
    aad_prefix_text: Option<String>,
    /// Why the keys that were given do not open it.
    problem: Option<String>,
}

/// The findings on a column, over all row groups.
#[derive(Default, Serialize)]
struct ColumnAudit {
    column: String,
    #[serde(skip)]
    names: Vec<String>,
    protection: &'static str,
    key: Option<KeyName>,
    other_keys: Vec<KeyName>,
    /// Whether its keys were found, where some were given.
    access: Option<&'static str>,
    statistics: &'static str,
    pages: &'static str,
    chunks: usize,
    plain_chunks: usize,
    leaks: Vec<&'static str>,
    #[serde(skip)]
    counts: ChunkCounts,
}

/// How the encrypted chunks of a column are protected.
#[derive(Default)]
struct ChunkCounts {
    with_footer_key: usize,
    with_own_key: usize,
    keys: Vec<KeyName>,
    /// Chunks whose key was not found.
    denied: usize,
    /// Chunks whose metadata are not authentic.
    forged: usize,
    has_statistics: bool,
}

impl FileAudit {
    fn new(path: &str, global: &Global) -> Result<Self> {
        let source = input::source(path, global)?;
        let crypto = crypto_metadata(&*source).map_err(|failure| failure.at_file(path))?;
        let materials = keys::materials(Path::new(path))?;
        let given = keys::decryption(global, path)?;
        let given = given.map(|keys| keys.with_plaintext_files(true).with_unverified_footers(true));
        let open = |keys| input::configure_with(source.clone(), path, global, keys);
        let (reader, problem) = match open(given.as_ref()) {
            Ok(reader) => (Some(reader), None),
            Err(Failure::File(e)) if e.kind() == ErrorKind::Crypto => {
                let reader = if crypto.is_some() { None } else { Some(open(None)?) };
                (reader, Some(e.message().to_owned()))
            }
            Err(other) => return Err(other),
        };
        let reader = reader.as_ref();
        let name = |metadata: &Vec<u8>| KeyName::new(metadata, materials.as_ref());
        let head = reader.map(|reader| reader.metadata().index().head());
        let footer = FooterAudit::new(crypto, reader, problem, given.is_some(), name);
        let has_keys = given.is_some();
        let columns = reader.map(|reader| footer.columns(reader, has_keys, &name));
        let columns = columns.transpose().map_err(|failure| failure.at_file(path))?;
        let count = |is: fn(&&ColumnAudit) -> bool| {
            columns.as_ref().map(|columns| columns.iter().filter(is).count())
        };
        let key_values = head.into_iter().flat_map(|head| head.key_value_metadata.iter().flatten());
        Ok(Self {
            file: path.to_owned(),
            plain_columns: count(|column| column.plain_chunks > 0),
            protected_columns: count(|column| column.is_protected()),
            columns,
            leaks: leaks(footer.mode, key_values.map(|pair| pair.key.as_str()).collect()),
            footer,
            has_keys,
        })
    }

    /// An error where keys do not open what they must, or a requirement cannot be checked.
    fn denial(&self, required: &Required) -> Option<Failure> {
        let is_asked = self.has_keys || (self.columns.is_none() && !required.patterns.is_empty());
        let forged = self.columns.iter().flatten().find(|column| column.counts.forged > 0);
        if let Some(column) = forged {
            let text = "the metadata of the column are not authentic: the key is wrong, or the file \
                        was changed";
            let error = marquetry::Error::crypto(text);
            return Some(error.at_file(&*self.file).at_column(column.column.as_str()).into());
        }
        let problem = self.footer.problem.as_ref().filter(|_| is_asked)?;
        Some(Failure::File(marquetry::Error::crypto(problem).at_file(&*self.file)))
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        let footer = &self.footer;
        let mut lines = vec![("footer", footer.text())];
        if let Some(algorithm) = &footer.algorithm {
            let key = footer.key.as_ref().map(KeyName::shown);
            let prefix = match (&footer.aad_prefix_text, footer.aad_prefix) {
                (Some(text), _) => format!("stored: {text}"),
                (None, "needed") => "not stored; a reader must bring it".to_owned(),
                (None, _) => "none".to_owned(),
            };
            lines.extend([
                ("algorithm", algorithm.0.to_string()),
                ("footer key", key.unwrap_or_else(|| "the file stores no id of it".to_owned())),
                ("AAD prefix", prefix),
            ]);
        }
        lines.push(("columns", self.columns_text()));
        if !self.leaks.is_empty() {
            lines.push(("everyone reads", self.leaks.join(", ")));
        }
        if footer.has_ctr_pages() {
            lines.push(("not authenticated", "pages of protected columns".to_owned()));
        }
        lines.extend(footer.problem.clone().map(|problem| ("problem", problem)));
        out.about(&self.file, &lines)?;
        let Some(columns) = &self.columns else { return Ok(()) };
        let shown = [
            Column::text("column", |of: &ColumnAudit| of.column.clone()),
            Column::text("protection", ColumnAudit::protection_text),
            Column::text("key", |of| {
                of.counts.keys.iter().map(KeyName::shown).collect::<Vec<_>>().join(", ")
            }),
            Column::text("statistics", |of| of.statistics.to_owned()),
            Column::text("everyone reads", |of| match of.leaks.contains(&"values") {
                true => "all of it".to_owned(),
                false => of.leaks.join(", ").replace('_', " "),
            }),
        ];
        out.show("", &shown, columns, &[])
    }

    fn columns_text(&self) -> String {
        let Some(columns) = &self.columns else {
            return "not known without the key of the footer".to_owned();
        };
        let plain = columns.iter().filter(|column| column.plain_chunks > 0).count();
        let is_own = |of: &&ColumnAudit| of.plain_chunks == 0 && of.counts.with_own_key > 0;
        let own = columns.iter().filter(is_own).count();
        let footer = columns.iter().filter(|column| column.is_protected()).count() - own;
        format!("{plain} plain, {footer} with the footer key, {own} with own keys")
    }
}

/// Lists the parts of a file, whose footer has these key-values, that can be read without keys.
fn leaks(mode: FooterMode, key_values: Vec<&str>) -> Vec<String> {
    if mode == FooterMode::Encrypted {
        return Vec::new();
    }
    let mut leaks = ["schema", "row counts", "sizes"].map(str::to_owned).to_vec();
    if !key_values.is_empty() {
        leaks.push(format!("key-values ({})", key_values.join(", ")));
    }
    leaks
}

impl FooterAudit {
    /// `name` makes the name of a key of its metadata.
    fn new(
        crypto: Option<FileCryptoMetaData>,
        reader: Option<&Reader>,
        problem: Option<String>,
        has_keys: bool,
        name: impl Fn(&Vec<u8>) -> KeyName,
    ) -> Self {
        let head = reader.map(|reader| reader.metadata().index().head());
        let (mode, algorithm, key) = match (crypto, head) {
            (Some(crypto), _) => {
                let key = crypto.key_metadata.as_ref().map(name);
                (FooterMode::Encrypted, Some(crypto.encryption_algorithm), key)
            }
            (None, Some(head)) if head.encryption_algorithm.is_some() => {
                let key = head.footer_signing_key_metadata.as_ref().map(name);
                (FooterMode::Signed, head.encryption_algorithm.clone(), key)
            }
            _ => (FooterMode::Plain, None, None),
        };
        let signature = match reader.map(|reader| reader.metadata().signature()) {
            _ if problem.is_some() && has_keys => "failed",
            Some(Signature::Encrypted) => "authenticated",
            Some(Signature::Verified) => "verified",
            Some(Signature::Unverified) => "unverified",
            Some(_) => "none",
            None => "unknown",
        };
        let prefix = algorithm.as_ref().map(AadPrefix::new);
        Self {
            mode,
            key,
            signature,
            aad_prefix: prefix.as_ref().map_or("none", AadPrefix::name),
            aad_prefix_text: match prefix {
                Some(AadPrefix::Stored(text)) => Some(text),
                _ => None,
            },
            algorithm: algorithm.map(AsText),
            problem,
        }
    }

    /// Whether the bodies of pages are encrypted and not authenticated.
    fn has_ctr_pages(&self) -> bool {
        matches!(self.algorithm, Some(AsText(EncryptionAlgorithm::AesGcmCtrV1(_))))
    }

    fn text(&self) -> String {
        let state = match (self.mode, self.signature) {
            (FooterMode::Plain, _) => return "plain text, not signed".to_owned(),
            (FooterMode::Signed, "verified") => "verified",
            (FooterMode::Signed, "failed") => "not verified, see the problem",
            (FooterMode::Signed, _) => "not verified, as its key was not given",
            (FooterMode::Encrypted, "authenticated") => "authentic",
            (FooterMode::Encrypted, "failed") => "the keys that were given do not open it",
            (FooterMode::Encrypted, _) => "its key was not given",
        };
        match self.mode {
            FooterMode::Encrypted => format!("encrypted; {state}"),
            _ => format!("plain text, signed; {state}"),
        }
    }

    /// The protection of each column; whether its keys are available is checked if some were given.
    fn columns(
        &self,
        reader: &Reader,
        has_keys: bool,
        name: &impl Fn(&Vec<u8>) -> KeyName,
    ) -> Result<Vec<ColumnAudit>> {
        let has_keys = has_keys && self.problem.is_none();
        let footer = reader.metadata();
        let mut columns = Vec::new();
        for leaf in 0..footer.schema().leaves_len() {
            let path = footer.schema().leaf_node(leaf)?.path();
            let names = path.names().iter().map(ToString::to_string).collect();
            columns.push(ColumnAudit { column: path.dotted(), names, ..ColumnAudit::default() });
        }
        // As it can be read without keys: nothing of it is decrypted but the footer.
        let metadata = footer.index().to_file_meta_data()?;
        for (i, row_group) in metadata.row_groups.iter().enumerate() {
            for (leaf, (column, chunk)) in columns.iter_mut().zip(&row_group.columns).enumerate() {
                column.add(chunk, self.mode, name);
                if has_keys && chunk.crypto_metadata.is_some() {
                    match footer.is_readable(i, leaf) {
                        Ok(true) => {}
                        Ok(false) => column.counts.denied += 1,
                        Err(e) if e.kind() == ErrorKind::Crypto => column.counts.forged += 1,
                        Err(e) => return Err(e.into()),
                    }
                }
            }
        }
        columns.iter_mut().for_each(|column| column.finish(self, has_keys));
        Ok(columns)
    }
}

impl ColumnAudit {
    /// Whether it has chunks, and all are encrypted.
    fn is_protected(&self) -> bool {
        self.plain_chunks == 0 && self.chunks > 0
    }

    /// Whether a pattern names it, or a field around it.
    fn is_named_by(&self, pattern: &Pattern) -> bool {
        (1..=self.names.len())
            .any(|n| self.names.get(..n).is_some_and(|names| pattern.matches(&names.join("."))))
    }

    fn add(&mut self, chunk: &ColumnChunk, mode: FooterMode, name: impl Fn(&Vec<u8>) -> KeyName) {
        let counts = &mut self.counts;
        self.chunks += 1;
        match &chunk.crypto_metadata {
            None => self.plain_chunks += 1,
            Some(ColumnCryptoMetaData::EncryptionWithColumnKey(with)) => {
                counts.with_own_key += 1;
                let name = with.key_metadata.as_ref().map(name);
                counts.keys.extend(name.filter(|name| !counts.keys.contains(name)));
            }
            Some(_) => counts.with_footer_key += 1,
        }
        let is_plain = chunk.crypto_metadata.is_none();
        let meta = chunk.meta_data.as_ref();
        let has_statistics = meta.is_some_and(has_bounds);
        counts.has_statistics |= has_statistics;
        let has = |is: fn(&ColumnMetaData) -> bool| meta.is_some_and(is);
        let in_footer = mode != FooterMode::Encrypted;
        let leaks = [
            ("values", is_plain),
            ("page_index", is_plain && chunk.column_index_offset.is_some()),
            ("bloom_filter", is_plain && has(|meta| meta.bloom_filter_offset.is_some())),
            ("statistics", in_footer && has_statistics),
            ("size_statistics", in_footer && has(|meta| meta.size_statistics.is_some())),
            (
                "geospatial_statistics",
                in_footer && has(|meta| meta.geospatial_statistics.is_some()),
            ),
            ("encoding_statistics", in_footer && has(|meta| meta.encoding_stats.is_some())),
        ];
        for (leak, is_there) in leaks {
            if is_there && !self.leaks.contains(&leak) {
                self.leaks.push(leak);
            }
        }
    }

    /// Sums up the chunks.
    fn finish(&mut self, footer: &FooterAudit, has_keys: bool) {
        let ChunkCounts { with_footer_key, with_own_key, denied, forged, .. } = self.counts;
        self.protection = match (self.plain_chunks, with_footer_key, with_own_key) {
            (0, 0, 0) => "no_data",
            (0, _, 0) => "footer_key",
            (0, 0, _) => "column_key",
            (_, 0, 0) => "plain",
            (0, ..) => "several_keys",
            _ => "partly",
        };
        (self.key, self.other_keys) = match self.counts.keys.split_first() {
            Some((first, others)) => (Some(first.clone()), others.to_vec()),
            None => (footer.key.clone().filter(|_| with_footer_key > 0), Vec::new()),
        };
        let is_encrypted = self.chunks > self.plain_chunks;
        self.access = (has_keys && is_encrypted).then_some(match (forged, denied) {
            (0, 0) => "readable",
            (0, _) => "key_missing",
            _ => "not_authentic",
        });
        self.statistics = match (footer.mode, self.is_protected(), self.counts.has_statistics) {
            (FooterMode::Encrypted, ..) => "encrypted",
            (_, true, true) => "leaked",
            (_, true, false) => "stripped",
            (_, false, true) => "plain",
            (_, false, false) => "none",
        };
        self.pages = match is_encrypted {
            false => "plain",
            true if footer.has_ctr_pages() => "unauthenticated",
            true => "authenticated",
        };
    }

    fn protection_text(&self) -> String {
        let protection = match self.protection {
            "plain" => "none".to_owned(),
            "column_key" => "own key".to_owned(),
            "partly" => format!("{} of {} chunks", self.chunks - self.plain_chunks, self.chunks),
            other => other.replace('_', " "),
        };
        let access = match self.access {
            Some("key_missing") => ", not given",
            Some("not_authentic") => ", FORGED",
            _ => "",
        };
        format!("{protection}{access}")
    }
}

impl Report for Audited {
    const COMMAND: &'static str = "crypt-audit";

    /// A line for each column; one without, where the columns are not known.
    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        #[derive(Serialize)]
        struct ColumnOfFile<'a> {
            file: &'a str,
            footer: FooterMode,
            algorithm: &'a Option<AsText<EncryptionAlgorithm>>,
            signature: &'static str,
            column: Option<&'a str>,
            protection: Option<&'static str>,
            key: Option<&'a str>,
            statistics: Option<&'static str>,
            pages: Option<&'static str>,
            leaks: Option<String>,
        }
        fn line<'a>(file: &'a FileAudit, column: Option<&'a ColumnAudit>) -> ColumnOfFile<'a> {
            ColumnOfFile {
                file: &file.file,
                footer: file.footer.mode,
                algorithm: &file.footer.algorithm,
                signature: file.footer.signature,
                column: column.map(|of| of.column.as_str()),
                protection: column.map(|of| of.protection),
                key: column.and_then(|of| of.key.as_ref()?.id.as_deref()),
                statistics: column.map(|of| of.statistics),
                pages: column.map(|of| of.pages),
                leaks: column.map(|of| of.leaks.join(" ")),
            }
        }
        self.files.iter().flat_map(|file| match &file.columns {
            Some(columns) => columns.iter().map(|column| line(file, Some(column))).collect(),
            None => vec![line(file, None)],
        })
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        self.files.iter().try_for_each(|file| file.tables(out))
    }
}

/// Whether the metadata of a chunk say something of its values.
fn has_bounds(meta: &ColumnMetaData) -> bool {
    meta.statistics.as_ref().is_some_and(|of| {
        of.min.is_some()
            || of.max.is_some()
            || of.min_value.is_some()
            || of.max_value.is_some()
            || of.null_count.is_some()
            || of.distinct_count.is_some()
    })
}
