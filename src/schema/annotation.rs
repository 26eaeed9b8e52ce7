//! Decides which annotation of a node is in force: the logical type of a leaf, and the kind of a
//! group.
//!
//! Spec: LogicalTypes.md. Called by `node` for leaves and by `nested` for groups, and by
//! `from_arrow` the other way round. `logicalType` wins over `converted_type`. An annotation that
//! is unknown, or not allowed on its physical type, is ignored, and then the bounds of the column
//! are ignored too.
//! Trap: an annotation that is ignored does not fall back to the converted type beside it.

use super::leaf::Physical;
use crate::error::{Error, Result, Spec};
use crate::format::{
    ConvertedType, DecimalType, ElementHead, IntType, LogicalKind, LogicalType, SchemaElementRef,
    TimeType, TimeUnit, TimestampType,
};

/// The annotation of a leaf.
#[derive(Debug)]
pub(super) struct Annotation {
    /// The logical type in force.
    pub(super) logical: Option<LogicalType>,
    /// False if an annotation was ignored.
    pub(super) ordered: bool,
}

/// The annotation of a group; all other annotations on groups are ignored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GroupAnnotation {
    List,
    Map,
    /// VARIANT, version 1 of its specification.
    Variant,
    File,
}

/// The annotation of the leaf `element`, whose type is `physical`.
///
/// # Errors
/// `Malformed` if a converted type without a logical type is on a type that does not allow it. The
/// format ignores only misplaced logical types, and no reader knows what such a writer meant.
pub(super) fn in_force(
    mut element: SchemaElementRef<'_>,
    physical: Physical,
) -> Result<Annotation> {
    const IGNORED: Annotation = Annotation { logical: None, ordered: false };
    const NONE: Annotation = Annotation { logical: None, ordered: true };
    let is_logical = element.logical_type.is_some();
    let logical = match (element.logical_type.take(), element.converted_type) {
        (Some(logical), _) => logical,
        (None, None) => return Ok(NONE),
        // INTERVAL has no logical type; `Leaf::converted` keeps it.
        (None, Some(ConvertedType::Interval)) => {
            return if physical == Physical::FixedLenByteArray(12) {
                Ok(NONE)
            } else {
                Ok(IGNORED)
            };
        }
        (None, Some(converted)) => match of_converted(converted, &element) {
            Some(logical) => logical,
            None => return Ok(IGNORED),
        },
    };
    if fits(&logical, physical) {
        return Ok(Annotation { logical: Some(logical), ordered: true });
    }
    match element.converted_type {
        // A precision that the bytes cannot hold is forgiven as well.
        Some(converted) if !is_logical && converted != ConvertedType::Decimal => {
            Err(Error::mismatch(
                Spec::LogicalTypes("ConvertedType"),
                "annotation",
                format_args!("one that may stand on {physical}"),
                converted,
            ))
        }
        _ => Ok(IGNORED),
    }
}

/// The annotation of the group `element`.
pub(super) fn of_group(element: &ElementHead) -> Option<GroupAnnotation> {
    match (element.logical(), element.converted_type()) {
        (LogicalKind::List, _) => Some(GroupAnnotation::List),
        (LogicalKind::Map, _) => Some(GroupAnnotation::Map),
        (LogicalKind::Variant, _) => Some(GroupAnnotation::Variant),
        (LogicalKind::File, _) => Some(GroupAnnotation::File),
        (LogicalKind::String | LogicalKind::Other, _) => None,
        (LogicalKind::Absent, Some(ConvertedType::List)) => Some(GroupAnnotation::List),
        // Old writers put MAP_KEY_VALUE on the outer group.
        (LogicalKind::Absent, Some(ConvertedType::Map | ConvertedType::MapKeyValue)) => {
            Some(GroupAnnotation::Map)
        }
        (LogicalKind::Absent, _) => None,
    }
}

/// The logical type of a converted type.
fn of_converted(converted: ConvertedType, element: &SchemaElementRef<'_>) -> Option<LogicalType> {
    use ConvertedType as C;
    let time = |unit| LogicalType::Time(TimeType { is_adjusted_to_utc: true, unit });
    let timestamp = |unit| LogicalType::Timestamp(TimestampType { is_adjusted_to_utc: true, unit });
    let integer = |bit_width, is_signed| LogicalType::Integer(IntType { bit_width, is_signed });
    Some(match converted {
        C::Utf8 => LogicalType::String,
        C::Enum => LogicalType::Enum,
        C::Json => LogicalType::Json,
        C::Bson => LogicalType::Bson,
        C::Decimal => LogicalType::Decimal(DecimalType {
            scale: element.scale.unwrap_or(0),
            precision: element.precision?,
        }),
        C::Date => LogicalType::Date,
        C::TimeMillis => time(TimeUnit::Millis),
        C::TimeMicros => time(TimeUnit::Micros),
        C::TimestampMillis => timestamp(TimeUnit::Millis),
        C::TimestampMicros => timestamp(TimeUnit::Micros),
        C::Uint8 => integer(8, false),
        C::Uint16 => integer(16, false),
        C::Uint32 => integer(32, false),
        C::Uint64 => integer(64, false),
        C::Int8 => integer(8, true),
        C::Int16 => integer(16, true),
        C::Int32 => integer(32, true),
        C::Int64 => integer(64, true),
        // parquet-cpp before 1.4 wrote this number, which the format never had, for columns of
        // nulls.
        C::Unknown(24) => LogicalType::Unknown,
        C::List | C::Map | C::MapKeyValue | C::Interval | C::Unknown(_) => return None,
    })
}

