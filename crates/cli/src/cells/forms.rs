//! Chooses the forms of values that have more than one: `--decimals`, `--maps`, `--binary`.

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch, types};
use arrow_schema::{DataType, Field};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use marquetry::variant::VariantArray;

use crate::args::{BinaryForm, ValueForms};

/// The forms of the flags. Without `--binary`, bytes are text where all values so far are text, and
/// hex elsewhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Forms {
    pub(crate) values: ValueForms,
    /// The forms of the leaves of bytes, in the order of the schema; `None` before a value was
    /// seen.
    leaves: Vec<Option<BinaryForm>>,
}

impl Forms {
    pub(crate) fn new(values: ValueForms) -> Self {
        Self { values, leaves: Vec::new() }
    }

    /// The form of a leaf of bytes. A leaf without a value so far has none to write.
    pub(super) fn of_leaf(&self, leaf: usize) -> BinaryForm {
        let seen = self.leaves.get(leaf).copied().flatten();
        self.values.binary.or(seen).unwrap_or(BinaryForm::Hex)
    }

    /// Other columns come.
    pub(crate) fn forget(&mut self) {
        self.leaves.clear();
    }

    /// Decides on the leaves whose first values are in the batch.
    pub(crate) fn look(&mut self, batch: &RecordBatch) {
        if self.values.binary.is_some() {
            return;
        }
        let schema = batch.schema_ref();
        let mut next = 0;
        for (column, field) in batch.columns().iter().zip(schema.fields()) {
            self.look_at(column, field, &mut next);
        }
    }

    /// The same for a column by itself.
    pub(crate) fn look_at_column(&mut self, column: &dyn Array, field: &Field) {
        if self.values.binary.is_none() {
            self.look_at(column, field, &mut 0);
        }
    }

    /// Looks at the leaves that [`ValuesOf`](super::ValuesOf) counts too.
    fn look_at(&mut self, array: &dyn Array, field: &Field, next: &mut usize) {
        if !is_shown_as_variant(array, field) {
            self.look_inside(array, next);
        }
    }

    fn look_inside(&mut self, array: &dyn Array, next: &mut usize) {
        match array.data_type() {
            DataType::Binary => self.leaf(array.as_binary::<i32>().iter(), next),
            DataType::LargeBinary => self.leaf(array.as_binary::<i64>().iter(), next),
            DataType::BinaryView => self.leaf(array.as_binary_view().iter(), next),
            DataType::List(of) => self.look_at(array.as_list::<i32>().values(), of, next),
            DataType::LargeList(of) => self.look_at(array.as_list::<i64>().values(), of, next),
            DataType::ListView(of) => self.look_at(array.as_list_view::<i32>().values(), of, next),
            DataType::LargeListView(of) => {
                self.look_at(array.as_list_view::<i64>().values(), of, next);
            }
            DataType::FixedSizeList(of, _) => {
                self.look_at(array.as_fixed_size_list().values(), of, next);
            }
            DataType::Map(..) => self.look_inside(array.as_map().entries(), next),
            DataType::Struct(fields) => {
                for (column, field) in array.as_struct().columns().iter().zip(fields) {
                    self.look_at(column, field, next);
                }
            }
            DataType::Dictionary(..) => self.look_inside(array.as_any_dictionary().values(), next),
            DataType::RunEndEncoded(ends, _) => {
                let values = match ends.data_type() {
                    DataType::Int16 => array.as_run::<types::Int16Type>().values(),
                    DataType::Int32 => array.as_run::<types::Int32Type>().values(),
                    _ => array.as_run::<types::Int64Type>().values(),
                };
                self.look_inside(values, next);
            }
            _ => {}
        }
    }

    fn leaf<'a>(&mut self, values: impl Iterator<Item = Option<&'a [u8]>>, next: &mut usize) {
        if self.leaves.len() <= *next {
            self.leaves.push(None);
        }
        if let Some(form @ None) = self.leaves.get_mut(*next) {
            *form = of_values(values);
        }
        *next += 1;
    }
}

/// The form of these values; `None` if there is none that is not empty.
fn of_values<'a>(values: impl Iterator<Item = Option<&'a [u8]>>) -> Option<BinaryForm> {
    let mut form = None;
    for value in values.flatten().filter(|value| !value.is_empty()) {
        if text_of(value).is_none() {
            return Some(BinaryForm::Hex);
        }
        form = Some(BinaryForm::Text);
    }
    form
}

/// Bytes as text, if they are UTF-8 without control characters other than line breaks. Numbers and
/// digests that happen to be UTF-8 do not count as text.
pub(crate) fn text_of(bytes: &[u8]) -> Option<&str> {
    let is_control = |byte: &u8| matches!(byte, 0..=8 | 11 | 12 | 14..=31 | 127);
    if bytes.iter().any(is_control) {
        return None;
    }
    std::str::from_utf8(bytes).ok()
}

/// Bytes as base64, with padding.
pub(super) fn base64(bytes: &[u8]) -> String {
    BASE64_STANDARD.encode(bytes)
}

