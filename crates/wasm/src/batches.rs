//! [`Batches`]: the batches of a read, as Arrow IPC streams or as text.

use std::sync::Arc;

use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_buffer::NullBuffer;
use arrow_cast::cast;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, DataType, FieldRef, SchemaRef};
use futures_util::TryStreamExt;
use marquetry::{BatchStream, Error, Result};
use serde_json::Value;
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

use crate::error::to_js;
use crate::text::{Start, shown};

/// The batches of a read, in order.
#[wasm_bindgen]
#[derive(Debug)]
pub struct Batches {
    stream: BatchStream,
    schema: SchemaRef,
}

#[wasm_bindgen]
impl Batches {
    /// The next batch as an Arrow IPC stream of its own, or nothing after the last.
    ///
    /// # Errors
    /// Whatever is wrong with the file or its source.
    pub async fn next(&mut self) -> std::result::Result<Option<Vec<u8>>, JsValue> {
        let Some(batch) = self.next_batch().await.map_err(to_js)? else { return Ok(None) };
        ipc(&self.schema, &[batch]).map(Some).map_err(to_js)
    }

    /// All batches that are left, as one Arrow IPC stream.
    ///
    /// # Errors
    /// As [`Batches::next`].
    pub async fn rest(&mut self) -> std::result::Result<Vec<u8>, JsValue> {
        self.all().await.map_err(to_js)
    }

    /// The next batch as JSON: a list of rows, each a list of texts and nulls.
    ///
    /// # Errors
    /// As [`Batches::next`].
    #[wasm_bindgen(js_name = nextText)]
    pub async fn next_text(&mut self) -> std::result::Result<Option<String>, JsValue> {
        let Some(batch) = self.next_batch().await.map_err(to_js)? else { return Ok(None) };
        let rows = rows(&batch).map_err(|e| to_js(Error::from(e)))?;
        Ok(Some(Value::from(rows).to_string()))
    }
}

impl Batches {
    pub(crate) fn new(stream: BatchStream) -> Self {
        Self { schema: stream.schema(), stream }
    }

    async fn next_batch(&mut self) -> Result<Option<RecordBatch>> {
        self.stream.try_next().await
    }

    async fn all(&mut self) -> Result<Vec<u8>> {
        let mut writer = StreamWriter::try_new(Vec::new(), &self.schema)?;
        while let Some(batch) = self.next_batch().await? {
            writer.write(&batch)?;
        }
        Ok(writer.into_inner()?)
    }
}

fn ipc(schema: &SchemaRef, batches: &[RecordBatch]) -> Result<Vec<u8>> {
    let mut writer = StreamWriter::try_new(Vec::new(), schema)?;
    for batch in batches {
        writer.write(batch)?;
    }
    Ok(writer.into_inner()?)
}

/// The rows as text for people; the start of what is long.
fn rows(batch: &RecordBatch) -> std::result::Result<Vec<Vec<Option<String>>>, ArrowError> {
    let options = FormatOptions::default();
    let columns = batch.columns().iter().map(in_utc).collect::<std::result::Result<Vec<_>, _>>()?;
    let shown_columns = columns
        .iter()
        // The nulls of dictionaries and run ends, too.
        .map(|of| Ok((of.logical_nulls(), ArrayFormatter::try_new(of, &options)?)))
        .collect::<std::result::Result<Vec<_>, ArrowError>>()?;
    let row = |row| {
        let cell = |(nulls, values): &(Option<NullBuffer>, ArrayFormatter<'_>)| {
            if nulls.as_ref().is_some_and(|nulls| nulls.is_null(row)) {
                return None;
            }
            let mut start = Start::default();
            match values.value(row).write(&mut start) {
                Ok(()) => {}
                // The writer wants no more.
                Err(_) if start.text.ends_with('…') => {}
                // A value out of the range of its type, say: the others are shown.
                Err(error) => return Some(shown(&format!("({error})")).into_owned()),
            }
            Some(shown(&start.text).into_owned())
        };
        shown_columns.iter().map(cell).collect()
    };
    Ok((0..batch.num_rows()).map(row).collect())
}

/// The array with instants in UTC: the names of zones are in a database that a page does not load.
fn in_utc(array: &ArrayRef) -> std::result::Result<ArrayRef, ArrowError> {
    match utc_type(array.data_type()) {
        Some(data_type) => cast(array, &data_type),
        None => Ok(array.clone()),
    }
}

/// The type with another zone, if it has one.
fn utc_type(data_type: &DataType) -> Option<DataType> {
    let field = |of: &FieldRef| {
        let data_type = utc_type(of.data_type())?;
        Some(Arc::new(of.as_ref().clone().with_data_type(data_type)))
    };
    Some(match data_type {
        DataType::Timestamp(unit, Some(_)) => DataType::Timestamp(*unit, Some("+00:00".into())),
        DataType::List(of) => DataType::List(field(of)?),
        DataType::LargeList(of) => DataType::LargeList(field(of)?),
        DataType::FixedSizeList(of, n) => DataType::FixedSizeList(field(of)?, *n),
        DataType::Map(of, sorted) => DataType::Map(field(of)?, *sorted),
        DataType::Dictionary(keys, values) => {
            DataType::Dictionary(keys.clone(), Box::new(utc_type(values)?))
        }
        DataType::Struct(fields) => {
            let others: Vec<_> = fields.iter().map(field).collect();
            if others.iter().all(Option::is_none) {
                return None;
            }
            let all =
                fields.iter().zip(others).map(|(of, other)| other.unwrap_or_else(|| of.clone()));
            DataType::Struct(all.collect())
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use arrow_array::{Int64Array, StringArray, StructArray, TimestampMicrosecondArray};

    use super::*;

    #[test]
    fn instants_are_shown_in_utc_at_every_depth() {
        let zone = |zone: &str| {
            let instants = TimestampMicrosecondArray::from(vec![1_000_000]).with_timezone(zone);
            Arc::new(instants) as ArrayRef
        };
        let amsterdam = zone("Europe/Amsterdam");
        let field = arrow_schema::Field::new("at", amsterdam.data_type().clone(), true);
        let inner = StructArray::from(vec![(Arc::new(field), amsterdam.clone())]);
        let all = [("a", zone("UTC")), ("b", amsterdam), ("c", Arc::new(inner) as ArrayRef)];
        let found = rows(&RecordBatch::try_from_iter(all).unwrap()).unwrap();
        let text = |text: &str| Some(text.to_owned());
        let instant = "1970-01-01T00:00:01Z";
        assert_eq!(found, [[text(instant), text(instant), text(&format!("{{at: {instant}}}"))]]);
    }

    #[test]
    fn rows_are_text_and_nulls() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let long = "x".repeat(1_000);
        let names: ArrayRef = Arc::new(StringArray::from(vec!["<b>\u{202e}", &long]));
        let batch = RecordBatch::try_from_iter([("n", numbers), ("s", names)]).unwrap();
        let text = |text: &str| Some(text.to_owned());
        let cut = format!("{}…", "x".repeat(300));
        let expected = vec![vec![text("1"), text("<b>\\u{202e}")], vec![None, Some(cut)]];
        assert_eq!(rows(&batch).unwrap(), expected);
    }
}
