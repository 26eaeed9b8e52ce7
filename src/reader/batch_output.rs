//! [`BatchOutput`]: what stands between a driver and the caller, blocking or not.

use arrow_array::RecordBatch;

use crate::error::Result;
use crate::read::{Coalescer, Plan};

/// Between the driver and the caller: with a filter, joins small batches, and applies offset and
/// limit to the rows that pass.
pub(super) struct BatchOutput {
    /// Where the rows that pass a filter wait.
    gather: Option<Coalescer>,
    /// The last result, once the driver is at its end: an error is given once, then `None`.
    end: Option<Result<()>>,
}

impl BatchOutput {
    pub(super) fn new(plan: &Plan) -> Self {
        let gather = plan.options().filter.is_some().then(|| Coalescer::new(plan));
        Self { gather, end: None }
    }

    /// Whether the driver is not needed any more.
    pub(super) fn is_done(&self) -> bool {
        self.end.is_some() || self.gather.as_ref().is_some_and(Coalescer::is_full)
    }

    /// The next result, if it does not come from the driver; `None` if it does.
    pub(super) fn end(&mut self) -> Option<Result<Option<RecordBatch>>> {
        if self.end.is_none() && self.gather.as_ref().is_some_and(Coalescer::is_full) {
            return self.take(Ok(None));
        }
        let end = self.end.as_mut()?;
        Some(std::mem::replace(end, Ok(())).map(|()| None))
    }

    /// Takes what the driver gave, `Ok(None)` at its end, and says what to give out: `None` if
    /// nothing yet.
    pub(super) fn take(
        &mut self,
        next: Result<Option<RecordBatch>>,
    ) -> Option<Result<Option<RecordBatch>>> {
        let end = match (next, &mut self.gather) {
            (Ok(Some(batch)), None) => return Some(Ok(Some(batch))),
            (Ok(Some(batch)), Some(gather)) => match gather.push(batch) {
                Ok(None) => return None,
                Ok(given) => return Some(Ok(given)),
                Err(e) => Err(e),
            },
            (Ok(None), _) => Ok(()),
            (Err(e), _) => Err(e),
        };
        self.end = Some(end);
        // Rows before the fault are given first.
        match self.gather.take().map(|mut gather| gather.take()) {
            Some(Ok(Some(waiting))) => Some(Ok(Some(waiting))),
            Some(Err(e)) => {
                self.end = Some(Ok(()));
                Some(Err(e))
            }
            Some(Ok(None)) | None => self.end(),
        }
    }
}
