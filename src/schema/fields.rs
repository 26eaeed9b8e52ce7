//! Lists of Arrow fields, and schemas of them.
//!
//! Trap: [`Fields`] is an `Arc<[_]>`, which the standard library cannot allocate fallibly. So lists
//! that a schema sizes are made here and nowhere else.

use arrow_schema::{FieldRef, Fields, Schema as ArrowSchema};

use crate::error::Result;
use crate::memory;

/// A list of these fields.
pub(crate) fn arrow_fields(fields: impl IntoIterator<Item = FieldRef>) -> Fields {
    fields.into_iter().collect()
}

/// A schema of these fields, with the metadata of another one.
///
/// # Errors
/// `Limit(Memory)` if the system has no memory for the metadata.
pub(crate) fn schema_like(
    schema: &ArrowSchema,
    fields: impl IntoIterator<Item = FieldRef>,
) -> Result<ArrowSchema> {
    let metadata = memory::texts(schema.metadata().iter())?;
    Ok(ArrowSchema::new_with_metadata(arrow_fields(fields), metadata))
}
