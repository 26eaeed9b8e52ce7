//! [`VariantPlaces`]: where the VARIANT columns of a field are, at its top or inside structs, lists
//! and maps.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, GenericListArray, GenericListViewArray, MapArray,
    OffsetSizeTrait, StructArray, make_array,
};
use arrow_buffer::{BooleanBufferBuilder, NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field, FieldRef, Fields};

use super::array::VariantArray;
use super::malformed::malformed;
use crate::error::Result;
use crate::rows::own_elements;
use crate::schema::{Kind, Shape, element_of};

/// The VARIANT columns in a field, each with what is to be done with it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum VariantPlaces<T> {
    /// There is none, or nothing is to be done with it.
    None,
    /// The field is one.
    Here(T),
    /// Those in each field of a struct.
    Fields(Vec<Self>),
    /// Those in the elements of a list, or the entries of a map.
    Elements(Box<Self>),
}

impl<T> VariantPlaces<T> {
    /// The places in a field. `of` says what is to be done with a VARIANT: it gets its path in the
    /// Parquet schema, its field, and the field in the same place of `wanted`.
    pub(crate) fn find(
        field: &Field,
        wanted: Option<&Field>,
        of: &mut impl FnMut(&str, &Field, Option<&Field>) -> Result<Option<T>>,
    ) -> Result<Self> {
        Self::find_below(field.name(), field, wanted, of)
    }

    fn find_below(
        path: &str,
        field: &Field,
        wanted: Option<&Field>,
        of: &mut impl FnMut(&str, &Field, Option<&Field>) -> Result<Option<T>>,
    ) -> Result<Self> {
        if VariantArray::is_variant(field) {
            return Ok(of(path, field, wanted)?.map_or(Self::None, Self::Here));
        }
        match field.data_type() {
            DataType::Struct(fields) => {
                let wanted = wanted.and_then(|wanted| match wanted.data_type() {
                    DataType::Struct(wanted) => Some(wanted),
                    _ => None,
                });
                let below = fields.iter().map(|field| {
                    let named = |wanted: &&FieldRef| wanted.name() == field.name();
                    let wanted = wanted.and_then(|wanted| wanted.iter().find(named));
                    let wanted = wanted.map(AsRef::as_ref);
                    Self::find_below(&format!("{path}.{}", field.name()), field, wanted, of)
                });
                let below = below.collect::<Result<Vec<_>>>()?;
                Ok(if below.iter().all(Self::is_none) { Self::None } else { Self::Fields(below) })
            }
            DataType::Map(entries, _) => {
                let wanted = element(wanted).map(with_names_of_map);
                let entries = with_names_of_map(entries);
                Self::elements(&format!("{path}.key_value"), &entries, wanted.as_ref(), of)
            }
            of_list => match element_of(of_list) {
                Some(item) => {
                    Self::elements(&format!("{path}.list.element"), item, element(wanted), of)
                }
                None => Ok(Self::None),
            },
        }
    }

    fn elements(
        path: &str,
        item: &Field,
        wanted: Option<&Field>,
        of: &mut impl FnMut(&str, &Field, Option<&Field>) -> Result<Option<T>>,
    ) -> Result<Self> {
        Ok(match Self::find_below(path, item, wanted, of)? {
            Self::None => Self::None,
            below => Self::Elements(Box::new(below)),
        })
    }

    /// Whether nothing is to be done.
    pub(crate) fn is_none(&self) -> bool {
        matches!(self, Self::None)
    }

    /// All places, depth-first.
    pub(crate) fn all(&self) -> Vec<&T> {
        match self {
            Self::None => Vec::new(),
            Self::Here(of) => vec![of],
            Self::Fields(below) => below.iter().flat_map(Self::all).collect(),
            Self::Elements(below) => below.all(),
        }
    }

