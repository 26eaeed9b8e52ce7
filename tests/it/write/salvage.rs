//! Tests of recovering what is whole of damaged files: all row groups that are whole come back, and
//! no row that was never written.

use std::sync::Arc;

use bytes::Bytes;
#[cfg(feature = "async")]
use futures_util::{FutureExt, future::BoxFuture};
use marquetry::arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, StructArray,
};
use marquetry::arrow_schema::{DataType, Field};
use marquetry::io::{Sink, WriteSink};
use marquetry::read::OnDamage;
use marquetry::rewrite::{FoundBy, Rewrite, Salvage, SalvageAccount, Salvaged};
use marquetry::schema::ArrowOptions;
#[cfg(feature = "async")]
use marquetry::{AsyncWriter, RowGroupEncoder};
use marquetry::{ErrorKind, PageVersion, Reader, WriteOptions, Writer};

use crate::support::row_groups;

const GROUP_ROWS: usize = 120;
const GROUPS: usize = 10;

/// A pseudo-random generator, so that a seed is all that is needed.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

fn rows(from: usize, len: usize) -> RecordBatch {
    let all = || from..from + len;
    let shares = Float64Array::from_iter_values(all().map(|i| (i * 37 % 101) as f64 / 7.0));
    let flags: ArrayRef = Arc::new(BooleanArray::from_iter(all().map(|i| Some(i % 2 > 0))));
    let group = StructArray::from(vec![
        (Arc::new(Field::new("day", DataType::Date32, true)), row_groups::days(all())),
        (Arc::new(Field::new("flag", DataType::Boolean, true)), flags),
    ]);
    let columns: [(&str, ArrayRef); 5] = [
        ("id", row_groups::ids(all())),
        ("list", row_groups::lists(all())),
        ("name", row_groups::names(all())),
        ("group", Arc::new(group)),
        ("share", Arc::new(shares)),
    ];
    RecordBatch::try_from_iter(columns).expect("a batch")
}

/// A file of ten row groups of small pages.
fn file(options: WriteOptions) -> Bytes {
    row_groups::file(&rows(0, GROUP_ROWS * GROUPS), GROUP_ROWS, options)
}

fn layouts() -> Vec<(&'static str, Bytes)> {
    let codec = |name: &str| WriteOptions::new().with_compression(name.parse().expect("a codec"));
    vec![
        ("defaults", file(WriteOptions::new())),
        ("version 1, snappy", file(codec("snappy").with_page_version(PageVersion::V1))),
        (
            "version 1, not compressed",
            file(codec("none").with_page_version(PageVersion::V1).with_dictionary(false)),
        ),
        (
            "version 2, lz4",
            file(codec("lz4_raw").with_page_version(PageVersion::V2).with_dictionary(false)),
        ),
    ]
}

fn open(file: &Bytes) -> Reader {
    let reader = Reader::new(file.clone()).expect("a file");
    let mut options = reader.read_options().clone();
    // A damaged footer may have a damaged hint.
    options.arrow = ArrowOptions::new().with_hint(false);
    reader.threads(1).options(options)
}

/// The rows of a row group.
fn group_of(reader: &Reader, group: usize) -> Vec<RecordBatch> {
    let reader = reader.clone().row_groups([group]).expect("a row group");
    reader.batches().expect("a plan").map(|batch| batch.expect("rows")).collect()
}

/// Where the row groups are.
fn extents(file: &Bytes) -> Vec<std::ops::Range<u64>> {
    let reader = open(file);
    let metadata = reader.metadata();
    let chunk = |group, leaf| {
        let meta =
            metadata.column_chunk(group, leaf).expect("a chunk").meta_data.expect("metadata");
        let start = meta.dictionary_page_offset.unwrap_or(meta.data_page_offset) as u64;
        start..start + meta.total_compressed_size as u64
    };
    let leaves = metadata.schema().leaves_len();
    (0..metadata.row_groups())
        .map(|group| chunk(group, 0).start..chunk(group, leaves - 1).end)
        .collect()
}

