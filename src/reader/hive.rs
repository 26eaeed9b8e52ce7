//! [`Dataset::with_partitions`]: the keys of folders named `key=value` as columns.

use std::sync::Arc;

use super::Reader;
use super::dataset::Dataset;
use crate::error::{Error, Result};
use crate::read::VirtualColumn;

/// The value of null in the name of a folder.
const NULL: &str = "__HIVE_DEFAULT_PARTITION__";

/// Keys and values, in the order of the folders.
type Keys = Vec<(String, Option<String>)>;

impl<S> Dataset<S> {
    /// Adds the keys of folders named `key=value`, as Hive names them, as columns after the others:
    /// text, percent-decoded, null for `__HIVE_DEFAULT_PARTITION__`. A key that the files have as a
    /// column is not added. The columns cannot be projected or filtered by.
    ///
    /// ```no_run
    /// # fn main() -> marquetry::Result<()> {
    /// let dataset = marquetry::Dataset::open(["trips/"])?.project(["fare"])?.with_partitions()?;
    /// println!("{}", dataset.schema()?); // fare, and year and month of trips/year=2024/month=5/…
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// `Usage` if the paths of two files do not have the same keys.
    pub fn with_partitions(self) -> Result<Self> {
        let mut first: Option<Keys> = None;
        self.map(|mut reader| {
            let keys = keys_of(&reader);
            let names = |keys: &Keys| keys.iter().map(|(key, _)| key.clone()).collect::<Vec<_>>();
            let expected = first.get_or_insert_with(|| keys.clone());
            if names(expected) != names(&keys) {
                return Err(reader.name(Error::usage(format_args!(
                    "the folders have the keys {:?}, and those of the first file {:?}",
                    names(&keys),
                    names(expected)
                ))));
            }
            for (key, value) in keys {
                if reader.metadata().schema().node_named(&key).is_err() {
                    let (name, value) = (Arc::from(key), value.map(Arc::from));
                    reader = reader.virtual_column(VirtualColumn::Constant { name, value });
                }
            }
            Ok(reader)
        })
    }
}

fn keys_of<S>(reader: &Reader<S>) -> Keys {
    let path = reader.file_name.as_deref().unwrap_or_default();
    let mut folders: Vec<&str> = path.split(['/', std::path::MAIN_SEPARATOR]).collect();
    folders.pop();
    let keys = folders.into_iter().filter_map(|folder| folder.split_once('='));
    keys.map(|(key, value)| (decoded(key), (value != NULL).then(|| decoded(value)))).collect()
}

/// A text with its `%XX` decoded; as it is where that is no text.
fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let digit = |byte: &u8| char::from(*byte).to_digit(16).and_then(|n| u8::try_from(n).ok());
        let (byte, left) = match rest {
            [b'%', high, low, left @ ..] => match (digit(high), digit(low)) {
                (Some(high), Some(low)) => (high << 4 | low, left),
                _ => (*first, more),
            },
            _ => (*first, more),
        };
        out.push(byte);
        rest = left;
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_encoded_text_is_decoded_and_other_text_stays() {
        for (text, expected) in
            [("a%20b", "a b"), ("100%", "100%"), ("%zz", "%zz"), ("%C3%A9", "é"), ("%FF", "%FF")]
        {
            assert_eq!(decoded(text), expected);
        }
    }
}
