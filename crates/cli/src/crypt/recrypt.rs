//! `crypt encrypt`, `decrypt` and `rekey` copy a file page by page, to another protection.

use std::path::Path;
use std::time::Instant;

use marquetry::Reader;
use marquetry::crypt::{Decryption, Encryption};
use marquetry::io::{Sink, WriteSink};
use marquetry::rewrite::recrypt;

use crate::args::{EncryptFlags, Global, Recrypt, Rekey, SourceFile};
use crate::failure::{Failure, Result};
use crate::{input, keys, locations, output};

/// Encrypts a file that is in plain text.
pub(crate) fn encrypt(command: &Recrypt, global: &Global) -> Result<()> {
    let encryption = required(&command.encrypt, global)?;
    // The prefix is that of the new file.
    let of_input = Global { aad_prefix: None, ..global.clone() };
    let reader = input::open(&command.source.file, &of_input)?;
    if super::footer::is_encrypted(&reader) {
        return Err(Failure::Usage(format!(
            "{}: it is encrypted; marq crypt rekey encrypts it with other keys",
            command.source.file
        )));
    }
    copy(&reader, Some(&encryption), global)
}

/// Decrypts a file.
pub(crate) fn decrypt(source: &SourceFile, global: &Global) -> Result<()> {
    copy(&encrypted(&source.file, global)?, None, global)
}

/// Encrypts a file that is encrypted with other keys.
pub(crate) fn rekey(command: &Rekey, global: &Global) -> Result<()> {
    let mut of_output = global.clone();
    if let Some(prefix) = &command.new_aad_prefix {
        of_output.aad_prefix = Some(prefix.clone()).filter(|prefix| !prefix.is_empty());
    }
    let encryption = required(&command.encrypt, &of_output)?;
    copy(&encrypted(&command.source.file, global)?, Some(&encryption), global)
}

fn required(flags: &EncryptFlags, global: &Global) -> Result<Encryption> {
    keys::encryption(flags, global)?.ok_or_else(|| {
        Failure::Usage("--encrypt-footer-key is needed: the footer is encrypted with it".to_owned())
    })
}

/// A file that must be encrypted: one in plain text may have replaced it.
fn encrypted(path: &str, global: &Global) -> Result<Reader> {
    let keys = keys::decryption(global, path)?.unwrap_or_default();
    let keys: Decryption = keys.with_plaintext_files(false);
    input::open_with(path, global, Some(&keys))
}

fn copy(reader: &Reader, encryption: Option<&Encryption>, global: &Global) -> Result<()> {
    let begun = Instant::now();
    let path = global.output.as_deref().ok_or_else(|| {
        Failure::Usage("say the new file with -o; - is standard output".to_owned())
    })?;
    let is_file = path != Path::new("-");
    let sink: Box<dyn Sink> = match is_file {
        true => locations::sink(path)?,
        false => Box::new(WriteSink(std::io::stdout())),
    };
    let done = recrypt(reader, sink, encryption)?;
    if !global.quiet && reader.metadata().has_unauthenticated_pages() {
        eprintln!(
            "marq: note: the pages of the input are not authenticated (AES_GCM_CTR_V1): their \
             values may have been changed"
        );
    }
    if !global.quiet && global.verbose > 0 {
        let (pages, size) = (output::count(done.pages, global), output::bytes(done.bytes, global));
        let to = if is_file { format!(" to {}", path.display()) } else { String::new() };
        eprintln!("{pages} pages, {size}, {:.1} s{to}", begun.elapsed().as_secs_f64());
    }
    Ok(())
}
