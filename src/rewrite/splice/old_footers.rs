//! [`OldFooters`] decodes the footers of the old files, each once.
//!
//! Trap: several inputs may be parts of one file, down to one for each of its row groups, between
//! those of other files.

use std::collections::HashMap;
use std::sync::Arc;

use crate::error::Result;
use crate::format::FileMetaData;
use crate::limits::{Budget, Reservation};
use crate::read::Footer;

/// The footers of files that are not copied to their end.
pub(super) struct OldFooters {
    /// By the bytes of a footer, how many more inputs have it.
    inputs: HashMap<FooterId, usize>,
    /// Those of further inputs.
    kept: HashMap<FooterId, (Arc<FileMetaData>, Arc<Reservation>)>,
}

/// A footer, and the memory that it takes while it is used.
pub(super) struct OldFooter {
    pub(super) metadata: Arc<FileMetaData>,
    _memory: Arc<Reservation>,
}

/// The place of the bytes of a footer in memory, which readers of one file share.
type FooterId = (usize, usize);

fn id_of(footer: &Footer) -> FooterId {
    let bytes = footer.index().bytes();
    (bytes.as_ptr().addr(), bytes.len())
}

impl OldFooters {
    /// The footers of all inputs, in their order.
    pub(super) fn new<'f>(footers: impl Iterator<Item = &'f Footer>) -> Self {
        let mut inputs = HashMap::new();
        for footer in footers {
            *inputs.entry(id_of(footer)).or_insert(0) += 1;
        }
        Self { inputs, kept: HashMap::new() }
    }

    /// The footer of the next input.
    ///
    /// # Errors
    /// `Malformed` if it is broken, `Limit(Memory)` if it takes too much.
    pub(super) fn get(&mut self, footer: &Footer, budget: &Budget) -> Result<OldFooter> {
        let id = id_of(footer);
        let left = self.inputs.get_mut(&id).map_or(0, |left| {
            *left = left.saturating_sub(1);
            *left
        });
        if let Some((metadata, memory)) = self.kept.get(&id) {
            let found = OldFooter { metadata: metadata.clone(), _memory: memory.clone() };
            if left == 0 {
                self.kept.remove(&id);
            }
            return Ok(found);
        }
        // As thrift, as structs, and in the new footer.
        let len = footer.index().byte_len().saturating_mul(4);
        let memory = match budget.take_for("a footer", len) {
            Ok(memory) => memory,
            Err(_) => {
                // Rather decoded once more than none.
                self.kept.clear();
                budget.take_for("a footer", len)?
            }
        };
        let (metadata, memory) = (Arc::new(footer.index().to_file_meta_data()?), Arc::new(memory));
        if left > 0 {
            self.kept.insert(id, (metadata.clone(), memory.clone()));
        }
        Ok(OldFooter { metadata, _memory: memory })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reader::Reader;

    #[test]
    fn a_footer_is_decoded_once_for_all_parts_of_its_file() {
        let files = ["trips", "nested"]
            .map(|name| Reader::open(format!("testdata/{name}.parquet")).unwrap());
        let inputs: Vec<Reader> = (0..8).map(|at: usize| files[at % 2].clone()).collect();
        let footer = |reader: &'_ Reader| std::ptr::from_ref(reader.metadata().footer()).addr();
        assert_ne!(footer(&inputs[0]), footer(&inputs[2]), "clones share the bytes alone");
        let footers = || inputs.iter().map(|reader| reader.metadata().footer());
        let decoded = |memory: u64| {
            let (mut old, budget) = (OldFooters::new(footers()), Budget::new(memory));
            let found: Vec<_> =
                footers().map(|footer| old.get(footer, &budget).unwrap().metadata).collect();
            assert!(old.kept.is_empty(), "what no input needs any more is not kept");
            assert_eq!(budget.used(), 0);
            for (reader, found) in inputs.iter().zip(&found) {
                assert_eq!(**found, reader.metadata().index().to_file_meta_data().unwrap());
            }
            let mut places: Vec<_> = found.iter().map(Arc::as_ptr).collect();
            places.sort_unstable();
            places.dedup();
            places.len()
        };
        assert_eq!(decoded(1 << 20), 2);
        // With memory for one of them.
        let longest = footers().map(|footer| footer.index().byte_len()).max().unwrap_or(0);
        assert!(decoded(longest as u64 * 4) > 2);
    }
}
