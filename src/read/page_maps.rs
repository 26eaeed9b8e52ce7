//! [`PageMaps`]: the offset indexes that were read once, for whoever reads of the same file again.
//!
//! A filter asks for the pages of its leaves before the row group is planned, and point reads ask for those of the same columns again and again.
//! Trap: what is kept was held against the chunk's metadata, not against its pages: those are, when they are read.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
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
        let Held { maps, bytes } = &mut *held;
        let more = bytes.saturating_add(map.bytes_held());
        // What is there stays, as it is what was counted.
        if let Entry::Vacant(place) = maps.entry((row_group, leaf))
            && more <= MOST_BYTES
        {
            place.insert(Arc::clone(map));
            *bytes = more;
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{OffsetIndex, PageLocation};

    fn pages(n: i32) -> Arc<PageMap> {
        let page = |i: i32| PageLocation {
            offset: i64::from(4 + 10 * i),
            compressed_page_size: 10,
            first_row_index: i64::from(i),
        };
        let index =
            OffsetIndex { page_locations: (0..n).map(page).collect(), ..Default::default() };
        Arc::new(PageMap::new(&index, 4..4 + 10 * n as u64, 50).unwrap())
    }

    #[test]
    fn what_was_counted_is_what_is_forgotten() {
        let maps = PageMaps::default();
        let (few, many) = (pages(2), pages(9));
        maps.keep(0, 0, &few);
        // Another thread has read the same index, or one that says something else.
        maps.keep(0, 0, &many);
        maps.keep(1, 0, &many);
        assert_eq!(maps.find(0, 0).map(|map| map.pages().len()), Some(2));
        assert_eq!(maps.bytes_held(), few.bytes_held() + many.bytes_held());
        maps.forget(0);
        assert_eq!((maps.find(0, 0), maps.bytes_held()), (None, many.bytes_held()));
        maps.forget(1);
        assert_eq!(maps.bytes_held(), 0);
    }
}
