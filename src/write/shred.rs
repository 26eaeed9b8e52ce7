//! Shredding computes the levels of the leaves of a batch from its arrays, and finds where their
//! values lie. It is the inverse of `read::assemble`.
//!
//! Spec: README.md, "Nested Encoding" (Dremel). A stream of level entries goes down the tree, node
//! by node. An entry is *live* as long as no node was null or empty, and has a slot in the array of
//! the node. A null ends an entry, a list makes several of it.
//! Trap: what lies below a null may be anything in Arrow, lists with elements included; only live
//! slots are looked at.

use std::ops::Range;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, NullArray};
use arrow_buffer::NullBuffer;
use arrow_schema::DataType;

use crate::error::{Error, Result};
use crate::levels::{LeafLevels, LevelBuffer, LevelView, Period};
use crate::memory;
use crate::schema::{Kind, Leaf, Shape, is_empty_group};

/// A leaf of some rows: its levels, and the arrays that its values lie in.
pub(crate) struct LeafColumn {
    /// The levels of all rows.
    pub(crate) levels: LeafLevels,
    /// The values, in order.
    pub(crate) parts: Vec<ArrayPart>,
    /// The name of the leaf, for errors.
    pub(crate) path: String,
}

/// Values in one array: those of the slots that are not null.
pub(crate) struct ArrayPart {
    /// The array.
    pub(crate) array: ArrayRef,
    /// Its nulls, those of dictionary values included.
    pub(crate) nulls: Option<NullBuffer>,
    /// The slots of the array that count, in order.
    pub(crate) slots: Vec<Range<usize>>,
}

impl LeafColumn {
    /// A leaf without rows.
    pub(super) fn new(leaf: &Leaf) -> Self {
        let levels = LeafLevels::new(leaf.max_def, leaf.max_rep);
        Self { levels, parts: Vec::new(), path: leaf.path.dotted() }
    }
}

/// Appends the rows of a top-level column to its leaves. `leaves` are in the order of the shape.
///
/// # Errors
/// `Usage` if a required node is null; `Unsupported` if an array does not match its shape.
pub(super) fn shred(array: &ArrayRef, shape: &Shape, leaves: &mut [LeafColumn]) -> Result<()> {
    let mut shredder = Shredder { leaves, next: 0 };
    shredder.node(array, shape, Stream::rows(array.len())?)
}

struct Shredder<'a> {
    leaves: &'a mut [LeafColumn],
    /// The leaf that is met next, depth-first.
    next: usize,
}

/// Level entries that go down the tree.
struct Stream {
    def: LevelBuffer,
    rep: LevelBuffer,
    /// The definition level of live entries; the others have less.
    live: u16,
    /// The slots of the array of the node that entries have, in order: the live entries, and those
    /// that `nulls` ended.
    slots: Vec<Range<usize>>,
    /// The slots that are null in a node above, back to the last list. They are not cut out of the
    /// slots one by one: there may be very many.
    nulls: Option<NullBuffer>,
}

impl Stream {
    fn rows(n: usize) -> Result<Self> {
        let (mut def, mut rep) = (LevelBuffer::default(), LevelBuffer::default());
        def.push_run(0, n)?;
        rep.push_run(0, n)?;
        let slots = if n == 0 { Vec::new() } else { vec![Range { start: 0, end: n }] };
        Ok(Self { def, rep, live: 0, slots, nulls: None })
    }

    /// The same entries once more.
    fn copied(&self) -> Result<Self> {
        Ok(Self {
            def: self.def.copied()?,
            rep: self.rep.copied()?,
            live: self.live,
            slots: memory::cloned(&self.slots)?,
            nulls: self.nulls.clone(),
        })
    }

    /// Whether every entry is live.
    fn all_live(&self) -> bool {
        self.def.uniform() == Some(self.live)
    }

