//! `schema`: the schema in the form that is asked for.

use std::collections::HashMap;
use std::io::Write;

use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};
use marquetry::Reader;
use marquetry::variant::VariantArray;
use serde_json::{Value, json};

use crate::args::{Format, Global, Schema};
use crate::escape::{escape, escape_lines};
use crate::failure::{Failure, Result};
use crate::input;
use crate::output::Sink;
use crate::report::{Report, Section, json_line, with_keys};

/// Prints the schema of each file.
pub(crate) fn run(command: &Schema, global: &Global) -> Result<()> {
    if matches!(global.format, Some(Format::Table | Format::Md | Format::Csv)) {
        return table(command, global);
    }
    let mut out = Sink::open(global)?;
    let form = match &command.form {
        Some(form) => form.as_str(),
        None if out.terminal => "tree",
        None => "json",
    };
    let as_json = matches!(global.format, Some(Format::Json | Format::Jsonl));
    let form = if form == "tree" && as_json { "json" } else { form };
    let inputs = input::inputs(&command.files.files, global)?;
    let paths: Vec<String> = inputs.iter().map(|input| input.path.clone()).collect();
    let mut known = inputs.into_iter().map(|input| input.known);
    // A schema that many files have is shown once; all have the same partition columns.
    let mut shown: Vec<(String, Vec<String>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let (_, end) = input::each_readable(&paths, global, |path| {
        let reader = input::open(path, global)?;
        let partitions = known.next().flatten();
        let of_file = text(form, &reader, path, &[], out.terminal)?;
        let place = *places.entry(of_file).or_insert(shown.len());
        match shown.get_mut(place) {
            Some((_, paths)) => paths.push(path.to_owned()),
            None => {
                let partitions = partitions.as_ref().map_or(&[][..], |known| &known.fields()[..]);
                let text = text(form, &reader, path, partitions, out.terminal)?;
                shown.push((text, vec![path.to_owned()]));
            }
        }
        Ok(())
    })?;
    let several = shown.len() > 1 && form != "json" && !form.starts_with("sql:");
    for (text, paths) in &shown {
        if several {
            writeln!(out, "{}", escape(&with_more(paths)))?;
        }
        match form {
            "json" => json_line(&mut out, &with_files(text, paths)?)?,
            _ => writeln!(out, "{text}")?,
        }
    }
    out.close()?;
    end
}

/// The schema of a file in a form that is text of its own.
fn text(
    form: &str,
    reader: &Reader,
    path: &str,
    partitions: &[FieldRef],
    terminal: bool,
) -> Result<String> {
    let line = |field: &Field| {
        let null = if field.is_nullable() { "" } else { " not null" };
        let data_type = field.data_type().to_string();
        format!("{}: {}{null}", escape(field.name()), escape(&data_type))
    };
    let mut text = match form {
        "json" => return Ok(tree_json(reader, partitions)?.to_string()),
        "tree" => escape_lines(&reader.metadata().schema().tree().to_string()).into_owned(),
        "parquet" => escape_lines(&reader.metadata().schema().to_string()).into_owned(),
        "arrow" => {
            let schema = reader.schema()?;
            let fields = schema.fields().iter().chain(partitions);
            return Ok(fields.map(|field| line(field)).collect::<Vec<_>>().join("\n"));
        }
        form => {
            let Some(dialect) = form.strip_prefix("sql:") else {
                return Err(Failure::Usage(format!(
                    "no form {form:?}; there are tree, arrow, parquet, json and sql:DIALECT"
                )));
            };
            let sql = sql(reader, path, Dialect::parse(dialect)?, partitions)?;
            // A program gets the names as they are.
            return Ok(if terminal { escape_lines(&sql).into_owned() } else { sql });
        }
    };
    if !partitions.is_empty() {
        text.truncate(text.trim_end().len());
    }
    for field in partitions {
        text.push_str("\npartition ");
        text.push_str(&line(field));
    }
    Ok(text)
}

/// The JSON of a schema with the files that have it.
fn with_files(text: &str, paths: &[String]) -> Result<String> {
    let schema: Value = serde_json::from_str(text).unwrap_or_default();
    let mut named =
        with_keys([("schema", json!("marq/1/schema")), ("file", json!(paths.first()))], &schema);
    if let (Some(named), true) = (named.as_object_mut(), paths.len() > 1) {
        named.insert("files".to_owned(), json!(paths));
    }
    Ok(format!("{named:#}"))
}

/// The leaves as a table, or as records.
fn table(command: &Schema, global: &Global) -> Result<()> {
    if let Some(form) = command.form.as_deref().filter(|form| !matches!(*form, "tree" | "json")) {
        let text = format!("--as {form} is text of its own; leave -f out");
        return Err(Failure::Usage(text));
    }
    let inputs = input::inputs(&command.files.files, global)?;
    let paths: Vec<String> = inputs.iter().map(|input| input.path.clone()).collect();
    let mut known = inputs.into_iter().map(|input| input.known);
    let mut records = Vec::new();
    // A table that many files have is shown once.
    let mut tables: Vec<(Vec<Vec<String>>, Vec<String>)> = Vec::new();
    let mut places: HashMap<Vec<Vec<String>>, usize> = HashMap::new();
    let (_, end) = input::each_readable(&paths, global, |path| {
        let reader = input::open(path, global)?;
        let partitions = known.next().flatten();
        let mut leaves = leaves_json(&reader)?;
        leaves.extend(partitions.iter().flat_map(|known| known.fields().iter().map(partition)));
        let rows: Vec<Vec<String>> = leaves.iter().map(row).collect();
        let keys = |column: &str| [("file", json!(path)), ("column", json!(column))];
        let of_file = rows.iter().zip(&leaves);
        records.extend(of_file.filter_map(|(row, leaf)| Some(with_keys(keys(row.first()?), leaf))));
        match places.get(&rows).and_then(|place| tables.get_mut(*place)) {
            Some((_, files)) => files.push(path.to_owned()),
            None => {
                places.insert(rows.clone(), tables.len());
                tables.push((rows, vec![path.to_owned()]));
            }
        }
        Ok(())
    })?;
    let headers = ["column", "physical", "logical", "repetition", ">id", ">max def", ">max rep"];
    let sections = tables.into_iter().map(|(rows, files)| {
        let title = match files.as_slice() {
            [_] if paths.len() == 1 => String::new(),
            files => with_more(files),
        };
        Section::new(title, &headers).with(rows)
    });
    let sections = sections.collect();
    Report { command: "schema", json: Value::Null, records, sections }.print(global)?;
    end
}

/// The first of some files, and how many there are beside it.
fn with_more<S: AsRef<str>>(files: &[S]) -> String {
    let first = files.first().map_or("", S::as_ref);
    match files.len() {
        0 | 1 => first.to_owned(),
        n => format!("{first} and {} more", n - 1),
    }
}

/// A leaf as a row of the table.
fn row(leaf: &Value) -> Vec<String> {
    let text = |key: &str| match &leaf[key] {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let path = leaf["path"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let mut row = vec![path.collect::<Vec<_>>().join("."), text("physical")];
    row.push(if leaf["logical"].is_null() { text("converted") } else { text("logical") });
    row.extend(
        ["repetition", "field_id", "max_definition_level", "max_repetition_level"].map(text),
    );
    row
}

/// A partition column in place of a leaf: its Arrow type, and what it is.
fn partition(field: &FieldRef) -> Value {
    json!({
        "path": [field.name()], "physical": null, "logical": field.data_type().to_string(),
        "converted": null, "repetition": "partition", "field_id": null,
        "max_definition_level": null, "max_repetition_level": null,
    })
}

fn leaves_json(reader: &Reader) -> Result<Vec<Value>> {
    let schema = reader.metadata().schema();
    let mut leaves = Vec::new();
    for i in 0..schema.leaves_len() {
        let node = schema.leaf_node(i)?;
        let element = node.element();
        leaves.push(json!({
            "path": node.path().names().iter().map(|name| &**name).collect::<Vec<_>>(),
            "physical": node.physical().ok().map(|physical| physical.to_string()),
            "logical": element.logical_type.as_ref().map(|logical| logical.to_string()),
            "converted": element.converted_type.map(|converted| converted.to_string()),
            "repetition": element.repetition_type.map(|repetition| repetition.to_string()),
            "field_id": element.field_id, "max_definition_level": node.max_def(), "max_repetition_level": node.max_rep(),
        }));
    }
    Ok(leaves)
}

fn tree_json(reader: &Reader, partitions: &[FieldRef]) -> Result<Value> {
    let leaves = leaves_json(reader)?;
    let arrow = reader.schema()?;
    let arrow_json = |field: &FieldRef| {
        json!({ "name": field.name(), "type": field.data_type().to_string(),
            "nullable": field.is_nullable(), "metadata": metadata(field) })
    };
    let fields: Vec<_> = arrow.fields().iter().map(arrow_json).collect();
    let partitions: Vec<_> = partitions.iter().map(arrow_json).collect();
    Ok(json!({ "leaves": leaves, "arrow": fields, "partitions": partitions }))
}

/// The metadata of a field, sorted.
fn metadata(field: &Field) -> std::collections::BTreeMap<String, String> {
    field.metadata().iter().map(|(key, value)| (key.to_string(), value.to_string())).collect()
}

/// A dialect of SQL.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Dialect {
    DuckDb,
    Postgres,
    Spark,
    ClickHouse,
    BigQuery,
    Snowflake,
}

impl Dialect {
    fn parse(name: &str) -> Result<Self> {
        Ok(match name {
            "duckdb" => Self::DuckDb,
            "postgres" => Self::Postgres,
            "spark" => Self::Spark,
            "clickhouse" => Self::ClickHouse,
            "bigquery" => Self::BigQuery,
            "snowflake" => Self::Snowflake,
            other => {
                return Err(Failure::Usage(format!(
                    "no SQL dialect {other:?}; there are duckdb, postgres, spark, clickhouse, bigquery and snowflake"
                )));
            }
        })
    }

    fn quote(self, name: &str) -> String {
        match self {
            Self::Spark | Self::BigQuery | Self::ClickHouse => {
                format!("`{}`", name.replace('`', "``"))
            }
            _ => format!("\"{}\"", name.replace('"', "\"\"")),
        }
    }

    /// The names of one type, in the order of the variants.
    fn pick(self, names: [&str; 6]) -> String {
        names[self as usize].to_owned()
    }
}

/// A CREATE TABLE with the columns of the file.
fn sql(reader: &Reader, path: &str, dialect: Dialect, partitions: &[FieldRef]) -> Result<String> {
    let name = std::path::Path::new(path)
        .file_stem()
        .map_or_else(|| "t".into(), |stem| stem.to_string_lossy());
    let mut lines = Vec::new();
    for field in reader.schema()?.fields().iter().chain(partitions) {
        let type_name = sql_type(field, dialect)?;
        // In ClickHouse the type says so.
        let has_null = field.is_nullable() || dialect == Dialect::ClickHouse;
        let not_null = if has_null { "" } else { " NOT NULL" };
        lines.push(format!("    {} {type_name}{not_null}", dialect.quote(field.name())));
    }
    Ok(format!("CREATE TABLE {} (\n{}\n);", dialect.quote(&name), lines.join(",\n")))
}

/// The names of types that hold no others, in the order of the dialects.
#[rustfmt::skip]
fn scalar_names(field: &Field) -> Option<[&'static str; 6]> {
    Some(match field.data_type() {
        DataType::Boolean => ["BOOLEAN", "boolean", "BOOLEAN", "Bool", "BOOL", "BOOLEAN"],
        DataType::Int8 => ["TINYINT", "smallint", "TINYINT", "Int8", "INT64", "NUMBER(3,0)"],
        DataType::Int16 => ["SMALLINT", "smallint", "SMALLINT", "Int16", "INT64", "NUMBER(5,0)"],
        DataType::Int32 => ["INTEGER", "integer", "INT", "Int32", "INT64", "NUMBER(10,0)"],
        DataType::Int64 => ["BIGINT", "bigint", "BIGINT", "Int64", "INT64", "NUMBER(19,0)"],
        DataType::UInt8 => ["UTINYINT", "smallint", "SMALLINT", "UInt8", "INT64", "NUMBER(3,0)"],
        DataType::UInt16 => ["USMALLINT", "integer", "INT", "UInt16", "INT64", "NUMBER(5,0)"],
        DataType::UInt32 => ["UINTEGER", "bigint", "BIGINT", "UInt32", "INT64", "NUMBER(10,0)"],
        DataType::UInt64 => {
            ["UBIGINT", "numeric(20,0)", "DECIMAL(20,0)", "UInt64", "NUMERIC", "NUMBER(20,0)"]
        }
        DataType::Float16 | DataType::Float32 => {
            ["FLOAT", "real", "FLOAT", "Float32", "FLOAT64", "FLOAT"]
        }
        DataType::Float64 => {
            ["DOUBLE", "double precision", "DOUBLE", "Float64", "FLOAT64", "DOUBLE"]
        }
        DataType::Date32 | DataType::Date64 => ["DATE", "date", "DATE", "Date32", "DATE", "DATE"],
        DataType::Time32(_) | DataType::Time64(_) => {
            ["TIME", "time", "STRING", "String", "TIME", "TIME"]
        }
        DataType::Interval(_) | DataType::Duration(_) => {
            ["INTERVAL", "interval", "STRING", "String", "INTERVAL", "VARCHAR"]
        }
        DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null => {
            ["VARCHAR", "text", "STRING", "String", "STRING", "VARCHAR"]
        }
        DataType::FixedSizeBinary(16) if field.extension_type_name() == Some("arrow.uuid") => {
            ["UUID", "uuid", "BINARY", "UUID", "BYTES", "BINARY"]
        }
        DataType::Binary
        | DataType::LargeBinary
        | DataType::BinaryView
        | DataType::FixedSizeBinary(_) => ["BLOB", "bytea", "BINARY", "String", "BYTES", "BINARY"],
        _ => return None,
    })
}

/// The type of a column, an element or a member.
fn sql_type(field: &Field, dialect: Dialect) -> Result<String> {
    let name = sql_type_name(field, dialect)?;
    let is_composite = VariantArray::is_variant(field)
        || matches!(
            field.data_type(),
            DataType::List(_)
                | DataType::LargeList(_)
                | DataType::ListView(_)
                | DataType::LargeListView(_)
                | DataType::FixedSizeList(..)
                | DataType::Map(..)
                | DataType::Struct(_)
        );
    // ClickHouse has no null of a composite type.
    let wraps = dialect == Dialect::ClickHouse && field.is_nullable() && !is_composite;
    Ok(if wraps { format!("Nullable({name})") } else { name })
}

fn sql_type_name(field: &Field, dialect: Dialect) -> Result<String> {
    use Dialect::{BigQuery, ClickHouse, DuckDb, Postgres, Snowflake, Spark};
    if VariantArray::is_variant(field) {
        return Ok(dialect.pick(["VARIANT", "jsonb", "VARIANT", "Dynamic", "JSON", "VARIANT"]));
    }
    if let Some(names) = scalar_names(field) {
        return Ok(dialect.pick(names));
    }
    Ok(match field.data_type() {
        DataType::Decimal32(p, s)
        | DataType::Decimal64(p, s)
        | DataType::Decimal128(p, s)
        | DataType::Decimal256(p, s) => {
            let name =
                dialect.pick(["DECIMAL", "numeric", "DECIMAL", "Decimal", "BIGNUMERIC", "NUMBER"]);
            format!("{name}({p},{s})")
        }
        DataType::Timestamp(unit, zone) => match (dialect, zone.is_some()) {
            (ClickHouse, _) => format!("DateTime64({})", digits(*unit)),
            (DuckDb, true) => "TIMESTAMPTZ".into(),
            (Postgres, true) => "timestamptz".into(),
            (Spark, false) => "TIMESTAMP_NTZ".into(),
            (BigQuery, false) => "DATETIME".into(),
            (Snowflake, true) => "TIMESTAMP_TZ".into(),
            (Snowflake, false) => "TIMESTAMP_NTZ".into(),
            (Postgres, false) => "timestamp".into(),
            _ => "TIMESTAMP".into(),
        },
        DataType::Dictionary(_, value) => {
            sql_type_name(&field.clone().with_data_type((**value).clone()), dialect)?
        }
        DataType::RunEndEncoded(_, values) => sql_type_name(values, dialect)?,
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => match dialect {
            DuckDb => format!("{}[]", sql_type(item, dialect)?),
            Postgres => "jsonb".into(),
            Snowflake => "ARRAY".into(),
            Spark | BigQuery => format!("ARRAY<{}>", sql_type(item, dialect)?),
            ClickHouse => format!("Array({})", sql_type(item, dialect)?),
        },
        DataType::Struct(fields) => struct_type(fields, dialect)?,
        DataType::Map(entries, _) => {
            let DataType::Struct(pair) = entries.data_type() else { return Ok(String::new()) };
            let [key, value] = [0, 1].map(|i| pair.get(i).map(|f| sql_type(f, dialect)));
            let (Some(key), Some(value)) = (key, value) else { return Ok(String::new()) };
            let (key, value) = (key?, value?);
            match dialect {
                DuckDb => format!("MAP({key}, {value})"),
                Postgres => "jsonb".into(),
                Snowflake => "OBJECT".into(),
                Spark => format!("MAP<{key}, {value}>"),
                BigQuery => format!("ARRAY<STRUCT<key {key}, value {value}>>"),
                ClickHouse => format!("Map({key}, {value})"),
            }
        }
        other => {
            return Err(Failure::Usage(format!(
                "no SQL type for {other} (column {})",
                field.name()
            )));
        }
    })
}

fn struct_type(fields: &Fields, dialect: Dialect) -> Result<String> {
    let parts = |separator: &str| -> Result<String> {
        let part = |f: &FieldRef| {
            Ok(format!("{}{separator}{}", dialect.quote(f.name()), sql_type(f, dialect)?))
        };
        Ok(fields.iter().map(part).collect::<Result<Vec<_>>>()?.join(", "))
    };
    Ok(match dialect {
        Dialect::DuckDb => format!("STRUCT({})", parts(" ")?),
        Dialect::Postgres => "jsonb".into(),
        Dialect::Snowflake => "OBJECT".into(),
        Dialect::Spark => format!("STRUCT<{}>", parts(": ")?),
        Dialect::BigQuery => format!("STRUCT<{}>", parts(" ")?),
        Dialect::ClickHouse => format!("Tuple({})", parts(" ")?),
    })
}

fn digits(unit: TimeUnit) -> u8 {
    match unit {
        TimeUnit::Second => 0,
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
    }
}
