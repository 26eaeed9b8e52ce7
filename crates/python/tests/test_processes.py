"""Threads, forks, subinterpreters, and memory that stays flat."""

from __future__ import annotations

import concurrent.futures
import os
import pathlib
import subprocess
import sys
import threading

import marq
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

TABLE = pa.table({"id": range(5000), "text": ["x" * (i % 50) for i in range(5000)]})


def test_threads_share_a_scan(trips: str) -> None:
    scan = marq.scan(trips).select("id", "fare")

    def work(i: int) -> int:
        if i % 3 == 0:
            return scan.read().num_rows
        if i % 3 == 1:
            return sum(len(batch) for batch in scan.batches(rows=50))
        return scan.take(list(range(1000))).num_rows

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert list(pool.map(work, range(60))) == [1000] * 60


def test_threads_share_an_iterator(trips: str) -> None:
    batches = marq.scan(trips).select("id").batches(rows=10)
    found: list[int] = []

    def work() -> None:
        for batch in batches:
            found.extend(batch["id"].to_pylist())

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]  # type: ignore[func-returns-value]
    [thread.join() for thread in threads]  # type: ignore[func-returns-value]
    assert sorted(found) == list(range(1000))


SHARED = """
import faulthandler, sys, threading, time
faulthandler.dump_traceback_later(30, exit=True)
import marq

class Slow:
    def __init__(self, file):
        self.seek, self.tell, self._read = file.seek, file.tell, file.read
    def read(self, n):
        if reader:
            reading.set()
            time.sleep(0.2)
        return self._read(n)

reader, reading = None, threading.Event()
batches = marq.scan(Slow(open(sys.argv[1], "rb"))).batches(rows=100)
reader = threading.Thread(target=lambda: [len(batch) for batch in batches])
reader.start()
assert reading.wait(20)
print(WORK)
reader.join()
"""