    /// The same places with something else to be done; `None` with nothing.
    pub(crate) fn map<U>(
        &self,
        to: &mut impl FnMut(&T) -> Result<Option<U>>,
    ) -> Result<VariantPlaces<U>> {
        Ok(match self {
            Self::None => VariantPlaces::None,
            Self::Here(of) => to(of)?.map_or(VariantPlaces::None, VariantPlaces::Here),
            Self::Fields(below) => {
                let below = below.iter().map(|of| of.map(to)).collect::<Result<Vec<_>>>()?;
                match below.iter().all(VariantPlaces::is_none) {
                    true => VariantPlaces::None,
                    false => VariantPlaces::Fields(below),
                }
            }
            Self::Elements(below) => match below.map(to)? {
                VariantPlaces::None => VariantPlaces::None,
                below => VariantPlaces::Elements(Box::new(below)),
            },
        })
    }

    /// The field with each VARIANT as `to` has it.
    pub(crate) fn field(
        &self,
        field: &FieldRef,
        to: &impl Fn(&T, &FieldRef) -> FieldRef,
    ) -> FieldRef {
        let data_type = match (self, field.data_type()) {
            (Self::Here(of), _) => return to(of, field),
            (Self::Fields(below), DataType::Struct(fields)) => {
                let pairs = below.iter().zip(fields);
                DataType::Struct(pairs.map(|(of, field)| of.field(field, to)).collect())
            }
            (Self::Elements(of), data_type) => with_element(data_type, |item| of.field(item, to)),
            _ => return field.clone(),
        };
        Arc::new(field.as_ref().clone().with_data_type(data_type))
    }

    /// Calls `visit` with each place and its node of a shape.
    pub(crate) fn for_each_shape<'s>(
        &self,
        shape: &'s Shape,
        visit: &mut impl FnMut(&T, &'s Shape) -> Result<()>,
    ) -> Result<()> {
        match (self, &shape.kind) {
            (Self::Here(of), _) => visit(of, shape),
            (Self::Fields(below), Kind::Struct(children)) => {
                let mut pairs = below.iter().zip(children);
                pairs.try_for_each(|(of, shape)| of.for_each_shape(shape, visit))
            }
            (Self::Elements(of), Kind::List { item, .. } | Kind::Map { entries: item, .. }) => {
                of.for_each_shape(item, visit)
            }
            _ => Ok(()),
        }
    }

    /// The array with each VARIANT as `to` makes it, from its array and its nulls. What lies below
    /// a null or outside all lists may be no VARIANT: it is null for `to`, and as null as it was in
    /// the result. Fields are those of `wanted` where their types are.
    ///
    /// # Errors
    /// Those of `to`; `Malformed(Variant)` if an array has another type than its field.
    pub(crate) fn convert(
        &self,
        array: &ArrayRef,
        wanted: Option<&DataType>,
        to: &mut impl FnMut(&T, &ArrayRef, Option<NullBuffer>) -> Result<ArrayRef>,
    ) -> Result<ArrayRef> {
        self.convert_live(array, None, wanted, to)
    }

