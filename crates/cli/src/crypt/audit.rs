//! `crypt audit`: which parts of a file are protected, by which keys, and what is readable without
//! keys.

use std::path::Path;

use glob::Pattern;
use marquetry::crypt::Signature;
use marquetry::crypt::kms::KeyMaterials;
use marquetry::format::{ColumnChunk, ColumnCryptoMetaData, ColumnMetaData, EncryptionAlgorithm};
use marquetry::{ErrorKind, Reader};
use serde_json::{Value, json};

use super::footer::{AadPrefix, KeyName, crypto_metadata};
use crate::args::{Audit, Global};
use crate::failure::{Failure, Result};
use crate::report::{Report, Section};
use crate::{input, keys};

/// Shows the protection of each file; fails if a column that must be protected is not.
pub(crate) fn run(command: &Audit, global: &Global) -> Result<()> {
    let mut required = Required::new(&command.require)?;
    let (mut files, mut records, mut sections) = (Vec::new(), Vec::new(), Vec::new());
    let (mut is_partial, mut denied) = (false, None);
    for path in input::paths(&command.files.files)? {
        let file = match FileAudit::of(&path, global) {
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
        files.push(file.json());
        records.extend(file.records());
        sections.extend(file.sections());
    }
    let violations: Vec<Value> = required.violations.iter().map(|(json, _)| json.clone()).collect();
    let json = json!({ "files": files, "violations": violations });
    Report { command: "crypt-audit", json, records, sections }.print(global)?;
    if !required.violations.is_empty() {
        return Err(Failure::Found(
            required.violations.into_iter().map(|(_, text)| text).collect(),
        ));
    }
    match denied {
        Some(error) => Err(error),
        None if is_partial => Err(Failure::Partial),
        None => required.all_were_met(),
    }
}

/// Columns that must be protected.
struct Required {
    patterns: Vec<(Pattern, bool)>,
    violations: Vec<(Value, String)>,
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
                if column.plain > 0 {
                    let (path, name) = (&file.path, &column.path);
                    let json = json!({ "file": path, "column": name, "pattern": pattern.as_str() });
                    let chunks = column.chunks();
                    let text = format!(
                        "{path}: the column {name} must be protected (--require {pattern}), and {} of \
                         its {chunks} chunks are in plain text",
                        column.plain
                    );
                    self.violations.push((json, text));
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FooterMode {
    Plain,
    Signed,
    Encrypted,
}

/// The findings on a file.
struct FileAudit {
    path: String,
    mode: FooterMode,
    algorithm: Option<EncryptionAlgorithm>,
    footer_key: Option<KeyName>,
    signature: &'static str,
    /// Why the keys that were given do not open the footer.
    problem: Option<Failure>,
    has_keys: bool,
    /// `None` where the footer cannot be read.
    columns: Option<Vec<ColumnAudit>>,
    /// Names of the key-values of a footer in plain text.
    key_values: Vec<String>,
}

/// The findings on a column, over all row groups.
#[derive(Default)]
struct ColumnAudit {
    path: String,
    names: Vec<String>,
    /// Chunks in plain text, with the key of the footer, and with a key of their own.
    plain: usize,
    with_footer_key: usize,
    with_own_key: usize,
    keys: Vec<KeyName>,
    /// Chunks whose key was not found.
    denied: usize,
    /// Chunks whose metadata are not authentic.
    forged: usize,
    has_statistics: bool,
    leaks: Vec<&'static str>,
}

impl FileAudit {
    fn of(path: &str, global: &Global) -> Result<Self> {
        let source = input::source(path, global)?;
        let place = |failure: Failure| match failure {
            Failure::File(e) => Failure::File(e.at_file(path)),
            other => other,
        };
        let crypto = crypto_metadata(&*source).map_err(place)?;
        let materials = keys::materials(Path::new(path))?;
        let given = keys::decryption(global, path)?;
        let given = given.map(|keys| keys.with_plaintext_files(true).with_unverified_footers(true));
        let open = |keys| input::configure_with(source.clone(), path, global, keys);
        let (reader, problem) = match open(given.as_ref()) {
            Ok(reader) => (Some(reader), None),
            Err(Failure::File(e)) if e.kind() == ErrorKind::Crypto => {
                let reader = if crypto.is_some() { None } else { Some(open(None)?) };
                (reader, Some(Failure::File(e)))
            }
            Err(other) => return Err(other),
        };
        let name = |metadata: &Vec<u8>| KeyName::of(metadata, materials.as_ref());
        let head = reader.as_ref().map(|reader| reader.metadata().index().head());
        let (mode, algorithm, footer_key) = match (crypto, head) {
            (Some(of), _) => {
                let key = of.key_metadata.as_ref().map(name);
                (FooterMode::Encrypted, Some(of.encryption_algorithm), key)
            }
            (None, Some(head)) if head.encryption_algorithm.is_some() => {
                let key = head.footer_signing_key_metadata.as_ref().map(name);
                (FooterMode::Signed, head.encryption_algorithm.clone(), key)
            }
            _ => (FooterMode::Plain, None, None),
        };
        let signature = match reader.as_ref().map(|reader| reader.metadata().signature()) {
            _ if problem.is_some() && given.is_some() => "failed",
            Some(Signature::Encrypted) => "authenticated",
            Some(Signature::Verified) => "verified",
            Some(Signature::Unverified) => "unverified",
            Some(_) => "none",
            None => "unknown",
        };
        let has_keys = given.is_some();
        let key_values = head.into_iter().flat_map(|head| head.key_value_metadata.iter().flatten());
        let key_values = match mode {
            FooterMode::Encrypted => Vec::new(),
            _ => key_values.map(|pair| pair.key.clone()).collect(),
        };
        let columns = reader
            .as_ref()
            .map(|reader| columns(reader, mode, has_keys && problem.is_none(), materials.as_ref()));
        let columns = columns.transpose().map_err(place)?;
        let path = path.to_owned();
        Ok(Self {
            path,
            mode,
            algorithm,
            footer_key,
            signature,
            problem,
            has_keys,
            columns,
            key_values,
        })
    }

    /// An error where keys do not open what they must, or a requirement cannot be checked.
    fn denial(&self, required: &Required) -> Option<Failure> {
        let is_asked = self.has_keys || (self.columns.is_none() && !required.patterns.is_empty());
        let forged = self.columns.iter().flatten().find(|column| column.forged > 0);
        if let Some(column) = forged {
            let text = "the metadata of the column are not authentic: the key is wrong, or the file \
                        was changed";
            let error = marquetry::Error::crypto(text);
            return Some(error.at_file(&*self.path).at_column(column.path.as_str()).into());
        }
        let problem = self.problem.as_ref().filter(|_| is_asked)?;
        let Failure::File(e) = problem else { return None };
        Some(Failure::File(marquetry::Error::crypto(e.message()).at_file(&*self.path)))
    }

    /// Whether the bodies of pages are encrypted and not authenticated.
    fn has_ctr_pages(&self) -> bool {
        matches!(self.algorithm, Some(EncryptionAlgorithm::AesGcmCtrV1(_)))
    }

    fn problem(&self) -> Option<String> {
        match &self.problem {
            Some(Failure::File(e)) => Some(e.message().to_owned()),
            _ => None,
        }
    }

    /// What can be read of the file without keys.
    fn leaks(&self) -> Vec<String> {
        if self.mode == FooterMode::Encrypted {
            return Vec::new();
        }
        let mut leaks: Vec<String> = ["schema", "row counts", "sizes"].map(str::to_owned).to_vec();
        if !self.key_values.is_empty() {
            leaks.push(format!("key-values ({})", self.key_values.join(", ")));
        }
        leaks
    }

    fn json(&self) -> Value {
        let mode = match self.mode {
            FooterMode::Plain => "plain",
            FooterMode::Signed => "signed",
            FooterMode::Encrypted => "encrypted",
        };
        let aad_prefix = self.algorithm.as_ref().map(AadPrefix::of);
        let stored = match &aad_prefix {
            Some(AadPrefix::Stored(text)) => Some(text),
            _ => None,
        };
        let columns = self
            .columns
            .as_ref()
            .map(|columns| columns.iter().map(|column| column.json(self)).collect::<Vec<_>>());
        let count = |is: fn(&ColumnAudit) -> bool| {
            self.columns.as_ref().map(|columns| columns.iter().filter(|column| is(column)).count())
        };
        json!({
            "file": self.path,
            "footer": {
                "mode": mode,
                "algorithm": self.algorithm.as_ref().map(ToString::to_string),
                "key": self.footer_key.as_ref().map(KeyName::json),
                "signature": self.signature,
                "aad_prefix": aad_prefix.as_ref().map_or("none", AadPrefix::name),
                "aad_prefix_text": stored,
                "problem": self.problem(),
            },
            "plain_columns": count(|column| column.plain > 0),
            "protected_columns": count(|column| column.is_protected()),
            "columns": columns,
            "leaks": self.leaks(),
        })
    }

    /// A record for each column; one without, where the columns are not known.
    fn records(&self) -> Vec<Value> {
        let json = self.json();
        let footer = json.pointer("/footer").cloned().unwrap_or_default();
        let of_column = |column: &ColumnAudit| {
            let known = column.json(self);
            let key = known.pointer("/key/id").cloned();
            json!({
                "file": self.path, "footer": footer["mode"], "algorithm": footer["algorithm"],
                "signature": footer["signature"], "column": column.path,
                "protection": known["protection"], "key": key, "statistics": known["statistics"],
                "pages": known["pages"], "leaks": column.leaks.join(" "),
            })
        };
        match &self.columns {
            Some(columns) => columns.iter().map(of_column).collect(),
            None => {
                let unknown = ColumnAudit::default();
                let mut record = of_column(&unknown);
                for name in ["column", "protection", "key", "statistics", "pages", "leaks"] {
                    record[name] = Value::Null;
                }
                vec![record]
            }
        }
    }

    fn sections(&self) -> Vec<Section> {
        let mut rows = Vec::new();
        let mut line = |name: &str, text: String| rows.push(vec![name.to_owned(), text]);
        line("footer", self.footer_text());
        if let Some(algorithm) = &self.algorithm {
            line("algorithm", algorithm.to_string());
            let key = self.footer_key.as_ref().map(KeyName::shown);
            line("footer key", key.unwrap_or_else(|| "the file stores no id of it".to_owned()));
            line(
                "AAD prefix",
                match AadPrefix::of(algorithm) {
                    AadPrefix::None => "none".to_owned(),
                    AadPrefix::Stored(text) => format!("stored: {text}"),
                    AadPrefix::Needed => "not stored; a reader must bring it".to_owned(),
                },
            );
        }
        line("columns", self.columns_text());
        if !self.leaks().is_empty() {
            line("everyone reads", self.leaks().join(", "));
        }
        if self.has_ctr_pages() {
            line("not authenticated", "pages of protected columns".to_owned());
        }
        if let Some(problem) = self.problem() {
            line("problem", problem);
        }
        let mut about = Section::new("", &["file"]).with(rows);
        // A header that begins with > is of numbers.
        let here = if self.path.starts_with('>') { "./" } else { "" };
        about.headers.push(format!("{here}{}", self.path).into());
        let Some(columns) = &self.columns else { return vec![about] };
        let rows = columns.iter().map(|column| column.row(self)).collect();
        vec![about, Section::new("", &COLUMN_HEADERS).with(rows)]
    }

    fn footer_text(&self) -> String {
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

    fn columns_text(&self) -> String {
        let Some(columns) = &self.columns else {
            return "not known without the key of the footer".to_owned();
        };
        let plain = columns.iter().filter(|column| column.plain > 0).count();
        let own = columns.iter().filter(|column| column.plain == 0 && column.with_own_key > 0);
        let own = own.count();
        let footer = columns.iter().filter(|column| column.is_protected()).count() - own;
        format!("{plain} plain, {footer} with the footer key, {own} with own keys")
    }
}

const COLUMN_HEADERS: [&str; 5] = ["column", "protection", "key", "statistics", "everyone reads"];

/// What protects each column; whether its keys are there is looked at where `has_keys`.
fn columns(
    reader: &Reader,
    mode: FooterMode,
    has_keys: bool,
    materials: Option<&KeyMaterials>,
) -> Result<Vec<ColumnAudit>> {
    let footer = reader.metadata();
    let mut columns = Vec::new();
    for leaf in 0..footer.schema().leaves_len() {
        let path = footer.schema().leaf_node(leaf)?.path();
        let names = path.names().iter().map(ToString::to_string).collect();
        columns.push(ColumnAudit { path: path.dotted(), names, ..ColumnAudit::default() });
    }
    // As it can be read without keys: nothing of it is decrypted but the footer.
    let metadata = footer.index().to_file_meta_data()?;
    for (i, row_group) in metadata.row_groups.iter().enumerate() {
        for (leaf, (column, chunk)) in columns.iter_mut().zip(&row_group.columns).enumerate() {
            column.add(chunk, mode, materials);
            if has_keys && chunk.crypto_metadata.is_some() {
                match footer.is_readable(i, leaf) {
                    Ok(true) => {}
                    Ok(false) => column.denied += 1,
                    Err(e) if e.kind() == ErrorKind::Crypto => column.forged += 1,
                    Err(e) => return Err(e.into()),
                }
            }
        }
    }
    Ok(columns)
}

impl ColumnAudit {
    fn chunks(&self) -> usize {
        self.plain + self.with_footer_key + self.with_own_key
    }

    /// Whether it has chunks, and all are encrypted.
    fn is_protected(&self) -> bool {
        self.plain == 0 && self.chunks() > 0
    }

    /// Whether a pattern names it, or a field around it.
    fn is_named_by(&self, pattern: &Pattern) -> bool {
        (1..=self.names.len())
            .any(|n| self.names.get(..n).is_some_and(|names| pattern.matches(&names.join("."))))
    }

    fn add(&mut self, chunk: &ColumnChunk, mode: FooterMode, materials: Option<&KeyMaterials>) {
        match &chunk.crypto_metadata {
            None => self.plain += 1,
            Some(ColumnCryptoMetaData::EncryptionWithColumnKey(of)) => {
                self.with_own_key += 1;
                let name = of.key_metadata.as_ref().map(|of| KeyName::of(of, materials));
                if let Some(name) = name.filter(|name| !self.keys.contains(name)) {
                    self.keys.push(name);
                }
            }
            Some(_) => self.with_footer_key += 1,
        }
        let is_plain = chunk.crypto_metadata.is_none();
        let meta = chunk.meta_data.as_ref();
        let has_statistics = meta.is_some_and(has_bounds);
        self.has_statistics |= has_statistics;
        let mut leak = |what: &'static str, is: bool| {
            if is && !self.leaks.contains(&what) {
                self.leaks.push(what);
            }
        };
        leak("values", is_plain);
        leak("page_index", is_plain && chunk.column_index_offset.is_some());
        let of = |is: fn(&ColumnMetaData) -> bool| meta.is_some_and(is);
        leak("bloom_filter", is_plain && of(|meta| meta.bloom_filter_offset.is_some()));
        if mode != FooterMode::Encrypted {
            leak("statistics", has_statistics);
            leak("size_statistics", of(|meta| meta.size_statistics.is_some()));
            leak("geospatial_statistics", of(|meta| meta.geospatial_statistics.is_some()));
            leak("encoding_statistics", of(|meta| meta.encoding_stats.is_some()));
        }
    }

    fn protection(&self) -> &'static str {
        match (self.plain, self.with_footer_key, self.with_own_key) {
            (0, 0, 0) => "no_data",
            (0, _, 0) => "footer_key",
            (0, 0, _) => "column_key",
            (_, 0, 0) => "plain",
            (0, ..) => "several_keys",
            _ => "partly",
        }
    }

    fn statistics(&self, file: &FileAudit) -> &'static str {
        match (file.mode, self.is_protected(), self.has_statistics) {
            (FooterMode::Encrypted, ..) => "encrypted",
            (_, true, true) => "leaked",
            (_, true, false) => "stripped",
            (_, false, true) => "plain",
            (_, false, false) => "none",
        }
    }

    fn pages(&self, file: &FileAudit) -> &'static str {
        match self.chunks() > self.plain {
            false => "plain",
            true if file.has_ctr_pages() => "unauthenticated",
            true => "authenticated",
        }
    }

    /// Whether its keys were found, where some were given.
    fn access(&self, file: &FileAudit) -> Option<&'static str> {
        let is_known = file.has_keys && file.problem.is_none() && self.chunks() > self.plain;
        is_known.then_some(match (self.forged, self.denied) {
            (0, 0) => "readable",
            (0, _) => "key_missing",
            _ => "not_authentic",
        })
    }

    fn json(&self, file: &FileAudit) -> Value {
        let key = match self.keys.as_slice() {
            [] if self.with_footer_key > 0 => file.footer_key.as_ref().map(KeyName::json),
            [] => None,
            [first, ..] => Some(first.json()),
        };
        json!({
            "column": self.path,
            "protection": self.protection(),
            "key": key,
            "other_keys": self.keys.iter().skip(1).map(KeyName::json).collect::<Vec<_>>(),
            "access": self.access(file),
            "statistics": self.statistics(file),
            "pages": self.pages(file),
            "chunks": self.chunks(),
            "plain_chunks": self.plain,
            "leaks": self.leaks,
        })
    }

    fn row(&self, file: &FileAudit) -> Vec<String> {
        let mut protection = match self.protection() {
            "plain" => "none".to_owned(),
            "no_data" => "no data".to_owned(),
            "footer_key" => "footer key".to_owned(),
            "column_key" => "own key".to_owned(),
            "several_keys" => "several keys".to_owned(),
            _ => format!("{} of {} chunks", self.chunks() - self.plain, self.chunks()),
        };
        match self.access(file) {
            Some("key_missing") => protection.push_str(", not given"),
            Some("not_authentic") => protection.push_str(", FORGED"),
            _ => {}
        }
        let keys: Vec<String> = self.keys.iter().map(KeyName::shown).collect();
        vec![
            self.path.clone(),
            protection,
            keys.join(", "),
            self.statistics(file).to_owned(),
            match self.leaks.contains(&"values") {
                true => "all of it".to_owned(),
                false => self.leaks.join(", ").replace('_', " "),
            },
        ]
    }
}

/// Whether the metadata of a chunk say something of its values.
fn has_bounds(meta: &ColumnMetaData) -> bool {
    let Some(of) = &meta.statistics else { return false };
    of.min.is_some()
        || of.max.is_some()
        || of.min_value.is_some()
        || of.max_value.is_some()
        || of.null_count.is_some()
        || of.distinct_count.is_some()
}
