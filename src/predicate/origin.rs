//! Finds where the columns of a predicate come from in a file.

use super::bound::{BoundLeaf, ColumnOrigin, FactsHold, ListLevels};
use super::expression::VariantPart;
use crate::error::Result;
use crate::schema::convert::read_conversion;
use crate::schema::{Kind, Node as SchemaNode, Repetition, Schema, Shape};
use crate::variant::{VariantShape, needed_leaves, variant_around};

/// Where a part of the values of a VARIANT comes from.
pub(super) fn part_origin(
    schema: &Schema,
    shape: &Shape,
    part: &VariantPart,
    is_all_null: &dyn Fn(usize) -> bool,
) -> Result<ColumnOrigin> {
    let mut first = None;
    shape.for_each_leaf(&mut |leaf, _| _ = first.get_or_insert(leaf));
    let Some(first) = first else { return Ok(ColumnOrigin::Unknown) };
    // A target may have another name for it.
    let node = variant_around(schema.leaf_node(first)?);
    let needed = needed_leaves(node, &part.path, &part.data_type, is_all_null)?;
    let (mut positions, mut chain) = (Vec::new(), Vec::new());
    let typed = needed.typed.filter(|(leaf, _)| {
        path_to_leaf(std::slice::from_ref(shape), *leaf, &mut positions, &mut chain)
            && chain
                .last()
                .is_some_and(|shape| VariantShape::plain(shape.field.data_type()) == part.data_type)
    });
    let (leaf, facts) = match (typed, needed.leaves.first()) {
        // A leaf that is not read is null in all rows.
        (Some((leaf, Some(value))), _) if needed.leaves.contains(&value) => {
            (leaf, FactsHold::WhereNull(value))
        }
        (Some((leaf, _)), _) => (leaf, FactsHold::Always),
        (None, Some(first)) => (*first, FactsHold::Never),
        (None, None) => return Ok(ColumnOrigin::Unknown),
    };
    let leaf = schema.leaf(leaf)?;
    let conversion = read_conversion(&leaf, &part.data_type);
    let present = leaf.max_def.into();
    let (element, lists, needed) = (None, Vec::new(), needed.leaves);
    let covering = None;
    let file = BoundLeaf { leaf, conversion, facts, present, element, lists, needed, covering };
    Ok(ColumnOrigin::File(Box::new(file)))
}

/// Where a column of this shape comes from.
pub(super) fn origin(
    schema: &Schema,
    shape: &Shape,
    lists: Vec<ListLevels>,
) -> Result<ColumnOrigin> {
    if shape.kind == Kind::Missing {
        return Ok(ColumnOrigin::Missing);
    }
    let mut first = None;
    shape.for_each_leaf(&mut |leaf, _| _ = first.get_or_insert(leaf));
    let Some(index) = first else {
        // A struct that is never null, with nothing in it that the file has.
        return Ok(ColumnOrigin::Unknown);
    };
    let leaf = schema.leaf(index)?;
    let conversion = match shape.kind {
        Kind::Leaf { .. } => read_conversion(&leaf, shape.field.data_type()),
        _ => None,
    };
    let element = match shape.kind {
        Kind::List { element, .. } | Kind::Map { element, .. } => Some(element.into()),
        _ => None,
    };
    Ok(ColumnOrigin::File(Box::new(BoundLeaf {
        leaf,
        conversion,
        facts: FactsHold::Always,
        present: shape.levels.present.into(),
        element,
        lists,
        needed: vec![index],
        covering: None,
    })))
}

/// The positions on the path to the shape of a node of the file.
pub(super) fn locate(
    shapes: &[Shape],
    node: SchemaNode<'_>,
    wants_list: bool,
) -> Option<Vec<usize>> {
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
        // Of the shapes with the levels of the node, the innermost belong to the required groups
        // below it.
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
pub(super) fn path_to_leaf<'a>(
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
