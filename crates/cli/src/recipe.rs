//! [`Recipe`]: how a file is written anew, in a file of TOML that people can read and change.
//!
//! ```toml
//! profile = "balanced"
//! row-group-bytes = "128MiB"
//! sort = ["day", "id:desc"]
//!
//! [columns."user.name"]
//! codec = "zstd:3"
//! encoding = "DELTA_BYTE_ARRAY"
//! bloom = 0.01
//! ```

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt::Write as _;
use std::path::Path;
use std::slice;

use arrow_array::RecordBatch;
use arrow_ord::sort::{SortColumn as ArrowSortColumn, SortOptions, lexsort_to_indices};
use marquetry::engine::rows;
use marquetry::io::{Sink, WriteSink};
use marquetry::rewrite::Rewrite;
use marquetry::schema::{FromArrowOptions, Leaf, Physical, from_arrow};
use marquetry::write::encoding_named;
use marquetry::{
    BloomOptions, Compression, Error, PageVersion, Profile, Reader, RowGroupEncoder, SortColumn,
    WriteOptions, Writer,
};
use serde::Deserialize;

use crate::args::{self, Global};
use crate::escape::escape;
use crate::failure::{Failure, Result};
use crate::sorting::sort_column;
use crate::{crypt, input, locations};

/// How a file is written anew. What is not said is as the writer has it by default.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct Recipe {
    /// Whether the file is copied, and nothing of it is encoded.
    #[serde(default)]
    pub(crate) keep: bool,
    pub(crate) profile: Option<String>,
    pub(crate) codec: Option<String>,
    pub(crate) page_version: Option<u8>,
    pub(crate) row_group_rows: Option<u64>,
    pub(crate) row_group_bytes: Option<String>,
    /// By what the rows of each row group are sorted: `COL[:desc][:nulls-first]`.
    #[serde(default)]
    pub(crate) sort: Vec<String>,
    #[serde(default)]
    pub(crate) columns: BTreeMap<String, ColumnRecipe>,
}

/// How a leaf is written, given by its dotted path.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(crate) struct ColumnRecipe {
    pub(crate) codec: Option<String>,
    pub(crate) encoding: Option<String>,
    pub(crate) dictionary: Option<bool>,
    pub(crate) bloom: Option<f64>,
}

impl Recipe {
    /// Reads a recipe.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path);
        let text =
            text.map_err(|e| Error::io("the recipe cannot be read", e).at_file(name.as_str()))?;
        let recipe: Self =
            toml::from_str(&text).map_err(|e| Failure::content(&name, None, e.message()))?;
        // What cannot be done is said before anything is read.
        recipe.options().map_err(|e| Failure::content(&name, None, e.text()))?;
        Ok(recipe)
    }

    /// The recipe as TOML, after lines of comments.
    pub(crate) fn to_toml(&self, comments: &[String]) -> String {
        let mut out = String::new();
        for comment in comments {
            let _ = writeln!(out, "# {}", crate::escape::escape(comment));
        }
        let text = |out: &mut String, key: &str, value: &Option<String>| {
            if let Some(value) = value {
                let _ = writeln!(out, "{key} = {}", quoted(value));
            }
        };
        if self.keep {
            out.push_str("keep = true\n");
        }
        text(&mut out, "profile", &self.profile);
        text(&mut out, "codec", &self.codec);
        if let Some(version) = self.page_version {
            let _ = writeln!(out, "page-version = {version}");
        }
        if let Some(rows) = self.row_group_rows {
            let _ = writeln!(out, "row-group-rows = {rows}");
        }
        text(&mut out, "row-group-bytes", &self.row_group_bytes);
        if !self.sort.is_empty() {
            let columns: Vec<String> = self.sort.iter().map(|column| quoted(column)).collect();
            let _ = writeln!(out, "sort = [{}]", columns.join(", "));
        }
        for (path, column) in &self.columns {
            let _ = writeln!(out, "\n[columns.{}]", quoted(path));
            text(&mut out, "codec", &column.codec);
            text(&mut out, "encoding", &column.encoding);
            if let Some(dictionary) = column.dictionary {
                let _ = writeln!(out, "dictionary = {dictionary}");
            }
            if let Some(fpp) = column.bloom {
                let _ = writeln!(out, "bloom = {fpp:?}");
            }
        }
        out
    }

    /// The options of the writer.
    ///
    /// # Errors
    /// `Usage` if a codec, an encoding, a profile or a size is none.
    pub(crate) fn options(&self) -> Result<WriteOptions> {
        let mut options = WriteOptions::new();
        if let Some(profile) = &self.profile {
            options = options.with_profile(match profile.as_str() {
                "balanced" => Profile::Balanced,
                "small" => Profile::Small,
                "fast-read" => Profile::FastRead,
                "points" => Profile::Points,
                "compatible" => Profile::Compatible,
                other => {
                    let names = "balanced, small, fast-read, points, compatible";
                    let text = format!("profile {other:?}: it is one of {names}");
                    return Err(Failure::Usage(text));
                }
            });
        }
        if let Some(codec) = &self.codec {
            options = options.with_compression(codec.parse::<Compression>()?);
        }
        match self.page_version {
            None => {}
            Some(1) => options = options.with_page_version(PageVersion::V1),
            Some(2) => options = options.with_page_version(PageVersion::V2),
            Some(other) => {
                return Err(Failure::Usage(format!("page-version {other}: it is 1 or 2")));
            }
        }
        if let Some(rows) = self.row_group_rows {
            options = options.with_row_group_rows(rows);
        }
        if let Some(bytes) = &self.row_group_bytes {
            options = options.with_row_group_bytes(args::size(bytes).map_err(Failure::Usage)?);
        }
        for (path, column) in &self.columns {
            let codec = column.codec.as_ref().map(|codec| codec.parse::<Compression>());
            let codec = codec.transpose()?;
            let encoding = column.encoding.as_ref().map(|name| encoding_named(name)).transpose()?;
            options = options.with_column(path.as_str(), |mut of| {
                if let Some(codec) = codec {
                    of = of.with_compression(codec);
                }
                if let Some(dictionary) = column.dictionary {
                    of = of.with_dictionary(dictionary);
                }
                if let Some(encoding) = encoding {
                    of = of.with_encoding(encoding);
                }
                match column.bloom {
                    Some(fpp) => of.with_bloom(BloomOptions::default().with_fpp(fpp)),
                    None => of,
                }
            });
        }
        let by = self.sort_columns()?;
        Ok(if by.is_empty() { options } else { options.with_sort_order(by) })
    }
}

