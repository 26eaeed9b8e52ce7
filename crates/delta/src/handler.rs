//! [`MarquetryParquetHandler`]: the Parquet handler.

use std::fmt;
use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use delta_kernel::engine::arrow_conversion::{TryFromArrow, TryIntoArrow};
use delta_kernel::schema::{SchemaRef, StructType};
use delta_kernel::{
    CancellationTokenRef, EngineData, FileDataReadResultIterator, FileMeta, FileSize, KernelError,
    KernelResult, KernelResultIteratorStatic, ParquetFooter, ParquetHandler, PredicateRef,
};
use futures_util::future::{Either, select};
use marquetry::read::ReadOptions;
use marquetry::schema::{ArrowOptions, FIELD_ID_KEY};
use marquetry::{Reader, WriteOptions};
use object_store::ObjectStore;
use object_store::path::Path;
use tokio::runtime::Handle;
use url::Url;

use crate::error::{at, refused};
use crate::plan::Wanted;
use crate::read::{Cancellable, LocalFiles, Request, StoredFiles, local_path};
use crate::runtime::{Runtime, wait};
use crate::write;

/// A [`ParquetHandler`] that reads and writes by marquetry.
///
/// Files with a `file:` URL are read and written directly, by the threads of the library; all
/// others through the store. What the kernel asks for, and how it is answered:
///
/// | asked for | answer |
/// |---|---|
/// | columns by field id, else by name, at every level | as asked |
/// | missing columns | null; an error if they may not be null |
/// | a struct none of whose wanted fields is in the file | null where the file has it null |
/// | wider types | the table of Delta, and all else that loses nothing |
/// | timestamps | in microseconds; finer ones are truncated, INT96 too |
/// | shredded VARIANT columns | put together, at the top of the schema |
/// | row numbers, names of files | as asked |
/// | predicates | by row groups, pages, bloom filters, and rows, as far as it can be translated |
/// | a written file | there when it is whole; field ids of all columns, no `ARROW:schema` |
pub struct MarquetryParquetHandler {
    store: Arc<dyn ObjectStore>,
    runtime: Runtime,
    presigned: Option<Arc<dyn ParquetHandler>>,
    batch_rows: Option<usize>,
    write_options: WriteOptions,
}

impl MarquetryParquetHandler {
    /// Makes a handler of the files in `store`.
    pub fn new(store: Arc<dyn ObjectStore>) -> Self {
        Self {
            store,
            runtime: Runtime::default(),
            presigned: None,
            batch_rows: None,
            write_options: WriteOptions::default(),
        }
    }

    /// Asks the store under this runtime. It must have a thread that drives it while another one
    /// waits for the kernel. Default: two threads of its own.
    #[must_use]
    pub fn with_runtime(self, runtime: Handle) -> Self {
        Self { runtime: Runtime::lent(runtime), ..self }
    }

    /// Reads files with presigned URLs by `handler`: no store reads them.
    #[must_use]
    pub fn with_presigned(self, handler: Arc<dyn ParquetHandler>) -> Self {
        Self { presigned: Some(handler), ..self }
    }

    /// Returns batches of at most this many rows: see
    /// [`ReadOptions::batch_rows`](marquetry::read::ReadOptions::batch_rows).
    #[must_use]
    pub fn with_batch_rows(self, rows: usize) -> Self {
        Self { batch_rows: Some(rows), ..self }
    }

    /// Writes files with these options. The file has no `ARROW:schema`, whatever they say.
    #[must_use]
    pub fn with_write_options(self, options: WriteOptions) -> Self {
        Self { write_options: options, ..self }
    }

    /// The handler that reads files with presigned URLs, if there is one among `files`.
    fn presigned<'a>(
        &self,
        mut files: impl Iterator<Item = &'a FileMeta>,
    ) -> KernelResult<Option<&Arc<dyn ParquetHandler>>> {
        match (files.find(|file| is_presigned(&file.location)), &self.presigned) {
            (None, _) => Ok(None),
            (Some(_), Some(handler)) => Ok(Some(handler)),
            (Some(file), None) => {
                let what = format_args!("no handler of presigned URLs was given");
                Err(refused(&file.location, what))
            }
        }
    }

    fn store_schema(
        &self,
        location: &Url,
        token: Option<CancellationTokenRef>,
    ) -> KernelResult<arrow_schema::SchemaRef> {
        let path = Path::from_url_path(location.path()).map_err(KernelError::generic_err)?;
        let store = Arc::clone(&self.store);
        let mut task = self.runtime.handle()?.spawn(Reader::open_store(store, path));
        let opened = match token {
            None => wait(task),
            Some(token) => match wait(select(&mut task, token.cancelled_future())) {
                Either::Left((opened, _)) => opened,
                Either::Right(_) => {
                    task.abort();
                    return Err(KernelError::Cancelled);
                }
            },
        };
        let reader = opened.map_err(KernelError::generic_err)?.map_err(at(location))?;
        reader.options(footer_options()).schema().map_err(at(location))
    }
}

