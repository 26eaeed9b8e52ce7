"""Results are those of DataFusion's own reader."""

from __future__ import annotations

import pathlib

import datafusion
import marq_datafusion
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import TESTDATA, many_types, rows_of

QUERIES = [
    "SELECT * FROM t ORDER BY id",
    "SELECT count(*), count(small), sum(small), min(at), max(at), avg(real) FROM t",
    "SELECT id FROM t WHERE id BETWEEN 700 AND 720 ORDER BY id",
    "SELECT id, text FROM t WHERE text = 'red' AND small > 50 ORDER BY id",
    "SELECT id FROM t WHERE kind IN ('green', 'blue') OR flag ORDER BY id",
    "SELECT id FROM t WHERE kind IS NULL OR NOT flag ORDER BY id",
    "SELECT id FROM t WHERE text LIKE 'n%' OR text ILIKE 'BL%' ORDER BY id",
    "SELECT id FROM t WHERE lower(text) = 'red' AND length(text) = 3 ORDER BY id",
    "SELECT id FROM t WHERE day >= DATE '2026-06-01' ORDER BY id",
    "SELECT id FROM t WHERE at < TIMESTAMP '2026-01-03T00:00:00Z' ORDER BY id",
    "SELECT id FROM t WHERE date_trunc('month', local) = TIMESTAMP '2026-01-01' ORDER BY id",
    "SELECT id, price FROM t WHERE price > 99.5 AND price < 2000.25 ORDER BY id",
    "SELECT id FROM t WHERE wide > CAST('500000000000000000000000000000' AS DECIMAL(38, 0)) ORDER BY id",
    "SELECT id FROM t WHERE real > 0 ORDER BY id",
    "SELECT id FROM t WHERE real = 0 ORDER BY id",
    "SELECT id FROM t WHERE big > 9323372036854775807 ORDER BY id",
    "SELECT id FROM t WHERE bytes = X'00' ORDER BY id",
    "SELECT id, point['x'] AS x FROM t WHERE point['x'] > 6 ORDER BY id",
    "SELECT id, list FROM t WHERE array_length(list) = 3 ORDER BY id",
    "SELECT kind, count(*) AS n, sum(price) AS s FROM t WHERE small > 0 GROUP BY kind ORDER BY kind",
    "SELECT text, day, count(*) FROM t GROUP BY text, day HAVING count(*) > 1 ORDER BY text, day",
    "SELECT a.id FROM t a JOIN t b ON a.id = b.small WHERE b.flag ORDER BY a.id LIMIT 40",
    "SELECT id FROM t WHERE id IN (SELECT small FROM t WHERE small > 90) ORDER BY id",
    "SELECT id, real FROM t ORDER BY real DESC NULLS LAST, id LIMIT 7",
    "SELECT id FROM t ORDER BY id LIMIT 5 OFFSET 640",
    "SELECT max(id), min(real + 1) FROM t",
    "SELECT id, row_number() OVER (PARTITION BY flag ORDER BY id) AS k FROM t WHERE id < 50 ORDER BY id",
    "SELECT 1 FROM t WHERE flag",
    "SELECT id FROM t WHERE false",
]


@pytest.mark.parametrize("query", QUERIES)
def test_queries_return_the_same_as_datafusions_own_reader(
    ctx: datafusion.SessionContext, mixed: str, query: str
) -> None:
    both = []
    ctx.register_parquet("own", mixed)
    ctx.register_table("ours", marq_datafusion.table(mixed))
    for name in ("own", "ours"):
        both.append(ctx.sql(query.replace("FROM t", f"FROM {name}").replace("JOIN t", f"JOIN {name}")))
    own, ours = (frame.to_arrow_table() for frame in both)
    assert ours.schema.types == own.schema.types
    # Not the names: those of calculated columns contain the name of the table.
    assert [column.to_pylist() for column in ours] == [column.to_pylist() for column in own]


