//! The schema of a table of files, and the schema in which one file is read for it.
//!
//! DataFusion adapts expressions to the schema of a file, with casts where types differ. Strings
//! and byte strings need none: they are read in the type of the table, views or not.

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema, SchemaRef, TimeUnit};
use datafusion_common::config::ParquetOptions;
use datafusion_common::{DataFusionError, Result};
use datafusion_physical_expr::utils::collect_columns;
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;

use crate::error::to_datafusion;
use marquetry::Metadata;
use marquetry::engine::rows::bytes_of_nulls;
use marquetry::schema::{ArrowOptions, MatchBy, Physical, Projection, to_arrow};

/// The options of DataFusion that say as which types columns are read.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct TypeOptions {
    /// Unit and time zone of INT96 timestamps.
    int96: Option<(TimeUnit, Option<Arc<str>>)>,
    binary_as_string: bool,
}

impl TypeOptions {
    /// Reads the options.
    ///
    /// # Errors
    /// `Configuration` if a value is not valid for its option.
    pub(crate) fn new(options: &ParquetOptions) -> Result<Self> {
        let unit = match options.coerce_int96.as_deref() {
            None => None,
            Some("ns") => Some(TimeUnit::Nanosecond),
            Some("us") => Some(TimeUnit::Microsecond),
            Some("ms") => Some(TimeUnit::Millisecond),
            Some("s") => Some(TimeUnit::Second),
            Some(other) => {
                return Err(DataFusionError::Configuration(format!(
                    "coerce_int96 is {other:?}: expected ns, us, ms or s"
                )));
            }
        };
        let zone = options.coerce_int96_tz.as_deref().map(Arc::from);
        let int96 = unit.map(|unit| (unit, zone));
        Ok(Self { int96, binary_as_string: options.binary_as_string })
    }

    fn arrow(&self) -> ArrowOptions {
        let mut arrow = plain_options().with_binary_as_string(self.binary_as_string);
        if let Some((unit, _)) = &self.int96 {
            arrow = arrow.with_int96(*unit);
        }
        arrow
    }

    /// The schema that a file has for the inference of a table schema.
    pub(crate) fn schema_of(&self, metadata: &Metadata) -> Result<Schema> {
        let schema = mapped(metadata, &self.arrow())?;
        let fields: Fields = schema
            .fields()
            .iter()
            .enumerate()
            .map(|(i, field)| self.as_text(&self.zoned(metadata, i, field)))
            .collect();
        Ok(Schema::new_with_metadata(fields, schema.metadata().clone()))
    }

    /// The field, as a string if it is a byte string and those are to be strings. What the writer
    /// noted of its Arrow types does not count then.
    fn as_text(&self, field: &FieldRef) -> FieldRef {
        match field.data_type() {
            DataType::Binary if self.binary_as_string => retyped(field, DataType::Utf8),
            DataType::LargeBinary if self.binary_as_string => retyped(field, DataType::LargeUtf8),
            DataType::BinaryView if self.binary_as_string => retyped(field, DataType::Utf8View),
            _ => Arc::clone(field),
        }
    }

    /// The field, in the time zone that is asked for if it is an INT96 column.
    fn zoned(&self, metadata: &Metadata, position: usize, field: &FieldRef) -> FieldRef {
        let Some((unit, Some(zone))) = &self.int96 else { return Arc::clone(field) };
        let node = metadata.schema().field(position).filter(|node| node.is_leaf());
        match node.and_then(|node| node.physical().ok()) {
            Some(Physical::Int96) => {
                retyped(field, DataType::Timestamp(*unit, Some(Arc::clone(zone))))
            }
            _ => Arc::clone(field),
        }
    }
}

/// How files are read without any options: the types are those of DataFusion's own source.
pub(crate) fn plain_options() -> ArrowOptions {
    ArrowOptions::new().with_hint_as_parquet()
}

fn mapped(metadata: &Metadata, arrow: &ArrowOptions) -> Result<SchemaRef> {
    let mapping = to_arrow(metadata.schema(), metadata.key_values(), &Projection::All, arrow)
        .map_err(to_datafusion)?;
    Ok(mapping.schema)
}

/// The schema of a file, of the types that its columns have without any options.
pub(crate) fn arrow_types(metadata: &Metadata) -> Result<SchemaRef> {
    mapped(metadata, &plain_options())
}

fn retyped(field: &Field, data_type: DataType) -> FieldRef {
    Arc::new(field.clone().with_data_type(data_type))
}