impl Recipe {
    /// Whether the new file has the schema of the old one, and not that which a writer makes of the
    /// rows: with other names in lists and maps, and without INT96, which is not written.
    pub(crate) fn keeps_schema(reader: &Reader) -> Result<bool> {
        Ok(!leaves(reader)?.iter().any(|leaf| leaf.physical == Physical::Int96))
    }

    /// The recipe by the names of the file that is written. Files name the parts of lists and maps
    /// in their own ways, and a recipe may name them as the file does, or as a writer would: both
    /// have the same leaves in the same order.
    pub(crate) fn for_file(&self, reader: &Reader, keeps_schema: bool) -> Result<Self> {
        let of_file: Vec<String> = leaves(reader)?.iter().map(|leaf| leaf.path.dotted()).collect();
        let mut recipe = self.clone();
        let in_file: HashSet<&String> = of_file.iter().collect();
        if self.columns.keys().all(|path| keeps_schema && in_file.contains(path)) {
            return Ok(recipe);
        }
        let written = from_arrow(reader.schema()?.as_ref(), &FromArrowOptions::new())?.schema;
        let mut of_rows = Vec::new();
        for leaf in 0..written.leaves_len() {
            of_rows.push(written.leaf(leaf)?.path.dotted());
        }
        if of_rows.len() != of_file.len() {
            // Rows of another shape: what is not in them needs no setting.
            let in_rows: HashSet<&String> = of_rows.iter().collect();
            let is_known = |path: &String| keeps_schema || in_rows.contains(path);
            recipe.columns.retain(|path, _| is_known(path) || !in_file.contains(path));
            return Ok(recipe);
        }
        let (from, to) = if keeps_schema { (of_rows, of_file) } else { (of_file, of_rows) };
        let known: HashSet<&String> = to.iter().collect();
        let mut others: HashMap<&String, &String> = HashMap::new();
        for (from, to) in from.iter().zip(&to) {
            others.entry(from).or_insert(to);
        }
        let name = |path: &String| match known.contains(path) {
            true => path.clone(),
            // A name that is in neither is a mistake, which the writer refuses.
            false => (*others.get(path).unwrap_or(&path)).clone(),
        };
        recipe.columns =
            self.columns.iter().map(|(path, column)| (name(path), column.clone())).collect();
        Ok(recipe)
    }

    /// By what rows are sorted.
    fn sort_columns(&self) -> Result<Vec<SortColumn>> {
        self.sort.iter().map(|text| sort_column(text)).collect()
    }
}

fn leaves(reader: &Reader) -> Result<Vec<Leaf>> {
    let schema = reader.metadata().schema();
    let leaves = (0..schema.leaves_len()).map(|leaf| schema.leaf(leaf));
    Ok(leaves.collect::<Result<_, _>>()?)
}

