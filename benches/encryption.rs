//! Measures the cost of encryption: a table like lineitem, written and read in plain text and
//! encrypted, by
//! us and by the `parquet` crate 60.1, in turns, in one process, on one thread.
//!
//! `cargo bench --bench encryption --features encryption` prints two Markdown tables; with the
//! feature `aws-lc`, for that backend. A cost is the time of the encrypted file over that of the
//! plain one; a ratio is rival / ours; each is the median over the rounds of what was measured side
//! by side. The rival knows neither AES_GCM_CTR_V1 nor keys of 192 bits.

#![allow(
    unreachable_pub,
    dead_code,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::redundant_clone,
    reason = "a bench makes its own data"
)]

#[path = "common/mod.rs"]
mod common;

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use marquetry::crypt::{Algorithm, Decryption, Encryption, Key};
use marquetry::io::WriteSink;
use marquetry::{Compression, Limits, Reader, RowGroupEncoder, WriteOptions, Writer};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use parquet::basic::{Compression as TheirCompression, ZstdLevel};
use parquet::encryption::decrypt::FileDecryptionProperties;
use parquet::encryption::encrypt::FileEncryptionProperties;
use parquet::file::properties::WriterProperties;

/// Pairs of runs.
const ROUNDS: usize = 9;

/// Rows of a batch, for both.
const BATCH: usize = 65_536;

/// How a file is protected: the algorithm and the bits of the key, or in plain text.
type Mode = Option<(Algorithm, usize)>;

const MODES: [(&str, Mode); 5] = [
    ("plain", None),
    ("AES_GCM_V1, 128 bits", Some((Algorithm::AesGcmV1, 128))),
    ("AES_GCM_V1, 256 bits", Some((Algorithm::AesGcmV1, 256))),
    ("AES_GCM_CTR_V1, 128 bits", Some((Algorithm::AesGcmCtrV1, 128))),
    ("AES_GCM_CTR_V1, 256 bits", Some((Algorithm::AesGcmCtrV1, 256))),
];

fn main() {
    let case = common::lineitem().swap_remove(0);
    let reader = Reader::new(case.file.clone()).expect("a file").batch_rows(BATCH);
    let ours: Vec<_> =
        reader.batches().expect("a plan").map(|batch| batch.expect("a batch")).collect();
    let builder = ParquetRecordBatchReaderBuilder::try_new(case.file.clone()).expect("a file");
    let theirs = builder.with_batch_size(BATCH).build().expect("a reader");
    let theirs: Vec<_> = theirs.map(|batch| batch.expect("a batch")).collect();
    for (codec, compression, their_compression) in [
        ("no codec", Compression::Uncompressed, TheirCompression::UNCOMPRESSED),
        (
            "ZSTD 1",
            Compression::Zstd(1),
            TheirCompression::ZSTD(ZstdLevel::try_new(1).expect("a level")),
        ),
    ] {
        println!("\n| {codec} | read, ms | cost | ratio | write, ms | cost | ratio |");
        println!("|---|--:|--:|--:|--:|--:|--:|");
        // Both read the file of the rival where it can write it, else ours.
        let file = |mode: Mode| match is_known_to_rival(mode) {
            true => write_theirs(&theirs, their_compression, mode),
            false => write_ours(&ours, compression, mode),
        };
        let plain = file(None);
        for (name, mode) in MODES {
            let encrypted = file(mode);
            let read = Figures::measure(
                || read_ours(&plain, None),
                || read_ours(&encrypted, mode),
                is_known_to_rival(mode).then_some(&|| read_theirs(&encrypted, mode)),
            );
            let write = Figures::measure(
                || write_ours(&ours, compression, None).len(),
                || write_ours(&ours, compression, mode).len(),
                is_known_to_rival(mode)
                    .then_some(&|| write_theirs(&theirs, their_compression, mode).len()),
            );
            println!("| {name} | {read} | {write} |");
        }
    }
}

