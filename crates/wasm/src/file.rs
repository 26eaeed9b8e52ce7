//! [`File`]: an open file.

use arrow_schema::TimeUnit;
use marquetry::{AsyncReader, Error, Limits, Predicate, Reader, Result};
use wasm_bindgen::prelude::{JsValue, wasm_bindgen};

use crate::batches::Batches;
use crate::error::{count, to_js};
use crate::keys::Keys;
use crate::source::{JsSource, Source};
use crate::{facts, map};

/// An open Parquet file.
#[wasm_bindgen]
#[derive(Debug)]
pub struct File {
    reader: AsyncReader,
}

/// Numbers of JavaScript that may be missing.
type Count = Option<f64>;

#[wasm_bindgen]
impl File {
    /// Opens the file that `source` provides; reads take at most `memory` bytes. INT96 timestamps
    /// have the unit `int96`. With `keys`, the file must be encrypted, unless they allow others.
    ///
    /// # Errors
    /// If it cannot be read, or is no Parquet file.
    pub async fn open(
        source: Source,
        memory: Count,
        int96: Option<String>,
        keys: Option<Keys>,
    ) -> std::result::Result<File, JsValue> {
        Self::open_within(source, memory, int96, keys).await.map_err(to_js)
    }

    /// Number of rows.
    ///
    /// # Errors
    /// If the footer contradicts itself.
    #[expect(clippy::cast_precision_loss, reason = "JavaScript has no other numbers")]
    pub fn rows(&self) -> std::result::Result<f64, JsValue> {
        Ok(self.reader.file_rows().map_err(to_js)? as f64)
    }

    /// The schema as JSON.
    ///
    /// # Errors
    /// If Arrow has no type for a column.
    pub fn schema(&self) -> std::result::Result<String, JsValue> {
        let arrow = self.reader.schema();
        let schema = arrow.and_then(|arrow| facts::schema(self.reader.metadata(), &arrow));
        Ok(schema.map_err(to_js)?.to_string())
    }

    /// Facts of the footer as JSON.
    ///
    /// # Errors
    /// If the footer is broken.
    pub fn info(&self) -> std::result::Result<String, JsValue> {
        Ok(facts::info(self.reader.metadata()).map_err(to_js)?.to_string())
    }

    /// The value of a key of the footer.
    #[wasm_bindgen(js_name = keyValue)]
    pub fn key_value(&self, key: &str) -> Option<String> {
        let mut pairs = self.reader.metadata().footer().key_values().iter();
        pairs.find(|pair| pair.key == key)?.value.clone()
    }

    /// A picture of the layout as SVG, with `name` as its title.
    ///
    /// # Errors
    /// If the footer is broken.
    pub fn map(&self, name: &str) -> std::result::Result<String, JsValue> {
        map::svg(self.reader.metadata(), name).map_err(to_js)
    }

    /// Starts a read.
    ///
    /// # Errors
    /// If there is no such column, or the condition is no condition.
    #[wasm_bindgen(js_name = read)]
    pub fn read(
        &self,
        columns: Option<Vec<String>>,
        condition: Option<String>,
        limit: Count,
        offset: Count,
        batch_rows: Count,
    ) -> std::result::Result<Batches, JsValue> {
        let reader = self.selecting(columns, condition, limit, offset, batch_rows);
        let stream = reader.and_then(|reader| reader.stream());
        stream.map(Batches::new).map_err(to_js)
    }

    /// Counts the rows that meet a condition.
    ///
    /// # Errors
    /// As [`File::read`], and as its batches.
    pub async fn count(&self, condition: Option<String>) -> std::result::Result<f64, JsValue> {
        let reader = self.selecting(None, condition, None, None, None).map_err(to_js)?;
        let rows = reader.count().await.map_err(to_js)?;
        #[expect(clippy::cast_precision_loss, reason = "JavaScript has no other numbers")]
        Ok(rows as f64)
    }
}

impl File {
    async fn open_within(
        source: Source,
        memory: Count,
        int96: Option<String>,
        keys: Option<Keys>,
    ) -> Result<Self> {
        let unit = match int96.as_deref() {
            None | Some("ns") => TimeUnit::Nanosecond,
            Some("us") => TimeUnit::Microsecond,
            Some("ms") => TimeUnit::Millisecond,
            Some(other) => {
                let text = format_args!("int96 is \"ns\", \"us\" or \"ms\", not {other:?}");
                return Err(Error::usage(text));
            }
        };
        let memory = memory.map(|bytes| count("memory", bytes)).transpose()?.unwrap_or(MEMORY);
        let mut limits = Limits::default();
        limits.memory_bytes = memory;
        let source = JsSource::start(source);
        let reader = match keys {
            Some(keys) => Reader::open_async_encrypted(source, limits, &keys.decryption()).await?,
            None => Reader::open_async_within(source, limits).await?,
        };
        Ok(Self { reader: reader.int96(unit) })
    }

    /// The reader of some columns and rows.
    fn selecting(
        &self,
        columns: Option<Vec<String>>,
        condition: Option<String>,
        limit: Count,
        offset: Count,
        batch_rows: Count,
    ) -> Result<AsyncReader> {
        let mut reader = self.reader.clone();
        if let Some(columns) = columns {
            reader = reader.project(columns)?;
        }
        if let Some(condition) = condition {
            reader = reader.try_filter(Predicate::parse(&condition)?)?;
        }
        if let Some(rows) = limit {
            reader = reader.limit(count("limit", rows)?);
        }
        if let Some(rows) = offset {
            reader = reader.offset(count("offset", rows)?);
        }
        if let Some(rows) = batch_rows {
            let rows = count("batchRows", rows)?;
            reader = reader.batch_rows(usize::try_from(rows).unwrap_or(usize::MAX));
        }
        Ok(reader)
    }
}

/// Memory of a read: WebAssembly has 4 GiB in all, and batches as bytes take some of it.
const MEMORY: u64 = 1 << 30;
