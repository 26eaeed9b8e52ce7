#!/usr/bin/env python3
"""Cuts a file of ten row groups at every byte (or every N-th), and kills exports with a side footer:
`marq salvage` gives all whole row groups back, and no row that was never written.

    python3 tests/salvage_cuts.py --marq PATH [--every 1] [--kills 100] [--seed 1]

Needs pyarrow.
"""

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import pyarrow as pa
import pyarrow.parquet as pq

GROUPS, GROUP_ROWS = 10, 60


def table(rows):
    numbers = pa.array(range(rows))
    texts = pa.array([f"text {i * 7919 % 10007}" for i in range(rows)])
    shares = pa.array([i / 7 for i in range(rows)])
    return pa.table({"number": numbers, "text": texts, "share": shares})


def salvage(marq, file, out, *flags):
    """The numbers of the rows that came back, and the account."""
    if os.path.exists(out):
        os.remove(out)
    command = [marq, "salvage", file, "-o", out, "--report", "-f", "json", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 3, 5):
        sys.exit(f"{command}: {done.returncode} {done.stderr}")
    account = json.loads(done.stdout) if done.stdout else None
    rows = pq.read_table(out) if os.path.exists(out) else None
    return rows, account


def check_rows(rows, whole):
    """Whether the rows are rows of the whole file, with all their values."""
    places = rows.column("number").to_pylist()
    return rows.equals(whole.take(pa.array(places, pa.int64())))


def cuts(args, folder):
    whole = table(GROUPS * GROUP_ROWS)
    path, cut = os.path.join(folder, "whole.parquet"), os.path.join(folder, "cut.parquet")
    out = os.path.join(folder, "out.parquet")
    pq.write_table(whole, path, row_group_size=GROUP_ROWS, compression="snappy")
    content = open(path, "rb").read()
    footer = pq.read_metadata(path)
    ends = []
    for group in range(GROUPS):
        chunk = footer.row_group(group).column(2)
        start = chunk.dictionary_page_offset or chunk.data_page_offset
        ends.append(start + chunk.total_compressed_size)
    lacking, invented, runs, back = [], [], 0, 0
    for at in range(4, len(content) + 1, args.every):
        with open(cut, "wb") as file:
            file.write(content[:at])
        rows, _ = salvage(args.marq, cut, out, "--schema-from", path)
        runs += 1
        found = rows.num_rows if rows is not None else 0
        back += found // GROUP_ROWS
        if rows is not None and not check_rows(rows, whole):
            invented.append(at)
        if found < GROUP_ROWS * sum(end <= at for end in ends):
            lacking.append(at)
    print(f"{runs} cuts of {len(content)} bytes: {back} row groups back, {len(lacking)} cuts with a "
          f"whole row group lost, {len(invented)} with rows that were never written")
    return lacking or invented


def kills(args, folder):
    whole = table(2_000_000)
    source, out = os.path.join(folder, "source.parquet"), os.path.join(folder, "salvaged.parquet")
    pq.write_table(whole, source)
    target = os.path.join(folder, "export.parquet")
    command = [args.marq, "convert", source, "-o", target, "--side-footer", "1", "-q",
               "--row-group-rows", "50000", "-j", "1"]
    begun = time.monotonic()
    subprocess.run(command, check=True)
    time_of_all = time.monotonic() - begun
    bad, killed, recovered, none = [], 0, 0, 0
    for kill in range(args.kills):
        for name in os.listdir(folder):
            if "export.parquet" in name:
                os.remove(os.path.join(folder, name))
        child = subprocess.Popen(command, stderr=subprocess.DEVNULL)
        time.sleep(random.uniform(0, time_of_all))
        child.send_signal(signal.SIGKILL)
        if child.wait() != -signal.SIGKILL:
            continue
        killed += 1
        names = os.listdir(folder)
        unfinished = [name for name in names if name.endswith(".tmp") and ".export.parquet." in name
                      and "side-footer" not in name]
        side = os.path.join(folder, "export.parquet.side-footer")
        if not unfinished or not os.path.exists(side):
            none += 1
            continue
        told = pq.read_metadata(side).num_row_groups
        rows, _ = salvage(args.marq, os.path.join(folder, unfinished[0]), out,
                          "--side-footer", side)
        if rows is None or rows.num_rows < told * 50_000 or not check_rows(rows, whole):
            bad.append((kill, told, rows and rows.num_rows))
        recovered += rows.num_rows if rows is not None else 0
    print(f"{killed} exports killed: {none} before the first side footer, {recovered} rows back, "
          f"{len(bad)} with row groups of the side footer lost or rows that were never written")
    return bad


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--marq", required=True)
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    random.seed(args.seed)
    print(f"seed {args.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        wrong = cuts(args, folder)
        wrong = kills(args, folder) or wrong
    if wrong:
        sys.exit(f"{wrong[:10]}")


if __name__ == "__main__":
    main()
