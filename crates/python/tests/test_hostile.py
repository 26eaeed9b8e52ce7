"""Files that were made to do harm: exceptions, never a dead interpreter."""

from __future__ import annotations

import os
import pathlib
import random

import marq
import pytest

FOLDER = pathlib.Path(os.environ.get("MARQ_HOSTILE", "/nowhere"))
FILES = sorted(p for p in FOLDER.rglob("*") if p.is_file()) if FOLDER.is_dir() else []


@pytest.mark.skipif(not FILES, reason="MARQ_HOSTILE names no folder of hostile files")
def test_hostile_files_raise_exceptions() -> None:
    outcomes = {"read": 0, "refused": 0}
    for path in FILES:
        for work in (
            lambda: marq.read(path, memory="256MiB", limits={"memory_bytes": 1 << 28}),
            lambda: marq.metadata(path),
            lambda: marq.check(path, level="values"),
            lambda: marq.scan(path, limits={"memory_bytes": 1 << 28}).take([0]),
        ):
            try:
                work()
                outcomes["read"] += 1
            except marq.Error as e:
                assert e.kind != "internal", (path, e)
                outcomes["refused"] += 1
    assert outcomes["refused"] > 0


@pytest.mark.parametrize("seed", range(8))
def test_changed_bytes_raise_exceptions(seed: int, trips: str) -> None:
    rng = random.Random(seed)
    whole = pathlib.Path(trips).read_bytes()
    for _ in range(40):
        data = bytearray(whole)
        for _ in range(rng.choice([1, 3, 20])):
            # Mostly in the footer, where most decisions are made.
            at = rng.randrange(len(data)) if rng.random() < 0.3 else rng.randrange(len(data) - 9000, len(data))
            data[at] = rng.randrange(256)
        if rng.random() < 0.2:
            del data[rng.randrange(len(data)) :]
        for work in (
            lambda: marq.read(bytes(data), limits={"memory_bytes": 1 << 28}),
            lambda: marq.metadata(bytes(data)),
            lambda: marq.check(bytes(data)),
            lambda: marq.salvage(bytes(data)),
        ):
            try:
                work()
            except marq.Error as e:
                assert e.kind != "internal", (seed, e)


@pytest.mark.parametrize("data", [b"", b"PAR1", b"PAR1PAR1", b"\0" * 100, b"PAR1" + b"\xff" * 50 + b"PAR1"])
def test_what_is_no_file_is_malformed(data: bytes) -> None:
    with pytest.raises(marq.MalformedError) as e:
        marq.read(data)
    assert e.value.kind == "malformed" and e.value.detail


def test_a_size_that_changes_while_it_is_read_is_an_error(trips: str) -> None:
    class Liar:
        is_local = True
        data = pathlib.Path(trips).read_bytes()

        def size(self) -> int:
            return len(self.data)

        def read_range(self, start: int, end: int) -> bytes:
            return self.data[start : end - 1]

    with pytest.raises(marq.IoError):
        marq.read(Liar())

    class Wrong(Liar):
        def read_range(self, start: int, end: int) -> bytes:
            return "text"  # type: ignore[return-value]

    with pytest.raises((TypeError, marq.Error)):
        marq.read(Wrong())

    class Negative(Liar):
        def size(self) -> int:
            return -1

    with pytest.raises((OverflowError, marq.Error)):
        marq.read(Negative())