    /// The row that the `n`th live entry belongs to.
    fn row_of(&self, n: usize) -> usize {
        let (mut live, mut row) = (0, 0usize);
        for i in 0..self.def.len() {
            row += usize::from(self.rep.level(i) == 0);
            if self.def.level(i) == self.live {
                if live == n {
                    break;
                }
                live += 1;
            }
        }
        row.saturating_sub(1)
    }

    /// Ends the entries that are null; the others live on, a level higher.
    fn optional(self, nulls: Option<&NullBuffer>) -> Result<Self> {
        match nulls.filter(|nulls| nulls.null_count() > 0) {
            None => self.without_ends(),
            Some(nulls) => self.ended_by(nulls),
        }
    }

    /// No live entry is null: all live on, a level higher.
    fn without_ends(self) -> Result<Self> {
        let live = self.live + 1;
        let mut def = LevelBuffer::default();
        match self.def.uniform() {
            Some(_) if self.all_live() => def.push_run(live, self.def.len())?,
            Some(_) => def = self.def,
            None => {
                let levels = (0..self.def.len()).map(|i| self.def.level(i));
                let levels = levels.map(|l| l + u16::from(l == self.live));
                def.push_vec(memory::collected(levels)?)?;
            }
        }
        Ok(Self { def, live, ..self })
    }

    fn ended_by(self, nulls: &NullBuffer) -> Result<Self> {
        let slots: usize = self.slots.iter().map(Range::len).sum();
        let each_has_a_slot = slots == self.def.len();
        let this = if each_has_a_slot { self } else { self.without_nulls()? };
        let all = NullBuffer::union(this.nulls.as_ref(), Some(nulls));
        let n = this.def.len();
        let explicit;
        let old = match this.def.view() {
            LevelView::Mixed(levels) => Some(levels),
            LevelView::Uniform(_) => None,
            LevelView::Regular(period) => {
                explicit = period.levels(0..n)?;
                Some(&explicit[..])
            }
        };
        let levels: Vec<u16> = match old {
            None if this.all_live() => validity(nulls, &this.slots, this.live)?,
            // Without entries, there is no level.
            None => memory::filled(this.def.uniform().unwrap_or_default(), n)?,
            Some(old) if each_has_a_slot => {
                // An entry that was null above stays null.
                let mut levels = validity(all.as_ref().unwrap_or(nulls), &this.slots, 0)?;
                levels.iter_mut().zip(old).for_each(|(level, old)| *level += old);
                levels
            }
            Some(old) => raise_valid(old, this.live, &validity(nulls, &this.slots, 0)?)?,
        };
        let mut def = LevelBuffer::default();
        def.push_vec(levels)?;
        Ok(Self { def, rep: this.rep, live: this.live + 1, slots: this.slots, nulls: all })
    }

    /// Cuts the nulls out of the slots: every slot that is left is that of a live entry.
    fn without_nulls(self) -> Result<Self> {
        let Some(nulls) = &self.nulls else {
            return Ok(self);
        };
        let mut slots = memory::vec_for(self.slots.len())?;
        for range in &self.slots {
            let bits = nulls.inner().slice(range.start, range.len());
            let runs = bits.set_slices();
            let slot = |(start, end)| range.start + start..range.start + end;
            memory::extend(&mut slots, runs.map(slot))?;
        }
        Ok(Self { slots, nulls: None, ..self })
    }

    /// The elements of the lists.
    fn elements(&self, list: impl Fn(usize) -> Range<usize>) -> Result<ElementSlots> {
        let (mut slots, mut elements, mut empty) = (Vec::new(), 0, 0);
        for slot in self.slots.iter().cloned().flatten() {
            let range = list(slot);
            elements += range.len();
            empty += usize::from(range.is_empty());
            if !range.is_empty() {
                push_range(&mut slots, range)?;
            }
        }
        Ok(ElementSlots { slots, elements, empty })
    }

