"""Every example of the documentation runs."""

from __future__ import annotations

import doctest
import importlib
import os
import pathlib
import pkgutil

import marq
import pytest

MODULES = [m.name for m in pkgutil.iter_modules(marq.__path__) if m.name not in ("__main__", "_marq")]
PAGE = pathlib.Path(__file__).parent.parent / "PYPI.md"


@pytest.mark.parametrize("name", ["__init__", *MODULES])
def test_docstrings_run(name: str, trips: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(os.path.dirname(trips))
    module = marq if name == "__init__" else importlib.import_module(f"marq.{name}")
    assert doctest.testmod(module).failed == 0


def test_the_page_of_pypi_runs(trips: str, monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path) -> None:
    (tmp_path / "trips.parquet").write_bytes(pathlib.Path(trips).read_bytes())
    monkeypatch.chdir(tmp_path)
    found = doctest.testfile(str(PAGE), module_relative=False)
    assert found.attempted > 10 and found.failed == 0


def test_all_that_is_public_is_described() -> None:
    for name in marq.__all__:
        if not name.startswith("__"):
            assert getattr(marq, name).__doc__, name
