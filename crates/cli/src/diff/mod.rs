//! `diff` compares two files: what they state, and the rows that they hold.

mod value;
mod facts;
mod rows;
mod found;

use std::collections::HashSet;
use std::path::Path;

use arrow_schema::{FieldRef, SchemaRef};
use marquetry::read::VariantOutput;
use marquetry::rewrite::RowSorter;
use marquetry::{Reader, SortColumn};
use serde::Serialize;

use self::facts::FactDiff;
use self::found::{DataDiff, Difference, PlaceInFile};
use self::rows::{FileRows, Walked, Which, walk};
use self::value::is_comparable;
use crate::args::{Compared, Diff, Global};
use crate::failure::{Failure, Result, after_printing};
use crate::report::{self, Column, Report, Tables};
use crate::{input, output};

/// Compares the two files.
pub(crate) fn run(command: &Diff, global: &Global) -> Result<()> {
    let (columns, keys): (Vec<String>, Vec<String>) =
        global.key.iter().cloned().partition(|text| !is_of_encryption(text));
    let global = &Global { key: keys, ..global.clone() };
    let key: Vec<String> =
        columns.iter().flat_map(|names| names.split(',')).map(str::to_owned).collect();
    let [path_a, path_b] = &command.files[..] else {
        return Err(Failure::Usage("diff compares two files".to_owned()));
    };
    let (a, b) = (open(path_a, global)?, open(path_b, global)?);
    let is_asked = |what: Compared| command.what.contains(&what);
    let asked = |what: Compared, of: fn(&Reader, &Reader) -> Result<Vec<FactDiff>>| {
        is_asked(what).then(|| of(&a, &b)).transpose()
    };
    let mut found = DiffReport {
        a: path_a.clone(),
        b: path_b.clone(),
        what: command.what.clone(),
        equal: true,
        schemas: asked(Compared::Schema, facts::schema)?,
        layout: asked(Compared::Layout, facts::layout)?,
        stats: asked(Compared::Stats, facts::statistics)?,
        data: None,
    };
    if is_asked(Compared::Data) {
        let temp = command.temp.as_deref();
        let files = Pair { a: &a, b: &b, paths: [path_a, path_b], temp };
        found.data = Some(files.compare(&key, command.max, global)?);
    } else if !key.is_empty() {
        return Err(Failure::Usage("--key is for data: add data to --what".to_owned()));
    }
    let facts = [&found.schemas, &found.layout, &found.stats];
    found.equal = facts.into_iter().flatten().all(Vec::is_empty)
        && found.data.as_ref().is_none_or(DataDiff::is_equal);
    let verdict = match found.equal {
        true => Ok(()),
        false => Err(Failure::Found(vec![format!("{path_a} and {path_b} differ")])),
    };
    after_printing(report::print(&found, global), verdict)
}

/// Whether a value of `--key` is a key to decrypt with, and no column.
fn is_of_encryption(text: &str) -> bool {
    text.contains("=@") || text.contains("=env:")
}

/// A reader whose types are those of the file, not those that its writer had.
fn open(path: &str, global: &Global) -> Result<Reader> {
    let reader = input::open(path, global)?;
    let mut options = reader.read_options().clone();
    options.arrow = options.arrow.with_hint(false);
    options.variants = VariantOutput::Unshredded;
    Ok(reader.options(options))
}

struct Pair<'a> {
    a: &'a Reader,
    b: &'a Reader,
    paths: [&'a str; 2],
    /// The folder of temporary files.
    temp: Option<&'a Path>,
}

