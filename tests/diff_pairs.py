#!/usr/bin/env python3
"""Compares pairs of files with `marq diff`, and says how often it is wrong.

Half of the pairs hold the same rows in other layouts: row groups, pages, codecs, dictionaries, page
versions, encodings, another writer. In the others one thing differs: a value, a null, a level, a
row, or a type. Some are compared by key, in an order of their own.

    python3 tests/diff_pairs.py --marq target/debug/marq [--pairs 500] [--seed 1]

Needs pyarrow.
"""

import argparse
import datetime
import decimal
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq


def scalar(rng, kind):
    """A value of a kind, sometimes null."""
    if rng.random() < 0.15:
        return None
    if kind == "int":
        return rng.choice([0, -1, 7, rng.randrange(-(2**62), 2**62)])
    if kind == "float":
        return rng.choice([0.0, -0.0, 1.5, float("nan"), float("inf"), rng.random()])
    if kind == "text":
        return rng.choice(["", "a", "Zürich", "x" * rng.randrange(30), str(rng.random())])
    if kind == "bytes":
        return bytes(rng.randrange(256) for _ in range(rng.randrange(6)))
    if kind == "bool":
        return rng.random() < 0.5
    if kind == "decimal":
        return decimal.Decimal(rng.randrange(-(10**9), 10**9)).scaleb(-2)
    if kind == "time":
        return datetime.datetime(2026, 1, 1) + datetime.timedelta(seconds=rng.randrange(10**7))
    if kind == "date":
        return datetime.date(2026, 1, 1) + datetime.timedelta(days=rng.randrange(1000))
    if kind == "fixed":
        return bytes(rng.randrange(256) for _ in range(5))
    if kind == "list":
        return [scalar(rng, "int") for _ in range(rng.randrange(4))]
    if kind == "lists":
        return [scalar(rng, "list") for _ in range(rng.randrange(3))]
    if kind == "struct":
        return {"x": scalar(rng, "int"), "y": scalar(rng, "text")}
    if kind == "map":
        return [(f"k{i}", scalar(rng, "float")) for i in range(rng.randrange(3))]
    raise ValueError(kind)


TYPES = {
    "int": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "bytes": pa.binary(),
    "bool": pa.bool_(),
    "decimal": pa.decimal128(12, 2),
    "time": pa.timestamp("us"),
    "date": pa.date32(),
    "fixed": pa.binary(5),
    "list": pa.list_(pa.int64()),
    "lists": pa.list_(pa.list_(pa.int64())),
    "struct": pa.struct([("x", pa.int64()), ("y", pa.string())]),
    "map": pa.map_(pa.string(), pa.float64()),
}


def table(rng, columns, data):
    arrays = [pa.array(values, TYPES[kind]) for kind, values in zip(columns, data)]
    names = [f"c{i}_{kind}" for i, kind in enumerate(columns)]
    rows = len(data[0])
    return pa.table([pa.array(range(rows), pa.int64()), *arrays], ["id", *names])


def write(rng, table, path):
    """Writes a table in a layout by chance."""
    pq.write_table(
        table,
        path,
        row_group_size=rng.choice([7, 50, 1000]),
        compression=rng.choice(["none", "snappy", "zstd", "gzip", "lz4", "brotli"]),
        use_dictionary=rng.random() < 0.5,
        data_page_version=rng.choice(["1.0", "2.0"]),
        data_page_size=rng.choice([64, 1000, 1 << 20]),
        version=rng.choice(["2.4", "2.6"]),
        write_page_index=rng.random() < 0.5,
        write_statistics=rng.random() < 0.5,
        store_schema=rng.random() < 0.5,
    )


def rewrite(rng, marq, source, path):
    """Writes the rows of a file by another writer."""
    flags = ["--row-group-rows", str(rng.choice([9, 100, 5000]))]
    flags += ["--codec", rng.choice(["none", "snappy", "zstd:3", "lz4_raw"])]
    flags += ["--page-version", rng.choice(["1", "2"])]
    flags += rng.choice([[], ["--dictionary", "off"]])
    subprocess.run([marq, "convert", source, "-o", path, "-q", *flags], check=True)


