//! The functions of text: [`lower`], [`upper`] and [`length`].

use std::sync::Arc;

use arrow_array::builder::{LargeStringBuilder, StringBuilder, StringViewBuilder};
use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, Int64Array};
use arrow_schema::DataType;

/// Strings in small letters; `None` if they are none.
pub(in crate::predicate) fn lower(array: &ArrayRef) -> Option<ArrayRef> {
    let of_char = |c: char| match c {
        // Its small letter is two characters.
        'İ' => 'i',
        c => only(c.to_lowercase()).unwrap_or(c),
    };
    mapped(array, |text, out| {
        if text.is_ascii() {
            out.push_str(text);
            out.make_ascii_lowercase();
        } else {
            out.extend(text.chars().map(of_char));
        }
    })
}

/// Strings in capital letters; `None` if they are none.
pub(super) fn upper(array: &ArrayRef) -> Option<ArrayRef> {
    let of_char = |c: char| match c {
        // Commonly written as two letters.
        'ß' => 'ẞ',
        c => only(c.to_uppercase()).unwrap_or(c),
    };
    mapped(array, |text, out| {
        if text.is_ascii() {
            out.push_str(text);
            out.make_ascii_uppercase();
        } else {
            out.extend(text.chars().map(of_char));
        }
    })
}

/// The character, if it is one.
fn only(mut chars: impl Iterator<Item = char>) -> Option<char> {
    let first = chars.next();
    first.filter(|_| chars.next().is_none())
}

fn mapped(array: &ArrayRef, map: impl Fn(&str, &mut String)) -> Option<ArrayRef> {
    let mut text = String::new();
    macro_rules! built {
        ($builder:expr, $array:expr) => {{
            let mut builder = $builder;
            for value in $array {
                text.clear();
                value.into_iter().for_each(|value| map(value, &mut text));
                builder.append_option(value.map(|_| text.as_str()));
            }
            Arc::new(builder.finish())
        }};
    }
    Some(match array.data_type() {
        DataType::Utf8 => built!(StringBuilder::new(), array.as_string::<i32>()),
        DataType::LargeUtf8 => built!(LargeStringBuilder::new(), array.as_string::<i64>()),
        DataType::Utf8View => built!(StringViewBuilder::new(), array.as_string_view()),
        _ => return None,
    })
}

/// The characters of strings, or the bytes of byte strings; `None` for others.
pub(super) fn length(array: &ArrayRef) -> Option<ArrayRef> {
    let count = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    let lengths: Int64Array = match array.data_type() {
        DataType::Utf8View => {
            let texts = array.as_string_view().iter();
            texts.map(|text| Some(count(text?.chars().count()))).collect()
        }
        DataType::BinaryView => {
            let values = array.as_binary_view().iter();
            values.map(|value| Some(count(value?.len()))).collect()
        }
        _ => return None,
    };
    Some(Arc::new(lengths))
}
