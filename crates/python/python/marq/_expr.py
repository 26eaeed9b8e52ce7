"""Conditions on rows, as objects: they are written in the language of ``marq help where``."""

from __future__ import annotations

import datetime as _dt
import decimal as _decimal
import math
import re
from collections.abc import Iterable
from typing import Any, Union

__all__ = ["Column", "Condition", "Value", "all_of", "any_of", "col", "lit"]

Literal = Union[
    None, bool, int, float, str, bytes, _dt.date, _dt.datetime, _dt.time, _decimal.Decimal
]

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")
_TYPE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\s*\(\s*[0-9]+\s*(,\s*-?[0-9]+\s*)?\))?\Z")
_KEYWORDS = frozenset(
    "and or not in is null between like ilike true false date time timestamp double cast as any all "
    "empty abs lower upper length starts_with variant_get intersects escape float".split()
)


def _name(path: str) -> str:
    plain = all(_PLAIN.match(p) and p.lower() not in _KEYWORDS for p in path.split("."))
    return path if plain else '"' + path.replace('"', '""') + '"'


def _text(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _literal(value: Any) -> str:
    """A value of Python in the language of conditions."""
    if value is None:
        return "null"
    if hasattr(value, "item") and not isinstance(value, (str, bytes)):
        value = value.item()  # a scalar of NumPy
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(int(value))
    if isinstance(value, float):
        if math.isnan(value):
            return "double 'nan'"
        if math.isinf(value):
            return "double 'inf'" if value > 0 else "double '-inf'"
        return repr(float(value))
    if isinstance(value, _decimal.Decimal):
        if not value.is_finite():
            return _literal(float(value))
        return format(value, "f")
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return f"x'{bytes(value).hex()}'"
    if isinstance(value, _dt.datetime):
        if value.tzinfo is not None:
            value = value.astimezone(_dt.timezone.utc).replace(tzinfo=None)
            return f"timestamp '{value.isoformat(sep=' ')}Z'"
        return f"timestamp '{value.isoformat(sep=' ')}'"
    if isinstance(value, _dt.date):
        return f"date '{value.isoformat()}'"
    if isinstance(value, _dt.time):
        return f"time '{value.isoformat()}'"
    raise TypeError(f"{type(value).__name__} is no value to compare with")


class Condition:
    """A condition on rows: ``&``, ``|`` and ``~`` combine conditions.

    >>> import marq
    >>> str((marq.col("fare") > 10) & ~marq.col("payment").is_in(["card", "cash"]))
    "(fare > 10) and (not (payment in ('card', 'cash')))"
    """

    __slots__ = ("_where",)

    def __init__(self, text: str) -> None:
        self._where = text

    def __and__(self, other: Condition) -> Condition:
        return Condition(f"({self}) and ({_condition(other)})")

    def __or__(self, other: Condition) -> Condition:
        return Condition(f"({self}) or ({_condition(other)})")

    def __invert__(self) -> Condition:
        return Condition(f"not ({self})")

    def __bool__(self) -> bool:
        raise TypeError(
            "a condition has no truth value of its own: combine conditions with &, | and ~, each "
            "in parentheses"
        )

    def __str__(self) -> str:
        return self._where

    def __repr__(self) -> str:
        return f"marq.Condition({self._where!r})"

    def __hash__(self) -> int:
        return hash(self._where)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Condition) and self._where == other._where

    def __getstate__(self) -> tuple[None, dict[str, str]]:
        return None, {"_where": self._where}


def _condition(of: Condition) -> str:
    if not isinstance(of, Condition):
        raise TypeError(f"a condition is wanted, not {type(of).__name__}")
    return str(of)


def _operand(of: Any) -> str:
    if isinstance(of, Value):
        return of._value
    return _literal(of)


