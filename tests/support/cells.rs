//! Converts arrays to rows of plain values, and shreds these to levels: slow, obvious, and
//! independent of the library.

use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::types::*;
use marquetry::arrow_array::*;
use marquetry::arrow_schema::*;
use marquetry::schema::Physical;

use arrow_buffer::i256;

/// A value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    Null,
    /// Booleans, integers, dates, times; floats as their bits.
    Word(i128),
    /// Text and bytes; decimals as 32 bytes big-endian; intervals as the 12 bytes of the format.
    Bytes(Vec<u8>),
    /// Lists, and maps as lists of pairs.
    List(Vec<Self>),
    Struct(Vec<Self>),
}

/// The rows of an array.
pub fn cells(array: &dyn Array) -> Vec<Cell> {
    use DataType as D;
    let n = array.len();
    macro_rules! words {
        ($type:ty) => {{
            let array = array.as_primitive::<$type>();
            fill(array, |i| Cell::Word(array.value(i) as i128))
        }};
    }
    macro_rules! decimals {
        ($type:ty, $wide:expr) => {{
            let array = array.as_primitive::<$type>();
            fill(array, |i| Cell::Bytes($wide(array.value(i)).to_be_bytes().to_vec()))
        }};
    }
    let lists = |values: &ArrayRef, range: &dyn Fn(usize) -> (usize, usize)| {
        let values = cells(values);
        fill(array, |i| {
            let (start, end) = range(i);
            Cell::List(values[start..end].to_vec())
        })
    };
    let at = |v: i64| v as usize;
    match array.data_type() {
        D::Null => vec![Cell::Null; n],
        D::Boolean => fill(array, |i| Cell::Word(i128::from(array.as_boolean().value(i)))),
        D::Int8 => words!(Int8Type),
        D::Int16 => words!(Int16Type),
        D::Int32 => words!(Int32Type),
        D::Int64 => words!(Int64Type),
        D::UInt8 => words!(UInt8Type),
        D::UInt16 => words!(UInt16Type),
        D::UInt32 => words!(UInt32Type),
        D::UInt64 => words!(UInt64Type),
        D::Float16 => fill(array, |i| {
            Cell::Word(array.as_primitive::<Float16Type>().value(i).to_bits().into())
        }),
        D::Float32 => fill(array, |i| {
            Cell::Word(array.as_primitive::<Float32Type>().value(i).to_bits().into())
        }),
        D::Float64 => fill(array, |i| {
            Cell::Word(array.as_primitive::<Float64Type>().value(i).to_bits().into())
        }),
        D::Decimal32(..) => decimals!(Decimal32Type, |v: i32| i256::from_i128(v.into())),
        D::Decimal64(..) => decimals!(Decimal64Type, |v: i64| i256::from_i128(v.into())),
        D::Decimal128(..) => decimals!(Decimal128Type, i256::from_i128),
        D::Decimal256(..) => decimals!(Decimal256Type, |v: i256| v),
        D::Date32 => words!(Date32Type),
        D::Date64 => words!(Date64Type),
        D::Time32(TimeUnit::Second) => words!(Time32SecondType),
        D::Time32(_) => words!(Time32MillisecondType),
        D::Time64(TimeUnit::Microsecond) => words!(Time64MicrosecondType),
        D::Time64(_) => words!(Time64NanosecondType),
        D::Timestamp(TimeUnit::Second, _) => words!(TimestampSecondType),
        D::Timestamp(TimeUnit::Millisecond, _) => words!(TimestampMillisecondType),
        D::Timestamp(TimeUnit::Microsecond, _) => words!(TimestampMicrosecondType),
        D::Timestamp(TimeUnit::Nanosecond, _) => words!(TimestampNanosecondType),
        D::Duration(TimeUnit::Second) => words!(DurationSecondType),
        D::Duration(TimeUnit::Millisecond) => words!(DurationMillisecondType),
        D::Duration(TimeUnit::Microsecond) => words!(DurationMicrosecondType),
        D::Duration(TimeUnit::Nanosecond) => words!(DurationNanosecondType),
        D::Interval(unit) => fill(array, |i| {
            let (months, days, millis) = match unit {
                IntervalUnit::YearMonth => {
                    (array.as_primitive::<IntervalYearMonthType>().value(i), 0, 0)
                }
                IntervalUnit::DayTime => {
                    let v = array.as_primitive::<IntervalDayTimeType>().value(i);
                    (0, v.days, v.milliseconds)
                }
                IntervalUnit::MonthDayNano => {
                    let v = array.as_primitive::<IntervalMonthDayNanoType>().value(i);
                    (v.months, v.days, (v.nanoseconds / 1_000_000) as u32 as i32)
                }
            };
            Cell::Bytes([months, days, millis].iter().flat_map(|v| v.to_le_bytes()).collect())
        }),
        D::Utf8 => fill(array, |i| Cell::Bytes(array.as_string::<i32>().value(i).into())),
        D::LargeUtf8 => fill(array, |i| Cell::Bytes(array.as_string::<i64>().value(i).into())),
        D::Utf8View => fill(array, |i| Cell::Bytes(array.as_string_view().value(i).into())),
        D::Binary => fill(array, |i| Cell::Bytes(array.as_binary::<i32>().value(i).into())),
        D::LargeBinary => fill(array, |i| Cell::Bytes(array.as_binary::<i64>().value(i).into())),
        D::BinaryView => fill(array, |i| Cell::Bytes(array.as_binary_view().value(i).into())),
        D::FixedSizeBinary(_) => {
            fill(array, |i| Cell::Bytes(array.as_fixed_size_binary().value(i).into()))
        }
        D::List(_) => {
            let list = array.as_list::<i32>();
            let offsets = list.value_offsets();
            lists(list.values(), &|i| (offsets[i] as usize, offsets[i + 1] as usize))
        }
        D::LargeList(_) => {
            let list = array.as_list::<i64>();
            let offsets = list.value_offsets();
            lists(list.values(), &|i| (at(offsets[i]), at(offsets[i + 1])))
        }
        D::ListView(_) => {
            let list = array.as_list_view::<i32>();
            let (starts, sizes) = (list.value_offsets(), list.value_sizes());
            lists(list.values(), &|i| (starts[i] as usize, starts[i] as usize + sizes[i] as usize))
        }
        D::LargeListView(_) => {
            let list = array.as_list_view::<i64>();
            let (starts, sizes) = (list.value_offsets(), list.value_sizes());
            lists(list.values(), &|i| (at(starts[i]), at(starts[i] + sizes[i])))
        }
        D::FixedSizeList(_, width) => {
            let list = array.as_fixed_size_list();
            let width = *width as usize;
            lists(list.values(), &|i| (i * width, (i + 1) * width))
        }
        D::Map(..) => {
            let map = array.as_map();
            let offsets = map.value_offsets();
            let entries = cells(map.entries());
            fill(array, |i| {
                Cell::List(entries[offsets[i] as usize..offsets[i + 1] as usize].to_vec())
            })
        }
        D::Struct(_) => {
            let columns: Vec<Vec<Cell>> =
                array.as_struct().columns().iter().map(|column| cells(column)).collect();
            fill(array, |i| Cell::Struct(columns.iter().map(|column| column[i].clone()).collect()))
        }
        D::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let values = cells(dictionary.values());
            if values.is_empty() {
                return vec![Cell::Null; n];
            }
            let keys = dictionary.normalized_keys();
            fill(array, |i| values[keys[i]].clone())
        }
        D::RunEndEncoded(ends, _) => {
            macro_rules! runs {
                ($type:ty) => {{
                    let runs = array.as_run::<$type>();
                    let values = cells(runs.values());
                    (0..n).map(|i| values[runs.get_physical_index(i)].clone()).collect()
                }};
            }
            match ends.data_type() {
                D::Int16 => runs!(Int16Type),
                D::Int32 => runs!(Int32Type),
                _ => runs!(Int64Type),
            }
        }
        other => panic!("no cells of {other}"),
    }
}

