//! [`VariantInference`] infers a shape from a sample of the values.

use std::collections::BTreeMap;

use arrow_schema::{DataType, TimeUnit};

use super::array::VariantArray;
use super::metadata::VariantMetadata;
use super::shape::{Numbers, ShapeNode, VariantShape};
use super::unshred::Unshredder;
use super::value::Variant;
use crate::error::Result;
use crate::limits::Growth;

/// Maximum number of names that are counted: in a column with more, names are data, such as ids.
const MAX_NAMES: usize = 20_000;

/// How a VARIANT column is shredded when it is written.
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub enum VariantShredding {
    /// Unchanged: shredded columns stay shredded.
    #[default]
    Stored,
    /// Into columns of this shape.
    Shape(VariantShape),
    /// Into a shape inferred from the first row group, for the whole file, even if that has few
    /// rows or only nulls.
    Infer(VariantInference),
}

/// How a shape is inferred from a sample of values.
///
/// A field becomes a column if enough of the objects have it, and most of its values are of one
/// type. The others stay in the `value` column beside it. Whole numbers of any width count as
/// `int64`, and decimals of different scales as different types, so that `12.50` and `133` come
/// back unchanged; [`VariantInference::with_merged_numbers`] makes one column of them.
#[derive(Debug, Clone, PartialEq)]
pub struct VariantInference {
    sample_rows: usize,
    min_share: f64,
    min_agreement: f64,
    max_columns: usize,
    max_depth: usize,
    merged_numbers: bool,
}

impl Default for VariantInference {
    fn default() -> Self {
        Self {
            sample_rows: 10_000,
            min_share: 0.1,
            min_agreement: 0.7,
            max_columns: 100,
            max_depth: 6,
            merged_numbers: false,
        }
    }
}

impl VariantInference {
    /// The defaults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Rows in the sample, evenly spaced. Default 10,000.
    #[must_use]
    pub fn with_sample_rows(mut self, rows: usize) -> Self {
        self.sample_rows = rows;
        self
    }

    /// Minimum fraction of the objects that must have a field. Default 0.1.
    #[must_use]
    pub fn with_min_share(mut self, share: f64) -> Self {
        self.min_share = share;
        self
    }

    /// Minimum fraction of a field's values, without nulls, that must be of one type. Default 0.7.
    #[must_use]
    pub fn with_min_agreement(mut self, share: f64) -> Self {
        self.min_agreement = share;
        self
    }

    /// Maximum number of columns; the fields that most objects have come first. Default 100.
    #[must_use]
    pub fn with_max_columns(mut self, columns: usize) -> Self {
        self.max_columns = columns;
        self
    }

    /// Maximum nesting of objects and lists in the shape. Default 6.
    #[must_use]
    pub fn with_max_depth(mut self, depth: usize) -> Self {
        self.max_depth = depth;
        self
    }

    /// Whether integers and decimals of any scale become one column of decimals where they occur
    /// together: smaller and faster to read, and equal in value, but `133` comes back as `133.00`.
    /// Default: no.
    #[must_use]
    pub fn with_merged_numbers(mut self, merged: bool) -> Self {
        self.merged_numbers = merged;
        self
    }

    /// Infers the shape of the values of these columns.
    ///
    /// # Errors
    /// `Malformed(Variant)` if a value is cut short or contradicts itself.
    pub fn infer(&self, columns: &[VariantArray]) -> Result<VariantShape> {
        let rows: usize = columns.iter().map(VariantArray::len).sum();
        let step = rows.div_ceil(self.sample_rows.max(1)).max(1);
        // Deeper shapes are refused.
        let max_depth = self.max_depth.min(super::shape::MAX_DEPTH);
        let mut counter = ValueCounter { names: 0, max_depth };
        let mut root = ValueCounts::default();
        let mut scratch = Vec::new();
        let mut first = 0;
        for column in columns {
            let mut values = Unshredder::new(column, Growth::UNLIMITED);
            for row in (first..column.len()).step_by(step) {
                if column.is_null(row) {
                    continue;
                }
                scratch.clear();
                values.append(row, &mut scratch)?;
                let metadata = values.metadata()?;
                let value = Variant::read(metadata, &scratch, 0)?.0;
                counter.add(&mut root, metadata, &value, 0)?;
            }
            let passed = column.len().saturating_sub(first);
            first = (first + passed.div_ceil(step) * step).saturating_sub(column.len());
        }
        let mut columns = self.max_columns;
        let shape = self.shape(&root, &mut columns);
        let numbers = if self.merged_numbers { Numbers::Equal } else { Numbers::SameScale };
        Ok(VariantShape(shape.unwrap_or(ShapeNode::Any), numbers))
    }

