#!/usr/bin/env python3
"""Kills `marq append` at random points: the file is the old one or the new one, and pyarrow reads it.

    python3 tests/append_kills.py --marq PATH [--kills 1000] [--seed 1]

Needs pyarrow. The time of a whole run is measured first; each kill comes at a random part of it.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import pyarrow as pa
import pyarrow.parquet as pq


def table(first, rows):
    numbers = pa.array(range(first, first + rows))
    texts = pa.array([f"text {i * 7919 % 10007}" for i in range(first, first + rows)])
    return pa.table({"number": numbers, "text": texts})


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--marq", required=True)
    parser.add_argument("--kills", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    random.seed(args.seed)
    print(f"seed {args.seed}")
    with tempfile.TemporaryDirectory() as folder:
        old_rows, new_rows = 200_000, 120_000
        base, more = os.path.join(folder, "base.parquet"), os.path.join(folder, "more.parquet")
        pq.write_table(table(0, old_rows), base, row_group_size=50_000)
        pq.write_table(table(old_rows, new_rows), more, row_group_size=30_000)
        target = os.path.join(folder, "target.parquet")
        command = [args.marq, "append", target, more, "-q"]
        times = []
        for _ in range(5):
            shutil.copy(base, target)
            begun = time.monotonic()
            subprocess.run(command, check=True)
            times.append(time.monotonic() - begun)
        whole = sorted(times)[2]
        old, new, killed, wrong = 0, 0, 0, []
        for kill in range(args.kills):
            shutil.copy(base, target)
            child = subprocess.Popen(command, stderr=subprocess.DEVNULL)
            time.sleep(random.uniform(0, whole * 1.2))
            child.send_signal(signal.SIGKILL)
            killed += child.wait() == -signal.SIGKILL
            rows = pq.read_table(target).num_rows
            numbers = pq.read_table(target, columns=["number"]).column("number").to_pylist()
            if rows == old_rows and numbers == list(range(old_rows)):
                old += 1
            elif rows == old_rows + new_rows and numbers == list(range(rows)):
                new += 1
            else:
                wrong.append((kill, rows))
        # What the killed ones left is removed by the next that runs to its end.
        subprocess.run(command, check=True)
        left = [name for name in os.listdir(folder) if name.endswith(".tmp")]
    print(f"{args.kills} runs, {killed} killed: {old} old files, {new} new files, {len(wrong)} wrong")
    print(f"temporary files left after the next run: {len(left)}")
    if wrong or left:
        sys.exit(f"{wrong[:10]} {left[:10]}")


if __name__ == "__main__":
    main()
