//! Interfaces for engines, and for the crates that are published together with this one (feature
//! `engine`).
//!
//! **Outside semver**: any version may change the items of this module, and the methods that this
//! feature adds to other types. Depend on one version (`marquetry = "=0.1.0"`).
//!
//! A [`Reader`](crate::Reader) serves a program that wants batches. An engine runs many reads at a
//! time and plans their memory. It learns filters while a query runs, and it knows in advance what
//! will be read next. For that it needs, beside the public interface:
//!
//! | An engine | by |
//! |---|---|
//! | keeps footers in a cache of its own | [`KnownFile`], [`AsyncReader::open_known`] |
//! | keeps the indexes that reads fetch there too | [`LoadedIndexes`] |
//! | lets several reads share a bound of memory | [`Budget`], [`BatchStream::share_memory`] |
//! | evaluates filters itself, and lets a read only prune | [`ReadWiring::only_prunes`] |
//! | evaluates a function that can fail after all others | [`Predicate::last_function`] |
//! | decides how to read by a plan | [`Plan::wanted_bytes`], [`Plan::claimed_rows`] |
//! | reads a plan | [`AsyncReader::stream_plan`] |
//! | fetches the next row groups while it decodes the current ones | [`BatchStream::fetch`] |
//! | gives up a read for one with better filters | [`BatchStream::take_over`] |
//! | reacts when memory runs out | [`BatchStream::hold_back`], [`AsyncWriter::drain`] |
//! | shows what filters did | [`FilterCounters`] |
//! | shows the bounds that filters go by | [`Footer::trusted_bounds`] |
//! | filters, joins and reorders rows of any type that a file states | [`rows`] |
//!
//! # How an engine drives a read
//!
//! 1. It opens the file with metadata that it has, or fetches them: [`KnownFile`].
//! 2. It wires the reader: [`Reader::wired`](crate::Reader::wired) with a [`ReadWiring`] says what
//!    the read shares with others.
//! 3. It plans the rows of one turn, such as one row group, looks at the plan, and begins to read
//!    it: [`AsyncReader::stream_plan`].
//! 4. Whenever it is polled, it polls the current stream for batches. Once that stream [has all its
//!    bytes](crate::BatchStream::is_fetched), it opens the next one and only
//!    [fetches](crate::BatchStream::fetch) it, so that the network is busy while batches are
//!    decoded.
//! 5. If filters that were learned meanwhile make the next turn smaller, it plans that turn again,
//!    and the new read [takes over](crate::BatchStream::take_over) what the old one has fetched.
//! 6. If a read [lacks memory](crate::BatchStream::lacks_memory) that the one ahead holds, or its
//!    own memory pool is exhausted, it drops the read ahead and [holds
//!    back](crate::BatchStream::hold_back) the current one.
//!
//! ```
//! # #[cfg(feature = "async")]
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> marquetry::Result<()> {
//! use std::future::poll_fn;
//! use std::pin::Pin;
//! use futures_core::Stream;
//! use marquetry::engine::{KnownFile, ReadWiring};
//! use marquetry::{AsyncReader, BatchStream, Limits};
//!
//! # let bytes = bytes::Bytes::from(std::fs::read("testdata/trips.parquet").unwrap());
//! // Such as an object of a store. What is known of it can be kept for later queries.
//! let known = KnownFile::fetch(bytes.clone(), Limits::default(), None).await?;
//! let reader = AsyncReader::open_known(bytes, known).project(["id", "fare"])?.threads(1);
//! let budget = reader.new_budget();
//! let mut wiring = ReadWiring::default();
//! wiring.budget = Some(budget.clone());
//! let reader = reader.wired(wiring);
//!
//! let row_group = |i: usize| -> marquetry::Result<BatchStream> {
//!     let reader = reader.clone().row_groups([i])?;
//!     reader.stream_plan(reader.plan()?)
//! };
//! let (mut rows, mut ahead) = (0, None);
//! for i in 0..reader.metadata().row_groups() {
//!     let mut current = match ahead.take() {
//!         Some(fetched) => fetched,
//!         None => row_group(i)?,
//!     };
//!     let has_next = i + 1 < reader.metadata().row_groups();
//!     loop {
//!         let next = poll_fn(|cx| {
//!             if ahead.is_none() && has_next && current.is_fetched() && budget.used() < 64 << 20 {
//!                 ahead = row_group(i + 1).ok();
//!             }
//!             if let Some(ahead) = &mut ahead {
//!                 ahead.fetch(cx);
//!             }
//!             current.share_memory(ahead.is_some());
//!             if current.lacks_memory() {
//!                 ahead = None;
//!                 current.share_memory(false);
//!                 current.hold_back();
//!             }
//!             Pin::new(&mut current).poll_next(cx)
//!         });
//!         let Some(batch) = next.await else { break };
//!         rows += batch?.num_rows();
//!     }
//! }
//! assert_eq!(rows, 1_000);
//! # Ok(())
//! # }
//! # #[cfg(not(feature = "async"))] fn main() {}
//! ```
//!
//! `marquetry-datafusion` does all of it, in `file_stream`.
//!
//! [`AsyncReader::open_known`]: crate::AsyncReader::open_known
//! [`AsyncReader::stream_plan`]: crate::AsyncReader::stream_plan
//! [`AsyncWriter::drain`]: crate::AsyncWriter::drain
//! [`BatchStream::fetch`]: crate::BatchStream::fetch
//! [`BatchStream::hold_back`]: crate::BatchStream::hold_back
//! [`BatchStream::share_memory`]: crate::BatchStream::share_memory
//! [`BatchStream::take_over`]: crate::BatchStream::take_over
//! [`Footer::trusted_bounds`]: crate::read::Footer::trusted_bounds
//! [`Plan::claimed_rows`]: crate::read::Plan::claimed_rows
//! [`Plan::wanted_bytes`]: crate::read::Plan::wanted_bytes
//! [`Predicate::last_function`]: crate::Predicate::last_function

use std::sync::atomic::Ordering;

pub use crate::calendar::TimeText;
#[cfg(feature = "object_store")]
pub use crate::io::stream::store::{is_replaced, replaced};
pub use crate::limits::Budget;
pub use crate::predicate::nested_bits::repeated;
pub use crate::read::counters::{Counter, FilterCounters};
pub use crate::read::loaded_indexes::LoadedIndexes;
pub use crate::read::wiring::ReadWiring;
#[cfg(feature = "async")]
pub use crate::reader::KnownFile;
use crate::simd::Kernel;
use crate::simd::isa::{CAN_SWITCH, SWITCHES};
pub use crate::write::row_group::batch_bytes;

/// Filters, joins and reorders the rows of batches, whatever types a file states.
///
/// The kernels of Arrow allocate an element for each list, whatever its size: a file whose
/// `ARROW:schema` states lists of lists of a million values takes gigabytes for a few nulls. The
/// kernels also lose the rows of values of no bytes, and name the fields of run-end encoded types
/// anew.
pub mod rows {
    pub use crate::memory::bytes_of_nulls;
    pub use crate::rows::{
        concat, dictionary_keys, filter, interleave, nulls, take, text_bytes, trimmed, value_bytes,
    };
}

/// Lets one SIMD kernel run with less than this machine has, for `benches/kernels.rs`.
///
/// `kernel` is a name of the ledger in `docs/kernels.md`, `level` is `scalar`, `avx2` or `best`.
/// Returns false, and changes nothing, unless the build had `MARQUETRY_ISA=switch` in its
/// environment.
#[doc(hidden)]
pub fn switch_kernel(kernel: &str, level: &str) -> bool {
    let known = Kernel::ALL.iter().find(|(name, _)| *name == kernel);
    let level = ["best", "scalar", "avx2"].iter().position(|name| *name == level);
    let (true, Some((_, kernel)), Some(level)) = (CAN_SWITCH, known, level) else { return false };
    SWITCHES[*kernel as usize].store(u8::try_from(level).unwrap_or(0), Ordering::Relaxed);
    true
}
