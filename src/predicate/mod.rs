//! Predicates: typed expressions over columns that select rows.
//!
//! [`col`] and [`lit`] build a [`Predicate`]; [`Predicate::parse`] parses one. [`Predicate::bind`]
//! binds it to the schema of a file. The [`Bound`] predicate says which columns it needs, it prunes
//! row groups and pages by their metadata, and it is [evaluated](Bound::evaluate) on the rows that
//! are left. Nothing here reads a file.
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
//! * **Null.** As in SQL: a comparison with null is null, `not` of null is null, `and` is false as
//!   soon as one side is, `or` is true as soon as one side is. A row is kept only if the whole
//!   predicate is true. `is null` and `is empty` test the null itself; `is empty` of a null list is
//!   null.
//! * **Floats.** Every NaN, whatever its bits, is equal to every other NaN and greater than all
//!   numbers; −0 and +0 are equal. PostgreSQL and DuckDB compare in the same way; the comparison
//!   kernels of Arrow differ for −0 and for NaNs with a sign.
//! * **Order.** Strings and byte strings compare by their bytes, booleans false before true.
//!   Intervals, structs, lists and maps have no order.
//! * **Lists.** [`any`] is true if the test is true of some element, false if it is false of all
//!   (so of an empty list), else null; [`all`] is true if the test is true of all elements (so of
//!   an empty list), false if it is false of some, else null. Both are null for a null list. A path
//!   through several lists is any of any, or all of all. A `not` in the middle belongs to the test
//!   of one element: `any(x) not in (1)` asks for an element that is not 1, `not any(x) in (1)` for
//!   lists without a 1.
//! * **Geometries** are compared by the boxes around them: see [`intersects`](Column::intersects).
//!   A value that is no ISO WKB is an error if it is evaluated.
//! * **Literals** are checked when the predicate is bound. A literal from Rust must be a value of
//!   the column's type ([`Literal`] has the table). A literal of the text form is compared [by
//!   value](literal::Literal::by_value), as in SQL: `passengers > 300` is false for every `int8`,
//!   `fare >= 10.245` is exact for a decimal with two digits, and `id = '5'` parses the text as a
//!   number. A bare number is never a date or a time.
//!
//! # Expressions
//!
//! The operands of a comparison may be computed ([`Expression`]) from several columns, by
//! `+ - * / %`, by `abs`, `lower`, `upper` and `length`, and by `cast`. Only a column that is
//! compared with a literal can prune and be looked up in a bloom filter or dictionary; an
//! expression is evaluated for each row, with the kernels of Arrow.
//!
//! * **Null** in an operand gives null.
//! * **Types.** Integers are computed as `int64`, and with a `uint64` as decimals; decimals
//!   exactly, with up to 76 digits. If an operand is a float, all are computed as floats, of 32
//!   bits if none is a `double`. `/` always gives a float, as in DuckDB: `5 / 2` is 2.5, `1 / 0` is
//!   infinite and `0 / 0` is NaN. The remainder `%` has the sign of its left side. Numbers of two
//!   types are compared by value, but as floats if one is a float; dates and timestamps are
//!   compared as points in time. Operands of other types must be cast, and so must a string column
//!   that is compared with a column of numbers: only literals take the type of the other side.
//! * **Errors.** An overflow, `%` by zero, and a cast of a value that the type does not have fail
//!   the read, with the text of the comparison. A part of a predicate that may fail is evaluated
//!   after all others, and only for rows that they leave undecided.
//! * **Text.** `lower` and `upper` map each character to one character: `ß` to the capital `ẞ`, and
//!   a letter without a single counterpart to itself. `length` counts characters.
//! * **Casts** to integers round: floats to the nearest even integer, decimals away from zero.
//!   Strings are parsed as the literals of this form are, numbers without blanks around them;
//!   floats, dates and times are formatted as DuckDB formats them. Time zones are UTC.
//!
//! DuckDB differs in these cases. It rounds a timestamp literal to microseconds, and a quoted
//! literal to the column's type (`int_column = '1.5'`, `date_column = '2024-01-02 03:04:05'`),
//! which is an error here. It compares a `float` column with `1.1e0` as doubles and with `1.1` as
//! floats; here both are the nearest float. It computes in the type of the narrower integer, and
//! overflows where this library does not.
//!
//! # The text form
//!
//! ```text
//! predicate  =  predicate or predicate  |  predicate and predicate
//!            |  not predicate  |  ( predicate )  |  true  |  false  |  null
//!            |  column                                         of booleans
//!            |  value  =, ==, <>, !=, <, <=, >, >=  value
//!            |  value  [not] in ( literal, … )
//!            |  value  [not] between value and value
//!            |  value  [not] like 'pattern' [escape 'c']       escape: \ unless said otherwise
//!            |  value  [not] ilike 'pattern' [escape 'c']      in small letters, both
//!            |  value  is [not] null  |  column  is [not] empty
//!            |  starts_with( value, 'prefix' )
//!            |  intersects( column, xmin, ymin, xmax, ymax )   xmin > xmax: past 180 degrees
//! value      =  column  |  literal  |  ( value )  |  - value
//!            |  value  +, -, *, /, %  value                    % as *, from left to right
//!            |  abs( value )  |  lower( value )  |  upper( value )  |  length( value )
//!            |  cast( value as type )
//!            |  any( column )  |  all( column )                compared with literals only
//!            |  variant_get( column, '$.path[0]', 'type' )     a part of a VARIANT, null if it is
//!                                                              of another type
//! type       =  boolean  |  int8 … int64  |  uint8 … uint64  |  float  |  double  |  decimal(p, s)
//!            |  string  |  date  |  time  |  timestamp, also _s, _ms, _ns  |  timestamptz
//!               and their names in SQL: int, bigint, smallint, tinyint, real, varchar, text,
//!               numeric …; int8 has 8 bits, as in Parquet and in Arrow
//! column     =  name.name.…                     as in a projection; "quoted", with "" for a quote
//! literal    =  12  |  -1.5  |  2e9  |  'text', with '' for a quote in it  |  x'0aff'
//!            |  true  |  false  |  null
//!            |  date '2024-01-31'  |  time '12:30:00'  |  timestamp '2024-01-31 12:30:00Z'
//!            |  double 'nan', 'inf', '-inf'
//! ```
//!
//! No `table.` precedes a column. Other functions and operators are refused by name.
//! `marq help where` shows examples.
//!
//! [`Literal`]: crate::Literal
//! [`all`]: crate::all
//! [`any`]: crate::any
//! [`col`]: crate::col
//! [`lit`]: crate::lit

