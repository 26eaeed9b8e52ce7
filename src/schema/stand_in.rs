//! Stand-ins: the types that are stored for Arrow types that the format has no column for.
//!
//! `from_arrow` makes the columns of a file from the stand-ins, and the hint states them too, so
//! that every reader finds the types that the hint promises. [`TYPE_KEY`] in the metadata of the
//! hinted field names the type that a column stands for, and `hint` accepts it if the column is the
//! stand-in of that type. Trap: the mark is as untrusted as the rest of a hint, so each conversion
//! from a stand-in checks the values.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, IntervalUnit, TimeUnit};

use super::convert::read_conversion;
use super::fields::arrow_fields;
use super::leaf::Leaf;
use super::shape::{Kind, Shape};

/// The key of a hinted field's metadata that names the type that its column stands for.
const TYPE_KEY: &str = "marquetry:type";

/// The name of the only field of the group that stands for a struct without fields.
const EMPTY: &str = "_empty";

/// The value of [`TYPE_KEY`] on a struct without fields.
const STRUCT: &str = "struct";

const DATE64: &str = "date64";
const NO_BYTES: &str = "fixed_size_binary:0";

#[rustfmt::skip]
const INTERVALS: [(IntervalUnit, &str); 3] = [
    (IntervalUnit::YearMonth,    "interval:year_month"),
    (IntervalUnit::DayTime,      "interval:day_time"),
    (IntervalUnit::MonthDayNano, "interval:month_day_nano"),
];

/// The type that is stored for a leaf of type `data_type`, if that is not stored as itself.
/// `full_range` is [`FromArrowOptions::with_full_range`](super::FromArrowOptions::with_full_range).
///
/// All of these are natural types: what a column of the format is without a hint.
fn of_leaf(data_type: &DataType, full_range: bool) -> Option<DataType> {
    use DataType as D;
    Some(match data_type {
        D::Decimal32(precision, scale)
        | D::Decimal64(precision, scale)
        | D::Decimal128(precision, scale)
        | D::Decimal256(precision, scale)
            if *scale < 0 =>
        {
            match precision.checked_add(scale.unsigned_abs())? {
                digits @ ..=38 => D::Decimal128(digits, 0),
                digits @ ..=76 => D::Decimal256(digits, 0),
                _ => return None,
            }
        }
        D::FixedSizeBinary(0) => D::Binary,
        D::Date64 if full_range => D::Timestamp(TimeUnit::Millisecond, None),
        D::Interval(_) if full_range => D::FixedSizeBinary(16),
        _ => return None,
    })
}

/// The fields as they are stored, with a mark on stand-ins.
pub(super) fn stored_fields(fields: &Fields, full_range: bool) -> Fields {
    StoredForms { full_range, depth: 0 }.fields(fields)
}

/// The types that types are stored as, `depth` levels below the schema.
#[derive(Clone, Copy)]
struct StoredForms {
    full_range: bool,
    depth: usize,
}

impl StoredForms {
    fn fields(self, fields: &Fields) -> Fields {
        arrow_fields(fields.iter().map(|field| self.field(field)))
    }

    fn field(self, field: &FieldRef) -> FieldRef {
        let mut mark = None;
        let data_type = self.stored(field.data_type(), &mut mark);
        // A mark that was there before does not concern this field.
        if data_type == *field.data_type() && !is_stand_in(field) {
            return Arc::clone(field);
        }
        let own = field.metadata().iter().filter(|(key, _)| !is_mark(key));
        let own = own.map(|(key, value)| (key.clone(), value.clone()));
        let mark = mark.map(|mark| (TYPE_KEY.to_owned(), mark));
        let metadata: HashMap<String, String> = own.chain(mark).collect();
        Arc::new(field.as_ref().clone().with_data_type(data_type).with_metadata(metadata))
    }

    /// The type that is stored for `data_type`; `mark` takes the mark of a stand-in.
    fn stored(self, data_type: &DataType, mark: &mut Option<String>) -> DataType {
        use DataType as D;
        // Schemas come from elsewhere too, and this walk takes stack. Deeper ones are refused.
        if self.depth > MAX_DEPTH {
            return data_type.clone();
        }
        let below = Self { depth: self.depth + 1, ..self };
        match data_type {
            D::List(item) => D::List(below.field(item)),
            D::LargeList(item) => D::LargeList(below.field(item)),
            D::ListView(item) => D::ListView(below.field(item)),
            D::LargeListView(item) => D::LargeListView(below.field(item)),
            D::FixedSizeList(item, length) => D::FixedSizeList(below.field(item), *length),
            D::Map(entries, sorted) => D::Map(below.field(entries), *sorted),
            D::Struct(fields) if fields.is_empty() => {
                *mark = Some(STRUCT.to_owned());
                D::Struct(vec![Field::new(EMPTY, D::Boolean, true)].into())
            }
            D::Struct(fields) => D::Struct(below.fields(fields)),
            // For values with a dictionary or runs, the field around them has the mark. Of several
            // around each other, the outermost is kept.
            D::Dictionary(key, value) => {
                D::Dictionary(key.clone(), Box::new(below.stored(innermost(value), mark)))
            }
            D::RunEndEncoded(ends, values) => {
                let of_values = below.stored(innermost(values.data_type()), mark);
                let values = values.as_ref().clone().with_data_type(of_values);
                D::RunEndEncoded(Arc::clone(ends), Arc::new(values))
            }
            leaf => match of_leaf(leaf, self.full_range) {
                Some(stored) => {
                    *mark = Some(to_mark(leaf));
                    stored
                }
                None => leaf.clone(),
            },
        }
    }
}

