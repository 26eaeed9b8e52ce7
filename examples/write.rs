//! Writes a file with options and a setting for one column, and prints what was written: `cargo run
//! --example write -- FILE`.

use marquetry::{BloomOptions, Compression, Reader, WriteOptions, Writer};

fn main() -> marquetry::Result<()> {
    let scratch = std::env::temp_dir().join("marquetry-write.parquet");
    let path = std::env::args_os().nth(1).map_or(scratch, Into::into);
    let options = WriteOptions::new()
        .with_compression(Compression::Zstd(9))
        .with_row_group_rows(400)
        .with_key_value("made by", "examples/write.rs")
        .with_column("id", |column| column.with_bloom(BloomOptions::default().with_fpp(0.001)))
        .with_column("stops", |column| column.with_dictionary(false));

    let batches = Reader::open("testdata/trips.parquet")?.batches()?;
    let mut writer = Writer::create_with(&path, batches.schema(), options)?;
    for batch in batches {
        writer.write(&batch?)?;
    }
    let report = writer.finish()?;

    println!("{}: {} rows in {} bytes", path.display(), report.rows, report.bytes);
    for i in 0..report.row_groups() {
        let row_group = report.row_group(i)?;
        println!("{} rows at byte {}", row_group.rows, row_group.offset);
        for column in &row_group.columns {
            println!(
                "  {}: {} of {} bytes, {} nulls, {:?}",
                column.path,
                column.bytes,
                column.uncompressed_bytes,
                column.nulls,
                column.encodings
            );
        }
    }
    assert_eq!(Reader::open(&path)?.rows()?, report.rows);
    Ok(())
}
