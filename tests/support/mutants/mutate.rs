//! Changes the parts of a file; each change has a name for the report.

use std::mem;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fastrand::Rng;
use marquetry::format::*;

use super::file::{Chunk, Lie, Page, Parts};
use super::{codecs, encode};

/// Makes one change, and returns its name.
pub fn change(parts: &mut Parts, donor: &Parts, rng: &mut Rng) -> &'static str {
    match rng.u8(..20) {
        0..=4 => of_page(parts, rng, "levels", levels),
        5..=9 => of_page(parts, rng, "values", |page, _, rng| bytes(&mut page.values, rng)),
        10..=11 => of_page(parts, rng, "page header", |page, _, rng| header(page, rng)),
        12..=13 => pages(parts, donor, rng),
        14..=15 => indexes(parts, rng),
        16 => {
            schema(&mut parts.meta.schema, rng);
            "schema"
        }
        17 => hint(&mut parts.meta, rng),
        18 => {
            row_groups(parts, rng);
            "row groups"
        }
        _ => {
            metadata(&mut parts.meta, rng);
            "metadata"
        }
    }
}

/// One of a list, or nothing if it is empty.
fn one<'a, T>(list: &'a mut [T], rng: &mut Rng) -> Option<&'a mut T> {
    if list.is_empty() {
        return None;
    }
    let at = rng.usize(..list.len());
    list.get_mut(at)
}

fn chunk<'a>(parts: &'a mut Parts, rng: &mut Rng) -> Option<&'a mut Chunk> {
    one(one(&mut parts.chunks, rng)?, rng)
}

fn of_page(
    parts: &mut Parts,
    rng: &mut Rng,
    name: &'static str,
    change: impl FnOnce(&mut Page, (u16, u16), &mut Rng),
) -> &'static str {
    let Some(chunk) = chunk(parts, rng) else {
        return "nothing";
    };
    let max = (chunk.max_def, chunk.max_rep);
    if let Some(page) = one(&mut chunk.pages, rng) {
        change(page, max, rng);
    }
    name
}

/// A number at a boundary, or near what it was.
pub fn bend64(n: &mut i64, rng: &mut Rng) {
    *n = match rng.u8(..12) {
        0 => n.wrapping_add(1),
        1 => n.wrapping_sub(1),
        2 => n.wrapping_mul(2),
        3 => *n / 2,
        4 => n.wrapping_neg(),
        5 => 1 << rng.u8(..63),
        6 => (1 << rng.u8(..63)) - 1,
        7 => rng.i64(..),
        8 => i64::MAX - rng.i64(0..3),
        9 => i64::MIN + rng.i64(0..3),
        _ => rng.i64(-2..40),
    };
}

fn bend32(n: &mut i32, rng: &mut Rng) {
    let mut wide = i64::from(*n);
    bend64(&mut wide, rng);
    *n = match rng.u8(..8) {
        0 => i32::MAX - rng.i32(0..3),
        1 => i32::MIN + rng.i32(0..3),
        _ => wide as i32,
    };
}

fn bend_some64(n: &mut Option<i64>, rng: &mut Rng) {
    match n {
        Some(_) if rng.u8(..6) == 0 => *n = None,
        Some(n) => bend64(n, rng),
        None => bend64(n.insert(8), rng),
    }
}

fn bend_some32(n: &mut Option<i32>, rng: &mut Rng) {
    match n {
        Some(_) if rng.u8(..6) == 0 => *n = None,
        Some(n) => bend32(n, rng),
        None => bend32(n.insert(8), rng),
    }
}

fn encoding(rng: &mut Rng) -> Encoding {
    Encoding::from(rng.i32(-1..12))
}