fn fill(array: &(impl Array + ?Sized), value: impl Fn(usize) -> Cell) -> Vec<Cell> {
    (0..array.len()).map(|i| if array.is_null(i) { Cell::Null } else { value(i) }).collect()
}

/// The columns of all batches, row by row.
pub fn columns(schema: &Schema, batches: &[RecordBatch]) -> Vec<Vec<Cell>> {
    (0..schema.fields().len())
        .map(|i| batches.iter().flat_map(|batch| cells(batch.column(i))).collect())
        .collect()
}

/// A level entry of a leaf.
#[derive(Debug, Clone)]
pub struct Entry {
    pub def: usize,
    pub rep: usize,
    /// PLAIN, without a length.
    pub value: Option<Vec<u8>>,
}

/// The type of a leaf, dictionaries and runs aside.
pub fn plain_type(data_type: &DataType) -> &DataType {
    match data_type {
        DataType::Dictionary(_, value) => plain_type(value),
        DataType::RunEndEncoded(_, values) => plain_type(values.data_type()),
        other => other,
    }
}

/// The fields below a nested one.
fn children(data_type: &DataType) -> Vec<&Field> {
    match data_type {
        DataType::Struct(fields) => fields.iter().map(|f| &**f).collect(),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _) => vec![item],
        DataType::Map(entries, _) => children(entries.data_type()),
        _ => Vec::new(),
    }
}

