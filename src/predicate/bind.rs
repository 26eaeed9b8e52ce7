//! [`Bound`]: a predicate held against a schema. Its columns are found, its literals are values of their types.
//!
//! Every column is a way through the Arrow schema (fields by name, elements of lists), and for a file also its [`Origin`]: the leaf that tells
//! of it, with the levels that decide. Evaluation goes the first way, pruning looks at the second.
//! Trap: names in the Parquet tree and in the Arrow schema differ inside of lists, and a target schema renames at will.

use std::sync::Arc;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, FieldRef, Fields, Schema as ArrowSchema};

use super::eval::Set;
use super::like::Pattern;
use super::literal::{Kind as LiteralKind, Misfit, array_of};
use super::value::Value;
use super::{Column, Elements, Function, Literal, Op, Part, Predicate, Test};
use crate::error::{Error, Result};
use crate::format::KeyValue;
use crate::schema::convert::{Conversion, conversion};
use crate::schema::{
    ArrowOptions, Kind, Leaf, Node as SchemaNode, Projection, Repetition, Schema, Shape,
    describe_in_arrow, find_field,
};

/// A predicate that was checked against a schema: it can be pruned by, and evaluated. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Bound {
    pub(super) root: Arc<Node>,
    pub(super) columns: Arc<[BoundColumn]>,
    /// Columns are named, not numbered, in what is to be read.
    by_name: bool,
}

/// A predicate whose columns are numbers and whose literals are values.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Constant(Option<bool>),
    Test(usize, BoundTest),
    Not(Arc<Self>),
    And(Vec<Arc<Self>>),
    Or(Vec<Arc<Self>>),
    Function(Vec<usize>, Function),
}

/// A test with values of the type of its column.
#[derive(Debug, Clone)]
pub(super) enum BoundTest {
    /// Never true or false: compared with null.
    Null,
    IsNull,
    IsEmpty,
    Compare {
        op: Op,
        value: Value,
        /// The same as one value of Arrow.
        scalar: ArrayRef,
    },
    /// Equal to one value of a type that has no order here. Negated for "not equal".
    Same {
        scalar: ArrayRef,
        negated: bool,
    },
    In {
        values: Vec<Value>,
        set: Set,
        has_null: bool,
    },
    /// Both must hold.
    Both(Box<[Self; 2]>),
    StartsWith(Vec<u8>),
    Like {
        prefix: String,
        pattern: String,
    },
}

/// A column that a predicate tests.
#[derive(Debug, Clone)]
pub(super) struct BoundColumn {
    /// As it was named.
    pub(super) path: String,
    pub(super) elements: Option<Elements>,
    pub(super) way: Vec<Step>,
    /// The type of what is tested: of the values, where they are in dictionaries or runs.
    pub(super) data_type: DataType,
    pub(super) origin: Origin,
    pub(super) read: ReadOf,
}

/// What must be read of a column that is named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ReadOf {
    /// What the name says.
    Named,
    /// Nothing: the file does not have it, and it is null in every row.
    Nothing,
    /// The whole column with this name around it: the file does not have what is named, but has the list that it would lie in,
    /// and how many elements that has must be known.
    Around(String),
}

/// A step from an array into one inside of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// A column of the batch or a field of a struct.
    Field(String),
    /// The elements of a list, or the entries of a map.
    Elements,
}

/// Where a column comes from.
#[derive(Debug, Clone)]
pub(super) enum Origin {
    /// Nobody said.
    Unknown,
    /// The file does not have it: all null.
    Missing,
    /// Leaves of the file.
    File(Box<FileColumn>),
}

/// A column of a file.
#[derive(Debug, Clone)]
pub(super) struct FileColumn {
    /// The leaf that is tested, or one below the struct, list or map that is.
    pub(super) leaf: Leaf,
    /// How the values of the tested leaf become those of Arrow.
    pub(super) conversion: Option<Conversion>,
    /// Definition level from which on it is not null.
    pub(super) present: u64,
    /// Definition level from which on the tested list or map has elements.
    pub(super) element: Option<u64>,
    /// The lists on the way, outermost first.
    pub(super) lists: Vec<ListLevels>,
    /// All leaves that the tests need read.
    needed: Vec<usize>,
}

