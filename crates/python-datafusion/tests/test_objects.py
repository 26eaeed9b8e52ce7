"""Tables as objects: registered often, shared by threads, dropped; and what goes wrong."""

from __future__ import annotations

import gc
import pathlib
import subprocess
import sys
import threading
import time

import datafusion
import marq_datafusion
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import many_types, rows_of

COUNT = "SELECT count(*) AS n FROM t WHERE id < 300"


def test_one_table_in_two_names_and_two_contexts(trips: str) -> None:
    table = marq_datafusion.table(trips)
    a, b = datafusion.SessionContext(), datafusion.SessionContext()
    a.register_table("t", table)
    a.register_table("u", table)
    b.register_table("t", table)
    del table
    gc.collect()
    for ctx in (a, b):
        assert rows_of(ctx.sql(COUNT)) == [{"n": 300}]
    joined = a.sql("SELECT count(*) AS n FROM t JOIN u ON t.id = u.id WHERE u.id < 10")
    assert rows_of(joined) == [{"n": 10}]
    del a
    gc.collect()
    assert rows_of(b.sql(COUNT)) == [{"n": 300}]


def test_tables_are_dropped_without_a_trace(trips: str) -> None:
    def once() -> None:
        ctx = datafusion.SessionContext()
        table = marq_datafusion.table(trips)
        ctx.register_table("t", table)
        assert ctx.table("t").count() == 1_000
        ctx.deregister_table("t")

    def resident() -> int:
        with open("/proc/self/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * 4_096

    for _ in range(10):
        once()
    gc.collect()
    before = resident()
    for _ in range(100):
        once()
    gc.collect()
    assert resident() - before < 50_000_000


def test_a_capsule_that_is_not_taken_is_freed(trips: str, ctx: datafusion.SessionContext) -> None:
    table = marq_datafusion.table(trips)
    for session in (None, ctx):
        capsule = table.__datafusion_table_provider__(session)
        assert "datafusion_table_provider" in repr(capsule)
        del capsule
    gc.collect()


def test_many_threads(trips: str, mixed: str) -> None:
    table, other = marq_datafusion.table(trips), marq_datafusion.table(mixed)
    shared = datafusion.SessionContext()
    shared.register_table("t", table)
    wrong: list[object] = []

    def work(i: int) -> None:
        try:
            own = datafusion.SessionContext()
            own.register_table("t", table)
            own.register_table("m", other)
            for ctx in (own, shared) * 3:
                found = rows_of(ctx.sql(f"SELECT count(*) AS n FROM t WHERE id >= {i}"))
                assert found == [{"n": 1_000 - i}]
            assert own.sql("SELECT id FROM m WHERE small > 0 AND lower(text) = 'red'").count() > 0
        except BaseException as e:
            wrong.append(e)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_the_gil_is_free_while_a_query_runs(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "large.parquet"
    ids = pa.array(range(2_000_000), pa.int64())
    pq.write_table(pa.table({"id": ids, "text": ids.cast(pa.string())}), path)
    ctx = datafusion.SessionContext()
    ctx.register_table("t", marq_datafusion.table(path))
    ticks, is_done = 0, threading.Event()

    def query() -> None:
        for _ in range(3):
            ctx.sql("SELECT text, count(*) FROM t WHERE id % 3 = 0 GROUP BY text").collect()
        is_done.set()

    thread = threading.Thread(target=query)
    thread.start()
    while not is_done.is_set():
        ticks += 1
        time.sleep(0.005)
    thread.join()
    assert ticks > 5


def test_a_missing_file_is_a_file_not_found_error(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError, match="nothing.parquet"):
        marq_datafusion.table(tmp_path / "nothing.parquet")
    (tmp_path / "empty").mkdir()
    for source in [tmp_path / "empty", str(tmp_path / "*.parquet"), []]:
        with pytest.raises((ValueError, OSError, RuntimeError)):
            marq_datafusion.table(source)


def test_a_broken_file_is_a_value_error(tmp_path: pathlib.Path, trips: str) -> None:
    whole = pathlib.Path(trips).read_bytes()
    for name, data in [("text", b"PAR1 and no footer"), ("cut", whole[:-20]), ("none", b"")]:
        path = tmp_path / f"{name}.parquet"
        path.write_bytes(data)
        with pytest.raises(ValueError):
            marq_datafusion.table(path)


def test_damage_inside_is_an_exception_of_the_query(tmp_path: pathlib.Path, trips: str) -> None:
    data = bytearray(pathlib.Path(trips).read_bytes())
    data[100:20_000] = bytes(19_900)
    path = tmp_path / "damaged.parquet"
    path.write_bytes(data)
    ctx = datafusion.SessionContext()
    ctx.register_table("t", marq_datafusion.table(path))
    with pytest.raises(Exception) as raised:
        ctx.sql("SELECT * FROM t").collect()
    assert "damaged.parquet" in str(raised.value) or "page" in str(raised.value)
    assert "anick" not in type(raised.value).__name__


def test_a_file_that_disappears_is_an_exception_of_the_query(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(many_types(10, seed=1), path)
    ctx = datafusion.SessionContext()
    ctx.register_table("t", marq_datafusion.table(path))
    path.unlink()
    with pytest.raises(Exception, match="a.parquet"):
        ctx.sql("SELECT id FROM t").collect()


def test_what_a_filter_fails_on_is_an_exception(ctx: datafusion.SessionContext, trips: str) -> None:
    ctx.register_table("t", marq_datafusion.table(trips))
    with pytest.raises(Exception, match="[Dd]ivide by zero"):
        ctx.sql("SELECT id FROM t WHERE 10 / (id - 5) > 0").collect()


def test_arguments_that_do_not_fit(trips: str) -> None:
    for arguments, names in [
        ({"columns": ["id", "nothing"]}, "nothing"),
        ({"where": "nothing = 1"}, "nothing"),
        ({"where": "id ="}, "expected"),
        ({"partitions": {"year": "float"}}, "float"),
    ]:
        with pytest.raises(ValueError, match=names):
            marq_datafusion.table(trips, **arguments)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        marq_datafusion.table(trips, columns="id")
    with pytest.raises(NotImplementedError):
        marq_datafusion.table("s3://bucket/a.parquet")


def test_a_session_that_is_none_is_a_type_error(trips: str) -> None:
    with pytest.raises(TypeError, match="session"):
        marq_datafusion.table(trips).__datafusion_table_provider__("text")


def test_another_version_of_datafusion_is_refused(
    trips: str, ctx: datafusion.SessionContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(datafusion, "__version__", "56.1.0")
    with pytest.raises(ImportError, match="56.1.0"):
        marq_datafusion.table(trips).__datafusion_table_provider__(ctx)


def test_a_process_ends_while_tables_live(trips: str) -> None:
    code = (
        "import datafusion, marq_datafusion, sys\n"
        "ctx = datafusion.SessionContext()\n"
        "ctx.register_table('t', marq_datafusion.table(sys.argv[1]))\n"
        "stream = ctx.sql('SELECT * FROM t WHERE id > 1').execute_stream()\n"
        "print(len(next(stream).to_pyarrow()) > 0)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, trips], capture_output=True, text=True, timeout=60
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "True\n", "")
