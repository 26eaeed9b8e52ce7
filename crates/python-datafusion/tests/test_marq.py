"""Scans and rows of the wheel `marq` are tables, by this package."""

from __future__ import annotations

import sys

import datafusion
import pytest
from conftest import rows_of

marq = pytest.importorskip("marq")


def test_a_scan_is_a_table(ctx: datafusion.SessionContext, trips: str) -> None:
    scan = marq.scan(trips).filter(marq.col("fare") < 20).filter("id < 500").select("id", "fare")
    ctx.register_table("t", scan)
    assert rows_of(ctx.sql("SELECT * FROM t")) == scan.read().to_pylist()
    plan = ctx.sql("EXPLAIN SELECT id FROM t WHERE fare > 3").to_pydict()["plan"][-1]
    assert "FilterExec" not in plan and "file_type=marquetry" in plan


def test_a_scan_of_a_folder_has_the_columns_of_its_names(
    ctx: datafusion.SessionContext, hive: str
) -> None:
    scan = marq.scan(hive, where="year = 2026")
    ctx.register_table("t", scan)
    found = ctx.sql("SELECT city, count(*) AS n FROM t GROUP BY city ORDER BY city")
    assert rows_of(found) == [{"city": "Oslo", "n": 200}, {"city": "Riga", "n": 200}]


def test_rows_are_a_table(ctx: datafusion.SessionContext, trips: str) -> None:
    ctx.register_table("t", marq.read(trips, columns=["id", "fare"], where="id < 10"))
    assert rows_of(ctx.sql("SELECT sum(id) AS s FROM t WHERE id > 3")) == [{"s": 39}]


def test_what_a_table_cannot_have_is_an_error(
    ctx: datafusion.SessionContext, trips: str, hive: str
) -> None:
    data = open(trips, "rb").read()
    for scan, names in [
        (marq.scan(trips, limit=3), "limit"),
        (marq.scan(trips).offset(3), "offset"),
        (marq.scan(trips).with_row_numbers(), "row_number"),
        (marq.scan(trips, keys=marq.Decryption(footer_key=b"0123456789012345")), "keys"),
        (marq.scan(trips).streams(2)[0], "part"),
        (marq.scan(data), "local files"),
        (marq.scan(hive + "/year=2026/city=Riga/part-0.parquet").select("point.x"), "point.x"),
        (marq.scan([f"{hive}/year={y}/city=Riga/part-0.parquet" for y in (2025, 2026)]), "whole folder"),
    ]:
        with pytest.raises(marq.UnsupportedError, match=names):
            ctx.register_table("t", scan)


def test_without_the_package_the_error_says_what_to_install(
    ctx: datafusion.SessionContext, trips: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "marq_datafusion", None)
    for of in (marq.scan(trips), marq.read(trips, limit=1)):
        with pytest.raises(ImportError, match="pip install marq-datafusion"):
            of.__datafusion_table_provider__(ctx)
