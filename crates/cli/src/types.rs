//! Parses `--schema`: names and Arrow types, as `id: int64 not null, tags: list<utf8>`.

use std::str::FromStr;
use std::sync::Arc;

use arrow_schema::{DataType, Field, TimeUnit};
use marquetry::engine::rows::bytes_of_nulls;

/// The deepest nesting: beyond, stacks end.
pub(crate) const MAX_NESTING: usize = 127;
/// The largest null, because lists and binaries of a fixed size have all their bytes in a null too.
pub(crate) const MAX_NULL_BYTES: usize = 64 << 20;

/// Parses the fields of a schema.
///
/// # Errors
/// The fault of the text.
pub(crate) fn fields(text: &str) -> Result<Vec<Field>, String> {
    check_nesting(text)?;
    let fields = parsed_fields(text)?;
    let is_large = |field: &&Field| bytes_of_nulls(field.data_type(), 1) > MAX_NULL_BYTES;
    match fields.iter().find(is_large) {
        None => Ok(fields),
        Some(field) => Err(format!(
            "{}: a null of {} takes more than {} MiB",
            field.name(),
            field.data_type(),
            MAX_NULL_BYTES >> 20
        )),
    }
}

/// Parses a type: by the names of Arrow in lowercase, with `<>` around inner types, or as Arrow
/// itself writes it.
///
/// # Errors
/// As [`fields`].
pub(crate) fn data_type(text: &str) -> Result<DataType, String> {
    check_nesting(text)?;
    parsed_type(text)
}

/// Refuses what is nested too deep to be parsed by recursion, in which each level reads its text
/// again.
fn check_nesting(text: &str) -> Result<(), String> {
    let (mut depth, mut quoted) = (0usize, false);
    for byte in text.bytes() {
        match byte {
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'(' | b'<' | b'[' => depth += 1,
            b')' | b'>' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > MAX_NESTING {
            return Err(format!("types are nested deeper than {MAX_NESTING}"));
        }
    }
    Ok(())
}

fn parsed_fields(text: &str) -> Result<Vec<Field>, String> {
    let parts = split(text)?;
    parts.into_iter().filter(|part| !part.trim().is_empty()).map(field).collect()
}

fn field(text: &str) -> Result<Field, String> {
    let text = text.trim();
    // A name with a colon or a comma is put in quotes.
    let (name, rest) = match quoted(text) {
        Some((name, rest)) => (name, rest.trim_start().strip_prefix(':')),
        None => match text.split_once(':') {
            Some((name, rest)) => (name.trim().to_owned(), Some(rest)),
            None => (text.to_owned(), None),
        },
    };
    let rest = rest.ok_or_else(|| format!("{text:?} is not NAME: TYPE"))?.trim();
    let lower = rest.to_ascii_lowercase();
    let required = lower.ends_with(" not null");
    let kind = if required { rest.get(..rest.len() - 9).unwrap_or_default() } else { rest };
    if kind.trim().eq_ignore_ascii_case("uuid") {
        let field = Field::new(name, DataType::FixedSizeBinary(16), !required);
        return Ok(field.with_extension_type(arrow_schema::extension::Uuid));
    }
    Ok(Field::new(name, parsed_type(kind)?, !required))
}

/// Parses a name in quotes, where a doubled quote stands for one; returns the rest too.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut rest = text.strip_prefix('"')?;
    let mut name = String::new();
    loop {
        let (part, after) = rest.split_once('"')?;
        name.push_str(part);
        match after.strip_prefix('"') {
            Some(after) => {
                name.push('"');
                rest = after;
            }
            None => return Some((name, after)),
        }
    }
}

fn parsed_type(text: &str) -> Result<DataType, String> {
    let text = text.trim();
    if let Ok(data_type) = DataType::from_str(text) {
        return Ok(data_type);
    }
    let wrong = || {
        format!(
            "{text:?} is no type; types are like int64, utf8, decimal128(10,2), timestamp(us), list<utf8>, struct<a: int32>"
        )
    };
    let end = text.find(['(', '<', '[']).unwrap_or(text.len());
    let (head, inner) = text.split_at(end);
    let head = head.trim().to_ascii_lowercase();
    let inner = match inner.len() {
        0 => "",
        n if inner.ends_with([')', '>', ']']) => inner.get(1..n - 1).unwrap_or_default(),
        _ => return Err(wrong()),
    };
    let parts = split(inner)?;
    let item = |text: &str| Ok::<_, String>(Arc::new(item("item", text)?));
    Ok(match (&*head, &parts[..]) {
        ("list", [of]) => DataType::List(item(of)?),
        ("large_list" | "largelist", [of]) => DataType::LargeList(item(of)?),
        ("fixed_size_list" | "fixedsizelist", [of, size]) => {
            let size = size.trim().parse().ok().filter(|size| *size >= 0);
            DataType::FixedSizeList(item(of)?, size.ok_or_else(wrong)?)
        }
        ("struct", [_, ..]) => DataType::Struct(parsed_fields(inner)?.into()),
        ("map", [key, value]) => {
            let key = Field::new("key", parsed_type(key)?, false);
            let entries = DataType::Struct(vec![key, self::item("value", value)?].into());
            DataType::Map(Arc::new(Field::new("entries", entries, false)), false)
        }
        ("dictionary", [key, value]) => {
            DataType::Dictionary(Box::new(parsed_type(key)?), Box::new(parsed_type(value)?))
        }
        ("timestamp", [unit]) if !unit.trim().is_empty() => {
            DataType::Timestamp(time_unit(unit).ok_or_else(wrong)?, None)
        }
        ("timestamp", [unit, zone]) => {
            let zone = zone.trim().trim_matches('"');
            DataType::Timestamp(time_unit(unit).ok_or_else(wrong)?, Some(zone.into()))
        }
        ("timestamp", _) => DataType::Timestamp(TimeUnit::Microsecond, None),
        _ => {
            let name = named(&head).ok_or_else(wrong)?;
            let args = if inner.is_empty() { String::new() } else { format!("({inner})") };
            DataType::from_str(&format!("{name}{args}")).map_err(|_| wrong())?
        }
    })
}

