//! Keys that a key management service (KMS) wraps, by the key material of parquet-java and pyarrow.
//!
//! A file is encrypted with data encryption keys (DEK) of its own. They are stored beside it,
//! wrapped with a master key that never leaves the KMS. With double wrapping, a DEK is wrapped with
//! a key encryption key (KEK), and only the KEK by the KMS, which is then asked once for each
//! master key of a file.
//!
//! ```text
//! key metadata of a column or the footer, internal
//!     {"keyMaterialType":"PKMT1", "masterKeyID", "wrappedDEK", …}
//! key metadata of a column or the footer, external
//!     {"keyMaterialType":"PKMT1", "keyReference":"columnKey0"}
//! beside the file: _KEY_MATERIAL_FOR_<file>.json
//!     {"footerKey": "{…}", "columnKey0": "{…}"}
//! ```
//!
//! [`KmsEncryption`] makes keys and wraps them for a writer, [`KmsKeys`] finds them for a reader,
//! [`KeyMaterials::rewrap`] changes the master keys of a file without touching its data.
//!
//! Trap: key material can name the address of a KMS. It comes from the file, so that it is never
//! used: the application says which KMS it trusts by giving a [`Kms`].

mod wrapping;
mod service;
mod material;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde_json::Value;

use super::cipher::random;
use super::encrypt::Encryption;
use super::key::{Key, KeyRequest, KeyRetriever};
use crate::error::{Error, Result};

use material::{KekCache, Stored, object};
pub use material::{KeyMaterial, WrappedKek};
pub use service::{KeyRing, Kms};
use wrapping::{malformed, wrap_locally};

/// Finds the keys of files by their key material: a [`KeyRetriever`].
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// # if !cfg!(feature = "encryption") { return Ok(()); }
/// use marquetry::crypt::kms::{KeyRing, KmsKeys};
/// use marquetry::crypt::{Decryption, Key};
///
/// let kms = KeyRing::new().with_key("finance", Key::new(b"0123456789012345")?);
/// let keys = Decryption::new().with_retriever(KmsKeys::new(kms));
/// # let _ = keys;
/// # Ok(())
/// # }
/// ```
pub struct KmsKeys {
    kms: Box<dyn Kms>,
    external: KeyMaterials,
    keks: KekCache,
}

impl KmsKeys {
    /// Uses the keys that this KMS unwraps.
    pub fn new(kms: impl Kms + 'static) -> Self {
        Self { kms: Box::new(kms), external: KeyMaterials::default(), keks: KekCache::default() }
    }

    /// Adds key material that is stored beside the file.
    #[must_use]
    pub fn with_materials(mut self, materials: KeyMaterials) -> Self {
        self.external = materials;
        self
    }
}

impl fmt::Debug for KmsKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KmsKeys").field("external", &self.external).finish_non_exhaustive()
    }
}

impl KeyRetriever for KmsKeys {
    fn retrieve(&self, request: &KeyRequest<'_>) -> Result<Key> {
        let json = request
            .key_metadata
            .ok_or_else(|| Error::crypto("the file stores no key material for it"))?;
        let stored = Stored::from_json(json)?;
        let material = match &stored {
            Stored::Internal(material) => material,
            Stored::External(reference) => self.external.0.get(reference).ok_or_else(|| {
                Error::crypto(format_args!(
                    "its key material \"{reference}\" is stored in another file, \
                     _KEY_MATERIAL_FOR_<file>.json, which was not given"
                ))
            })?,
        };
        if material.is_footer_key != request.column.is_none() {
            return Err(Error::crypto(
                "the key material of a footer is stored for a column, or that of a column for the \
                 footer",
            ));
        }
        material.key(&*self.kms, &self.keks)
    }
}

/// The key material of a file, stored beside it, so that its master keys can be changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct KeyMaterials(BTreeMap<String, KeyMaterial>);

impl KeyMaterials {
    /// The path of the material of a Parquet file, as in parquet-java and pyarrow:
    /// `_KEY_MATERIAL_FOR_<file>.json` in the same folder.
    pub fn path_for(parquet: impl AsRef<Path>) -> PathBuf {
        let parquet = parquet.as_ref();
        let name = parquet.file_name().unwrap_or_default().to_string_lossy();
        parquet.with_file_name(format!("_KEY_MATERIAL_FOR_{name}.json"))
    }

    /// Parses the JSON form.
    ///
    /// # Errors
    /// `Malformed(Encryption)` if `json` is no key material.
    pub fn from_json(json: &[u8]) -> Result<Self> {
        let read = |(reference, material): (String, Value)| {
            let json = material.as_str().ok_or_else(|| malformed("an entry is no string"))?;
            Ok((reference, KeyMaterial::from_json(json.as_bytes())?))
        };
        object(json)?.into_iter().map(read).collect::<Result<_>>().map(Self)
    }