/// The leaves below a field, depth-first.
pub fn leaves(field: &Field) -> Vec<&Field> {
    let below = children(field.data_type());
    if below.is_empty() { vec![field] } else { below.into_iter().flat_map(leaves).collect() }
}

/// Where the entries of a row go: one leaf after the other.
pub struct Shredder<'a> {
    /// The physical types of the leaves.
    pub physical: &'a [Physical],
    /// The entries of the leaves.
    pub out: &'a mut [Vec<Entry>],
}

impl Shredder<'_> {
    /// Shreds a cell; `lists` are those around it, `first` is its first leaf.
    pub fn cell(
        &mut self,
        field: &Field,
        cell: &Cell,
        (def, rep, lists): (usize, usize, usize),
        first: usize,
    ) {
        let n = leaves(field).len();
        if *cell == Cell::Null {
            assert!(field.is_nullable(), "a null in a required field");
            self.end(first..first + n, def, rep);
            return;
        }
        let def = def + usize::from(field.is_nullable());
        let below = children(field.data_type());
        match cell {
            // A leaf that is always null is its stand-in.
            Cell::Struct(values) if values.is_empty() => self.end(first..first + n, def, rep),
            Cell::Struct(values) => {
                let mut leaf = first;
                for (child, value) in below.iter().zip(values) {
                    self.cell(child, value, (def, rep, lists), leaf);
                    leaf += leaves(child).len();
                }
            }
            Cell::List(items) if items.is_empty() => self.end(first..first + n, def, rep),
            Cell::List(items) => {
                for (i, item) in items.iter().enumerate() {
                    let rep = if i == 0 { rep } else { lists + 1 };
                    match item {
                        // An entry of a map has no level of its own.
                        Cell::Struct(pair) if matches!(field.data_type(), DataType::Map(..)) => {
                            self.cell(below[0], &pair[0], (def + 1, rep, lists + 1), first);
                            let value = first + leaves(below[0]).len();
                            self.cell(below[1], &pair[1], (def + 1, rep, lists + 1), value);
                        }
                        item => self.cell(below[0], item, (def + 1, rep, lists + 1), first),
                    }
                }
            }
            value => {
                let value =
                    Some(stored(plain_type(field.data_type()), value, self.physical[first]));
                self.out[first].push(Entry { def, rep, value });
            }
        }
    }

    fn end(&mut self, leaves: std::ops::Range<usize>, def: usize, rep: usize) {
        for leaf in leaves {
            self.out[leaf].push(Entry { def, rep, value: None });
        }
    }
}