class Value:
    """A value of each row: a column, a literal, or what is computed of them."""

    __slots__ = ("_value",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, text: str) -> None:
        self._value = text

    def __getstate__(self) -> tuple[None, dict[str, str]]:
        return None, {"_value": self._value}

    def _compare(self, op: str, other: Any) -> Condition:
        return Condition(f"{self._value} {op} {_operand(other)}")

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        if other is None:
            raise TypeError("nothing is equal to null: use is_null()")
        return self._compare("=", other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        if other is None:
            raise TypeError("nothing differs from null: use is_not_null()")
        return self._compare("<>", other)

    def __lt__(self, other: Any) -> Condition:
        return self._compare("<", other)

    def __le__(self, other: Any) -> Condition:
        return self._compare("<=", other)

    def __gt__(self, other: Any) -> Condition:
        return self._compare(">", other)

    def __ge__(self, other: Any) -> Condition:
        return self._compare(">=", other)

    def _compute(self, op: str, other: Any, swapped: bool = False) -> Value:
        a, b = self._value, _operand(other)
        return Value(f"({b} {op} {a})" if swapped else f"({a} {op} {b})")

    def __add__(self, other: Any) -> Value:
        return self._compute("+", other)

    def __radd__(self, other: Any) -> Value:
        return self._compute("+", other, True)

    def __sub__(self, other: Any) -> Value:
        return self._compute("-", other)

    def __rsub__(self, other: Any) -> Value:
        return self._compute("-", other, True)

    def __mul__(self, other: Any) -> Value:
        return self._compute("*", other)

    def __rmul__(self, other: Any) -> Value:
        return self._compute("*", other, True)

    def __truediv__(self, other: Any) -> Value:
        return self._compute("/", other)

    def __rtruediv__(self, other: Any) -> Value:
        return self._compute("/", other, True)

    def __mod__(self, other: Any) -> Value:
        return self._compute("%", other)

    def __rmod__(self, other: Any) -> Value:
        return self._compute("%", other, True)

    def __abs__(self) -> Value:
        return self.abs()

    def abs(self) -> Value:
        """The number without its sign."""
        return Value(f"abs({self._value})")

    def lower(self) -> Value:
        """The text in small letters."""
        return Value(f"lower({self._value})")

    def upper(self) -> Value:
        """The text in capital letters."""
        return Value(f"upper({self._value})")

    def length(self) -> Value:
        """Characters of the text."""
        return Value(f"length({self._value})")

    def cast(self, type: str) -> Value:
        """The value as another type, such as ``int64``, ``decimal(9, 2)`` or ``string``."""
        if not _TYPE.match(type):
            raise ValueError(f"{type!r} is no type")
        return Value(f"cast({self._value} as {type})")

    def is_null(self) -> Condition:
        """Whether it is null."""
        return Condition(f"{self._value} is null")

    def is_not_null(self) -> Condition:
        """Whether it is not null."""
        return Condition(f"{self._value} is not null")

    def is_empty(self) -> Condition:
        """Whether a list has no element."""
        return Condition(f"{self._value} is empty")

    def is_in(self, values: Iterable[Any]) -> Condition:
        """Whether it is one of some values.

        >>> import marq
        >>> marq.scan("trips.parquet").filter(marq.col("payment").is_in(["card"])).count() > 0
        True
        """
        literals = [_literal(value) for value in values]
        return Condition(f"{self._value} in ({', '.join(literals)})") if literals else _FALSE

    def between(self, low: Any, high: Any) -> Condition:
        """Whether it lies between two values, or is one of them."""
        return Condition(f"{self._value} between {_operand(low)} and {_operand(high)}")

    def like(self, pattern: str) -> Condition:
        """Whether it has a pattern: ``%`` is any text, ``_`` one character."""
        return Condition(f"{self._value} like {_text(pattern)}")

    def ilike(self, pattern: str) -> Condition:
        """The same, whether letters are small or capital."""
        return Condition(f"{self._value} ilike {_text(pattern)}")

    def starts_with(self, prefix: str) -> Condition:
        """Whether the text begins with another."""
        return Condition(f"starts_with({self._value}, {_text(prefix)})")

    def __repr__(self) -> str:
        return f"marq.Value({self._value!r})"

    def __str__(self) -> str:
        return self._value

    def __bool__(self) -> bool:
        raise TypeError("a value of rows has no truth value of its own")


_FALSE = Condition("false")


class Column(Value):
    """A column, by its name or its dotted path."""

    __slots__ = ("_path",)

    def __init__(self, path: str) -> None:
        super().__init__(_name(path))
        #: As it is given, where no condition is written.
        self._path = path

    def __getstate__(self) -> tuple[None, dict[str, str]]:
        return None, {"_value": self._value, "_path": self._path}

    def any(self) -> Value:
        """Any element of a list: ``col("scores").any() > 3``."""
        return Value(f"any({self._value})")

    def all(self) -> Value:
        """All elements of a list."""
        return Value(f"all({self._value})")

    def is_true(self) -> Condition:
        """Whether a column of booleans is true."""
        return Condition(self._value)

    def variant_get(self, path: str, type: str) -> Value:
        """A part of a VARIANT, such as ``col("v").variant_get("$.a[0]", "int64")``."""
        return Value(f"variant_get({self._value}, {_text(path)}, {_text(type)})")

    def intersects(self, xmin: float, ymin: float, xmax: float, ymax: float) -> Condition:
        """Whether the box around a geometry and a rectangle have a point in common."""
        box = ", ".join(_literal(float(v)) for v in (xmin, ymin, xmax, ymax))
        return Condition(f"intersects({self._value}, {box})")


def col(name: str) -> Column:
    """A column, by its name or its dotted path.

    >>> import marq
    >>> marq.scan("trips.parquet").filter(marq.col("id") < 10).count()
    10
    """
    return Column(name)


def lit(value: Any) -> Value:
    """A literal, where an operator of Python would not know that it is one.

    >>> import marq
    >>> str(marq.lit(3) + marq.col("id") > 7)
    '(3 + id) > 7'
    """
    return Value(_literal(value))


def all_of(conditions: Iterable[Condition]) -> Condition:
    """All of these conditions; true if there is none."""
    parts = [f"({_condition(of)})" for of in conditions]
    return Condition(" and ".join(parts) or "true")


def any_of(conditions: Iterable[Condition]) -> Condition:
    """One of these conditions at least; false if there is none."""
    parts = [f"({_condition(of)})" for of in conditions]
    return Condition(" or ".join(parts) or "false")
