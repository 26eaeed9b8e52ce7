//! The types that a hint may say, and those that the annotation of a leaf leaves open.

use std::sync::Arc;

use arrow_ipc as ipc;
use arrow_schema::{DataType, FieldRef, TimeUnit};

use crate::schema::leaf::{Leaf, Physical};
use crate::schema::natural;

/// Whether the annotation of a leaf leaves open that it is `hinted`, neither of them with a
/// dictionary or run ends: the table of what a hint may refine. `natural` is the type without hint.
///
/// | column | left open |
/// |---|---|
/// | STRING, ENUM, JSON | the layout: 32-bit offsets, 64-bit offsets, views |
/// | BSON, GEOMETRY, GEOGRAPHY | the same |
/// | DECIMAL | the width; not the digits |
/// | DATE | days or milliseconds |
/// | TIME, TIMESTAMP | seconds for milliseconds; the name of the zone, where there is one |
/// | INTERVAL | which of Arrow's |
/// | any other annotation | nothing |
/// | bare INT64 | Duration, Timestamp(s), Date64, for which the format has no annotation |
/// | bare INT32 | Time32(s), likewise |
/// | bare BYTE_ARRAY | text or not, the layout |
/// | bare FIXED_LEN_BYTE_ARRAY | whether the length is part of the type |
pub(super) fn leaves_open(leaf: &Leaf, natural: &DataType, hinted: &DataType) -> bool {
    use DataType as D;
    use TimeUnit::{Millisecond, Second};
    let is_bare = leaf.logical.is_none();
    let is_finer = |unit: TimeUnit, to: TimeUnit| unit == to || (unit, to) == (Millisecond, Second);
    let strings = matches!(hinted, D::Utf8 | D::LargeUtf8 | D::Utf8View);
    let bytes = matches!(hinted, D::Binary | D::LargeBinary | D::BinaryView);
    if natural == hinted {
        return true;
    }
    match (natural, hinted) {
        (D::Utf8, _) => strings || is_bare && bytes,
        (D::Binary, _) => bytes || is_bare && strings,
        (D::FixedSizeBinary(_), _) => is_bare && bytes,
        (
            D::Decimal128(precision, scale) | D::Decimal256(precision, scale),
            D::Decimal32(p, s) | D::Decimal64(p, s) | D::Decimal128(p, s) | D::Decimal256(p, s),
        ) => (precision, scale) == (p, s),
        (D::Date32, D::Date64) | (D::Interval(_), D::Interval(_)) => true,
        (D::Time32(from), D::Time32(to)) => is_finer(*from, *to),
        // The unit of INT96 is the reader's choice.
        (D::Timestamp(from, zone), D::Timestamp(to, wanted)) => {
            is_finer(*from, *to)
                && zone.is_some() == wanted.is_some()
                && leaf.physical != Physical::Int96
        }
        (D::Int64, D::Duration(_) | D::Timestamp(Second, _) | D::Date64) => is_bare,
        (D::Int32, D::Time32(Second)) => is_bare,
        _ => false,
    }
}

/// The type without dictionary and run ends.
pub(super) fn plain(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, value) => value,
        DataType::RunEndEncoded(_, values) => values.data_type(),
        other => other,
    }
}

pub(super) fn only_child(field: ipc::Field<'_>) -> Option<ipc::Field<'_>> {
    field.children().filter(|children| children.len() == 1).map(|children| children.get(0))
}

pub(super) fn list_type(hinted: ipc::Field<'_>, item: &FieldRef) -> Option<DataType> {
    let item = Arc::clone(item);
    Some(match hinted.type_type() {
        ipc::Type::List => DataType::List(item),
        ipc::Type::LargeList => DataType::LargeList(item),
        ipc::Type::ListView => DataType::ListView(item),
        ipc::Type::LargeListView => DataType::LargeListView(item),
        ipc::Type::FixedSizeList => match hinted.type_as_fixed_size_list()?.listSize() {
            length @ 0.. => DataType::FixedSizeList(item, length),
            _ => return None,
        },
        _ => return None,
    })
}

pub(super) fn int_type(int: ipc::Int<'_>) -> Option<DataType> {
    natural::int_type(int.bitWidth(), int.is_signed())
}

pub(super) fn decimal_type(decimal: ipc::Decimal<'_>) -> Option<DataType> {
    let precision = u8::try_from(decimal.precision()).ok().filter(|&precision| precision > 0)?;
    let scale = i8::try_from(decimal.scale()).ok()?;
    Some(match (decimal.bitWidth(), precision) {
        (32, ..=9) => DataType::Decimal32(precision, scale),
        (64, ..=18) => DataType::Decimal64(precision, scale),
        (128, ..=38) => DataType::Decimal128(precision, scale),
        (256, ..=76) => DataType::Decimal256(precision, scale),
        _ => return None,
    })
}

pub(super) fn time_unit(unit: ipc::TimeUnit) -> Option<TimeUnit> {
    Some(match unit {
        ipc::TimeUnit::SECOND => TimeUnit::Second,
        ipc::TimeUnit::MILLISECOND => TimeUnit::Millisecond,
        ipc::TimeUnit::MICROSECOND => TimeUnit::Microsecond,
        ipc::TimeUnit::NANOSECOND => TimeUnit::Nanosecond,
        _ => return None,
    })
}
