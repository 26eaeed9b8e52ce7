"""Writing one file, and folders of files."""

from __future__ import annotations

import io
import json
import os
import pathlib
import pickle
import struct
from typing import Any

import marq
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import folder_is_clean

TABLE = pa.table({"id": range(100), "text": [f"t{i % 7}" for i in range(100)]})


def test_what_is_written_is_read_by_pyarrow(path: str) -> None:
    report = marq.write(TABLE, path)
    assert report.rows == 100 and report.bytes == os.path.getsize(path)
    assert pq.read_table(path).equals(TABLE)


def test_a_scan_is_written(trips: str, path: str) -> None:
    marq.write(marq.scan(trips).filter("id < 10").select("id", "fare"), path)
    assert marq.read(path) == marq.read(trips, columns=["id", "fare"], where="id < 10")


def test_file_objects_are_written_to(tmp_path: pathlib.Path) -> None:
    out = io.BytesIO()
    marq.write(TABLE, out)
    assert pq.read_table(io.BytesIO(out.getvalue())).equals(TABLE)
    with open(tmp_path / "raw", "wb", buffering=0) as raw:
        marq.write(TABLE, raw)
    assert pq.read_table(tmp_path / "raw").equals(TABLE)


def test_generators_are_written(path: str) -> None:
    marq.write((TABLE.slice(i, 10) for i in range(0, 100, 10)), path)
    assert pq.read_table(path).equals(TABLE)


def test_batches_and_readers_are_written(path: str) -> None:
    marq.write(TABLE.to_batches()[0], path)
    assert pq.read_table(path).equals(TABLE)
    marq.write(pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches()), path)
    assert pq.read_table(path).equals(TABLE)
    marq.write(iter(TABLE.to_batches(max_chunksize=7)), path)
    assert pq.read_table(path).equals(TABLE)


@pytest.mark.parametrize("wrong", [5, "text", b"bytes", {"a": [1]}, [1, 2], None])
def test_what_has_no_arrow_data_is_refused(path: str, wrong: Any) -> None:
    with pytest.raises(marq.UsageError):
        marq.write(wrong, path)
    assert folder_is_clean(os.path.dirname(path))


def test_nothing_at_all_needs_a_schema(path: str) -> None:
    with pytest.raises(marq.UsageError):
        marq.write([], path)
    marq.write([], path, schema=TABLE.schema)
    assert pq.read_table(path).num_rows == 0


def test_an_exception_in_the_block_leaves_nothing(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.parquet"
    with pytest.raises(ZeroDivisionError), marq.Writer(path, TABLE.schema) as w:
        w.write(TABLE)
        w.flush()
        raise ZeroDivisionError
    assert folder_is_clean(tmp_path)


def test_an_exception_keeps_the_earlier_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.parquet"
    marq.write(TABLE, path)
    with pytest.raises(ZeroDivisionError), marq.Writer(path, TABLE.schema) as w:
        w.write(TABLE)
        raise ZeroDivisionError
    assert folder_is_clean(tmp_path, "a.parquet") and pq.read_table(path).equals(TABLE)


def test_an_exception_of_a_generator_comes_back(tmp_path: pathlib.Path) -> None:
    def batches() -> Any:
        yield TABLE
        raise LookupError("no more")

    with pytest.raises(LookupError, match="no more"):
        marq.write(batches(), tmp_path / "a.parquet")
    with pytest.raises(LookupError, match="no more"):
        marq.export(batches(), tmp_path / "folder")
    assert not (tmp_path / "a.parquet").exists()
    assert not list(tmp_path.rglob("*.parquet"))


def test_an_error_of_a_stream_is_raised(path: str) -> None:
    def batches() -> Any:
        yield TABLE.to_batches()[0]
        raise LookupError("no more")

    reader = pa.RecordBatchReader.from_batches(TABLE.schema, batches())
    with pytest.raises(marq.ArrowError, match="no more"):
        marq.write(reader, path)


class Full:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def write(self, data: bytes) -> int:
        raise self.error


def test_an_exception_of_a_file_object_comes_back() -> None:
    with pytest.raises(LookupError, match="full"):
        marq.write(TABLE, Full(LookupError("full")))


def test_short_writes_of_a_raw_file_are_completed() -> None:
    class Short:
        def __init__(self) -> None:
            self.data = b""

        def write(self, data: bytes) -> int:
            self.data += data[:13]
            return len(data[:13])

    out = Short()
    marq.write(TABLE, out)
    assert pq.read_table(io.BytesIO(out.data)).equals(TABLE)


def test_a_closed_writer_is_refused(path: str) -> None:
    w = marq.Writer(path, TABLE.schema)
    w.write(TABLE)
    with pytest.raises(marq.UsageError):
        w.report  # noqa: B018
    report = w.close()
    assert w.close() is report and w.report is report
    for again in (lambda: w.write(TABLE), w.flush, lambda: w.bytes_written):
        with pytest.raises(marq.UsageError):
            again()


def test_a_writer_that_is_forgotten_leaves_nothing(tmp_path: pathlib.Path) -> None:
    w = marq.Writer(tmp_path / "a.parquet", TABLE.schema)
    w.write(TABLE)
    del w
    assert folder_is_clean(tmp_path)


def test_the_first_data_say_the_schema(path: str) -> None:
    with marq.Writer(path) as w:
        assert w.bytes_written == 0
        w.add_metadata("early", "1")
        w.write(TABLE)
        w.add_metadata("late", "2")
    assert marq.metadata(path).key_values["early"] == "1"
    assert marq.metadata(path).key_values["late"] == "2"


def test_layouts_of_one_type_fit(path: str) -> None:
    other = TABLE.cast(pa.schema([("id", pa.int32()), ("text", pa.large_string())]))
    views = TABLE.cast(pa.schema([("id", pa.int16()), ("text", pa.string_view())]))
    swapped = TABLE.select(["text", "id"])
    marq.write([TABLE, other, views, swapped], path)
    assert pq.read_table(path).equals(pa.concat_tables([TABLE] * 4))


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": ["x"], "text": ["x"]},
        {"id": [1.5], "text": ["x"]},
        {"id": [1]},
        {"id": [1], "text": ["x"], "more": [1]},
    ],
)
def test_other_columns_are_refused(tmp_path: pathlib.Path, wrong: Any) -> None:
    with pytest.raises(marq.UsageError):
        marq.write([TABLE, pa.table(wrong)], tmp_path / "a.parquet")
    assert folder_is_clean(tmp_path)


