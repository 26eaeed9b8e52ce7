//! AES-GCM and AES-CTR, by a library: `aes-gcm` and `ctr`, or AWS-LC with the cargo feature
//! `aws-lc`. Without the feature `encryption` there is neither.
//!
//! Spec: Encryption.md, "Encryption algorithms"; NIST SP 800-38A and 800-38D. Tags are compared in
//! constant time by the library.

mod backend;
#[cfg_attr(feature = "encryption", path = "enabled.rs")]
#[cfg_attr(not(feature = "encryption"), path = "disabled.rs")]
mod provider;

use std::fmt;

pub(super) use backend::{Cipher, NONCE_LEN, TAG_LEN};
pub(super) use provider::{Aes, Secret, random};

use crate::error::{Error, Result};

/// # Errors
/// `FeatureDisabled` if this build has no cipher.
pub(super) fn check_enabled(what: impl fmt::Display) -> Result<()> {
    match cfg!(feature = "encryption") {
        true => Ok(()),
        false => Err(Error::feature_disabled("encryption", what)),
    }
}
