//! `schema` prints the schema in the form that is asked for.

use std::collections::{BTreeMap, HashMap};
use std::io::Write;

use arrow_schema::{DataType, Field, FieldRef, Fields, TimeUnit};
use marquetry::Reader;
use marquetry::variant::VariantArray;
use serde::Serialize;

use crate::args::{Format, Global, Schema};
use crate::escape::{escape, escape_lines};
use crate::failure::{Failure, Result, after_printing};
use crate::input;
use crate::output::Sink;
use crate::report::{self, Column, Report, Tables, print_json};

/// Prints the schema of each file.
pub(crate) fn run(command: &Schema, global: &Global) -> Result<()> {
    if matches!(global.format, Some(Format::Table | Format::Md | Format::Csv)) {
        return tables(command, global);
    }
    let out = Sink::open(global)?;
    let form = match &command.form {
        Some(form) => form.as_str(),
        None if out.terminal => "tree",
        None => "json",
    };
    let as_json = matches!(global.format, Some(Format::Json | Format::Jsonl));
    let form = if form == "tree" && as_json { "json" } else { form };
    // A schema that many files have is shown once; all have the same partition columns.
    let mut schemas: Vec<SchemaOfFiles> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    let end = each_file(command, global, |path, reader, partitions| {
        let record = (form == "json").then(|| SchemaRecord::new(reader, partitions)).transpose()?;
        let of_file = match &record {
            Some(record) => serde_json::to_string(record).map_err(std::io::Error::from)?,
            None => text(form, reader, path, &[], out.terminal)?,
        };
        let place = *places.entry(of_file).or_insert(schemas.len());
        match schemas.get_mut(place) {
            Some(known) => known.files.push(path.to_owned()),
            None => {
                let text = match &record {
                    Some(_) => String::new(),
                    None => text(form, reader, path, partitions, out.terminal)?,
                };
                schemas.push(SchemaOfFiles { record, text, files: vec![path.to_owned()] });
            }
        }
        Ok(())
    })?;
    let is_named = schemas.len() > 1 && form != "json" && !form.starts_with("sql:");
    after_printing(print(&schemas, is_named, out), end)
}

/// Prints schemas, below the names of their files where these are to be named.
fn print(schemas: &[SchemaOfFiles], is_named: bool, mut out: Sink) -> Result<()> {
    for SchemaOfFiles { record, text, files } in schemas {
        if is_named {
            writeln!(out, "{}", escape(&with_more(files)))?;
        }
        match record {
            Some(record) => print_json(&mut out, &NamedSchema::new(files, record), true)?,
            None => writeln!(out, "{text}")?,
        }
    }
    out.close().map(drop)
}

/// Calls `each` with each file that can be read, and its partition columns.
fn each_file(
    command: &Schema,
    global: &Global,
    mut each: impl FnMut(&str, &Reader, &[FieldRef]) -> Result<()>,
) -> Result<Result<()>> {
    let inputs = input::inputs(&command.files.files, global)?;
    let paths: Vec<String> = inputs.iter().map(|input| input.path.clone()).collect();
    let mut partitions = inputs.into_iter().map(|input| input.partitions);
    let (_, end) = input::each_readable(&paths, global, |path| {
        let partitions = partitions.next().flatten();
        let reader = input::open(path, global)?;
        each(path, &reader, partitions.as_ref().map_or(&[], |known| &known.fields()[..]))
    })?;
    Ok(end)
}

/// A schema, and the files that have it.
struct SchemaOfFiles {
    /// As JSON, if that is asked for.
    record: Option<SchemaRecord>,
    /// In a form that is text of its own.
    text: String,
    files: Vec<String>,
}

/// A schema as JSON.
#[derive(Serialize)]
struct SchemaRecord {
    leaves: Vec<LeafRecord>,
    arrow: Vec<FieldRecord>,
    partitions: Vec<FieldRecord>,
}

#[derive(Serialize)]
struct NamedSchema<'a> {
    schema: &'static str,
    file: Option<&'a String>,
    #[serde(flatten)]
    record: &'a SchemaRecord,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<&'a [String]>,
}

