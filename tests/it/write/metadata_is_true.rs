//! Tests that the metadata of a written file are true: everything is recomputed from the rows that
//! are read back, and from the headers of the pages.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use marquetry::Reader;
use marquetry::arrow_schema::{DataType, Field};
use marquetry::format::*;
use marquetry::schema::Physical;
use parquet::bloom_filter::Sbbf;

use crate::support::cells::{
    Cell, Entry, Key, Shredder, columns, float, is_float, key, leaves, plain_type,
};
use crate::support::generate::{Case, case, every_case};
use crate::support::read_with;

/// A leaf of the file, and the facts of its chunk in one row group.
struct Truth<'a> {
    name: String,
    data_type: &'a DataType,
    physical: Physical,
    total: bool,
    max_def: usize,
    max_rep: usize,
    entries: Vec<Entry>,
    /// The entry that each row begins with, and the end.
    rows: Vec<usize>,
}

/// A page, by its header.
struct Page {
    offset: i64,
    stored: i64,
    raw: i64,
    header: PageHeader,
}

#[test]
fn metadata_state_what_is_true() {
    let seen = Seen::default();
    every_case(2000, |seed| is_true(&case(seed), &seen));
    for (what, seen) in [
        ("distinct counts", &seen.distinct),
        ("sorted row groups", &seen.sorted),
        ("pages in rising order", &seen.rising),
        ("pages in falling order", &seen.falling),
        ("bounds that are cut", &seen.cut),
        ("pages of nulls", &seen.null_pages),
    ] {
        assert!(seen.load(Relaxed) > 0, "no {what}");
    }
}

/// Counts of the cases that occurred, because a test of nothing passes too easily.
#[derive(Default)]
pub struct Seen {
    distinct: AtomicUsize,
    sorted: AtomicUsize,
    rising: AtomicUsize,
    falling: AtomicUsize,
    cut: AtomicUsize,
    null_pages: AtomicUsize,
}

pub fn is_true(case: &Case, seen: &Seen) {
    let name = &case.name;
    let reader = Reader::new(case.file.clone()).expect("a file").threads(1);
    let metadata = reader.metadata().index().to_file_meta_data().expect("a footer");
    let columns = columns(&case.schema, &read_with(reader.clone()).expect("rows"));
    let fields: Vec<&Field> = case.schema.fields().iter().flat_map(|f| leaves(f)).collect();
    let schema = reader.metadata().schema();
    let orders = metadata.column_orders.as_ref().expect("column orders");
    assert_eq!(orders.len(), fields.len(), "{name}");
    let physical: Vec<Physical> =
        (0..fields.len()).map(|i| schema.leaf(i).expect("a leaf").physical).collect();
    let total_rows: i64 = metadata.row_groups.iter().map(|group| group.num_rows).sum();
    assert_eq!(metadata.num_rows, total_rows, "{name}");
    let mut first = 0;
    for (g, group) in metadata.row_groups.iter().enumerate() {
        let rows = first..first + group.num_rows as usize;
        first = rows.end;
        let mut entries = vec![Vec::new(); fields.len()];
        let mut starts = vec![Vec::new(); fields.len()];
        let mut leaf = 0;
        for (field, column) in case.schema.fields().iter().zip(&columns) {
            let below = leaf..leaf + leaves(field).len();
            for cell in &column[rows.clone()] {
                for i in below.clone() {
                    starts[i].push(entries[i].len());
                }
                let mut shredder = Shredder { physical: &physical, out: &mut entries };
                shredder.cell(field, cell, (0, 0, 0), leaf);
            }
            leaf = below.end;
        }
        let mut truths = Vec::new();
        for (i, (entries, mut rows)) in entries.into_iter().zip(starts).enumerate() {
            let leaf = schema.leaf(i).expect("a leaf");
            rows.push(entries.len());
            let data_type = plain_type(fields[i].data_type());
            let total = orders[i] == ColumnOrder::Ieee754TotalOrder;
            assert!(!total || is_float(data_type), "{name}");
            let (max_def, max_rep) = (leaf.max_def.into(), leaf.max_rep.into());
            let name = format!("row group {g}, {}, {name}", leaf.path.dotted());
            let physical = leaf.physical;
            let truth = Truth { name, data_type, physical, total, max_def, max_rep, entries, rows };
            let chunk = &group.columns[i];
            let index = reader.page_index(g, i).expect("an index");
            if case.wishes.page_statistics {
                truth.is_complete(chunk, &index);
            }
            let bloom = chunk.meta_data.as_ref().and_then(|meta| meta.bloom_filter_offset);
            let wanted = case.wishes.blooms.contains(&i) && physical != Physical::Boolean;
            assert_eq!(bloom.is_some(), wanted, "bloom: {}", truth.name);
            let statistics = chunk.meta_data.as_ref().and_then(|meta| meta.statistics.as_ref());
            let add = |counter: &AtomicUsize, n: bool| counter.fetch_add(n.into(), Relaxed);
            add(&seen.distinct, statistics.is_some_and(|s| s.distinct_count.is_some()));
            add(&seen.cut, statistics.is_some_and(|s| s.is_max_value_exact == Some(false)));
            if let Some(column) = &index.column_index {
                let many = column.null_pages.iter().filter(|null| !**null).count() > 2;
                let order = column.boundary_order;
                add(&seen.rising, many && order == BoundaryOrder::Ascending);
                add(&seen.falling, many && order == BoundaryOrder::Descending);
                add(&seen.null_pages, column.null_pages.contains(&true));
            }
            truth.check(&reader, chunk, index);
            truths.push(truth);
        }
        let sum = |of: fn(&ColumnMetaData) -> i64| -> i64 {
            group.columns.iter().filter_map(|chunk| chunk.meta_data.as_ref()).map(of).sum()
        };
        assert_eq!(group.total_byte_size, sum(|m| m.total_uncompressed_size), "{name}");
        assert_eq!(group.total_compressed_size, Some(sum(|m| m.total_compressed_size)), "{name}");
        assert_eq!(group.ordinal, Some(g as i16), "{name}");
        for sorting in group.sorting_columns.iter().flatten() {
            seen.sorted.fetch_add(1, Relaxed);
            truths[sorting.column_idx as usize].is_sorted(sorting);
        }
    }
    let rows = columns.first().map_or(0, Vec::<Cell>::len);
    assert_eq!(first, rows, "{name}");
}

