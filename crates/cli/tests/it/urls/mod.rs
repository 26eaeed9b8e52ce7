//! Files at URLs: of a web server, of a store, and what they cost.

mod requests;
mod s3;
mod server;
mod tls;
mod web;

use std::sync::Arc;

use arrow_array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use marquetry::io::WriteSink;
use marquetry::{WriteOptions, Writer};

use self::server::Server;
use crate::support::folder::Folder;

/// A folder whose `marq` finds no settings of the user, and keys of a store.
fn folder() -> Folder {
    let variables = [
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", SECRET),
        ("AWS_REGION", "us-east-1"),
    ];
    variables
        .into_iter()
        .fold(bare_folder(), |folder, (name, value)| folder.with_variable(name, value))
}

const SECRET: &str = "wJalrXUtnFEMI-K7MDENG-bPxRfiCYEXAMPLEKEY";

/// The same without keys.
fn bare_folder() -> Folder {
    let variables = [
        ("HOME", "/nonexistent"),
        ("NO_PROXY", "*"),
        ("AWS_EC2_METADATA_DISABLED", "true"),
        ("AWS_PROFILE", ""),
        ("AWS_ACCESS_KEY_ID", ""),
        ("AWS_SESSION_TOKEN", ""),
        ("AWS_ENDPOINT_URL", ""),
        ("AWS_CONFIG_FILE", ""),
        ("AWS_SHARED_CREDENTIALS_FILE", ""),
        ("NETRC", ""),
    ];
    variables
        .into_iter()
        .fold(Folder::new(), |folder, (name, value)| folder.with_variable(name, value))
}

/// A Parquet file of several row groups: `id` counts rows, `noise` compresses badly.
fn numbered(rows: i64, row_group_rows: u64) -> Vec<u8> {
    let mut noise = fastrand::Rng::with_seed(7);
    let id: ArrayRef = Arc::new((0..rows).collect::<Int64Array>());
    let noise: ArrayRef = Arc::new((0..rows).map(|_| noise.i64(..)).collect::<Int64Array>());
    let text: ArrayRef =
        Arc::new((0..rows).map(|n| Some(format!("t{}", n % 7))).collect::<StringArray>());
    let batch = RecordBatch::try_from_iter([("id", id), ("noise", noise), ("text", text)]).unwrap();
    let options = WriteOptions::new().with_row_group_rows(row_group_rows);
    let mut bytes = Vec::new();
    let mut writer = Writer::new(WriteSink(&mut bytes), batch.schema(), options).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    bytes
}

/// A server that has `trips.parquet`.
fn with_trips() -> Server {
    let server = Server::new();
    server.put("trips.parquet", std::fs::read(crate::support::testdata("trips.parquet")).unwrap());
    server
}
