"""Where files come from."""

from __future__ import annotations

import functools
import http.server
import io
import mmap
import os
import pathlib
import threading
from typing import Any

import marq
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


def test_paths_and_path_objects(trips: str) -> None:
    assert marq.read(trips).num_rows == 1000
    assert marq.read(pathlib.Path(trips)).num_rows == 1000
    assert marq.read(os.fsencode(pathlib.Path(trips)) and pathlib.Path(trips)).num_rows == 1000
    assert marq.read("file://" + trips).num_rows == 1000


def test_bytes_and_views(trips: str) -> None:
    data = pathlib.Path(trips).read_bytes()
    for source in (data, bytearray(data), memoryview(data), io.BytesIO(data)):
        assert marq.read(source).num_rows == 1000


def test_file_objects(trips: str) -> None:
    with open(trips, "rb") as file:
        file.seek(17)
        assert marq.read(file).num_rows == 1000
        assert marq.scan(file).filter("id < 5").count() == 5
    with open(trips, "rb", buffering=0) as raw:
        assert marq.read(raw, threads=2).num_rows == 1000
    with open(trips, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert marq.read(mapped).num_rows == 1000


def test_a_closed_file_object_raises_its_own_error(trips: str) -> None:
    with open(trips, "rb") as file:
        scan = marq.scan(file)
    with pytest.raises(ValueError, match="closed file"):
        scan.count()


class Failing(io.BytesIO):
    """A file object that is no BytesIO by its type alone."""


class Broken:
    def __init__(self, data: bytes, short: bool = False) -> None:
        self.file, self.reads, self.short = io.BytesIO(data), 0, short

    def seek(self, *args: int) -> int:
        return self.file.seek(*args)

    def read(self, n: int) -> bytes:
        self.reads += 1
        if self.reads > 1:
            if self.short:
                return b""
            raise LookupError("the disk is gone")
        return self.file.read(n)


def test_an_exception_of_a_file_object_comes_back(trips: str) -> None:
    data = pathlib.Path(trips).read_bytes()
    with pytest.raises(LookupError, match="the disk is gone"):
        marq.read(Broken(data))
    with pytest.raises(marq.IoError, match="expected"):
        marq.read(Broken(data, short=True))


def test_text_files_and_pipes_are_refused(trips: str) -> None:
    with open(trips, encoding="latin-1") as file, pytest.raises((marq.UsageError, TypeError)):
        marq.read(file)
    read_end, write_end = os.pipe()
    with os.fdopen(read_end, "rb") as pipe, pytest.raises(marq.UsageError, match="seek"):
        marq.read(pipe)
    os.close(write_end)


@pytest.mark.parametrize("wrong", [5, None, object(), 2.5, [None], {"a": 1}])
def test_what_is_no_source_is_refused(wrong: Any) -> None:
    with pytest.raises(marq.UsageError):
        marq.read(wrong)


@pytest.mark.parametrize("empty", [[], (), set()])
def test_no_files_are_refused(empty: Any) -> None:
    with pytest.raises(marq.UsageError):
        marq.read(empty)


def test_a_missing_file_is_a_file_not_found_error() -> None:
    with pytest.raises(FileNotFoundError) as e:
        marq.read("/nowhere/a.parquet")
    assert isinstance(e.value, marq.IoError) and e.value.errno == 2
    assert isinstance(e.value, marq.NotFoundError) and e.value.file == "/nowhere/a.parquet"
    with pytest.raises(marq.UsageError):
        marq.read("/nowhere/*.parquet")


def test_an_empty_folder_is_refused(tmp_path: pathlib.Path) -> None:
    with pytest.raises(marq.UsageError):
        marq.read(tmp_path)


def test_urls_that_are_not_opened_say_how_to_read_them() -> None:
    with pytest.raises(marq.UnsupportedError, match="fsspec"):
        marq.read("hdfs://host/key.parquet")
    with pytest.raises(marq.UnsupportedError, match="listed"):
        marq.read("s3://bucket/*.parquet")


class Server(http.server.SimpleHTTPRequestHandler):
    """Serves ranges of files."""

    def do_GET(self) -> None:
        data = (pathlib.Path(self.directory) / self.path.lstrip("/").split("?")[0]).read_bytes()
        span = self.headers.get("Range")
        start, end = 0, len(data) - 1
        if span is not None:
            first, _, last = span.removeprefix("bytes=").partition("-")
            start = int(first) if first else max(0, len(data) - int(last))
            end = min(int(last), end) if first and last else end
        self.send_response(206 if span else 200)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(end + 1 - start))
        if span is not None:
            self.send_header("Content-Range", f"bytes {start}-{end}/{len(data)}")
        self.end_headers()
        self.wfile.write(data[start : end + 1])

    def log_message(self, *args: object) -> None:
        pass


