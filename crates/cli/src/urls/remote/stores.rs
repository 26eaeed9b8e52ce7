//! Object stores by their URLs, with credentials from where people have them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::TryStreamExt as _;
use futures_util::future::BoxFuture;
use marquetry::Error;
use object_store::aws::{AmazonS3Builder, resolve_bucket_region};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::path::Path;
use object_store::{
    BackoffConfig, Certificate, ClientOptions, GetOptions, GetRange, ObjectMeta, ObjectStore,
    RetryConfig,
};

use super::environment::{self, Profile, variable};
use super::fault::{self, Fault};
use super::file::{Remote, Version, WantedBytes, WebAnswer, append};
use super::runtime;
use crate::urls::address::{Address, Scheme};
use crate::urls::options::UrlOptions;

/// The key of an object, as it stands in the URL.
///
/// # Errors
/// `Usage` if no object can have it.
pub(super) fn path(address: &Address) -> Result<Path, Error> {
    Path::parse(&address.key)
        .map_err(|e| Error::usage(format_args!("{}: no key of an object: {e}", address.name)))
}

/// A store and its options.
type Made = (Scheme, String, Arc<dyn ObjectStore>);

/// The store of a bucket. Those of a process are kept, with their connections.
///
/// # Errors
/// `Io` if credentials are missing, or of a kind that is not known here; `Usage` if the URL has
/// some.
pub(super) fn store(
    address: &Address,
    options: &UrlOptions,
) -> Result<Arc<dyn ObjectStore>, Error> {
    address.check()?;
    static STORES: Mutex<Vec<Made>> = Mutex::new(Vec::new());
    let mut stores = STORES.lock().unwrap_or_else(PoisonError::into_inner);
    // The options of a process are the same for all of its URLs, but for those of a test.
    let bucket = format!("{} {options:?}", address.bucket);
    let known = stores.iter().find(|(scheme, of, _)| *scheme == address.scheme && *of == bucket);
    if let Some((.., store)) = known {
        return Ok(store.clone());
    }
    let made = match address.scheme {
        Scheme::S3 => s3(address, options),
        Scheme::Google => google(address, options),
        Scheme::Azure => azure(address, options),
        Scheme::Web => Err(Error::unsupported("a store of this kind", &address.name)),
    };
    let made = made.map_err(|error| error.at_file(address.name.as_str()))?;
    stores.push((address.scheme, bucket, made.clone()));
    Ok(made)
}

fn client_options(options: &UrlOptions, endpoint: Option<&str>) -> Result<ClientOptions, Error> {
    let mut client = ClientOptions::new()
        .with_connect_timeout(options.timeout.min(CONNECT_TIMEOUT))
        .with_timeout(options.timeout.saturating_mul(4))
        .with_allow_http(endpoint.is_some_and(|url| url.starts_with("http://")));
    if let Some(certificate) = certificates(options)? {
        let wrong = |e| Error::usage(format_args!("--ca-file: {e}"));
        for certificate in Certificate::from_pem_bundle(&certificate).map_err(wrong)? {
            client = client.with_root_certificate(certificate);
        }
    }
    Ok(client)
}

/// The contents of the file of certificates, if there is one.
pub(super) fn certificates(options: &UrlOptions) -> Result<Option<Vec<u8>>, Error> {
    let read = options.ca_file.as_ref().map(|path| {
        let name = path.display().to_string();
        std::fs::read(path)
            .map_err(|e| Error::io("the certificates cannot be read", e).at_file(name))
    });
    read.transpose()
}

/// How long connecting may take.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

fn retries(options: &UrlOptions) -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: Duration::from_secs(5),
            base: 2.0,
        },
        max_retries: options.retries as usize,
        retry_timeout: Duration::from_secs(180),
    }
}

/// Says what to do where credentials are missing.
fn no_credentials(provider: &str, what: &str) -> Error {
    let text = format!("there are no credentials for {provider}: {what}");
    Error::io(
        "the URL cannot be opened",
        std::io::Error::new(std::io::ErrorKind::PermissionDenied, text),
    )
}

