//! A column chunk: its pages, one after the other, from the bytes of the chunk.

use bytes::Bytes;

use crate::error::{Error, Result, Spec};
use crate::format::{PageHeader, PageType};
use crate::page::{Opener, Page, PageContext};
use crate::thrift::{self, Read};

/// The pages of a column chunk, in file order.
pub struct Pages {
    /// What is left of the chunk.
    rest: Bytes,
    /// Where `rest` begins in the file.
    offset: u64,
    opener: Opener,
    /// Slots that no page has accounted for yet; the chunk's metadata said how many there are.
    slots_left: u64,
    /// Data pages given or skipped so far.
    page: usize,
    dictionary_seen: bool,
    next: Option<Pending>,
}

/// A page whose header is read and whose body is not opened.
struct Pending {
    header: PageHeader,
    body: Bytes,
    offset: u64,
}

impl Pages {
    /// The pages in `bytes`, which begin at `offset` of the file and hold `slots` level entries.
    pub fn new(bytes: Bytes, offset: u64, slots: u64, context: PageContext) -> Self {
        Self {
            rest: bytes,
            offset,
            opener: Opener::new(context),
            slots_left: slots,
            page: 0,
            dictionary_seen: false,
            next: None,
        }
    }

    /// Opens the next page that carries values; `None` after the last.
    ///
    /// # Errors
    /// `Malformed` if a page breaks a rule, or the chunk ends before its slots do.
    pub fn next_page(&mut self) -> Result<Option<Page>> {
        loop {
            let Some(Pending { header, body, offset }) = self.pending()? else {
                return Ok(None);
            };
            let page = self.opener.open(&header, body);
            match page.map_err(|e| e.at_offset(offset).at_page(self.page))? {
                None => {}
                Some(Page::Dictionary(dictionary)) => {
                    self.note_dictionary(offset)?;
                    return Ok(Some(Page::Dictionary(dictionary)));
                }
                Some(Page::Data(data)) => {
                    self.note_data(data.slots).map_err(|e| e.at_offset(offset))?;
                    return Ok(Some(Page::Data(data)));
                }
            }
        }
    }

    /// Skips the next page without opening it if it is a data page of at most `max_slots` slots; says of how many.
    ///
    /// # Errors
    /// As [`Pages::next_page`].
    pub fn skip_page(&mut self, max_slots: usize) -> Result<Option<usize>> {
        let Some(pending) = self.pending()? else {
            return Ok(None);
        };
        let header = &pending.header;
        let num_values = match header.r#type {
            PageType::DataPage => header.data_page_header.as_ref().map(|h| h.num_values),
            PageType::DataPageV2 => header.data_page_header_v2.as_ref().map(|h| h.num_values),
            _ => None,
        };
        let slots = num_values.and_then(|n| usize::try_from(n).ok()).filter(|n| *n <= max_slots);
        match slots {
            Some(slots) => {
                self.note_data(slots).map_err(|e| e.at_offset(pending.offset))?;
                Ok(Some(slots))
            }
            None => {
                self.next = Some(pending);
                Ok(None)
            }
        }
    }

    /// Index of the page that was given last, the dictionary not counted.
    pub fn page(&self) -> usize {
        self.page.saturating_sub(1)
    }

    /// The next page, header read; `None` when every slot is accounted for.
    fn pending(&mut self) -> Result<Option<Pending>> {
        if let Some(pending) = self.next.take() {
            return Ok(Some(pending));
        }
        // A chunk of zero slots has no pages that matter; what follows the last slot is not ours.
        if self.slots_left == 0 {
            return Ok(None);
        }
        let offset = self.offset;
        let at = |e: Error, page| e.at_offset(offset).at_page(page);
        if self.rest.is_empty() {
            return Err(at(
                Error::malformed(
                    Spec::Pages,
                    format_args!("the column chunk ends with {} values missing", self.slots_left),
                ),
                self.page,
            ));
        }
        let mut reader = thrift::Reader::new(&self.rest);
        let header = PageHeader::read(&mut reader).map_err(|e| at(e, self.page))?;
        let body_len =
            crate::page::count(header.compressed_page_size, "PageHeader.compressed_page_size")
                .map_err(|e| at(e, self.page))?;
        if body_len > reader.rest().len() {
            return Err(at(
                Error::mismatch(
                    Spec::Pages,
                    "compressed_page_size",
                    format_args!(
                        "at most the {} bytes left of the column chunk",
                        reader.rest().len()
                    ),
                    body_len,
                ),
                self.page,
            ));
        }
        let header_len = reader.position();
        let mut taken = self.rest.split_to(header_len + body_len);
        self.offset += taken.len() as u64;
        let body = taken.split_off(header_len);
        Ok(Some(Pending { header, body, offset }))
    }

    fn note_dictionary(&mut self, offset: u64) -> Result<()> {
        if self.dictionary_seen || self.page > 0 {
            return Err(Error::malformed(
                Spec::Pages,
                "a dictionary page must be the first of its column chunk, and the only one",
            )
            .at_offset(offset));
        }
        self.dictionary_seen = true;
        Ok(())
    }

    fn note_data(&mut self, slots: usize) -> Result<()> {
        self.page += 1;
        self.slots_left = self.slots_left.checked_sub(slots as u64).ok_or_else(|| {
            Error::mismatch(
                Spec::Pages,
                "num_values of the page",
                format_args!("at most the {} that the column chunk has left", self.slots_left),
                slots,
            )
            .at_page(self.page - 1)
        })?;
        Ok(())
    }
}
