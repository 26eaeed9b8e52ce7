//! Tests the public interface as users meet it: the stages driven by hand, and the traits of every
//! public type.

use std::fmt::Debug;
use std::ops::Range;

use bytes::Bytes;
use marquetry::arrow_array::RecordBatch;
use marquetry::io::{PathSink, Source, WriteSink};
use marquetry::read::{
    Footer, FooterTail, Plan, Progress, ReadOptions, RowGroupDecoder, RowGroupOpening, RowRange,
    Step, Tail,
};
use marquetry::schema::{ArrowOptions, Leaf, Projection, Schema};
use marquetry::{
    Batches, EncodedRowGroup, Error, Export, Limits, Metadata, Predicate, Reader, RowGroupEncoder,
    RowSelection, WriteOptions, WriteReport, Writer, col,
};

use crate::support::testdata;

/// The batches of a file, by its stages alone: nothing of the library fetches a byte.
fn drive(file: &Bytes, options: &ReadOptions) -> marquetry::Result<Vec<RecordBatch>> {
    let fetch = |range: &Range<u64>| file.slice(range.start as usize..range.end as usize);
    let fetch_all = |needs: &[Range<u64>]| needs.iter().map(fetch).collect::<Vec<_>>();
    let limits = Limits::default();
    let tail = Tail::new(file.len() as u64)?;
    let bytes = fetch_all(tail.needs());
    let found: FooterTail = tail.supply(&bytes, &limits)?;
    let missing = found.needs().as_ref().map(fetch);
    let footer: Footer = found.supply(missing, &limits)?;
    let plan: Plan = footer.plan(options, file.len() as u64, None)?;
    let mut batches = Vec::new();
    for range in plan.ranges() {
        let mut opening = RowGroupOpening::new(&plan, range, &Progress::default())?;
        let row_group = loop {
            let bytes = fetch_all(opening.needs());
            match opening.supply(bytes)? {
                Step::NeedsMore(more) => opening = more,
                Step::Done(row_group) => break row_group,
            }
        };
        let Some(mut row_group) = row_group else { continue };
        while let Some(batch) = row_group.next_batch()? {
            batches.push(batch.batch);
        }
    }
    Ok(batches)
}

#[test]
fn the_stages_give_the_rows_of_a_file_without_a_driver() {
    let file = Bytes::from(std::fs::read(testdata("trips.parquet")).expect("a file"));
    let batches = drive(&file, &ReadOptions::default()).expect("rows");
    let expected = Reader::new(file.clone()).expect("a footer").threads(1).batches();
    let expected = expected.expect("a plan").collect::<Result<Vec<_>, _>>().expect("rows");
    let rows = |batches: &[RecordBatch]| batches.iter().map(RecordBatch::num_rows).sum::<usize>();
    assert_eq!(rows(&batches), 1_000);
    assert_eq!(rows(&expected), 1_000);
    assert_eq!(batches[0].slice(0, 1), expected[0].slice(0, 1));
    let mut options = ReadOptions::default();
    options.projection = Projection::names(["id"]);
    options.filter = Some(col("id").lt(10));
    let filtered = drive(&file, &options).expect("rows");
    let expected = Reader::new(file).expect("a footer").project(["id"]).expect("a column");
    let expected = expected.filter(col("id").lt(10)).count().expect("a count");
    assert_eq!(rows(&filtered) as u64, expected);
    assert!(filtered.iter().all(|batch| batch.num_columns() == 1));
}

#[test]
fn public_types_cross_threads_and_can_be_printed() {
    fn shared<T: Send + Sync + Debug>() {}
    fn sent<T: Send + Debug>() {}
    fn cloned<T: Clone>() {}
    shared::<Error>();
    shared::<Footer>();
    shared::<Leaf>();
    shared::<Limits>();
    shared::<Metadata>();
    shared::<Plan>();
    shared::<Predicate>();
    shared::<Progress>();
    shared::<ReadOptions>();
    shared::<Reader>();
    shared::<RowGroupEncoder>();
    shared::<RowRange>();
    shared::<RowSelection>();
    shared::<Schema>();
    shared::<WriteOptions>();
    shared::<WriteReport>();
    sent::<Batches>();
    sent::<EncodedRowGroup>();
    sent::<Export>();
    sent::<RowGroupOpening>();
    sent::<PathSink>();
    sent::<RowGroupDecoder>();
    sent::<Writer>();
    sent::<Writer<WriteSink<Vec<u8>>>>();
    cloned::<ArrowOptions>();
    cloned::<Footer>();
    cloned::<Metadata>();
    cloned::<Plan>();
    cloned::<Predicate>();
    cloned::<Reader>();
    cloned::<ReadOptions>();
    cloned::<RowGroupEncoder>();
    cloned::<WriteOptions>();
    let source: Box<dyn Source> = Box::new(Bytes::new());
    assert_eq!(source.len().expect("a length"), 0);
}
