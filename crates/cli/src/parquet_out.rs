//! Writes Parquet with the options that the flags give.

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use marquetry::geo::GeoOptions;
use marquetry::io::{Sink, WriteSink};
use marquetry::write::encoding_named;
use marquetry::{
    BloomOptions, Error, PageVersion, Profile, RowGroupEncoder, TargetReader, WriteOptions,
    WriteReport, Writer,
};

use crate::args::{EncryptFlags, Global, ProfileName, Switch, WriteFlags};
use crate::failure::{Failure, Result};
use crate::{interrupt, keys, locations, salvage, variants};

/// The options that the flags say.
pub(crate) fn options(flags: &WriteFlags, global: &Global) -> Result<WriteOptions> {
    let mut options = WriteOptions::new();
    if let Some(profile) = flags.profile {
        options = options.with_profile(match profile {
            ProfileName::Balanced => Profile::Balanced,
            ProfileName::Small => Profile::Small,
            ProfileName::FastRead => Profile::FastRead,
            ProfileName::Points => Profile::Points,
            ProfileName::Compatible => Profile::Compatible,
        });
    }
    if !flags.readers.is_empty() && flags.readers != ["all"] {
        let readers = flags.readers.iter().map(|name| name.parse::<TargetReader>());
        options = options.with_readers(readers.collect::<Result<Vec<_>, _>>()?);
    }
    if let Some(codec) = &flags.codec {
        options = options.with_compression(codec.parse()?);
    }
    if let Some(version) = flags.page_version {
        let version = if version == 2 { PageVersion::V2 } else { PageVersion::V1 };
        options = options.with_page_version(version);
    }
    if let Some(dictionary) = flags.dictionary {
        options = options.with_dictionary(dictionary == Switch::On);
    }
    if let Some(rows) = flags.row_group_rows {
        options = options.with_row_group_rows(rows);
    }
    if let Some(bytes) = flags.row_group_bytes {
        options = options.with_row_group_bytes(bytes);
    }
    if let Some(bytes) = global.mem {
        options = options.with_memory(bytes);
    }
    options = options.with_hint(!flags.no_arrow_schema).with_full_range(flags.full_range);
    options = options.with_path_in_schema(!flags.omit_path_in_schema);
    if let Some(column) = &flags.geo {
        let geo = GeoOptions::new();
        options = options.with_geo(match column.as_str() {
            "" => geo,
            column => geo.with_primary_column(column),
        });
    }
    for setting in &flags.encoding {
        let Some((column, name)) = setting.rsplit_once('=') else {
            return Err(Failure::Usage(format!("--encoding {setting}: say COL=ENCODING")));
        };
        let encoding = encoding_named(name)?;
        options = options.with_column(column, |of| of.with_encoding(encoding));
    }
    for setting in &flags.bloom {
        let (column, bloom) = bloom(setting);
        options = options.with_column(column, |of| of.with_bloom(bloom));
    }
    Ok(options)
}

/// The options for rows of this schema, with shredding and encryption.
pub(crate) fn options_for(
    schema: &SchemaRef,
    flags: &WriteFlags,
    encrypt: &EncryptFlags,
    global: &Global,
) -> Result<WriteOptions> {
    let options = variants::shredding(options(flags, global)?, &flags.shred, schema)?;
    Ok(match keys::encryption(encrypt, global)? {
        Some(encryption) => options.with_encryption(encryption),
        None => options,
    })
}

/// The column and the settings of a bloom filter: `COL[:FPP]`.
pub(crate) fn bloom(setting: &str) -> (&str, BloomOptions) {
    let default = BloomOptions::default();
    match setting.rsplit_once(':').map(|(column, fpp)| (column, fpp.parse::<f64>())) {
        Some((column, Ok(fpp))) => (column, default.with_fpp(fpp)),
        _ => (setting, default),
    }
}

/// A Parquet file that is being written.
pub(crate) struct ParquetOut(Writer<Box<dyn Sink>>);

impl ParquetOut {
    pub(crate) fn create(
        schema: SchemaRef,
        options: WriteOptions,
        flags: &WriteFlags,
        global: &Global,
    ) -> Result<Self> {
        let encoder = RowGroupEncoder::new(schema, options)?;
        let encoder = match global.threads {
            Some(threads) => encoder.with_threads(threads)?,
            None => encoder,
        };
        let path = global.output.as_deref();
        let sink: Box<dyn Sink> = match path.filter(|path| *path != std::path::Path::new("-")) {
            Some(path) => locations::sink(path)?,
            None => Box::new(WriteSink(std::io::stdout())),
        };
        let writer = Writer::over(sink, encoder);
        let Some(every) = flags.side_footer else { return Ok(Self(writer)) };
        let Some(output) = path.filter(|path| *path != std::path::Path::new("-")) else {
            let text = "--side-footer: standard output has no file beside it; say one with -o";
            return Err(Failure::Usage(text.to_owned()));
        };
        if locations::url(output).is_some() {
            let text = "--side-footer: an object has no file beside it; write to a path with -o";
            return Err(Failure::Usage(text.to_owned()));
        }
        let side = salvage::side_footer_of(output);
        interrupt::remove_at_end(&side);
        Ok(Self(writer.with_side_footer(side, every as usize)))
    }

    pub(crate) fn write(&mut self, batch: &RecordBatch) -> Result<(), Error> {
        self.0.write(batch)
    }

    pub(crate) fn finish(self) -> Result<WriteReport, Error> {
        self.0.finish()
    }
}