/// An error of a builder: nothing of it is secret but what a user has put into a variable.
fn refused(error: &object_store::Error) -> Error {
    fault::of_store(error).unplaced("the URL cannot be opened")
}

fn s3(address: &Address, options: &UrlOptions) -> Result<Arc<dyn ObjectStore>, Error> {
    let profile = Profile::load();
    let of_profile = |key: &str| profile.get(key).map(str::to_owned);
    let endpoint = options.endpoint.clone();
    let endpoint = endpoint.or_else(|| variable("AWS_ENDPOINT_URL_S3"));
    let endpoint = endpoint.or_else(|| variable("AWS_ENDPOINT_URL"));
    let endpoint = endpoint.or_else(|| variable("AWS_ENDPOINT"));
    let endpoint = endpoint.or_else(|| of_profile("endpoint_url"));
    let client = client_options(options, endpoint.as_deref())?;
    let builder =
        environment::variables("AWS_").fold(AmazonS3Builder::new(), |builder, (key, value)| {
            match key.parse() {
                Ok(key) => builder.with_config(key, value),
                Err(_) => builder,
            }
        });
    let mut builder = builder
        .with_bucket_name(&address.bucket)
        .with_client_options(client.clone())
        .with_retry(retries(options));
    if options.anonymous {
        builder = builder.with_skip_signature(true);
    } else if variable("AWS_ACCESS_KEY_ID").is_none() {
        match (profile.get("aws_access_key_id"), profile.get("aws_secret_access_key")) {
            (Some(id), Some(secret)) => {
                builder = builder.with_access_key_id(id).with_secret_access_key(secret);
                if let Some(token) = profile.get("aws_session_token") {
                    builder = builder.with_token(token);
                }
            }
            _ => aws_without_keys(&profile)?,
        }
    }
    let region = options.region.clone();
    let region = region.or_else(|| variable("AWS_REGION"));
    let region = region.or_else(|| variable("AWS_DEFAULT_REGION"));
    let region = match region.or_else(|| of_profile("region")) {
        Some(region) => region,
        None if endpoint.is_some() => "us-east-1".to_owned(),
        // A request that needs no credentials.
        None => {
            let bucket = address.bucket.clone();
            let found =
                runtime::wait(async move { resolve_bucket_region(&bucket, &client).await })?;
            found.map_err(|error| {
                let text = format!("{}; --region names it", fault::tidy(&error.to_string()));
                let error = std::io::Error::other(text);
                Error::io("the region of the bucket is not found", error)
            })?
        }
    };
    builder = builder.with_region(region);
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    Ok(Arc::new(builder.build().map_err(|e| refused(&e))?))
}

/// Whether there is another way to keys than stating them.
fn aws_without_keys(profile: &Profile) -> Result<(), Error> {
    let name = &profile.name;
    if let Some(way) = profile.other_way() {
        let what = format!(
            "the profile {name} has them by {way}, which marq does not do; this sets them in the \
             environment: eval \"$(aws configure export-credentials --profile {name} --format env)\""
        );
        return Err(no_credentials("S3", &what));
    }
    let of_workload = [
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_METADATA_ENDPOINT",
    ];
    let skips = variable("AWS_SKIP_SIGNATURE").is_some_and(|value| value != "false");
    let is_given = skips || of_workload.into_iter().any(|name| variable(name).is_some());
    let is_disabled = variable("AWS_EC2_METADATA_DISABLED").is_some_and(|value| value == "true");
    if is_given || (!is_disabled && environment::is_machine_of("Amazon EC2")) {
        return Ok(());
    }
    let what = format!(
        "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or state keys in the profile {name} of \
         ~/.aws/credentials (AWS_PROFILE names another); --anonymous is for public buckets"
    );
    Err(no_credentials("S3", &what))
}

