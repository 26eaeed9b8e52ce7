//! Holds the text of `marq help where`, the language of --where. A test runs its examples.

/// The text of `marq help where`.
pub(crate) const TEXT: &str = "\
The language of --where: which rows are wanted. Only rows for which it is true
are kept; as in SQL, what is compared with null is neither true nor false.

  and  or  not  ( )       a column of booleans may stand alone
  =  <>  <  <=  >  >=     of any two values; by value, whatever types hold them
  [not] between A and B   [not] in (LITERAL, ...)
  is [not] null           is [not] empty
  [not] like 'PATTERN'    % any text, _ one character; as such after \\
  [not] ilike 'PATTERN'   the same, whether letters are small or capital

Values
  columns     id   stops.list.element.lat   \"quoted, with \"\" for a quote\"
  literals    12  -1.5  2e9  'text, '' for a quote'  x'0aff'  true  false  null
  times       date '2024-01-31'  time '12:30:00'
              timestamp '2024-01-31 12:30:00Z'
              or the same as 'text'; a bare number is none
  floats      double 'nan'  double 'inf'  double '-inf'
  + - * / %   of numbers. Whole numbers are computed as int64, decimals exactly;
              / gives a double, also inf and nan. Overflow is an error
  abs(x)  lower(x)  upper(x)  length(x)
  cast(x as TYPE)
              boolean, int8 to int64, uint8 to uint64, float, double,
              decimal(p, s), string, date, time, timestamp, timestamptz
Tests of columns
  any(LIST) > 3  all(LIST) > 3  starts_with(x, 'prefix')
  variant_get(COLUMN, '$.path[0]', 'TYPE') = 5     a part of a VARIANT
  intersects(GEOMETRY, xmin, ymin, xmax, ymax)

A column compared with a literal is looked up in statistics, page indexes,
bloom filters and dictionaries. What is computed is evaluated row by row; if it
can fail, only for the rows that the other conditions leave. NaN is greater than
all numbers.

Examples, for `marq count trips.parquet --where`:
  id >= 500
  passengers > 2 and payment = 'card'
  passengers < 300                -- by value, though it is an int8
  fare between 10 and 20.505
  fare >= 10.245                  -- exact of decimals
  id = '5'                        -- read as the column's type
  payment in ('card', 'cash') or fare > 60
  payment is not null
  not (id < 100 or id > 200)
  pickup >= timestamp '2024-01-01 00:00:00Z'
  pickup > '2024-01-01'
  payment like 'c%'
  payment ilike 'CARD'
  lower(payment) = 'card'
  length(payment) = 4
  dropoff > pickup
  fare / passengers > 10
  fare * 1.1 > 20 and id % 2 = 0
  abs(distance - 5) < 1
  cast(fare as int64) = 12
  upper(cast(id as string)) in ('1', '22')
  any(stops.list.element.lat) > 52
  stops is not empty
";
