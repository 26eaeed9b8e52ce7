"""Reading into memory, and what a table can do."""

from __future__ import annotations

import datetime as dt
import decimal
import io
import pathlib
import pickle
import time
from typing import Any

import marq
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def written(table: pa.Table, **options: object) -> bytes:
    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def test_all_rows_are_read_as_pyarrow_reads_them(trips: str) -> None:
    assert pa.table(marq.read(trips, columns=["id", "fare"])).equals(
        pq.read_table(trips, columns=["id", "fare"]).replace_schema_metadata(
            pa.table(marq.read(trips, columns=["id"])).schema.metadata
        )
    )


def test_columns_come_in_the_order_that_was_asked_for(trips: str) -> None:
    assert marq.read(trips, columns=["fare", "id"]).column_names == ["fare", "id"]


def test_one_name_is_one_column(trips: str) -> None:
    assert marq.read(trips, columns="fare").column_names == ["fare"]


def test_no_columns_leave_the_number_of_rows(trips: str) -> None:
    table = marq.read(trips, columns=[])
    assert (table.num_rows, table.num_columns) == (1000, 0)


def test_a_column_that_does_not_exist_is_named(trips: str) -> None:
    with pytest.raises(marq.UsageError, match="nonsense"):
        marq.read(trips, columns=["nonsense"])


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("id < 10", 10),
        ("id >= 990", 10),
        ("id = 5 or id = 7", 2),
        ("id in (1, 2, 3, 3)", 3),
        ("not (id >= 1)", 1),
        ("id between 10 and 19", 10),
        ("id is null", 0),
        ("id < 0", 0),
        (marq.col("id") < 10, 10),
        ((marq.col("id") < 10) & (marq.col("id") > 7), 2),
        ((marq.col("id") == 1) | (marq.col("id") == 2), 2),
        (~(marq.col("id") >= 3), 3),
        (marq.col("id").between(3, 4), 2),
        (marq.col("id") % 100 == 0, 10),
        (marq.col("id") + 1 == 10, 1),
        (10 - marq.col("id") > 5, 5),
        (abs(marq.col("id") - 5) < 2, 3),
        (marq.col("id").cast("string").is_in(["1", "2"]), 2),
        (marq.col("id").is_in([]), 0),
        (marq.col("id").is_not_null(), 1000),
        (marq.all_of([]), 1000),
        (marq.any_of([]), 0),
    ],
)
def test_conditions_leave_the_rows_that_they_say(trips: str, where: object, rows: int) -> None:
    assert marq.read(trips, where=where, columns=["id"]).num_rows == rows  # type: ignore[arg-type]
    assert marq.scan(trips, where=where).count() == rows


def test_limit_and_offset_count_rows_that_pass(trips: str) -> None:
    table = marq.read(trips, where="id % 2 = 0", offset=3, limit=2, columns=["id"])
    assert table["id"].to_pylist() == [6, 8]
    assert marq.scan(trips, where="id % 2 = 0", offset=3, limit=2).count() == 2


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_change_nothing(trips: str, threads: int) -> None:
    assert marq.read(trips, threads=threads) == marq.read(trips)


def test_memory_is_a_limit_with_a_hint(trips: str) -> None:
    with pytest.raises(marq.LimitError) as e:
        marq.read(trips, memory=100)
    assert e.value.kind == "limit" and e.value.detail == "memory"
    assert e.value.hint is not None and "memory=" in e.value.hint


@pytest.mark.parametrize("text", ["64MiB", "1GB", "100000kb", "5e3"])
def test_memory_may_be_text(trips: str, text: str) -> None:
    if text == "5e3":
        with pytest.raises(marq.UsageError):
            marq.read(trips, memory=text)
    else:
        assert marq.read(trips, memory=text).num_rows == 1000


