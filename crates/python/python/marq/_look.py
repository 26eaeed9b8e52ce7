"""Looking into files: metadata, statistics, faults, readers, differences."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from . import _marq
from ._crypt import Decryption
from ._errors import UsageError
from ._marq import Schema, Table
from ._scan import Scan, scan
from ._sources import expand

__all__ = [
    "CheckReport",
    "Difference",
    "Finding",
    "Metadata",
    "ReaderReport",
    "check",
    "diff",
    "metadata",
    "readers",
    "schema",
    "statistics",
]


@dataclass(frozen=True, repr=False)
class Metadata:
    """What the footer of a file says.

    >>> import marq
    >>> found = marq.metadata("trips.parquet")
    >>> found.rows, found.columns.num_rows == 13 * found.row_groups.num_rows
    (1000, True)
    """

    rows: int
    file_bytes: int
    created_by: str | None
    is_encrypted: bool
    key_values: Mapping[str, str | None]
    #: The schema of the file as text.
    parquet_schema: str
    #: The names and Arrow types of the columns.
    schema: Schema
    #: One row for each column chunk.
    columns: Table
    #: One row for each row group.
    row_groups: Table

    def __repr__(self) -> str:
        return (
            f"<marq.Metadata: {self.rows} rows in {self.row_groups.num_rows} row groups, "
            f"{len(self.schema)} columns, {self.file_bytes} bytes, by {self.created_by}>"
        )

    def _repr_html_(self) -> str:
        from ._html import escape, table

        return f"<p>{escape(repr(self)[1:-1])}</p>" + table(self.columns, rows=50)


def _metadata(files: _marq.Files) -> Metadata:
    of = files.metadata()
    of["key_values"] = dict(of["key_values"])
    return Metadata(schema=files.schema({}), **of)


def metadata(source: Any, *, keys: Decryption | None = None) -> Metadata:
    """The metadata of a file, as tables."""
    return _metadata(scan(source, keys=keys, hive=False)._files)


def schema(source: Any, *, keys: Decryption | None = None, **options: Any) -> Schema:
    """The names and Arrow types of the columns, as they will be read.

    >>> import marq
    >>> marq.schema("trips.parquet", columns=["id"]).names
    ['id']
    """
    return scan(source, keys=keys, **options).schema


def statistics(
    source: Any, column: str, *, pages: bool = False, keys: Decryption | None = None
) -> Table:
    """The statistics of a column: one row for each row group, or with ``pages`` for each page.

    >>> import marq
    >>> marq.statistics("trips.parquet", "id")["min"][0]
    0
    """
    return scan(source, keys=keys, hive=False)._files.statistics(column, pages)


@dataclass(frozen=True)
class Finding:
    """Something that a file states, and that is not true."""

    code: str
    #: ``error``, ``warning`` or ``note``.
    severity: str
    message: str
    stated: str | None
    found: str | None
    row_group: int | None
    column: str | None
    page: int | None
    offset: int | None
    text: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class CheckReport:
    """What a check has looked at, and found. It is true if there is no error."""

    rows: int
    row_groups: int
    chunks: int
    bytes_read: int
    left_out: int
    errors: int
    warnings: int
    notes: int
    findings: tuple[Finding, ...]

    def __bool__(self) -> bool:
        return self.errors == 0

    @property
    def is_ok(self) -> bool:
        """Whether there is no error."""
        return self.errors == 0


def check(
    source: Any,
    *,
    level: str = "pages",
    keys: Decryption | None = None,
    threads: int | None = None,
) -> CheckReport:
    """Recomputes what a file states: ``level`` is ``"footer"``, ``"pages"``, ``"values"`` or
    ``"truth"``.

    >>> import marq
    >>> marq.check("trips.parquet", level="truth").is_ok
    True
    """
    sources, _, _ = expand(source, hive=False)
    if len(sources) != 1:
        raise UsageError("a check looks at one file at a time")
    found = _marq.check(sources[0], level, None if keys is None else keys._native(), threads)
    findings = tuple(Finding(**of) for of in found.pop("findings"))
    return CheckReport(findings=findings, **found)


@dataclass(frozen=True)
class ReaderReport:
    """How a reader reads a file."""

    reader: str
    version: str
    #: The oldest version that reads the same, if older ones were tried.
    since: str | None
    #: Why it does not open the file at all.
    refuses_file: str | None
    #: For each column: its path, ``reads``, ``reads_as``, ``reads_if`` or ``refuses``, and details.
    columns: tuple[tuple[str, str, str], ...]

    @property
    def reads_all(self) -> bool:
        """Whether it reads all columns."""
        return self.refuses_file is None and all(kind != "refuses" for _, kind, _ in self.columns)


def readers(source: Any, *, keys: Decryption | None = None) -> list[ReaderReport]:
    """Which readers read a file, and as what.

    >>> import marq
    >>> sorted(of.reader for of in marq.readers("trips.parquet"))[:3]
    ['arrow-rs', 'duckdb', 'marquetry']
    """
    found = scan(source, keys=keys, hive=False)._files.readers()
    return [
        ReaderReport(name, version, since, refuses, tuple(columns))
        for name, version, since, refuses, columns in found
    ]


@dataclass(frozen=True)
class Difference:
    """How two files differ. It is true if they do."""

    differs: bool
    #: The report of ``marq diff --format json``.
    report: Any

    def __bool__(self) -> bool:
        return self.differs


def diff(old: str | os.PathLike[str], new: str | os.PathLike[str], *args: str) -> Difference:
    """Compares two files by ``marq diff``, in a process of its own; ``args`` are further arguments
    of that command.

    >>> import marq
    >>> bool(marq.diff("trips.parquet", "trips.parquet"))
    False
    """
    import json

    from ._cli import call

    done = call("diff", os.fsdecode(old), os.fsdecode(new), "--format", "json", *args)
    report = json.loads(done.stdout) if done.stdout.strip() else None
    return Difference(done.returncode != 0, report)


def _scan_of(source: Any, keys: Decryption | None) -> Scan:
    return scan(source, keys=keys, hive=False)
