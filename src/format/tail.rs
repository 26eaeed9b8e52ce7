//! The last eight bytes of a file state how long the footer is, and whether it is encrypted.
//!
//! Spec: README.md, "File format". Used by `read::tail`, which fetches the bytes and checks the
//! leading magic too.
//!
//! ```text
//!  | footer length, u32 little-endian | PAR1 or PARE |
//! ```
//!
//! Trap: the length is unsigned, and the footer must lie between the leading magic number and these
//! eight bytes.

use crate::error::{Error, Result, Spec};

/// First and last four bytes of a file whose footer is in plain.
pub(crate) const MAGIC: [u8; 4] = *b"PAR1";

/// First and last four bytes of a file whose footer is encrypted.
pub(crate) const MAGIC_ENCRYPTED: [u8; 4] = *b"PARE";

/// Last four bytes of a file whose footer has a proposed form, apache/arrow-rs pull request 10177.
const MAGIC_DRAFT: [u8; 4] = *b"PARX";

/// Bytes after the footer: its length and the magic.
pub(crate) const TAIL_LEN: usize = 8;

/// The shortest file: both magics and a footer length.
pub(crate) const MIN_FILE_LEN: u64 = 12;

/// The last eight bytes, parsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ParsedTail {
    /// Bytes of the footer, which ends where the last eight bytes begin.
    pub footer_len: u32,
    /// Whether the footer is encrypted.
    pub encrypted: bool,
}

/// Reads the last eight bytes of a file of `file_len` bytes.
///
/// # Errors
/// `Malformed(Container)` if the file is too short, the magic is another one, or the footer would
/// begin before the file does.
pub(crate) fn parse(last8: &[u8; TAIL_LEN], file_len: u64) -> Result<ParsedTail> {
    if file_len < MIN_FILE_LEN {
        return Err(Error::mismatch(
            Spec::Container,
            "bytes in the file",
            format_args!("at least {MIN_FILE_LEN}"),
            file_len,
        ));
    }
    let [l0, l1, l2, l3, magic @ ..] = *last8;
    let encrypted = match magic {
        MAGIC => false,
        MAGIC_ENCRYPTED => true,
        MAGIC_DRAFT => {
            return Err(Error::unsupported(
                "footers of the PARX draft",
                "the file ends with PARX: its footer is of a form that is not in the specification",
            ));
        }
        _ => {
            return Err(Error::mismatch(
                Spec::Container,
                "the last four bytes, not a Parquet file",
                "PAR1 or PARE",
                magic.escape_ascii(),
            ));
        }
    };
    let footer_len = u32::from_le_bytes([l0, l1, l2, l3]);
    let before_tail = file_len - MIN_FILE_LEN;
    if u64::from(footer_len) > before_tail {
        return Err(Error::mismatch(
            Spec::Container,
            "footer length",
            format_args!("at most {before_tail} in a file of {file_len} bytes"),
            footer_len,
        ));
    }
    Ok(ParsedTail { footer_len, encrypted })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn both_magics_are_known() {
        let tail = parse(b"\x64\0\0\0PAR1", 112).unwrap();
        assert_eq!(tail, ParsedTail { footer_len: 100, encrypted: false });
        let tail = parse(b"\x64\0\0\0PARE", 1000).unwrap();
        assert_eq!(tail, ParsedTail { footer_len: 100, encrypted: true });
    }

    #[test]
    fn short_file_bad_magic_and_long_footer_are_malformed_each_by_name() {
        let cases: [(&[u8; 8], u64, &str); 5] = [
            (b"\0\0\0\0PAR1", 11, "at least 12"),
            (b"\0\0\0\0PAR2", 100, "PAR2"),
            (b"\0\0\0\0\xFF\0AB", 100, "not a Parquet file"),
            (b"\x65\0\0\0PAR1", 112, "footer length"),
            (b"\xFF\xFF\xFF\xFFPAR1", 1000, "4294967295"),
        ];
        for (bytes, file_len, word) in cases {
            let error = parse(bytes, file_len).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Malformed(Spec::Container));
            assert!(error.to_string().contains(word), "{error}");
        }
    }

    #[test]
    fn a_footer_of_a_draft_is_unsupported_by_name() {
        let error = parse(b"\x64\0\0\0PARX", 112).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Unsupported(_)), "{error}");
        assert!(error.to_string().contains("PARX"), "{error}");
    }
}