/// Times of us, what they are of those of a plain file, and the rival's of ours.
struct Figures {
    ms: f64,
    cost: f64,
    ratio: Option<f64>,
}

impl Figures {
    fn measure(
        plain: impl Fn() -> usize,
        ours: impl Fn() -> usize,
        theirs: Option<&dyn Fn() -> usize>,
    ) -> Self {
        let time = |run: &dyn Fn() -> usize| {
            let start = Instant::now();
            std::hint::black_box(run());
            start.elapsed().as_secs_f64() * 1e3
        };
        time(&ours);
        let (mut times, mut costs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let (before, now) = (time(&plain), time(&ours));
            times.push(now);
            costs.push(now / before);
            ratios.extend(theirs.map(|theirs| time(theirs) / now));
        }
        let ratio = (!ratios.is_empty()).then(|| median(&mut ratios));
        Self { ms: median(&mut times), cost: median(&mut costs), ratio }
    }
}

impl std::fmt::Display for Figures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.1} | {:.2} | ", self.ms, self.cost)?;
        match self.ratio {
            Some(ratio) => write!(f, "{ratio:.2}"),
            None => f.write_str("not known to it"),
        }
    }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn is_known_to_rival(mode: Mode) -> bool {
    !matches!(mode, Some((Algorithm::AesGcmCtrV1, _)))
}

fn key_of(bits: usize) -> Vec<u8> {
    (0..bits / 8).map(|i| i as u8).collect()
}

fn read_ours(file: &Bytes, mode: Mode) -> usize {
    let reader = match mode {
        None => Reader::new(file.clone()),
        Some((_, bits)) => {
            let key = Key::new(&key_of(bits)).expect("a key");
            let keys = Decryption::new().with_footer_key(key).with_unauthenticated_pages(true);
            Reader::with_keys(file.clone(), Limits::default(), &keys)
        }
    };
    let reader = reader.expect("a file").batch_rows(BATCH).threads(1);
    reader.batches().expect("a plan").map(|batch| batch.expect("a batch").num_rows()).sum()
}

fn read_theirs(file: &Bytes, mode: Mode) -> usize {
    let mut options = ArrowReaderOptions::new();
    if let Some((_, bits)) = mode {
        let keys = FileDecryptionProperties::builder(key_of(bits)).build().expect("a key");
        options = options.with_file_decryption_properties(keys);
    }
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file.clone(), options);
    let reader = builder.expect("a file").with_batch_size(BATCH).build().expect("a reader");
    reader.map(|batch| batch.expect("a batch").num_rows()).sum()
}

fn write_ours(
    batches: &[marquetry::arrow_array::RecordBatch],
    compression: Compression,
    mode: Mode,
) -> Bytes {
    let mut options = WriteOptions::new().with_compression(compression);
    if let Some((algorithm, bits)) = mode {
        let key = Key::new(&key_of(bits)).expect("a key");
        options = options.with_encryption(Encryption::new(key).with_algorithm(algorithm));
    }
    let schema = batches[0].schema();
    let encoder = RowGroupEncoder::new(schema, options).expect("a schema");
    let encoder = encoder.with_threads(1).expect("one thread");
    let mut writer = Writer::over(WriteSink(Vec::new()), encoder);
    for batch in batches {
        writer.write(batch).expect("a batch");
    }
    writer.into_inner().expect("a file").1.into()
}

fn write_theirs(
    batches: &[arrow_array_60::RecordBatch],
    compression: TheirCompression,
    mode: Mode,
) -> Bytes {
    let mut properties = WriterProperties::builder().set_compression(compression);
    if let Some((_, bits)) = mode {
        let keys = FileEncryptionProperties::builder(key_of(bits)).build().expect("a key");
        properties = properties.with_file_encryption_properties(Arc::clone(&keys));
    }
    let mut out = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut out, batches[0].schema(), Some(properties.build()))
        .expect("a writer");
    for batch in batches {
        writer.write(batch).expect("a batch");
    }
    writer.close().expect("a file");
    out.into()
}
