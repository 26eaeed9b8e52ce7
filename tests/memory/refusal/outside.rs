//! Sites whose allocations still end the process when they fail; `docs/threats.md` says why.

/// The file, as [`super::sites::Site`] names it, and the thing that is allocated there.
pub const OUTSIDE: &[(&str, &str)] = &[
    ("compress/snappy.rs", "the table of the codec, of a constant size"),
    ("schema/fields.rs", "Arrow's lists of fields"),
    ("schema/to_arrow.rs", "the same: the call of `schema/fields.rs` is its last"),
    ("arrow-schema in schema/fields.rs", "Arrow's lists of fields"),
    ("schema/hint.rs", "the hint of the schema, by `arrow-ipc`"),
    ("schema/projection.rs", "chosen columns, which are cloned with the options of a read"),
    ("rows.rs", "Arrow's `filter` and `take`"),
    ("arrow-array in writer/file_encoder.rs", "batches"),
    ("write/sorting.rs", "Arrow's `concat`, and a stable sort of the standard library"),
    ("arrow-array in rewrite/sort/mod.rs", "batches"),
    ("rewrite/sort/merge.rs", "Arrow's `interleave`"),
];
