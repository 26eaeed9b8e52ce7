"""Tables of pyarrow, written and read by marquetry through C streams: identical both ways."""

import datetime
import decimal
import pathlib
import random
import sys
import tempfile

import pyarrow as pa
import pyarrow.parquet as pq

from marquetry_ffi import Marquetry

SEED = 20261122
random.seed(SEED)
ROWS = 1000


def maybe(value):
    return None if random.random() < 0.2 else value


def column(make, nulls=True):
    return [maybe(make()) if nulls else make() for _ in range(ROWS)]


def text():
    return "".join(random.choice("abcdéß漢 ") for _ in range(random.choice([0, 3, 11, 12, 13, 60])))


def integer(bits):
    return lambda: random.randrange(-(1 << (bits - 1)), 1 << (bits - 1))


def columns():
    yield "bool", pa.array(column(lambda: random.random() < 0.5), pa.bool_())
    for bits in (8, 16, 32, 64):
        yield f"int{bits}", pa.array(column(integer(bits)), getattr(pa, f"int{bits}")())
        kind = getattr(pa, f"uint{bits}")()
        yield f"uint{bits}", pa.array(column(lambda: random.randrange(1 << bits)), kind)
    for bits in (16, 32, 64):
        kind = getattr(pa, f"float{bits}")()
        yield f"float{bits}", pa.array(column(lambda: random.uniform(-9, 9))).cast(kind, safe=False)
    yield "required", pa.array(column(integer(64), nulls=False), pa.int64())
    for digits, kind in ((9, pa.decimal32), (18, pa.decimal64), (38, pa.decimal128), (76, pa.decimal256)):
        make = lambda: decimal.Decimal(random.randrange(10 ** 8)).scaleb(-2)
        yield f"decimal{digits}", pa.array(column(make), kind(digits, 2))
    day = lambda: datetime.date(1970, 1, 1) + datetime.timedelta(days=random.randrange(-9999, 30000))
    yield "date32", pa.array(column(day), pa.date32())
    yield "date64", pa.array(column(day), pa.date64())
    yield "time32", pa.array(column(lambda: random.randrange(86_400_000)), pa.int32()).cast(pa.time32("ms"))
    for unit in ("us", "ns"):
        yield f"time64_{unit}", pa.array(column(lambda: random.randrange(86_400_000_000)), pa.time64(unit))
    for unit in ("s", "ms", "us", "ns"):
        instants = column(lambda: random.randrange(1 << 40))
        yield f"timestamp_{unit}", pa.array(instants, pa.timestamp(unit))
        yield f"timestamp_tz_{unit}", pa.array(instants, pa.timestamp(unit, "Europe/Rome"))
        yield f"duration_{unit}", pa.array(instants, pa.duration(unit))
    for kind in (pa.string, pa.large_string, pa.string_view):
        yield str(kind()), pa.array(column(text), kind())
    for kind in (pa.binary, pa.large_binary, pa.binary_view):
        yield str(kind()), pa.array(column(lambda: text().encode()), kind())
    yield "fixed", pa.array(column(lambda: random.randbytes(7)), pa.binary(7))
    yield "null", pa.nulls(ROWS)
    names = column(lambda: random.choice(["x", "yy", "zzz"]))
    for key in (pa.int8(), pa.int32(), pa.uint16()):
        yield f"dictionary_{key}", pa.array(names).cast(pa.dictionary(key, pa.string()))
    yield "struct", pa.array(
        column(lambda: {"a": maybe(random.randrange(9)), "b": maybe(text())}),
        pa.struct([("a", pa.int32()), ("b", pa.string_view())]),
    )
    numbers = lambda: [maybe(random.randrange(9)) for _ in range(random.randrange(4))]
    for kind in (pa.list_, pa.large_list):
        yield str(kind(pa.int64())), pa.array(column(numbers), kind(pa.int64()))
    yield "list_of_list", pa.array(
        column(lambda: [maybe(numbers()) for _ in range(random.randrange(3))]),
        pa.list_(pa.list_(pa.int64())),
    )
    yield "fixed_list", pa.array(column(lambda: [random.random() for _ in range(3)]), pa.list_(pa.float64(), 3))
    yield "map", pa.array(
        column(lambda: [(text(), maybe(random.randrange(9))) for _ in range(random.randrange(3))]),
        pa.map_(pa.string(), pa.int64()),
    )
    yield "list_of_struct", pa.array(
        column(lambda: [{"s": text(), "l": numbers()} for _ in range(random.randrange(3))]),
        pa.list_(pa.struct([("s", pa.string()), ("l", pa.list_(pa.int64()))])),
    )
    yield "list_view", pa.array(column(numbers), pa.list_view(pa.int64()))
    ends = pa.array([10, 400, ROWS], pa.int32())
    yield "run_ends", pa.RunEndEncodedArray.from_arrays(ends, pa.array(["a", None, "b"]))


