//! [`FileColumn`] reads the values of a FILE column from Arrow.
//!
//! Spec: LogicalTypes.md, FILE.
//! Trap: below a null struct the children may have any value.

use std::fmt;

use arrow_array::cast::AsArray;
use arrow_array::types::Int64Type;
use arrow_array::{Array, ArrayRef, Int64Array, StructArray};
use arrow_schema::{DataType, Field};

use super::checksum::Checksum;
use super::resolve::{DEFAULT_CONTENT_TYPE, FileReference, FileTarget};
use crate::error::{Error, Result, quoted};
use crate::rows::dictionary_keys;
use crate::schema::{FILE, LOGICAL_TYPE_KEY};

/// A FILE column: a struct of any of the children `uri`, `offset`, `size`, `content_type`,
/// `checksum` and `inline`.
pub struct FileColumn<'a> {
    array: &'a StructArray,
    uri: Option<Values<'a, str>>,
    offset: Option<&'a Int64Array>,
    size: Option<&'a Int64Array>,
    content_type: Option<Values<'a, str>>,
    checksum: Option<Values<'a, str>>,
    inline: Option<Values<'a, [u8]>>,
}

/// The values of an array; `None` where one is null.
type Values<'a, V> = Box<dyn Fn(usize) -> Option<&'a V> + 'a>;

impl<'a> FileColumn<'a> {
    /// Reads the values of a struct.
    ///
    /// # Errors
    /// `Usage` if a child has another name, occurs twice, or has another type: strings, `offset`
    /// and `size` of 64 bits, and `inline` of bytes; in dictionaries or not.
    pub fn new(array: &'a StructArray) -> Result<Self> {
        let (mut uri, mut content_type, mut checksum) = (None, None, None);
        let (mut offset, mut size, mut inline) = (None, None, None);
        for (field, child) in array.fields().iter().zip(array.columns()) {
            let is_first = match field.name().as_str() {
                "uri" => put(&mut uri, texts(child), field)?,
                "content_type" => put(&mut content_type, texts(child), field)?,
                "checksum" => put(&mut checksum, texts(child), field)?,
                "offset" => put(&mut offset, child.as_primitive_opt::<Int64Type>(), field)?,
                "size" => put(&mut size, child.as_primitive_opt::<Int64Type>(), field)?,
                "inline" => put(&mut inline, byte_strings(child), field)?,
                other => {
                    return Err(Error::usage(format_args!(
                        "a FILE column has a child {}: expected uri, offset, size, \
                         content_type, checksum or inline",
                        quoted(other)
                    )));
                }
            };
            if !is_first {
                return Err(Error::usage(format_args!(
                    "a FILE column has two children named {:?}",
                    field.name()
                )));
            }
        }
        Ok(Self { array, uri, offset, size, content_type, checksum, inline })
    }

    /// Whether a field is marked as a FILE column.
    pub fn is_file(field: &Field) -> bool {
        field.metadata().get(LOGICAL_TYPE_KEY).is_some_and(|mark| mark == FILE)
            && matches!(field.data_type(), DataType::Struct(_))
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.array.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.array.is_empty()
    }

