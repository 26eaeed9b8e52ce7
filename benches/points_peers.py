#!/usr/bin/env python3
"""Rows by their numbers, of the tables that `benches/points.rs` makes: Lance and Vortex from their own files.

    pip install pylance==14.0.0 vortex-data==0.93.0 pyarrow
    POINTS_DIR=FOLDER cargo bench --bench points
    POINTS_DIR=FOLDER python3 benches/points_peers.py [TEXT]

Prints one Markdown table. Times are CPU of the process, all threads, medians over the rounds; each round takes other
rows. `open` opens the file first, `again` is a file that stays open. Peers whose package is not installed are left out.
"""

import os
import random
import resource
import statistics
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

TAKEN, ROUNDS = 1_000, 9


def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def bytes_read():
    for line in Path("/proc/self/io").read_text().splitlines():
        if line.startswith("rchar: "):
            return int(line.split()[1])
    return 0


def size(path):
    path = Path(path)
    return sum(f.stat().st_size for f in path.rglob("*") if f.is_file()) if path.is_dir() else path.stat().st_size


class Lance:
    name = "Lance"

    def __init__(self, source):
        import lance

        self.lance = lance
        self.path = str(source).replace("arrow-rs.parquet", "lance")
        if not Path(self.path).exists():
            file = pq.ParquetFile(source)
            lance.write_dataset(file.iter_batches(batch_size=1 << 16), self.path, schema=file.schema_arrow)

    def open(self):
        return self.lance.dataset(self.path)

    def take(self, dataset, rows):
        return dataset.take(rows)


class Vortex:
    name = "Vortex"

    def __init__(self, source):
        import vortex

        self.vortex = vortex
        self.path = str(source).replace("arrow-rs.parquet", "vortex")
        if not Path(self.path).exists():
            file = pq.ParquetFile(source)
            reader = pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches(batch_size=1 << 16))
            vortex.io.write(reader, self.path)

    def open(self):
        return self.vortex.open(self.path)

    def take(self, file, rows):
        wanted = pa.array(sorted(set(rows)), pa.uint64())
        return file.scan(indices=self.vortex.array(wanted)).read_all().to_arrow_table()


def peak(run):
    def of(name):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith(name):
                return int(line.split()[1]) * 1024
        return 0

    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        pass
    before = of("VmRSS:")
    run()
    return max(0, of("VmHWM:") - before)


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    print("| table | rows | reader | file | open ms | again ms | read MB | peak MB |\n|---|---|---|---|---|---|---|---|")
    for source in sorted(Path(os.environ["POINTS_DIR"]).glob("*-arrow-rs.parquet")):
        table, rows = source.name.split("-")[0], pq.ParquetFile(source).metadata.num_rows
        if wanted not in table:
            continue
        for kind in (Lance, Vortex):
            try:
                peer = kind(source)
            except ImportError as missing:
                print(f"| {table} | {rows} | {kind.name} | {missing} | | | | |")
                continue
            rng = random.Random(11)
            pick = lambda: [rng.randrange(rows) for _ in range(TAKEN)]
            held, cold, warm, read = peer.open(), [], [], []
            for i in range(ROUNDS + 1):
                first, then = pick(), pick()
                start = cpu()
                peer.take(peer.open(), first)
                middle, bytes_before = cpu(), bytes_read()
                peer.take(held, then)
                if i > 0:
                    cold.append(middle - start)
                    warm.append(cpu() - middle)
                    read.append(bytes_read() - bytes_before)
            most = peak(lambda: peer.take(peer.open(), pick()))
            cells = [f"{size(peer.path) / 1e6:.1f} MB"]
            cells += [f"{statistics.median(times) * 1e3:.2f}" for times in (cold, warm)]
            cells += [f"{statistics.median(read) / 1e6:.2f}", f"{most / 1e6:.0f}"]
            print(f"| {table} | {rows} | {peer.name} | {' | '.join(cells)} |", flush=True)


main()