/// Changes bytes that mean something: numbers of variable length, lengths, bit widths.
fn bytes(bytes: &mut Vec<u8>, rng: &mut Rng) {
    for _ in 0..rng.u8(1..4) {
        let len = bytes.len();
        // The begin of a stream has its header.
        let at = match rng.u8(..3) {
            0 => rng.usize(..=len.min(12)),
            _ => rng.usize(..=len),
        };
        match rng.u8(..12) {
            0 => bytes.truncate(at),
            1 => bytes.extend((0..rng.usize(1..40)).map(|_| rng.u8(..))),
            2 => {
                let (from, n) = (rng.usize(..=len), rng.usize(1..200));
                let copy: Vec<u8> = bytes[from..].iter().copied().take(n).collect();
                bytes.splice(at..at, copy);
            }
            3 => {
                let n = rng.usize(1..20).min(len - at);
                bytes.drain(at..at + n);
            }
            4 => {
                let words = [0, 1, 4, 0x7F, 0xFF, 1 << 16, 1 << 24, i32::MAX as u32, u32::MAX];
                let word = words[rng.usize(..words.len())].to_le_bytes();
                for (byte, new) in bytes[at..].iter_mut().zip(word) {
                    *byte = new;
                }
            }
            5 => {
                let number = varint(rng.u64(..) >> rng.u8(..64));
                let n = if rng.bool() { 1.min(len - at) } else { 0 };
                bytes.splice(at..at + n, number);
            }
            6 => bytes[at..].iter_mut().take(8).for_each(|byte| *byte = 0xFF),
            7 => bytes[at..].iter_mut().take(16).for_each(|byte| *byte = 0),
            8..=9 => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte ^= 1 << rng.u8(..8);
                }
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    let new = [0, 1, 2, 7, 8, 31, 32, 33, 64, 65, 0x7F, 0x80, 0xFE, 0xFF];
                    *byte = new[rng.usize(..new.len())];
                }
            }
        }
    }
}

fn varint(mut n: u64) -> Vec<u8> {
    let mut out = Vec::new();
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
    out
}

/// Changes the levels of a page: their numbers, how many they are, or how they are stored.
fn levels(page: &mut Page, (max_def, max_rep): (u16, u16), rng: &mut Rng) {
    let n = page.slots();
    let of_rep = page.def.is_none() || rng.bool();
    let (stream, max) = match of_rep {
        true => (&mut page.rep, u32::from(max_rep)),
        false => (&mut page.def, u32::from(max_def)),
    };
    let Some(stream) = stream else {
        return bytes(&mut page.values, rng);
    };
    if rng.u8(..5) == 0 {
        return bytes(stream, rng);
    }
    let width = encode::bit_width(max);
    let mut levels = match codecs::rle_values(stream, width, n) {
        Some(levels) if !levels.is_empty() => levels,
        _ => return bytes(stream, rng),
    };
    let mut grown = 0i32;
    for _ in 0..rng.u8(1..5) {
        let at = rng.usize(..levels.len().max(1));
        match rng.u8(..8) {
            0..=3 => {
                if let Some(level) = levels.get_mut(at) {
                    *level = rng.u32(..=max);
                }
            }
            4 => {
                let level = rng.u32(..=max);
                levels.iter_mut().skip(at).take(rng.usize(..20)).for_each(|l| *l = level);
            }
            5 => {
                levels.insert(at.min(levels.len()), rng.u32(..=max));
                grown += 1;
            }
            6 if !levels.is_empty() => {
                levels.remove(at);
                grown -= 1;
            }
            // More than the width can say about the column.
            _ => {
                if let Some(level) = levels.get_mut(at) {
                    *level = rng.u32(..) & ((1 << width) - 1);
                }
            }
        }
    }
    if rng.bool() {
        if let Some(header) = &mut page.header.data_page_header {
            header.num_values = header.num_values.wrapping_add(grown);
        }
        if let Some(header) = &mut page.header.data_page_header_v2 {
            header.num_values = header.num_values.wrapping_add(grown);
            // The counts of the changed levels, so that nothing but their meaning is wrong.
            let count = |levels: &[u32], wanted: fn(u32, u32) -> bool| {
                levels.iter().filter(|level| wanted(**level, max)).count() as i32
            };
            if of_rep {
                header.num_rows = count(&levels, |level, _| level == 0);
            } else {
                header.num_nulls = count(&levels, |level, max| level < max);
            }
        }
    }
    *stream = runs(&levels, width, rng);
}