def test_the_schema_is_that_of_datafusions_own_reader(
    ctx: datafusion.SessionContext, mixed: str
) -> None:
    ctx.register_parquet("own", mixed)
    ctx.register_table("ours", marq_datafusion.table(mixed))
    assert ctx.table("ours").schema() == ctx.table("own").schema()


@pytest.mark.parametrize("path", sorted(TESTDATA.glob("*.parquet")), ids=lambda path: path.stem)
def test_files_of_other_writers(ctx: datafusion.SessionContext, path: pathlib.Path) -> None:
    try:
        ctx.register_parquet("own", str(path))
        own = ctx.table("own").to_arrow_table()
    except Exception as e:
        pytest.skip(f"DataFusion's own reader: {e}")
    ctx.register_table("ours", marq_datafusion.table(path))
    ours = ctx.table("ours").to_arrow_table()
    assert ours.schema.types == own.schema.types
    # A text of the rows, because a NaN differs from itself.
    assert str(ours.to_pylist()) == str(own.to_pylist())


def test_functions_of_the_user_are_called_for_the_rows_that_the_scan_returns(
    ctx: datafusion.SessionContext, trips: str
) -> None:
    calls: list[int] = []

    def even(values: pa.Array) -> pa.Array:
        calls.append(len(values))
        return pa.array([value % 2 == 0 for value in values.to_pylist()], pa.bool_())

    ctx.register_udf(datafusion.udf(even, [pa.int64()], pa.bool_(), "immutable", name="even"))
    ctx.register_table("t", marq_datafusion.table(trips))
    found = rows_of(ctx.sql("SELECT count(*) AS n FROM t WHERE even(CAST(id AS BIGINT)) AND id < 300"))
    assert found == [{"n": 150}]
    assert sum(calls) == 300


def test_folders_globs_and_lists(ctx: datafusion.SessionContext, tmp_path: pathlib.Path) -> None:
    for i in range(3):
        pq.write_table(many_types(100, seed=i), tmp_path / f"[{i}] a%20b.parquet")
    names = sorted(map(str, tmp_path.iterdir()))
    for source, rows in [
        (tmp_path, 300),
        (str(tmp_path) + "/", 300),
        (str(tmp_path / "*.parquet"), 300),
        (names[0], 100),
        (names[:2], 200),
    ]:
        frame = ctx.read_table(marq_datafusion.table(source))
        assert frame.count() == rows, source


def test_files_are_listed_when_a_query_runs(
    ctx: datafusion.SessionContext, tmp_path: pathlib.Path
) -> None:
    pq.write_table(many_types(10, seed=1), tmp_path / "a.parquet")
    ctx.register_table("t", marq_datafusion.table(tmp_path))
    assert ctx.table("t").count() == 10
    pq.write_table(many_types(5, seed=1), tmp_path / "b.parquet")
    assert ctx.table("t").count() == 15


def test_columns_in_the_names_of_folders(ctx: datafusion.SessionContext, hive: str) -> None:
    table = marq_datafusion.table(hive)
    assert table.column_names[-2:] == ["year", "city"]
    ctx.register_table("ours", table)
    columns = [("year", pa.int64()), ("city", pa.string())]
    ctx.register_parquet("own", hive, table_partition_cols=columns)
    for query in [
        "SELECT year, city, count(*) AS n, sum(small) AS s FROM t GROUP BY year, city ORDER BY year, city",
        "SELECT id, city FROM t WHERE year = 2026 AND small > 90 ORDER BY city, id",
        "SELECT id, year FROM t WHERE city = 'Riga' OR id = 3 ORDER BY year, city, id",
        "SELECT count(*) AS n FROM t WHERE year + 1 = 2026 AND city LIKE 'O%'",
        "SELECT DISTINCT year FROM t ORDER BY year",
    ]:
        own, ours = (rows_of(ctx.sql(query.replace("FROM t", f"FROM {n}"))) for n in ("own", "ours"))
        assert ours == own, query
    as_text = marq_datafusion.table(hive, partitions={"year": "utf8", "city": "utf8"})
    frame = ctx.read_table(as_text).filter(datafusion.col("year") == datafusion.lit("2025"))
    assert frame.count() == 400
    assert "year" not in marq_datafusion.table(hive, partitions={}).column_names
    assert ctx.read_table(marq_datafusion.table(hive, where="year = 2026 and id < 7")).count() == 14