@pytest.mark.parametrize(
    "wrap",
    [lambda of: of, pa.list_, pa.large_list, lambda of: pa.map_(pa.string(), of)],
    ids=["struct", "list", "large list", "map"],
)
def test_fields_of_structs_are_matched_by_name(tmp_path: pathlib.Path, wrap: Any) -> None:
    def table(**fields: int) -> pa.Table:
        struct = pa.struct([(name, pa.int64()) for name in fields])
        value: Any = fields
        if isinstance(wrap(struct), pa.MapType):
            value = [("key", fields)]
        elif wrap(struct) != struct:
            value = [fields]
        return pa.table({"s": pa.array([value], wrap(struct))})

    path = tmp_path / "a.parquet"
    marq.write([table(a=1, b=2), table(b=20, a=10)], path)
    both = pa.concat_tables([table(a=1, b=2), table(a=10, b=20)])
    assert pq.read_table(path)["s"].to_pylist() == both["s"].to_pylist()
    os.remove(path)
    for wrong in (table(b=20, c=30), table(x=1, y=2), table(a=1), table(a=1, b=2, c=3)):
        with pytest.raises(marq.UsageError, match="column \"s\""):
            marq.write([table(a=1, b=2), wrong], path)
    assert folder_is_clean(tmp_path)


def test_names_of_items_and_entries_do_not_matter(path: str) -> None:
    lists = [pa.list_(pa.field(name, pa.int64())) for name in ("item", "element")]
    marq.write([pa.table({"l": pa.array([[1]], of)}) for of in lists], path)
    assert pq.read_table(path)["l"].to_pylist() == [[1], [1]]


def test_columns_of_one_name_are_matched_by_their_place(path: str) -> None:
    schema = pa.schema([("a", pa.int64()), ("a", pa.int64())])
    narrow = pa.schema([("a", pa.int32()), ("a", pa.int32())])
    batch = pa.record_batch([pa.array([1], pa.int32()), pa.array([2], pa.int32())], schema=narrow)
    marq.write(batch, path, schema=schema)
    assert [c.to_pylist() for c in pq.ParquetFile(path).read_row_group(0).columns] == [[1], [2]]
    other = pa.record_batch([pa.array([1]), pa.array([2])], names=["a", "b"])
    with pytest.raises(marq.UsageError, match="several columns"):
        marq.write(other, path, schema=schema)
    with pytest.raises(marq.UsageError, match="several columns"):
        marq.write(batch, path, schema=other.schema)


def test_a_null_in_a_required_column_is_refused(path: str) -> None:
    schema = pa.schema([pa.field("a", pa.int64(), False)])
    with pytest.raises(marq.Error):
        marq.write(pa.table({"a": pa.array([1, None])}), path, schema=schema)


