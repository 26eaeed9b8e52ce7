//! `hexdump` explains a file byte by byte: bytes on the left, what they mean on the right.

mod wanted;
mod dump;
mod record;
mod text;

use std::cell::RefCell;

use marquetry::inspect::Inspector;
use marquetry::{Error, ErrorKind};
use serde::Serialize;

use self::dump::Dump;
use self::text::{DumpLayout, SpanPrinter};
use self::wanted::Wanted;
use crate::args::{Global, Hexdump};
use crate::failure::{Result, after_printing};
use crate::report::{self, Report, Tables};
use crate::{input, keys};

/// Explains the file that is asked for.
pub(crate) fn run(command: &Hexdump, global: &Global) -> Result<()> {
    let path = &command.source.file;
    let source = input::source(path, global)?;
    let decryption = keys::decryption(global, path)?;
    let opened = Inspector::with_keys(source, input::limits(global), decryption.as_ref());
    let inspector = opened.map_err(|e| e.at_file(path.as_str()))?;
    if command.page.is_some() && inspector.metadata().is_none() {
        // The footer says where the page is; opening the file fails with what is wrong with it.
        input::open(path, global)?;
    }
    let report = HexdumpReport {
        file: path.clone(),
        file_bytes: inspector.file_len(),
        spans: Dump {
            wanted: Wanted::new(command, &inspector).map_err(|e| e.at_file(path.as_str()))?,
            depth: command.depth,
            inspector,
            failed: RefCell::new(None),
            width: command.width,
        },
    };
    let printed = report::print(&report, global);
    // What made the output end early comes before that it did.
    if let Some(error) = report.spans.failed.take() {
        return Err(error.at_file(path.as_str()).into());
    }
    // The file was shown; that a key which was given does not open it must not go unnoticed.
    let end = match report.spans.inspector.problem() {
        Some(error) if decryption.is_some() && error.kind() == ErrorKind::Crypto => {
            Err(Error::crypto(error.message()).at_file(path.as_str()).into())
        }
        _ => Ok(()),
    };
    after_printing(printed, end)
}

#[derive(Serialize)]
struct HexdumpReport {
    file: String,
    file_bytes: u64,
    spans: Dump,
}

impl Report for HexdumpReport {
    const COMMAND: &'static str = "hexdump";

    fn lines(&self) -> impl Iterator<Item = impl Serialize> {
        record::leaves(&self.spans)
    }

    fn tables(&self, out: &mut Tables<'_>) -> Result<()> {
        let global = out.global;
        let (sink, style) = out.raw();
        let layout = DumpLayout::new(self.file_bytes, self.spans.width, style, global);
        SpanPrinter::new(sink, &self.spans, layout).print()
    }
}
