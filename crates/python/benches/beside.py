"""marq beside other libraries, in one run: python benches/beside.py [FILE [MORE...]]

Each job runs in turns with all libraries, each time in a process of its own, and the best of the rounds counts: wall
seconds, CPU seconds, and the largest resident memory. Without FILE it writes one of 2,000,000 rows; MORE are files
of any columns, which are read whole. `ONLY=JOB` runs one job. `ITERATE=1` also
iterates FILE, or one of about 1 GB, in batches and shows the resident memory over time; `PLOT=OUT.svg` draws it.
"""

from __future__ import annotations

import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time

ROUNDS = int(os.environ.get("ROUNDS", "3"))
TAKEN = [(i * 7919) % 1_900_000 for i in range(1000)]

JOBS = {
    "import": {
        "marq": "import marq",
        "pyarrow": "import pyarrow.parquet",
        "polars": "import polars",
        "duckdb": "import duckdb",
        "arro3": "import arro3.io",
        "fastparquet": "import fastparquet",
        "carquet": "import carquet",
    },
    "whole file": {
        "marq": "import marq; T(); marq.read(path)",
        "pyarrow": "import pyarrow.parquet as pq; T(); pq.read_table(path)",
        "polars": "import polars as pl; T(); pl.read_parquet(path)",
        "duckdb": "import duckdb, pyarrow; T(); duckdb.sql(f\"from '{path}'\").to_arrow_table()",
        "arro3": "import arro3.io; T(); arro3.io.read_parquet(path).read_all()",
        "fastparquet": "import fastparquet; T(); fastparquet.ParquetFile(path).to_pandas()",
        "carquet": "import carquet, pyarrow; T(); carquet.read_table(path)",
    },
    "three columns": {
        "marq": "import marq; T(); marq.read(path, columns=['id', 'fare', 'kind'])",
        "pyarrow": "import pyarrow.parquet as pq; T(); pq.read_table(path, columns=['id', 'fare', 'kind'])",
        "polars": "import polars as pl; T(); pl.read_parquet(path, columns=['id', 'fare', 'kind'])",
        "duckdb": "import duckdb, pyarrow; T(); duckdb.sql(f\"select id, fare, kind from '{path}'\").to_arrow_table()",
        "fastparquet": "import fastparquet; T(); fastparquet.ParquetFile(path).to_pandas(['id', 'fare', 'kind'])",
        "carquet": "import carquet, pyarrow; T(); carquet.read_table(path, columns=['id', 'fare', 'kind'])",
    },
    "three of 10,000 columns": {
        "marq": "import marq; T(); marq.read(path, columns=['c17', 'c5000', 'c9999'])",
        "pyarrow": "import pyarrow.parquet as pq; T(); pq.read_table(path, columns=['c17', 'c5000', 'c9999'])",
        "polars": "import polars as pl; T(); pl.read_parquet(path, columns=['c17', 'c5000', 'c9999'])",
        "duckdb": "import duckdb, pyarrow; T(); duckdb.sql(f\"select c17, c5000, c9999 from '{path}'\").to_arrow_table()",
        "fastparquet": "import fastparquet; T(); fastparquet.ParquetFile(path).to_pandas(['c17', 'c5000', 'c9999'])",
        "carquet": "import carquet, pyarrow; T(); carquet.read_table(path, columns=['c17', 'c5000', 'c9999'])",
    },
    "key range": {
        "marq": "import marq; T(); assert marq.read(path, where='id between 700000 and 700999').num_rows == 1000",
        "pyarrow": "import pyarrow.parquet as pq; T(); pq.read_table(path, filters=[('id', '>=', 700000), ('id', '<=', 700999)])",
        "polars": "import polars as pl; T(); pl.scan_parquet(path).filter(pl.col('id').is_between(700000, 700999)).collect()",
        "duckdb": "import duckdb, pyarrow; T(); duckdb.sql(f\"from '{path}' where id between 700000 and 700999\").to_arrow_table()",
    },
    "filter, 1 in 100": {
        "marq": "import marq; T(); marq.read(path, where='noise = 7')",
        "pyarrow": "import pyarrow.parquet as pq; T(); pq.read_table(path, filters=[('noise', '=', 7)])",
        "polars": "import polars as pl; T(); pl.scan_parquet(path).filter(pl.col('noise') == 7).collect()",
        "duckdb": "import duckdb, pyarrow; T(); duckdb.sql(f\"from '{path}' where noise = 7\").to_arrow_table()",
    },
    "take 1,000": {
        "marq": "import marq; T(); marq.scan(path).take(rows)",
        "pyarrow": "import pyarrow.dataset as ds; T(); ds.dataset(path).take(rows)",
        "polars": "import polars as pl; T(); pl.scan_parquet(path).select(pl.all().gather(rows)).collect()",
        "duckdb": "import duckdb, pyarrow; T(); duckdb.sql(f\"select * from '{path}' where file_row_number in {tuple(rows)}\").to_arrow_table()",
    },
    "write": {
        "marq": "import marq, pyarrow.parquet as pq; t = pq.read_table(path); T(); marq.write(t, out, codec='zstd:1')",
        "pyarrow": "import pyarrow.parquet as pq; t = pq.read_table(path); T(); pq.write_table(t, out, compression='zstd')",
        "polars": "import polars as pl; t = pl.read_parquet(path); T(); t.write_parquet(out, compression='zstd', compression_level=1)",
        "duckdb": "import duckdb, pyarrow.parquet as pq; t = pq.read_table(path); T(); duckdb.sql('from t').write_parquet(out, compression='zstd')",
        "arro3": "import arro3.io, pyarrow.parquet as pq; t = pq.read_table(path); T(); arro3.io.write_parquet(t, out, compression='zstd(1)')",
        "carquet": "import carquet, pyarrow.parquet as pq; t = pq.read_table(path); T(); carquet.write_table(t, out, compression_level=1)",
    },
}