/// The definition levels of a list on the way to a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct ListLevels {
    /// From here on it has a slot.
    pub(super) slot: u64,
    /// From here on it is not null.
    pub(super) present: u64,
    /// From here on it has an element.
    pub(super) element: u64,
}

/// What a bloom filter of a leaf can be asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BloomProbe {
    /// Index of the leaf.
    pub leaf: usize,
    /// Hashes of all literals that the predicate looks for in it, sorted. [`Layout::ranges`](crate::stats::bloom::Layout::ranges) says which
    /// bytes of the filter answer for them.
    pub hashes: Vec<u64>,
}

impl Predicate {
    /// Holds the predicate against the schema of a file that is read with `options`; `key_values` are those of the file.
    ///
    /// # Errors
    /// `Usage` if a column is not there, stands for several, or is not of a kind that the test can be made of; or if a literal is none of its type.
    pub fn bind(
        &self,
        schema: &Schema,
        key_values: &[KeyValue],
        options: &ArrowOptions,
    ) -> Result<Bound> {
        let mut names = Vec::new();
        self.for_each_column(|path| names.push(path.to_owned()));
        let mapping = describe_in_arrow(schema, key_values, &Projection::names(names), options)?;
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
            find: &find,
            columns: Vec::new(),
        };
        let root = binder.root(self)?;
        Ok(Bound { root, columns: binder.columns.into(), by_name: target })
    }

    /// Holds the predicate against the schema of batches, with no file behind them: it can be evaluated, and prunes nothing.
    ///
    /// # Errors
    /// As for [`Predicate::bind`].
    pub fn bind_to(&self, schema: &ArrowSchema) -> Result<Bound> {
        let find = |path: &str, _| find_field(schema.fields(), path);
        let mut binder =
            Binder { fields: schema.fields(), file: None, find: &find, columns: Vec::new() };
        let root = binder.root(self)?;
        Ok(Bound { root, columns: binder.columns.into(), by_name: true })
    }
}

impl Predicate {
    /// Calls `visit` with every column.
    fn for_each_column(&self, mut visit: impl FnMut(&str)) {
        for part in self.parts() {
            match part {
                Part::Test(column, _) => visit(&column.path),
                Part::Function(columns, _) => columns.iter().for_each(|column| visit(column)),
                Part::Constant(_) | Part::Not | Part::And(_) | Part::Or(_) => {}
            }
        }
    }
}

impl Bound {
    /// A predicate of these columns, for batches.
    pub(super) fn new(root: Node, columns: Vec<BoundColumn>) -> Self {
        Self { root: Arc::new(root), columns: columns.into(), by_name: true }
    }

    /// The leaves of the file that the predicate needs, by index, sorted. Empty where there is no file.
    pub fn columns(&self) -> Vec<usize> {
        let mut leaves = Vec::new();
        self.root.for_each_column(&mut |column| {
            if let Some(Origin::File(file)) = self.columns.get(column).map(|column| &column.origin)
            {
                leaves.extend_from_slice(&file.needed);
            }
        });
        leaves.sort_unstable();
        leaves.dedup();
        leaves
    }

    /// The names of the columns that the predicate needs, as they were said, each once.
    pub fn paths(&self) -> Vec<&str> {
        let mut paths = Vec::new();
        self.root.for_each_column(&mut |column| {
            let path = self.columns.get(column).map_or("", |column| &column.path);
            if !paths.contains(&path) {
                paths.push(path);
            }
        });
        paths
    }

    /// The names of what must be read.
    fn names_to_read(&self) -> Vec<&str> {
        let mut names = Vec::new();
        self.root.for_each_column(&mut |column| {
            let name = self.columns.get(column).and_then(|column| match &column.read {
                ReadOf::Named => Some(column.path.as_str()),
                ReadOf::Nothing => None,
                ReadOf::Around(name) => Some(name.as_str()),
            });
            names.extend(name);
        });
        names
    }

