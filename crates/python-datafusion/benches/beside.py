"""Queries through marq-datafusion beside DataFusion's own reader, in one process: beside.py [ROWS] [FOLDER]

Each query runs in turn with both, and with DataFusion's own with `pushdown_filters`; the medians of wall-clock and of CPU time
are of the runs after the first. The rows are made by pyarrow, with ZSTD and page indexes.
"""

from __future__ import annotations

import pathlib
import statistics
import sys
import tempfile
import time

import datafusion
import marq_datafusion
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

QUERIES = {
    "count, filter": "SELECT count(*) FROM t WHERE fare > 95 AND vendor = 'v07'",
    "group by, filter": "SELECT vendor, count(*), avg(fare) FROM t WHERE fare > 50 GROUP BY vendor",
    "group by": "SELECT vendor, count(*), sum(fare) FROM t GROUP BY vendor",
    "narrow range": "SELECT sum(fare), max(note) FROM t WHERE id BETWEEN 2000000 AND 2001000",
    "few rows, wide": "SELECT * FROM t WHERE note LIKE '%99999'",
    "lower()": "SELECT count(*) FROM t WHERE lower(vendor) = 'v03' AND fare < 10",
    "order by limit": "SELECT * FROM t ORDER BY fare DESC LIMIT 10",
    "join": "SELECT count(*) FROM t a JOIN t b ON a.id = b.id WHERE b.fare > 99",
}
RUNS = 7


def made(path: pathlib.Path, rows: int) -> None:
    ids = pa.array(range(rows), pa.int64())
    hashed = pc.bit_wise_and(pc.multiply(ids, 2_654_435_761), 0xFFFF_FFFF)
    part = pc.divide(hashed, 4_295)
    columns = {
        "id": ids,
        "vendor": pa.array([f"v{n:02}" for n in range(64)]).take(pc.bit_wise_and(hashed, 63)),
        "fare": pc.divide(part.cast(pa.float64()), 10_000.0),
        "note": pc.binary_join_element_wise("trip", hashed.cast(pa.string()), " "),
        "at": pc.add(ids, 1_700_000_000).cast(pa.timestamp("s")).cast(pa.timestamp("us")),
    }
    pq.write_table(pa.table(columns), path, compression="zstd", write_page_index=True)


def main() -> None:
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000_000
    with tempfile.TemporaryDirectory(dir=sys.argv[2] if len(sys.argv) > 2 else None) as folder:
        path = pathlib.Path(folder) / "rows.parquet"
        made(path, rows)
        pushing = datafusion.SessionConfig().set("datafusion.execution.parquet.pushdown_filters", "true")
        contexts = {
            "ours": datafusion.SessionContext(),
            "own": datafusion.SessionContext(),
            "own, pushdown": datafusion.SessionContext(pushing),
        }
        for name, ctx in contexts.items():
            if name == "ours":
                ctx.register_table("t", marq_datafusion.table(path))
            else:
                ctx.register_parquet("t", str(path))
        print(f"{rows} rows, {path.stat().st_size >> 20} MiB; milliseconds of the clock (of the CPU)")
        for what, query in QUERIES.items():
            times: dict[str, list[tuple[float, float]]] = {name: [] for name in contexts}
            results = set()
            for _ in range(RUNS):
                for name, ctx in contexts.items():
                    clock, cpu = time.perf_counter(), time.process_time()
                    batches = ctx.sql(query).collect()
                    times[name].append((time.perf_counter() - clock, time.process_time() - cpu))
                    results.add(sum(batch.num_rows for batch in batches))
            assert len(results) == 1, (what, results)
            medians = {
                name: [statistics.median(of[1:]) * 1e3 for of in zip(*all_of)]
                for name, all_of in times.items()
            }
            shown = ", ".join(f"{n} {wall:.0f} ({cpu:.0f})" for n, (wall, cpu) in medians.items())
            ratio = medians["ours"][0] / medians["own"][0]
            print(f"{what:18} ours/own {ratio:.2f}: {shown}", flush=True)


main()
