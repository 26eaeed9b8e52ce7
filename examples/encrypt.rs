//! Writes a file with one protected column, and reads it with and without its key.
//!
//! `cargo run --features encryption --example encrypt`

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use marquetry::crypt::{Decryption, Encryption, Key};
use marquetry::{Reader, WriteOptions, Writer};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join("marquetry-example-encrypt.parquet");
    let (footer_key, iban_key) = (Key::generate(128)?, Key::generate(256)?);

    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let ibans: ArrayRef = Arc::new(StringArray::from(vec!["NL91", "BE68", "DE89"]));
    let batch = RecordBatch::try_from_iter([("id", ids), ("iban", ibans)])?;

    // A footer in plain text that is signed; one column that is encrypted.
    let encryption = Encryption::new(footer_key.clone())
        .with_plaintext_footer(true)
        .with_column_key("iban", iban_key.clone());
    let options = WriteOptions::new().with_encryption(encryption);
    let mut writer = Writer::create_with(&path, batch.schema(), options)?;
    writer.write(&batch)?;
    writer.finish()?;

    // Without keys, the other columns are read as ever.
    let reader = Reader::open(&path)?;
    for batch in reader.clone().project(["id"])?.batches()? {
        println!("without keys: {} ids", batch?.num_rows());
    }
    let denied = reader.batches()?.find_map(Result::err).expect("a column that needs its key");
    println!("without keys: {denied}");

    // With the footer's key its signature is verified, with the column's the column is read.
    let keys = Decryption::new().with_footer_key(footer_key).with_column_key("iban", iban_key);
    let reader = Reader::open_encrypted(&path, &keys)?;
    println!("with keys: the footer is {:?}", reader.metadata().signature());
    for batch in reader.batches()? {
        println!("with keys: {:?}", batch?.column(1));
    }
    std::fs::remove_file(&path)?;
    Ok(())
}
