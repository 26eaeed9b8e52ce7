//! [`Batches`]: the batches of a read, as Arrow IPC streams or as text.

use arrow_array::RecordBatch;
use arrow_cast::display::{ArrayFormatter, FormatOptions};
use arrow_ipc::writer::StreamWriter;
use arrow_schema::{ArrowError, SchemaRef};
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
    let columns = batch.columns().iter();
    let shown_columns = columns
        .map(|column| Ok((column, ArrayFormatter::try_new(column, &options)?)))
        .collect::<std::result::Result<Vec<_>, ArrowError>>()?;
    let row = |row| {
        let cell = |(column, values): &(&arrow_array::ArrayRef, ArrayFormatter<'_>)| {
            // Those of dictionaries and run ends, too.
            if column.logical_nulls().is_some_and(|nulls| nulls.is_null(row)) {
                return Ok(None);
            }
            let mut start = Start::default();
            match values.value(row).write(&mut start) {
                Ok(()) => {}
                // The writer wants no more.
                Err(_) if start.text.ends_with('…') => {}
                Err(error) => return Err(error),
            }
            Ok(Some(shown(&start.text).into_owned()))
        };
        shown_columns.iter().map(cell).collect()
    };
    (0..batch.num_rows()).map(row).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, Int64Array, StringArray};

    use super::*;

    #[test]
    fn rows_are_text_and_nulls() {
        let numbers: ArrayRef = Arc::new(Int64Array::from(vec![Some(1), None]));
        let long = "x".repeat(1_000);
        let names: ArrayRef = Arc::new(StringArray::from(vec!["<b>\u{202e}", &long]));
        let batch = RecordBatch::try_from_iter([("n", numbers), ("s", names)]).unwrap();
        let text = |text: &str| Some(text.to_owned());
        let cut = format!("{}…", "x".repeat(300));
        let expected = vec![
            vec![text("1"), text("<b>\\u{202e}")],
            vec![None, Some(cut)],
        ];
        assert_eq!(rows(&batch).unwrap(), expected);
    }
}
