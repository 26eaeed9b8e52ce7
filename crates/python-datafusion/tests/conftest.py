"""Files that the tests read, and what they have in common."""

from __future__ import annotations

import datetime as dt
import decimal
import os
import pathlib
import random
from collections.abc import Iterator

import datafusion
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

HERE = pathlib.Path(__file__).parent
TESTDATA = HERE.parent.parent.parent / "testdata"


@pytest.fixture(scope="session")
def trips() -> str:
    """1,000 rows in four row groups, with ids in order."""
    return str(TESTDATA / "trips.parquet")


@pytest.fixture
def ctx() -> datafusion.SessionContext:
    return datafusion.SessionContext()


def rows_of(frame: datafusion.DataFrame) -> list[dict[str, object]]:
    return frame.to_arrow_table().to_pylist()


def many_types(rows: int, seed: int) -> pa.Table:
    """Columns of many types, with nulls."""
    r = random.Random(seed)

    def some(make: object) -> list[object]:
        return [None if r.random() < 0.1 else make() for _ in range(rows)]  # type: ignore[operator]

    day = dt.date(2026, 1, 1)
    noon = dt.datetime(2026, 1, 1, 12, tzinfo=dt.timezone.utc)
    words = ["red", "green", "blue", "näive", ""]
    return pa.table(
        {
            "id": pa.array(range(rows), pa.int64()),
            "small": pa.array(some(lambda: r.randrange(-100, 100)), pa.int8()),
            "big": pa.array(some(lambda: r.randrange(2**63, 2**64)), pa.uint64()),
            "real": pa.array(some(lambda: r.choice([r.uniform(-9, 9), 0.0, -0.0])), pa.float64()),
            "flag": pa.array(some(lambda: r.random() < 0.5), pa.bool_()),
            "text": pa.array(some(lambda: r.choice(words)), pa.string()),
            "kind": pa.array(some(lambda: r.choice(words))).dictionary_encode(),
            "day": pa.array(some(lambda: day + dt.timedelta(r.randrange(300))), pa.date32()),
            "at": pa.array(
                some(lambda: noon + dt.timedelta(seconds=r.randrange(10**6))),
                pa.timestamp("us", tz="UTC"),
            ),
            "local": pa.array(
                some(lambda: noon.replace(tzinfo=None) + dt.timedelta(hours=r.randrange(999))),
                pa.timestamp("ms"),
            ),
            "price": pa.array(
                some(lambda: decimal.Decimal(r.randrange(-(10**6), 10**6)) / 100),
                pa.decimal128(12, 2),
            ),
            "wide": pa.array(
                some(lambda: decimal.Decimal(r.randrange(10**30))), pa.decimal128(38, 0)
            ),
            "bytes": pa.array(some(lambda: r.randbytes(r.randrange(5))), pa.binary()),
            "list": pa.array(
                some(lambda: [r.randrange(9) for _ in range(r.randrange(4))]), pa.list_(pa.int32())
            ),
            "point": pa.array(
                some(lambda: {"x": r.randrange(9), "name": r.choice(words)}),
                pa.struct([("x", pa.int32()), ("name", pa.string())]),
            ),
        }
    )


@pytest.fixture(scope="session")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> str:
    """3,000 rows of many types, in six row groups of several pages."""
    path = tmp_path_factory.mktemp("mixed") / "mixed.parquet"
    pq.write_table(
        many_types(3_000, seed=1), path, row_group_size=500, data_page_size=1_000, write_page_index=True
    )
    return str(path)


@pytest.fixture(scope="session")
def hive(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Folders year=…/city=…, of two years and two cities."""
    folder = tmp_path_factory.mktemp("hive")
    for year in (2025, 2026):
        for city in ("Riga", "Oslo"):
            at = folder / f"year={year}" / f"city={city}"
            at.mkdir(parents=True)
            pq.write_table(many_types(200, seed=year + len(city)), at / "part-0.parquet")
    return str(folder)


@pytest.fixture
def in_folder_of_trips(trips: str) -> Iterator[None]:
    before = os.getcwd()
    os.chdir(os.path.dirname(trips))
    yield
    os.chdir(before)