    /// The shape of counted values; `None` if they have no common type.
    fn shape(&self, counts: &ValueCounts, columns: &mut usize) -> Option<ShapeNode> {
        let values = counts.values - counts.nulls;
        #[expect(clippy::cast_precision_loss, reason = "a share of a sample")]
        let enough = |n: usize| n > 0 && n as f64 >= self.min_agreement * values as f64;
        if enough(counts.objects) {
            return self.object(counts, columns);
        }
        if enough(counts.lists) {
            let element = counts.elements.as_deref().and_then(|of| self.shape(of, columns));
            return Some(ShapeNode::List(Box::new(element.unwrap_or(ShapeNode::Any))));
        }
        if let Some(decimals) = self.decimals(counts, enough) {
            *columns = columns.saturating_sub(1);
            return Some(ShapeNode::Scalar(decimals));
        }
        if enough(counts.integers) {
            *columns = columns.saturating_sub(1);
            return Some(ShapeNode::Scalar(DataType::Int64));
        }
        let (data_type, n) = counts.others.iter().max_by_key(|(_, n)| *n)?;
        if !enough(*n) {
            return None;
        }
        *columns = columns.saturating_sub(1);
        Some(ShapeNode::Scalar(data_type.clone()))
    }

    /// The type of the decimals, if they are enough, by themselves or with the integers.
    fn decimals(&self, counts: &ValueCounts, enough: impl Fn(usize) -> bool) -> Option<DataType> {
        let (scale, found) = if self.merged_numbers {
            let scale = *counts.decimals.keys().max()?;
            let mut all = DecimalCount { values: counts.integers, digits: counts.digits };
            for found in counts.decimals.values() {
                all.values += found.values;
                all.digits = all.digits.max(found.digits);
            }
            (scale, all)
        } else {
            let most = counts.decimals.iter().max_by_key(|(_, found)| found.values)?;
            (*most.0, *most.1)
        };
        let precision = found.digits.saturating_add(scale);
        let fits = enough(found.values) && precision <= 38;
        fits.then(|| {
            DataType::Decimal128(precision.max(1), i8::try_from(scale).unwrap_or_default())
        })
    }