impl Pair<'_> {
    fn compare(&self, key: &[String], max: usize, global: &Global) -> Result<DataDiff> {
        let (schema_a, schema_b) = (self.a.schema()?, self.b.schema()?);
        let names = |schema: &SchemaRef| -> Vec<String> {
            schema.fields().iter().map(|field| field.name().clone()).collect()
        };
        let (names_a, names_b) = (names(&schema_a), names(&schema_b));
        let is_aligned = names_a == names_b;
        // Names may occur twice, if both files have them alike.
        let by_name = facts::by_name(schema_b.fields().iter(), |field| field.name());
        let other = |at: usize, field: &FieldRef| match is_aligned {
            true => schema_b.fields().get(at),
            false => by_name.get(field.name().as_str()).copied(),
        };
        let (mut fields, mut left_out) = (Vec::new(), Vec::new());
        for (at, field) in schema_a.fields().iter().enumerate() {
            match other(at, field) {
                Some(other) if is_comparable(field.data_type(), other.data_type()) => {
                    fields.push(field.clone())
                }
                _ => left_out.push(field.name().clone()),
            }
        }
        let of_a: HashSet<&String> = names_a.iter().collect();
        left_out.extend(names_b.iter().filter(|name| !of_a.contains(name)).cloned());
        let key = key_columns(key, &fields)?;
        let mut found = self.walk(&fields, is_aligned && left_out.is_empty(), &key, max, global)?;
        found.columns_not_compared = left_out;
        found.place(self.a, self.b)?;
        Ok(found)
    }

    /// Walks over the rows as they are; sorted, if the first walk finds that they are not.
    fn walk(
        &self,
        fields: &[FieldRef],
        has_all: bool,
        key: &[usize],
        max: usize,
        global: &Global,
    ) -> Result<DataDiff> {
        let project = |reader: &Reader| -> Result<Reader> {
            let names = fields.iter().map(|field| field.name());
            Ok(if has_all { reader.clone() } else { reader.clone().project(names)? })
        };
        let (a, b) = (project(self.a)?, project(self.b)?);
        let new = || DataDiff::new(fields.to_vec(), key.to_vec(), max);
        let mut found = new();
        let mut rows_a = FileRows::new(a.batches()?, key.to_vec());
        let mut rows_b = FileRows::new(b.batches()?, key.to_vec());
        let Walked::Unsorted(which) = walk(&mut rows_a, &mut rows_b, &mut found)? else {
            return Ok(found);
        };
        drop((rows_a, rows_b));
        if !global.quiet {
            let [path_a, path_b] = self.paths;
            let path = crate::escape::escape(if which == Which::A { path_a } else { path_b });
            eprintln!("marq: note: {path}: not sorted by the key; both files are sorted");
        }
        let sorter = |schema: SchemaRef, by: Vec<SortColumn>| {
            // Both, with what is read and compared.
            let sorter = RowSorter::new(schema, by)?;
            let sorter = sorter.memory(input::limits(global).memory_bytes / 4);
            Ok(match self.temp {
                Some(folder) => sorter.temp_folder(folder),
                None if global.has_keys() => sorter.without_temp_files(),
                None => sorter,
            })
        };
        let mut rows_a = FileRows::sorted(a.batches()?, key.to_vec(), sorter)?;
        let mut rows_b = FileRows::sorted(b.batches()?, key.to_vec(), sorter)?;
        let mut found = new();
        match walk(&mut rows_a, &mut rows_b, &mut found)? {
            Walked::ToTheEnd => Ok(found),
            Walked::Unsorted(_) => Err(Failure::Usage("the key has no order".to_owned())),
        }
    }
}

/// The places of the columns of the key.
fn key_columns(names: &[String], fields: &[FieldRef]) -> Result<Vec<usize>> {
    let place = |name: &String| {
        let found = fields.iter().position(|field| field.name() == name);
        let Some(at) = found else {
            let text =
                format!("--key {name}: no column of this name and of one type is in both files");
            return Err(Failure::Usage(text));
        };
        let is_nested = fields.get(at).is_some_and(|field| field.data_type().is_nested());
        match is_nested {
            true => Err(Failure::Usage(format!("--key {name}: the column is nested"))),
            false => Ok(at),
        }
    };
    names.iter().map(place).collect()
}

#[derive(Serialize)]
struct DiffReport {
    a: String,
    b: String,
    what: Vec<Compared>,
    equal: bool,
    #[serde(rename = "schema_differences")]
    schemas: Option<Vec<FactDiff>>,
    layout: Option<Vec<FactDiff>>,
    stats: Option<Vec<FactDiff>>,
    data: Option<DataDiff>,
}

