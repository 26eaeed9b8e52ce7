//! [`ListElements`]: the elements of the lists of an array, and the tests of them.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, OffsetSizeTrait};
use arrow_buffer::{BooleanBuffer, BooleanBufferBuilder, NullBuffer};
use arrow_schema::DataType;

use super::tri_state::TriState;

/// Lists taken apart.
pub(super) struct ListElements {
    /// All that the lists hold, and perhaps more.
    pub(super) values: ArrayRef,
    /// Where the elements of each list begin and end.
    pub(super) ends: Vec<(usize, usize)>,
}

impl ListElements {
    pub(super) fn from_array(array: &ArrayRef) -> Option<Self> {
        fn by_offsets<O: OffsetSizeTrait>(offsets: &[O], values: &ArrayRef) -> ListElements {
            // If the array is a slice, only its own elements.
            let first = offsets.first().map_or(0, |first| first.as_usize());
            let last = offsets.last().map_or(0, |last| last.as_usize());
            let ends = offsets.iter().zip(offsets.iter().skip(1));
            let ends = ends.map(|(from, to)| (from.as_usize() - first, to.as_usize() - first));
            ListElements { values: values.slice(first, last - first), ends: ends.collect() }
        }
        fn by_views<O: OffsetSizeTrait>(
            offsets: &[O],
            sizes: &[O],
            values: &ArrayRef,
        ) -> ListElements {
            let ends = offsets.iter().zip(sizes);
            let ends = ends.map(|(from, len)| (from.as_usize(), from.as_usize() + len.as_usize()));
            ListElements { values: Arc::clone(values), ends: ends.collect() }
        }
        Some(match array.data_type() {
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                by_offsets(list.offsets(), list.values())
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                by_offsets(list.offsets(), list.values())
            }
            DataType::Map(..) => {
                let map = array.as_map();
                let entries: ArrayRef = Arc::new(map.entries().clone());
                by_offsets(map.offsets(), &entries)
            }
            DataType::ListView(_) => {
                let list = array.as_list_view::<i32>();
                by_views(list.offsets(), list.sizes(), list.values())
            }
            DataType::LargeListView(_) => {
                let list = array.as_list_view::<i64>();
                by_views(list.offsets(), list.sizes(), list.values())
            }
            DataType::FixedSizeList(_, len) => {
                let len = usize::try_from(*len).ok()?;
                let ends = (0..array.len()).map(|i| (i * len, (i + 1) * len)).collect();
                Self { values: Arc::clone(array.as_fixed_size_list().values()), ends }
            }
            _ => return None,
        })
    }

    /// The values that lie in a list which is not null.
    pub(super) fn inside(&self, nulls: Option<&NullBuffer>) -> NullBuffer {
        let mut inside = BooleanBufferBuilder::new(self.values.len());
        inside.append_n(self.values.len(), false);
        for (i, (from, to)) in self.ends.iter().enumerate() {
            if nulls.is_none_or(|nulls| nulls.is_valid(i)) {
                (*from..*to).for_each(|at| inside.set_bit(at, true));
            }
        }
        NullBuffer::new(inside.finish())
    }

    /// True of a list if it is true of some element, false if it is false of all.
    pub(super) fn any(&self, tri_state: &TriState) -> TriState {
        let test = |test: &dyn Fn(std::ops::Range<usize>) -> bool| {
            BooleanBuffer::collect_bool(self.ends.len(), |i| {
                self.ends.get(i).is_some_and(|(from, to)| test(*from..*to))
            })
        };
        TriState {
            trues: test(&|mut range| range.any(|i| tri_state.trues.value(i))),
            falses: test(&|mut range| range.all(|i| tri_state.falses.value(i))),
        }
    }
}
