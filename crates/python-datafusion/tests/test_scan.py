"""Filters, projections and limits reach the scan; plans and metrics show it."""

from __future__ import annotations

import re

import datafusion
import marq_datafusion
import pytest


def analysed(ctx: datafusion.SessionContext, query: str) -> dict[str, str]:
    """The metrics of the scan of a query that was run."""
    text = "\n".join(
        str(row) for row in ctx.sql(f"EXPLAIN ANALYZE {query}").to_pydict()["plan"]
    )
    line = next(line for line in text.splitlines() if "FFI_ExecutionPlan" in line)
    metrics = line.rsplit("metrics=[", 1)[1]
    return dict(re.findall(r"([a-z_]+)=([^,\]]+)", metrics))


def plans(ctx: datafusion.SessionContext, query: str) -> dict[str, str]:
    shown = ctx.sql(f"EXPLAIN {query}").to_pydict()
    return dict(zip(shown["plan_type"], shown["plan"]))


@pytest.fixture
def with_trips(ctx: datafusion.SessionContext, trips: str) -> datafusion.SessionContext:
    ctx.register_table("t", marq_datafusion.table(trips))
    return ctx


def test_filters_are_in_the_scan(with_trips: datafusion.SessionContext) -> None:
    found = plans(with_trips, "SELECT id, fare FROM t WHERE id < 300 AND payment LIKE 'c%'")
    assert "full_filters=[" in found["logical_plan"]
    assert "Filter" not in found["logical_plan"].replace("full_filters", "")
    assert "FilterExec" not in found["physical_plan"]
    assert "file_type=marquetry" in found["physical_plan"]
    assert re.search(r"predicate=id@\d+ < 300 AND payment@\d+ LIKE c%", found["physical_plan"])
    assert "projection=[id, fare]" in found["physical_plan"]


def test_functions_stay_above_the_scan(with_trips: datafusion.SessionContext) -> None:
    found = plans(with_trips, "SELECT fare FROM t WHERE id < 300 AND lower(payment) = 'card'")
    assert "FilterExec: lower(payment" in found["physical_plan"]
    assert re.search(r"predicate=id@\d+ < 300,", found["physical_plan"])


def test_fields_of_structs_are_tested_in_the_scan(
    ctx: datafusion.SessionContext, mixed: str
) -> None:
    ctx.register_table("t", marq_datafusion.table(mixed))
    query = "SELECT id FROM t WHERE point['x'] + 1 > 6 AND point['x'] < 8"
    assert "FilterExec" not in plans(ctx, query)["physical_plan"]
    ctx.register_parquet("own", mixed)
    expected = ctx.sql(query.replace("FROM t", "FROM own")).count()
    assert 0 < expected == ctx.sql(query).count()


def test_row_groups_are_pruned_and_rows_are_left_out_in_the_scan(
    with_trips: datafusion.SessionContext,
) -> None:
    metrics = analysed(with_trips, "SELECT fare FROM t WHERE id >= 300 AND id < 320")
    assert metrics["output_rows"].strip() == "20"
    assert metrics["row_groups_pruned_statistics"].startswith("4 total")
    assert re.search(r"→ 1 matched", metrics["row_groups_pruned_statistics"])


def test_a_condition_of_the_table_prunes_too(ctx: datafusion.SessionContext, trips: str) -> None:
    ctx.register_table("t", marq_datafusion.table(trips, where="id between 300 and 319"))
    metrics = analysed(ctx, "SELECT fare FROM t WHERE fare > -1")
    assert re.search(r"→ 1 matched", metrics["row_groups_pruned_statistics"])
    assert int(metrics["output_rows"]) <= 20


def test_files_are_pruned_by_the_names_of_their_folders(
    ctx: datafusion.SessionContext, hive: str
) -> None:
    ctx.register_table("t", marq_datafusion.table(hive))
    plan = plans(ctx, "SELECT id FROM t WHERE year = 2026 AND city = 'Riga'")["physical_plan"]
    assert plan.count("part-0.parquet") == 1 and "FilterExec" not in plan


def test_a_count_comes_from_statistics(with_trips: datafusion.SessionContext) -> None:
    plan = plans(with_trips, "SELECT count(*) FROM t")["physical_plan"]
    assert "1000" in plan and "FFI_ExecutionPlan" not in plan
    assert with_trips.table("t").count() == 1_000


def test_a_limit_ends_the_scan(with_trips: datafusion.SessionContext) -> None:
    assert "limit=3" in plans(with_trips, "SELECT id FROM t LIMIT 3")["physical_plan"]
    frame = with_trips.sql("SELECT id FROM t WHERE id >= 500 LIMIT 3")
    assert frame.to_pydict() == {"id": [500, 501, 502]}


def test_options_of_the_session_hold(trips: str) -> None:
    config = datafusion.SessionConfig().with_batch_size(100).with_target_partitions(1)
    ctx = datafusion.SessionContext(config)
    ctx.register_table("t", marq_datafusion.table(trips))
    batches = ctx.sql("SELECT id FROM t").collect()
    assert sum(map(len, batches)) == 1_000 and max(map(len, batches)) <= 100


def test_a_file_is_divided_between_partitions(mixed: str) -> None:
    config = (
        datafusion.SessionConfig()
        .with_target_partitions(4)
        .set("datafusion.optimizer.repartition_file_min_size", "1")
    )
    ctx = datafusion.SessionContext(config)
    ctx.register_table("t", marq_datafusion.table(mixed))
    plan = plans(ctx, "SELECT text, count(*) FROM t WHERE small > 3 GROUP BY text")["physical_plan"]
    assert "4 groups" in plan
    assert ctx.sql("SELECT count(*) AS n FROM t WHERE id >= 0").to_pydict() == {"n": [3_000]}
