//! The parts of a file that its layout is made of.

use marquetry::inspect::Inspector;
use marquetry::read::Footer;
use marquetry::{Metadata, Reader};

use super::chunk::Chunk;
use crate::args::Global;
use crate::failure::{Result, in_flags};
use crate::{input, keys, sniff};

/// A file whose layout is asked for.
pub(crate) struct FileLayout {
    pub(crate) path: String,
    pub(crate) inspector: Inspector,
}

impl FileLayout {
    /// # Errors
    /// `Io`, and what is wrong with a file that is no Parquet file at all.
    pub(crate) fn open(path: &str, global: &Global) -> Result<Self> {
        let source = input::source(path, global)?;
        let keys = keys::decryption(global, path)?;
        let limits = input::limits(global);
        let opened = Inspector::with_keys(source.clone(), limits, keys.as_ref());
        let inspector = opened.map_err(|e| e.at_file(path))?;
        if inspector.problem().is_some()
            && let Some(failure) = sniff::not_parquet(&source, path)
        {
            return Err(failure);
        }
        Ok(Self { path: path.to_owned(), inspector })
    }

    pub(crate) fn file_bytes(&self) -> u64 {
        self.inspector.file_len()
    }

    /// The footer, if it can be read.
    pub(crate) fn footer(&self) -> Option<&Footer> {
        self.inspector.metadata()
    }

    /// Why the footer cannot be read, if it cannot.
    pub(crate) fn problem(&self) -> Option<String> {
        self.inspector.problem().map(|error| in_flags(error.message()))
    }

    /// Ends with the error of the footer, after what can be said of the file was.
    ///
    /// # Errors
    /// Why the footer cannot be read.
    pub(crate) fn end(&self, global: &Global) -> Result<()> {
        match self.inspector.problem() {
            Some(_) => input::open(&self.path, global).map(|_| ()),
            None => Ok(()),
        }
    }

    /// A reader of the same footer, for page indexes.
    pub(crate) fn reader(&self, global: &Global) -> Result<Option<Reader>> {
        let Some(footer) = self.footer() else { return Ok(None) };
        let metadata = Metadata::new(footer.clone(), self.file_bytes());
        let source = input::source(&self.path, global)?;
        Ok(Some(Reader::with_metadata(source, metadata)?))
    }

    /// The rows of each row group; none where the footer states a number that is none.
    pub(crate) fn rows(&self) -> Vec<u64> {
        let Some(footer) = self.footer() else { return Vec::new() };
        (0..footer.row_groups()).map(|group| footer.row_group_rows(group).unwrap_or(0)).collect()
    }

    /// The dotted path of a leaf.
    pub(crate) fn column(&self, leaf: usize) -> String {
        let node = self.footer().and_then(|footer| footer.schema().leaf_node(leaf).ok());
        node.map_or_else(|| leaf.to_string(), |node| node.path().dotted())
    }

    /// Number of leaves.
    pub(crate) fn columns(&self) -> usize {
        self.footer().map_or(0, |footer| footer.schema().leaves_len())
    }

    /// The column chunks of the footer, row group by row group.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = Chunk> {
        let groups = self.footer().into_iter().flat_map(|footer| {
            (0..footer.row_groups()).map(move |group| (group, footer.column_chunks(group)))
        });
        groups.flat_map(|(row_group, chunks)| {
            let chunks = chunks.into_iter().flatten().enumerate();
            chunks.map(move |(leaf, chunk)| Chunk::new((row_group, leaf), chunk))
        })
    }
}
