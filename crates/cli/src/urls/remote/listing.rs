//! The objects below a prefix of a store.

use futures_util::TryStreamExt as _;
use marquetry::Error;
use object_store::path::Path;

use super::{fault, runtime, stores};
use crate::urls::address::{Address, ListedName, Scheme};
use crate::urls::options::UrlOptions;

/// Objects of a listing: more are refused, because their names are held in memory.
const MAX_LISTED: usize = 1_000_000;

/// The objects below a URL that ends with `/`, by their names; `deep` if those in folders below are
/// wanted, too.
///
/// # Errors
/// `Io`; `Usage` for web servers, which do not list, and for more than a million objects.
pub(crate) fn list_url(
    url: &str,
    deep: bool,
    options: &UrlOptions,
) -> Result<Vec<ListedName>, Error> {
    let address = Address::parse(url)?;
    if address.scheme == Scheme::Web {
        let text = format_args!("{url}: web servers do not list files: name each");
        return Err(Error::usage(text));
    }
    let store = stores::store(&address, options)?;
    let prefix = stores::path(&address)?;
    let prefix = if prefix.as_ref().is_empty() { None } else { Some(prefix) };
    let of_prefix = prefix.clone();
    let found = runtime::wait(async move {
        if !deep {
            let listed = store.list_with_delimiter(of_prefix.as_ref()).await?;
            return Ok(listed.objects.into_iter().map(|meta| meta.location).collect());
        }
        let mut found: Vec<Path> = Vec::new();
        let mut listed = store.list(of_prefix.as_ref());
        while let Some(meta) = listed.try_next().await? {
            if found.len() >= MAX_LISTED {
                break;
            }
            found.push(meta.location);
        }
        Ok(found)
    })?;
    let mut found: Vec<Path> = found.map_err(|error: object_store::Error| {
        fault::of_store(&error).error("listing the objects", &address.name)
    })?;
    if found.len() >= MAX_LISTED {
        let text = format_args!("{url}: more than {MAX_LISTED} objects: name a folder below");
        return Err(Error::usage(text));
    }
    found.sort();
    let root = url.len() - address.key.len();
    let bucket = url.get(..root).unwrap_or_default().trim_end_matches('/');
    let names = found.into_iter().filter_map(|path| {
        let key = path.as_ref();
        let below = match &prefix {
            Some(prefix) => key.strip_prefix(prefix.as_ref())?.strip_prefix('/')?,
            None => key,
        };
        Some(ListedName { url: format!("{bucket}/{key}"), below: below.to_owned() })
    });
    Ok(names.collect())
}
