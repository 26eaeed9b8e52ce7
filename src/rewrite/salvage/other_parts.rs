//! [`OtherPart`]: what lies between pages and after them: bloom filters, indexes and the footer.
//!
//! Spec: BloomFilter.md, PageIndex.md, `parquet.thrift`. Some writers put bloom filters after each
//! row group, and a file that became longer has indexes before its last row groups. Trap: a page
//! header that is damaged may begin as one of these, so that nothing is taken for one that is not
//! whole, or cut off by the end of the file.

use crate::error::Result;
use crate::format::PageLocation;
use crate::format::tail::{self, MAGIC, TAIL_LEN};
use crate::io::{Source, read_exactly};
use crate::stats::bloom::BloomLayout;
use crate::thrift::{Read, SkipError, ThriftReader, struct_len, wire};

/// Describes bytes that are no page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OtherPart {
    /// A bloom filter or an index, and where it ends.
    Whole(u64),
    /// The footer, or what the end of the file cuts off: no page comes after it.
    Last,
    /// An index or a footer that is longer than the bytes.
    Longer,
    /// Nothing known.
    Unknown,
}

/// The end of a file.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FileEnd {
    /// Where the footer begins, by its length.
    footer_start: Option<u64>,
    /// Whether the magic number is not there.
    is_cut: bool,
}

impl FileEnd {
    /// # Errors
    /// `Io`.
    pub(super) fn read(source: &dyn Source) -> Result<Self> {
        let file_len = source.len()?;
        let start = file_len.saturating_sub(TAIL_LEN as u64);
        let bytes = read_exactly(source, start..file_len)?;
        let is_cut = !bytes.ends_with(&MAGIC);
        let Some(last) = bytes.first_chunk::<TAIL_LEN>() else {
            return Ok(Self { footer_start: None, is_cut });
        };
        let parsed = tail::parse(last, file_len).ok().filter(|parsed| !parsed.encrypted);
        let footer_start =
            parsed.and_then(|parsed| start.checked_sub(u64::from(parsed.footer_len)));
        Ok(Self { footer_start, is_cut })
    }
}

impl OtherPart {
    /// The part at `start`, whose first bytes these are, within bytes of the file that end at
    /// `range_end`. `end` is the end of the file, if that is the end of the range.
    pub(super) fn new(bytes: &[u8], start: u64, range_end: u64, end: Option<FileEnd>) -> Self {
        let FileEnd { footer_start, is_cut } = end.unwrap_or_default();
        if footer_start == Some(start) {
            return Self::Last;
        }
        let is_all = start.saturating_add(bytes.len() as u64) >= range_end;
        if let Ok(Some(filter)) = BloomLayout::parse(bytes) {
            return match start.checked_add(filter.byte_len()) {
                Some(end) if end <= range_end => Self::Whole(end),
                _ if is_cut => Self::Last,
                _ => Self::Unknown,
            };
        }
        match struct_len(bytes) {
            Ok(len) => {
                let end = start.saturating_add(len as u64);
                match begins(bytes) {
                    Some(Begins::Index) if is_index(bytes, start) => Self::Whole(end),
                    // Perhaps some of the last eight bytes are gone.
                    Some(Begins::Footer) if range_end.saturating_sub(end) <= TAIL_LEN as u64 => {
                        Self::Last
                    }
                    _ => Self::Unknown,
                }
            }
            Err(SkipError::Short) if !is_all && begins(bytes).is_some() => Self::Longer,
            Err(SkipError::Short) if is_all && is_cut => match begins(bytes) {
                None if bytes.len() > FIRST_FIELDS => Self::Unknown,
                _ => Self::Last,
            },
            Err(_) => Self::Unknown,
        }
    }
}

/// Bytes that may be too few to tell how a part begins.
const FIRST_FIELDS: usize = 8;

/// A part, by its first fields.
enum Begins {
    Filter,
    Index,
    Footer,
}

/// Whether a column index, an offset index, a bloom filter or a footer begins here, whose first
/// fields are of other types than those of a page header.
pub(super) fn begins_part(bytes: &[u8]) -> bool {
    begins(bytes).is_some()
}

