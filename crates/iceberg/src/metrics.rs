//! [`data_file`]: the entry of a manifest, made of a report.
//!
//! Iceberg keys its metrics by the field ids of leaves, for the file as a whole. Its bounds are
//! values of their own: as PLAIN, but decimals are big-endian and short.

use std::collections::HashMap;

use iceberg::spec::{
    DataContentType, DataFileBuilder, DataFileFormat, Datum, PrimitiveType, Schema, Struct, Type,
};
use iceberg::{Error, ErrorKind};
use marquetry::WriteReport;
use marquetry::format::Type as Physical;

/// The entry for the file at `location`, whose field ids are those of `schema`: counts, sizes,
/// bounds and split offsets. The caller adds the partition.
///
/// Columns without a field id, and those that `schema` does not have, are left out. A bound is what
/// the footer has: that of long strings may be shortened, and is then below or above all values.
///
/// # Errors
/// If a bound is none of its type.
///
/// ```
/// use std::sync::Arc;
///
/// use iceberg::spec::{NestedField, PrimitiveType, Schema, Type};
/// use marquetry::arrow_array::{Int64Array, RecordBatch};
/// use marquetry::arrow_schema::{DataType, Field, Schema as ArrowSchema};
/// use marquetry::schema::FIELD_ID_KEY;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let id = NestedField::required(7, "id", Type::Primitive(PrimitiveType::Long));
/// let schema = Schema::builder().with_fields([Arc::new(id)]).build()?;
/// let field = Field::new("id", DataType::Int64, false)
///     .with_metadata([(FIELD_ID_KEY.to_owned(), "7".to_owned())].into());
/// let arrow = Arc::new(ArrowSchema::new(vec![field]));
/// let batch = RecordBatch::try_new(arrow.clone(), vec![Arc::new(Int64Array::from(vec![3, 5]))])?;
/// let mut writer = marquetry::Writer::to(Vec::new(), arrow)?;
/// writer.write(&batch)?;
/// let (report, _) = writer.into_inner()?;
/// let file = marquetry_iceberg::data_file(&report, &schema, "s3://b/t/00000.parquet")?.build()?;
/// assert_eq!(file.record_count(), 2);
/// assert_eq!(file.value_counts()[&7], 2);
/// assert_eq!(file.upper_bounds()[&7].to_bytes()?.as_ref(), 5i64.to_le_bytes());
/// # Ok(())
/// # }
/// ```
pub fn data_file(
    report: &WriteReport,
    schema: &Schema,
    location: &str,
) -> iceberg::Result<DataFileBuilder> {
    let mut metrics = Metrics::default();
    for i in 0..report.row_groups() {
        let row_group = report.row_group(i).map_err(|error| {
            Error::new(ErrorKind::Unexpected, "the report of a row group").with_source(error)
        })?;
        for column in &row_group.columns {
            let leaf = column.field_id.and_then(|id| Some((id, schema.field_by_id(id)?)));
            let Some((id, field)) = leaf else { continue };
            let Type::Primitive(wanted) = field.field_type.as_ref() else { continue };
            *metrics.sizes.entry(id).or_default() += column.bytes;
            *metrics.values.entry(id).or_default() += column.values;
            *metrics.nulls.entry(id).or_default() += column.nulls;
            if let Some(nans) = column.nans {
                *metrics.nans.entry(id).or_default() += nans;
            }
            let datum = |bound: &Option<Vec<u8>>| {
                let bound = bound.as_deref().filter(|bytes| !is_nan(bytes, column.physical));
                bound.map(|bytes| datum(bytes, wanted, column.physical)).transpose()
            };
            if let Some(min) = datum(&column.min)? {
                keep(&mut metrics.lower, id, min, |new, old| new < old);
            }
            if let Some(max) = datum(&column.max)? {
                keep(&mut metrics.upper, id, max, |new, old| new > old);
            }
        }
    }
    let offsets = report.split_offsets().into_iter().map(i64::try_from);
    let offsets = offsets.collect::<Result<Vec<_>, _>>().map_err(|_| {
        Error::new(ErrorKind::Unexpected, "an offset of a row group exceeds 63 bits")
    })?;
    let mut builder = DataFileBuilder::default();
    builder
        .content(DataContentType::Data)
        .file_path(location.to_owned())
        .file_format(DataFileFormat::Parquet)
        .partition(Struct::empty())
        .record_count(report.rows)
        .file_size_in_bytes(report.bytes)
        .column_sizes(metrics.sizes)
        .value_counts(metrics.values)
        .null_value_counts(metrics.nulls)
        .nan_value_counts(metrics.nans)
        .lower_bounds(metrics.lower)
        .upper_bounds(metrics.upper)
        .split_offsets(Some(offsets));
    Ok(builder)
}

#[derive(Default)]
struct Metrics {
    sizes: HashMap<i32, u64>,
    values: HashMap<i32, u64>,
    nulls: HashMap<i32, u64>,
    nans: HashMap<i32, u64>,
    lower: HashMap<i32, Datum>,
    upper: HashMap<i32, Datum>,
}

/// Keeps the bound that reaches further.
fn keep(
    bounds: &mut HashMap<i32, Datum>,
    id: i32,
    new: Datum,
    is_further: impl Fn(&Datum, &Datum) -> bool,
) {
    match bounds.entry(id) {
        std::collections::hash_map::Entry::Vacant(empty) => {
            empty.insert(new);
        }
        std::collections::hash_map::Entry::Occupied(mut old) => {
            if is_further(&new, old.get()) {
                old.insert(new);
            }
        }
    }
}

/// Whether a bound is NaN, as that of a row group of NaNs is in the total order of floats. Iceberg
/// counts NaNs, and wants none as a bound.
fn is_nan(bound: &[u8], physical: Physical) -> bool {
    match physical {
        Physical::Float => bound.try_into().is_ok_and(|bytes| f32::from_le_bytes(bytes).is_nan()),
        Physical::Double => bound.try_into().is_ok_and(|bytes| f64::from_le_bytes(bytes).is_nan()),
        _ => false,
    }
}

/// A bound as the footer has it, as a value of Iceberg.
fn datum(bytes: &[u8], wanted: &PrimitiveType, physical: Physical) -> iceberg::Result<Datum> {
    let is_little_endian = matches!(physical, Physical::Int32 | Physical::Int64);
    if matches!(wanted, PrimitiveType::Decimal { .. }) && is_little_endian {
        let reversed: Vec<u8> = bytes.iter().rev().copied().collect();
        return Datum::try_from_bytes(&reversed, wanted.clone());
    }
    Datum::try_from_bytes(bytes, wanted.clone())
}
