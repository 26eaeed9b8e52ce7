//! Finds out whether the evaluation of an expression can fail for some values.
//!
//! DataFusion evaluates the parts of a conjunction from left to right, and usually only where the
//! earlier parts were true. A scan that evaluates them in another order must not fail for rows that
//! the query spares, so parts that can fail are evaluated last.

use std::sync::Arc;

use arrow_schema::{DataType, Schema};
use datafusion_expr::Operator;
use datafusion_physical_expr::ScalarFunctionExpr;
use datafusion_physical_expr::expressions::{
    BinaryExpr, CaseExpr, CastExpr, Column, InListExpr, IsNotNullExpr, IsNullExpr, LikeExpr,
    Literal, NotExpr, TryCastExpr,
};
use datafusion_physical_expr_common::physical_expr::PhysicalExpr;

/// Whether an expression over columns of `schema` can fail for some values. An unknown expression
/// can.
pub(crate) fn can_fail(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    !is_total(expr, schema) || expr.children().into_iter().any(|child| can_fail(child, schema))
}

/// Whether an expression returns a value for all values of its operands.
fn is_total(expr: &Arc<dyn PhysicalExpr>, schema: &Schema) -> bool {
    if let Some(binary) = expr.downcast_ref::<BinaryExpr>() {
        return is_total_binary(binary, schema);
    }
    if let Some(cast) = expr.downcast_ref::<CastExpr>() {
        let from = cast.expr().data_type(schema);
        return cast.cast_options().safe
            || from.is_ok_and(|from| is_total_cast(&from, cast.cast_type()));
    }
    if let Some(call) = expr.downcast_ref::<ScalarFunctionExpr>() {
        return TOTAL_FUNCTIONS.contains(&call.name());
    }
    expr.is::<Column>()
        || expr.is::<Literal>()
        || expr.is::<NotExpr>()
        || expr.is::<IsNullExpr>()
        || expr.is::<IsNotNullExpr>()
        || expr.is::<InListExpr>()
        || expr.is::<LikeExpr>()
        || expr.is::<CaseExpr>()
        || expr.is::<TryCastExpr>()
}

/// Functions of DataFusion that give a value for any arguments.
const TOTAL_FUNCTIONS: [&str; 14] = [
    "btrim",
    "character_length",
    "coalesce",
    "contains",
    "ends_with",
    "get_field",
    "lower",
    "ltrim",
    "nullif",
    "nvl",
    "octet_length",
    "rtrim",
    "starts_with",
    "upper",
];

fn is_total_binary(binary: &BinaryExpr, schema: &Schema) -> bool {
    use Operator as O;
    let are = |test: fn(&DataType) -> bool| {
        [binary.left(), binary.right()]
            .into_iter()
            .all(|side| side.data_type(schema).is_ok_and(|data_type| test(&data_type)))
    };
    match binary.op() {
        O::And | O::Or | O::Eq | O::NotEq | O::Lt | O::LtEq | O::Gt | O::GtEq => true,
        O::IsDistinctFrom | O::IsNotDistinctFrom | O::StringConcat => true,
        O::LikeMatch | O::ILikeMatch | O::NotLikeMatch | O::NotILikeMatch => true,
        O::BitwiseAnd | O::BitwiseOr | O::BitwiseXor => true,
        // Integers wrap around, unless the expression is one that is checked.
        O::Plus | O::Minus | O::Multiply => {
            let (left, right) = (Arc::clone(binary.left()), Arc::clone(binary.right()));
            let is_wrapping = *binary == BinaryExpr::new(left, *binary.op(), right);
            are(DataType::is_floating) || is_wrapping && are(DataType::is_integer)
        }
        O::Divide | O::Modulo => are(DataType::is_floating),
        _ => false,
    }
}

/// Whether each value of a type can be cast to another.
fn is_total_cast(from: &DataType, to: &DataType) -> bool {
    use DataType as D;
    let is_text = |of: &D| matches!(of, D::Utf8 | D::LargeUtf8 | D::Utf8View);
    match (from, to) {
        (D::Dictionary(_, values), to) => is_total_cast(values, to),
        // As many keys as a batch may have rows.
        (from, D::Dictionary(key, values)) if key.primitive_width() >= Some(4) => {
            is_total_cast(from, values)
        }
        (D::Null, _) => true,
        (from, to) if from == to => true,
        (from, to) if is_text(to) => {
            is_text(from) || from.is_integer() || from.is_floating() || *from == D::Boolean
        }
        (D::Boolean, to) => to.is_integer(),
        (from, D::Float32 | D::Float64) => from.is_integer() || from.is_floating(),
        (from, to) => CastExpr::check_bigger_cast(to, from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_schema::Field;
    use datafusion_physical_expr::expressions::{binary, cast, col, lit};

    #[test]
    fn division_casts_and_checked_arithmetic_can_fail_and_comparisons_cannot() {
        let fields = [
            ("i", DataType::Int32),
            ("l", DataType::Int64),
            ("f", DataType::Float64),
            ("t", DataType::Utf8),
            ("d", DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))),
            ("p", DataType::Decimal128(38, 2)),
        ];
        let fields = fields.map(|(name, data_type)| Field::new(name, data_type, true));
        let schema = Schema::new(fields.to_vec());
        let column = |name: &str| col(name, &schema).unwrap();
        let with = |a: &str, op, b: &str| {
            Arc::new(BinaryExpr::new(column(a), op, column(b))) as Arc<dyn PhysicalExpr>
        };
        let to = |name: &str, data_type| cast(column(name), &schema, data_type).unwrap();
        let checked = BinaryExpr::new(column("i"), Operator::Plus, column("i"));
        let checked: Arc<dyn PhysicalExpr> = Arc::new(checked.with_fail_on_overflow(true));
        let cases = [
            (with("i", Operator::Lt, "i"), false),
            (with("i", Operator::Plus, "i"), false),
            (checked, true),
            (with("i", Operator::Divide, "i"), true),
            (with("f", Operator::Modulo, "f"), false),
            (with("p", Operator::Multiply, "p"), true),
            (to("i", DataType::Int64), false),
            (to("l", DataType::Int32), true),
            (to("l", DataType::Float64), false),
            (to("t", DataType::Int64), true),
            (to("d", DataType::Utf8), false),
            (to("d", DataType::Int32), true),
            (
                to("t", DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))),
                false,
            ),
            (
                to("t", DataType::Dictionary(Box::new(DataType::Int8), Box::new(DataType::Utf8))),
                true,
            ),
        ];
        for (expr, expected) in cases {
            let text = expr.to_string();
            assert_eq!(can_fail(&expr, &schema), expected, "{text}");
            // Within another that does not.
            let data_type = expr.data_type(&schema).unwrap();
            let null = lit(datafusion_common::ScalarValue::try_new_null(&data_type).unwrap());
            let outer = binary(expr, Operator::IsDistinctFrom, null, &schema).unwrap();
            assert_eq!(can_fail(&outer, &schema), expected, "{text}");
        }
    }
}
