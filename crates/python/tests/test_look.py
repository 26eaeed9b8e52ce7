"""Metadata, statistics, faults, readers, differences; whole files rewritten."""

from __future__ import annotations

import io
import os
import pathlib
import struct

import marq
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import folder_is_clean

TABLE = pa.table({"id": range(1000), "text": [f"t{i % 7}" for i in range(1000)]})


@pytest.fixture
def file(path: str) -> str:
    pq.write_table(TABLE, path, row_group_size=400)
    return path


def test_metadata_are_tables(file: str) -> None:
    found = marq.metadata(file)
    assert found.rows == 1000 and found.file_bytes == os.path.getsize(file)
    assert found.row_groups["rows"].to_pylist() == [400, 400, 200]
    assert found.columns["path"].to_pylist() == ["id", "text"] * 3
    assert found.columns["codec"].to_pylist() == ["SNAPPY"] * 6
    assert all("PLAIN" in of for of in found.columns["encodings"].to_pylist())
    assert sum(found.columns["compressed_bytes"].to_pylist()) == sum(
        found.row_groups["compressed_bytes"].to_pylist()
    )
    assert "parquet-cpp" in (found.created_by or "") and "message" in found.parquet_schema
    assert "1000 rows" in repr(found) and not found.is_encrypted
    assert marq.scan(file).metadata.rows == 1000


def test_metadata_are_those_of_one_file(file: str) -> None:
    with pytest.raises(marq.UsageError):
        marq.metadata([file, file])


def test_statistics_have_the_type_of_the_column(file: str) -> None:
    found = marq.statistics(file, "text")
    assert found["min"].to_pylist() == ["t0"] * 3 and found["max"].to_pylist() == ["t6"] * 3
    assert found["row_count"].to_pylist() == [400, 400, 200]
    with pytest.raises(marq.UsageError):
        marq.statistics(file, "nope")


def test_a_whole_file_has_no_errors(file: str) -> None:
    for level in ("footer", "pages", "values", "truth"):
        report = marq.check(file, level=level)
        assert report and report.is_ok and report.errors == 0 and report.rows == 1000
    with pytest.raises(marq.UsageError):
        marq.check(file, level="x")
    with pytest.raises(marq.UsageError):
        marq.check([file, file])


def test_a_broken_page_is_found_with_its_place(file: str) -> None:
    data = bytearray(pathlib.Path(file).read_bytes())
    at = pq.ParquetFile(file).metadata.row_group(1).column(0).data_page_offset
    data[at + 10 : at + 60] = b"\xaa" * 50
    report = marq.check(bytes(data))
    assert not report and report.errors > 0
    finding = next(of for of in report.findings if of.severity == "error")
    assert finding.row_group == 1 and finding.column == "id" and finding.code and str(finding)


def test_readers_are_known(file: str) -> None:
    by_name = {of.reader: of for of in marq.readers(file)}
    assert by_name["duckdb"].reads_all and by_name["marquetry"].columns[0][0] == "id"


def test_files_are_compared(file: str, tmp_path: pathlib.Path) -> None:
    assert not marq.diff(file, file)
    other = tmp_path / "other.parquet"
    pq.write_table(TABLE.slice(1), other)
    difference = marq.diff(file, other)
    assert difference and difference.report
    with pytest.raises(marq.Error):
        marq.diff(file, "/nowhere.parquet")


def test_a_rewrite_changes_the_codec_alone(file: str, tmp_path: pathlib.Path) -> None:
    out = str(tmp_path / "out.parquet")
    done = marq.rewrite(file, out, codec={"id": "zstd:3"})
    assert done.rows == 1000 and done.row_groups == 3 and done.bytes == os.path.getsize(out)
    assert pq.read_table(out).equals(TABLE)
    assert marq.metadata(out).columns["codec"].to_pylist() == ["ZSTD", "SNAPPY"] * 3