def test_web_servers_are_read(trips: str) -> None:
    handler = functools.partial(Server, directory=os.path.dirname(trips))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/trips.parquet?token=secret"
        scan = marq.scan(url, url_options={"retries": 0, "timeout": 20})
        assert scan.filter("id < 5").count() == 5
        assert scan.read() == marq.read(trips)
        assert "secret" not in repr(scan)
        server.shutdown()
    with pytest.raises(marq.IoError) as e:
        marq.read(url, url_options={"retries": 0, "timeout": 2})
    assert "secret" not in str(e.value)


@pytest.fixture
def hive(tmp_path: pathlib.Path) -> pathlib.Path:
    for year in (2023, 2024):
        for name in ("a", "b%20c"):
            folder = tmp_path / f"year={year}" / f"name={name}"
            folder.mkdir(parents=True)
            pq.write_table(pa.table({"x": [year, year + 1]}), folder / "0.parquet")
    folder = tmp_path / "year=2023" / "name=__HIVE_DEFAULT_PARTITION__"
    folder.mkdir(parents=True)
    pq.write_table(pa.table({"x": [0]}), folder / "0.parquet")
    (tmp_path / "_metadata").write_bytes(b"no file")
    (tmp_path / ".hidden").mkdir()
    (tmp_path / ".hidden" / "0.parquet").write_bytes(b"no file")
    return tmp_path


def test_folders_state_columns(hive: pathlib.Path) -> None:
    table = marq.read(hive)
    assert table.column_names == ["x", "year", "name"]
    assert table.schema.types[1:] == ["Int64", "Utf8"]
    rows = {tuple(row.values()) for row in table.to_pylist()}
    assert rows == {
        (2023, 2023, "a"), (2024, 2023, "a"), (2023, 2023, "b c"), (2024, 2023, "b c"),
        (2024, 2024, "a"), (2025, 2024, "a"), (2024, 2024, "b c"), (2025, 2024, "b c"),
        (0, 2023, None),
    }


def test_folders_are_not_looked_at_without_hive(hive: pathlib.Path) -> None:
    assert marq.read(hive, hive=False).column_names == ["x"]


def test_partition_columns_are_selected_and_filtered(hive: pathlib.Path) -> None:
    scan = marq.scan(hive).filter("year = 2024 and name = 'a'").select("name", "x")
    assert scan.read().to_pylist() == [{"name": "a", "x": 2024}, {"name": "a", "x": 2025}]
    assert marq.scan(hive).filter("name is null").count() == 1
    assert marq.scan(hive).filter("year = 1999").read().num_rows == 0
    assert marq.scan(hive).filter("year + 1 = x").count() == 4
    assert marq.read(hive, columns=["year"]).num_rows == 9


def test_files_that_the_folders_prune_are_not_opened(hive: pathlib.Path) -> None:
    (hive / "year=2024" / "name=a" / "0.parquet").write_bytes(b"broken")
    assert marq.scan(hive).filter("year = 2023").count() == 5
    with pytest.raises(marq.MalformedError):
        marq.scan(hive).count()


def test_globs_and_lists_find_the_same_columns(hive: pathlib.Path) -> None:
    pattern = str(hive / "year=*" / "*" / "*.parquet")
    by_glob = marq.read(pattern)
    assert by_glob.column_names == ["x", "year", "name"]
    files = sorted(str(p) for p in hive.glob("year=*/name=*/*.parquet"))
    assert marq.read(files) == by_glob == marq.read(str(hive / "**" / "*.parquet"))


