//! Tests how much heap reading and writing take.
//!
//! This is a binary of its own, because it counts what is allocated.

#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "tests are no API, and fail where they must"
)]

mod reading;
#[cfg(feature = "full")]
mod refusal;
mod rewriting;
mod spilling;
mod writing;

#[path = "../support/mod.rs"]
mod support;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use marquetry::arrow_array::builder::BinaryViewBuilder;
use marquetry::arrow_array::{Array, ArrayRef, RecordBatch, StructArray};
use marquetry::arrow_schema::{DataType, Field};
use marquetry::variant::{VariantArray, VariantBuilder};

#[global_allocator]
static ALLOCATOR: support::heap::Counting = support::heap::Counting;

/// Rows of one VARIANT column, all the same string, which they share as views.
fn variants_of_one_string(rows: usize, len: usize) -> RecordBatch {
    let mut builder = VariantBuilder::new();
    builder.append("s".repeat(len).as_str()).expect("a value");
    let (metadata, value) = builder.finish().expect("a value").into_parts();
    let shared = |bytes: Vec<u8>| {
        let len = u32::try_from(bytes.len()).expect("few");
        let mut views = BinaryViewBuilder::new();
        let block = views.append_block(bytes.into());
        (0..rows).for_each(|_| views.try_append_view(block, 0, len).expect("a view"));
        Arc::new(views.finish()) as ArrayRef
    };
    let columns = vec![shared(metadata), shared(value)];
    let fields = ["metadata", "value"].map(|name| Field::new(name, DataType::BinaryView, false));
    let group = StructArray::new(fields.to_vec().into(), columns, None);
    let field = VariantArray::field("v", false);
    let field = field.with_data_type(group.data_type().clone());
    let schema = Arc::new(marquetry::arrow_schema::Schema::new(vec![field]));
    RecordBatch::try_new(schema, vec![Arc::new(group)]).expect("a batch")
}

/// The counters are those of the whole process: one test at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}
