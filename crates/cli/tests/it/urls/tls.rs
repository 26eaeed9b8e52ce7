//! HTTPS with a certificate that only the user trusts.
//!
//! Made by `openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout key.pem
//! -out cert.pem -days 36500 -subj /CN=localhost -addext
//! "subjectAltName=DNS:localhost,IP:127.0.0.1" -addext "basicConstraints=critical,CA:FALSE"`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use super::bare_folder;
use super::server::{Connection, Server};
use crate::support::folder::error;

fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/urls").join(name)
}

fn server() -> Server {
    let certificate = CertificateDer::from_pem_file(here("cert.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(here("key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider);
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(vec![certificate], key).unwrap());
    Server::over(move |stream| {
        let connection = ServerConnection::new(config.clone()).ok()?;
        Some(Box::new(StreamOwned::new(connection, stream)) as Box<dyn Connection>)
    })
}

#[test]
fn a_certificate_is_trusted_if_the_user_says_so() {
    let (folder, server) = (bare_folder(), server());
    server.put("trips.parquet", std::fs::read(crate::support::testdata("trips.parquet")).unwrap());
    let url = server.url("trips.parquet").replace("http://127.0.0.1", "https://localhost");
    let text = folder.refused(1, &["count", &url, "--retries", "0"]);
    assert!(text.contains(&url), "{text}");
    let ca_file = here("cert.pem").display().to_string();
    assert_eq!(folder.text(&["count", &url, "--ca-file", &ca_file]), "1000\n");
    let mut command = folder.command(&["count", &url]);
    let output = command.env("SSL_CERT_FILE", &ca_file).output().unwrap();
    assert!(output.status.success(), "{}", error(&output));
    folder.refused(1, &["count", &url, "--ca-file", "missing.pem"]);
}

#[test]
fn a_store_may_have_such_a_certificate_too() {
    let (folder, server) = (super::folder(), server());
    server
        .put("b/trips.parquet", std::fs::read(crate::support::testdata("trips.parquet")).unwrap());
    let endpoint = format!("https://localhost:{}", server.port);
    let ca_file = here("cert.pem").display().to_string();
    let args = ["count", "s3://b/trips.parquet", "--endpoint", &endpoint, "--ca-file", &ca_file];
    assert_eq!(folder.text(&args), "1000\n");
}
