//! Implements a toy key management service: master keys stay in it, files store keys that it has
//! wrapped, and a master key is changed without touching the data.
//!
//! `cargo run --features encryption --example kms`

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use marquetry::crypt::kms::{KeyMaterials, KeyRing, Kms, KmsEncryption, KmsKeys};
use marquetry::crypt::{Decryption, Key};
use marquetry::{Reader, Result, WriteOptions, Writer};

/// In place of requests to a real service; `KeyRing` does the cryptography.
struct Service(KeyRing);

impl Kms for Service {
    fn wrap(&self, key: &Key, master_key: &str) -> Result<String> {
        println!("service: wraps a key with {master_key:?}");
        self.0.wrap(key, master_key)
    }

    fn unwrap(&self, wrapped: &str, master_key: &str) -> Result<Key> {
        println!("service: unwraps a key with {master_key:?}");
        self.0.unwrap(wrapped, master_key)
    }
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let path = std::env::temp_dir().join("marquetry-example-kms.parquet");
    let ring =
        KeyRing::new().with_key("2025", Key::generate(256)?).with_key("2026", Key::generate(256)?);
    let service = Arc::new(Service(ring));

    let ids: ArrayRef = Arc::new(Int64Array::from(vec![1, 2, 3]));
    let batch = RecordBatch::try_from_iter([("id", ids)])?;
    let (encryption, materials) = KmsEncryption::new("2025").external(&*service)?;
    let options = WriteOptions::new().with_encryption(encryption);
    let mut writer = Writer::create_with(&path, batch.schema(), options)?;
    writer.write(&batch)?;
    writer.finish()?;
    std::fs::write(KeyMaterials::path_for(&path), materials.to_json())?;

    // A new year, a new master key: the file stays as it is.
    let mut materials = KeyMaterials::from_json(&std::fs::read(KeyMaterials::path_for(&path))?)?;
    materials.rewrap(&*service, |_| Some("2026".to_owned()))?;
    std::fs::write(KeyMaterials::path_for(&path), materials.to_json())?;

    let keys = KmsKeys::new(service).with_materials(materials);
    let reader = Reader::open_encrypted(&path, &Decryption::new().with_retriever(keys))?;
    println!("{} rows", reader.rows()?);
    std::fs::remove_file(KeyMaterials::path_for(&path))?;
    std::fs::remove_file(&path)?;
    Ok(())
}
