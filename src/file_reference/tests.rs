//! Tests the resolution table, checksums and ranges.

use std::cell::RefCell;
use std::ops::Range;
use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{
    Array, ArrayRef, BinaryArray, BinaryViewArray, DictionaryArray, Int32Array, Int64Array,
    LargeStringArray, StringArray, StringViewArray, StructArray,
};
use arrow_buffer::NullBuffer;
use arrow_schema::{DataType, Field};
use bytes::Bytes;

use super::*;
use crate::error::{Error, ErrorKind, Result, Spec};

const BROKEN: ErrorKind = ErrorKind::Malformed(Spec::LogicalTypes("FILE"));

/// A row of a FILE column.
#[derive(Debug, Clone, Copy, Default)]
struct Row<'a> {
    uri: Option<&'a str>,
    offset: Option<i64>,
    size: Option<i64>,
    content_type: Option<&'a str>,
    checksum: Option<&'a str>,
    inline: Option<&'a [u8]>,
}

fn children(rows: &[Row<'_>]) -> Vec<(&'static str, ArrayRef)> {
    vec![
        ("uri", Arc::new(rows.iter().map(|r| r.uri).collect::<StringArray>())),
        ("offset", Arc::new(rows.iter().map(|r| r.offset).collect::<Int64Array>())),
        ("size", Arc::new(rows.iter().map(|r| r.size).collect::<Int64Array>())),
        ("content_type", Arc::new(rows.iter().map(|r| r.content_type).collect::<StringArray>())),
        ("checksum", Arc::new(rows.iter().map(|r| r.checksum).collect::<StringArray>())),
        ("inline", Arc::new(rows.iter().map(|r| r.inline).collect::<BinaryArray>())),
    ]
}

fn group(children: Vec<(&str, ArrayRef)>) -> StructArray {
    let (fields, arrays): (Vec<Field>, Vec<ArrayRef>) = children
        .into_iter()
        .map(|(name, array)| (Field::new(name, array.data_type().clone(), true), array))
        .unzip();
    StructArray::new(fields.into(), arrays, None)
}

fn target_of(row: Row<'_>) -> String {
    let group = group(children(&[row]));
    let target = FileColumn::new(&group).unwrap().get(0).unwrap().target;
    match target {
        FileTarget::Null => "null".to_owned(),
        FileTarget::Inline(bytes) => format!("inline {}", bytes.len()),
        FileTarget::External { uri, range } => format!("{uri} {range:?}"),
        FileTarget::Invalid(why) => format!("invalid: {why}"),
    }
}

/// Serves one resource, and notes what it is asked for.
#[derive(Default)]
struct Store {
    bytes: Vec<u8>,
    asked: RefCell<Vec<(String, Option<Range<u64>>)>>,
    /// Serves a byte less.
    is_short: bool,
}

impl FileResolver for Store {
    fn fetch(&self, uri: &str, range: Option<Range<u64>>) -> Result<Bytes> {
        self.asked.borrow_mut().push((uri.to_owned(), range.clone()));
        let range = range.unwrap_or(0..self.bytes.len() as u64);
        let end = range.end as usize - usize::from(self.is_short);
        let bytes = self.bytes.get(range.start as usize..end);
        bytes.map(Bytes::copy_from_slice).ok_or_else(|| Error::usage("no such range"))
    }
}

#[test]
fn the_resolution_table_of_the_specification() {
    let (uri, inline) = (Some("s3://b/f"), Some(&b"abc"[..]));
    let row = |inline, uri, offset, size| Row { uri, offset, size, inline, ..Row::default() };
    for (row, expected) in [
        (row(inline, None, None, None), "inline 3"),
        (row(None, uri, None, None), "s3://b/f None"),
        (row(None, uri, Some(5), None), "invalid: offset is set, and size is not"),
        (row(None, uri, None, Some(7)), "s3://b/f Some(0..7)"),
        (row(None, uri, Some(5), Some(7)), "s3://b/f Some(5..12)"),
        (row(None, None, Some(5), None), "invalid: offset is set, and size is not"),
        (row(None, None, None, Some(7)), "invalid: neither inline nor uri is set"),
        (row(None, None, Some(5), Some(7)), "invalid: offset is set, and uri is not"),
        (row(None, None, None, None), "invalid: neither inline nor uri is set"),
        // What stands beside inline bytes is where they came from.
        (row(inline, uri, Some(5), Some(7)), "inline 3"),
        (row(inline, None, Some(5), None), "inline 3"),
        // Empty bytes are set, an empty string is not.
        (row(Some(b""), None, None, None), "inline 0"),
        (row(None, Some(""), None, None), "invalid: neither inline nor uri is set"),
        (row(None, uri, Some(0), Some(0)), "s3://b/f Some(0..0)"),
        (row(None, uri, Some(-1), Some(7)), "invalid: offset is negative"),
        (row(None, uri, None, Some(-7)), "invalid: size is negative"),
        (
            row(None, uri, Some(i64::MAX), Some(i64::MAX)),
            "s3://b/f Some(9223372036854775807..18446744073709551614)",
        ),
    ] {
        assert_eq!(target_of(row), expected, "{row:?}");
    }
}

#[test]
fn children_may_be_any_in_any_order_and_of_any_layout() {
    let uri: ArrayRef = Arc::new(StringViewArray::from(vec![Some("a"), None, Some("c")]));
    let keys: DictionaryArray<Int8Type> =
        vec![Some("image/png"), None, Some("image/png")].into_iter().collect();
    let inline: ArrayRef = Arc::new(BinaryViewArray::from(vec![None, Some(&b"x"[..]), None]));
    let all = group(vec![("inline", inline), ("content_type", Arc::new(keys)), ("uri", uri)]);
    let column = FileColumn::new(&all).unwrap();
    let found: Vec<_> = column.iter().map(|f| (f.target, f.content_type)).collect();
    let external = |uri| FileTarget::External { uri, range: None };
    assert_eq!(
        found,
        [
            (external("a"), "image/png"),
            (FileTarget::Inline(b"x"), "application/octet-stream"),
            (external("c"), "image/png"),
        ]
    );
    assert_eq!((column.len(), column.is_empty()), (3, false));
    assert_eq!(column.get(3), None);
    // Of one child only; of none, all are invalid.
    let uri: ArrayRef = Arc::new(LargeStringArray::from(vec!["u"]));
    let one = group(vec![("uri", uri)]);
    assert_eq!(FileColumn::new(&one).unwrap().get(0).unwrap().target, external("u"));
    let none = StructArray::new_empty_fields(2, None);
    let none = FileColumn::new(&none).unwrap().get(1).unwrap();
    assert!(matches!(none.target, FileTarget::Invalid(_)));
}

#[test]
fn what_is_no_file_column_is_refused() {
    let text = || -> ArrayRef { Arc::new(StringArray::from(vec!["a"])) };
    let int = || -> ArrayRef { Arc::new(Int32Array::from(vec![1])) };
    for children in [
        vec![("Uri", text())],
        vec![("path", text())],
        vec![("size", int())],
        vec![("inline", text())],
        vec![("checksum", int())],
        vec![("uri", text()), ("uri", text())],
    ] {
        let group = group(children);
        let error = FileColumn::new(&group).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(error.message().contains("FILE column"), "{error}");
    }
}

#[test]
fn a_null_value_refers_to_nothing_whatever_is_below_it() {
    let (fields, arrays, _) =
        group(children(&[Row { uri: Some("a"), ..Row::default() }; 2])).into_parts();
    let nulls = NullBuffer::from(vec![false, true]);
    let group = StructArray::new(fields, arrays, Some(nulls));
    let column = FileColumn::new(&group).unwrap();
    let found: Vec<_> = column.iter().map(|found| found.target).collect();
    assert_eq!(found, [FileTarget::Null, FileTarget::External { uri: "a", range: None }]);
    assert_eq!(column.get(0).unwrap().read(&Store::default()).unwrap(), None);
    assert!(column.check().is_ok());
}

#[test]
fn checksums_of_known_digests() {
    let digits = b"123456789";
    for (text, bytes) in [
        ("MD5:d41d8cd98f00b204e9800998ecf8427e", &b""[..]),
        ("MD5:25f9e794323b453885f5181f1b624d0b", digits),
        ("CRC32:cbf43926", digits),
        ("CRC32C:e3069283", digits),
        ("SHA-256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad", b"abc"),
    ] {
        let checksum = Checksum::parse(text);
        assert_eq!(checksum.to_string(), text);
        if cfg!(not(feature = "file-references")) && !text.starts_with("CRC32:") {
            let kind = checksum.verify(bytes).unwrap_err().kind();
            assert_eq!(kind, ErrorKind::FeatureDisabled("file-references"), "{text}");
            continue;
        }
        checksum.verify(bytes).unwrap();
        let error = checksum.verify(b"others").unwrap_err();
        assert_eq!(error.kind(), BROKEN, "{text}");
        assert!(error.message().contains(text), "{error}");
    }
    // Said of the whole resource, or by an unknown algorithm: nothing is checked.
    for text in
        ["ETAG:\"5d41-2\"", "XXH3:0011", "MD4:x", "md5:d41d8cd98f00b204e9800998ecf8427e", "?"]
    {
        let checksum = Checksum::parse(text);
        assert!(matches!(checksum, Checksum::Etag(_) | Checksum::Unknown(_)), "{text}");
        checksum.verify(b"anything").unwrap();
        assert_eq!(checksum.to_string(), text);
    }
    for text in
        ["MD5:", "MD5:d41d", "CRC32:CBF43926", "CRC32C:e306928", "SHA-256:zz", "CRC32:0x1234ab"]
    {
        let checksum = Checksum::parse(text);
        assert_eq!(checksum, Checksum::Malformed(text));
        assert_eq!(checksum.verify(digits).unwrap_err().kind(), BROKEN, "{text}");
    }
}

#[test]
fn bytes_are_fetched_when_asked_for_and_held_against_size_and_checksum() {
    let store = Store { bytes: b"0123456789".to_vec(), ..Store::default() };
    let short = Store { bytes: b"0123456789".to_vec(), is_short: true, ..Store::default() };
    let crc = Some("CRC32:9ae0daaf");
    let part = Row { uri: Some("u"), offset: Some(2), size: Some(4), ..Row::default() };
    let rows = [
        part,
        Row { uri: Some("u"), checksum: Some("CRC32:a684c7c6"), ..Row::default() },
        Row { checksum: crc, ..part },
        Row { inline: Some(b"12345678"), checksum: crc, uri: Some("u"), ..Row::default() },
        Row { uri: Some("u"), size: Some(0), ..Row::default() },
        Row { uri: Some("u"), checksum: Some("ETAG:x"), ..Row::default() },
        Row::default(),
    ];
    let group = group(children(&rows));
    let column = FileColumn::new(&group).unwrap();
    let read = |row: usize| column.get(row).unwrap().read(&store);
    assert!(store.asked.borrow().is_empty(), "nothing is fetched unless asked");
    assert_eq!(read(0).unwrap().as_deref(), Some(&b"2345"[..]));
    assert_eq!(*store.asked.borrow(), [("u".to_owned(), Some(2..6))]);
    assert_eq!(read(1).unwrap().as_deref(), Some(&b"0123456789"[..]));
    // The checksum is that of the bytes referred to; these have another.
    assert_eq!(read(2).unwrap_err().kind(), BROKEN);
    let unverified = column.get(2).unwrap().read_unverified(&store).unwrap();
    assert_eq!(unverified.as_deref(), Some(&b"2345"[..]));
    let before = store.asked.borrow().len();
    assert_eq!(read(3).unwrap().as_deref(), Some(&b"12345678"[..]));
    assert_eq!(column.get(3).unwrap().uri, Some("u"), "where they came from");
    assert_eq!(read(4).unwrap().as_deref(), Some(&b""[..]));
    assert_eq!(store.asked.borrow().len(), before, "neither inline nor empty bytes are fetched");
    assert_eq!(read(5).unwrap().unwrap().len(), 10);
    assert_eq!(read(6).unwrap_err().kind(), BROKEN, "an invalid value");
    let error = column.get(0).unwrap().read(&short).unwrap_err();
    assert_eq!(error.kind(), BROKEN, "fewer bytes than the size");
}

#[test]
fn what_may_not_be_written_is_found() {
    let uri = Some("u");
    let inline = Some(&b"abc"[..]);
    for (row, broken) in [
        (Row { uri, ..Row::default() }, None),
        (Row { inline, uri, offset: Some(1), size: Some(3), ..Row::default() }, None),
        (Row { inline, size: Some(3), ..Row::default() }, None),
        (Row { inline, offset: Some(1), size: Some(3), ..Row::default() }, Some("uri is not")),
        (Row { inline, uri, offset: Some(1), ..Row::default() }, Some("size is not")),
        (Row { inline, uri, size: Some(-3), ..Row::default() }, Some("negative")),
        (Row { uri, offset: Some(-1), size: Some(3), ..Row::default() }, Some("negative")),
        (Row { uri, checksum: Some("MD5:0"), ..Row::default() }, Some("hexadecimal")),
        (Row { uri, checksum: Some("OWN:0"), ..Row::default() }, None),
        (Row::default(), Some("neither")),
    ] {
        let rows = [Row { uri, ..Row::default() }, row];
        let group = group(children(&rows));
        let found = FileColumn::new(&group).unwrap().check();
        match broken {
            None => found.unwrap(),
            Some(part) => {
                let error = found.unwrap_err();
                assert_eq!(error.kind(), ErrorKind::Usage);
                let says = error.message().contains("row 1") && error.message().contains(part);
                assert!(says, "{error}");
            }
        }
    }
}

#[test]
fn a_field_is_a_file_column_by_its_mark() {
    use crate::schema::{FILE, LOGICAL_TYPE_KEY};
    let group = Field::new(
        "f",
        DataType::Struct(vec![Field::new("uri", DataType::Utf8, true)].into()),
        true,
    );
    assert!(!FileColumn::is_file(&group));
    let mark = [(LOGICAL_TYPE_KEY.to_owned(), FILE.to_owned())];
    assert!(FileColumn::is_file(&group.with_metadata(mark.clone().into())));
    let text = Field::new("f", DataType::Utf8, true).with_metadata(mark.into());
    assert!(!FileColumn::is_file(&text));
}
