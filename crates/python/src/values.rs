//! Values of Arrow arrays as objects of Python, without another library.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Date32Type, Date64Type, DurationMicrosecondType, DurationMillisecondType,
    DurationNanosecondType, DurationSecondType, Float16Type, Float32Type, Float64Type, Int8Type,
    Int16Type, Int32Type, Int64Type, Time32MillisecondType, Time32SecondType,
    Time64MicrosecondType, Time64NanosecondType, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_schema::{DataType, TimeUnit};
use arrow_select::take::{TakeOptions, take};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRecursionError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList, PyTuple};

use crate::error::OrRaise;

/// The values of an array.
pub(crate) fn list<'py>(py: Python<'py>, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
    let of = Values { py, times: Times::new(py)? };
    of.list(array, MAX_DEPTH)
}

/// Nesting that is followed, because each level takes stack.
const MAX_DEPTH: usize = 200;

struct Values<'py> {
    py: Python<'py>,
    times: Times<'py>,
}

/// The classes that times are made with.
struct Times<'py> {
    epoch: Bound<'py, PyAny>,
    day: Bound<'py, PyAny>,
    time: Bound<'py, PyAny>,
    delta: Bound<'py, PyAny>,
    utc: Bound<'py, PyAny>,
    decimal: Bound<'py, PyAny>,
}

impl<'py> Times<'py> {
    fn new(py: Python<'py>) -> PyResult<Self> {
        let module = py.import("datetime")?;
        Ok(Self {
            epoch: module.getattr("datetime")?.call1((1970, 1, 1))?,
            day: module.getattr("date")?.call1((1970, 1, 1))?,
            time: module.getattr("time")?,
            delta: module.getattr("timedelta")?,
            utc: module.getattr("timezone")?.getattr("utc")?,
            decimal: py.import("decimal")?.getattr("Decimal")?,
        })
    }
}

/// A value for each row, `None` for null.
macro_rules! each {
    ($self:ident, $array:ident, $of:expr, $value:expr) => {{
        let (of, value) = ($of, $value);
        let out = PyList::empty($self.py);
        for row in 0..$array.len() {
            if $array.is_null(row) {
                out.append($self.py.None())?;
            } else {
                let one: Bound<'py, PyAny> = value(of.value(row))?;
                out.append(one)?;
            }
        }
        Ok(out)
    }};
}