fn begins(bytes: &[u8]) -> Option<Begins> {
    match bytes {
        // A list is the first field of both indexes: of bools, or of structs.
        [0x19, list, ..] => {
            matches!(list & 0x0F, wire::TRUE | wire::FALSE | wire::STRUCT).then_some(Begins::Index)
        }
        // A number of bytes, and the struct of an algorithm; or a version, and a schema's list.
        [0x15, rest @ ..] => {
            let len = rest.iter().take_while(|byte| **byte >= 0x80).count() + 1;
            match rest.get(len..)? {
                [0x1C, ..] => Some(Begins::Filter),
                [0x19, list, ..] if list & 0x0F == wire::STRUCT => Some(Begins::Footer),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether a column index or an offset index that begins at `start` has the fields that it must
/// have; an offset index tells of pages before it.
fn is_index(bytes: &[u8], start: u64) -> bool {
    let mut reader = ThriftReader::new(bytes);
    let mut last = 0;
    // By field, the type of the elements and their number.
    let mut lists: [Option<(u8, usize)>; 3] = [None; 3];
    let mut has_order = false;
    while let Ok(Some(field)) = reader.field(last) {
        last = field.id;
        let at = usize::try_from(field.id).ok().and_then(|id| id.checked_sub(1));
        let place = at.and_then(|at| lists.get_mut(at));
        match (field.ty, place) {
            (wire::LIST, Some(place)) => *place = ThriftReader::new(reader.rest()).list().ok(),
            (wire::I32, None) if field.id == 4 => has_order = true,
            _ => {}
        }
        if reader.skip(field.ty).is_err() {
            return false;
        }
    }
    match lists {
        [Some((of_nulls, pages)), Some((of_min, mins)), Some((of_max, maxs))] => {
            let is_bool = matches!(of_nulls, wire::TRUE | wire::FALSE);
            let are_bounds = pages == 0 || (of_min, of_max) == (wire::BINARY, wire::BINARY);
            is_bool && are_bounds && has_order && pages == mins && pages == maxs
        }
        [Some(_), lengths, None] => {
            let are_numbers = |(of, n)| n == 0 || of == wire::I64;
            !has_order && lengths.is_none_or(are_numbers) && has_locations(bytes, start)
        }
        _ => false,
    }
}

/// Whether the first field is a list of pages that all end before `start`.
fn has_locations(bytes: &[u8], start: u64) -> bool {
    let mut reader = ThriftReader::new(bytes);
    let Ok(Some(_)) = reader.field(0) else { return false };
    let Ok((of_pages, pages)) = reader.list() else { return false };
    let is_before = |_| {
        let location = PageLocation::read(&mut reader).ok();
        let end = location.and_then(|page| {
            let len = u64::try_from(page.compressed_page_size).ok()?;
            u64::try_from(page.offset).ok()?.checked_add(len)
        });
        end.is_some_and(|end| end <= start)
    };
    of_pages == wire::STRUCT && (0..pages).all(is_before)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{
        ColumnIndex, FileMetaData, OffsetIndex, PageHeader, SchemaElement, Thrift,
    };
    use crate::stats::bloom::Bloom;

    const CUT: FileEnd = FileEnd { footer_start: None, is_cut: true };
    const WHOLE: FileEnd = FileEnd { footer_start: None, is_cut: false };

    /// The part at byte 100; `rest` more bytes follow in the file.
    fn part(bytes: &[u8], rest: u64, end: Option<FileEnd>) -> OtherPart {
        OtherPart::new(bytes, 100, 100 + bytes.len() as u64 + rest, end)
    }

    #[test]
    fn indexes_end_where_they_say_or_where_the_file_is_cut() {
        let columns = ColumnIndex {
            null_pages: vec![false; 20],
            min_values: vec![vec![1; 9]; 20],
            max_values: vec![vec![2; 9]; 20],
            ..ColumnIndex::default()
        };
        let offsets = OffsetIndex {
            page_locations: vec![PageLocation::new(4, 96, 0); 3],
            unencoded_byte_array_data_bytes: Some(vec![1, 2, 3]),
            ..OffsetIndex::default()
        };
        for bytes in [columns.to_thrift(), offsets.to_thrift()] {
            let end = 100 + bytes.len() as u64;
            assert_eq!(part(&bytes, 0, None), OtherPart::Whole(end));
            let more = [&bytes[..], &[0x15, 0, 0xFF]].concat();
            assert_eq!(part(&more, 0, None), OtherPart::Whole(end));
            for len in 2..bytes.len() {
                let bytes = &bytes[..len];
                for end in [None, Some(WHOLE)] {
                    assert_eq!(part(bytes, 0, end), OtherPart::Unknown, "{len} bytes");
                }
                assert_eq!(part(bytes, 0, Some(CUT)), OtherPart::Last, "{len} bytes");
                assert_eq!(part(bytes, 9, None), OtherPart::Longer, "{len} bytes");
            }
        }
    }

    #[test]
    fn an_offset_index_tells_of_pages_before_it() {
        let index = |location| {
            OffsetIndex { page_locations: vec![location], ..OffsetIndex::default() }.to_thrift()
        };
        for location in [PageLocation::new(4, 97, 0), PageLocation::new(-4, 8, 0)] {
            assert_eq!(part(&index(location), 0, None), OtherPart::Unknown);
        }
        // A page header, as the only element of a list.
        let header = PageHeader { compressed_page_size: 7, ..PageHeader::default() };
        let bytes = [&[0x19, 0x1C], &header.to_thrift()[..], &[0]].concat();
        assert_eq!(part(&bytes, 0, None), OtherPart::Unknown);
    }

    #[test]
    fn a_filter_ends_after_its_bits() {
        let mut bytes = Vec::new();
        Bloom::new(100, 0.01).unwrap().write(&mut bytes).unwrap();
        let end = 100 + bytes.len() as u64;
        assert_eq!(part(&bytes, 0, None), OtherPart::Whole(end));
        let (head, bits) = bytes.split_at(40);
        assert_eq!(part(head, bits.len() as u64, None), OtherPart::Whole(end));
        assert_eq!(part(head, bits.len() as u64 - 1, Some(WHOLE)), OtherPart::Unknown);
        assert_eq!(part(head, bits.len() as u64 - 1, Some(CUT)), OtherPart::Last);
    }

    #[test]
    fn a_footer_is_the_last_part_by_the_length_after_it_or_by_its_end() {
        let element = SchemaElement { name: "root".to_owned(), ..SchemaElement::default() };
        let footer = FileMetaData { version: 2, schema: vec![element], ..FileMetaData::default() };
        let mut bytes = footer.to_thrift();
        bytes.extend_from_slice(&[0; 8]);
        assert_eq!(part(&bytes, 0, Some(WHOLE)), OtherPart::Last);
        assert_eq!(part(&bytes, 1, Some(WHOLE)), OtherPart::Unknown, "more comes after it");
        // One that is damaged.
        bytes[3] = 0xFF;
        assert_eq!(part(&bytes, 0, Some(WHOLE)), OtherPart::Unknown);
        let end = FileEnd { footer_start: Some(100), is_cut: false };
        assert_eq!(part(&bytes, 0, Some(end)), OtherPart::Last);
    }

    #[test]
    fn a_page_header_whose_first_byte_is_damaged_is_none() {
        for page_type in 0..4 {
            let header = PageHeader {
                r#type: page_type.into(),
                uncompressed_page_size: 1_000,
                compressed_page_size: 1_000,
                ..PageHeader::default()
            };
            let mut bytes = header.to_thrift();
            bytes.resize(1_000, 7);
            for at in 0..3 {
                for to in [0x19, 0x1C] {
                    let mut bytes = bytes.clone();
                    bytes[at] = to;
                    assert_eq!(part(&bytes, 0, Some(WHOLE)), OtherPart::Unknown, "{at} {to}");
                }
            }
        }
    }
}