/// Levels as runs, some of them in unusual forms.
fn runs(levels: &[u32], width: u32, rng: &mut Rng) -> Vec<u8> {
    let odd = rng.u8(..6) == 0;
    if !odd {
        return encode::rle(levels, width);
    }
    let size = width.div_ceil(8) as usize;
    let mut out = Vec::new();
    for run in levels.chunk_by(|a, b| a == b) {
        if rng.u8(..8) == 0 {
            // A run of nothing, or of far too much.
            let n = [0, 1, u64::from(u32::MAX), u64::MAX][rng.usize(..4)];
            out.extend(varint(n << rng.u8(..2)));
            out.extend(&run[0].to_le_bytes()[..size]);
        }
        out.extend(varint((run.len() as u64) << 1));
        out.extend(&run[0].to_le_bytes()[..size]);
    }
    out
}

/// Changes the header of a page.
fn header(page: &mut Page, rng: &mut Rng) {
    if rng.u8(..4) == 0 {
        let mut n = i32::try_from(page.values.len()).unwrap_or(0);
        bend32(&mut n, rng);
        page.lies.push(match rng.u8(..5) {
            0 => Lie::Uncompressed(n),
            1 => Lie::Compressed(n),
            2 => Lie::Rep(n),
            3 => Lie::Def(n),
            _ => Lie::Crc(n),
        });
        return;
    }
    if rng.u8(..10) == 0 {
        page.header.r#type = PageType::from(rng.i32(-1..5));
    }
    if let Some(v1) = &mut page.header.data_page_header {
        match rng.u8(..6) {
            0..=1 => bend32(&mut v1.num_values, rng),
            2 => v1.encoding = encoding(rng),
            3 => v1.definition_level_encoding = encoding(rng),
            4 => v1.repetition_level_encoding = encoding(rng),
            _ => statistics(v1.statistics.get_or_insert_default(), rng),
        }
    }
    if let Some(v2) = &mut page.header.data_page_header_v2 {
        match rng.u8(..7) {
            0..=1 => bend32(&mut v2.num_values, rng),
            2 => bend32(&mut v2.num_nulls, rng),
            3 => bend32(&mut v2.num_rows, rng),
            4 => v2.encoding = encoding(rng),
            5 => v2.is_compressed = [None, Some(false), Some(true)][rng.usize(..3)],
            _ => statistics(v2.statistics.get_or_insert_default(), rng),
        }
    }
    if let Some(dictionary) = &mut page.header.dictionary_page_header {
        match rng.u8(..4) {
            0..=1 => bend32(&mut dictionary.num_values, rng),
            2 => dictionary.encoding = encoding(rng),
            _ => dictionary.is_sorted = Some(true),
        }
    }
}

/// Doubles pages, drops them, mixes them, takes them from elsewhere.
fn pages(parts: &mut Parts, donor: &Parts, rng: &mut Rng) -> &'static str {
    let mut others = donor.chunks.iter().flatten().flat_map(|chunk| &chunk.pages);
    let other = others.clone().count();
    let other = others.nth(rng.usize(..other.max(1))).cloned();
    let Some(chunk) = chunk(parts, rng) else {
        return "nothing";
    };
    let pages = &mut chunk.pages;
    if pages.is_empty() {
        pages.extend(other);
        return "page from elsewhere";
    }
    let (at, to) = (rng.usize(..pages.len()), rng.usize(..pages.len()));
    match rng.u8(..8) {
        0 => {
            let copy = pages[at].clone();
            pages.insert(to, copy);
            "page twice"
        }
        1 => {
            pages.remove(at);
            "page dropped"
        }
        2 => {
            pages.swap(at, to);
            "pages mixed"
        }
        3 => {
            pages.extend(other);
            "page from elsewhere"
        }
        4 => {
            if let Some(other) = other {
                pages[at].values = other.values;
            }
            "values from elsewhere"
        }
        5 => {
            let mut empty = pages[at].clone();
            for bytes in [empty.rep.as_mut(), empty.def.as_mut(), Some(&mut empty.values)] {
                bytes.map(mem::take);
            }
            if let Some(v1) = &mut empty.header.data_page_header {
                v1.num_values = 0;
            }
            if let Some(v2) = &mut empty.header.data_page_header_v2 {
                (v2.num_values, v2.num_nulls, v2.num_rows) = (0, 0, 0);
            }
            if let Some(dictionary) = &mut empty.header.dictionary_page_header {
                dictionary.num_values = 0;
            }
            for _ in 0..rng.usize(1..4) {
                pages.insert(to, empty.clone());
            }
            "empty pages"
        }
        6 => {
            pages[at].values.clear();
            "no values"
        }
        _ => {
            let values = pages[to].values.clone();
            pages[at].values.extend(values);
            "values twice"
        }
    }
}

