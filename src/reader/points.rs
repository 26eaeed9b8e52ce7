//! [`Dataset::take`] reads rows by their numbers in all files.

use arrow_array::RecordBatch;

use super::Reader;
use super::dataset::Dataset;
use crate::error::{Error, Result};
use crate::rows::{interleave, place_in};

/// Which rows of each file are wanted, and where each of them is among those of all.
pub(super) struct WantedRows {
    /// By the index of the file, its rows: ascending, each once.
    pub(super) of_files: Vec<(usize, Vec<u64>)>,
    /// For each row that was asked for, in that order, its place among all rows of `of_files`.
    pub(super) places: Vec<u64>,
}

impl<S: Clone> Dataset<S> {
    /// Finds the files of rows.
    pub(super) fn wanted(&self, rows: &[u64]) -> Result<WantedRows> {
        let mut ends = Vec::with_capacity(self.readers().len());
        let mut len = 0u64;
        for reader in self.readers() {
            len = len.saturating_add(reader.file_rows()?);
            ends.push(len);
        }
        let mut sorted = rows.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        if let Some(row) = sorted.last().filter(|row| **row >= len) {
            return Err(Error::usage(format_args!(
                "row {row} was asked for, and the {} files of the dataset have {len} rows",
                ends.len()
            )));
        }
        let mut of_files: Vec<(usize, Vec<u64>)> = Vec::new();
        for row in &sorted {
            let (file, in_file) = place_in(&ends, *row);
            let in_file = in_file as u64;
            match of_files.last_mut().filter(|(last, _)| *last == file) {
                Some((_, rows)) => rows.push(in_file),
                None => of_files.push((file, vec![in_file])),
            }
        }
        let place = |row: &u64| sorted.partition_point(|found| found < row) as u64;
        Ok(WantedRows { of_files, places: rows.iter().map(place).collect() })
    }

    /// Puts rows that were found in the order in which they were asked for.
    pub(super) fn in_order(&self, found: &[RecordBatch], places: &[u64]) -> Result<RecordBatch> {
        let mut end = 0u64;
        let ends = found.iter().map(|batch| {
            end += batch.num_rows() as u64;
            end
        });
        let ends: Vec<u64> = ends.collect();
        let places: Vec<_> = places.iter().map(|place| place_in(&ends, *place)).collect();
        interleave(&self.schema()?, found, &places)
    }

    pub(super) fn reader(&self, file: usize) -> Result<&Reader<S>> {
        self.readers().get(file).ok_or_else(|| Error::internal("a file that the dataset lacks"))
    }
}

impl Dataset {
    /// Reads rows by their numbers, counted over all rows of all files, in any order, and
    /// repeatedly if asked, as one batch in the order of `rows`.
    ///
    /// Each file that has such a row is opened once, and each page that holds one is read once.
    /// Page indexes and dictionaries are kept for later calls, as by [`Reader::take`]. Rows are
    /// numbered as in the files: filter, offset, limit and selection are ignored.
    ///
    /// ```
    /// # fn main() -> marquetry::Result<()> {
    /// use marquetry::Dataset;
    ///
    /// let dataset = Dataset::open(["testdata/trips.parquet", "testdata/trips.parquet"])?;
    /// let batch = dataset.project(["id"])?.take(&[1_700, 3, 3])?; // 1,000 rows in each file
    /// assert_eq!(batch.num_rows(), 3);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Usage` if there is no such row, or the columns of the files differ; else as
    /// [`Reader::take`].
    pub fn take(&self, rows: &[u64]) -> Result<RecordBatch> {
        let WantedRows { of_files, places } = self.wanted(rows)?;
        let mut found = Vec::new();
        for (file, rows) in of_files {
            let (reader, _) = self.reader(file)?.kept_open()?.taking(&rows)?;
            let mut batches = reader.batches()?;
            while let Some(batch) = batches.next_batch()? {
                found.push(batch);
            }
        }
        self.in_order(&found, &places)
    }
}
