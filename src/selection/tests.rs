use super::row_selection::Form;
use super::*;
use crate::error::{ErrorKind, LimitKind, Result, Spec};
use crate::format::{OffsetIndex, PageLocation};

/// Random flags in stretches, some of them long.
fn flags(rng: &mut fastrand::Rng, len: usize) -> Vec<bool> {
    let max = [1, 4, 300, 2000][rng.usize(0..4)];
    let mut flags = Vec::new();
    while flags.len() < len {
        let (flag, n) = (rng.bool(), rng.usize(1..=max).min(len - flags.len()));
        flags.extend(std::iter::repeat_n(flag, n));
    }
    flags
}

/// The selection of the flags, by one of the ways to make one.
fn selection(rng: &mut fastrand::Rng, flags: &[bool]) -> RowSelection {
    let rows = || (0..flags.len() as u64).filter(|&i| flags[i as usize]);
    let len = flags.len() as u64;
    let made = match rng.u8(0..3) {
        0 => RowSelection::from_bits(flags.iter().copied().collect()),
        1 => RowSelection::from_rows(len, rows().flat_map(|row| [row, row])).unwrap(),
        _ => RowSelection::from_ranges(len, rows().map(|row| row..row + 1)).unwrap(),
    };
    assert_is(&made, flags);
    made
}

fn assert_is(found: &RowSelection, flags: &[bool]) {
    let rows: Vec<u64> = (0..flags.len()).filter(|&i| flags[i]).map(|i| i as u64).collect();
    assert_eq!(found.rows().collect::<Vec<_>>(), rows);
    assert_eq!((found.len(), found.count()), (flags.len() as u64, rows.len() as u64));
    assert_eq!(found.is_all(), rows.len() == flags.len());
    assert_eq!(found.is_none(), rows.is_empty());
    let hull = rows.first().map_or(0..0, |first| *first..rows[rows.len() - 1] + 1);
    assert_eq!(found.hull(), hull);
    let mut end = None;
    for run in found.runs() {
        assert!(!run.is_empty() && end.is_none_or(|end| end < run.start), "{run:?} after {end:?}");
        end = Some(run.end);
    }
    // Equal selections are equal in form.
    assert_eq!(found, &RowSelection::from_bits(flags.iter().copied().collect()));
    assert_eq!(found.to_bits().unwrap().iter().collect::<Vec<_>>(), flags);
}

#[test]
fn the_algebra_is_that_of_flags() {
    for seed in 0..400 {
        let mut rng = fastrand::Rng::with_seed(seed);
        let rng = &mut rng;
        println!("seed {seed}");
        let n = [0, 1, 63, 64, 1000, 5000][rng.usize(0..6)];
        let (a, b) = (flags(rng, n), flags(rng, n));
        let (x, y) = (selection(rng, &a), selection(rng, &b));
        let both = |f: fn(bool, bool) -> bool| -> Vec<bool> {
            a.iter().zip(&b).map(|(a, b)| f(*a, *b)).collect()
        };
        assert_is(&x.and(&y).unwrap(), &both(|a, b| a && b));
        assert_is(&x.or(&y).unwrap(), &both(|a, b| a || b));
        assert_is(&x.not(), &a.iter().map(|a| !a).collect::<Vec<_>>());

        let inner = flags(rng, x.count() as usize);
        let mut wanted = inner.iter();
        let within: Vec<bool> =
            a.iter().map(|a| *a && *wanted.next().expect("a flag for each row")).collect();
        let inner = selection(rng, &inner);
        assert_is(&x.and_then(&inner).unwrap(), &within);

        let k = rng.u64(0..=n as u64 + 1);
        let mut before = 0;
        let rank = |a: &bool| {
            before += u64::from(*a);
            before
        };
        let ranks: Vec<u64> = a.iter().map(rank).collect();
        let by_rank = |f: &dyn Fn(u64) -> bool| -> Vec<bool> {
            a.iter().zip(&ranks).map(|(a, rank)| *a && f(*rank)).collect()
        };
        assert_is(&x.offset(k), &by_rank(&|rank| rank > k));
        assert_is(&x.limit(k), &by_rank(&|rank| rank <= k));

        let gap = rng.usize(0..20);
        let near = |i: usize, step: fn(usize, usize) -> Option<usize>| {
            (0..=gap).find_map(|k| step(i, k).and_then(|j| a.get(j)).filter(|a| **a).map(|_| k))
        };
        let closed: Vec<bool> = (0..n)
            .map(|i| {
                let sides = near(i, usize::checked_sub).zip(near(i, usize::checked_add));
                sides.is_some_and(|(before, after)| before + after <= gap + 1)
            })
            .collect();
        assert_is(&x.without_gaps(gap as u64), &closed);

        let (front, back) = x.split_at(k);
        let at = (k as usize).min(n);
        assert_is(&front, &a[..at]);
        assert_is(&back, &a[at..]);
        assert_eq!(RowSelection::concat([front, back]).unwrap(), x);
        let start = rng.usize(0..=n);
        let end = rng.usize(start..=n);
        assert_is(&x.slice(start as u64..end as u64), &a[start..end]);
        assert_eq!(
            x.intersects(start as u64..end as u64),
            a[start..end].contains(&true),
            "{start}..{end}"
        );
    }
}