ITERATE = {
    "marq": "import marq\nfor batch in marq.scan(path).batches(): step()",
    "pyarrow": "import pyarrow.parquet as pq\nfor batch in pq.ParquetFile(path).iter_batches(): step()",
    "polars": "import polars as pl\nfor batch in pl.scan_parquet(path).collect_batches(): step()",
    "duckdb": "import duckdb, pyarrow\nfor batch in duckdb.sql(f\"from '{path}'\").to_arrow_reader(65536): step()",
}

PRELUDE = """
import os, resource, sys, time
path, out = sys.argv[1:]
rows = {taken}
times = []
def used():
    of = resource.getrusage(resource.RUSAGE_SELF)
    return time.perf_counter(), of.ru_utime + of.ru_stime
def T():
    times.append(used())
T()
def resident():
    return int(open('/proc/self/statm').read().split()[1]) * 4096 >> 20
seen, n = [], 0
def step():
    global n
    n += 1
    if n % 20 == 0:
        seen.append(resident())
"""
END = """
begin = times[-1]
end = used()
print(end[0] - begin[0], end[1] - begin[1], resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
"""


def make(path: pathlib.Path, rows: int) -> None:
    """A file as a writer of pyarrow makes it, with a page index."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    schema = None
    writer = None
    for start in range(0, rows, 500_000):
        n = min(500_000, rows - start)
        table = pa.table(
            {
                "id": np.arange(start, start + n),
                "fare": rng.gamma(2.0, 8.0, n).round(2),
                "noise": rng.integers(0, 100, n),
                "kind": pa.array(rng.choice(["card", "cash", "voucher", "dispute"], n)),
                "note": pa.array([f"ride {i % 9973} of {i % 31}" for i in range(n)]),
                "at": pa.array(np.arange(start, start + n) * 1_000_003, pa.timestamp("us")),
                **{f"x{i}": rng.normal(size=n) for i in range(6)},
            }
        )
        if writer is None:
            schema = table.schema
            writer = pq.ParquetWriter(path, schema, write_page_index=True)
        writer.write_table(table, row_group_size=250_000)
    assert writer is not None
    writer.close()


def make_wide(path: pathlib.Path) -> None:
    """A file of 10,000 columns, 4 row groups and 400 rows."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(1)
    table = pa.table({f"c{i}": rng.random(400, np.float32) for i in range(10_000)})
    pq.write_table(table, path, row_group_size=100)


def run(code: str, path: pathlib.Path, out: pathlib.Path) -> list[float] | None:
    text = PRELUDE.replace("{taken}", repr(TAKEN)) + code + END
    done = subprocess.run([sys.executable, "-c", text, str(path), str(out)], capture_output=True, text=True)
    if done.returncode != 0:
        print("   ", done.stderr.strip().splitlines()[-1:], file=sys.stderr)
        return None
    return [float(word) for word in done.stdout.split()[-3:]]


def make_aside(path: pathlib.Path, rows: int) -> None:
    """Makes a file in another process, a wide one where rows is 0: a child begins with the largest resident memory of
    its parent."""
    subprocess.run([sys.executable, __file__, "--make", str(path), str(rows)], check=True)