    /// The JSON form.
    pub fn to_json(&self) -> String {
        let entries = self.0.iter().map(|(name, of)| (name.clone(), of.to_json().into()));
        Value::Object(entries.collect()).to_string()
    }

    /// The material of each key, by its reference: `footerKey`, `columnKey0`, ….
    pub fn iter(&self) -> impl Iterator<Item = (&str, &KeyMaterial)> {
        self.0.iter().map(|(name, of)| (name.as_str(), of))
    }

    /// Wraps the keys with new master keys: `new_master_key` returns the new name for an old one,
    /// or `None` to keep it. The data encryption keys and the file do not change: a reader that
    /// kept the data encryption keys can still read it.
    ///
    /// # Errors
    /// As the KMS; nothing is changed then.
    pub fn rewrap(
        &mut self,
        kms: &dyn Kms,
        new_master_key: impl Fn(&str) -> Option<String>,
    ) -> Result<()> {
        let keks = KekCache::default();
        let mut wrapper = KeyWrapper::new(kms);
        let mut rewrapped = BTreeMap::new();
        for (reference, old) in &self.0 {
            let Some(name) = new_master_key(&old.master_key_id) else {
                rewrapped.insert(reference.clone(), old.clone());
                continue;
            };
            let key = old.key(kms, &keks)?;
            let new = wrapper.wrap(&key, &name, old.kek.is_some())?;
            let material = KeyMaterial {
                is_footer_key: old.is_footer_key,
                kms_instance_id: old.kms_instance_id.clone(),
                kms_instance_url: old.kms_instance_url.clone(),
                ..new
            };
            rewrapped.insert(reference.clone(), material);
        }
        self.0 = rewrapped;
        Ok(())
    }
}

/// Wraps keys, each master key having one key encryption key.
struct KeyWrapper<'a> {
    kms: &'a dyn Kms,
    keks: HashMap<String, (Key, WrappedKek)>,
}

impl<'a> KeyWrapper<'a> {
    fn new(kms: &'a dyn Kms) -> Self {
        Self { kms, keks: HashMap::new() }
    }

    fn wrap(&mut self, key: &Key, master_key: &str, is_double: bool) -> Result<KeyMaterial> {
        let (wrapped_dek, kek) = match is_double {
            false => (self.kms.wrap(key, master_key)?, None),
            true => {
                let (with, kek) = self.kek(master_key, key.bits())?;
                (wrap_locally(key, &with, &kek.aad()?)?, Some(kek))
            }
        };
        Ok(KeyMaterial {
            is_footer_key: false,
            kms_instance_id: None,
            kms_instance_url: None,
            master_key_id: master_key.to_owned(),
            wrapped_dek,
            kek,
        })
    }

    fn kek(&mut self, master_key: &str, bits: usize) -> Result<(Key, WrappedKek)> {
        if let Some(known) = self.keks.get(master_key).filter(|(key, _)| key.bits() >= bits) {
            return Ok(known.clone());
        }
        let key = Key::generate(bits.max(MIN_KEK_BITS))?;
        let mut id = [0; 16];
        random(&mut id)?;
        let wrapped = self.kms.wrap(&key, master_key)?;
        let made = (key, WrappedKek { id: BASE64.encode(id), wrapped });
        self.keks.insert(master_key.to_owned(), made.clone());
        Ok(made)
    }
}

/// Minimum bits of a key encryption key, as in other writers; it never has fewer than the keys that
/// it wraps.
const MIN_KEK_BITS: usize = 128;

/// Makes new keys for a file, and wraps them by a KMS.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// # if !cfg!(feature = "encryption") { return Ok(()); }
/// use marquetry::WriteOptions;
/// use marquetry::crypt::Key;
/// use marquetry::crypt::kms::{KeyRing, KmsEncryption};
///
/// let kms = KeyRing::new()
///     .with_key("finance", Key::new(b"0123456789012345")?)
///     .with_key("people", Key::new(b"1234567890123450")?);
/// let encryption = KmsEncryption::new("finance").with_column("customer.iban", "people");
/// // For each file anew: no two have the same keys.
/// let options = WriteOptions::new().with_encryption(encryption.internal(&kms)?);
/// # let _ = options;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct KmsEncryption {
    footer: String,
    columns: Vec<(String, String)>,
    is_double: bool,
    data_key_bits: usize,
}