fn google(address: &Address, options: &UrlOptions) -> Result<Arc<dyn ObjectStore>, Error> {
    let endpoint = options.endpoint.clone().or_else(|| variable("STORAGE_EMULATOR_HOST"));
    let empty = GoogleCloudStorageBuilder::new();
    let builder =
        environment::variables("GOOGLE_").fold(empty, |builder, (key, value)| match key.parse() {
            Ok(key) => builder.with_config(key, value),
            Err(_) => builder,
        });
    let mut builder = builder
        .with_bucket_name(&address.bucket)
        .with_client_options(client_options(options, endpoint.as_deref())?)
        .with_retry(retries(options));
    if let Some(endpoint) = endpoint {
        builder = builder.with_base_url(&endpoint);
    }
    let of_user = variable("HOME").is_some_and(|home| {
        let below = ".config/gcloud/application_default_credentials.json";
        std::path::Path::new(&home).join(below).exists()
    });
    let variables = [
        "GOOGLE_APPLICATION_CREDENTIALS",
        "GOOGLE_SERVICE_ACCOUNT",
        "GOOGLE_SERVICE_ACCOUNT_PATH",
        "GOOGLE_SERVICE_ACCOUNT_KEY",
        "GOOGLE_SKIP_SIGNATURE",
    ];
    let is_given = of_user || variables.into_iter().any(|name| variable(name).is_some());
    if options.anonymous {
        builder = builder.with_skip_signature(true);
    } else if !is_given && !environment::is_machine_of("Google") {
        let what = "set GOOGLE_APPLICATION_CREDENTIALS to the file of a service account, or run \
                    gcloud auth application-default login; --anonymous is for public buckets";
        return Err(no_credentials("Google Cloud Storage", what));
    }
    Ok(Arc::new(builder.build().map_err(|e| refused(&e))?))
}

fn azure(address: &Address, options: &UrlOptions) -> Result<Arc<dyn ObjectStore>, Error> {
    let stated = variable("AZURE_STORAGE_CONNECTION_STRING").unwrap_or_default();
    let stated = connection_string(&stated);
    let (container, host) = match address.bucket.split_once('@') {
        Some((container, host)) => (container, Some(host)),
        None => (address.bucket.as_str(), None),
    };
    let endpoint = options.endpoint.clone();
    let endpoint = endpoint.or_else(|| stated.get("blobendpoint").cloned());
    let empty = MicrosoftAzureBuilder::new();
    let builder =
        environment::variables("AZURE_").fold(empty, |builder, (key, value)| match key.parse() {
            Ok(key) => builder.with_config(key, value),
            Err(_) => builder,
        });
    let mut builder = builder
        .with_container_name(container)
        .with_client_options(client_options(options, endpoint.as_deref())?)
        .with_retry(retries(options));
    let account = host.and_then(|host| host.split('.').next()).map(str::to_owned);
    let account = account.or_else(|| stated.get("accountname").cloned());
    let account = account.or_else(|| variable("AZURE_STORAGE_ACCOUNT_NAME"));
    let Some(account) = account.or_else(|| variable("AZURE_STORAGE_ACCOUNT")) else {
        let what = "set AZURE_STORAGE_ACCOUNT_NAME, or write \
                    abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/KEY";
        return Err(no_credentials("Azure", what));
    };
    builder = builder.with_account(account);
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint);
    }
    if let Some(key) = stated.get("accountkey") {
        builder = builder.with_access_key(key);
    }
    if let Some(key) = variable("AZURE_STORAGE_KEY") {
        builder = builder.with_access_key(key);
    }
    let is_given = stated.contains_key("accountkey")
        || AZURE_VARIABLES.into_iter().any(|name| variable(name).is_some());
    if options.anonymous {
        builder = builder.with_skip_signature(true);
    } else if !is_given && !environment::is_machine_of("Microsoft Corporation") {
        let what = "set AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_TOKEN, or \
                    AZURE_USE_AZURE_CLI=true after az login; --anonymous is for public containers";
        return Err(no_credentials("Azure", what));
    }
    Ok(Arc::new(builder.build().map_err(|e| refused(&e))?))
}

