//! Rewrites maps in JSON: objects become lists of keys and values, as the decoder wants them.

use std::borrow::Cow;
use std::collections::HashMap;

use arrow_schema::{DataType, SchemaRef};
use foldhash::fast::RandomState;
use serde_json::value::RawValue;

use crate::json::{Json, at_column};

/// Where maps are in values of a type.
pub(super) enum Maps {
    Map(Option<Box<Self>>),
    List(Box<Self>),
    Struct(HashMap<String, Self, RandomState>),
}

impl Maps {
    /// In lines of these columns; `None` if there are none.
    pub(super) fn new(schema: &SchemaRef) -> Option<Self> {
        Self::in_type(&DataType::Struct(schema.fields().clone()))
    }

    /// In values of this type; `None` if there are none.
    pub(super) fn in_type(data_type: &DataType) -> Option<Self> {
        match data_type {
            DataType::Map(entries, _) => match entries.data_type() {
                DataType::Struct(pair) => {
                    let value = pair.get(1).and_then(|value| Self::in_type(value.data_type()));
                    Some(Self::Map(value.map(Box::new)))
                }
                _ => None,
            },
            DataType::Struct(fields) => {
                let members = fields.iter().filter_map(|field| {
                    Some((field.name().clone(), Self::in_type(field.data_type())?))
                });
                let members: HashMap<_, _, _> = members.collect();
                Some(members).filter(|of| !of.is_empty()).map(Self::Struct)
            }
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

    /// Appends the JSON with all maps as lists of keys and values. A value that does not match the
    /// type stays unchanged, and the decoder reports it.
    ///
    /// # Errors
    /// If it is no JSON.
    pub(super) fn as_pairs(&self, json: &str, out: &mut String) -> Result<(), String> {
        let json = serde_json::from_str(json).map_err(|e| at_column(&e))?;
        self.write(json, out).map_err(|e| at_column(&e))
    }

    fn write(&self, json: &RawValue, out: &mut String) -> serde_json::Result<()> {
        match (self, Json::new(json)?) {
            (Self::Map(value), Json::Object(entries)) => {
                write_all(['[', ']'], entries, out, |(key, entry), out| {
                    out.push_str("{\"key\":");
                    out.push_str(&serde_json::to_string(&key)?);
                    out.push_str(",\"value\":");
                    write(value.as_deref(), entry, out)?;
                    out.push('}');
                    Ok(())
                })
            }
            (Self::Map(value), Json::Array(entries)) => {
                write_all(['[', ']'], entries, out, |entry, out| match Json::new(entry)? {
                    Json::Object(pair) => write_object(pair, out, |name| match name {
                        "value" => value.as_deref(),
                        _ => None,
                    }),
                    _ => write(None, entry, out),
                })
            }
            (Self::List(item), Json::Array(items)) => {
                write_all(['[', ']'], items, out, |json, out| item.write(json, out))
            }
            (Self::Struct(members), Json::Object(fields)) => {
                write_object(fields, out, |name| members.get(name))
            }
            _ => write(None, json, out),
        }
    }
}

fn write(maps: Option<&Maps>, json: &RawValue, out: &mut String) -> serde_json::Result<()> {
    match maps {
        Some(maps) => maps.write(json, out)?,
        None => out.push_str(json.get()),
    }
    Ok(())
}

fn write_object<'m>(
    members: Vec<(Cow<'_, str>, &RawValue)>,
    out: &mut String,
    maps_of: impl Fn(&str) -> Option<&'m Maps>,
) -> serde_json::Result<()> {
    write_all(['{', '}'], members, out, |(name, json), out| {
        out.push_str(&serde_json::to_string(&name)?);
        out.push(':');
        write(maps_of(&name), json, out)
    })
}

fn write_all<T>(
    [open, close]: [char; 2],
    items: Vec<T>,
    out: &mut String,
    mut item: impl FnMut(T, &mut String) -> serde_json::Result<()>,
) -> serde_json::Result<()> {
    out.push(open);
    for (i, next) in items.into_iter().enumerate() {
        if i > 0 {
            out.push(',');
        }
        item(next, out)?;
    }
    out.push(close);
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_schema::{Field, Schema};

    use super::*;

    #[test]
    fn maps_of_both_forms_become_lists() {
        let pair = |value| {
            let pair =
                vec![Field::new("key", DataType::Utf8, false), Field::new("value", value, true)];
            let entries = Field::new("entries", DataType::Struct(pair.into()), false);
            DataType::Map(Arc::new(entries), false)
        };
        let inner = Field::new("m", pair(pair(DataType::Int32)), true);
        let item = Arc::new(Field::new_list_field(DataType::Struct(vec![inner].into()), true));
        let fields = vec![
            Field::new("a", DataType::Int32, true),
            Field::new("m", pair(DataType::Int32), true),
            Field::new("l", DataType::List(item), true),
        ];
        let maps = Maps::new(&Arc::new(Schema::new(fields))).expect("maps");
        for (line, wanted) in [
            (
                r#"{"a" : 1, "m" : {"x":1, "y\"":null}}"#,
                r#"{"a":1,"m":[{"key":"x","value":1},{"key":"y\"","value":null}]}"#,
            ),
            (
                r#"{"m":[{"key":"x","value":1}],"a":[{}]}"#,
                r#"{"m":[{"key":"x","value":1}],"a":[{}]}"#,
            ),
            (r#"{"m":{},"l":null}"#, r#"{"m":[],"l":null}"#),
            (
                r#"{"l":[{"m":{"x":{"y":1}}},{"m":[{"key":"x","value":{"y":1}}]},null]}"#,
                concat!(
                    r#"{"l":[{"m":[{"key":"x","value":[{"key":"y","value":1}]}]},"#,
                    r#"{"m":[{"key":"x","value":[{"key":"y","value":1}]}]},null]}"#
                ),
            ),
            (r#"{"m":5}"#, r#"{"m":5}"#),
            (
                r#"{"m":{"x":123456789012345678901234567890,"x":1e400}}"#,
                concat!(
                    r#"{"m":[{"key":"x","value":123456789012345678901234567890},"#,
                    r#"{"key":"x","value":1e400}]}"#
                ),
            ),
        ] {
            let mut out = String::new();
            maps.as_pairs(line, &mut out).expect("JSON");
            assert_eq!(out, wanted);
        }
        assert!(maps.as_pairs("{\"m\":", &mut String::new()).is_err());
    }
}
