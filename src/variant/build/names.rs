//! Keeps the names of one value after another.

use std::cmp::Ordering;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

use crate::error::{Error, Result, quoted};
use crate::variant::encode;
use crate::variant::malformed::malformed;

/// All names so far, and those that the current value uses.
///
/// A name has two numbers: one for as long as the builder keeps it, and its id in the metadata of
/// the current value.
#[derive(Debug, Clone, Default)]
pub(super) struct NameDictionary {
    /// The names, end to end.
    text: String,
    entries: Vec<Entry>,
    by_text: HashTable<u32>,
    hasher: RandomState,
    /// The dictionary of the current value: its names by id.
    ids: Vec<u32>,
    /// Names of it that were asked for. Fewer than `ids` only where these were guessed.
    used: usize,
    /// The names that a guess found in the dictionary, in the order of their first use.
    guessed: Vec<u32>,
    /// Number of the current value, below `u32::MAX`.
    value: u32,
    /// The name that was asked for last.
    last: Option<u32>,
    /// The metadata that were written last, and their names.
    metadata: Vec<u8>,
    metadata_ids: Vec<u32>,
}

/// A position in the names of the current value.
#[derive(Debug, Clone, Copy)]
pub(super) struct DictionaryMark {
    ids: usize,
    used: usize,
    guessed: usize,
    last: Option<u32>,
}

#[derive(Debug, Clone)]
struct Entry {
    start: usize,
    len: usize,
    /// Its first 8 bytes as a big-endian number, which compares as they do.
    prefix: u64,
    /// The last value that has it in its dictionary, its id there, and the last that uses it.
    value: u32,
    id: u32,
    used_by: u32,
    /// The name that followed it last time.
    next: u32,
}

/// From this many bytes or names on, names are forgotten when a value is finished, so that values
/// of ever new names do not take memory forever.
const MAX_TEXT: usize = 1 << 20;
const MAX_NAMES: usize = 1 << 14;

/// No name: that which follows one that was never followed.
const NO_NAME: u32 = u32::MAX;

/// The number of no value.
const NO_VALUE: u32 = u32::MAX;

impl NameDictionary {
    /// The number of a name; adds the name to the dictionary of the current value.
    #[inline]
    pub(super) fn number(&mut self, name: &str) -> Result<u32> {
        let guess = self.last.map_or(0, |last| self.entries[last as usize].next);
        let number = match self.entries.get(guess as usize) {
            Some(entry) if entry.text(&self.text) == name => guess,
            _ => self.look_up(name)?,
        };
        let entry = &mut self.entries[number as usize];
        if entry.used_by != self.value {
            entry.used_by = self.value;
            self.used += 1;
            if entry.value == self.value {
                self.guessed.push(number);
            } else {
                entry.value = self.value;
                entry.id = u32::try_from(self.ids.len()).map_err(|_| too_many())?;
                self.ids.push(number);
            }
        }
        self.last = Some(number);
        Ok(number)
    }

    /// The current end of the names of the current value, for [`take_back`](Self::take_back).
    #[inline]
    pub(super) fn mark(&self) -> DictionaryMark {
        let (ids, guessed) = (self.ids.len(), self.guessed.len());
        DictionaryMark { ids, used: self.used, guessed, last: self.last }
    }

    /// Removes the names that the current value used since `mark`.
    #[cold]
    pub(super) fn take_back(&mut self, mark: &DictionaryMark) {
        let Self { entries, ids, guessed, .. } = self;
        for number in ids.drain(mark.ids..) {
            let entry = &mut entries[number as usize];
            (entry.value, entry.used_by) = (NO_VALUE, NO_VALUE);
        }
        for number in guessed.drain(mark.guessed..) {
            entries[number as usize].used_by = NO_VALUE;
        }
        (self.used, self.last) = (mark.used, mark.last);
    }

    #[inline(never)]
    fn look_up(&mut self, name: &str) -> Result<u32> {
        let Self { text, entries, by_text, hasher, .. } = self;
        let hash = |entry: &Entry| hasher.hash_one(entry.text(text).as_bytes());
        let wanted = hasher.hash_one(name.as_bytes());
        let found = by_text.find(wanted, |&i| entries[i as usize].text(text) == name).copied();
        let number = match found {
            Some(number) => number,
            None => {
                let number = u32::try_from(entries.len()).map_err(|_| too_many())?;
                by_text.insert_unique(wanted, number, |&i| hash(&entries[i as usize]));
                entries.push(Entry::new(text.len(), name));
                text.push_str(name);
                number
            }
        };
        // The next guess after `last`.
        if let Some(last) = self.last {
            self.entries[last as usize].next = number;
        }
        Ok(number)
    }

    /// The id of a name in the dictionary of the current value.
    #[inline]
    pub(super) fn id(&self, number: u32) -> u32 {
        self.entries[number as usize].id
    }

    fn compare(&self, a: u32, b: u32) -> Ordering {
        let (a, b) = (&self.entries[a as usize], &self.entries[b as usize]);
        let prefixes = a.prefix.cmp(&b.prefix);
        prefixes.then_with(|| a.text(&self.text).cmp(b.text(&self.text)))
    }

