#!/usr/bin/env python3
"""Random tables of up to tens of thousands of rows: `marq` reads of other writers what pyarrow reads, and pyarrow reads
what `marq` writes.

    python3 tests/foreign_tables.py --marq PATH [--tables 300] [--seed 1] [--first 0] [--keep DIR]

pyarrow, DuckDB and polars, as far as they are installed, write them with random options. Values have shapes that small
random tables lack: dictionaries of thousands of entries, entries that get longer, runs, sorted keys, one huge value among
small ones, lists of very unequal lengths, nulls in blocks. Each file is read whole, with --where, and with --rows. A third
of the tables goes the other way: written by `marq convert` with random options, and checked with `marq check --level truth`.

Needs pyarrow. Each table's number is its seed.
"""

import argparse
import decimal
import os
import random
import shutil
import subprocess
import sys
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq

ROWS = [1, 7, 100, 1_000, 1_025, 4_000, 8_193, 20_000, 50_000]


def integers(rng, n, bits):
    low, high = -(1 << bits - 1), (1 << bits - 1) - 1
    shape = rng.randrange(7)
    if shape == 0:
        return [rng.randint(low, high) for _ in range(n)]
    if shape == 1:
        start = rng.randint(-100, 100)
        return [max(low, min(high, start + i)) for i in range(n)]
    if shape == 2:
        few = [rng.randint(low, high) for _ in range(rng.randint(1, 40))]
        return [rng.choice(few) for _ in range(n)]
    if shape == 3:
        out = []
        while len(out) < n:
            out += [rng.randint(low, high)] * rng.randint(1, 3_000)
        return out[:n]
    if shape == 4:
        return [rng.randint(0, min(high, 1 << rng.randint(0, bits - 1))) for _ in range(n)]
    if shape == 5:
        return sorted(rng.randint(low, high) for _ in range(n))
    return [rng.choice([low, high, 0, -1, 1]) for _ in range(n)]


