//! [`Signature`]: what protects the footer of a file.

/// Whether the signature of a footer was verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Signature {
    /// The footer is not protected.
    None,
    /// It is encrypted, and was decrypted.
    Encrypted,
    /// It is in plain text, and its signature was verified.
    Verified,
    /// It is in plain text and signed; the signature was not verified, because its key was not
    /// given or was denied.
    Unverified,
}
