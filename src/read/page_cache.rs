//! [`PageCache`] keeps offset indexes that were read, and dictionaries of point reads, for later
//! reads of the same file.
//!
//! A filter asks for the pages of its leaves before the row group is planned. Point reads ask for
//! the pages of the same columns again and again: decompressing a dictionary for a few rows costs
//! more than all pages that hold them. Trap: offset indexes are checked against the metadata of the
//! chunk before they are kept, but against its pages only when those are read.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;

use crate::bytes::saturated;
use crate::page::DictionaryPage;
use crate::selection::PageMap;

/// The pages of column chunks, by row group and leaf. Cheap to clone; clones share what they hold.
#[derive(Debug, Clone, Default)]
pub(crate) struct PageCache {
    shared: Arc<Mutex<CachedPages>>,
}

#[derive(Debug, Default)]
struct CachedPages {
    maps: HashMap<(usize, usize), Arc<PageMap>>,
    dictionaries: HashMap<(usize, usize), CachedDictionary>,
    /// Chunks whose dictionary was read once. It is kept from the second read on, because copying
    /// it costs as much as decompressing it.
    read_once: HashSet<(usize, usize)>,
    bytes: usize,
}

/// A dictionary that was decompressed.
#[derive(Debug)]
struct CachedDictionary {
    page: DictionaryPage,
    /// Whether its checksum was verified.
    verified: bool,
}

/// Where the dictionary of a chunk is kept.
#[derive(Debug, Clone)]
pub(super) struct KeptDictionary {
    maps: PageCache,
    place: (usize, usize),
}

impl KeptDictionary {
    /// The dictionary, if it is known, of at most `max` bytes, and verified if that is wanted.
    pub(super) fn find(&self, max: u64, verified: bool) -> Option<DictionaryPage> {
        let held = self.maps.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let kept = held.dictionaries.get(&self.place);
        let fits = |kept: &&CachedDictionary| {
            kept.page.bytes.len() as u64 <= max && kept.verified >= verified
        };
        kept.filter(fits).map(|kept| kept.page.clone())
    }

    /// Keeps the dictionary, if it is read for the second time, and there is room: a part of
    /// `memory_cap`, which is what the read may take.
    pub(super) fn keep(&self, page: &DictionaryPage, verified: bool, memory_cap: u64) {
        let mut held = self.maps.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let CachedPages { dictionaries, read_once, bytes, .. } = &mut *held;
        let is_first = !read_once.contains(&self.place);
        if is_first {
            if read_once.len() < MAX_CHUNKS {
                read_once.insert(self.place);
            }
            return;
        }
        let more = bytes.saturating_add(page.bytes.len());
        let part = saturated(memory_cap / PART_OF_CAP);
        let max = part.min(MAX_BYTES - FOR_PAGES);
        // A copy, because these bytes may share memory with more of the read.
        let own = || {
            let bytes = Bytes::copy_from_slice(&page.bytes);
            CachedDictionary { page: DictionaryPage { values: page.values, bytes }, verified }
        };
        match dictionaries.entry(self.place) {
            Entry::Vacant(place) if more <= max => {
                place.insert(own());
                *bytes = more;
            }
            // These bytes are verified, and those that are kept may differ from them.
            Entry::Occupied(mut kept)
                if verified
                    && !kept.get().verified
                    && kept.get().page.bytes.len() == page.bytes.len() =>
            {
                kept.insert(own());
            }
            _ => {}
        }
    }
}

/// Bytes that are held at most: the pages of some million rows of some hundred columns, or some ten
/// dictionaries.
const MAX_BYTES: usize = 32 << 20;

/// The part of the memory of a read that dictionaries which are kept for others may take besides.
const PART_OF_CAP: u64 = 8;

/// Maximum number of column chunks that are remembered as having had their dictionaries read.
const MAX_CHUNKS: usize = 1 << 16;

/// Bytes of [`MAX_BYTES`] that dictionaries leave for offset indexes.
const FOR_PAGES: usize = 4 << 20;

impl PageCache {
    /// The pages of a chunk, if they are known.
    pub(super) fn find(&self, row_group: usize, leaf: usize) -> Option<Arc<PageMap>> {
        let held = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        held.maps.get(&(row_group, leaf)).cloned()
    }

    /// Keeps the pages of a chunk, if there is room.
    pub(super) fn keep(&self, row_group: usize, leaf: usize, map: &Arc<PageMap>) {
        let mut held = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let CachedPages { maps, bytes, .. } = &mut *held;
        let more = bytes.saturating_add(map.bytes_held());
        // An existing entry stays, because it was counted.
        if let Entry::Vacant(place) = maps.entry((row_group, leaf))
            && more <= MAX_BYTES
        {
            place.insert(Arc::clone(map));
            *bytes = more;
        }
    }

    /// Where the dictionary of a chunk is kept.
    pub(super) fn dictionary(&self, row_group: usize, leaf: usize) -> KeptDictionary {
        KeptDictionary { maps: self.clone(), place: (row_group, leaf) }
    }

    /// Forgets the pages of a row group, whose index was found to be wrong, and its dictionaries.
    pub(super) fn forget(&self, row_group: usize) {
        let mut held = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        let CachedPages { maps, dictionaries, bytes, .. } = &mut *held;
        dictionaries.retain(|(of, _), kept| {
            let stays = *of != row_group;
            *bytes -= if stays { 0 } else { kept.page.bytes.len() };
            stays
        });
        maps.retain(|(of, _), map| {
            let stays = *of != row_group;
            *bytes -= if stays { 0 } else { map.bytes_held() };
            stays
        });
    }

    /// Bytes held.
    #[cfg(test)]
    pub(crate) fn bytes_held(&self) -> usize {
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
    fn dictionaries_are_counted_and_given_to_those_whom_they_fit() {
        let maps = PageCache::default();
        let page = DictionaryPage { values: 3, bytes: vec![7; 30].into() };
        let (first, second) = (maps.dictionary(0, 0), maps.dictionary(1, 0));
        first.keep(&page, false, u64::MAX);
        assert!(first.find(30, false).is_none(), "it was not asked for again");
        first.keep(&page, false, u64::MAX);
        (0..2).for_each(|_| second.keep(&page, true, u64::MAX));
        assert_eq!(maps.bytes_held(), 60);
        assert_eq!(first.find(30, false).map(|page| page.bytes), Some(page.bytes.clone()));
        assert!(first.find(29, false).is_none() && first.find(30, true).is_none());
        first.keep(&page, true, u64::MAX);
        assert!(first.find(30, true).is_some() && second.find(30, true).is_some());
        assert!(maps.dictionary(0, 1).find(99, false).is_none());
        let large = DictionaryPage { values: 3, bytes: vec![7; MAX_BYTES - FOR_PAGES - 59].into() };
        (0..2).for_each(|_| maps.dictionary(2, 0).keep(&large, true, u64::MAX));
        (0..2).for_each(|_| maps.dictionary(2, 1).keep(&page, true, 8 * 89));
        assert_eq!(maps.bytes_held(), 60, "there is no room for it");
        maps.forget(0);
        assert!(first.find(30, false).is_none() && second.find(30, false).is_some());
        assert_eq!(maps.bytes_held(), 30);
    }

    #[test]
    fn what_was_counted_is_what_is_forgotten() {
        let maps = PageCache::default();
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
