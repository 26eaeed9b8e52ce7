//! Binding finds the columns of a predicate in the schema of a file, or of batches.
//!
//! Trap: names in the Parquet tree and in the Arrow schema differ inside lists, and a target schema
//! can rename columns.

use std::sync::Arc;

use arrow_schema::{DataType, Field, FieldRef, Fields, Schema as ArrowSchema};

use super::bind_test::bind_test;
use super::bound::{
    Bound, BoundColumn, BoundNode, BoundTest, ColumnOrigin, ListLevels, PathStep, ReadOf,
};
use super::calculation::Expression;
use super::computed::{BoundComputed, BoundExpression, Question};
use super::covering::Covering;
use super::expression::{Column, Function, Op, Predicate, Term, Test, VariantPart};
use super::origin::{locate, origin, part_origin};
use super::type_name::TypeName;
use crate::error::{Error, Result};
use crate::format::KeyValue;
use crate::geo::Edges;
use crate::schema::{
    ArrowOptions, Groups, Kind, Node as SchemaNode, Projection, Schema, Shape, find_field,
    has_geodesic_edges, map_to_arrow,
};
use crate::variant::{VariantArray, VariantShape};

impl Predicate {
    /// Binds the predicate to the schema of a file that is read with `options`; `key_values` are
    /// those of the file.
    ///
    /// # Errors
    /// `Usage` if a column does not exist, is ambiguous, or does not support the test, or if a
    /// literal does not fit the type of its column.
    pub fn bind(
        &self,
        schema: &Schema,
        key_values: &[KeyValue],
        options: &ArrowOptions,
    ) -> Result<Bound> {
        self.bind_with(schema, key_values, options, &|_| false)
    }

    /// As `bind`, for a file whose leaves that are null in all rows are known.
    pub(crate) fn bind_with(
        &self,
        schema: &Schema,
        key_values: &[KeyValue],
        options: &ArrowOptions,
        is_all_null: &dyn Fn(usize) -> bool,
    ) -> Result<Bound> {
        let mut names = Vec::new();
        self.for_each_column(|path| names.push(path.to_owned()));
        // Columns are not read here: it is found out where they come from.
        let (projection, groups) = (Projection::names(names), Groups::AreDescribed);
        let mapping = map_to_arrow(schema, key_values, &projection, options, groups)?;
        let target = options.target.is_some();
        let find = |path: &str, wants_list: bool| {
            if target {
                return find_field(mapping.schema.fields(), path);
            }
            locate(&mapping.shapes, schema.node_named(path)?, wants_list)
                .ok_or_else(|| Error::usage(format_args!(
                    "{path:?} stands for a part of a list that rows do not have: name the list or its element"
                )))
        };
        let mut binder = Binder {
            fields: mapping.schema.fields(),
            file: Some((schema, &mapping.shapes)),
            key_values,
            is_all_null,
            find: &find,
            columns: Vec::new(),
        };
        let root = binder.root(self)?;
        Ok(Bound { root, columns: binder.columns.into(), by_name: target })
    }

    /// Binds the predicate to the schema of batches, without a file: it can be evaluated, and
    /// prunes nothing.
    ///
    /// # Errors
    /// As for [`Predicate::bind`].
    pub fn bind_to(&self, schema: &ArrowSchema) -> Result<Bound> {
        let find = |path: &str, _| find_field(schema.fields(), path);
        let mut binder = Binder {
            fields: schema.fields(),
            file: None,
            key_values: &[],
            is_all_null: &|_| false,
            find: &find,
            columns: Vec::new(),
        };
        let root = binder.root(self)?;
        Ok(Bound { root, columns: binder.columns.into(), by_name: true })
    }
}

impl Predicate {
    /// Calls `visit` with every column.
    fn for_each_column(&self, mut visit: impl FnMut(&str)) {
        for part in self.terms() {
            match part {
                Term::Test(column, _) => visit(&column.path),
                Term::Function(columns, _) => columns.iter().for_each(|column| visit(column)),
                Term::Computed(value, _) => value.columns().for_each(|column| visit(&column.path)),
                Term::Comparison(left, _, right) => {
                    left.columns().chain(right.columns()).for_each(|column| visit(&column.path));
                }
                Term::Constant(_) | Term::Not | Term::And(_) | Term::Or(_) => {}
            }
        }
    }
}

