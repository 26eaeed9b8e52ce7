//! Reads and writes compressed text: `.gz` and `.zst`.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::bufread::GzDecoder;
use flate2::write::GzEncoder;

/// How a file is compressed as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Packing {
    Gzip,
    Zstd,
}

impl Packing {
    /// By the first bytes.
    pub(crate) fn from_magic(bytes: &[u8]) -> Option<Self> {
        match bytes {
            [0x1f, 0x8b, ..] => Some(Self::Gzip),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Some(Self::Zstd),
            _ => None,
        }
    }

    /// By the ending of a name, and the name without it.
    pub(crate) fn of_name(name: &str) -> (Option<Self>, &str) {
        let lower = name.to_ascii_lowercase();
        for (ending, packing) in [(".gz", Self::Gzip), (".zst", Self::Zstd)] {
            if lower.ends_with(ending) {
                return (Some(packing), name.get(..name.len() - ending.len()).unwrap_or(name));
            }
        }
        (None, name)
    }

    /// Decompresses the contents of the file.
    ///
    /// # Errors
    /// If memory for the decoder is refused.
    pub(crate) fn reader<'a>(self, file: Box<dyn Read + 'a>) -> io::Result<Box<dyn Read + 'a>> {
        Ok(match self {
            Self::Gzip => {
                let file = BufReader::with_capacity(1 << 15, file);
                Box::new(GzipMembers { member: Some(GzDecoder::new(file)) })
            }
            Self::Zstd => Box::new(zstd::Decoder::new(file)?),
        })
    }
}

/// The contents of all members of a gzip file. Zeros after the last one are padding, as the command
/// gzip has it.
struct GzipMembers<R> {
    member: Option<GzDecoder<R>>,
}

impl<R: BufRead> Read for GzipMembers<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while let Some(member) = &mut self.member {
            let n = member.read(out)?;
            if n > 0 || out.is_empty() || !has_more(member.get_mut())? {
                return Ok(n);
            }
            self.member = self.member.take().map(|before| GzDecoder::new(before.into_inner()));
        }
        Ok(0)
    }
}

/// Whether anything but zeros comes, which are passed over.
fn has_more(file: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = file.fill_buf()?;
        let (len, zeros) = (bytes.len(), bytes.iter().take_while(|byte| **byte == 0).count());
        file.consume(zeros);
        if len == 0 || zeros < len {
            return Ok(len > 0);
        }
    }
}

/// The ending of a file in small letters, without that of its packing: `csv` of `a.csv.gz`.
pub(crate) fn ending(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let (_, ending) = Packing::of_name(name).1.rsplit_once('.')?;
    Some(ending.to_ascii_lowercase())
}

/// Compresses the output, if the file is to be compressed.
pub(crate) enum Packer<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstd(zstd::Encoder<'static, W>),
}

impl<W: Write> Packer<W> {
    /// # Errors
    /// If memory for the encoder is refused.
    pub(crate) fn new(out: W, packing: Option<Packing>) -> io::Result<Self> {
        Ok(match packing {
            None => Self::Plain(out),
            Some(Packing::Gzip) => Self::Gzip(GzEncoder::new(out, Compression::default())),
            Some(Packing::Zstd) => Self::Zstd(zstd::Encoder::new(out, ZSTD_LEVEL)?),
        })
    }

    /// Writes the rest.
    ///
    /// # Errors
    /// Those of the output.
    pub(crate) fn finish(self) -> io::Result<W> {
        match self {
            Self::Plain(out) => Ok(out),
            Self::Gzip(out) => out.finish(),
            Self::Zstd(out) => out.finish(),
        }
    }
}

impl<W: Write> Write for Packer<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Plain(out) => out.write(bytes),
            Self::Gzip(out) => out.write(bytes),
            Self::Zstd(out) => out.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.flush(),
            Self::Gzip(out) => out.flush(),
            Self::Zstd(out) => out.flush(),
        }
    }
}

/// As the command zstd has it.
const ZSTD_LEVEL: i32 = 3;
