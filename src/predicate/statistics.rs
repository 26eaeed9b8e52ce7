//! [`ColumnStatistics`]: the statistics of a column in the metadata of a file, as Arrow arrays.
//!
//! Spec: `parquet.thrift`, Statistics and ColumnOrder; PageIndex.md. `Metadata` makes it from
//! [`ColumnFacts`], which decide which bounds count; here they become values of the Arrow type of
//! the column.
//! Trap: a bound must stay a bound. If a conversion or a truncation loses something, lower bounds
//! become smaller, upper ones greater, and both are marked as not exact.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::sync::Arc;

use arrow_array::{Array, ArrayRef, BooleanArray, RecordBatch, UInt64Array};
use arrow_schema::{DataType, Field, Schema as ArrowSchema};

use super::arrays::array;
use super::facts::ColumnFacts;
use super::value::{LiteralValue, Side};
use crate::error::{Error, LimitKind, Result};
use crate::format::ColumnOrder;
use crate::schema::Leaf;
use crate::schema::convert::{ReadConversion, read_conversion};
use crate::stats::bounds::{BoundCut, StoredBound};

/// The statistics of one column: one row for each row group, or for each data page, in file order.
///
/// A value is null if the file does not state it, or states it in a way that must not be trusted:
/// bounds in an order that is undefined for the type or unknown, bounds that are NaN, bounds that
/// are no values of the type, and bounds that contradict each other.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::Reader;
/// use marquetry::arrow_array::{Array, cast::AsArray, types::Int64Type};
///
/// let reader = Reader::open("testdata/trips.parquet")?;
/// let found = reader.column_statistics("id")?;
/// assert_eq!(found.min.data_type(), reader.project(["id"])?.schema()?.field(0).data_type());
/// for row_group in 0..found.len() {
///     if found.min.is_valid(row_group) {
///         println!("{} to {}", found.min.as_primitive::<Int64Type>().value(row_group),
///             found.max.as_primitive::<Int64Type>().value(row_group));
///     }
/// }
/// println!("{:?}", found.to_batch()?);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ColumnStatistics {
    /// The row group that each row describes.
    pub row_group: UInt64Array,
    /// Rows of the row group or page.
    pub row_count: UInt64Array,
    /// Entries without a value; inside lists, this counts null and empty lists too.
    pub null_count: UInt64Array,
    /// NaNs among the values.
    pub nan_count: UInt64Array,
    /// Lower bounds of the values without NaNs, in the Arrow type that the column is read as; for a
    /// dictionary or runs, in the type of its values.
    pub min: ArrayRef,
    /// Upper bounds.
    pub max: ArrayRef,
    /// Whether some value equals the lower bound; null if there is none, or the file does not state
    /// it.
    pub min_exact: BooleanArray,
    /// The same for the upper bound.
    pub max_exact: BooleanArray,
}

/// The facts of one row of the statistics.
pub(crate) struct StatisticsRow {
    pub(crate) row_group: usize,
    pub(crate) facts: ColumnFacts,
    /// Whether the lower and the upper bound are exact, as the file states.
    pub(crate) exact: (Option<bool>, Option<bool>),
}

impl ColumnStatistics {
    /// Number of row groups or pages.
    pub fn len(&self) -> usize {
        self.row_group.len()
    }

    /// Whether there are no row groups or pages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Converts the statistics to a batch with a column for each field, by its name.
    ///
    /// # Errors
    /// `Arrow`, never for arrays that this crate made.
    pub fn to_batch(&self) -> Result<RecordBatch> {
        let columns: [(&str, ArrayRef); 8] = [
            ("row_group", Arc::new(self.row_group.clone())),
            ("row_count", Arc::new(self.row_count.clone())),
            ("null_count", Arc::new(self.null_count.clone())),
            ("nan_count", Arc::new(self.nan_count.clone())),
            ("min", Arc::clone(&self.min)),
            ("max", Arc::clone(&self.max)),
            ("min_exact", Arc::new(self.min_exact.clone())),
            ("max_exact", Arc::new(self.max_exact.clone())),
        ];
        let field = |(name, array): &(&str, ArrayRef)| {
            Field::new(*name, array.data_type().clone(), *name != "row_group")
        };
        let schema = ArrowSchema::new(columns.iter().map(field).collect::<Vec<_>>());
        let arrays = columns.into_iter().map(|(_, array)| array).collect();
        Ok(RecordBatch::try_new(Arc::new(schema), arrays)?)
    }

    /// The statistics of `leaf`, which is read as `data_type`. `order` is the leaf's entry in the
    /// footer's `column_orders`.
    pub(crate) fn new(
        leaf: &Leaf,
        data_type: &DataType,
        order: Option<&ColumnOrder>,
        rows: &[StatisticsRow],
    ) -> Result<Self> {
        let data_type = match data_type {
            DataType::Dictionary(_, value) => value,
            DataType::RunEndEncoded(_, values) => values.data_type(),
            other => other,
        };
        let bounds = BoundsOf {
            leaf,
            data_type,
            conversion: read_conversion(leaf, data_type),
            zeros_differ: matches!(order, Some(ColumnOrder::Ieee754TotalOrder)),
        };
        let (mut least, mut greatest) = (Vec::new(), Vec::new());
        for row in rows {
            let min = bounds.typed(row.facts.min.as_ref(), row.exact.0, Side::Lower);
            let max = bounds.typed(row.facts.max.as_ref(), row.exact.1, Side::Upper);
            let contradict = match (&min, &max) {
                (Some((min, _)), Some((max, _))) => min.compare(max) == Some(Ordering::Greater),
                _ => false,
            };
            least.push(min.filter(|_| !contradict));
            greatest.push(max.filter(|_| !contradict));
        }
        let (min, min_exact) = arrays(&least, data_type)?;
        let (max, max_exact) = arrays(&greatest, data_type)?;
        Ok(Self {
            row_group: rows.iter().map(|row| Some(row.row_group as u64)).collect(),
            row_count: rows.iter().map(|row| Some(row.facts.rows)).collect(),
            null_count: rows.iter().map(|row| row.facts.nulls).collect(),
            nan_count: rows.iter().map(|row| row.facts.nans).collect(),
            min,
            max,
            min_exact,
            max_exact,
        })
    }
}

