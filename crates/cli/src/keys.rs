//! Makes the keys for reading and writing encrypted files from the flags. No message shows a key.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use marquetry::Error;
use marquetry::crypt::kms::{KeyMaterials, KeyRing, KmsKeys};
use marquetry::crypt::{Algorithm, Decryption, Encryption, Key, KeyRequest, KeyRetriever};
use zeroize::Zeroizing;

use crate::args::{AlgorithmName, EncryptFlags, Global};
use crate::failure::{Failure, Result};
use crate::locations;

/// The keys for reading from the flags.
#[derive(Default)]
struct Given {
    footer: Option<Key>,
    columns: Vec<(String, Key)>,
    /// Keys that have other names: of the key metadata of files, or of master keys.
    named: Vec<(String, Key)>,
}

/// The name of the key of footers, and the prefix of the names of columns.
const FOOTER: &str = "footer";
const COLUMN: &str = "column:";

/// The keys from the flags for reading the file; `None` if there are none. Files that are not
/// encrypted are then refused, unless --allow-plain is set.
///
/// Without a footer key, a signed plaintext footer is read unverified, so that keys of single
/// columns suffice. Pages of AES_GCM_CTR_V1 are read, with a warning that they are not
/// authenticated.
pub(crate) fn decryption(global: &Global, path: &str) -> Result<Option<Decryption>> {
    let given = Given::from_flags(global)?;
    // The prefix alone is for writing.
    if given.is_empty() {
        return Ok(None);
    }
    let has_footer_key = given.footer.is_some() || !given.named.is_empty();
    let mut keys = Decryption::new()
        .with_plaintext_files(global.allow_plain)
        .with_unauthenticated_pages(true)
        .with_unverified_footers(!has_footer_key);
    if let Some(key) = given.footer {
        keys = keys.with_footer_key(key);
    }
    for (column, key) in given.columns {
        keys = keys.with_column_key(column, key);
    }
    if let Some(prefix) = &global.aad_prefix {
        keys = keys.with_aad_prefix(prefix.as_bytes());
    }
    if !given.named.is_empty() {
        let materials = materials(Path::new(path))?.unwrap_or_default();
        keys = keys.with_retriever(NamedKeys::new(given.named, materials));
    }
    Ok(Some(keys))
}

/// The master keys that the flags give.
pub(crate) fn key_ring(global: &Global) -> Result<KeyRing> {
    let named = Given::from_flags(global)?.named;
    Ok(named.into_iter().fold(KeyRing::new(), |ring, (name, key)| ring.with_key(name, key)))
}

/// The key material beside a Parquet file, if there is some.
pub(crate) fn materials(parquet: &Path) -> Result<Option<KeyMaterials>> {
    let path = KeyMaterials::path_for(parquet);
    let name = path.display().to_string();
    if let Some(url) = locations::url(&path) {
        return materials_of_url(url);
    }
    let Ok(there) = std::fs::metadata(&path) else { return Ok(None) };
    // A pipe or a device there may wait, or never end.
    if !there.is_file() || there.len() > MAX_MATERIALS {
        let text =
            format!("{name}: key material is a regular file of at most {MAX_MATERIALS} bytes");
        return Err(Failure::Usage(text));
    }
    let mut json = Vec::new();
    File::open(&path)
        .and_then(|file| file.take(MAX_MATERIALS).read_to_end(&mut json))
        .map_err(|e| Error::io("the key material cannot be read", e).at_file(name.as_str()))?;
    Ok(Some(KeyMaterials::from_json(&json).map_err(|e| e.at_file(name.as_str()))?))
}

/// The same beside an object; a missing one is none.
fn materials_of_url(url: &str) -> Result<Option<KeyMaterials>> {
    let source = locations::source(url)?;
    let is_missing = |error: &Error| {
        let cause = error.get_ref().and_then(|cause| cause.downcast_ref::<std::io::Error>());
        cause.is_some_and(|cause| cause.kind() == std::io::ErrorKind::NotFound)
    };
    let len = match source.len() {
        Err(error) if is_missing(&error) => return Ok(None),
        len => len?,
    };
    if len > MAX_MATERIALS {
        let text = format!("{url}: key material has at most {MAX_MATERIALS} bytes");
        return Err(Failure::Usage(text));
    }
    Ok(Some(KeyMaterials::from_json(&source.read(0..len)?).map_err(|e| e.at_file(url))?))
}

/// Bytes of key material: a hundred thousand keys take less.
const MAX_MATERIALS: u64 = 64 << 20;