#[test]
fn the_form_follows_the_density() {
    let sparse = RowSelection::from_rows(1 << 40, [3, 1 << 39]).unwrap();
    assert!(matches!(sparse.form, Form::Runs(_)));
    assert_eq!(sparse.not().count(), (1 << 40) - 2);
    let dense = RowSelection::from_rows(1000, (0..1000).step_by(2)).unwrap();
    assert!(matches!(dense.form, Form::Bits(_)));
    assert!(matches!(dense.limit(2).form, Form::Runs(_)));
    assert!(matches!(RowSelection::all(1000).form, Form::Runs(_)));
}

#[test]
fn what_does_not_fit_is_refused() {
    let usage =
        |found: Result<RowSelection>| assert_eq!(found.unwrap_err().kind(), ErrorKind::Usage);
    usage(RowSelection::from_ranges(10, [3..5, 4..6]));
    usage(RowSelection::from_ranges(10, [0..1, 3..11]));
    #[expect(clippy::reversed_empty_ranges, reason = "that is the point")]
    usage(RowSelection::from_ranges(10, [0..1, 5..3]));
    usage(RowSelection::from_rows(10, [3, 2]));
    usage(RowSelection::from_rows(10, [10]));
    usage(RowSelection::all(10).and(&RowSelection::all(11)));
    usage(RowSelection::all(10).or(&RowSelection::none(9)));
    usage(RowSelection::all(10).and_then(&RowSelection::all(9)));
}

/// An index of pages: offset, bytes, first row.
fn index(pages: &[(i64, i32, i64)]) -> OffsetIndex {
    let location = |&(offset, compressed_page_size, first_row_index): &(i64, i32, i64)| {
        PageLocation { offset, compressed_page_size, first_row_index }
    };
    OffsetIndex { page_locations: pages.iter().map(location).collect(), ..Default::default() }
}

#[test]
fn a_selection_needs_the_pages_that_hold_its_rows() {
    for seed in 0..200 {
        println!("seed {seed}");
        let rng = &mut fastrand::Rng::with_seed(seed);
        let (mut pages, mut row, mut offset) = (Vec::new(), 0, 40);
        // Of one length but for a few, as most writers make them, or of any.
        let (usual, often) = (rng.i64(1..40), rng.u8(0..3) * 4);
        for _ in 0..rng.usize(1..20) {
            pages.push((offset, 10, row));
            let rows = if rng.u8(0..9) < often { usual } else { rng.i64(1..40) };
            (row, offset) = (row + rows, offset + 10);
        }
        let map = PageMap::new(&index(&pages), 4..offset as u64, row as u64).unwrap();
        assert_eq!(map.head(), 4..40);
        assert_eq!(map.bytes_held(), size_of_val(map.pages()));
        let flags = flags(rng, row as usize);
        let selection = selection(rng, &flags);
        let of_page = |i: usize| {
            let rows = map.pages()[i].rows.clone();
            &flags[rows.start as usize..rows.end as usize]
        };
        let needed: Vec<usize> =
            (0..map.pages().len()).filter(|i| of_page(*i).contains(&true)).collect();
        assert_eq!(map.needed(&selection), needed);
        for i in 0..map.pages().len() {
            assert_is(&map.within(i, &selection), of_page(i));
        }
    }
}

#[test]
fn an_index_that_contradicts_itself_or_the_chunk_is_refused() {
    let good = [(40, 10, 0), (50, 20, 7), (70, 30, 9)];
    let of = |pages: &[(i64, i32, i64)]| PageMap::new(&index(pages), 4..100, 12);
    assert!(of(&good).is_ok());
    let refused = |pages: &[(i64, i32, i64)]| {
        assert_eq!(
            of(pages).unwrap_err().kind(),
            ErrorKind::Malformed(Spec::PageIndex),
            "{pages:?}"
        );
    };
    refused(&[]);
    refused(&good[1..]);
    refused(&good[..2]);
    for (i, change) in [
        (0, (3, 47, 0)),
        (0, (-1, 51, 0)),
        (0, (40, 10, 1)),
        (0, (40, 10, -1)),
        (0, (40, 0, 0)),
        (0, (40, 11, 0)),
        (1, (50, 20, 0)),
        (1, (50, 20, 9)),
        (1, (50, -20, 7)),
        (1, (51, 19, 7)),
        (1, (i64::MAX, 20, 7)),
        (2, (70, 31, 9)),
        (2, (70, 30, 12)),
        (2, (70, i32::MAX, 9)),
        (2, (70, 30, i64::MAX)),
    ] {
        let mut bad = good;
        bad[i] = change;
        refused(&bad);
    }
}