impl fmt::Debug for MarquetryParquetHandler {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MarquetryParquetHandler")
            .field("store", &self.store)
            .field("batch_rows", &self.batch_rows)
            .finish_non_exhaustive()
    }
}

impl ParquetHandler for MarquetryParquetHandler {
    fn read_parquet_files(
        &self,
        files: &[FileMeta],
        physical_schema: SchemaRef,
        predicate: Option<PredicateRef>,
    ) -> KernelResult<FileDataReadResultIterator> {
        self.read_parquet_files_with_cancellation(files, physical_schema, predicate, None)
    }

    fn read_parquet_files_with_cancellation(
        &self,
        files: &[FileMeta],
        physical_schema: SchemaRef,
        predicate: Option<PredicateRef>,
        token: Option<CancellationTokenRef>,
    ) -> KernelResult<FileDataReadResultIterator> {
        check_cancelled(token.as_ref())?;
        if files.is_empty() {
            return Ok(Box::new(std::iter::empty()));
        }
        if let Some(other) = self.presigned(files.iter())? {
            return other.read_parquet_files_with_cancellation(
                files,
                physical_schema,
                predicate,
                token,
            );
        }
        let arrow = Arc::new(physical_schema.as_ref().try_into_arrow()?);
        let wanted = Wanted { kernel: physical_schema, arrow };
        let request = Request { wanted, predicate, batch_rows: self.batch_rows };
        let files = files.to_vec();
        if files.iter().all(|file| is_local(&file.location)) {
            return Ok(Box::new(Cancellable::new(LocalFiles::new(request, files), token)));
        }
        let runtime = self.runtime.handle()?;
        let files = StoredFiles::new(request, files, Arc::clone(&self.store), &runtime);
        Ok(Box::new(Cancellable::new(files, token)))
    }

    fn write_parquet_file(
        &self,
        location: Url,
        data: KernelResultIteratorStatic<Box<dyn EngineData>>,
    ) -> KernelResult<FileSize> {
        let rows = write::Rows::new(&location, data)?;
        let options = self.write_options.clone().with_hint(false);
        if is_local(&location) {
            return write::local(&location, rows, options);
        }
        let runtime = self.runtime.handle()?;
        write::stored(&location, rows, options, Arc::clone(&self.store), &runtime)
    }

    fn read_parquet_footer(&self, file: &FileMeta) -> KernelResult<ParquetFooter> {
        self.read_parquet_footer_with_cancellation(file, None)
    }

    fn read_parquet_footer_with_cancellation(
        &self,
        file: &FileMeta,
        token: Option<CancellationTokenRef>,
    ) -> KernelResult<ParquetFooter> {
        check_cancelled(token.as_ref())?;
        if let Some(other) = self.presigned([file].into_iter())? {
            return other.read_parquet_footer_with_cancellation(file, token);
        }
        let location = &file.location;
        let schema = if is_local(location) {
            let reader = Reader::open(local_path(location)?).map_err(at(location))?;
            reader.options(footer_options()).schema().map_err(at(location))?
        } else {
            self.store_schema(location, token)?
        };
        let fields: Fields = schema.fields().iter().map(|field| with_id_only(field)).collect();
        let schema = StructType::try_from_arrow(&Schema::new(fields))?;
        Ok(ParquetFooter { schema: Arc::new(schema) })
    }
}

fn check_cancelled(token: Option<&CancellationTokenRef>) -> KernelResult<()> {
    match token {
        Some(token) if token.is_cancelled() => Err(KernelError::Cancelled),
        _ => Ok(()),
    }
}

fn is_local(location: &Url) -> bool {
    location.scheme() == "file"
}

/// Whether the URL itself has the right to read the file. The URL of an object has no query.
fn is_presigned(location: &Url) -> bool {
    matches!(location.scheme(), "http" | "https") && location.query().is_some()
}

fn footer_options() -> ReadOptions {
    let mut options = ReadOptions::default();
    options.arrow = ArrowOptions::new().with_hint(false);
    options
}

/// `field` with no metadata but field ids, at every level.
fn with_id_only(field: &Field) -> FieldRef {
    let data_type = match field.data_type() {
        DataType::Struct(fields) => {
            DataType::Struct(fields.iter().map(|field| with_id_only(field)).collect())
        }
        DataType::List(item) => DataType::List(with_id_only(item)),
        DataType::Map(entries, sorted) => DataType::Map(with_id_only(entries), *sorted),
        other => other.clone(),
    };
    let id = field.metadata().get_key_value(FIELD_ID_KEY);
    let id = id.map(|(key, id)| (key.clone(), id.clone())).into_iter().collect();
    Arc::new(Field::new(field.name(), data_type, field.is_nullable()).with_metadata(id))
}
