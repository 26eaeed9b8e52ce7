//! Opens the output of a command, and formats numbers.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Stdout, Write};
use std::path::Path;

use bytes::Bytes;
use marquetry::io::Sink as FileSink;

use crate::args::Global;
use crate::failure::Result;
use crate::locations;
use crate::packed::{Packer, Packing};

/// The output: standard output, or a file that appears once it is complete.
pub(crate) struct Sink {
    out: Packer<BufWriter<Destination>>,
    /// Whether it is a terminal.
    pub(crate) terminal: bool,
    /// Whether it is standard output.
    pub(crate) stdout: bool,
    /// Bytes so far.
    pub(crate) bytes: u64,
}

enum Destination {
    Stdout(Stdout),
    /// A device, a pipe or an object of a store among them.
    File(Box<dyn FileSink>),
}

impl Sink {
    /// Opens the file that `-o` names; `-` and nothing are standard output. Names that end in `.gz`
    /// or `.zst` are compressed.
    pub(crate) fn open(global: &Global) -> Result<Self> {
        let path = global.output.as_deref().filter(|path| *path != Path::new("-"));
        let (target, capacity) = match path {
            None => (Destination::Stdout(std::io::stdout()), 1 << 16),
            Some(path) => (Destination::File(locations::sink(path)?), 1 << 20),
        };
        let terminal = is_at_terminal(global);
        let stdout = path.is_none();
        let packing = path.and_then(|path| Packing::of_name(path.to_str()?).0);
        let out = Packer::new(BufWriter::with_capacity(capacity, target), packing)?;
        Ok(Self { out, terminal, stdout, bytes: 0 })
    }

    /// Ends the output, which gives a file its name. Returns its bytes.
    pub(crate) fn close(self) -> Result<u64> {
        let mut out = self.out.finish()?;
        out.flush()?;
        if let Destination::File(file) = out.get_mut() {
            file.finish()?;
        }
        Ok(self.bytes)
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::File(file) => {
                file.write(Bytes::copy_from_slice(bytes)).map_err(std::io::Error::other)?;
                Ok(bytes.len())
            }
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::File(_) => Ok(()),
        }
    }
}

/// Whether what `-o` names is a terminal, or standard output is one.
pub(crate) fn is_at_terminal(global: &Global) -> bool {
    match global.output.as_deref().filter(|path| *path != Path::new("-")) {
        None => std::io::stdout().is_terminal(),
        Some(path) => is_terminal(path),
    }
}

/// Whether a path is the device of a terminal; a pipe is not opened to find out, which would wait
/// for its other end.
#[cfg(unix)]
fn is_terminal(path: &Path) -> bool {
    use std::os::unix::fs::FileTypeExt;
    let is_device = |there: std::fs::Metadata| there.file_type().is_char_device();
    std::fs::metadata(path).is_ok_and(is_device)
        && File::open(path).is_ok_and(|file| file.is_terminal())
}

#[cfg(not(unix))]
fn is_terminal(_path: &Path) -> bool {
    false
}

/// Bytes for people: 1.5 MiB; exact with --raw.
pub(crate) fn bytes(n: u64, global: &Global) -> String {
    if global.raw { n.to_string() } else { rounded_bytes(n) }
}

/// Bytes for people, rounded: 1.5 MiB.
pub(crate) fn rounded_bytes(n: u64) -> String {
    if n < 1024 {
        return format!("{n} B");
    }
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit after the point")]
    let mut value = n as f64;
    let mut unit = "B";
    for larger in ["KiB", "MiB", "GiB", "TiB"] {
        if value < 1024.0 {
            break;
        }
        value /= 1024.0;
        unit = larger;
    }
    format!("{value:.1} {unit}")
}

/// A count for people: 1 234 567; exact with --raw.
pub(crate) fn count(n: u64, global: &Global) -> String {
    let digits = n.to_string();
    if global.raw {
        return digits;
    }
    let mut out = String::new();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(' ');
        }
        out.push(digit);
    }
    out
}

/// A number of things, as [`count`] has it: `1 row`, `2 rows`.
pub(crate) fn counted(n: u64, what: &str, global: &Global) -> String {
    let number = count(n, global);
    if n == 1 { format!("{number} {what}") } else { format!("{number} {what}s") }
}

/// A share in per cent.
pub(crate) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".to_owned();
    }
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit after the point")]
    let percent = part as f64 * 100.0 / whole as f64;
    format!("{percent:.1} %")
}
