"""Lazy reads, batches, rows by number, random orders, parts."""

from __future__ import annotations

import array
import asyncio
import concurrent.futures
import io
import multiprocessing
import pathlib
import pickle
from typing import Any

import marq
import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("files")
    names = []
    for i in range(3):
        names.append(str(folder / f"{i}.parquet"))
        ids = list(range(i * 1000, i * 1000 + 1000))
        table = pa.table({"id": ids, "text": [f"t{n}" for n in ids]})
        pq.write_table(table, names[-1], row_group_size=300)
    return names


def ids(of: object) -> list[int]:
    return pa.table(of)["id"].to_pylist()  # type: ignore[arg-type]


def test_a_scan_is_not_changed_by_its_methods(trips: str) -> None:
    scan = marq.scan(trips)
    scan.filter("id < 5").select("id").limit(1)
    assert scan.count() == 1000 and len(scan.schema) > 1


def test_columns_are_selected_by_their_own_names() -> None:
    out = io.BytesIO()
    names = ["date", "a b", 'a"b', "x", "s"]
    pq.write_table(pa.table({n: [{"in": 1}] if n == "s" else [1] for n in names}), out)
    scan = marq.scan(out.getvalue())
    for name in names:
        assert scan.select(marq.col(name)).schema.names == [name]
        assert scan.select([marq.col(name)]).schema.names == [name]
        assert marq.read(out.getvalue(), columns=[marq.col(name)]).column_names == [name]
        assert marq.read(out.getvalue(), columns=marq.col(name)).column_names == [name]
    assert scan.select(marq.col("s.in")).read().to_pylist() == [{"s": {"in": 1}}]
    again = pickle.loads(pickle.dumps(marq.col("date")))
    assert scan.select(again).filter(again == 1).count() == 1


def test_filters_add_up(trips: str) -> None:
    scan = marq.scan(trips).filter("id < 5 or id > 995").filter(marq.col("id") > 3)
    assert ids(scan.select("id")) == [4, 996, 997, 998, 999]


def test_limits_only_shrink(trips: str) -> None:
    assert marq.scan(trips).limit(5).limit(10).count() == 5
    assert ids(marq.scan(trips).head(2).select(marq.col("id"))) == [0, 1]
    assert ids(marq.scan(trips).offset(998).select(["id"])) == [998, 999]


def test_offsets_add_up(trips: str) -> None:
    assert ids(marq.scan(trips).select("id").offset(1).offset(2).limit(2)) == [3, 4]


def test_an_option_is_set_back(trips: str) -> None:
    scan = marq.scan(trips, columns=["payment"], limit=5)
    views = scan.with_options(views=True)
    assert views.schema.types == ["Utf8View"]
    assert views.with_options(views=False).schema.types == scan.schema.types == ["Utf8"]
    assert views.with_options(limit=None).count() == 1000
    assert "views" not in repr(views.with_options(views=False))


def test_batches_have_at_most_the_rows_that_were_asked_for(trips: str) -> None:
    sizes = [batch.num_rows for batch in marq.scan(trips).batches(rows=64)]
    assert sum(sizes) == 1000 and max(sizes) <= 64


def test_batches_are_in_order_over_files(files: list[str]) -> None:
    assert [i for batch in marq.scan(files) for i in batch["id"].to_pylist()] == list(range(3000))


def test_offset_and_limit_count_over_files(files: list[str]) -> None:
    scan = marq.scan(files).select("id").offset(950).limit(1100)
    assert ids(scan) == list(range(950, 2050)) and scan.count() == 1100
    some = scan.with_options(where="id % 2 = 0", offset=490, limit=20)
    assert ids(some) == list(range(980, 1020, 2))
    assert some.count() == 20


def test_a_stream_can_be_taken_again(trips: str) -> None:
    scan = marq.scan(trips).select("id")
    assert ids(scan) == ids(scan) == list(range(1000))


def test_batches_hand_over_what_is_left(trips: str) -> None:
    batches = marq.scan(trips).select("id").batches(rows=100)
    assert len(next(batches)) == 100
    assert ids(batches) == list(range(100, 1000))
    with pytest.raises(marq.UsageError):
        next(batches)