/// Lengths as large as a file may state them.
#[test]
fn as_many_rows_as_can_be_counted_are_handled_or_refused() {
    let most = RowSelection::all(u64::MAX);
    let bits = most.to_bits().unwrap_err();
    assert_eq!(bits.kind(), ErrorKind::Limit(LimitKind::Memory));
    let far = RowSelection::from_rows(1 << 60, [0, (1 << 60) - 1]).unwrap();
    assert_eq!(far.to_bits().unwrap_err().kind(), ErrorKind::Limit(LimitKind::Memory));

    let (one, none) = (RowSelection::all(1), RowSelection::none(1));
    for parts in [[most.clone(), one.clone()], [one.clone(), most.clone()], [most.clone(), none]] {
        assert_eq!(RowSelection::concat(parts).unwrap_err().kind(), ErrorKind::Usage);
    }
    let nearly = RowSelection::none(u64::MAX - 1);
    let last = RowSelection::concat([nearly, one]).unwrap();
    assert_eq!(last.rows().collect::<Vec<_>>(), [u64::MAX - 1]);
    assert_eq!(last.hull(), u64::MAX - 1..u64::MAX);

    assert_eq!(last.not().count(), u64::MAX - 1);
    assert_eq!(last.or(&last.not()).unwrap(), most);
    assert_eq!(most.and_then(&last).unwrap(), last);
    assert_eq!(most.and(&last).unwrap(), last);
    assert_eq!(most.offset(u64::MAX - 1), last);
    assert_eq!(most.limit(u64::MAX), most);
    assert_eq!(most.slice(u64::MAX - 1..u64::MAX), RowSelection::all(1));
    assert_eq!(last.without_gaps(u64::MAX), last);
    assert!(last.intersects(0..u64::MAX) && !last.intersects(0..u64::MAX - 1));
}

/// A deletion vector of one set of 32-bit numbers, which begins with `words`.
fn vector(words: &[u32], rest: &[&[u8]]) -> Result<DeletionVector> {
    let mut bytes = 1_681_511_377u32.to_le_bytes().to_vec();
    bytes.extend(1u64.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    rest.iter().for_each(|part| bytes.extend_from_slice(part));
    DeletionVector::from_delta(bytes)
}

fn numbers(vector: &DeletionVector) -> Vec<u64> {
    vector.ranges().flatten().collect()
}

#[test]
fn the_inline_vector_of_the_protocol_has_its_rows() {
    let text = "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L";
    let vector = DeletionVector::from_delta_inline(text, 44).unwrap();
    assert_eq!((vector.count(), numbers(&vector)), (6, vec![3, 4, 7, 11, 18, 29]));
    assert_is(&vector.kept(5), &[true, true, true, false, false]);
    for (text, byte_len) in [(text, 45), (&text[1..], 43), ("", 4), ("####~", 4), ("#####", 4)] {
        let error = DeletionVector::from_delta_inline(text, byte_len).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed(Spec::DeletionVectors), "{text}");
    }
}

#[test]
fn runs_and_arrays_of_a_set_are_its_rows() {
    let words =
        |words: &[u16]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    // Of two containers, the first is of runs: 10 to 12, 20 to 21.
    let runs = |values| {
        let headers = words(&[0, values, 1, 1]);
        vector(&[12347 | 1 << 16], &[&[1], &headers, &words(&[2, 10, 2, 20, 1]), &words(&[7, 9])])
    };
    let found = runs(4).unwrap();
    assert_eq!((found.count(), numbers(&found)), (7, vec![10, 11, 12, 20, 21, 65543, 65545]));
    let error = runs(5).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Malformed(Spec::DeletionVectors));
    // Runs that meet those before them.
    for runs in [[10, 2, 12, 1], [10, 2, 3, 1], [u16::MAX, 1, 0, 0]] {
        let runs = [&words(&[2])[..], &words(&runs)].concat();
        let error = vector(&[12347], &[&[1], &words(&[0, 4]), &runs]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed(Spec::DeletionVectors));
    }
}

#[test]
fn a_bitmap_has_as_many_rows_as_its_header_says() {
    let mut bits = vec![0; 8192];
    bits[100..725].fill(0xFF);
    let bitmap = |values: u16| {
        let header = [3u16.to_le_bytes(), (values - 1).to_le_bytes()].concat();
        vector(&[12346, 1], &[&header, &[0; 4], &bits])
    };
    let found = bitmap(5000).unwrap();
    assert_eq!(found.count(), 5000);
    assert!(numbers(&found).into_iter().eq(3 * 65536 + 800..3 * 65536 + 5800));
    for values in [4999, 5001] {
        let error = bitmap(values).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Malformed(Spec::DeletionVectors));
    }
}
