//! [`FilePlan`]: how the rows of one file get the schema that the kernel wants.
//!
//! The library reads into a target schema that has the fields which the file has, with types that
//! it reads without loss and with nulls wherever there may be some. [`reshape`](crate::reshape)
//! makes the wanted columns of them: it fills in what is missing, casts what loses something, and
//! puts null masks where the kernel looks for them.

use std::sync::Arc;

use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use arrow_schema::{DataType as ArrowType, Field, FieldRef, Fields, Schema, SchemaRef};
use delta_kernel::KernelResult;
use delta_kernel::schema::{
    ColumnMetadataKey, DataType, MetadataColumnSpec, MetadataValue, StructField, StructType,
};
use marquetry::Reader;
use marquetry::read::{VariantOutput, VirtualColumn};
use marquetry::schema::MatchBy;
use url::Url;

use crate::error::{at, refused};
use crate::filter::Comparable;
use crate::reshape::{Child, Shape};

/// The schema that the kernel wants, as Arrow fields too.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) kernel: Arc<StructType>,
    pub(crate) arrow: SchemaRef,
}

/// A column of the batches of one file.
#[derive(Debug)]
pub(crate) enum Column {
    /// Of the column of the read batch at this position.
    Read(usize, Shape),
    /// All null.
    Missing,
    /// The numbers of the rows in the file: the last column of the read batch.
    RowNumber,
    /// The URL of the file.
    FileName,
}

/// How one file is read.
#[derive(Debug)]
pub(crate) struct FilePlan {
    pub(crate) columns: Vec<Column>,
    pub(crate) comparable: Comparable,
    target: SchemaRef,
    row_number: Option<Arc<str>>,
    unshreds: bool,
}

impl FilePlan {
    /// Plans to read `wanted` from a file with these fields.
    pub(crate) fn new(wanted: &Wanted, file: &Fields, location: &Url) -> KernelResult<Self> {
        let mut planner = Planner {
            location,
            path: Vec::new(),
            comparable: Comparable::default(),
            unshreds: false,
        };
        let data = || wanted.kernel.fields().zip(wanted.arrow.fields());
        let data = || data().filter(|(kernel, _)| generated(kernel).is_none());
        let data_fields: Fields = data().map(|(_, field)| Arc::clone(field)).collect();
        let found = planner.find(&data_fields, file)?;
        let mut found = found.into_iter();
        let (mut columns, mut target) = (Vec::new(), Vec::new());
        for (kernel, field) in wanted.kernel.fields().zip(wanted.arrow.fields()) {
            columns.push(match generated(kernel) {
                Some(MetadataColumnSpec::RowIndex) => Column::RowNumber,
                Some(MetadataColumnSpec::FilePath) => Column::FileName,
                Some(other) => {
                    let what =
                        format_args!("column {} ({other:?}) is not stored in files", field.name());
                    return Err(refused(location, what));
                }
                None => match found.next().flatten().and_then(|at| file.get(at)) {
                    Some(found) => {
                        let (read, shape) = planner.field(field, kernel.data_type(), found)?;
                        target.push(read);
                        Column::Read(target.len() - 1, shape)
                    }
                    None => planner.missing(field).map(|()| Column::Missing)?,
                },
            });
        }
        let row_number = columns.iter().any(|column| matches!(column, Column::RowNumber));
        Ok(Self {
            columns,
            comparable: planner.comparable,
            row_number: row_number.then(|| unused_name(&target)),
            target: Arc::new(Schema::new(target)),
            unshreds: planner.unshreds,
        })
    }

    /// The reader that returns what this plan makes batches of.
    pub(crate) fn apply<S>(&self, reader: Reader<S>) -> Reader<S> {
        // Not `Reader::target`, which plans the read at once: it is planned when it starts.
        let mut options = reader.read_options().clone();
        let target = Arc::clone(&self.target);
        options.arrow = options.arrow.with_target(target, MatchBy::FieldIdOrName);
        let mut reader = reader.options(options);
        if self.unshreds {
            reader = reader.variants(VariantOutput::Unshredded);
        }
        match &self.row_number {
            Some(name) => {
                reader.virtual_column(VirtualColumn::RowNumber { name: Arc::clone(name) })
            }
            None => reader,
        }
    }
}

/// The generated column that a field stands for.
fn generated(field: &StructField) -> Option<MetadataColumnSpec> {
    if let Some(spec) = field.get_metadata_column_spec() {
        return Some(spec);
    }
    let file_name = delta_kernel::reserved_field_ids::FILE_NAME;
    match field.get_config_value(&ColumnMetadataKey::ParquetFieldId) {
        Some(MetadataValue::Number(id)) if *id == file_name => Some(MetadataColumnSpec::FilePath),
        _ => None,
    }
}

