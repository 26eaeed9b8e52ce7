//! [`MatchBy`]: how the fields of a target schema find theirs in a file.
//!
//! Used by `target` at every level, and by callers that need to know what a read will find.
//! Trap: with ids first and names after them, a name must not find the field that another field of
//! the target has by its id.

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use arrow_schema::{Field, FieldRef, Fields};

use super::extension::FIELD_ID_KEY;
use super::names::Named;
use crate::error::{Error, Result};

/// How fields of a target schema find their columns in the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatchBy {
    /// By exact name.
    #[default]
    Name,
    /// By the field id under `PARQUET:field_id`; a target field without one by name.
    FieldId,
    /// By the field id, as [`MatchBy::FieldId`]; also by name where no field of the file has the
    /// id, among the fields that no other target field has by its id. So Delta Lake wants it.
    FieldIdOrName,
}

impl MatchBy {
    /// The position among `fields` of the field that each of `wanted` finds: of the schema of a
    /// file, or of a struct in it.
    ///
    /// ```
    /// use marquetry::arrow_schema::{DataType, Field, Fields};
    /// use marquetry::schema::{FIELD_ID_KEY, MatchBy};
    ///
    /// let field = |name: &str| Field::new(name, DataType::Int64, true);
    /// let with_id = |field: Field, id: &str| {
    ///     field.with_metadata([(FIELD_ID_KEY.to_owned(), id.to_owned())].into())
    /// };
    /// let file = Fields::from(vec![with_id(field("old"), "1"), field("b")]);
    /// let wanted = Fields::from(vec![with_id(field("b"), "2"), with_id(field("new"), "1")]);
    /// let found = |by: MatchBy| by.find(&wanted, &file).unwrap();
    /// assert_eq!(found(MatchBy::Name), [Some(1), None]);
    /// assert_eq!(found(MatchBy::FieldId), [None, Some(0)]);
    /// assert_eq!(found(MatchBy::FieldIdOrName), [Some(1), Some(0)]);
    /// ```
    ///
    /// # Errors
    /// `Usage` if one finds several.
    pub fn find(self, wanted: &Fields, fields: &Fields) -> Result<Vec<Option<usize>>> {
        let places = self.places(wanted, || fields.iter());
        let place = |(field, place): (&FieldRef, Named)| match place {
            Named::None => Ok(None),
            Named::One(at) => Ok(Some(at)),
            Named::Several(_) => {
                Err(Error::usage(format_args!("there are several fields {}", field.name())))
            }
        };
        wanted.iter().zip(places).map(place).collect()
    }

    /// As [`MatchBy::find`].
    pub(super) fn places<'a, I>(self, wanted: &Fields, fields: impl Fn() -> I) -> Vec<Named>
    where
        I: Iterator<Item = &'a FieldRef>,
    {
        let by_name = position_of_each(fields().map(|field| Some(field.name().as_str())));
        let ids = FieldIds::new(self, wanted, || fields().map(|field| field_id(field)));
        let named = |name: &str| by_name.get(name).copied().unwrap_or(Named::None);
        wanted.iter().map(|field| ids.find(field, named)).collect()
    }
}

/// The field ids among siblings of a file, and those that a target wants.
pub(super) struct FieldIds {
    by: MatchBy,
    /// Of the file.
    places: HashMap<i32, Named>,
    /// The fields of the file that are found by their ids.
    taken: HashSet<usize>,
}

impl FieldIds {
    /// `ids` are those of the siblings.
    pub(super) fn new<I>(by: MatchBy, wanted: &Fields, ids: impl FnOnce() -> I) -> Self
    where
        I: Iterator<Item = Option<i32>>,
    {
        let places = match by {
            MatchBy::Name => HashMap::new(),
            MatchBy::FieldId | MatchBy::FieldIdOrName => position_of_each(ids()),
        };
        let taken = match by {
            MatchBy::FieldIdOrName => {
                let taken = wanted.iter().filter_map(|field| places.get(&field_id(field)?));
                taken.filter_map(|named| named.first()).collect()
            }
            MatchBy::Name | MatchBy::FieldId => HashSet::new(),
        };
        Self { by, places, taken }
    }

    /// Where the sibling is that `wanted` finds.
    pub(super) fn find(&self, wanted: &Field, by_name: impl FnOnce(&str) -> Named) -> Named {
        let by_id = field_id(wanted).filter(|_| self.by != MatchBy::Name);
        match by_id.map(|id| self.places.get(&id).copied().unwrap_or(Named::None)) {
            Some(Named::None) if self.by == MatchBy::FieldId => Named::None,
            None | Some(Named::None) => match by_name(wanted.name()) {
                Named::One(at) if self.taken.contains(&at) => Named::None,
                named => named,
            },
            Some(named) => named,
        }
    }
}

fn field_id(field: &Field) -> Option<i32> {
    field.metadata().get(FIELD_ID_KEY)?.parse().ok()
}

/// The position of each key among siblings. Siblings without a key are skipped.
fn position_of_each<K: Eq + Hash>(keys: impl Iterator<Item = Option<K>>) -> HashMap<K, Named> {
    let mut found = HashMap::new();
    for (position, key) in keys.enumerate() {
        let Some(key) = key else { continue };
        found
            .entry(key)
            .and_modify(|named| *named = Named::Several(position))
            .or_insert(Named::One(position));
    }
    found
}
