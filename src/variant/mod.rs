//! VARIANT: semi-structured values.
//!
//! Spec: VariantEncoding.md, VariantShredding.md. A value is two byte strings: metadata, with the
//! names of all object fields, and the value itself. [`Variant`] reads them in place. In a file,
//! parts of the values may be stored as columns of their own, which is called shredding.
//!
//! ```text
//! metadata   header: version, sorted, width of offsets | number of names | offsets | names
//! value      header: basic type, 2 bits; length or type, 6 bits | contents
//! ```
//!
//! Trap: all of it comes from the file. Each length and offset is checked where it is followed, and
//! values nest at most [`MAX_DEPTH`] deep.

mod malformed;
mod metadata;
mod elements;
mod value;
mod members;
mod compare;
mod encode;
mod build;
mod json;
mod path;
mod columns;
mod array;
mod unshred;
#[cfg(feature = "check")]
pub(crate) mod stored;
mod rows;
mod array_builder;
mod shape;
mod shape_text;
mod convert;
mod scalar_builder;
mod nested_builder;
mod shred;
mod get;
mod cast;
mod infer;
mod needed;
mod places;

pub use array::VariantArray;
pub use array_builder::VariantArrayBuilder;
pub use build::{VariantBuf, VariantBuilder};
pub use cast::cast_to_variant;
pub use elements::{MAX_DEPTH, VariantList, VariantObject};
pub use infer::{VariantInference, VariantShredding};
pub use json::VariantJsonOptions;
pub use metadata::VariantMetadata;
pub(crate) use needed::{check_shredding, needed_leaves, variant_around};
pub use path::{VariantPath, VariantStep};
pub(crate) use places::VariantPlaces;
pub use shape::VariantShape;
pub use value::Variant;

#[cfg(test)]
mod tests;