def test_partitions_are_taken_shuffled_and_divided(hive: pathlib.Path) -> None:
    scan = marq.scan(hive)
    whole = scan.read().to_pylist()
    assert scan.take([8, 0])["name"].to_pylist() == [whole[8]["name"], whole[0]["name"]]
    key = str
    shuffled = [row for batch in scan.shuffled(1, 4) for row in batch.to_pylist()]
    assert sorted(map(key, shuffled)) == sorted(map(key, whole))
    parts = [row for part in scan.streams(3) for row in part.read().to_pylist()]
    assert parts == whole


@pytest.mark.parametrize(
    ("paths", "is_plain"),
    [
        (["year=1/a.parquet", "year=2/more/b.parquet"], True),
        (["x/year=1/a.parquet", "y/year=2/a.parquet"], False),
        (["year=1/a.parquet", "b.parquet"], False),
        (["year=1/m=1/a.parquet", "m=1/year=2/a.parquet"], False),
        (["year=1/m=1/a.parquet", "year=2/a.parquet"], False),
        (["year=1/a.parquet", "year=1/.tmp-a.parquet"], False),
    ],
)
def test_a_table_of_datafusion_has_all_files_of_the_folder(
    tmp_path: pathlib.Path, paths: list[str], is_plain: bool
) -> None:
    from marq._datafusion import _folder

    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"x": [1]}), tmp_path / path)
    sources, _, partitions = marq.scan(tmp_path)._expanded
    if is_plain:
        assert _folder(sources, partitions) == ([str(tmp_path)], {"year": "int64"})
    else:
        with pytest.raises(marq.UnsupportedError, match="whole folder"):
            _folder(sources, partitions)


def test_partition_columns_have_the_types_of_the_target(hive: pathlib.Path) -> None:
    def target(year: pa.DataType) -> pa.Schema:
        return pa.schema([("x", pa.int64()), ("year", year)])

    as_text = marq.scan(hive, target=target(pa.string()))
    assert as_text.schema.types == ["Int64", "Utf8", "Utf8"]
    assert set(as_text.read()["year"].to_pylist()) == {"2023", "2024"}
    assert as_text.filter("year = '2024'").count() == 4
    table = pa.table(marq.read(hive, target=target(pa.float32())))
    assert table.schema.field("year").type == pa.float32()
    assert set(table["year"].to_pylist()) == {2023.0, 2024.0}
    with pytest.raises(marq.UsageError, match="year.*2023"):
        marq.read(hive, target=target(pa.int8()))


def test_dates_in_folders_are_dates(tmp_path: pathlib.Path) -> None:
    for day in ("2024-01-31", "2024-02-01"):
        (tmp_path / f"day={day}").mkdir()
        pq.write_table(pa.table({"x": [1]}), tmp_path / f"day={day}" / "0.parquet")
    assert marq.schema(tmp_path).types == ["Int64", "Date32"]
    assert marq.scan(tmp_path).filter("day > date '2024-01-31'").count() == 1


def test_hundreds_of_files_do_not_stay_open(tmp_path: pathlib.Path) -> None:
    import resource

    for i in range(300):
        pq.write_table(pa.table({"x": [i]}), tmp_path / f"{i:03}.parquet")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))
    try:
        assert marq.read(tmp_path)["x"].to_pylist() == list(range(300))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_obstore_stores_are_read(trips: str) -> None:
    obstore = pytest.importorskip("obstore")
    from obstore.store import LocalStore

    store = LocalStore(os.path.dirname(trips))
    assert marq.read((store, "trips.parquet")).num_rows == 1000
    assert marq.scan([(store, "trips.parquet")] * 2).filter("id < 5").count() == 10
    assert obstore is not None


def test_fsspec_files_are_read(trips: str) -> None:
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open(trips).open() as file:
        assert marq.read(file).num_rows == 1000
