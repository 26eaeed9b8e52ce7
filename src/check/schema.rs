//! Checks the schema: types, annotations, the shapes of lists, maps, VARIANT and FILE groups,
//! column orders, and the hint `ARROW:schema`.
//!
//! Spec: LogicalTypes.md, VariantEncoding.md, `parquet.thrift`.

use std::collections::HashSet;
use std::sync::Arc;

use super::context::FileContext;
use super::finding::{Finding, Findings};
use super::kind::FindingKind as K;
use crate::error::{ErrorKind, Result};
use crate::format::{ColumnOrder, ConvertedType, DecimalType, LogicalType, SchemaElementRef, Type};
use crate::schema::text::Logical;
use crate::schema::{HintFault, Node, Physical, Repetition, converted_of, hint_fault};

pub(super) fn check(file: &FileContext, findings: &mut Findings) -> Result<()> {
    let schema = file.footer.schema();
    visit(schema.root(), findings)?;
    let orders = file.footer.index().head().column_orders.as_ref();
    let leaves = schema.leaves_len();
    if let Some(orders) = orders {
        if orders.len() != leaves {
            let name = "the number of column_orders";
            findings.push(Finding::lie(K::ColumnOrdersMiscounted, name, orders.len(), leaves));
        }
        for (index, order) in orders.iter().enumerate().take(leaves) {
            check_order(file, index, order, findings);
        }
    }
    let fault = hint_fault(schema, file.footer.key_values())?;
    let finding = match fault {
        None => return Ok(()),
        Some(HintFault::Unreadable) => {
            Finding::new(K::ArrowSchemaUnreadable, "ARROW:schema is no schema of Arrow, in Base64")
        }
        Some(HintFault::Fields { hinted, stored }) => {
            let name = "the number of fields of ARROW:schema";
            Finding::lie(K::ArrowSchemaDiffers, name, hinted, stored)
        }
        Some(HintFault::Name { position, hinted, stored }) => {
            let name = format!("the name of field {position} of ARROW:schema");
            Finding::lie(K::ArrowSchemaDiffers, &name, format!("{hinted:?}"), format!("{stored:?}"))
        }
        Some(HintFault::Type { name, hinted, stored }) => {
            let column: Arc<str> = name.into();
            let name = "the type in ARROW:schema";
            let finding = Finding::lie(K::ArrowSchemaDiffers, name, hinted, stored);
            finding.with_column(&column)
        }
    };
    findings.push(finding);
    Ok(())
}

/// Checks a node, and those below it: the depth of a schema is limited.
fn visit(node: Node<'_>, findings: &mut Findings) -> Result<()> {
    let mut of_node = |finding: Finding| {
        let column: Arc<str> = node.path().dotted().into();
        findings.push(if node.is_root() { finding } else { finding.with_column(&column) });
    };
    if node.is_leaf() {
        check_leaf(node, &mut of_node);
        return Ok(());
    }
    if let Err(error) = node.repetition() {
        of_node(Finding::new(K::LeafTypeInvalid, error.message()));
    }
    check_group(node, &mut of_node);
    let mut names = HashSet::new();
    names.try_reserve(node.children().count())?;
    if let Some(twin) = node.children().find(|child| !names.insert(child.name())) {
        let text = format_args!("two fields of a group are named {:?}", twin.name());
        of_node(Finding::new(K::SiblingNamesRepeat, text));
    }
    node.children().try_for_each(|child| visit(child, findings))
}

fn check_leaf(node: Node<'_>, push: &mut impl FnMut(Finding)) {
    let element = node.element();
    let physical = match node.repetition().and_then(|_| node.physical()) {
        Ok(physical) => physical,
        Err(error) => {
            push(Finding::new(K::LeafTypeInvalid, error.message()));
            return;
        }
    };
    if element.r#type == Some(Type::FixedLenByteArray) && element.type_length.unwrap_or(0) < 0 {
        push(Finding::new(K::LeafTypeInvalid, "type_length is negative"));
    }
    check_annotation(node, &element, physical, push);
}