@pytest.mark.parametrize(
    ("paths", "partitions"),
    [
        (["x/year=1/a.parquet", "y/year=2/a.parquet"], None),
        (["year=1/a.parquet", "b.parquet"], None),
        (["year=1/m=1/a.parquet", "m=1/year=2/a.parquet"], None),
        (["year=1/m=1/a.parquet", "year=2/a.parquet"], None),
        (["year=1/a.parquet", "year=1/.tmp-a.parquet"], None),
        (["year=1/a.parquet"], {"month": "int64"}),
        (["year=1/a.parquet"], {"year": "int64", "month": "int64"}),
    ],
)
def test_files_that_datafusion_would_leave_out_are_refused(
    tmp_path: pathlib.Path, paths: list[str], partitions: dict[str, str] | None
) -> None:
    for path in paths:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [1]}), tmp_path / path)
    with pytest.raises(ValueError, match="begin with"):
        marq_datafusion.table(tmp_path, partitions=partitions)


def test_folders_below_those_of_the_columns_are_read(
    ctx: datafusion.SessionContext, tmp_path: pathlib.Path
) -> None:
    for path in ("year=1/a.parquet", "year=2/more/b.parquet"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.table({"id": [1]}), tmp_path / path)
    assert ctx.read_table(marq_datafusion.table(tmp_path)).count() == 2


def test_a_table_may_have_some_columns_and_some_rows(
    ctx: datafusion.SessionContext, mixed: str
) -> None:
    some = marq_datafusion.table(mixed, columns=["text", "id"], where="small > 50 and id < 2000")
    assert some.column_names == ["text", "id"]
    ctx.register_table("ours", some)
    ctx.register_parquet("whole", mixed)
    ctx.sql("CREATE VIEW own AS SELECT text, id FROM whole WHERE small > 50 AND id < 2000")
    for query in [
        "SELECT * FROM t ORDER BY id",
        "SELECT count(*) AS n FROM t",
        "SELECT text, max(id) AS m FROM t WHERE id > 600 GROUP BY text ORDER BY text",
        "SELECT max(id) AS m FROM t",
    ]:
        own, ours = (rows_of(ctx.sql(query.replace("FROM t", f"FROM {n}"))) for n in ("own", "ours"))
        assert ours == own, query
    assert len(rows_of(ctx.sql("SELECT id FROM ours LIMIT 30"))) == 30


def test_conditions_mean_what_they_mean_in_marquetry(
    ctx: datafusion.SessionContext, mixed: str
) -> None:
    marq = pytest.importorskip("marq")
    for where in [
        "text = 'red' or kind is null",
        "not (small > 3) and price < 50.25",
        "real = 0",
        "day >= '2026-05-01' and at < timestamp '2026-01-05 00:00:00Z'",
        "starts_with(text, 'b') or text ilike 'R%'",
        "small + 1 > 60 and point.x = 3",
        "any(list) > 7",
        "big >= 9323372036854775807",
    ]:
        ours = ctx.read_table(marq_datafusion.table(mixed, columns=["id"], where=where))
        ids = sorted(row["id"] for row in rows_of(ours))
        assert ids == marq.read(mixed, columns=["id"], where=where)["id"].to_pylist(), where
        assert 0 < len(ids) < 3_000, where


def test_an_arrow_stream_is_a_table(ctx: datafusion.SessionContext) -> None:
    ctx.register_table("t", marq_datafusion.table(many_types(50, seed=3)))
    assert rows_of(ctx.sql("SELECT sum(id) AS s FROM t WHERE id > 10")) == [{"s": sum(range(11, 50))}]
