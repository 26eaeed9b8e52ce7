//! Writes a million points, and reads those in a box: `cargo run --release --example geo --
//! 4.7 52.2 5.1 52.5`. Only row groups whose own box meets it are read.

use std::sync::Arc;

use marquetry::arrow_array::cast::AsArray;
use marquetry::arrow_array::{ArrayRef, BinaryArray, RecordBatch};
use marquetry::arrow_schema::{DataType, Field, Schema};
use marquetry::geo::{Rectangle, to_wkt};
use marquetry::{Reader, WriteOptions, Writer, col};

fn main() -> marquetry::Result<()> {
    let side = |i: usize, or: f64| {
        std::env::args().nth(i).and_then(|text| text.parse().ok()).unwrap_or(or)
    };
    let rectangle = Rectangle::new(side(1, 4.7), side(2, 52.2), side(3, 5.1), side(4, 52.5));

    // GeoArrow's extension type makes it GEOMETRY; its metadata, the coordinate system.
    let marks = [
        ("ARROW:extension:name", "geoarrow.wkb"),
        ("ARROW:extension:metadata", "{\"crs\":\"OGC:CRS84\"}"),
    ];
    let marks = marks.map(|(key, value)| (key.to_owned(), value.to_owned()));
    let field = Field::new("place", DataType::Binary, false).with_metadata(marks.into());
    let schema = Arc::new(Schema::new(vec![field]));
    let path = std::env::temp_dir().join("marquetry-geo.parquet");
    let options = WriteOptions::new().with_row_group_rows(50_000);
    let mut writer = Writer::create_with(&path, schema.clone(), options)?;
    // A strip of the earth after the other, so that the boxes of row groups are small.
    for strip in 0..20 {
        let point = |i: u32| {
            let x = f64::from(strip) * 18.0 - 180.0 + f64::from(i % 500) * 0.036;
            let y = f64::from(i / 500) * 1.8 - 90.0;
            [&[1, 1, 0, 0, 0][..], &x.to_le_bytes(), &y.to_le_bytes()].concat()
        };
        let points: ArrayRef = Arc::new(BinaryArray::from_iter_values((0..50_000).map(point)));
        writer.write(&RecordBatch::try_new(schema.clone(), vec![points])?)?;
    }
    writer.finish()?;

    let reader = Reader::open(&path)?.filter(col("place").intersects(rectangle));
    println!("{}", reader.explain()?);
    for batch in reader.batches()? {
        for place in batch?.column(0).as_binary::<i32>().iter().flatten() {
            println!("{}", to_wkt(place, 80)?);
        }
    }
    Ok(())
}