fn unused_name(fields: &[Field]) -> Arc<str> {
    let mut name = "row number".to_owned();
    while fields.iter().any(|field| *field.name() == name) {
        name.push('_');
    }
    name.into()
}

struct Planner<'a> {
    location: &'a Url,
    /// Names from the top to the current field.
    path: Vec<String>,
    comparable: Comparable,
    unshreds: bool,
}

impl Planner<'_> {
    fn find(&self, wanted: &Fields, file: &Fields) -> KernelResult<Vec<Option<usize>>> {
        MatchBy::FieldIdOrName.find(wanted, file).map_err(at(self.location))
    }

    /// The field to read for `wanted`, and what becomes of it.
    fn field(
        &mut self,
        wanted: &Field,
        kernel: &DataType,
        file: &Field,
    ) -> KernelResult<(Field, Shape)> {
        self.path.push(wanted.name().clone());
        let planned = match kernel {
            DataType::Variant(fields) => self.variant(wanted, fields, file),
            _ => self.data_type(wanted.data_type(), kernel, file.data_type()),
        };
        self.path.pop();
        let (data_type, shape) = planned?;
        // Nulls of a group show in what it holds.
        let mut read = wanted.clone().with_data_type(data_type).with_nullable(true);
        if matches!(kernel, DataType::Variant(_))
            && is_shredded(wanted.data_type(), file.data_type())
        {
            read.metadata_mut().insert(EXTENSION_TYPE_NAME_KEY.to_owned(), VARIANT.to_owned());
        }
        Ok((read, shape))
    }

    fn data_type(
        &mut self,
        wanted: &ArrowType,
        kernel: &DataType,
        file: &ArrowType,
    ) -> KernelResult<(ArrowType, Shape)> {
        use ArrowType as A;
        match (wanted, kernel, file) {
            (A::Struct(to), DataType::Struct(fields), A::Struct(from)) => {
                let kernels: Vec<_> = fields.fields().map(StructField::data_type).collect();
                self.children(to, &kernels, from)
            }
            (A::List(to), DataType::Array(array), A::List(from) | A::LargeList(from)) => {
                let (item, shape) = self.hidden(to, array.element_type(), from)?;
                Ok((A::List(Arc::new(item)), Shape::List(Box::new(shape))))
            }
            (A::Map(to, sorted), DataType::Map(map), A::Map(from, _)) => {
                let (A::Struct(to_pair), A::Struct(from_pair)) = (to.data_type(), from.data_type())
                else {
                    return Err(self.no_way(file, wanted));
                };
                let ([to_key, to_value], [key, value]) = (&to_pair[..], &from_pair[..]) else {
                    return Err(self.no_way(file, wanted));
                };
                let (key, key_shape) = self.hidden(to_key, map.key_type(), key)?;
                let (value, value_shape) = self.hidden(to_value, map.value_type(), value)?;
                let pair = Fields::from(vec![key.with_nullable(false), value]);
                let entries = to.as_ref().clone().with_data_type(A::Struct(pair));
                let shape = Shape::Map(Box::new([key_shape, value_shape]));
                Ok((A::Map(Arc::new(entries), *sorted), shape))
            }
            (A::Struct(_) | A::List(_) | A::Map(..), _, _) => Err(self.no_way(file, wanted)),
            (_, _, A::Struct(_) | A::List(_) | A::LargeList(_) | A::Map(..)) => {
                Err(self.no_way(file, wanted))
            }
            _ => {
                let read = if is_cast_after_reading(file, wanted) { file } else { wanted };
                if read == wanted && !self.path.is_empty() {
                    self.comparable.0.insert(self.path.clone(), wanted.clone());
                }
                Ok((read.clone(), Shape::Leaf))
            }
        }
    }

    /// An element of a list, or a part of a map: no predicate names it.
    fn hidden(
        &mut self,
        wanted: &FieldRef,
        kernel: &DataType,
        file: &FieldRef,
    ) -> KernelResult<(Field, Shape)> {
        let outside = std::mem::take(&mut self.comparable);
        let planned = self.field(wanted, kernel, file);
        self.comparable = outside;
        planned
    }

    /// The fields of a struct.
    fn children(
        &mut self,
        wanted: &Fields,
        kernels: &[&DataType],
        file: &Fields,
    ) -> KernelResult<(ArrowType, Shape)> {
        let found = self.find(wanted, file)?;
        let (mut read, mut shapes) = (Vec::new(), Vec::new());
        for ((wanted, kernel), found) in wanted.iter().zip(kernels).zip(found) {
            shapes.push(match found.and_then(|at| file.get(at)) {
                Some(found) => {
                    let (field, shape) = self.field(wanted, kernel, found)?;
                    read.push(field);
                    Child::Read(read.len() - 1, shape)
                }
                None => self.missing(wanted).map(|()| Child::Missing)?,
            });
        }
        if read.is_empty() {
            // Some leaf tells where the struct is null; it is dropped afterwards.
            read.extend(file.first().map(|field| one_leaf(field)));
        }
        Ok((ArrowType::Struct(read.into()), Shape::Struct(shapes)))
    }

    /// A VARIANT: two fields, or a shredded one that the library puts together.
    fn variant(
        &mut self,
        wanted: &Field,
        parts: &StructType,
        file: &Field,
    ) -> KernelResult<(ArrowType, Shape)> {
        let (ArrowType::Struct(to), ArrowType::Struct(from)) =
            (wanted.data_type(), file.data_type())
        else {
            return Err(self.no_way(file.data_type(), wanted.data_type()));
        };
        if !is_shredded(wanted.data_type(), file.data_type()) {
            let kernels: Vec<_> = parts.fields().map(StructField::data_type).collect();
            let outside = std::mem::take(&mut self.comparable);
            let planned = self.children(to, &kernels, from);
            self.comparable = outside;
            return planned;
        }
        if self.path.len() > 1 || file.extension_type_name() != Some(VARIANT) {
            return Err(refused(
                self.location,
                format_args!(
                    "column {} is a shredded VARIANT, {}: only those at the top of the schema, and with the annotation \
                     VARIANT, are put together",
                    self.path.join("."),
                    file.data_type()
                ),
            ));
        }
        self.unshreds = true;
        // The library returns them in this order.
        let place = |part: &FieldRef| usize::from(part.name() != "metadata");
        let children = to.iter().map(|part| Child::Read(place(part), Shape::Leaf)).collect();
        Ok((wanted.data_type().clone(), Shape::Struct(children)))
    }

    fn missing(&self, wanted: &Field) -> KernelResult<()> {
        if wanted.is_nullable() {
            return Ok(());
        }
        let path: Vec<_> = self.path.iter().chain([wanted.name()]).map(String::as_str).collect();
        Err(refused(
            self.location,
            format_args!("there is no column {}, and it may not be null", path.join(".")),
        ))
    }

    #[cold]
    fn no_way(&self, file: &ArrowType, wanted: &ArrowType) -> delta_kernel::KernelError {
        let dotted = self.path.join(".");
        refused(
            self.location,
            format_args!("column {dotted} is {file}, which does not read as {wanted}"),
        )
    }
}