/// A whole file, and its rows by row group.
struct Known {
    whole: Bytes,
    extents: Vec<std::ops::Range<u64>>,
    groups: Vec<Vec<RecordBatch>>,
}

impl Known {
    fn new(whole: Bytes) -> Self {
        let reader = open(&whole);
        let groups = (0..GROUPS).map(|group| group_of(&reader, group)).collect();
        Self { extents: extents(&whole), whole, groups }
    }

    fn salvage(&self, damaged: Bytes) -> Salvaged {
        let salvage = Salvage::new(damaged).schema_of(&open(&self.whole)).expect("a schema");
        salvage.find().expect("an account")
    }

    /// The numbers of the row groups that came back, whose rows are those that were written.
    fn back(&self, found: &Salvaged, told: &str) -> Vec<usize> {
        let account = found.account();
        if account.recovered.is_empty() {
            return Vec::new();
        }
        let mut out = Vec::new();
        found.write(WriteSink(&mut out)).expect("a file");
        let reader = open(&out.into());
        let mut back = Vec::new();
        for (at, group) in account.recovered.iter().enumerate() {
            let known = self.extents.iter().position(|extent| extent.start == group.bytes.start);
            let known =
                known.unwrap_or_else(|| panic!("{told}: no row group was at {:?}", group.bytes));
            // Key-value metadata may be damaged, and are in the schema.
            let columns = |rows: &[RecordBatch]| -> Vec<Vec<ArrayRef>> {
                rows.iter().map(|batch| batch.columns().to_vec()).collect()
            };
            let is_same = columns(&group_of(&reader, at)) == columns(&self.groups[known]);
            assert!(is_same, "{told}: row group {known} has rows that were never written");
            back.push(known);
        }
        back
    }
}

