"""What users write, for type checkers: `mypy --strict` and `pyright` accept it."""

from __future__ import annotations

import io
import pathlib

import marq


def read(path: pathlib.Path) -> int:
    table = marq.read(path, columns=["id"], where=(marq.col("fare") > 10) & (marq.col("id") < 5))
    names: list[str] = table.column_names
    rows: int = 0
    for batch in marq.scan(path).filter("id > 3").select("id", "fare").batches(rows=100):
        rows += batch.num_rows
    with marq.scan([path, path]).batches() as batches:
        for batch in batches:
            rows += len(batch["id"].to_pylist())
    for part in marq.scan(str(path)).streams(4):
        rows += part.count()
    return rows + len(names)


async def read_later(path: str) -> int:
    rows = 0
    async for batch in marq.scan(path).batches():
        rows += batch.num_rows
    return rows


def write(path: str) -> marq.WriteReport:
    with marq.Writer(path, profile="small", bloom=["id"], sort=["id", ("ts", "desc")]) as w:
        w.write(marq.scan("in.parquet").shuffled(seed=1, window=1024))
    report = marq.write(marq.read("a.parquet"), io.BytesIO(), codec="zstd:3")
    sizes: list[int] = [column.bytes for group in report.row_groups for column in group.columns]
    assert sizes
    return w.report


def look(path: str) -> str | None:
    try:
        found = marq.check(path, level="truth")
    except marq.MalformedError as e:
        place: tuple[int | None, str | None] = (e.row_group, e.column)
        return f"{place} {e.hint}"
    return found.findings[0].text if not found else marq.metadata(path).created_by
