//! Predicates: which rows are wanted, as a typed expression over columns.
//!
//! [`col`] and [`lit`] build a [`Predicate`], or [`Predicate::parse`] reads one.
//! [`Predicate::bind`] holds it against the schema of a file, and the [`Bound`] predicate does
//! three things: it says which columns it needs, it prunes row groups and pages by what their
//! metadata prove, and it is [evaluated](Bound::evaluate) on the rows that are left. Nothing here
//! reads a file.
//!
//! ```
//! use marquetry::{Predicate, col, not};
//!
//! let wanted = col("amount")
//!     .gt(10)
//!     .and(col("country").is_in(["NL", "BE"]))
//!     .and(not(col("name").like("A%")));
//! let text = "amount > 10 and country in ('NL', 'BE') and name not like 'A%'";
//! assert_eq!(wanted.to_string(), text);
//! assert_eq!(Predicate::parse(&wanted.to_string())?, wanted);
//! # Ok::<(), marquetry::Error>(())
//! ```
//!
//! # What is true
//!
//! * **Null.** As in SQL: what is compared with null is neither true nor false, `not` leaves it so,
//!   `and` is false as soon as one side is, `or` true as soon as one side is. Only rows for which
//!   the whole is true are kept. `is null` and `is empty` look at the null itself; `is empty` of a
//!   list that is null is null.
//! * **Floats.** Every NaN, whatever its bits, is equal to every other NaN and greater than all
//!   numbers; −0 and +0 are equal. So PostgreSQL and DuckDB have it; the comparison kernels of
//!   Arrow differ for −0 and for NaNs with a sign.
//! * **Order.** Strings and byte strings compare by their bytes, booleans false before true.
//!   Intervals, structs, lists and maps have no order.
//! * **Lists.** [`any`] is true if some element makes the test true, false if all make it false (so
//!   of an empty list), else null; [`all`] is the other way round, and true of an empty list. Of a
//!   list that is null both are null. A path through several lists is any of any, all of all. A
//!   `not` in the middle belongs to the test of one element: `any(x) not in (1)` asks for an
//!   element that is not 1, `not any(x) in (1)` for lists without one that is.
//! * **Geometries** are compared by the boxes around them: see [`intersects`](Column::intersects).
//!   A value that is no ISO WKB is an error, if it is looked at.
//! * **Literals** are checked when the predicate is bound. One of Rust must be a value of the
//!   column's type ([`Literal`] has the table). Those of the text form are compared
//!   [by value](Literal::by_value), as in SQL: `passengers > 300` is false of every `int8`,
//!   `fare >= 10.245` exact of a decimal with two digits, `id = '5'` reads the text as the number
//!   that it is; a bare number is no date and no time.
//!
//! # The text form
//!
//! ```text
//! predicate  =  predicate or predicate  |  predicate and predicate
//!            |  not predicate  |  ( predicate )  |  true  |  false  |  null
//!            |  operand                                           a boolean column
//!            |  operand  =, ==, <>, !=, <, <=, >, >=  literal     or the literal first
//!            |  operand  [not] in ( literal, … )
//!            |  operand  [not] between literal and literal
//!            |  operand  [not] like 'pattern' [escape 'c']        escape: \ unless said otherwise
//!            |  operand  is [not] null  |  operand  is [not] empty
//!            |  starts_with( operand, 'prefix' )
//!            |  intersects( operand, xmin, ymin, xmax, ymax )  xmin > xmax: past 180 degrees
//! operand    =  column  |  any( column )  |  all( column )
//!            |  variant_get( column, '$.path[0]', 'type' )     a part of a VARIANT, null if it is
//!                                                              of another type
//! column     =  name.name.…                     as in a projection; "quoted", with "" for a quote
//! literal    =  12  |  -1.5  |  2e9  |  'text', with '' for a quote in it  |  x'0aff'
//!            |  true  |  false  |  null
//!            |  date '2024-01-31'  |  time '12:30:00'  |  timestamp '2024-01-31 12:30:00Z'
//!            |  double 'nan', 'inf', '-inf'
//! ```
//!
//! [`Literal`]: crate::Literal
//! [`all`]: crate::all
//! [`any`]: crate::any
//! [`col`]: crate::col
//! [`lit`]: crate::lit

mod value;
mod datetime;
mod like;
pub(crate) mod literal;
mod coerce;
mod by_value;
mod type_name;
pub(crate) mod expression;
mod tokens;
mod text;
mod display;
mod facts;
pub(crate) mod statistics;
mod set;
mod bound;
mod bind_test;
mod origin;
mod bind;
mod possible_results;
mod ordered_span;
mod tested;
mod prune;
mod tri_state;
mod learn;
mod list_elements;
mod kernels;
mod computed;
mod eval;
pub(crate) mod nested_bits;
mod conjunction;
mod known;

pub use bound::Bound;
pub use computed::Expression;
pub use expression::Column;
pub(crate) use expression::Predicate;
pub(crate) use facts::{
    ColumnFacts, PageFacts, all_pages_refer_to_dictionary, dictionary_is_complete,
};
pub(crate) use learn::AdaptiveStats;
pub(crate) use possible_results::PruneResult;
pub(crate) use statistics::ColumnStatistics;
pub(crate) use statistics::StatisticsRow;
#[cfg(feature = "datafusion")]
pub(crate) use {
    expression::{col, not},
    literal::Literal,
};

#[cfg(test)]
mod tests;
