//! The encryption metadata of a file that can be read without keys.

use std::fmt::Write as _;

use marquetry::Reader;
use marquetry::crypt::kms::{KeyMaterial, KeyMaterials};
use marquetry::format::{EncryptionAlgorithm, FileCryptoMetaData, Thrift};
use marquetry::io::Source;
use serde_json::{Value, json};

use crate::failure::Result;

/// Whether something in a file that was opened is encrypted.
pub(super) fn is_encrypted(reader: &Reader) -> bool {
    let footer = reader.metadata();
    footer.is_encrypted() || footer.index().head().encryption_algorithm.is_some()
}

/// What stands before an encrypted footer; `None` if the footer is not encrypted, or is none.
pub(super) fn crypto_metadata(source: &dyn Source) -> Result<Option<FileCryptoMetaData>> {
    let Some(end) = source.len()?.checked_sub(8) else { return Ok(None) };
    let tail = source.read(end..end + 8)?;
    let Some((len, b"PARE")) = tail.split_first_chunk::<4>() else { return Ok(None) };
    let len = u64::from(u32::from_le_bytes(*len));
    let Some(start) = end.checked_sub(len) else { return Ok(None) };
    let head = source.read(start..start + len.min(MAX_CRYPTO_METADATA))?;
    Ok(Some(FileCryptoMetaData::from_thrift(&head)?.0))
}

/// Bytes of an algorithm and a key metadata.
const MAX_CRYPTO_METADATA: u64 = 1 << 20;

/// The prefix of what is authenticated.
#[derive(Debug)]
pub(super) enum AadPrefix {
    None,
    Stored(String),
    Needed,
}

impl AadPrefix {
    pub(super) fn of(algorithm: &EncryptionAlgorithm) -> Self {
        let (stored, must_supply) = match algorithm {
            EncryptionAlgorithm::AesGcmV1(of) => (&of.aad_prefix, of.supply_aad_prefix),
            EncryptionAlgorithm::AesGcmCtrV1(of) => (&of.aad_prefix, of.supply_aad_prefix),
            _ => return Self::None,
        };
        match stored {
            Some(stored) => Self::Stored(text_or_hex(stored).0),
            None if must_supply == Some(true) => Self::Needed,
            None => Self::None,
        }
    }

    pub(super) fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Stored(_) => "stored",
            Self::Needed => "needed",
        }
    }
}

/// Key metadata, as the file stores them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyName {
    /// Text of the writer's.
    Text(String),
    /// Bytes of the writer's, in hexadecimal digits.
    Binary(String),
    /// A key that a master key has wrapped.
    Master { name: String, storage: &'static str },
    /// A key whose material is in another file, which is missing or does not have it.
    Missing { reference: String },
}

impl KeyName {
    pub(super) fn of(metadata: &[u8], materials: Option<&KeyMaterials>) -> Self {
        let fields: Option<Value> = serde_json::from_slice(metadata).ok();
        let of = |name: &str| fields.as_ref().and_then(|fields| fields.get(name));
        if of("keyMaterialType").is_some() {
            if let Some(reference) = of("keyReference").and_then(Value::as_str) {
                let found = materials.into_iter().flat_map(KeyMaterials::iter);
                let mut found = found.filter(|(name, _)| *name == reference);
                return match found.next() {
                    Some((_, material)) => {
                        Self::Master { name: material.master_key_id.clone(), storage: "external" }
                    }
                    None => Self::Missing { reference: reference.to_owned() },
                };
            }
            if let Ok(material) = KeyMaterial::from_json(metadata) {
                return Self::Master { name: material.master_key_id, storage: "internal" };
            }
        }
        match text_or_hex(metadata) {
            (text, true) => Self::Text(text),
            (hex, false) => Self::Binary(hex),
        }
    }

    pub(super) fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.clone(),
            Self::Binary(hex) => format!("0x{hex}"),
            Self::Master { name, .. } => format!("master key {name}"),
            Self::Missing { reference } => format!("{reference}, whose material is missing"),
        }
    }

    pub(super) fn json(&self) -> Value {
        match self {
            Self::Text(text) => json!({ "id": text, "kind": "text" }),
            Self::Binary(hex) => json!({ "id": hex, "kind": "hex" }),
            Self::Master { name, storage } => {
                json!({ "id": name, "kind": "master_key", "storage": storage })
            }
            Self::Missing { reference } => {
                json!({ "id": null, "kind": "master_key", "storage": "external", "reference": reference })
            }
        }
    }
}

/// Bytes as text, if they are; else in hexadecimal digits.
fn text_or_hex(bytes: &[u8]) -> (String, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => (text.to_owned(), true),
        _ => {
            let hex = bytes.iter().fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            });
            (hex, false)
        }
    }
}