COLOURS = {"marq": "#d95f02", "pyarrow": "#7570b3", "polars": "#1b9e77", "duckdb": "#999933"}


def plot(series: dict[str, list[int]], title: str) -> str:
    """Resident memory over the course of the read, a line each, as SVG."""
    top = max(max(values) for values in series.values())
    step = 10 ** (len(str(top)) - 1)
    parts = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 300" font-family="sans-serif" font-size="12">',
        f'<rect width="640" height="300" fill="#fff"/><text x="60" y="20">{title}</text>',
    ]
    for at in range(0, top + 1, step):
        y = 260 - 220 * at / top
        parts.append(f'<path d="M60 {y:.1f}H560" stroke="#ddd"/><text x="54" y="{y + 4:.1f}" text-anchor="end">{at} MiB</text>')
    labels: list[float] = []
    for name, values in sorted(series.items(), key=lambda of: of[1][-1]):
        every = values[:: max(1, len(values) // 100)]
        points = " ".join(
            f"{60 + 500 * i / max(1, len(every) - 1):.0f},{260 - 220 * value / top:.1f}" for i, value in enumerate(every)
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{COLOURS[name]}" stroke-width="2"/>')
        labels.append(min([264 - 220 * every[-1] / top, *(y - 13 for y in labels)]))
        parts.append(f'<text x="566" y="{labels[-1]:.1f}" fill="{COLOURS[name]}">{name}</text>')
    parts.append('<text x="310" y="285" text-anchor="middle">share of the rows that were read</text></svg>')
    return "\n".join(parts) + "\n"


def iterate(path: pathlib.Path, out: pathlib.Path) -> None:
    """Iterates the file with each library, and shows the memory that is resident meanwhile."""
    print(f"iterating {path.stat().st_size >> 20} MiB: resident MiB at ten moments, largest")
    series = {}
    for name, code in ITERATE.items():
        text = PRELUDE.replace("{taken}", "[]") + code + "\nprint(*seen)"
        begin = time.perf_counter()
        done = subprocess.run([sys.executable, "-c", text, str(path), str(out)], capture_output=True, text=True)
        # Progress bars come before.
        seen = [int(word) for word in (done.stdout.splitlines() or [""])[-1].split() if word.isdigit()]
        if not seen:
            print(f"  {name:12} {done.stderr.strip().splitlines()[-1:]}")
            continue
        series[name] = seen
        print(f"  {name:12} {time.perf_counter() - begin:6.1f} s {seen[:: max(1, len(seen) // 10)]}, {max(seen)}")
    if drawing := os.environ.get("PLOT"):
        title = f"Resident memory while a file of {path.stat().st_size / 1e9:.1f} GB is read in batches"
        pathlib.Path(drawing).write_text(plot(series, title))


def main() -> None:
    if sys.argv[1:2] == ["--make"]:
        path, rows = pathlib.Path(sys.argv[2]), int(sys.argv[3])
        make(path, rows) if rows else make_wide(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else f"{folder}/file.parquet")
        if len(sys.argv) < 2:
            make_aside(path, 2_000_000)
        out = pathlib.Path(folder) / "out.parquet"
        print(f"{path.stat().st_size >> 20} MiB, {os.cpu_count()} cores, best of {ROUNDS}; wall s | CPU s | MiB; x: wall of marq = 1")
        wide = pathlib.Path(folder) / "wide.parquet"
        make_aside(wide, 0)
        files = {"three of 10,000 columns": wide}
        for more in sys.argv[2:]:
            job = f"whole file: {pathlib.Path(more).name}, {pathlib.Path(more).stat().st_size >> 20} MiB"
            JOBS[job], files[job] = JOBS["whole file"], pathlib.Path(more)
        for job, codes in JOBS.items():
            best: dict[str, list[float]] = {}
            if os.environ.get("ONLY", job) != job:
                continue
            for _ in range(ROUNDS):
                for name, code in codes.items():
                    if (found := run(code, files.get(job, path), out)) is not None:
                        best[name] = [min(pair) for pair in zip(found, best.get(name, found))]
            print(job, flush=True)
            for name, (wall, cpu, memory) in best.items():
                print(f"  {name:12} {wall:8.3f} | {cpu:8.3f} | {memory:6.0f} | x {wall / best['marq'][0]:6.2f}")
        if os.environ.get("ITERATE"):
            large = path
            if len(sys.argv) < 2:
                large = pathlib.Path(folder) / "large.parquet"
                make_aside(large, int(os.environ.get("ITERATE_ROWS", "12000000")))
            iterate(large, out)


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    main()
