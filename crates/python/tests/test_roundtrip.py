"""Random tables, against pyarrow. MARQ_CASES says how many."""

from __future__ import annotations

import io
import os
from typing import Any

import marq
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

CASES = int(os.environ.get("MARQ_CASES", "150"))
many = settings(
    max_examples=CASES, deadline=None, derandomize=True,
    suppress_health_check=list(HealthCheck),
)

INTS = {t: st.integers(*r) for t, r in {
    pa.int8(): (-(2**7), 2**7 - 1), pa.uint8(): (0, 2**8 - 1), pa.int16(): (-(2**15), 2**15 - 1),
    pa.uint32(): (0, 2**32 - 1), pa.int32(): (-(2**31), 2**31 - 1),
    pa.int64(): (-(2**63), 2**63 - 1), pa.uint64(): (0, 2**64 - 1),
}.items()}
LEAVES: dict[Any, Any] = {
    **INTS,
    pa.bool_(): st.booleans(),
    pa.float32(): st.floats(width=32, allow_nan=False),
    pa.float64(): st.floats(allow_nan=False),
    pa.string(): st.text(max_size=12),
    pa.large_string(): st.text(max_size=3),
    pa.binary(): st.binary(max_size=12),
    pa.binary(3): st.binary(min_size=3, max_size=3),
    pa.date32(): st.dates(),
    pa.timestamp("us"): st.datetimes(),
    pa.timestamp("ns", "UTC"): st.integers(-(2**62), 2**62),
    pa.time64("us"): st.times(),
    pa.decimal128(12, 3): st.decimals(-(10**8), 10**8, places=3, allow_nan=False),
}


def nullable(values: Any) -> Any:
    return st.one_of(st.none(), values)


@st.composite
def columns(draw: Any, rows: int, depth: int = 2) -> pa.Array:
    kind, values = draw(types(depth))
    low_cardinality = draw(st.booleans())
    if low_cardinality and rows:
        pool = draw(st.lists(nullable(values), min_size=1, max_size=3))
        return pa.array([draw(st.sampled_from(pool)) for _ in range(rows)], kind)
    return pa.array(draw(st.lists(nullable(values), min_size=rows, max_size=rows)), kind)


@st.composite
def types(draw: Any, depth: int) -> Any:
    how = draw(st.integers(0, 9)) if depth else 9
    if how == 0:
        kind, values = draw(types(depth - 1))
        return pa.list_(kind), st.lists(nullable(values), max_size=4)
    if how == 1:
        a, b = draw(types(depth - 1)), draw(types(depth - 1))
        fields = st.fixed_dictionaries({"a": nullable(a[1]), "b": nullable(b[1])})
        return pa.struct([("a", a[0]), ("b", b[0])]), fields
    if how == 2:
        kind, values = draw(types(depth - 1))
        pairs = st.lists(st.tuples(st.text(max_size=3), nullable(values)), max_size=3)
        return pa.map_(pa.string(), kind), pairs
    return draw(st.sampled_from(list(LEAVES.items())))


@st.composite
def tables(draw: Any) -> pa.Table:
    rows = draw(st.integers(0, 40))
    arrays = draw(st.lists(columns(rows), min_size=1, max_size=4))
    return pa.table(arrays, names=[f"c{i}" for i in range(len(arrays))])


@many
@given(table=tables(), codec=st.sampled_from(["none", "snappy", "zstd", "lz4_raw"]),
       group=st.sampled_from([1, 7, 1000]), profile=st.sampled_from(["balanced", "small", "fast_read", "compatible"]))
def test_pyarrow_reads_what_we_write(table: pa.Table, codec: str, group: int, profile: str) -> None:
    out = io.BytesIO()
    report = marq.write(table, out, codec=codec, row_group_rows=group, profile=profile, page_rows=5)
    assert report.rows == table.num_rows
    assert pq.read_table(io.BytesIO(out.getvalue())).equals(table)
    assert pa.table(marq.read(out)).equals(table)


@many
@given(table=tables(), group=st.sampled_from([1, 7, 1000]), v2=st.booleans(), dictionary=st.booleans(),
       rows=st.sampled_from([1, 3, 65_536]), data=st.data())
def test_we_read_what_pyarrow_writes(
    table: pa.Table, group: int, v2: bool, dictionary: bool, rows: int, data: Any
) -> None:
    out = io.BytesIO()
    pq.write_table(
        table, out, row_group_size=group, use_dictionary=dictionary, write_page_index=True,
        data_page_version="2.0" if v2 else "1.0", data_page_size=20, write_batch_size=4,
    )
    assert pa.table(marq.read(out, rows=rows)).equals(table)
    if table.num_rows:
        wanted = data.draw(st.lists(st.integers(0, table.num_rows - 1), max_size=8))
        assert pa.table(marq.scan(out).take(wanted)).equals(table.take(pa.array(wanted, pa.int64())))
    assert marq.Table(table).to_pydict() == {
        name: column.to_pylist() for name, column in zip(table.column_names, table.columns)
    } or any("ns" in str(field.type) for field in table.schema)
