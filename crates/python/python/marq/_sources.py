"""Finds the files that a source names, and makes something of each that the library can read."""

from __future__ import annotations

import io
import os
import re
import threading
from collections.abc import Iterable
from typing import Any
from urllib.parse import unquote

from ._errors import UnsupportedError, UsageError

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://")
# What the tool opens, too; the rest of a URL after ? may be a password.
_REMOTE = re.compile(r"(s3a?|gcs?|gs|az|azure|adl|abfss?|https?)://", re.IGNORECASE)
_SECRET = re.compile(r"(?<=://)[^/@]*@|[?#].*")
_NULL = "__HIVE_DEFAULT_PARTITION__"
_SUFFIXES = (".parquet", ".parq", ".pq")
_INTEGER = re.compile(r"-?[0-9]+\Z")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}\Z")

Partitions = tuple[list[tuple[str, str]], list[list["str | None"]]]


class FileRanges:
    """Ranges of a file object with ``read`` and ``seek``; one at a time."""

    is_local = True

    def __init__(self, file: Any) -> None:
        self._file = file
        self._lock = threading.Lock()

    def size(self) -> int:
        with self._lock:
            return int(self._file.seek(0, io.SEEK_END) or self._file.tell())

    def read_range(self, start: int, end: int) -> bytes:
        parts = []
        with self._lock:
            self._file.seek(start)
            while start < end:
                part = self._file.read(end - start)
                if not part:
                    break
                if isinstance(part, str):
                    raise UsageError("the file object gives text: open it with mode 'rb'")
                parts.append(bytes(part))
                start += len(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def __getstate__(self) -> dict[str, Any]:
        return {"_file": self._file}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["_file"])  # type: ignore[misc]


class StoreRanges:
    """Ranges of an object in a store of ``obstore``."""

    is_local = False

    def __init__(self, store: Any, path: str) -> None:
        self._store, self._path = store, path

    def size(self) -> int:
        return int(_obstore().head(self._store, self._path)["size"])

    def read_range(self, start: int, end: int) -> bytes:
        if start == end:
            return b""
        return bytes(_obstore().get_range(self._store, self._path, start=start, end=end))


def _obstore() -> Any:
    import obstore

    return obstore


def _is_store(of: Any) -> bool:
    return type(of).__module__.split(".")[0] == "obstore"


def expand(source: Any, hive: bool = True) -> tuple[list[Any], list[str | None], Partitions | None]:
    """The sources that the library reads, their names, and their partition columns."""
    sources: list[Any] = []
    names: list[str | None] = []
    folders: list[str | None] = []
    for item in _items(source):
        if isinstance(item, (str, os.PathLike)):
            path = os.fsdecode(item)
            base, found = _paths(path)
            for one in found:
                sources.append(one)
                names.append(_SECRET.sub("", one) if _REMOTE.match(one) else one)
                folders.append(os.path.relpath(os.path.dirname(one) or ".", base or ".") if base is not None else None)
        else:
            native, name = _object(item)
            sources.append(native)
            names.append(name)
            folders.append(None)
    if not sources:
        raise UsageError("there is no file to read: the source is empty")
    if hive and isinstance(source, (list, tuple)) and len(sources) > 1 and all(
        isinstance(s, str) and not _URL.match(s) for s in sources
    ):
        common = os.path.commonpath([os.path.dirname(os.path.abspath(s)) for s in sources])
        folders = [os.path.relpath(os.path.dirname(os.path.abspath(s)), common) for s in sources]
    return sources, names, _partitions(folders) if hive else None


def _items(source: Any) -> Iterable[Any]:
    if isinstance(source, tuple) and len(source) == 2 and _is_store(source[0]):
        return [source]
    if isinstance(source, (list, tuple, set, frozenset)):
        return source
    return [source]


def _object(item: Any) -> tuple[Any, str | None]:
    if isinstance(item, bytes):
        return item, None
    if isinstance(item, (bytearray, memoryview)):
        return bytes(item), None
    if isinstance(item, io.BytesIO):
        return item.getvalue(), None
    if isinstance(item, tuple) and len(item) == 2 and _is_store(item[0]):
        return StoreRanges(item[0], str(item[1])), str(item[1])
    if all(hasattr(item, name) for name in ("size", "read_range", "is_local")):
        return item, getattr(item, "name", None)
    if hasattr(item, "read") and hasattr(item, "seek"):
        if hasattr(item, "seekable") and not item.seekable():
            raise UsageError("the file object cannot seek: read it whole, and give its bytes")
        name = getattr(item, "name", None)
        return FileRanges(item), name if isinstance(name, str) else None
    raise UsageError(
        f"{type(item).__name__} is no source: give a path, a list of paths, a glob, a folder, bytes, "
        "a file object, or (store, path) of obstore"
    )


def _paths(path: str) -> tuple[str | None, list[str]]:
    """The files that a path, a glob or a folder names, and the folder that they are below."""
    if _URL.match(path):
        if path.startswith("file://"):
            return _paths(unquote(path[len("file://") :]))
        if _REMOTE.match(path):
            if any(c in path.split("?")[0] for c in "*[") or path.endswith("/"):
                raise UnsupportedError(
                    f"{_SECRET.sub('', path)}: objects are not listed: name each, or list them with "
                    "obstore"
                )
            return None, [path]
        scheme = path.split("://")[0]
        raise UnsupportedError(
            f"{scheme}:// is not read by itself: give (store, path) of obstore, or a file object, "
            f"such as fsspec.open({path!r}).open()"
        )
    if os.path.isdir(path):
        found = _below(path)
        if not found:
            raise UsageError(f"{path}: the folder has no file named *.parquet")
        return path, found
    if any(c in path for c in "*?[") and not os.path.exists(path):
        import glob

        found = sorted(glob.glob(path, recursive=True))
        files = [one for name in found for one in (_below(name) if os.path.isdir(name) else [name])]
        if not files:
            raise UsageError(f"{path}: no file matches")
        base = path
        while any(c in base for c in "*?["):
            base = os.path.dirname(base)
        return base, files
    return None, [path]


def _below(folder: str) -> list[str]:
    found = []
    for at, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name[:1] not in "._")
        found += [
            os.path.join(at, name)
            for name in sorted(files)
            if name[:1] not in "._" and name.lower().endswith(_SUFFIXES)
        ]
    return sorted(found)


def _partitions(folders: list[str | None]) -> Partitions | None:
    pairs: list[dict[str, str | None]] = []
    for folder in folders:
        of: dict[str, str | None] = {}
        for name in (folder or "").split(os.sep):
            key, sign, encoded = name.partition("=")
            if sign and key:
                text = unquote(encoded)
                of[unquote(key)] = None if text in ("", _NULL) else text
        pairs.append(of)
    keys = list(dict.fromkeys(key for of in pairs for key in of))
    if not keys:
        return None
    fields = []
    for key in keys:
        values = [value for of in pairs if (value := of.get(key)) is not None]
        kind = "utf8"
        if values and all(map(_is_int64, values)):
            kind = "int64"
        elif values and all(map(_is_date, values)):
            kind = "date32"
        fields.append((key, kind))
    return fields, [[of.get(key) for key in keys] for of in pairs]


def _is_int64(text: str) -> bool:
    return _INTEGER.match(text) is not None and -(2**63) <= int(text) < 2**63


def _is_date(text: str) -> bool:
    if not _DATE.match(text):
        return False
    from datetime import date

    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True