impl KmsEncryption {
    /// Encrypts the footer with a key that this master key wraps, and everything else too, unless
    /// columns have keys of their own.
    pub fn new(footer_master_key: impl Into<String>) -> Self {
        let footer = footer_master_key.into();
        Self { footer, columns: Vec::new(), is_double: true, data_key_bits: 128 }
    }

    /// Encrypts a column with a key of its own, which `master_key` wraps. `path` is the dotted path
    /// of the column, or of a field, for all columns below it.
    #[must_use]
    pub fn with_column(mut self, path: impl Into<String>, master_key: impl Into<String>) -> Self {
        let path = path.into();
        self.columns.retain(|(old, _)| *old != path);
        self.columns.push((path, master_key.into()));
        self
    }

    /// Whether to use double wrapping, so that the KMS is asked only once per master key. Default
    /// true.
    #[must_use]
    pub fn with_double_wrapping(mut self, is_double: bool) -> Self {
        self.is_double = is_double;
        self
    }

    /// Bits of the data encryption keys: 128 (the default), 192 or 256.
    #[must_use]
    pub fn with_data_key_bits(mut self, bits: usize) -> Self {
        self.data_key_bits = bits;
        self
    }

    /// New keys for a file, whose material is stored in the file.
    ///
    /// # Errors
    /// As the KMS; `Crypto` if the generator of the operating system fails, `Usage` for another
    /// number of bits.
    pub fn internal(&self, kms: &dyn Kms) -> Result<Encryption> {
        self.make(kms, |_, material| Stored::Internal(material))
    }

    /// New keys for a file, whose material is to be stored beside it, at
    /// [`KeyMaterials::path_for`]: it can be wrapped with other master keys without touching the
    /// file.
    ///
    /// # Errors
    /// As [`KmsEncryption::internal`].
    pub fn external(&self, kms: &dyn Kms) -> Result<(Encryption, KeyMaterials)> {
        let mut materials = KeyMaterials::default();
        let encryption = self.make(kms, |reference, material| {
            materials.0.insert(reference.to_owned(), material);
            Stored::External(reference.to_owned())
        })?;
        Ok((encryption, materials))
    }

    fn make(
        &self,
        kms: &dyn Kms,
        mut store: impl FnMut(&str, KeyMaterial) -> Stored,
    ) -> Result<Encryption> {
        let mut wrapper = KeyWrapper::new(kms);
        let key = Key::generate(self.data_key_bits)?;
        let material = wrapper.wrap(&key, &self.footer, self.is_double)?;
        let stored = store("footerKey", KeyMaterial { is_footer_key: true, ..material });
        let mut encryption = Encryption::new(key).with_footer_key_metadata(stored.to_json());
        for (i, (path, master_key)) in self.columns.iter().enumerate() {
            let key = Key::generate(self.data_key_bits)?;
            let material = wrapper.wrap(&key, master_key, self.is_double)?;
            let stored = store(&format!("columnKey{i}"), material);
            encryption = encryption.with_column_key_and_metadata(path, key, stored.to_json());
        }
        Ok(encryption)
    }
}