    /// The value of a row; `None` beyond the last row.
    pub fn get(&self, row: usize) -> Option<FileReference<'a>> {
        if row >= self.len() {
            return None;
        }
        if self.array.is_null(row) {
            return Some(FileReference {
                target: FileTarget::Null,
                content_type: DEFAULT_CONTENT_TYPE,
                checksum: None,
                uri: None,
            });
        }
        let text = |of: &Option<Values<'a, str>>| {
            of.as_ref().and_then(|of| of(row)).filter(|text| !text.is_empty())
        };
        let uri = text(&self.uri);
        Some(FileReference {
            target: self.target(row, uri),
            content_type: text(&self.content_type).unwrap_or(DEFAULT_CONTENT_TYPE),
            checksum: text(&self.checksum).map(Checksum::parse),
            uri,
        })
    }

    /// The values of all rows.
    pub fn iter(&self) -> impl Iterator<Item = FileReference<'a>> + '_ {
        (0..self.len()).filter_map(|row| self.get(row))
    }

    /// Checks that all values are valid: each refers to something, no `offset` or `size` is
    /// negative, and `offset` is set only together with `uri` and `size`, also beside inline bytes.
    ///
    /// The writer does not check this, so that files with invalid values can be copied.
    ///
    /// # Errors
    /// `Usage`, with the row and the rule that its value breaks.
    pub fn check(&self) -> Result<()> {
        match self.first_invalid() {
            None => Ok(()),
            Some((row, why)) => Err(Error::usage(format_args!(
                "row {row} of a FILE column: {why}; give it a value that refers to something, or \
                 null"
            ))),
        }
    }

    /// The first row with an invalid value, and the rule that it breaks.
    pub(crate) fn first_invalid(&self) -> Option<(usize, &'static str)> {
        (0..self.len()).find_map(|row| self.broken_rule(row).map(|why| (row, why)))
    }

    fn broken_rule(&self, row: usize) -> Option<&'static str> {
        let reference = self.get(row)?;
        let broken = match reference.target {
            FileTarget::Null => None,
            FileTarget::Invalid(why) => Some(why),
            FileTarget::Inline(_) | FileTarget::External { .. } => {
                self.locator(row, reference.uri).err()
            }
        };
        match reference.checksum {
            Some(Checksum::Malformed(_)) => {
                broken.or(Some("its checksum is not lowercase hexadecimal of the right length"))
            }
            _ => broken,
        }
    }

    fn target(&self, row: usize, uri: Option<&'a str>) -> FileTarget<'a> {
        // A locator beside inline bytes is their origin; the inline bytes count.
        if let Some(bytes) = self.inline.as_ref().and_then(|inline| inline(row)) {
            return FileTarget::Inline(bytes);
        }
        match (self.locator(row, uri), uri) {
            (Err(why), _) => FileTarget::Invalid(why),
            (Ok(range), Some(uri)) => FileTarget::External { uri, range },
            (Ok(_), None) => FileTarget::Invalid("neither inline nor uri is set"),
        }
    }

    /// The range that `offset` and `size` are, or the rule that they break.
    fn locator(
        &self,
        row: usize,
        uri: Option<&str>,
    ) -> std::result::Result<Option<std::ops::Range<u64>>, &'static str> {
        let number =
            |of: Option<&Int64Array>| of.filter(|of| of.is_valid(row)).map(|of| of.value(row));
        let (offset, size) = (number(self.offset), number(self.size));
        let Some(size) = size else {
            return match offset {
                None => Ok(None),
                Some(_) => Err("offset is set, and size is not"),
            };
        };
        if offset.is_some() && uri.is_none() {
            return Err("offset is set, and uri is not");
        }
        let start = u64::try_from(offset.unwrap_or(0)).map_err(|_| "offset is negative")?;
        let size = u64::try_from(size).map_err(|_| "size is negative")?;
        // Both have 63 bits.
        Ok(Some(start..start + size))
    }
}

impl fmt::Debug for FileColumn<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FileColumn").field("array", &self.array).finish_non_exhaustive()
    }
}

/// Puts a child in its place; false if there is one already.
fn put<T>(place: &mut Option<T>, child: Option<T>, field: &Field) -> Result<bool> {
    let Some(child) = child else {
        return Err(Error::usage(format_args!(
            "the child {} of a FILE column is {}: expected strings for uri, content_type and \
             checksum, Int64 for offset and size, bytes for inline",
            quoted(field.name()),
            field.data_type()
        )));
    };
    Ok(place.replace(child).is_none())
}

/// A function from a row to its value; `None` if it is null.
macro_rules! values {
    ($array:expr) => {{
        let array = $array;
        Box::new(move |i| array.is_valid(i).then(|| array.value(i)))
    }};
}

fn texts(array: &ArrayRef) -> Option<Values<'_, str>> {
    Some(match array.data_type() {
        DataType::Utf8 => values!(array.as_string::<i32>()),
        DataType::LargeUtf8 => values!(array.as_string::<i64>()),
        DataType::Utf8View => values!(array.as_string_view()),
        DataType::Dictionary(..) => by_key(array, texts)?,
        _ => return None,
    })
}

fn byte_strings(array: &ArrayRef) -> Option<Values<'_, [u8]>> {
    Some(match array.data_type() {
        DataType::Binary => values!(array.as_binary::<i32>()),
        DataType::LargeBinary => values!(array.as_binary::<i64>()),
        DataType::BinaryView => values!(array.as_binary_view()),
        DataType::Dictionary(..) => by_key(array, byte_strings)?,
        _ => return None,
    })
}

fn by_key<'a, V: ?Sized>(
    array: &'a ArrayRef,
    of: fn(&'a ArrayRef) -> Option<Values<'a, V>>,
) -> Option<Values<'a, V>> {
    let dictionary = array.as_any_dictionary_opt()?;
    let values = of(dictionary.values())?;
    let keys = dictionary_keys(dictionary);
    Some(Box::new(move |i| {
        let key = keys.get(i).filter(|_| dictionary.is_valid(i))?;
        values(*key)
    }))
}