    /// What must be read for [`Bound::evaluate`], with the options that the predicate was bound with.
    pub fn projection(&self) -> Projection {
        if self.by_name {
            return Projection::names(self.names_to_read());
        }
        Projection::leaves(self.columns())
    }

    /// The predicates all of which must be true: one for each side of the outermost `and`s, in the order in which they were said.
    pub fn conjuncts(&self) -> Vec<Self> {
        let of = |root: &Arc<Node>| Self { root: Arc::clone(root), ..self.clone() };
        match &*self.root {
            Node::And(parts) => parts.iter().map(of).collect(),
            _ => vec![self.clone()],
        }
    }

    /// Whether the predicate calls a function of the user.
    pub fn has_function(&self) -> bool {
        fn any(node: &Node) -> bool {
            match node {
                Node::Function(..) => true,
                Node::Not(inner) => any(inner),
                Node::And(parts) | Node::Or(parts) => parts.iter().any(|part| any(part)),
                Node::Constant(_) | Node::Test(..) => false,
            }
        }
        any(&self.root)
    }
}

impl Node {
    pub(super) fn for_each_column(&self, visit: &mut impl FnMut(usize)) {
        match self {
            Self::Constant(_) => {}
            Self::Test(column, _) => visit(*column),
            Self::Not(inner) => inner.for_each_column(visit),
            Self::And(parts) | Self::Or(parts) => {
                parts.iter().for_each(|part| part.for_each_column(visit));
            }
            Self::Function(columns, _) => columns.iter().for_each(|column| visit(*column)),
        }
    }

    /// Calls `visit` with every test and its column.
    pub(super) fn for_each_test(&self, visit: &mut impl FnMut(usize, &BoundTest)) {
        match self {
            Self::Constant(_) | Self::Function(..) => {}
            Self::Test(column, test) => visit(*column, test),
            Self::Not(inner) => inner.for_each_test(visit),
            Self::And(parts) | Self::Or(parts) => {
                parts.iter().for_each(|part| part.for_each_test(visit));
            }
        }
    }
}

/// A bound predicate is a tree, and what is done with it takes a piece of the stack for each level. The text form is nested less deep.
const MOST_NESTED: usize = 512;

#[cold]
fn nothing_to_join() -> Error {
    Error::usage("a predicate with a part missing")
}

/// Binds one predicate.
struct Binder<'a> {
    fields: &'a Fields,
    file: Option<(&'a Schema, &'a [Shape])>,
    /// The positions on the way to a path; told whether the list itself is meant where a name may stand for it or its element.
    find: &'a dyn Fn(&str, bool) -> Result<Vec<usize>>,
    columns: Vec<BoundColumn>,
}