@pytest.mark.parametrize("work", ["batches.damage", "batches.__arrow_c_stream__()"])
def test_another_thread_asks_while_a_file_object_is_read(work: str, path: str) -> None:
    """The read needs the GIL, so that who waits for the read must not have it."""
    noise = pa.table({"x": [os.urandom(100) for _ in range(20_000)]})
    marq.write(noise, path, codec="none", row_group_rows=5000)
    code = SHARED.replace("WORK", work)
    done = subprocess.run(
        [sys.executable, "-c", code, path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


LEFT = """
import faulthandler, sys
faulthandler.dump_traceback_later(30, exit=True)
import marq

class Delegated:
    def __init__(self, file):
        self.seek, self.tell, self.read = file.seek, file.tell, file.read

with open(sys.argv[1], "rb") as file:
    for n in range(1, 9):
        batches = marq.scan(Delegated(file)).batches(rows=100)
        assert sum(len(next(batches)) for _ in range(n)) == 100 * n
        del batches
"""


def test_a_read_of_a_file_object_is_left_in_the_middle(path: str) -> None:
    """The threads that read ahead need the GIL to end."""
    noise = pa.table({"x": [os.urandom(2000) for _ in range(20_000)]})
    marq.write(noise, path, codec="none", row_group_rows=500)
    done = subprocess.run(
        [sys.executable, "-c", LEFT, path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_threads_share_a_writer(path: str) -> None:
    with (
        marq.Writer(path, TABLE.schema) as writer,
        concurrent.futures.ThreadPoolExecutor(8) as pool,
    ):
        list(pool.map(lambda _: writer.write(TABLE), range(24)))
    ids = marq.read(path, columns=["id"])["id"].to_pylist()
    assert sorted(ids) == sorted(list(range(5000)) * 24)


def test_another_thread_ends_a_read(trips: str) -> None:
    for _ in range(50):
        batches = marq.scan(trips).batches(rows=10)

        def work(batches: marq.Batches = batches) -> int:
            rows = 0
            try:
                for batch in batches:
                    rows += len(batch)
            except marq.UsageError as e:
                assert "closed" in str(e)
            return rows

        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            found = [pool.submit(work) for _ in range(3)]
            batches.close()
            assert sum(done.result() for done in found) <= 1000


def test_threads_write_at_the_same_time(tmp_path: pathlib.Path) -> None:
    def work(i: int) -> int:
        return marq.write(TABLE, tmp_path / f"{i}.parquet").rows

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(work, range(24))) == 24 * 5000
    assert marq.read(tmp_path).num_rows == 24 * 5000


def test_other_threads_run_while_a_file_is_read(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.parquet"
    marq.write(pa.table({"x": [os.urandom(1000) for _ in range(20_000)]}), path)
    ticks, stop = [0], threading.Event()

    def tick() -> None:
        while not stop.is_set():
            ticks[0] += 1
            stop.wait(0.0005)

    thread = threading.Thread(target=tick)
    thread.start()
    most = 0
    for _ in range(200):
        before = ticks[0]
        marq.check(path, level="truth")
        most = max(most, ticks[0] - before)
        if most >= 3:
            break
    stop.set()
    thread.join()
    # The interpreter may switch once before a call and once after it.
    assert most >= 3


FORK = """
import os, sys, faulthandler
faulthandler.dump_traceback_later(30, exit=True)
import marq
path = sys.argv[1]
assert marq.read([path] * 4, threads=None).num_rows == 4000   # threads of the parent
begun = marq.scan(path).batches(rows=10)
next(begun)
writer = marq.Writer(sys.argv[2], marq.schema(path))
pid = os.fork()
if pid == 0:
    assert marq.read([path] * 4).num_rows == 4000
    assert marq.scan(path, threads=2).count() == 1000
    marq.write(marq.scan(path), sys.argv[2] + ".child")
    for again in (lambda: next(begun), lambda: writer.write(marq.scan(path))):
        try:
            again()
        except marq.UsageError as e:
            assert "fork" in str(e)
        else:
            raise AssertionError
    del begun
    sys.stdout.write("child ")
    sys.stdout.flush()
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
assert sum(len(batch) for batch in begun) == 990
writer.write(marq.scan(path))
writer.close()
print("parent")
"""


def test_a_forked_child_has_threads_of_its_own(trips: str, path: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORK, trips, path], capture_output=True, text=True, check=False
    )
    assert done.stdout.split() == ["child", "parent"], done.stderr
    assert marq.read(path).num_rows == 1000


def test_subinterpreters_are_refused() -> None:
    interpreters = pytest.importorskip("_xxsubinterpreters")
    one = interpreters.create()
    with pytest.raises(Exception, match="(?i)interpreter|import"):
        interpreters.run_string(one, "import marq")
    interpreters.destroy(one)


def test_bytes_that_arrow_holds_are_freed(trips: str) -> None:
    import gc
    import weakref

    class Source:
        is_local = True

        def __init__(self) -> None:
            self.data = pathlib.Path(trips).read_bytes()

        def size(self) -> int:
            return len(self.data)

        def read_range(self, start: int, end: int) -> bytes:
            return self.data[start:end]

    source = Source()
    gone = weakref.ref(source)
    table = pa.table(marq.scan(source, views=True))
    del source
    assert table.num_rows == 1000
    del table
    for _ in range(100):
        gc.collect()
    assert gone() is None


def resident() -> int:
    """Bytes of memory that are used."""
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def grows(work: object, times: int) -> int:
    for _ in range(times // 4):
        work()  # type: ignore[operator]
    before = resident()
    for _ in range(times):
        work()  # type: ignore[operator]
    return resident() - before


def test_ranges_that_python_reads_are_freed_while_the_read_goes_on(path: str) -> None:
    class Range(bytes):
        """Bytes that are counted."""

        alive = most = 0

        def __init__(self, _: bytes) -> None:
            Range.alive += 1
            Range.most = max(Range.most, Range.alive)

        def __del__(self) -> None:
            Range.alive -= 1

    class Source:
        is_local = True

        def size(self) -> int:
            return os.path.getsize(path)

        def read_range(self, start: int, end: int) -> bytes:
            with open(path, "rb") as file:
                file.seek(start)
                return Range(file.read(end - start))

    table = pa.table({"a": range(100_000)})
    pq.write_table(table, path, row_group_size=500, use_dictionary=False, compression="none")
    assert marq.scan(Source()).filter("a % 2 = 0").count() == 50_000
    assert Range.most < 20


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs /proc")
@pytest.mark.parametrize("what", ["open", "malformed", "usage", "read", "stream", "write", "take"])
def test_memory_stays_flat(what: str, trips: str) -> None:
    times = int(os.environ.get("MARQ_LEAK_TIMES", "2000"))

    def fails(of: object, error: type[BaseException]) -> None:
        with pytest.raises(error):
            of()  # type: ignore[operator]

    import io

    small = marq.read(trips, columns=["id", "fare"], limit=100)
    work = {
        "open": lambda: marq.schema(trips),
        "malformed": lambda: fails(lambda: marq.read(b"PAR1" * 20), marq.MalformedError),
        "usage": lambda: fails(lambda: marq.read(trips, columns=["nope"]), marq.UsageError),
        "read": lambda: marq.read(trips, columns=["id"], threads=1),
        "stream": lambda: pa.table(marq.scan(trips, columns=["id"], threads=1)),
        "write": lambda: marq.write(small, io.BytesIO()),
        "take": lambda: marq.scan(trips, columns=["id"]).take([5]),
    }[what]
    assert grows(work, times) < 8 << 20
