//! [`Predicate`]: an expression over columns, and the functions that build it. Other modules bind,
//! prune and evaluate it.

use std::fmt;
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use arrow_schema::DataType;

use super::calculation::Expression;
pub use super::column::{Column, all, any, col};
pub(super) use super::column::{Op, Quantifier, VariantPart};
use super::literal::Literal;
use crate::error::Result;
use crate::geo::Rectangle;
use crate::variant::VariantPath;

/// Selects rows. The [module](crate::predicate) defines when it is true, and its text form, which
/// [`Display`](fmt::Display) writes.
///
/// ```
/// # fn main() -> marquetry::Result<()> {
/// use marquetry::{Predicate, Reader, col};
///
/// let filter = col("distance").gt(10.0).and(!col("vendor").eq("Blue"));
/// let same: Predicate = filter.to_string().parse()?;
/// assert_eq!(filter, same);
/// let rows = Reader::open("testdata/trips.parquet")?.filter(filter).count()?;
/// assert!(rows < 1_000);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, PartialEq)]
pub struct Predicate {
    /// In postfix order, each after its operands: a list, because walks over a tree would take
    /// stack for each level.
    pub(super) operands: Vec<Term>,
    /// The last of them.
    pub(super) root: Term,
}

/// A node of a predicate.
#[derive(Clone, PartialEq)]
pub(super) enum Term {
    /// True, false or null, whatever the row.
    Constant(Option<bool>),
    /// A test of one column.
    Test(Column, Test),
    /// A function of the user.
    Function(Arc<[String]>, Function),
    /// A test of a computed value.
    Computed(Expression, Test),
    /// A comparison of two values that are no literals.
    Comparison(Expression, Op, Expression),
    /// Negates the term before it.
    Not,
    /// Joins this many terms before it: at least two, none of them an `And`.
    And(usize),
    /// Joins this many terms before it: at least two, none of them an `Or`.
    Or(usize),
}

/// A test of the values of a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Test {
    Compare(Op, Literal),
    In(Arc<[Literal]>),
    Between(Literal, Literal),
    IsNull,
    IsEmpty,
    StartsWith(Literal),
    Like(String, Option<char>),
    ILike(String, Option<char>),
    Intersects(Rectangle),
}

/// A function of the user on some columns.
#[derive(Clone)]
pub(super) struct Function {
    pub(super) call: Arc<UserFunction>,
    /// Whether it is called only for rows that pass the other conjuncts.
    pub(super) is_last: bool,
}

pub(super) type UserFunction = dyn Fn(&RecordBatch) -> Result<BooleanArray> + Send + Sync;

impl PartialEq for Function {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.call, &other.call)
    }
}

/// True where `predicate` is false; null where it is null.
pub fn not(predicate: Predicate) -> Predicate {
    let Predicate { mut operands, root } = predicate;
    operands.push(root);
    Predicate { operands, root: Term::Not }
}

impl Column {
    /// The part of the values of a VARIANT column at `path`, as `data_type`: null where there is
    /// none of this type, as in [`VariantArray::get`](crate::variant::VariantArray::get). The type
    /// must be one that VARIANT can be shredded as. Only the leaves of the part are read, and if it
    /// is a column of this type, its statistics prune.
    ///
    /// ```
    /// use marquetry::arrow_schema::DataType;
    /// use marquetry::{Predicate, col};
    ///
    /// let adults = col("payload").variant_get("$.user.age".parse()?, DataType::Int64).gt_eq(18);
    /// assert_eq!(adults.to_string(), "variant_get(payload, '$.user.age', 'int64') >= 18");
    /// assert_eq!(Predicate::parse(&adults.to_string())?, adults);
    /// # Ok::<(), marquetry::Error>(())
    /// ```
    pub fn variant_get(mut self, path: VariantPath, data_type: DataType) -> Self {
        self.part = Some(Box::new(VariantPart { path, data_type }));
        self
    }

    fn test(self, test: Test) -> Predicate {
        Predicate::new(Term::Test(self, test))
    }

    pub(super) fn compare(self, op: Op, other: impl Into<Expression>) -> Predicate {
        Expression::from(self).compare(op, other.into())
    }

    /// The value is equal to the other, a literal or an expression.
    pub fn eq(self, other: impl Into<Expression>) -> Predicate {
        self.compare(Op::Eq, other)
    }

