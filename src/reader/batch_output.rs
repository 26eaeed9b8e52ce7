//! [`BatchOutput`] passes the batches of a driver, blocking or not, to the caller.

use std::fmt;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use crate::error::{Error, Result};
use crate::read::{Coalescer, Plan};

/// Between the driver and the caller: with a filter, joins small batches, and applies offset and
/// limit to the rows that pass. Errors name the file.
pub(super) struct BatchOutput {
    schema: SchemaRef,
    file_name: Option<Arc<str>>,
    /// Where the rows that pass a filter wait.
    coalescer: Option<Coalescer>,
    /// The last result, once the driver is at its end: an error is given once, then `None`.
    end: Option<Result<()>>,
}

impl BatchOutput {
    pub(super) fn new(plan: &Plan) -> Self {
        let coalescer = plan.options().filter.is_some().then(|| Coalescer::new(plan));
        let (schema, file_name) = (plan.schema().clone(), plan.file_name().cloned());
        Self { schema, file_name, coalescer, end: None }
    }

    /// The schema of the batches.
    pub(super) fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Formats the owner of the batches, a value of the type `name`.
    pub(super) fn fmt_as(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(name)
            .field("schema", &self.schema)
            .field("file_name", &self.file_name)
            .finish_non_exhaustive()
    }

    /// Whether the driver is not needed any more.
    pub(super) fn is_done(&self) -> bool {
        self.end.is_some() || self.coalescer.as_ref().is_some_and(Coalescer::is_full)
    }

    /// The next result, if it does not come from the driver; `None` if it does. To be asked before
    /// the driver.
    pub(super) fn end(&mut self) -> Option<Result<Option<RecordBatch>>> {
        if let Some(batch) = self.coalescer.as_mut().and_then(Coalescer::next) {
            return Some(Ok(Some(batch)));
        }
        if self.end.is_none() && self.coalescer.as_ref().is_some_and(Coalescer::is_full) {
            return self.take(Ok(None));
        }
        let end = self.end.as_mut()?;
        let given = std::mem::replace(end, Ok(())).map(|()| None);
        Some(given.map_err(|e| self.name(e)))
    }

    /// Takes the batch that the driver returned, `Ok(None)` at its end, and returns the batch for
    /// the caller: `None` if there is none yet.
    pub(super) fn take(
        &mut self,
        next: Result<Option<RecordBatch>>,
    ) -> Option<Result<Option<RecordBatch>>> {
        let end = match (next, &mut self.coalescer) {
            (Ok(Some(batch)), None) => return Some(Ok(Some(batch))),
            (Ok(Some(batch)), Some(coalescer)) => match coalescer.push(batch) {
                Ok(None) => return None,
                Ok(given) => return Some(Ok(given)),
                Err(e) => Err(e),
            },
            (Ok(None), _) => Ok(()),
            (Err(e), _) => Err(e),
        };
        // Rows before the fault are given first; if they cannot be joined, the first error counts.
        match self.coalescer.take().map_or(Ok(None), |mut coalescer| coalescer.take()) {
            Ok(Some(waiting)) => {
                self.end = Some(end);
                return Some(Ok(Some(waiting)));
            }
            Ok(None) => self.end = Some(end),
            Err(e) => self.end = Some(end.and(Err(e))),
        }
        self.end()
    }

    fn name(&self, error: Error) -> Error {
        match &self.file_name {
            Some(name) => error.at_file(name.clone()),
            None => error,
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow_array::types::Int32Type;
    use arrow_array::{ArrayRef, DictionaryArray, Int64Array, StringArray};

    use super::*;
    use crate::error::{ErrorKind, LimitKind};
    use crate::{Reader, col};

    fn plan(memory: u64) -> Plan {
        let reader = Reader::open("testdata/trips.parquet").unwrap().memory(memory);
        reader.filter(col("id").is_not_null()).plan().unwrap()
    }

    fn batch(column: impl arrow_array::Array + 'static) -> RecordBatch {
        RecordBatch::try_from_iter([("v", Arc::new(column) as ArrayRef)]).unwrap()
    }

    fn coded(value: &str) -> RecordBatch {
        batch([value; 100].into_iter().collect::<DictionaryArray<Int32Type>>())
    }

    #[test]
    fn rows_that_wait_are_counted_whatever_was_given_before() {
        let plan = plan(1 << 20);
        let mut output = BatchOutput::new(&plan);
        for i in 0..3 {
            let given = output.take(Ok(Some(coded(&i.to_string()))));
            assert_eq!(given.is_some(), i > 0, "other dictionaries are not joined");
            assert!(output.end().is_none());
            assert!(plan.budget().used() > 0, "batch {i} waits");
        }
    }

    #[test]
    fn rows_that_no_memory_is_left_for_do_not_wait() {
        let plan = plan(1 << 20);
        let mut output = BatchOutput::new(&plan);
        let numbers = |n| batch(Int64Array::from_iter_values(0..n));
        assert!(output.take(Ok(Some(numbers(100)))).is_none());
        let left = plan.budget().cap() - plan.budget().used();
        let held = plan.budget().take(usize::try_from(left).unwrap()).unwrap();
        let given = output.take(Ok(Some(numbers(16_000)))).unwrap().unwrap();
        assert_eq!(given, Some(numbers(100)));
        assert_eq!(output.end().unwrap().unwrap(), Some(numbers(16_000)));
        assert!(output.end().is_none());
        assert_eq!(plan.budget().used(), held.bytes());
    }

    #[test]
    fn the_error_that_ended_the_driver_is_given_even_if_rows_before_it_cannot_be_joined() {
        let mut output = BatchOutput::new(&plan(1 << 20));
        assert!(output.take(Ok(Some(batch(Int64Array::from(vec![1]))))).is_none());
        assert!(output.take(Ok(Some(batch(StringArray::from(vec!["a"]))))).is_none());
        let error = Error::limit(LimitKind::Page, "the first error");
        let given = output.take(Err(error)).unwrap().unwrap_err();
        assert_eq!(given.kind(), ErrorKind::Limit(LimitKind::Page), "{given}");
        assert!(output.end().unwrap().unwrap().is_none());
    }
}
