//! Refuses JSON objects that have a field twice: the decoder takes the last.

use std::collections::HashMap;
use std::fmt;

use arrow_schema::{DataType, Field};
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
}

/// Fields by their names: their numbers, and the names inside.
type Fields = HashMap<String, (usize, Option<Names>), RandomState>;

impl Names {
    /// In values of this type; `None` if there are no fields.
    pub(super) fn in_type(data_type: &DataType) -> Option<Self> {
        match data_type {
            DataType::Struct(fields) if fields.is_empty() => None,
            DataType::Struct(of) => {
                Some(Self::Struct(fields(of.iter().map(|field| (field.name().as_str(), &**field)))))
            }
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(pair) => {
                    let pair = pair.iter().map(|field| &**field);
                    Some(Self::Map(fields(["key", "value"].into_iter().zip(pair))))
                }
                _ => None,
            },
            DataType::List(item)
            | DataType::LargeList(item)
            | DataType::ListView(item)
            | DataType::LargeListView(item)
            | DataType::FixedSizeList(item, _) => {
                Some(Self::List(Box::new(Self::in_type(item.data_type())?)))
            }
            _ => None,
        }
    }

    /// Looks at a JSON text without blanks around it. One that does not match the type is reported
    /// by the decoder.
    ///
    /// # Errors
    /// If an object has a field twice, or the text is no JSON.
    pub(super) fn check(&self, json: &str) -> Result<(), String> {
        self.look(json, "").map_err(|e| at_column(&e))
    }

    fn look(&self, json: &str, path: &str) -> serde_json::Result<()> {
        if let Self::Struct(fields) = self {
            return once(fields, json, path);
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

fn fields<'a>(fields: impl Iterator<Item = (&'a str, &'a Field)>) -> Fields {
    let field = |(i, (name, field)): (usize, (&str, &Field))| {
        (name.to_owned(), (i, Names::in_type(field.data_type())))
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
                    let json = map.next_value::<&RawValue>()?;
                    inside.look(json.get(), &path()).map_err(A::Error::custom)?;
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
        assert!(Names::in_type(&DataType::List(Arc::new(int("a")))).is_none());
    }
}