def test_row_groups_are_chosen_by_number(trips: str) -> None:
    groups = marq.metadata(trips).row_groups["rows"].to_pylist()
    assert marq.read(trips, row_groups=[1]).num_rows == groups[1]
    with pytest.raises(marq.UsageError):
        marq.read(trips, row_groups=[99])


def test_rows_tell_where_they_come_from(trips: str) -> None:
    table = marq.read(
        trips, columns=["id"], where="id > 997", row_number="n", file_name="file", row_group="g"
    )
    assert table["n"].to_pylist() == [998, 999]
    assert table["file"].to_pylist() == [trips] * 2
    assert len(set(table["g"].to_pylist())) == 1


def test_target_widens_types() -> None:
    data = written(pa.table({"a": pa.array([1, 2], pa.int32())}))
    target = pa.schema([pa.field("a", pa.int64()), pa.field("b", pa.string())])
    table = marq.read(data, target=target)
    assert table.schema.types == ["Int64", "Utf8"]
    assert table.to_pydict() == {"a": [1, 2], "b": [None, None]}


def test_union_has_the_columns_of_all_files(tmp_path: pathlib.Path) -> None:
    pq.write_table(pa.table({"a": pa.array([1], pa.int32()), "b": ["x"]}), tmp_path / "1.parquet")
    pq.write_table(pa.table({"a": [2.5], "c": [True]}), tmp_path / "2.parquet")
    with pytest.raises(marq.UsageError):
        marq.read(tmp_path)
    assert marq.read(tmp_path, target="union").to_pylist() == [
        {"a": 1.0, "b": "x", "c": None},
        {"a": 2.5, "b": None, "c": True},
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"limits": {"memory": 1}},
        {"url_options": {"timeouts": 1}},
        {"url_options": {"timeout": 0}},
        {"url_options": {"timeout": -1.0}},
        {"url_options": {"timeout": float("nan")}},
    ],
)
def test_unknown_limits_and_options_of_urls_are_refused(trips: str, wrong: Any) -> None:
    with pytest.raises(marq.UsageError, match="memory_bytes|timeout"):
        marq.read(trips, **wrong)


def test_rows_without_columns_are_limited(trips: str) -> None:
    assert marq.read(trips, columns=[], limits={"rows_without_columns": 1000}).num_rows == 1000
    with pytest.raises(marq.LimitError):
        marq.read(trips, columns=[], limits={"rows_without_columns": 999})


def test_options_that_do_not_exist_are_refused(trips: str) -> None:
    with pytest.raises(TypeError):
        marq.read(trips, colums=["id"])
    for wrong in ({"rows": 0}, {"threads": 0}, {"limit": -1}, {"target": "x"}, {"variants": "x"}):
        with pytest.raises(marq.UsageError):
            marq.read(trips, **wrong)  # type: ignore[arg-type]