impl Report for DiffReport {
    const COMMAND: &'static str = "diff";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        #[derive(Serialize)]
        struct DiffLine<'a> {
            kind: &'a str,
            column: Option<&'a str>,
            row_a: Option<u64>,
            row_b: Option<u64>,
            a: Option<&'a str>,
            b: Option<&'a str>,
        }
        let facts = [&self.schemas, &self.layout, &self.stats].into_iter().flatten().flatten();
        let facts = facts.map(|fact| DiffLine {
            kind: fact.what,
            column: fact.column.as_deref(),
            row_a: None,
            row_b: None,
            a: fact.a.as_deref(),
            b: fact.b.as_deref(),
        });
        let cells = self.data.iter().flat_map(|data| &data.differences).map(|found| DiffLine {
            kind: found.kind,
            column: found.column.as_deref(),
            row_a: found.row_a,
            row_b: found.row_b,
            a: found.a.as_deref(),
            b: found.b.as_deref(),
        });
        facts.chain(cells)
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        let names = [("schema", &self.schemas), ("layout", &self.layout), ("stats", &self.stats)];
        for (name, facts) in names {
            let Some(facts) = facts else { continue };
            if facts.is_empty() {
                out.line(&format!("{name}: equal"))?;
                continue;
            }
            let columns = [
                Column::text("column", |fact: &FactDiff| fact.column.clone().unwrap_or_default()),
                Column::text("what", |fact: &FactDiff| fact.what.to_owned()),
                Column::text("a", |fact: &FactDiff| shown(fact.a.as_deref())),
                Column::text("b", |fact: &FactDiff| shown(fact.b.as_deref())),
            ];
            out.show(
                &format!("{name}: {}", differences(facts.len() as u64, out.global)),
                &columns,
                facts,
                &[],
            )?;
        }
        match &self.data {
            Some(data) => data_tables(data, out),
            None => Ok(()),
        }
    }
}

fn differences(n: u64, global: &Global) -> String {
    format!("{} difference{}", output::count(n, global), if n == 1 { "" } else { "s" })
}

fn shown(text: Option<&str>) -> String {
    text.unwrap_or("-").to_owned()
}

fn data_tables(data: &DataDiff, out: &mut Tables<'_>) -> Result<()> {
    let global = out.global;
    let number = |n: u64| output::count(n, global);
    if data.is_equal() {
        return out.line(&format!("data: equal, {} rows", number(data.rows_a)));
    }
    let columns = [
        Column::text("what", |found: &Difference| found.kind.replace('_', " ")),
        Column::count("row a", |found: &Difference| found.row_a),
        Column::count("row b", |found: &Difference| found.row_b),
        Column::text("key", |found: &Difference| {
            let key = found.key.iter().flatten();
            key.map(|part| shown(part.as_deref())).collect::<Vec<_>>().join(", ")
        }),
        Column::text("column", |found: &Difference| {
            let path = found.place_a.as_ref().and_then(|place| place.path.clone());
            path.or_else(|| found.column.clone()).unwrap_or_default()
        }),
        Column::text("group/page a", |found: &Difference| place_text(found.place_a.as_ref())),
        Column::text("group/page b", |found: &Difference| place_text(found.place_b.as_ref())),
        Column::text("a", |found: &Difference| value_text(found, found.a.as_deref())),
        Column::text("b", |found: &Difference| value_text(found, found.b.as_deref())),
    ];
    let expendable = ["group/page b", "group/page a", "row b"];
    let title = format!("data: {}", differences(data.total, global));
    out.show(&title, &columns, &data.differences, &expendable)?;
    let mut lines = vec![
        ("rows", format!("{} and {}", number(data.rows_a), number(data.rows_b))),
        ("equal rows", number(data.rows_equal)),
        ("rows that differ", number(data.rows_different)),
        ("rows only in a", number(data.rows_only_in_a)),
        ("rows only in b", number(data.rows_only_in_b)),
    ];
    let counts = data.columns.iter().map(|of| format!("{}: {}", of.column, number(of.rows)));
    let counts = counts.collect::<Vec<_>>().join(", ");
    lines.extend((!counts.is_empty()).then_some(("rows by column", counts)));
    let left_out = data.columns_not_compared.join(", ");
    lines.extend((!left_out.is_empty()).then_some(("not compared", left_out)));
    out.about("both files", &lines)
}

fn place_text(place: Option<&PlaceInFile>) -> String {
    match place {
        None => String::new(),
        Some(PlaceInFile { row_group, page: Some(page), .. }) => format!("{row_group}/{page}"),
        Some(PlaceInFile { row_group, .. }) => row_group.to_string(),
    }
}

fn value_text(found: &Difference, value: Option<&str>) -> String {
    match (found.kind, value) {
        ("value", None) => "null".to_owned(),
        (_, value) => value.unwrap_or_default().to_owned(),
    }
}