fn cases(default: usize) -> usize {
    std::env::var("MARQUETRY_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

#[test]
fn a_whole_file_comes_back_whole() {
    for (name, whole) in layouts() {
        let known = Known::new(whole);
        let found = known.salvage(known.whole.clone());
        assert!(found.account().is_complete(), "{name}: {:?}", found.account().lost);
        assert!(found.account().recovered.iter().all(|group| group.found_by == FoundBy::Footer));
        assert_eq!(known.back(&found, name).len(), GROUPS, "{name}");
    }
}

/// With MARQUETRY_CASES, at every byte.
#[test]
fn a_cut_file_gives_back_all_row_groups_before_the_cut() {
    let step = if std::env::var_os("MARQUETRY_CASES").is_some() { 1 } else { 61 };
    for (name, whole) in layouts() {
        let known = Known::new(whole);
        let (mut cuts, mut back, mut lost) = (0, 0, 0);
        for cut in (4..known.whole.len()).step_by(step) {
            let found = known.salvage(known.whole.slice(..cut));
            let told = format!("{name}, cut at {cut}");
            let groups = known.back(&found, &told);
            let whole = known.extents.iter().filter(|extent| extent.end <= cut as u64).count();
            assert_eq!(groups, (0..whole).collect::<Vec<_>>(), "{told}: {:?}", found.account());
            (cuts, back, lost) = (cuts + 1, back + groups.len(), lost + GROUPS - whole);
        }
        println!(
            "{name}: {} bytes, {cuts} cuts, {back} row groups back, {lost} cut off",
            known.whole.len()
        );
    }
}

/// Damages a run of bytes, or single ones.
fn damage(bytes: &mut [u8], random: &mut Random) -> std::ops::Range<u64> {
    let start = 4 + random.below(bytes.len() - 4);
    let len = 1 + [0, 0, random.below(8), random.below(64)][random.below(4)];
    let end = (start + len).min(bytes.len());
    for byte in &mut bytes[start..end] {
        let old = *byte;
        *byte = [old ^ (1 << random.below(8)), random.below(256) as u8, 0][random.below(3)];
    }
    start as u64..end as u64
}

#[test]
fn a_damaged_file_gives_back_all_row_groups_that_are_not_damaged() {
    let layouts: Vec<_> =
        layouts().into_iter().map(|(name, whole)| (name, Known::new(whole))).collect();
    let mut counts = vec![[0usize; 4]; layouts.len()];
    for seed in 0..cases(400) {
        let at = seed % layouts.len();
        let (name, known) = &layouts[at];
        let mut random = Random(seed as u64);
        let mut bytes = known.whole.to_vec();
        let place = damage(&mut bytes, &mut random);
        // The bytes may be what they were.
        let told = format!("seed {seed}, {name}, bytes {place:?}");
        let found = known.salvage(bytes.into());
        let groups = known.back(&found, &told);
        let is_hit =
            |extent: &std::ops::Range<u64>| extent.start < place.end && place.start < extent.end;
        for (group, extent) in known.extents.iter().enumerate() {
            let is_back = groups.contains(&group);
            assert!(is_back || is_hit(extent), "{told}: row group {group}: {:?}", found.account());
            counts[at][usize::from(!is_hit(extent)) * 2 + usize::from(is_back)] += 1;
        }
    }
    for ((name, _), [lost, hit, none, back]) in layouts.iter().zip(counts) {
        println!(
            "{name}: not damaged: {back} back, {none} lost; damaged: {lost} lost, {hit} back unchanged"
        );
    }
}

#[test]
fn a_file_that_is_damaged_twice_has_no_row_that_was_never_written() {
    let layouts: Vec<_> =
        layouts().into_iter().map(|(name, whole)| (name, Known::new(whole))).collect();
    for seed in 0..cases(300) {
        let (name, known) = &layouts[seed % layouts.len()];
        let mut random = Random(seed as u64 ^ 0x5EED_0000);
        let mut bytes = known.whole.to_vec();
        // The footer is gone, or damaged, and the pages are too.
        if random.below(2) == 0 {
            bytes.truncate(bytes.len() - 1 - random.below(2_000));
        }
        for _ in 0..1 + random.below(3) {
            damage(&mut bytes, &mut random);
        }
        let found = known.salvage(bytes.into());
        known.back(&found, &format!("seed {seed}, {name}"));
    }
}

#[test]
fn columns_of_one_type_are_told_apart_or_lost() {
    let columns = ["a", "b", "c"].map(|name| {
        let from = i64::from(name.as_bytes()[0]) * 1_000;
        (name, Arc::new(Int64Array::from_iter_values(from..from + 1_000)) as ArrayRef)
    });
    let batch = RecordBatch::try_from_iter(columns).expect("a batch");
    let options =
        || WriteOptions::new().with_dictionary(false).with_page_rows(50).with_row_group_rows(100);
    let mut out = Vec::new();
    let mut writer = Writer::new(WriteSink(&mut out), batch.schema(), options()).expect("a writer");
    writer.write(&batch).expect("rows");
    writer.finish().expect("a file");
    let whole = Bytes::from(out);
    let last = extents(&whole)[9].end as usize;
    let salvage = || {
        let cut = Salvage::new(whole.slice(..last - 1));
        cut.schema_of(&open(&whole)).expect("a schema")
    };
    let found = salvage().find().expect("an account");
    let SalvageAccount { recovered, lost, .. } = found.account();
    assert!(recovered.is_empty(), "{recovered:?}");
    assert!(lost[0].reason.contains("ways"), "{lost:?}");
    let error = found.write(WriteSink(Vec::new())).expect_err("nothing is there");
    assert!(matches!(error.kind(), ErrorKind::Malformed(_)), "{error}");
    let found = salvage().row_group_rows(100).find().expect("an account");
    assert_eq!(found.account().rows_recovered(), 900, "{:?}", found.account());
}

/// A file of arrow-rs, with a bloom filter for each chunk after the pages of each row group, and
/// where the last page ends.
fn filtered_by_arrow_rs(columns: usize, has_dictionary: bool) -> (Bytes, usize) {
    use arrow_array_60::{ArrayRef, Int64Array, RecordBatch, StringArray};
    use parquet::file::properties::WriterProperties;

    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(0..900));
    let names = StringArray::from_iter_values((0..900).map(|i| format!("name {}", i % 50)));
    let all = [("id", ids), ("name", Arc::new(names) as ArrayRef)];
    let batch = RecordBatch::try_from_iter(all.into_iter().take(columns)).expect("a batch");
    let properties = WriterProperties::builder()
        .set_bloom_filter_enabled(true)
        .set_dictionary_enabled(has_dictionary)
        .set_max_row_group_row_count(Some(300))
        .build();
    let mut out = Vec::new();
    let mut writer =
        parquet::arrow::ArrowWriter::try_new(&mut out, batch.schema(), Some(properties))
            .expect("a writer");
    writer.write(&batch).expect("rows");
    writer.close().expect("a file");
    let file = Bytes::from(out);
    let end = extents(&file).last().expect("a row group").end as usize;
    (file, end)
}

#[test]
fn row_groups_after_bloom_filters_come_back() {
    for (columns, has_dictionary) in [(1, true), (1, false), (2, true), (2, false)] {
        let (whole, end) = filtered_by_arrow_rs(columns, has_dictionary);
        let extents = extents(&whole);
        assert!(extents[0].end + 32 < extents[1].start, "a filter lies between row groups");
        // Within the filters after the last row group, the indexes and the footer.
        for cut in [end + 20, end + 100, whole.len() - 100, whole.len() - 3] {
            let salvage = Salvage::new(whole.slice(..cut)).schema_of(&open(&whole));
            let found = salvage.expect("a schema").find().expect("an account");
            let account = found.account();
            assert!(account.is_complete(), "{columns} columns, cut at {cut}: {account:?}");
            let back: Vec<_> = account.recovered.iter().map(|of| of.bytes.clone()).collect();
            assert_eq!(back, extents, "{columns} columns, cut at {cut}");
            let rows: usize = (0..3).map(|at| group_of(&open(&whole), at)[0].num_rows()).sum();
            assert_eq!(account.rows_recovered(), rows as u64);
        }
    }
}

#[test]
fn row_groups_after_the_indexes_of_a_file_that_became_longer_come_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("long.parquet");
    std::fs::write(&path, file(WriteOptions::new())).expect("a file");
    let all = || Reader::open(&path).expect("a file");
    Rewrite::new([all(), all()]).append_to(&path).expect("a longer file");
    let whole = Bytes::from(std::fs::read(&path).expect("bytes"));
    let salvage = Salvage::new(whole.slice(..whole.len() - 3)).schema_of(&open(&whole));
    let found = salvage.expect("a schema").find().expect("an account");
    assert!(found.account().is_complete(), "{:?}", found.account());
    assert_eq!(found.account().recovered.len(), 2 * GROUPS);
}

