//! Looks at the metadata of a file, and reads none of its pages: `cargo run --example metadata --
//! FILE`.

use marquetry::Reader;

fn main() -> marquetry::Result<()> {
    let path = std::env::args().nth(1).unwrap_or_else(|| "testdata/trips.parquet".to_owned());
    let reader = Reader::open(path)?;
    let footer = reader.metadata();
    println!("{}", footer.schema());
    for row_group in 0..footer.row_groups() {
        println!("row group {row_group}: {} rows", footer.row_group_rows(row_group)?);
        for leaf in 0..footer.schema().leaves_len() {
            // Decoded now, on demand.
            let chunk = footer.column_chunk(row_group, leaf)?;
            if let Some(meta) = chunk.meta_data {
                let nulls = meta.statistics.and_then(|statistics| statistics.null_count);
                println!(
                    "  {}: {} values, {} bytes in {}, nulls: {}",
                    footer.schema().leaf(leaf)?.path,
                    meta.num_values,
                    meta.total_compressed_size,
                    meta.codec,
                    nulls.map_or_else(|| "unknown".to_owned(), |n| n.to_string()),
                );
            }
        }
    }
    Ok(())
}