def same(name, expected, found):
    found.validate(full=True)
    for field, other in zip(expected.schema, found.schema, strict=True):
        assert other.equals(field), f"{name}: {other}, expected {field}"
    for column, other in zip(expected.columns, found.columns):
        # Arrays of the same values may have other dictionaries.
        if pa.types.is_dictionary(column.type):
            column, other = (of.cast(column.type.value_type) for of in (column, other))
        assert other.equals(column), f"{name}: other values of {column.type}"


def round_trip(marquetry, folder, name, table):
    """The table, written by marquetry, as it and pyarrow read it."""
    path = folder / f"{name}.parquet"
    marquetry.write(path, table)
    same(name, table, marquetry.read(path).read_all())
    return path


def main():
    marquetry = Marquetry(sys.argv[1])
    pairs = list(columns())
    ours, theirs = 0, 0
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for name, array in pairs:
            for part, rows in (("all", array), ("slice", array.slice(13, 777)), ("none", array.slice(0, 0))):
                table = pa.table({name: rows})
                path = round_trip(marquetry, folder, f"{part}_{len(name)}_{ours}", table)
                ours += 1
                try:
                    read = pq.read_table(path)
                except (pa.ArrowException, NotImplementedError) as e:
                    assert name in ("run_ends",), f"{name}: pyarrow cannot read it: {e}"
                    continue
                if read.schema.field(0).type == table.schema.field(0).type:
                    same(name, table, read)
                    theirs += 1
                else:
                    as_read = table[name]
                    if pa.types.is_temporal(as_read.type):
                        assert as_read.cast(read[name].type).equals(read[name]), name
                    else:
                        assert as_read.to_pylist() == read[name].to_pylist(), name
                    print(f"{name} {part}: pyarrow reads {read.schema.field(0).type}, with equal values")
        wide = pa.table({f"{i}_{name}": array for i, (name, array) in enumerate(pairs)})
        chunked = pa.concat_tables([wide.slice(0, 100), wide.slice(100, 1), wide.slice(101)])
        path = round_trip(marquetry, folder, "wide", chunked)

        # A file of pyarrow, read by both.
        plain = [i for i, (name, _) in enumerate(pairs) if name not in ("run_ends", "list_view")]
        # (Its writer slices no views within lists and structs: one row group.)
        pq.write_table(wide.select(plain), folder / "theirs.parquet")
        read = marquetry.read(folder / "theirs.parquet").read_all()
        same("theirs", wide.select(plain), read)

        # Batches are given while they are read, and a reader may be dropped early.
        reader = marquetry.read(path)
        reader.read_next_batch()
        del reader

        errors(marquetry, folder, path)
    print(f"seed {SEED}: {len(pairs)} types; {ours} tables identical through both streams, {theirs} of them by pyarrow's own reader too")


def errors(marquetry, folder, path):
    """An error comes through with its text, as the exception of its number."""
    try:
        marquetry.read(folder / "missing.parquet")
        raise AssertionError("a missing file was read")
    except OSError as e:
        assert "missing.parquet: the file cannot be opened" in str(e), e
    broken = bytearray(path.read_bytes())
    broken[100:400] = bytes(300)
    (folder / "broken.parquet").write_bytes(broken)
    try:
        marquetry.read(folder / "broken.parquet").read_all()
        raise AssertionError("a broken file was read")
    except pa.ArrowInvalid as e:
        assert "broken.parquet: row group 0, column" in str(e), e

    def batches():
        yield pa.record_batch({"a": [1]})
        raise ValueError("the producer failed")

    source = pa.RecordBatchReader.from_batches(pa.schema({"a": pa.int64()}), batches())
    try:
        marquetry.write(folder / "none.parquet", source)
        raise AssertionError("a failed stream was written")
    except OSError as e:
        assert "the producer failed" in str(e), e
    assert not (folder / "none.parquet").exists(), "a failed stream leaves no file"


main()
