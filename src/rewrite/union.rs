//! [`union`]: one schema for files whose columns are matched by name.
//!
//! A column that all files have alike is copied. Otherwise the new column is that of a file which
//! holds the values of all others, by the rules of [`Reader::target`], or one that is made of the
//! united Arrow types; the chunks of files that have another are decoded and encoded.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::{FieldRef, Schema as ArrowSchema, SchemaRef};

use super::columns::{Columns, TopLevelColumn, alone, difference, has_same_chunks, repetition};
use super::decoding::decoding;
use crate::error::{Error, Result};
use crate::format::{FieldRepetitionType, SchemaElement};
use crate::memory;
use crate::reader::Reader;
use crate::schema::{
    ArrowOptions, FromArrowOptions, MatchBy, Projection, Schema, from_arrow, to_arrow, unite,
};

/// Where a file has a column of the new file.
#[derive(Debug, Clone)]
pub(super) enum ColumnSource {
    /// Its chunks are the same: those of this column.
    Same(TopLevelColumn),
    /// The file has it with another type.
    Converted,
    /// The file has it not.
    Missing,
}

/// The new schema, and by file where its columns are.
pub(super) struct United {
    pub(super) elements: Vec<SchemaElement>,
    /// By file, one for each column of the new schema.
    pub(super) sources: Vec<Vec<ColumnSource>>,
}

/// A file, and its columns.
struct FileColumns<'a> {
    reader: &'a Reader,
    columns: Columns<'a>,
    /// By name, the place of a column.
    places: HashMap<&'a str, usize>,
}

impl<'a> FileColumns<'a> {
    /// # Errors
    /// `Usage` if two columns have one name.
    fn new(reader: &'a Reader, elements: &'a [SchemaElement]) -> Result<Self> {
        let columns = Columns::new(elements)?;
        let mut places = HashMap::new();
        for (at, column) in columns.list.iter().enumerate() {
            let name = columns.name(column).unwrap_or_default();
            if places.insert(name, at).is_some() {
                // Says which.
                columns.named(name).map_err(|e| reader.name(e))?;
            }
        }
        Ok(Self { reader, columns, places })
    }

    fn named(&self, name: &str) -> Option<&TopLevelColumn> {
        self.columns.list.get(*self.places.get(name)?)
    }
}

/// The columns of all files, in the order in which they first come.
///
/// # Errors
/// `Usage` if a file has two columns of one name, a column that must not be null is not in all
/// files, or no type holds the values of all files.
pub(super) fn union(readers: &[Reader]) -> Result<United> {
    let elements =
        readers.iter().map(|reader| memory::collected(reader.metadata().schema().elements()));
    let elements: Vec<Vec<SchemaElement>> = memory::try_collected(elements)?;
    let mut files = memory::vec_for(readers.len())?;
    for (reader, of) in readers.iter().zip(&elements) {
        files.push(FileColumns::new(reader, of)?);
    }
    let (mut names, mut known): (Vec<&str>, _) = (Vec::new(), HashSet::new());
    for file in &files {
        for column in &file.columns.list {
            let name = file.columns.name(column).unwrap_or_default();
            if known.insert(name) {
                memory::push(&mut names, name)?;
            }
        }
    }
    let root = elements.first().and_then(|of| of.first()).cloned().unwrap_or_default();
    let mut united = United {
        elements: vec![SchemaElement { num_children: i32::try_from(names.len()).ok(), ..root }],
        sources: memory::try_collected(files.iter().map(|_| memory::vec_for(names.len())))?,
    };
    for name in names {
        add_column(name, &files, &mut united)?;
    }
    Ok(united)
}