/// A bound, and whether a value is equal to it, if that is known.
type TypedBound = (LiteralValue, Option<bool>);

/// Makes values of the bounds of a leaf.
struct BoundsOf<'a> {
    leaf: &'a Leaf,
    data_type: &'a DataType,
    conversion: Option<ReadConversion>,
    /// Whether −0 comes before +0.
    zeros_differ: bool,
}

impl BoundsOf<'_> {
    fn typed(
        &self,
        bound: Option<&StoredBound>,
        said: Option<bool>,
        side: Side,
    ) -> Option<TypedBound> {
        let (bytes, conversion) = (bound?.bytes.as_slice(), self.conversion?);
        let (bytes, is_cut) = of_whole_values(bytes, conversion, side)?;
        let of =
            |side| LiteralValue::from_bound(&bytes, self.leaf, conversion, self.data_type, side);
        let (value, other) = match side {
            Side::Lower => (of(side)?, of(Side::Upper)),
            Side::Upper => (of(side)?, of(Side::Lower)),
        };
        let is_rounded = other.as_ref() != Some(&value);
        let value = match value {
            // SPEC parquet.thrift, ColumnOrder: a bound of one zero stands for both.
            LiteralValue::Float(zero) if zero == 0.0 && !self.zeros_differ => {
                LiteralValue::Float(if side == Side::Lower { -0.0 } else { 0.0 })
            }
            other => other,
        };
        // Numbers are never truncated. For strings, only the file knows.
        let is_exact =
            said.or_else(|| (BoundCut::for_leaf(self.leaf) == BoundCut::Never).then_some(true));
        Some((value, if is_cut || is_rounded { Some(false) } else { is_exact }))
    }
}

/// The bytes of a bound, so that they are a whole value; and whether they had to be changed for
/// that.
fn of_whole_values(
    bytes: &[u8],
    conversion: ReadConversion,
    side: Side,
) -> Option<(Cow<'_, [u8]>, bool)> {
    match conversion {
        // A front of a value is less than it, and what was made greater stays greater.
        ReadConversion::FixedBytes(len) if bytes.len() < len => {
            // The length may be any number in the file; a bound of that length is no truncation.
            if len > MAX_PADDED {
                return None;
            }
            let mut whole = bytes.to_vec();
            whole.resize(len, 0);
            Some((Cow::Owned(whole), true))
        }
        ReadConversion::FixedBytes(len) if bytes.len() > len => None,
        ReadConversion::Bytes { utf8: true, .. } => match (std::str::from_utf8(bytes), side) {
            (Ok(_), _) => Some((Cow::Borrowed(bytes), false)),
            (Err(e), Side::Lower) => Some((Cow::Borrowed(bytes.get(..e.valid_up_to())?), true)),
            (Err(_), Side::Upper) => None,
        },
        _ => Some((Cow::Borrowed(bytes), false)),
    }
}

/// Longer values are not made whole again.
const MAX_PADDED: usize = 1 << 10;

/// Bytes that bounds of one length may take, null ones included.
const MAX_FIXED_BYTES: u64 = 64 << 20;

/// The bounds as an array of `data_type`, and which of them are exact.
fn arrays(bounds: &[Option<TypedBound>], data_type: &DataType) -> Result<(ArrayRef, BooleanArray)> {
    if let DataType::FixedSizeBinary(len) = data_type {
        let total = u64::from(len.unsigned_abs()) * bounds.len() as u64;
        // Nulls take as many bytes as values, and take none in the file.
        if total > MAX_FIXED_BYTES {
            return Err(Error::limit(
                LimitKind::Memory,
                format_args!(
                    "{} bounds of {len} bytes each; at most {MAX_FIXED_BYTES} bytes are made of them",
                    bounds.len()
                ),
            ));
        }
    }
    let values: Vec<_> = bounds.iter().map(|bound| Some(&bound.as_ref()?.0)).collect();
    let values = array(&values, data_type)?;
    let exact = bounds.iter().enumerate().map(|(row, bound)| {
        let (_, exact) = bound.as_ref()?;
        exact.filter(|_| values.is_valid(row))
    });
    let exact = exact.collect();
    Ok((values, exact))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_as_many_as_their_rows() {
        let counts = |n: u64| UInt64Array::from_iter_values(0..n);
        for n in [0, 1, 3] {
            let exact: BooleanArray = vec![true; n as usize].into();
            let statistics = ColumnStatistics {
                row_group: counts(n),
                row_count: counts(n),
                null_count: counts(n),
                nan_count: counts(n),
                min: Arc::new(counts(n)),
                max: Arc::new(counts(n)),
                min_exact: exact.clone(),
                max_exact: exact,
            };
            assert_eq!((statistics.len() as u64, statistics.is_empty()), (n, n == 0));
            assert_eq!(statistics.to_batch().unwrap().num_rows() as u64, n);
        }
    }
}