/// Strings and byte strings at the top of a schema as views.
pub(crate) fn with_views(schema: &Schema) -> Schema {
    let fields: Fields = schema
        .fields()
        .iter()
        .map(|field| match field.data_type() {
            DataType::Utf8 | DataType::LargeUtf8 => retyped(field, DataType::Utf8View),
            DataType::Binary | DataType::LargeBinary => retyped(field, DataType::BinaryView),
            _ => Arc::clone(field),
        })
        .collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

/// A schema whose fields have no metadata, nor has it.
pub(crate) fn without_metadata(schema: &Schema) -> Schema {
    let bare = |field: &FieldRef| field.as_ref().clone().with_metadata(Default::default());
    Schema::new(schema.fields().iter().map(bare).collect::<Vec<_>>())
}

/// As what a file is read.
#[derive(Debug)]
pub(crate) struct FileSchema {
    /// The schema of all of its columns, as they are read.
    pub(crate) physical: SchemaRef,
    arrow: ArrowOptions,
    /// For each column, whether it is read as something that `arrow` does not give.
    is_retyped: Vec<bool>,
}

impl FileSchema {
    /// The schema in which the file is read for a table of schema `logical`; `given` is the
    /// caller's schema of this file.
    pub(crate) fn new(
        metadata: &Metadata,
        logical: &Schema,
        given: Option<&Schema>,
        options: &TypeOptions,
    ) -> Result<Self> {
        let logical = given.unwrap_or(logical);
        let has_views = logical.fields().iter().any(|field| is_view(field.data_type()));
        let mut arrow = options.arrow().with_views(has_views);
        let mut natural = mapped(metadata, &arrow)?;
        let wants_text = |field: &FieldRef| {
            is_bytes(field.data_type())
                && logical
                    .field_with_name(field.name())
                    .is_ok_and(|field| is_text(field.data_type()))
        };
        let texts = natural.fields().iter().filter(|field| wants_text(field));
        let texts: Vec<String> = texts.map(|field| field.name().clone()).collect();
        if !options.binary_as_string && !texts.is_empty() {
            arrow = arrow.with_text_columns(texts);
            natural = mapped(metadata, &arrow)?;
        }
        let mut is_retyped = Vec::with_capacity(natural.fields().len());
        let mut fields = Vec::with_capacity(natural.fields().len());
        for (i, field) in natural.fields().iter().enumerate() {
            let zoned = options.zoned(metadata, i, field);
            let wanted = match logical.field_with_name(field.name()) {
                Ok(wanted) if alike(zoned.data_type(), wanted.data_type()) => {
                    as_declared(&zoned, wanted)
                }
                _ => zoned,
            };
            is_retyped.push(wanted.data_type() != field.data_type());
            fields.push(wanted);
        }
        let physical = Arc::new(Schema::new_with_metadata(fields, natural.metadata().clone()));
        Ok(Self { physical, arrow, is_retyped })
    }

    /// The schema that these columns are read into, by their positions; `None` if the options give
    /// their types anyway.
    pub(crate) fn target(&self, columns: impl IntoIterator<Item = usize>) -> Option<SchemaRef> {
        let columns: BTreeSet<usize> = columns.into_iter().collect();
        if !columns.iter().any(|column| self.is_retyped.get(*column) == Some(&true)) {
            return None;
        }
        let fields = columns.iter().filter_map(|i| self.physical.fields().get(*i).cloned());
        Some(Arc::new(Schema::new(fields.collect::<Vec<_>>())))
    }

    /// How columns are read with this [target](Self::target).
    pub(crate) fn options(&self, target: Option<SchemaRef>) -> ArrowOptions {
        match target {
            Some(target) => self.arrow.clone().with_target(target, MatchBy::Name),
            None => self.arrow.clone(),
        }
    }
}

/// Maximum bytes of the nulls of a column that a file does not have, for a batch.
const MAX_NULL_BYTES: usize = 1 << 30;

/// Refuses an expression whose columns the file does not have, or not with all of their fields, if
/// nulls of them are too large: the schema of the table may come from another file, which states
/// the size of its lists.
pub(crate) fn check_nulls(
    expr: &Arc<dyn PhysicalExpr>,
    logical: &Schema,
    physical: &Schema,
    batch_rows: usize,
) -> Result<()> {
    for column in collect_columns(expr) {
        let Ok(wanted) = logical.field_with_name(column.name()) else { continue };
        let found = physical.field_with_name(column.name()).ok();
        let bytes = bytes_of_missing(wanted, found, batch_rows);
        if bytes > MAX_NULL_BYTES {
            return Err(DataFusionError::ResourcesExhausted(format!(
                "column {:?}, which a file does not have as the table has it, takes {bytes} bytes \
                 of nulls for {batch_rows} rows, and {MAX_NULL_BYTES} are allowed",
                column.name()
            )));
        }
    }
    Ok(())
}

/// Bytes of the nulls that stand for what `found` does not have of `wanted`.
fn bytes_of_missing(wanted: &Field, found: Option<&Field>, rows: usize) -> usize {
    match (wanted.data_type(), found.map(Field::data_type)) {
        // A cast to lists of a fixed size allocates them before it looks at the values.
        (wanted, None | Some(DataType::Null))
        | (
            wanted @ DataType::FixedSizeList(..),
            Some(DataType::List(_) | DataType::LargeList(_)),
        ) => bytes_of_nulls(wanted, rows),
        (DataType::Struct(wanted), Some(DataType::Struct(found))) => {
            let child = |wanted: &FieldRef| {
                let found = found.find(wanted.name()).map(|(_, found)| found.as_ref());
                bytes_of_missing(wanted, found, rows)
            };
            wanted.iter().map(child).fold(0, usize::saturating_add)
        }
        _ => 0,
    }
}

fn is_view(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8View | DataType::BinaryView)
}