fn count<T>(items: impl IntoIterator<Item = T>) -> i64 {
    items.into_iter().count() as i64
}

impl Truth<'_> {
    fn key(&self, value: &[u8]) -> Option<Key> {
        key(self.data_type, self.physical, value, self.total)
    }

    fn values(&self, range: std::ops::Range<usize>) -> Vec<&[u8]> {
        self.entries[range].iter().filter_map(|entry| entry.value.as_deref()).collect()
    }

    fn nans(&self, values: &[&[u8]]) -> i64 {
        count(values.iter().filter(|v| is_float(self.data_type) && self.is_nan(v)))
    }

    fn is_nan(&self, value: &[u8]) -> bool {
        is_float(self.data_type) && float(self.data_type, value).is_nan()
    }

    /// The keys that bounds are about: NaNs do not count, unless there is nothing else and the
    /// order knows them.
    fn keys(&self, values: &[&[u8]]) -> Vec<Key> {
        let numbers: Vec<&[u8]> = values.iter().copied().filter(|v| !self.is_nan(v)).collect();
        let all = if numbers.is_empty() && self.total { values } else { &numbers };
        all.iter().filter_map(|value| self.key(value)).collect()
    }

    fn histogram(
        &self,
        range: std::ops::Range<usize>,
        max: usize,
        of: fn(&Entry) -> usize,
    ) -> Vec<i64> {
        (0..=max)
            .map(|l| count(self.entries[range.clone()].iter().filter(|e| of(e) == l)))
            .collect()
    }

    fn is_sorted(&self, sorting: &SortingColumn) {
        let name = &self.name;
        assert_eq!(self.max_rep, 0, "{name}");
        let values = self.values(0..self.entries.len());
        assert_eq!(values.len(), self.entries.len(), "nulls: {name}");
        let keys: Vec<Key> = values.iter().map(|v| self.key(v).expect("an order")).collect();
        for pair in keys.windows(2) {
            let rises = pair[0] <= pair[1];
            let falls = pair[0] >= pair[1];
            assert!(if sorting.descending { falls } else { rises }, "{pair:?}: {name}");
        }
    }

    fn check(&self, reader: &Reader, chunk: &ColumnChunk, index: marquetry::PageIndex) {
        let name = &self.name;
        let meta = chunk.meta_data.as_ref().expect("metadata");
        let all = self.values(0..self.entries.len());
        assert_eq!(meta.num_values, self.entries.len() as i64, "num_values: {name}");
        assert_eq!(meta.r#type, self.physical.format_type(), "{name}");
        for entry in &self.entries {
            assert_eq!(entry.value.is_some(), entry.def == self.max_def, "{name}");
        }
        let statistics = meta.statistics.as_ref().expect("statistics");
        let nulls = (self.entries.len() - all.len()) as i64;
        assert_eq!(statistics.null_count, Some(nulls), "null_count: {name}");
        if let Some(nans) = statistics.nan_count {
            assert!(is_float(self.data_type), "nan_count: {name}");
            assert_eq!(nans, self.nans(&all), "nan_count: {name}");
        }
        if let Some(distinct) = statistics.distinct_count {
            let found: BTreeSet<&[u8]> = all.iter().copied().collect();
            assert_eq!(distinct, count(found), "distinct_count: {name}");
        }
        assert_eq!((&statistics.min, &statistics.max), (&None, &None), "deprecated: {name}");
        let keys = self.keys(&all);
        self.bounds(
            "chunk",
            &keys,
            statistics.min_value.as_deref(),
            statistics.max_value.as_deref(),
        );
        if let Some(min) = &statistics.min_value {
            let is = keys.iter().any(|k| Some(k) == self.key(min).as_ref());
            assert!(is || statistics.is_min_value_exact == Some(false), "exact min: {name}");
            assert!(statistics.is_min_value_exact.is_some(), "{name}");
        }
        if let Some(max) = &statistics.max_value {
            let is = keys.iter().any(|k| Some(k) == self.key(max).as_ref());
            assert!(is || statistics.is_max_value_exact == Some(false), "exact max: {name}");
            assert!(statistics.is_max_value_exact.is_some(), "{name}");
        }
        let size = meta.size_statistics.as_ref().expect("sizes");
        let everything = 0..self.entries.len();
        let is_bytes = self.physical == Physical::ByteArray;
        let payload = |values: &[&[u8]]| -> i64 { values.iter().map(|v| v.len() as i64).sum() };
        assert_eq!(
            size.unencoded_byte_array_data_bytes,
            is_bytes.then(|| payload(&all)),
            "unencoded bytes: {name}"
        );
        let def = self.histogram(everything.clone(), self.max_def, |e| e.def);
        let rep = self.histogram(everything, self.max_rep, |e| e.rep);
        let stated = |histogram: &Option<Vec<i64>>, expected: &Vec<i64>, max: usize| match histogram
        {
            None => assert_eq!(max, 0, "a histogram is missing: {name}"),
            Some(histogram) => assert_eq!(histogram, expected, "histogram: {name}"),
        };
        stated(&size.definition_level_histogram, &def, self.max_def);
        stated(&size.repetition_level_histogram, &rep, self.max_rep);

        let pages = self.pages(reader, meta);
        self.check_pages(meta, &pages);
        let data: Vec<&Page> = pages.iter().filter(|page| is_data(page)).collect();
        if let Some(offsets) = &index.offset_index {
            self.check_offsets(offsets, &data);
            let firsts: Vec<usize> =
                offsets.page_locations.iter().map(|page| page.first_row_index as usize).collect();
            let rows = self.rows.len() - 1;
            let ends = firsts.iter().skip(1).copied().chain([rows]);
            let ranges: Vec<_> =
                firsts.iter().zip(ends).map(|(&row, end)| self.rows[row]..self.rows[end]).collect();
            for (range, page) in ranges.iter().zip(&data) {
                assert_eq!(slots(page), range.len() as i64, "entries of a page: {name}");
                if let Some(v2) = &page.header.data_page_header_v2 {
                    let nulls = range.len() - self.values(range.clone()).len();
                    assert_eq!(i64::from(v2.num_nulls), nulls as i64, "num_nulls: {name}");
                    let rows = count(self.rows[..rows].iter().filter(|row| range.contains(row)));
                    assert_eq!(i64::from(v2.num_rows), rows, "num_rows: {name}");
                }
            }
            if let Some(bytes) = &offsets.unencoded_byte_array_data_bytes {
                let expected: Vec<i64> =
                    ranges.iter().map(|r| payload(&self.values(r.clone()))).collect();
                assert_eq!(*bytes, expected, "unencoded bytes of pages: {name}");
            }
            if let Some(column) = &index.column_index {
                self.check_column_index(column, &ranges);
            }
        } else {
            assert!(index.column_index.is_none(), "a column index alone: {name}");
        }
        if let (Some(at), Some(len)) = (meta.bloom_filter_offset, meta.bloom_filter_length) {
            let bytes = reader.source().read(at as u64..at as u64 + len as u64).expect("bytes");
            let bloom = Sbbf::from_bytes(&bytes).expect("a filter");
            assert!(all.iter().all(|value| bloom.check(&value[..])), "bloom: {name}");
        }
    }

    /// All that can be stated is.
    fn is_complete(&self, chunk: &ColumnChunk, index: &marquetry::PageIndex) {
        let name = &self.name;
        let meta = chunk.meta_data.as_ref().expect("metadata");
        let statistics = meta.statistics.as_ref().expect("statistics");
        let all = self.values(0..self.entries.len());
        let bounded = !self.keys(&all).is_empty();
        assert_eq!(statistics.min_value.is_some(), bounded, "min_value: {name}");
        assert_eq!(statistics.nan_count.is_some(), is_float(self.data_type), "nan_count: {name}");
        let offsets = index.offset_index.as_ref().expect("an offset index");
        let firsts = offsets.page_locations.iter().map(|page| page.first_row_index as usize);
        let cuts: Vec<usize> =
            firsts.map(|row| self.rows[row]).chain([self.entries.len()]).collect();
        let unordered = matches!(self.data_type, DataType::Null | DataType::Interval(_));
        let only_nans = cuts.windows(2).any(|cut| {
            let values = self.values(cut[0]..cut[1]);
            !values.is_empty() && self.keys(&values).is_empty()
        });
        let expected = !unordered && !only_nans;
        assert_eq!(index.column_index.is_some(), expected, "column index: {name}");
        if let Some(column) = &index.column_index {
            assert!(column.null_counts.is_some(), "null_counts: {name}");
            assert_eq!(column.nan_counts.is_some(), is_float(self.data_type), "{name}");
            let histograms = (
                column.definition_level_histograms.is_some(),
                column.repetition_level_histograms.is_some(),
            );
            assert_eq!(histograms, (self.max_def > 0, self.max_rep > 0), "histograms: {name}");
        }
    }

    fn bounds(&self, what: &str, keys: &[Key], min: Option<&[u8]>, max: Option<&[u8]>) {
        let name = &self.name;
        assert_eq!(min.is_some(), max.is_some(), "{what}: {name}");
        let (Some(min), Some(max)) = (min, max) else { return };
        assert!(!keys.is_empty(), "bounds of nothing: {what}: {name}");
        let (low, high) = (self.key(min).expect("an order"), self.key(max).expect("an order"));
        for key in keys {
            assert!(low <= *key, "{what}: min {low:?} > {key:?}: {name}");
            assert!(*key <= high, "{what}: max {high:?} < {key:?}: {name}");
        }
        if matches!(self.data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View) {
            assert!(std::str::from_utf8(min).is_ok() && std::str::from_utf8(max).is_ok(), "{name}");
        }
        if is_float(self.data_type) && !self.total {
            // Either zero counts as both.
            let zero = |v: &[u8]| float(self.data_type, v) == 0.0;
            let sign = |v: &[u8]| float(self.data_type, v).is_sign_negative();
            assert!(!zero(min) || sign(min), "{what}: min +0: {name}");
            assert!(!zero(max) || !sign(max), "{what}: max -0: {name}");
        }
    }

    fn pages(&self, reader: &Reader, meta: &ColumnMetaData) -> Vec<Page> {
        let name = &self.name;
        let start = meta.dictionary_page_offset.unwrap_or(meta.data_page_offset);
        let end = start + meta.total_compressed_size;
        let bytes = reader.source().read(start as u64..end as u64).expect("a chunk");
        let mut pages = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let header = PageHeader::from_thrift(&bytes[at..]);
            let (header, head) = header.unwrap_or_else(|e| panic!("{e}: {name}"));
            let head = head as i64;
            let stored = head + i64::from(header.compressed_page_size);
            let raw = head + i64::from(header.uncompressed_page_size);
            let body = &bytes[at + head as usize..at + stored as usize];
            if let Some(crc) = header.crc {
                assert_eq!(crc, crc32fast::hash(body).cast_signed(), "crc: {name}");
            }
            pages.push(Page { offset: start + at as i64, stored, raw, header });
            at += stored as usize;
        }
        assert_eq!(at, bytes.len(), "pages fill the chunk: {name}");
        pages
    }

    fn check_pages(&self, meta: &ColumnMetaData, pages: &[Page]) {
        let name = &self.name;
        let raw: i64 = pages.iter().map(|page| page.raw).sum();
        assert_eq!(meta.total_uncompressed_size, raw, "total_uncompressed_size: {name}");
        let data: Vec<&Page> = pages.iter().filter(|page| is_data(page)).collect();
        assert_eq!(meta.data_page_offset, data[0].offset, "data_page_offset: {name}");
        assert_eq!(data.iter().map(|page| slots(page)).sum::<i64>(), meta.num_values, "{name}");
        let dictionary = pages.iter().find(|p| p.header.r#type == PageType::DictionaryPage);
        assert_eq!(meta.dictionary_page_offset, dictionary.map(|page| page.offset), "{name}");
        let stats = meta.encoding_stats.as_ref().expect("encoding_stats");
        for stat in stats {
            let same = |page: &&Page| {
                (page.header.r#type, encoding(page)) == (stat.page_type, stat.encoding)
            };
            let found = count(pages.iter().filter(same));
            assert_eq!(i64::from(stat.count), found, "encoding_stats: {name}");
        }
        let stated: i64 = stats.iter().map(|stat| i64::from(stat.count)).sum();
        assert_eq!(stated, pages.len() as i64, "encoding_stats: {name}");
        for page in pages {
            assert!(meta.encodings.contains(&encoding(page)), "encodings: {name}");
        }
    }

    fn check_offsets(&self, offsets: &OffsetIndex, data: &[&Page]) {
        let name = &self.name;
        assert_eq!(offsets.page_locations.len(), data.len(), "offset index: {name}");
        let mut last = -1;
        for (location, page) in offsets.page_locations.iter().zip(data) {
            assert_eq!(location.offset, page.offset, "offset of a page: {name}");
            let size = i64::from(location.compressed_page_size);
            assert_eq!(size, page.stored, "size of a page: {name}");
            assert!(location.first_row_index > last, "first_row_index: {name}");
            last = location.first_row_index;
        }
        assert_eq!(offsets.page_locations[0].first_row_index, 0, "{name}");
    }

    fn check_column_index(&self, index: &ColumnIndex, ranges: &[std::ops::Range<usize>]) {
        let name = &self.name;
        let n = ranges.len();
        let lens = [index.null_pages.len(), index.min_values.len(), index.max_values.len()];
        assert_eq!(lens, [n; 3], "column index: {name}");
        let (mut defs, mut reps) = (Vec::new(), Vec::new());
        let (mut lows, mut highs) = (Vec::new(), Vec::new());
        for (i, range) in ranges.iter().enumerate() {
            let values = self.values(range.clone());
            assert_eq!(index.null_pages[i], values.is_empty(), "null_pages: {name}");
            let (min, max) = (&index.min_values[i], &index.max_values[i]);
            if values.is_empty() {
                assert!(min.is_empty() && max.is_empty(), "bounds of a page of nulls: {name}");
            } else {
                let what = format!("page {i}");
                self.bounds(&what, &self.keys(&values), Some(min), Some(max));
                lows.push(self.key(min).expect("an order"));
                highs.push(self.key(max).expect("an order"));
            }
            if let Some(counts) = &index.null_counts {
                assert_eq!(counts[i], (range.len() - values.len()) as i64, "null_counts: {name}");
            }
            if let Some(counts) = &index.nan_counts {
                assert_eq!(counts[i], self.nans(&values), "nan_counts: {name}");
            }
            defs.extend(self.histogram(range.clone(), self.max_def, |e| e.def));
            reps.extend(self.histogram(range.clone(), self.max_rep, |e| e.rep));
        }
        for (histograms, expected) in
            [(&index.definition_level_histograms, defs), (&index.repetition_level_histograms, reps)]
        {
            if let Some(histograms) = histograms {
                assert_eq!(*histograms, expected, "histograms of pages: {name}");
            }
        }
        let rises = lows.is_sorted() && highs.is_sorted();
        let falls = lows.is_sorted_by(|a, b| a >= b) && highs.is_sorted_by(|a, b| a >= b);
        match index.boundary_order {
            BoundaryOrder::Ascending => assert!(rises, "boundary_order: {name}"),
            BoundaryOrder::Descending => assert!(falls, "boundary_order: {name}"),
            _ => assert!(!rises && !falls, "boundary_order: {name}"),
        }
    }
}

fn is_data(page: &Page) -> bool {
    matches!(page.header.r#type, PageType::DataPage | PageType::DataPageV2)
}

fn slots(page: &Page) -> i64 {
    let header = &page.header;
    let v1 = header.data_page_header.as_ref().map(|h| h.num_values);
    i64::from(v1.or_else(|| header.data_page_header_v2.as_ref().map(|h| h.num_values)).unwrap_or(0))
}

fn encoding(page: &Page) -> Encoding {
    let header = &page.header;
    let v1 = header.data_page_header.as_ref().map(|h| h.encoding);
    let v2 = header.data_page_header_v2.as_ref().map(|h| h.encoding);
    let dictionary = header.dictionary_page_header.as_ref().map(|h| h.encoding);
    v1.or(v2).or(dictionary).expect("a page with a header")
}
