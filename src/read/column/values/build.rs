//! [`value_reader`] matches physical type and conversion, once for a column chunk.

use arrow_schema::DataType;

use super::binary::BinaryReader;
use super::boolean::BooleanReader;
use super::converted::converted_reader;
use super::dictionary::dictionary_reader;
use super::empty_binary::EmptyBinaryReader;
use super::fixed_binary::FixedBinaryReader;
use super::ints::int_reader;
use super::null::NullReader;
use super::reader::ValueReader;
use super::run_end::run_end_reader;
use crate::error::Result;
use crate::read::column::spec::ColumnSpec;
use crate::read::options::Utf8;
use crate::schema::Physical;
use crate::schema::convert::ReadConversion;

/// The reader of the values of a leaf, by what it is read as.
pub(in crate::read::column) fn value_reader(
    spec: &ColumnSpec,
    utf8: Utf8,
    carries_prefix: bool,
) -> Result<Box<dyn ValueReader>> {
    match &spec.data_type {
        DataType::Dictionary(key, value) => {
            let values = reader_of(spec, value, utf8, carries_prefix)?;
            dictionary_reader(key, value, values)
        }
        DataType::RunEndEncoded(ends, values) => {
            let inner = reader_of(spec, values.data_type(), utf8, carries_prefix)?;
            run_end_reader(ends, values, inner)
        }
        other => reader_of(spec, other, utf8, carries_prefix),
    }
}

fn reader_of(
    spec: &ColumnSpec,
    data_type: &DataType,
    utf8: Utf8,
    carries_prefix: bool,
) -> Result<Box<dyn ValueReader>> {
    let physical = spec.leaf.physical;
    Ok(match spec.conversion {
        ReadConversion::Null => Box::new(NullReader),
        ReadConversion::Boolean => Box::new(BooleanReader::default()),
        ReadConversion::Bytes { layout, utf8: is_text } => {
            let check = if is_text { Some(utf8) } else { None };
            BinaryReader::boxed(physical, layout, data_type, check, carries_prefix)
        }
        ReadConversion::FixedBytes(_) if physical == Physical::ByteArray => {
            Box::new(EmptyBinaryReader::new(carries_prefix))
        }
        ReadConversion::FixedBytes(width) => {
            Box::new(FixedBinaryReader::new(width, data_type.clone())?)
        }
        conversion => match physical {
            Physical::Int32 | Physical::Int64 | Physical::Float | Physical::Double => {
                int_reader(physical, conversion, data_type)?
            }
            _ => converted_reader(physical, conversion, data_type, carries_prefix)?,
        },
    })
}
