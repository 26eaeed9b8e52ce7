"""Apache Parquet: reads, writes, filters, checks and repairs files.

What is read is taken by any Arrow library without a copy, and what they have is written: pyarrow,
polars, DuckDB, pandas and nanoarrow. None of them is needed.

>>> import marq
>>> table = marq.read("trips.parquet", columns=["id", "fare"], where="fare > 20")
>>> for batch in marq.scan("trips.parquet").filter(marq.col("id") < 100).batches():
...     print(batch.num_rows)
100

Threads, signals, processes: the GIL is released while files are read and written. Ctrl-C ends a
call on the main thread at once, and nothing half written stays. After ``os.fork()`` the library works
in the child with threads of its own; a read or a writer that had begun before the fork is refused
there. Another interpreter of the process is refused. Free-threaded Python 3.14 runs without its GIL.
"""

from ._crypt import Decryption, Encryption
from ._errors import (
    ArrowError,
    CancelledError,
    CryptoError,
    Error,
    InternalError,
    IoError,
    LimitError,
    MalformedError,
    NotFoundError,
    UnsupportedError,
    UsageError,
)
from ._expr import Condition, Value, all_of, any_of, col, lit
from ._extras import geo_bounds, geo_to_wkt, variant_from_json, variant_get, variant_to_json
from ._look import (
    CheckReport,
    Difference,
    Finding,
    Metadata,
    ReaderReport,
    check,
    diff,
    metadata,
    readers,
    schema,
    statistics,
)
from ._marq import Column, Schema, Table, __version__
from ._rewrite import (
    Compacted,
    Filled,
    RewritePlan,
    Rewritten,
    Salvaged,
    append,
    compact,
    concat,
    crypt,
    fill,
    rewrite,
    rewrite_plan,
    salvage,
    split,
)
from ._scan import Batches, Explanation, Scan, Shuffled, read, read_into, scan
from ._write import (
    ColumnReport,
    ExportedFile,
    RowGroupReport,
    WriteReport,
    Writer,
    export,
    write,
)

__all__ = [
    "ArrowError",
    "Batches",
    "CancelledError",
    "CheckReport",
    "Column",
    "ColumnReport",
    "Compacted",
    "Condition",
    "CryptoError",
    "Decryption",
    "Difference",
    "Encryption",
    "Error",
    "Explanation",
    "ExportedFile",
    "Filled",
    "Finding",
    "InternalError",
    "IoError",
    "LimitError",
    "MalformedError",
    "Metadata",
    "NotFoundError",
    "ReaderReport",
    "RewritePlan",
    "Rewritten",
    "RowGroupReport",
    "Salvaged",
    "Scan",
    "Schema",
    "Shuffled",
    "Table",
    "UnsupportedError",
    "UsageError",
    "Value",
    "WriteReport",
    "Writer",
    "__version__",
    "all_of",
    "any_of",
    "append",
    "check",
    "col",
    "compact",
    "concat",
    "crypt",
    "diff",
    "export",
    "fill",
    "geo_bounds",
    "geo_to_wkt",
    "lit",
    "metadata",
    "read",
    "read_into",
    "readers",
    "rewrite",
    "rewrite_plan",
    "salvage",
    "scan",
    "schema",
    "split",
    "statistics",
    "variant_from_json",
    "variant_get",
    "variant_to_json",
    "write",
]
