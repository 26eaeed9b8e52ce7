//! `crypt rewrap` gives other master keys to files whose key material lies beside them.

use std::path::Path;

use bytes::Bytes;
use marquetry::crypt::kms::KeyMaterials;
use marquetry::io::Sink;
use serde::Serialize;

use crate::args::{Global, Rewrap};
use crate::failure::{Failure, Result};
use crate::report::{self, Column, Report, Tables};
use crate::{input, keys, locations};

/// Wraps the keys of each file anew.
pub(crate) fn run(command: &Rewrap, global: &Global) -> Result<()> {
    let mut names: Vec<(&str, &str)> = Vec::new();
    for setting in &command.master_key {
        let (old, new) = setting.split_once('=').ok_or_else(|| {
            Failure::Usage(format!("--master-key {setting}: say OLD=NEW, names of master keys"))
        })?;
        if names.iter().any(|(known, _)| *known == old) {
            return Err(Failure::Usage(format!("--master-key {old}: it is given twice")));
        }
        names.push((old, new));
    }
    let kms = keys::key_ring(global)?;
    let mut files = Vec::new();
    for path in input::paths(&command.files.files)? {
        let mut materials = keys::materials(Path::new(&path))?.ok_or_else(|| {
            Failure::Usage(format!(
                "{path}: there is no {} beside it; material that the file stores itself changes \
                 only with the file: marq crypt rekey",
                KeyMaterials::path_for(&path).display()
            ))
        })?;
        let new_name = |old: &str| names.iter().find(|(name, _)| *name == old).map(|(_, new)| *new);
        let all = materials.iter().count();
        let changed = materials.iter().filter(|(_, of)| new_name(&of.master_key_id).is_some());
        let changed = changed.count();
        if changed > 0 {
            materials
                .rewrap(&kms, |old| new_name(old).map(str::to_owned))
                .map_err(|e| e.at_file(path.as_str()))?;
            let mut sink = locations::sink(&KeyMaterials::path_for(&path))?;
            sink.write(Bytes::from(materials.to_json()))?;
            sink.finish()?;
        }
        files.push(RewrappedFile { file: path, keys: all, wrapped_anew: changed });
    }
    report::print(&Rewrapped { files }, global)
}

#[derive(Serialize)]
struct Rewrapped {
    files: Vec<RewrappedFile>,
}

#[derive(Serialize)]
struct RewrappedFile {
    file: String,
    keys: usize,
    wrapped_anew: usize,
}

impl Report for Rewrapped {
    const COMMAND: &'static str = "crypt-rewrap";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        self.files.iter()
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        let columns = [
            Column::text("file", |of: &RewrappedFile| of.file.clone()),
            Column::number("keys", |of| of.keys.to_string()),
            Column::number("wrapped anew", |of| of.wrapped_anew.to_string()),
        ];
        out.show("", &columns, &self.files, &[])
    }
}