impl<'py> Values<'py> {
    fn any(&self, value: impl IntoPyObject<'py>) -> PyResult<Bound<'py, PyAny>> {
        value.into_bound_py_any(self.py)
    }

    fn list(&self, array: &ArrayRef, depth: usize) -> PyResult<Bound<'py, PyList>> {
        let py = self.py;
        let Some(depth) = depth.checked_sub(1) else {
            return Err(PyRecursionError::new_err("the values are nested too deeply"));
        };
        match array.data_type() {
            DataType::Null => {
                let nulls = (0..array.len()).map(|_| py.None());
                PyList::new(py, nulls.collect::<Vec<_>>())
            }
            DataType::Boolean => each!(self, array, array.as_boolean(), |v: bool| self.any(v)),
            DataType::Utf8 => each!(self, array, array.as_string::<i32>(), |v: &str| self.any(v)),
            DataType::LargeUtf8 => {
                each!(self, array, array.as_string::<i64>(), |v: &str| self.any(v))
            }
            DataType::Utf8View => {
                each!(self, array, array.as_string_view(), |v: &str| self.any(v))
            }
            DataType::Binary => each!(self, array, array.as_binary::<i32>(), |v| self.bytes(v)),
            DataType::LargeBinary => {
                each!(self, array, array.as_binary::<i64>(), |v| self.bytes(v))
            }
            DataType::BinaryView => each!(self, array, array.as_binary_view(), |v| self.bytes(v)),
            DataType::FixedSizeBinary(_) => {
                each!(self, array, array.as_fixed_size_binary(), |v| self.bytes(v))
            }
            DataType::List(_) => self.lists(array, |row| array.as_list::<i32>().value(row), depth),
            DataType::LargeList(_) => {
                self.lists(array, |row| array.as_list::<i64>().value(row), depth)
            }
            DataType::FixedSizeList(..) => {
                self.lists(array, |row| array.as_fixed_size_list().value(row), depth)
            }
            DataType::ListView(_) => {
                self.lists(array, |row| array.as_list_view::<i32>().value(row), depth)
            }
            DataType::LargeListView(_) => {
                self.lists(array, |row| array.as_list_view::<i64>().value(row), depth)
            }
            DataType::Map(..) => self.maps(array, depth),
            DataType::Struct(fields) => {
                let of = array.as_struct();
                let members = of.columns().iter().map(|column| self.list(column, depth));
                let members = members.collect::<PyResult<Vec<_>>>()?;
                let out = PyList::empty(py);
                for row in 0..array.len() {
                    if array.is_null(row) {
                        out.append(py.None())?;
                        continue;
                    }
                    let one = PyDict::new(py);
                    for (field, member) in fields.iter().zip(&members) {
                        one.set_item(field.name(), member.get_item(row)?)?;
                    }
                    out.append(one)?;
                }
                Ok(out)
            }
            DataType::Dictionary(..) => {
                let of = array.as_any_dictionary();
                if of.keys().len() < of.values().len() {
                    // As of one row of a list: only the values that have a key are converted.
                    let options = TakeOptions { check_bounds: true };
                    let plain = take(of.values(), of.keys(), Some(options)).or_raise(py)?;
                    return self.list(&plain, depth);
                }
                let values = self.list(of.values(), depth)?;
                let keys = arrow_cast::cast(of.keys(), &DataType::Int64).or_raise(py)?;
                let keys = keys.as_primitive::<Int64Type>();
                each!(self, array, keys, |key: i64| values
                    .get_item(usize::try_from(key).unwrap_or(usize::MAX)))
            }
            DataType::RunEndEncoded(_, values) => {
                let plain = arrow_cast::cast(array, values.data_type()).or_raise(py)?;
                self.list(&plain, depth)
            }
            DataType::Decimal32(..)
            | DataType::Decimal64(..)
            | DataType::Decimal128(..)
            | DataType::Decimal256(..) => {
                let decimal = |text: &str| self.times.decimal.call1((text,));
                self.texts(array, decimal)
            }
            DataType::Interval(_) | DataType::Union(..) => self.texts(array, |text| self.any(text)),
            _ => self.numbers(array),
        }
    }

    /// The values by their text.
    fn texts(
        &self,
        array: &ArrayRef,
        value: impl Fn(&str) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let options = FormatOptions::default();
        let format = ArrayFormatter::try_new(array, &options).or_raise(self.py)?;
        let out = PyList::empty(self.py);
        for row in 0..array.len() {
            if array.is_null(row) {
                out.append(self.py.None())?;
            } else {
                out.append(value(&format.value(row).try_to_string().or_raise(self.py)?)?)?;
            }
        }
        Ok(out)
    }

    fn bytes(&self, value: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        Ok(PyBytes::new(self.py, value).into_any())
    }

    fn lists(
        &self,
        array: &ArrayRef,
        of: impl Fn(usize) -> ArrayRef,
        depth: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let out = PyList::empty(self.py);
        for row in 0..array.len() {
            if array.is_null(row) {
                out.append(self.py.None())?;
            } else {
                out.append(self.list(&of(row), depth)?)?;
            }
        }
        Ok(out)
    }

