use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Schema};
use marquetry::{ErrorKind, Reader};
use std::fs::File;
use std::sync::Arc;
fn plain(a: &ArrayRef) -> ArrayRef {
    match a.data_type() {
        DataType::Dictionary(..) => {
            let d = arrow_array::cast::AsArray::as_any_dictionary(a);
            arrow_select::take::take(d.values().as_ref(), d.keys(), None).unwrap()
        }
        _ => a.clone(),
    }
}
fn run() -> marquetry::Result<()> {
    let args: Vec<String> = std::env::args().collect();
    let mut r = Reader::open(&args[2])?;
    if args.iter().any(|a| a == "--int96") {
        r = r.int96(arrow_schema::TimeUnit::Microsecond);
    }
    if args.iter().any(|a| a == "--serial") {
        r = r.threads(1);
    }
    let schema = r.schema()?;
    let fields: Vec<Field> = schema
        .fields()
        .iter()
        .map(|f| match f.data_type() {
            DataType::Dictionary(_, v) => f.as_ref().clone().with_data_type((**v).clone()),
            _ => f.as_ref().clone(),
        })
        .collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, schema.metadata().clone()));
    let mut batches = r.batches()?;
    let mut out = Vec::new();
    while let Some(b) = batches.next_batch()? {
        let b2 = RecordBatch::try_new_with_options(
            schema.clone(),
            b.columns().iter().map(plain).collect(),
            &arrow_array::RecordBatchOptions::new().with_row_count(Some(b.num_rows())),
        )?;
        out.push(b2);
    }
    let f = File::create(&args[4]).unwrap();
    let mut w = arrow_ipc::writer::FileWriter::try_new(f, &schema)?;
    for b in out {
        w.write(&b)?;
    }
    w.finish()?;
    Ok(())
}
fn main() {
    if let Err(e) = run() {
        eprintln!("{e}");
        std::process::exit(match e.kind() {
            ErrorKind::Io | ErrorKind::Arrow => 1,
            ErrorKind::Usage => 2,
            ErrorKind::Crypto => 6,
            _ => 3,
        });
    }
}