#[test]
fn what_only_begins_as_an_index_is_lost_with_all_that_comes_after_it() {
    for (name, whole) in layouts() {
        let known = Known::new(whole);
        // In place of a page header: as of both indexes, a footer and a bloom filter.
        let heads: [&[u8]; 6] =
            [&[0x19], &[0x19, 0x1C], &[0x19, 0x11], &[0x15, 4, 0x19], &[0x15, 64, 0x1C], &[0x1C]];
        for (group, head) in (0..GROUPS).flat_map(|group| heads.map(|head| (group, head))) {
            let at = known.extents[group].start as usize;
            let mut bytes = known.whole.to_vec();
            bytes[at..at + head.len()].copy_from_slice(head);
            // Without a length of the footer, and with the last magic number.
            let tail = bytes.len() - 8;
            bytes[tail..tail + 4].fill(0xFF);
            let told = format!("{name}, row group {group}, {head:02X?}");
            let found = known.salvage(bytes.into());
            assert_eq!(known.back(&found, &told), (0..group).collect::<Vec<_>>(), "{told}");
            let lost = &found.account().lost;
            let rest = lost.iter().find(|part| part.bytes.end == known.whole.len() as u64);
            let rest = rest.unwrap_or_else(|| panic!("{told}: {lost:?}"));
            assert!(rest.bytes.start <= at as u64, "{told}: {lost:?}");
        }
    }
}

