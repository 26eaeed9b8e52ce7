//! Converts VARIANT columns to what the reader asked for: as stored, reconstructed, in another
//! shape, as JSON text, or the parts at some paths.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef};
use arrow_buffer::NullBuffer;
use arrow_schema::extension::EXTENSION_TYPE_NAME_KEY;
use arrow_schema::{DataType, Field, FieldRef};

use super::footer::Footer;
use super::options::{ReadOptions, VariantColumn, VariantOutput};
use crate::error::{Error, Result};
use crate::limits::Growth;
use crate::memory;
use crate::schema::{ArrowOptions, Projection, Shape, to_arrow};
use crate::variant::{
    VariantArray, VariantPath, VariantPlaces, VariantShape, check_shredding, needed_leaves,
    variant_around,
};

/// The field of a part.
fn field_of(part: &VariantColumn) -> FieldRef {
    let field = Field::new(&part.name, part.data_type.clone(), true);
    Arc::new(match part.data_type {
        _ if part.data_type == VariantArray::unshredded_type() => {
            with_extension(field, "arrow.parquet.variant")
        }
        DataType::FixedSizeBinary(16) => with_extension(field, "arrow.uuid"),
        _ => field,
    })
}

fn with_extension(field: Field, name: &str) -> Field {
    let mut metadata = field.metadata().clone();
    metadata.insert(EXTENSION_TYPE_NAME_KEY.to_owned(), name.to_owned());
    metadata.insert("ARROW:extension:metadata".to_owned(), String::new());
    field.with_metadata(metadata)
}

/// How the column of a shape is returned.
#[derive(Debug, Clone)]
pub(super) enum Output {
    /// It is given as it is.
    Stored,
    /// VARIANT columns, it or in it, are given otherwise, which makes it a column of this type.
    Variants(VariantPlaces<VariantOutput>, DataType),
    /// Parts of a VARIANT, in the place of it; the names of the structs around it.
    Parts(Vec<String>, Vec<(VariantPath, DataType)>),
}

/// The outputs of the shapes of a plan, and their fields.
#[derive(Debug)]
pub(super) struct Outputs {
    pub(super) of_shapes: Vec<Output>,
    pub(super) fields: Vec<FieldRef>,
}

impl Outputs {
    /// Decides how the VARIANT columns of `shapes` are read, and appends the columns that are read
    /// only in part.
    ///
    /// # Errors
    /// `Usage` if a part is wanted of a column that is no VARIANT, or if a part cannot have the
    /// wanted type.
    pub(super) fn new(
        footer: &Footer,
        options: &ReadOptions,
        shapes: &mut Vec<Shape>,
    ) -> Result<Self> {
        let mut of_shapes = memory::vec_for(shapes.len())?;
        let mut fields = memory::vec_for(shapes.len())?;
        for shape in shapes.iter() {
            let target = options.arrow.target.as_ref();
            let target = target.and_then(|of| of.field_with_name(shape.field.name()).ok());
            let places = VariantPlaces::find(&shape.field, target, &mut |_, stored, target| {
                let output = wanted_output(options, stored, target)?;
                Ok((output != VariantOutput::Stored).then_some(output))
            })?;
            if places.is_none() {
                of_shapes.push(Output::Stored);
                fields.push(shape.field.clone());
                continue;
            }
            places.for_each_shape(shape, &mut |_, shape| check_file(footer, shape))?;
            let field = places.field(&shape.field, &|output, field| output_field(field, output));
            of_shapes.push(Output::Variants(places, field.data_type().clone()));
            fields.push(field);
        }
        let mut wanted = options.variant_columns.as_slice();
        while let Some(first) = wanted.first() {
            // Adjacent parts of one column are extracted together.
            let n = wanted.iter().take_while(|other| other.column == first.column).count();
            let (parts, rest) = wanted.split_at(n);
            wanted = rest;
            let shape = shape_of(footer, options, parts)?;
            let mut around = Vec::new();
            let mut field = &shape.field;
            let node = footer.schema().node_named(&first.column)?;
            if node.max_rep() > 0 {
                return Err(Error::usage(format_args!(
                    "parts of VARIANT values that lie in a list cannot be had: {:?}",
                    first.column
                )));
            }
            let depth = node.path().names().len();
            while around.len() + 1 < depth {
                let DataType::Struct(inner) = field.data_type() else { break };
                let Some(only) = inner.first() else { break };
                around.push(only.name().clone());
                field = only;
            }
            let paths = parts.iter().map(|part| (part.path.clone(), part.data_type.clone()));
            of_shapes.push(Output::Parts(around, paths.collect()));
            fields.extend(parts.iter().map(field_of));
            shapes.push(shape);
        }
        Ok(Self { of_shapes, fields })
    }
}