    fn convert_live(
        &self,
        array: &ArrayRef,
        live: Option<&NullBuffer>,
        wanted: Option<&DataType>,
        to: &mut impl FnMut(&T, &ArrayRef, Option<NullBuffer>) -> Result<ArrayRef>,
    ) -> Result<ArrayRef> {
        match (self, array.data_type()) {
            (Self::None, _) => Ok(array.clone()),
            (Self::Here(of), _) => {
                let made = to(of, array, NullBuffer::union(array.nulls(), live))?;
                if live.is_none() {
                    return Ok(made);
                }
                let data = made.to_data().into_builder().nulls(array.nulls().cloned());
                Ok(make_array(data.build()?))
            }
            (Self::Fields(below), DataType::Struct(fields)) => {
                let of = array.as_struct();
                let live = NullBuffer::union(of.nulls(), live);
                let wanted = |i: usize| match wanted {
                    Some(DataType::Struct(fields)) => fields.get(i),
                    _ => None,
                };
                let pairs = below.iter().zip(of.columns()).enumerate();
                let columns = pairs.map(|(i, (below, of))| {
                    let wanted = wanted(i).map(|field| field.data_type());
                    below.convert_live(of, live.as_ref(), wanted, to)
                });
                let columns = columns.collect::<Result<Vec<_>>>()?;
                let fields = fields.iter().zip(&columns).enumerate();
                let fields: Fields =
                    fields.map(|(i, (field, column))| typed(field, column, wanted(i))).collect();
                let nulls = of.nulls().cloned();
                Ok(Arc::new(StructArray::try_new_with_length(fields, columns, nulls, of.len())?))
            }
            (Self::Elements(below), data_type) => match data_type {
                DataType::List(_) => below.list::<i32>(array, live, wanted, to),
                DataType::LargeList(_) => below.list::<i64>(array, live, wanted, to),
                DataType::ListView(_) => below.list_view::<i32>(array, live, wanted, to),
                DataType::LargeListView(_) => below.list_view::<i64>(array, live, wanted, to),
                DataType::FixedSizeList(field, size) => {
                    let of = array.as_fixed_size_list();
                    let nulls = of.nulls().cloned();
                    let live = NullBuffer::union(of.nulls(), live);
                    let live = live.map(|live| live.expand(usize::try_from(*size).unwrap_or(0)));
                    let (values, field) =
                        below.elements_of(of.values(), live.as_ref(), (field, wanted), to)?;
                    Ok(Arc::new(FixedSizeListArray::try_new(field, *size, values, nulls)?))
                }
                DataType::Map(field, is_sorted) => {
                    let of = array.as_map();
                    let nulls = of.nulls().cloned();
                    let entries: ArrayRef = Arc::new(of.entries().clone());
                    let (offsets, entries, live) =
                        trimmed(of.offsets(), &entries, live, of.nulls());
                    let (entries, field) =
                        below.elements_of(&entries, live.as_ref(), (field, wanted), to)?;
                    let entries = entries.as_struct().clone();
                    Ok(Arc::new(MapArray::try_new(field, offsets, entries, nulls, *is_sorted)?))
                }
                other => Err(not_of_its_field(other)),
            },
            (_, other) => Err(not_of_its_field(other)),
        }
    }

    /// The elements of a list, and their field, which is that of a wanted list if it is of their
    /// type.
    fn elements_of(
        &self,
        values: &ArrayRef,
        live: Option<&NullBuffer>,
        (field, wanted): (&FieldRef, Option<&DataType>),
        to: &mut impl FnMut(&T, &ArrayRef, Option<NullBuffer>) -> Result<ArrayRef>,
    ) -> Result<(ArrayRef, FieldRef)> {
        let wanted = wanted.and_then(element_of);
        let data_type = wanted.map(|field| field.data_type());
        let values = self.convert_live(values, live, data_type, to)?;
        let field = typed(field, &values, wanted);
        Ok((values, field))
    }

    /// The same for a list whose elements have these places.
    fn list<O: OffsetSizeTrait>(
        &self,
        array: &ArrayRef,
        live: Option<&NullBuffer>,
        wanted: Option<&DataType>,
        to: &mut impl FnMut(&T, &ArrayRef, Option<NullBuffer>) -> Result<ArrayRef>,
    ) -> Result<ArrayRef> {
        let (DataType::List(field) | DataType::LargeList(field)) = array.data_type() else {
            return Err(not_of_its_field(array.data_type()));
        };
        let of = array.as_list::<O>();
        let (offsets, values, live) = trimmed(of.offsets(), of.values(), live, of.nulls());
        let (values, field) = self.elements_of(&values, live.as_ref(), (field, wanted), to)?;
        let nulls = of.nulls().cloned();
        Ok(Arc::new(GenericListArray::<O>::try_new(field, offsets, values, nulls)?))
    }

