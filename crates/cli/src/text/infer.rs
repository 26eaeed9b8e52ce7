//! Infers the types of JSON from the values of the first lines.
//!
//! Numbers become the type that keeps all their digits; texts that are all dates or times become
//! these, as in CSV. An object becomes a struct; one whose names change from row to row a map.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use arrow_schema::{DataType, Field, Fields};
use serde_json::value::RawValue;

use super::numbers::Numbers;
use super::place::Place;
use super::times::Texts;
use crate::failure::{Failure, Result};
use crate::json::{self, Json, at_column};
use crate::types::MAX_NESTING;

/// The shape of the values of one place: of a column, an item, or a member.
#[derive(Debug, Clone, Default)]
pub(super) struct Shape {
    booleans: bool,
    numbers: Option<Box<Numbers>>,
    texts: Option<Texts>,
    items: Option<Box<Self>>,
    members: Option<Box<Members>>,
    /// Place of the first value that is not null.
    first: Option<Place>,
}

/// The members of objects, in the order in which they were first seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Members {
    shapes: Vec<(String, Shape)>,
    by_name: HashMap<String, usize>,
    objects: usize,
    /// Members of all objects.
    seen: usize,
}

impl Members {
    /// Looks at a line, which is an object, but not into the members `without`; names that are new
    /// may take as many bytes as are `left`.
    pub(super) fn see_line(
        &mut self,
        text: &str,
        at: &Place,
        without: &HashSet<&str>,
        left: &mut u64,
    ) -> Result<()> {
        let wrong = |text: String| Failure::content(&at.file, Some(at.line), text);
        let json: &RawValue = serde_json::from_str(text).map_err(|e| wrong(at_column(&e)))?;
        match Json::new(json) {
            Ok(Json::Object(members)) => {
                let mut line = Line { at, left };
                self.see(members, &mut line, "", Some(without), MAX_DEPTH).map_err(wrong)
            }
            _ => Err(wrong("not an object".to_owned())),
        }
    }

    fn see(
        &mut self,
        members: json::Members<'_>,
        line: &mut Line<'_>,
        path: &str,
        without: Option<&HashSet<&str>>,
        depth: usize,
    ) -> Result<(), String> {
        self.objects += 1;
        for (name, value) in members {
            self.seen += 1;
            if !self.by_name.contains_key(&*name) {
                line.take(&name, path)?;
            }
            let shape = self.shape(&name);
            if without.is_some_and(|without| without.contains(&*name)) {
                continue;
            }
            let path = if path.is_empty() { name.into_owned() } else { format!("{path}.{name}") };
            shape.see(value, line, &path, depth)?;
        }
        Ok(())
    }

    /// The shape of a member, which is new if it is.
    fn shape(&mut self, name: &str) -> &mut Shape {
        let i = match self.by_name.get(name) {
            Some(i) => *i,
            None => {
                self.by_name.insert(name.to_owned(), self.shapes.len());
                self.shapes.push((name.to_owned(), Shape::default()));
                self.shapes.len() - 1
            }
        };
        &mut self.shapes[i].1
    }

    /// The fields, except those that `type_of` has another type for, or none.
    pub(super) fn fields(
        &self,
        path: &str,
        type_of: &mut dyn FnMut(&str) -> Option<Field>,
    ) -> Result<Vec<Field>> {
        let field = |(name, shape): &(String, Shape)| {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            match type_of(name) {
                Some(field) => Ok(field),
                None => Ok(Field::new(name, shape.data_type(&path)?, true)),
            }
        };
        self.shapes.iter().map(field).collect()
    }

    /// Whether the names are values themselves: there are many, and each object has few.
    fn are_values(&self) -> bool {
        let names = self.shapes.len();
        names == 0 || (names > MAX_MEMBERS && names * self.objects > 10 * self.seen)
    }

    fn data_type(&self, path: &str) -> Result<DataType> {
        if self.are_values() {
            let mut all = Shape::default();
            if self.shapes.iter().all(|(_, shape)| all.merge(shape)) {
                let value =
                    if self.shapes.is_empty() { DataType::Utf8 } else { all.data_type(path)? };
                return Ok(map_of(value));
            }
        }
        Ok(DataType::Struct(self.fields(path, &mut |_| None)?.into()))
    }
}

/// A line that is looked at.
struct Line<'a> {
    at: &'a Place,
    /// Bytes that new names may take.
    left: &'a mut u64,
}

impl Line<'_> {
    /// Takes the bytes of a member that is new.
    fn take(&mut self, name: &str, path: &str) -> Result<(), String> {
        let bytes = MEMBER_BYTES + 2 * name.len() as u64;
        *self.left = self.left.checked_sub(bytes).ok_or_else(|| {
            let (place, variant) = match path.split('.').next() {
                Some("") | None => (String::new(), "all"),
                Some(column) => (format!("column {path}: "), column),
            };
            format!(
                "{place}more names than there is memory for; --variant {variant} keeps values of \
                 all names, --schema with --schema-only looks at none, or raise --mem"
            )
        })?;
        Ok(())
    }
}