/// A sink whose bytes stay when its process is killed.
struct Killed(Arc<std::sync::Mutex<Vec<u8>>>);

impl Sink for Killed {
    fn write(&mut self, bytes: Bytes) -> marquetry::Result<()> {
        self.0.lock().expect("bytes").extend_from_slice(&bytes);
        Ok(())
    }

    fn finish(&mut self) -> marquetry::Result<()> {
        Ok(())
    }
}

#[test]
fn a_killed_export_loses_the_row_groups_since_the_last_side_footer() {
    let folder = std::env::temp_dir().join(format!("marquetry-side-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    let side = folder.join("all.parquet.side-footer");
    let schema = rows(0, 1).schema();
    for every in [1, 3] {
        for groups in 0..8usize {
            let bytes = Arc::new(std::sync::Mutex::new(Vec::new()));
            let options = WriteOptions::new().with_page_rows(50);
            let sink = Killed(bytes.clone());
            let writer = Writer::new(sink, schema.clone(), options).expect("a writer");
            let mut writer = writer.with_side_footer(&side, every);
            for group in 0..groups {
                writer.write(&rows(group * GROUP_ROWS, GROUP_ROWS)).expect("rows");
                writer.flush().expect("a row group");
            }
            // Killed: nothing is dropped.
            std::mem::forget(writer);
            let bytes = Bytes::from(bytes.lock().expect("bytes").clone());
            let told = groups / every * every;
            assert_eq!(side.exists(), told > 0, "{groups} row groups, every {every}");
            if told == 0 {
                continue;
            }
            let footer = std::fs::read(&side).expect("a side footer");
            let salvage = Salvage::new(bytes).side_footer(Bytes::from(footer)).expect("a footer");
            let found = salvage.find().expect("an account");
            let by_side =
                found.account().recovered.iter().filter(|of| of.found_by == FoundBy::SideFooter);
            assert_eq!(by_side.count(), told, "{:?}", found.account());
            // Those since are found by their pages.
            assert_eq!(found.account().rows_recovered(), (groups * GROUP_ROWS) as u64);
            let reader = found.reader().expect("a reader");
            let read: Vec<RecordBatch> =
                reader.batches().expect("a plan").map(|batch| batch.expect("rows")).collect();
            let expected = (0..groups).map(|group| rows(group * GROUP_ROWS, GROUP_ROWS));
            assert_eq!(read, expected.collect::<Vec<_>>());
            std::fs::remove_file(&side).expect("removed");
        }
    }
    let mut writer = Writer::new(WriteSink(Vec::new()), schema, WriteOptions::new())
        .map(|writer| writer.with_side_footer(&side, 1))
        .expect("a writer");
    writer.write(&rows(0, 10)).expect("rows");
    writer.flush().expect("a row group");
    assert!(side.exists());
    writer.finish().expect("a file");
    assert!(!side.exists(), "a whole file needs none");
    // Nor does it need that of a process which was killed before.
    for rows_before in [0, 10] {
        std::fs::write(&side, "of another").expect("a side footer");
        let schema = rows(0, 1).schema();
        let writer = Writer::new(WriteSink(Vec::new()), schema, WriteOptions::new());
        let mut writer = writer.expect("a writer").with_side_footer(&side, 5);
        writer.write(&rows(0, rows_before)).expect("rows");
        assert!(side.exists());
        writer.finish().expect("a file");
        assert!(!side.exists(), "a whole file needs none");
    }
    std::fs::remove_dir_all(&folder).expect("removed");
}

/// The same asynchronously, with space for some bytes: more wait for ever.
#[cfg(feature = "async")]
struct Stuck {
    bytes: Arc<std::sync::Mutex<Vec<u8>>>,
    space: usize,
}

#[cfg(feature = "async")]
impl marquetry::io::AsyncSink for Stuck {
    fn write(&mut self, pieces: Vec<Bytes>) -> BoxFuture<'_, marquetry::Result<()>> {
        async move {
            for piece in pieces {
                let fits = self.space.min(piece.len());
                self.bytes.lock().expect("bytes").extend_from_slice(&piece[..fits]);
                self.space -= fits;
                if fits < piece.len() {
                    return std::future::pending().await;
                }
            }
            Ok(())
        }
        .boxed()
    }

    fn finish(&mut self) -> BoxFuture<'_, marquetry::Result<()>> {
        std::future::ready(Ok(())).boxed()
    }

    fn abort(&mut self) -> BoxFuture<'_, marquetry::Result<()>> {
        std::future::ready(Ok(())).boxed()
    }
}

