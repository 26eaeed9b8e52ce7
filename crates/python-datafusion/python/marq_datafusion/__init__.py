"""Apache DataFusion reads Apache Parquet through the library marquetry, with filters in the scan.

>>> import datafusion, marq_datafusion
>>> ctx = datafusion.SessionContext()
>>> ctx.register_table("trips", marq_datafusion.table("trips.parquet"))
>>> ctx.sql("SELECT count(*) AS n FROM trips WHERE id < 300").to_pydict()
{'n': [300]}
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from ._marq_datafusion import Table, __version__

__all__ = ["Table", "__version__", "table"]

_INTEGER = re.compile(r"-?[0-9]{1,18}\Z")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")


def table(
    source: Any,
    *,
    columns: Sequence[str] | None = None,
    where: str | None = None,
    partitions: Mapping[str, str] | None = None,
) -> Table:
    """Parquet files as a table, for ``SessionContext.register_table`` and ``read_table``.

    * ``source``: a path, a glob, a folder (its files named ``*.parquet``, at any depth), or a list of
      those, of the local file system; or anything with ``__arrow_c_stream__``, which is read into
      memory. The schemas are read at once, the files when a query runs.
    * ``columns``: the columns that the table has, in this order; all by default.
    * ``where``: which rows it has, a text in the language of ``marq help where``, such as
      ``"fare > 10"``. It is evaluated in the scan, with the filters of each query.
    * ``partitions``: of a folder, the columns in names such as ``year=2026``, with their types:
      ``int32``, ``int64``, ``date32`` or ``utf8``. By default they are found, and have the narrowest
      of ``int64``, ``date32`` and ``utf8`` that fits all values; ``{}`` for none. The path of each
      file below the folder begins with them, in one order.

    Raises ``FileNotFoundError``, ``OSError``, ``ValueError`` for what is broken or does not fit,
    ``NotImplementedError``.

    >>> import datafusion, marq_datafusion
    >>> ctx = datafusion.SessionContext()
    >>> cheap = marq_datafusion.table("trips.parquet", columns=["id", "fare"], where="fare < 5")
    >>> ctx.read_table(cheap).count() < 1000
    True
    """
    if hasattr(source, "__arrow_c_stream__") and not isinstance(source, (str, os.PathLike)):
        if columns is not None or where is not None or partitions is not None:
            raise ValueError("columns, where and partitions are of files, and this is an Arrow stream")
        return Table.of_stream(source.__arrow_c_stream__())
    if isinstance(columns, str):
        raise TypeError(f"columns={columns!r}: a list of names")
    items = source if isinstance(source, (list, tuple)) else [source]
    if not items:
        raise ValueError("there is no file to read: the source is empty")
    paths = [os.fsdecode(item) for item in items]
    if partitions is None:
        is_folder = len(paths) == 1 and os.path.isdir(paths[0])
        partitions = _partitions(paths[0]) if is_folder else {}
    else:
        for path in filter(os.path.isdir, paths):
            for file in _files(path):
                _check(path, file, list(partitions))
    names = None if columns is None else list(columns)
    return Table.of_files([_url(path) for path in paths], list(partitions.items()), names, where)


def _url(path: str) -> str:
    if "://" in path:
        raise NotImplementedError(f"{path}: only files of this machine are read")
    whole = os.path.abspath(path)
    # What exists has a URL, in which no character means a pattern.
    if os.path.isdir(path):
        return Path(whole).as_uri() + "/"
    if os.path.exists(path):
        return Path(whole).as_uri()
    if any(c in path for c in "*?["):
        return whole
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _partitions(folder: str) -> dict[str, str]:
    files = list(_files(folder))
    keys = max((_keys(file) for file in files), key=len, default=[])
    values: list[set[str]] = [set() for _ in keys]
    for file in files:
        _check(folder, file, keys)
        for of_key, name in zip(values, file.split(os.sep)):
            of_key.add(name.partition("=")[2])
    return {key: _kind(of) for key, of in zip(keys, values)}


def _keys(file: str) -> list[str]:
    names = os.path.dirname(file).split(os.sep)
    return [name.partition("=")[0] for name in names if "=" in name]


def _check(folder: str, file: str, keys: list[str]) -> None:
    """DataFusion leaves out files whose path does not begin with the keys, and reads hidden ones."""
    if not keys:
        return
    names = os.path.dirname(file).split(os.sep)
    begins = [name.partition("=")[0] for name in names[: len(keys)] if "=" in name] == keys
    if not begins or any(name[:1] in "._" for name in file.split(os.sep)):
        wanted = "".join(f"{key}=…{os.sep}" for key in keys)
        raise ValueError(
            f"{os.path.join(folder, file)}: below a folder with partition columns, the paths of all "
            f"files begin with {wanted} in this order, and no name begins with a dot or an "
            "underscore: move the file, give a list of files, or partitions={} for no such columns"
        )


def _files(folder: str) -> Iterator[str]:
    for at, _, names in os.walk(folder):
        found = (name for name in names if name.endswith(".parquet"))
        yield from (os.path.relpath(os.path.join(at, name), folder) for name in found)


def _kind(values: set[str]) -> str:
    if all(map(_INTEGER.match, values)):
        return "int64"
    return "date32" if all(map(_is_date, values)) else "utf8"


def _is_date(text: str) -> bool:
    if not _DATE.match(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
