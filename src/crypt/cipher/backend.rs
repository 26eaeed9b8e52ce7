//! [`Cipher`]: what each of the libraries gives.

/// Bytes of a nonce.
pub(in crate::crypt) const NONCE_LEN: usize = 12;

/// Bytes of a tag.
pub(in crate::crypt) const TAG_LEN: usize = 16;

/// A cipher with its key. `Sized`, as there is one backend in a build.
pub(in crate::crypt) trait Cipher: Sized {
    /// For a key of 16, 24 or 32 bytes; `None` if it has another length.
    fn new(key: &[u8]) -> Option<Self>;

    /// Encrypts in place by GCM, and gives the tag; `None` if the library refuses, as it does
    /// beyond 64 GiB.
    fn seal(&self, nonce: [u8; NONCE_LEN], aad: &[u8], data: &mut [u8]) -> Option<[u8; TAG_LEN]>;

    /// Decrypts in place by GCM; `None` if the tag is wrong; `data` are then undefined.
    fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        aad: &[u8],
        data: &mut [u8],
        tag: [u8; TAG_LEN],
    ) -> Option<()>;

    /// Encrypts or decrypts in place by CTR, the counter beginning with 1; `None` if the library
    /// refuses.
    fn ctr(&self, nonce: [u8; NONCE_LEN], data: &mut [u8]) -> Option<()>;
}
