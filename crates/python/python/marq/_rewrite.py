"""Whole files: rewritten, joined, divided, filled, saved, encrypted."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from . import _marq
from ._crypt import Decryption, Encryption
from ._errors import UsageError
from ._look import _scan_of
from ._scan import size
from ._sources import expand
from ._write import Sort, _options, bloom_columns, output, sort_columns

__all__ = [
    "Compacted",
    "Filled",
    "RewritePlan",
    "Rewritten",
    "Salvaged",
    "append",
    "compact",
    "concat",
    "crypt",
    "fill",
    "rewrite",
    "rewrite_plan",
    "salvage",
    "split",
]


@dataclass(frozen=True)
class Rewritten:
    """A file that was written."""

    rows: int
    row_groups: int
    bytes: int
    path: str | None = None


@dataclass(frozen=True)
class RewritePlan:
    """What a rewrite will do."""

    rows: int
    columns: tuple[str, ...]
    notes: tuple[str, ...]
    #: Whether row groups are made anew.
    regroups: bool
    #: Method, reason, column chunks and bytes.
    chunks: tuple[tuple[str, str, int, int], ...]


@dataclass(frozen=True)
class Filled:
    """A file that was filled."""

    rows: int
    row_groups: int
    bytes: int
    notes: tuple[str, ...]
    #: Part, number and bytes of what was added.
    parts: tuple[tuple[str, int, int], ...]


@dataclass(frozen=True)
class Salvaged:
    """What was recovered of a damaged file, and what was lost."""

    is_complete: bool
    rows_recovered: int
    rows_lost: int | None
    bytes_recovered: int
    bytes_lost: int
    notes: tuple[str, ...]
    #: First and last byte, row group, rows, reason.
    lost: tuple[tuple[int, int, int | None, int | None, str], ...]
    #: First and last byte, rows, how they were found.
    recovered: tuple[tuple[int, int, int, str], ...]
    bytes_written: int | None = None


@dataclass(frozen=True)
class Compacted:
    """Files of a folder that were joined, or would be."""

    files_joined: int
    files_made: int
    bytes: int


def _settings(
    *,
    columns: Sequence[str] | None = None,
    row_groups: Sequence[int] | None = None,
    codec: str | Mapping[str, str] | None = None,
    encode: Sequence[str] = (),
    regroup: bool | None = None,
    sort_by: Sort | str | None = None,
    merge_by: Sort | str | None = None,
    by_name: bool | None = None,
    forget_order: bool | None = None,
    verify_checksums: bool | None = None,
    metadata: Mapping[str, str | None] | None = None,
    encryption: Encryption | None = None,
    options: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    if options is not None and options.get("geo_covering") is not None:
        raise UsageError("geo_covering: boxes are computed where rows are written, by marq.write")
    codecs = {"*": codec} if isinstance(codec, str) else codec or {}
    return {
        "columns": None if columns is None else list(columns),
        "row_groups": None if row_groups is None else list(row_groups),
        "codec": list(codecs.items()),
        "encode": list(encode),
        "regroup": regroup,
        "sort_by": None if sort_by is None else sort_columns(sort_by),
        "merge_by": None if merge_by is None else sort_columns(merge_by),
        "by_name": by_name,
        "forget_order": forget_order,
        "verify_checksums": verify_checksums,
        "metadata": list((metadata or {}).items()),
        "encryption": None if encryption is None else encryption._native(),
        "options": None if options is None else _options(**options),
    }


def rewrite(source: Any, path: Any, *, keys: Decryption | None = None, **settings: Any) -> Rewritten:
    """Copies files into a new one; only what must change is decoded.

    * ``columns``, ``row_groups``: only these. ``codec``: for all columns, or by patterns.
    * ``sort_by``: sorts the rows; ``merge_by``: of files that are sorted. ``regroup``: makes row
      groups of the sizes of ``options``. ``encode``: patterns of columns that are encoded anew.
    * ``by_name``: columns of several files are matched by name. ``metadata``: keys to set, or with
      ``None`` to leave out. ``encryption``; ``verify_checksums``; ``forget_order``.
    * ``options``: of :class:`Writer`, for what is encoded anew.

    >>> import marq, io
    >>> out = io.BytesIO()
    >>> marq.rewrite("trips.parquet", out, codec="snappy", columns=["id", "fare"]).rows
    1000
    """
    done = _scan_of(source, keys)._files.rewrite(output(path), _settings(**settings))
    return Rewritten(**done)


def rewrite_plan(source: Any, *, keys: Decryption | None = None, **settings: Any) -> RewritePlan:
    """What :func:`rewrite` will do.

    >>> import marq
    >>> marq.rewrite_plan("trips.parquet", columns=["id"]).columns
    ('id',)
    """
    of = _scan_of(source, keys)._files.rewrite_plan(_settings(**settings))
    return RewritePlan(
        of["rows"], tuple(of["columns"]), tuple(of["notes"]), of["regroups"], tuple(of["chunks"])
    )


def concat(
    sources: Any, path: Any, *, keys: Decryption | None = None, **settings: Any
) -> Rewritten:
    """Joins files into one, without decoding them; settings are those of :func:`rewrite`.

    >>> import marq, io
    >>> out = io.BytesIO()
    >>> marq.concat(["trips.parquet", "trips.parquet"], out).rows
    2000
    """
    return rewrite(sources, path, keys=keys, **settings)


def append(path: str | os.PathLike[str], source: Any, **settings: Any) -> Rewritten:
    """Appends the rows of files to a file, in place of it; returns the whole file."""
    more, _, _ = expand(source, hive=False)
    files = _scan_of([path, *more], None)._files
    done = files.append_to(os.fsdecode(path), _settings(**settings))
    return Rewritten(**done)


def split(
    source: Any,
    pattern: str,
    *,
    rows: int | None = None,
    bytes: int | str | None = None,
    files: int | None = None,
    keys: Decryption | None = None,
    **settings: Any,
) -> list[Rewritten]:
    """Divides files into several: ``pattern`` is their path, with ``{n}`` for the number.

    >>> import marq, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     [part.rows for part in marq.split("trips.parquet", folder + "/{n}.parquet", rows=600)]
    [600, 400]
    """
    given = {"rows": rows, "bytes": size(bytes), "files": files}
    chosen = [(name, amount) for name, amount in given.items() if amount is not None]
    if len(chosen) != 1:
        raise UsageError("one of rows, bytes and files says how files are divided")
    if "{n}" not in pattern:
        raise UsageError("the pattern has no {n}, so all files would have one name")
    by, amount = chosen[0]
    done = _scan_of(source, keys)._files.split(pattern, by, amount, _settings(**settings))
    return [Rewritten(**of) for of in done]


def fill(
    source: Any,
    path: Any,
    *,
    parts: Sequence[str] | None = None,
    bloom: Sequence[str] | Mapping[str, float] | str | None = None,
    sorted: Sort | str | None = None,
    decode: bool = True,
    keys: Decryption | None = None,
) -> Filled:
    """Adds what the writer of a file left out: page indexes, statistics, bloom filters, checksums.

    >>> import marq, io
    >>> marq.fill("trips.parquet", io.BytesIO(), bloom=["id"]).rows
    1000
    """
    chosen = None if parts is None else list(parts)
    of = _scan_of(source, keys)._files.fill(
        output(path), chosen, bloom_columns(bloom), sort_columns(sorted), decode
    )
    return Filled(of["rows"], of["row_groups"], of["bytes"], tuple(of["notes"]), tuple(of["parts"]))


def salvage(
    source: Any,
    path: Any = None,
    *,
    schema_of: Any = None,
    row_group_rows: int | None = None,
) -> Salvaged:
    """Recovers what is whole of a damaged file; ``schema_of`` is a file with the same columns, for
    one whose footer is lost.

    >>> import marq, io
    >>> broken = open("trips.parquet", "rb").read()[:-100]
    >>> found = marq.salvage(broken, io.BytesIO(), schema_of="trips.parquet")
    >>> found.rows_recovered > 0
    True
    """
    sources, _, _ = expand(source, hive=False)
    if len(sources) != 1:
        raise UsageError("one file is saved at a time")
    model = None if schema_of is None else _scan_of(schema_of, None)._files
    target = None if path is None else output(path)
    of = _marq.salvage(sources[0], target, model, row_group_rows)
    for name in ("notes", "lost", "recovered"):
        of[name] = tuple(of[name])
    return Salvaged(**of)


def crypt(
    source: Any,
    path: Any,
    *,
    encryption: Encryption | None = None,
    keys: Decryption | None = None,
) -> Rewritten:
    """Changes how a file is protected: encrypts it, gives it other keys, or without ``encryption``
    decrypts it. No value is decoded.

    >>> import marq, io
    >>> out = io.BytesIO()
    >>> marq.crypt("trips.parquet", out, encryption=marq.Encryption(footer_key=b"k" * 16)).rows
    1000
    """
    native = None if encryption is None else encryption._native()
    return Rewritten(**_scan_of(source, keys)._files.recrypt(output(path), native))


def compact(
    folder: str | os.PathLike[str],
    *,
    file_bytes: int | str | None = None,
    merge: bool = False,
    dry_run: bool = False,
) -> Compacted:
    """Joins the small files of a folder, in place of them."""
    return Compacted(*_marq.compact(os.fsdecode(folder), size(file_bytes), merge, dry_run))
