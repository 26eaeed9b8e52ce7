//! Turns JSON events into a VARIANT column that is shredded while it is written; then reads one
//! path of the values, and selects rows by another.

use std::sync::Arc;

use marquetry::arrow_array::{RecordBatch, cast::AsArray, types::Int64Type};
use marquetry::arrow_schema::{DataType, Schema};
use marquetry::variant::{VariantArray, VariantArrayBuilder, VariantInference, VariantShredding};
use marquetry::{Reader, WriteOptions, Writer, col};

fn main() -> marquetry::Result<()> {
    let mut events = VariantArrayBuilder::new();
    for i in 0..10_000 {
        let kind = ["view", "click", "buy"][i % 3];
        events.append_json(&format!(r#"{{"event":"{kind}","user":{{"id":{i}}},"tags":["a"]}}"#))?;
    }
    let schema = Arc::new(Schema::new(vec![VariantArray::field("payload", false)]));
    let batch = RecordBatch::try_new(schema.clone(), vec![Arc::new(events.finish()?)])?;

    let path = std::env::temp_dir().join(format!("marquetry-variant-{}", std::process::id()));
    let infer = VariantShredding::Infer(VariantInference::new());
    let options = WriteOptions::new().with_shredding("payload", infer);
    let mut writer = Writer::create_with(&path, schema, options)?;
    writer.write(&batch)?;
    let report = writer.finish()?;
    for (column, shape) in &report.shapes {
        println!("{column} was shredded into {shape}");
    }

    // Two leaves of the column are read: that of the id, and that of the event.
    let reader = Reader::open(&path)?
        .project::<&str>([])?
        .variant_get("payload", "$.user.id".parse()?, DataType::Int64, "user")
        .filter(col("payload").variant_get("$.event".parse()?, DataType::Utf8).eq("buy"));
    let mut sum = 0;
    for batch in reader.batches()? {
        sum += batch?.column(0).as_primitive::<Int64Type>().values().iter().sum::<i64>();
    }
    println!("the ids of those who bought add up to {sum}");
    std::fs::remove_file(&path).ok();
    Ok(())
}