    /// Makes an entry for every element of the lists; an empty list stays one entry and ends.
    fn lists(self, rep: u16, list: impl Fn(usize) -> Range<usize>) -> Result<Self> {
        let this = self.without_nulls()?;
        let live = this.live + 1;
        let n = this.def.len();
        let ElementSlots { slots, elements, empty } = this.elements(&list)?;
        let lens = this.slots.iter().cloned().flatten().map(|slot| list(slot).len());
        // Dead entries and empty lists stay one entry each.
        let dead = n - this.slots.iter().map(Range::len).sum::<usize>();
        let total = elements + empty + dead;
        if this.all_live()
            && let Some(first) = this.rep.uniform()
            && let Some(period) = period(first, rep, lens.clone())
        {
            let (mut def, mut rep) = (LevelBuffer::default(), LevelBuffer::default());
            def.push_run(live, total)?;
            rep.push_regular(period, n)?;
            return Ok(Self { def, rep, live, slots, nulls: None });
        }
        let no_empty = empty == 0;
        let (def, reps) = this.element_levels(rep, lens, total, no_empty)?;
        let mut rep = LevelBuffer::default();
        rep.push_vec(reps)?;
        Ok(Self { def, rep, live, slots, nulls: None })
    }

    /// The levels of the `total` entries that lists make, whose lengths are given for each live
    /// entry. An entry that is not live stays one entry, like an empty list; without nulls,
    /// `no_empty` says that there are no empty lists.
    fn element_levels(
        &self,
        rep: u16,
        mut lens: impl Iterator<Item = usize>,
        total: usize,
        no_empty: bool,
    ) -> Result<(LevelBuffer, Vec<u16>)> {
        let live = self.live + 1;
        let mut reps = memory::filled(rep, total)?;
        let mut defs = LevelBuffer::default();
        let mut at = 0;
        let mut begin = |reps: &mut Vec<u16>, old_rep: u16, len: usize| {
            if let Some(first) = reps.get_mut(at) {
                *first = old_rep;
            }
            at += len.max(1);
        };
        let old_rep = |i: usize| self.rep.level(i);
        if self.all_live() {
            if no_empty {
                defs.push_run(live, total)?;
                lens.enumerate().for_each(|(i, len)| begin(&mut reps, old_rep(i), len));
            } else {
                let mut levels = memory::filled(live, total)?;
                let mut entry = 0;
                for (i, len) in lens.enumerate() {
                    begin(&mut reps, old_rep(i), len);
                    if len == 0
                        && let Some(level) = levels.get_mut(entry)
                    {
                        *level = self.live;
                    }
                    entry += len.max(1);
                }
                defs.push_vec(levels)?;
            }
        } else {
            let mut levels = memory::vec_for(total)?;
            for i in 0..self.def.len() {
                let level = self.def.level(i);
                let len = if level == self.live {
                    lens.next().expect("a live entry has a slot")
                } else {
                    0
                };
                begin(&mut reps, old_rep(i), len);
                match len {
                    0 => levels.push(level),
                    len => levels.resize(levels.len() + len, live),
                }
            }
            defs.push_vec(levels)?;
        }
        Ok((defs, reps))
    }
}

/// The elements of lists.
struct ElementSlots {
    slots: Vec<Range<usize>>,
    /// How many they are.
    elements: usize,
    /// Number of lists without any.
    empty: usize,
}

/// The levels of lists that all have the same number of elements, and more than one.
fn period(first: u16, rest: u16, mut lens: impl Iterator<Item = usize>) -> Option<Period> {
    let slots = lens.next().filter(|slots| *slots > 1)?;
    lens.all(|len| len == slots).then_some(Period { first, rest, slots })
}

