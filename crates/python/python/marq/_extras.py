"""VARIANT and geometry values."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from . import _marq
from ._marq import Column, Table

__all__ = ["geo_bounds", "geo_to_wkt", "variant_from_json", "variant_get", "variant_to_json"]


def variant_from_json(texts: Iterable[str | None], name: str = "variant") -> Table:
    """A table with a VARIANT column of JSON texts, which :func:`write` writes as such.

    >>> import marq
    >>> table = marq.variant_from_json(['{"a": 1}', None])
    >>> marq.variant_to_json(table["variant"]).to_pylist()
    ['{"a":1}', None]
    """
    return _marq.variant_from_json(list(texts), name)


def variant_to_json(column: Any) -> Column:
    """A VARIANT column (shredded or not) as JSON texts."""
    return _marq.variant_to_json(column)


def variant_get(column: Any, path: str, type: str) -> Column:
    """A part of each VARIANT, such as ``"$.a[0]"``, as a type such as ``"int64"``.

    >>> import marq
    >>> table = marq.variant_from_json(['{"a": [5]}', '{"a": []}'])
    >>> marq.variant_get(table["variant"], "$.a[0]", "int64").to_pylist()
    [5, None]
    """
    return _marq.variant_get(column, path, type)


def geo_to_wkt(wkb: bytes, max: int = 1 << 20) -> str:
    """The text of a geometry in well-known binary.

    >>> import marq, struct
    >>> marq.geo_to_wkt(struct.pack("<BIdd", 1, 1, 4.5, 52.0))
    'POINT (4.5 52)'
    """
    return _marq.geo_to_wkt(bytes(wkb), max)


def geo_bounds(wkb: bytes, geodesic: bool = False) -> tuple[float, float, float, float] | None:
    """The box around a geometry: xmin, ymin, xmax, ymax; ``None`` if it is empty.

    >>> import marq, struct
    >>> marq.geo_bounds(struct.pack("<BIdd", 1, 1, 4.5, 52.0))
    (4.5, 52.0, 4.5, 52.0)
    """
    return _marq.geo_bounds(bytes(wkb), geodesic)