@pytest.mark.parametrize(
    "codec", ["none", "snappy", "gzip", "gzip:1", "zstd", "zstd:19", "brotli:4", "lz4_raw"]
)
def test_codecs_are_used(path: str, codec: str) -> None:
    marq.write(TABLE, path, codec=codec)
    name = {"none": "UNCOMPRESSED", "lz4_raw": "LZ4"}.get(codec, codec.split(":")[0].upper())
    assert pq.ParquetFile(path).metadata.row_group(0).column(0).compression == name
    assert pq.read_table(path).equals(TABLE)


@pytest.mark.parametrize("profile", ["balanced", "small", "fast_read", "compatible"])
def test_profiles_are_read_by_pyarrow(path: str, profile: str) -> None:
    marq.write(TABLE, path, profile=profile)
    assert pq.read_table(path).equals(TABLE)


@pytest.mark.parametrize(
    "wrong",
    [
        {"profile": "x"},
        {"codec": "x"},
        {"codec": "zstd:99"},
        {"statistics": "x"},
        {"readers": ["x"]},
        {"page_version": 3},
        {"columns": {"nope": {"codec": "zstd"}}},
        {"columns": {"id": {"codek": "zstd"}}},
        {"columns": {"id": {"encoding": "x"}}},
        {"columns": {"text": {"encoding": "delta_binary_packed"}}},
        {"sort": ["nope"]},
        {"sort": [("id", "sideways")]},
        {"bloom": ["nope"]},
        {"row_group_bytes": "many"},
    ],
)
def test_wrong_options_are_refused_and_leave_nothing(tmp_path: pathlib.Path, wrong: Any) -> None:
    with pytest.raises(marq.Error):
        marq.write(TABLE, tmp_path / "a.parquet", **wrong)
    assert folder_is_clean(tmp_path)
    with pytest.raises(TypeError):
        marq.write(TABLE, tmp_path / "a.parquet", nonsense=1)


def test_columns_have_options_of_their_own(path: str) -> None:
    report = marq.write(
        TABLE,
        path,
        columns={"id": {"encoding": "delta_binary_packed", "codec": "none", "dictionary": False}},
        bloom={"text": 0.001},
    )
    by_path = {column.path: column for column in report.row_groups[0].columns}
    assert by_path["id"].codec == "UNCOMPRESSED"
    assert "DELTA_BINARY_PACKED" in by_path["id"].encodings
    found = marq.metadata(path).columns
    assert found["has_bloom_filter"].to_pylist() == [False, True]


def test_row_groups_have_the_rows_that_were_asked_for(path: str) -> None:
    report = marq.write(TABLE, path, row_group_rows=30)
    assert [group.rows for group in report.row_groups] == [30, 30, 30, 10]
    assert report.row_groups[-1].rows == 10 and len(report.row_groups[1:]) == 3
    with pytest.raises(IndexError):
        report.row_groups[4]
    assert pickle.loads(pickle.dumps(report)) == report != marq.write(TABLE, path)


def test_the_order_is_checked_and_stated(path: str) -> None:
    marq.write(TABLE, path, sort=["id"])
    sorting = pq.ParquetFile(path).metadata.row_group(0).sorting_columns
    assert [s.column_index for s in sorting] == [0]
    with pytest.raises(marq.UsageError):
        marq.write(TABLE, path, sort=["-id"])


def test_key_values_are_written(path: str) -> None:
    marq.write(TABLE, path, metadata={"who": "me"}, created_by="tests")
    found = marq.metadata(path)
    assert found.key_values["who"] == "me" and found.created_by == "tests"


def test_statistics_are_left_out(path: str) -> None:
    marq.write(TABLE, path, statistics="none")
    assert marq.statistics(path, "id")["min"].to_pylist() == [None]
    marq.write(TABLE, path, statistics="page")
    assert marq.statistics(path, "id", pages=True)["min"].to_pylist()[0] == 0


def test_progress_counts_rows(path: str) -> None:
    seen: list[tuple[int, int]] = []
    marq.write(
        iter(TABLE.to_batches(max_chunksize=10)), path,
        progress=lambda rows, total: seen.append((rows, total)),
    )
    assert seen[-1][0] == 100 and len(seen) == 10
    marq.write(TABLE, path, progress=True)


def test_content_defined_chunks_are_written(path: str) -> None:
    marq.write(TABLE, path, content_defined_chunking=True)
    assert pq.read_table(path).equals(TABLE)


def test_a_folder_that_does_not_exist_is_an_error(tmp_path: pathlib.Path) -> None:
    with pytest.raises(FileNotFoundError):
        marq.write(TABLE, tmp_path / "no" / "a.parquet")
    with pytest.raises(marq.IoError):
        marq.write(TABLE, tmp_path)