def test_closed_batches_are_refused(trips: str) -> None:
    with marq.scan(trips).batches() as batches:
        next(batches)
    for again in (lambda: next(batches), lambda: pa.table(batches)):
        with pytest.raises(marq.UsageError):
            again()
    batches.close()


def test_exhausted_batches_stay_so(trips: str) -> None:
    batches = marq.scan(trips).batches()
    assert len(list(batches)) > 0
    assert list(batches) == []


def test_async_for_reads_all(trips: str) -> None:
    async def read() -> int:
        rows = 0
        async for batch in marq.scan(trips).batches(rows=100):
            rows += batch.num_rows
        async for batch in marq.scan(trips):
            rows += batch.num_rows
        async for batch in marq.scan(trips).shuffled(1):
            rows += batch.num_rows
        return rows

    assert asyncio.run(read()) == 3000


@pytest.mark.parametrize("rows", [[], [0], [999, 0, 0, 500], list(range(0, 3000, 7))[::-1]])
def test_rows_are_taken_by_number_over_files(files: list[str], rows: list[int]) -> None:
    table = marq.scan(files).take(rows)
    assert table["id"].to_pylist() == rows
    assert table["text"].to_pylist() == [f"t{n}" for n in rows]


def test_taking_ignores_the_filter(files: list[str]) -> None:
    assert marq.scan(files).filter("id < 5").take([7])["id"].to_pylist() == [7]
    assert marq.scan(files).select().take([5, 5]).num_rows == 2


def test_taking_ignores_what_else_says_which_rows(files: list[str]) -> None:
    scan = marq.scan(files, row_groups=[1], limit=2, offset=3).select("id")
    assert ids(scan.take([2999, 0])) == [2999, 0]


def test_a_row_beyond_the_end_is_refused(files: list[str]) -> None:
    with pytest.raises(marq.UsageError, match="3000"):
        marq.scan(files).take([3000])
    with pytest.raises((OverflowError, marq.UsageError)):
        marq.scan(files).take([-1])


@pytest.mark.parametrize("window", [1, 10, 100, 1000, 10**9])
def test_shuffled_rows_are_all_rows(files: list[str], window: int) -> None:
    found = ids(marq.scan(files).shuffled(7, window))
    assert sorted(found) == list(range(3000))
    assert found != list(range(3000))


def test_values_of_no_bytes_are_taken_and_shuffled(tmp_path: pathlib.Path) -> None:
    files = [str(tmp_path / f"{i}.parquet") for i in range(2)]
    values = [b"", None, b""]
    for file in files:
        marq.write(pa.table({"id": [0, 1, 2], "b": pa.array(values, pa.binary(0))}), file)
    assert marq.scan(files).take([5, 1, 3])["b"].to_pylist() == [b"", None, b""]
    assert marq.read(files)["b"].to_pylist() == values * 2
    shuffled = pa.table(marq.scan(files).shuffled(7, 4))  # type: ignore[arg-type]
    found = zip(shuffled["id"].to_pylist(), shuffled["b"].to_pylist(), strict=True)
    assert sorted(found, key=lambda row: row[0]) == [(i, values[i]) for i in [0, 0, 1, 1, 2, 2]]


def test_a_seed_determines_the_order(files: list[str]) -> None:
    scan = marq.scan(files).select("id")
    assert ids(scan.shuffled(1, 128)) == ids(scan.shuffled(1, 128))
    assert ids(scan.shuffled(1, 128)) != ids(scan.shuffled(2, 128))
    assert ids(scan.shuffled(1, 128, rows=17)) == ids(scan.shuffled(1, 128, rows=999))
    assert ids(scan.shuffled(-1, 128)) == ids(scan.shuffled(2**64 - 1, 128))


def test_the_order_of_a_seed_stays_the_same_in_all_versions(files: list[str]) -> None:
    assert ids(marq.scan(files).select("id").shuffled(42, 3000))[:5] == FIRST_OF_SEED_42


