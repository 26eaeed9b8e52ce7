//! Writes a file into a folder for each value of a column, in parallel, with a `_metadata` summary,
//! and reads it back by that: `cargo run --example partitions -- FILE COLUMN FOLDER`.

use marquetry::{Dataset, Export, Reader, Result};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let file = args.next().unwrap_or_else(|| "testdata/trips.parquet".into());
    let column = args.next().unwrap_or_else(|| "vendor".into());
    let scratch = std::env::temp_dir().join(format!("marquetry-parts-{}", std::process::id()));
    let (folder, is_scratch) = match args.next() {
        Some(folder) => (folder.into(), false),
        None => (scratch, true),
    };

    let dataset = Dataset::open([file])?;
    let export = Export::to(&folder, dataset.schema()?)?;
    let export = export.partition_by([column]).memory(128 << 20).summary(true);
    let progress = export.progress();
    for file in export.run(dataset.streams(4)?)? {
        println!("{}: {} rows", file.path.display(), file.report.rows);
    }
    println!("{} files, {} bytes", progress.files(), progress.bytes());

    let summary = Reader::open(folder.join("_metadata"))?.files_below(&folder)?;
    let rows: usize = summary.batches()?.map(|batch| Ok(batch?.num_rows())).sum::<Result<_>>()?;
    println!("{rows} rows by the summary");
    if is_scratch {
        std::fs::remove_dir_all(folder)?;
    }
    Ok(())
}