def test_exports_are_partitioned(tmp_path: pathlib.Path) -> None:
    files = marq.export(TABLE, tmp_path, partition_by=["text"])
    assert len(files) == 7 and sum(file.report.rows for file in files) == 100
    assert all(dict(file.partition)["text"] in file.path for file in files)
    back = pa.table(marq.read(tmp_path)).sort_by("id")
    assert back["id"].to_pylist() == list(range(100))
    assert back["text"].to_pylist() == TABLE["text"].to_pylist()


def test_exports_are_cut_into_files(tmp_path: pathlib.Path) -> None:
    big = pa.table({"x": os.urandom(16) for _ in range(1)} if False else {"x": [os.urandom(64) for _ in range(20_000)]})
    files = marq.export(big, tmp_path, file_bytes="200kb", file_name="part-{n}.parquet", codec="none",
                        row_group_rows=1000)
    assert len(files) > 2 and pathlib.Path(files[0].path).name.startswith("part-")
    assert marq.read(tmp_path).num_rows == 20_000


def test_a_failed_export_leaves_no_file(tmp_path: pathlib.Path) -> None:
    with pytest.raises(marq.UsageError):
        marq.export([TABLE, pa.table({"id": ["x"], "text": [1]})], tmp_path, partition_by="text")
    assert not list(tmp_path.rglob("*.parquet"))


def test_variants_are_written_and_shredded(path: str) -> None:
    table = marq.variant_from_json([f'{{"a": {i}, "b": "x{i}"}}' for i in range(100)], "v")
    report = marq.write(table, path, shredding={"v": "infer"})
    assert "a" in report.shapes["v"]
    assert marq.read(path, variants="json")["v"][3] == '{"a":3,"b":"x3"}'
    assert marq.variant_get(marq.read(path)["v"], "$.a", "int64")[7] == 7
    assert marq.variant_to_json(marq.read(path)["v"])[1] == '{"a":1,"b":"x1"}'
    assert marq.scan(path).filter(marq.col("v").variant_get("$.a", "int64") < 5).count() == 5
    with pytest.raises(marq.UsageError):
        marq.variant_to_json(marq.Table(TABLE)["id"])


def places(count: int) -> pa.Table:
    field = pa.field("g", pa.binary(), metadata={
        "ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": "{}"})
    points = [struct.pack("<BIdd", 1, 1, i, -i) for i in range(count)]
    return pa.table([points], schema=pa.schema([field]))


def test_geometries_get_the_key_geo_and_boxes() -> None:
    out = io.BytesIO()
    marq.write(places(5), out, geo="g")
    geo = json.loads(pq.ParquetFile(out).metadata.metadata[b"geo"])
    assert geo["version"] == "1.1.0" and geo["primary_column"] == "g"
    assert "covering" not in geo["columns"]["g"]

    out = io.BytesIO()
    with marq.Writer(out, geo_covering="float64") as writer:
        writer.write(places(3))
        writer.write(places(2))
    found = pq.read_table(out)
    assert found.column_names == ["g", "bbox"]
    assert found["bbox"][2].as_py() == {"xmin": 2, "ymin": -2, "xmax": 2, "ymax": -2}
    geo = json.loads(pq.ParquetFile(out).metadata.metadata[b"geo"])
    assert geo["columns"]["g"]["covering"]["bbox"]["xmin"] == ["bbox", "xmin"]
    condition = marq.col("g").intersects(1.5, -9, 9, 0)
    assert marq.scan(out).filter(condition).count() == 1


def test_an_export_has_boxes_too(tmp_path: pathlib.Path) -> None:
    marq.export([places(3), places(4)], tmp_path / "out", geo_covering="float32")
    assert marq.read(tmp_path / "out").column_names == ["g", "bbox"]


def test_boxes_of_another_type_or_of_a_rewrite_are_refused() -> None:
    with pytest.raises(marq.UsageError, match="float32 and float64"):
        marq.write(places(1), io.BytesIO(), geo_covering="decimal")
    with pytest.raises(marq.UsageError, match="geometries"):
        marq.write(pa.table({"x": [1]}), io.BytesIO(), geo_covering="float32")
    out = io.BytesIO()
    marq.write(places(2), out)
    with pytest.raises(marq.UsageError, match="geo_covering"):
        marq.rewrite(out, io.BytesIO(), options={"geo_covering": "float32"})


def test_points_profile_and_spilling(tmp_path: pathlib.Path) -> None:
    table = pa.table({"x": range(10_000), "y": [str(n) for n in range(10_000)]})
    out = io.BytesIO()
    marq.write(table, out, profile="points", spill=tmp_path)
    assert pa.table(marq.scan(out).take([9_999, 0]))["x"].to_pylist() == [9_999, 0]
    assert not list(tmp_path.iterdir())