/// The converted type to write beside `logical`, for readers that are older than logical types.
pub(crate) fn converted(logical: &LogicalType) -> Option<ConvertedType> {
    use ConvertedType as C;
    use LogicalType as L;
    Some(match logical {
        L::String => C::Utf8,
        L::Map => C::Map,
        L::List => C::List,
        L::Enum => C::Enum,
        L::Decimal(_) => C::Decimal,
        L::Date => C::Date,
        // SPEC LogicalTypes.md, TIME and TIMESTAMP, "Forward compatibility": local ones must have
        // it too, although it says UTC.
        L::Time(TimeType { unit, .. }) => match unit {
            TimeUnit::Millis => C::TimeMillis,
            TimeUnit::Micros => C::TimeMicros,
            TimeUnit::Nanos | TimeUnit::Unrecognized(..) => return None,
        },
        L::Timestamp(TimestampType { unit, .. }) => match unit {
            TimeUnit::Millis => C::TimestampMillis,
            TimeUnit::Micros => C::TimestampMicros,
            TimeUnit::Nanos | TimeUnit::Unrecognized(..) => return None,
        },
        L::Integer(IntType { bit_width, is_signed }) => match (bit_width, is_signed) {
            (8, true) => C::Int8,
            (16, true) => C::Int16,
            (32, true) => C::Int32,
            (64, true) => C::Int64,
            (8, false) => C::Uint8,
            (16, false) => C::Uint16,
            (32, false) => C::Uint32,
            (64, false) => C::Uint64,
            _ => return None,
        },
        L::Json => C::Json,
        L::Bson => C::Bson,
        L::Unknown
        | L::Uuid
        | L::Float16
        | L::Variant(_)
        | L::Geometry(_)
        | L::Geography(_)
        | L::File
        | L::Unrecognized(..) => return None,
    })
}

/// Whether `logical` is allowed on a leaf of the type `physical`, by the table of LogicalTypes.md.
fn fits(logical: &LogicalType, physical: Physical) -> bool {
    use LogicalType as L;
    match logical {
        L::String | L::Enum | L::Json | L::Bson | L::Geometry(_) | L::Geography(_) => {
            physical == Physical::ByteArray
        }
        L::Uuid => physical == Physical::FixedLenByteArray(16),
        L::Float16 => physical == Physical::FixedLenByteArray(2),
        L::Integer(IntType { bit_width: 8 | 16 | 32, .. }) | L::Date => physical == Physical::Int32,
        L::Integer(IntType { bit_width, .. }) => *bit_width == 64 && physical == Physical::Int64,
        L::Time(TimeType { unit, .. }) => match unit {
            TimeUnit::Millis => physical == Physical::Int32,
            TimeUnit::Micros | TimeUnit::Nanos => physical == Physical::Int64,
            TimeUnit::Unrecognized(..) => false,
        },
        L::Timestamp(TimestampType { unit, .. }) => match unit {
            TimeUnit::Millis | TimeUnit::Micros | TimeUnit::Nanos => physical == Physical::Int64,
            TimeUnit::Unrecognized(..) => false,
        },
        L::Decimal(decimal) => decimal_fits(decimal, physical),
        L::Unknown => true,
        L::List | L::Map | L::Variant(_) | L::File | L::Unrecognized(..) => false,
    }
}

/// 1 ≤ precision, 0 ≤ scale ≤ precision, and every value of the precision fits into the type.
fn decimal_fits(decimal: &DecimalType, physical: Physical) -> bool {
    let DecimalType { scale, precision } = *decimal;
    let max = match physical {
        Physical::Int32 => 9,
        Physical::Int64 => 18,
        Physical::FixedLenByteArray(bytes) => max_digits(bytes),
        Physical::ByteArray => i32::MAX,
        Physical::Boolean | Physical::Int96 | Physical::Float | Physical::Double => return false,
    };
    (1..=max).contains(&precision) && (0..=precision).contains(&scale)
}

