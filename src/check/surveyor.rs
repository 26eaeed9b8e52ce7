//! [`Surveyor`]: checks single column chunks of a file, and says what they hold.
//!
//! Used by `rewrite::Fill`, which states it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use bytes::Bytes;

use super::column::{ChunkOutcome, check_chunk, encoding_of, statistics_of};
use super::context::FileContext;
use super::finding::{CheckLevel, Finding};
use super::pages::{FoundBytes, PageWalk};
use super::survey::{ChunkSurvey, SurveyRequest};
use crate::error::{Error, Result, Spec};
use crate::format::{Encoding, PageHeader, PageType, Statistics};
use crate::io::Source;
use crate::limits::{Budget, Limits};
use crate::page::PagePosition;
use crate::read::{Footer, chunk_range};

/// A file whose chunks are looked at.
pub(crate) struct Surveyor {
    file: FileContext,
}

impl Surveyor {
    pub(crate) fn new(
        source: Arc<dyn Source>,
        footer: Footer,
        file_len: u64,
        limits: Limits,
        budget: Budget,
    ) -> Self {
        let file = FileContext {
            source,
            footer,
            file_len,
            limits,
            budget,
            level: CheckLevel::Truth,
            has_unordered_bounds: AtomicBool::new(false),
            bytes_read: AtomicU64::new(0),
            expanded: AtomicU64::new(0),
        };
        Self { file }
    }

    /// Checks a chunk. It has no survey if a part of it could not be decoded, which the findings
    /// tell.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn chunk(
        &self,
        row_group: usize,
        leaf: usize,
        request: &SurveyRequest,
        is_alone: bool,
    ) -> Result<SurveyedChunk> {
        let outcome = check_chunk(&self.file, row_group, leaf, is_alone, Some(request))?;
        let ChunkOutcome { findings, is_starved, is_whole, survey, .. } = outcome;
        let survey = survey.filter(|_| is_whole);
        Ok(SurveyedChunk { findings: findings.list, is_starved, survey })
    }
}

impl Surveyor {
    /// Reads the pages of a chunk, without decompressing them.
    ///
    /// # Errors
    /// `Malformed` if they are not as many as the chunk says; `Io`; `Limit(Memory)`; what `each`
    /// returns.
    pub(crate) fn pages(
        &self,
        row_group: usize,
        leaf: usize,
        mut each: impl FnMut(VisitedPage) -> Result<()>,
    ) -> Result<()> {
        let footer = &self.file.footer;
        let described = footer.schema().leaf(leaf)?;
        let chunk = footer.column_chunk_ref(row_group, leaf)?;
        let range = chunk_range(footer, self.file.file_len, row_group, leaf, &chunk)?;
        let meta = chunk.meta_data.as_ref();
        let slots = meta.and_then(|meta| u64::try_from(meta.num_values).ok()).unwrap_or(0);
        let codec = meta.map(|meta| meta.codec).unwrap_or_default();
        let context = footer.page_context(&described, codec, &self.file.limits);
        let mut walk = PageWalk::new(&self.file, range);
        let (mut found, mut data_pages, mut is_first) = (0u64, 0, true);
        // A page without values may follow the last value.
        while found < slots {
            let position = PagePosition { is_first, data_pages };
            let FoundBytes { stored, body, offset, end } = walk.next_page(&context, position)?;
            let page =
                VisitedPage { header: *stored.header, header_len: stored.len, body, offset, end };
            if let Some(slots) = page.slots()? {
                found = found.saturating_add(slots);
                data_pages += 1;
            }
            is_first = false;
            each(page)?;
        }
        if found == slots {
            return Ok(());
        }
        Err(Error::mismatch(Spec::Pages, "values of the pages of the chunk", slots, found))
    }
}

/// A page as it is stored.
pub(crate) struct VisitedPage {
    pub(crate) header: PageHeader,
    pub(crate) header_len: usize,
    pub(crate) body: Bytes,
    pub(crate) offset: u64,
    /// The offset after its last byte.
    pub(crate) end: u64,
}

impl VisitedPage {
    /// Its slots, if it is a data page.
    ///
    /// # Errors
    /// `Malformed` if the header does not tell.
    pub(crate) fn slots(&self) -> Result<Option<u64>> {
        let header = &self.header;
        let slots = match header.r#type {
            PageType::DataPage => header.data_page_header.as_ref().map(|inner| inner.num_values),
            PageType::DataPageV2 => {
                header.data_page_header_v2.as_ref().map(|inner| inner.num_values)
            }
            _ => return Ok(None),
        };
        let slots = slots.and_then(|slots| u64::try_from(slots).ok());
        let missing =
            || Error::malformed(Spec::Metadata("PageHeader"), "a page without a number of values");
        slots.map(Some).ok_or_else(missing)
    }

    /// Its encoding, if it has one.
    pub(crate) fn encoding(&self) -> Option<Encoding> {
        encoding_of(&self.header)
    }

    /// The statistics in its header.
    pub(crate) fn statistics(&self) -> Option<&Statistics> {
        statistics_of(&self.header)
    }
}

/// The outcome of a survey.
pub(crate) struct SurveyedChunk {
    pub(crate) findings: Vec<Finding>,
    /// Whether there was too little memory while other chunks were looked at.
    pub(crate) is_starved: bool,
    pub(crate) survey: Option<ChunkSurvey>,
}
