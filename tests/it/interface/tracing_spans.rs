//! Tests the spans of a read and a write, as a subscriber sees them.

use std::sync::{Arc, Mutex};

use marquetry::{Reader, WriteOptions, Writer};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::support::numbered::rows;

/// Keeps the names of the spans that are entered.
#[derive(Clone, Default)]
struct Names {
    entered: Arc<Mutex<Vec<&'static str>>>,
    made: Arc<Mutex<Vec<&'static str>>>,
}

impl Subscriber for Names {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "marquetry"
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        let mut made = self.made.lock().unwrap();
        made.push(span.metadata().name());
        Id::from_u64(made.len() as u64)
    }

    fn enter(&self, span: &Id) {
        let place = usize::try_from(span.into_u64()).unwrap() - 1;
        let name = self.made.lock().unwrap()[place];
        self.entered.lock().unwrap().push(name);
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn event(&self, _: &Event<'_>) {}
    fn exit(&self, _: &Id) {}
}

#[test]
fn stages_of_a_read_and_a_write_are_spans() {
    // With one subscriber alone, a place that another test comes by first, on a thread without a
    // subscriber, is taken to interest none.
    let _another = tracing::Dispatch::new(Names::default());
    let names = Names::default();
    tracing::subscriber::with_default(names.clone(), || {
        let options = WriteOptions::new().with_row_group_rows(1_000);
        let sink = marquetry::io::WriteSink(Vec::new());
        let mut writer = Writer::new(sink, rows(0, 1).schema(), options).unwrap();
        writer.write(&rows(0, 2_000)).unwrap();
        let (_, file) = writer.into_inner().unwrap();
        let entered = std::mem::take(&mut *names.entered.lock().unwrap());
        assert_eq!(entered, ["write_row_group", "write_row_group", "finish"]);
        let reader = Reader::new(bytes::Bytes::from(file)).unwrap().threads(1);
        let read: usize = reader.batches().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
        assert_eq!(read, 2_000);
    });
    let entered = names.entered.lock().unwrap();
    assert_eq!(entered[..4], ["open", "plan", "row_group", "decode"]);
    assert_eq!(entered.iter().filter(|name| **name == "row_group").count(), 2);
}