impl Binder<'_> {
    fn root(&mut self, predicate: &Predicate) -> Result<Arc<Node>> {
        // What is bound, and how deep it is nested, until it becomes a part of something.
        let mut bound: Vec<(Arc<Node>, usize)> = Vec::new();
        for part in predicate.parts() {
            let n = match part {
                Part::And(n) | Part::Or(n) => *n,
                Part::Not => 1,
                _ => 0,
            };
            let of_part = bound.split_off(bound.len().saturating_sub(n));
            let depth = of_part.iter().map(|(_, depth)| depth + 1).max().unwrap_or(1);
            if depth > MOST_NESTED {
                return Err(Error::usage(format_args!(
                    "a predicate nested more than {MOST_NESTED} deep: join what stands side by side \
                     with Predicate::all_of and Predicate::any_of"
                )));
            }
            let mut of_part = of_part.into_iter().map(|(node, _)| node);
            let node = match part {
                Part::Constant(value) => Node::Constant(*value),
                Part::Test(column, test) => self.test(column, test)?,
                Part::Function(columns, function) => self.function(columns, function)?,
                Part::Not => Node::Not(of_part.next().ok_or_else(nothing_to_join)?),
                Part::And(_) => Node::And(of_part.collect()),
                Part::Or(_) => Node::Or(of_part.collect()),
            };
            bound.push((Arc::new(node), depth));
        }
        bound.pop().map(|(node, _)| node).ok_or_else(nothing_to_join)
    }

    fn test(&mut self, column: &Column, test: &Test) -> Result<Node> {
        let tests_group = matches!(test, Test::IsNull | Test::IsEmpty);
        let bound = self.column(column, tests_group)?;
        let test = bind_test(&bound, test)?;
        self.columns.push(bound);
        Ok(Node::Test(self.columns.len() - 1, test))
    }

    fn function(&mut self, columns: &[String], function: &Function) -> Result<Node> {
        let mut numbers = Vec::new();
        for path in columns {
            let column = Column { path: path.clone(), elements: None };
            let mut bound = self.column(&column, true)?;
            if let (Origin::File(file), Some((schema, _))) = (&mut bound.origin, self.file) {
                // Of a group, a function may look at everything.
                let whole = schema.node_named(path).map(SchemaNode::leaves);
                file.needed = whole.map_or_else(|_| file.needed.clone(), Iterator::collect);
            }
            numbers.push(self.columns.len());
            self.columns.push(bound);
        }
        Ok(Node::Function(numbers, function.clone()))
    }

    fn column(&self, column: &Column, tests_group: bool) -> Result<BoundColumn> {
        let path = &column.path;
        let positions = (self.find)(path, column.elements.is_some() || tests_group)?;
        let mut cursor = Walk::new(self.fields, self.file.map(|(_, shapes)| shapes), &positions)
            .ok_or_else(|| Error::usage(format_args!("there is no field {path:?}")))?;
        // Without further names, the elements of a list are meant.
        if column.elements.is_some() {
            while cursor.enter_list() {}
            if !cursor.way.contains(&Step::Elements) {
                return Err(Error::usage(format_args!(
                    "column {path}: any and all are for lists, and this is {}",
                    cursor.field.data_type()
                )));
            }
        } else if cursor.way.contains(&Step::Elements) {
            return Err(Error::usage(format_args!(
                "column {path} lies in a list: say any({path}) or all({path})"
            )));
        }
        let data_type = match cursor.field.data_type() {
            DataType::Dictionary(_, value) => (**value).clone(),
            DataType::RunEndEncoded(_, values) => values.data_type().clone(),
            other => other.clone(),
        };
        let is_missing = cursor.shape.is_some_and(|shape| shape.kind == Kind::Missing);
        let read = match cursor.way.first() {
            Some(Step::Field(name)) if is_missing && cursor.way.contains(&Step::Elements) => {
                ReadOf::Around(name.clone())
            }
            _ if is_missing => ReadOf::Nothing,
            _ => ReadOf::Named,
        };
        let origin = match (self.file, cursor.shape) {
            (Some((schema, _)), Some(shape)) => origin(schema, shape, cursor.lists)?,
            _ => Origin::Unknown,
        };
        Ok(BoundColumn {
            path: path.clone(),
            elements: column.elements,
            way: cursor.way,
            data_type,
            origin,
            read,
        })
    }
}

/// A way through Arrow fields, and through the shapes beside them.
struct Walk<'a> {
    field: &'a FieldRef,
    shape: Option<&'a Shape>,
    way: Vec<Step>,
    lists: Vec<ListLevels>,
}