/// Variables that say how Azure knows the user.
const AZURE_VARIABLES: [&str; 14] = [
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_ACCESS_KEY",
    "AZURE_STORAGE_MASTER_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_SAS_KEY",
    "AZURE_STORAGE_TOKEN",
    "AZURE_STORAGE_CLIENT_SECRET",
    "AZURE_CLIENT_SECRET",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_USE_AZURE_CLI",
    "AZURE_SKIP_SIGNATURE",
    "AZURE_STORAGE_USE_EMULATOR",
    "IDENTITY_ENDPOINT",
];

/// The parts of `AccountName=…;AccountKey=…`, by their names in small letters.
fn connection_string(text: &str) -> HashMap<String, String> {
    let parts = text.split(';').filter_map(|part| part.split_once('='));
    parts.map(|(name, value)| (name.trim().to_ascii_lowercase(), value.to_owned())).collect()
}

/// An object of a store.
pub(super) struct StoreFile {
    store: Arc<dyn ObjectStore>,
    path: Path,
}

impl StoreFile {
    pub(super) fn new(address: &Address, options: &UrlOptions) -> Result<Self, Error> {
        Ok(Self { path: path(address)?, store: store(address, options)? })
    }

    async fn fetch(
        &self,
        wanted: WantedBytes,
        expected: Option<Version>,
    ) -> Result<WebAnswer, Fault> {
        let if_match = expected.as_ref().and_then(Version::strong_tag).map(str::to_owned);
        let range = match wanted.clone() {
            WantedBytes::Range(range) => GetRange::Bounded(range),
            WantedBytes::Last(bytes) => GetRange::Suffix(bytes),
        };
        let options = GetOptions { range: Some(range), if_match, ..GetOptions::default() };
        let found = match (self.store.get_opts(&self.path, options).await, &wanted) {
            (Ok(found), _) => found,
            // Azure has no suffix ranges, and no store has a range of an empty object.
            (Err(error), WantedBytes::Last(bytes)) if is_of_suffix(&error) => {
                return self.fetch_bounded(*bytes).await;
            }
            (Err(error), _) => return Err(fault::of_store(&error)),
        };
        let (version, range) = (version(&found.meta), found.range.clone());
        let (mut bytes, mut chunks) = (Vec::new(), found.into_stream());
        while let Some(chunk) = chunks.try_next().await.map_err(|error| fault::of_store(&error))? {
            append(&mut bytes, &chunk, range.end - range.start)?;
        }
        Ok(WebAnswer { start: range.start, bytes: bytes.into(), version })
    }

    /// The last bytes, by a request for the length and one for them.
    async fn fetch_bounded(&self, bytes: u64) -> Result<WebAnswer, Fault> {
        let head = GetOptions { head: true, ..GetOptions::default() };
        let found = self.store.get_opts(&self.path, head).await;
        let version = version(&found.map_err(|error| fault::of_store(&error))?.meta);
        let len = version.file_len;
        if len == 0 {
            return Ok(WebAnswer { start: 0, bytes: bytes::Bytes::new(), version });
        }
        let range = len.saturating_sub(bytes)..len;
        Box::pin(self.fetch(WantedBytes::Range(range), Some(version))).await
    }
}

impl Remote for StoreFile {
    fn get(
        self: Arc<Self>,
        wanted: WantedBytes,
        expected: Option<Version>,
    ) -> BoxFuture<'static, Result<WebAnswer, Fault>> {
        Box::pin(async move { self.fetch(wanted, expected).await })
    }
}

/// Whether the store refuses suffix ranges, or has nothing to give a range of.
fn is_of_suffix(error: &object_store::Error) -> bool {
    matches!(error, object_store::Error::NotSupported { .. }) || fault::has_status(error, 416)
}

fn version(meta: &ObjectMeta) -> Version {
    let modified = Some(meta.last_modified.to_rfc3339());
    Version { tag: meta.e_tag.clone(), modified, file_len: meta.size }
}
