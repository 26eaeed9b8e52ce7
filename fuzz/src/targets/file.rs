//! A whole file through the drivers: they agree, and what they give is valid.

use arrow_array::RecordBatch;
use bytes::Bytes;
use marquetry::{AsyncReader, Result};
use marquetry_testkit::mutants::paths::block_on;

use super::reading::{
    Rows, assert_agree, assert_same, assert_valid, limits, open, rows, within_memory,
};
use crate::input::{Input, Output};

pub fn run(data: &[u8]) {
    let mut input = Input::new(data);
    let (batch_rows, views) = (input.u8(), input.bool());
    let file = Bytes::copy_from_slice(input.rest());
    let Ok(reader) = within_memory(file.len(), || open(file.clone())) else { return };
    let reader = reader.views(views);
    let plain = within_memory(file.len(), || rows(&reader));
    let small = reader.clone().batch_rows(usize::from(batch_rows) + 1);
    assert_agree(&plain, &within_memory(file.len(), || rows(&small)), "small batches");
    if let Ok(Rows { is_all: false, .. }) = plain {
        return;
    }
    assert_agree(&plain, &rows(&reader.clone().threads(2)), "threads");
    let stream = block_on(async { stream(&file, views).await });
    assert_agree(&plain, &stream, "asynchronous");
    if let Ok(plain) = &plain {
        let count = reader.count().expect("a count");
        assert_eq!(count, plain.count() as u64);
        last_rows(&reader, &plain.batches);
    }
}

/// Rows that are reached by skipping are the same.
fn last_rows(reader: &marquetry::Reader, batches: &[RecordBatch]) {
    let Some(all) = super::reading::one(batches) else { return };
    let skipped = all.num_rows() / 2;
    let found = rows(&reader.clone().offset(skipped as u64)).expect("the rows after an offset");
    let expected = all.slice(skipped, all.num_rows() - skipped);
    assert_same(&found.batches, &[expected], "after an offset");
}

async fn stream(file: &Bytes, views: bool) -> Result<Rows> {
    use futures_util::TryStreamExt;
    let reader = AsyncReader::open_async_within(file.clone(), limits()).await?;
    let mut batches = reader.threads(1).views(views).stream()?;
    let mut out = Rows { batches: Vec::new(), is_all: true };
    while let Some(batch) = batches.try_next().await? {
        assert_valid(&batch);
        out.batches.push(batch);
    }
    Ok(out)
}

pub fn seeds() -> Vec<Vec<u8>> {
    let files = crate::seeds::files().into_iter().chain(crate::seeds::pages());
    files.map(|file| Output::default().u8(6).u8(0).rest(&file).bytes()).collect()
}
