//! Converts options of DataFusion to [`WriteOptions`].
//!
//! An option that has DataFusion's default is left to this crate, because it expresses no wish of
//! the user. An option that is set and has no counterpart here is an error that names it.

use std::fmt;

use datafusion_common::config::{ParquetColumnOptions, ParquetOptions, TableParquetOptions};
use datafusion_common::parquet_config::DFParquetWriterVersion;
use datafusion_common::{DataFusionError, Result};

use crate::settings::check_options;
use marquetry::format::Encoding;
use marquetry::{
    BloomOptions, ChunkingOptions, ColumnOptions, Compression, PageVersion, StatisticsLevel,
    WriteOptions,
};

/// Converts `options`.
///
/// # Errors
/// `Configuration` if a value is not valid for its option, `NotImplemented` if an option has no
/// counterpart.
pub(crate) fn write_options(options: &TableParquetOptions) -> Result<WriteOptions> {
    check_options(options)?;
    check_numbers(&options.global)?;
    let (global, default) = (&options.global, ParquetOptions::default());
    let mut out = WriteOptions::new()
        .with_hint(!global.skip_arrow_metadata)
        .with_row_group_rows(global.max_row_group_size as u64);
    if let Some(codec) = &global.compression {
        out = out.with_compression(compression("compression", codec)?);
    }
    if let Some(dictionary) = global.dictionary_enabled {
        out = out.with_dictionary(dictionary);
    }
    if let Some(level) = &global.statistics_enabled {
        out = out.with_statistics(statistics("statistics_enabled", level)?);
    }
    if let Some(bytes) = &global.max_row_group_bytes {
        out = out.with_row_group_bytes(bytes.get() as u64);
    }
    if global.data_pagesize_limit != default.data_pagesize_limit {
        out = out.with_page_bytes(global.data_pagesize_limit);
    }
    if global.data_page_row_count_limit != default.data_page_row_count_limit {
        out = out.with_page_rows(global.data_page_row_count_limit);
    }
    if global.dictionary_page_size_limit != default.dictionary_page_size_limit {
        out = out.with_dictionary_bytes(global.dictionary_page_size_limit);
    }
    if global.created_by != default.created_by {
        out = out.with_created_by(global.created_by.clone());
    }
    if global.writer_version == DFParquetWriterVersion::V2_0 {
        out = out.with_page_version(PageVersion::V2);
    }
    if let Some(bytes) = bound_bytes(global, &default)? {
        out = out.with_bound_bytes(bytes);
    }
    out = of_all_columns(out, global)?;
    for (column, settings) in &options.column_specific_options {
        let settings = of_column(column, settings, global)?;
        out = out.with_column(column.clone(), |_| settings);
    }
    for (key, value) in &options.key_value_metadata {
        out = out.with_key_value(key.clone(), value.clone().unwrap_or_default());
    }
    Ok(out)
}

/// Refuses options that say 0 where there must be something.
fn check_numbers(global: &ParquetOptions) -> Result<()> {
    let numbers = [
        ("max_row_group_size", global.max_row_group_size),
        ("write_batch_size", global.write_batch_size),
        ("data_pagesize_limit", global.data_pagesize_limit),
        ("data_page_row_count_limit", global.data_page_row_count_limit),
        ("column_index_truncate_length", global.column_index_truncate_length.unwrap_or(1)),
        ("statistics_truncate_length", global.statistics_truncate_length.unwrap_or(1)),
    ];
    match numbers.iter().find(|(_, number)| *number == 0) {
        Some((option, _)) => unknown(option, "0", "1 or more"),
        None => Ok(()),
    }
}

/// The column options that apply to all columns, and content-defined chunking.
fn of_all_columns(mut out: WriteOptions, global: &ParquetOptions) -> Result<WriteOptions> {
    if let Some(name) = &global.encoding {
        let encoding = encoding("encoding", name)?;
        out = out.with_column("*", |column| column.with_encoding(encoding));
    }
    if global.bloom_filter_on_write {
        let bloom = bloom(global.bloom_filter_fpp);
        out = out.with_column("*", |column| column.with_bloom(bloom));
    }
    let chunking = &global.content_defined_chunking;
    if chunking.enabled {
        if chunking.norm_level != 0 {
            return unsupported("content_defined_chunking.norm_level", chunking.norm_level);
        }
        out = out.with_content_defined_chunking(ChunkingOptions::new(
            chunking.min_chunk_size,
            chunking.max_chunk_size,
        ));
    }
    Ok(out)
}