/// Whether the kernel wants a conversion that the library does not do, because it takes the values
/// for something else or drops digits.
fn is_cast_after_reading(file: &ArrowType, wanted: &ArrowType) -> bool {
    use arrow_schema::TimeUnit::{Microsecond, Nanosecond};
    match (file, wanted) {
        // Fractions of microseconds are dropped.
        (ArrowType::Timestamp(Nanosecond, _), ArrowType::Timestamp(..)) => true,
        (ArrowType::Timestamp(_, from), ArrowType::Timestamp(_, to)) => from != to,
        // Checkpoints of some writers have no annotations.
        (ArrowType::Int32, ArrowType::Date32)
        | (ArrowType::Int64, ArrowType::Timestamp(Microsecond, _)) => true,
        _ => false,
    }
}

/// Whether a VARIANT of the file has other parts than the wanted one. A shredded one need not have
/// more of them: it may have `typed_value` in the place of `value`.
fn is_shredded(wanted: &ArrowType, file: &ArrowType) -> bool {
    let (ArrowType::Struct(wanted), ArrowType::Struct(file)) = (wanted, file) else { return false };
    wanted.len() != file.len() || wanted.iter().any(|part| file.find(part.name()).is_none())
}

/// The name of the Arrow extension that the library gives VARIANT columns.
const VARIANT: &str = "arrow.parquet.variant";

/// `field` with one leaf only.
fn one_leaf(field: &Field) -> Field {
    let data_type = match field.data_type() {
        ArrowType::Struct(fields) => {
            ArrowType::Struct(fields.first().map(|field| one_leaf(field)).into_iter().collect())
        }
        ArrowType::List(item) => ArrowType::List(Arc::new(one_leaf(item))),
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}