/// Killed between row groups, and within them: the side footer never tells of bytes that are not
/// there.
#[cfg(feature = "async")]
#[test]
fn a_killed_asynchronous_export_is_recovered_by_its_side_footer() {
    let folder = tempfile::tempdir().expect("a folder");
    let (side, whole) = (folder.path().join("side"), file(WriteOptions::new()));
    let ends: Vec<usize> = extents(&whole).iter().map(|extent| extent.end as usize).collect();
    let places = (1..10).map(|at| ends[4] * at / 9 + at);
    let mut between = 0;
    for space in ends[..5].iter().copied().chain(places) {
        for every in [1, 2] {
            let bytes = Arc::new(std::sync::Mutex::new(Vec::new()));
            let options =
                WriteOptions::new().with_page_rows(50).with_row_group_rows(GROUP_ROWS as u64);
            let encoder = RowGroupEncoder::new(rows(0, 1).schema(), options).expect("an encoder");
            let encoder = encoder.with_threads(1).expect("one thread");
            let writer = AsyncWriter::over(Stuck { bytes: bytes.clone(), space }, encoder);
            let mut writer = writer.with_side_footer(&side, every);
            for group in 0..GROUPS {
                let batch = rows(group * GROUP_ROWS, GROUP_ROWS);
                let Some(written) = writer.write(&batch).now_or_never() else { break };
                written.expect("rows");
            }
            // Killed: nothing is dropped.
            std::mem::forget(writer);
            let bytes = Bytes::from(bytes.lock().expect("bytes").clone());
            assert_eq!(bytes.len(), space, "the export was stuck");
            let complete = ends.iter().filter(|end| **end <= space).count();
            between += usize::from(ends.contains(&space));
            let told = complete / every * every;
            assert_eq!(side.exists(), told > 0, "{complete} row groups, every {every}");
            if told == 0 {
                continue;
            }
            let footer = std::fs::read(&side).expect("a side footer");
            std::fs::remove_file(&side).expect("removed");
            let salvage = Salvage::new(bytes).side_footer(Bytes::from(footer)).expect("a footer");
            let found = salvage.find().expect("an account");
            let recovered = &found.account().recovered;
            let by_side = recovered.iter().filter(|of| of.found_by == FoundBy::SideFooter);
            assert_eq!(by_side.count(), told, "{:?}", found.account());
            // Those since are found by their pages, unless these can be read in more than one way.
            let recovered = found.account().rows_recovered() as usize / GROUP_ROWS;
            assert!((told..=complete).contains(&recovered), "{:?}", found.account());
            let reader = found.reader().expect("a reader");
            let read: Vec<RecordBatch> =
                reader.batches().expect("a plan").map(|batch| batch.expect("rows")).collect();
            let expected = (0..recovered).map(|group| rows(group * GROUP_ROWS, GROUP_ROWS));
            assert_eq!(read, expected.collect::<Vec<_>>());
        }
    }
    assert!(between >= 10, "{between} exports were killed between row groups");
}

