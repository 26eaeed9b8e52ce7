//! What a struct holds that this version of the format does not know.

/// Fields that are not known, kept as they were read so that they can be written back. One word; nothing when empty.
#[derive(Clone, Default, PartialEq, Eq, Hash, Debug)]
pub struct Unknown(
    #[expect(clippy::box_collection, reason = "one word in every struct")] Option<Box<Vec<u8>>>,
);