    /// Each map as a list of pairs, because keys need not be hashable, and may repeat.
    fn maps(&self, array: &ArrayRef, depth: usize) -> PyResult<Bound<'py, PyList>> {
        let of = array.as_map();
        let out = PyList::empty(self.py);
        for row in 0..array.len() {
            if array.is_null(row) {
                out.append(self.py.None())?;
                continue;
            }
            let entries = of.value(row);
            let keys = self.list(entries.column(0), depth)?;
            let values = self.list(entries.column(1), depth)?;
            let pairs = PyList::empty(self.py);
            for (key, value) in keys.iter().zip(values.iter()) {
                pairs.append(PyTuple::new(self.py, [key, value])?)?;
            }
            out.append(pairs)?;
        }
        Ok(out)
    }

    fn numbers(&self, array: &ArrayRef) -> PyResult<Bound<'py, PyList>> {
        macro_rules! numbers {
            ($($arrow:pat => $of:ty, $value:expr;)*) => {
                match array.data_type() {
                    $($arrow => each!(self, array, array.as_primitive::<$of>(), $value),)*
                    other => Err(pyo3::exceptions::PyTypeError::new_err(format!(
                        "values of {other} are no objects of Python"
                    ))),
                }
            };
        }
        use TimeUnit::{Microsecond as Us, Millisecond as Ms, Nanosecond as Ns, Second as S};
        let zone = match array.data_type() {
            DataType::Timestamp(_, zone) => zone.is_some(),
            _ => false,
        };
        let stamp = |micros: i128| self.stamp(micros, zone);
        let delta = |micros: i128| self.delta(micros);
        let time = |micros: i128| self.time(micros);
        numbers! {
            DataType::Int8 => Int8Type, |v: i8| self.any(v);
            DataType::Int16 => Int16Type, |v: i16| self.any(v);
            DataType::Int32 => Int32Type, |v: i32| self.any(v);
            DataType::Int64 => Int64Type, |v: i64| self.any(v);
            DataType::UInt8 => UInt8Type, |v: u8| self.any(v);
            DataType::UInt16 => UInt16Type, |v: u16| self.any(v);
            DataType::UInt32 => UInt32Type, |v: u32| self.any(v);
            DataType::UInt64 => UInt64Type, |v: u64| self.any(v);
            DataType::Float16 => Float16Type, |v: half::f16| self.any(v.to_f64());
            DataType::Float32 => Float32Type, |v: f32| self.any(v);
            DataType::Float64 => Float64Type, |v: f64| self.any(v);
            DataType::Date32 => Date32Type, |v: i32| self.date(i64::from(v));
            DataType::Date64 => Date64Type, |v: i64| self.date(v.div_euclid(86_400_000));
            DataType::Timestamp(S, _) => TimestampSecondType, |v: i64| stamp(i128::from(v) * 1_000_000);
            DataType::Timestamp(Ms, _) => TimestampMillisecondType, |v: i64| stamp(i128::from(v) * 1_000);
            DataType::Timestamp(Us, _) => TimestampMicrosecondType, |v: i64| stamp(i128::from(v));
            DataType::Timestamp(Ns, _) => TimestampNanosecondType, |v: i64| stamp(i128::from(v).div_euclid(1_000));
            DataType::Duration(S) => DurationSecondType, |v: i64| delta(i128::from(v) * 1_000_000);
            DataType::Duration(Ms) => DurationMillisecondType, |v: i64| delta(i128::from(v) * 1_000);
            DataType::Duration(Us) => DurationMicrosecondType, |v: i64| delta(i128::from(v));
            DataType::Duration(Ns) => DurationNanosecondType, |v: i64| delta(i128::from(v).div_euclid(1_000));
            DataType::Time32(S) => Time32SecondType, |v: i32| time(i128::from(v) * 1_000_000);
            DataType::Time32(Ms) => Time32MillisecondType, |v: i32| time(i128::from(v) * 1_000);
            DataType::Time64(Us) => Time64MicrosecondType, |v: i64| time(i128::from(v));
            DataType::Time64(Ns) => Time64NanosecondType, |v: i64| time(i128::from(v).div_euclid(1_000));
        }
    }

    /// A `datetime.date`, or the number of days if there is none so far away.
    fn date(&self, days: i64) -> PyResult<Bound<'py, PyAny>> {
        let date = self.times.delta.call1((days,)).and_then(|delta| self.times.day.add(delta));
        date.or_else(|_| self.any(days))
    }

    fn delta(&self, micros: i128) -> PyResult<Bound<'py, PyAny>> {
        self.times.delta.call1((0, 0, micros)).or_else(|_| self.any(micros))
    }

    /// A `datetime.datetime`, or the number of microseconds if there is none so far away.
    fn stamp(&self, micros: i128, utc: bool) -> PyResult<Bound<'py, PyAny>> {
        let stamp = self.times.delta.call1((0, 0, micros));
        let Ok(stamp) = stamp.and_then(|delta| self.times.epoch.add(delta)) else {
            return self.any(micros);
        };
        if !utc {
            return Ok(stamp);
        }
        let zone = PyDict::new(self.py);
        zone.set_item("tzinfo", &self.times.utc)?;
        stamp.call_method("replace", (), Some(&zone))
    }

    fn time(&self, micros: i128) -> PyResult<Bound<'py, PyAny>> {
        let (seconds, micros_left) = (micros.div_euclid(1_000_000), micros.rem_euclid(1_000_000));
        let (minutes, hours) = (seconds / 60, seconds / 3_600);
        let parts = (hours, minutes % 60, seconds % 60, micros_left);
        self.times.time.call1(parts).or_else(|_| self.any(micros))
    }
}
