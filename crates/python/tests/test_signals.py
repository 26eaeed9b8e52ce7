"""Ctrl-C, in processes of their own."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

PRELUDE = """
import os, signal, sys, threading, time
import marq

def later(seconds=0.4):
    threading.Timer(seconds, os.kill, (os.getpid(), signal.SIGINT)).start()

class Slow:
    # A file object that takes its time, so that a read is always going on.
    def __init__(self, path):
        self.file = open(path, "rb")
    def seek(self, *args):
        return self.file.seek(*args)
    def read(self, n):
        time.sleep(0.05)
        return self.file.read(n)

path, folder = sys.argv[1:]
begin = time.monotonic()
def done():
    print("interrupted", round(time.monotonic() - begin, 1))
"""


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A file with so many row groups that a slow read takes minutes."""
    path = tmp_path_factory.mktemp("large") / "large.parquet"
    table = pa.table({"x": range(20_000), "y": [os.urandom(8) for _ in range(20_000)]})
    pq.write_table(table, path, row_group_size=10)
    return str(path)


def run(code: str, path: str, folder: pathlib.Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PRELUDE + code, path, str(folder)],
        capture_output=True, text=True, timeout=60, check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


WORK = {
    "read": "marq.read(Slow(path))",
    "batches": "list(marq.scan(Slow(path)).batches())",
    "filter that passes nothing": "list(marq.scan(Slow(path)).filter('x % 2 = 5').batches())",
    "count": "marq.scan(Slow(path)).filter('x % 2 = 5').count()",
    # The library that reads the stream may raise what it knows; the interrupt follows with the next call.
    "stream": """
import pyarrow
try:
    pyarrow.table(marq.scan(Slow(path)))
except pyarrow.ArrowInvalid:
    time.sleep(1)
""",
    "shuffled": "list(marq.scan(Slow(path)).shuffled(1, 100))",
    "take": "marq.scan(Slow(path)).take(range(0, 20000, 10))",
    "check": "marq.check(Slow(path), level='truth')",
    "write": "marq.write(marq.scan(Slow(path)), folder + '/a.parquet')",
    "write of a stream": "import pyarrow; marq.write(pyarrow.RecordBatchReader.from_stream(marq.scan(Slow(path))), folder + '/a.parquet')",
    "rewrite": "marq.rewrite(Slow(path), folder + '/a.parquet', codec='zstd')",
    "sort": "marq.rewrite(Slow(path), folder + '/a.parquet', sort_by='-x')",
    "fill": "marq.fill(Slow(path), folder + '/a.parquet')",
    "salvage": "marq.salvage(Slow(path), folder + '/a.parquet')",
    "export": "marq.export(marq.scan(Slow(path)), folder + '/e')",
    "generator": """
def batches():
    for batch in marq.scan(path).batches(rows=10):
        time.sleep(0.05)
        yield batch
marq.write(batches(), folder + '/a.parquet')
""",
    "callback": "marq.read(path, progress=lambda rows, total: time.sleep(0.05))",
}


@pytest.mark.parametrize("work", WORK)
def test_ctrl_c_ends_it_and_leaves_nothing(work: str, large: str, tmp_path: pathlib.Path) -> None:
    lines = "".join(f"    {line}\n" for line in WORK[work].strip().splitlines())
    code = f"later()\ntry:\n{lines}    print('finished')\nexcept KeyboardInterrupt:\n    done()\n"
    out = run(code, large, tmp_path).split()
    assert out[0] == "interrupted", out
    assert float(out[1]) < 10
    assert [name for _, _, files in os.walk(tmp_path) for name in files] == []


def test_a_handler_that_returns_lets_the_read_go_on(large: str, tmp_path: pathlib.Path) -> None:
    code = """
seen = []
signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)).start()
class Brief(Slow):
    def read(self, n):
        time.sleep(0.0005)
        return self.file.read(n)
print(marq.read(Brief(path)).num_rows, seen)
"""
    assert run(code, large, tmp_path).split() == ["20000", "[1]"]


def test_a_scan_is_used_again_after_ctrl_c(large: str, tmp_path: pathlib.Path) -> None:
    code = """
source = Slow(path)
scan = marq.scan(source)
later()
try:
    scan.read()
except KeyboardInterrupt:
    pass
source.__class__.read = lambda self, n: self.file.read(n)
print(scan.read().num_rows)
"""
    assert run(code, large, tmp_path).split() == ["20000"]


def test_the_tool_ends_as_a_program_does(large: str) -> None:
    args = [sys.executable, "-m", "marq", "check", "--level", "truth"] + [large] * 50
    tool = subprocess.Popen(args, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    time.sleep(1.0)
    if tool.poll() is not None:
        pytest.skip("the check was done before the signal")
    tool.send_signal(signal.SIGINT)
    tool.communicate(timeout=30)
    assert tool.returncode in (130, -signal.SIGINT)