/// A leaf, or a partition column in place of one: its Arrow type, and what it is.
#[derive(Clone, PartialEq, Eq, Hash, Serialize)]
struct LeafRecord {
    path: Vec<String>,
    physical: Option<String>,
    logical: Option<String>,
    converted: Option<String>,
    repetition: Option<String>,
    field_id: Option<i32>,
    max_definition_level: Option<u16>,
    max_repetition_level: Option<u16>,
}

/// A field of Arrow.
#[derive(Serialize)]
struct FieldRecord {
    name: String,
    #[serde(rename = "type")]
    type_name: String,
    nullable: bool,
    metadata: BTreeMap<String, String>,
}

impl SchemaRecord {
    fn new(reader: &Reader, partitions: &[FieldRef]) -> Result<Self> {
        Ok(Self {
            leaves: leaves(reader)?,
            arrow: fields_beside(reader, partitions)?.iter().map(FieldRecord::new).collect(),
            partitions: partitions.iter().map(FieldRecord::new).collect(),
        })
    }
}

impl<'a> NamedSchema<'a> {
    fn new(files: &'a [String], record: &'a SchemaRecord) -> Self {
        let all = (files.len() > 1).then_some(files);
        Self { schema: "marq/1/schema", file: files.first(), record, files: all }
    }
}

impl FieldRecord {
    fn new(field: &FieldRef) -> Self {
        let metadata = field.metadata().iter();
        Self {
            name: field.name().clone(),
            type_name: field.data_type().to_string(),
            nullable: field.is_nullable(),
            metadata: metadata.map(|(key, value)| (key.to_string(), value.to_string())).collect(),
        }
    }
}

/// The columns of a file, without those that partition columns replace when rows are read.
fn fields_beside(reader: &Reader, partitions: &[FieldRef]) -> Result<Vec<FieldRef>> {
    let schema = reader.schema()?;
    let fields = schema.fields().iter().filter(|field| !is_partition(field.name(), partitions));
    Ok(fields.cloned().collect())
}

fn is_partition(name: &str, partitions: &[FieldRef]) -> bool {
    partitions.iter().any(|partition| partition.name() == name)
}

fn leaves(reader: &Reader) -> Result<Vec<LeafRecord>> {
    let schema = reader.metadata().schema();
    let leaf = |i| {
        let node = schema.leaf_node(i)?;
        let element = node.element();
        Ok(LeafRecord {
            path: node.path().names().iter().map(ToString::to_string).collect(),
            physical: node.physical().ok().map(|physical| physical.to_string()),
            logical: element.logical_type.as_ref().map(ToString::to_string),
            converted: element.converted_type.as_ref().map(ToString::to_string),
            repetition: element.repetition_type.as_ref().map(ToString::to_string),
            field_id: element.field_id,
            max_definition_level: Some(node.max_def()),
            max_repetition_level: Some(node.max_rep()),
        })
    };
    (0..schema.leaves_len()).map(leaf).collect()
}

