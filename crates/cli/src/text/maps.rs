//! Maps in JSON: objects, or lists of keys and values. The decoder gets all as lists.

use arrow_schema::{DataType, Fields, SchemaRef};

use super::scan::{Scan, unquoted};

/// Where maps are in values of a type.
pub(super) struct Maps(Of);

/// What is in a value with maps in it.
enum Of {
    Map(Option<Box<Self>>),
    List(Box<Self>),
    Struct(Vec<(String, Self)>),
}

impl Maps {
    /// In lines of these columns; `None` if there are none.
    pub(super) fn new(schema: &SchemaRef) -> Option<Self> {
        Self::of(&DataType::Struct(schema.fields().clone()))
    }

    /// In values of this type; `None` if there are none.
    pub(super) fn of(data_type: &DataType) -> Option<Self> {
        of(data_type).map(Self)
    }

    /// Appends the JSON with all maps as lists of keys and values. What has another form than the
    /// type stays as it is, and the decoder says what is wrong.
    ///
    /// # Errors
    /// If it is no JSON.
    pub(super) fn as_pairs(&self, json: &str, out: &mut String) -> Result<(), String> {
        self.0.write(&mut Scan::new(json)?, out)
    }
}

fn members(fields: &Fields) -> Vec<(String, Of)> {
    let member =
        |field: &arrow_schema::FieldRef| Some((field.name().clone(), of(field.data_type())?));
    fields.iter().filter_map(member).collect()
}

fn of(data_type: &DataType) -> Option<Of> {
    match data_type {
        DataType::Map(entries, _) => match entries.data_type() {
            DataType::Struct(pair) => {
                let value = pair.get(1).and_then(|value| of(value.data_type()));
                Some(Of::Map(value.map(Box::new)))
            }
            _ => None,
        },
        DataType::Struct(fields) => {
            Some(members(fields)).filter(|of| !of.is_empty()).map(Of::Struct)
        }
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => Some(Of::List(Box::new(of(item.data_type())?))),
        _ => None,
    }
}

impl Of {
    fn write(&self, scan: &mut Scan<'_>, out: &mut String) -> Result<(), String> {
        match (self, scan.next_is()) {
            (Self::Map(value), Some('{')) => {
                write_items(scan, out, ['[', ']'], |scan, name, out| {
                    out.push_str("{\"key\":");
                    out.push_str(name.unwrap_or_default());
                    out.push_str(",\"value\":");
                    write_value(value.as_deref(), scan, out)?;
                    out.push('}');
                    Ok(())
                })
            }
            (Self::Map(value), Some('[')) => {
                write_items(scan, out, ['[', ']'], |scan, _, out| match scan.next_is() {
                    Some('{') => write_object(scan, out, |name| match name {
                        "value" => value.as_deref(),
                        _ => None,
                    }),
                    _ => write_value(None, scan, out),
                })
            }
            (Self::List(item), Some('[')) => {
                write_items(scan, out, ['[', ']'], |scan, _, out| item.write(scan, out))
            }
            (Self::Struct(members), Some('{')) => write_members(members, scan, out),
            _ => write_value(None, scan, out),
        }
    }
}

fn write_members(
    members: &[(String, Of)],
    scan: &mut Scan<'_>,
    out: &mut String,
) -> Result<(), String> {
    let find = |name: &str| members.iter().find(|(known, _)| known == name).map(|(_, of)| of);
    write_object(scan, out, find)
}

fn write_object<'o>(
    scan: &mut Scan<'_>,
    out: &mut String,
    of: impl Fn(&str) -> Option<&'o Of>,
) -> Result<(), String> {
    write_items(scan, out, ['{', '}'], |scan, name, out| {
        let name = name.unwrap_or_default();
        out.push_str(name);
        out.push(':');
        write_value(of(&unquoted(name)), scan, out)
    })
}

fn write_items<'a>(
    scan: &mut Scan<'a>,
    out: &mut String,
    brackets: [char; 2],
    mut item: impl FnMut(&mut Scan<'a>, Option<&'a str>, &mut String) -> Result<(), String>,
) -> Result<(), String> {
    out.push(brackets[0]);
    let mut is_first = true;
    scan.items(|scan, name| {
        if !std::mem::take(&mut is_first) {
            out.push(',');
        }
        item(scan, name, out)
    })?;
    out.push(brackets[1]);
    Ok(())
}

fn write_value(of: Option<&Of>, scan: &mut Scan<'_>, out: &mut String) -> Result<(), String> {
    match of {
        Some(of) => of.write(scan, out),
        None => {
            out.push_str(scan.raw()?);
            Ok(())
        }
    }
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
        ] {
            let mut out = String::new();
            maps.as_pairs(line, &mut out).expect("JSON");
            assert_eq!(out, wanted);
        }
        assert!(maps.as_pairs("{\"m\":", &mut String::new()).is_err());
    }
}
