//! Refuses JSON that the decoder would read as something else: an object that has a field twice, of
//! which it takes the last, and text in the place of a number, where the type was inferred.

use std::collections::{HashMap, HashSet};
use std::fmt;

use arrow_schema::{DataType, Field, SchemaRef};
use foldhash::fast::RandomState;
use serde::de::{Deserializer as _, Error as _, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use crate::json::{Json, Text, at_column};

/// The names of fields in values of a type. Other names in JSON are the decoder's to refuse, or to
/// pass over.
pub(super) enum Names {
    Struct(Fields),
    List(Box<Self>),
    /// As an object, where names are keys, or as a list of keys and values.
    Map(Fields),
    /// A number, which is no text.
    Number(NumberWords),
}

/// Whether text may stand for numbers that JSON has none for: NaN and infinities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberWords {
    Allowed,
    Refused,
}

/// How numbers may be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NumbersAs {
    /// As text, too.
    Any,
    Numbers,
}

/// Fields by their names: their numbers, and the names inside.
type Fields = HashMap<String, (usize, Option<Names>), RandomState>;

impl Names {
    /// In lines of these columns, whose types are inferred, except those of the columns `stated`;
    /// `None` if there are no columns.
    pub(super) fn new(schema: &SchemaRef, stated: &HashSet<String>) -> Option<Self> {
        let numbers = |name: &str| match stated.contains(name) {
            true => NumbersAs::Any,
            false => NumbersAs::Numbers,
        };
        let fields = schema.fields().iter().map(|field| (field.name().as_str(), &**field));
        Some(Self::Struct(names(fields, numbers))).filter(|_| !schema.fields().is_empty())
    }

    /// In values of this type; `None` if there are no fields.
    pub(super) fn in_type(data_type: &DataType) -> Option<Self> {
        Self::with_numbers(data_type, NumbersAs::Any)
    }

    fn with_numbers(data_type: &DataType, numbers: NumbersAs) -> Option<Self> {
        match data_type {
            DataType::Struct(fields) if fields.is_empty() => None,
            DataType::Struct(of) => {
                let of = of.iter().map(|field| (field.name().as_str(), &**field));
                Some(Self::Struct(names(of, |_| numbers)))
            }
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(pair) => {
                    let pair = pair.iter().map(|field| &**field);
                    let pair = ["key", "value"].into_iter().zip(pair);
                    Some(Self::Map(names(pair, |_| numbers)))
                }
                _ => None,
            },
            other if numbers == NumbersAs::Numbers && other.is_numeric() => {
                Some(Self::Number(match other.is_floating() {
                    true => NumberWords::Allowed,
                    false => NumberWords::Refused,
                }))
            }
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _) => {
                Some(Self::List(Box::new(Self::with_numbers(item.data_type(), numbers)?)))
            }
            _ => None,
        }
    }

    /// Looks at a JSON text without blanks around it. One that does not match the type is reported
    /// by the decoder.
    ///
    /// # Errors
    /// If an object has a field twice, a number is text, or the text is no JSON.
    pub(super) fn check(&self, json: &str) -> Result<(), String> {
        self.look(json, "").map_err(|e| at_column(&e))
    }

    /// Whether a text is right without a look inside, which most are.
    fn is_right(&self, json: &str) -> bool {
        match self {
            Self::Number(_) => !json.starts_with('"'),
            Self::List(item) if matches!(**item, Self::Number(_)) => !json.contains('"'),
            _ => false,
        }
    }

    fn look(&self, json: &str, path: &str) -> serde_json::Result<()> {
        match self {
            _ if self.is_right(json) => return Ok(()),
            Self::Struct(fields) => return once(fields, json, path),
            Self::Number(words) => return words.check(json, path),
            _ => {}
        }
        match (self, Json::of_text(json)?) {
            (Self::List(item), Json::Array(items)) => {
                items.into_iter().try_for_each(|json| item.look(json.get(), path))
            }
            (Self::Map(pair), Json::Object(entries)) => match pair.get("value") {
                Some((_, Some(value))) => {
                    entries.into_iter().try_for_each(|(_, json)| value.look(json.get(), path))
                }
                _ => Ok(()),
            },
            (Self::Map(pair), Json::Array(entries)) => {
                entries.into_iter().try_for_each(|json| once(pair, json.get(), path))
            }
            _ => Ok(()),
        }
    }
}

impl NumberWords {
    /// Looks at a text in the place of a number.
    fn check(self, json: &str, path: &str) -> serde_json::Result<()> {
        match (self, json) {
            (Self::Allowed, r#""NaN""# | r#""Infinity""# | r#""-Infinity""#) => Ok(()),
            _ => {
                let column = path.split('.').next().unwrap_or(path);
                Err(serde_json::Error::custom(format!(
                    "column {path}: the text {json}, and numbers before; --infer-rows 0 infers \
                     from all lines, --schema says the type of {column}"
                )))
            }
        }
    }
}

fn names<'a>(
    fields: impl Iterator<Item = (&'a str, &'a Field)>,
    numbers: impl Fn(&str) -> NumbersAs,
) -> Fields {
    let field = |(i, (name, field)): (usize, (&str, &Field))| {
        (name.to_owned(), (i, Names::with_numbers(field.data_type(), numbers(name))))
    };
    fields.enumerate().map(field).collect()
}

/// Looks at an object, if the text is one.
fn once(fields: &Fields, json: &str, path: &str) -> serde_json::Result<()> {
    if !json.starts_with('{') {
        return Ok(());
    }
    let mut json = serde_json::Deserializer::from_str(json);
    json.deserialize_map(Once { fields, path })?;
    json.end()
}