FIRST_OF_SEED_42 = [2045, 654, 69, 2777, 1273]


def test_shuffled_rows_pass_the_filter(files: list[str]) -> None:
    found = ids(marq.scan(files).filter("id % 3 = 0").shuffled(1, 100))
    assert sorted(found) == list(range(0, 3000, 3))


def test_parts_of_a_shuffled_read_have_all_rows_once(files: list[str]) -> None:
    parts = marq.scan(files).shuffled(3, 200).streams(4)
    found = [ids(part) for part in parts]
    assert sorted(sum(found, [])) == list(range(3000)) and all(found)
    with pytest.raises(marq.UsageError):
        parts[0].streams(2)


def test_shuffled_rows_have_no_limit(files: list[str]) -> None:
    with pytest.raises(marq.UsageError):
        list(marq.scan(files).limit(5).shuffled(1))
    with pytest.raises(marq.UsageError):
        marq.scan(files).shuffled(1, window=0)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 100])
def test_parts_have_all_rows_in_order(files: list[str], n: int) -> None:
    parts = marq.scan(files).select("id").streams(n)
    assert 1 <= len(parts) <= n
    assert sum((ids(part) for part in parts), []) == list(range(3000))
    assert sum(part.count() for part in parts) == 3000


def test_parts_are_filtered(files: list[str]) -> None:
    parts = marq.scan(files).filter("id >= 2500").select("id").streams(3)
    assert sum((ids(part) for part in parts), []) == list(range(2500, 3000))


def test_a_part_is_not_divided(files: list[str]) -> None:
    with pytest.raises(marq.UsageError):
        marq.scan(files).streams(2)[0].streams(2)


def test_a_part_keeps_its_rows_whatever_is_read_of_them(tmp_path: pathlib.Path) -> None:
    # A column that costs more towards the end, by which the parts are divided.
    texts = [str(i) * (50 if i > 800 else 1) for i in range(1000)]
    pq.write_table(pa.table({"id": range(1000), "v": texts}), tmp_path / "a", row_group_size=50)
    parts = marq.scan(tmp_path / "a", columns=["id", "v"]).streams(3)
    assert len(parts) == 3
    rows = [ids(part) for part in parts]
    assert sum(rows, []) == list(range(1000))
    assert len(rows[0]) > 2 * len(rows[2])
    for part, of_part in zip(pickle.loads(pickle.dumps(parts)), rows):
        assert ids(part.select("id")) == of_part
        assert part.select("v").count() == part.count() == len(of_part)
        assert ids(part.limit(5)) == of_part[:5] and part.limit(5).count() == 5
        assert ids(part.offset(4).limit(3)) == of_part[4:7]
        assert part.offset(len(of_part) - 1).count() == 1
        assert ids(part.filter("id % 2 = 0")) == [i for i in of_part if i % 2 == 0]
        assert part.filter("id >= 900").count() == len([i for i in of_part if i >= 900])
        assert ids(part.with_options(rows=7, views=True)) == of_part
        assert part.explain().rows == len(of_part)
        assert "whole" not in repr(part) and "'where'" not in repr(part)
        for wrong in ({"where": "id > 3"}, {"row_groups": [1]}):
            with pytest.raises(marq.UsageError):
                part.with_options(**wrong)


def test_limits_before_and_after_a_division_add_up(files: list[str]) -> None:
    parts = marq.scan(files).select("id").offset(100).limit(1500).streams(2)
    assert sum((ids(part) for part in parts), []) == list(range(100, 1600))
    assert sum((ids(part.limit(3)) for part in parts), [])[:3] == [100, 101, 102]
    (part,) = marq.scan(files).filter("id >= 10").offset(5).limit(20).streams(1)
    assert ids(part) == list(range(15, 35)) and part.count() == 20
    assert ids(part.offset(3).limit(4)) == list(range(18, 22))
    assert ids(part.offset(18)) == [33, 34] and part.offset(18).count() == 2