    /// The value differs from the other, a literal or an expression.
    pub fn not_eq(self, other: impl Into<Expression>) -> Predicate {
        self.compare(Op::NotEq, other)
    }

    /// The value is less than the other, a literal or an expression.
    pub fn lt(self, other: impl Into<Expression>) -> Predicate {
        self.compare(Op::Lt, other)
    }

    /// The value is not greater than the other, a literal or an expression.
    pub fn lt_eq(self, other: impl Into<Expression>) -> Predicate {
        self.compare(Op::LtEq, other)
    }

    /// The value is greater than the other, a literal or an expression.
    pub fn gt(self, other: impl Into<Expression>) -> Predicate {
        self.compare(Op::Gt, other)
    }

    /// The value is not less than the other, a literal or an expression.
    pub fn gt_eq(self, other: impl Into<Expression>) -> Predicate {
        self.compare(Op::GtEq, other)
    }

    /// The value lies between the two, or is one of them.
    pub fn between(self, low: impl Into<Expression>, high: impl Into<Expression>) -> Predicate {
        Expression::from(self).between(low, high)
    }

    /// The value is one of these. If a null is among them, the result is never false; without
    /// literals it is always false.
    pub fn is_in<L: Into<Literal>>(self, literals: impl IntoIterator<Item = L>) -> Predicate {
        self.test(Test::In(literals.into_iter().map(Into::into).collect()))
    }

    /// The value, struct, list or map is null.
    pub fn is_null(self) -> Predicate {
        self.test(Test::IsNull)
    }

    /// The value, struct, list or map is not null.
    pub fn is_not_null(self) -> Predicate {
        not(self.opposite().is_null())
    }

    /// The column for which a test must be false, so that its contrary is true of this one: of any
    /// element if not of all.
    pub(super) fn opposite(self) -> Self {
        let elements = self.elements.map(|elements| match elements {
            Quantifier::Any => Quantifier::All,
            Quantifier::All => Quantifier::Any,
        });
        Self { elements, ..self }
    }

    /// The list or map has no elements.
    pub fn is_empty(self) -> Predicate {
        self.test(Test::IsEmpty)
    }

    /// The string or byte string begins with the literal.
    pub fn starts_with(self, prefix: impl Into<Literal>) -> Predicate {
        self.test(Test::StartsWith(prefix.into()))
    }

    /// The string matches a pattern: `%` matches any text, `_` any one character, and `\` before
    /// either the character itself.
    pub fn like(self, pattern: impl Into<String>) -> Predicate {
        self.test(Test::Like(pattern.into(), Some('\\')))
    }

    /// As [`Column::like`], ignoring case: both sides are compared in lowercase, as
    /// [`Column::lower`] makes it.
    pub fn ilike(self, pattern: impl Into<String>) -> Predicate {
        self.test(Test::ILike(pattern.into(), Some('\\')))
    }

    /// The string in lowercase, character by character. Like all expressions, it prunes nothing.
    pub fn lower(self) -> Expression {
        Expression::from(self).lower()
    }

    /// The string in uppercase, character by character.
    pub fn upper(self) -> Expression {
        Expression::from(self).upper()
    }

    /// Number of characters of a string, or of bytes of a byte string.
    pub fn length(self) -> Expression {
        Expression::from(self).length()
    }

    /// The absolute value of a number.
    pub fn abs(self) -> Expression {
        Expression::from(self).abs()
    }

    /// The value converted to another type. The read fails if a value cannot be converted.
    pub fn cast(self, data_type: DataType) -> Expression {
        Expression::from(self).cast(data_type)
    }

