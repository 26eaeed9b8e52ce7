//! [`Splicer`]: the state of a copy, and what it knows of each chunk.

use std::ops::Range;

use crate::crypt::FileEncryptor;
use crate::error::{Error, Result};
use crate::format::OffsetIndex;
use crate::io::Sink;
use crate::limits::{Budget, Reservation};
use crate::read::ChunkRegions;
use crate::rewrite::column_encoder::ColumnEncoders;
use crate::rewrite::decide::Decisions;
use crate::rewrite::inputs::{Input, Inputs};
use crate::rewrite::made_indexes::MadeIndexes;
use crate::rewrite::old_indexes::OldIndexes;
use crate::rewrite::output::CountingSink;
use crate::rewrite::settings::RewriteSettings;

/// Copies the row groups of the inputs.
pub(in crate::rewrite) struct Splicer<'a, S> {
    pub(super) inputs: &'a Inputs<'a>,
    pub(super) encryptor: Option<FileEncryptor>,
    pub(super) decisions: Decisions<'a>,
    pub(super) settings: &'a RewriteSettings,
    pub(super) encoders: ColumnEncoders<'a>,
    pub(super) budget: Budget,
    pub(super) out: CountingSink<S>,
    /// The memory of the offset indexes that are kept.
    pub(super) indexes: Reservation,
    /// Pages that were looked at.
    pub(super) pages: u64,
    /// By file, the bytes that were copied.
    pub(super) regions: Vec<ChunkRegions>,
}

/// The metadata of a copied chunk, until its indexes are written.
pub(super) struct CopiedChunk {
    pub(super) origin: ChunkOrigin,
    /// Where its bloom filter is in the old file.
    pub(super) bloom: Option<i64>,
    pub(super) pages: NewPlaces,
    /// The growth of its uncompressed size.
    pub(super) grown: i64,
}

/// Where a chunk comes from.
#[derive(Clone, Copy)]
pub(super) struct ChunkOrigin {
    pub(super) file: usize,
    pub(super) row_group: usize,
    pub(super) leaf: usize,
    /// Whether its bounds are kept.
    pub(super) has_bounds: bool,
}

/// Where the pages of a chunk are in the new file.
pub(super) enum NewPlaces {
    /// All were moved by as many bytes, from this range.
    Shifted { from: Range<u64>, by: i64 },
    /// Each has its own; there may be no offset index.
    Listed(Option<OffsetIndex>),
    /// They are where they were, and so are their indexes.
    Kept,
    /// They were encoded, and these are their indexes.
    Made(Box<MadeIndexes>),
}

impl<'a, S: Sink> Splicer<'a, S> {
    pub(in crate::rewrite) fn new(
        decisions: Decisions<'a>,
        sink: S,
        encryptor: Option<FileEncryptor>,
        settings: &'a RewriteSettings,
        budget: Budget,
    ) -> Self {
        let inputs = decisions.inputs;
        Self {
            inputs,
            encryptor,
            decisions,
            settings,
            encoders: ColumnEncoders::new(inputs, &settings.options, &budget),
            out: CountingSink::new(sink),
            indexes: budget.reservation("the offset indexes of the file"),
            budget,
            pages: 0,
            regions: inputs.files.iter().map(|_| ChunkRegions::default()).collect(),
        }
    }

    pub(super) fn file(&self, at: usize) -> Result<&'a Input<'a>> {
        let inputs: &'a Inputs<'a> = self.inputs;
        inputs.files.get(at).ok_or_else(|| Error::internal("there is no such input"))
    }

    pub(super) fn reserve(&self, purpose: &'static str, range: &Range<u64>) -> Result<Reservation> {
        let len = usize::try_from(range.end.saturating_sub(range.start)).unwrap_or(usize::MAX);
        self.budget.take_for(purpose, len)
    }

    /// Bloom filter and indexes of a chunk in the file that it comes from.
    pub(super) fn old(&self, origin: ChunkOrigin) -> Result<OldIndexes<'_>> {
        let ChunkOrigin { row_group, leaf, .. } = origin;
        Ok(OldIndexes { input: self.file(origin.file)?, row_group, leaf, budget: &self.budget })
    }
}