    /// Sorts fields by name, and fields of the same name by offset. Returns whether names are
    /// unique.
    pub(super) fn sort(&self, fields: &mut [(u32, u32)]) -> bool {
        if fields.is_sorted_by(|a, b| self.compare(a.0, b.0) == Ordering::Less) {
            return true;
        }
        fields.sort_unstable_by(|a, b| self.compare(a.0, b.0).then(a.1.cmp(&b.1)));
        fields.is_sorted_by(|a, b| a.0 != b.0)
    }

    /// The error for two sorted fields of the same name.
    #[cold]
    pub(super) fn twice(&self, fields: &[(u32, u32)]) -> Error {
        let twice =
            fields.windows(2).find(|pair| pair[0].0 == pair[1].0).map_or(0, |pair| pair[0].0);
        let name = self.entries.get(twice as usize).map_or("", |entry| entry.text(&self.text));
        Error::usage(format_args!("an object has two fields named {}", quoted(name)))
    }

    fn is_sorted(&self) -> bool {
        self.ids.is_sorted_by(|a, b| self.compare(*a, *b) == Ordering::Less)
    }

    /// Whether the dictionary is sorted, and all of it is used.
    pub(super) fn is_sorted_and_used(&self) -> bool {
        self.used == self.ids.len() && self.is_sorted()
    }

    /// Sorts the dictionary, and removes unused names.
    pub(super) fn sort_used(&mut self) {
        let mut ids = std::mem::take(&mut self.ids);
        ids.retain(|number| self.entries[*number as usize].used_by == self.value);
        ids.sort_unstable_by(|a, b| self.compare(*a, *b));
        self.ids = ids;
        self.number_ids();
    }

    fn number_ids(&mut self) {
        for (id, number) in (0..).zip(&self.ids) {
            let entry = &mut self.entries[*number as usize];
            (entry.id, entry.value) = (id, self.value);
        }
    }

    /// Appends the metadata of the current value.
    pub(super) fn write(&mut self, out: &mut Vec<u8>) -> Result<()> {
        if self.metadata.is_empty() || self.metadata_ids != self.ids {
            // Other writers do not say of an empty dictionary that it is sorted either.
            let is_sorted = !self.ids.is_empty() && self.is_sorted();
            let Self { metadata, entries, text, ids, .. } = self;
            metadata.clear();
            let names = ids.iter().map(|number| entries[*number as usize].text(text));
            write_metadata(metadata, names, is_sorted)?;
            self.metadata_ids.clone_from(&self.ids);
        }
        out.extend_from_slice(&self.metadata);
        Ok(())
    }

    /// How many names there are.
    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.entries.len()
    }

    /// Begins a value. Its dictionary is empty, or, as a guess, that of the last one.
    pub(super) fn next_value(&mut self, guess: bool) {
        self.used = 0;
        self.guessed.clear();
        self.last = None;
        if self.text.len() > MAX_TEXT
            || self.entries.len() > MAX_NAMES
            || self.value == u32::MAX - 1
        {
            *self = Self { hasher: self.hasher.clone(), ..Self::default() };
        } else {
            self.value += 1;
        }
        if guess {
            self.number_ids();
        } else {
            self.ids.clear();
        }
    }
}

impl Entry {
    fn new(start: usize, name: &str) -> Self {
        let mut prefix = [0; 8];
        let len = name.len().min(8);
        prefix[..len].copy_from_slice(&name.as_bytes()[..len]);
        let prefix = u64::from_be_bytes(prefix);
        let len = name.len();
        Self { start, len, prefix, value: NO_VALUE, id: 0, used_by: NO_VALUE, next: NO_NAME }
    }

    fn text<'a>(&self, all: &'a str) -> &'a str {
        &all[self.start..self.start + self.len]
    }
}

/// Appends metadata of these names.
pub(in crate::variant) fn write_metadata<'a>(
    out: &mut Vec<u8>,
    names: impl ExactSizeIterator<Item = &'a str> + Clone,
    is_sorted: bool,
) -> Result<()> {
    let total =
        u32::try_from(names.clone().map(str::len).sum::<usize>()).map_err(|_| too_many())?;
    let len = u32::try_from(names.len()).map_err(|_| too_many())?;
    let width = encode::width(total.max(len));
    let size = usize::from(width);
    out.push(1 | u8::from(is_sorted) << 4 | (width - 1) << 6);
    out.extend_from_slice(&len.to_le_bytes()[..size]);
    let mut end = 0;
    out.extend_from_slice(&0_u32.to_le_bytes()[..size]);
    for name in names.clone() {
        end += name.len();
        out.extend_from_slice(&end.to_le_bytes()[..size]);
    }
    names.for_each(|name| out.extend_from_slice(name.as_bytes()));
    Ok(())
}

#[cold]
fn too_many() -> Error {
    malformed("the names of a VARIANT value are more than metadata can hold (4 GiB)")
}
