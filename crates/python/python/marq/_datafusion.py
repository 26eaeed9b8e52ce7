"""What is read as a table of DataFusion's Python: the package ``marq-datafusion`` makes it."""

from __future__ import annotations

import importlib
import os
from typing import TYPE_CHECKING, Any

from ._errors import UnsupportedError

if TYPE_CHECKING:
    from ._scan import Scan

# They say how rows are read, and not which.
_IGNORED = frozenset(("rows", "threads"))
_KNOWN = frozenset(("columns", "where")) | _IGNORED


def of_scan(scan: Scan, session: object) -> object:
    """The capsule of a scan for a session."""
    sources, _, partitions = scan._expanded
    options = {key: value for key, value in scan._options.items() if value not in (None, False)}
    unknown = sorted(options.keys() - _KNOWN)
    if scan._keys is not None:
        unknown.append("keys")
    if scan._limits is not None:
        unknown.append("limits")
    if unknown:
        raise UnsupportedError(
            f"{', '.join(unknown)}: a table of DataFusion has the files, columns and condition of a "
            "scan only; the rest is said in SQL, or the rows are read first: marq.read(...)"
        )
    if not all(isinstance(source, str) and "://" not in source for source in sources):
        raise UnsupportedError(
            "a table of DataFusion is of local files: read the rows first, with marq.read(...)"
        )
    columns = options.get("columns")
    if columns is not None:
        whole = scan._with(columns=None, where=None).schema.names
        parts = [name for name in columns if name not in whole and "." in name]
        if parts:
            raise UnsupportedError(
                f"{', '.join(parts)}: a table of DataFusion has whole columns; SQL has parts of them, "
                "such as column['field']"
            )
    paths, types = _folder(sources, partitions) if partitions else (sources, {})
    of = _table()(paths, columns=columns, where=options.get("where"), partitions=types)
    return of.__datafusion_table_provider__(session)


def of_rows(rows: object, session: object) -> object:
    """The capsule of rows in memory for a session."""
    return _table()(rows).__datafusion_table_provider__(session)


def _table() -> Any:
    try:
        # By its name: a type checker need not have the package.
        package: Any = importlib.import_module("marq_datafusion")
    except ModuleNotFoundError as e:
        if e.name != "marq_datafusion":
            raise
        raise ModuleNotFoundError(
            "tables of DataFusion need another package: pip install marq-datafusion",
            name="marq_datafusion",
        ) from None
    return package.table


def _folder(sources: list[str], partitions: Any) -> tuple[list[str], dict[str, str]]:
    """The folder that has exactly these files, and the columns in the names of its folders."""
    fields, values = partitions
    folder = os.path.commonpath([os.path.dirname(os.path.abspath(source)) for source in sources])
    while "=" in os.path.basename(folder):
        folder = os.path.dirname(folder)
    # DataFusion reads hidden files, too.
    below = [
        os.path.join(at, name)
        for at, _, names in os.walk(folder)
        for name in names
        if name.endswith(".parquet")
    ]
    is_whole = sorted(map(os.path.abspath, sources)) == sorted(below)
    is_plain = all("%" not in source for source in sources)
    is_null = any(value is None for row in values for value in row)
    keys = [key for key, _ in fields]
    if not is_whole or not is_plain or is_null or not all(_begins(file, folder, keys) for file in below):
        raise UnsupportedError(
            f"partition columns of some files below {folder}: a table of DataFusion has them of a "
            "whole folder, without null, whose files are named *.parquet, are not hidden, and have "
            f"paths that begin with {''.join(f'{key}=…{os.sep}' for key in keys)} in this order: read "
            "the rows first, with marq.read(...)"
        )
    return [folder], dict(fields)


def _begins(file: str, folder: str, keys: list[str]) -> bool:
    """Whether the path begins with the keys in their order: else DataFusion leaves the file out."""
    names = os.path.relpath(os.path.dirname(file), folder).split(os.sep)
    return [name.partition("=")[0] for name in names[: len(keys)] if "=" in name] == keys