/// Bytes of the bounds in statistics, where they are set.
fn bound_bytes(global: &ParquetOptions, default: &ParquetOptions) -> Result<Option<usize>> {
    let (index, chunk) = (global.column_index_truncate_length, global.statistics_truncate_length);
    let index_is_set = index != default.column_index_truncate_length;
    let chunk_is_set = chunk != default.statistics_truncate_length;
    Ok(match (index_is_set, chunk_is_set) {
        (false, false) => None,
        (true, true) if index != chunk => {
            return unsupported(
                "column_index_truncate_length",
                "other than statistics_truncate_length: bounds of chunks and pages are cut alike",
            );
        }
        (true, _) => Some(index.unwrap_or(usize::MAX)),
        (false, true) => Some(chunk.unwrap_or(usize::MAX)),
    })
}

fn of_column(
    name: &str,
    settings: &ParquetColumnOptions,
    global: &ParquetOptions,
) -> Result<ColumnOptions> {
    let option = |key: &str| format!("{key}::{name}");
    let mut out = ColumnOptions::default();
    if let Some(codec) = &settings.compression {
        out = out.with_compression(compression(&option("compression"), codec)?);
    }
    if let Some(dictionary) = settings.dictionary_enabled {
        out = out.with_dictionary(dictionary);
    }
    if let Some(name) = &settings.encoding {
        out = out.with_encoding(encoding(&option("encoding"), name)?);
    }
    if let Some(level) = &settings.statistics_enabled {
        out = out.with_statistics(statistics(&option("statistics_enabled"), level)?);
    }
    match settings.bloom_filter_enabled {
        Some(true) => {
            out = out.with_bloom(bloom(settings.bloom_filter_fpp.or(global.bloom_filter_fpp)));
        }
        Some(false) if global.bloom_filter_on_write => {
            return unsupported(
                &option("bloom_filter_enabled"),
                "false, beside bloom_filter_on_write",
            );
        }
        // Filters are as large as the values need: the number of them is counted.
        Some(false) | None => {}
    }
    Ok(out)
}

fn bloom(fpp: Option<f64>) -> BloomOptions {
    fpp.map_or_else(BloomOptions::default, |fpp| BloomOptions::default().with_fpp(fpp))
}

/// A codec by its name, with its level in parentheses.
fn compression(option: &str, text: &str) -> Result<Compression> {
    let text = text.trim().to_lowercase();
    let (name, level) = match text.split_once('(') {
        None => (text.as_str(), None),
        Some((name, rest)) => {
            let level = rest.strip_suffix(')').and_then(|level| level.trim().parse::<i32>().ok());
            let Some(level) = level else { return unknown(option, &text, CODECS) };
            (name, Some(level))
        }
    };
    Ok(match (name, level) {
        ("uncompressed", None) => Compression::Uncompressed,
        ("snappy", None) => Compression::Snappy,
        ("lz4_raw", None) => Compression::Lz4Raw,
        ("gzip", Some(level @ 0..=9)) => Compression::Gzip(level),
        ("brotli", Some(level @ 0..=11)) => Compression::Brotli(level),
        ("zstd", Some(level @ 1..=22)) => Compression::Zstd(level),
        ("lz4", None) => {
            return unsupported(option, "lz4, whose framing differs by reader: use lz4_raw");
        }
        _ => return unknown(option, &text, CODECS),
    })
}

const CODECS: &str =
    "uncompressed, snappy, lz4_raw, gzip(0 to 9), brotli(0 to 11) or zstd(1 to 22)";

fn statistics(option: &str, text: &str) -> Result<StatisticsLevel> {
    match text.to_lowercase().as_str() {
        "none" => Ok(StatisticsLevel::None),
        "chunk" => Ok(StatisticsLevel::Chunk),
        "page" => Ok(StatisticsLevel::Page),
        _ => unknown(option, text, "none, chunk or page"),
    }
}

fn encoding(option: &str, text: &str) -> Result<Encoding> {
    Ok(match text.to_lowercase().as_str() {
        "plain" => Encoding::Plain,
        "rle" => Encoding::Rle,
        "delta_binary_packed" => Encoding::DeltaBinaryPacked,
        "delta_length_byte_array" => Encoding::DeltaLengthByteArray,
        "delta_byte_array" => Encoding::DeltaByteArray,
        "byte_stream_split" => Encoding::ByteStreamSplit,
        "rle_dictionary" | "plain_dictionary" => Encoding::RleDictionary,
        "bit_packed" => return unsupported(option, "bit_packed, which is for levels of old files"),
        _ => {
            return unknown(
                option,
                text,
                "plain, rle, delta_binary_packed, delta_length_byte_array, delta_byte_array, \
                 byte_stream_split or rle_dictionary",
            );
        }
    })
}

#[cold]
fn unsupported<T>(option: &str, value: impl fmt::Display) -> Result<T> {
    Err(DataFusionError::NotImplemented(format!("marquetry: the option {option} as {value}")))
}

#[cold]
fn unknown<T>(option: &str, found: &str, expected: &str) -> Result<T> {
    Err(DataFusionError::Configuration(format!(
        "the option {option} is {found:?}: expected {expected}"
    )))
}