/// Adds a column of this name.
fn add_column(name: &str, files: &[FileColumns<'_>], united: &mut United) -> Result<()> {
    let mut found = Vec::with_capacity(files.len());
    for file in files {
        let column = file.named(name).cloned();
        found.push(column.map(|column| (file.columns.elements_of(&column), column)));
    }
    let mut versions: Vec<&[SchemaElement]> = Vec::new();
    for (elements, _) in found.iter().flatten() {
        if !versions.iter().any(|known| has_same_chunks(known, elements)) {
            versions.push(elements);
        }
    }
    let missing = files.iter().zip(&found).find(|(_, found)| found.is_none());
    let is_required = |of: &&&[SchemaElement]| repetition(of) != FieldRepetitionType::Optional;
    if let (Some((file, _)), Some(_)) = (missing, versions.iter().find(is_required)) {
        return Err(file.reader.name(Error::usage(format_args!(
            "it has no column {name:?}, which is never null in another file"
        ))));
    }
    let chosen = match (versions.as_slice(), missing) {
        ([only], None) => memory::cloned(only)?,
        _ => chosen(&versions, files, united.elements.first())?,
    };
    for (found, sources) in found.into_iter().zip(&mut united.sources) {
        sources.push(match found {
            Some((elements, column)) if has_same_chunks(elements, &chosen) => {
                ColumnSource::Same(column)
            }
            Some(_) => ColumnSource::Converted,
            None => ColumnSource::Missing,
        });
    }
    memory::extend(&mut united.elements, chosen)
}

/// The elements of a column that holds the values of all files.
fn chosen(
    versions: &[&[SchemaElement]],
    files: &[FileColumns<'_>],
    root: Option<&SchemaElement>,
) -> Result<Vec<SchemaElement>> {
    let root = root.cloned().unwrap_or_default();
    let mut candidates: Vec<Vec<SchemaElement>> = versions.iter().map(|of| of.to_vec()).collect();
    let is_optional = |of: &&[SchemaElement]| repetition(of) == FieldRepetitionType::Optional;
    if versions.iter().any(is_optional) {
        candidates.extend(versions.iter().map(|of| as_optional(of)));
    }
    let fields = versions.iter().map(|of| natural_field(&root, of)).collect::<Result<Vec<_>>>()?;
    let schemas: Vec<SchemaRef> = fields.iter().map(of_one).collect();
    if let Ok(both) = unite(&schemas)
        && let Ok(written) = from_arrow(&both, &FromArrowOptions::new().with_hint(false))
    {
        candidates.push(written.schema.elements().skip(1).collect());
    }
    for candidate in candidates {
        let Ok(field) = natural_field(&root, &candidate) else { continue };
        let reads = |file: &FileColumns<'_>| {
            let target = decoding(file.reader).target(of_one(&field), MatchBy::Name);
            target.is_ok()
        };
        if files.iter().all(reads) {
            return Ok(candidate);
        }
    }
    let what = match versions {
        [first, second, ..] => difference(first, second),
        _ => None,
    };
    let name = versions.first().and_then(|of| of.first()).map_or("", |of| of.name.as_str());
    Err(Error::usage(format_args!(
        "no type holds the values that the files have in column {name:?}: {}",
        what.unwrap_or_default()
    )))
}

fn as_optional(column: &[SchemaElement]) -> Vec<SchemaElement> {
    let mut column = column.to_vec();
    if let Some(first) = column.first_mut()
        && first.repetition_type == Some(FieldRepetitionType::Required)
    {
        first.repetition_type = Some(FieldRepetitionType::Optional);
    }
    column
}

/// The Arrow field of a column, by its Parquet type alone.
fn natural_field(root: &SchemaElement, column: &[SchemaElement]) -> Result<FieldRef> {
    let schema = Schema::parse(alone(root, column)?, &Default::default())?;
    let natural = ArrowOptions::new().with_hint(false);
    let mapping = to_arrow(&schema, &[], &Projection::all(), &natural)?;
    let field = mapping.schema.fields().first().cloned();
    field.ok_or_else(|| Error::internal("a schema of one column has a field"))
}

fn of_one(field: &FieldRef) -> SchemaRef {
    Arc::new(ArrowSchema::new(vec![field.clone()]))
}

#[cfg(test)]
mod tests {
    use arrow_array::{ArrayRef, Int64Array, RecordBatch};

    use super::*;
    use crate::writer::Writer;

    /// A file of as many columns.
    fn wide(columns: usize) -> Reader {
        let column: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let columns = (0..columns).map(|at| (format!("column_{at}"), column.clone()));
        let batch = RecordBatch::try_from_iter_with_nullable(
            columns.map(|(name, column)| (name, column, true)),
        );
        let batch = batch.unwrap();
        let mut file = Vec::new();
        let mut writer = Writer::to(&mut file, batch.schema()).unwrap();
        writer.write(&batch).unwrap();
        writer.finish().unwrap();
        Reader::new(bytes::Bytes::from(file)).unwrap()
    }

    #[test]
    fn columns_are_found_in_steps_as_many_as_there_are_columns() {
        let steps = |columns: usize| {
            let files = [wide(columns), wide(columns), wide(columns)];
            crate::steps::taken_by(|| {
                let united = union(&files).unwrap();
                assert_eq!(united.elements.len(), columns + 1);
            })
        };
        let (few, many) = (steps(100), steps(400));
        assert!(many <= 5 * few, "{few} steps for 100 columns, {many} for 400");
    }
}