/// A value as PLAIN has it, without a length.
fn stored(data_type: &DataType, cell: &Cell, physical: Physical) -> Vec<u8> {
    let width = match physical {
        Physical::Boolean => 1,
        Physical::Int32 | Physical::Float => 4,
        Physical::Int64 | Physical::Double => 8,
        Physical::Int96 => 12,
        Physical::FixedLenByteArray(n) => n,
        _ => 0,
    };
    match cell {
        Cell::Word(word) => {
            let word = match data_type {
                DataType::Date64 => word / 86_400_000,
                DataType::Time32(TimeUnit::Second) | DataType::Timestamp(TimeUnit::Second, _) => {
                    word * 1000
                }
                _ => *word,
            };
            word.to_le_bytes()[..width].to_vec()
        }
        Cell::Bytes(bytes) => match data_type {
            DataType::Decimal32(_, scale)
            | DataType::Decimal64(_, scale)
            | DataType::Decimal128(_, scale)
            | DataType::Decimal256(_, scale) => {
                let unscaled = i256::from_be_bytes(bytes[..].try_into().expect("32 bytes"));
                let ten = |n: i8| (0..n).fold(i256::ONE, |p, _| p * i256::from_i128(10));
                // The format has no scale below 0.
                let bytes = (unscaled * ten((-*scale).max(0))).to_be_bytes();
                let bytes = &bytes[32 - width..];
                match physical {
                    Physical::FixedLenByteArray(_) => bytes.to_vec(),
                    _ => bytes.iter().rev().copied().collect(),
                }
            }
            _ => bytes.clone(),
        },
        other => panic!("{other:?} is no value of a leaf"),
    }
}

/// A value by which others are compared.
#[derive(Debug, Clone, PartialEq, PartialOrd)]
pub enum Key {
    Word(i128),
    Wide(i256),
    Float(f64),
    Bytes(Vec<u8>),
}

/// The key of a PLAIN value in the order of its type, or none where no order is defined.
pub fn key(data_type: &DataType, physical: Physical, value: &[u8], total: bool) -> Option<Key> {
    use DataType as D;
    let unsigned = || {
        let mut word = [0; 16];
        word[..value.len()].copy_from_slice(value);
        i128::from_le_bytes(word)
    };
    let bits = 8 * value.len() as u32;
    let signed = || if bits == 0 { 0 } else { unsigned() << (128 - bits) >> (128 - bits) };
    // Sign and magnitude, made to one number.
    let total_key = || {
        let magnitude = unsigned() & !(1 << (bits - 1));
        if unsigned() >> (bits - 1) == 1 { -magnitude - 1 } else { magnitude }
    };
    Some(match data_type {
        D::Null | D::Interval(_) => return None,
        D::Boolean | D::Struct(_) | D::UInt8 | D::UInt16 | D::UInt32 | D::UInt64 => {
            Key::Word(unsigned())
        }
        D::Float16 | D::Float32 | D::Float64 if total => Key::Word(total_key()),
        D::Float16 | D::Float32 | D::Float64 => Key::Float(float(data_type, value)),
        other if other.is_decimal() => match physical {
            Physical::FixedLenByteArray(_) => {
                let fill = if value[0] & 0x80 != 0 { 0xFF } else { 0 };
                let mut wide = [fill; 32];
                wide[32 - value.len()..].copy_from_slice(value);
                Key::Wide(i256::from_be_bytes(wide))
            }
            _ => Key::Wide(i256::from_i128(signed())),
        },
        D::Utf8
        | D::LargeUtf8
        | D::Utf8View
        | D::Binary
        | D::LargeBinary
        | D::BinaryView
        | D::FixedSizeBinary(_) => Key::Bytes(value.to_vec()),
        _ => Key::Word(signed()),
    })
}

pub fn is_float(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Float16 | DataType::Float32 | DataType::Float64)
}

/// The number of a PLAIN float.
pub fn float(data_type: &DataType, value: &[u8]) -> f64 {
    match data_type {
        DataType::Float16 => half::f16::from_le_bytes(value.try_into().expect("2 bytes")).to_f64(),
        DataType::Float32 => f32::from_le_bytes(value.try_into().expect("4 bytes")).into(),
        _ => f64::from_le_bytes(value.try_into().expect("8 bytes")),
    }
}
