//! [`PageMaps`]: the offset indexes that were read once, for whoever reads of the same file again.
//!
//! A filter asks for the pages of its leaves before the row group is planned, and point reads ask for those of the same columns again and again.
//! Trap: what is kept was held against the chunk's metadata, not against its pages: those are, when they are read.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::selection::PageMap;

/// The pages of column chunks, by row group and leaf. Cheap to clone; clones share what they hold.
#[derive(Debug, Clone, Default)]
pub struct PageMaps {
    shared: Arc<Mutex<Held>>,
}

#[derive(Debug, Default)]
struct Held {
    maps: HashMap<(usize, usize), Arc<PageMap>>,
    bytes: usize,
}

/// Bytes that are held at most: the pages of some million rows of some hundred columns.
const MOST_BYTES: usize = 32 << 20;

impl PageMaps {
    /// The pages of a chunk, if they are known.
    pub(super) fn find(&self, row_group: usize, leaf: usize) -> Option<Arc<PageMap>> {
        let held = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        held.maps.get(&(row_group, leaf)).cloned()
    }

    /// Keeps the pages of a chunk, if there is room.
    pub(super) fn keep(&self, row_group: usize, leaf: usize, map: &Arc<PageMap>) {
        let mut held = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = held.bytes.saturating_add(map.bytes_held());
        if bytes <= MOST_BYTES && held.maps.insert((row_group, leaf), Arc::clone(map)).is_none() {
            held.bytes = bytes;
        }
    }

    /// Forgets the pages of a row group, whose index was found to be wrong.
    pub(super) fn forget(&self, row_group: usize) {
        let mut held = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let Held { maps, bytes } = &mut *held;
        maps.retain(|(of, _), map| {
            let stays = *of != row_group;
            *bytes -= if stays { 0 } else { map.bytes_held() };
            stays
        });
    }

    /// Bytes held.
    pub fn bytes_held(&self) -> usize {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner).bytes
    }
}