fn statistics(statistics: &mut Statistics, rng: &mut Rng) {
    let bound = |bound: &mut Option<Vec<u8>>, rng: &mut Rng| match rng.u8(..4) {
        0 => *bound = None,
        1 => *bound = Some((0..rng.usize(..20)).map(|_| rng.u8(..)).collect()),
        2 => *bound = Some(vec![0xFF; rng.usize(..17)]),
        _ => bytes(bound.get_or_insert_default(), rng),
    };
    match rng.u8(..8) {
        0 => bound(&mut statistics.min, rng),
        1 => bound(&mut statistics.max, rng),
        2 => bound(&mut statistics.min_value, rng),
        3 => bound(&mut statistics.max_value, rng),
        4 => bend_some64(&mut statistics.null_count, rng),
        5 => bend_some64(&mut statistics.distinct_count, rng),
        6 => bend_some64(&mut statistics.nan_count, rng),
        _ => mem::swap(&mut statistics.min_value, &mut statistics.max_value),
    }
}

fn indexes(parts: &mut Parts, rng: &mut Rng) -> &'static str {
    let Some(chunk) = chunk(parts, rng) else {
        return "nothing";
    };
    match (rng.u8(..3), &mut chunk.columns, &mut chunk.offsets, &mut chunk.bloom) {
        (0, Some(columns), ..) => {
            column_index(columns, rng);
            "column index"
        }
        (_, _, Some(offsets), None) | (1, _, Some(offsets), _) => {
            offset_index(offsets, rng);
            "offset index"
        }
        (.., Some((header, bits))) => {
            if rng.bool() {
                bend32(&mut header.num_bytes, rng);
            } else {
                bytes(bits, rng);
            }
            "bloom filter"
        }
        _ => {
            let locations =
                (0..rng.usize(..4)).map(|i| PageLocation::new(i as i64, 1, rng.i64(0..20)));
            let locations = locations.collect();
            chunk.offsets.insert(OffsetIndex::default()).page_locations = locations;
            "offset index made up"
        }
    }
}

fn column_index(index: &mut ColumnIndex, rng: &mut Rng) {
    match rng.u8(..8) {
        0 => drop(index.null_pages.pop()),
        1 => index.null_pages.iter_mut().for_each(|is_null| *is_null = !*is_null),
        2 => index.min_values.iter_mut().for_each(Vec::clear),
        3 => {
            if let Some(value) = one(&mut index.max_values, rng) {
                bytes(value, rng);
            }
        }
        4 => mem::swap(&mut index.min_values, &mut index.max_values),
        5 => index.boundary_order = BoundaryOrder::from(rng.i32(-1..4)),
        6 => {
            if let Some(count) = one(index.null_counts.get_or_insert_default(), rng) {
                bend64(count, rng);
            }
        }
        _ => index.definition_level_histograms = Some(vec![i64::MAX; rng.usize(..9)]),
    }
}

fn offset_index(index: &mut OffsetIndex, rng: &mut Rng) {
    let pages = &mut index.page_locations;
    match rng.u8(..6) {
        0 => drop(pages.pop()),
        1 => pages.extend(pages.last().copied()),
        2 => pages.reverse(),
        _ => {
            if let Some(page) = one(pages, rng) {
                match rng.u8(..4) {
                    0 => bend64(&mut page.offset, rng),
                    1 => bend32(&mut page.compressed_page_size, rng),
                    _ => bend64(&mut page.first_row_index, rng),
                }
            }
        }
    }
}

