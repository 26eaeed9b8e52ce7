"""The exceptions of marq. All are subclasses of :class:`Error`."""

from __future__ import annotations

from typing import Any

__all__ = [
    "ArrowError",
    "CancelledError",
    "CryptoError",
    "Error",
    "InternalError",
    "IoError",
    "LimitError",
    "MalformedError",
    "NotFoundError",
    "UnsupportedError",
    "UsageError",
]


class Error(Exception):
    """What went wrong, and where in which file.

    >>> import marq
    >>> try:
    ...     marq.read(b"PAR1, and no footer")
    ... except marq.Error as e:
    ...     print(e.kind, e.offset is None or e.offset >= 0)
    malformed True
    """

    #: ``io``, ``malformed``, ``unsupported``, ``limit``, ``crypto``, ``arrow``, ``usage``,
    #: ``internal``, ``cancelled`` or ``feature``.
    kind: str = "other"
    #: The broken section of the specification, the limit, or what is not supported.
    detail: str | None = None
    #: The message without place and kind.
    message: str = ""
    #: Name of the file.
    file: str | None = None
    #: Number of the stream, where several are written.
    stream: int | None = None
    #: Index of the row group.
    row_group: int | None = None
    #: Dotted path of the column.
    column: str | None = None
    #: Index of the page in its column chunk.
    page: int | None = None
    #: Whether it is the dictionary page.
    is_dictionary_page: bool = False
    #: Byte offset in the file.
    offset: int | None = None
    #: What to do next, if there is something that helps.
    hint: str | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _restore, (type(self), self.args, self.__dict__)


class MalformedError(Error):
    """The bytes break a rule of the format."""


class UnsupportedError(Error, NotImplementedError):
    """Legal, but not done by this version."""


class LimitError(Error):
    """A limit was reached: of memory, of the footer, of a page, of nesting."""


class CryptoError(Error):
    """A key is missing or wrong, or something was changed."""


class UsageError(Error, ValueError):
    """Something was asked for that does not exist, or does not fit."""


class IoError(Error, OSError):
    """Bytes could not be read or written."""


class NotFoundError(IoError, FileNotFoundError):
    """There is no such file."""


class ArrowError(Error):
    """Arrow refused the data."""


class CancelledError(Error):
    """The work was given up."""


class InternalError(Error):
    """A fault of marq: please report it."""


_CLASSES: dict[str, type[Error]] = {
    "io": IoError,
    "malformed": MalformedError,
    "unsupported": UnsupportedError,
    "feature": UnsupportedError,
    "limit": LimitError,
    "crypto": CryptoError,
    "arrow": ArrowError,
    "usage": UsageError,
    "internal": InternalError,
    "cancelled": CancelledError,
}

_HINTS = {
    "malformed": "marq.check(source) lists what is broken; marq.salvage(source, output) recovers "
    "what is whole; on_damage='skip' or 'null_pages' reads around it",
    "crypto": "keys=marq.Decryption(footer_key=..., column_keys={...}) gives the keys",
    "memory": "memory=... allows more, and a smaller rows=... needs less",
    "footer": "limits={'footer_bytes': ...} allows more, if the file is trusted",
    "page": "limits={'page_bytes': ...} allows more, if the file is trusted",
    "nesting": "limits={'nesting': ...} allows more, if the file is trusted",
}


def _hint(kind: str, detail: str | None) -> str | None:
    return _HINTS.get(detail or "") if kind == "limit" else _HINTS.get(kind)


def _make(text: str, known: dict[str, Any]) -> Error:
    """Makes the exception for an error of the library."""
    errno = known.pop("errno")
    kind = known["kind"]
    cls = _CLASSES.get(kind, Error)
    if kind == "io" and errno == 2:
        cls = NotFoundError
    error = cls(text)
    error.__dict__.update(known)
    error.hint = _hint(kind, known["detail"])
    if errno is not None and isinstance(error, OSError):
        error.errno = errno
        error.filename = known["file"]
    if error.hint is not None:
        error.add_note(f"hint: {error.hint}")
    return error


def _restore(cls: type[Error], args: tuple[Any, ...], state: dict[str, Any]) -> Error:
    error = cls(*args)
    error.__dict__.update(state)
    return error