pub(crate) fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

pub(crate) fn is_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

/// A field of the file as the table declares it, with the same type except the layout of strings.
/// If only nullability or metadata differ, a cast would hide the column from filters.
fn as_declared(of_file: &FieldRef, wanted: &Field) -> FieldRef {
    match wanted.is_nullable() || !of_file.is_nullable() {
        true => Arc::new(wanted.clone()),
        false => retyped(of_file, wanted.data_type().clone()),
    }
}

/// Whether two types are the same except the layout of strings and byte strings.
fn alike(a: &DataType, b: &DataType) -> bool {
    use DataType as D;
    match (a, b) {
        _ if is_text(a) && is_text(b) || is_bytes(a) && is_bytes(b) => true,
        (D::List(a), D::List(b)) | (D::LargeList(a), D::LargeList(b)) => of_items(a, b),
        (D::FixedSizeList(a, n), D::FixedSizeList(b, m)) => n == m && of_items(a, b),
        (D::Map(a, s), D::Map(b, t)) => s == t && of_entries(a, b),
        (D::Struct(a), D::Struct(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| of_fields(a, b))
        }
        _ => a == b,
    }
}

fn of_fields(a: &Field, b: &Field) -> bool {
    a.name() == b.name() && of_items(a, b)
}

/// As [`of_fields`], whatever the names of list items are.
fn of_items(a: &Field, b: &Field) -> bool {
    a.is_nullable() == b.is_nullable() && alike(a.data_type(), b.data_type())
}

fn of_entries(a: &Field, b: &Field) -> bool {
    match (a.data_type(), b.data_type()) {
        (DataType::Struct(of_a), DataType::Struct(of_b)) => {
            a.is_nullable() == b.is_nullable()
                && of_a.len() == of_b.len()
                && of_a.iter().zip(of_b).all(|(a, b)| of_items(a, b))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use datafusion_physical_expr::expressions::Column;

    use super::*;

    #[test]
    fn nulls_of_lists_of_two_thousand_million_values_are_refused() {
        let item = Arc::new(Field::new_list_field(DataType::Int32, true));
        let lists = |size| Field::new("l", DataType::FixedSizeList(Arc::clone(&item), size), true);
        let around = |fields: Vec<Field>| Field::new("s", DataType::Struct(fields.into()), true);
        let n = || Field::new("n", DataType::Int32, true);
        let check = |at: &str, logical: [Field; 2], physical: Vec<Field>| {
            let expr: Arc<dyn PhysicalExpr> = Arc::new(Column::new(at, 0));
            let logical = Schema::new(logical.to_vec());
            check_nulls(&expr, &logical, &Schema::new(physical), 8192)
        };
        let error = check("l", [n(), lists(i32::MAX)], vec![n()]).unwrap_err();
        assert!(error.to_string().contains("column \"l\""), "{error}");
        check("n", [n(), lists(i32::MAX)], vec![n()]).unwrap();
        check("l", [n(), lists(i32::MAX)], vec![n(), lists(i32::MAX)]).unwrap();
        check("l", [n(), lists(1536)], vec![n()]).unwrap();
        let logical = || [n(), around(vec![n(), lists(i32::MAX)])];
        check("s", logical(), vec![n(), around(vec![n()])]).unwrap_err();
        check("s", logical(), vec![n(), around(vec![lists(i32::MAX)])]).unwrap();
        let others = [DataType::Null, DataType::List(Arc::clone(&item))];
        for other in others.map(|of| Field::new("l", of, true)) {
            check("l", [n(), lists(i32::MAX)], vec![other]).unwrap_err();
        }
    }
}