    fn object(&self, counts: &ValueCounts, columns: &mut usize) -> Option<ShapeNode> {
        let mut fields: Vec<_> = counts.fields.iter().collect();
        fields.sort_by_key(|(_, counts)| std::cmp::Reverse(counts.values));
        let mut found = Vec::new();
        for (name, field) in fields {
            #[expect(clippy::cast_precision_loss, reason = "a share of a sample")]
            let share = field.values as f64 / counts.objects.max(1) as f64;
            if *columns == 0 || share < self.min_share {
                break;
            }
            if let Some(shape) = self.shape(field, columns) {
                found.push((name.clone(), shape));
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        // DuckDB 2.0 cannot read an object whose only column has no name.
        if found.iter().all(|(name, _)| name.is_empty()) {
            return None;
        }
        Some(ShapeNode::Object(found))
    }
}

/// The types of the values at one path, counted.
#[derive(Debug, Default)]
struct ValueCounts {
    values: usize,
    nulls: usize,
    objects: usize,
    lists: usize,
    integers: usize,
    /// Most digits of integers.
    digits: u8,
    /// By their scales.
    decimals: BTreeMap<u8, DecimalCount>,
    /// Counts of each other type.
    others: Vec<(DataType, usize)>,
    fields: BTreeMap<String, Self>,
    elements: Option<Box<Self>>,
}

/// Decimals of one scale, and most digits before the point.
#[derive(Debug, Clone, Copy, Default)]
struct DecimalCount {
    values: usize,
    digits: u8,
}

struct ValueCounter {
    names: usize,
    max_depth: usize,
}

impl ValueCounter {
    fn add(
        &mut self,
        counts: &mut ValueCounts,
        metadata: VariantMetadata<'_>,
        value: &Variant<'_>,
        depth: usize,
    ) -> Result<()> {
        counts.values += 1;
        match *value {
            Variant::Null => counts.nulls += 1,
            Variant::Object(object) if depth < self.max_depth => {
                counts.objects += 1;
                for part in object.parts() {
                    let part = part?;
                    let inner = Variant::read(metadata, part.bytes, 0)?.0;
                    if !counts.fields.contains_key(part.name) {
                        if self.names >= MAX_NAMES {
                            continue;
                        }
                        self.names += 1;
                        counts.fields.insert(part.name.to_owned(), ValueCounts::default());
                    }
                    if let Some(field) = counts.fields.get_mut(part.name) {
                        self.add(field, metadata, &inner, depth + 1)?;
                    }
                }
            }
            Variant::List(list) if depth < self.max_depth => {
                counts.lists += 1;
                let elements = counts.elements.get_or_insert_default();
                for bytes in list.parts() {
                    let inner = Variant::read(metadata, bytes?, 0)?.0;
                    self.add(elements, metadata, &inner, depth + 1)?;
                }
            }
            Variant::Object(_) | Variant::List(_) => {}
            Variant::Int8(v) => counts.integer(v.into()),
            Variant::Int16(v) => counts.integer(v.into()),
            Variant::Int32(v) => counts.integer(v.into()),
            Variant::Int64(v) => counts.integer(v),
            Variant::Decimal(digits, scale) => {
                let found = counts.decimals.entry(scale).or_default();
                found.values += 1;
                let all = digits_of(digits.unsigned_abs());
                found.digits = found.digits.max(all.saturating_sub(scale));
            }
            ref scalar => {
                if let Some(data_type) = type_of(scalar) {
                    match counts.others.iter_mut().find(|(known, _)| *known == data_type) {
                        Some((_, n)) => *n += 1,
                        None => counts.others.push((data_type, 1)),
                    }
                }
            }
        }
        Ok(())
    }
}

impl ValueCounts {
    fn integer(&mut self, v: i64) {
        self.integers += 1;
        self.digits = self.digits.max(digits_of(v.unsigned_abs().into()));
    }
}

/// Decimal digits of a number; none of 0.
fn digits_of(v: u128) -> u8 {
    v.checked_ilog10().map_or(0, |n| u8::try_from(n).unwrap_or(u8::MAX - 1) + 1)
}

/// The type of a column for this value; `None` for integers and decimals.
fn type_of(value: &Variant<'_>) -> Option<DataType> {
    let utc = || Some("UTC".into());
    Some(match value {
        Variant::Boolean(_) => DataType::Boolean,
        Variant::Float(_) => DataType::Float32,
        Variant::Double(_) => DataType::Float64,
        Variant::Date(_) => DataType::Date32,
        Variant::TimestampMicros(_) => DataType::Timestamp(TimeUnit::Microsecond, utc()),
        Variant::TimestampNtzMicros(_) => DataType::Timestamp(TimeUnit::Microsecond, None),
        Variant::TimestampNanos(_) => DataType::Timestamp(TimeUnit::Nanosecond, utc()),
        Variant::TimestampNtzNanos(_) => DataType::Timestamp(TimeUnit::Nanosecond, None),
        Variant::TimeMicros(_) => DataType::Time64(TimeUnit::Microsecond),
        Variant::Binary(_) => DataType::Binary,
        Variant::String(_) => DataType::Utf8,
        Variant::Uuid(_) => DataType::FixedSizeBinary(16),
        _ => return None,
    })
}
