//! Reads the encryption metadata of a file that are readable without keys.

use marquetry::Reader;
use marquetry::crypt::kms::{KeyMaterial, KeyMaterials};
use marquetry::format::{EncryptionAlgorithm, FileCryptoMetaData, Thrift};
use marquetry::io::Source;
use serde::Serialize;
use serde_json::Value;

use crate::args::Global;
use crate::cells::hex;
use crate::failure::Result;

/// Whether something in a file that was opened is encrypted.
pub(crate) fn is_encrypted(reader: &Reader) -> bool {
    let footer = reader.metadata();
    footer.is_encrypted() || footer.index().head().encryption_algorithm.is_some()
}

/// Says that an encrypted input becomes an output that is not encrypted.
pub(crate) fn note_plain(global: &Global) {
    if !global.quiet {
        eprintln!(
            "marq: note: the input is encrypted, and the output is not (--encrypt-footer-key \
             encrypts it)"
        );
    }
}

/// The metadata before an encrypted footer; `None` if the footer is not encrypted, or is none.
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

/// The prefix of the additional authenticated data.
#[derive(Debug)]
pub(super) enum AadPrefix {
    None,
    Stored(String),
    Needed,
}

impl AadPrefix {
    pub(super) fn new(algorithm: &EncryptionAlgorithm) -> Self {
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct KeyName {
    /// Text or hexadecimal digits of the writer's, or the name of a master key.
    pub(super) id: Option<String>,
    kind: KeyKind,
    /// Where the material of a wrapped key is.
    #[serde(skip_serializing_if = "Option::is_none")]
    storage: Option<&'static str>,
    /// The reference to material in another file, which is missing or does not have it.
    #[serde(skip_serializing_if = "Option::is_none")]
    reference: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum KeyKind {
    Text,
    Hex,
    MasterKey,
}

impl KeyName {
    pub(super) fn new(metadata: &[u8], materials: Option<&KeyMaterials>) -> Self {
        let named = |kind, id| Self { id: Some(id), kind, storage: None, reference: None };
        let master = |id, storage| Self { storage: Some(storage), ..named(KeyKind::MasterKey, id) };
        let fields: Option<Value> = serde_json::from_slice(metadata).ok();
        let field = |name: &str| fields.as_ref().and_then(|fields| fields.get(name));
        if field("keyMaterialType").is_some() {
            if let Some(reference) = field("keyReference").and_then(Value::as_str) {
                let mut found = materials.into_iter().flat_map(KeyMaterials::iter);
                return match found.find(|(name, _)| *name == reference) {
                    Some((_, material)) => master(material.master_key_id.clone(), "external"),
                    None => Self {
                        id: None,
                        kind: KeyKind::MasterKey,
                        storage: Some("external"),
                        reference: Some(reference.to_owned()),
                    },
                };
            }
            if let Ok(material) = KeyMaterial::from_json(metadata) {
                return master(material.master_key_id, "internal");
            }
        }
        match text_or_hex(metadata) {
            (text, true) => named(KeyKind::Text, text),
            (hex, false) => named(KeyKind::Hex, hex),
        }
    }

    pub(super) fn shown(&self) -> String {
        let id = self.id.as_deref().unwrap_or_default();
        match (self.kind, &self.reference) {
            (_, Some(reference)) => format!("{reference}, whose material is missing"),
            (KeyKind::Text, _) => id.to_owned(),
            (KeyKind::Hex, _) => format!("0x{id}"),
            (KeyKind::MasterKey, _) => format!("master key {id}"),
        }
    }
}

/// Bytes as text, if they are; else in hexadecimal digits.
fn text_or_hex(bytes: &[u8]) -> (String, bool) {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.chars().any(char::is_control) => (text.to_owned(), true),
        _ => (hex(bytes).split_off("0x".len()), false),
    }
}