/// How a VARIANT column is returned: by the options, or in the shape of a target.
fn wanted_output(
    options: &ReadOptions,
    stored: &Field,
    target: Option<&Field>,
) -> Result<VariantOutput> {
    if options.variants != VariantOutput::Stored {
        return Ok(options.variants.clone());
    }
    let Some(target) = target.filter(|target| target.data_type() != stored.data_type()) else {
        return Ok(VariantOutput::Stored);
    };
    let shape = VariantShape::from_data_type(target.data_type())?;
    if shape.data_type_like(stored.data_type()) != *target.data_type() {
        return Err(Error::usage(format_args!(
            "column {}: a VARIANT is given as {}, and not as {}",
            target.name(),
            shape.data_type_like(stored.data_type()),
            target.data_type()
        )));
    }
    Ok(VariantOutput::Shape(shape))
}

/// Checks that the file shreds a VARIANT into types that there are for it.
fn check_file(footer: &Footer, shape: &Shape) -> Result<()> {
    let mut first = None;
    shape.for_each_leaf(&mut |leaf, _| _ = first.get_or_insert(leaf));
    match first {
        Some(leaf) => check_shredding(variant_around(footer.schema().leaf_node(leaf)?)),
        None => Ok(()),
    }
}

/// The field of a VARIANT that is given otherwise.
fn output_field(field: &FieldRef, output: &VariantOutput) -> FieldRef {
    let plain = field.as_ref().clone();
    Arc::new(match output {
        VariantOutput::Stored => plain,
        VariantOutput::Unshredded => {
            let data_type = VariantShape::any().data_type_like(field.data_type());
            plain.with_data_type(data_type)
        }
        VariantOutput::Shape(shape) => {
            let data_type = shape.data_type_like(field.data_type());
            plain.with_data_type(data_type)
        }
        VariantOutput::Json => with_extension(plain.with_data_type(DataType::Utf8), "arrow.json"),
    })
}

/// A shape of the leaves that these parts of one column need.
fn shape_of(footer: &Footer, options: &ReadOptions, parts: &[VariantColumn]) -> Result<Shape> {
    let name = parts.first().map_or("", |part| part.column.as_str());
    let node = footer.schema().node_named(name)?;
    let is_all_null = |leaf: usize| !options.verify_statistics && footer.is_all_null(leaf);
    let mut leaves = Vec::new();
    for part in parts {
        // Refuses types that no part can have.
        VariantArray::check_type(&part.data_type)?;
        leaves.extend(needed_leaves(node, &part.path, &part.data_type, &is_all_null)?.leaves);
    }
    leaves.sort_unstable();
    leaves.dedup();
    let arrow = ArrowOptions { target: None, ..options.arrow.clone() };
    let projection = Projection::leaves(leaves);
    let mapping = to_arrow(footer.schema(), footer.key_values(), &projection, &arrow)?;
    let shape = mapping.shapes.into_iter().next();
    shape.ok_or_else(|| Error::usage(format_args!("the column {name} has no leaves")))
}

impl Output {
    /// The columns that a column of a shape becomes; `growth` counts what they take while they are
    /// made.
    ///
    /// # Errors
    /// `Malformed(Variant)` if a value is cut short or contradicts itself, `Limit(Memory)` if that
    /// is too much.
    pub(super) fn apply(
        &self,
        column: ArrayRef,
        growth: &Growth,
        out: &mut Vec<ArrayRef>,
    ) -> Result<()> {
        match self {
            Self::Stored => out.push(column),
            Self::Variants(places, wanted) => {
                out.push(places.convert(&column, Some(wanted), &mut |output, array, nulls| {
                    output_array(array, nulls, output, growth)
                })?);
            }
            Self::Parts(around, parts) => {
                let mut array = column.as_struct_opt().ok_or_else(not_a_group)?;
                let mut nulls = array.nulls().cloned();
                for name in around {
                    let inner = array.column_by_name(name).and_then(|inner| inner.as_struct_opt());
                    array = inner.ok_or_else(not_a_group)?;
                    nulls = NullBuffer::union(nulls.as_ref(), array.nulls());
                }
                let variant = VariantArray::from_parts(array, nulls, growth)?;
                for (path, data_type) in parts {
                    out.push(variant.get_within(path, data_type, growth)?);
                }
            }
        }
        Ok(())
    }
}

#[cold]
fn not_a_group() -> Error {
    Error::internal("a VARIANT column is read as a struct")
}

fn output_array(
    column: &ArrayRef,
    nulls: Option<NullBuffer>,
    output: &VariantOutput,
    growth: &Growth,
) -> Result<ArrayRef> {
    let variant = || VariantArray::within(column, nulls, growth);
    Ok(match output {
        VariantOutput::Stored => column.clone(),
        VariantOutput::Unshredded => Arc::new(variant()?.unshred_within(growth)?),
        VariantOutput::Shape(shape) => Arc::new(variant()?.shred_within(shape, growth)?),
        VariantOutput::Json => Arc::new(variant()?.to_json_within(growth)?),
    })
}