def test_parts_of_several_files_are_narrowed(files: list[str]) -> None:
    parts = marq.scan(files).streams(4)
    whole = marq.read(files)
    assert sum((part.select("text").read()["text"].to_pylist() for part in parts), []) == (
        whole["text"].to_pylist()
    )
    assert sum(part.filter("id between 900 and 1100").count() for part in parts) == 201


def test_parts_are_pickled(files: list[str]) -> None:
    parts = pickle.loads(pickle.dumps(marq.scan(files).filter(marq.col("id") > 5).streams(3)))
    assert sum((ids(part) for part in parts), []) == list(range(6, 3000))
    order = pickle.loads(pickle.dumps(marq.scan(files).shuffled(1, 100)))
    assert ids(order) == ids(marq.scan(files).shuffled(1, 100))


def test_parts_of_changed_files_are_refused(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": range(100)}), path)
    part = pickle.loads(pickle.dumps(marq.scan(path).streams(2)[0]))
    pq.write_table(pa.table({"a": range(101)}), path)
    with pytest.raises(marq.UsageError, match="changed"):
        part.count()


def _count(part: marq.Scan) -> int:
    return part.count()


@pytest.mark.parametrize("how", ["spawn", "fork", "forkserver"])
def test_other_processes_read_the_parts(files: list[str], how: str) -> None:
    # So that a fork finds threads that it does not have.
    assert marq.read(files, threads=2).num_rows == 3000
    parts = marq.scan(files).streams(3)
    context = multiprocessing.get_context(how)
    with concurrent.futures.ProcessPoolExecutor(2, mp_context=context) as pool:
        assert sum(pool.map(_count, parts)) == 3000


@pytest.mark.parametrize(
    "read",
    [
        lambda scan: scan.read().num_rows,
        lambda scan: sum(len(batch) for batch in scan.batches()),
        lambda scan: pa.table(scan).num_rows,
        lambda scan: pa.table(scan.batches()).num_rows,
        lambda scan: marq.write(scan, io.BytesIO()).rows,
        lambda scan: scan.limit(600).read().num_rows + 150,
        lambda scan: sum(len(batch) for batch in scan.shuffled(1)),
        lambda scan: pa.table(scan.shuffled(1)).num_rows,
        lambda scan: scan.read_into({"a": array.array("q", [0] * 750)}),
    ],
)
def test_damage_that_is_skipped_is_logged(
    read: Any, tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "a.parquet"
    schema = pa.schema([pa.field("a", pa.int64(), False)])
    table = pa.table({"a": range(1000)}, schema=schema)
    pq.write_table(table, path, row_group_size=250, compression="none", use_dictionary=False)
    at = pq.ParquetFile(path).metadata.row_group(1).column(0).data_page_offset
    data = bytearray(path.read_bytes())
    data[at : at + 8] = b"\xff" * 8
    path.write_bytes(data)
    with caplog.at_level("WARNING", logger="marq"):
        assert read(marq.scan(path, on_damage="skip")) == 750
    texts = [record.getMessage() for record in caplog.records if record.name == "marq"]
    assert len(texts) == 1 and "skipped row group 1, 0 of 250 rows" in texts[0]


def test_an_explanation_says_what_is_pruned(files: list[str]) -> None:
    found = marq.scan(files).filter("id >= 2900").explain()
    assert found.rows <= 1000 and found.bytes > 0 and found.requests > 0
    assert len(found.row_groups) >= 4
    assert "id >= 2900" in str(found)
    whole = marq.scan(files).explain()
    assert whole.rows == 3000 and found.bytes < whole.bytes


def test_a_scan_says_what_it_is(files: list[str]) -> None:
    text = repr(marq.scan(files, where="id > 1"))
    assert "2 more" in text and "id > 1" in text
    assert bool(marq.scan(files).filter("false"))
    assert len(marq.scan(files)) == 3000


def test_ten_thousand_columns_are_projected() -> None:
    out = io.BytesIO()
    pq.write_table(pa.table({f"c{i}": [i] for i in range(10_000)}), out)
    table = marq.read(out.getvalue(), columns=["c9999", "c0"])
    assert table.to_pylist() == [{"c9999": 9999, "c0": 0}]
