//! Where a command writes to, and numbers for people.

use std::fs::File;
use std::io::{BufWriter, IsTerminal, Write};
use std::path::{Path, PathBuf};

use crate::args::Global;
use crate::failure::Result;

/// Where the output goes: standard output, or a file that appears when it is whole.
pub(crate) struct Sink {
    out: Box<dyn Write>,
    /// Whether a person reads it.
    pub(crate) terminal: bool,
    /// Whether it is standard output.
    pub(crate) stdout: bool,
    /// The file that is written, and the one that it becomes.
    rename: Option<(PathBuf, PathBuf)>,
}

impl Sink {
    /// Opens what `-o` names; `-` and nothing are standard output.
    pub(crate) fn open(global: &Global) -> Result<Self> {
        match global.output.as_deref().filter(|path| *path != Path::new("-")) {
            None => {
                let stdout = std::io::stdout();
                let terminal = stdout.is_terminal();
                Ok(Self {
                    out: Box::new(BufWriter::with_capacity(1 << 16, stdout)),
                    terminal,
                    stdout: true,
                    rename: None,
                })
            }
            Some(path) if is_special(path) => {
                let file = File::options().write(true).open(path)?;
                let terminal = file.is_terminal();
                let out = Box::new(BufWriter::new(file));
                Ok(Self { out, terminal, stdout: false, rename: None })
            }
            Some(path) => {
                let mut beside = path.as_os_str().to_owned();
                beside.push(format!(".{}.part", std::process::id()));
                let beside = PathBuf::from(beside);
                let file = File::create(&beside)?;
                let out = Box::new(BufWriter::with_capacity(1 << 20, file));
                let rename = Some((beside, path.to_owned()));
                Ok(Self { out, terminal: false, stdout: false, rename })
            }
        }
    }

    /// Ends the output: only now does a file have its name.
    pub(crate) fn close(mut self) -> Result<()> {
        self.out.flush()?;
        if let Some((from, to)) = self.rename.take() {
            File::open(&from)?.sync_all()?;
            std::fs::rename(from, to)?;
        }
        Ok(())
    }
}

/// Whether a path is a device or a pipe, which is written to and not replaced.
pub(crate) fn is_special(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.out.flush()
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // Not closed: what is there is not whole, and does not stay.
        if let Some((from, _)) = self.rename.take() {
            let _ = std::fs::remove_file(from);
        }
    }
}

/// Bytes for people: 1.5 MiB; exact with --raw.
pub(crate) fn bytes(n: u64, global: &Global) -> String {
    if global.raw || n < 1024 {
        return if global.raw { n.to_string() } else { format!("{n} B") };
    }
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit behind the point")]
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

/// A share in per cent.
pub(crate) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "–".to_owned();
    }
    #[expect(clippy::cast_precision_loss, reason = "shown with one digit behind the point")]
    let percent = part as f64 * 100.0 / whole as f64;
    format!("{percent:.1} %")
}