/// Checks the annotation of a leaf.
fn check_annotation(
    node: Node<'_>,
    element: &SchemaElementRef<'_>,
    physical: Physical,
    push: &mut impl FnMut(Finding),
) {
    let index = node.leaves().start;
    let leaf = match node.schema().leaf(index) {
        Ok(leaf) => leaf,
        Err(error) if matches!(error.kind(), ErrorKind::Malformed(_)) => {
            push(Finding::new(K::LogicalTypeMisplaced, error.message()));
            return;
        }
        Err(_) => return,
    };
    if let Some(LogicalType::Unrecognized(_)) = &element.logical_type {
        push(Finding::new(K::LogicalTypeUnknown, "the logical type is none that is known"));
        return;
    }
    if !leaf.ordered {
        let stated = match (&element.logical_type, element.converted_type) {
            (Some(logical), _) => Logical(logical).to_string(),
            (None, Some(converted)) => converted.to_string(),
            (None, None) => return,
        };
        let text = format_args!("{stated} may not stand on {physical}");
        push(Finding::new(K::LogicalTypeMisplaced, text));
        return;
    }
    let Some(logical) = &element.logical_type else { return };
    if let Some(converted) = element.converted_type
        && !is_same_annotation(logical, converted)
    {
        let text = format_args!("the converted type {converted} beside {}", Logical(logical));
        push(Finding::new(K::ConvertedTypeDiffers, text));
    }
    if let LogicalType::Decimal(DecimalType { scale, precision }) = logical {
        let stated = (element.scale.unwrap_or(*scale), element.precision.unwrap_or(*precision));
        if stated != (*scale, *precision) {
            let (stated, found) = (format!("{stated:?}"), format!("{:?}", (scale, precision)));
            push(Finding::lie(K::DecimalFieldsDiffer, "(scale, precision)", stated, found));
        }
    }
}

/// Whether a converted type says no other than the logical type.
fn is_same_annotation(logical: &LogicalType, converted: ConvertedType) -> bool {
    match converted_of(logical) {
        Some(expected) => expected == converted,
        // What has no converted type had another logical type, if any.
        None => false,
    }
}

/// Checks the shape that the annotation of a group asks for.
fn check_group(node: Node<'_>, push: &mut impl FnMut(Finding)) {
    let element = node.element();
    let converted = element.converted_type;
    let is_list = matches!(element.logical_type, Some(LogicalType::List))
        || (element.logical_type.is_none() && converted == Some(ConvertedType::List));
    let is_map = matches!(element.logical_type, Some(LogicalType::Map))
        || (element.logical_type.is_none() && converted == Some(ConvertedType::Map));
    let children: Vec<Node<'_>> = node.children().take(3).collect();
    let repeated = match &children[..] {
        [only] if is_repeated(*only) => Some(*only),
        _ => None,
    };
    if is_list && repeated.is_none() {
        push(Finding::new(K::ListShapeWrong, "a LIST without a single repeated child"));
    }
    if is_map {
        check_map(repeated, push);
    }
    match &element.logical_type {
        Some(LogicalType::Variant(of)) => {
            if !matches!(of.specification_version, None | Some(1)) {
                let text = "a VARIANT of an unknown version";
                push(Finding::new(K::NotChecked, text));
            } else if let Err(text) = check_variant(node) {
                push(Finding::new(K::VariantShapeWrong, text));
            }
        }
        Some(LogicalType::File) => {
            if let Err(text) = check_file(node) {
                push(Finding::new(K::FileShapeWrong, text));
            }
        }
        Some(LogicalType::List | LogicalType::Map) | None => {}
        Some(LogicalType::Unrecognized(_)) => {
            push(Finding::new(K::LogicalTypeUnknown, "the logical type is none that is known"));
        }
        Some(other) => {
            let text = format_args!("{} may not stand on a group", Logical(other));
            push(Finding::new(K::LogicalTypeMisplaced, text));
        }
    }
}

fn is_repeated(node: Node<'_>) -> bool {
    node.repetition().is_ok_and(|repetition| repetition == Repetition::Repeated)
}

fn is_optional(node: Node<'_>) -> bool {
    node.repetition().is_ok_and(|repetition| repetition == Repetition::Optional)
}

fn check_map(entries: Option<Node<'_>>, push: &mut impl FnMut(Finding)) {
    let entries = entries.filter(|entries| !entries.is_leaf());
    let fields: Vec<Node<'_>> = entries.iter().flat_map(|node| node.children().take(3)).collect();
    match &fields[..] {
        [key] | [key, _] => {
            if is_optional(*key) {
                push(Finding::new(K::MapKeyOptional, "the key of a MAP is optional"));
            } else if is_repeated(*key) {
                push(Finding::new(K::MapShapeWrong, "the key of a MAP is repeated"));
            }
        }
        _ => {
            let text = "a MAP without a single repeated group of a key and a value";
            push(Finding::new(K::MapShapeWrong, text));
        }
    }
}

/// Checks the fields of a VARIANT, and of what is shredded below it.
fn check_variant(node: Node<'_>) -> Result<(), String> {
    let (mut has_metadata, mut has_typed, mut has_value) = (false, false, None);
    for child in node.children() {
        match child.name() {
            "metadata" => {
                is_binary(child)?;
                has_metadata = true;
                if is_optional(child) || is_repeated(child) {
                    return Err("`metadata` is not required".to_owned());
                }
            }
            "value" => {
                is_binary(child)?;
                has_value = Some(is_optional(child));
            }
            "typed_value" => {
                has_typed = true;
                check_typed(child)?;
            }
            other => return Err(format!("a field named {other:?}")),
        }
    }
    if !has_metadata {
        return Err("there is no `metadata`".to_owned());
    }
    if has_value.is_none() && !has_typed {
        return Err("there is neither `value` nor `typed_value`".to_owned());
    }
    if has_typed && has_value == Some(false) {
        return Err("`value` is required beside `typed_value`".to_owned());
    }
    Ok(())
}

