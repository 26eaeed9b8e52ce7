//! Parses JSON texts one level at a time.
//!
//! Numbers keep the digits that they are written with, and an object keeps all members of one name,
//! unlike in `serde_json::Value`.

use std::borrow::Cow;
use std::fmt::{self, Display};

use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

/// The members of an object, in their order.
pub(crate) type Members<'a> = Vec<(Cow<'a, str>, &'a RawValue)>;

/// A JSON value whose items and members are still text.
pub(crate) enum Json<'a> {
    Null,
    Bool,
    /// A number, as it is written.
    Number(&'a str),
    Text(Cow<'a, str>),
    Array(Vec<&'a RawValue>),
    Object(Members<'a>),
}

impl<'a> Json<'a> {
    /// # Errors
    /// If a text cannot be decoded.
    pub(crate) fn new(raw: &'a RawValue) -> serde_json::Result<Self> {
        Self::of_text(raw.get())
    }

    /// The same for a text without blanks around it; numbers and words are not checked.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub(crate) fn of_text(text: &'a str) -> serde_json::Result<Self> {
        Ok(match text.as_bytes().first() {
            Some(b'{') => Self::Object(members(text)?),
            Some(b'[') => Self::Array(serde_json::from_str(text)?),
            Some(b'"') => Self::Text(serde_json::from_str::<Text<'_>>(text)?.0),
            Some(b'n') => Self::Null,
            Some(b't' | b'f') => Self::Bool,
            _ => Self::Number(text),
        })
    }
}

/// The members of a text that is an object.
///
/// # Errors
/// If it is none.
pub(crate) fn members(text: &str) -> serde_json::Result<Members<'_>> {
    Ok(serde_json::from_str::<Object<'_>>(text)?.0)
}

/// Appends an object of these members.
///
/// # Errors
/// None that memory does not give.
pub(crate) fn write_members(members: Members<'_>, out: &mut String) -> serde_json::Result<()> {
    out.push_str(&serde_json::to_string(&Object(members))?);
    Ok(())
}

/// The value for a cell: texts without quotes, nested values as JSON; nothing for null.
pub(crate) fn cell(raw: &RawValue) -> Option<Cow<'_, str>> {
    match Json::new(raw) {
        Ok(Json::Null) => None,
        Ok(Json::Text(text)) => Some(text),
        _ => Some(Cow::Borrowed(raw.get())),
    }
}

/// The fault of a line, and its column; the caller knows the number of the line.
pub(crate) fn at_column(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let text = text.split(" at line ").next().unwrap_or_default();
    format!("{text} at column {}", error.column())
}

/// Serialises a value as the text that it is shown as.
pub(crate) struct AsText<T>(pub(crate) T);

impl<T: Display> Serialize for AsText<T> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(&self.0)
    }
}

/// A text, or the name of a member, that is copied only where it has escapes.
#[derive(Deserialize)]
pub(crate) struct Text<'a>(#[serde(borrow)] pub(crate) Cow<'a, str>);

struct Object<'a>(Members<'a>);

impl Serialize for Object<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Object<'de> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Collect;
        impl<'de> Visitor<'de> for Collect {
            type Value = Object<'de>;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<Text<'_>, &RawValue>()? {
                    members.push((name.0, value));
                }
                Ok(Object(members))
            }
        }
        from.deserialize_map(Collect)
    }
}
