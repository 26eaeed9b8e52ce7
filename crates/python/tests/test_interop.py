"""Others take what we read, and give what we write."""

from __future__ import annotations

import multiprocessing
import pathlib
import shutil
import subprocess
import sys
from typing import Any

import marq
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def test_nothing_else_is_imported(trips: str) -> None:
    code = (
        "import sys, marq; t = marq.read(sys.argv[1]); t.to_pylist(); "
        "heavy = {'pyarrow', 'polars', 'pandas', 'duckdb', 'nanoarrow', 'numpy', 'asyncio'}; "
        "assert not heavy & set(sys.modules), heavy & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, trips], check=True)


def test_pyarrow_takes_tables_scans_and_batches(trips: str) -> None:
    scan = marq.scan(trips).select("id")
    for of in (scan, scan.read(), scan.batches(), scan.shuffled(1)):
        assert pa.table(of).num_rows == 1000
    assert pa.RecordBatchReader.from_stream(scan).read_all().num_rows == 1000
    assert pa.record_batch(scan.limit(3).read()).num_rows == 3
    assert pa.array(scan.read()["id"]).to_pylist() == list(range(1000))
    assert pa.schema(scan.schema).names == ["id"]
    assert scan.read().to_pyarrow().num_rows == 1000


def test_pyarrow_may_ask_for_another_schema(trips: str) -> None:
    schema = pa.schema([pa.field("id", pa.int32())])
    scan = marq.scan(trips).select("id")
    assert pa.table(scan.read(), schema=schema).schema == schema
    assert pa.RecordBatchReader.from_stream(scan, schema=schema).read_all().schema == schema
    with pytest.raises((pa.ArrowInvalid, marq.Error, OSError)):
        pa.table(marq.read(trips, columns=["id"]), schema=pa.schema([pa.field("id", pa.int8())]))


@pytest.mark.parametrize(
    "rows",
    [
        [{"a": {"b": i, "c": {"d": str(i)}}} if i % 4 else None for i in range(20)],
        [[{"a": {"b": i}}] * (i % 3) for i in range(20)],
        [{"a": [{"b": {"c": i}}]} for i in range(20)],
        [{"a": {"b": {"c": None if i % 2 else [i]}}} for i in range(20)],
    ],
)
def test_slices_of_structs_in_structs_have_their_rows(rows: list[Any], path: str) -> None:
    whole = pa.table({"c": rows, "n": list(range(20))})
    flat = whole.column("c").combine_chunks()
    for start, length in [(0, 20), (1, 19), (1, 5), (7, 0), (19, 1)]:
        part = whole.slice(start, length)
        assert marq.Table(part).to_pylist() == part.to_pylist()
        marq.write(part, path)
        assert pq.read_table(path).to_pylist() == part.to_pylist()
        for batch in part.to_batches():
            assert marq.Table(batch.slice(0)).to_pylist() == part.to_pylist()
            column = pa.StructArray.from_arrays([flat.slice(start, length)], ["x"]).slice(0)
            assert marq.Table(column).to_pylist() == column.to_pylist()


def test_a_schema_that_is_asked_for_has_the_same_columns(path: str) -> None:
    pq.write_table(pa.table({"a": [1], "b": [2], "s": [{"x": 1, "y": 2}]}), path)
    fields = [pa.field(name, pa.int64()) for name in "ab"]
    struct = pa.struct([("x", pa.int32()), ("y", pa.int64())])
    scan, table = marq.scan(path), marq.read(path)
    for schema in (
        pa.schema([fields[1], fields[0], pa.field("s", struct)]),
        pa.schema([*fields, pa.field("t", struct)]),
        pa.schema([*fields, pa.field("s", pa.struct([("y", pa.int64()), ("z", pa.int64())]))]),
        pa.schema(fields),
    ):
        for work in (
            lambda: pa.RecordBatchReader.from_stream(scan, schema=schema),
            lambda: pa.table(table, schema=schema),
            lambda: pa.record_batch(table, schema=schema),
        ):
            with pytest.raises(marq.UsageError, match="columns"):
                work()
    other = pa.schema([*fields, pa.field("s", struct)])
    assert pa.table(table, schema=other)["s"].to_pylist() == [{"x": 1, "y": 2}]


def test_what_was_moved_out_of_a_capsule_is_refused(trips: str) -> None:
    class Capsules:
        def __init__(self, array: Any, schema: Any = None) -> None:
            self.array, self.schema = array, schema

        def __arrow_c_array__(self, requested_schema: object = None) -> Any:
            return self.array

        def __arrow_c_schema__(self) -> Any:
            return self.schema

    rows = pa.record_batch({"a": range(100_000)})
    structs = pa.StructArray.from_arrays(rows.columns, ["a"])
    used, only_array = rows.__arrow_c_array__(), structs.__arrow_c_array__()
    schema = rows.schema.__arrow_c_schema__()
    pa.RecordBatch._import_from_c_capsule(*used)
    pa.Array._import_from_c_capsule(*only_array)
    pa.Schema._import_from_c_capsule(schema)
    fresh = structs.type.__arrow_c_schema__()
    for work in (
        lambda: marq.Table(Capsules(used)),
        lambda: marq.Table(Capsules((fresh, only_array[1]))),
        lambda: marq.variant_to_json(Capsules((fresh, only_array[1]))),
        lambda: marq.Schema(Capsules(None, schema)),
        lambda: marq.read(trips).__arrow_c_stream__(schema),
    ):
        with pytest.raises(marq.UsageError, match="used before"):
            work()
    # We move an array out, too.
    once = Capsules(rows.__arrow_c_array__())
    assert marq.Table(once).num_rows == 100_000
    with pytest.raises(marq.UsageError, match="used before"):
        marq.Table(once)


def test_polars_takes_and_gives(trips: str, path: str) -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(marq.scan(trips).select("id", "fare", "payment"))
    assert frame.height == 1000
    assert frame.equals(pl.read_parquet(trips, columns=["id", "fare", "payment"]))
    assert pl.Series(marq.read(trips)["id"]).to_list() == list(range(1000))
    marq.write(frame, path)
    assert pl.read_parquet(path).equals(frame)
    assert marq.read(trips, columns=["id"]).to_polars().height == 1000


def test_pandas_takes_and_gives(trips: str, path: str) -> None:
    pd = pytest.importorskip("pandas")
    frame = marq.read(trips, columns=["id", "fare"]).to_pandas()
    assert frame["id"].tolist() == list(range(1000))
    assert pd.DataFrame.from_arrow(marq.scan(trips).select("id")).shape == (1000, 1)
    marq.write(frame, path)
    assert pd.read_parquet(path).equals(frame)


def test_duckdb_takes_and_gives(trips: str, path: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    taken = marq.scan(trips).select("id", "fare")
    assert duckdb.sql("select count(*), max(id) from taken").fetchall() == [(1000, 999)]
    table = marq.read(trips)
    assert duckdb.sql("select sum(id) from taken").fetchall() == [(499500,)]
    rows = marq.Table(table)
    assert duckdb.sql("select count(*) from rows").fetchall() == [(1000,)]
    marq.write(duckdb.sql("select id, fare from taken where id < 10"), path)
    assert marq.read(path)["id"].to_pylist() == list(range(10))


def test_a_library_may_release_the_gil_below_us(trips: str, path: str) -> None:
    """DuckDB runs a query over a scan while we ask it for its stream: without the GIL, which pyo3
    does not know. That ended the interpreter."""
    duckdb = pytest.importorskip("duckdb")
    with open(trips, "rb") as file:
        for source in (trips, file, file.read()):
            for _ in range(10):
                taken = marq.scan(source).select("id", "payment")
                marq.write(duckdb.sql("select * from taken where id < 10"), path)
                marq.export([duckdb.sql("select * from taken")], path + ".folder", summary=False)
                shutil.rmtree(path + ".folder")
    assert marq.read(path).num_rows == 10


def test_nanoarrow_takes_and_gives(trips: str, path: str) -> None:
    na = pytest.importorskip("nanoarrow")
    array = na.Array(marq.read(trips, columns=["id"])["id"])
    assert array.to_pylist() == list(range(1000))
    stream = na.ArrayStream(marq.scan(trips).select("id"))
    assert sum(len(chunk) for chunk in stream.iter_chunks()) == 1000
    marq.write(na.ArrayStream(marq.scan(trips).select("id")), path)
    assert marq.read(path).num_rows == 1000


def test_dask_reads_the_parts(trips: str) -> None:
    dask = pytest.importorskip("dask")
    parts = marq.scan(trips).streams(3)
    counts = [dask.delayed(lambda part: part.count())(part) for part in parts]
    assert sum(dask.compute(*counts, scheduler="threads")) == 1000


@pytest.mark.parametrize("start", [None, *multiprocessing.get_all_start_methods()])
def test_a_data_loader_of_torch_has_all_rows_once(
    trips: str, tmp_path: pathlib.Path, start: str | None
) -> None:
    pytest.importorskip("torch", reason="too large for CI: run it by hand")
    # A worker that is spawned imports the data set.
    code = """
import sys
from typing import Any
import marq
from torch.utils.data import DataLoader, IterableDataset, get_worker_info

class Rows(IterableDataset):
    def __init__(self, path, epoch):
        scan = marq.scan(path).select("id", "distance").filter("distance is not null")
        self.scan = scan.shuffled(epoch, 200)

    def __iter__(self):
        worker = get_worker_info()
        part = self.scan if worker is None else self.scan.streams(worker.num_workers)[worker.id]
        for batch in part.batches(rows=64):
            yield from batch.to_pylist()

if __name__ == "__main__":
    start = None if sys.argv[2] == "None" else sys.argv[2]
    workers = {"num_workers": 0} if start is None else {"num_workers": 2, "multiprocessing_context": start}
    expected = marq.read(sys.argv[1], columns="id", where="distance is not null")["id"].to_pylist()
    orders = []
    for epoch in range(2):
        ids = []
        for batch in DataLoader(Rows(sys.argv[1], epoch), batch_size=32, **workers):
            assert str(batch["distance"].dtype) == "torch.float64"
            ids += batch["id"].tolist()
        assert sorted(ids) == expected, len(ids)
        orders.append(ids)
    assert orders[0] != orders[1] and orders[0] != expected
"""
    file = tmp_path / "loader.py"
    file.write_text(code)
    subprocess.run([sys.executable, str(file), trips, str(start)], check=True, timeout=240)


def test_arro3_takes_and_gives(trips: str, path: str) -> None:
    core = pytest.importorskip("arro3.core")
    table = core.Table.from_arrow(marq.scan(trips).select("id"))
    assert table.num_rows == 1000
    marq.write(table, path)
    assert marq.read(path).num_rows == 1000


def test_an_error_in_the_middle_reaches_the_consumer(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"x": range(100_000)}), path, row_group_size=1000, compression="none",
        use_dictionary=False,
    )
    data = bytearray(path.read_bytes())
    offset = pq.ParquetFile(path).metadata.row_group(50).column(0).data_page_offset
    data[offset : offset + 20] = b"\xff" * 20
    reader = pa.RecordBatchReader.from_stream(marq.scan(bytes(data)))
    with pytest.raises((pa.ArrowInvalid, OSError)):
        reader.read_all()
    with pytest.raises(marq.MalformedError) as e:
        marq.read(bytes(data))
    assert e.value.row_group == 50 and e.value.column == "x" and e.value.offset is not None
    batches = marq.scan(bytes(data), on_damage="skip").batches()
    assert sum(len(batch) for batch in batches) == 99_000
    assert len(batches.damage) == 1 and "row group 50" in batches.damage[0]
    assert "row group 50" in caplog.text
    assert marq.read(bytes(data), on_damage="skip").num_rows == 99_000
    batches = marq.scan(bytes(data), on_damage="null_pages").batches()
    table = pa.Table.from_batches([pa.record_batch(batch) for batch in batches])
    lost = [x for x, value in enumerate(table["x"].to_pylist()) if value != x]
    assert table.num_rows == 100_000 and table["x"].null_count == len(lost)
    assert lost == list(range(50_000, 51_000))
    assert ["1000 rows from row 0 on are null" in line for line in batches.damage] == [True]
