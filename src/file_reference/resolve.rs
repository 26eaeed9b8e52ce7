//! [`FileReference`] says what a FILE value refers to; a [`FileResolver`] fetches its bytes.
//!
//! Spec: LogicalTypes.md, FILE, "Resolution".

use std::ops::Range;

use bytes::Bytes;

use super::checksum::Checksum;
use crate::error::{Error, Result, Spec};

/// Fetches resources for [`FileReference::read`].
pub trait FileResolver {
    /// The bytes of `range` of the resource at `uri`; all of it without a range.
    ///
    /// `uri` is an RFC 3986 reference as the file states it, possibly relative. It and the range
    /// come from the file: the resolver decides which resources may be fetched, and how much of
    /// them.
    ///
    /// # Errors
    /// Any error of the resolver.
    fn fetch(&self, uri: &str, range: Option<Range<u64>>) -> Result<Bytes>;
}

/// A value of a FILE column.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileReference<'a> {
    /// The target of the reference.
    pub target: FileTarget<'a>,
    /// The media type of the bytes; `application/octet-stream` if none is set.
    pub content_type: &'a str,
    /// The checksum of the bytes, if one is set.
    pub checksum: Option<Checksum<'a>>,
    /// The URI: that of the target, or where inline bytes came from.
    pub uri: Option<&'a str>,
}

/// The target of a value of a FILE column.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum FileTarget<'a> {
    /// There is no value.
    Null,
    /// These bytes.
    Inline(&'a [u8]),
    /// A resource, or a range of its bytes.
    External {
        /// Where it is.
        uri: &'a str,
        /// Which bytes of it; all without a range.
        range: Option<Range<u64>>,
    },
    /// Nothing: the value breaks this rule of the format.
    Invalid(&'static str),
}

/// Media type if none is set.
pub(super) const DEFAULT_CONTENT_TYPE: &str = "application/octet-stream";

impl FileReference<'_> {
    /// The bytes that the value refers to, checked against its size and its checksum; `None` if it
    /// is null.
    ///
    /// An ETAG is not compared: it is in [`FileReference::checksum`], for resolvers that can
    /// compare it with that of their store.
    ///
    /// # Errors
    /// `Malformed(LogicalTypes("FILE"))` if the value is invalid, or the bytes do not have its size
    /// or checksum; `FeatureDisabled` if the checksum needs the feature `file-references`; and any
    /// error of the resolver.
    pub fn read(&self, resolver: &dyn FileResolver) -> Result<Option<Bytes>> {
        let bytes = self.read_unverified(resolver)?;
        if let (Some(bytes), Some(checksum)) = (&bytes, &self.checksum) {
            checksum.verify(bytes)?;
        }
        Ok(bytes)
    }

    /// Like [`FileReference::read`], without verifying the checksum.
    ///
    /// # Errors
    /// As [`FileReference::read`], apart from the checksum.
    pub fn read_unverified(&self, resolver: &dyn FileResolver) -> Result<Option<Bytes>> {
        match &self.target {
            FileTarget::Null => Ok(None),
            FileTarget::Inline(bytes) => Ok(Some(Bytes::copy_from_slice(bytes))),
            FileTarget::External { uri, range } => {
                let len = range.as_ref().map(|range| range.end - range.start);
                if len == Some(0) {
                    return Ok(Some(Bytes::new()));
                }
                let bytes = resolver.fetch(uri, range.clone())?;
                match len {
                    Some(len) if len != bytes.len() as u64 => Err(Error::mismatch(
                        Spec::LogicalTypes("FILE"),
                        &format!("bytes of {uri:?}"),
                        len,
                        bytes.len(),
                    )),
                    _ => Ok(Some(bytes)),
                }
            }
            FileTarget::Invalid(why) => {
                Err(Error::malformed(Spec::LogicalTypes("FILE"), format_args!("a value: {why}")))
            }
        }
    }
}