#[test]
fn a_read_goes_on_after_a_damaged_row_group_and_keeps_an_account() {
    for (name, whole) in layouts() {
        let known = Known::new(whole);
        let mut bytes = known.whole.to_vec();
        // In the last page of the row group.
        let at = known.extents[4].end as usize - 3;
        bytes[at] ^= 0x55;
        let reader = open(&bytes.into());
        assert!(reader.batches().expect("a plan").any(|batch| batch.is_err()), "{name}");
        let skipping = reader.clone().on_damage(OnDamage::SkipRowGroup);
        let read = |reader: &Reader| {
            let mut batches = reader.batches().expect("a plan");
            let mut rows = Vec::new();
            while let Some(batch) = batches.next_batch().expect("damage is skipped") {
                rows.push(batch);
            }
            let damage: Vec<_> = batches
                .damage()
                .iter()
                .map(|of| (of.row_group, of.rows, of.rows_returned))
                .collect();
            (rows, damage)
        };
        let (rows, damage) = read(&skipping);
        let expected =
            (0..GROUPS).filter(|group| *group != 4).flat_map(|group| known.groups[group].clone());
        assert_eq!(rows, expected.collect::<Vec<_>>(), "{name}");
        assert_eq!(damage, [(4, GROUP_ROWS as u64, 0)], "{name}");
        // Rows that are lost count for no offset and no limit.
        let (rows, _) = read(&skipping.clone().offset(470).limit(50));
        assert_eq!(rows.iter().map(RecordBatch::num_rows).sum::<usize>(), 50);
        assert_eq!(rows[1], known.groups[5][0].slice(0, 40));
        let refused = skipping.take(&[3]).expect_err("no account");
        assert!(matches!(refused.kind(), ErrorKind::Unsupported(_)), "{refused}");
    }
}

#[cfg(feature = "encryption")]
mod encrypted {
    use marquetry::crypt::{Decryption, Encryption, Key};

    use super::*;

    fn key(name: &[u8; 16]) -> Key {
        Key::new(name).expect("a key")
    }

    fn encryptions() -> [Encryption; 3] {
        let new = || Encryption::new(key(b"0123456789012345"));
        let by_column = || new().with_column_key("name", key(b"abcdefghijklmnop"));
        [new(), by_column(), by_column().with_plaintext_footer(true)]
    }

    fn keys() -> Decryption {
        Decryption::new()
            .with_footer_key(key(b"0123456789012345"))
            .with_column_key("name", key(b"abcdefghijklmnop"))
    }

    /// A killed export: its bytes, and the side footer.
    fn killed(encryption: Encryption, groups: usize, every: usize) -> (Bytes, Bytes) {
        let folder = tempfile::tempdir().expect("a folder");
        let side = folder.path().join("side-footer");
        let bytes = Arc::new(std::sync::Mutex::new(Vec::new()));
        let options = WriteOptions::new().with_page_rows(50).with_encryption(encryption);
        let sink = Killed(bytes.clone());
        let writer = Writer::new(sink, rows(0, 1).schema(), options).expect("a writer");
        let mut writer = writer.with_side_footer(&side, every);
        for group in 0..groups {
            writer.write(&rows(group * GROUP_ROWS, GROUP_ROWS)).expect("rows");
            writer.flush().expect("a row group");
        }
        std::mem::forget(writer);
        let footer = std::fs::read(&side).expect("a side footer");
        let bytes = bytes.lock().expect("bytes").clone();
        (bytes.into(), footer.into())
    }

    fn read(found: &Salvaged) -> Vec<RecordBatch> {
        let reader = found.reader().expect("a reader");
        reader.batches().expect("a plan").map(|batch| batch.expect("rows")).collect()
    }

