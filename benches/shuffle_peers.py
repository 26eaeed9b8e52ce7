#!/usr/bin/env python3
"""An epoch of shuffled rows over the files that `benches/shuffle.rs` makes, by what pyarrow and polars have for it.

    pip install pyarrow polars
    SHUFFLE_DIR=FOLDER cargo bench --bench shuffle
    SHUFFLE_DIR=FOLDER python3 benches/shuffle_peers.py

Neither has a shuffled read. `all in memory` reads everything, and takes the rows in a random order. `window` reads the files in a
random order, and shuffles what a window of so many rows holds, which is what data loaders do with a stream.
Prints a Markdown table; `places` is explained in the bench. Each row is a process of its own, medians of its rounds.
"""

import os
import random
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

BATCH, ROUNDS = 1_024, 5


def files():
    return sorted(str(path) for path in Path(os.environ["SHUFFLE_DIR"]).glob("part-*.parquet"))


def pyarrow_all(epoch, threads):
    import numpy as np
    import pyarrow.parquet as pq

    table = pq.read_table(files(), use_threads=threads > 1)
    order = np.random.default_rng(epoch).permutation(table.num_rows)
    shuffled = table.take(order)
    yield from shuffled.to_batches(max_chunksize=BATCH)


def pyarrow_window(epoch, threads):
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    rng = np.random.default_rng(epoch)
    order = files()
    random.Random(epoch).shuffle(order)
    window, held = [], 0

    def shuffled():
        table = pa.Table.from_batches(window)
        yield from table.take(rng.permutation(table.num_rows)).to_batches(max_chunksize=BATCH)

    for path in order:
        for batch in pq.ParquetFile(path).iter_batches(65_536, use_threads=threads > 1):
            window.append(batch)
            held += batch.nbytes
            if held > 64 << 20:
                yield from shuffled()
                window, held = [], 0
    yield from shuffled()


def polars_all(epoch, threads):
    import polars as pl

    table = pl.scan_parquet(files()).collect().sample(fraction=1, shuffle=True, seed=epoch)
    yield from table.iter_slices(BATCH)


CONTENDERS = {
    "pyarrow, all in memory": pyarrow_all,
    "pyarrow, window of 64 MiB": pyarrow_window,
    "polars, all in memory": polars_all,
}


def one(name, threads):
    """The times of some epochs, in this process."""
    read = CONTENDERS[name]
    times = []
    # Imports, and the files in the page cache.
    for _ in read(99, threads):
        break
    for epoch in range(ROUNDS):
        start, cpu = time.perf_counter(), time.process_time()
        rows = found = 0
        sampled = []
        for at, batch in enumerate(read(epoch, threads)):
            rows += len(batch)
            if at % 100 == 0:
                sampled.append(batch["key"])
        times.append((time.process_time() - cpu, time.perf_counter() - start))
        for keys in sampled:
            keys = keys.to_list() if hasattr(keys, "to_list") else keys.to_pylist()
            found += len({key * 1_000 // rows for key in keys})
    cpu, wall = (statistics.median(of) for of in zip(*times))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(f"| {name} | {threads} | {cpu:.2f} | {wall:.2f} | {peak >> 10} | {found / len(sampled):.0f} |")


def main():
    if len(sys.argv) > 1:
        one(sys.argv[1], int(sys.argv[2]))
        return
    print("| reader | threads | CPU s | wall s | peak MB | places |\n|---|--:|--:|--:|--:|--:|", flush=True)
    for name in CONTENDERS:
        for threads in (1, 2):
            environment = {**os.environ, "POLARS_MAX_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
            subprocess.run([sys.executable, __file__, name, str(threads)], env=environment, check=False)


if __name__ == "__main__":
    main()