/// The digits that always fit into `bytes` bytes of two's complement: ⌊log10(2^(8·bytes − 1) − 1)⌋.
pub(super) fn max_digits(bytes: usize) -> i32 {
    let Some(bits) = bytes.checked_mul(8).and_then(|bits| bits.checked_sub(1)) else {
        return 0;
    };
    // 2^bits is no power of ten, so the floor is that of bits · log10(2). The product is exact
    // enough up to billions.
    #[expect(clippy::cast_possible_truncation, clippy::cast_precision_loss, reason = "saturates")]
    let digits = (bits as f64 * std::f64::consts::LOG10_2) as i32;
    digits
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::samples;

    #[test]
    fn digits_that_fit_into_bytes() {
        // LogicalTypes.md, DECIMAL.
        let digits = [0, 2, 4, 6, 9, 11, 14, 16, 18, 21, 23, 26, 28, 31, 33, 35, 38];
        for (bytes, digits) in digits.into_iter().enumerate() {
            assert_eq!(max_digits(bytes), digits, "{bytes} bytes");
        }
        assert_eq!(max_digits(32), 76);
        assert_eq!(max_digits(usize::MAX), 0);
    }

    #[test]
    fn digits_agree_with_exact_arithmetic() {
        for bytes in 1..=16 {
            let max = (1u128 << (8 * bytes - 1)) - 1;
            assert_eq!(max_digits(bytes), max.ilog10() as i32);
        }
    }

    #[test]
    fn converted_types_there_and_back() {
        let table = [0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20];
        for number in table {
            let there = ConvertedType::from(number);
            let mut element = samples::leaf("a", Physical::Int32);
            element.precision = Some(3);
            let logical = of_converted(there, &samples::borrowed(&element)).unwrap();
            assert_eq!(converted(&logical), Some(there), "{logical:?}");
        }
        assert_eq!(converted(&LogicalType::List), Some(ConvertedType::List));
        assert_eq!(converted(&LogicalType::Map), Some(ConvertedType::Map));
        assert_eq!(converted(&LogicalType::Unknown), None);
    }

    #[test]
    fn logical_type_wins_and_never_falls_back() {
        let mut element = samples::leaf("a", Physical::Int32);
        element.converted_type = Some(ConvertedType::Date);
        let annotation = in_force(samples::borrowed(&element), Physical::Int32).unwrap();
        assert_eq!(annotation.logical.as_ref(), Some(&LogicalType::Date));
        assert!(annotation.ordered);

        element.logical_type =
            Some(LogicalType::Integer(IntType { bit_width: 8, is_signed: true }));
        let annotation = in_force(samples::borrowed(&element), Physical::Int32).unwrap();
        assert_eq!(annotation.logical.as_ref(), element.logical_type.as_ref());

        element.logical_type = Some(LogicalType::Uuid);
        let annotation = in_force(samples::borrowed(&element), Physical::Int32).unwrap();
        assert_eq!(annotation.logical, None);
        assert!(!annotation.ordered);
    }

    #[test]
    fn annotations_stand_only_on_their_types() {
        use LogicalType as L;
        let int = |bit_width| L::Integer(IntType { bit_width, is_signed: false });
        let decimal = |precision, scale| L::Decimal(DecimalType { scale, precision });
        let time = |unit| L::Time(TimeType { is_adjusted_to_utc: false, unit });
        let timestamp = |unit| L::Timestamp(TimestampType { is_adjusted_to_utc: false, unit });
        let fixed = Physical::FixedLenByteArray;
        #[rustfmt::skip]
        let table: &[(L, Physical, bool)] = &[
            (L::String,                  Physical::ByteArray, true),
            (L::String,                  fixed(3),            false),
            (L::Enum,                    Physical::ByteArray, true),
            (L::Bson,                    Physical::Int96,     false),
            (L::Uuid,                    fixed(16),           true),
            (L::Uuid,                    fixed(15),           false),
            (L::Float16,                 fixed(2),            true),
            (L::Float16,                 Physical::Float,     false),
            (L::Date,                    Physical::Int32,     true),
            (L::Date,                    Physical::Int64,     false),
            (int(8),                     Physical::Int32,     true),
            (int(16),                    Physical::Int32,     true),
            (int(32),                    Physical::Int32,     true),
            (int(32),                    Physical::Int64,     false),
            (int(64),                    Physical::Int64,     true),
            (int(64),                    Physical::Int32,     false),
            (int(7),                     Physical::Int32,     false),
            (int(-1),                    Physical::Int64,     false),
            (time(TimeUnit::Millis),     Physical::Int32,     true),
            (time(TimeUnit::Millis),     Physical::Int64,     false),
            (time(TimeUnit::Nanos),      Physical::Int64,     true),
            (timestamp(TimeUnit::Nanos), Physical::Int64,     true),
            (timestamp(TimeUnit::Nanos), Physical::Int96,     false),
            (decimal(9, 9),              Physical::Int32,     true),
            (decimal(10, 0),             Physical::Int32,     false),
            (decimal(18, 0),             Physical::Int64,     true),
            (decimal(19, 0),             Physical::Int64,     false),
            (decimal(38, 1),             fixed(16),           true),
            (decimal(39, 1),             fixed(16),           false),
            (decimal(500, 1),            Physical::ByteArray, true),
            (decimal(0, 0),              Physical::ByteArray, false),
            (decimal(2, 3),              Physical::ByteArray, false),
            (decimal(2, -1),             Physical::ByteArray, false),
            (decimal(2, 1),              Physical::Double,    false),
            (L::Unknown,                 Physical::Boolean,   true),
            (L::List,                    Physical::ByteArray, false),
            (L::File,                    Physical::ByteArray, false),
        ];
        for (logical, physical, expected) in table {
            assert_eq!(fits(logical, *physical), *expected, "{logical:?} on {physical}");
        }
    }
}