/// A number for each of the slots: `null`, or one more if it is valid.
fn validity(nulls: &NullBuffer, slots: &[Range<usize>], null: u16) -> Result<Vec<u16>> {
    const BITS: [u16; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
    let n: usize = slots.iter().map(Range::len).sum();
    // The last word is written whole.
    let mut out = memory::vec_for(n + 64)?;
    for range in slots {
        if range.len() < 8 {
            out.extend(range.clone().map(|slot| null + u16::from(nulls.is_valid(slot))));
            continue;
        }
        let end = out.len() + range.len();
        let bits = nulls.inner().slice(range.start, range.len());
        let chunks = bits.bit_chunks();
        for word in chunks.iter().chain(std::iter::once(chunks.remainder_bits())) {
            for byte in word.to_le_bytes() {
                let byte = u16::from(byte);
                out.extend_from_slice(&BITS.map(|bit| null + u16::from(byte & bit != 0)));
            }
        }
        out.truncate(end);
    }
    Ok(out)
}

/// The levels, one higher where an entry is live and valid. `valid` has a number for each live
/// entry.
fn raise_valid(levels: &[u16], live: u16, valid: &[u16]) -> Result<Vec<u16>> {
    let mut at = 0;
    // Without a branch, because it could not be predicted.
    let raise = |&level: &u16| {
        let is_live = u16::from(level == live);
        // After the last live entry, nothing more is live.
        let is_valid = valid.get(at).copied().unwrap_or_default();
        at += usize::from(is_live);
        level + (is_live & is_valid)
    };
    memory::collected(levels.iter().map(raise))
}

/// Appends a range, joined with the last one where it continues that.
fn push_range(ranges: &mut Vec<Range<usize>>, range: Range<usize>) -> Result<()> {
    match ranges.last_mut() {
        Some(last) if last.end == range.start => last.end = range.end,
        _ => memory::push(ranges, range)?,
    }
    Ok(())
}

impl Shredder<'_> {
    fn node(&mut self, array: &ArrayRef, shape: &Shape, stream: Stream) -> Result<()> {
        match &shape.kind {
            Kind::Leaf { .. } => self.leaf(array, shape, stream),
            Kind::Struct(children) => {
                let Some(array) = array.as_struct_opt() else {
                    return Err(unexpected(array, shape));
                };
                let stream = self.present(array.nulls(), shape, stream)?;
                if let ([only], 0) = (&children[..], array.num_columns())
                    && is_empty_group(children)
                {
                    let nothing: ArrayRef = Arc::new(NullArray::new(array.len()));
                    return self.node(&nothing, only, stream);
                }
                if array.num_columns() != children.len() {
                    return Err(Error::usage(format_args!(
                        "the struct \"{}\" has {} fields, its schema {}",
                        shape.field.name(),
                        array.num_columns(),
                        children.len()
                    )));
                }
                for (child, shape) in array.columns().iter().zip(children) {
                    self.node(child, shape, stream.copied()?)?;
                }
                Ok(())
            }
            Kind::List { item, rep, .. } => self.list(array, shape, item, *rep, stream),
            Kind::Map { entries, rep, .. } => {
                let Some(map) = array.as_map_opt() else {
                    return Err(unexpected(array, shape));
                };
                let stream = self.present(map.nulls(), shape, stream)?;
                let offsets = map.offsets();
                let stream = stream.lists(*rep, |i| span(offsets.get(i..i + 2)))?;
                let inner: ArrayRef = Arc::new(map.entries().clone());
                self.node(&inner, entries, stream)
            }
            Kind::Missing => Err(unexpected(array, shape)),
        }
    }

    fn list(
        &mut self,
        array: &ArrayRef,
        shape: &Shape,
        item: &Shape,
        rep: u16,
        stream: Stream,
    ) -> Result<()> {
        let stream = self.present(array.nulls(), shape, stream)?;
        let (stream, values) = match array.data_type() {
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                let offsets = list.offsets();
                (stream.lists(rep, |i| span(offsets.get(i..i + 2)))?, list.values())
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                let offsets = list.offsets();
                (stream.lists(rep, |i| span(offsets.get(i..i + 2)))?, list.values())
            }
            DataType::ListView(_) => {
                let list = array.as_list_view::<i32>();
                let (starts, sizes) = (list.offsets(), list.sizes());
                (stream.lists(rep, |i| view(starts.get(i), sizes.get(i)))?, list.values())
            }
            DataType::LargeListView(_) => {
                let list = array.as_list_view::<i64>();
                let (starts, sizes) = (list.offsets(), list.sizes());
                (stream.lists(rep, |i| view(starts.get(i), sizes.get(i)))?, list.values())
            }
            DataType::FixedSizeList(_, _) => {
                let list = array.as_fixed_size_list();
                let n = usize::try_from(list.value_length()).expect("Arrow has no negative length");
                (stream.lists(rep, |i| i * n..(i + 1) * n)?, list.values())
            }
            _ => return Err(unexpected(array, shape)),
        };
        self.node(values, item, stream)
    }

    fn leaf(&mut self, array: &ArrayRef, shape: &Shape, stream: Stream) -> Result<()> {
        let nulls = array.logical_nulls().filter(|nulls| nulls.null_count() > 0);
        let optional = shape.levels.present > stream.live;
        let rows = array.len();
        let Some(leaf) = self.leaves.get_mut(self.next) else {
            return Err(unexpected(array, shape));
        };
        // Outside lists and below structs that are all there, the nulls of the array are the
        // levels.
        let straight = stream.all_live() && stream.slots.first().is_some_and(|s| s.len() == rows);
        let (slots, nulls) = if straight && optional && leaf.levels.max_def() == 1 {
            match &nulls {
                None => leaf.levels.push_run(stream.live + 1, rows)?,
                Some(nulls) => leaf.levels.push_validity(nulls.validity(), nulls.offset(), rows)?,
            }
            (stream.slots, nulls)
        } else {
            let stream = present(&leaf.path, nulls.as_ref(), shape, stream)?;
            leaf.levels.append(stream.def, stream.rep)?;
            (stream.slots, stream.nulls)
        };
        if !slots.is_empty() {
            leaf.parts.push(ArrayPart { array: array.clone(), nulls, slots });
        }
        self.next += 1;
        Ok(())
    }

    /// Steps over the node itself: optional ones end entries, required ones must be there.
    fn present(&self, nulls: Option<&NullBuffer>, shape: &Shape, stream: Stream) -> Result<Stream> {
        let path = self.leaves.get(self.next).map_or("", |leaf| &leaf.path);
        present(path, nulls, shape, stream)
    }
}