    fn list_view<O: OffsetSizeTrait>(
        &self,
        array: &ArrayRef,
        live: Option<&NullBuffer>,
        wanted: Option<&DataType>,
        to: &mut impl FnMut(&T, &ArrayRef, Option<NullBuffer>) -> Result<ArrayRef>,
    ) -> Result<ArrayRef> {
        let (DataType::ListView(field) | DataType::LargeListView(field)) = array.data_type() else {
            return Err(not_of_its_field(array.data_type()));
        };
        let of = array.as_list_view::<O>();
        let lists = NullBuffer::union(of.nulls(), live);
        let mut bits = BooleanBufferBuilder::new(of.values().len());
        bits.append_n(of.values().len(), false);
        for (list, (start, size)) in of.offsets().iter().zip(of.sizes()).enumerate() {
            let start = start.as_usize();
            if lists.as_ref().is_none_or(|lists| lists.is_valid(list)) {
                (start..start + size.as_usize()).for_each(|slot| bits.set_bit(slot, true));
            }
        }
        let live = NullBuffer::new(bits.finish());
        let live = (live.null_count() > 0).then_some(live);
        let (values, field) = self.elements_of(of.values(), live.as_ref(), (field, wanted), to)?;
        let nulls = of.nulls().cloned();
        let (offsets, sizes) = (of.offsets().clone(), of.sizes().clone());
        Ok(Arc::new(GenericListViewArray::<O>::try_new(field, offsets, sizes, values, nulls)?))
    }
}

/// The elements that the offsets of lists reach, the offsets into these, and which of them are in a
/// list that is there.
fn trimmed<O: OffsetSizeTrait>(
    offsets: &OffsetBuffer<O>,
    values: &ArrayRef,
    live: Option<&NullBuffer>,
    nulls: Option<&NullBuffer>,
) -> (OffsetBuffer<O>, ArrayRef, Option<NullBuffer>) {
    let (from_zero, values) = own_elements(offsets, values);
    let lists = NullBuffer::union(nulls, live).filter(|lists| lists.null_count() > 0);
    let live = lists.map(|lists| {
        let mut bits = BooleanBufferBuilder::new(values.len());
        for (list, ends) in from_zero.windows(2).enumerate() {
            if let [start, end] = ends {
                bits.append_n(end.as_usize() - start.as_usize(), lists.is_valid(list));
            }
        }
        NullBuffer::new(bits.finish())
    });
    (from_zero, values, live.filter(|live| live.null_count() > 0))
}

/// A field with the type that its array has; the wanted one, if that is its type.
fn typed(field: &FieldRef, array: &ArrayRef, wanted: Option<&FieldRef>) -> FieldRef {
    match wanted.filter(|wanted| wanted.data_type() == array.data_type()) {
        Some(wanted) => wanted.clone(),
        None if field.data_type() == array.data_type() => field.clone(),
        None => Arc::new(field.as_ref().clone().with_data_type(array.data_type().clone())),
    }
}

/// The entries of a map with the names that they have in Parquet.
fn with_names_of_map(entries: &Field) -> Field {
    let DataType::Struct(pair) = entries.data_type() else { return entries.clone() };
    let named = pair.iter().zip(["key", "value"]);
    let named = named.map(|(field, name)| field.as_ref().clone().with_name(name));
    entries.clone().with_data_type(DataType::Struct(named.collect()))
}

fn element(field: Option<&Field>) -> Option<&Field> {
    element_of(field?.data_type()).map(AsRef::as_ref)
}

/// The type of a list or map with another element.
fn with_element(data_type: &DataType, to: impl Fn(&FieldRef) -> FieldRef) -> DataType {
    match data_type {
        DataType::List(item) => DataType::List(to(item)),
        DataType::LargeList(item) => DataType::LargeList(to(item)),
        DataType::ListView(item) => DataType::ListView(to(item)),
        DataType::LargeListView(item) => DataType::LargeListView(to(item)),
        DataType::FixedSizeList(item, size) => DataType::FixedSizeList(to(item), *size),
        DataType::Map(entries, is_sorted) => DataType::Map(to(entries), *is_sorted),
        other => other.clone(),
    }
}

#[cold]
fn not_of_its_field(found: &DataType) -> crate::error::Error {
    malformed(format_args!("a column around a VARIANT is {found}, which is not as its field says"))
}
