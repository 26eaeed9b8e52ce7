//! [`PageKinds`]: how many pages there are of each type and encoding.
//!
//! Used by `column`, and by `rewrite::Fill`. Trap: a file may have a page in every encoding that a
//! number can name, so that none is looked for among all others.

use std::collections::HashMap;

use crate::format::{Encoding, PageEncodingStats, PageType};

/// Counts of pages by type and encoding, in the order in which the first of each was found.
#[derive(Debug, Default, Clone)]
pub(crate) struct PageKinds {
    counts: Vec<(PageType, Encoding, u64)>,
    /// Where each is among the counts.
    at: HashMap<(PageType, Encoding), usize>,
}

/// A count of pages that differs from what is stated.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WrongCount {
    pub(super) kind: (PageType, Encoding),
    pub(super) stated: i64,
    pub(super) found: u64,
    /// Whether data pages of both versions together are as many as stated.
    pub(super) is_right_in_all: bool,
}

impl PageKinds {
    /// Adds a page.
    pub(crate) fn add(&mut self, r#type: PageType, encoding: Encoding) {
        let next = self.counts.len();
        let at = *self.at.entry((r#type, encoding)).or_insert(next);
        match self.counts.get_mut(at) {
            Some((.., count)) => *count += 1,
            None => self.counts.push((r#type, encoding, 1)),
        }
    }

    /// The counts.
    pub(crate) fn counts(&self) -> &[(PageType, Encoding, u64)] {
        &self.counts
    }

    /// The counts that are not those of `encoding_stats`; negative ones say nothing.
    pub(super) fn wrong_counts(&self, stated: &[PageEncodingStats]) -> Vec<WrongCount> {
        let mut of_kinds = HashMap::new();
        // Arrow C++ counts all data pages as those of version 1.
        let mut of_data: HashMap<Encoding, (i64, u64)> = HashMap::new();
        let mut kinds = Vec::new();
        let found = self.counts.iter().map(|(r#type, encoding, n)| ((*r#type, *encoding), 0, *n));
        let stated = stated.iter().map(|of| ((of.page_type, of.encoding), i64::from(of.count), 0));
        for (kind, stated, found) in found.chain(stated) {
            #[cfg(test)]
            crate::steps::add(1);
            let sum = of_kinds.entry(kind).or_insert_with(|| {
                kinds.push(kind);
                (0, 0)
            });
            *sum = (sum.0 + stated, sum.1 + found);
            if is_data(kind.0) {
                let sum = of_data.entry(kind.1).or_default();
                *sum = (sum.0 + stated, sum.1 + found);
            }
        }
        let is_right = |(stated, found): (i64, u64)| u64::try_from(stated) == Ok(found);
        let wrong = |kind: (PageType, Encoding)| {
            #[cfg(test)]
            crate::steps::add(1);
            let sum = of_kinds.get(&kind).copied().unwrap_or_default();
            let all = of_data.get(&kind.1).filter(|_| is_data(kind.0));
            (!is_right(sum) && sum.0 >= 0).then(|| WrongCount {
                kind,
                stated: sum.0,
                found: sum.1,
                is_right_in_all: all.is_some_and(|all| is_right(*all)),
            })
        };
        kinds.into_iter().filter_map(wrong).collect()
    }
}

pub(super) fn is_data(r#type: PageType) -> bool {
    matches!(r#type, PageType::DataPage | PageType::DataPageV2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(page_type: PageType, encoding: Encoding, count: i32) -> PageEncodingStats {
        PageEncodingStats::new(page_type, encoding, count)
    }

    #[test]
    fn counts_are_compared_by_kind_and_then_by_encoding() {
        use PageType::{DataPage, DataPageV2, DictionaryPage};
        let mut found = PageKinds::default();
        found.add(DictionaryPage, Encoding::Plain);
        (0..3).for_each(|_| found.add(DataPageV2, Encoding::RleDictionary));
        found.add(DataPageV2, Encoding::Plain);
        let expected = [
            (DictionaryPage, Encoding::Plain, 1),
            (DataPageV2, Encoding::RleDictionary, 3),
            (DataPageV2, Encoding::Plain, 1),
        ];
        assert_eq!(found.counts(), expected);
        let wrong = found.wrong_counts(&[
            stats(DataPage, Encoding::RleDictionary, 2),
            stats(DataPageV2, Encoding::RleDictionary, 1),
            stats(DataPageV2, Encoding::Plain, 2),
            stats(DictionaryPage, Encoding::Plain, 1),
            stats(DataPage, Encoding::Alp, -1),
        ]);
        let wrong: Vec<_> = wrong
            .into_iter()
            .map(|of| (of.kind, of.stated, of.found, of.is_right_in_all))
            .collect();
        let expected = [
            ((DataPageV2, Encoding::RleDictionary), 1, 3, true),
            ((DataPageV2, Encoding::Plain), 2, 1, false),
            ((DataPage, Encoding::RleDictionary), 2, 0, true),
        ];
        assert_eq!(wrong, expected);
    }

    #[test]
    fn many_kinds_take_steps_in_proportion() {
        let mut found = PageKinds::default();
        let encodings = || (100..10_100).map(Encoding::from);
        encodings().for_each(|encoding| found.add(PageType::DataPage, encoding));
        let stated: Vec<_> =
            encodings().map(|encoding| stats(PageType::DictionaryPage, encoding, 0)).collect();
        let mut wrong = 0;
        let steps = crate::steps::taken_by(|| wrong = found.wrong_counts(&stated).len());
        assert_eq!(wrong, 10_000);
        assert!(steps <= 4 * 10_000, "{steps}");
    }
}
