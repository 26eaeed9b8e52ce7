//! Which readers open a file, and what stands in the way of those that do not.
//!
//! [`readers_of`] looks at the metadata of a file: encodings, codecs, logical types, the shape of
//! the schema, encryption. It says of each [`TargetReader`] and each column whether the reader
//! reads it. `encoding::readers` has the table of encodings, `response` all other rules. Both were
//! found by experiment with the versions that [`TargetReader::version`] names: files with each
//! feature were read with each reader, column by column. A script (`tests/readers_truth.py`)
//! repeats that for any files with pyarrow, DuckDB, polars, Spark and parquet-java, and a test with
//! arrow-rs. Of parquet-java it is not known whether the values are right, only that they are read.
//! Later versions may read more.
//!
//! Reports hold for files that are whole. No page is read: broken pages, values that their type
//! does not allow, and memory that does not suffice are not in the metadata. Neither is a lie in
//! the header of a page, which some readers believe, as polars 2.1 does `num_nulls` of a data page
//! of version 2: the check of a file finds it. Readers have their default settings: Spark infers
//! the schema, for instance, and refuses a file for a column that it would read past with a schema
//! of the user.
//!
//! ```
//! # fn main() -> marquetry::Result<()> {
//! use marquetry::readers::{Verdict, readers_of};
//! use marquetry::{Reader, TargetReader};
//!
//! let reader = Reader::open("testdata/trips.parquet")?;
//! for found in readers_of(reader.metadata())? {
//!     println!("{} reads all columns: {}", found.reader, found.reads_all());
//!     if found.reader == TargetReader::PyArrow {
//!         assert!(found.columns.iter().all(|column| column.verdict == Verdict::Reads));
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod verdict;
mod feature;
mod groups;
mod collect;
mod response;
mod since;

use std::borrow::Cow;

use self::collect::FileFeatures;
use self::response::{Response, response};
use self::since::{oldest, since};
pub use self::verdict::Verdict;
use crate::encoding::readers::TargetReader;
use crate::error::Result;
use crate::read::metadata::Metadata;

/// How a reader reads a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReaderReport {
    /// The reader.
    pub reader: TargetReader,
    /// Why it does not open the file at all, and the column that is the cause, if one is.
    pub refuses_file: Option<Refusal>,
    /// The oldest version of those that were tried which reads what is said to be read; `None` if
    /// only [`TargetReader::version`] was tried. Of older versions it is not known whether the
    /// values are right.
    pub since: Option<String>,
    /// How it reads each column, in the order of the leaves.
    pub columns: Vec<ColumnVerdict>,
}

/// Why a reader does not open a file.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refusal {
    /// The path of the column that is the cause, if one is.
    pub column: Option<String>,
    /// The reason.
    pub reason: Cow<'static, str>,
}

/// How a reader reads a column.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ColumnVerdict {
    /// The path of the leaf.
    pub path: String,
    /// Whether it is read.
    pub verdict: Verdict,
}

impl ReaderReport {
    /// Whether the reader opens the file and reads all columns.
    pub fn reads_all(&self) -> bool {
        self.refuses_file.is_none() && self.columns.iter().all(|column| column.verdict.is_read())
    }

    fn new(reader: TargetReader, file: &FileFeatures) -> Self {
        let mut refuses_file = None;
        let mut refuse = |column: Option<&str>, reason: Cow<'static, str>| {
            let refusal = || Refusal { column: column.map(str::to_owned), reason };
            refuses_file.get_or_insert_with(refusal);
        };
        let mut version = oldest(reader);
        let mut all = Verdict::Reads;
        for feature in &file.features {
            match response(reader, feature) {
                Response::RefusesFile(reason) => refuse(None, reason),
                other => all = all.or(other.verdict()),
            }
            version = version.max(since(reader, feature));
        }
        let mut columns = Vec::with_capacity(file.columns.len());
        for (path, features) in &file.columns {
            let mut verdict = all.clone();
            for feature in features {
                let found = response(reader, feature);
                if let Response::RefusesFile(reason) = &found {
                    refuse(Some(path), reason.clone());
                }
                let found = found.verdict();
                if found.is_read() {
                    version = version.max(since(reader, feature));
                }
                verdict = verdict.or(found);
            }
            columns.push(ColumnVerdict { path: path.clone(), verdict });
        }
        let since = version.map(|version| version.to_string());
        Self { reader, refuses_file, since, columns }
    }
}

/// How each reader reads the file with this metadata, in the order of [`TargetReader::ALL`].
///
/// # Errors
/// `Malformed` if the metadata of a column chunk are broken.
pub fn readers_of(metadata: &Metadata) -> Result<Vec<ReaderReport>> {
    let file = FileFeatures::new(metadata)?;
    Ok(TargetReader::ALL.into_iter().map(|reader| ReaderReport::new(reader, &file)).collect())
}
