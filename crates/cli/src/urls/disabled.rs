//! URLs of a `marq` that was built without the feature `urls`: errors that say so.

use std::ops::Range;

use bytes::Bytes;
use marquetry::Error;
use marquetry::io::{Sink, Source};

use super::address::{Address, ListedName};
use super::options::UrlOptions;

/// A file at a URL: there is none without the feature `urls`.
#[derive(Debug)]
pub enum UrlSource {}

/// An object that is being uploaded: there is none without the feature `urls`.
#[derive(Debug)]
pub enum UrlSink {}

fn disabled(url: &str) -> Error {
    match Address::parse(url) {
        Ok(address) => Error::unsupported(
            "URLs",
            format_args!("{}: this marq was built without the feature urls", address.name),
        ),
        Err(error) => error,
    }
}

/// Opens the file that a URL names.
///
/// # Errors
/// `Unsupported`: the feature `urls` is off.
pub fn open_url(url: &str, _options: &UrlOptions) -> Result<UrlSource, Error> {
    Err(disabled(url))
}

/// Begins the object that a URL names.
///
/// # Errors
/// `Unsupported`: the feature `urls` is off.
pub fn create_url(url: &str, _options: &UrlOptions) -> Result<UrlSink, Error> {
    Err(disabled(url))
}

pub(crate) fn url_exists(url: &str, _options: &UrlOptions) -> Result<bool, Error> {
    Err(disabled(url))
}

pub(crate) fn delete_url(url: &str, _options: &UrlOptions) -> Result<(), Error> {
    Err(disabled(url))
}

pub(crate) fn list_url(
    url: &str,
    _deep: bool,
    _options: &UrlOptions,
) -> Result<Vec<ListedName>, Error> {
    Err(disabled(url))
}

pub(crate) fn abort_uploads() {}

impl UrlSource {
    pub(crate) fn kept_bytes(&self) -> u64 {
        match *self {}
    }
}

impl Source for UrlSource {
    fn len(&self) -> Result<u64, Error> {
        match *self {}
    }

    fn read(&self, _range: Range<u64>) -> Result<Bytes, Error> {
        match *self {}
    }
}

impl Sink for UrlSink {
    fn write(&mut self, _bytes: Bytes) -> Result<(), Error> {
        match *self {}
    }

    fn finish(&mut self) -> Result<(), Error> {
        match *self {}
    }
}
