//! Keys: from the flags to what reads and writes encrypted files.

use marquetry::crypt::{Algorithm, Decryption, Encryption, Key};

use crate::args::{AlgorithmName, EncryptFlags, Global};
use crate::failure::{Failure, Result};

/// The keys that the flags give to read with; `None` if they give none. Files that are not
/// encrypted are read too: often some of a folder are.
pub(crate) fn decryption(global: &Global) -> Result<Option<Decryption>> {
    let is_given =
        global.footer_key.is_some() || !global.column_key.is_empty() || global.aad_prefix.is_some();
    if !is_given {
        return Ok(None);
    }
    let mut keys = Decryption::new().with_plaintext_files(true).with_unauthenticated_pages(true);
    if let Some(hex) = &global.footer_key {
        keys = keys.with_footer_key(key("--footer-key", hex)?);
    }
    for setting in &global.column_key {
        let (column, hex) = column_and("--column-key", setting)?;
        keys = keys.with_column_key(column, key("--column-key", hex)?);
    }
    if let Some(prefix) = &global.aad_prefix {
        keys = keys.with_aad_prefix(prefix.as_bytes());
    }
    Ok(Some(keys))
}

/// What the flags say of encryption on the way out; `None` if they say nothing.
pub(crate) fn encryption(flags: &EncryptFlags, global: &Global) -> Result<Option<Encryption>> {
    let Some(hex) = &flags.encrypt_footer_key else {
        return match flags.given() {
            Some(flag) => Err(Failure::Usage(format!(
                "{flag} needs --encrypt-footer-key: the footer is encrypted or signed with it"
            ))),
            None => Ok(None),
        };
    };
    let mut of = Encryption::new(key("--encrypt-footer-key", hex)?);
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
        let (column, hex) = column_and("--encrypt-column-key", setting)?;
        let key = key("--encrypt-column-key", hex)?;
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

/// A key in hexadecimal digits. No message repeats it.
fn key(flag: &str, hex: &str) -> Result<Key> {
    Key::from_hex(hex).map_err(|e| Failure::Usage(format!("{flag}: {}", e.message())))
}

/// A column and its key. The name may have a "=", and a key has none.
fn column_and<'a>(flag: &str, setting: &'a str) -> Result<(&'a str, &'a str)> {
    setting.rsplit_once('=').ok_or_else(|| without_column(flag))
}

/// The setting is not repeated: it may be a key.
fn without_column(flag: &str) -> Failure {
    Failure::Usage(format!("{flag}: say COL=VALUE"))
}
