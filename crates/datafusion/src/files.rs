//! [`Files`] plans the files of one partition of a scan, and streams their batches.

use std::sync::Arc;

use arrow_array::RecordBatch;
use datafusion_common::Result;
use datafusion_datasource::PartitionedFile;
use datafusion_datasource::file_stream::{FileOpenFuture, FileOpener};
use datafusion_datasource::morsel::{Morsel, MorselPlan, MorselPlanner, Morselizer};
use futures_util::stream::BoxStream;

use crate::file_stream::FileStream;
use crate::scan::{Prepared, Scan};
use marquetry::engine::KnownFile;

/// Plans the files of one partition of a scan.
#[derive(Debug, Clone)]
pub(crate) struct Files(pub(crate) Arc<Scan>);

impl Morselizer for Files {
    fn plan_file(&self, file: PartitionedFile) -> Result<Box<dyn MorselPlanner>> {
        Ok(Box::new(FilePlanner::Listed { scan: Arc::clone(&self.0), file: Box::new(file) }))
    }
}

impl FileOpener for Files {
    fn open(&self, file: PartitionedFile) -> Result<FileOpenFuture> {
        let scan = Arc::clone(&self.0);
        Ok(Box::pin(async move {
            let Some(prepared) = scan.prepare(file)? else {
                return Ok(Box::pin(futures_util::stream::empty()) as BoxStream<'static, _>);
            };
            let known = prepared.fetch(&scan).await?;
            Ok(Box::pin(stream(&scan, prepared, known)?) as BoxStream<'static, _>)
        }))
    }
}

/// A file that is being planned, until the stream of its batches begins.
#[derive(Debug)]
enum FilePlanner {
    /// A file that is known only by the plan of the query.
    Listed { scan: Arc<Scan>, file: Box<PartitionedFile> },
    /// Its metadata are there.
    Opened { scan: Arc<Scan>, prepared: Box<Prepared>, known: Box<KnownFile> },
}

impl MorselPlanner for FilePlanner {
    fn plan(self: Box<Self>) -> Result<Option<MorselPlan>> {
        Ok(match *self {
            Self::Listed { scan, file } => scan.prepare(*file)?.map(|prepared| {
                MorselPlan::new().with_pending_planner(async move {
                    let known = Box::new(prepared.fetch(&scan).await?);
                    let prepared = Box::new(prepared);
                    let planner = Self::Opened { scan, prepared, known };
                    Ok(Box::new(planner) as Box<dyn MorselPlanner>)
                })
            }),
            Self::Opened { scan, prepared, known } => {
                let stream = stream(&scan, *prepared, *known)?;
                Some(MorselPlan::new().with_morsels(vec![Box::new(FileMorsel(stream))]))
            }
        })
    }
}

/// The rows of a file. What is fetched of them, and when, depends on the filters that were learned
/// by then.
#[derive(Debug)]
struct FileMorsel(FileStream);

impl Morsel for FileMorsel {
    fn into_stream(self: Box<Self>) -> BoxStream<'static, Result<RecordBatch>> {
        Box::pin(self.0)
    }
}

/// The batches of a file.
fn stream(scan: &Scan, prepared: Prepared, known: KnownFile) -> Result<FileStream> {
    let of_file = scan.of_file(&prepared, &known.metadata)?;
    FileStream::new(scan, prepared, known, of_file)
}
