"""Reads: at once, lazily, in batches, by row numbers, in a random order, in parts."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

from . import _marq
from ._crypt import Decryption
from ._errors import UsageError
from ._expr import Column, Condition
from ._log import debug
from ._marq import Schema, Table
from ._sources import expand

__all__ = ["Batches", "Explanation", "Scan", "Shuffled", "read", "read_into", "scan"]

Progress = Callable[[int, int], object]

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?)\s*([KMGT]i?)?B?\Z", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def size(of: int | str | None) -> int | None:
    """A number of bytes, also as a text such as ``512MiB``.

    >>> size("512MiB"), size("2 GB"), size(100)
    (536870912, 2000000000, 100)
    """
    if of is None or isinstance(of, int):
        return of
    match = _SIZE.match(of.strip())
    if match is None:
        raise UsageError(f"{of!r} is no number of bytes: write 64MiB, 2GB, or a number")
    unit = (match[2] or "").lower()
    return int(float(match[1]) * (1024 if unit.endswith("i") else 1000) ** _POWERS[unit[:1]])


def _where(of: Condition | str | None) -> str | None:
    if of is None or isinstance(of, str):
        return of
    if isinstance(of, Column):
        return str(of.is_true())
    if not isinstance(of, Condition):
        raise TypeError(f"a condition or a text is wanted, not {type(of).__name__}")
    return str(of)


def _names(of: Sequence[str | Column] | str | Column | None) -> list[str] | None:
    if of is None:
        return None
    items = [of] if isinstance(of, (str, Column)) else of
    return [item._path if isinstance(item, Column) else str(item) for item in items]


@dataclass(frozen=True)
class Explanation:
    """What a read will do. ``str()`` of it is the report of ``marq explain``."""

    text: str
    #: Rows that are left to be looked at, bytes that will be read, and in how many requests.
    rows: int
    bytes: int
    requests: int
    #: For each row group: file, number, rows, rows left, what happened, pages, pages pruned, bytes.
    row_groups: tuple[dict[str, Any], ...]

    def __str__(self) -> str:
        return self.text


class Batches:
    """The batches of a read: an iterator, an asynchronous iterator, and an Arrow stream.

    >>> import marq
    >>> with marq.scan("trips.parquet").batches(rows=300) as batches:
    ...     sizes = [len(batch) for batch in batches]
    >>> sum(sizes)
    1000
    """

    def __init__(self, native: _marq.BatchIterator, progress: Progress | None, total: int) -> None:
        self._native = native
        self._progress = progress
        self._rows, self._total = 0, total

    def __iter__(self) -> Iterator[Table]:
        return self

    def _next(self) -> Table | None:
        batch = self._native.next()
        if batch is not None and self._progress is not None:
            self._rows += batch.num_rows
            self._progress(self._rows, self._total)
        return batch

    def __next__(self) -> Table:
        batch = self._next()
        if batch is None:
            raise StopIteration
        return batch

    def __aiter__(self) -> AsyncIterator[Table]:
        return self

    async def __anext__(self) -> Table:
        import asyncio

        batch = await asyncio.get_running_loop().run_in_executor(None, self._next)
        if batch is None:
            raise StopAsyncIteration
        return batch

    @property
    def schema(self) -> Schema:
        """The names and types of the columns."""
        return self._native.schema

    @property
    def damage(self) -> list[str]:
        """With ``on_damage``: the row groups that were skipped, and the pages that are null, so far."""
        return self._native.damage

    def close(self) -> None:
        """Ends the read; asking for a batch is an error from then on."""
        self._native.close()

    def __enter__(self) -> Batches:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, e: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Hands over the batches that are left."""
        return self._native.__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._native.__arrow_c_schema__()