/// Parses the element of a list, which may be `not null` like a field.
fn item(name: &str, text: &str) -> Result<Field, String> {
    let text = text.trim();
    if text.to_ascii_lowercase().ends_with(" not null") {
        let kind = text.get(..text.len() - 9).unwrap_or_default();
        return Ok(Field::new(name, parsed_type(kind)?, false));
    }
    Ok(Field::new(name, parsed_type(text)?, true))
}

fn time_unit(text: &str) -> Option<TimeUnit> {
    Some(match text.trim() {
        "s" => TimeUnit::Second,
        "ms" => TimeUnit::Millisecond,
        "us" | "µs" => TimeUnit::Microsecond,
        "ns" => TimeUnit::Nanosecond,
        _ => return None,
    })
}

/// The name as Arrow spells it.
fn named(lower: &str) -> Option<&'static str> {
    const NAMES: &str = "Null Boolean Int8 Int16 Int32 Int64 UInt8 UInt16 UInt32 UInt64 Float16 \
                         Float32 Float64 Utf8 LargeUtf8 Utf8View Binary LargeBinary BinaryView \
                         FixedSizeBinary Date32 Date64 Time32 Time64 Duration Interval Decimal32 \
                         Decimal64 Decimal128 Decimal256 ListView LargeListView Dictionary \
                         RunEndEncoded";
    let plain = lower.replace('_', "");
    Some(match &*plain {
        "bool" => "Boolean",
        "string" | "text" => "Utf8",
        "float" => "Float32",
        "double" => "Float64",
        "int" => "Int32",
        "date" => "Date32",
        "decimal" => "Decimal128",
        _ => return NAMES.split(' ').find(|name| name.eq_ignore_ascii_case(&plain)),
    })
}

/// Splits at commas that are in no brackets and no quotes.
fn split(text: &str) -> Result<Vec<&str>, String> {
    let (mut parts, mut start, mut depth, mut quoted) = (Vec::new(), 0, 0i32, false);
    for (i, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            _ if quoted => {}
            '(' | '<' | '[' => depth += 1,
            ')' | '>' | ']' => depth -= 1,
            ',' if depth == 0 => {
                parts.push(text.get(start..i).unwrap_or_default());
                start = i + 1;
            }
            _ => {}
        }
        if depth < 0 {
            break;
        }
    }
    if depth != 0 || quoted {
        return Err(format!("{text:?}: brackets or quotes do not match"));
    }
    parts.push(text.get(start..).unwrap_or_default());
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_nest_as_deep_as_stacks_allow() {
        let nested = |depth| format!("{}int8{}", "list<".repeat(depth), ">".repeat(depth));
        assert!(data_type(&nested(MAX_NESTING)).is_ok());
        for depth in [MAX_NESTING + 1, 100_000] {
            assert!(data_type(&nested(depth)).is_err());
            assert!(fields(&format!("a: {}", nested(depth))).is_err());
            assert!(data_type(&"List(".repeat(depth)).is_err());
        }
        assert!(fields(&format!("\"{}\": int8", "<".repeat(1000))).is_ok());
    }

    #[test]
    fn sizes_are_those_of_nulls_that_memory_holds() {
        for (text, is_type) in [
            ("fixed_size_list<float, 1536>", true),
            ("fixed_size_list<int8, 0>", true),
            ("fixed_size_list<int8, -1>", false),
            ("fixed_size_list<int64, 2000000000>", false),
            ("struct<b: fixed_size_list<fixed_size_list<int8, 100000>, 100000>>", false),
            ("fixed_size_binary(2000000000)", false),
        ] {
            assert_eq!(fields(&format!("a: {text}")).is_ok(), is_type, "{text}");
        }
    }
}