    /// The geometry, a value in WKB, may intersect `rectangle`: the box [around](Rectangle::around)
    /// it and `rectangle` have a point in common. False for an empty geometry, which has no box.
    ///
    /// With planar edges (GEOMETRY, and byte strings without a logical type), it is the box of the
    /// value's own coordinates. With geodesic edges (GEOGRAPHY), the box covers the edges: no value
    /// that intersects is missed, others may be found. A row group is skipped if the box in its
    /// statistics and `rectangle` have no point in common. If the key `geo` of the file names a
    /// covering ([`GeoColumn::covering`](crate::geo::GeoColumn::covering)), the statistics of its
    /// columns exclude row groups and pages, too; by GeoParquet, no box in it crosses the
    /// antimeridian.
    ///
    /// ```
    /// use marquetry::geo::Rectangle;
    /// use marquetry::{Predicate, col};
    ///
    /// let fiji = Rectangle::new(177.0, -21.0, -178.0, -12.0);
    /// let predicate = col("geom").intersects(fiji);
    /// assert_eq!(predicate.to_string(), "intersects(geom, 177, -21, -178, -12)");
    /// assert_eq!(Predicate::parse(&predicate.to_string())?, predicate);
    /// # Ok::<(), marquetry::Error>(())
    /// ```
    pub fn intersects(self, rectangle: Rectangle) -> Predicate {
        self.test(Test::Intersects(rectangle))
    }

    /// Like [`Column::like`], with another escape character than `\`, or with none.
    pub fn like_escaped(self, pattern: impl Into<String>, escape: Option<char>) -> Predicate {
        self.test(Test::Like(pattern.into(), escape))
    }
}

impl Predicate {
    /// True for all rows.
    pub const TRUE: Self = Self::new(Term::Constant(Some(true)));

    /// True for no row.
    pub const FALSE: Self = Self::new(Term::Constant(Some(false)));

    /// True where both are.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self::all_of([self, other])
    }

    /// True where at least one of both is.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self::any_of([self, other])
    }

    /// True where all are; without predicates, for all rows.
    pub fn all_of(predicates: impl IntoIterator<Item = Self>) -> Self {
        Self::joined(predicates, Term::And)
    }

    /// True where at least one is; without predicates, for no row.
    pub fn any_of(predicates: impl IntoIterator<Item = Self>) -> Self {
        Self::joined(predicates, Term::Or)
    }

    /// All of them, joined by `by`; those that are joined so already are joined as their operands.
    fn joined(predicates: impl IntoIterator<Item = Self>, by: fn(usize) -> Term) -> Self {
        let is_and = by(0) == Term::And(0);
        let (mut operands, mut n) = (Vec::new(), 0);
        for predicate in predicates {
            match operands.is_empty() {
                true => operands = predicate.operands,
                false => operands.extend(predicate.operands),
            }
            match predicate.root {
                Term::And(count) if is_and => n += count,
                Term::Or(count) if !is_and => n += count,
                root => {
                    operands.push(root);
                    n += 1;
                }
            }
        }
        let root = match n {
            0 => Term::Constant(Some(is_and)),
            1 => operands.pop().unwrap_or(Term::Constant(Some(is_and))),
            _ => by(n),
        };
        Self { operands, root }
    }

    pub(super) const fn new(root: Term) -> Self {
        Self { operands: Vec::new(), root }
    }

    /// All terms in postfix order, each after its operands.
    pub(super) fn terms(&self) -> impl Iterator<Item = &Term> {
        self.operands.iter().chain(std::iter::once(&self.root))
    }

    /// True where a function of the caller is. The function is given batches of the named columns,
    /// in this order; a nested column is named by its whole path. It must return one boolean or
    /// null for each row, and depend on nothing but the row.
    ///
    /// It prunes nothing; `and` it with a predicate that does.
    pub fn function<S: Into<String>>(
        columns: impl IntoIterator<Item = S>,
        function: impl Fn(&RecordBatch) -> Result<BooleanArray> + Send + Sync + 'static,
    ) -> Self {
        let columns = columns.into_iter().map(Into::into).collect();
        Self::new(Term::Function(columns, Function { call: Arc::new(function), is_last: false }))
    }

    /// Like [`Predicate::function`], for a function that can fail for some rows. In a conjunction
    /// it is called only for rows that pass all other conjuncts, after earlier functions of this
    /// kind.
    #[cfg(feature = "engine")]
    pub fn last_function(
        columns: Vec<String>,
        function: impl Fn(&RecordBatch) -> Result<BooleanArray> + Send + Sync + 'static,
    ) -> Self {
        let function = Function { call: Arc::new(function), is_last: true };
        Self::new(Term::Function(columns.into(), function))
    }
}

impl std::ops::Not for Predicate {
    type Output = Self;

    fn not(self) -> Self {
        not(self)
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Function")
    }
}