def other(rng, kind, value):
    """A value that differs; of lists, often by a level only."""
    if kind in ("list", "lists", "map"):
        choices = [[], None, (value or []) + [("z", 1.0) if kind == "map" else None]]
        choices = [choice for choice in choices if choice != value]
        return rng.choice(choices)
    if kind == "float" and value == 0.0 and rng.random() < 0.5:
        return -value
    while True:
        found = scalar(rng, kind)
        is_nan = isinstance(found, float) and isinstance(value, float) and found != found
        if str(found) != str(value) and not (is_nan and value != value):
            return found


def change(rng, columns, data):
    """Changes one thing. Returns the data, and the row and column of the first difference."""
    data = [list(values) for values in data]
    rows = len(data[0])
    at, column = rng.randrange(rows), rng.randrange(len(columns))
    data[column][at] = other(rng, columns[column], data[column][at])
    return data, at, f"c{column}_{columns[column]}"


def pair(rng, marq, folder, number):
    """Makes a pair, and compares it. Returns what is wrong, or nothing."""
    columns = [rng.choice(list(TYPES)) for _ in range(rng.randrange(1, 6))]
    rows = rng.choice([1, 5, 80, 700])
    data = [[scalar(rng, kind) for _ in range(rows)] for kind in columns]
    a, b = str(folder / f"{number}a.parquet"), str(folder / f"{number}b.parquet")
    before = table(rng, columns, data)
    write(rng, before, a)
    kind = rng.choice(["equal"] * 4 + ["value", "value", "row", "type"])
    after, place, flags = before, None, []
    by_key = rng.random() < 0.3
    if kind == "value":
        changed, row, column = change(rng, columns, data)
        after, place = table(rng, columns, changed), (row, column)
    if kind == "row":
        at = rng.randrange(rows)
        after = pa.concat_tables([before.slice(0, at), before.slice(at + 1)])
    if kind == "type":
        # Old versions of the format store nanoseconds as microseconds.
        units = rng.choice([("ms", "us"), ("us", "ms")])
        more = pa.array([datetime.datetime(2026, 1, 1)] * rows, pa.timestamp(units[0]))
        less = more.cast(pa.timestamp(units[1]))
        write(rng, before.append_column("t", more), a)
        after = before.append_column("t", less)
    if by_key:
        flags = ["--key", "id"]
        if rng.random() < 0.5:
            order = list(range(after.num_rows))
            rng.shuffle(order)
            after = after.take(pa.array(order, pa.int64()))
    if rng.random() < 0.3 and after.num_rows > 0:
        write(rng, after, f"{b}.first")
        rewrite(rng, marq, f"{b}.first", b)
    else:
        write(rng, after, b)
    command = [marq, "diff", a, b, "-f", "json", "-q", *flags]
    done = subprocess.run(command, capture_output=True, text=True)
    return judge(kind, place, by_key, done)


def judge(kind, place, by_key, done):
    wanted = 0 if kind == "equal" else 4
    if done.returncode != wanted:
        return f"{kind}: exit code {done.returncode} and not {wanted}: {done.stdout}{done.stderr}"
    found = json.loads(done.stdout)
    if kind == "value":
        first = found["data"]["differences"][0]
        if found["data"]["total"] != 1 or (first["row_a"], first["column"]) != place:
            return f"value: {place} was changed, and found was {first}"
    if kind == "row" and by_key:
        data = found["data"]
        counts = (data["rows_only_in_a"], data["rows_only_in_b"], data["rows_different"])
        if counts != (1, 0, 0):
            return f"row: one is missing, and found was {counts}"
    if kind == "type" and not found["schema_differences"]:
        return "type: no difference of the schemas was found"
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--marq", required=True)
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    flags = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for number in range(flags.pairs):
            rng = random.Random(flags.seed * 1_000_003 + number)
            told = pair(rng, flags.marq, pathlib.Path(folder), number)
            for made in pathlib.Path(folder).glob(f"{number}[ab].*"):
                made.unlink()
            if told:
                wrong += 1
                print(f"seed {flags.seed}, pair {number}: {told}")
    print(f"seed {flags.seed}: {flags.pairs} pairs, {wrong} wrong answers")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