/// Memory of a member beside its name: a shape, and an entry of a map. With names of 8 bytes, 270
/// bytes were measured, and vectors that grow are up to twice as large.
const MEMBER_BYTES: u64 = 500;
/// The deepest nesting: beyond, stacks end.
const MAX_DEPTH: usize = MAX_NESTING;
/// Names of an object from which on they may be those of a map.
const MAX_MEMBERS: usize = 100;

fn map_of(value: DataType) -> DataType {
    let entries: Fields =
        vec![Field::new("key", DataType::Utf8, false), Field::new("value", value, true)].into();
    DataType::Map(Arc::new(Field::new("entries", DataType::Struct(entries), false)), false)
}

impl Shape {
    /// Looks at a value, which may be nested as deep as `depth`.
    fn see(
        &mut self,
        json: &RawValue,
        line: &mut Line<'_>,
        path: &str,
        depth: usize,
    ) -> Result<(), String> {
        let at = line.at;
        let json = Json::new(json).map_err(|e| at_column(&e))?;
        let kind = match json {
            Json::Null => return Ok(()),
            Json::Bool | Json::Number(_) | Json::Text(_) => Kind::Scalar,
            Json::Array(_) => Kind::Array,
            Json::Object(_) => Kind::Object,
        };
        match (self.kind(), &self.first) {
            (Some(before), Some(first)) if before != kind => {
                let place = match first.file == at.file {
                    true => format!("line {}", first.line),
                    false => format!("{}, line {}", first.file, first.line),
                };
                return Err(format!(
                    "column {path}: {}, and {} in {place}; --variant {} keeps values of all forms",
                    kind.name(),
                    before.name(),
                    path.split('.').next().unwrap_or(path),
                ));
            }
            _ => {}
        }
        self.first.get_or_insert_with(|| at.clone());
        let below =
            || depth.checked_sub(1).ok_or_else(|| format!("nested deeper than {MAX_DEPTH}"));
        match json {
            Json::Null => {}
            Json::Bool => self.booleans = true,
            Json::Number(text) => self.numbers.get_or_insert_default().see(text, at),
            Json::Text(text) => self.texts.get_or_insert_default().see(&text),
            Json::Array(items) => {
                let (item, depth) = (self.items.get_or_insert_default(), below()?);
                items.into_iter().try_for_each(|json| item.see(json, line, path, depth))?;
            }
            Json::Object(members) => {
                let known = self.members.get_or_insert_default();
                known.see(members, line, path, None, below()?)?;
            }
        }
        Ok(())
    }

    fn kind(&self) -> Option<Kind> {
        self.first.as_ref().map(|_| match (&self.items, &self.members) {
            (Some(_), _) => Kind::Array,
            (_, Some(_)) => Kind::Object,
            _ => Kind::Scalar,
        })
    }

    /// Takes in what was seen elsewhere; false if that is of another kind.
    fn merge(&mut self, other: &Self) -> bool {
        if self.kind().zip(other.kind()).is_some_and(|(a, b)| a != b) {
            return false;
        }
        self.booleans |= other.booleans;
        self.first = self.first.take().or_else(|| other.first.clone());
        if let Some(other) = &other.numbers {
            self.numbers.get_or_insert_default().merge(other);
        }
        if let Some(other) = &other.texts {
            self.texts.get_or_insert_default().merge(other);
        }
        let items = other.items.as_ref();
        let items = items.is_none_or(|other| self.items.get_or_insert_default().merge(other));
        let members = other.members.as_ref().is_none_or(|other| {
            let all = self.members.get_or_insert_default();
            all.objects += other.objects;
            all.seen += other.seen;
            other.shapes.iter().all(|(name, shape)| all.shape(name).merge(shape))
        });
        items && members
    }

    fn data_type(&self, path: &str) -> Result<DataType> {
        if let Some(item) = &self.items {
            let item = Field::new_list_field(item.data_type(path)?, true);
            return Ok(DataType::List(Arc::new(item)));
        }
        if let Some(members) = &self.members {
            return members.data_type(path);
        }
        Ok(match (self.booleans, &self.numbers, &self.texts) {
            (false, None, None) => DataType::Null,
            (true, None, None) => DataType::Boolean,
            (false, Some(numbers), None) => numbers.data_type(path)?,
            // NaN and infinities, which are no numbers of JSON.
            (false, Some(numbers), Some(texts)) if texts.are_floats() && numbers.are_floats() => {
                DataType::Float64
            }
            (false, None, Some(texts)) => texts.data_type(),
            _ => DataType::Utf8,
        })
    }
}

/// The kinds of values that have no common type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Scalar,
    Array,
    Object,
}

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::Scalar => "a single value",
            Self::Array => "an array",
            Self::Object => "an object",
        }
    }
}
