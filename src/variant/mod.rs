//! VARIANT: semi-structured values.
//!
//! Spec: VariantEncoding.md, VariantShredding.md. A value is two byte strings: metadata, with the
//! names of all object fields, and the value itself. [`Variant`] looks at them in place. In a file,
//! parts of the values may be columns of their own, which is called shredding.
//!
//! ```text
//! metadata   header: version, sorted, width of offsets | number of names | offsets | names
//! value      header: basic type, 2 bits; length or type, 6 bits | contents
//! ```
//!
//! Trap: all of it comes from the file. Each length and offset is checked where it is followed, and
//! values nest at most [`MAX_DEPTH`] deep.

mod metadata;
mod value;
mod compare;
mod encode;
mod build;
mod json;
mod path;
mod array;
mod array_builder;
mod unshred;
mod shape;
mod convert;
mod scalar_builder;
mod shred;
mod get;
mod infer;
mod needed;

pub use array::VariantArray;
pub use array_builder::VariantArrayBuilder;
pub use build::{VariantBuf, VariantBuilder};
pub use infer::{VariantInference, VariantShredding};
pub use json::VariantJsonOptions;
pub use metadata::VariantMetadata;
pub(crate) use needed::{check_shredding, needed_leaves, variant_around};
pub use path::{VariantPath, VariantStep};
pub use shape::VariantShape;
pub use value::{MAX_DEPTH, Variant, VariantList, VariantObject};

use std::fmt::{self, Display, Formatter};

use crate::error::{Error, Spec};

#[cold]
fn malformed(message: impl Display) -> Error {
    Error::malformed(Spec::Variant, message)
}

/// A name in quotes, as errors show it: no more of it than a reader takes in.
struct Quoted<'a>(&'a str);

/// Characters of a name that an error shows.
const QUOTED_CHARS: usize = 100;

impl Display for Quoted<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(QUOTED_CHARS) {
            None => write!(f, "{:?}", self.0),
            Some((end, _)) => write!(f, "{:?}… ({} bytes)", &self.0[..end], self.0.len()),
        }
    }
}

/// `name` for an error, in quotes, its beginning if it is long.
fn quoted(name: &str) -> impl Display {
    Quoted(name)
}

#[cfg(test)]
mod tests;