def test_a_rewrite_narrows_sorts_and_regroups(file: str, tmp_path: pathlib.Path) -> None:
    out = str(tmp_path / "out.parquet")
    marq.rewrite(file, out, columns=["id"], row_groups=[2])
    assert marq.read(out)["id"].to_pylist() == list(range(800, 1000))
    marq.rewrite(file, out, sort_by=["-id"])
    assert marq.read(out)["id"].to_pylist() == list(range(1000))[::-1]
    marq.rewrite(file, out, regroup=True, options={"row_group_rows": 1000})
    assert marq.metadata(out).row_groups.num_rows == 1
    marq.rewrite(file, out, metadata={"k": "v"})
    assert marq.metadata(out).key_values["k"] == "v"
    plan = marq.rewrite_plan(file, codec="zstd")
    assert plan.rows == 1000 and sum(of[2] for of in plan.chunks) == 6


def test_a_rewrite_that_fails_leaves_nothing(file: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(marq.UsageError):
        marq.rewrite(file, tmp_path / "out.parquet", codec={"nope": "zstd"})
    with pytest.raises(TypeError):
        marq.rewrite(file, tmp_path / "out.parquet", nope=1)
    assert folder_is_clean(tmp_path, "file.parquet")


def test_files_are_joined_appended_and_divided(file: str, tmp_path: pathlib.Path) -> None:
    out = str(tmp_path / "out.parquet")
    assert marq.concat([file, file], out).rows == 2000
    assert marq.append(out, file).rows == 3000
    assert pq.read_table(out).equals(pa.concat_tables([TABLE] * 3))
    parts = marq.split(file, str(tmp_path / "{n}.parquet"), rows=500)
    assert [part.rows for part in parts] == [500, 500]
    assert marq.read([part.path for part in parts])["id"].to_pylist() == list(range(1000))
    for wrong in ({}, {"rows": 5, "files": 2}):
        with pytest.raises(marq.UsageError):
            marq.split(file, str(tmp_path / "{n}.parquet"), **wrong)  # type: ignore[arg-type]
    with pytest.raises(marq.UsageError):
        marq.split(file, str(tmp_path / "n.parquet"), rows=5)


def test_what_was_left_out_is_filled(file: str, tmp_path: pathlib.Path) -> None:
    out = str(tmp_path / "out.parquet")
    done = marq.fill(file, out, bloom=["id"])
    assert done.rows == 1000 and done.parts
    assert pq.read_table(out).equals(TABLE)
    assert marq.metadata(out).columns["has_bloom_filter"].to_pylist()[0]
    assert marq.metadata(out).columns["has_offset_index"].to_pylist()[0]
    with pytest.raises(marq.UsageError):
        marq.fill(file, out, parts=["nope"])


def test_a_damaged_file_is_saved(file: str, tmp_path: pathlib.Path) -> None:
    whole = pathlib.Path(file).read_bytes()
    out = str(tmp_path / "out.parquet")
    found = marq.salvage(whole[: len(whole) // 2], out, schema_of=file, row_group_rows=400)
    assert not found.is_complete and found.bytes_written
    assert marq.read(out).num_rows == found.rows_recovered > 0
    assert marq.salvage(whole).is_complete
    with pytest.raises(marq.Error):
        marq.salvage(b"nothing of a file", out)


def test_small_files_are_joined_in_their_folder(tmp_path: pathlib.Path) -> None:
    for i in range(5):
        pq.write_table(TABLE.slice(i * 200, 200), tmp_path / f"{i}.parquet")
    assert marq.compact(tmp_path, dry_run=True).files_joined == 5
    assert marq.compact(tmp_path).files_made == 1
    assert marq.read(tmp_path).num_rows == 1000


KEY, OTHER = b"0123456789012345", b"5432109876543210"


def test_encrypted_files_are_written_and_read(path: str) -> None:
    encryption = marq.Encryption(
        footer_key=KEY, column_keys={"id": OTHER}, footer_key_metadata=b"kf", encrypt_unlisted=True
    )
    marq.write(TABLE, path, encryption=encryption)
    keys = marq.Decryption(footer_key=KEY, column_keys={"id": OTHER})
    assert pa.table(marq.read(path, keys=keys)).equals(TABLE)
    assert marq.metadata(path, keys=keys).is_encrypted
    with pytest.raises(marq.CryptoError) as e:
        marq.read(path)
    assert e.value.kind == "crypto" and "keys=" in (e.value.hint or "")
    with pytest.raises(marq.CryptoError):
        marq.read(path, keys=marq.Decryption(footer_key=OTHER))
    only_footer = marq.Decryption(footer_key=KEY)
    assert marq.read(path, keys=only_footer, columns=["text"]).num_rows == 1000
    with pytest.raises(marq.CryptoError) as of_column:
        marq.read(path, keys=only_footer, columns=["id"])
    assert of_column.value.column == "id"
    assert marq.metadata(path, keys=only_footer).columns["codec"].to_pylist()[0] is None


def test_keys_are_retrieved(path: str) -> None:
    marq.write(TABLE, path, encryption=marq.Encryption(footer_key=KEY, footer_key_metadata=b"kf"))
    asked = []

    def retrieve(column: str | None, metadata: bytes | None) -> bytes | None:
        asked.append((column, metadata))
        return KEY

    assert marq.read(path, keys=marq.Decryption(retriever=retrieve)).num_rows == 1000
    assert (None, b"kf") in asked
    with pytest.raises(marq.CryptoError):
        marq.read(path, keys=marq.Decryption(retriever=lambda column, metadata: None))

    def fail(column: str | None, metadata: bytes | None) -> bytes | None:
        raise LookupError("the service is down")

    with pytest.raises(LookupError, match="down"):
        marq.read(path, keys=marq.Decryption(retriever=fail))


@pytest.mark.parametrize("key", [b"", b"short", b"x" * 17])
def test_keys_have_16_24_or_32_bytes(path: str, key: bytes) -> None:
    with pytest.raises(marq.Error):
        marq.write(TABLE, path, encryption=marq.Encryption(footer_key=key))


def test_keys_are_not_shown() -> None:
    assert "0123" not in repr(marq.Decryption(footer_key=KEY, column_keys={"a": KEY}))
    assert "0123" not in repr(marq.Encryption(footer_key=KEY))


def test_protection_is_changed(file: str, tmp_path: pathlib.Path) -> None:
    locked, plain = str(tmp_path / "locked.parquet"), str(tmp_path / "plain.parquet")
    marq.crypt(file, locked, encryption=marq.Encryption(footer_key=KEY))
    with pytest.raises(marq.CryptoError):
        marq.read(locked)
    keys = marq.Decryption(footer_key=KEY)
    assert marq.check(locked, keys=keys).is_ok
    marq.crypt(locked, plain, keys=keys)
    assert pq.read_table(plain).equals(TABLE)


def point(x: float, y: float) -> bytes:
    return struct.pack("<BIdd", 1, 1, x, y)


def test_geometries_have_texts_and_boxes() -> None:
    line = struct.pack("<BIIdddd", 1, 2, 2, 0, 1, 4, 3)
    assert marq.geo_to_wkt(line) == "LINESTRING (0 1, 4 3)"
    assert marq.geo_bounds(line) == (0, 1, 4, 3)
    assert marq.geo_bounds(struct.pack("<BII", 1, 2, 0)) is None
    for wrong in (b"", b"\1", b"\1\1\0\0\0"):
        with pytest.raises(marq.MalformedError):
            marq.geo_to_wkt(wrong)


def test_geometries_are_filtered_by_rectangles() -> None:
    out = io.BytesIO()
    field = pa.field("g", pa.binary(), metadata={
        "ARROW:extension:name": "geoarrow.wkb", "ARROW:extension:metadata": "{}"})
    table = pa.table([[point(i, i) for i in range(100)]], schema=pa.schema([field]))
    marq.write(table, out)
    condition = marq.col("g").intersects(9.5, 0, 20.5, 100)
    assert marq.scan(out).filter(condition).count() == 11