VALUES = {
    "bool": pa.array([True, None, False]),
    "i8": pa.array([1, None, -1], pa.int8()),
    "u64": pa.array([2**64 - 1, None, 0], pa.uint64()),
    "f16": pa.array([1.5, None, -0.5], pa.float16()),
    "f64": pa.array([1.5, None, -1e300]),
    "text": pa.array(["ä", None, ""]),
    "large": pa.array(["ä", None, ""], pa.large_string()),
    "view": pa.array(["ä" * 20, None, ""], pa.string_view()),
    "bytes": pa.array([b"\0\xff", None, b""]),
    "fixed": pa.array([b"abc", None, b"def"], pa.binary(3)),
    "date": pa.array([dt.date(2024, 2, 29), None, dt.date(1969, 12, 31)]),
    "time": pa.array([dt.time(1, 2, 3, 4), None, dt.time(0)], pa.time64("us")),
    "time_ms": pa.array([dt.time(23, 59, 59), None, dt.time(0)], pa.time32("ms")),
    "stamp": pa.array([dt.datetime(2024, 1, 1, 12), None, dt.datetime(1960, 1, 1)], pa.timestamp("us")),
    "utc": pa.array(
        [dt.datetime(2024, 1, 1, 12, tzinfo=dt.timezone.utc), None, None], pa.timestamp("ms", "UTC")
    ),
    "delta": pa.array([dt.timedelta(days=1, seconds=-1), None, dt.timedelta(0)], pa.duration("us")),
    "decimal": pa.array([decimal.Decimal("1.50"), None, decimal.Decimal("-9.99")], pa.decimal128(5, 2)),
    "list": pa.array([[1, None], None, []]),
    "struct": pa.array([{"a": 1, "b": "x"}, None, {"a": None, "b": None}]),
    "map": pa.array([[("k", 1)], None, []], pa.map_(pa.string(), pa.int64())),
    "dict": pa.array(["a", None, "a"]).dictionary_encode(),
    "null": pa.nulls(3),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_of_each_type_are_those_of_pyarrow(name: str) -> None:
    array = VALUES[name]
    table = marq.read(written(pa.table({"c": array})))
    assert table["c"].to_pylist() == array.to_pylist()
    assert [row["c"] for row in table.to_pylist()] == array.to_pylist()
    assert table["c"][0] == array[0].as_py() and table["c"][-1] == array[-1].as_py()


def test_a_dictionary_is_not_converted_for_each_row(path: str) -> None:
    def seconds(rows: int) -> float:
        values = [f"v{i}" for i in range(rows)]
        lists = [[value] if i % 7 else None for i, value in enumerate(values)]
        pq.write_table(pa.table({"l": lists, "s": values}), path)
        table = marq.read(path, dictionaries=True)
        assert "Dictionary" in table.schema.types[0]
        begun = time.perf_counter()
        assert table["l"].to_pylist() == lists
        assert [table["s"][i] for i in range(0, rows, 8)] == values[::8]
        return time.perf_counter() - begun

    # Four times the rows take 16 times as long if each converts all values.
    assert seconds(8000) < 8 * seconds(2000) + 0.5


def test_a_time_beyond_datetime_is_a_number() -> None:
    table = marq.Table(pa.table({"t": pa.array([2**62], pa.timestamp("us"))}))
    assert table["t"].to_pylist() == [2**62]


def test_nested_paths_are_projected(trips: str) -> None:
    data = written(pa.table({"s": [{"a": 1, "b": 2}]}))
    assert marq.read(data, columns=["s.b"]).to_pylist() == [{"s": {"b": 2}}]


def test_tables_are_sliced_and_indexed(trips: str) -> None:
    table = marq.read(trips, columns=["id"], rows=300)
    assert len(table) == 1000 and len(table.batches()) >= 4
    part = table.slice(290, 20)
    assert part["id"].to_pylist() == list(range(290, 310))
    assert table.slice(995)["id"].to_pylist() == list(range(995, 1000))
    assert table.slice(2000).num_rows == 0
    assert table[0].name == table[-1].name == "id"
    for wrong in ("x", 5, -7):
        with pytest.raises((KeyError, IndexError)):
            table[wrong]  # type: ignore[index]
    with pytest.raises(IndexError):
        table["id"][1000]
    assert table.nbytes >= 8000


def test_tables_are_equal_by_their_values(trips: str) -> None:
    assert marq.read(trips, rows=100) == marq.read(trips, rows=333)
    assert marq.read(trips) != marq.read(trips, limit=999)
    assert marq.read(trips) != 5


def test_a_notebook_shows_a_table(trips: str) -> None:
    html = marq.read(trips)._repr_html_()
    assert html.count("<tr>") == 11 and "1000 rows" in html
    table = marq.Table(pa.table({"<b>": ["<script>"]}))
    assert "<script>" not in table._repr_html_() and "<b>" not in table._repr_html_()
    assert "<table>" in marq.scan(trips)._repr_html_()
    assert "<table>" in marq.metadata(trips)._repr_html_()
    assert "Table of 1000 rows" in repr(marq.read(trips))


def test_schemas_compare_and_print(trips: str) -> None:
    schema = marq.schema(trips)
    assert schema == marq.Schema(marq.read(trips)) == marq.Schema(pa.schema(schema))
    assert "id: Int64 not null" in repr(schema) or "id: Int64" in repr(schema)
    assert len(schema) == len(schema.names) == len(schema.types) == len(schema.nullable)
    with pytest.raises(marq.UsageError):
        marq.Schema(5)


def test_numpy_takes_a_column_without_a_copy(trips: str) -> None:
    np = pytest.importorskip("numpy")
    column = marq.read(trips, columns=["id"])["id"]
    array = np.asarray(column)
    assert array.dtype == np.int64 and array.tolist() == list(range(1000))
    assert not array.flags.writeable
    memory = memoryview(column)  # type: ignore[arg-type]
    del column
    assert memory[999] == 999
    sliced = marq.read(trips, columns=["id"]).slice(10, 5)["id"]
    assert np.asarray(sliced).tolist() == [10, 11, 12, 13, 14]


@pytest.mark.parametrize("name", ["text", "f64", "bool"])
def test_a_column_without_a_buffer_says_so(name: str) -> None:
    with pytest.raises(BufferError):
        memoryview(marq.read(written(pa.table({"c": VALUES[name]})))["c"])  # type: ignore[arg-type]


def test_values_go_into_arrays_of_numpy(trips: str) -> None:
    np = pytest.importorskip("numpy")
    required = pa.schema([pa.field("a", pa.int64(), False), pa.field("b", pa.float32(), False)])
    data = written(pa.table({"a": range(1000), "b": [0.5] * 1000}, schema=required))
    out = {"a": np.zeros(1000, "int64"), "b": np.zeros(1000, "float32")}
    assert marq.read_into(data, out, rows=300) == 1000
    assert out["a"].tolist() == list(range(1000)) and set(out["b"].tolist()) == {0.5}
    assert marq.scan(data).filter("a < 5").read_into({"a": np.zeros(5, "int64")}) == 5
    for wrong in (np.zeros(999, "int64"), np.zeros(1000, "int32"), np.zeros(2000, "int64")[::2]):
        with pytest.raises(marq.UsageError):
            marq.read_into(data, {"a": wrong})
    nulls = written(pa.table({"a": pa.array([1, None])}))
    with pytest.raises(marq.UsageError, match="null"):
        marq.read_into(nulls, {"a": np.zeros(2, "int64")})


def test_progress_ends_at_all_rows(trips: str) -> None:
    seen: list[tuple[int, int]] = []
    table = marq.read(trips, rows=100, progress=lambda rows, total: seen.append((rows, total)))
    assert table.num_rows == 1000 and seen[-1] == (1000, 1000) and len(seen) >= 10
    assert marq.read(trips, progress=True).num_rows == 1000


def test_a_callback_that_raises_ends_the_read(trips: str) -> None:
    def stop(rows: int, total: int) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        marq.read(trips, progress=stop)


def test_errors_are_pickled(trips: str) -> None:
    with pytest.raises(marq.Error) as e:
        marq.read(b"PAR1 and nothing")
    again = pickle.loads(pickle.dumps(e.value))
    assert type(again) is type(e.value) and again.kind == e.value.kind
    assert str(again) == str(e.value) and again.hint == e.value.hint


def test_reads_and_writes_are_logged(trips: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("DEBUG", logger="marq"):
        table = marq.read(trips, limit=5)
        marq.scan(trips).count()
        marq.write(table, io.BytesIO())
    texts = [record.getMessage() for record in caplog.records if record.name == "marq"]
    assert any("read 5 rows" in text for text in texts)
    assert any("counted 1000 rows" in text for text in texts)
    assert any("wrote 5 rows" in text for text in texts)