    #[test]
    fn a_killed_export_is_recovered_by_its_side_footer_and_the_keys() {
        for (at, encryption) in encryptions().into_iter().enumerate() {
            let (bytes, side) = killed(encryption, 5, 2);
            // Nothing of the metadata is in plain text, unless the footer is.
            let shown = side.windows(5).any(|bytes| bytes == b"share");
            assert_eq!(shown, at == 2);
            let salvage = Salvage::new(bytes.clone()).side_footer(side).expect("a side footer");
            let refused = salvage.clone().find().expect_err("no keys");
            assert_eq!(refused.kind(), ErrorKind::Crypto);
            let found = salvage.decryption(keys()).find().expect("an account");
            let account = found.account();
            assert_eq!(account.rows_recovered(), 4 * GROUP_ROWS as u64, "{account:?}");
            assert!(account.recovered.iter().all(|of| of.found_by == FoundBy::SideFooter));
            assert_eq!(account.lost.len(), 1, "{account:?}");
            assert_eq!(account.lost[0].bytes.end, bytes.len() as u64);
            let expected = (0..4).map(|group| rows(group * GROUP_ROWS, GROUP_ROWS));
            assert_eq!(read(&found), expected.collect::<Vec<_>>());
            // Written as plain text, or encrypted again.
            let mut out = Vec::new();
            found.write(WriteSink(&mut out)).expect("a file");
            assert_eq!(open(&out.into()).rows().expect("rows"), 4 * GROUP_ROWS as u64);
            let again = Encryption::new(key(b"0123456789012345"));
            let rewrite = found.rewrite().expect("a copy").encryption(again);
            rewrite.run(WriteSink(Vec::new())).expect("a file");
        }
    }

    #[test]
    fn damage_of_an_encrypted_file_takes_the_row_groups_that_it_hits() {
        for encryption in encryptions() {
            let whole = file(WriteOptions::new().with_encryption(encryption));
            let reader = Reader::with_keys(whole.clone(), Default::default(), &keys());
            let reader = reader.expect("a file");
            let chunk = reader.metadata().column_chunk(3, 0).expect("a chunk");
            let at = chunk.meta_data.expect("metadata").data_page_offset as usize + 60;
            let mut bytes = whole.to_vec();
            bytes[at] ^= 1;
            let salvage = Salvage::new(Bytes::from(bytes)).decryption(keys());
            let found = salvage.find().expect("an account");
            let account = found.account();
            assert_eq!(account.recovered.len(), GROUPS - 1, "{account:?}");
            assert_eq!(account.lost[0].row_group, Some(3));
            assert_eq!(account.lost[0].columns, ["id"]);
            let expected = (0..GROUPS).filter(|group| *group != 3);
            let expected = expected.map(|group| rows(group * GROUP_ROWS, GROUP_ROWS));
            assert_eq!(read(&found), expected.collect::<Vec<_>>());
        }
    }

    #[test]
    fn what_cannot_be_recovered_is_refused_by_name() {
        let [plain_side, ..] = encryptions();
        let whole = file(WriteOptions::new().with_encryption(plain_side));
        let cut = whole.slice(..whole.len() - 9);
        let found = Salvage::new(cut.clone()).decryption(keys()).find();
        assert!(matches!(found.expect_err("no footer").kind(), ErrorKind::Unsupported(_)));
        // The side footer of another file does not authenticate the pages.
        let [encryption, ..] = encryptions();
        let (_, side) = killed(encryption, 10, 10);
        let salvage = Salvage::new(cut).side_footer(side).expect("a side footer");
        let found = salvage.decryption(keys()).find();
        assert!(found.is_err() || found.expect("an account").account().recovered.is_empty());
        let wrong = Decryption::new().with_footer_key(key(b"wrong-wrong-wron"));
        let found = Salvage::new(whole).decryption(wrong).find();
        assert_eq!(found.expect_err("a wrong key").kind(), ErrorKind::Crypto);
    }
}