impl Given {
    fn from_flags(global: &Global) -> Result<Self> {
        let mut given = Self::default();
        if let Some(path) = &global.key_file {
            given.add_file(path)?;
        }
        for setting in &global.key {
            let (id, value) = id_and_place(setting).ok_or_else(|| {
                Failure::Usage(
                    "--key: say ID=@FILE or ID=env:NAME; others on this machine can see a key that \
                     is an argument"
                        .to_owned(),
                )
            })?;
            given.add(id, key("--key", value)?)?;
        }
        if let Some(text) = &global.footer_key {
            given.add(FOOTER, key("--footer-key", text)?)?;
        }
        for setting in &global.column_key {
            let (column, text) = column_and("--column-key", setting)?;
            given.add(&format!("{COLUMN}{column}"), key("--column-key", text)?)?;
        }
        Ok(given)
    }

    fn is_empty(&self) -> bool {
        self.footer.is_none() && self.columns.is_empty() && self.named.is_empty()
    }

    fn add(&mut self, id: &str, key: Key) -> Result<()> {
        let twice = || Err(Failure::Usage(format!("the key {id:?} is given twice")));
        if id == FOOTER {
            return match self.footer.replace(key) {
                Some(_) => twice(),
                None => Ok(()),
            };
        }
        let (list, name) = match id.strip_prefix(COLUMN) {
            Some(column) => (&mut self.columns, column),
            None => (&mut self.named, id),
        };
        if list.iter().any(|(old, _)| old == name) {
            return twice();
        }
        list.push((name.to_owned(), key));
        Ok(())
    }

    /// Adds keys of lines as `ID = HEX`.
    fn add_file(&mut self, path: &Path) -> Result<()> {
        let name = path.display().to_string();
        let bytes = read_keys(path)
            .map_err(|e| Error::io("the file of keys cannot be read", e).at_file(name.as_str()))?;
        let wrong = |line: usize, text: &str| {
            Failure::Usage(format!("--key-file {name}, line {line}: {text}"))
        };
        let text = std::str::from_utf8(&bytes).map_err(|_| wrong(1, "it is no text"))?;
        for (i, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            // The name may have a "=", and a key has none.
            let (id, hex) = line.rsplit_once('=').ok_or_else(|| wrong(i + 1, "say ID = HEX"))?;
            let key = Key::from_hex(hex.trim()).map_err(|e| wrong(i + 1, e.message()))?;
            self.add(id.trim(), key)?;
        }
        Ok(())
    }
}

/// Finds keys by the key metadata of the file: the name of a key, or key material, which names a
/// master key.
struct NamedKeys {
    keys: Vec<(String, Key)>,
    material: KmsKeys,
}

impl NamedKeys {
    fn new(keys: Vec<(String, Key)>, materials: KeyMaterials) -> Self {
        let ring = |ring: KeyRing, (name, key): &(String, Key)| ring.with_key(name, key.clone());
        let ring = keys.iter().fold(KeyRing::new(), ring);
        Self { keys, material: KmsKeys::new(ring).with_materials(materials) }
    }
}

impl KeyRetriever for NamedKeys {
    fn retrieve(&self, request: &KeyRequest<'_>) -> Result<Key, Error> {
        let metadata = request.key_metadata.ok_or_else(|| {
            Error::crypto("the file stores nothing to tell it by: name it by its column, or footer")
        })?;
        if let Some((_, key)) = self.keys.iter().find(|(name, _)| name.as_bytes() == metadata) {
            return Ok(key.clone());
        }
        if metadata.starts_with(b"{") {
            return self.material.retrieve(request);
        }
        let shown = String::from_utf8_lossy(metadata);
        Err(Error::crypto(format_args!("no key that was given is named {shown:?}")))
    }
}