mod datetime;
mod value;
mod arrays;
mod like;
pub(crate) mod literal;
mod coerce;
mod type_name;
mod column;
mod calculation;
pub(crate) mod expression;
mod tokens;
mod by_value;
mod text;
mod display;
mod facts;
pub(crate) mod statistics;
mod covering;
mod set;
mod bound_column;
mod tri_state;
mod computed;
mod bound;
mod bind_test;
mod origin;
mod bind;
mod possible_results;
mod ordered_span;
mod tested;
mod prune;
mod learn;
mod evaluation;
mod list_elements;
mod kernels;
pub(crate) mod nested_bits;
mod eval;
mod conjunction;
mod known;

pub use bound::Bound;
pub use calculation::Expression;
pub(crate) use evaluation::Evaluation;
pub use expression::Column;
pub(crate) use expression::Predicate;
pub(crate) use facts::{
    ColumnFacts, PageFacts, all_pages_refer_to_dictionary, dictionary_is_complete,
};
#[cfg(feature = "engine")]
pub(crate) use facts::{trusts_page_bounds, with_trusted_bounds};
pub(crate) use learn::AdaptiveStats;
pub(crate) use possible_results::PruneResult;
pub(crate) use statistics::ColumnStatistics;
pub(crate) use statistics::StatisticsRow;

#[cfg(test)]
mod tests;