/// A string of TOML.
pub(crate) fn quoted(text: &str) -> String {
    // Escapes of JSON are those of TOML, which escapes one character more.
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// Writes a file anew as a recipe says; no path is standard output.
///
/// # Errors
/// `Usage` if the file is encrypted, which the new one would not be.
pub(crate) fn rewrite(
    file: &str,
    recipe: &Recipe,
    path: Option<&Path>,
    global: &Global,
) -> Result<()> {
    let reader = input::open(file, global)?;
    if crypt::footer::is_encrypted(&reader) {
        let text = "the new file would be in plain text: decrypt it first (marq crypt decrypt)";
        return Err(Failure::Usage(format!("{file}: {text}")));
    }
    if !global.shared_bytes {
        reader.metadata().check_shared_bytes().map_err(|e| e.at_file(file))?;
    }
    if recipe.keep {
        Rewrite::new([reader]).run(sink_of(path)?)?;
        return Ok(());
    }
    let keeps_schema = Recipe::keeps_schema(&reader)?;
    let recipe = &recipe.for_file(&reader, keeps_schema)?;
    let mut options = recipe.options()?;
    if let Some(bytes) = global.mem {
        options = options.with_memory(bytes);
    }
    let sink = sink_of(path)?;
    if keeps_schema {
        let rewrite = Rewrite::new([reader]).options(options).regroup(true);
        rewrite.sort_row_groups_by(recipe.sort_columns()?).run(sink)?;
        return Ok(());
    }
    if !global.quiet {
        let file = escape(file);
        eprintln!(
            "marq: note: {file}: INT96 becomes TIMESTAMP, and lists and maps have the names of this \
             writer"
        );
    }
    let schema = reader.schema()?;
    // Those of the schema are written with it.
    for pair in reader.metadata().key_values() {
        let is_of_schema = schema.metadata().contains_key(&pair.key);
        if !is_of_schema && pair.key != "ARROW:schema" {
            options = options.with_key_value(&*pair.key, pair.value.clone().unwrap_or_default());
        }
    }
    let encoder = RowGroupEncoder::new(schema, options)?;
    let encoder = match global.threads {
        Some(threads) => encoder.with_threads(threads)?,
        None => encoder,
    };
    let mut writer = Writer::over(sink, encoder);
    match recipe.sort.is_empty() {
        true => {
            let mut batches = reader.batches()?;
            while let Some(batch) = batches.next_batch()? {
                writer.write(&batch)?;
            }
        }
        false => sorted(&reader, recipe, &mut writer)?,
    }
    writer.finish()?;
    Ok(())
}

fn sink_of(path: Option<&Path>) -> Result<Box<dyn Sink>> {
    Ok(match path {
        Some(path) => locations::sink(path)?,
        None => Box::new(WriteSink(std::io::stdout())),
    })
}

/// Writes the rows of each row group of the file in the order of the recipe, as one row group.
fn sorted(reader: &Reader, recipe: &Recipe, writer: &mut Writer<Box<dyn Sink>>) -> Result<()> {
    for group in 0..reader.metadata().row_groups() {
        let reader = reader.clone().row_groups([group])?;
        let schema = reader.schema()?;
        let mut parts = Vec::new();
        let mut batches = reader.batches()?;
        while let Some(batch) = batches.next_batch()? {
            parts.push(batch);
        }
        writer.write(&sort_rows(&rows::concat(&schema, &parts)?, &recipe.sort)?)?;
        writer.flush()?;
    }
    Ok(())
}

/// The rows in the order of columns: `COL[:desc][:nulls-first]`.
pub(crate) fn sort_rows(batch: &RecordBatch, by: &[String]) -> Result<RecordBatch> {
    let mut columns = Vec::new();
    for text in by {
        // Checked with the options.
        let words: Vec<&str> = text.split(':').collect();
        let is_word = |word: &&str| ["asc", "desc", "nulls-first", "nulls-last"].contains(word);
        let flags = words.iter().rev().take_while(|word| is_word(word)).count();
        let (name, flags) = words.split_at(words.len() - flags);
        let name = name.join(":");
        let values = batch.column_by_name(&name).cloned().ok_or_else(|| {
            Failure::Usage(format!("rows cannot be sorted by {name:?}: there is no such column"))
        })?;
        let options = SortOptions {
            descending: flags.contains(&"desc"),
            nulls_first: flags.contains(&"nulls-first"),
        };
        columns.push(ArrowSortColumn { values, options: Some(options) });
    }
    let order = lexsort_to_indices(&columns, None)?;
    let places: Vec<u64> = order.values().iter().map(|row| u64::from(*row)).collect();
    Ok(rows::take(batch.schema_ref(), slice::from_ref(batch), &places)?)
}