/// Reads the members of an object one by one, because they are checked in every line.
struct Once<'n> {
    fields: &'n Fields,
    path: &'n str,
}

impl<'de> Visitor<'de> for Once<'_> {
    type Value = ();

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut seen = vec![false; self.fields.len()];
        while let Some(Text(name)) = map.next_key::<Text<'_>>()? {
            let Some((i, inside)) = self.fields.get(&*name) else {
                map.next_value::<IgnoredAny>()?;
                continue;
            };
            let path = || match self.path {
                "" => name.to_string(),
                path => format!("{path}.{name}"),
            };
            if std::mem::replace(&mut seen[*i], true) {
                let text = format!("column {}: two fields of this name in one object", path());
                return Err(A::Error::custom(text));
            }
            match inside {
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
                Some(inside) => {
                    let json = map.next_value::<&RawValue>()?.get();
                    if !inside.is_right(json) {
                        inside.look(json, &path()).map_err(A::Error::custom)?;
                    }
                }
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn fields_are_there_once_and_keys_of_maps_as_often_as_they_are() {
        let int = |name: &str| Field::new(name, DataType::Int64, true);
        let group = |names: &[&str]| {
            DataType::Struct(names.iter().map(|name| int(name)).collect::<Vec<_>>().into())
        };
        let pair = vec![int("keys"), Field::new("values", group(&["b"]), true)];
        let entries = Field::new("entries", DataType::Struct(pair.into()), false);
        let item = Arc::new(Field::new_list_field(group(&["a", "b"]), true));
        let fields = vec![
            int("a"),
            Field::new("l", DataType::List(item), true),
            Field::new("m", DataType::Map(Arc::new(entries), false), true),
        ];
        let names = Names::in_type(&DataType::Struct(fields.into())).expect("fields");
        for (json, twice) in [
            (r#"{"a":1,"l":[{"a":1,"b":2},null],"m":{"a":{"b":1},"b":null}}"#, None),
            (r#"{"a":1,"a":1}"#, Some("a")),
            (r#"{"a":1,"\u0061":1}"#, Some("a")),
            (r#"{"x":1,"x":2,"l":[{"x":{"b":1,"b":1},"x":1}]}"#, None),
            (r#"{"l":[{"a":1},{"a":1,"b":2,"a":3}]}"#, Some("l.a")),
            (r#"{"m":{"a":null,"a":{"b":1}}}"#, None),
            (r#"{"m":{"a":{"b":1,"b":2}}}"#, Some("m.b")),
            (r#"{"m":[{"key":"a","value":{"b":1}},{"key":"a","value":null}]}"#, None),
            (r#"{"m":[{"key":"a","value":null,"key":"b"}]}"#, Some("m.key")),
            (r#"{"m":[{"key":"a","value":{"b":1,"b":2}}]}"#, Some("m.value.b")),
            (r#"{"a":{"a":1,"a":2},"l":5,"m":[5]}"#, None),
            ("5", None),
        ] {
            let wanted = twice.map(|path| format!("column {path}: "));
            match (names.check(json), wanted) {
                (Ok(()), None) => {}
                (Err(wrong), Some(wanted)) => assert!(wrong.starts_with(&wanted), "{wrong}"),
                (found, _) => panic!("{json}: {found:?}"),
            }
        }
        assert!(names.check("{\"a\":1 \"l\":2}").is_err());
        assert!(names.check("{\"a\":\"1\",\"l\":[{\"b\":\"1\"}]}").is_ok());
        assert!(Names::in_type(&DataType::List(Arc::new(int("a")))).is_none());
    }

    #[test]
    fn text_is_no_number_where_types_are_inferred() {
        let list = |item| DataType::List(Arc::new(Field::new_list_field(item, true)));
        let pair = vec![
            Field::new("key", DataType::Utf8, false),
            Field::new("value", DataType::Int64, true),
        ];
        let entries = Field::new("entries", DataType::Struct(pair.into()), false);
        let group = vec![Field::new("b", DataType::Decimal128(38, 2), true)];
        let fields = [
            ("i", DataType::Int64),
            ("f", DataType::Float64),
            ("t", DataType::Utf8),
            ("l", list(list(DataType::Int64))),
            ("m", DataType::Map(Arc::new(entries), false)),
            ("s", DataType::Struct(group.into())),
            ("stated", list(DataType::Int64)),
        ];
        let fields = fields.map(|(name, data_type)| Field::new(name, data_type, true));
        let schema = Arc::new(arrow_schema::Schema::new(fields.to_vec()));
        let names = Names::new(&schema, &HashSet::from(["stated".to_owned()])).expect("columns");
        for (json, path) in [
            (r#"{"i":7,"f":"NaN","t":"7","l":[[1],null],"m":{"1":1},"s":{"b":1.5}}"#, None),
            (r#"{"i":null,"f":"-Infinity","stated":["7"],"other":"7"}"#, None),
            (r#"{"i":"007"}"#, Some("i")),
            (r#"{"i":"NaN"}"#, Some("i")),
            (r#"{"f":"1.50"}"#, Some("f")),
            (r#"{"l":[[1],["2"]]}"#, Some("l")),
            (r#"{"m":{"a":"1"}}"#, Some("m")),
            (r#"{"m":[{"key":"a","value":"1"}]}"#, Some("m.value")),
            (r#"{"s":{"b":"1.50"}}"#, Some("s.b")),
        ] {
            match (names.check(json), path) {
                (Ok(()), None) => {}
                (Err(wrong), Some(path)) => {
                    let wanted = format!("column {path}: the text \"");
                    assert!(wrong.starts_with(&wanted), "{json}: {wrong}");
                }
                (found, _) => panic!("{json}: {found:?}"),
            }
        }
    }
}