fn present(
    path: &str,
    nulls: Option<&NullBuffer>,
    shape: &Shape,
    stream: Stream,
) -> Result<Stream> {
    if shape.levels.present > stream.live {
        return stream.optional(nulls);
    }
    if let Some(nulls) = nulls.filter(|nulls| nulls.null_count() > 0) {
        let is_live =
            |slot: &usize| stream.nulls.as_ref().is_none_or(|above| above.is_valid(*slot));
        let mut live = stream.slots.iter().cloned().flatten().filter(is_live);
        if let Some(at) = live.position(|slot| nulls.is_null(slot)) {
            return Err(Error::usage(format_args!(
                "\"{}\" is required and is null in row {} of the batch",
                shape.field.name(),
                stream.row_of(at)
            ))
            .at_column(path));
        }
    }
    Ok(stream)
}

/// From a list's two offsets to its elements.
fn span<O: arrow_buffer::ArrowNativeType>(offsets: Option<&[O]>) -> Range<usize> {
    match offsets {
        Some([start, end]) => start.as_usize()..end.as_usize(),
        _ => 0..0,
    }
}

fn view<O: arrow_buffer::ArrowNativeType>(start: Option<&O>, size: Option<&O>) -> Range<usize> {
    match (start, size) {
        (Some(start), Some(size)) => start.as_usize()..start.as_usize() + size.as_usize(),
        _ => 0..0,
    }
}

#[cold]
fn unexpected(array: &dyn Array, shape: &Shape) -> Error {
    Error::usage(format_args!(
        "\"{}\" is {} in the batch, which does not fit its place in the schema",
        shape.field.name(),
        array.data_type()
    ))
}
