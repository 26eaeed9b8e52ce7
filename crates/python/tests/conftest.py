"""Files that the tests read, and what they have in common."""

from __future__ import annotations

import os
import pathlib

import pytest

HERE = pathlib.Path(__file__).parent
TRIPS = HERE.parent.parent.parent / "testdata" / "trips.parquet"


@pytest.fixture(scope="session")
def trips() -> str:
    """1,000 rows in four row groups."""
    return str(TRIPS)


@pytest.fixture
def path(tmp_path: pathlib.Path) -> str:
    return str(tmp_path / "file.parquet")


def folder_is_clean(folder: os.PathLike[str] | str, *expected: str) -> bool:
    """Whether a folder has nothing but these files."""
    return sorted(os.listdir(folder)) == sorted(expected)
