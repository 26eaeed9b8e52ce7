//! Sources and sinks that fail in every way, at any time, by seeds: reads give the right rows or an
//! error, and writes a whole file or none.

mod reading;
mod store;
mod writing;

use std::sync::LazyLock;

use bytes::Bytes;
use marquetry::crypt::{Decryption, Encryption, Key};
use marquetry::io::WriteSink;
use marquetry::{RowGroupEncoder, WriteOptions, Writer};

use crate::support::numbered::rows;

/// Rows of a file, and of a row group.
const ROWS: i64 = 240;
const GROUP: u64 = 60;

fn key() -> Key {
    Key::new(b"0123456789012345").expect("a key")
}

fn keys() -> Decryption {
    Decryption::new().with_footer_key(key())
}

fn options() -> WriteOptions {
    WriteOptions::new().with_row_group_rows(GROUP).with_page_rows(20)
}

fn written(options: WriteOptions) -> Bytes {
    let encoder = RowGroupEncoder::new(rows(0, 1).schema(), options).expect("an encoder");
    let mut writer = Writer::over(WriteSink(Vec::new()), encoder);
    writer.write(&rows(0, ROWS)).expect("rows");
    writer.into_inner().expect("a file").1.into()
}

/// The rows from 0 on, in a file with checksums, and in one whose every byte is authenticated.
static PLAIN: LazyLock<Bytes> = LazyLock::new(|| written(options()));
static SEALED: LazyLock<Bytes> =
    LazyLock::new(|| written(options().with_encryption(Encryption::new(key()))));
