#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the files of this folder with other writers: python3 testdata/generate.py

Needs pyarrow==26.0.1 duckdb==2.0.0 polars==2.1.0 fastparquet. Every file is deterministic (fixed seeds). Beside NAME.parquet stands NAME.jsonl, its
content as pyarrow reads it, one JSON array a row (nested values as JSON, bytes as 0x.., decimals as strings, times as integers of nanoseconds), so that
the tests compare rows without any of these tools.
"""
import datetime as dt
import decimal
import json
import math
import os
import random

import duckdb
import fastparquet
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

HERE = os.path.dirname(os.path.abspath(__file__))
NANOS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}
made = []


def canon(value, t):
    """A value as the tests print it."""
    if value is None:
        return None
    if pa.types.is_dictionary(t):
        return canon(value, t.value_type)
    if pa.types.is_run_end_encoded(t):
        return canon(value, t.value_type)
    if pa.types.is_boolean(t) or pa.types.is_integer(t):
        return value
    if pa.types.is_floating(t):
        if math.isnan(value):
            return "NaN"
        return value if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")
    if pa.types.is_decimal(t):
        return str(value) if "E" not in str(value) else format(value, "f")
    if pa.types.is_string(t) or pa.types.is_large_string(t) or pa.types.is_string_view(t):
        return value
    if pa.types.is_binary(t) or pa.types.is_large_binary(t) or pa.types.is_binary_view(t) or pa.types.is_fixed_size_binary(t):
        return "0x" + value.hex()
    if pa.types.is_map(t):
        return [[canon(k, t.key_type), canon(v, t.item_type)] for k, v in value]
    if pa.types.is_struct(t):
        return {f.name: canon(value[f.name], f.type) for f in t}
    if isinstance(value, list):
        return [canon(v, t.value_type) for v in value]
    raise TypeError(f"no form for {t}")


def ints(column):
    """Temporal columns as integers of nanoseconds (days for dates), the others as they are."""
    t = column.type
    if pa.types.is_timestamp(t) or pa.types.is_time64(t) or pa.types.is_duration(t):
        return column.cast(pa.int64()), NANOS[t.unit]
    if pa.types.is_time32(t):
        return column.cast(pa.int32()), NANOS[t.unit]
    if pa.types.is_date32(t):
        return column.cast(pa.int32()), 1
    if pa.types.is_date64(t):
        return column.cast(pa.date32()).cast(pa.int32()), 1
    return column, None


def truth(path):
    table = pq.read_table(path)
    columns = []
    for column in table.columns:
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        if isinstance(column, pa.ExtensionArray):
            column = column.storage
        plain, factor = ints(column)
        values = plain.to_pylist(maps_as_pydicts=None)
        columns.append([None if v is None else v * factor for v in values] if factor else [canon(v, plain.type) for v in values])
    rows = list(zip(*columns)) if columns else []
    with open(path.replace(".parquet", ".jsonl"), "w", encoding="utf8") as out:
        for row in rows:
            out.write(json.dumps(row, separators=(",", ":"), ensure_ascii=False) + "\n")
    return table.num_rows


def note(name, writer, shows, with_truth=True):
    path = os.path.join(HERE, name + ".parquet")
    rows = truth(path) if with_truth else None
    made.append((name, writer, shows, os.path.getsize(path), rows))


def arrow(name, table, shows, **options):
    pq.write_table(table, os.path.join(HERE, name + ".parquet"), **options)
    note(name, f"pyarrow {pa.__version__}", shows)


def trips():
    rng = random.Random(1)
    start = dt.datetime(2026, 3, 1, tzinfo=dt.timezone.utc)
    rows = []
    for i in range(1000):
        pickup = start + dt.timedelta(seconds=97 * i + rng.randrange(60))
        distance = round(rng.expovariate(0.3) + 0.4, 2)
        rows.append({
            "id": i,
            "pickup": pickup,
            "dropoff": pickup + dt.timedelta(seconds=int(distance * 180)),
            "vendor": rng.choice(["Amber", "Blue", "Checker"]),
            "distance": distance,
            "fare": decimal.Decimal(int(350 + distance * 210)).scaleb(-2),
            "passengers": rng.choice([1, 1, 1, 2, 3, 4]),
            "payment": rng.choice(["card", "cash", None]),
            "stops": [{"name": rng.choice(["Airport", "Harbour", "Museum", "Station"]), "lat": round(52 + rng.random(), 5),
                       "lon": round(4 + rng.random(), 5)} for _ in range(rng.randrange(4))],
            "tags": [(k, rng.choice(["yes", "no", None])) for k in ["night", "shared"] if rng.random() < 0.5],
        })
    schema = pa.schema([
        pa.field("id", pa.int64(), nullable=False), ("pickup", pa.timestamp("us", "UTC")), ("dropoff", pa.timestamp("us", "UTC")),
        ("vendor", pa.dictionary(pa.int32(), pa.string())), ("distance", pa.float64()), ("fare", pa.decimal128(9, 2)),
        ("passengers", pa.int8()), ("payment", pa.string()),
        ("stops", pa.list_(pa.struct([("name", pa.string()), ("lat", pa.float64()), ("lon", pa.float64())]))),
        ("tags", pa.map_(pa.string(), pa.string())),
    ])
    arrow("trips", pa.Table.from_pylist(rows, schema=schema), "the file of the README: every-day types, nested, four row groups, page index",
          row_group_size=250, compression="zstd", write_page_index=True, write_page_checksum=True)


def plain_types(n=300):
    rng = random.Random(2)
    maybe = lambda v: None if rng.random() < 0.15 else v
    return pa.table({
        "bool": pa.array([maybe(rng.random() < 0.5) for _ in range(n)]),
        "i8": pa.array([maybe(rng.randrange(-128, 128)) for _ in range(n)], pa.int8()),
        "u8": pa.array([maybe(rng.randrange(256)) for _ in range(n)], pa.uint8()),
        "i16": pa.array([maybe(rng.randrange(-2**15, 2**15)) for _ in range(n)], pa.int16()),
        "u16": pa.array([maybe(rng.randrange(2**16)) for _ in range(n)], pa.uint16()),
        "i32": pa.array([maybe(rng.randrange(-2**31, 2**31)) for _ in range(n)], pa.int32()),
        "u32": pa.array([maybe(rng.randrange(2**32)) for _ in range(n)], pa.uint32()),
        "i64": pa.array([maybe(rng.randrange(-2**63, 2**63)) for _ in range(n)], pa.int64()),
        "u64": pa.array([maybe(rng.randrange(2**64)) for _ in range(n)], pa.uint64()),
        "f32": pa.array([maybe(float(rng.randrange(-1000, 1000)) / 8) for _ in range(n)], pa.float32()),
        "f64": pa.array([maybe(rng.choice([rng.random(), float("nan"), float("inf"), -0.0])) for _ in range(n)], pa.float64()),
        "text": pa.array([maybe(rng.choice(["", "é", "a longer piece of text", "x" * rng.randrange(30)])) for _ in range(n)]),
        "bytes": pa.array([maybe(rng.randbytes(rng.randrange(20))) for _ in range(n)], pa.binary()),
        "fixed": pa.array([maybe(rng.randbytes(5)) for _ in range(n)], pa.binary(5)),
        "date": pa.array([maybe(dt.date(1960, 1, 1) + dt.timedelta(days=rng.randrange(40000))) for _ in range(n)]),
        "time_ms": pa.array([maybe(rng.randrange(86_400_000)) for _ in range(n)], pa.time32("ms")),
        "time_us": pa.array([maybe(rng.randrange(86_400_000_000)) for _ in range(n)], pa.time64("us")),
        "time_ns": pa.array([maybe(rng.randrange(86_400_000_000_000)) for _ in range(n)], pa.time64("ns")),
        "ts_ms": pa.array([maybe(rng.randrange(-10**12, 10**12)) for _ in range(n)], pa.timestamp("ms")),
        "ts_us": pa.array([maybe(rng.randrange(-10**15, 10**15)) for _ in range(n)], pa.timestamp("us", "UTC")),
        "ts_ns": pa.array([maybe(rng.randrange(-9 * 10**18, 9 * 10**18)) for _ in range(n)], pa.timestamp("ns")),
        "dec5": pa.array([maybe(decimal.Decimal(rng.randrange(-99999, 99999)).scaleb(-2)) for _ in range(n)], pa.decimal128(5, 2)),
        "dec18": pa.array([maybe(decimal.Decimal(rng.randrange(-10**17, 10**17)).scaleb(-4)) for _ in range(n)], pa.decimal128(18, 4)),
        "dec38": pa.array([maybe(decimal.Decimal(rng.randrange(-10**27, 10**27)).scaleb(-10)) for _ in range(n)], pa.decimal128(38, 10)),
        "dec76": pa.array([maybe(decimal.Decimal(rng.randrange(-10**27, 10**27)).scaleb(-5)) for _ in range(n)], pa.decimal256(60, 5)),
    })


def nested(n=200):
    rng = random.Random(3)

    def maybe(make, p=0.2):
        return None if rng.random() < p else make()

    def items(make):
        return [make() for _ in range(rng.choice([0, 0, 1, 2, 3, 7]))]

    leaf = lambda: maybe(lambda: rng.randrange(100))
    point = lambda: {"x": leaf(), "y": rng.randrange(10), "z": maybe(lambda: items(leaf))}
    return pa.table({
        "struct": pa.array([maybe(point) for _ in range(n)],
                           pa.struct([("x", pa.int32()), pa.field("y", pa.int64(), nullable=False), ("z", pa.list_(pa.int16()))])),
        "list": pa.array([maybe(lambda: items(leaf)) for _ in range(n)], pa.list_(pa.int32())),
        "list2": pa.array([maybe(lambda: items(lambda: maybe(lambda: items(leaf)))) for _ in range(n)], pa.list_(pa.list_(pa.int64()))),
        "list3": pa.array([maybe(lambda: items(lambda: maybe(lambda: items(lambda: items(leaf))))) for _ in range(n)],
                          pa.list_(pa.list_(pa.list_(pa.float64())))),
        "structs": pa.array([maybe(lambda: items(lambda: maybe(point))) for _ in range(n)],
                            pa.list_(pa.struct([("x", pa.int32()), pa.field("y", pa.int64(), nullable=False), ("z", pa.list_(pa.int8()))]))),
        "map": pa.array([maybe(lambda: [(str(rng.randrange(9)), leaf()) for _ in range(rng.randrange(4))]) for _ in range(n)],
                        pa.map_(pa.string(), pa.int32())),
        "map_of_lists": pa.array([maybe(lambda: [(rng.randrange(9), maybe(lambda: items(leaf))) for _ in range(rng.randrange(3))]) for _ in range(n)],
                                 pa.map_(pa.int32(), pa.list_(pa.int32()))),
    })


def hints(n=60):
    rng = random.Random(4)
    strings = [rng.choice(["red", "green", "blue", None]) for _ in range(n)]
    return pa.table({
        "dictionary": pa.array(strings).dictionary_encode(),
        "large_text": pa.array(strings, pa.large_string()),
        "large_list": pa.array([[i, None] if i % 3 else None for i in range(n)], pa.large_list(pa.int32())),
        "fixed_list": pa.array([[i, i + 1] if i % 4 else None for i in range(n)], pa.list_(pa.int32(), 2)),
        "duration": pa.array([i * 1000 if i % 5 else None for i in range(n)], pa.duration("us")),
        "seconds": pa.array([i if i % 5 else None for i in range(n)], pa.timestamp("s")),
        "zone": pa.array([i for i in range(n)], pa.timestamp("us", "Europe/Amsterdam")),
        "half": pa.array([float(i) / 4 if i % 7 else None for i in range(n)], pa.float32()).cast(pa.float16()),
        "nothing": pa.nulls(n),
    })


def duckdb_v2(con):
    """Differences of INT32 in 33 bits, which pyarrow refuses: DuckDB itself says what is in it."""
    path = os.path.join(HERE, "duckdb_v2.parquet")
    con.execute(f"""copy (select ((i * 2654435761 + 12345) % 4294967296 - 2147483648)::int as i, ((i * 2246822519) % 4294967296)::uinteger as u,
        case when i % 5 = 0 then null else ((i * 3266489917) % 4294967296 - 2147483648)::int end as n
        from range(300) t(i)) to '{path}' (format parquet, parquet_version v2, compression uncompressed)""")
    rows = con.execute(f"select * from '{path}'").fetchall()
    with open(os.path.join(HERE, "duckdb_v2.jsonl"), "w", encoding="utf8") as out:
        out.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    made.append(("duckdb_v2", f"DuckDB {duckdb.__version__}", "INT32 deltas of 33 bits (PARQUET_VERSION v2)", os.path.getsize(path), len(rows)))


def duckdb_arrays(con):
    """ARRAYs that are null, which DuckDB pads with entries for their elements: pyarrow refuses them, or crashes."""
    path = os.path.join(HERE, "duckdb_arrays.parquet")
    con.execute(f"""copy (select i,
        case when i % 3 > 0 then [i, null, i * 2]::float[3] end as a,
        case when i % 4 > 0 then {{'x': case when i % 3 > 0 then [i, i + 1]::int[2] end, 'y': i}} end as s,
        case when i % 5 > 0 then [[1, i]::int[2], null, [i, 2]::int[2]][: i % 4] end as l,
        case when i % 3 > 0 then [[i], null]::int[][2] end as inner_lists,
        case when i % 7 = 0 then ['text', 'x' || i]::varchar[2] end as rare
        from range(600) t(i)) to '{path}' (format parquet, row_group_size 2048)""")
    rows = con.execute(f"select * from '{path}'").fetchall()
    with open(os.path.join(HERE, "duckdb_arrays.jsonl"), "w", encoding="utf8") as out:
        out.writelines(json.dumps(row, separators=(",", ":")) + "\n" for row in rows)
    made.append(("duckdb_arrays", f"DuckDB {duckdb.__version__}", "ARRAYs that are null, padded with entries", os.path.getsize(path), len(rows)))


def main():
    trips()
    table = plain_types()
    arrow("plain_types_v1", table, "every flat type, PLAIN, V1, 10 rows a page", use_dictionary=False, data_page_version="1.0",
          compression="none", data_page_size=200, write_page_checksum=True)
    arrow("plain_types_v2", table, "every flat type, dictionaries, V2, SNAPPY", data_page_version="2.0", compression="snappy", data_page_size=500)
    for codec in ["snappy", "gzip", "brotli", "zstd", "lz4"]:
        arrow(f"codec_{codec}", table.select(["i64", "text", "f64"]), f"{codec} (pyarrow writes lz4 as LZ4_RAW)", compression=codec)
    arrow("multi_row_groups", plain_types(500), "row groups of 100, page index", row_group_size=100, write_page_index=True)
    arrow("nested", nested(), "lists, maps and structs, nulls and empty ones at every depth, V1", data_page_size=300, compression="none")
    arrow("nested_v2", nested(), "the same, V2, two row groups", data_page_size=300, data_page_version="2.0", row_group_size=120)
    arrow("hints", hints(), "Arrow types that only the ARROW:schema hint knows")
    encodings = {
        "delta_binary_packed": ("DELTA_BINARY_PACKED", ["i32", "i64", "ts_us"]),
        "delta_length_byte_array": ("DELTA_LENGTH_BYTE_ARRAY", ["text", "bytes"]),
        "delta_byte_array": ("DELTA_BYTE_ARRAY", ["text", "bytes", "fixed"]),
        "byte_stream_split": ("BYTE_STREAM_SPLIT", ["f32", "f64", "i32", "i64", "fixed", "dec38"]),
        "rle_boolean": ("RLE", ["bool"]),
    }
    for name, (encoding, columns) in encodings.items():
        for version in ["1.0", "2.0"]:
            arrow(f"{name}_v{version[0]}", table.select(columns), f"{encoding}, V{version[0]}", use_dictionary=False,
                  column_encoding={c: encoding for c in columns}, data_page_version=version, data_page_size=300, compression="none")
    arrow("no_rows", table.slice(0, 0), "a file without rows")
    arrow("int96", table.select(["ts_us"]).set_column(0, "t", table["ts_us"].cast(pa.timestamp("ns", "UTC")).cast(pa.timestamp("ns"))),
          "INT96 timestamps", use_deprecated_int96_timestamps=True)
    arrow("many_columns", pa.table({f"c{i:03}": pa.array([i, None, i * 2], pa.int32()) for i in range(200)}), "200 columns")

    con = duckdb.connect()
    path = os.path.join(HERE, "duckdb.parquet")
    con.execute(f"""copy (select i, 'v' || (i % 7) as text, i * 0.5::double as half, [i, i + 1] as list, {{'a': i, 'b': null::varchar}} as pair,
        i::hugeint as huge, i::utinyint as tiny, date '2026-01-01' + i::int as day, md5(i::varchar)::uuid as id
        from range(200) t(i)) to '{path}' (format parquet, row_group_size 2048)""")
    note("duckdb", f"DuckDB {duckdb.__version__}", "DuckDB's choices")
    duckdb_v2(con)
    duckdb_arrays(con)
    frame = pl.DataFrame({"a": list(range(300)), "b": [None if i % 3 == 0 else f"text {i}" for i in range(300)],
                          "c": [[j for j in range(i % 4)] for i in range(300)], "d": [{"x": i, "y": i / 2} for i in range(300)]})
    frame.write_parquet(os.path.join(HERE, "polars.parquet"), row_group_size=100)
    note("polars", f"polars {pl.__version__}", "polars' choices")
    frame = pd.DataFrame({"a": range(100), "b": [f"row {i}" for i in range(100)], "c": [i / 4 for i in range(100)]})
    fastparquet.write(os.path.join(HERE, "fastparquet.parquet"), frame, compression="GZIP", write_index=False)
    note("fastparquet", f"fastparquet {fastparquet.__version__}", "fastparquet's choices")

    with open(os.path.join(HERE, "README.md"), "w", encoding="utf8") as out:
        out.write("# Test data\n\nSmall files by other writers, made by `python3 testdata/generate.py` (pyarrow==26.0.1 duckdb==2.0.0 polars==2.1.0 fastparquet); none is copied "
                  "from elsewhere.\n`NAME.jsonl` is the content as pyarrow reads it, one JSON array a row. What no writer makes, the tests build byte by byte.\n\n"
                  "| file | writer | bytes | rows | shows |\n|---|---|--:|--:|---|\n")
        for name, writer, shows, size, rows in made:
            out.write(f"| `{name}.parquet` | {writer} | {size} | {rows} | {shows} |\n")
    total = sum(os.path.getsize(os.path.join(HERE, f)) for f in os.listdir(HERE) if os.path.isfile(os.path.join(HERE, f)))
    print(f"{len(made)} files, {total} bytes")


if __name__ == "__main__":
    main()