fn partition(field: &FieldRef) -> LeafRecord {
    LeafRecord {
        path: vec![field.name().clone()],
        physical: None,
        logical: Some(field.data_type().to_string()),
        converted: None,
        repetition: Some("partition".to_owned()),
        field_id: None,
        max_definition_level: None,
        max_repetition_level: None,
    }
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
        "tree" => escape_lines(&reader.metadata().schema().tree().to_string()).into_owned(),
        "parquet" => escape_lines(&reader.metadata().schema().to_string()).into_owned(),
        "arrow" => {
            let of_file = fields_beside(reader, partitions)?;
            let fields = of_file.iter().chain(partitions);
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

/// The leaves of each file.
#[derive(Serialize)]
struct AllLeaves {
    /// Leaves that many files have are there once.
    schemas: Vec<(Vec<LeafRecord>, Vec<String>)>,
    /// The files, and the index of the schema of each.
    files: Vec<(String, usize)>,
}

/// Prints the leaves as tables, or as records.
fn tables(command: &Schema, global: &Global) -> Result<()> {
    if let Some(form) = command.form.as_deref().filter(|form| !matches!(*form, "tree" | "json")) {
        let text = format!("--as {form} is text of its own; leave -f out");
        return Err(Failure::Usage(text));
    }
    let mut all = AllLeaves { schemas: Vec::new(), files: Vec::new() };
    let mut places: HashMap<Vec<LeafRecord>, usize> = HashMap::new();
    let end = each_file(command, global, |path, reader, partitions| {
        let mut leaves = leaves(reader)?;
        let column = |leaf: &LeafRecord| leaf.path.first().cloned().unwrap_or_default();
        leaves.retain(|leaf| !is_partition(&column(leaf), partitions));
        leaves.extend(partitions.iter().map(partition));
        let place = *places.entry(leaves.clone()).or_insert(all.schemas.len());
        match all.schemas.get_mut(place) {
            Some((_, files)) => files.push(path.to_owned()),
            None => all.schemas.push((leaves, vec![path.to_owned()])),
        }
        all.files.push((path.to_owned(), place));
        Ok(())
    })?;
    after_printing(report::print(&all, global), end)
}

impl LeafRecord {
    fn column(&self) -> String {
        self.path.join(".")
    }
}

impl Report for AllLeaves {
    const COMMAND: &'static str = "schema";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        #[derive(Serialize)]
        struct LeafOfFile<'a> {
            file: &'a str,
            column: String,
            #[serde(flatten)]
            leaf: &'a LeafRecord,
        }
        self.files.iter().flat_map(|(file, place)| {
            let leaves = self.schemas.get(*place).map_or(&[][..], |(leaves, _)| leaves);
            leaves.iter().map(move |leaf| LeafOfFile { file, column: leaf.column(), leaf })
        })
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        fn shown(value: Option<impl ToString>) -> String {
            value.map_or_else(String::new, |value| value.to_string())
        }
        let columns = [
            Column::text("column", LeafRecord::column),
            Column::text("physical", |of| shown(of.physical.as_ref())),
            Column::text("logical", |of| shown(of.logical.as_ref().or(of.converted.as_ref()))),
            Column::text("repetition", |of| shown(of.repetition.as_ref())),
            Column::number("id", |of| shown(of.field_id)),
            Column::number("max def", |of| shown(of.max_definition_level)),
            Column::number("max rep", |of| shown(of.max_repetition_level)),
        ];
        for (leaves, files) in &self.schemas {
            let title = if self.files.len() > 1 { with_more(files) } else { String::new() };
            out.show(&title, &columns, leaves, &[])?;
        }
        Ok(())
    }
}

/// The first of some files, and how many there are beside it.
fn with_more(files: &[String]) -> String {
    let first = files.first().map_or("", String::as_str);
    match files.len() {
        0 | 1 => first.to_owned(),
        n => format!("{first} and {} more", n - 1),
    }
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
            Self::Spark => format!("`{}`", name.replace('`', "``")),
            // As in their texts, a backslash escapes what follows it.
            Self::BigQuery | Self::ClickHouse => {
                format!("`{}`", name.replace('\\', r"\\").replace('`', r"\`"))
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
    for field in fields_beside(reader, partitions)?.iter().chain(partitions) {
        let type_name = sql_type(field, dialect)?;
        // In ClickHouse the type states it.
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
        DataType::Timestamp(unit, zone) => timestamp_name(*unit, zone.is_some(), dialect),
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

fn timestamp_name(unit: TimeUnit, has_zone: bool, dialect: Dialect) -> String {
    let name = match (dialect, has_zone) {
        (Dialect::ClickHouse, _) => return format!("DateTime64({})", digits(unit)),
        (Dialect::DuckDb, true) => "TIMESTAMPTZ",
        (Dialect::Postgres, true) => "timestamptz",
        (Dialect::Spark, false) => "TIMESTAMP_NTZ",
        (Dialect::BigQuery, false) => "DATETIME",
        (Dialect::Snowflake, true) => "TIMESTAMP_TZ",
        (Dialect::Snowflake, false) => "TIMESTAMP_NTZ",
        (Dialect::Postgres, false) => "timestamp",
        _ => "TIMESTAMP",
    };
    name.to_owned()
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