/// Binds a test of a computed value; without columns, its constant result.
fn node(computed: BoundComputed) -> Result<BoundNode> {
    match computed.columns.is_empty() {
        true => computed.constant().map(BoundNode::Constant),
        false => Ok(BoundNode::Computed(Box::new(computed))),
    }
}

/// Maximum nesting of a bound predicate, because its tree is walked recursively. The text form is
/// nested less deeply.
const MAX_NESTED: usize = 512;

#[cold]
fn nothing_to_join() -> Error {
    Error::usage("a predicate with a part missing")
}

/// Binds one predicate.
struct Binder<'a> {
    fields: &'a Fields,
    file: Option<(&'a Schema, &'a [Shape])>,
    key_values: &'a [KeyValue],
    is_all_null: &'a dyn Fn(usize) -> bool,
    /// Finds the positions of the nodes on a path; the flag says whether the list itself is meant
    /// where a name may stand for it or its element.
    find: &'a dyn Fn(&str, bool) -> Result<Vec<usize>>,
    columns: Vec<BoundColumn>,
}

impl Binder<'_> {
    fn root(&mut self, predicate: &Predicate) -> Result<Arc<BoundNode>> {
        // Bound operands, and their depth, until an operator takes them.
        let mut bound: Vec<(Arc<BoundNode>, usize)> = Vec::new();
        for part in predicate.terms() {
            let n = match part {
                Term::And(n) | Term::Or(n) => *n,
                Term::Not => 1,
                _ => 0,
            };
            let of_part = bound.split_off(bound.len().saturating_sub(n));
            let depth = of_part.iter().map(|(_, depth)| depth + 1).max().unwrap_or(1);
            if depth > MAX_NESTED {
                return Err(Error::usage(format_args!(
                    "a predicate nested more than {MAX_NESTED} deep: join what stands side by side \
                     with Predicate::all_of and Predicate::any_of"
                )));
            }
            let mut of_part = of_part.into_iter().map(|(node, _)| node);
            let node = match part {
                Term::Constant(value) => BoundNode::Constant(*value),
                Term::Test(column, test) => self.test(column, test)?,
                Term::Function(columns, function) => self.function(columns, function)?,
                Term::Computed(value, test) => self.computed(value, test, part)?,
                Term::Comparison(left, op, right) => self.comparison(left, *op, right, part)?,
                Term::Not => BoundNode::Not(of_part.next().ok_or_else(nothing_to_join)?),
                Term::And(_) => BoundNode::And(of_part.collect()),
                Term::Or(_) => BoundNode::Or(of_part.collect()),
            };
            bound.push((Arc::new(node), depth));
        }
        bound.pop().map(|(node, _)| node).ok_or_else(nothing_to_join)
    }

    fn test(&mut self, column: &Column, test: &Test) -> Result<BoundNode> {
        let tests_group = matches!(test, Test::IsNull | Test::IsEmpty);
        let mut bound = self.column(column, tests_group)?;
        let test = bind_test(&bound, test)?;
        if let (
            BoundTest::Intersects(_),
            Edges::Planar,
            ColumnOrigin::File(file),
            Some((schema, _)),
        ) = (&test, bound.edges, &mut bound.origin, self.file)
        {
            file.covering = Covering::find(schema, self.key_values, &file.leaf).map(Box::new);
        }
        self.columns.push(bound);
        Ok(BoundNode::Test(self.columns.len() - 1, test))
    }

    fn expression(&mut self, expression: &Expression) -> Result<BoundExpression> {
        BoundExpression::bind(expression, |column| {
            if column.elements.is_some() {
                return Err(Error::usage(format_args!(
                    "{expression}: {column} can only be compared with literals"
                )));
            }
            let bound = self.column(column, false)?;
            let data_type = bound.data_type.clone();
            self.columns.push(bound);
            Ok((self.columns.len() - 1, data_type))
        })
    }

    /// A test of a computed value.
    fn computed(&mut self, value: &Expression, test: &Test, term: &Term) -> Result<BoundNode> {
        let bound = self.expression(value)?;
        let subject = BoundColumn {
            path: value.to_string(),
            elements: None,
            path_steps: Vec::new(),
            data_type: bound.data_type().clone(),
            edges: Edges::Planar,
            part: None,
            origin: ColumnOrigin::Unknown,
            read: ReadOf::Named,
        };
        let test = bind_test(&subject, test)?;
        let question = Question::Test(Box::new(subject), test);
        node(BoundComputed::new(bound, question, Predicate::new(term.clone()).to_string()))
    }

    /// A comparison of two values; one without columns is the literal that it is.
    fn comparison(
        &mut self,
        left: &Expression,
        op: Op,
        right: &Expression,
        term: &Term,
    ) -> Result<BoundNode> {
        let literal = |side: &Expression| match side.columns().next() {
            Some(_) => Ok(None),
            None => {
                let no_column = |_: &Column| Err(Error::usage("an expression with columns"));
                BoundExpression::bind(side, no_column)?.constant(&side.to_string()).map(Some)
            }
        };
        let folded = match (literal(left)?, literal(right)?) {
            (None, None) => {
                let text = Predicate::new(term.clone()).to_string();
                let (left, right) = (self.expression(left)?, self.expression(right)?);
                return node(left.compared(op, right, text)?);
            }
            (None, Some(right)) => left.clone().compare(op, right.into()),
            (Some(left), _) => right.clone().compare(op.flipped(), left.into()),
        };
        match &folded.root {
            Term::Test(column, test) => self.test(column, test),
            Term::Computed(value, test) => self.computed(value, test, term),
            Term::Constant(value) => Ok(BoundNode::Constant(*value)),
            _ => Err(nothing_to_join()),
        }
    }

    fn function(&mut self, columns: &[String], function: &Function) -> Result<BoundNode> {
        let mut numbers = Vec::new();
        for path in columns {
            let column = Column { path: path.clone(), elements: None, part: None };
            let mut bound = self.column(&column, true)?;
            if let (ColumnOrigin::File(file), Some((schema, _))) = (&mut bound.origin, self.file) {
                // A function may look at everything below a group.
                let whole = schema.node_named(path).map(SchemaNode::leaves);
                file.needed = whole.map_or_else(|_| file.needed.clone(), Iterator::collect);
            }
            numbers.push(self.columns.len());
            self.columns.push(bound);
        }
        Ok(BoundNode::Function(numbers, function.clone()))
    }

    fn column(&self, column: &Column, tests_group: bool) -> Result<BoundColumn> {
        let FieldWalk { field, shape, path_steps, lists } = self.walk_to(column, tests_group)?;
        if let Some(part) = &column.part {
            check_part(column, field, part)?;
        }
        let data_type = match (&column.part, field.data_type()) {
            (Some(part), _) => part.data_type.clone(),
            (None, DataType::Dictionary(_, value)) => (**value).clone(),
            (None, DataType::RunEndEncoded(_, values)) => values.data_type().clone(),
            (None, other) => other.clone(),
        };
        let is_missing = shape.is_some_and(|shape| shape.kind == Kind::Missing);
        let read = match path_steps.first() {
            Some(PathStep::Field(name))
                if is_missing && path_steps.contains(&PathStep::Elements) =>
            {
                ReadOf::Around(name.clone())
            }
            _ if is_missing => ReadOf::Nothing,
            _ => ReadOf::Named,
        };
        let origin = match (self.file, shape) {
            (Some((schema, _)), Some(shape)) => match &column.part {
                Some(part) if !is_missing => part_origin(schema, shape, part, self.is_all_null)?,
                _ => origin(schema, shape, lists)?,
            },
            _ => ColumnOrigin::Unknown,
        };
        let edges = match &origin {
            ColumnOrigin::File(file) => Edges::for_leaf(&file.leaf),
            _ => None,
        };
        let edges = edges.unwrap_or_else(|| match has_geodesic_edges(field) {
            true => Edges::Geodesic,
            false => Edges::Planar,
        });
        Ok(BoundColumn {
            path: column.path.clone(),
            elements: column.elements,
            path_steps,
            data_type,
            edges,
            part: column.part.clone(),
            origin,
            read,
        })
    }

    /// The way to a column, which lies in a list only if its elements are tested.
    fn walk_to(&self, column: &Column, tests_group: bool) -> Result<FieldWalk<'_>> {
        let path = &column.path;
        let positions = (self.find)(path, column.elements.is_some() || tests_group)?;
        let mut walk = FieldWalk::new(self.fields, self.file.map(|(_, shapes)| shapes), &positions)
            .ok_or_else(|| Error::usage(format_args!("there is no field {path:?}")))?;
        // Without further names, the elements of a list are meant.
        while column.elements.is_some() && walk.enter_list() {}
        match (column.elements, walk.path_steps.contains(&PathStep::Elements)) {
            (Some(_), true) | (None, false) => Ok(walk),
            (Some(_), false) => Err(Error::usage(format_args!(
                "column {path}: any and all are for lists, and this is {}",
                TypeName(walk.field.data_type())
            ))),
            (None, true) => Err(Error::usage(format_args!(
                "column {path} lies in a list: say any({path}) or all({path})"
            ))),
        }
    }
}

