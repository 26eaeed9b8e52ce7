//! [`KeyMaterial`] describes how a data encryption key is wrapped, and is stored as JSON.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::{Map, Value};

use super::service::Kms;
use super::wrapping::{malformed, unwrap_locally};
use crate::crypt::key::Key;
use crate::error::Result;

/// How a data encryption key is wrapped.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KeyMaterial {
    /// Whether it is the key of the footer.
    pub is_footer_key: bool,
    /// Name of the KMS instance that the writer used. For information; it is never used.
    pub kms_instance_id: Option<String>,
    /// Address of that instance. For information; it is never contacted.
    pub kms_instance_url: Option<String>,
    /// The name of the master key.
    pub master_key_id: String,
    /// The data encryption key, wrapped with the master key or the key encryption key.
    pub wrapped_dek: String,
    /// The key encryption key, with double wrapping.
    pub kek: Option<WrappedKek>,
}

/// A key encryption key, wrapped with the master key.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct WrappedKek {
    /// Its name, in Base64; the keys that it wraps are authenticated with it.
    pub id: String,
    /// The key, wrapped.
    pub wrapped: String,
}

/// Key encryption keys that were unwrapped, so that the KMS is asked for each once.
#[derive(Default)]
pub(super) struct KekCache(Mutex<HashMap<(String, String), Key>>);

impl KekCache {
    fn get(&self, kms: &dyn Kms, master_key: &str, kek: &WrappedKek) -> Result<Key> {
        let name = (master_key.to_owned(), kek.wrapped.clone());
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(key) = lock().get(&name) {
            return Ok(key.clone());
        }
        let key = kms.unwrap(&kek.wrapped, master_key)?;
        let mut keys = lock();
        if keys.len() >= MAX_KEKS {
            keys.clear();
        }
        keys.insert(name, key.clone());
        Ok(key)
    }
}

/// Maximum number of key encryption keys that are cached.
const MAX_KEKS: usize = 1024;

/// Key metadata: key material, or a reference to material in another file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Stored {
    Internal(KeyMaterial),
    External(String),
}

/// The only defined type of key material.
const MATERIAL_TYPE: &str = "PKMT1";

fn text(fields: &Map<String, Value>, name: &str) -> Result<String> {
    let found = fields.get(name).and_then(Value::as_str).map(str::to_owned);
    found.ok_or_else(|| malformed(format_args!("\"{name}\" is missing, or is no string")))
}

fn flag(fields: &Map<String, Value>, name: &str) -> Result<bool> {
    let found = fields.get(name).and_then(Value::as_bool);
    found.ok_or_else(|| malformed(format_args!("\"{name}\" is missing, or is no boolean")))
}

pub(super) fn object(json: &[u8]) -> Result<Map<String, Value>> {
    match serde_json::from_slice(json) {
        Ok(Value::Object(fields)) => Ok(fields),
        _ => Err(malformed("it is no JSON object")),
    }
}

/// The fields of key material, of its only type.
fn material_fields(json: &[u8]) -> Result<Map<String, Value>> {
    let fields = object(json)?;
    match text(&fields, "keyMaterialType")?.as_str() {
        MATERIAL_TYPE => Ok(fields),
        other => Err(malformed(format_args!("the type \"{other}\" is not known"))),
    }
}

impl KeyMaterial {
    /// Parses the JSON form.
    ///
    /// # Errors
    /// `Malformed(Encryption)` if `json` is no key material.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        Self::from_fields(&material_fields(json)?)
    }

    fn from_fields(fields: &Map<String, Value>) -> Result<Self> {
        let optional = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
        let kek = match flag(fields, "doubleWrapping")? {
            true => Some(WrappedKek {
                id: text(fields, "keyEncryptionKeyID")?,
                wrapped: text(fields, "wrappedKEK")?,
            }),
            false => None,
        };
        Ok(Self {
            is_footer_key: flag(fields, "isFooterKey")?,
            kms_instance_id: optional("kmsInstanceID"),
            kms_instance_url: optional("kmsInstanceURL"),
            master_key_id: text(fields, "masterKeyID")?,
            wrapped_dek: text(fields, "wrappedDEK")?,
            kek,
        })
    }

    /// The JSON form, as in a file of key material.
    pub fn to_json(&self) -> String {
        Value::Object(self.fields(false)).to_string()
    }

    fn fields(&self, is_internal: bool) -> Map<String, Value> {
        let mut fields = Map::new();
        let mut add = |name: &str, value: Value| fields.insert(name.to_owned(), value);
        add("keyMaterialType", MATERIAL_TYPE.into());
        if is_internal {
            add("internalStorage", true.into());
        }
        add("isFooterKey", self.is_footer_key.into());
        if self.is_footer_key {
            // Readers of other implementations want both.
            let default = || "DEFAULT".to_owned();
            add("kmsInstanceID", self.kms_instance_id.clone().unwrap_or_else(default).into());
            add("kmsInstanceURL", self.kms_instance_url.clone().unwrap_or_else(default).into());
        }
        add("masterKeyID", self.master_key_id.clone().into());
        add("wrappedDEK", self.wrapped_dek.clone().into());
        add("doubleWrapping", self.kek.is_some().into());
        if let Some(kek) = &self.kek {
            add("keyEncryptionKeyID", kek.id.clone().into());
            add("wrappedKEK", kek.wrapped.clone().into());
        }
        fields
    }

    pub(super) fn key(&self, kms: &dyn Kms, keks: &KekCache) -> Result<Key> {
        match &self.kek {
            None => kms.unwrap(&self.wrapped_dek, &self.master_key_id),
            Some(kek) => {
                let with = keks.get(kms, &self.master_key_id, kek)?;
                unwrap_locally(&self.wrapped_dek, &with, &kek.aad()?)
            }
        }
    }
}

impl WrappedKek {
    pub(super) fn aad(&self) -> Result<Vec<u8>> {
        BASE64.decode(&self.id).map_err(|_| malformed("\"keyEncryptionKeyID\" is no Base64"))
    }
}

impl Stored {
    pub(super) fn from_json(json: &[u8]) -> Result<Self> {
        let fields = material_fields(json)?;
        match flag(&fields, "internalStorage")? {
            true => KeyMaterial::from_fields(&fields).map(Self::Internal),
            false => text(&fields, "keyReference").map(Self::External),
        }
    }

    pub(super) fn to_json(&self) -> String {
        let fields = match self {
            Self::Internal(material) => material.fields(true),
            Self::External(reference) => {
                let mut fields = Map::new();
                fields.insert("keyMaterialType".to_owned(), MATERIAL_TYPE.into());
                fields.insert("internalStorage".to_owned(), false.into());
                fields.insert("keyReference".to_owned(), reference.clone().into());
                fields
            }
        };
        Value::Object(fields).to_string()
    }
}
