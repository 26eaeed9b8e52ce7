//! URLs as files: objects of S3, Google Cloud Storage and Azure, and files of web servers.
//!
//! [`open_url`] gives a blocking [`Source`](marquetry::io::Source), and [`create_url`] a
//! [`Sink`](marquetry::io::Sink), so that whatever reads and writes files reads and writes URLs.
//! Another crate of this repository may call them; they are outside semver.
//!
//! The feature `urls` adds `remote`, which makes the requests; without it each URL is an error that
//! says so. Trap: the query of a URL may be a password. Names that are shown have none of it
//! (`argument`).

mod address;
mod options;
#[cfg_attr(not(feature = "urls"), path = "disabled.rs")]
mod remote;

pub use address::{Address, Scheme};
pub(crate) use address::{ListedName, argument, is_url, unknown_scheme};
pub use options::{Observer, Request, UrlOptions};
pub use remote::{UrlSink, UrlSource, create_url, open_url};
pub(crate) use remote::{abort_uploads, delete_url, list_url, url_exists};
