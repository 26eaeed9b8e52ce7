//! Reads some columns, nested ones among them, and some rows: `cargo run --example project`.

use marquetry::Reader;
use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::types::Int64Type;

fn main() -> marquetry::Result<()> {
    let reader = Reader::open("testdata/trips.parquet")?
        .project(["id", "stops.list.element.name"])?
        .offset(500)
        .limit(5)
        .threads(1);
    println!("{}", reader.schema()?);
    let mut batches = reader.batches()?;
    while let Some(batch) = batches.next_batch()? {
        let (ids, stops) =
            (batch.column(0).as_primitive::<Int64Type>(), batch.column(1).as_list::<i32>());
        for row in 0..batch.num_rows() {
            println!("trip {} made {} stops", ids.value(row), stops.value_length(row));
        }
    }
    Ok(())
}