fn schema(schema: &mut [SchemaElement], rng: &mut Rng) {
    let names: Vec<String> = schema.iter().map(|element| element.name.clone()).collect();
    let Some(element) = one(schema, rng) else {
        return;
    };
    match rng.u8(..12) {
        0 => element.r#type = Some(Type::from(rng.i32(-1..9))),
        1 => bend_some32(&mut element.type_length, rng),
        2..=3 => element.repetition_type = Some(FieldRepetitionType::from(rng.i32(-1..4))),
        4 => bend_some32(&mut element.num_children, rng),
        5 => {
            element.converted_type = Some(ConvertedType::from(rng.i32(-1..23)));
            element.logical_type = None;
        }
        6 => bend_some32(&mut element.scale, rng),
        7 => bend_some32(&mut element.precision, rng),
        8 => element.logical_type = None,
        9 => bend_some32(&mut element.field_id, rng),
        10 => element.name.clone_from(&names[rng.usize(..names.len())]),
        _ => element.logical_type = Some(logical_type(rng)),
    }
}

fn logical_type(rng: &mut Rng) -> LogicalType {
    let unit = match rng.u8(..3) {
        0 => TimeUnit::Millis,
        1 => TimeUnit::Micros,
        _ => TimeUnit::Nanos,
    };
    let is_utc = rng.bool();
    match rng.u8(..16) {
        0 => LogicalType::String,
        1 => LogicalType::Map,
        2 => LogicalType::List,
        3 => LogicalType::Enum,
        4 => {
            let scale = rng.i32(-2..40);
            LogicalType::Decimal(DecimalType::new(rng.i32(-2..80), scale))
        }
        5 => LogicalType::Date,
        6 => LogicalType::Time(if is_utc { TimeType::utc(unit) } else { TimeType::local(unit) }),
        7 => LogicalType::Timestamp(if is_utc {
            TimestampType::utc(unit)
        } else {
            TimestampType::local(unit)
        }),
        8 => {
            let bit_width = [8, 16, 32, 64, 0, -1][rng.usize(..6)];
            let integer = if rng.bool() { IntType::signed } else { IntType::unsigned };
            LogicalType::Integer(integer(bit_width))
        }
        9 => LogicalType::Unknown,
        10 => LogicalType::Json,
        11 => LogicalType::Uuid,
        12 => LogicalType::Float16,
        13 => LogicalType::Variant(VariantType::default()),
        14 => LogicalType::Geometry(GeometryType::default()),
        _ => LogicalType::File,
    }
}

/// Changes the Arrow schema that the writer noted.
fn hint(meta: &mut FileMetaData, rng: &mut Rng) -> &'static str {
    let pairs = meta.key_value_metadata.get_or_insert_default();
    let hint = pairs.iter_mut().find(|pair| pair.key == "ARROW:schema");
    let value = hint.and_then(|hint| hint.value.as_mut());
    let Some((value, mut message)) =
        value.and_then(|value| STANDARD.decode(&*value).ok().map(|message| (value, message)))
    else {
        pairs.push(KeyValue::new("k".repeat(rng.usize(..9)), "v"));
        return "key value";
    };
    for _ in 0..rng.u8(1..6) {
        bytes(&mut message, rng);
    }
    *value = STANDARD.encode(message);
    "hint"
}

fn row_groups(parts: &mut Parts, rng: &mut Rng) {
    let groups = &mut parts.meta.row_groups;
    let at = rng.usize(..groups.len().max(1));
    if groups.is_empty() {
        return;
    }
    match rng.u8(..6) {
        0 => {
            let (group, chunks) = (groups[at].clone(), parts.chunks[at].clone());
            groups.insert(at, group);
            parts.chunks.insert(at, chunks);
        }
        1 => {
            groups.remove(at);
            parts.chunks.remove(at);
        }
        2 => {
            groups[at].columns.pop();
        }
        3 => {
            let (columns, chunks) = (&mut groups[at].columns, &mut parts.chunks[at]);
            if columns.len() > 1 && chunks.len() == columns.len() {
                let (a, b) = (rng.usize(..columns.len()), rng.usize(..columns.len()));
                columns.swap(a, b);
                chunks.swap(a, b);
            }
        }
        _ => bend64(&mut groups[at].num_rows, rng),
    }
}