/// The encryption of the output by the flags; `None` if no flag is given.
pub(crate) fn encryption(flags: &EncryptFlags, global: &Global) -> Result<Option<Encryption>> {
    let Some(text) = &flags.encrypt_footer_key else {
        return match flags.given() {
            Some(flag) => Err(Failure::Usage(format!(
                "{flag} needs --encrypt-footer-key: the footer is encrypted or signed with it"
            ))),
            None => Ok(None),
        };
    };
    let mut of = Encryption::new(key("--encrypt-footer-key", text)?);
    if let Some(metadata) = &flags.footer_key_metadata {
        of = of.with_footer_key_metadata(metadata.as_bytes());
    }
    let mut metadata: Vec<(&str, &str)> = Vec::new();
    for setting in &flags.column_key_metadata {
        // The metadata may have a "=".
        let pair = setting.split_once('=');
        metadata.push(pair.ok_or_else(|| without_column("--column-key-metadata"))?);
    }
    for setting in &flags.encrypt_column_key {
        let (column, text) = column_and("--encrypt-column-key", setting)?;
        let key = key("--encrypt-column-key", text)?;
        let found = metadata.iter().position(|(of, _)| *of == column);
        of = match found.map(|i| metadata.swap_remove(i)) {
            Some((_, text)) => of.with_column_key_and_metadata(column, key, text.as_bytes()),
            None => of.with_column_key(column, key),
        };
    }
    if let Some((column, _)) = metadata.first() {
        return Err(Failure::Usage(format!(
            "--column-key-metadata {column}: there is no --encrypt-column-key {column}"
        )));
    }
    if let Some(prefix) = &global.aad_prefix {
        of = of.with_aad_prefix(prefix.as_bytes());
    }
    let algorithm = match flags.algorithm {
        Some(AlgorithmName::GcmCtr) => Algorithm::AesGcmCtrV1,
        Some(AlgorithmName::Gcm) | None => Algorithm::AesGcmV1,
    };
    Ok(Some(of.with_algorithm(algorithm).with_plaintext_footer(flags.plaintext_footer)))
}

/// A key: in hexadecimal digits, in a file (`@FILE`), or in the environment (`env:NAME`).
fn key(flag: &str, text: &str) -> Result<Key> {
    let wrong = |what: &str| Failure::Usage(format!("{flag}: {what}"));
    if let Some(path) = text.strip_prefix('@') {
        let bytes = read_keys(Path::new(path))
            .map_err(|e| Error::io("the file of a key cannot be read", e).at_file(path))?;
        // Digits first: as raw bytes they could be a key, too.
        let digits = std::str::from_utf8(&bytes).ok().map(str::trim);
        let found = digits.and_then(|digits| Key::from_hex(digits).ok());
        return match found {
            Some(key) => Ok(key),
            None => Key::new(&bytes).map_err(|_| {
                wrong(&format!(
                    "{path}: a file of a key has 32, 48 or 64 hexadecimal digits, or 16, 24 or 32 \
                     bytes"
                ))
            }),
        };
    }
    if let Some(name) = text.strip_prefix("env:") {
        let digits = std::env::var(name).map(Zeroizing::new);
        let digits = digits.map_err(|_| wrong(&format!("the environment has no {name}")))?;
        let found = Key::from_hex(digits.trim());
        return found.map_err(|e| wrong(&format!("{name} of the environment: {}", e.message())));
    }
    Key::from_hex(text).map_err(|e| wrong(e.message()))
}

/// The bytes of a file of keys, which may be a pipe: at most as many as key material has.
fn read_keys(path: &Path) -> std::io::Result<Zeroizing<Vec<u8>>> {
    let mut bytes = Zeroizing::new(Vec::new());
    File::open(path)?.take(MAX_MATERIALS + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_MATERIALS {
        let text = format!("it has more than {MAX_MATERIALS} bytes");
        return Err(std::io::Error::new(std::io::ErrorKind::FileTooLarge, text));
    }
    Ok(bytes)
}

/// A name, and where its key is. Either may have a "=".
fn id_and_place(setting: &str) -> Option<(&str, &str)> {
    let at = ["=@", "=env:"].into_iter().filter_map(|mark| setting.find(mark)).min()?;
    Some((setting.get(..at)?, setting.get(at + 1..)?))
}

/// A column and its key. The name may have a "=", and a key has none.
fn column_and<'a>(flag: &str, setting: &'a str) -> Result<(&'a str, &'a str)> {
    let found = id_and_place(setting).or_else(|| setting.rsplit_once('='));
    found.ok_or_else(|| without_column(flag))
}

/// The setting is not repeated: it may be a key.
fn without_column(flag: &str) -> Failure {
    Failure::Usage(format!("{flag}: say COL=VALUE"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_told_from_the_place_of_its_key() {
        for (setting, expected) in [
            ("a=@/keys/a", Some(("a", "@/keys/a"))),
            ("a=b=@/x=y", Some(("a=b", "@/x=y"))),
            ("a=env:KEY", Some(("a", "env:KEY"))),
            ("a=00", None),
            ("a", None),
        ] {
            assert_eq!(id_and_place(setting), expected, "{setting}");
        }
    }
}