#[cfg(all(test, feature = "encryption"))]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    fn ring() -> KeyRing {
        let key = |of: &[u8; 16]| Key::new(of).unwrap();
        KeyRing::new()
            .with_key("a", key(b"0123456789012345"))
            .with_key("b", key(b"1234567890123450"))
    }

    fn retrieve(keys: &KmsKeys, stored: &str) -> Result<Key> {
        let column = crate::schema::LeafPath::new(["x".into()]);
        let column = (!stored.contains("footerKey")).then_some(&column);
        keys.retrieve(&KeyRequest::new(column, Some(stored.as_bytes())))
    }

    #[test]
    fn keys_come_back_from_their_material_whichever_way_they_are_wrapped() {
        for is_double in [false, true] {
            for bits in [128, 192, 256] {
                let key = Key::generate(bits).unwrap();
                let material = KeyWrapper::new(&ring()).wrap(&key, "a", is_double).unwrap();
                assert_eq!(material.kek.is_some(), is_double);
                let json = material.to_json();
                assert_eq!(KeyMaterial::from_json(json.as_bytes()).unwrap(), material);
                let stored = Stored::Internal(material.clone()).to_json();
                let found = retrieve(&KmsKeys::new(ring()), &stored).unwrap();
                assert_eq!(found.expose_bytes(), key.expose_bytes());
                // External.
                let all = KeyMaterials([("columnKey0".to_owned(), material)].into());
                let all = KeyMaterials::from_json(all.to_json().as_bytes()).unwrap();
                let reference = Stored::External("columnKey0".to_owned()).to_json();
                let found = retrieve(&KmsKeys::new(ring()).with_materials(all), &reference);
                assert_eq!(found.unwrap().expose_bytes(), key.expose_bytes());
            }
        }
    }

    #[test]
    fn the_kms_is_asked_once_a_key_encryption_key() {
        struct Counting(KeyRing, AtomicUsize, AtomicUsize);
        impl Kms for Counting {
            fn wrap(&self, key: &Key, master_key: &str) -> Result<String> {
                self.1.fetch_add(1, Ordering::Relaxed);
                self.0.wrap(key, master_key)
            }
            fn unwrap(&self, wrapped: &str, master_key: &str) -> Result<Key> {
                self.2.fetch_add(1, Ordering::Relaxed);
                self.0.unwrap(wrapped, master_key)
            }
        }
        let kms = Arc::new(Counting(ring(), AtomicUsize::new(0), AtomicUsize::new(0)));
        let of = KmsEncryption::new("a").with_column("x", "b").with_column("y", "b");
        let (_, materials) = of.external(&*kms).unwrap();
        assert_eq!(kms.1.load(Ordering::Relaxed), 2, "a, b");
        let keys = KmsKeys::new(kms.clone()).with_materials(materials);
        for reference in ["footerKey", "columnKey0", "columnKey1", "columnKey0"] {
            retrieve(&keys, &Stored::External(reference.to_owned()).to_json()).unwrap();
        }
        assert_eq!(kms.2.load(Ordering::Relaxed), 2, "a, b");
    }

    #[test]
    fn rewrapped_material_has_the_same_keys_under_other_master_keys() {
        for is_double in [false, true] {
            let of = KmsEncryption::new("a").with_column("x", "a").with_double_wrapping(is_double);
            let (_, before) = of.external(&ring()).unwrap();
            let mut after = before.clone();
            after.rewrap(&ring(), |old| (old == "a").then(|| "b".into())).unwrap();
            assert_ne!(before, after);
            for (reference, material) in after.iter() {
                assert_eq!(material.master_key_id, "b");
                assert_eq!(material.is_footer_key, reference == "footerKey");
                let stored = Stored::External(reference.to_owned()).to_json();
                let keys = [&before, &after].map(|of| {
                    let keys = KmsKeys::new(ring()).with_materials(of.clone());
                    retrieve(&keys, &stored).unwrap()
                });
                assert_eq!(keys[0].expose_bytes(), keys[1].expose_bytes());
            }
            let unchanged = after.clone();
            assert!(after.rewrap(&ring(), |_| Some("missing".into())).is_err());
            assert_eq!(after, unchanged);
            // Keys that stay are not asked for.
            after.rewrap(&KeyRing::new(), |_| None).unwrap();
            assert_eq!(after, unchanged);
        }
    }

    #[test]
    fn material_that_is_none_is_an_error_and_shows_no_key() {
        let key = Key::generate(128).unwrap();
        let material = KeyWrapper::new(&ring()).wrap(&key, "a", true).unwrap();
        let good = Stored::Internal(material).to_json();
        let keys = KmsKeys::new(ring());
        for wrong in ["", "{}", "[1]", "null", "{\"keyMaterialType\":\"PKMT2\"}", "\u{0}"] {
            assert!(retrieve(&keys, wrong).is_err(), "{wrong}");
        }
        // Any field missing or of another type.
        let Value::Object(fields) = serde_json::from_str(&good).unwrap() else { panic!() };
        for name in fields.keys() {
            let mut less = fields.clone();
            less.remove(name);
            assert!(retrieve(&keys, &Value::Object(less.clone()).to_string()).is_err(), "{name}");
            less.insert(name.clone(), Value::Array(Vec::new()));
            assert!(retrieve(&keys, &Value::Object(less).to_string()).is_err(), "{name}");
        }
        // Any bit of what is wrapped.
        for name in ["wrappedDEK", "wrappedKEK"] {
            let wrapped = BASE64.decode(fields[name].as_str().unwrap()).unwrap();
            for i in 0..wrapped.len() {
                let mut changed = wrapped.clone();
                changed[i] ^= 1;
                let mut other = fields.clone();
                other.insert(name.to_owned(), BASE64.encode(changed).into());
                let refused = retrieve(&keys, &Value::Object(other).to_string());
                assert_eq!(refused.unwrap_err().kind(), crate::ErrorKind::Crypto, "{name} {i}");
            }
        }
        let none = keys.retrieve(&KeyRequest::new(None, None)).unwrap_err();
        assert_eq!(none.kind(), crate::ErrorKind::Crypto);
    }

    #[test]
    fn the_path_of_the_material_is_that_of_other_writers() {
        let path = KeyMaterials::path_for("data/part-0.parquet");
        assert_eq!(path, Path::new("data/_KEY_MATERIAL_FOR_part-0.parquet.json"));
    }
}