/// The type of the values, without dictionaries and run ends.
pub(super) fn innermost(data_type: &DataType) -> &DataType {
    let mut values = data_type;
    loop {
        values = match values {
            DataType::Dictionary(_, value) => value,
            DataType::RunEndEncoded(_, of_runs) => of_runs.data_type(),
            other => return other,
        };
    }
}

/// More levels of types than a schema may have, dictionaries and runs included.
const MAX_DEPTH: usize = 512;

/// The value of [`TYPE_KEY`] on a leaf of this type.
fn to_mark(data_type: &DataType) -> String {
    match data_type {
        DataType::Decimal32(precision, scale) => format!("decimal32:{precision}:{scale}"),
        DataType::Decimal64(precision, scale) => format!("decimal64:{precision}:{scale}"),
        DataType::Decimal128(precision, scale) => format!("decimal128:{precision}:{scale}"),
        DataType::Decimal256(precision, scale) => format!("decimal256:{precision}:{scale}"),
        DataType::FixedSizeBinary(_) => NO_BYTES.to_owned(),
        DataType::Interval(unit) => {
            let of_unit = INTERVALS.iter().find(|(of, _)| of == unit);
            of_unit.map_or(String::new(), |(_, text)| (*text).to_owned())
        }
        _ => DATE64.to_owned(),
    }
}

/// Parses the value that [`to_mark`] formats.
fn parse(text: &str) -> Option<DataType> {
    let interval = INTERVALS.iter().find(|(_, name)| *name == text);
    match (text, interval) {
        (_, Some((unit, _))) => return Some(DataType::Interval(*unit)),
        (DATE64, _) => return Some(DataType::Date64),
        (NO_BYTES, _) => return Some(DataType::FixedSizeBinary(0)),
        _ => {}
    }
    let mut words = text.split(':');
    let width = words.next()?;
    let precision = words.next()?.parse().ok().filter(|precision| *precision > 0)?;
    let scale = words.next()?.parse().ok().filter(|scale| *scale < 0)?;
    if words.next().is_some() {
        return None;
    }
    Some(match (width, precision) {
        ("decimal32", ..=9) => DataType::Decimal32(precision, scale),
        ("decimal64", ..=18) => DataType::Decimal64(precision, scale),
        ("decimal128", ..=38) => DataType::Decimal128(precision, scale),
        ("decimal256", ..=76) => DataType::Decimal256(precision, scale),
        _ => return None,
    })
}

/// Whether a key of a field's metadata is the mark.
pub(super) fn is_mark(key: &str) -> bool {
    key == TYPE_KEY
}

/// Whether a field of [`stored_fields`] stands for another type.
pub(super) fn is_stand_in(field: &Field) -> bool {
    field.metadata().contains_key(TYPE_KEY)
}

/// The type that a leaf stands for by its mark: only if the leaf is what we make of that type, and
/// has no meaning of its own. `natural` is its type without a hint.
pub(super) fn restored(mark: &str, leaf: &Leaf, natural: &DataType) -> Option<DataType> {
    let data_type = parse(mark)?;
    let is_ours = of_leaf(&data_type, true)? == *natural;
    (is_ours && read_conversion(leaf, &data_type).is_some()).then_some(data_type)
}

/// Whether a struct of these fields, marked so, stands for one without fields.
pub(super) fn is_empty_struct(mark: &str, children: &[Shape]) -> bool {
    mark == STRUCT && is_empty_group(children)
}

/// Whether these are the fields of a group that stands for a struct without fields.
pub(crate) fn is_empty_group(children: &[Shape]) -> bool {
    let [only] = children else {
        return false;
    };
    let field = &only.field;
    matches!(only.kind, Kind::Leaf { .. })
        && field.name() == EMPTY
        && field.is_nullable()
        && *field.data_type() == DataType::Boolean
}

/// The mark of a field among these metadata.
pub(super) fn mark_in<'a>(
    mut metadata: impl Iterator<Item = (Option<&'a str>, Option<&'a str>)>,
) -> Option<&'a str> {
    metadata.find(|(key, _)| *key == Some(TYPE_KEY))?.1
}