fn is_binary(node: Node<'_>) -> Result<(), String> {
    match node.is_leaf() && node.physical().is_ok_and(|physical| physical == Physical::ByteArray) {
        true => Ok(()),
        false => Err(format!("`{}` is no BYTE_ARRAY", node.name())),
    }
}

/// Checks what is below `typed_value`.
fn check_typed(node: Node<'_>) -> Result<(), String> {
    if !is_optional(node) {
        return Err("a `typed_value` that is not optional".to_owned());
    }
    if node.is_leaf() {
        return check_typed_leaf(node);
    }
    let element = node.element();
    let is_list = matches!(element.logical_type, Some(LogicalType::List))
        || element.converted_type == Some(ConvertedType::List);
    if is_list {
        let repeated = node.children().next().filter(|child| is_repeated(*child));
        let element = repeated.and_then(|repeated| repeated.children().next());
        let element = element.ok_or("a `typed_value` that is a LIST, and not of three levels")?;
        return check_shredded(element);
    }
    node.children().try_for_each(check_shredded)
}

/// Checks the group of a shredded field or element.
fn check_shredded(node: Node<'_>) -> Result<(), String> {
    let name = node.name();
    if node.is_leaf() {
        return Err(format!("the shredded field {name:?} is no group"));
    }
    if is_optional(node) || is_repeated(node) {
        return Err(format!("the group of the shredded field {name:?} is not required"));
    }
    for child in node.children() {
        match child.name() {
            "value" => {
                is_binary(child)?;
                if !is_optional(child) {
                    return Err(format!("`value` of the shredded field {name:?} is not optional"));
                }
            }
            "typed_value" => check_typed(child)?,
            other => return Err(format!("the shredded field {name:?} has a field {other:?}")),
        }
    }
    if node.children().next().is_none() {
        return Err(format!("the shredded field {name:?} has no column"));
    }
    Ok(())
}

/// Checks that a leaf is of a type that values of VARIANT can be shredded to.
fn check_typed_leaf(node: Node<'_>) -> Result<(), String> {
    use Physical as P;
    let leaf = node.schema().leaf(node.leaves().start).map_err(|e| e.message().to_owned())?;
    let fits = match (&leaf.logical, leaf.physical) {
        (None, P::Boolean | P::Int32 | P::Int64 | P::Float | P::Double | P::ByteArray) => true,
        (Some(LogicalType::Integer(int)), _) => int.is_signed,
        (Some(LogicalType::Time(time)), _) => {
            !time.is_adjusted_to_utc && time.unit == crate::format::TimeUnit::Micros
        }
        (Some(LogicalType::Timestamp(timestamp)), _) => {
            timestamp.unit != crate::format::TimeUnit::Millis
        }
        (
            Some(
                LogicalType::Decimal(_)
                | LogicalType::Date
                | LogicalType::String
                | LogicalType::Uuid,
            ),
            _,
        ) => true,
        _ => false,
    };
    if fits {
        return Ok(());
    }
    let shown = leaf.logical.as_ref().map_or_else(String::new, |of| format!(" as {}", Logical(of)));
    Err(format!("a `typed_value` of {}{shown}", leaf.physical))
}

/// Checks the fields of a FILE.
fn check_file(node: Node<'_>) -> Result<(), String> {
    for child in node.children() {
        let name = child.name();
        if !is_optional(child) {
            return Err(format!("the field {name:?} is not optional"));
        }
        let expected = match name {
            "uri" | "content_type" | "checksum" | "inline" => Physical::ByteArray,
            "offset" | "size" => Physical::Int64,
            _ => return Err(format!("a field named {name:?}")),
        };
        if !child.is_leaf() || child.physical().ok() != Some(expected) {
            return Err(format!("the field {name:?} is no {expected}"));
        }
    }
    Ok(())
}

fn check_order(file: &FileContext, index: usize, order: &ColumnOrder, findings: &mut Findings) {
    let Ok(leaf) = file.footer.schema().leaf(index) else { return };
    let is_float = matches!(leaf.physical, Physical::Float | Physical::Double)
        || matches!(leaf.logical, Some(LogicalType::Float16));
    let fits = match order {
        ColumnOrder::TypeOrder => true,
        ColumnOrder::Ieee754TotalOrder => is_float,
        ColumnOrder::Int96TimestampOrder => leaf.physical == Physical::Int96,
        _ => {
            let text = "the column order is none that is known";
            let column = leaf.path.dotted().into();
            findings.push(Finding::new(K::ColumnOrderUnknown, text).with_column(&column));
            return;
        }
    };
    if !fits {
        let text = format_args!("{order:?} of {} values", leaf.physical);
        let column = leaf.path.dotted().into();
        findings.push(Finding::new(K::ColumnOrderMisplaced, text).with_column(&column));
    }
}