/// A way through Arrow fields, and through the shapes beside them.
struct FieldWalk<'a> {
    field: &'a FieldRef,
    shape: Option<&'a Shape>,
    path_steps: Vec<PathStep>,
    lists: Vec<ListLevels>,
}

impl<'a> FieldWalk<'a> {
    fn new(fields: &'a Fields, shapes: Option<&'a [Shape]>, positions: &[usize]) -> Option<Self> {
        let (first, rest) = positions.split_first()?;
        let field = fields.get(*first)?;
        let shape = shapes.and_then(|shapes| shapes.get(*first));
        let path_steps = vec![PathStep::Field(field.name().clone())];
        let mut walk = Self { field, shape, path_steps, lists: Vec::new() };
        for position in rest {
            match walk.field.data_type() {
                DataType::Struct(fields) => {
                    walk.field = fields.get(*position)?;
                    walk.path_steps.push(PathStep::Field(walk.field.name().clone()));
                    walk.shape = match walk.shape.map(|shape| &shape.kind) {
                        Some(Kind::Struct(children)) => children.get(*position),
                        Some(Kind::Missing) => walk.shape,
                        _ => None,
                    };
                }
                _ => walk.enter_list().then_some(())?,
            }
        }
        Some(walk)
    }

    /// Enters the elements, if this is a list or a map.
    fn enter_list(&mut self) -> bool {
        let (DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _)) = self.field.data_type()
        else {
            return false;
        };
        self.field = item;
        self.path_steps.push(PathStep::Elements);
        self.shape = match self.shape {
            Some(Shape {
                kind:
                    Kind::List { item: inner, element, .. } | Kind::Map { entries: inner, element, .. },
                levels,
                ..
            }) => {
                self.lists.push(ListLevels {
                    slot: levels.slot.into(),
                    present: levels.present.into(),
                    element: (*element).into(),
                });
                Some(inner)
            }
            Some(shape) if shape.kind == Kind::Missing => Some(shape),
            _ => None,
        };
        true
    }
}

/// Checks that a part is asked of a VARIANT, and as a type that its columns can have.
fn check_part(column: &Column, field: &Field, part: &VariantPart) -> Result<()> {
    if column.elements.is_some() {
        return Err(Error::usage(format_args!(
            "{column}: any and all are for lists, and parts are of single VARIANT values"
        )));
    }
    if !VariantArray::is_variant(field) {
        return Err(Error::usage(format_args!(
            "{column}: {} is {}, and not a VARIANT",
            column.path,
            TypeName(field.data_type())
        )));
    }
    match part.data_type == VariantArray::unshredded_type() {
        true => Ok(()),
        false => VariantShape::scalar(part.data_type.clone()).map(|_| ()),
    }
}