/// Parses bytes in this form; without a form, text that begins with `0x` is hex, and other text is
/// its own bytes.
///
/// # Errors
/// The fault of the text.
pub(crate) fn bytes_of(text: &str, form: Option<BinaryForm>) -> Result<Vec<u8>, String> {
    let wrong = |form: &str| format!("{text:?} is not {form}");
    match form {
        Some(BinaryForm::Text) => Ok(text.as_bytes().to_vec()),
        Some(BinaryForm::Base64) => BASE64_STANDARD.decode(text).map_err(|_| wrong("base64")),
        Some(BinaryForm::Hex) | None => match (text.strip_prefix("0x"), form) {
            (Some(digits), _) => of_hex(digits).ok_or_else(|| wrong("hex")),
            (None, None) => Ok(text.as_bytes().to_vec()),
            (None, Some(_)) => Err(wrong("hex, which begins with 0x")),
        },
    }
}

fn of_hex(digits: &str) -> Option<Vec<u8>> {
    let digit =
        |byte: &u8| char::from(*byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    let pairs = digits.as_bytes().chunks(2).map(|pair| match pair {
        [high, low] => Some(digit(high)? << 4 | digit(low)?),
        _ => None,
    });
    pairs.collect()
}

/// Whether a column is shown as VARIANT values. If only other parts of it are read, these are shown
/// as they are.
pub(super) fn is_shown_as_variant(array: &dyn Array, field: &Field) -> bool {
    VariantArray::is_variant(field)
        && array.as_struct_opt().is_some_and(|group| group.column_by_name("metadata").is_some())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow_array::{ArrayRef, BinaryArray, ListArray, MapArray, StringArray, StructArray};
    use arrow_buffer::OffsetBuffer;
    use marquetry::variant::VariantArrayBuilder;

    use super::*;
    use crate::cells::{ValuesOf, hex};

    #[test]
    fn the_leaves_of_variant_values_are_no_leaves() {
        let mut builder = VariantArrayBuilder::new();
        builder.append_json("1").expect("JSON");
        let variants: ArrayRef = Arc::new(builder.finish().expect("values"));
        let variant = Arc::new(VariantArray::field("value", true));
        let offsets = OffsetBuffer::from_lengths([1]);
        let list = ListArray::new(variant.clone(), offsets.clone(), variants.clone(), None);
        let key = Arc::new(Field::new("key", DataType::Utf8, false));
        let keys: ArrayRef = Arc::new(StringArray::from(vec!["k"]));
        let pairs = StructArray::new(vec![key, variant].into(), vec![keys, variants], None);
        let entries = Arc::new(Field::new("entries", pairs.data_type().clone(), false));
        let map = MapArray::new(entries, offsets, pairs, None, false);
        let bytes: ArrayRef = Arc::new(BinaryArray::from(vec![&b"text"[..]]));
        let columns: [(&str, ArrayRef); 3] =
            [("l", Arc::new(list)), ("m", Arc::new(map)), ("t", bytes)];
        let batch = RecordBatch::try_from_iter(columns).expect("a batch");
        let mut forms = Forms::default();
        forms.look(&batch);
        let mut values = ValuesOf::new(&forms);
        let schema = batch.schema_ref();
        let texts = batch.columns().iter().zip(schema.fields()).map(|(column, field)| {
            let values = values.column(column, field).expect("values");
            values.text(0).expect("a text").expect("no null")
        });
        assert_eq!(texts.collect::<Vec<_>>(), ["[1]", "{\"k\":1}", "text"]);
    }

    #[test]
    fn bytes_come_back_in_each_form() {
        for bytes in [&b""[..], b"text", b"0x", b"\0\x01\xff", "ü\n".as_bytes()] {
            for (form, text) in [(None, hex(bytes)), (Some(BinaryForm::Base64), base64(bytes))] {
                assert_eq!(bytes_of(&text, form).expect("bytes"), bytes, "{form:?}");
            }
        }
        assert_eq!(bytes_of("0x", Some(BinaryForm::Text)).expect("bytes"), b"0x");
        assert!(bytes_of("0x0", None).is_err());
        assert!(bytes_of("0x+1", None).is_err());
        assert!(bytes_of("!", Some(BinaryForm::Base64)).is_err());
        assert!(bytes_of("4142", Some(BinaryForm::Hex)).is_err());
        assert_eq!(bytes_of("as it is", None).expect("bytes"), b"as it is");
    }

    #[test]
    fn values_are_text_if_all_are() {
        let form = |values: &[&[u8]]| of_values(values.iter().map(|value| Some(*value)));
        assert_eq!(form(&[b"a", b"", "b\n\u{fc}".as_bytes()]), Some(BinaryForm::Text));
        assert_eq!(form(&[b"a", b"\xff"]), Some(BinaryForm::Hex));
        assert_eq!(form(&[b"\0\0\0\x01"]), Some(BinaryForm::Hex));
        assert_eq!(form(&[b""]), None);
    }
}