impl fmt::Debug for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Predicate({self})")
    }
}

impl Expression {
    /// The value is equal to the other.
    pub fn eq(self, other: impl Into<Self>) -> Predicate {
        self.compare(Op::Eq, other.into())
    }

    /// The value differs from the other.
    pub fn not_eq(self, other: impl Into<Self>) -> Predicate {
        self.compare(Op::NotEq, other.into())
    }

    /// The value is less than the other.
    pub fn lt(self, other: impl Into<Self>) -> Predicate {
        self.compare(Op::Lt, other.into())
    }

    /// The value is not greater than the other.
    pub fn lt_eq(self, other: impl Into<Self>) -> Predicate {
        self.compare(Op::LtEq, other.into())
    }

    /// The value is greater than the other.
    pub fn gt(self, other: impl Into<Self>) -> Predicate {
        self.compare(Op::Gt, other.into())
    }

    /// The value is not less than the other.
    pub fn gt_eq(self, other: impl Into<Self>) -> Predicate {
        self.compare(Op::GtEq, other.into())
    }

    /// The value lies between the two, or is one of them.
    pub fn between(self, low: impl Into<Self>, high: impl Into<Self>) -> Predicate {
        match (low.into().into_literal(), high.into().into_literal()) {
            (Ok(low), Ok(high)) => self.test(Test::Between(low, high)),
            (low, high) => {
                let side =
                    |side: Result<Literal, Self>| side.map_or_else(|other| other, Self::from);
                let low = self.clone().compare(Op::GtEq, side(low));
                low.and(self.compare(Op::LtEq, side(high)))
            }
        }
    }

    /// The value is one of these, as [`Column::is_in`].
    pub fn is_in<L: Into<Literal>>(self, literals: impl IntoIterator<Item = L>) -> Predicate {
        self.test(Test::In(literals.into_iter().map(Into::into).collect()))
    }

    /// The value is null.
    pub fn is_null(self) -> Predicate {
        self.test(Test::IsNull)
    }

    /// The value is not null.
    pub fn is_not_null(self) -> Predicate {
        not(self.opposite().is_null())
    }

    /// The string or byte string begins with the literal.
    pub fn starts_with(self, prefix: impl Into<Literal>) -> Predicate {
        self.test(Test::StartsWith(prefix.into()))
    }

    /// The string matches a pattern, as [`Column::like`].
    pub fn like(self, pattern: impl Into<String>) -> Predicate {
        self.test(Test::Like(pattern.into(), Some('\\')))
    }

    /// The string matches a pattern, ignoring case, as [`Column::ilike`].
    pub fn ilike(self, pattern: impl Into<String>) -> Predicate {
        self.test(Test::ILike(pattern.into(), Some('\\')))
    }

    /// A comparison in its simplest form: with a literal, a test.
    pub(super) fn compare(self, op: Op, other: Self) -> Predicate {
        match (self.into_literal(), other.into_literal()) {
            (Err(left), Ok(literal)) => left.test(Test::Compare(op, literal)),
            (Ok(literal), Err(right)) => right.test(Test::Compare(op.flipped(), literal)),
            (Ok(left), Ok(literal)) => Self::from(left).test(Test::Compare(op, literal)),
            (Err(left), Err(right)) => Predicate::new(Term::Comparison(left, op, right)),
        }
    }

    /// A test of the value: of a column, where it is nothing else.
    pub(super) fn test(self, test: Test) -> Predicate {
        match self.into_column() {
            Ok(column) => Predicate::new(Term::Test(column, test)),
            Err(computed) => Predicate::new(Term::Computed(computed, test.by_value())),
        }
    }

    /// Turns a bare column into the column that must be false.
    pub(super) fn opposite(self) -> Self {
        match self.into_column() {
            Ok(column) => column.opposite().into(),
            Err(computed) => computed,
        }
    }
}

impl Test {
    /// The test with literals that are compared by value.
    fn by_value(self) -> Self {
        match self {
            Self::Compare(op, literal) => Self::Compare(op, literal.by_value()),
            Self::Between(low, high) => Self::Between(low.by_value(), high.by_value()),
            Self::In(literals) => {
                Self::In(literals.iter().map(|literal| literal.clone().by_value()).collect())
            }
            other => other,
        }
    }
}