impl<'a> Walk<'a> {
    fn new(fields: &'a Fields, shapes: Option<&'a [Shape]>, positions: &[usize]) -> Option<Self> {
        let (first, rest) = positions.split_first()?;
        let field = fields.get(*first)?;
        let shape = shapes.and_then(|shapes| shapes.get(*first));
        let way = vec![Step::Field(field.name().clone())];
        let mut walk = Self { field, shape, way, lists: Vec::new() };
        for position in rest {
            match walk.field.data_type() {
                DataType::Struct(fields) => {
                    walk.field = fields.get(*position)?;
                    walk.way.push(Step::Field(walk.field.name().clone()));
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

    /// Goes on to the elements, if this is a list or a map.
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
        self.way.push(Step::Elements);
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

/// Where a column of this shape comes from.
fn origin(schema: &Schema, shape: &Shape, lists: Vec<ListLevels>) -> Result<Origin> {
    if shape.kind == Kind::Missing {
        return Ok(Origin::Missing);
    }
    let mut first = None;
    shape.for_each_leaf(&mut |leaf, _| _ = first.get_or_insert(leaf));
    let Some(index) = first else {
        // A struct that is never null, with nothing in it that the file has.
        return Ok(Origin::Unknown);
    };
    let leaf = schema.leaf(index)?;
    let conversion = match shape.kind {
        Kind::Leaf { .. } => conversion(&leaf, shape.field.data_type()),
        _ => None,
    };
    let element = match shape.kind {
        Kind::List { element, .. } | Kind::Map { element, .. } => Some(element.into()),
        _ => None,
    };
    Ok(Origin::File(Box::new(FileColumn {
        leaf,
        conversion,
        present: shape.levels.present.into(),
        element,
        lists,
        needed: vec![index],
    })))
}

/// The positions on the way to the shape that stands for a node of the file.
fn locate(shapes: &[Shape], node: SchemaNode<'_>, wants_list: bool) -> Option<Vec<usize>> {
    let first = node.leaves().start;
    let mut positions = Vec::new();
    let mut chain = Vec::new();
    if !path_to_leaf(shapes, first, &mut positions, &mut chain) {
        return None;
    }
    let is_repeated = matches!(node.repetition(), Ok(Repetition::Repeated));
    let (def, rep) = (node.max_def(), node.max_rep());
    let at_list = chain.iter().position(|shape| {
        matches!(shape.kind, Kind::List { element, rep: list_rep, .. } if element == def && list_rep == rep)
    });
    let at = if node.is_leaf() && !(is_repeated && wants_list) {
        chain.len() - 1
    } else if let Some(at) = at_list.filter(|_| is_repeated && wants_list) {
        at
    } else {
        // Of the shapes with the levels of the node, the innermost belong to the groups below it that are always there.
        let same: Vec<usize> = (0..chain.len())
            .filter(|&i| chain[i].levels.present == def && chain[i].levels.rep == rep)
            .collect();
        let mut below = 0;
        let mut inner = node;
        while let Some(child) = inner.children().find(|child| child.leaves().contains(&first)) {
            below += usize::from(child.max_def() == def && child.max_rep() == rep);
            inner = child;
        }
        *same.get(same.len().checked_sub(1 + below)?)?
    };
    positions.truncate(at + 1);
    Some(positions)
}

/// Finds a leaf: the positions of the shapes on the way to it, and the shapes.
fn path_to_leaf<'a>(
    shapes: &'a [Shape],
    leaf: usize,
    positions: &mut Vec<usize>,
    chain: &mut Vec<&'a Shape>,
) -> bool {
    for (position, shape) in shapes.iter().enumerate() {
        positions.push(position);
        chain.push(shape);
        let found = match &shape.kind {
            Kind::Leaf { leaf: found } => *found == leaf,
            Kind::Struct(children) => path_to_leaf(children, leaf, positions, chain),
            Kind::List { item: child, .. } | Kind::Map { entries: child, .. } => {
                path_to_leaf(std::slice::from_ref(child), leaf, positions, chain)
            }
            Kind::Missing => false,
        };
        if found {
            return true;
        }
        positions.pop();
        chain.pop();
    }
    false
}

fn bind_test(column: &BoundColumn, test: &Test) -> Result<BoundTest> {
    let data_type = &column.data_type;
    match test {
        Test::IsNull => Ok(BoundTest::IsNull),
        Test::IsEmpty => match data_type {
            DataType::List(_)
            | DataType::LargeList(_)
            | DataType::ListView(_)
            | DataType::LargeListView(_)
            | DataType::FixedSizeList(..)
            | DataType::Map(..) => Ok(BoundTest::IsEmpty),
            _ => Err(misused(column, "is empty", "lists and maps")),
        },
        _ if data_type.is_nested() => Err(Error::usage(format_args!(
            "column {} is {data_type}: of that only \"is null\" and, of lists and maps, \"is empty\" can be asked",
            column.path
        ))),
        // All values are null.
        _ if *data_type == DataType::Null => Ok(BoundTest::Null),
        Test::Compare(op, literal) => {
            if let LiteralKind::Other(scalar) = &literal.0 {
                return same(column, *op, literal, scalar);
            }
            compare(column, *op, literal)
        }
        Test::Between(low, high) => {
            let both = [compare(column, Op::GtEq, low)?, compare(column, Op::LtEq, high)?];
            Ok(BoundTest::Both(Box::new(both)))
        }
        Test::In(literals) => {
            let mut values = Vec::with_capacity(literals.len());
            let mut has_null = false;
            for literal in &**literals {
                match fit(column, literal)? {
                    Some(value) => values.push(value),
                    None => has_null = true,
                }
            }
            let set = Set::new(&values, data_type)?;
            Ok(BoundTest::In { values, set, has_null })
        }
        Test::StartsWith(prefix) => {
            let kind = match data_type {
                // Of bytes of one length, a prefix has another.
                DataType::FixedSizeBinary(_) => &DataType::Binary,
                other if is_text(other) || is_bytes(other) => other,
                _ => return Err(misused(column, "starts_with", "strings and byte strings")),
            };
            match prefix.fit(kind).map_err(|why| misfit(column, prefix, why))? {
                Some(Value::Bytes(bytes)) => Ok(BoundTest::StartsWith(bytes)),
                _ => Ok(BoundTest::Null),
            }
        }
        Test::Like(pattern, escape) => {
            if !is_text(data_type) {
                return Err(misused(column, "like", "strings"));
            }
            let parsed = Pattern::parse(pattern, *escape).ok_or_else(|| {
                Error::usage(format_args!(
                    "column {}: the pattern '{pattern}' ends in its escape character",
                    column.path
                ))
            })?;
            Ok(match parsed {
                Pattern::Exact(text) => {
                    let value = Value::Bytes(text.into_bytes());
                    let scalar = array_of(&value, data_type)?;
                    BoundTest::Compare { op: Op::Eq, value, scalar }
                }
                Pattern::Prefix(prefix) => BoundTest::StartsWith(prefix.into_bytes()),
                Pattern::Other { prefix, whole } => BoundTest::Like { prefix, pattern: whole },
            })
        }
    }
}

fn compare(column: &BoundColumn, op: Op, literal: &Literal) -> Result<BoundTest> {
    let Some(value) = fit(column, literal)? else {
        return Ok(BoundTest::Null);
    };
    let scalar = array_of(&value, &column.data_type)?;
    Ok(BoundTest::Compare { op, value, scalar })
}

/// A test for a value of Arrow of exactly the type of the column, for which no order is known here.
fn same(column: &BoundColumn, op: Op, literal: &Literal, scalar: &ArrayRef) -> Result<BoundTest> {
    use arrow_array::Array;
    if scalar.data_type() != &column.data_type {
        return Err(misfit(column, literal, Misfit::Kind));
    }
    match op {
        Op::Eq | Op::NotEq => {
            Ok(BoundTest::Same { scalar: Arc::clone(scalar), negated: op == Op::NotEq })
        }
        _ => Err(misfit(column, literal, Misfit::Incomparable)),
    }
}

pub(super) fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

fn is_bytes(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Binary | DataType::LargeBinary | DataType::BinaryView)
}

fn fit(column: &BoundColumn, literal: &Literal) -> Result<Option<Value>> {
    literal.fit(&column.data_type).map_err(|why| misfit(column, literal, why))
}

#[cold]
fn misfit(column: &BoundColumn, literal: &Literal, why: Misfit) -> Error {
    let BoundColumn { path, data_type, .. } = column;
    match why {
        Misfit::Kind => Error::usage(format_args!(
            "column {path} is {data_type}, which cannot be compared with {literal}"
        )),
        Misfit::Value => Error::usage(format_args!(
            "column {path} is {data_type}, and {literal} is no such value"
        )),
        Misfit::Incomparable => Error::usage(format_args!(
            "column {path} is {data_type}: its values cannot be compared so with {literal}"
        )),
    }
}

#[cold]
fn misused(column: &BoundColumn, test: &str, of: &str) -> Error {
    let BoundColumn { path, data_type, .. } = column;
    Error::usage(format_args!("column {path} is {data_type}: {test} is for {of}"))
}