def texts(rng, n):
    shape = rng.randrange(8)
    if shape == 0:
        return [f"s{i}" for i in range(n)]
    if shape == 1:
        few = [f"entry {i * 7919}" for i in range(rng.randint(1, 6_000))]
        return [rng.choice(few) for _ in range(n)]
    if shape == 2:
        return ["x" * (i * 60 // n) for i in range(n)]
    if shape == 3:
        return ["é" * (n - i) if n - i < 40 else "" for i in range(n)]
    if shape == 4:
        return ["".join(rng.choice("abc€😀 ") for _ in range(rng.randint(0, 12))) for _ in range(n)]
    if shape == 5:
        out = [str(rng.randint(0, 99)) for _ in range(n)]
        out[rng.randrange(n)] = "long " * rng.randint(1_000, 40_000)
        return out
    if shape == 6:
        return [f"http://example.org/a/common/prefix/{i // 3:09}" for i in range(n)]
    out = []
    while len(out) < n:
        out += [f"run {rng.randint(0, 999)}"] * rng.randint(1, 2_000)
    return out[:n]


def with_nulls(rng, values):
    shape = rng.randrange(4)
    if shape == 0:
        return values
    if shape == 1:
        return [None if rng.random() < 0.1 else v for v in values]
    if shape == 2:
        return [None if i // 700 % 2 else v for i, v in enumerate(values)]
    return [v if rng.random() < 0.02 else None for v in values]


def scalars(rng, n):
    """A column of values without children, and its type."""
    kind = rng.randrange(22)
    if kind >= 15:
        return rare_scalars(rng, n, kind)
    if kind < 4:
        bits = [8, 16, 32, 64][kind]
        return pa.array(with_nulls(rng, integers(rng, n, bits)), getattr(pa, f"int{bits}")())
    if kind == 4:
        bits = rng.choice([8, 16, 32, 64])
        values = [v % (1 << bits) for v in integers(rng, n, bits)]
        return pa.array(with_nulls(rng, values), getattr(pa, f"uint{bits}")())
    if kind == 5:
        values = [rng.choice([0.0, -0.0, float("inf"), rng.random(), rng.randint(0, 9_999) / 100]) for _ in range(n)]
        return pa.array(with_nulls(rng, values), rng.choice([pa.float32(), pa.float64()]))
    if kind == 6:
        return pa.array(with_nulls(rng, [rng.random() < rng.choice([0.01, 0.5]) for _ in range(n)]), pa.bool_())
    if kind == 7:
        values = [v.encode() + bytes([rng.randrange(256)]) for v in texts(rng, n)]
        return pa.array(with_nulls(rng, values), pa.binary())
    if kind == 8:
        precision = rng.randint(1, 38)
        top = 10 ** precision - 1
        scale = rng.randint(0, precision)
        with decimal.localcontext() as context:
            context.prec = 60
            values = [decimal.Decimal(max(-top, min(top, v))).scaleb(-scale) for v in integers(rng, n, 64)]
        return pa.array(with_nulls(rng, values), pa.decimal128(precision, scale))
    if kind == 9:
        unit = rng.choice(["ms", "us", "ns"])
        values = [v // 1_000_000 for v in integers(rng, n, 64)]
        return pa.array(with_nulls(rng, values), pa.timestamp(unit, rng.choice([None, "UTC"])))
    if kind == 10:
        return pa.array(with_nulls(rng, [v % 50_000 for v in integers(rng, n, 32)]), pa.date32())
    if kind == 11:
        width = rng.choice([1, 3, 16])
        return pa.array(with_nulls(rng, [(v % 256 ** width).to_bytes(width, "big") for v in integers(rng, n, 64)]), pa.binary(width))
    if kind == 12:
        values = pa.array(with_nulls(rng, integers(rng, n, 32)), pa.int32())
        return values.dictionary_encode()
    strings = pa.array(with_nulls(rng, texts(rng, n)), rng.choice([pa.string(), pa.large_string()]))
    if kind == 13:
        return strings.dictionary_encode()
    return strings


def rare_scalars(rng, n, kind):
    """Types that fewer writers know."""
    if kind == 15:
        return pa.array(with_nulls(rng, texts(rng, n)), pa.string_view())
    if kind == 16:
        return pa.array(with_nulls(rng, [v.encode() for v in texts(rng, n)]), rng.choice([pa.binary_view(), pa.large_binary()]))
    if kind == 17:
        values = [rng.choice([0.0, -2.5, float("inf"), rng.random()]) for _ in range(n)]
        return pa.array(with_nulls(rng, values), pa.float32()).cast(pa.float16())
    if kind == 18:
        unit = rng.choice(["s", "ms", "us", "ns"])
        return pa.array(with_nulls(rng, [v // 1_000_000_000 for v in integers(rng, n, 64)]), pa.duration(unit))
    if kind == 19:
        of = rng.choice([pa.time32("ms"), pa.time32("s"), pa.time64("us"), pa.time64("ns")])
        return pa.array(with_nulls(rng, [v % 86_400 for v in integers(rng, n, 32)]), pa.int64()).cast(of.bit_width == 32 and pa.int32() or pa.int64()).cast(of)
    if kind == 20:
        digits = rng.choice([(pa.decimal32, 9), (pa.decimal64, 18), (pa.decimal256, 76)])
        values = [decimal.Decimal(v % 10 ** 9) for v in integers(rng, n, 64)]
        return pa.array(with_nulls(rng, values), digits[0](digits[1], 0))
    return rng.choice([
        lambda: pa.nulls(n),
        lambda: pa.array(with_nulls(rng, [v.encode() for v in texts(rng, n)]), pa.binary()).dictionary_encode(),
        lambda: pa.array(with_nulls(rng, [v * 86_400_000 for v in integers(rng, n, 16)]), pa.date64()),
        lambda: pa.array(with_nulls(rng, [v for v in integers(rng, n, 16)]), pa.int16()).cast(pa.int64()).dictionary_encode(),
    ])()


def column(rng, n, depth=0):
    kind = rng.randrange(9) if depth < 3 else 8
    if kind == 0:
        lengths = [rng.choice([0, 0, 1, 2, 3, 3, 50 if rng.random() < 0.01 else 1]) for _ in range(n)]
        offsets = [0]
        for length in lengths:
            offsets.append(offsets[-1] + length)
        if rng.random() < 0.5 and n > 1:
            offsets = [None if i < n and rng.random() < 0.1 else at for i, at in enumerate(offsets)]
        items = column(rng, max(1, sum(lengths)), depth + 1).slice(0, sum(lengths))
        if pa.types.is_dictionary(items.type) and isinstance(items, pa.ChunkedArray):
            items = items.combine_chunks()
        large = rng.random() < 0.3
        offsets = pa.array(offsets, pa.int64() if large else pa.int32())
        return (pa.LargeListArray if large else pa.ListArray).from_arrays(offsets, items)
    if kind == 1:
        children = [column(rng, n, depth + 1) for _ in range(rng.randint(1, 3))]
        mask = pa.array([rng.random() < 0.1 for _ in range(n)]) if rng.random() < 0.5 else None
        return pa.StructArray.from_arrays(children, [f"f{i}" for i in range(len(children))], mask=mask)
    if kind == 3:
        width = rng.choice([1, 3, 8])
        items = column(rng, n * width, depth + 2)
        mask = pa.array([rng.random() < 0.1 for _ in range(n)]) if rng.random() < 0.3 else None
        return pa.FixedSizeListArray.from_arrays(items, width, mask=mask)
    if kind == 2:
        lengths = [rng.choice([0, 1, 1, 2]) for _ in range(n)]
        offsets = [0]
        for length in lengths:
            offsets.append(offsets[-1] + length)
        keys = pa.array([f"k{i % 97}" for i in range(offsets[-1])], pa.string())
        values = column(rng, max(1, offsets[-1]), depth + 1).slice(0, offsets[-1])
        return pa.MapArray.from_arrays(pa.array(offsets, pa.int32()), keys, values)
    return scalars(rng, n)


def table_of(rng):
    n = rng.choice(ROWS)
    columns = {"key": pa.array(range(n), pa.int64())}
    for i in range(rng.randint(1, 5)):
        columns[f"c{i}"] = column(rng, n)
    return pa.table(columns)


def write_pyarrow(rng, table, path):
    pq.write_table(
        table, path,
        row_group_size=rng.choice([1_000, 4_097, 100_000]),
        compression=rng.choice(["none", "snappy", "zstd", "gzip", "lz4", "brotli"]),
        use_dictionary=rng.choice([True, True, False]),
        dictionary_pagesize_limit=rng.choice([1 << 20, 3_000]),
        data_page_size=rng.choice([1 << 20, 900, 20_000]),
        data_page_version=rng.choice(["1.0", "2.0"]),
        write_statistics=rng.choice([True, False]),
        write_page_index=rng.choice([True, False]),
        store_schema=rng.choice([True, True, False]),
        use_compliant_nested_type=rng.choice([True, False]),
        write_page_checksum=rng.choice([True, False]),
    )


def write_duckdb(rng, table, path):
    import duckdb
    if "duration" in str(table.schema):
        raise ValueError("DuckDB writes INTERVAL, which pyarrow reads as bytes")
    version, codec = rng.choice(["v1", "v2"]), rng.choice(["snappy", "zstd", "uncompressed"])
    con = duckdb.connect()
    con.register("t", table)
    con.execute(
        f"copy (from t) to '{path}' (format parquet, parquet_version {version}, codec {codec}, row_group_size {rng.choice([2_048, 100_000])})"
    )


def write_polars(rng, table, path):
    import polars
    polars.from_arrow(table).write_parquet(
        path,
        compression=rng.choice(["zstd", "snappy", "uncompressed", "lz4"]),
        row_group_size=rng.choice([1_000, 50_000]),
        data_page_size=rng.choice([None, 2_000]),
        statistics=rng.choice([True, False]),
    )


def same(a, b):
    """Whether two tables hold the same values, whatever layout these have."""
    if a.num_rows != b.num_rows or a.column_names != b.column_names:
        return "rows or names"
    for name in a.column_names:
        one, two = a[name].combine_chunks(), b[name].combine_chunks()
        if one.equals(two):
            continue
        left, right = one.to_pylist(), two.to_pylist()
        if repr(left) != repr(right):
            at = next(i for i, (x, y) in enumerate(zip(left, right)) if repr(x) != repr(y))
            return f"{name}, row {at}: {str(left[at])[:80]} and {str(right[at])[:80]}"
    return None


def marq(of, *words):
    return subprocess.run([of, *words], capture_output=True, text=True, timeout=300)


def check(of, path, out):
    expected = pq.read_table(path)
    done = marq(of, "convert", path, "-o", out)
    if done.returncode:
        return f"exit {done.returncode}: {done.stderr[-300:]}"
    found = pa.ipc.open_file(out).read_all()
    if why := same(expected, found):
        return why
    middle = expected.num_rows // 2
    # The keys are the numbers of the rows.
    few = [expected.slice(0, 3), expected.slice(middle, 1)] if middle >= 3 else [expected.slice(0, 3)]
    some = {
        f"--where=key >= {middle}": expected.slice(middle),
        f"--where=key = {middle} or key < 3": pa.concat_tables(few),
        f"--rows={middle}:{middle + 1500}": expected.slice(middle, 1500),
    }
    for flag, wanted in some.items():
        done = marq(of, "convert", path, flag, "-o", out)
        if done.returncode:
            return f"{flag}, exit {done.returncode}: {done.stderr[-300:]}"
        if why := same(wanted, pa.ipc.open_file(out).read_all()):
            return f"{flag}: {why}"
    return None


def check_written(rng, of, table, path, out):
    """A table that marq writes: what pyarrow reads of it is the table, and what it states is true."""
    with pa.ipc.new_file(out, table.schema) as writer:
        writer.write_table(table, max_chunksize=rng.choice([999, 8_192, 100_000]))
    flags = [
        f"--profile={rng.choice(['balanced', 'small', 'fast-read', 'points', 'compatible'])}",
        f"--row-group-rows={rng.choice([1_000, 4_097, 1_000_000])}",
        f"--page-version={rng.choice([1, 2])}",
    ]
    if rng.random() < 0.5:
        flags.append(f"--codec={rng.choice(['none', 'snappy', 'zstd:3', 'gzip', 'lz4_raw', 'brotli'])}")
    if rng.random() < 0.3:
        flags.append(f"--dictionary={rng.choice(['on', 'off'])}")
    if rng.random() < 0.3:
        flags.append("--no-arrow-schema")
    done = marq(of, "convert", out, "-o", path, *flags)
    if done.returncode:
        return f"{' '.join(flags)}, exit {done.returncode}: {done.stderr[-300:]}"
    # Without the Arrow schema, durations are integers, and the like.
    if "--no-arrow-schema" not in flags and (why := same(table, pq.read_table(path))):
        return f"{' '.join(flags)}: {why}"
    done = marq(of, "check", "--level", "truth", path)
    return f"{' '.join(flags)}: check: {done.stdout[-300:]}" if done.returncode else None


def report(args, number, name, path, why):
    print(f"WRONG table {number} of {name}: {why}", flush=True)
    if args.keep and os.path.exists(path):
        os.makedirs(args.keep, exist_ok=True)
        shutil.copy(path, os.path.join(args.keep, f"{number}.{name}.parquet"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--marq", required=True)
    parser.add_argument("--tables", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep")
    args = parser.parse_args()
    writers = {"pyarrow": write_pyarrow}
    for name, write in (("duckdb", write_duckdb), ("polars", write_polars)):
        try:
            __import__(name)
            writers[name] = write
        except ImportError:
            print(f"{name} is not installed: left out")
    wrong, written, read, refused = 0, 0, dict.fromkeys(writers, 0), dict.fromkeys(writers, 0)
    with tempfile.TemporaryDirectory() as folder:
        path, out = os.path.join(folder, "t.parquet"), os.path.join(folder, "t.arrow")
        for number in range(args.first, args.first + args.tables):
            rng = random.Random(f"{args.seed} {number}")
            name = rng.choice(["pyarrow", "pyarrow", *writers])
            table = table_of(rng)
            if number % 3 == 2:
                written += 1
                if os.path.exists(path):
                    os.remove(path)
                if why := check_written(rng, args.marq, table, path, out):
                    wrong += 1
                    report(args, number, "marq", path, why)
                continue
            try:
                writers[name](rng, table, path)
                pq.read_table(path)
            except (KeyboardInterrupt, SystemExit):
                raise
            # Each of them lacks some types; a panic of polars is no Exception.
            except BaseException as error:
                refused[name] += 1
                if name == "pyarrow":
                    print(f"table {number}: pyarrow refuses it: {str(error)[:200]}")
                continue
            read[name] += 1
            if why := check(args.marq, path, out):
                wrong += 1
                report(args, number, name, path, why)
    counts = ", ".join(f"{name} {read[name]} ({refused[name]} not written)" for name in writers)
    print(f"seed {args.seed}: {sum(read.values())} files read: {counts}; {written} written; {wrong} wrong")
    sys.exit(wrong > 0)


if __name__ == "__main__":
    main()
