//! Makes the requests for URLs, on the threads of a runtime of its own.

mod fault;
mod runtime;
mod environment;
mod file;
mod stores;
mod web;
mod upload;
mod listing;

use std::sync::Arc;

use marquetry::Error;
use object_store::ObjectStoreExt as _;

pub use self::file::UrlSource;
pub(crate) use self::listing::list_url;
pub use self::upload::UrlSink;
pub(crate) use self::upload::abort_uploads;
use super::address::{Address, Scheme};
use super::options::UrlOptions;

/// Opens the file that a URL names. No request is made yet.
///
/// ```no_run
/// use marquetry::Reader;
/// use marquetry_cli::urls::{UrlOptions, open_url};
///
/// # fn main() -> marquetry::Result<()> {
/// let source = open_url("s3://bucket/trips.parquet", &UrlOptions::default())?;
/// println!("{} rows", Reader::new(source)?.rows()?);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// `Usage` if it is no URL; `Io` if credentials are missing, or of a kind that is not known here.
pub fn open_url(url: &str, options: &UrlOptions) -> Result<UrlSource, Error> {
    let address = Address::parse(url)?;
    let remote: Arc<dyn file::Remote> = match address.scheme {
        Scheme::Web => Arc::new(web::WebFile::new(&address, options)?),
        _ => Arc::new(stores::StoreFile::new(&address, options)?),
    };
    Ok(UrlSource::new(address.name.into(), remote, options.observer.clone()))
}

/// Begins the object that a URL names: it appears, whole, when the sink is finished.
///
/// # Errors
/// As [`open_url`]; `Unsupported` for web servers.
pub fn create_url(url: &str, options: &UrlOptions) -> Result<UrlSink, Error> {
    let address = Address::parse(url)?;
    if address.scheme == Scheme::Web {
        let text = format!("{}: files are written to s3://, gs:// and az://", address.name);
        return Err(Error::unsupported("writing to a web server", text));
    }
    let (store, path) = (stores::store(&address, options)?, stores::path(&address)?);
    UrlSink::begin(address.name.into(), store, path)
}

/// Whether there is an object.
///
/// # Errors
/// As [`open_url`], and `Io`.
pub(crate) fn url_exists(url: &str, options: &UrlOptions) -> Result<bool, Error> {
    let address = Address::parse(url)?;
    let (store, path) = (stores::store(&address, options)?, stores::path(&address)?);
    match runtime::wait(async move { store.head(&path).await })? {
        Ok(_) => Ok(true),
        Err(object_store::Error::NotFound { .. }) => Ok(false),
        Err(error) => Err(fault::of_store(&error).error("looking for the object", &address.name)),
    }
}

/// Removes an object.
///
/// # Errors
/// As [`url_exists`].
pub(crate) fn delete_url(url: &str, options: &UrlOptions) -> Result<(), Error> {
    let address = Address::parse(url)?;
    let (store, path) = (stores::store(&address, options)?, stores::path(&address)?);
    let done = runtime::wait(async move { store.delete(&path).await })?;
    done.map_err(|error| fault::of_store(&error).error("removing the object", &address.name))
}
