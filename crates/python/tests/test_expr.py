"""Conditions as objects."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import pickle
from typing import Any

import marq
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from marq import col

COLUMNS: dict[str, tuple[pa.DataType, list[Any]]] = {
    "int": (pa.int64(), [1, 2, 3]),
    "float": (pa.float64(), [1.5, float("nan"), float("-inf")]),
    "text": (pa.string(), ["it's", 'say "x"', "%_\\"]),
    "bytes": (pa.binary(), [b"\0", b"\xff'", b""]),
    "date": (pa.date32(), [dt.date(2024, 1, 1), dt.date(1969, 1, 1), dt.date(9999, 12, 31)]),
    "stamp": (
        pa.timestamp("us"),
        [dt.datetime(2024, 1, 1, 1, 2, 3, 456789), dt.datetime(1900, 1, 1), dt.datetime(2024, 1, 1)],
    ),
    "utc": (
        pa.timestamp("us", "UTC"),
        [dt.datetime(2024, 1, i, tzinfo=dt.timezone(dt.timedelta(hours=2))) for i in (1, 2, 3)],
    ),
    "time": (pa.time64("us"), [dt.time(1, 2, 3, 4), dt.time(0), dt.time(23, 59, 59, 999999)]),
    "decimal": (pa.decimal128(20, 4), [decimal.Decimal(n) for n in ("1.5000", "-0.0001", "1E+3")]),
    "bool": (pa.bool_(), [True, False, True]),
    "and": (pa.int64(), [1, 2, 3]),
    'odd "name", with a space': (pa.int64(), [1, 2, 3]),
    "ünï": (pa.int64(), [1, 2, 3]),
}


@pytest.fixture(scope="module")
def data() -> bytes:
    out = io.BytesIO()
    pq.write_table(pa.table({k: pa.array(v, t) for k, (t, v) in COLUMNS.items()}), out)
    return out.getvalue()


@pytest.mark.parametrize("name", COLUMNS)
def test_literals_of_each_type_find_their_row(data: bytes, name: str) -> None:
    for row, value in enumerate(COLUMNS[name][1]):
        found = marq.read(data, where=col(name) == value, columns=["int"])["int"].to_pylist()
        assert row + 1 in found, (str(col(name) == value), found)
        assert marq.scan(data).filter(col(name).is_in([value, value])).count() >= 1
        assert marq.scan(data).filter(~(col(name) != value)).count() == len(found)


@pytest.mark.parametrize(
    ("condition", "rows"),
    [
        (col("text").like("it_s"), 1),
        (col("text").ilike("SAY%"), 1),
        (col("text").starts_with("it's"), 1),
        (col("text").length() == 4, 1),
        (col("text").upper() == "IT'S", 1),
        (col("text").lower() == "it's", 1),
        (col("int") * 2 == 4, 1),
        (2 * col("int") - 1 == 3, 1),
        (col("int") / 2 > 1, 1),
        (6 / col("int") == 2, 1),
        (7 % col("int") == 1, 2),
        (col("int") > col("and") - 1, 3),
        (col("bool").is_true(), 2),
        (marq.lit(2) <= col("int"), 2),
        (col("int").cast("string") == "2", 1),
    ],
)
def test_computed_values_are_compared(data: bytes, condition: marq.Condition, rows: int) -> None:
    assert marq.scan(data).filter(condition).count() == rows
    assert marq.scan(data).filter(pickle.loads(pickle.dumps(condition))).count() == rows


def test_lists_are_tested_by_their_elements() -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({"l": [[1, 5], [2], [], None]}), out)
    assert marq.scan(out).filter(col("l.list.element").any() > 4).count() == 1
    assert marq.scan(out).filter(col("l").is_empty()).count() == 1


def test_a_condition_has_no_truth() -> None:
    with pytest.raises(TypeError):
        bool(col("a") > 1)
    with pytest.raises(TypeError):
        1 < col("a") < 3  # noqa: B015
    with pytest.raises(TypeError):
        bool(col("a"))


def test_null_is_compared_by_is_null() -> None:
    for wrong in (lambda: col("a") == None, lambda: col("a") != None):  # noqa: E711
        with pytest.raises(TypeError):
            wrong()


@pytest.mark.parametrize("wrong", [object(), [1], {"a": 1}, 1j])
def test_what_is_no_literal_is_refused(wrong: Any) -> None:
    with pytest.raises(TypeError):
        col("a") > wrong  # noqa: B015


def test_no_text_ends_a_literal_early(data: bytes) -> None:
    for text in ("' or true or 'x", "\\", "''", "\n", "\0", "x' --"):
        assert marq.scan(data).filter(col("text") == text).count() == 0
        with pytest.raises(marq.UsageError):
            marq.scan(data).filter(col(text) == 1).count()
    with pytest.raises(ValueError):
        col("a").cast("int64) or (true")


def test_texts_that_are_no_conditions_are_refused(data: bytes) -> None:
    for text in ("", "int >", "int = 'x", "(", "int == 1 nonsense"):
        with pytest.raises(marq.UsageError):
            marq.scan(data, where=text).count()
    with pytest.raises(TypeError):
        marq.scan(data).filter(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        (col("a") > 1) & 5  # type: ignore[operator]


def test_scalars_of_numpy_are_literals(data: bytes) -> None:
    np = pytest.importorskip("numpy")
    assert marq.scan(data).filter(col("int") == np.int64(2)).count() == 1
    assert marq.scan(data).filter(col("float") == np.float64(1.5)).count() == 1
    assert marq.scan(data).filter(col("bool") == np.bool_(True)).count() == 2


def test_conditions_are_compared_and_hashed() -> None:
    assert (col("a") > 1) == (col("a") > 1) and hash(col("a") > 1) == hash(col("a") > 1)
    assert (col("a") > 1) != (col("a") > 2)
    assert "a > 1" in repr(col("a") > 1) and "a" in repr(col("a"))