/// Changes the metadata of the file or of a column chunk, sizes and offsets among them.
pub fn metadata(meta: &mut FileMetaData, rng: &mut Rng) {
    let of_file = rng.u8(..8) == 0;
    let group = one(&mut meta.row_groups, rng);
    let Some(group) = group.filter(|_| !of_file) else {
        match rng.u8(..4) {
            0 => bend64(&mut meta.num_rows, rng),
            1 => bend32(&mut meta.version, rng),
            2 => meta.column_orders = Some(vec![ColumnOrder::Ieee754TotalOrder; rng.usize(..4)]),
            _ => meta.column_orders = None,
        }
        return;
    };
    if rng.u8(..6) == 0 {
        match rng.u8(..4) {
            0 => bend64(&mut group.total_byte_size, rng),
            1 => bend_some64(&mut group.file_offset, rng),
            2 => bend_some64(&mut group.total_compressed_size, rng),
            _ => {
                group.sorting_columns = Some(vec![
                    SortingColumn::new(rng.i32(-1..9))
                        .with_descending(rng.bool())
                        .with_nulls_first(rng.bool()),
                ]);
            }
        }
        return;
    }
    if let Some(chunk) = one(&mut group.columns, rng) {
        column(chunk, rng);
    }
}

/// Changes a summary: where a chunk lies, or as [`metadata`].
pub fn external(meta: &mut FileMetaData, rng: &mut Rng) {
    let group = one(&mut meta.row_groups, rng);
    let chunk = group.and_then(|group| one(&mut group.columns, rng));
    let Some(chunk) = chunk.filter(|_| rng.bool()) else {
        return metadata(meta, rng);
    };
    let long = "long/".repeat(1000);
    let paths = [
        "",
        "a.parquet",
        "./b//c.parquet",
        "b/../a.parquet",
        "../a.parquet",
        "/etc/hostname",
        "b",
        ".",
        "none.parquet",
        "a.parquet\0",
        "C:\\a.parquet",
        &long,
    ];
    chunk.file_path = (rng.u8(..4) > 0).then(|| paths[rng.usize(..paths.len())].to_owned());
}

fn column(chunk: &mut ColumnChunk, rng: &mut Rng) {
    match rng.u8(..24) {
        0 => bend64(&mut chunk.file_offset, rng),
        1 => bend_some64(&mut chunk.offset_index_offset, rng),
        2 => bend_some32(&mut chunk.offset_index_length, rng),
        3 => bend_some64(&mut chunk.column_index_offset, rng),
        4 => bend_some32(&mut chunk.column_index_length, rng),
        5 => mem::swap(&mut chunk.column_index_offset, &mut chunk.offset_index_offset),
        6 if rng.u8(..4) == 0 => chunk.meta_data = None,
        kind => {
            let Some(meta) = &mut chunk.meta_data else {
                return;
            };
            match kind {
                7 => meta.r#type = Type::from(rng.i32(-1..9)),
                8 => meta.codec = CompressionCodec::from(rng.i32(-1..9)),
                9..=10 => bend64(&mut meta.num_values, rng),
                11 => bend64(&mut meta.total_uncompressed_size, rng),
                12 => bend64(&mut meta.total_compressed_size, rng),
                13 => bend64(&mut meta.data_page_offset, rng),
                14 => bend_some64(&mut meta.dictionary_page_offset, rng),
                15 => bend_some64(&mut meta.bloom_filter_offset, rng),
                16 => bend_some32(&mut meta.bloom_filter_length, rng),
                17 => {
                    let sizes = meta.size_statistics.get_or_insert_default();
                    bend_some64(&mut sizes.unencoded_byte_array_data_bytes, rng);
                }
                18 => {
                    let sizes = meta.size_statistics.get_or_insert_default();
                    sizes.definition_level_histogram = Some(vec![i64::MAX; rng.usize(..5)]);
                }
                19 => {
                    if let Some(stats) = one(meta.encoding_stats.get_or_insert_default(), rng) {
                        bend32(&mut stats.count, rng);
                        stats.encoding = encoding(rng);
                    }
                }
                20 => meta.path_in_schema = vec!["v".into()],
                _ => statistics(meta.statistics.get_or_insert_default(), rng),
            }
        }
    }
}
