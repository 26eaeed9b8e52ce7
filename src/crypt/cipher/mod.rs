//! AES-GCM and AES-CTR, provided by the crates `aes-gcm` and `ctr`, or by AWS-LC with the cargo
//! feature `aws-lc`. Without the feature `encryption` there is neither.
//!
//! Spec: Encryption.md, "Encryption algorithms"; NIST SP 800-38A and 800-38D. Tags are compared in
//! constant time by the library.

mod backend;
#[cfg(feature = "aws-lc")]
mod aws_lc;
#[cfg(all(feature = "encryption", any(not(feature = "aws-lc"), test)))]
mod portable;
#[cfg_attr(feature = "encryption", path = "enabled.rs")]
#[cfg_attr(not(feature = "encryption"), path = "disabled.rs")]
mod provider;

pub(super) use backend::{Cipher, NONCE_LEN, TAG_LEN, check_enabled};
pub(super) use provider::{Aes, Secret, random};
