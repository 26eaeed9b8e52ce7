//! [`Validity`] records which slots hold a value; it allocates a bitmap only at the first null.

use arrow_buffer::{BooleanBuffer, Buffer, NullBuffer};

use crate::error::Result;
use crate::simd::bitmap::Bitmap;

/// Which of the slots so far hold a value.
#[derive(Debug, Default)]
pub(crate) struct Validity {
    len: usize,
    bitmap: Option<Bitmap>,
}

impl Validity {
    /// Slots so far.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// The bitmap, if a null was seen.
    pub(crate) fn bitmap(&self) -> Option<&Bitmap> {
        self.bitmap.as_ref()
    }

    /// Appends `n` slots that all hold a value, or none.
    pub(crate) fn push_run(&mut self, valid: bool, n: usize) {
        if n == 0 {
            return;
        }
        match &mut self.bitmap {
            None if valid => {}
            _ => self.materialized().append_run(valid, n),
        }
        self.len += n;
    }

    /// Like [`Validity::push_run`]; returns how many of the slots hold a value.
    pub(crate) fn push_all(&mut self, valid: bool, n: usize) -> usize {
        self.push_run(valid, n);
        if valid { n } else { 0 }
    }

    /// Appends the `n` slots whose bits `append` appends; returns how many of them hold a value.
    ///
    /// # Errors
    /// That of `append`.
    pub(crate) fn push_bits(
        &mut self,
        n: usize,
        append: impl FnOnce(&mut Bitmap) -> Result<()>,
    ) -> Result<usize> {
        let start = self.len;
        let bitmap = self.materialized();
        append(bitmap)?;
        let values = bitmap.count_ones(start..start + n);
        self.len += n;
        Ok(values)
    }

    /// Appends the `n` low bits of `word`, the first slot in the lowest.
    pub(crate) fn push_word(&mut self, word: u64, n: usize) {
        if self.bitmap.is_none() && word == low_ones(n) {
            self.len += n;
            return;
        }
        self.materialized().append_word(word, n);
        self.len += n;
    }

    /// Appends those of the slots of `other` whose bits of `selection` are set.
    pub(crate) fn push_selected(&mut self, other: &Self, selection: &Bitmap) {
        let slots = selection.count_ones(0..other.len);
        match &other.bitmap {
            None => self.push_run(true, slots),
            Some(bits) => {
                self.materialized().append_kept(bits, 0, selection, 0, other.len);
                self.len += slots;
            }
        }
    }

    /// The Arrow form; `None` if every slot holds a value.
    pub(crate) fn into_nulls(self) -> Option<NullBuffer> {
        let (words, len) = self.bitmap?.into_words();
        let nulls = NullBuffer::new(BooleanBuffer::new(Buffer::from_vec(words), 0, len));
        (nulls.null_count() > 0).then_some(nulls)
    }

    fn materialized(&mut self) -> &mut Bitmap {
        let len = self.len;
        self.bitmap.get_or_insert_with(|| {
            let mut bitmap = Bitmap::default();
            bitmap.append_run(true, len);
            bitmap
        })
    }
}

/// A word whose `n` lowest bits are set; `n` is at most 64.
fn low_ones(n: usize) -> u64 {
    if n == 0 { 0 } else { u64::MAX >> (64 - n) }
}