class Scan:
    """A read that has not begun. Its methods return others; nothing is read before it is asked for.

    It is an Arrow stream (``__arrow_c_stream__``): pyarrow, polars, DuckDB, pandas and nanoarrow take
    it as it is, as often as they like.

    >>> import marq
    >>> cheap = marq.scan("trips.parquet").filter(marq.col("fare") < 5).select("id", "fare")
    >>> cheap.count() < 1000
    True
    >>> cheap.schema.names
    ['id', 'fare']
    """

    def __init__(
        self,
        source: Any,
        options: Mapping[str, Any],
        *,
        keys: Decryption | None = None,
        limits: Mapping[str, int] | None = None,
        hive: bool = True,
        url_options: Mapping[str, Any] | None = None,
        lengths: list[int] | None = None,
        files: _marq.Files | None = None,
        expanded: Any = None,
        progress: Progress | None = None,
    ) -> None:
        self._expanded = expand(source, hive) if expanded is None else expanded
        self._options = dict(options)
        self._keys, self._limits = keys, limits
        self._urls = url_options
        self._lengths = lengths
        self._native = files
        self._progress = progress

    # How it is made, and sent to other processes.

    @property
    def _files(self) -> _marq.Files:
        if self._native is None:
            sources, names, partitions = self._expanded
            keys = None if self._keys is None else self._keys._native()
            limits = None if self._limits is None else dict(self._limits)
            urls = None if self._urls is None else dict(self._urls)
            files = _marq.Files(sources, names, partitions, keys, limits, urls)
            if self._lengths is not None and files.lengths() != self._lengths:
                raise UsageError("the files were changed since the parts were made")
            self._native = files
        return self._native

    def _with(self, **options: Any) -> Scan:
        return Scan(
            None,
            {**self._options, **options},
            keys=self._keys,
            limits=self._limits,
            url_options=self._urls,
            lengths=self._lengths,
            files=self._native,
            expanded=self._expanded,
            progress=self._progress,
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_native": None, "_progress": None}

    # What is read.

    def filter(self, condition: Condition | str) -> Scan:
        """Only rows for which a condition is true; several calls must all be true.

        >>> import marq
        >>> marq.scan("trips.parquet").filter("id >= 10 and id < 30").count()
        20
        """
        both, before = _where(condition), self._options.get("where")
        return self._with(where=both if before is None else f"({before}) and ({both})")

    where = filter

    def select(self, *columns: str | Column | Sequence[str | Column]) -> Scan:
        """Only these columns, in this order; dotted paths go into structs."""
        names: list[str] = []
        for of in columns:
            names += _names(of) or []
        return self._with(columns=names)

    def limit(self, rows: int) -> Scan:
        """At most this many rows."""
        before = self._options.get("limit")
        return self._with(limit=rows if before is None else min(rows, before))

    head = limit

    def offset(self, rows: int) -> Scan:
        """Without the first rows; several calls add up."""
        return self._with(offset=rows + (self._options.get("offset") or 0))

    def with_row_numbers(self, name: str = "row_number") -> Scan:
        """With a column of the number of each row in its file."""
        return self._with(row_number=name)

    def with_file_names(self, name: str = "file_name") -> Scan:
        """With a column of the name of the file of each row."""
        return self._with(file_name=name)

    def with_options(self, **options: Any) -> Scan:
        """Options of :func:`read`, by their names; each replaces what was said of it before."""
        if "part" in self._options and not options.keys().isdisjoint(("where", "row_groups")):
            raise UsageError("a part keeps its rows: filter() leaves some of them out")
        # Those that say what is so by default are left out by `_options`.
        return self._with(**{**dict.fromkeys(options), **_options(**options)})

    # Reading.

    @property
    def schema(self) -> Schema:
        """The names and types of the columns."""
        return self._files.schema(self._options)

    def read(self) -> Table:
        """All rows, in memory."""
        # With damage that is skipped, the batches have the account.
        if self._progress is None and self._options.get("on_damage") is None:
            table = self._files.read(self._options)
            debug("%s: read %d rows", self, table.num_rows)
            return table
        batches = self.batches()
        return _marq.concat_tables(batches.schema, list(batches))

    collect = read

    def batches(
        self, rows: int | None = None, *, progress: Progress | bool | None = None
    ) -> Batches:
        """Begins to read, in batches of at most ``rows``. Memory stays bounded.

        ``progress`` is called with the rows so far and in all; ``True`` shows a bar of tqdm, if it
        is installed.
        """
        options = self._options if rows is None else {**self._options, "rows": rows}
        progress = self._progress if progress is None else _progress(progress)
        total = 0 if progress is None else self._files.rows(options)
        native = self._files.batches(options)
        debug("%s: reading batches", self)
        return Batches(native, progress, total)

    def __iter__(self) -> Iterator[Table]:
        return iter(self.batches())

    def __aiter__(self) -> AsyncIterator[Table]:
        return self.batches().__aiter__()

    def take(self, rows: Iterable[int]) -> Table:
        """The rows with these numbers, counted over all files, in this order, repeated if asked.

        Only pages that hold one of them are read. The numbers are those of the files: a filter,
        ``row_groups``, ``limit`` and ``offset`` are ignored, and so is that the scan is a part.

        >>> import marq
        >>> marq.scan("trips.parquet").select("id").take([700, 3, 3])["id"].to_pylist()
        [700, 3, 3]
        """
        table = self._files.take(self._options, [int(row) for row in rows])
        debug("%s: took %d rows", self, table.num_rows)
        return table

    def shuffled(
        self, seed: int = 0, window: int = 1 << 17, *, rows: int | None = None
    ) -> Shuffled:
        """All rows in an order that ``seed`` determines, the same on every machine.

        Blocks of consecutive rows are read in a random order, and the rows of ``window`` rows are
        shuffled among each other: that many are in memory at a time.

        >>> import marq
        >>> order = marq.scan("trips.parquet").select("id").shuffled(seed=1, window=256)
        >>> ids = [i for batch in order for i in batch["id"].to_pylist()]
        >>> sorted(ids) == list(range(1000)) and ids != sorted(ids)
        True
        """
        return Shuffled(self, seed, window, rows or int(self._options.get("rows") or 65_536))

    def count(self) -> int:
        """Number of rows. With a filter, columns are read only where the metadata do not decide."""
        rows = self._files.count(self._options)
        debug("%s: counted %d rows", self, rows)
        return rows

    def __len__(self) -> int:
        return self.count()

    def __bool__(self) -> bool:
        return True

    def explain(self) -> Explanation:
        """What a read will do: which row groups and pages are pruned by what, bytes, requests."""
        found = self._files.explain(self._options)
        groups = []
        texts = []
        for name, text, *_, of_file in found:
            texts.append(text if len(found) == 1 else f"{name}:\n{text}")
            keys = ("row_group", "rows", "rows_left", "outcome", "pages", "pages_pruned", "bytes")
            groups += [{"file": name, **dict(zip(keys, group))} for group in of_file]
        rows = sum(one[2] for one in found)
        requests = sum(one[4] for one in found)
        bytes_ = sum(one[3] for one in found)
        return Explanation("\n".join(texts), rows, bytes_, requests, tuple(groups))

    def streams(self, n: int) -> list[Scan]:
        """At most ``n`` parts of about the same cost, in the order of the rows: for threads, for
        processes (they can be pickled), for the workers of Ray, Dask or torch. A part keeps its rows:
        ``filter``, ``limit`` and ``offset`` are of them, and so is what is read of them.

        >>> import marq
        >>> parts = marq.scan("trips.parquet").streams(4)
        >>> sum(part.count() for part in parts)
        1000
        """
        if "part" in self._options:
            raise UsageError("a part is not divided again")
        parts = self._files.parts(self._options, n)
        of = self._with(offset=None, limit=None)
        of._lengths = self._files.lengths()
        return [of._with(part=(i, n, self._options)) for i in range(parts)]

    parts = streams

    def read_into(self, out: Mapping[str, Any]) -> int:
        """Reads columns of required numbers into arrays of NumPy (or any buffers), by their names.

        Returns the number of rows. The arrays must have the types of the columns.
        """
        shortest = min((len(array) for array in out.values()), default=0)
        reader = self.select(*out)
        return _marq.read_into(reader._files.batches(reader._options), dict(out), shortest)

    @property
    def metadata(self) -> Any:
        """The metadata of the file, as :func:`marq.metadata`."""
        from ._look import _metadata

        return _metadata(self._files)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._files.batches(self._options).__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self.schema.__arrow_c_schema__()

    def __datafusion_table_provider__(self, session: object = None) -> object:
        """For DataFusion's Python, with the package ``marq-datafusion``: the files, columns and
        condition as a table, into whose scan the filters of queries go.

        >>> import datafusion, marq  # doctest: +SKIP
        >>> ctx = datafusion.SessionContext()  # doctest: +SKIP
        >>> ctx.register_table("cheap", marq.scan("trips.parquet").filter("fare < 5"))  # doctest: +SKIP
        >>> ctx.sql("SELECT max(id) FROM cheap WHERE payment = 'card'").show()  # doctest: +SKIP
        """
        from ._datafusion import of_scan

        return of_scan(self, session)

    def __repr__(self) -> str:
        names = self._expanded[1]
        first = names[0] or "bytes"
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        shown = {k: v for k, v in self._options.items() if v not in (None, False)}
        if "part" in shown:
            shown["part"] = shown["part"][:2]
        options = "".join(f", {k}={v!r}" for k, v in shown.items())
        return f"<marq.Scan of {first}{more}{options}>"

    def _repr_html_(self) -> str:
        from ._html import table

        return table(self.limit(10).read(), note="the first rows of a scan")


class Shuffled:
    """Rows in a random order; see :meth:`Scan.shuffled`. Each iteration has the same order."""

    def __init__(
        self, scan: Scan, seed: int, window: int, rows: int, part: tuple[int, int] = (0, 1)
    ) -> None:
        if window < 1 or rows < 1:
            raise UsageError("window and rows are at least 1")
        self._scan, self._seed, self._window = scan, seed & (2**64 - 1), window
        self._rows, self._part = rows, part

    def batches(self, rows: int | None = None) -> Batches:
        """Begins to read."""
        native = self._scan._files.shuffled(
            self._scan._options, self._seed, self._window, rows or self._rows, self._part
        )
        return Batches(native, None, 0)

    def streams(self, n: int) -> list[Shuffled]:
        """``n`` parts with other rows each, for workers; together they have all."""
        if self._part != (0, 1):
            raise UsageError("a part is not divided again")
        args = (self._scan, self._seed, self._window, self._rows)
        return [Shuffled(*args, part=(i, n)) for i in range(n)]

    def __iter__(self) -> Iterator[Table]:
        return iter(self.batches())

    def __aiter__(self) -> AsyncIterator[Table]:
        return self.batches().__aiter__()

    @property
    def schema(self) -> Schema:
        """The names and types of the columns."""
        return self._scan.schema

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.batches().__arrow_c_stream__(requested_schema)

    def __arrow_c_schema__(self) -> object:
        return self._scan.__arrow_c_schema__()


def _progress(of: Progress | bool | None) -> Progress | None:
    if of is not True:
        return of or None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    bar = tqdm(unit=" rows", unit_scale=True)

    def show(rows: int, total: int) -> None:
        bar.total = total
        bar.update(rows - bar.n)
        if rows >= total:
            bar.close()

    return show


def _options(
    *,
    columns: Sequence[str | Column] | str | Column | None = None,
    where: Condition | str | None = None,
    rows: int | None = None,
    limit: int | None = None,
    offset: int | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    target: Any = None,
    by_field_id: bool = False,
    row_groups: Sequence[int] | None = None,
    row_number: str | None = None,
    row_group: str | None = None,
    file_name: str | None = None,
    views: bool = False,
    dictionaries: bool | Sequence[str] | None = None,
    binary_as_text: bool = False,
    verify_checksums: bool = False,
    variants: str | None = None,
    on_damage: str | None = None,
) -> dict[str, Any]:
    for name, value in (("rows", rows), ("threads", threads)):
        if value is not None and value < 1:
            raise UsageError(f"{name}={value}: at least 1")
    for name, value in (("limit", limit), ("offset", offset)):
        if value is not None and value < 0:
            raise UsageError(f"{name}={value}: at least 0")
    found = {
        "columns": _names(columns),
        "where": _where(where),
        "rows": rows,
        "limit": limit,
        "offset": offset,
        "memory": size(memory),
        "threads": threads,
        "target": target if target is None or isinstance(target, str) else Schema(target),
        "by_field_id": by_field_id,
        "row_groups": None if row_groups is None else [int(n) for n in row_groups],
        "row_number": row_number,
        "row_group": row_group,
        "file_name": file_name,
        "views": views,
        "dictionaries": dictionaries,
        "binary_as_text": binary_as_text,
        "verify_checksums": verify_checksums,
        "variants": variants,
        "on_damage": on_damage,
    }
    if isinstance(target, str) and target != "union":
        raise UsageError(f"target={target!r}: a schema, or 'union' for the columns of all files")
    return {key: value for key, value in found.items() if value is not None and value is not False}


def scan(
    source: Any,
    *,
    keys: Decryption | None = None,
    limits: Mapping[str, int] | None = None,
    hive: bool = True,
    progress: Progress | bool | None = None,
    url_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Scan:
    """A read that begins later: takes the options of :func:`read`, returns a :class:`Scan`.

    >>> import marq
    >>> for batch in marq.scan("trips.parquet", columns=["id"], limit=300).batches(rows=200):
    ...     print(batch.num_rows)
    200
    50
    50
    """
    return Scan(
        source,
        _options(**options),
        keys=keys,
        limits=limits,
        hive=hive,
        url_options=url_options,
        progress=_progress(progress),
    )


def read(
    source: Any,
    *,
    columns: Sequence[str | Column] | str | Column | None = None,
    where: Condition | str | None = None,
    rows: int | None = None,
    limit: int | None = None,
    offset: int | None = None,
    memory: int | str | None = None,
    threads: int | None = None,
    target: Any = None,
    keys: Decryption | None = None,
    limits: Mapping[str, int] | None = None,
    hive: bool = True,
    progress: Progress | bool | None = None,
    url_options: Mapping[str, Any] | None = None,
    **options: Any,
) -> Table:
    """Reads rows into memory. What it returns is taken by any Arrow library, without a copy.

    ``source`` is a path, a URL (s3, gs, az, http, https), a list of those, a glob, a folder (with
    Hive partitions), bytes, a file object, or ``(store, path)`` of obstore.

    * ``columns``: names, or dotted paths into structs, in the order they are wanted.
    * ``where``: a condition, such as ``"fare > 10 and payment in ('card', 'cash')"``, in the language
      of ``marq help where``, or of :func:`col`. It prunes row groups, pages and dictionaries.
    * ``rows``: rows of a batch; ``limit`` and ``offset``: of the read.
    * ``memory``: bytes that the read may hold besides its result, also as ``"512MiB"``.
    * ``threads``: that decode; all cores by default.
    * ``target``: a schema that all files are read into, or ``"union"`` for the columns of all files.
      Partition columns have its types, too, and come last.
    * ``keys``: a :class:`Decryption`. ``limits``: what a file may make a read allocate:
      ``footer_bytes``, ``page_bytes``, ``memory_bytes``, ``nesting``, ``rows_without_columns``.
    * ``url_options``: ``endpoint``, ``region``, ``anonymous``, ``ca_file``, ``timeout`` in seconds and
      ``retries`` of URLs; credentials come from the environment, as for the tool.
    * ``progress``: a function of the rows so far and in all, or ``True`` for a bar of tqdm.

    Further options: ``row_groups``, ``row_number``, ``row_group`` and ``file_name`` (names of added
    columns), ``views``, ``dictionaries``, ``binary_as_text``, ``verify_checksums``, ``variants``
    (``"stored"``, ``"unshredded"``, ``"json"``), ``on_damage`` (``"fail"``, ``"skip"`` the
    row group, ``"null_pages"``: the rows of a damaged page are null in its column; what is left out
    is a warning of the logger ``marq``), ``by_field_id``.

    >>> import marq
    >>> table = marq.read("trips.parquet", columns=["id", "fare"], where="id < 3")
    >>> table.num_rows, table.column_names
    (3, ['id', 'fare'])
    """
    options = {
        **options,
        "columns": columns,
        "where": where,
        "rows": rows,
        "limit": limit,
        "offset": offset,
        "memory": memory,
        "threads": threads,
        "target": target,
    }
    return scan(
        source,
        keys=keys,
        limits=limits,
        hive=hive,
        progress=progress,
        url_options=url_options,
        **options,
    ).read()


def read_into(source: Any, out: Mapping[str, Any], **options: Any) -> int:
    """Reads columns of required numbers into arrays of NumPy, by their names; see :func:`read`."""
    return scan(source, **options).read_into(out)
