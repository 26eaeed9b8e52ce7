"""Writing: one file, or a folder of files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, overload

from . import _marq
from ._crypt import Encryption
from ._errors import UsageError
from ._log import debug
from ._marq import Schema
from ._scan import Progress, _progress, size

__all__ = [
    "ColumnReport",
    "ExportedFile",
    "RowGroupReport",
    "WriteReport",
    "Writer",
    "export",
    "write",
]


@dataclass(frozen=True)
class ColumnReport:
    """A column chunk that was written."""

    path: str
    field_id: int | None
    values: int
    nulls: int
    nans: int | None
    distinct: int | None
    #: The bounds as the footer has them: PLAIN, perhaps truncated.
    min: bytes | None
    max: bytes | None
    codec: str
    encodings: tuple[str, ...]
    offset: int
    bytes: int
    uncompressed_bytes: int
    pages: int


@dataclass(frozen=True)
class RowGroupReport:
    """A row group that was written."""

    rows: int
    offset: int
    bytes: int
    columns: tuple[ColumnReport, ...]


@dataclass(frozen=True)
class WriteReport:
    """A file that was written: what manifests of tables want to know."""

    rows: int
    bytes: int
    #: Each is decoded anew whenever it is asked for: a file may have a million column chunks.
    row_groups: Sequence[RowGroupReport]
    #: The shapes that VARIANT columns were shredded into.
    shapes: Mapping[str, str]

    @classmethod
    def _from(cls, of: _marq.WriteReport) -> WriteReport:
        return cls(of.rows, of.bytes, _RowGroups(of), dict(of.shapes))


class _RowGroups(Sequence[RowGroupReport]):
    """The row groups of a report."""

    def __init__(self, of: _marq.WriteReport) -> None:
        self._of = of

    def __len__(self) -> int:
        return self._of.row_groups

    @overload
    def __getitem__(self, at: int) -> RowGroupReport: ...
    @overload
    def __getitem__(self, at: slice) -> tuple[RowGroupReport, ...]: ...
    def __getitem__(self, at: int | slice) -> RowGroupReport | tuple[RowGroupReport, ...]:
        if isinstance(at, slice):
            return tuple(self[i] for i in range(*at.indices(len(self))))
        group = self._of.row_group(range(len(self))[at])
        columns = tuple(
            ColumnReport(**{**column, "encodings": tuple(column["encodings"])})
            for column in group["columns"]
        )
        return RowGroupReport(group["rows"], group["offset"], group["bytes"], columns)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and tuple(self) == tuple(other)

    def __repr__(self) -> str:
        return f"<{len(self)} row groups>"

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


@dataclass(frozen=True)
class ExportedFile:
    """A file of an export."""

    path: str
    partition: tuple[tuple[str, str | None], ...]
    #: Number of the stream that it is of.
    stream: int
    report: WriteReport


Sort = Sequence["str | tuple[str, str]"]


def sort_columns(of: Sort | str | None) -> list[tuple[str, bool, bool]]:
    """Columns of an order: ``"ts"``, ``"-ts"``, or ``("ts", "desc nulls first")``.

    >>> sort_columns(["a", "-b", ("c", "desc nulls first")])
    [('a', False, False), ('b', True, False), ('c', True, True)]
    """
    out = []
    for item in [of] if isinstance(of, str) else of or []:
        if isinstance(item, str):
            out.append((item.removeprefix("-"), item.startswith("-"), False))
            continue
        path, how = item
        words = how.lower().split()
        known = {"asc", "desc", "nulls", "first", "last"}
        if not set(words) <= known:
            raise UsageError(f"sort order {how!r}: asc or desc, and nulls first or nulls last")
        out.append((path, "desc" in words, "first" in words))
    return out


def bloom_columns(of: Sequence[str] | Mapping[str, float] | str | None) -> list[tuple[str, Any]]:
    """Columns with a bloom filter, and its rate of false positives."""
    if of is None:
        return []
    if isinstance(of, str):
        return [(of, None)]
    if isinstance(of, Mapping):
        return list(of.items())
    return [(name, None) for name in of]


def _options(
    *,
    profile: str | None = None,
    codec: str | None = None,
    columns: Mapping[str, Mapping[str, Any]] | None = None,
    bloom: Sequence[str] | Mapping[str, float] | str | None = None,
    sort: Sort | str | None = None,
    sort_unchecked: bool = False,
    readers: Sequence[str] | str | None = None,
    encryption: Encryption | None = None,
    metadata: Mapping[str, str] | None = None,
    statistics: str | None = None,
    dictionary: bool | None = None,
    row_group_rows: int | None = None,
    row_group_bytes: int | str | None = None,
    page_rows: int | None = None,
    page_bytes: int | str | None = None,
    dictionary_bytes: int | str | None = None,
    page_version: int | None = None,
    checksums: bool | None = None,
    memory: int | str | None = None,
    arrow_schema: bool | None = None,
    created_by: str | None = None,
    shredding: Mapping[str, str] | None = None,
    content_defined_chunking: bool | tuple[int, int] | None = None,
    geo: bool | str = False,
    geo_covering: str | None = None,
    spill: str | os.PathLike[str] | None = None,
) -> dict[str, Any]:
    chunking = content_defined_chunking
    if chunking is True:
        chunking = (256 * 1024, 1024 * 1024)
    return {
        "profile": profile,
        "codec": codec,
        "columns": [(name, dict(of)) for name, of in (columns or {}).items()],
        "bloom": bloom_columns(bloom),
        "sort": sort_columns(sort) if sort is not None else None,
        "sort_unchecked": sort_unchecked,
        "readers": [readers] if isinstance(readers, str) else readers and list(readers),
        "encryption": None if encryption is None else encryption._native(),
        "metadata": list((metadata or {}).items()),
        "statistics": statistics,
        "dictionary": dictionary,
        "row_group_rows": row_group_rows,
        "row_group_bytes": size(row_group_bytes),
        "page_rows": page_rows,
        "page_bytes": size(page_bytes),
        "dictionary_bytes": size(dictionary_bytes),
        "page_version": page_version,
        "checksums": checksums,
        "memory": size(memory),
        "arrow_schema": arrow_schema,
        "created_by": created_by,
        "shredding": list((shredding or {}).items()),
        "content_defined_chunking": chunking or None,
        "geo": geo if isinstance(geo, str) else "" if geo or geo_covering else None,
        "geo_covering": geo_covering,
        "spill": None if spill is None else os.fsdecode(spill),
    }


def _is_arrow(of: Any) -> bool:
    return hasattr(of, "__arrow_c_stream__") or hasattr(of, "__arrow_c_array__")


def _tables(data: Any) -> Iterator[Any]:
    """What has batches: the data itself, or the items of it."""
    if _is_arrow(data):
        yield data
        return
    if isinstance(data, (str, bytes, Mapping)) or not isinstance(data, Iterable):
        raise UsageError(
            f"{type(data).__name__} has no Arrow data: give a table or frame of pyarrow, polars, "
            "pandas, DuckDB or nanoarrow, a marq.Scan, or an iterable of those"
        )
    for item in data:
        if not _is_arrow(item):
            raise UsageError(f"an item is {type(item).__name__}, which has no Arrow data")
        yield item


def output(of: Any) -> Any:
    """A path as text, or an object with ``write``."""
    if isinstance(of, (str, os.PathLike)):
        return os.fsdecode(of)
    if not hasattr(of, "write"):
        raise UsageError(f"{type(of).__name__} is no output: give a path or a file object")
    return of


class Writer:
    """Writes one file. It appears at its path when it is whole: left by an exception, or given up,
    nothing of it stays, and an earlier file is kept.

    ``path`` may be a file object. ``schema`` is anything with ``__arrow_c_schema__``; without it, it
    is that of the first data. Options:

    * ``profile``: ``"balanced"``, ``"small"``, ``"fast_read"``, ``"points"`` (rows are read one by
      one) or ``"compatible"``.
    * ``codec``: ``"zstd"``, ``"zstd:9"``, ``"snappy"``, ``"lz4_raw"``, ``"gzip"``, ``"brotli"``,
      ``"none"``.
    * ``columns``: options by patterns of paths, as ``{"id": {"encoding": "delta_binary_packed",
      "bloom": True}}``; also ``codec``, ``dictionary``, ``statistics``, ``page_rows``, ``page_bytes``.
    * ``bloom``: names of columns with a bloom filter, or a mapping to rates of false positives.
    * ``sort``: the order that the rows have, as ``["country", "-ts"]``; it is checked, and stated.
    * ``readers``: who must be able to read the file, as ``["duckdb", "spark"]``.
    * ``encryption``: an :class:`Encryption`. ``metadata``: key-value metadata.
    * ``statistics``: ``"none"``, ``"chunk"`` or ``"page"``. ``row_group_rows``, ``row_group_bytes``,
      ``page_rows``, ``page_bytes``, ``dictionary``, ``dictionary_bytes``, ``page_version``,
      ``checksums``, ``memory``, ``arrow_schema``, ``created_by``, ``shredding`` (of VARIANT columns:
      ``"infer"`` or a shape), ``content_defined_chunking``.
    * ``geo``: state the key ``geo`` of GeoParquet 1.1 for columns of geometries (the extension type
      ``geoarrow.wkb``): ``True``, or the name of the primary one. ``geo_covering``: ``"float32"`` or
      ``"float64"`` also computes their boxes into a column ``bbox``, by which readers leave out the
      row groups and pages of other regions.
    * ``spill``: a folder for the parts of row groups that exceed ``memory``.

    >>> import marq, io
    >>> trips = marq.scan("trips.parquet")
    >>> out = io.BytesIO()
    >>> with marq.Writer(out, trips.schema, codec="zstd:3", bloom=["id"]) as w:
    ...     for batch in trips.batches(rows=100):
    ...         w.write(batch)
    >>> w.report.rows
    1000
    """

    def __init__(
        self,
        path: Any,
        schema: Any = None,
        *,
        progress: Callable[[int], object] | None = None,
        **options: Any,
    ) -> None:
        self._output = output(path)
        self._options = _options(**options)
        self._progress = progress
        self._native: _marq.Writer | None = None
        self._closed = False
        self._report: WriteReport | None = None
        if schema is not None:
            self._begin(schema)

    def _begin(self, schema: Any) -> _marq.Writer:
        self._native = _marq.Writer(self._output, schema, self._options)
        return self._native

    def _open(self) -> _marq.Writer | None:
        if self._closed:
            raise UsageError("the writer is closed")
        return self._native

    def write(self, data: Any) -> None:
        """Writes a table, a frame, a stream, a batch, or an iterable of them."""
        self._open()
        for table in _tables(data):
            native = self._native
            if native is None:
                if hasattr(table, "__arrow_c_schema__"):
                    native = self._begin(table)
                else:
                    table = _marq.Table(table)
                    native = self._begin(table)
            native.write(table, self._progress)

    def flush(self) -> None:
        """Ends the row group."""
        native = self._open()
        if native is not None:
            native.flush()

    def add_metadata(self, key: str, value: str) -> None:
        """Adds key-value metadata, until the end."""
        native = self._open()
        if native is None:
            self._options["metadata"].append((key, value))
        else:
            native.add_metadata(key, value)

    @property
    def bytes_written(self) -> int:
        """Bytes that were written so far."""
        native = self._open()
        return 0 if native is None else native.bytes_written()

    @property
    def report(self) -> WriteReport:
        """What was written, after :meth:`close`."""
        if self._report is None:
            raise UsageError("there is a report when the file is finished")
        return self._report

    def close(self) -> WriteReport:
        """Finishes the file. A second call changes nothing."""
        if self._report is not None:
            return self._report
        native = self._open()
        self._closed = True
        if native is None:
            raise UsageError("nothing was written, and no schema was given: a file needs columns")
        try:
            self._report = WriteReport._from(native.finish())
        except BaseException:
            native.abort()
            raise
        debug("%s: wrote %d rows, %d bytes", self._output, self._report.rows, self._report.bytes)
        return self._report

    finish = close

    def abort(self) -> None:
        """Gives the file up: nothing of it stays."""
        if self._native is not None and self._report is None:
            self._native.abort()
            debug("%s: gave the file up", self._output)
        self._closed = True

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None
    ) -> None:
        if kind is not None:
            self.abort()
        elif not self._closed:
            self.close()


def write(
    data: Any,
    path: Any,
    *,
    schema: Any = None,
    progress: Progress | bool | None = None,
    **options: Any,
) -> WriteReport:
    """Writes a file: ``data`` is anything with ``__arrow_c_stream__``, or an iterable of such.

    Options are those of :class:`Writer`.

    >>> import marq, io
    >>> out = io.BytesIO()
    >>> report = marq.write(marq.scan("trips.parquet").select("id", "fare"), out, profile="small")
    >>> report.rows, report.row_groups[0].columns[0].path
    (1000, 'id')
    """
    show = _progress(progress)
    rows, total = 0, getattr(data, "num_rows", 0)

    def count(more: int) -> None:
        nonlocal rows
        rows += more
        if show is not None:
            show(rows, max(total if isinstance(total, int) else 0, rows))

    with Writer(path, schema, progress=None if show is None else count, **options) as writer:
        writer.write(data)
    return writer.report


def export(
    data: Any,
    folder: str | os.PathLike[str],
    *,
    schema: Any = None,
    partition_by: Sequence[str] | str = (),
    file_bytes: int | str | None = None,
    file_name: str | None = None,
    open_files: int | None = None,
    max_partitions: int | None = None,
    threads: int | None = None,
    summary: bool | None = None,
    memory: int | str | None = None,
    **options: Any,
) -> list[ExportedFile]:
    """Writes a folder of files: by the values of columns (``partition_by``, as Hive names them),
    and of at most about ``file_bytes`` each. If it fails, no file stays.

    ``data`` is as for :func:`write`. ``file_name`` may have ``{n}`` for the number of a file. Options
    are those of :class:`Writer`.

    >>> import marq, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = marq.export(marq.scan("trips.parquet"), folder, partition_by="payment")
    ...     marq.read(folder).num_rows
    1000
    """
    items = _tables(data)
    if schema is None:
        first = next(items, None)
        if first is None:
            raise UsageError("there is nothing to write, and no schema was given")
        if not hasattr(first, "__arrow_c_schema__"):
            first = _marq.Table(first)
        schema = Schema(first)
        items = _chain(first, items)
    settings = {
        "file_bytes": size(file_bytes),
        "file_name": file_name,
        "open_files": open_files,
        "max_partitions": max_partitions,
        "threads": threads,
        "summary": summary,
        "memory": size(memory),
    }
    by = [partition_by] if isinstance(partition_by, str) else list(partition_by)
    found = _marq.export([items], os.fsdecode(folder), schema, by, _options(**options), settings)
    return [
        ExportedFile(
            of["path"], tuple(of["partition"]), of["stream"], WriteReport._from(of["report"])
        )
        for of in found
    ]


def _chain(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest
